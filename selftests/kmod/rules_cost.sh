#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   rules_cost.sh without|with GUEST [FILE...]
#
# Runs in a guest whose clock counts instructions. It compares what a callchain costs by the
# kernel's own walk, in a program with frame pointers, and by unwind rules, in a program without.
# The other files only have to be there.
#
# Prints lines "cost: GUEST,DEPTH,ORIGINAL,RULES".

mode=$1 guest=$2
cd /t || exit 1
. ./cases.sh

# The most instructions allowed, by depth. The kernel's walk, with frame pointers, took 2799, 3927
# and 7687 in a program that is linked with the C library, where the walk ends by a page fault; on
# arm64 it took 2673, 4137 and 9017. The number of instructions is the same on every machine.
if [ "$(uname -m)" = x86_64 ]; then
	bar() { case $1 in 8) echo 2799;; 32) echo 3927;; 112) echo 8000;; esac; }
else
	bar() { case $1 in 8) echo 2673;; 32) echo 4137;; 112) echo 8000;; esac; }
fi
# The most instructions allowed if nothing is remembered, because the table was loaded again.
cold_bar() { case $1 in 8) echo 5200;; 32) echo 6400;; 112) echo 10400;; esac; }

# Prints a field. $1 is a file of lines "NAME,DEPTH,INSTRUCTIONS,ENTRIES", $2 the depth, $3 the
# number of the field.
field() { sed -n "/^[a-z]*,$2,/p" "$1" | cut -d, -f"$3"; }

# Compares the costs. Chains that stop early are cheap, so all frames have to be there.
compare() # DEPTH
{
	original=$(field original.csv "$1" 3) rules=$(field rules.csv "$1" 3)
	entries=$(field rules.csv "$1" 4)
	echo "cost: $guest,$1,$original,$rules"
	[ -n "$original" ] && [ "$entries" -gt "$1" ] && [ "$rules" -le "$(bar "$1")" ]
	point $? "depth $1: $rules instructions by rules, $original by the kernel's own walk"
}

compare_cold() # DEPTH
{
	cold=$(field cold.csv "$1" 3) entries=$(field cold.csv "$1" 4)
	[ -n "$cold" ] && [ "$entries" -gt "$1" ] && [ "$cold" -le "$(cold_bar "$1")" ]
	point $? "depth $1, nothing remembered: $cold instructions"
}

load='./shstk rules load -q ./rules_cost'

echo TAP version 13
if [ "$mode" = without ]; then
	./rules_cost_fp original >original.csv 2>out
	point $? "the kernel's own walk"
else
	$load >out 2>&1 && ./rules_cost rules >rules.csv 2>out
	point $? 'by unwind rules'
	./rules_cost cold "$load" >cold.csv 2>out
	point $? 'the same, with nothing remembered'
	for depth in 8 32 112; do
		compare $depth
		compare_cold $depth
	done
fi
echo "1..$count"
