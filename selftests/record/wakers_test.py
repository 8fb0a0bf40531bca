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


def record(*options, before=()):
    """Records the program: ([(frames, ns, labels)], seconds that it waited at most, messages)."""
    if os.getuid() or not shutil.which('unshare'):
        raise Skip('needs root and unshare(1)')
    out = os.path.join(TMP, 'out.pb.gz')
    done = run('unshare', '-m', 'sh', '-c', MOUNT, 'sh', SHSTK, 'record', '-o', out, *options,
               '--', *before, WAKERS)
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


def share(sums, chosen):
    """Returns the share of the time whose waker is one of the chosen."""
    return sum(s for waker, s in sums.items() if chosen(waker)) / sum(sums.values())


def is_timer(waker):
    """Returns whether timers wake so. Kernels with PREEMPT_RT have threads for timers."""
    return waker == '[interrupt]' or waker.startswith('ktimer')


@test
def who_woke_it():
    """the waker's name is a label: of a thread, and of interrupts for timers"""
    told = []
    for cpu in sorted(os.sched_getaffinity(0))[:4]:
        samples, _, err = record('--wakers', before=('taskset', '-c', str(cpu)))
        if ' 0 lost' not in err:
            raise Skip('records were lost: the machine is too busy')
        got = times(samples, 'waits_for_thread')
        # A thread that was about to sleep when it was woken is not reported.
        by_thread = share(got, lambda w: re.fullmatch(r'the-waker \(\d+\)', w))
        check(by_thread > 0.8, f'{got}')
        # Some virtual machines report no wake-ups of an idle CPU's interrupts, perf has none then,
        # too: there is no label, but never a wrong one.
        got = times(samples, 'waits_for_timer')
        check(share(got, lambda w: w == '' or is_timer(w)) > 0.8, f'{got}')
        told.append(share(got, is_timer))
    if max(told) < 0.8:
        raise Skip(f'this kernel does not report what wakes an idle CPU: {told}')


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
