#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python programs in stacks: they are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (PYTHON).
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TMP, main    # noqa: E402
from judge import Judge    # noqa: E402
from truth_runs import add_tests    # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3').split()
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'program.py')


def command(word):
    """program.py, which writes its functions to TMP."""
    return *PYTHON, PROGRAM, word, TMP, '1000'


add_tests(command, Judge)


def why():
    """Why nothing can be tested, or None."""
    return None if os.path.exists(PYTHON[0]) else PYTHON[0] + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
