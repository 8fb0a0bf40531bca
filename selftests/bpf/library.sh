#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   library.sh [FILE...]
#
# Runs in a guest: a program that has libshstk-bpf (examples/stacks.c) prints exact stacks of a program
# that nobody has seen. The FILEs are arguments so that they are copied into the guest.

. ./cases.sh
export PATH=/usr/bin:/bin

echo TAP version 13
# Where no BPF file system can be mounted, stacks says so.
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
./spin 3000 &
target=$!
# It runs as long as the tables take on a slow machine: what is not ready when it ends is begun anew.
./stacks stacks.bpf.o $target 3000 ./shstk >long 2>&1 &
stacks=$!
await_line '^_start;([^;]*;)*main;outer;middle;innermost$' long
status=$?
tail -n 40 long >out
point $status "a program with the library, and nothing else, has exact stacks"
kill -9 $target $stacks
echo "1..$count"
exit $failed
