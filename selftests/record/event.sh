#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest in which time passes by instructions (--icount): tests `shstk record -e` with a
# hardware event. The arguments are only there so that the files are copied into the guest.

cd /t || exit 1
. ./cases.sh

echo TAP version 13
t 'instructions: counted, and said what they are' 0 ' [0-9]{6,} instructions, sampled by perf events' \
	./shstk record --via=perf -F 499 -e instructions -o out.folded -- ./target share 0.5
# Where the samples were is not tested: QEMU interrupts late.
t 'half a second of them, of 2 nanoseconds each' 0 'yes' awk '
	{ all += $NF }
	END { print(all > 230e6 && all < 400e6 ? "yes" : "no", all) }' out.folded
t 'an event that it has not: one line' 125 "^shstk record: perf events: no event 'cache-misses' on this machine$" \
	./shstk record --via=perf -e cache-misses -o out.folded -- ./target exit 0
echo "1..$count"
