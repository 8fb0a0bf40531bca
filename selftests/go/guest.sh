#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a guest: takes stacks of a Go program, running, from a core file, and recorded.
# What `shstk` says goes to guest_test as text, to be judged there.
# $1: shstk, $2: the program, $3: one with labels, $4: how often a running one is looked at,
# $5: how many core files are, $6: seconds that they are recorded at least; the others are only
# there to have the files copied in

mkdir -p /t/go && cd /t/go || exit 1
. /t/cases.sh
shstk=$1 program=$2 named=$3 rounds=$4 cores=$5 seconds=$6
ulimit -c unlimited
pattern=$(cat /proc/sys/kernel/core_pattern)

# send NAME FILE
send()
{
	gzip <"$2" | base64 | sed "s/^/# $1 /"
}

# taken NAME COMMAND...: sends what the command prints
taken()
{
	what=$1
	shift
	"$@" >"$what" 2>&1
	status=$?
	send "$what" "$what"
	return $status
}

# begin COMMAND...: starts the program; descriptor 3 is its standard input
begin()
{
	rm -f in ready
	mkfifo in
	"$@" <in >ready 2>&1 &
	pid=$!
	exec 3<>in
	await_line '^ready [0-9]+$' ready
}

# end WORD: writes the word to the program, and waits until it ends
end()
{
	printf %s "$1" >&3
	exec 3>&-
	wait $pid
}

# often NAME COMMAND...: takes the stacks as often as asked for
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

# dump_core N: makes core file N, and takes its stacks
dump_core()
{
	rm -f dump
	begin "$program"
	end core
	[ -s dump ] && taken "core.$1" "$shstk" trace --json --core dump
}

echo dump >/proc/sys/kernel/core_pattern
status=0 n=0
while [ $n -lt "$cores" ] && [ $status = 0 ]; do
	n=$((n + 1))
	dump_core $n
	status=$?
done
point $status 'trace --core: takes stacks'
echo "$pattern" >/proc/sys/kernel/core_pattern
taken core-goroutines.1 "$shstk" trace --json --goroutines --core dump
point $? 'trace --goroutines --core'
rm -f dump

# Without the BPF program, no copy holds the stack of a goroutine that is getting a larger stack:
# that job is left out.
[ -e "${shstk%/*}/shstk-goroutine.bpf.o" ] && left_out= || left_out=grow

# recorded FILE SAMPLES SECONDS PROGRAM [WITHOUT]: records the program while it works
recorded()
{
	file=$1 wanted=$2 long=$3
	shift 3
	begin "$@"
	enough "$wanted" "$long" "$shstk" record --freq=499 -p $pid -o "$file" >said
	status=$?
	end stop
	return $status
}

# shellcheck disable=SC2086
recorded out.folded 300 "$seconds" "$program" $left_out
point $? 'record'
send record.1 out.folded
send said.1 said

recorded out.pb.gz 400 $((3 * seconds)) "$named"
point $? 'record: labels'
send labels.1 out.pb.gz
echo "1..$count"
exit $failed
