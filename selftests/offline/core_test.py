#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk trace --core` with core files of the kernel, of QEMU, of gdb, and made by hand.

Prints KTAP.
"""

import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import seed  # noqa: E402
from arm64 import QEMU, on_arm64  # noqa: E402
from harness import (  # noqa: E402
    HERE, LIMIT, SHSTK, TMP, Process, Skip, check, main, one_line, run, test)

TARGET = os.path.join(HERE, 'stand')
ARM64 = os.path.join(HERE, 'arm64', 'stand-static')
JIT = os.path.join(HERE, '..', 'record', 'jit')

RECURSION = ['stand_still'] + ['recurse'] * 41 + ['deep_thread', 'start_thread']
STACKS = {
    'fault': ['fault', 'crash_here', 'main'],
    'recurse': RECURSION,
    'in_handler': ['stand_still', 'in_handler'],
    'compare': ['stand_still', 'compare'],
}


def make_core(name, program, *args, emulator=()):
    """Has a program leave a core file in a folder of its own, and returns the path."""
    path = os.path.join(TMP, name)
    if os.path.exists(path):
        return path
    with tempfile.TemporaryDirectory(dir=TMP) as folder:
        subprocess.run(['sh', '-c', 'ulimit -c unlimited; exec "$@"', 'sh',
                        *emulator, program, *(args or ['crash'])], cwd=folder, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT)
        # The emulator writes the core file of its program, and the kernel the one of the emulator.
        found = [f for f in os.listdir(folder)
                 if f.startswith('qemu_' if emulator else 'core')]
        if not found:
            with open('/proc/sys/kernel/core_pattern', encoding='utf-8') as file:
                raise Skip('no core file in the working directory; '
                           f'core_pattern is {file.read().strip()!r}')
        shutil.move(os.path.join(folder, found[0]), path)
    return path


def native():
    """Returns the core file that most tests use."""
    return make_core('core', TARGET)


def trace(path, *args, status=0):
    """Returns the stacks of a core file, [[function]], and the finished command."""
    done = run(SHSTK, 'trace', '--core', path, '--each-thread', *args)
    check(done.returncode == status,
          f'status {done.returncode}: {done.stderr} {done.stdout}')
    stacks = []
    for part in done.stdout.split('\n\n')[1:]:
        stacks.append([line.split()[1].split('+')[0]
                       for line in part.split('\n') if line.startswith('  #')])
    return stacks, done


def is_part(wanted, frames):
    """Returns whether the wanted functions are among the frames, in this order."""
    rest = iter(f for f in frames)
    return all(any(f == w for f in rest) for w in wanted)


def check_stacks(stacks):
    """Checks that all four threads have their stacks."""
    check(len(stacks) == 4, f'{stacks}')
    for name, wanted in STACKS.items():
        found = [s for s in stacks if name in s]
        check(len(found) == 1 and is_part(wanted, found[0]), f'{name}: {found}')


@test
def own_core():
    """all threads of a core file of this machine, from file and core together"""
    stacks, done = trace(native())
    check_stacks(stacks)
    check(not done.stderr, done.stderr)
    check(re.match(r'core file .*core of process \d+ \(stand\), (x86-64|arm64), '
                   '4 threads, ended by SIGSEGV\n', done.stdout), done.stdout)
    check('ends here' not in done.stdout, done.stdout)
    check(all(s[-1] in ('_start', 'clone3', '__clone3') for s in stacks),
          f'{[s[-1] for s in stacks]}')
    handler = [s for s in stacks if 'in_handler' in s][0]
    check(is_part(['in_handler', 'interrupted', 'signal_thread'], handler),
          f'{handler}')
    check(done.stdout.count('by unwinding:') == 4, done.stdout)


@test
def left_out_code():
    """a core file without segments for code, as gdb's gcore writes it"""
    path = os.path.join(TMP, 'without-code')
    with open(native(), 'rb') as file:
        whole = bytearray(file.read())
    headers, = struct.unpack_from('<Q', whole, 32)
    number, = struct.unpack_from('<H', whole, 56)
    left_out = 0
    for at in range(headers, headers + 56 * number, 56):
        kind, flags = struct.unpack_from('<II', whole, at)
        # PT_LOAD with PF_R | PF_X, of which the core has only a part: a file's code, not the vDSO.
        if kind == 1 and flags == 5 and struct.unpack_from('<Q', whole, at + 32) < \
                struct.unpack_from('<Q', whole, at + 40):
            struct.pack_into('<I', whole, at, 0)
            left_out += 1
    check(left_out, 'all code is in the core file')
    with open(path, 'wb') as file:
        file.write(whole)
    stacks, done = trace(path)
    check_stacks(stacks)
    check(not done.stderr and 'ends here' not in done.stdout, f'{done.stderr} {done.stdout}')


