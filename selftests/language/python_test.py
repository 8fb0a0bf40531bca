#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python programs in stacks: they are what the program itself says that runs.

    python_test.py [SAMPLES [PYTHON]]
"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
from judge import Judge  # noqa: E402

SAMPLES = sys.argv[1] if len(sys.argv) > 1 else '1500'
PYTHON = sys.argv[2:] or ['/usr/bin/python3']
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


def run(folder):
    program = os.path.join(HERE, 'program.py')
    word = os.path.join(folder, 'word')
    run = subprocess.run([os.path.join(HERE, 'truth'), '-n', SAMPLES, '-f', '1999', word,
                          *PYTHON, program, word, folder, '1000'],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode == SKIP:
        skip(run.stdout.strip())
    print('#', run.stderr.strip() or 'no complaints')
    return run


def main():
    print('TAP version 13')
    if not os.path.exists(PYTHON[0]):
        skip(PYTHON[0] + ' is not installed')
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        ended = run(folder)
        lines = ended.stdout.splitlines()
        point(ended.returncode == 0 and lines, 'samples are taken')
        if failed:
            print('1..1')
            sys.exit(1)
        judge = Judge(folder)
        for line in lines[:-1]:
            judge.take(line)
    for key, value in sorted(judge.counts.items()):
        print(f'# {key}: {value}')
    print('#', lines[-1])
    for text in judge.wrong[:5]:
        print('#', text[:400])
    placed, read = (int(w) for w in lines[-1].replace(' of', '').split()[1:3])
    point(judge.counts['stacks'] > 0, 'functions of the program are in stacks')
    point(judge.counts['compared'] > 0, 'some are compared with what the program says')
    point(not judge.wrong, 'none has another function, caller or line than the program')
    point(placed > read / 2, 'most frames that are read have their place')
    print(f'1..{points}')
    sys.exit(failed)


main()
