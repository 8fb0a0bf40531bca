#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the agent on arm64, under qemu-aarch64's user-mode emulation.

`shstk record` itself cannot run there (this machine has no arm64 libdw), so this program stands in
for the recorder: it makes the shared memory of tools/inject/agent/ring.h, starts the target, and
reads the rings when the target has ended. Prints KTAP.
"""

import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, main, test  # noqa: E402

CACHE = os.environ.get('SHSTK_CACHE') or os.path.expanduser('~/.cache/shstk')
AGENT = os.path.join(HERE, 'arm64', 'libshstk-agent.so')
TARGET = os.path.join(HERE, 'arm64', 'target')
PUBLISH = os.path.join(HERE, 'arm64', 'publish')
ROOT = '/usr/aarch64-linux-gnu'
PERIOD = 1001001            # ns
SLOTS, RING, DEPTH = 64, 262144, 256
SLOTS_AT, RINGS_AT = 65536, 131072
SLOT_SIZE = 192
VERSION = 10                # of the layout; the agent accepts no other
IN_TIME = 100               # periods: the emulator's ticks are not the kernel's
MAPS, SAMPLE = 3, 4
TRUTH = 99          # the target's descriptor for what its functions used


def emulator():
    """Returns the path of qemu-aarch64, or None."""
    for path in (os.path.join(CACHE, 'user', 'qemu-aarch64'),
                 shutil.which('qemu-aarch64'),
                 shutil.which('qemu-aarch64-static')):
        if path and os.path.exists(path):
            return path
    return None


class Recording:
    """One run of the target: exit status, text of the maps, samples by thread, and what its
    functions used. With labels, they are (innermost address, labels) of each sample.
    """

    def __init__(self, *args, program=TARGET, labels=False):
        self.program = program
        self.labels = []
        truth = os.memfd_create('truth')
        os.dup2(truth, TRUTH)
        size = RINGS_AT + SLOTS * RING
        file = os.memfd_create('shstk-record', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, size)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        cookie = int.from_bytes(os.urandom(8), 'little')
        os.pwrite(file, struct.pack(
            '<QIIIIIII4xQQQQIII', 0x306b747368736873, VERSION, SLOTS, RING, DEPTH, 0, 0,
            os.getpid(), cookie, PERIOD, SLOTS_AT, RINGS_AT, labels, IN_TIME, 0), 0)
        where = f'/proc/{os.getpid()}/fd/{file} {cookie:x}'
        self.status = subprocess.run(
            [emulator(), '-L', ROOT, '-E', 'LD_PRELOAD=' + AGENT,
             '-E', 'SHSTK_RECORD=' + where, program, *args], input=b'\n\n',
            stdout=subprocess.DEVNULL, timeout=400, check=False, pass_fds=(TRUTH,)).returncode
        self.truth = {}
        for line in os.pread(truth, 1 << 20, 0).decode().splitlines():
            function, used = line.split()
            self.truth[function] = self.truth.get(function, 0) + float(used)
        os.close(truth)
        self.memory = os.pread(file, size, 0)
        os.close(file)
        self.maps = ''
        self.threads = {}
        for slot in range(SLOTS):
            self.read_slot(slot)
        assert self.maps, 'the agent did not enter: is VERSION that of ring.h?'

    def read_slot(self, slot):
        """Reads all records of one ring; no thread may have filled its ring."""
        at = SLOTS_AT + slot * SLOT_SIZE
        owner, _, tid = struct.unpack_from('<QII', self.memory, at)
        head, _, lost = struct.unpack_from('<QQQ', self.memory, at + 64)
        assert head <= RING and not lost, f'ring {slot}: {head} bytes, {lost} lost'
        if not owner:
            return
        ring = RINGS_AT + slot * RING
        place, end = ring, ring + head
        while place < end:
            size, kind = struct.unpack_from('<IH', self.memory, place)
            if kind == MAPS:
                length, = struct.unpack_from('<I', self.memory, place + 8)
                self.maps += self.memory[place + 24:place + 24 + length].decode()
            elif kind == SAMPLE:
                _, weight, number, how = struct.unpack_from(
                    '<QQIH', self.memory, place + 8)
                pcs = struct.unpack_from(f'<{number}Q', self.memory, place + 56)
                self.threads.setdefault(tid, []).append((weight, how, pcs))
                self.read_labels(place, pcs)
            place += size

    def read_labels(self, place, pcs):
        """Reads the labels of a sample, whose entries have a byte of marks each behind them."""
        length, = struct.unpack_from('<I', self.memory, place + 40)
        if pcs:
            at = place + 56 + 9 * len(pcs)
            words = self.memory[at:at + length].decode().split('\0')[:-1]
            self.labels.append((pcs[0], dict(zip(words[::2], words[1::2]))))

    def base(self):
        """Returns the address at which the target's file is mapped."""
        name = os.path.basename(self.program)
        for line in self.maps.split('\n'):
            found = re.match(rf'([0-9a-f]+)-\S+ \S+ ([0-9a-f]+) .*/{name}$', line)
            if found:
                return int(found[1], 16) - int(found[2], 16)
        raise AssertionError(f'the target is not in the maps: {self.maps}')

    def samples(self):
        """Returns the samples of all threads."""
        return [s for thread in self.threads.values() for s in thread]

    def place(self, function):
        """Returns where a function of the target begins and ends."""
        text = subprocess.run(['readelf', '-sW', self.program], text=True, check=True,
                              capture_output=True).stdout
        found = re.search(r':\s+([0-9a-f]+)\s+(\d+) FUNC.* ' + function + '\n',
                          text)
        start = int(found[1], 16) + self.base()
        return start, start + int(found[2])

    def seconds(self, function):
        """Returns the CPU time of the samples that have a function of the target, in seconds."""
        start, end = self.place(function)
        return sum(weight for weight, _, pcs in self.samples()
                   if any(start < pc <= end or pc == start for pc in pcs)) / 1e9


