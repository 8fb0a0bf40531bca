#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of PHP programs in stacks: they are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (PHP).
"""

import functools
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, TMP, Process, Skip, check, main, run, test    # noqa: E402
from php_judge import PhpJudge    # noqa: E402
from php_program import write    # noqa: E402
from told import await_file, await_reading, read_told, shown as functions_of, trace    # noqa: E402

SAMPLES = os.environ.get('SAMPLES', '1500')
PHP = os.environ.get('PHP', '/usr/bin/php')
WAITING = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'waiting.php')
KINDS = 'sort map generator deep magic made'.split()
SKIP = 4        # exit status of truth


@functools.lru_cache(maxsize=None)
def record():
    """Records the program, once for all tests: how truth ended."""
    word = os.path.join(TMP, 'word')
    with open(word, 'wb') as file:
        file.truncate(4096)
    write(TMP)
    ended = run(os.path.join(HERE, 'truth'), '-n', SAMPLES, '-f', '1999', word,
                *PHP.split(), os.path.join(TMP, 'functions.php'), word, timeout=None)
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
    ret = PhpJudge(TMP)
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


def stack_of(kind):
    """Traces waiting.php: what it told, and the functions of its stack."""
    path = os.path.join(TMP, kind)
    with Process([*PHP.split(), WAITING, path, kind], stdin=subprocess.PIPE) as process:
        check(await_file(path, process), 'the program does not wait')
        told = read_told(path)
        await_reading(process.pid, told)
        frames = trace(process.pid)['threads'][0]['frames']
        process.kill()
    return told[process.pid], frames


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
