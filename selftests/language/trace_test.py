#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk trace -p` of a Python program: the functions and lines where it says that it waits.

The environment may choose the interpreter (PYTHON).
"""

import functools
import json
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TMP, Process, Skip, check, main, shstk, test    # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3')
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'waiting.py')
THREADS = 5         # of waiting.py that tell
PATIENCE = 120      # seconds until all threads wait


def await_file(path, process):
    until = time.monotonic() + PATIENCE
    while not os.path.exists(path):
        if process.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def reads(pid, tid):
    """Whether a thread is in read(2), which is number 0 on x86-64."""
    try:
        with open(f'/proc/{pid}/task/{tid}/syscall') as call:
            return call.read().split()[0] == '0'
    except OSError as error:
        raise Skip(f'the system calls of threads cannot be read: {error}') from error


def await_reading(pid, tids):
    """Until all of them wait: what they tell is from just before."""
    until = time.monotonic() + PATIENCE
    while not all(reads(pid, tid) for tid in tids) and time.monotonic() < until:
        time.sleep(0.02)


def read_told(path):
    """By thread ID: (function, line), the innermost first."""
    told = {}
    with open(path) as file:
        for row in file.read().splitlines():
            words = row.split('\t')
            told[int(words[0])] = [tuple(w.rsplit('@', 1)) for w in words[1:]]
    return told


def trace(pid):
    ended = shstk('trace', '--json', '-p', str(pid))
    if ended.returncode == 1 and re.search('no permission to trace|cannot trace process', ended.stderr):
        raise Skip(ended.stderr.strip())
    check(ended.returncode == 0, f'shstk trace ended with {ended.returncode}: {ended.stderr}')
    return json.loads(ended.stdout)


@functools.lru_cache(maxsize=None)
def stacks():
    """Traces waiting.py once for all tests. For each of its threads: what it told, and its stack."""
    path = os.path.join(TMP, 'told')
    with Process([PYTHON, PROGRAM, path]) as process:
        check(await_file(path, process), 'the program does not wait')
        told = read_told(path)
        await_reading(process.pid, told)
        found = {t['tid']: t['frames'] for t in trace(process.pid)['threads']}
        process.kill()
    check(len(told) == THREADS, f'{len(told)} threads told where they wait')
    return [(told[tid], found.get(tid, [])) for tid in told]


def shown(frames):
    """(function, line) of the functions of Python in a stack, the innermost first."""
    for frame in frames:
        if frame['address'] == '0x0':
            yield frame['function'].partition(' (')[0], str(frame['line'])


@test
def told():
    """all functions and lines where threads say that they wait, in order"""
    for frames, stack in stacks():
        seen = list(shown(stack))
        check(seen == frames, f'told: {frames}\nseen: {seen}')


@test
def among_native():
    """they are among the native functions, in place of the interpreter's own"""
    for frames, stack in stacks():
        names = [frame['function'] for frame in stack]
        check('_PyEval_EvalFrameDefault' not in names and any('read' in n for n in names[:4]),
              f'{frames}: {names}')


def why():
    """Why nothing can be tested, or None."""
    return None if os.path.exists(PYTHON) else PYTHON + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
