#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record -e`: events as people write them, and the messages about events that do not
exist. Prints KTAP.
"""

import collections
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import pprof  # noqa: E402
from harness import HERE, SHSTK, TMP, Skip, check, main, run, test  # noqa: E402

FAULTS = os.path.join(HERE, 'faults')
NR = 300            # number of pages that are touched, and of sleeps
OWN = 400           # number of events that the start may have of its own
NEAR = 2            # number of events that may lie between the program's look at its own counts
                    # and the function

# What was recorded: {function: events} and their sum, the recorder's messages, and what the
# program says that it had while it touched pages and slept.
Recorded = collections.namedtuple('Recorded', 'sums whole text faults switches')


def record(*args, shell=()):
    """Records the program."""
    out = os.path.join(TMP, 'out.folded')
    if os.path.exists(out):
        os.unlink(out)
    done = run(*shell, SHSTK, 'record', '--buffer=8192', '-o', out, *args, '--', FAULTS, str(NR))
    if re.search('not permitted|this kernel has none|mlock_kb', done.stderr):
        raise Skip(done.stderr.strip())
    check(done.returncode == 0, f'{args}: {done.stderr}')
    had = re.search(r'^(\d+) faults, (\d+) switches$', done.stdout, re.M)
    check(had, f'{args}: {done.stdout}')
    sums = {}
    with open(out, encoding='utf-8') as file:
        for line in file:
            stack, value = line.rsplit(' ', 1)
            for name in set(stack.split(';')):
                sums[name] = sums.get(name, 0) + int(value)
    return Recorded(sums, sums.get('faults', 0), done.stderr, *map(int, had.groups()))


def near(number, truth):
    """Whether these are as many events as the program says that it had."""
    return abs(number - truth) <= NEAR


@test
def aliases():
    """a fault by its names, by a PMU's terms, and by libpfm4: as many as there are"""
    for event in ('page-faults', 'faults', 'software/config=2/', 'page-faults:u', 'faults:uk',
                  'software/config=2/u', 'perf::PERF_COUNT_SW_PAGE_FAULTS'):
        if event.startswith('perf::') and not (shutil.which('ldconfig', path='/sbin:/usr/sbin')
                and 'libpfm.so.4' in run(shutil.which('ldconfig', path='/sbin:/usr/sbin'),
                                         '-p').stdout):
            continue
        had = record('-e', event, '-c', '1')
        check(near(had.sums.get('touch_pages', 0), had.faults) and had.faults >= NR and
              had.whole < had.faults + OWN, f'{event}: {had}')
        check(f' {event}, sampled by perf events' in had.text, had.text)


@test
def events_of_the_kernel_in_user_mode():
    """switches are never in user mode: that is said in the profile where only that is sampled"""
    said = 'cs:u: all of these are in the kernel'
    had = record('-e', 'faults,cs:u', '-c', '1')
    check(had.whole and said in had.text, f'{had}')
    check(any(said in name for name in had.sums), f'{had}')
    check('all of these' not in record('-e', 'faults,cs:uk', '-c', '1').text, 'both are sampled')


@test
def modifiers():
    """:k is what the kernel has of it: no fault of user mode"""
    had = record('-e', 'page-faults:k', '-c', '1')
    check(had.whole < 100 and 'touch_pages' not in had.sums, f'{had}')
    had = record('-e', 'cs', '-c', '1')
    check(had.switches and near(had.sums.get('wait_often', 0), had.switches), f'{had}')


@test
def several():
    """several events at once: each is a value of its own, and true; others show the first one"""
    path = os.path.join(TMP, 'several.pb.gz')
    had = record('-e', 'page-faults,cs', '-e', 'software/config=4,config1=0/', '-o', path,
                 '--count=1')
    check(near(had.sums.get('touch_pages', 0), had.faults), f'{had}')
    check(re.search(r'record: cs: (\d+) of \1$', had.text, re.M), had.text)
    profile = pprof.Decoded(path)
    check(profile.types == [('samples', 'count'), ('page-faults', 'count'), ('cs', 'count'),
                            ('software/config=4,config1=0/', 'count')], profile.types)
    values = {}
    for ids, numbers, _ in profile.samples:
        for name in {'touch_pages', 'wait_often'} & set(profile.frames(ids)):
            values[name] = [a + b for a, b in zip(values.get(name, [0] * 4), numbers)]
    check(near(values['touch_pages'][1], had.faults) and had.faults >= NR, f'{values} {had}')
    check(values['wait_often'][1] < NR / 10 and near(values['wait_often'][2], had.switches),
          f'{values} {had}')


@test
def tracepoints():
    """a tracepoint: as many as there are, at where the program caused them"""
    if os.getuid():
        raise Skip('only root may')
    shell = ('unshare', '-m', 'sh', '-c',
             'mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; '
             'test -r /sys/kernel/tracing/events/sched/sched_switch/id || exit 77; exec "$@"', 'sh')
    if run(*shell, 'true').returncode:
        raise Skip('no tracefs, or no namespaces, here')
    had = record('-e', 'sched:sched_switch', '-c', '1', shell=shell)
    check(had.switches and near(had.sums.get('wait_often', 0), had.switches), f'{had}')
    done = run(*shell, SHSTK, 'record', '-e', 'sched:no_such_thing', '--', 'true')
    check(done.returncode == 2 and "unknown event 'sched:no_such_thing'" in done.stderr,
          done.stderr)


@test
def refusals():
    """what is no event: it is said what could be one"""
    for event, words in (
            ('nonsense', "unknown event 'nonsense'; known are cpu-clock"),
            ('no_such/event=1/', "there is no event source 'no_such' in /sys/bus"),
            ('../type/', "there is no event source '..' in /sys/bus"),
            ('software/nothing=3/', "event source 'software' has nothing like 'nothing=3'"),
            ('software/config=x/', "event source 'software' has nothing like 'config=x'"),
            ('page-faults:', "unknown event 'page-faults:'"),
            ('page-faults:q', "unknown event 'page-faults:q'"),
            ('rxyz', "unknown event 'rxyz'"),
            ('faults,faults', "event 'faults' is given twice"),
            ('faults,', "unknown event ''"),
            (','.join('abcdefghi').replace('a', 'cs'), "unknown event 'b'"),
            ('x' * 300, 'name is longer than')):
        if 'software' in event and not os.path.isdir('/sys/bus/event_source/devices/software'):
            continue
        done = run(SHSTK, 'record', '-e', event, '--', 'true')
        check(done.returncode == 2 and words in done.stderr, f'{event}: {done.stderr}')


if __name__ == '__main__':
    sys.exit(main())
