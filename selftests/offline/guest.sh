#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest with shadow stacks: tests `shstk trace` with a process and with a core file, by
# the shadow stacks and by unwinding. The arguments are only there so that the files are copied into
# the guest.

cd /t || exit 1
. ./cases.sh

# lines NAME NUMBER PATTERN: reports whether NUMBER lines of the last t's output match.
lines()
{
	if [ "$(grep -cE -e "$3" out)" = "$2" ]; then
		say ok "$1"
	else
		say 'not ok' "$1"
		echo "# not $2 lines match /$3/"
		sed 's/^/# | /' out
	fi
}

echo TAP version 13
ulimit -c unlimited
pattern=$(cat /proc/sys/kernel/core_pattern)
echo dump >/proc/sys/kernel/core_pattern

./shstk run -q ./stand wait >ready 2>&1 &
await_line '^ready [0-9]+$' ready || sed 's/^/# /' ready
pid=$(sed -n 's/^ready //p' ready)

t 'trace -p: by the shadow stacks' 0 '^process .* 4 threads, stopped for [0-9.]+ ms' ./shstk trace -p "$pid"
lines 'of all threads' 4 'by its shadow stack:$'
lines 'all frames of a recursion' 41 ' recurse'
has 'through a signal handler' ' in_handler' ' interrupted' ' signal_thread'
lines 'what the signal interrupted is filled in' 0 'signal came here'
t 'trace --source=hardware: marks what it cannot know' 0 'signal came here; where' ./shstk trace -p "$pid" --source=hardware
t 'trace --source=unwind' 0 'by unwinding:$' ./shstk trace -p "$pid" --source=unwind
lines 'and nothing else' 0 'by its shadow stack'
t 'trace --compare: the same by both' 0 '^  compared: .* agree, 4[0-9] frames' ./shstk trace -p "$pid" --compare
lines 'of all threads' 4 '^  compared: shadow stack and unwinding agree'
t 'status: the recursion fills its shadow stack' 0 '^ +[0-9]+  on .* 0x[0-9a-f]+ +[0-9]+ KiB  (4[2-9]|5[0-9])$' ./shstk status "$pid"
lines 'and the others have theirs' 4 '^ +[0-9]+  on .* KiB  [1-9][0-9]*$'
kill "$pid"
wait
rm -f dump

t 'the target leaves a core file' 139 . sh -c './shstk run -q ./stand crash; r=$?; echo $r; exit $r'
echo "$pattern" >/proc/sys/kernel/core_pattern
t 'trace --core: by the shadow stacks' 0 '^core file dump of process .* 4 threads, ended by SIGSEGV' ./shstk trace --core dump
lines 'of all threads' 4 'by its shadow stack:$'
has 'from the fault to the start' ' fault' ' crash_here' ' main' ' compare' ' sort_thread' ' in_handler' ' interrupted'
t 'trace --core --compare: the same by both' 0 '^  compared: .* agree' ./shstk trace --core dump --compare
lines 'of all threads' 4 '^  compared: shadow stack and unwinding agree'
head -c 30000 dump >cut
t 'a core file that is cut off says so' 0 'cut is cut off: it has 30000 of' ./shstk trace --core cut
echo "1..$count"
