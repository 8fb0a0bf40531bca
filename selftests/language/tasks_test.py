#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of asyncio's tasks are labels of samples: the program itself says which one runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (PYTHON).
"""

import collections
import functools
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TMP, check, main, test    # noqa: E402
from tasks import NAMES, NONE    # noqa: E402
from truth_runs import SAMPLES, lines_of, record    # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3').split()
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tasks.py')
SECONDS = '60'      # if there are not as many samples before


@functools.cache
def recorded():
    """Pairs of a name that the program says and the label, and how often each was met."""
    word = os.path.join(TMP, 'word')
    with open(word, 'wb') as file:
        file.truncate(4096)
    *stacks, last = lines_of(record('-t', '-n', SAMPLES, '-f', '1999', word, *PYTHON, PROGRAM, word,
                                    SECONDS))
    ret = collections.Counter()
    for line in stacks:
        number, label = line.split('\t')[:2]
        if number != '0':
            ret['' if int(number) == NONE else NAMES[int(number)], label] += 1
    for (name, label), count in sorted(ret.items()):
        print(f'# {count} of "{name}" are "{label}"')
    print('#', last)
    return ret


@test
def right():
    """no sample has the name of another task"""
    wrong = {pair: n for pair, n in recorded().items() if pair[1] and pair[0] != pair[1]}
    check(not wrong, str(wrong))


@test
def named():
    """most samples of tasks that have a name show it"""
    given = {pair: n for pair, n in recorded().items() if pair[0] not in ('', 'eager')}
    shown = sum(n for (_, label), n in given.items() if label)
    check(shown > sum(given.values()) / 2, f'{shown} of {sum(given.values())}')


@test
def all_named():
    """names of each kind are shown: ASCII, Latin, wider, long, changed, and almost the default"""
    shown = {label for _, label in recorded()}
    check(shown >= set(NAMES[1:8]), str(shown))


def why():
    """Why nothing can be tested, or None."""
    return None if os.path.exists(PYTHON[0]) else PYTHON[0] + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
