#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in an arm64 guest: perf record, whose stacks the command unwinds, through Debian's C library
# with signed return addresses, and through the vDSO, which has no unwind information. The arguments
# are only there so that the files are copied into the guest.

cd /t || exit 1
. ./cases.sh

echo TAP version 13
# All registers except the SVE register, which software events cannot sample.
regs=x$(seq -s ,x 0 29),lr,sp,pc
t 'perf records' 0 'Captured and wrote' perf record -e cpu-clock:u -F 1000 --user-regs="$regs" \
	--call-graph dwarf,4096 -o perf.data -- ./burn 40
t 'its samples are unwound' 0 '[0-9][0-9]+ samples of cpu-clock' ./shstk unwind -o a.folded perf.data
t 'stacks in two of its functions' 0 ';work;(dig;)+spin ' grep -E ';work;' a.folded

# No stack that goes through work() may lack its outer frames, except in the vDSO, where the next
# frame is a guess.
lost=$(grep -E '(;|^)work;' a.folded | grep -v __kernel_ | grep -cvE '^(burn|exe|executed);(_start;.*;main|.*;thread_main);(in_child;)?work;')
if [ "$lost" = 0 ]; then
	say ok 'all of them from the start of their threads'
else
	say 'not ok' 'all of them from the start of their threads'
	grep -E '(;|^)work;' a.folded | sed 's/^/# /'
fi
echo "1..$count"
