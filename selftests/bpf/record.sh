#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   record.sh [FILE...]
#
# Runs in a guest: `shstk record --via=bpf` has whole stacks of a program from the walk in BPF. The FILEs are
# arguments so that they are copied into the guest.

. ./cases.sh
export PATH=/usr/bin:/bin

# Stacks are copied until the program's file has a table.
is_walked()
{
	./shstk record --via=bpf -F 999 -o out.folded -- ./spin 3 >out 2>&1 || return 1
	! grep -q ' 0 of [0-9]* stacks were walked in the kernel' out &&
		grep -q ' of [0-9]* stacks were walked in the kernel' out &&
		grep -q ';main;outer;middle;innermost ' out.folded
}

echo TAP version 13
await is_walked
point $? "stacks are walked in the kernel"
cat out.folded >>out
! grep ';innermost ' out.folded | grep -qv ';main;outer;middle;innermost '
point $? "and have all callers"
echo "1..$count"
exit $failed
