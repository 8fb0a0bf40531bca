#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest with shstk.ko loaded, and checks what `shstk events` says about a program that
# returns wrongly. The arguments are there only so that the files are copied in.

cd /t || exit 1
. ./cases.sh

echo TAP version 13
before=$(cat /sys/class/misc/shstk/violations)

./shstk events -n 1 -p 1000000 --no-such-option >out 2>&1
[ $? = 2 ]; point $? 'a wrong option is refused'

./shstk events -n 1 >out 2>&1 &
pid=$!
await_line ': waiting for violations$' out
./shstk run -q ./violate >/dev/null 2>&1
[ $? = 139 ]; point $? 'a program returns wrongly and dies of it'
( sleep 800; kill $pid ) 2>/dev/null &
wait $pid
point $? 'it is reported, and the command ends after the one it was asked for'
kill $! 2>/dev/null

grep -qE 'violate, process [0-9]+, thread [0-9]+: return in wrong\+0x[0-9a-f]+ \(violate\+0x[0-9a-f]+\) at .*violate\.c:[0-9]+ goes to escaped\+.*violate\.c:[0-9]+, the shadow stack has main\+0x.*violate\.c:[0-9]+$' out
point $? 'with function and line of the return and of both addresses, though the process is gone'
[ "$(cat /sys/class/misc/shstk/violations)" -eq $((before + 1)) ]
point $? 'it is counted in sysfs, once'

# In Bochs perf takes half a minute to start.
if [ -x /usr/bin/perf ] && [ "$(uname -m)" = aarch64 ]; then
	# The output of the command comes between the parts of a line of perf's output.
	perf trace -o trace -e shstk:shstk_violation -- ./shstk run -q ./violate >out 2>&1
	grep -qE 'violate/[0-9]+ shstk:shstk_violation\(.*stack: .*, shadow: ' trace
	point $? 'perf trace prints the event'
fi
echo "1..$count"
exit $failed
