#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests that a recording which lasts begins by itself to walk stacks in the kernel, by BPF: these stacks
# are the same as the copies before, whatever is recorded. Where the program cannot be loaded, stacks are
# copied to the end, and nothing is said of it.

here=$(cd "$(dirname "$0")" && pwd)
# Programs may not be allowed to run in /tmp.
folder=$(mktemp -d -p "$here") || exit 1
spinner='' napper=''
# shellcheck disable=SC2317 # called by the trap
end()
{
	kill $spinner $napper
	rm -rf "$folder"
} 2>/dev/null
trap end EXIT
trap 'exit 1' INT TERM
cd "$folder" || exit 1
. "$here/cases.sh"
shstk=$here/shstk

# Runs a recording. Succeeds if some stacks were walked. One that fails may be tried again, but not at once:
# others need the CPU.
walks()
{
	"$@" >out 2>&1 || { sleep 1; return 1; }
	[ "$(sed -n 's/.*[ (]\([0-9]*\) of [0-9]* stacks were walked in the kernel.*/\1/p' out)" ]
}

# Prints the CPU time in seconds that the spinner has had. It gets as little of a busy machine as the
# recorders do, so it is the clock by which they are waited for.
spun()
{
	cut -d ' ' -f 14,15 /proc/$spinner/stat | {
		read -r user system
		echo $(((user + system) / $(getconf CLK_TCK)))
	}
}

# Records for so many seconds, and for longer as long as no stack is walked: nobody knows when the
# program is loaded and the file has its table. Gives up when the spinner has had CPU time enough.
in_time()
{
	until walks "$@"; do
		[ "$(spun)" -lt 180 ] || return 1
		[ $seconds -gt 60 ] || seconds=$((2 * seconds))
	done
}

command() { "$shstk" record -F 499 -o out.folded -- "$here/spin" $seconds; }
running() { "$shstk" record -F 499 -o out.folded --duration=$seconds "$@"; }
# The recorder notes the events at which programs run.
noted() { OPENED=$PWD/opened LD_PRELOAD=$here/opened.so running "$@"; }
parts() { running --every=$((seconds / 2)) "$@"; }
live() { "$shstk" top -F 499 --duration=$seconds -p $spinner; }

# Programs are recorded this long at first, in seconds, which is longer than nothing is loaded.
seconds=3

# begin NAME COMMAND...: runs the command in a folder of that name, beside others.
begin()
{
	mkdir "$1"
	(
		cd "$1" || exit 1
		shift
		"$@"
		echo $? >status
	) &
	cases="$cases $!"
}

# Succeeds if the command of that name did, and has the file "out" be what it printed.
good()
{
	cp "$1/out" out
	[ "$(cat "$1/status")" = 0 ]
}

# whole NAME FUNCTION CALLERS: each stack of the function has the callers.
whole()
{
	cat "$1"/*.folded | grep -q ";$2" && ! cat "$1"/*.folded | grep ";$2" | grep -qv ";$3;$2"
}

# both NAME TEXT FUNCTION: stacks were walked, and those of the function have their callers.
both()
{
	good "$1"
	point $? "$2: stacks are walked after a while"
	whole "$1" "$3" 'main;outer;middle'
	point $? "$2: each stack has all callers"
}

# Records a program where nothing can walk its stacks. Succeeds if nothing is said of that.
copies()
{
	"$@" >out 2>&1 && grep -q 'stacks copied and unwound here' out && ! grep -qi 'bpf\|walked' out
}

broken()
{
	cp "$shstk" .
	echo 'no object' >shstk-walk.bpf.o
	copies ./shstk record -o out.folded -- "$here/spin" $seconds
}

# The capabilities that the unit of shstkd-profile gives, and no others. Its own lines go into a file.
as_service()
{
	setpriv --no-new-privs --bounding-set="-all,$rights" "$shstk" record -F 499 -o out.folded \
		--duration=$seconds -p $spinner
}

# Succeeds if a bounding set can be set here.
bounds() { setpriv --bounding-set="$1" true 2>/dev/null; }

rightless()
{
	copies setpriv --bounding-set=-sys_admin,-bpf --inh-caps=-sys_admin,-bpf \
		"$shstk" record -o out.folded -- "$here/spin" $seconds
}

begin_walked "$shstk" record --via=bpf -o out.folded -- true
if [ -d /sys/module/shstk_perf ]; then
	echo "1..0 # SKIP shstk_perf is loaded: its callchains are preferred"
	exit 4
fi
if [ "$(stat -f -c %T "$here/spin")" = overlayfs ]; then
	echo "1..0 # SKIP an overlay may tell other inode numbers than the kernel"
	exit 4
fi
"$here/spin" 100000 &
spinner=$!
"$here/naps" 100000000 &
napper=$!

cases=''
begin command in_time command
begin running in_time running -p $spinner
begin noted in_time noted -p $spinner
begin events in_time running -e cpu-clock,page-faults -p $spinner
begin parts in_time parts -p $spinner
begin waiting in_time running --off-cpu -p $napper
begin all in_time running -a
begin live in_time live
rights=$(sed -n 's/^CapabilityBoundingSet=//p' "$here/shstkd-profile.service" | tr '[:upper:]' '[:lower:]' |
	sed 's/cap_/+/g; s/ /,/g')
if bounds "-all,$rights"; then
	begin service in_time as_service
fi
begin broken broken
begin rightless rightless
wait $cases

both command 'a command' 'innermost '
both running 'a running process' 'innermost '
# On other machines the walk's program writes no callchains.
if [ "$(uname -m)" = x86_64 ]; then
	both noted 'a recorder whose events are noted' 'innermost '
	cp noted/opened out
	grep -q '^without$' out && ! grep -q '^with$' out
	point $? "where stacks are walked the kernel makes no callchains of user space"
	placed=$(sed -n 's/^placed //p' out | head -n 1)
	[ "${placed:-0}" -gt 1 ] || [ "$(getconf _NPROCESSORS_ONLN)" = 1 ]
	point $? "the rings of several CPUs are placed by one call"
fi
both events 'two events' 'innermost '
both parts 'several profiles' 'innermost '
both waiting 'waiting' 'innermost;'
# Of the whole system are also other tests' programs, in which others call that function.
sed -i '/^spin;/!d' all/out.folded
both all 'the whole system' 'innermost '
if bounds "-all,$rights"; then
	both service 'with the rights of shstkd-profile.service' 'innermost '
else
	say ok "shstkd-profile.service # SKIP setpriv cannot drop rights here"
fi
good live
point $? "top: stacks are walked after a while"
good broken && whole broken 'innermost ' 'main;outer;middle'
point $? "a program that cannot be loaded is not spoken of, and stacks are copied"
if bounds -sys_admin,-bpf; then
	good rightless && whole rightless 'innermost ' 'main;outer;middle'
	point $? "who may not load it gets copies"
else
	say ok "who may not load it gets copies # SKIP setpriv cannot drop rights here"
fi
echo "1..$count"
exit $failed
