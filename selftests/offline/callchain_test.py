#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk unwind` with files that have callchains only, as perf record -g writes them.

The test writes the files itself, so each entry is known and perf is not needed. Prints KTAP.
"""

import os
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    HERE, LIMIT, SHSTK, TMP, check, main, one_line, run, test)

WHOLE = os.path.join(HERE, 'whole')
COMM, FORK, SAMPLE, MMAP2, ATTR, FEATURE = 3, 7, 9, 10, 64, 80
KERNEL, USER = 2 ** 64 - 128, 2 ** 64 - 512     # marks between the entries of a callchain
SAMPLE_TYPE = 2 | 4 | 32 | 256      # thread, time, callchain, period
SAMPLE_ID_ALL = 1 << 18
CALLCHAIN = 32
PERIOD = 1000000    # ns
KERNEL_PC = 0xffffffff81000000
EXECUTED = 1 << 13
USER_MODE = 2


def attr(sample_type=SAMPLE_TYPE, max_stack=0):
    """Returns the struct perf_event_attr of cpu-clock."""
    return struct.pack('=IIQQQQQIIQQQQIiQIHH', 1, 112, 0, PERIOD, sample_type, 0, SAMPLE_ID_ALL,
                       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, max_stack, 0)


def record(kind, body, misc=0):
    """Returns a record with its header."""
    return struct.pack('=IHH', kind, misc, 8 + len(body)) + body


def text(name):
    """Returns a name with zeros up to a multiple of 8 bytes."""
    data = name.encode() + b'\0'
    return data + b'\0' * (-len(data) % 8)


class Recording:
    """The records of a file, in the order of time."""

    def __init__(self):
        self.records, self.time = [], 1000

    def add(self, kind, body, pid, tid, misc=0):
        """Adds a record that is no sample; the thread and the time follow its body."""
        self.time += 1000
        self.records.append(record(kind, body + struct.pack('=IIQ', pid, tid, self.time), misc))

    def comm(self, pid, tid, name, misc=0):
        """Adds the name of a thread."""
        self.add(COMM, struct.pack('=II', pid, tid) + text(name), pid, tid, misc)

    def fork(self, pid, tid, parent, maker):
        """Adds the begin of a thread."""
        self.add(FORK, struct.pack('=IIIIQ', pid, parent, tid, maker, self.time), parent, maker)

    def map(self, pid, start, size, offset, path):
        """Adds a mapping of code."""
        self.add(MMAP2, struct.pack('=IIQQQIIQQII', pid, pid, start, size, offset, 0, 0, 0, 0,
                                    5, 2) + text(path), pid, pid, USER_MODE)

    def sample(self, pid, tid, *chain):
        """Adds a sample with this callchain."""
        self.time += 1000
        body = struct.pack('=IIQQQ', pid, tid, self.time, PERIOD, len(chain))
        self.records.append(record(SAMPLE, body + struct.pack(f'={len(chain)}Q', *chain), USER_MODE))

    def file(self, name, attributes=attr()):
        """Writes the file as perf record -o FILE does, and returns its path."""
        data, head = b''.join(self.records), 104
        at = head + len(attributes) + 16
        path = os.path.join(TMP, name)
        with open(path, 'wb') as file:
            file.write(b'PERFILE2' + struct.pack('=QQQQQQQQ', head, len(attributes) + 16, head,
                                                 len(attributes) + 16, at, len(data), 0, 0) +
                       b'\0' * 32 + attributes + struct.pack('=QQ', 0, 0) + data)
        return path

    def pipe(self, attributes=attr(), machine=None):
        """Returns the bytes that perf record -o - writes."""
        features = []
        if machine:
            name = text(machine)
            features = [record(FEATURE, struct.pack('=QI', 6, len(name)) + name)]
        return (b'PERFILE2' + struct.pack('=Q', 16) + record(ATTR, attributes) +
                b''.join(features + self.records))


def unwind(path, *args, status=0, **kwargs):
    """Returns {stack: value} of `shstk unwind`, and its messages."""
    out = os.path.join(TMP, 'out.folded')
    if os.path.exists(out):
        os.unlink(out)
    done = run(SHSTK, 'unwind', '-o', out, *args, path, **kwargs)
    check(done.returncode == status, f'{done.returncode}: {done.stderr}')
    if not os.path.exists(out):
        return {}, done.stderr
    with open(out, encoding='utf-8') as file:
        lines = [line.rstrip('\n').rsplit(' ', 1) for line in file]
    return {stack: int(value) for stack, value in lines}, done.stderr


def symbols():
    """Returns {name: address} of the functions of the program, which has a fixed address."""
    out = subprocess.run(['nm', WHOLE], capture_output=True, check=True, text=True).stdout
    return {line.split()[2]: int(line.split()[0], 16) for line in out.split('\n')
            if re.search(r' [tT] ', line)}


def segment():
    """Returns address, size and offset in the file of the code of that program."""
    with open(WHOLE, 'rb') as file:
        data = file.read()
    at, size, number = struct.unpack_from('=Q', data, 32)[0], *struct.unpack_from('=HH', data, 54)
    for i in range(number):
        kind, flags, offset, addr, _, bytes_, _, _ = struct.unpack_from('=IIQQQQQQ', data,
                                                                        at + i * size)
        if kind == 1 and flags & 1:
            page = addr & ~4095
            return page, (addr + bytes_ - page + 4095) & ~4095, offset - (addr - page)
    raise AssertionError('no code')


def some():
    """Returns a recording and the wanted stacks: a process executes a program, forks, and the child
    starts a thread.
    """
    rec, names = Recording(), symbols()
    first, second = sorted(names, key=names.get)[:2]
    a, b = names[first] + 1, names[second] + 2
    rec.comm(100, 100, 'shell')
    rec.sample(100, 100, USER, 0x1000, 0x2000)
    rec.comm(100, 100, 'whole', EXECUTED)
    rec.map(100, *segment(), WHOLE)
    rec.sample(100, 100, USER, a, b)
    rec.sample(100, 100, KERNEL, KERNEL_PC, KERNEL_PC + 16, USER, a, b)
    rec.fork(200, 200, 100, 100)
    rec.sample(200, 200, USER, b, a + 1)
    rec.fork(200, 201, 200, 200)
    rec.comm(200, 201, 'thread')
    rec.sample(200, 201, USER, b, a + 1)
    rec.sample(200, 200, KERNEL, KERNEL_PC)
    wanted = {'shell;[0x2000];[0x1000]': PERIOD, f'whole;{second};{first}': 2 * PERIOD,
              f'whole;{first};{second}': PERIOD, f'thread;{first};{second}': PERIOD}
    return rec, wanted


@test
def chains_alone():
    """each callchain is a stack, by what was mapped then; the kernel's part is left out"""
    rec, wanted = some()
    stacks, said = unwind(rec.file('some.data'))
    check(stacks == wanted, f'{stacks}, not {wanted}: {said}')
    check('5 samples of cpu-clock, 5 stacks complete, 1 of the kernel only' in said, said)
    check('stacks are the callchains that the kernel took' in said, said)


