#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   harm.sh ROUNDS [FILE...]
#
# Runs in a guest where shstk_perf.ko is loaded. It does what administrators do to a machine, while
# Debian's perf samples the whole machine by unwind rules and the daemon loads these. File systems
# are unmounted, containers come and go, the C library is replaced under running programs, memory
# gets short. Each action has to work as without the module, and chains have to be complete again
# afterwards. The guest's runner fails the step if the kernel complains. The files only have to be
# there.

rounds=$1
shift
mkdir -p /t/harm && cd /t/harm || exit 1
for file in "$@"; do
	[ ! -f "$file" ] || cp "$file" "$(basename "$file" | sed 's/^[0-9]*-//')"
done
. ./cases.sh
state=/sys/module/shstk_perf/rules

# Starts a program in the background.
start()
{
	"$@" >/dev/null 2>&1 &
	pid=$!
}

stop()
{
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	return 0
}

has_table() # FILE
{
	./shstk rules list | grep -q "^$1 "
}

# Returns whether 30 more chains ended in the outermost frame.
more_whole() # THAN
{
	[ "$(cat $state/whole)" -ge $(($1 + 30)) ]
}

# Tests that the program that was started last has complete chains. The other program is stopped
# meanwhile.
whole()
{
	kill -STOP $steady
	now=$(cat $state/whole)
	await more_whole "$now"
	point $? "$1: chains are whole"
	kill -CONT $steady
}

unmount()
{
	mkdir -p mounted && mount -t tmpfs none mounted && cp target mounted/gone &&
		start mounted/gone forever && await has_table gone && stop && umount mounted
}

unmount_lazily()
{
	mount -t tmpfs none mounted && cp target mounted/gone && start mounted/gone forever &&
		await has_table gone && umount -l mounted && stop
}

containers()
{
	for i in 1 2 3 4 5; do
		unshare -m -p -f sh -c 'mount -t tmpfs none mounted && cp target mounted/inside &&
			mounted/inside share 0.05' || return 1
	done
}

# Replaces the C library as a package upgrade does: another file takes its name.
replace_libc()
{
	libc=$(sed -n 's/.* \(\/.*\/libc\.so\.6\)\( (deleted)\)*$/\1/p' /proc/$steady/maps | head -n 1)
	libc=$(readlink -f "$libc")
	cp "$libc" "$libc.new" && mv "$libc.new" "$libc"
}

# Fills memory so that little is left, but enough for the running programs.
fill_memory()
{
	free=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
	mkdir -p full && mount -t tmpfs -o size=100% none full &&
		dd if=/dev/zero of=full/file bs=1024k count=$((free / 1024 - 96))
}

one_round() # NUMBER
{
	unmount >out 2>&1
	point $? "round $1: a file system is unmounted whose program had a table"
	! has_table gone
	point $? "round $1: the table is gone with it"
	unmount_lazily >out 2>&1
	point $? "round $1: and lazily one whose program runs"
	containers >out 2>&1
	point $? "round $1: containers start and end"
	replace_libc >out 2>&1
	point $? "round $1: the C library is replaced"
	start ./target forever
	whole "round $1: behind that"
	stop
	fill_memory >out 2>&1
	point $? "round $1: memory is short"
	./shstk rules drop --all
	start ./target forever
	whole "round $1: meanwhile, by new tables"
	stop
	umount full
}

echo TAP version 13
./shstk rules serve --cache=/t/harm/cache >serve 2>&1 &
daemon=$!
perf record -q -a -g -e cpu-clock -F 499 -o - >/dev/null 2>perf.err &
sampler=$!
./target forever >/dev/null 2>&1 &
steady=$!
start ./target forever
whole 'at first'
stop
round=0
while [ $round -lt "$rounds" ]; do
	round=$((round + 1))
	one_round $round
done
kill -0 $daemon && kill -0 $sampler
point $? 'the daemon and perf are still there'
kill -9 $steady
kill $daemon $sampler
wait $daemon
point $? 'the daemon ends'
echo "1..$count"
exit $failed
