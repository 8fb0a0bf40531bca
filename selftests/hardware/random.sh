#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest with real shadow stacks: programs that call functions at random and take every
# trace from hardware and by software (random_test.cc). The FILEs are arguments so that they are
# copied into the guest.
#
#   random.sh PROGRAMS CAPTURES CONTEXTS FILE...

programs=$1 captures=$2 contexts=$3
cd /t || exit 1
for file in "$@"; do
	[ ! -f "$file" ] || name=$(basename "$file" | sed 's/^[0-9]*-//')
	[ ! -f "$file" ] || [ -f "$name" ] || cp "$file" "$name"
done
. ./cases.sh

echo TAP version 13
seed=1
while [ $seed -le "$programs" ]; do
	t "program $seed" 0 ' 0 differences' ./shstk run -q ./random_test "$captures" $seed "$contexts"
	grep '^# seed' out
	seed=$((seed + 1))
done
echo "1..$count"
