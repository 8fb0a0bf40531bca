#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a riscv guest: a program with shadow stacks on leaves a core file, which goes to
# riscv_core as text. Small stacks keep the core file small.

cd /t || exit 1
ulimit -c unlimited -s 256
echo dump >/proc/sys/kernel/core_pattern

echo TAP version 13
"$1" crash
status=$?
if [ $status = 4 ]; then
	echo '1..0 # SKIP this kernel has no shadow stacks'
	exit 4
fi
name='a program with shadow stacks on leaves a core file'
if [ $status = 139 ] && [ -s dump ]; then
	gzip -9 <dump | base64 | sed 's/^/# core /'
	echo "ok 1 $name"
else
	echo "not ok 1 $name: status $status"
fi
echo 1..1
