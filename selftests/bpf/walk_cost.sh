#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   walk_cost.sh without|with GUEST [FILE...]
#
# Runs in a guest whose clock counts instructions. Measures what a user stack costs by the walk in BPF,
# by a copy of 8 KiB and by perf's own callchain (without), and by the module's walk (with). The other
# files only have to be there.
#
# Prints lines "walk: GUEST,DEPTH,WAY,INSTRUCTIONS,FRAMES", see walk_cost.c.

mode=$1 guest=$2
cd /t || exit 1
. ./cases.sh

# Prints the field of a way. Each line of the file is "walk: GUEST,DEPTH,WAY,INSTRUCTIONS,FRAMES".
field() # DEPTH WAY NUMBER
{
	grep "^walk: $guest,$1,$2," costs | cut -d, -f"$3"
}

# A stack that is cut is cheap, so all frames have to be there.
has_frames() # WAY
{
	for depth in 0 8 32 112; do
		[ "$(field $depth "$1" 5)" -gt $depth ] || return
	done
}

print_ratios()
{
	for depth in 0 8 32 112; do
		bpf=$(field $depth bpf 4) module=$(field $depth module 4)
		echo "# depth $depth: BPF $bpf, the module $module ($((bpf * 100 / module)) %)"
	done
}

echo TAP version 13
case $mode in
without)
	./walk_cost_fp "$guest" callchain >costs 2>out && ./walk_cost "$guest" >>costs 2>>out
	point $? 'each way is measured'
	cp costs out
	has_frames callchain && has_frames bpf && has_frames bpf-changed
	point $? 'no stack is cut';;
with)
	./shstk rules load -q ./walk_cost >out 2>&1 && ./walk_cost "$guest" module >measured 2>out &&
		cat measured >>costs
	point $? "the module's walk is measured"
	cp costs out
	has_frames module
	point $? 'no stack is cut'
	print_ratios;;
esac
cat costs
echo "1..$count"
exit $failed
