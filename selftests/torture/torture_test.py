#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures in constructors, signal handlers and children of fork(), beside malloc() and dlopen().

    torture_test.py [TEST...]           some starts of a program that does all this at once
    torture_test.py --starts N          N starts (make torture), and how other unwinders do

Prints KTAP.
"""

import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, TMP, check, main, test  # noqa: E402

PLUGIN = os.path.join(HERE, 'plugin.so')
STARTS = 150
AT_A_TIME = 4
# A start takes 20 ms. One that takes so much longer, on a machine that is a thousand times busier than
# idle, hangs.
HANGS = 60


class Start:
    """A started program."""

    def __init__(self, program):
        self.begin = time.monotonic()
        # Its signals and children are its own: a group of its own is ended as a whole.
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, PLUGIN], cwd=TMP, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def ended(self, limit):
        """Returns None while it runs, then 'ok', 'hangs' or what its status says."""
        status = self.process.poll()
        if status is None and time.monotonic() - self.begin < limit:
            return None
        if status is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return 'hangs'
        return 'ok' if not status else f'status {status}'


def torture(program, starts, limit=HANGS):
    """Starts a program so often; returns how often it ended in which way."""
    ways, running = {}, []
    while starts or running:
        while starts and len(running) < AT_A_TIME:
            running.append(Start(program))
            starts -= 1
        for one in list(running):
            way = one.ended(limit)
            if way:
                ways[way] = ways.get(way, 0) + 1
                running.remove(one)
        time.sleep(0.002)
    return ways


@test
def no_capture_hangs():
    """every capture has frames, and none hangs"""
    ways = torture(os.path.join(HERE, 'torture'), STARTS)
    check(ways == {'ok': STARTS}, f'{ways}')


def in_tenths(program, starts, limit):
    """As torture(), and says after each tenth how it goes."""
    ways, done, begin = {}, 0, time.monotonic()
    for tenth in range(1, 11):
        now = starts * tenth // 10 - done
        done += now
        for way, times in torture(program, now, limit).items():
            ways[way] = ways.get(way, 0) + times
        print(f'# {os.path.basename(program)}: {done} starts in {time.monotonic() - begin:.0f} s: '
              f'{ways}', flush=True)
    return ways


def long_run(starts):
    """The long run, and what others do in a hundredth of it. Returns the exit status."""
    for name, times, limit in (('torture', starts, HANGS), ('torture-libunwind', starts // 100, 5),
                               ('torture-libc', starts // 100, 5)):
        program = os.path.join(HERE, name)
        if not os.path.exists(program):
            print(f'# {name}: its library is not installed')
            continue
        ways = in_tenths(program, times, limit)
        if name == 'torture':
            good = ways == {'ok': times}
    print('TAP version 13\n1..1\n' + ('ok' if good else 'not ok') + f' 1 {starts} starts')
    return 0 if good else 1


if sys.argv[1:2] == ['--starts']:
    sys.exit(long_run(int(sys.argv[2])))
sys.exit(main())
