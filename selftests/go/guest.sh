#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest: takes stacks of a Go program, running, from a core file, and recorded.
# What `shstk` says goes to guest_test as text, to be judged there.
# $1: shstk, $2: the program, $3: how often a running one is looked at, $4: seconds that it
# is recorded; the others are only there to have the files copied in

mkdir -p /t/go && cd /t/go || exit 1
. /t/cases.sh
shstk=$1 program=$2 rounds=$3 seconds=$4
ulimit -c unlimited
pattern=$(cat /proc/sys/kernel/core_pattern)

# send NAME FILE
send()
{
	gzip <"$2" | base64 | sed "s/^/# $1 /"
}

# taken NAME COMMAND...: sends what it prints
taken()
{
	what=$1
	shift
	"$@" >"$what" 2>&1
	status=$?
	send "$what" "$what"
	return $status
}

# begin COMMAND...: start the program; what is written to 3 goes to it
begin()
{
	rm -f in ready
	mkfifo in
	"$@" <in >ready 2>&1 &
	pid=$!
	exec 3<>in
	await_line '^ready [0-9]+$' ready
}

# end WORD: say it to the program, and wait until that ends
end()
{
	printf %s "$1" >&3
	exec 3>&-
	wait $pid
}

# often NAME COMMAND...: as often as asked for
often()
{
	each=$1 n=0
	shift
	while [ $n -lt "$rounds" ]; do
		n=$((n + 1))
		taken "$each.$n" "$@" || return 1
	done
}

echo TAP version 13
begin "$program"
often running "$shstk" trace --json -p $pid
point $? 'trace -p: takes stacks'
taken goroutines.1 "$shstk" trace --json --goroutines -p $pid
point $? 'trace --goroutines -p'
end stacks
send stacks.1 ready

echo dump >/proc/sys/kernel/core_pattern
begin "$program"
end core
[ -s dump ]
point $? 'leaves a core file'
echo "$pattern" >/proc/sys/kernel/core_pattern
taken core.1 "$shstk" trace --json --core dump
point $? 'trace --core: takes stacks'
taken core-goroutines.1 "$shstk" trace --json --goroutines --core dump
point $? 'trace --goroutines --core'
rm -f dump

# A goroutine that gets a larger stack is in no copy: that job is left out.
begin "$shstk" record -q --freq=499 -o out.folded -- "$program" grow
sleep "$seconds"
end stop
point $? 'record'
send record.1 out.folded
send said.1 ready
echo "1..$count"
exit $failed