@test
def from_standard_input():
    """- is standard input: a pipe in perf's form for pipes, or a file"""
    rec, wanted = some()
    for data in rec.pipe(), rec.pipe(machine=os.uname().machine):
        done = subprocess.run(['sh', '-c', 'exec "$0" unwind -q --format=folded -o - -', SHSTK],
                              input=data, capture_output=True, timeout=LIMIT, check=False, cwd=TMP)
        check(done.returncode == 0, done.stderr)
        lines = [line.rsplit(' ', 1) for line in done.stdout.decode().rstrip('\n').split('\n')]
        stacks = {stack: int(value) for stack, value in lines}
        check(stacks == wanted, f'{stacks}, not {wanted}')
    with open(rec.file('some.data'), 'rb') as file:
        stacks, said = unwind('-', stdin=file)
    check(stacks == wanted, f'{stacks}, not {wanted}: {said}')


@test
def what_a_pipe_says():
    """a pipe says of which machine it is; one that is not known, or no records: one line"""
    rec, _ = some()
    for data, words in ((rec.pipe(machine='sparc64'), 'recorded on sparc64, which is not supp'),
                        (b'', 'standard input is not a perf.data file'),
                        (b'PERFILE2' + struct.pack('=Q', 16), 'standard input has no events')):
        done = subprocess.run([SHSTK, 'unwind', '-o', 'no.folded', '-'], input=data,
                              capture_output=True, timeout=LIMIT, check=False, cwd=TMP)
        check(done.returncode == 1, f'{done.returncode}: {done.stderr}')
        line = one_line(done.stderr.decode())
        check(words in line, f'{words!r} not in {line!r}')


def is_cut(entries, max_stack):
    """Returns whether a callchain with this number of entries is shown as cut."""
    rec = Recording()
    rec.comm(100, 100, 'deep')
    rec.sample(100, 100, USER, *range(0x1000, 0x1000 + 16 * entries, 16))
    stacks, said = unwind(rec.file('deep.data', attr(max_stack=max_stack)))
    stack, = stacks
    check(stack.count('[0x') == entries, f'{stack}: {said}')
    return '[truncated]' in stack


@test
def cut_callchains():
    """a callchain with as many entries as the kernel takes is cut: 127, if it is not said"""
    for entries, max_stack, cut in ((19, 20, False), (20, 20, True), (126, 0, False),
                                    (127, 0, True), (128, 0, False), (127, 200, False)):
        check(is_cut(entries, max_stack) == cut, f'{entries} of {max_stack}: not {cut}')


@test
def no_stacks():
    """neither copies nor callchains: one line that says how to record"""
    rec = Recording()
    path = rec.file('flat.data', attr(sample_type=SAMPLE_TYPE & ~CALLCHAIN))
    _, said = unwind(path, status=1)
    check(re.search('has no copies of the stack, and no callchains: .*-g', one_line(said)), said)


sys.exit(main())
