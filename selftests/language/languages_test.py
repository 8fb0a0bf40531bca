#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of languages (languages.py), of short runs: those whose functions are read have them."""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.dirname(FOLDER)]
from harness import Skip, check, main, test    # noqa: E402
from languages import ROWS, is_installed, record    # noqa: E402
from permitted import skip_unless_read    # noqa: E402

SECONDS = 1


def shares_of(wanted):
    """The shares of the language with that name: whole stacks, functions in order, any of them."""
    _, compiler, command = next(row for row in ROWS if row[0] == wanted)
    if not is_installed(compiler, command):
        raise Skip(f'{wanted} is not installed')
    with tempfile.TemporaryDirectory() as folder:
        shares, said = record(folder, compiler, command, SECONDS)
    print('#', said.replace('\n', '\n# '))
    if 'not permitted' in said:
        raise Skip(said.splitlines()[-1])
    check(shares, said)
    print('# whole, in order, any:', *(f'{share:.1f} %' for share in shares))
    check(shares[0] <= 100 and shares[1] <= shares[2], 'shares are no parts of each other')
    return shares, said


def judge(wanted):
    """Most of the time is in the three functions, in their order."""
    shares, said = shares_of(wanted)
    skip_unless_read(said)
    check(shares[1] > 50, f'the functions are in order in {shares[1]:.1f} %')


@test
def python():
    """functions of Python, the caller outside"""
    judge('python3')


@test
def php():
    """functions of PHP, the caller outside"""
    judge('php')


@test
def node():
    """a program of node is recorded"""
    shares_of('node')


@test
def java():
    """a program of Java is recorded"""
    shares_of('java')


@test
def lua():
    """a program in LuaJIT's interpreter is recorded"""
    shares_of('luajit -joff')


def why():
    """Why nothing can be tested, or None."""
    return 'root only loads BPF programs' if os.geteuid() else None


if __name__ == '__main__':
    sys.exit(main(why))
