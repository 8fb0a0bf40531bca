#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures in constructors, signal handlers and children of fork(), beside malloc() and dlopen().

    torture_test.py [TEST...]           some starts of a program that does all this at once
    torture_test.py --starts N          N starts (make torture), and how other unwinders do

Prints KTAP.
"""

import glob
import os
import signal
import subprocess
import sys
import time
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, LIMIT, TMP, check, main, test  # noqa: E402

PLUGIN = os.path.join(HERE, 'plugin.so')
STARTS = 150
AT_A_TIME = 4
TICKS = os.sysconf('SC_CLK_TCK')
# Seconds between two looks at a start, which takes 20 ms of CPU time. One that got none of it meanwhile,
# although it could have run, is on a busy machine. One that waits, or works for that long, hangs.
HANGS = 60


def states_of(pid):
    """The state of each thread of a process: the first one may wait for another that could run."""
    found = []
    for name in glob.glob(f'/proc/{pid}/task/*/stat'):
        try:
            with open(name, encoding='utf-8', errors='replace') as file:
                found.append(file.read().rsplit(')', 1)[1].split()[0])
        except OSError:
            continue        # it has ended
    return ''.join(found)


def processes_of(session):
    """States of the threads, and CPU time, in seconds, of each process of a session."""
    found = []
    for name in os.listdir('/proc'):
        try:
            with open(f'/proc/{name}/stat', encoding='utf-8', errors='replace') as file:
                words = file.read().rsplit(')', 1)[1].split()
        except (OSError, IndexError):
            continue        # it is no process, or has ended
        if words[3] == str(session):
            found.append((states_of(name), (int(words[11]) + int(words[12])) / TICKS))
    return found


class Start:
    """A started program."""

    def __init__(self, program):
        self.look = time.monotonic()
        self.used = 0       # seconds of CPU time at the last look
        # Its signals and children are its own: a group of its own is ended as a whole.
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, PLUGIN], cwd=TMP, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def goes_on(self, limit):
        """Whether, since the last look, it has worked a little, or could have worked but was not let."""
        processes = processes_of(self.process.pid)
        used = sum(time_used for _, time_used in processes)
        worked, self.used, self.look = used != self.used, used, time.monotonic()
        able = not processes or any(set('RD') & set(states) for states, _ in processes)
        return used < limit and (worked or able)

    def ended(self, limit):
        """Returns None while it runs, then 'ok', 'hangs' or what its status says."""
        status = self.process.poll()
        if status is None and (time.monotonic() - self.look < limit or self.goes_on(limit)):
            return None
        if status is None:
            status = self.process.poll()        # it may have ended since
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


@test
def waiting_is_seen():
    """what waits for ever, or works for ever, hangs; what ends does not"""
    fifo = os.path.join(TMP, 'fifo')
    os.mkfifo(fifo)
    for command, way in ((f'read line <{fifo}', 'hangs'), ('while :; do :; done', 'hangs'),
                         ('exit 0', 'ok'), ('exit 3', 'status 3')):
        program = os.path.join(TMP, f'program-{way.replace(" ", "-")}.sh')
        with open(program, 'w', encoding='ascii') as file:
            file.write(f'#!/bin/sh\n{command}\n')
        os.chmod(program, 0o755)
        ways = torture(program, 1, 0.5)
        check(ways == {way: 1}, f'{command}: {ways}')


@test
def busy_machine_hangs_nothing():
    """what could have run, or has worked, since the last look goes on; what slept does not"""
    one = Start('/bin/true')
    one.process.wait()
    for processes, wanted in (([('R', 0.0)], True), ([('D', 0.0)], True), ([('S', 0.1)], True),
                              ([('S', 0.1)], False), ([('S', 0.1), ('R', 0.0)], True),
                              ([('SSR', 0.1)], True), ([('R', 5.0)], False)):
        with mock.patch(f'{__name__}.processes_of', return_value=processes):
            check(one.goes_on(5) == wanted, f'{processes}')


@test
def all_threads_are_looked_at():
    """a thread that could run is seen where the first one of its process waits for it"""
    code = 'import threading\ndef run():\n    while True: pass\nthreading.Thread(target=run).start()'
    with subprocess.Popen([sys.executable, '-c', code], start_new_session=True) as process:
        try:
            end = time.monotonic() + LIMIT
            while not any({'R', 'S'} <= set(states) for states, _ in processes_of(process.pid)):
                check(time.monotonic() < end, f'{processes_of(process.pid)}')
                time.sleep(0.01)
        finally:
            process.kill()


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
