#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of JavaScript programs in stacks: they are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (NODE).
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, TMP, main, run    # noqa: E402
from node_judge import NodeJudge    # noqa: E402
from node_program import write    # noqa: E402
from truth_runs import add_tests    # noqa: E402

NODE = os.environ.get('NODE', '/usr/bin/node')
KNOWN = '10.2.', '11.3.'    # versions of V8 that are known


def command(word):
    """node_program.py's program, which is written to TMP."""
    write(TMP)
    os.environ['WORD'] = word
    return *NODE.split(), os.path.join(TMP, 'functions.js'), os.path.join(HERE, 'word.node')


add_tests(command, NodeJudge)


def why():
    """Why nothing can be tested, or None."""
    if not os.path.exists(NODE.split()[0]):
        return NODE + ' is not installed'
    version = run(*NODE.split(), '-p', 'process.versions.v8').stdout.strip()
    return None if version.startswith(KNOWN) else f'V8 {version or "of this program"} is not known'


if __name__ == '__main__':
    sys.exit(main(why))
