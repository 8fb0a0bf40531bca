#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A recording of Go and of Python: both BPF programs run at its samples, whichever is met first."""

import os
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TOP, os.path.join(TOP, 'go')]
import common    # noqa: E402
from harness import TMP, Skip, check, main, shstk, test    # noqa: E402
from permitted import skip_unless_read    # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3')
MOST = 16           # seconds of the longest recording
BY_PROGRAM = 'which a BPF program copied'
PROGRAM = '''
import sys, time
def inner():
    return sum(i * i % 7 for i in range(300))
def outer(end):
    while time.process_time() < end:
        inner()
outer(float(sys.argv[1]))
'''
# $1: a FIFO, so that the input of the Go program does not end; $2: the Go program; $3: Python;
# $4: its program; $5: seconds.
GO_FIRST = 'mkfifo $1; $2 <>$1 & sleep 1; $3 -S -c "$4" $5; kill $!'
PYTHON_FIRST = 'mkfifo $1; $3 -S -c "$4" $5 & sleep 1; $2 <>$1 & go=$!; wait %1; kill $go'


def record(script, program, seconds):
    """What is said, and the stacks of a recording."""
    fifo, out = os.path.join(TMP, 'fifo'), os.path.join(TMP, 'out.folded')
    for path in fifo, out:
        if os.path.exists(path):
            os.unlink(path)
    ended = shstk('record', '--freq=499', '-o', out, '--', 'sh', '-c', script, 'sh', fifo, program,
                  PYTHON, PROGRAM, str(seconds))
    check(os.path.exists(out), ended.stderr)
    with open(out) as file:
        return ended.stderr, file.read().splitlines()


def judge(script):
    """Records until both are seen: how many samples need a program depends on the machine."""
    found = common.toolchains()
    if not found:
        raise Skip('there is no Go here')
    program, seconds = common.build(*found[0], 'load.go', 'static'), 1
    while True:
        said, stacks = record(script, program, seconds)
        skip_unless_read(said)
        python = any(';outer;inner' in stack for stack in stacks)
        if (BY_PROGRAM in said and python) or seconds >= MOST:
            break
        seconds *= 2
    print('#', said.strip().replace('\n', '\n# '))
    check(python, 'no function of Python is shown')
    check(BY_PROGRAM in said, 'no stack of Go was copied')


@test
def go_first():
    """Python's functions and Go's other stacks, where Go is met first"""
    judge(GO_FIRST)


@test
def python_first():
    """the same where Python is met first"""
    judge(PYTHON_FIRST)


def why():
    """Why nothing can be tested, or None."""
    if os.geteuid():
        return 'root only loads BPF programs'
    return None if os.path.exists(PYTHON) else PYTHON + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
