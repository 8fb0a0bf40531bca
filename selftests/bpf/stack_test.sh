#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests the walk that BPF programs of others are linked with (examples/stacks.bpf.c), with the library
# that gives them tables (examples/stacks.c), and the process that serves them. It runs with file
# systems and a network of its own, so that the maps are pinned where nobody else sees them.

here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" != inside ]; then
	if ! unshare -mn true 2>/dev/null; then
		echo "1..0 # SKIP no namespaces of its own"
		exit 4
	fi
	exec unshare -mn sh "$0" inside
fi
folder=$(mktemp -d) || exit 1
server= target= other= long=
cleanup()
{
	for pid in $server $target $other $long; do
		kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
cd "$folder" || exit 1
. "$here/cases.sh"
shstk=$here/shstk
command=$shstk # of the library

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 4
}

# Begins to serve. Succeeds if the server says so. It has to raise the limit of open files itself, as
# many files may wait for their tables.
serve()
{
	# The process that the library started has ended when its lock is free.
	await flock -n /sys/fs/bpf true
	(ulimit -S -n 10; exec "$shstk" rules serve --bpf) >served 2>&1 &
	server=$!
	for try in $(seq 3000); do
		grep -q 'serving BPF programs by' served && return 0
		kill -0 $server 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

# The program that has the library, for so many seconds.
stacks()
{
	timeout 200 "$here/stacks" ./stacks.bpf.o "$1" "$2" "$command"
}

# Samples the program for a second, or as long as it takes until it ran often enough. Counts in $all
# the stacks, in $whole those that begin at the outermost frame, and in $called those of the innermost
# function that have all callers.
sample()
{
	for try in $(seq 30); do
		stacks $target 1 >out 2>&1 || return 1
		all=$(grep -c . out)
		[ "$all" -lt 10 ] || break
	done
	whole=$(grep -c "^_start;" out)
	called=$(grep -c "^_start;\([^;]*;\)*main;outer;middle;innermost$" out)
}

# Samples until stacks are exact.
sample_exact()
{
	tries=200
	until sample && [ "$called" -gt 0 ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
	done
}

# Begins a program that nobody has seen: a copy of its own.
spin()
{
	cp "$here/spin" "./$1"
	"./$1" 3000 &
	target=$!
}

# Makes NAME.bpf.o: a program with the walk.
link() # NAME
{
	clang -target bpf -O2 -g -Wall -Werror -I"$here" -I"/usr/include/$(uname -m)-linux-gnu" -c \
		-o own.bpf.o "$here/$1.bpf.c" >out 2>&1 &&
		bpftool gen object "$1.bpf.o" own.bpf.o "$here/shstk-stack.bpf.o" >>out 2>&1
}

# Returns whether shstk_walk() returns this. With VERSION, that is first put into the maps.
returns() # NUMBER [VERSION]
{
	"$here/returned" ./returned.bpf.o ${2:+"$2"} >out 2>&1 && [ "$(tail -n 1 out)" = "$1" ]
}

echo TAP version 13
for tool in clang bpftool unshare mount flock; do
	command -v $tool >/dev/null || skip_all "$tool is not installed"
done
[ -f "$here/shstk-stack.bpf.o" ] || skip_all "the BPF programs are not part of this build"
mount -t bpf bpf /sys/fs/bpf 2>/dev/null || skip_all "no BPF file system can be mounted here"
# An overlay may show other inode numbers than the kernel has, and then its files get no tables.
[ "$(stat -f -c %T "$here/spin")" != overlayfs ] ||
	skip_all "this file system tells other inode numbers than the kernel"

link stacks && link returned
point $? "BPF programs are linked with the walk"

"$here/spin" 3000 &
target=$!
if ! stacks $target 1 >out 2>&1; then
	# The verifier says "Permission denied" of programs that it refuses, too.
	grep -q 'not permitted\|Permission denied' out && ! is_refused out &&
		skip_all "BPF is not permitted here"
fi
sample_exact
point $? "a program with the library, and nothing else, has exact stacks"
first=$target
spin one
other=$target
"$here/stacks" ./stacks.bpf.o $other 3000 "$shstk" >long 2>&1 &
long=$!
await_line "main;outer;middle;innermost$" long
cp long out
point $? "another one has them of a program that nobody has seen"
spin two
sample_exact
point $? "and two at once have them"
kill -9 $long
wait $long 2>/dev/null
kill $target $other
spin three
other=$target
sample_exact
point $? "and one goes on when the other is killed"
kill $target
target=$first other= long=
serve
status=$?
cp served out
point $status "tables are served, by maps that a program made before"
sample_exact
point $? "stacks of a program reach its outermost frame"
unshare -n timeout 200 "$shstk" rules serve --bpf >out 2>&1
[ $? = 1 ] && grep -q 'served already' out
point $? "a second process that serves is refused, also with a network of its own"
kill $server
wait $server 2>/dev/null
await flock -n /sys/fs/bpf true
# Says that tables are made, makes none, and ends when the library wants.
printf '#!/bin/sh\nprintf READY=1 >&3\nread -r end <&3\n' >none
chmod +x none
command=./none
sample && [ "$called" -gt 0 ] && [ $((whole * 10)) -ge $((all * 9)) ]
point $? "tables stay when the process ends that served them: stacks are whole at once"
command=$shstk
serve && sample && [ "$called" -gt 0 ] && [ $((whole * 10)) -ge $((all * 9)) ]
point $? "the next one that serves goes on with these tables"
status=0
for seed in 1 2 3 4 5 6; do
	"$here/forge" $seed >out 2>&1 &&
		stacks $target 1 >out 2>&1 &&
		awk -F ";" '{ sub(/^\[truncated\];/, "") } NF > 127 { exit 1 }' out || status=1
done
point $status "tables of nonsense: each walk ends, and has no more entries than there is room for"
kill $server
wait $server 2>/dev/null
server=
await flock -n /sys/fs/bpf true
returns -71 1
point $? "maps of another version: shstk_walk() returns -EPROTO"
timeout 200 "$shstk" rules serve --bpf >out 2>&1
[ $? = 1 ] && grep -q 'of another version' out && ! stacks $target 1 >out 2>&1 &&
	grep -q 'of another version' out
point $? "and nobody serves them: the command and the library say why"
returns -2 0
point $? "maps that nobody has served: it returns -ENOENT"
serve && "$here/returned" ./returned.bpf.o >out 2>&1 && [ "$(cat out)" -gt 0 ]
point $? "they are served, and it returns the number of entries"
echo "1..$count"
exit $failed
