#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests `shstk run` in an x86 guest with programs that know nothing of shadow stacks, among them
# unmodified ones of Debian. The first argument is the part to run; the others are only there to
# have the files copied into the guest.

cd /t || exit 1
. ./cases.sh

on='shadow stack on, by the start-up object'

echo TAP version 13

case $1 in
programs)
t 'C program: jumps, signals, threads, contexts' 0 '^1\.\.29$' ./shstk run ./unaware_test on
t 'C++ program: exceptions out of callbacks' 0 '^1\.\.6$' ./shstk run ./except_test on
t 'the same, with the status locked' 0 '^1\.\.6$' ./shstk run --lock --strict ./except_test on
t 'coroutines by the calls of Boost.Context' 0 '^1\.\.4$' ./shstk run ./fcontext_test on
if [ -x unaware_musl ]; then
	t 'C program with musl' 0 '^1\.\.21$' ./shstk run ./unaware_musl on
else
	skip 'C program with musl' 'no musl-gcc'
fi

t 'what was done is said in one line' 0 "^shstk run: $on\$" ./shstk run ./violate none
t '--quiet does not say it' 0 '^0$' sh -c './shstk run -q ./violate none 2>&1 | grep -c shstk; exit 0'
t 'exit status is passed on' 7 . ./shstk run ./unaware_test exit 7
t 'no such program' 127 'No such file' ./shstk run ./nosuch
t 'a static program is refused' 125 'statically linked.*not started' ./shstk run ./static_test
t 'with --permissive it is supervised' 0 'shadow stack on, supervised' ./shstk run -p ./static_test
t 'and runs to the end' 0 '^1\.\.26$' ./shstk run -p -o report ./unaware_static on
t 'its jumps were reported' 0 'return in jumps.* has __longjmp_chk.*: went on, shadow stack unwound' cat report
cp violate gains
chown 1000 gains
chmod 4755 gains
t 'a program that gains privileges is refused' 125 'gains privileges.*not started' ./shstk run ./gains none
t 'a static PIE' 0 '^sum 233\.333' ./shstk run -p ./ownjump_static_pie
t 'exit status of a supervised program' 9 . ./shstk run -p ./unaware_static exit 9
;;

violations)
t 'a wrong return is fatal' 139 'return in wrong\+0x.* \(violate\+0x.*\) at .*violate.c:.* goes to escaped\+0x.* the shadow stack has main\+0x.*: not repaired' ./shstk run ./violate
t 'and survived with --permissive' 0 '^survived' ./shstk run --permissive ./violate
t 'and then reported as repaired' 0 'went on, taken as a jump' ./shstk run --permissive ./violate
rm -f report
t 'the report goes to a file' 0 '^survived' ./shstk run -p --report=report ./violate
t 'once per site' 0 '^1$' grep -c violation report
t 'a report that finds no room is missed once' 0 "reports cannot be written: No space left" ./shstk run -p -o /dev/full ./violate
t 'a stack limit that is too large for a shadow stack' 125 'no memory for a shadow stack; .*not started' sh -c 'ulimit -s unlimited; ulimit -v 2000000; ./shstk run ./violate none'
t 'own jump over frames: not repaired by default' 139 'not repaired' ./shstk run ./ownjump_test
t 'own jump over frames: to the end with --permissive' 0 '^sum 233\.333' ./shstk run -p ./ownjump_test
t 'by unwinding the shadow stack' 0 'return in catcher.* goes to outer.* the shadow stack has catcher.*: went on, shadow stack unwound' ./shstk run -p ./ownjump_test
t 'own coroutine switch: not repaired by default' 139 'not repaired' ./shstk run ./fcontext_static_test on
t 'own coroutine switch: to the end with --permissive' 0 '^1\.\.4$' ./shstk run -p ./fcontext_static_test on
t 'and with --lock too' 0 '^1\.\.4$' ./shstk run -p --lock ./fcontext_static_test on
;;

debian)
t 'bash' 0 'f3 4 sub trapped 7$' ./shstk run bash -c "$bash_script"
t 'bash and what it starts: shadow stacks on' 0 'shstk' ./shstk run bash -c 'bash -c "grep ^x86_Thread_features: /proc/\$\$/status; :"'
printf '#!/usr/bin/bash\necho script $1\n' >script
chmod +x script
t 'a script' 0 '^script 7$' ./shstk run ./script 7
t 'said once, also if it executes another program' 0 '^1$' sh -c './shstk run bash -c "exec bash -c :" 2>&1 | grep -c "shadow stack on"'
t 'status of its threads' 0 '^ *[0-9]+  on  .* KiB ' ./shstk run bash -c './shstk status $$; :'
t 'status of the machine' 0 'switching on   works, by arch_prctl' ./shstk status
t 'sqlite3' 0 '^5050$' ./shstk run sqlite3 :memory: "$sqlite_script"
t 'perl' 0 '^100 oops alarm 1,2,3 sub 1$' ./shstk run perl -e "$perl_script"
t 'python3' 0 '^5050 6765 caught 3 out$' ./shstk run python3 -S -c "$python_script"
;;
esac
echo "1..$count"
