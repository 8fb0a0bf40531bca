#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests glibc 2.43's own support for arm64 shadow stacks with unmodified programs of Debian: what
# the tunable does to a program that is marked, and to one that is not. The script uses only bash's
# builtin commands, because every other command would run in a new process.

count=0
result()
{
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count $2"
	else
		echo "not ok $count $2"
	fi
}

# Succeeds if this process itself has a shadow stack. $(<) reads a file without another program.
on='[[ $(</proc/$$/smaps) == *VmFlags:*" ss "* ]] && exit 0; exit 1'

tunable()
{
	GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=$1 "${@:2}"
}

echo TAP version 13
echo 1..8
bash -c "$on"; [ $? = 1 ]
result $? "bash has no shadow stack by default"
tunable 0 bash -c "$on"; [ $? = 1 ]
result $? "bash has none with aarch64_gcs=0"
tunable 1 bash -c "$on"
result $? "bash runs on a shadow stack with aarch64_gcs=1"
tunable 2 bash -c "$on"
result $? "bash runs on a shadow stack with aarch64_gcs=2"
out=$(tunable 1 bash -c 'f() { [ "$1" = 0 ] && { echo deep; return; }; f $(($1 - 1)); }; f 200')
[ "$out" = deep ]
result $? "bash does its work on a shadow stack"
out=$(tunable 1 sqlite3 -list :memory: 'with recursive c(x) as (select 1 union all select x+1 from c limit 1000) select sum(x) from c')
[ "$out" = 500500 ]
result $? "sqlite3 does its work on a shadow stack"
out=$(tunable 1 busybox true 2>&1); [ $? = 127 ] && [[ $out == *"not GCS compatible"* ]]
result $? "a program not marked for it is refused with aarch64_gcs=1"
tunable 2 busybox true
result $? "a program not marked for it runs with aarch64_gcs=2"
