#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk trace -p` of a Python program: the functions and lines where it says that it waits.

The environment may choose the interpreter (PYTHON).
"""

import functools
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TMP, Process, check, main, test    # noqa: E402
from told import await_file, await_reading, read_told, shown, trace    # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3')
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'waiting.py')
THREADS = 5         # of waiting.py that tell


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
