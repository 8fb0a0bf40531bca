#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 14's Pythons: what the tests of Python ask of that of this machine is so of them, too.

They are fetched, and run with their own C library. SAMPLES and other variables of the environment are those of these
tests.
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from harness import LIMIT, Skip, equal, main, test    # noqa: E402
from parts import fetched_python    # noqa: E402

MINORS = 14, 15
SKIP = 4    # exit status of a test


def run_test(name, *of_it):
    """Runs a test, or those of its functions, with each Python. Their lines become comments."""
    skipped = []
    for minor in MINORS:
        environment = {**os.environ, 'PYTHON': ' '.join(fetched_python(minor))}
        ended = subprocess.run([sys.executable, os.path.join(FOLDER, name + '_test.py'), *of_it], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                               timeout=2 * LIMIT)
        print(f'# Python 3.{minor}:', *ended.stdout.splitlines(), sep='\n# ')
        if ended.returncode == SKIP:
            skipped.append(ended.stdout.strip().split('\n')[-1])
            continue
        equal(ended.returncode, 0, f'{name} of Python 3.{minor}')
    if len(skipped) == len(MINORS):
        raise Skip(skipped[0])


@test
def offsets():
    """each offset is that of the interpreter"""
    run_test('offsets')


@test
def samples():
    """functions in stacks are those that the program says"""
    run_test('python')


@test
def stopped():
    """functions in a process that is stopped, and in a core file"""
    run_test('trace')


@test
def in_process():
    """functions in stacks that the agent takes"""
    run_test('in_process', 'plain', 'threads', 'subinterpreter')


@test
def allocations():
    """functions that allocate"""
    run_test('allocations', 'right', 'shown', 'lock')


@test
def allocations_of_process():
    """functions that allocate in a process that runs already"""
    run_test('allocations', 'right_of_process')


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
