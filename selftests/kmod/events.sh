#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest with shstk.ko loaded: what `shstk events` says of a program
# that returns wrongly. The arguments are only there to have the files copied in.

cd /t || exit 1
count=0
failed=0

say() # STATUS NAME: 0 is good
{
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count $2"
	else
		failed=1
		echo "not ok $count $2"
		sed 's/^/# | /' out err 2>/dev/null
	fi
}

echo TAP version 13
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
before=$(cat /sys/class/misc/shstk/violations)

./shstk events -n 1 -p 1000000 --no-such-option 2>err >out
[ $? = 2 ]; say $? 'a wrong option is refused'

./shstk events -n 1 >out 2>err &
pid=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	grep -q waiting err && break
	sleep 0.5
done
./shstk run -q ./violate >/dev/null 2>&1
[ $? = 139 ]; say $? 'a program returns wrongly and dies of it'
( sleep 60; kill $pid ) 2>/dev/null &
wait $pid
say $? 'it is reported, and the command ends after the one it was asked for'
kill $! 2>/dev/null

grep -qE 'violate, process [0-9]+, thread [0-9]+: return in wrong\+0x[0-9a-f]+ \(violate\+0x[0-9a-f]+\) at .*violate\.c:[0-9]+ goes to escaped\+.*violate\.c:[0-9]+, the shadow stack has main\+0x.*violate\.c:[0-9]+$' out
say $? 'with function and line of the return and of both addresses, though the process is gone'
[ "$(cat /sys/class/misc/shstk/violations)" -gt "$before" ]
say $? 'it is counted in sysfs'
echo "1..$count"
exit $failed
