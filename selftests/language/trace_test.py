#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk trace -p` of a Python program: the functions and lines where it says that it waits.

    trace_test.py [PYTHON...]
"""

import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
PYTHON = sys.argv[1:] or ['/usr/bin/python3']
PROGRAM = os.path.join(HERE, 'waiting.py')
PATIENCE = 120      # seconds until all threads wait
SKIP = 4

points = 0
failed = False


def point(good, name):
    global points, failed
    points += 1
    failed |= not good
    print('ok' if good else 'not ok', points, name)


def skip(why):
    print('1..0 # SKIP', why)
    sys.exit(SKIP)


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
        skip(f'the system calls of threads cannot be read: {error}')


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
    run = subprocess.run([os.path.join(HERE, 'shstk'), 'trace', '--json', '-p', str(pid)],
                         capture_output=True, text=True)
    if run.returncode:
        skip('the process cannot be traced: ' + run.stderr.strip())
    return json.loads(run.stdout)


def shown(thread):
    """(function, line) of a thread's functions of Python, the innermost first."""
    for frame in thread['frames']:
        if frame['address'] == '0x0':
            yield frame['function'].partition(' (')[0], str(frame['line'])


def judge(threads, told):
    found = {t['tid']: t for t in threads}
    for tid, frames in told.items():
        seen = list(shown(found[tid])) if tid in found else []
        name = frames[1][0] if len(frames) > 1 else '?'
        if seen != frames:
            print('#', 'told:', frames)
            print('#', 'seen:', seen)
        point(seen == frames, f'a thread that waits in {name}: all functions and lines, in order')
        names = [f['function'] for f in found[tid]['frames']] if tid in found else []
        point('_PyEval_EvalFrameDefault' not in names and any('read' in n for n in names[:4]),
              f'a thread that waits in {name}: they are among the native functions')


def main():
    print('TAP version 13')
    if not os.path.exists(PYTHON[0]):
        skip(PYTHON[0] + ' is not installed')
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'told')
        process = subprocess.Popen([*PYTHON, PROGRAM, path])
        try:
            if not await_file(path, process):
                point(False, 'the program waits')
                return
            told = read_told(path)
            await_reading(process.pid, told)
            judge(trace(process.pid)['threads'], told)
        finally:
            process.kill()
            process.wait()
    print(f'1..{points}')


main()
sys.exit(failed)
