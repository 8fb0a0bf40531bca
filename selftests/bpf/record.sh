#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   record.sh [FILE...]
#
# Runs in a guest: `shstk record --via=bpf` has whole stacks of a program from the walk in BPF. The FILEs are
# arguments so that they are copied into the guest.

. ./cases.sh
export PATH=/usr/bin:/bin

# The walk is of 64-bit code: of 32-bit code frame pointers are followed. At the first and the last instruction of a
# function they lead past its caller. What they lead to may be lost, where a ring is full.
is_by_records()
{
	./shstk record --via=bpf -F 999 -o out.folded -- ./spin32 >out 2>&1 &&
		grep -q ';_start;outer;middle;innermost ' out.folded &&
		! grep ';innermost ' out.folded | grep -qv -e ';_start;outer;\(middle;\)\?innermost ' -e '\[truncated\];innermost '
}

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
if [ -f ./spin32 ] && ./spin32 2>out; then
	is_by_records
	point $? "32-bit code: stacks are those that frame pointers lead to"
fi
echo "1..$count"
exit $failed
