#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SFrame versions 2 and 3, on x86-64 and arm64, against readelf and .eh_frame.

Parts of the library are built by the assemblers and linkers of Debian 13 (version
2) and 14 (version 3), and what rules.c prints for every address is compared with
what readelf --sframe (that is, libsframe) prints for it, and with what the
library reads in the .eh_frame of the same file. Prints KTAP; 4: nothing to build
with here.
"""

import functools
import os
import random
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TOP, Skip, run_tests  # noqa: E402

B = os.environ.get('B', 'build')
WHERE = os.path.join(B, 'selftests', 'formats')
RULES = os.path.join(WHERE, 'rules')
CACHE = os.environ.get('SHSTK_CACHE', os.path.expanduser('~/.cache/shstk'))
BINUTILS = os.path.join(CACHE, 'binutils', 'usr')

SOURCES = ['libshstk/cfi.c', 'libshstk/cfi_expr.c', 'libshstk/step.c', 'libshstk/guess.c',
           'libshstk/epilogue.c', 'libshstk/table.c', 'libshstk/table_index.c', 'libshstk/rowcode.c',
           'libshstk/vma.c', 'selftests/unwind/frame.c']
FLAGS = ['-O2', '-fPIC', '-D_GNU_SOURCE', '-Dmain=not_main', '-I.', '-Iuapi', '-Ilibshstk',
         '-fasynchronous-unwind-tables', '-w']


def inside(folder, *command):
    """Run a command of a Debian folder; returns its output."""
    done = subprocess.run(['selftests/guest/in', folder, *command], cwd=TOP, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f'{folder}: {" ".join(command)}: {done.stderr[-1000:]}')
    return done.stdout


def forky_binutils(tool, *args):
    """Run the assembler, linker or readelf for amd64 of Debian 14."""
    return inside('forky', 'env', f'LD_LIBRARY_PATH={BINUTILS}/lib/x86_64-linux-gnu',
                  f'{BINUTILS}/bin/x86_64-linux-gnu-{tool}', *args)


def ready(*parts):
    for part in parts:
        if not os.path.exists(os.path.join(CACHE, 'state', part)):
            raise Skip(f'no {part}, see selftests/guest/setup')
    try:
        inside(parts[0], 'true')
    except RuntimeError as error:
        raise Skip(f'cannot enter {parts[0]}') from error


# ---- Builders: each builds a file, and returns its path and a readelf that knows its version ----

@functools.cache
def build_x86_2():
    ready('trixie')
    out = os.path.join(WHERE, 'x86-2.so')
    inside('trixie', 'gcc', *FLAGS, '-Ilibshstk/arch/x86', '-Wa,--gsframe', '-shared',
           '-nostdlib', '-o', out, *SOURCES, 'selftests/formats/special.S')
    return out, lambda *a: inside('trixie', 'readelf', *a)


def build_x86_3():
    ready('trixie', 'forky', 'binutils')
    objects = []
    for source in SOURCES + ['selftests/formats/special.S']:
        base = os.path.join(WHERE, os.path.basename(source))
        asm = inside('trixie', 'gcc', *FLAGS, '-Ilibshstk/arch/x86',
                     '-S' if source.endswith('.c') else '-E', '-o', '-', source)
        with open(f'{base}.s', 'w', encoding='utf-8') as file:
            file.write(asm)
        forky_binutils('as', '--gsframe', '-o', f'{base}.o', f'{base}.s')
        objects.append(f'{base}.o')
    out = os.path.join(WHERE, 'x86-3.so')
    forky_binutils('ld.bfd', '-shared', '-o', out, *objects)
    return out, lambda *a: forky_binutils('readelf', *a)


def build_arm64(folder, version):
    ready(folder)
    out = os.path.join(WHERE, f'arm64-{version}.so')
    inside(folder, 'aarch64-linux-gnu-gcc', *FLAGS, '-Ilibshstk/arch/arm64', '-Wa,--gsframe',
           '-mbranch-protection=standard', '-shared', '-nostdlib', '-o', out, *SOURCES)
    return out, lambda *a: inside(folder, 'aarch64-linux-gnu-readelf', *a)


def build_arm64_2():
    return build_arm64('trixie', 2)


def build_arm64_3():
    return build_arm64('forky', 3)


def rules(path, section):
    """{address: words}, as the library sees it."""
    done = subprocess.run([RULES, path, section], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    found = {}
    for line in done.stdout.splitlines():
        start, end, *words = line.split()
        for at in range(int(start, 16), int(end, 16)):
            found[at] = tuple(words)
    return found


def columns(line):
    """CFA, FP and RA of a row: columns of fixed width, the address in front."""
    start, rest = line.split(None, 1)
    if 'undefined' in rest:
        return int(start, 16), ('-', '-', 'U')
    at = line.index(start) + len(start) + 2
    words = [line[at:at + 10].strip(), line[at + 10:at + 20].strip(), line[at + 20:].strip()]
    return int(start, 16), tuple(w.removesuffix('[s]') for w in words)


def readelf_rules(readelf, path, block):
    """{address: words}, as readelf --sframe sees it.

    block: bytes of a repeated entry of the PLT, which readelf does not print.
    """
    found = {}
    fixed = 'u'
    signal = ()
    rows, start, size, repeats = [], 0, 0, False

    def flush():
        for at in range(start, start + size):
            key = (at - start) % block if repeats else at
            last = None
            for row, words in rows:
                if row <= key:
                    last = words
            if last:
                found[at] = last + signal

    for line in readelf('--sframe', path).splitlines():
        words = line.split()
        if 'fixed RA offset' in line:
            fixed = 'c' + words[-1]
        elif 'func idx' in line:
            flush()
            part = line.split('pc = ')[1].replace(',', '').split()
            start, size, rows = int(part[0], 16), int(part[3]), []
            signal = ('signal',) if 'attr' in line and 'S' in line.split('attr')[1] else ()
        elif words and words[0].startswith('STARTPC'):
            repeats = words[0] == 'STARTPC[m]'
        elif words and len(words[0]) == 16:
            at, (cfa, fp, ra) = columns(line)
            if ra == 'f' or (ra == 'U' and cfa != '-'):
                ra = fixed
            rows.append((at, (cfa, fp, ra)))
    flush()
    return found


def compare(have, want, what, only=None):
    """Every address must be the same on both sides."""
    where = only if only is not None else set(have) | set(want)
    wrong = [at for at in sorted(where) if have.get(at) != want.get(at)]
    if wrong:
        at = wrong[0]
        raise AssertionError(f'{what}: {len(wrong)} of {len(where)} addresses differ, '
                             f'first {at:#x}: {have.get(at)}, not {want.get(at)}')
    if len(where) < 1000:
        raise AssertionError(f'{what}: only {len(where)} addresses')
    print(f'# {what}: {len(where)} addresses, 0 differences')


def symbols(path):
    found = {}
    out = subprocess.run(['readelf', '-sW', path], check=True, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    for line in out.splitlines():
        f = line.split()
        if len(f) == 8 and f[3] in ('FUNC', 'NOTYPE') and f[6] != 'UND':
            found[f[7]] = int(f[1], 16)
    return found


# Rules that version 2 cannot express, which the assembler of Debian 13 writes wrongly.
BEYOND_2 = {'outermost': 3, 'interrupted': 2, 'popped': 4}


def check(build):
    path, readelf = build()
    have = rules(path, 'sframe')
    compare(have, readelf_rules(readelf, path, 16), f'{path} and readelf')
    only = set(have)
    if build is build_x86_2:
        names = symbols(path)
        for name, size in BEYOND_2.items():
            only -= set(range(names[name], names[name] + size))
    compare(have, rules(path, 'eh_frame'), f'{path} and its .eh_frame', only)
    covered = len(set(rules(path, 'eh_frame')) - set(have))
    print(f'# {path}: {covered} addresses are in .eh_frame only')


def section(data, name):
    """Offset and size of a section in an ELF file's bytes."""
    shoff, = struct.unpack_from('<Q', data, 40)
    size, count, strndx = struct.unpack_from('<HHH', data, 58)
    strings, = struct.unpack_from('<Q', data, shoff + strndx * size + 24)
    for i in range(count):
        at = shoff + i * size
        text, = struct.unpack_from('<I', data, at)
        end = data.index(b'\0', strings + text)
        if data[strings + text:end] == name:
            return struct.unpack_from('<QQ', data, at + 24)
    raise AssertionError(f'no {name}')


