#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests `shstk run` in an arm64 guest whose C library knows GCS; tunables make that library enable
# it. The arguments are only there to have the files copied into the guest.

cd /t || exit 1
. ./cases.sh

marked='shadow stack on, by the C library'
forced='locked; not marked, but switched on all the same'

echo TAP version 13
t 'C program: jumps, signals, threads, contexts' 0 '^1\.\.27$' ./shstk run ./unaware_test on
t 'an unmarked program is forced on' 0 "$forced: .*/unaware_test" ./shstk run ./unaware_test on
t 'but not with --strict' 125 'unaware_test is not marked.*not started' ./shstk run --strict ./unaware_test on
t 'C++ program: exceptions out of callbacks' 0 '^1\.\.5$' ./shstk run ./except_test on
t 'exit status is passed on' 7 . ./shstk run ./unaware_test exit 7
t 'a static program is refused' 125 'statically linked.*not started' ./shstk run ./static_test
t 'a static program that is marked' 0 '^1\.\.26$' ./shstk run ./marked_static on
t 'is switched on by its C library, which nothing confirms' 0 "^shstk run: $marked.*not confirmed" ./shstk run --strict ./marked_static exit 0
cp violate gains
chown 1000 gains
chmod 4755 gains
t 'a program that gains privileges is refused' 125 'gains privileges.*not started' ./shstk run ./gains none
t 'or started without' 0 'gains privileges.*started without' ./shstk run -p ./gains none
t 'nothing is said to be on if there is no place for reports' 125 '^shstk run: /nosuch/report: No such file' ./shstk run -o /nosuch/report ./violate none
t 'a wrong return is fatal, and reported' 139 'return in wrong\+0x.* goes to escaped\+0x.* the shadow stack has .*: not repaired' ./shstk run ./violate
t 'and survived with --permissive' 0 '^survived' ./shstk run --permissive ./violate
t 'own jump over frames: not repaired by default' 139 'not repaired' ./shstk run ./ownjump_test
t 'own jump over frames: to the end with --permissive' 0 '^sum 233\.333' ./shstk run -p ./ownjump_test
t 'by unwinding the shadow stack' 0 'return in catcher.* goes to outer.*: went on, shadow stack unwound' ./shstk run -p ./ownjump_test

t 'bash is marked' 0 'marked GCS' ./shstk check -n bash
t 'bash' 0 'f3 4 sub trapped 7$' ./shstk run bash -c "$bash_script"
t 'bash: said in one line' 0 "^shstk run: $marked\$" ./shstk run bash -c :
t 'bash: and it is so' 0 '^ *[0-9]+  on  ' ./shstk run bash -c './shstk status $$; :'
t 'bash with --lock: locked' 0 '^ *[0-9]+  on  *on ' ./shstk run --lock bash -c './shstk status $$; :'
# The command is not marked, so it is started without these variables.
ask='GLIBC_TUNABLES= LD_PRELOAD= ./shstk status $$; :'
t 'an unmarked object that is preloaded: on' 0 '^ *[0-9]+  on  ' env LD_PRELOAD=./libplain.so ./shstk run bash -c "$ask"
t 'and named' 0 "$forced: .*/libplain.so" env LD_PRELOAD="nosuch.so ./libplain.so" ./shstk run bash -c "$ask"
t 'with --strict not started' 125 'libplain.so is not marked.*not started' env LD_PRELOAD=./libplain.so ./shstk run -s bash -c :
echo /t/libplain.so >/etc/ld.so.preload
t 'likewise in /etc/ld.so.preload' 125 'libplain.so is not marked.*not started' ./shstk run -s bash -c :
rm /etc/ld.so.preload
# Only the C library knows which object's folder $ORIGIN is.
t 'one that was not seen: nothing is said to be on' 125 'no shadow stack: the C library left it off' env LD_PRELOAD='$ORIGIN/../../t/libplain.so' ./shstk run bash -c :
t 'with --permissive it goes on' 0 '^went on' env LD_PRELOAD='$ORIGIN/../../t/libplain.so' ./shstk run -p bash -c 'echo went on'
for object in agent heap backtrace start; do
	t "libshstk-$object.so is marked" 0 '^ *[0-9]+  on  ' env LD_PRELOAD=./libshstk-$object.so ./shstk run -s bash -c "$ask"
done
t 'recorded, and on' 0 '^ *[0-9]+  on  ' ./shstk record -q -o /dev/null --format=folded -- ./shstk run -s bash -c "$ask"
t 'sqlite3' 0 '^5050$' ./shstk run sqlite3 :memory: "$sqlite_script"
t 'perl' 0 '^100 oops alarm 1,2,3 sub 1$' ./shstk run perl -e "$perl_script"
t 'python3 is not marked' 1 'no   .*python3' ./shstk check -n python3
t 'python3' 0 '^5050 6765 caught 3 out$' ./shstk run python3 -S -c "$python_script"
t 'status of the machine' 0 'next  *start programs with: shstk run' ./shstk status
echo "1..$count"
