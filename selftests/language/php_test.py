#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of PHP programs in stacks: they are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (PHP).
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TMP, Process, check, main, run, test    # noqa: E402
from php_judge import PhpJudge    # noqa: E402
from php_program import write    # noqa: E402
from told import (    # noqa: E402
    await_file, await_reading, read_told, shown as functions_of, trace, trace_shown)
from truth_runs import add_tests    # noqa: E402

PHP = os.environ.get('PHP', '/usr/bin/php')
WAITING = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'waiting.php')
KINDS = 'sort map generator deep magic made'.split()


def command(word):
    """php_program.py's program, which is written to TMP."""
    write(TMP)
    return *PHP.split(), os.path.join(TMP, 'functions.php'), word


add_tests(command, PhpJudge)


def stack_of(kind):
    """Traces waiting.php: what it told, and the functions of its stack."""
    path = os.path.join(TMP, kind)
    with Process([*PHP.split(), WAITING, path, kind], stdin=subprocess.PIPE) as process:
        check(await_file(path, process), 'the program does not wait')
        told = read_told(path)
        await_reading(process.pid, told)
        found = trace_shown(process, told, lambda: trace(process.pid))
        process.kill()
    return told[process.pid], found[process.pid]


@test
def traced():
    """`shstk trace -p` shows the functions and lines where a program says that it waits"""
    for kind in KINDS:
        told, frames = stack_of(kind)
        seen = list(functions_of(frames))
        check(seen[0][0] == 'fread' and seen[1:] == told, f'{kind}: told: {told}\nseen: {seen}')
        check('execute_ex' not in [frame['function'] for frame in frames], f'{kind}: {frames}')


def why():
    """Why nothing can be tested, or None."""
    if not os.path.exists(PHP.split()[0]):
        return PHP + ' is not installed'
    has = run(*PHP.split(), '-r', 'exit(class_exists("FFI") ? 0 : 1);').returncode == 0
    return None if has else PHP + ' has no FFI, by which the program maps a word'


if __name__ == '__main__':
    sys.exit(main(why))
