#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk trace` of a Python program and of its core file: the functions and lines where it says that
it waits.

The environment may choose the interpreter (PYTHON).
"""

import functools
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TMP, Process, check, main, test    # noqa: E402
from told import (    # noqa: E402
    await_file, await_reading, leave_core, may_leave_core, read_told, shown, trace, trace_by,
    trace_shown, trace_until)

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3').split()
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'waiting.py')
THREADS = 5         # of waiting.py that tell


def trace_living(process, folder):    # pylint: disable=unused-argument
    return trace(process.pid)


def trace_core(process, folder):
    return trace_by('--core', leave_core(process, folder))


@functools.lru_cache(maxsize=None)
def stacks(trace_it):
    """Traces waiting.py once for all tests. For each of its threads: what it told, and its stack."""
    folder = tempfile.mkdtemp(dir=TMP)
    path = os.path.join(folder, 'told')
    with Process([*PYTHON, PROGRAM, path], cwd=folder, preexec_fn=may_leave_core) as process:
        check(await_file(path, process), 'the program does not wait')
        told = read_told(path)
        await_reading(process.pid, told)
        found = trace_shown(process, told, lambda: trace_it(process, folder))
        process.kill()
    check(len(told) == THREADS, f'{len(told)} threads told where they wait')
    return [(told[tid], found.get(tid, [])) for tid in told]


def check_told(trace_it):
    for frames, stack in stacks(trace_it):
        seen = list(shown(stack))
        check(seen == frames, f'told: {frames}\nseen: {seen}')


def check_among_native(trace_it):
    for frames, stack in stacks(trace_it):
        names = [frame['function'] for frame in stack]
        check('_PyEval_EvalFrameDefault' not in names and any('read' in n for n in names[:4]),
              f'{frames}: {names}')


@test
def told():
    """all functions and lines where threads say that they wait, in order"""
    check_told(trace_living)


@test
def among_native():
    """they are among the native functions, in place of the interpreter's own"""
    check_among_native(trace_living)


@test
def told_in_core():
    """all of them in the core file that the program leaves, in order"""
    check_told(trace_core)


@test
def among_native_in_core():
    """they are among the native functions there, too"""
    check_among_native(trace_core)


DEEP = """
import os, sys
sys.setrecursionlimit(10 ** 6)
def down(n):
    if n:
        down(n - 1)
    else:
        open(sys.argv[1], "w").close()
        os.read(0, 1)
def outer(n):
    down(n)
outer(int(sys.argv[2]))
"""


def deep_stack(trace_it, depth):
    """What is shown of a recursion of so many calls: (function, how often), the innermost first."""
    folder = tempfile.mkdtemp(dir=TMP)
    path = os.path.join(folder, 'waits')
    with Process([*PYTHON, '-c', DEEP, path, str(depth)], cwd=folder, stdin=subprocess.PIPE,
                 preexec_fn=may_leave_core) as process:
        check(await_file(path, process), 'the program does not wait')
        await_reading(process.pid, [process.pid])
        frames = trace_shown(process, [process.pid], lambda: trace_it(process, folder))[process.pid]
        process.kill()
    return [(frame['function'].partition(' (')[0], frame.get('times', 1))
            for frame in frames if frame['address'] == '0x0']


def check_too_deep(trace_it):
    """Nothing is shown of a recursion of more functions than are read, and that is said."""
    folder = tempfile.mkdtemp(dir=TMP)
    path = os.path.join(folder, 'waits')
    with Process([*PYTHON, '-c', DEEP, path, '9000'], cwd=folder, stdin=subprocess.PIPE,
                 preexec_fn=may_leave_core) as process:
        check(await_file(path, process), 'the program does not wait')
        await_reading(process.pid, [process.pid])
        thread, = trace_until(lambda threads: threads[0]['too_deep'], process,
                              lambda: trace_it(process, folder))
        process.kill()
    check(thread['too_deep'], 'it is not said')
    check('down' not in str(thread['frames']), f'{thread["frames"][-3:]}')


def check_both_ends(trace_it):
    shown_twice = deep_stack(trace_it, 1500)
    check(shown_twice[-2:] == [('outer', 1), ('<module>', 1)], f'{shown_twice[-3:]}')
    check(shown_twice[:-2] == 1501 * [('down', 1)], f'{len(shown_twice)}: {shown_twice[:3]}')
    shown_once = deep_stack(trace_it, 6000)
    check(shown_once[-2:] == [('outer', 1), ('<module>', 1)], f'{shown_once[-3:]}')
    check(sum(times for name, times in shown_once if name == 'down') == 6001 and len(shown_once) < 100,
          f'{len(shown_once)}: {shown_once[:5]}')


@test
def deep_recursion():
    """a recursion of 1,500 calls is whole, and one of 6,000 has both ends"""
    check_both_ends(trace_living)


@test
def deep_recursion_in_core():
    """and in core files"""
    check_both_ends(trace_core)


@test
def deeper_recursion_is_told():
    """one of 9,000 calls is more than is read, which is said, of a process and of a core file"""
    check_too_deep(trace_living)
    check_too_deep(trace_core)


def why():
    """Why nothing can be tested, or None."""
    return None if os.path.exists(PYTHON[0]) else PYTHON[0] + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
