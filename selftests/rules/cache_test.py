#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the tables and the cache of `shstk rules`: content, and what is trusted. Prints KTAP."""

import glob
import os
import random
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, LIMIT, SHSTK, TMP, check, main, test  # noqa: E402

HEAD = 96       # bytes in front of the table
PROGRAM = '/bin/bash'
DAY = 86400
RULE_NONE = 0
RULE_END = 3
RULE_REG = 4
RULE_CUT = 8
RULE_RETURN = 12
CFA_MAX = (1 << 20) - 1 << 43
BASE = 8        # offset of the field "base" in a table
IMAGE = 1 << 22 # programs with fixed addresses lie at a multiple of this
START_FILES = ('_init', '_fini', 'deregister_tm_clones', 'register_tm_clones', 'frame_dummy',
               '__do_global_dtors_aux')
# An entry point whose unwind information says only behind its first instruction that it has no
# caller, as in glibc for arm64.
ENTRY = '''.globl _start
_start: .cfi_startproc
nop
.cfi_undefined %d
nop
.cfi_endproc
'''

# Frames whose CFA no kind of rule can express: that to which longjmp() returns, whose registers are in a
# buffer or have been read from there, and one that has a frame record.
JUMP = {
    'x86_64': '''.cfi_startproc
.cfi_def_cfa %rdi, 0
.cfi_offset %rip, 56
.cfi_register %rbp, %r9
buffer: nop
.cfi_register %rip, %rdx
registers: nop
.cfi_escape 0x0f, 4, 0x77, 16, 0x31, 0x21 # CFA = (rsp + 16) | 1
.cfi_offset %rip, -8
.cfi_offset %rbp, -16
record: nop
.cfi_endproc
''',
    'aarch64': '''.cfi_startproc
.cfi_def_cfa x0, 0
.cfi_offset x29, 80
.cfi_offset x30, 88
buffer: nop
.cfi_restore x29
.cfi_register x30, x13
registers: nop
.cfi_escape 0x0f, 4, 0x8f, 16, 0x31, 0x21 // CFA = (sp + 16) | 1
.cfi_offset x29, -16
.cfi_offset x30, -8
record: nop
.cfi_endproc
''',
}

# Code between two functions, as in make_fcontext() of Boost.Context: the outermost function of a stack returns to "end".
CONTEXT = {
    'x86_64': 'ret; push %rbp; jmp *%rbx; end: xor %rdi, %rdi; call before; behind: hlt',
    'aarch64': 'ret; end: mov x0, #0; bl before; behind: nop',
}
DESCRIBED = '%s: .cfi_startproc; nop; ret; .cfi_endproc\n'

FOLDER = os.path.join(TMP, 'cache')


def rules(*args, before=()):
    """Runs shstk rules, by the program BEFORE if one is given."""
    return subprocess.run([*before, SHSTK, 'rules', *args], capture_output=True, text=True,
                          check=False, timeout=LIMIT, cwd=TMP)


def fill(*files, folder=FOLDER):
    """Fills the cache. Returns files done, files that were in the cache, and the exit status."""
    done = rules('compile', f'--cache={folder}', *files)
    words = done.stdout.split()
    check(words[1:2] == ['files,'], done.stdout + done.stderr)
    return int(words[0]), int(words[2]), done.returncode


def link_of(path):
    """Returns the path of the link that says which build id a file has."""
    st = os.stat(path)
    seconds, ns = divmod(st.st_ctime_ns, 10 ** 9)
    return os.path.join(FOLDER, f'{st.st_dev:x}-{st.st_ino:x}-{st.st_size:x}-{seconds:x}.{ns:x}'
                        '.file')


def only_entry():
    """Returns the path of the only table of the cache."""
    found = glob.glob(FOLDER + '/*.rules')
    check(len(found) == 1, found)
    return found[0]


def read(path):
    """Returns the content of a file."""
    with open(path, 'rb') as file:
        return file.read()


def write(path, data):
    """Makes a file."""
    with open(path, 'wb') as file:
        file.write(data)


def own_copy(name):
    """Makes a copy of a program that only we may write to. Returns its path."""
    path = os.path.join(TMP, name)
    shutil.copyfile(PROGRAM, path)
    os.chmod(path, 0o755)
    return path


