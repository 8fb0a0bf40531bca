#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests examples/: each file is built by the command in its own comment, with what `make install`
# installs, and does what the comment says. Prints KTAP.

set -u
top=$(mktemp -d "$(realpath "$(dirname "$0")")/examples.XXXXXX")
trap 'rm -rf "$top"' EXIT
build=$(realpath --relative-to=. "$(dirname "$0")/../..")
number=0
failed=0

# result STATUS NAME: prints the result of a test, and the log if the test failed.
result() {
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number $2"
	else
		sed 's/^/# /' "$top/log"
		echo "not ok $number $2"
		failed=1
	fi
}

echo "KTAP version 1"
echo "1..10"

env -u MAKEFLAGS -u MAKELEVEL make -s install B="$build" DESTDIR="$top" PREFIX=/usr \
	>"$top/log" 2>&1 || { sed 's/^/# /' "$top/log"; echo "Bail out! make install fails"; exit 1; }
cp examples/*.c "$top"
cd "$top" || exit 1
export PKG_CONFIG_PATH="$top/usr/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$top"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export LD_LIBRARY_PATH="$top/usr/lib"
ulimit -c 0

# Prints the command in the comment of NAME.c: the line that begins with cc, and its further lines.
command_of() {
	sed -n '/^ \*   cc .*[^\\]$/{p;q}; /^ \*   cc /,/[^\\]$/p' "$1.c" | sed 's/^ \*//'
}

# compile NAME: runs that command; it must print no warning.
compile() {
	said=$(command_of "$1")
	case $said in
		*pkg-config*) ;;
		*) echo "$1.c says no command with pkg-config: $said"; return 1;;
	esac
	eval "cc() { gcc -Wall -Wextra -Werror \"\$@\"; }; $said"
}

for name in profiler crash allocations loader; do
	compile $name >log 2>&1
	result $? "examples/$name.c builds as its comment says"
done

# All of the 20 or more samples must begin at the outermost frame, and nearly all be in one
# function.
(./profiler >out && cat out && [ "$(wc -l <out)" -ge 20 ] && ! grep -v '^_start;.* 1$' out &&
	[ "$(grep -c ';main;work;divide 1$' out)" -ge 10 ]) >log 2>&1
result $? "the profiler names the functions of whole stacks"

{ ./crash; } >log 2>&1
status=$?
echo "status $status" >>log
[ $status = 139 ] && grep -q '^#0 careless ' log && grep -q '^#1 caller ' log &&
	grep -q '^#2 main ' log && grep -q '^#[0-9]* _start ' log
result $? "the crash handler names the stack, and the program ends by its signal"

# shellcheck disable=SC2046
{ ./crash $(seq 101); } >log 2>&1
status=$?
echo "status $status" >>log
[ $status = 104 ] && [ "$(wc -l <log)" = 1 ]
result $? "the crash handler is silent where nothing crashes"

cat >keep.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *keep(void)
{
	return malloc(1000000);
}

int main(void)
{
	for (int i = 0; i < 10; i++)
		if (!keep())
			return 1;
	close(STDERR_FILENO);
	return 0;
}
EOF
(gcc -O0 -fno-builtin -o keep keep.c && LD_PRELOAD=./allocations.so ./keep) >log 2>&1 &&
	[ "$(head -n 3 log | tr -s ' \n' ' ')" = '10000000 bytes in 10 calls: keep main ' ]
result $? "the allocator hook counts what a place allocates, and names it"

cat >dynamic.c <<'EOF'
int main(int argc, char **argv)
{
	return argc == 2 && argv[1][0] == 'w' ? 42 : 1;
}
EOF
gcc -o dynamic dynamic.c
good=0
for file in dynamic dynamic.c none; do
	./loader ./$file >log.$file 2>&1
	[ $? = 126 ] && grep -q "^loader: \./$file: " log.$file || good=1
done
cat log.* >log
result $good "the loader refuses what it can't load, and says why"

# Whether this machine has shadow stacks is read from /proc/cpuinfo, not asked of the library.
want=125
grep -qw -e user_shstk -e gcs /proc/cpuinfo && want=42
gcc -static -o static dynamic.c
./loader ./static word >log 2>&1
status=$?
echo "status $status, not $want" >>log
[ $status = $want ] && { [ $want = 42 ] || grep -q '^loader: no shadow stacks on this machine' log; }
result $? "the loader starts a static program with a shadow stack, or says that there are none"

exit $failed
