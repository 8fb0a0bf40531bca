#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   bpftrace.sh shadow shstk.ko shstk_perf.ko [FILE...]
#   bpftrace.sh rules shstk_perf.ko [FILE...]
#
# Runs in a guest: Debian's bpftrace samples Debian's sqlite3, first without shstk_perf.ko and then
# with it, by shadow stacks or by unwind rules. A stack is complete if it reaches the function of
# the C library that calls main(). bpftrace takes a minute or more to start in the guest, so it is
# started once, and two programs run under it in turn. With shadow stacks the test also prints the
# trace event of shstk.ko. The other files only have to be there.

mode=$1
shift
cd /t || exit 1
. ./cases.sh

wanted=100

# Starts a program that works for hours, and waits until its file shows that it has begun.
start() # FILE
{
	$run sqlite3 :memory: "attach '$PWD/$1' as f; create table f.t(x);" \
		'with recursive c(x) as (select 1 union all select x + 1 from c where x < 4e9)
		 select count(*) from c where x % 7 = length(x)' >"$1.out" 2>&1 &
	await test -s "$1" || echo "# $1: does not start: $(cat "$1.out")"
}

# Prints the sqlite3 process that was started.
find_sqlite() # FILE
{
	for f in /proc/[0-9]*/cmdline; do
		tr '\0' ' ' <"$f" 2>/dev/null | grep -q "^[^ ]*sqlite3 .*$1" || continue
		f=${f%/cmdline}
		echo "${f#/proc/}"
	done
}

samples() # PID: how many bpftrace says it has
{
	sed -n "s/^@n\[$1\]: //p" out | tail -n 1
}

enough() # PID
{
	[ "$(samples "$1" | grep .)" -ge $wanted ] 2>/dev/null
}

turn() # PID
{
	kill -CONT "$1"
	await enough "$1"
	kill -STOP "$1"
}

# Prints "COMPLETE ALL FRAMES" for the stacks of a process.
stacks() # PID
{
	awk -v start="@stack[$1," '
		index($0, start) == 1 { inside = 1; main = 0; n = 0; next }
		inside && /^\]: / {
			all += $2
			if (main)
				complete += $2
			frames += n * $2
			inside = 0
		}
		inside { n++; if (/__libc_start_main/) main = 1 }
		END { printf "%d %d %.1f\n", complete, all, all ? frames / all : 0 }' out
}

load_mapped() # PID: the tables of all files that it has mapped as code
{
	# shellcheck disable=SC2046
	./shstk rules load -q $(awk '$2 ~ /x/ && $6 ~ /^\// { print $6 }' "/proc/$1/maps") >tables 2>&1
	point $? 'tables of what runs'
}

event='' run=
if [ "$mode" = shadow ]; then
	insmod "$1" || exit 1
	shift
	run='./shstk run -q'
	event='tracepoint:shstk:shstk_violation {
		printf("violation: %s stack %lx shadow %lx\n", comm, args.stack, args.shadow);
	}'
fi

echo TAP version 13
start plain
start hooked
plain=$(find_sqlite plain)
hooked=$(find_sqlite hooked)
kill -STOP $plain $hooked

# shellcheck disable=SC2016
bpftrace -B line -e '
	profile:ms:3 /pid == $1 || pid == $2/ {
		@stack[pid, ustack(perf)] = count();
		@n[pid] = count();
	}
	interval:s:1 { print(@n); }
	BEGIN { printf("begun\n"); } '"$event" "$plain" "$hooked" >out 2>&1 &
bpftrace=$!
await_line '^begun$' out
point $? 'bpftrace starts, and knows the events'

if [ "$mode" = shadow ]; then
	./shstk run -q ./violate >/dev/null 2>&1
	await_line '^violation: violate stack [0-9a-f]{4,} shadow [0-9a-f]{4,}$' out
	point $? 'a violation: it prints both addresses'
fi

turn "$plain"
insmod "$1"
[ "$mode" = shadow ] || load_mapped "$hooked"
turn "$hooked"
kill -INT $bpftrace
wait $bpftrace
point $? 'bpftrace ends'

# shellcheck disable=SC2046
set -- $(stacks "$plain")
echo "# ustack without the module: $1 of $2 complete, $3 frames on average"
[ "$2" -ge $wanted ] && { [ "$1" -lt "$2" ] || [ "$(uname -m)" = aarch64 ]; }
point $? 'ustack without the module is cut where there are no frame pointers'
# shellcheck disable=SC2046
set -- $(stacks "$hooked")
echo "# ustack with the module: $1 of $2 complete, $3 frames on average"
[ "$2" -ge $wanted ] && [ "$1" = "$2" ]
point $? 'ustack with the module is complete'

kill -KILL $plain $hooked
rmmod shstk_perf
[ "$mode" != shadow ] || rmmod shstk
echo "1..$count"
exit $failed
