#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest without shadow stacks, where shstk_perf.ko is loaded: tests `shstk record` by
# unwind rules in the kernel, with programs without frame pointers. The arguments are only there so
# that the files are copied into the guest.

mkdir -p /t/rules && cd /t/rules || exit 1
for file in "$@"; do
	[ ! -f "$file" ] || cp "$file" "$(basename "$file" | sed 's/^[0-9]*-//')"
done
. ./cases.sh
by='by perf events, callchains by unwind rules in the kernel'
state=/sys/module/shstk_perf/rules
record='./shstk record -F 499 -o out.folded'

# whole NAME PART: checks that all time in stacks with PART is in stacks that reach the first frame,
# except for samples from before a file has its table.
whole()
{
	if awk -v part="$2" '
		$0 ~ part { all += $NF }
		$0 ~ part && /^[^;]*;(_start|clone|__clone3|\[libc.so.6[^;]*\]);/ { good += $NF }
		END { printf "%.3f of %.3f s\n", good / 1e9, all / 1e9
		      exit !(all > 0 && good > 0.97 * all) }' out.folded >share; then
		say ok "$1: complete in $(cat share)"
	else
		say 'not ok' "$1: complete in $(cat share)"
		cut -c 1-300 out.folded | sed 's/^/# /' | head -n 20
	fi
}

listeners() # N
{
	[ "$(cat $state/listeners)" = "$1" ]
}

echo TAP version 13
./shstk rules drop --all
./target forever >ready 2>&1 &
pid=$!
await_line '^ready$' ready
t 'no rules: by copies' 0 'stacks copied and unwound here' $record -p $pid --duration=0.5
t 'a file without rules' 0 "$by" enough 100 1 $record --via=rules -p $pid
whole 'its stacks, by rules that were loaded for it' ';do_forever'
t 'they are there now' 0 '^target ' ./shstk rules list
t 'nobody loads more' 0 '^0$' cat $state/listeners
t 'a process' 0 "$by" enough 100 1 $record -p $pid
whole 'its stacks' ';do_forever'
t 'the whole system' 0 "$by" enough 100 1 $record -a
whole 'that process in it' ';do_forever'
# Until something is changed in the root, the kernel does not give cgroups the controller perf_event.
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
group=/sys/fs/cgroup/rules
mkdir $group
echo $pid >$group/cgroup.procs
t 'a cgroup' 0 "$by" enough 100 1 $record --cgroup=$group
whole 'what runs in it' ';do_forever'
t 'and nothing else' 1 '^0$' grep -vc '^target;' out.folded
t 'a command: by copies, as nobody sees to its rules' 0 'stacks copied and unwound here' \
	$record -e task-clock -- ./target share 0.3
t 'what is to be unwound again: by copies' 0 'stacks copied and unwound here' \
	$record --perf-data=perf.data -p $pid --duration=0.5
kill $pid
wait $pid
rmdir $group

./shstk rules serve --cache=/t/rules/cache >serve 2>&1 &
daemon=$!
await listeners 1
t 'a command where the daemon runs' 0 "$by" $record -e task-clock -- ./target share 0.5
whole 'its stacks' ';do_share'
t 'time off the CPU' 0 "$by" $record --off-cpu -- ./target sleeper 1
whole 'its stacks' ';sleeping_thread'
t 'with the kernel' 0 "$by" $record --kernel -- ./target share 0.5
whole 'its stacks' ';do_share'
t 'the daemon is still the only one' 0 '^1$' cat $state/listeners
kill $daemon
wait $daemon
t 'it has ended' 0 '^0$' cat $state/listeners
echo "1..$count"