def changed(data, name, at, value):
    path = os.path.join(WHERE, name)
    with open(path, 'wb') as file:
        file.write(data[:at] + value + data[at + len(value):])
    return path


def refused():
    """headers that are not for us are refused: byte order, version, machine, flags, sizes"""
    path, _ = build_x86_2()
    with open(path, 'rb') as file:
        data = file.read()
    at, size = section(data, b'.sframe')
    rules(changed(data, 'same.so', at, data[at:at + 1]), 'sframe')
    for what, where, value in (
            ('big-endian magic', 0, b'\xde\xe2'), ('version 1', 2, b'\x01'),
            ('version 4', 2, b'\x04'), ('unknown flag', 3, b'\x09'),
            ('arm64 code', 4, b'\x02'), ('s390x code', 4, b'\x04'),
            ('too many functions', 8, struct.pack('<I', size // 20 + 1)),
            ('rows behind the end', 16, struct.pack('<I', size)),
            ('functions behind the end', 20, struct.pack('<I', 0xffffffff)),
            ('rows behind the end', 24, struct.pack('<I', 0xffffffff))):
        name = changed(data, 'refused.so', at + where, value)
        try:
            rules(name, 'sframe')
        except RuntimeError as error:
            if 'no sframe that can be used' in str(error):
                continue
            raise
        raise AssertionError(f'{what}: accepted')


def unsorted():
    """functions in any order, when the header does not promise an order"""
    path, _ = build_x86_2()
    with open(path, 'rb') as file:
        data = file.read()
    at, _ = section(data, b'.sframe')
    count, = struct.unpack_from('<I', data, at + 8)
    off, = struct.unpack_from('<I', data, at + 20)
    first = at + 28 + off
    funcs = [data[first + 20 * i:first + 20 * (i + 1)] for i in range(count)]
    random.Random(1).shuffle(funcs)
    data = data[:at + 3] + bytes([data[at + 3] & ~1]) + data[at + 4:]
    shuffled = changed(data, 'unsorted.so', first, b''.join(funcs))
    compare(rules(shuffled, 'sframe'), rules(path, 'sframe'), f'{shuffled} and {path}')


RUN = 'selftests/formats/sframe_run.c'
RUN_FLAGS = ['-std=gnu11', '-O2', '-D_GNU_SOURCE', '-Ilibshstk']
NO_EH_FRAME = ['-R', '.eh_frame', '-R', '.eh_frame_hdr']


def run_alone(out, emulator):
    """Let a program that has no .eh_frame capture its stack."""
    done = subprocess.run(emulator + [out], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200)
    for line in done.stdout.splitlines():
        if line.startswith('# '):
            print(f'# {out}: {line[2:]}')
    if done.returncode:
        raise AssertionError(f'{out}: {done.returncode}: {done.stdout}')


def compile_and_run(folder, cross, version):
    """A program as the compiler of a folder makes it."""
    ready(folder, *(['user'] if cross else []))
    if not cross and os.uname().machine != 'x86_64':
        raise Skip('another machine')
    out = os.path.join(WHERE, f'run-{"arm64" if cross else "x86"}-{version}')
    lib = os.path.join(B, 'lib/arm64' if cross else 'lib/native', 'libshstk.a')
    inside(folder, f'{cross}gcc', *RUN_FLAGS, '-static', '-Wa,--gsframe',
           *(['-mbranch-protection=standard'] if cross else []), '-o', out, RUN, lib)
    inside(folder, f'{cross}strip', *NO_EH_FRAME, out)
    emulator = [os.path.join(CACHE, 'user', 'qemu-aarch64'), '-cpu', 'max,pauth-impdef=on']
    run_alone(out, emulator if cross else [])


def from_trixie(name):
    """Where a file that Debian 13's compiler links is, seen from outside."""
    path = inside('trixie', 'gcc', f'-print-file-name={name}').strip()
    real = inside('trixie', 'realpath', path).strip()
    return os.path.join(CACHE, 'trixie', real.lstrip('/'))


def link_and_run_x86_3():
    """Compiled in Debian 13, assembled and linked by Debian 14's tools."""
    ready('trixie', 'forky', 'binutils')
    if os.uname().machine != 'x86_64':
        raise Skip('another machine')
    out = os.path.join(WHERE, 'run-x86-3')
    with open(f'{out}.s', 'w', encoding='utf-8') as file:
        file.write(inside('trixie', 'gcc', *RUN_FLAGS, '-DFLEXIBLE', '-S', '-o', '-', RUN))
    forky_binutils('as', '--gsframe', '-o', f'{out}.o', f'{out}.s')
    start = [from_trixie(n) for n in ('crt1.o', 'crti.o', 'crtbeginT.o')]
    libs = [from_trixie(n) for n in ('libgcc.a', 'libgcc_eh.a', 'libc.a')]
    end = [from_trixie(n) for n in ('crtend.o', 'crtn.o')]
    forky_binutils('ld.bfd', '-static', '-o', out, *start, f'{out}.o',
                   os.path.join(B, 'lib/native/libshstk.a'), '--start-group', *libs,
                   '--end-group', *end)
    forky_binutils('strip', *NO_EH_FRAME, out)
    with open(out, 'rb') as file:
        data = file.read()
    at, _ = section(data, b'.sframe')
    if data[at:at + 3] != b'\xe2\xde\x03':
        raise AssertionError(f'{out}: not SFrame 3: {data[at:at + 3]}')
    run_alone(out, [])


CASES = [(f'SFrame {v} of {a}: readelf and .eh_frame say the same',
          lambda b=b: check(b))
         for v, a, b in ((2, 'x86', build_x86_2), (2, 'arm64', build_arm64_2),
                         (3, 'x86', build_x86_3), (3, 'arm64', build_arm64_3))]
CASES += [(f'SFrame {v} of {a} alone: every frame of a running program',
           lambda f=f, c=c, v=v: compile_and_run(f, c, v))
          for v, a, f, c in ((2, 'x86', 'trixie', ''), (2, 'arm64', 'trixie', 'aarch64-linux-gnu-'),
                             (3, 'arm64', 'forky', 'aarch64-linux-gnu-'))]
CASES += [('SFrame 3 of x86 alone: every frame of a running program', link_and_run_x86_3)]
CASES += [(f'SFrame: {c.__doc__}', c) for c in (refused, unsorted)]


def main():
    os.chdir(TOP)
    return run_tests(CASES)


sys.exit(main())
