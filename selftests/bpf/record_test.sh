#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests `shstk record --via=bpf`: the stacks that are walked in the kernel are those of the program,
# and stacks that cannot be walked are copied.

here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d) || exit 1
target=
# shellcheck disable=SC2317 # called by the trap
end()
{
	[ ! "$target" ] || kill $target
	rm -rf "$folder"
} 2>/dev/null
trap end EXIT
trap 'exit 1' INT TERM
cd "$folder" || exit 1
. "$here/cases.sh"
shstk=$here/shstk
spin=$here/spin

# Records a run. Sets $walked to the number of stacks that were walked, and $all to that of all
# stacks.
record()
{
	"$shstk" record --via=bpf -F 999 -o out.folded "$@" >out 2>&1 || return 1
	walked=$(sed -n 's/.* \([0-9]*\) of [0-9]* stacks were walked in the kernel.*/\1/p' out)
	all=$(sed -n 's/.* of \([0-9]*\) stacks were walked in the kernel.*/\1/p' out)
	[ -n "$walked" ] && [ -n "$all" ]
}

# Records until a stack was walked: the program's file has no table before that, and nothing says
# when it is made.
record_walked()
{
	tries=200
	until record "$@" && [ "$walked" -gt 0 ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
	done
}

# Succeeds if each stack of the innermost function has all its callers and no other function.
whole()
{
	grep -q ';innermost ' out.folded &&
		! grep ';innermost ' out.folded | grep -qv ';main;outer;middle;innermost '
}

# The same of a recording of the whole system that was just made, and of further ones if records were lost:
# they may tell what a process runs.
system_is_whole()
{
	for again in 1 2 3 4 0; do
		# Other tests' programs, in which others call that function, are no concern of this one.
		sed -i '/^spin;/!d' out.folded
		whole && return
		[ $again != 0 ] && ! grep -q ' 0 lost' out && record_walked -a -- "$spin" || return 1
	done
}

# Succeeds if the program lies on an overlay. The inode numbers that an overlay shows may differ
# from those in the kernel, and then its files get no tables.
is_overlay()
{
	[ "$(stat -f -c %T "$spin")" = overlayfs ]
}

begin_walked "$shstk" record --via=bpf -o out.folded -- "$spin"
record_walked -- "$spin"
status=$?
if [ $status != 0 ] && [ "$walked" = 0 ] && is_overlay; then
	echo "1..0 # SKIP this file system tells other inode numbers than the kernel"
	exit 4
fi
point $status "stacks of a command are walked in the kernel"
whole
point $? "a command: each stack has all callers"
record_walked -a -- "$spin"
point $? "stacks of the whole system are walked in the kernel"
system_is_whole
point $? "the whole system: each stack of the program has all callers"

if [ "$(uname -m)" = x86_64 ]; then
	chain=';main;run_on;outermost;run_by_link;outer;run_by_word;between;run_on;middle;run_on;inner'
	chain="$chain;run_by_register;innermost;work "
	tries=50
	until record -- "$here/lower_stack" 1 && grep -q "$chain" out.folded || [ $tries = 0 ]; do
		tries=$((tries - 1))
	done
	grep -q "$chain" out.folded
	point $? "stacks of a program that has several stacks are walked in the kernel"
	! grep ';work ' out.folded | grep -v "$chain" | grep -qv ';\[truncated\];'
	point $? "such a stack has all callers, or is copied and truncated"
fi

record_walked --off-cpu -- "$here/naps"
status=$?
point $status "stacks at which a thread leaves its CPU are walked in the kernel"
grep -q ';innermost;' out.folded &&
	! grep ';innermost;' out.folded | grep -qv ';main;outer;middle;innermost;'
point $? "off-CPU time: each wait has all callers"
# Of what is preempted the stacks are walked, too, but they are no waits.
cpu=$(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/')
record --off-cpu -- sh -c "taskset -c $cpu $spin & taskset -c $cpu $spin; wait" &&
	[ "$walked" -le "$all" ]
point $? "off-CPU time: no more stacks are said to be walked than there are"
record_walked -- "$here/changes" "$here/late_library.so"
point $? "stacks of threads, children, and what they become are walked in the kernel"
# Each line is the function below which the time is, and what is above the common three.
while read -r name place; do
	grep -q ";$place;outer;middle;innermost " out.folded &&
		! grep ";$name;" out.folded | grep ';innermost ' |
			grep -qv ";$place;outer;middle;innermost "
	point $? "$name: each stack has all callers"
done <<-END
	in_thread in_thread
	in_child main;start_child;in_child
	in_program main;in_program
	in_late_library main;in_library;in_late_library
	in_made_code main;in_made_code;[^;]*
	in_flood main;in_flood
	in_handler main;start_child;in_illegal;illegal;[^;]*;in_handler
END
record_walked -e page-faults,cpu-clock -- "$spin"
point $? "stacks of the first event of two are walked in the kernel"
# Only this program is sampled, so nothing is lost for lack of room. Of a busy machine it gets little, so it is recorded
# for longer each time.
"$here/maps" 1000 &
target=$!
for seconds in 2 8 32 128; do
	record -p $target --duration=$seconds && grep -q ' have no sample: the kernel takes none while' out && break
done
grep -q ' have no sample: the kernel takes none while' out && grep -q '\[not sampled\]' out.folded
point $? "samples that the kernel drops without a word are told of"
# Of several profiles nobody knows: when one ends some samples wait in the rings, and are the next one's.
record -p $target --duration=$((2 * seconds)) --every=$seconds && ! grep -q 'have no sample' out
point $? "samples that wait until the next profile are not said to be dropped"
kill $target
target=
timeout 200 "$shstk" record --via=bpf --cgroup=/nonexistent -o out.folded -- "$spin" >out 2>&1
[ $? = 125 ]
point $? "a recording that cannot begin ends at once"
# At the first and the last instruction of a function the frame pointer is that of its caller, whose caller is next.
# What frame pointers lead to may be lost, where a ring is full.
name="32-bit code: stacks are those that frame pointers lead to"
if "$here/spin32" 2>out; then
	record -- "$here/spin32" && grep -q ';_start;outer;middle;innermost ' out.folded &&
		! grep ';innermost ' out.folded | grep -qv -e ';_start;outer;\(middle;\)\?innermost ' -e '\[truncated\];innermost '
	point $? "$name"
else
	skip "$name" "the compiler or the kernel has no 32-bit code"
fi
# Where the kernel has no memory for the rings' places, walks are written to the events' own rings.
cat >unplaced <<-END
	#!/bin/sh
	exec "$here/no_batch" "$shstk" "\$@"
END
chmod +x unplaced
name="stacks are walked, too, where rings cannot be put into their places"
"$here/no_batch" true
if [ $? = 4 ]; then
	skip "$name" "there are no filters of system calls here"
else
	(shstk=./unplaced && record_walked -- "$spin" 2 && whole)
	point $? "$name"
fi
# With the two others root gives itself up in processes that make tables, as it does not read files otherwise. The
# program has no build ID, so its table is made by this recording and is in no cache.
rights=+cap_38,+cap_39,+setuid,+setgid
cat >bounded <<-END
	#!/bin/sh
	exec setpriv --inh-caps=-all,$rights --bounding-set=-all,$rights "$shstk" "\$@"
END
chmod +x bounded
# Some kernels ask for CAP_SYS_ADMIN where perf events are opened: Debian's, if this is 3.
if ./bounded --version >out 2>&1 && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	(shstk=./bounded && record_walked -- "$here/spin_unnamed" 2 && whole)
	point $? "CAP_BPF and CAP_PERFMON are enough"
else
	skip "CAP_BPF and CAP_PERFMON are enough" "no such process may record here"
fi
t 'a perf.data file is refused' 2 'does not go with --via=bpf' \
	"$shstk" record --via=bpf --perf-data=x -- true
echo "1..$count"
exit $failed
