#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   rules_system.sh without|with GUEST [FILE...]
#
# Runs in a guest with one CPU whose clock counts instructions. Measures what `perf record -a` adds
# to a program's work for each sample, including perf's own part. "without" measures it without
# callchains, with them (-g), and with copies of the stack (--call-graph dwarf), by the kernel
# alone. "with" measures it with callchains by unwind rules. The program is Debian's python3, which
# has no frame pointers. The other files only have to be there.
#
# Prints lines "system: GUEST,HOW,SAMPLES,INSTRUCTIONS"; INSTRUCTIONS is the cost of one sample.

mode=$1 guest=$2
cd /t || exit 1
. ./cases.sh
export PATH=/usr/bin:/bin

# Ten times perf's usual rate of 99. The cost of only 100 samples is lost among the work of the
# timer and the clock.
rate=997

# Prints how many nanoseconds the work took. Each instruction takes two.
work='
import time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def deep(n): return deep(n - 1) if n else fib(17)
deep(2)
begin = time.monotonic_ns()
for i in range(12): deep(20)
print(time.monotonic_ns() - begin)'

maps='
print(*{line.split()[5] for line in open("/proc/self/maps") if "r-x" in line and "/" in line})'

python()
{
	python3 -ISc "$work"
}

# Prints the least of three runs, in instructions.
least()
{
	for _ in 1 2 3; do
		"$@" || return
	done | sort -n | head -n 1 | while read -r ns; do echo $((ns / 2)); done
}

# perf writes to a file, as it usually does.
sampled() # PERF'S OPTIONS
{
	perf record -q -a -e cpu-clock -F $rate -o s.data "$@" -- python3 -ISc "$work" 2>out
}

# Prints how many samples the file has. perf begins before the clock of the work does, and ends
# after it.
count_samples()
{
	perf report -i s.data --stats 2>/dev/null | sed -n 's/ *SAMPLE events: *\([0-9]*\).*/\1/p' |
		head -n 1
}

# NAME OPTION...: prints what the options add for each sample that falls into the time of the work.
measure()
{
	name=$1
	shift
	took=$(least sampled "$@")
	all=$(count_samples)
	samples=$((took * 2 * rate / 1000000000))
	added=$((took - alone))
	[ $samples -gt 0 ] && [ "${all:-0}" -ge $samples ] && [ $added -gt 0 ]
	point $? "$name: $added instructions added to $alone by $samples samples" || return
	echo "system: $guest,$name,$samples,$((added / samples))"
}

echo TAP version 13
alone=$(least python 2>out)
[ "${alone:-0}" -gt 0 ]
point $? "alone: $alone instructions"
if [ "$mode" = without ]; then
	measure none
	measure kernel -g
	measure dwarf --call-graph dwarf
else
	# shellcheck disable=SC2046
	./shstk rules load -q $(python3 -ISc "$maps") >out 2>&1
	point $? 'tables of what python3 maps'
	measure rules -g
fi
echo "1..$count"
