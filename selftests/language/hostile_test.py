#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that forges an interpreter's memory: reading it ends, and nothing is made up."""

import os
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
SKIP = 4
MEMORY = 512 << 10      # KiB that the recorder may take
SAMPLES = '200'         # of which frames are read

# Kinds of forged frames, and whether the functions may be shown.
KINDS = {
    'cycle': ('a list of frames that leads to itself', False),
    'marks': ('a list of entries that leads to itself', False),
    'deep': ('more frames than are read', False),
    'lengths': ('texts that are longer than memory', True),
    'edge': ('a frame at the end of memory', False),
    'kernel': ('a frame in the kernel', False),
}

points = 0
failed = False


def point(good, name):
    global points, failed
    points += 1
    failed |= not good
    print('ok' if good else 'not ok', points, name)


def run(kind, folder):
    return subprocess.run([os.path.join(HERE, 'truth'), '-f', '999', '-r', SAMPLES, os.path.join(folder, 'word'),
                           os.path.join(HERE, 'python3-forged'), kind],
                          stdout=subprocess.PIPE, text=True)


def judge(what, may_show, ended):
    last = ended.stdout.splitlines()[-1:]
    print('#', *last)
    words = last[0].split() if last else []
    point(ended.returncode == 0 and len(words) == 5, f'{what}: samples are taken to the end')
    if len(words) == 5:
        point(int(words[3]) > 0, f'{what}: frames are read')
        point(may_show or words[1] == '0', f'{what}: no function is shown')


def main():
    print('TAP version 13')
    with tempfile.TemporaryDirectory() as folder:
        for kind, (what, may_show) in KINDS.items():
            ended = run(kind, folder)
            if ended.returncode == SKIP:
                print('1..0 # SKIP', ended.stdout.strip())
                sys.exit(SKIP)
            judge(what, may_show, ended)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f'# at most {most} KiB')
    point(most < MEMORY, 'the recorder takes little memory')
    print(f'1..{points}')
    sys.exit(failed)


main()
