#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record --wakers`: who woke a thread, and how long it waited until then.

Needs root, and a kernel with tracepoints: tracefs is mounted in a mount namespace of the test's
own. Prints KTAP.
"""

import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import pprof  # noqa: E402
from harness import (  # noqa: E402
    HERE, NOBODY, SHSTK, TMP, Skip, check, main, need_nobody, run, test)

WAKERS = os.path.join(HERE, 'wakers')
MOUNT = 'mount -t tracefs none /sys/kernel/tracing && exec "$@"'


def record(*options):
    """Records the program: ([(frames, ns, labels)], seconds that it waited at most, messages)."""
    if os.getuid() or not shutil.which('unshare'):
        raise Skip('needs root and unshare(1)')
    out = os.path.join(TMP, 'out.pb.gz')
    done = run('unshare', '-m', 'sh', '-c', MOUNT, 'sh', SHSTK, 'record', '-o', out, *options,
               '--', WAKERS)
    if re.search('^(mount|unshare):', done.stderr, re.M):
        raise Skip(f'no tracefs here: {done.stderr.strip()}')
    if re.search('--wakers: |not permitted|this kernel has none|on this machine|mlock_kb',
                 done.stderr):
        raise Skip(done.stderr.strip().split('\n')[0])
    check(done.returncode == 0, done.stderr)
    profile = pprof.Decoded(out)
    samples = [(profile.frames(ids), values[1], labels) for ids, values, labels in profile.samples]
    return samples, float(done.stdout.split()[0]), done.stderr


def times(samples, function):
    """Returns {waker: seconds} of what waits in a function."""
    sums = {}
    for frames, ns, labels in samples:
        if function in frames:
            waker = labels.get('waker', '')
            sums[waker] = sums.get(waker, 0) + ns / 1e9
    return sums


@test
def who_woke_it():
    """the waker's name is a label: of a thread, and of interrupts for timers"""
    samples, _, err = record('--wakers')
    if ' 0 lost' not in err:
        raise Skip('records were lost: the machine is too busy')
    got = times(samples, 'waits_for_thread')
    by_thread = sum(s for waker, s in got.items() if re.fullmatch(r'the-waker \(\d+\)', waker))
    # A thread that was about to sleep when it was woken is not reported.
    check(by_thread > 0.8 * sum(got.values()) > 0, f'{got}')
    got = times(samples, 'waits_for_timer')
    # Kernels with PREEMPT_RT have threads for timers.
    by_timer = sum(s for waker, s in got.items()
                   if waker == '[interrupt]' or waker.startswith('ktimer'))
    check(by_timer > 0.8 * sum(got.values()) > 0, f'{got}')


@test
def waiting_ends_when_it_is_woken():
    """what passes from the wake-up until the thread runs is no waiting"""
    samples, most, err = record('--wakers')
    if ' 0 lost' not in err:
        raise Skip('records were lost: the machine is too busy')
    waited = sum(times(samples, 'waits_for_thread').values())
    check(0 < waited <= most, f'{waited} of {most} s: {err}')


@test
def those_who_may_not():
    """--wakers without the rights says what is needed"""
    if not os.getuid():
        need_nobody()
    who = {} if os.getuid() else NOBODY
    done = run(SHSTK, 'record', '--wakers', '-o', '-', '--', 'true', **who)
    check(done.returncode and re.search('--wakers|be root|not permitted|has none', done.stderr),
          f'{done.returncode} {done.stderr}')


sys.exit(main())
