#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk record` of Go programs: stacks lead to where goroutines and threads begin.

With C in the program, from C to Go and back: by the agent in the process at least 98 % of the
CPU time must. By copies of stacks 95 % must, and without C of those that are 200 calls deep,
too; what `shstk unwind` makes of the same copies later is the same. Prints KTAP; 4: there is
no Go here.

usage: record_test [--suites]

--suites: by all releases that selftests/go/toolchains fetched, too.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import common      # noqa: E402
import verdict     # noqa: E402

LIMIT = 0.98
# Stacks of goroutines that are larger than a copy, and the instructions that switch stacks, were up to
# 2.3 % of the 400 samples of a recording. How often they are met depends on the CPU.
LIMIT_COPIES = 0.95
LIMIT_LATER = 0.995     # share of the samples that must have the same stack in both profiles
DEPTH = 200
BY_PROGRAM = 'which a BPF program copied'
SAMPLES = 150       # samples that a profile must have at least
SECONDS = 5         # length of the first recording; it grows


def without_bpf():
    """Who may load no BPF programs: a command to put before another one."""
    return [] if os.geteuid() else ['setpriv', '--bounding-set=-bpf,-sys_admin']


def record_into(out, path, seconds, *options, args=(), prefix=()):
    """What it says, and the stacks, outermost function first, with values."""
    with subprocess.Popen([*prefix, common.SHSTK, 'record', '--freq=499', '-o', out, *options,
                           '--', path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:
        common.wait_ready(child, path)
        time.sleep(seconds)
        text = child.communicate(timeout=common.PATIENCE)[1]
    if child.returncode:
        raise RuntimeError(f'record: {child.returncode}: {text[-500:]}')
    print('# ' + text.strip().splitlines()[-1])
    return text, read_stacks(out)


def read_stacks(path):
    with open(path, encoding='utf-8') as f:
        return verdict.read_folded(f.read())


def record(path, seconds, *args, options=()):
    """How many samples there are, their stacks, and what is said."""
    with tempfile.TemporaryDirectory(dir=common.WHERE) as folder:
        text, stacks = record_into(os.path.join(folder, 'out.folded'), path, seconds, *options,
                                   args=args)
    return int(re.search(r'(\d+) samples?, ', text).group(1)), stacks, text


def record_enough(path, *args, options=()):
    seconds = SECONDS
    samples, stacks, text = record(path, seconds, *args, options=options)
    while samples < SAMPLES and seconds < 60:
        seconds *= 2
        samples, stacks, text = record(path, seconds, *args, options=options)
    return samples, stacks, text


def check_static(version, root, variant):
    path = common.build(version, root, 'load.go', variant)
    _, stacks, text = record_enough(path)
    # While a goroutine gets a larger stack, only the BPF program that runs with each sample knows
    # the old stack, and only root may load that.
    if BY_PROGRAM not in text:
        _, stacks, text = record_enough(path, 'grow')
    if 'stacks copied' not in text:
        return f'not by copies: {text[-300:]}'
    deep = {s: v for s, v in stacks.items() if 'main.deep' in s}
    if not any(s.count('main.deep') == DEPTH + 1 for s in deep):
        return f'no stack is {DEPTH} calls deep'
    if any(s.count('main.deep') > DEPTH + 1 for s in deep):
        return 'recursion is deeper than it is'
    return verdict.check_roots(stacks, LIMIT_COPIES) or \
        verdict.check_roots(deep, LIMIT_COPIES)


def compare(now, later):
    """What is wrong if profiles of the same samples differ. What has no stack, as it is where
    a process ends, is in the first one only."""
    now = {stack: value for stack, value in now.items() if stack[0] not in verdict.NOTES}
    total, total_later = sum(now.values()), sum(later.values())
    both = sum(min(value, later.get(stack, 0)) for stack, value in now.items())
    print(f'# {100 * both / max(total, 1):.2f} % of {total} have the same stack later')
    if both >= LIMIT_LATER * max(total, total_later):
        return ''
    differ = [(v, later.get(s, 0), s) for s, v in now.items() if later.get(s, 0) != v]
    return f'{total}, later {total_later}\n' + \
        '\n'.join(f'{a}, later {b}: {" ".join(s[:4])} ... {" ".join(s[-4:])}'
                  for a, b, s in sorted(differ, reverse=True)[:5])


def check_later(version, root, variant):
    """The copies that record unwinds, kept in a file and unwound by `shstk unwind`: the file has
    not what a BPF program copies."""
    path = common.build(version, root, 'load.go', variant)
    with tempfile.TemporaryDirectory(dir=common.WHERE) as folder:
        now, later, data = (os.path.join(folder, n) for n in ('now.folded', 'later.folded', 'data'))
        stacks = record_into(now, path, SECONDS, '--via=copies', '--perf-data=' + data,
                             args=('grow',), prefix=without_bpf())[1]
        done = subprocess.run([common.SHSTK, 'unwind', '-o', later, data], capture_output=True,
                              text=True, check=False, timeout=common.PATIENCE)
        if done.returncode:
            return f'unwind: {done.returncode}: {done.stderr}'
        return compare(stacks, read_stacks(later))


def check_refused(version, root, variant):
    path = common.build(version, root, 'load.go', variant)
    done = subprocess.run([common.SHSTK, 'record', '--via=agent', '-o', '/dev/null',
                           '--format=folded', '--', path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=common.PATIENCE)
    if done.returncode == 125 and 'is made by Go without C' in done.stderr:
        return ''
    return f'{done.returncode} {done.stdout} {done.stderr}'


def check_cgo(version, root, variant, options, by):
    path = common.build(version, root, 'load.go', variant)
    samples, stacks, text = record_enough(path, options=options)
    if by not in text:
        return f'not "{by}": {text[-300:]}'
    # C's part of the thread's stack is not the goroutine's: without the BPF program that copies the
    # goroutine's stack too, stacks are shorter.
    if not options and BY_PROGRAM not in text:
        return ''
    wrong = verdict.check_roots(stacks, LIMIT if options else LIMIT_COPIES)
    if wrong:
        return wrong
    # One stack shows Go that calls C that calls Go.
    if not any('runtime.goexit' in s and 'crosscall2' in s and s.count('runtime.asmcgocall') > 1
               for s in stacks):
        return f'no stack leads from Go to C to Go to C, of {samples} samples'
    return ''


def cases(suites):
    for version, root in common.toolchains(not suites):
        for variant in ('cgo', 'stripped-cgo-pie'):
            yield f'{version} {variant}: record by the agent', check_cgo, \
                (version, root, variant, ('--via=agent',), 'sampled in process')
            yield f'{version} {variant}: Go that calls C, by copies', check_cgo, \
                (version, root, variant, (), 'sampled by perf events')
        for variant in ('static', 'stripped-pie'):
            yield f'{version} {variant}: record by copies', check_static, (version, root, variant)
            yield f'{version} {variant}: unwind them later', check_later, (version, root, variant)
        variant = 'stripped-pie'
        yield f'{version} {variant}: no agent', check_refused, (version, root, variant)


if __name__ == '__main__':
    sys.exit(common.main(cases(sys.argv[1:] == ['--suites'])))
