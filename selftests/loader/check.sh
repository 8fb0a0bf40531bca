#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests shstk check and shstk status on this machine: what ld.so loads, and what blocks. The objects
# are made here, so that it is known which are marked.

top=$PWD
shstk=$top/build/shstk
dir=$(mktemp -d "$top/build/loader-check.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset LD_LIBRARY_PATH
. "$top/selftests/loader/cases.sh"

cc()
{
	${CC:-gcc} -w "$@" || { echo "Bail out! cannot compile"; exit 1; }
}

# Objects without libc: all of them can be marked here.
mkdir lib sub other
echo 'int b(void) { return 1; }' >b.c
echo 'int b(void); int a(void) { return b(); }' >a.c
echo 'int a(void); void _start(void) { a(); }' >p.c
mark='-nostdlib -fcf-protection -Wl,-z,shstk'
plain='-nostdlib -fcf-protection=none'
cc $mark -shared -fPIC -o lib/libb.so b.c
cc $mark -shared -fPIC -o lib/liba.so a.c -Llib -lb -Wl,-rpath,'$ORIGIN'
cc $plain -shared -fPIC -o other/libb.so b.c
cc $mark -o all p.c -Llib -la -Wl,-rpath,'$ORIGIN/lib'
cc $plain -o unmarked p.c -Llib -la -Wl,-rpath,'$ORIGIN/lib'
cc $plain -shared -fPIC -o sub/libb.so b.c
cc $mark -shared -fPIC -o sub/liba.so a.c -Lsub -lb
cc $mark -o runpath p.c -Lsub -la -Wl,-rpath-link,sub -Wl,--enable-new-dtags,-rpath,'${ORIGIN}/sub'
cc $mark -o rpath p.c -Lsub -la -Wl,-rpath-link,sub -Wl,--disable-new-dtags,-rpath,'${ORIGIN}/sub'
cc $mark -static -o static b.c p.c a.c
echo '#!/bin/bash -e' >script
head -c 3000 all >cut
head -c 64 all >head
printf '#!%s/loop\n' "$dir" >loop
head -c 4096 /dev/urandom >noise
chmod +x script loop cut head noise

echo TAP version 13
t 'all but ld.so are marked' 1 'blocked: 1 of 4' "$shstk" check -n -a ./all
t 'and each is listed' 1 'yes  .*/lib/liba.so' "$shstk" check -n -a ./all
t 'static and marked' 0 'marked SHSTK, with all 0' "$shstk" check -n ./static
t 'the unmarked program blocks' 1 "no   .*/unmarked " "$shstk" check -n ./unmarked
t 'DT_RUNPATH does not reach the libraries of libraries' 1 'not found: libb.so \(needed by .*/sub/liba.so' "$shstk" check -n ./runpath
t 'DT_RPATH does' 1 'no   .*/sub/libb.so' "$shstk" check -n ./rpath
t 'LD_LIBRARY_PATH comes before DT_RUNPATH' 1 'no   .*/other/libb.so' env LD_LIBRARY_PATH=other "$shstk" check -n ./all
t 'but after DT_RPATH' 1 'no   .*/sub/libb.so' env LD_LIBRARY_PATH=other "$shstk" check -n ./rpath
t 'a script stands for its interpreter' 1 'script of .*/bash' "$shstk" check -n ./script
printf '#!/usr/bin/env -S A=1 bash -e\n' >envscript
chmod +x envscript
t 'and for what env finds' 1 'envscript: script of .*/bash:' "$shstk" check -n ./envscript
t 'found by PATH' 1 'all: blocked' env PATH="$dir:$PATH" "$shstk" check -n all
t 'the package of the C library' 1 'libc\.so\.6 .*libc6' "$shstk" check bash
mkdir dpkg
cat >dpkg/dpkg-query <<END
#!/bin/sh
printf 'diversion by other from: $dir/unmarked\\n: $dir/unmarked\\nevil\\033[31m, other: $dir/unmarked\\nlate: $dir/unmarked\\n'
END
chmod +x dpkg/dpkg-query
t 'the first package that dpkg says, without control characters' 1 'no   .*/unmarked +evil\?\[31m$' \
	env PATH="$dir/dpkg:$PATH" "$shstk" check ./unmarked
t 'a running process' 1 'no   .*/bash' "$shstk" check -n -p $$
t 'no such program' 1 '^shstk check: \./nosuch: No such file' "$shstk" check ./nosuch
t 'no such process' 1 'process 2147483647: No such process' "$shstk" check -p 2147483647
t 'not an ELF file' 1 'noise: not an ELF program' "$shstk" check ./noise
t 'a cut file' 1 'shstk check: ./head: not an ELF' "$shstk" check ./head
t 'a script that names itself' 1 'loop: Too many levels' "$shstk" check ./loop
t 'a folder' 1 'lib: Is a directory' "$shstk" check ./lib
t 'nothing to check' 2 'no program given' "$shstk" check
t 'bad process ID' 2 'not a process ID' "$shstk" check -p 12x

"$shstk" check -j ./all ./unmarked bash ./nosuch >json 2>out
python3 - "$dir" >>out 2>&1 <<'P'
import json, sys
d = sys.argv[1]
v = json.load(open('json'))
assert len(v) == 3, len(v)
assert v[0]['blocker'].endswith('ld-linux-x86-64.so.2'), v[0]
assert [o['marked'] for o in v[0]['objects']] == [True, True, True, False], v[0]
assert v[0]['objects'][2]['needed_by'] == d + '/lib/liba.so', v[0]
assert v[1]['blocker'] == d + '/unmarked', v[1]
assert any(o['package'] for o in v[2]['objects']), v[2]
P
point $? 'JSON'

# The libraries are the same files that ld.so itself finds.
bad=0 n=0
for program in bash perl gcc git gdb ssh apt python3.11 curl; do
	file=$(command -v $program) || continue
	file=$(readlink -f "$file")
	[ "$(head -c 4 "$file" | tr -d '\177')" = ELF ] || continue
	/lib64/ld-linux-x86-64.so.2 --list "$file" | awk '/=> \//{print $3}' |
		xargs -r readlink -f | grep -v /ld-linux | sort -u >want
	"$shstk" check -n -a "$file" | awk '/^  (no|yes) /{print $2}' |
		grep -vxF -e "$file" | grep -v /ld-linux | sort -u >got
	n=$((n + 1))
	diff want got >>out || bad=1
done
[ $bad = 0 ] && [ $n -ge 3 ]
point $? 'the libraries ld.so finds'

# Changes every third byte of the headers: there must be an answer, never a crash.
crashed=0
cat >flip.py <<'P'
import subprocess, sys
shstk = sys.argv[1]
data = open('all', 'rb').read()
bad = 0
for i in range(0, 700, 3):
    b = bytearray(data)
    b[i] ^= 0xff
    open('flipped', 'wb').write(b)
    r = subprocess.run([shstk, 'check', '-n', './flipped'], timeout=200,
                       capture_output=True)
    if r.returncode not in (0, 1):
        print('byte', i, r.returncode, r.stderr)
        bad = 1
sys.exit(bad)
P
python3 flip.py "$shstk" >out 2>&1
point $? 'changed headers'

# A system of five programs, whose dynamic linker is a marked library.
mkdir -p system/usr/bin system/usr/lib system/usr/share system/lib64
cp lib/liba.so lib/libb.so system/usr/lib
cp lib/libb.so system/lib64/ld-linux-x86-64.so.2
for i in 1 2; do
	cc $mark -o system/usr/bin/good$i p.c -Llib -la -Wl,-rpath,/usr/lib -DN=$i
done
cc $plain -shared -fPIC -Wl,-soname,libdull.so -o system/usr/lib/libdull.so b.c
cc $mark -o system/usr/bin/first b.c p.c a.c -Wl,--no-as-needed,-rpath,/usr/lib system/usr/lib/libdull.so
cc $mark -o system/usr/bin/second b.c p.c a.c -Wl,--no-as-needed,-rpath,/usr/lib system/usr/lib/libdull.so
cc $plain -o system/usr/bin/third b.c p.c a.c -Wl,--no-as-needed,-rpath,/usr/lib system/usr/lib/libdull.so
cp noise script system/usr/bin
cp all system/usr/share/not-a-program
mkfifo system/usr/bin/pipe
ln -s /nosuch system/usr/bin/dangling
t 'all programs of a system' 1 '^5 programs: 2 marked with all they load, 3 not$' \
	"$shstk" check -n --packages --root system
"$shstk" check -n --packages --root system -j >json 2>out
python3 - >>out 2>&1 <<'P'
import json
v = json.load(open('json'))
assert [v[k] for k in ('programs', 'marked', 'incomplete', 'unreadable')] == [5, 2, 0, 0], v
assert [(o['path'], o['programs'], o['alone'], o['is_program']) for o in v['objects']] == [
    ('/usr/lib/libdull.so', 3, 2, False), ('/usr/bin/third', 1, 0, True)], v
P
point $? 'which objects keep how many of them'
t 'a marked system' 0 '^2 programs: 2 marked with all they load, 0 not$' sh -c \
	"rm system/usr/bin/first system/usr/bin/second system/usr/bin/third
	'$shstk' check -n --packages --root system"
t 'a system without programs' 1 '^shstk check: there are no programs .* of nosuch$' \
	"$shstk" check -n --packages --root nosuch
t 'not with a program' 2 '.--packages checks all programs of the system: give no programs' "$shstk" check --packages ./all

# The mark of the kernel's vDSO is as readelf reads it.
if [ "$(uname -m)" = x86_64 ]; then
	python3 - >>out 2>&1 <<'P'
import ctypes, re
line = next(l for l in open('/proc/self/maps') if '[vdso]' in l)
start, end = (int(x, 16) for x in re.match(r'(\w+)-(\w+)', line).groups())
open('vdso', 'wb').write(ctypes.string_at(start, end - start))
P
	if readelf -n vdso 2>/dev/null | grep -q 'x86 feature:.*SHSTK'; then
		"$shstk" check -j ./all | grep -q '"vdso_marked": true' &&
			! "$shstk" check ./all | grep -q '^vDSO'
	else
		"$shstk" check -j ./all | grep -q '"vdso_marked": false' &&
			"$shstk" check ./all | grep -q '^vDSO of the running kernel (Linux .*): not marked'
	fi
	point $? "the mark of the kernel's vDSO"
	! "$shstk" check -r system /usr/bin/good1 | grep vDSO
	point $? 'which is not of another system'
fi

t 'status of the machine' 0 '^next ' "$shstk" status
t 'status of a process' 0 "^ *$$ " "$shstk" status $$
t 'status of no process' 1 'No such process' "$shstk" status 2147483647
t 'a name that is not in PATH' 1 '^shstk check: nosuch: not found in PATH' "$shstk" check nosuch
t 'run: the same' 127 '^shstk run: nosuch: not found in PATH' "$shstk" run nosuch
printf '#!/nosuch/sh\n' >orphan
chmod +x orphan
cc -o nolinker b.c -Wl,--defsym=main=b -Wl,--dynamic-linker=/nosuch/ld-linux-x86-64.so.2
t 'a missing dynamic linker' 1 'not found: /nosuch/ld-linux-x86-64.so.2 .needed by .*/nolinker' "$shstk" check -n ./nolinker
[ "$(grep -c 'not found' out)" = 1 ]
point $? 'is listed once'
t 'run: the same' 127 'nolinker: its dynamic linker /nosuch/ld-linux-x86-64.so.2 was not found' "$shstk" run ./nolinker
t 'a script without its interpreter' 1 'orphan: the interpreter .* was not found' "$shstk" check -n ./orphan
t 'run: the same' 127 'orphan: the interpreter .* was not found' "$shstk" run ./orphan
cp all noperm
chmod -x noperm
t 'run: a file that is not executable' 126 'noperm: Permission denied' "$shstk" run ./noperm
t 'run: a folder' 126 'lib: Is a directory' "$shstk" run ./lib
t 'run: no ELF file' 126 'noise: not an ELF program' "$shstk" run ./noise
t 'run: contrary options are refused' 2 'exclude each other' "$shstk" run --strict --permissive -- true
t 'run without a program says so' 2 'no program given' "$shstk" run
echo "1..$count"
exit $failed
