#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest with shadow stacks: `shstk crash` as the kernel's handler of core files, and as what
# a program's own handler starts. The arguments are only there so that the files are copied into the guest.

cd /t || exit 1
. ./cases.sh

pattern=$(cat /proc/sys/kernel/core_pattern)
limit=$(cat /proc/sys/kernel/core_pipe_limit)

# crash WAY STATUS COMMAND...: ends a program in this way, and copies the report to "out".
crash()
{
	way=$1
	wanted=$2
	shift 2
	rm -rf crashes
	"$@" >said 2>&1
	status=$?
	cat crashes/*.txt >out 2>&1
	if [ "$status" = "$wanted" ]; then
		say ok "$way: ends as it does without a handler"
	else
		say 'not ok' "$way: status $status instead of $wanted"
		sed 's/^/# | /' said
	fi
}

echo TAP version 13
ulimit -c unlimited
echo 4 >/proc/sys/kernel/core_pipe_limit
echo '|/t/shstk crash -p %P --dir=/t/crashes --timeout=250' >/proc/sys/kernel/core_pattern

crash null 139 sh -c './crasher null; exit $?'
has 'the cause' '^process [0-9]+ \(crasher\) ended by SIGSEGV: address 0x0 is not mapped$'
has 'the command line' '^command +\./crasher null$'
has 'the function first, and the others' ' null\+' ' main\+' '^2 threads .* by unwinding:$' ' waits\+'
crash thread 139 sh -c './crasher thread; exit $?'
has 'a name of a thread is made plain' '^thread [0-9]+ \(worker \?\[31m;/\.\), by unwinding:$' ' null\+'
crash first-ends 139 sh -c './crasher first-ends; exit $?'
has 'the stack of another thread than the first, which has ended' ' null\+' ' crash_alone\+'
crash shadow 139 sh -c './shstk run -q ./crasher null; exit $?'
has 'both stacks agree' ' null\+' 'by its shadow stack:$' '^  compared: .* agree'
crash smash 139 sh -c './shstk run -q ./crasher smash; exit $?'
has 'a return address that was written over' \
	'ended by SIGSEGV: a return address is not that of the shadow stack$' ' smash\+' \
	'^  compared: shadow stack and unwinding differ after [0-9]+ frames:$' \
	'^    shadow stack +0x[0-9a-f]+ main$' '^    unwinding +'

echo "$pattern" >/proc/sys/kernel/core_pattern
echo "$limit" >/proc/sys/kernel/core_pipe_limit

# caught WAY STATUS COMMAND...: the same by the program's own handler, which libshstk-crash installs.
caught()
{
	way="caught $1"
	wanted=$2
	shift 2
	LD_PRELOAD=/t/libshstk-crash-preload.so SHSTK_CRASH_COMMAND=/t/shstk "$@" >out 2>&1
	status=$?
	if [ "$status" = "$wanted" ]; then
		say ok "$way: ends as it does without a handler"
	else
		say 'not ok' "$way: status $status instead of $wanted"
		sed 's/^/# | /' out
	fi
}

ulimit -c 0
caught null 139 ./shstk run -q ./crasher null
has 'both stacks agree' ' null\+' 'by its shadow stack:$' '^  compared: .* agree'
caught smash 139 ./shstk run -q ./crasher smash
has 'a return address that was written over' \
	'ended by SIGSEGV: a return address is not that of the shadow stack$' ' smash\+' \
	'^  compared: shadow stack and unwinding differ after [0-9]+ frames:$' \
	'^    shadow stack +0x[0-9a-f]+ main$' '^    unwinding +'
echo "1..$count"
