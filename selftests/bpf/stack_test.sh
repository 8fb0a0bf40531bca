#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests the walk that BPF programs of others are linked with (examples/stacks.bpf.c), and the process
# that serves them tables. It runs with file systems and a network of its own, so that the maps are
# pinned where nobody else sees them.

here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" != inside ]; then
	if ! unshare -mn true 2>/dev/null; then
		echo "1..0 # SKIP no namespaces of its own"
		exit 4
	fi
	exec unshare -mn sh "$0" inside
fi
folder=$(mktemp -d) || exit 1
server= target=
cleanup()
{
	for pid in $server $target; do
		kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
cd "$folder" || exit 1
. "$here/cases.sh"
shstk=$here/shstk

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 4
}

# Begins to serve. Succeeds if the server says so. It has to raise the limit of open files itself, as
# many files may wait for their tables.
serve()
{
	(ulimit -S -n 10; exec "$shstk" rules serve --bpf) >served 2>&1 &
	server=$!
	for try in $(seq 300); do
		grep -q 'serving BPF programs by' served && return 0
		kill -0 $server 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

# Samples the program for a second, or as long as it takes until it ran often enough. Counts in $all
# the stacks, in $whole those that begin at the outermost frame, and in $called those of the innermost
# function that have all callers.
sample()
{
	for try in $(seq 30); do
		timeout 200 "$here/stacks" ./stacks.bpf.o $target 1 >out 2>&1 || return 1
		all=$(grep -c . out)
		[ "$all" -lt 10 ] || break
	done
	at='+0x[0-9a-f]*'
	whole=$(grep -c "^spin$at;\(libc[^;]*;\)*spin$at" out)
	called=$(grep -c "^spin$at;\(libc[^;]*;\)*spin$at;spin$at;spin$at;spin$at$" out)
}

echo TAP version 13
for tool in clang bpftool unshare mount; do
	command -v $tool >/dev/null || skip_all "$tool is not installed"
done
[ -f "$here/shstk-stack.bpf.o" ] || skip_all "the BPF programs are not part of this build"
mount -t bpf bpf /sys/fs/bpf 2>/dev/null || skip_all "no BPF file system can be mounted here"
# An overlay may show other inode numbers than the kernel has, and then its files get no tables.
[ "$(stat -f -c %T "$here/spin")" != overlayfs ] ||
	skip_all "this file system tells other inode numbers than the kernel"

clang -target bpf -O2 -g -Wall -Werror -I"$here" -I"/usr/include/$(uname -m)-linux-gnu" -c \
	-o own.bpf.o "$here/stacks.bpf.c" >out 2>&1 &&
	bpftool gen object stacks.bpf.o own.bpf.o "$here/shstk-stack.bpf.o" >>out 2>&1
point $? "a BPF program is linked with the walk"

"$here/spin" 300 &
target=$!
if ! timeout 200 "$here/stacks" ./stacks.bpf.o $target 1 >out 2>&1; then
	# The verifier says "Permission denied" of programs that it refuses, too.
	grep -q 'Operation not permitted\|Permission denied' out && ! is_refused out &&
		skip_all "BPF is not permitted here"
fi
serve
status=$?
cp served out
point $status "tables are served, by maps that a program made before"
tries=60
until sample && [ "$called" -gt 0 ]; do
	tries=$((tries - 1))
	[ $tries -gt 0 ] || break
done
[ $tries -gt 0 ]
point $? "stacks of a program reach its outermost frame"
unshare -n timeout 200 "$shstk" rules serve --bpf >out 2>&1
[ $? = 1 ] && grep -q 'served already' out
point $? "a second process that serves is refused, also with a network of its own"
kill $server
wait $server 2>/dev/null
sample && [ "$called" -gt 0 ] && [ $((whole * 10)) -ge $((all * 9)) ]
point $? "tables stay when the process ends that served them: stacks are whole at once"
serve && sample && [ "$called" -gt 0 ] && [ $((whole * 10)) -ge $((all * 9)) ]
point $? "the next one that serves goes on with these tables"
status=0
for seed in 1 2 3 4 5 6; do
	"$here/forge" $seed >out 2>&1 &&
		timeout 200 "$here/stacks" ./stacks.bpf.o $target 1 >out 2>&1 &&
		awk -F ";" '{ sub(/^\[truncated\];/, "") } NF > 127 { exit 1 }' out || status=1
done
point $status "tables of nonsense: each walk ends, and has no more entries than there is room for"
echo "1..$count"
exit $failed