def rows(table):
    """Returns the rows of a table: pairs of an offset in a page and a rule."""
    rules_, pages, rows_ = struct.unpack_from('<III', table, 16)
    rule = struct.unpack_from(f'<{rules_}Q', table, 32)
    at = 32 + 8 * rules_ + 4 * (pages + 1)
    return [(row >> 16, rule[row & 0xffff])
            for row in struct.unpack_from(f'<{rows_}I', table, at)]


def rule_at(table, offset):
    """Returns the rule at an offset in the file."""
    rules_, pages = struct.unpack_from('<II', table, 16)
    base = struct.unpack_from('<Q', table, BASE)[0]
    first = struct.unpack_from(f'<{pages + 1}I', table, 32 + 8 * rules_)
    page = offset - base >> 12
    return [rule for at, rule in rows(table)[first[page]:first[page + 1]]
            if at <= offset % 4096][-1]


def addresses(name):
    """Returns {symbol: address} of a file."""
    names = subprocess.run(['nm', name], check=True, cwd=TMP, capture_output=True, text=True).stdout
    return {line.split()[-1]: int(line.split()[0], 16) for line in names.splitlines()
            if len(line.split()) == 3}


def tables_of(sources):
    """Compiles {machine: code in assembly}. Yields each machine, the table, and {symbol: address}."""
    for machine, source in sources.items():
        compiler = 'cc' if machine == os.uname().machine else machine + '-linux-gnu-gcc'
        if not shutil.which(compiler):
            print(f'# no {compiler} here')
            continue
        write(os.path.join(TMP, 'code.S'), source.encode())
        subprocess.run([compiler, '-nostdlib', '-shared', '-o', 'code', 'code.S'], check=True, cwd=TMP)
        done = rules('compile', '-o', 'table', 'code')
        check(done.returncode == 0, done.stderr)
        yield machine, read(os.path.join(TMP, 'table')), addresses('code')


@test
def start_files():
    """the start files' code, which nothing describes, has rules in programs of each kind"""
    write(os.path.join(TMP, 'main.c'), b'int main(void) { return 0; }')
    for kind in '-no-pie', '-pie', '-shared':
        subprocess.run(['cc', kind, '-fPIC', '-o', 'main', 'main.c'], check=True, cwd=TMP)
        done = rules('compile', '-o', 'table', 'main')
        check(done.returncode == 0, done.stderr)
        table = read(os.path.join(TMP, 'table'))
        names = subprocess.run(['nm', 'main'], check=True, cwd=TMP, capture_output=True,
                               text=True).stdout
        for name in START_FILES:
            at = [int(line.split()[0], 16) for line in names.splitlines()
                  if line.split()[-1] == name]
            check(len(at) == 1, f'{kind}: no {name}')
            check(rule_at(table, at[0] % IMAGE) & 15 != RULE_NONE, f'{kind}: {name} has no rule')


@test
def go_programs():
    """stripped Go programs have the rules of Go's own table, at each instruction"""
    write(os.path.join(TMP, 'main.go'), b'package main\nimport "fmt"\n'
          b'func main() { fmt.Println("hello") }\n')
    if not shutil.which('go'):
        print('# no Go here: nothing was compared')
        return
    for machine in 'amd64', 'arm64':
        env = {**os.environ, 'GOARCH': machine, 'CGO_ENABLED': '0', 'GOFLAGS': '',
               'GOCACHE': os.path.join(TMP, 'go'), 'HOME': TMP}
        subprocess.run(['go', 'build', '-ldflags=-s -w', '-o', machine, 'main.go'], check=True,
                       cwd=TMP, env=env, timeout=LIMIT)
        done = rules('compile', '-o', 'table', machine)
        check(done.returncode == 0, done.stderr)
        done = subprocess.run([os.path.join(HERE, 'go_rules'), machine, 'table'], cwd=TMP,
                              check=False, capture_output=True, text=True, timeout=LIMIT)
        print(f'# {machine}: {done.stdout.splitlines()[-1]}')
        check(done.returncode == 0, done.stdout)


