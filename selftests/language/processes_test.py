#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Python's functions in processes of all kinds: short children, and a program that has Python in it."""

import glob
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, TMP, Skip, check, main, shstk, test    # noqa: E402
from permitted import skip_unless_read    # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3')
FOLDER = os.path.dirname(os.path.abspath(__file__))
CHILDREN, SECONDS = 80, 0.01        # shorter than the time between two looks into the rings
FIRST_NAMESPACE = 'pid:[4026531836]'    # constant in the kernel
PROGRAM = '''
import time
def inner():
    return sum(i * i % 7 for i in range(300))
def outer(end):
    while time.process_time() < end:
        inner()
outer(1.5)
'''


def record(*command):
    """The stacks of a recording, each a list of functions from the outside, with its value."""
    out = os.path.join(TMP, 'out.folded')
    ended = shstk('record', '--freq=999', '-o', out, '--', *command)
    print('#', ended.stderr.strip().replace('\n', '\n# '))
    skip_unless_read(ended.stderr)
    check(os.path.exists(out), ended.stderr)
    with open(out) as file:
        rows = [row.rpartition(' ') for row in file.read().splitlines()]
    return [(stack.split(';'), int(value)) for stack, _, value in rows]


def seconds(stacks, name):
    """The CPU time of the stacks with a function."""
    return sum(value for stack, value in stacks if name in stack) / 1e9


def share(stacks, name):
    """The share by value of the stacks with a function."""
    return 1e9 * seconds(stacks, name) / sum(value for _, value in stacks)


@test
def children():
    """children that end before the recorder hears of them have their functions"""
    if os.readlink('/proc/self/ns/pid') != FIRST_NAMESPACE:
        raise Skip('processes have other numbers in this namespace than in the kernel')
    stacks = record(PYTHON, '-S', os.path.join(FOLDER, 'forks.py'), str(CHILDREN), str(SECONDS))
    # What fork() takes beside that is the machine's affair.
    shown, worked = seconds(stacks, 'in_child'), CHILDREN * SECONDS
    print(f'# {shown:.3f} of {worked:.3f} s')
    check(shown > worked / 2, f'{shown:.3f} of {worked:.3f} s only')


@test
def embedded():
    """a program that loads libpython, under any name"""
    found = sorted(glob.glob('/usr/lib/*/libpython3.1[1-4].so.1.0'))
    if not found:
        raise Skip('no libpython3 is installed')
    stacks = record(os.path.join(HERE, 'embed'), found[-1], '-S', '-c', PROGRAM)
    part = share(stacks, 'inner')
    print(f'# {100 * part:.1f} % of the time')
    check(part > 0.3, f'in {100 * part:.1f} % of the time only')


def programs_at_first(name, script=None):
    """How many BPF programs for perf events the recorder has when the command begins: a shell of that
    name, or a script that env(1) runs by it."""
    shell = os.path.join(TMP, name)
    shutil.copy('/bin/sh', shell)
    out, count = os.path.join(TMP, 'count'), os.path.join(TMP, 'count.sh')
    with open(count, 'w', encoding='utf-8') as file:
        file.write(f'#!/usr/bin/env -S {name} -e\n'
                   f'grep -l "^prog_type:.7$" /proc/$PPID/fdinfo/* | grep -c . >{out} || :\n')
    os.chmod(count, 0o755)
    ended = shstk('record', '-o', os.path.join(TMP, 'out.folded'), '--',
                  *([count] if script else [shell, count]),
                  env={**os.environ, 'PATH': TMP + ':' + os.environ['PATH']})
    skip_unless_read(ended.stderr)
    check(os.path.exists(out), ended.stderr)
    with open(out, encoding='utf-8') as file:
        return int(file.read())


@test
def expected():
    """frames can be read when a command begins that is an interpreter by its name, or a script of one"""
    check(not programs_at_first('other'), 'a program is loaded for no interpreter')
    check(programs_at_first('python3.99'), 'none is loaded for an interpreter')
    check(programs_at_first('python3.98', script=True), 'none is loaded for a script')


def why():
    """Why nothing can be tested, or None."""
    if os.geteuid():
        return 'root only loads BPF programs'
    return None if os.path.exists(PYTHON) else PYTHON + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
