#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of JavaScript programs in stacks: they are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (NODE).
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, TMP, main    # noqa: E402
from node_judge import NodeJudge    # noqa: E402
import node_program    # noqa: E402
from truth_runs import add_tests    # noqa: E402

add_tests(node_program.command(TMP, HERE), NodeJudge)

if __name__ == '__main__':
    sys.exit(main(node_program.why_not))