@test
def gcore():
    """a core file that gdb wrote of a process that goes on"""
    if not shutil.which('gcore'):
        raise Skip('gdb is not installed')
    with Process([TARGET, 'wait'], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        made = run('gcore', '-o', os.path.join(TMP, 'gcore'), str(target.pid))
        target.kill()
    path = os.path.join(TMP, f'gcore.{target.pid}')
    if not os.path.exists(path):
        raise Skip(f'gcore cannot attach here: {made.stderr.splitlines()[-1:]}')
    _, done = trace(path)
    check('ends here' not in done.stdout, done.stdout)
    check(done.stdout.count('by unwinding:') == 4, done.stdout)


def made(text):
    """Checks the frames of the program that makes code as HotSpot does."""
    names = re.findall(r'^  #\d+ +(.+?)(?:\+0x\w+)?(?: in | at |$)', text, re.M)
    check(names[:7] == [*(f'tests.Made.{name}' for name in ('leaf', 'inner', 'middle', 'outer')),
                        '[ExceptionBlob]', 'run_code', 'main'] and 'ends here' not in text, text)


@test
def code_made_at_run_time():
    """code as HotSpot makes it, of a living process and in a core file"""
    if platform.machine() != 'x86_64':
        raise Skip('HotSpot is known on x86-64 only')
    with Process([JIT, '1000000'], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        # The program hardly ever leaves the code that it made, but must have entered it.
        for _ in range(100):
            done = run(SHSTK, 'trace', '-p', str(target.pid))
            if 'run_code' in done.stdout:
                break
        target.kill()
    made(done.stdout + done.stderr)
    _, done = trace(make_core('jit', JIT, '20', 'crash'))
    made(done.stdout + done.stderr)


@test
def all_in_core():
    """with everything dumped and no file left: the core file alone is enough"""
    folder = os.path.join(TMP, 'gone')
    os.mkdir(folder)
    program = os.path.join(folder, 'target')
    shutil.copy(TARGET, program)
    path = os.path.join(TMP, 'full')
    # Dump private and shared mappings of files, too; then remove the program.
    script = 'echo 0x7f >/proc/self/coredump_filter; ulimit -c unlimited; exec "$@"'
    subprocess.run(['sh', '-c', script, 'sh', program, 'crash'], cwd=folder,
                   check=False, stderr=subprocess.DEVNULL, timeout=LIMIT)
    found = [f for f in os.listdir(folder) if 'core' in f]
    if not found:
        raise Skip('no core file in the working directory')
    shutil.move(os.path.join(folder, found[0]), path)
    shutil.rmtree(folder)
    _, whole = trace(native(), '--addresses')
    _, done = trace(path, '--addresses', '--sysroot', TMP)
    check('cannot open' in done.stderr, done.stderr)

    def depths(text):
        """Returns the number of frames of each thread, without those that only debug files know."""
        return sorted(sum(line.startswith('  #') and '[inlined]' not in line
                          for line in part.split('\n'))
                      for part in text.split('\n\n')[1:])

    check('ends here' not in done.stdout, done.stdout)
    check(depths(done.stdout) == depths(whole.stdout), done.stdout)


@test
def other_files():
    """another program's file, a missing one: named, with the build ids"""
    path = native()
    _, done = trace(path, '--exe', SHSTK)
    check(re.search(r'shstk is not used, as it is not the file that was mapped: its build id is '
                    r'([0-9a-f]+|none), not [0-9a-f]{40}', done.stderr),
          done.stderr)
    check(' crash_here' not in done.stdout, done.stdout)
    root = os.path.join(TMP, 'root')
    os.makedirs(root + os.path.dirname(TARGET))
    shutil.copy(TARGET, root + TARGET)
    stacks, done = trace(path, '--sysroot', root)
    check(re.search('cannot open .*libc.so.6: No such file', done.stderr),
          done.stderr)
    check(any(is_part(['fault', 'crash_here', 'main'], s) for s in stacks),
          f'{stacks}')
    moved = os.path.join(TMP, 'moved')
    shutil.copy(TARGET, moved)
    check_stacks(trace(path, '--exe', moved)[0])


@test
def cut_off():
    """a core file cut off anywhere: what is there, and that it is cut off"""
    path, cut = native(), os.path.join(TMP, 'cut')
    with open(path, 'rb') as file:
        whole = file.read()
    before = -1
    for size in [len(whole) * n // 12 for n in range(1, 12)]:
        with open(cut, 'wb') as file:
            file.write(whole[:size])
        stacks, done = trace(cut)
        check(f'cut is cut off: it has {size} of {len(whole)} bytes' in done.stderr,
              done.stderr)
        check(len(stacks) == 4, done.stdout)
        frames = sum(len(s) for s in stacks)
        check(frames >= before, f'{frames} frames at {size}, {before} before')
        before = frames
    for size in 0, 3, 63, 64, 200, 1000, 3000:
        with open(cut, 'wb') as file:
            file.write(whole[:size])
        done = run(SHSTK, 'trace', '--core', cut)
        check(done.returncode in (0, 1), f'{size}: {done.returncode}')
        if done.returncode:
            check('cut' in one_line(done.stderr), done.stderr)


@test
def damaged():
    """segments over each other, notes of any size: an answer all the same"""
    path, bad = native(), os.path.join(TMP, 'bad')
    with open(path, 'rb') as file:
        whole = bytearray(file.read(200000))
    headers, = struct.unpack_from('<Q', whole, 32)
    # Let the second segment begin where the third one does.
    start, = struct.unpack_from('<Q', whole, headers + 3 * 56 + 16)
    struct.pack_into('<Q', whole, headers + 2 * 56 + 16, start)
    with open(bad, 'wb') as file:
        file.write(whole)
    done = run(SHSTK, 'trace', '--core', bad)
    check(done.returncode == 0 and 'is damaged: 1 of its' in done.stderr,
          f'{done.returncode} {done.stderr}')


def holes(path, nr, size):
    """Writes a core file with code that is in no file and consists of holes."""
    names = b''.join(b'/gone/%d\0' % i for i in range(nr))
    start, at = 0x10000000, 1 << 20
    files = struct.pack('<QQ', nr, 4096) + b''.join(
        struct.pack('<QQQ', start + i * size, start + (i + 1) * size, 0) for i in range(nr)) + names
    notes = (seed.note(b'CORE', 1, seed.prstatus(100, [0] * 16 + [start + 16] + [0] * 10)) +
             seed.note(b'CORE', 0x46494c45, files))
    headers = struct.pack('<IIQQQQQQ', 4, 0, 64 + 56 * (nr + 1), 0, 0, len(notes), 0, 4) + b''.join(
        struct.pack('<IIQQQQQQ', 1, 5, at + i * size, start + i * size, 0, size, size, 4096)
        for i in range(nr))
    with open(path, 'wb') as file:
        file.write(b'\x7fELF\x02\x01\x01' + bytes(9) +
                   struct.pack('<HHIQQQIHHHHHH', 4, 62, 1, 0, 64, 0, 0, 64, 56, nr + 1, 0, 0, 0) +
                   headers + notes)
        file.truncate(at + nr * size)


@test
def large_code():
    """code in no file, of one module or several, without an end: so much is read, and it is said"""
    path = os.path.join(TMP, 'holes')
    for nr, size in (1, 2 << 30), (2, 600 << 20):
        holes(path, nr, size)
        done = run(SHSTK, 'trace', '--core', path)
        check(done.returncode in (0, 1) and done.stdout, f'{done.returncode} {done.stderr}')
        check(done.stderr.count('more than 1 GiB of code that is in no file') == 1, done.stderr)
    holes(path, 2, 1 << 20)
    done = run(SHSTK, 'trace', '--core', path)
    check('more than' not in done.stderr, done.stderr)
    os.unlink(path)


@test
def arm64_core():
    """an arm64 core file, of an emulator that does not say what is mapped"""
    if not QEMU or not os.path.exists(ARM64):
        raise Skip('no qemu-aarch64')
    path = make_core('arm64.core', ARM64, emulator=[QEMU])
    stacks, done = trace(path, '--exe', ARM64)
    check(', arm64, 4 threads, ended by SIGSEGV' in done.stdout, done.stdout)
    check_stacks(stacks)
    # QEMU's signal trampoline is in no segment: the thread's stack ends there.
    ends = re.findall('ends here: .*', done.stdout)
    check(ends in ([], ['ends here: no code address']), done.stdout)


@test
def riscv_core():
    """a riscv core file, made by hand: two threads by their shadow stacks"""
    path = os.path.join(TMP, 'riscv.core')
    with open(path, 'wb') as file:
        file.write(seed.core(243))
    done = run(SHSTK, 'trace', '--core', path, '--source=hardware', '--each-thread')
    check(done.returncode == 0, done.stderr)
    check(', riscv64, 2 threads, ended by SIGSEGV' in done.stdout, done.stdout)
    check(done.stdout.count('by its shadow stack:') == 2, done.stdout)
    addresses = re.findall(r'\b0x(400[0-9a-f]{3})\b', done.stdout)
    check(done.stdout.count('a frame may be missing') == 2, done.stdout)
    check(addresses == ['400010', '400021', '400031'] * 2, done.stdout)


@test
def on_another_machine():
    """this machine's core file, read by the arm64 command: the same output"""
    there = on_arm64('trace', '--core', native())
    _, here = trace(native())
    check(there.returncode == 0, there.stderr)
    check(there.stdout == here.stdout, f'{there.stdout}\nnot\n{here.stdout}')


@test
def refusals():
    """no core file, wrong options: one line that names it"""
    for status, words, args in (
            (1, 'cannot open core file nosuch', ['--core', 'nosuch']),
            (1, 'is not a core file but another ELF file', ['--core', TARGET]),
            (1, 'is not an ELF file', ['--core', os.path.abspath(__file__)]),
            (1, 'is not a regular file', ['--core', TMP]),
            (2, 'exclude each other', ['--core', 'x', '-p', '1']),
            (2, 'are for --core', ['-p', '1', '--exe', 'x']),
            (2, 'leave --source out', ['-p', '1', '--compare', '--source=unwind']),
            (2, "source 'x' is not auto, hardware or unwind", ['--source', 'x']),
            (2, 'no process given', ['--sysroot', 'x'])):
        done = run(SHSTK, 'trace', *args)
        check(done.returncode == status, f'{args}: {done.returncode}')
        line = one_line(done.stderr)
        check(words in line, f'{words!r} is not in {line!r}')
    done = run(SHSTK, 'trace', '--core', native(), '--sysroot', '/nonexistent')
    check(done.returncode == 1 and '/nonexistent' in one_line(done.stderr),
          done.stderr)


@test
def living_process():
    """a process without shadow stacks: says so, and what was taken"""
    with Process([TARGET, 'wait'], stdout=subprocess.PIPE, text=True) as target:
        pid = target.stdout.readline().split()[1]
        done = run(SHSTK, 'trace', '-p', pid)
        only = run(SHSTK, 'trace', '-p', pid, '--source=hardware')
        both = run(SHSTK, 'trace', '-p', pid, '--compare')
        target.kill()
    if 'by its shadow stack' in done.stdout:
        raise Skip('shadow stacks are on here')
    check(done.stdout.count('by unwinding:') == 4, done.stdout)
    check(only.returncode == 1, only.stdout)
    check(only.stdout.count('its shadow stack is not on') == 4, only.stdout)
    check('not every stack' in one_line(only.stderr), only.stderr)
    check(both.stdout.count('not compared: its shadow stack is not on') == 4,
          both.stdout)


sys.exit(main())
