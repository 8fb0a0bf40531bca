#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   library.sh [FILE...]
#
# Runs in a guest: a program that has libshstk-bpf (examples/stacks.c) prints exact stacks of a program
# that nobody has seen. The FILEs are arguments so that they are copied into the guest.

. ./cases.sh
export PATH=/usr/bin:/bin

is_exact()
{
	./stacks stacks.bpf.o $target 3 ./shstk >out 2>&1 &&
		grep -q '^_start;\([^;]*;\)*main;outer;middle;innermost$' out
}

echo TAP version 13
# Where no BPF file system can be mounted, stacks says so.
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
./spin 3000 &
target=$!
await is_exact
point $? "a program with the library, and nothing else, has exact stacks"
kill -9 $target
echo "1..$count"
exit $failed
