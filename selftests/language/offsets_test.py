#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The offsets in Python's objects are those that tools/language/python/versions.c has.

The environment may choose the interpreter, of any machine: PYTHON="qemu-aarch64 -L FOLDER FOLDER/usr/bin/python3.14".
"""

import json
import os
import re
import shlex
import shutil
import sys

sys.dont_write_bytecode = True
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from harness import TOP, Skip, check, main, run, test    # noqa: E402

PYTHON = shlex.split(os.environ.get('PYTHON', '/usr/bin/python3'))
SOURCES = os.path.join(TOP, 'tools/language/python')
NUMBER = re.compile(r'\.(\w+) = (\d+(?: \+ \d+)?)')
# What is compared for each version; what only some have is compared there.
LEAST = ('state_thread', 'state_frames', 'state_top', 'previous', 'code', 'locals', 'owner', 'instruction',
         'first_line', 'instructions', 'first_traceable', 'ascii', 'wide', 'generator_frame', 'task_coroutine',
         'finalizing', 'PYTHON_FILENAME', 'PYTHON_QUALNAME', 'PYTHON_BYTES')


def sum_of(text, names):
    """The value of a sum of numbers and names, as C has it."""
    return sum(names[word] if word in names else int(word, 0) for word in text.strip(' ()').split(' + '))


def common():
    """The offsets that all versions have, by name."""
    with open(os.path.join(SOURCES, 'versions.h')) as file:
        return {name: sum_of(value, {})
                for name, value in re.findall(r'^#define (PYTHON_\w+) ([(0-9][^/\n"]*)', file.read(), re.M)}


def values_of(minor):
    """The offsets of a version by name, or None."""
    with open(os.path.join(SOURCES, 'versions.c')) as file:
        tables = re.split(r'\n\t\{\n|\n\t\}, \{\n', file.read())
    table = next((table for table in tables if f'.minor = {minor},' in table), None)
    if table is None:
        return None
    head, _, checks = table.partition('.checks = ')
    names = common()
    ret = names | {name: sum_of(value, {}) for name, value in NUMBER.findall(head)}
    for numbers in re.findall(r'\.waits = \{ (\d+), (\d+) \}', head):
        ret['waits'] = [int(number) for number in numbers]
    ret['checks'] = [(int(word), sum_of(value, names), name)
                     for word, value, name in re.findall(r'\{ (\d+), (\w+), "(.*)" \}', checks)]
    return ret


def lines_of(minor, **changes):
    """What Python 3.@minor says of its offsets, with some others than the table has."""
    ended = run(*PYTHON, '-B', os.path.join(FOLDER, 'offsets.py'), json.dumps(values_of(minor) | changes))
    check(ended.returncode == 0, ended.stderr)
    return ended.stdout.splitlines()


def version():
    """The minor version of the interpreter."""
    ended = run(*PYTHON, '-c', 'import sys, sysconfig; '
                'print(sys.version_info[1], sysconfig.get_config_var("Py_GIL_DISABLED") or 0, sys.version)')
    check(ended.returncode == 0, ended.stderr)
    print('#', ended.stdout.strip())
    minor, free_threaded = map(int, ended.stdout.split()[:2])
    if values_of(minor) is None or free_threaded:
        raise Skip(f'Python 3.{minor}{"t" * free_threaded} is not known')
    return minor


@test
def same():
    """each offset is that of the interpreter"""
    lines = lines_of(version())
    print(*(f'# {line}' for line in lines), sep='\n')
    wrong = [line for line in lines if not line.startswith('ok ')]
    check(not wrong, wrong)
    compared = {line[3:] for line in lines}
    check(compared.issuperset(LEAST), sorted(set(LEAST) - compared))
    check(compared & {'key', 'the function that returns the state'}, 'where the state is was not compared')


@test
def told():
    """one that is not is told"""
    minor = version()
    lines = lines_of(minor, first_line=values_of(minor)['first_line'] + 4)
    check([line for line in lines if line.startswith('wrong first_line: ')], lines)


def why():
    """Why nothing can be tested, or None."""
    return None if shutil.which(PYTHON[0]) else PYTHON[0] + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
