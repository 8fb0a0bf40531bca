#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests that the agent of a machine can stay there: its memory, descriptors and profiles where 500
processes come and go, 100 of them a second, and 5000 threads sleep. Prints KTAP.

LOAD_SECONDS says how long it lasts. Profiles are made each second, so the default of 480 is as many
of them as eight hours have of one minute. LOAD_THREADS is the number of threads.
"""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), 'push')]
import pprof  # noqa: E402
from agent import Agent, Crowd  # noqa: E402
from harness import check, main, test  # noqa: E402
from received import unpacked, walk  # noqa: E402
from server import Server  # noqa: E402

SECONDS = int(os.environ.get('LOAD_SECONDS', '480'))
PROCESSES, RATE, THREADS = 500, 100, int(os.environ.get('LOAD_THREADS', '5000'))
GROWTH = 1.15   # of memory, from the first quarter to the last one


def watch(agent, seconds, crowd):
    """Looks at the agent again and again; returns what was seen."""
    seen, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.5)
        check(crowd.poll() is None, 'the crowd has ended')
        check(agent.child.poll() is None, f'the agent has ended: {agent.said()}')
        seen.append(agent.look())
    return seen


def leaf_sums(requests, names):
    """CPU time in stacks with these functions, and all of the crowd."""
    sums = dict.fromkeys(names, 0)
    for request in requests:
        body = unpacked(request)
        texts = [text.decode() for text in walk(body, 2, 5)]
        functions = [texts[next(walk(one, 1), 0)] for one in walk(body, 2, 3)]
        lines = [[functions[next(walk(line, 1), 0)] for line in walk(one, 3)]
                 for one in walk(body, 2, 2)]
        stacks = [[name for n in walk(one, 1) for i in pprof.packed(n) for name in lines[i]]
                  for one in walk(body, 2, 7)]
        for one in walk(body, 1, 2, 2):
            if texts[next(walk(one, 1, 1))] != 'cpu':
                continue
            for sample in walk(one, 2):
                stack = stacks[next(walk(sample, 1), 0)]
                value = sum(n for values in walk(sample, 4) for n in pprof.packed(values))
                for name in names:
                    sums[name] += value if name in stack and 'work' in stack else 0
    return sums


@test
def processes_that_come_and_go():
    """500 at a time, 100 new ones a second, beside threads: memory and descriptors stay, profiles are right"""
    signal.setitimer(signal.ITIMER_REAL, 4 * SECONDS + 500, 20)
    with Server() as server, Crowd(PROCESSES, RATE, THREADS) as crowd:
        agent = Agent(server, '1s', '-a')
        seen = watch(agent, SECONDS, crowd)
        agent.end()
        crowd.kill()
    part = max(len(seen) // 4, 1)
    first, last = (max(own for own, _, _ in some) for some in (seen[part:2 * part], seen[-part:]))
    files = [max(nr for _, _, nr in some) for some in (seen[part:2 * part], seen[-part:])]
    print(f'# {len(server.requests)} requests; the recorder has {first} KiB in the second quarter, '
          f'{last} KiB in the last; descriptors: {files}')
    check(last <= GROWTH * first, f'memory grew from {first} to {last} KiB')
    check(files[1] <= files[0] + 4, f'descriptors: {files}')
    sums = leaf_sums(server.requests, ('one', 'three'))
    print(f'# one() {sums["one"] / 1e6:.0f} ms, three() {sums["three"] / 1e6:.0f} ms')
    samples = (sums['one'] + sums['three']) / 5e7
    if samples >= 200:
        share = sums['three'] / (sums['one'] + sums['three'])
        # Five times the standard deviation of so many samples.
        check(abs(share - 0.75) < 5 * (0.75 * 0.25 / samples) ** 0.5, f'three() has {share:.3f}')


def why():
    """Why nothing can be tested here, or None."""
    return 'needs root to record the machine' if os.getuid() else None


if __name__ == '__main__':
    sys.exit(main(why))