@test
def entry():
    """nothing has called the entry point, whatever is said of its first instruction"""
    source = os.path.join(TMP, 'entry.S')
    write(source, (ENTRY % (30 if os.uname().machine == 'aarch64' else 16)).encode())
    subprocess.run(['cc', '-nostdlib', '-static', '-o', source[:-2], source], check=True)
    done = rules('compile', '-o', 'table', 'entry')
    check(done.returncode == 0, done.stderr)
    start = struct.unpack_from('<Q', read(source[:-2]), 24)[0] % 4096
    ends = [at for at, rule in rows(read(os.path.join(TMP, 'table'))) if rule & 15 == RULE_END]
    check(ends == [start], f'outermost at {ends}, not {start}')


@test
def lost_frames():
    """a frame record is followed in no frame that has none, as at the end of longjmp()"""
    for machine, table, at in tables_of(JUMP):
        lost = RULE_REG if machine == 'x86_64' else RULE_RETURN
        found = [rule_at(table, at[name]) for name in ('buffer', 'registers', 'record')]
        check(found == [lost | CFA_MAX, lost | CFA_MAX, RULE_CUT], f'{machine}: {found}')


@test
def context_ends():
    """the code to which the outermost function of a coroutine would return has no caller"""
    sources = {machine: f'{DESCRIBED % "before"}{code}\n{DESCRIBED % "after"}'
               for machine, code in CONTEXT.items()}
    for machine, table, at in tables_of(sources):
        # The rule of a return address is that of the byte in front of it.
        found = [rule_at(table, at['end'] + more) & 15 for more in (-2, -1, 0)]
        check(found == [RULE_NONE, RULE_END, RULE_END], f'{machine}: {found}')
        check(rule_at(table, at['behind']) & 15 == RULE_NONE, f'{machine}: behind')


@test
def same_table():
    """what a worker makes is what compile makes, and is found again"""
    path = os.path.join(TMP, 'table')
    done = rules('compile', '-o', path, own_copy('program'))
    check(done.returncode == 0, done.stderr)
    check(fill('program') == (1, 0, 0), 'not made')
    check(read(only_entry())[HEAD:] == read(path), 'another table')
    check(fill('program') == (1, 1, 0), 'not found')


@test
def without_kill():
    """who may not kill the worker, as it is another user's, does not wait for it either"""
    done = rules('compile', f'--cache={FOLDER}', 'program',
                 before=['setpriv', '--bounding-set=-kill'] if os.getuid() == 0 else [])
    check(done.stdout.split()[:3] == ['1', 'files,', '1'], done.stdout + done.stderr)


@test
def damaged():
    """a damaged file, wherever, is not used but replaced"""
    good = read(only_entry())
    places = [*range(0, HEAD, 5), HEAD, HEAD + 20, len(good) // 2, len(good) - 1]
    for at in places:
        write(only_entry(), good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1:])
        got = fill('program')
        # Bytes behind the end of the build id in its field have no meaning.
        check(got == (1, 0, 0) or (got == (1, 1, 0) and 36 <= at < 80), f'byte {at}: {got}')
        if got == (1, 0, 0):
            check(read(only_entry()) == good, f'byte {at}: not replaced')
        write(only_entry(), good)
    for size in 0, 1, HEAD, HEAD + 31, len(good) - 1:
        write(only_entry(), good[:size])
        check(fill('program') == (1, 0, 0) and read(only_entry()) == good, f'{size} bytes')
    write(only_entry(), good + b'x')
    check(fill('program') == (1, 0, 0) and read(only_entry()) == good, 'longer')


@test
def links():
    """a link in its place is not followed"""
    entry = only_entry()
    good = read(entry)
    elsewhere = os.path.join(TMP, 'elsewhere')
    os.rename(entry, elsewhere)
    os.symlink(elsewhere, entry)
    check(fill('program') == (1, 0, 0), 'used')
    check(not os.path.islink(entry) and read(entry) == good and read(elsewhere) == good,
          'not replaced')


