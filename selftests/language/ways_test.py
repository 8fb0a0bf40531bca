#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python programs of all kinds in stacks: coroutines, generators, greenlets, another
interpreter in the same process. They are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (PYTHON).
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TESTS, TMP, Skip, check, main, run    # noqa: E402
from judge import Judge, PartJudge    # noqa: E402
from truth_runs import Judged    # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3').split()
SECONDS = '3'   # of CPU time, if there are not as many samples before
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'program.py')
ENOUGH = 100    # samples
# What program.py runs; the share of the samples that must show its functions, and the module that it needs.
WAYS = {
    'tasks': ('coroutines in two tasks of asyncio', 0.5, 'asyncio'),
    'generators': ('generators that yield from each other', 0.5, 'sys'),
    # What the kernel takes to give each greenlet its memory, in which no function runs, may be most of the time.
    'greenlets': ('functions that are each in a greenlet of its own', 0, 'greenlet'),
    # Up to 3.13 a thread has the state of the first interpreter while another one runs.
    'subinterpreter': ('functions in another interpreter of the process', None, 'sys'),
}


def judge(way):
    """Records the program. Its judge, and what truth said last."""
    return Judged(lambda word: (*PYTHON, PROGRAM, word, TMP, SECONDS, way),
                  PartJudge if way == 'greenlets' else Judge).judged


def add_test(way, what, shown, module):
    def right():
        if run(*PYTHON, '-c', 'import ' + module).returncode:
            raise Skip(f'{PYTHON[-1]} has no module {module}')
        judged, last = judge(way)
        check(not judged.wrong, '\n'.join(text[:400] for text in judged.wrong[:5]))
        if shown is None:
            return
        check(judged.counts['compared'] > ENOUGH, 'few are compared with what the program says')
        placed, read = (int(word) for word in last.replace(' of', '').split()[1:3])
        check(placed > shown * read, f'{placed} of {read} that were read have their place')

    right.__name__ = way
    right.__doc__ = f'{what}: none has another function, caller or line than the program'
    TESTS.append(right)


for name, of in WAYS.items():
    add_test(name, *of)


def why():
    """Why nothing can be tested, or None."""
    return None if os.path.exists(PYTHON[0]) else PYTHON[0] + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