def complete(recording):
    """Checks that every stack reaches the first frame."""
    bad = [s for s in recording.samples() if s[1]]
    assert recording.samples() and not bad, f'{len(bad)} incomplete: {bad[:3]}'


@test
def share():
    """CPU time and share of two functions; every stack is complete"""
    run = Recording('share', '1')
    assert run.status == 0, f'status {run.status}'
    complete(run)
    got = [run.seconds(f) for f in ('work_seventy', 'work_thirty')]
    used = [run.truth[f] for f in ('work_seventy', 'work_thirty')]
    assert abs(sum(got) - sum(used)) < 0.1, f'{got}, not {used} s'
    # Five standard deviations for this number of samples, if they were random.
    share = used[0] / sum(used)
    slack = 5 * (share * (1 - share) / len(run.samples())) ** 0.5
    assert abs(got[0] / sum(got) - share) < slack, f'{got}, not {used} s'


@test
def threads():
    """six threads, each in a ring of its own"""
    run = Recording('threads', '6', '6', '0.2')
    assert run.status == 0, f'status {run.status}'
    complete(run)
    assert len(run.threads) == 7, f'{len(run.threads)} threads'
    got, used = run.seconds('thread_work'), run.truth['thread_work']
    assert abs(got - used) < 0.2, f'{got}, not {used} s'


@test
def trace_contexts():
    """samples have the trace's ids under which their function runs (selftests/context/publish.c)"""
    run = Recording('valid', '200000', program=PUBLISH, labels=True)
    assert run.status == 0, f'status {run.status}'
    places = [run.place(f'work_{n}') for n in range(8)]
    found = [(n, labels) for pc, labels in run.labels for n, (start, end) in enumerate(places)
             if start <= pc < end]
    wrong = [one for one in found
             if set(one[1]) != {'trace_id', 'span_id'} or int(one[1]['trace_id'][:16], 16) % 8 != one[0]]
    print(f'# {len(found)} samples in the functions, {len(wrong)} wrong')
    assert found and not wrong, f'{len(found)}: {wrong[:3]}'


def missing():
    """Returns why nothing can be run here, or None."""
    if emulator() and os.path.isdir(ROOT):
        return None
    return 'no qemu-aarch64 or no arm64 libc'


sys.exit(main(missing))