@test
def noted():
    """a file's build id is noted by a link, which is replaced if it says something else"""
    link, entry = link_of(os.path.join(TMP, 'program')), only_entry()
    good = os.path.basename(entry)
    check(os.readlink(link) == good, 'not noted')
    for bad in ('', good[1:], good + 'x', 'g' + good[1:], './' + good, '/etc/passwd',
                'ab' * 65 + '.rules', 'ab' * 300, '.rules', '0' * len(good)):
        os.unlink(link)
        if bad:
            os.symlink(bad, link)
        check(fill('program') == (1, 1, 0) and os.readlink(link) == good, bad)
    os.unlink(link)
    write(link, read(entry))
    check(fill('program') == (1, 1, 0) and os.readlink(link) == good, 'no link')
    os.rename(entry, entry + 'x')
    check(fill('program') == (1, 0, 0) and os.readlink(link) == good, 'its table was gone')
    os.unlink(entry + 'x')


@test
def others():
    """what others may write to is neither believed nor kept, nor is their folder"""
    path = own_copy('open')
    os.chmod(path, 0o775)
    before = read(only_entry())
    os.symlink(os.path.basename(only_entry()), link_of(path))
    check(fill(path) == (1, 0, 1), 'believed')
    os.unlink(link_of(path))
    os.unlink(only_entry())
    check(fill(path) == (1, 0, 1) and not os.listdir(FOLDER), 'kept, or noted')
    os.chmod(path, 0o755)
    check(fill(path) == (1, 0, 0) and read(only_entry()) == before, 'not made')
    os.chmod(only_entry(), 0o666)
    check(fill(path) == (1, 0, 0), "others' table was used")
    folder = os.path.join(TMP, 'everybody')
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    done = rules('compile', f'--cache={folder}', path)
    check(done.returncode == 1 and 'others may write to it' in done.stderr and
          not os.listdir(folder), done.stderr)


@test
def bounded():
    """the cache has a size: what was not used for the longest time goes, and what was begun"""
    paths = {name: os.path.join(FOLDER, name) for name in
             ('aa.rules', 'bb.rules', 'cc.rules', 'aa.rules.12', 'bb.rules.34', 'missed')}
    used = only_entry()
    for link in glob.glob(FOLDER + '/*.file'):
        os.unlink(link)
    os.symlink('dd.rules', os.path.join(FOLDER, 'gone.file'))
    os.symlink('cc.rules', os.path.join(FOLDER, 'there.file'))
    now = os.stat(used).st_mtime
    for path in paths.values():
        write(path, b'')
    for name, days in ('aa.rules', 3), ('bb.rules', 5), ('cc.rules', 4):
        os.truncate(paths[name], 400 << 20)
        os.utime(paths[name], (now, now - days * DAY))
    os.utime(used, (now, now - 9 * DAY))
    os.utime(paths['aa.rules.12'], (now, now - 7200))
    program = own_copy('program')
    check(fill(program) == (1, 1, 0), 'not found')
    check(sorted(os.listdir(FOLDER)) == sorted(
        ['aa.rules', 'cc.rules', 'bb.rules.34', 'missed', 'there.file', os.path.basename(used),
         os.path.basename(link_of(program))]),
          os.listdir(FOLDER))
    for path in paths.values():
        if os.path.exists(path):
            os.unlink(path)


@test
def not_programs():
    """what is no program is named"""
    write(os.path.join(TMP, 'text'), b'text' * 100)
    write(os.path.join(TMP, 'empty'), b'')
    for name in 'text', 'empty', 'nowhere', '/tmp':
        done = rules('compile', f'--cache={FOLDER}', name)
        check(done.returncode == 1 and done.stderr.count('\n') == 1 and name in done.stderr,
              f'{name}: {done.stderr}')


@test
def hostile():
    """files with bytes changed: done, or refused in one line, and nothing waits for ever"""
    good = read(PROGRAM)
    chance = random.Random(1)
    path = os.path.join(TMP, 'hostile')
    kept = 0
    for _ in range(60):
        data = bytearray(good)
        for _ in range(chance.choice((1, 10, 1000))):
            at = chance.choice((chance.randrange(4096), chance.randrange(len(data))))
            data[at] = chance.randrange(256)
        write(path, data)
        os.chmod(path, 0o755)
        done = rules('compile', f'--cache={FOLDER}', path)
        check(done.returncode in (0, 1) and done.stderr.count('\n') == done.returncode,
              f'{done.returncode}: {done.stderr}')
        kept += not done.returncode
    print(f'# {kept} of 60 still had a table')
    check(kept, 'none was compiled: nothing was tested')


sys.exit(main())
