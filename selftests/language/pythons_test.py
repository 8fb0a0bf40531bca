#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 14's Pythons: what the tests of Python ask of that of this machine is so of them, too.

They are fetched, and run with their own C library. SAMPLES and other variables of the environment are those of these
tests.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from harness import HERE, LIMIT, TMP, Skip, check, equal, main, shstk, test    # noqa: E402
from parts import fetched_python    # noqa: E402

MINORS = 14, 15
SKIP = 4    # exit status of a test


def run_with(python, what, name, *of_it):
    """Runs a test, or those of its functions, with a Python. Its lines become comments. Returns why it was skipped."""
    ended = subprocess.run([sys.executable, os.path.join(FOLDER, name + '_test.py'), *of_it],
                           env={**os.environ, 'PYTHON': ' '.join(python)}, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False, timeout=2 * LIMIT)
    lines = ended.stdout.splitlines()
    print(f'# {what}:', *lines, sep='\n# ')
    check('1..0' not in lines, f'{name} has none of the tests {of_it}')
    if ended.returncode == SKIP:
        return lines[-1].rpartition('# SKIP ')[2]
    equal(ended.returncode, 0, f'{name} of {what}')
    return None


def skip_if_all(reasons):
    """Skips the test if each part of it was skipped. reasons: why, or None."""
    if all(reasons):
        raise Skip(reasons[0])


def run_test(*test_of):
    """The same with each Python."""
    skip_if_all([run_with(fetched_python(minor), f'Python 3.{minor}', *test_of) for minor in MINORS])


def run_with_library(*test_of):
    """The same with a program that has the library of 3.15, in which the state of threads is found in another way."""
    python = fetched_python(15, os.path.join(HERE, 'embed'))
    skip_if_all([run_with(python, 'libpython3.15', *test_of)])


@test
def offsets():
    """each offset is that of the interpreter"""
    run_test('offsets')


@test
def samples():
    """functions in stacks are those that the program says"""
    run_test('python')


@test
def ways():
    """the same of coroutines, generators and another interpreter"""
    run_test('ways')


@test
def samples_of_library():
    """functions in stacks of a program that has the library of 3.15"""
    run_with_library('python')


@test
def library_stopped():
    """functions in such a program that is stopped, and in its core file"""
    run_with_library('trace', 'told', 'told_in_core')


@test
def library_in_process():
    """functions in stacks that the agent takes in it"""
    run_with_library('in_process', 'plain')


@test
def allocations_of_library():
    """functions that allocate in it"""
    run_with_library('allocations', 'right', 'shown')


@test
def thread_without_state():
    """allocations of threads that are none of Python's do not ask the kernel about memory again and again"""
    python = fetched_python(15, os.path.join(HERE, 'stateless'))
    ended = shstk('record', '--heap', '-o', os.path.join(TMP, 'stateless.pb.gz'), '--', *python)
    equal(ended.returncode, 0, ended.stderr)
    found = re.search(r'(\d+) copies for (\d+) blocks', ended.stdout)
    if not found:
        raise Skip(ended.stdout.strip())
    copies, blocks = map(int, found.groups())
    # One looks whether the variable is there.
    check(0 < copies < blocks / 100, f'{copies} copies for {blocks} blocks')


@test
def stopped():
    """functions in a process that is stopped, and in a core file"""
    run_test('trace')


@test
def in_process():
    """functions in stacks that the agent takes"""
    run_test('in_process', 'plain', 'threads', 'subinterpreter', 'deep_recursion')


@test
def allocations():
    """functions that allocate"""
    run_test('allocations', 'right', 'shown', 'lock', 'deep_recursion')


@test
def allocations_of_process():
    """functions that allocate in a process that runs already"""
    run_test('allocations', 'right_of_process', 'shown_of_process')


@test
def tasks():
    """the tasks that run"""
    run_test('tasks')


@test
def tree():
    """the tasks that wait"""
    run_test('tree', 'told_by_python', 'told_in_core', 'changing')


if __name__ == '__main__':
    sys.exit(main())
