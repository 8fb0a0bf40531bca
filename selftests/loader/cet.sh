#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests `shstk run` in an x86 guest whose C library was built for CET. For marked programs that
# library enables shadow stacks, for others the start-up object does. The arguments are only there
# to have the files copied into the guest.

cd /t || exit 1
. ./cases.sh

libc='^shstk run: shadow stack on, by the C library'
object='^shstk run: shadow stack on, by the start-up object'
main_on='^ *[0-9]+  on  '

echo TAP version 13
t 'status: the C library can' 0 'C library  *glibc .*switches shadow stacks on by itself if told to' ./shstk status
t 'check: marked, with the C library' 0 'marked SHSTK, with all 2 ' ./shstk check -n ./stand_marked
t 'check: the C library does not block bash, others do' 1 'no   /usr/bin/bash' ./shstk check -n bash
t 'a marked program: by tunables' 0 "$libc\$" ./shstk run ./violate_marked none
t 'locked' 0 "$libc, locked\$" ./shstk run --lock ./violate_marked none
t 'also with --strict' 0 "$libc, locked\$" ./shstk run --strict ./violate_marked none
t 'what GLIBC_TUNABLES had is kept' 0 '^hwcaps=-AVX2,SHSTK:' env GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2 \
	./shstk run bash -c 'echo "${GLIBC_TUNABLES#*:glibc.cpu.}"'
t 'jumps, signals, threads, contexts' 0 '^1\.\.26$' ./shstk run ./unaware_marked on
t 'C++ exceptions, with libraries that are not marked' 0 "$libc; not marked, but switched on all the same: .*/libstdc" ./shstk run ./except_marked on
t 'and to the end' 0 '^1\.\.6$' ./shstk run --lock ./except_marked on
t 'not with --strict' 125 'libstdc.* is not marked.*not started' ./shstk run --strict ./except_marked on

t 'a wrong return is fatal, and reported' 139 'return in wrong\+0x.* goes to escaped\+0x.* the shadow stack has main\+0x.*: not repaired' ./shstk run ./violate_marked
t 'and survived with --permissive' 0 '^survived' ./shstk run -p ./violate_marked
t 'own jump over frames: to the end' 0 '^sum 233\.333' ./shstk run -p ./ownjump_marked
t 'by unwinding the shadow stack' 0 'return in catcher.* goes to outer.*: went on, shadow stack unwound' ./shstk run -p ./ownjump_marked
t 'locked: by jumps' 0 'went on, taken as a jump' ./shstk run -p --lock ./ownjump_marked

t 'a program that is not marked: by the start-up object' 0 "$object\$" ./shstk run ./unaware_cet exit 0
t 'jumps, signals, threads, contexts' 0 '^1\.\.26$' ./shstk run ./unaware_cet on
t 'not with --strict' 125 'unaware_cet is not marked.*not started' ./shstk run --strict ./unaware_cet on
t 'bash' 0 'f3 4 sub trapped 7$' ./shstk run bash -c "$bash_script"
t 'and it is on there' 0 "$main_on" ./shstk run bash -c './shstk status $$; :'
t 'and locked' 0 '^ *[0-9]+  on  *on ' ./shstk run --lock bash -c './shstk status $$; :'
t 'in marked programs it starts, too' 0 '^ok 1 shadow stack is on' ./shstk run bash -c './unaware_marked on'
t 'sqlite3' 0 '^5050$' ./shstk run sqlite3 :memory: "$sqlite_script"
t 'perl' 0 '^100 oops alarm 1,2,3 sub 1$' ./shstk run perl -e "$perl_script"
t 'python3' 0 '^5050 6765 caught 3 out$' ./shstk run python3 -S -c "$python_script"
if [ -x unaware_musl ]; then
	t 'musl is no matter of this' 0 '^1\.\.21$' ./shstk run ./unaware_musl on
	t 'nor when a program of glibc starts one' 0 '^1\.\.20$' ./shstk run bash -c ./unaware_musl
else
	skip 'musl is no matter of this' 'no musl-gcc'
fi

./shstk run -q ./stand_marked wait >ready 2>&1 &
await_line '^ready [0-9]+$' ready || sed 's/^/# /' ready
pid=$(sed -n 's/^ready //p' ready)
t 'on in all threads' 0 "$main_on" ./shstk status "$pid"
[ "$(grep -cE "$main_on" out)" = 4 ]
point $? 'of four'
t 'traces are from the hardware' 0 ' by its shadow stack:$' ./shstk trace -p "$pid" --compare
[ "$(grep -c 'by its shadow stack:$' out)" = 4 ] &&
	[ "$(grep -c 'compared: shadow stack and unwinding agree' out)" = 4 ]
point $? 'in all threads, the same as by unwinding'
kill "$pid"
wait
echo "1..$count"
