#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python programs in stacks: they are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (PYTHON).
"""

import functools
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, TMP, Skip, check, main, run, test    # noqa: E402
from judge import Judge    # noqa: E402

SAMPLES = os.environ.get('SAMPLES', '1500')
PYTHON = os.environ.get('PYTHON', '/usr/bin/python3')
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'program.py')
SKIP = 4        # exit status of truth


@functools.lru_cache(maxsize=None)
def record():
    """Records program.py, once for all tests: how truth ended."""
    word = os.path.join(TMP, 'word')
    ended = run(os.path.join(HERE, 'truth'), '-n', SAMPLES, '-f', '1999', word,
                PYTHON, PROGRAM, word, TMP, '1000', timeout=None)
    print('#', ended.stderr.strip() or 'no complaints')
    return ended


@functools.lru_cache(maxsize=None)
def judge():
    """Judges the stacks, once for all tests: the judge, and the last line of truth."""
    ended = record()
    if ended.returncode == SKIP:
        raise Skip(ended.stdout.strip())
    lines = ended.stdout.splitlines()
    check(ended.returncode == 0 and lines, 'no samples are taken')
    ret = Judge(TMP)
    for line in lines[:-1]:
        ret.take(line)
    for key, value in sorted(ret.counts.items()):
        print(f'# {key}: {value}')
    print('#', lines[-1])
    return ret, lines[-1]


@test
def shown():
    """functions of the program are in stacks"""
    check(judge()[0].counts['stacks'] > 0, 'none is')


@test
def compared():
    """some are compared with what the program says"""
    check(judge()[0].counts['compared'] > 0, 'none is')


@test
def right():
    """none has another function, caller or line than the program"""
    wrong = judge()[0].wrong
    check(not wrong, '\n'.join(text[:400] for text in wrong[:5]))


@test
def placed():
    """most frames that are read have their place"""
    has_place, read = (int(w) for w in judge()[1].replace(' of', '').split()[1:3])
    check(has_place > read / 2, f'{has_place} of {read}')


def why():
    """Why nothing can be tested, or None."""
    return None if os.path.exists(PYTHON) else PYTHON + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
