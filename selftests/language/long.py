#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in languages that are recorded for long, on a machine that is busy besides.

The environment may say how many seconds that is (SECONDS, 1800), and how many processes do nothing but
work beside (LOAD, as many as there are CPUs). Languages that are not installed are left out. Memory is
flat if none of the processes takes more in the last third of the time than in the one before, but for
some room.
"""

import glob
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (SHSTK, TESTS, TMP, Process, check, equal, name_of, run_tests, stack_lines,    # noqa: E402
                     test)
from languages import ROWS, is_installed, write_sources    # noqa: E402

SECONDS = float(os.environ.get('SECONDS', '1800'))
LOAD = int(os.environ.get('LOAD', os.cpu_count()))
LOOKS = 60      # at memory and CPU time
NAMES = 'python3', 'php', 'ruby', 'node', 'java'    # rows of languages.py
FUNCTIONS = re.compile(r'(^|[^A-Za-z])(outer|middle|inner|\(anonymous\)|\(machine code\))(?![a-z])')
ROOM = 0.05, 8 << 20    # by which memory may grow: a part of it, or so many bytes
TICK = os.sysconf('SC_CLK_TCK')


def bytes_of(pid):
    """Memory of a process that is in use."""
    with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as file:
        return int(re.search(r'^VmRSS:\s+(\d+) kB', file.read(), re.M)[1]) << 10


def seconds_of(pid):
    """CPU time of a process."""
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
        fields = file.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Watched:
    """A process, and what was seen of it at each look."""

    def __init__(self, name, process):
        self.name, self.process = name, process
        self.bytes, self.seconds = [], []

    def look(self):
        status = self.process.poll()
        check(status is None, f'{self.name} ended with status {status}')
        self.bytes.append(bytes_of(self.process.pid))
        self.seconds.append(seconds_of(self.process.pid))

    def thirds(self, values):
        """The highest value of each third of the time."""
        third = len(values) // 3
        return [max(values[i * third:(i + 1) * third]) for i in range(3)]


def start(command):
    # What they print is for nobody.
    return Process(command, cwd=TMP, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def start_programs():
    write_sources(TMP)
    for name, compiler, command in ROWS:
        if name not in NAMES or not is_installed(compiler, command):
            continue
        if compiler:
            subprocess.run(compiler.split(), cwd=TMP, check=True)
        yield Watched(name, start([*command.split(), '1e9']))


class Long:
    """All that runs, until all looks were taken."""

    def __init__(self):
        busy = [start(['sh', '-c', 'while :; do :; done']) for _ in range(LOAD)]
        self.programs = list(start_programs())
        pids = ','.join(str(p.process.pid) for p in self.programs)
        out = os.path.join(TMP, 'long.folded')
        with open(out + '.said', 'w', encoding='utf-8') as said:
            recorder = Process([SHSTK, 'record', '-F', '499', f'--every={SECONDS * 1000 // LOOKS:.0f}ms', '-o', out, '-p', pids],
                               stderr=said)
        self.recorder = Watched('the recorder', recorder)
        for _ in range(LOOKS):
            time.sleep(SECONDS / LOOKS)
            for watched in (*self.programs, self.recorder):
                watched.look()
        recorder.send_signal(signal.SIGINT)
        self.status = recorder.wait()
        with open(out + '.said', encoding='utf-8') as said:
            self.said = said.read()
        for process in (*busy, *(p.process for p in self.programs)):
            process.kill()
            process.wait()
        self.files = glob.glob(os.path.join(TMP, 'long-*.folded'))


RUNS = []


def run_long():
    """The run, which is the same for all tests."""
    if not RUNS:
        RUNS.append(Long())
    return RUNS[0]


@test
def goes_on():
    """neither the programs nor the recorder end or stop"""
    it = run_long()
    equal(it.status, 0, f'{it.said}\nstatus of the recorder')
    for program in it.programs:
        _, second, third = program.thirds(program.seconds)
        print(f'# {program.name}: {program.seconds[-1]:.1f} s of CPU time')
        check(third > second, f'{program.name} has no CPU time any more')
    print(f'# the recorder: {it.recorder.seconds[-1]:.1f} s of CPU time')
    print('# ...', *it.said.splitlines()[-5:], sep='\n# ')


@test
def shows():
    """functions of each program are shown"""
    it = run_long()
    samples, shown = {}, {}
    for path in it.files:
        with open(path, encoding='utf-8', errors='replace') as file:
            for stack, value in stack_lines(file.read()):
                name = stack.partition(';')[0]
                samples[name] = samples.get(name, 0) + value
                shown[name] = shown.get(name, 0) + value * bool(FUNCTIONS.search(stack))
    for program in it.programs:
        part = 100 * shown.get(program.name, 0) / max(samples.get(program.name, 0), 1)
        print(f'# {program.name}: {part:.1f} % of its time in stacks with its functions')
    for program in it.programs:
        check(shown.get(program.name), f'none of {program.name}: {sorted(samples)}')


@test
def flat():
    """the memory of the programs and of the recorder is flat"""
    it = run_long()
    for watched in (*it.programs, it.recorder):
        _, second, third = watched.thirds(watched.bytes)
        print(f'# {watched.name}: MiB {", ".join(f"{b / (1 << 20):.1f}" for b in watched.thirds(watched.bytes))}')
        check(third <= second + max(ROOM[0] * second, ROOM[1]), f'{watched.name}: {watched.bytes}')


if __name__ == '__main__':
    sys.exit(run_tests([(name_of(t), t) for t in TESTS], 2 * SECONDS + 500))
