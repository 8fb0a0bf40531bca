#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A bar that is missed in any part of `make bench` cannot be passed by: its line comes again at the
end, in red on a terminal, and the status is 3. The programs that measure are scripts here."""

import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from harness import TMP, check, equal, main, open_terminal, run, test  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = 'build/bench/bench', 'build/bench/compile', 'build/bench/overhead', 'heap'
MISSED = '  bar: at most 1, measured 2, NOT MET'


def bench(missed=(), status=0, **kwargs):
    """Runs it where some parts miss a bar. status: that of the first part."""
    os.makedirs(os.path.join(TMP, 'build', 'bench'), exist_ok=True)
    shutil.copy(os.path.join(HERE, 'run'), TMP)
    for part in (*PARTS, 'build/shstk'):
        path = os.path.join(TMP, part)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\necho "part {part}"\n')
            if part in missed:
                file.write(f'echo "{MISSED} {part}"\n')
            if part == PARTS[0]:
                file.write(f'[ "$1" = --cold ] || exit {status}\n')
        os.chmod(path, 0o755)
    return run('./run', 'build', '-q', **kwargs)


@test
def all_met():
    """a run that misses nothing ends with 0 and says nothing more"""
    done = bench()
    equal(done.returncode, 0, 'status')
    check('NOT MET' not in done.stdout, done.stdout)
    equal([part for part in PARTS if f'part {part}\n' not in done.stdout], [], 'parts left out')


@test
def missed():
    """a bar that any part misses is said again behind everything else"""
    for part in PARTS:
        done = bench([part], 3 if part == PARTS[0] else 0)
        equal(done.returncode, 3, f'status, {part}')
        equal(done.stdout.splitlines()[-2:],
              ['bars NOT MET:', f'  {MISSED.strip()[len("bar: "):]} {part}'], 'the end')


@test
def in_red():
    """in red on a terminal"""
    leader, follower = open_terminal()
    done = bench([PARTS[2]], stdout=follower)
    os.close(follower)
    text = b''
    try:
        while part := os.read(leader, 65536):
            text += part
    except OSError:     # the other end was closed
        pass
    os.close(leader)
    equal(done.returncode, 3, 'status')
    end = text.decode().splitlines()[-2:]
    check(all(line.startswith('\x1b[31m') and line.endswith('\x1b[m') for line in end), f'{end}')


@test
def wrong():
    """a part that fails ends it, with its status"""
    done = bench(status=1)
    equal(done.returncode, 1, 'status')
    check(f'part {PARTS[1]}' not in done.stdout, 'the next part ran')


if __name__ == '__main__':
    sys.exit(main())
