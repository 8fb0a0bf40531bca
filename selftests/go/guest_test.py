#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of Go programs on arm64, which guest.sh takes in a guest: judged here.

usage: guest_test LOG
       guest_test --build SOURCE VARIANT FILE
       guest_test --suites

LOG: what the guest printed (an option --after of selftests/guest/run). Prints KTAP.
--build: a program that guest.sh looks at, by this machine's Go.
--suites: by all releases that selftests/go/toolchains fetched, each variant, in a guest for
each release.
"""

import base64
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# pylint: disable=wrong-import-position
import common      # noqa: E402
import labels      # noqa: E402
import verdict     # noqa: E402
from pprof import Decoded   # noqa: E402

STEP = re.compile(r'go:([\d.]+|native):([a-z-]+)')
SHSTK = os.path.join(common.B, 'selftests/record/arm64/shstk')
AGENT = os.path.join(common.B, 'selftests/record/arm64/libshstk-agent.so')
BPF = os.path.join(common.B, 'selftests/record/arm64/shstk-goroutine.bpf.o')
SOURCES = ('load.go', 'named.go')
OUT = os.path.join(common.B, 'guest', 'go-suites')
SUITE_ROUNDS = 60   # how often running programs are looked at
SUITE_CORES = 10    # how many core files are made
SUITE_SECONDS = 15  # seconds that programs are recorded
LABELLED = 10       # each function with labels has so many samples at least
# Share of these that have the right labels: the runtime is searched while they come.
LIMIT_LABELS = 0.5

# CPU time (ns) that may be spent outside of them besides: in a short recording there are few samples.
BEFORE = 50_000_000
LIMIT_AGENT = 0.98
LIMIT_COPIES = 0.95
# Share of the stacks that must lead on to the goroutine before Go 1.25, without the BPF program
# (made by clang) that copies the goroutine's stack: a thread's own stack has frame pointers of its
# own.
LIMIT_COPIES_BEFORE = 0.75


def read_log(path):
    """What guest.sh sent: by step and name."""
    parts = collections.defaultdict(lambda: collections.defaultdict(str))
    with open(path, encoding='utf-8', errors='replace') as f:
        for line in f:
            m = re.match(r'([^|]*)\| # ([a-z-]+\.\d+) ([\w+/=]+)$', line)
            if m and STEP.fullmatch(m.group(1)):
                parts[m.group(1)][m.group(2)] += m.group(3)
    return {step: {name: gzip.decompress(base64.b64decode(text)) for name, text in sent.items()}
            for step, sent in parts.items()}


def tally_of(sent, kind):
    tally = verdict.Tally()
    for name, text in sent.items():
        if name.startswith(kind + '.'):
            for thread in json.loads(text)['threads']:
                if thread['frames'] or not thread['error']:
                    tally.add(thread)
    return tally


def check_running(_, sent):
    return tally_of(sent, 'running').verdict(['runtime.goexit'])


def check_core(_, sent):
    return tally_of(sent, 'core').verdict(['runtime.goexit'])


def check_goroutines(_, sent):
    groups = verdict.groups_of(json.loads(sent['goroutines.1']))
    return verdict.check_goroutines(groups) or \
        verdict.compare_dump(groups, verdict.own_dump(sent['stacks.1'].decode()))


def check_core_goroutines(_, sent):
    return verdict.check_goroutines(verdict.groups_of(json.loads(sent['core-goroutines.1'])))


def limit_of(step):
    version, variant = STEP.fullmatch(step).groups()
    if 'cgo' in variant:
        return LIMIT_AGENT
    if version == 'native':
        version = common.toolchains()[0][0]
    return LIMIT_COPIES if os.path.exists(BPF) or common.release(version) >= (1, 25) \
        else LIMIT_COPIES_BEFORE


def check_record(step, sent):
    stacks = verdict.read_folded(sent['record.1'].decode())
    # Each name is part of the load.
    names = {name for stack in stacks for name in stack}
    missing = {'main.deep', 'main.fib', 'sort.Ints'} - names
    if missing:
        return f'never seen: {missing}; {sent["said.1"][-300:].decode()}'
    return verdict.check_roots(stacks, limit_of(step), BEFORE)


def check_recorded_labels(_, sent):
    with tempfile.NamedTemporaryFile(suffix='.pb.gz') as file:
        file.write(sent['labels.1'])
        file.flush()
        found = labels.count(Decoded(file.name))
    few = [name for name, counted in found.items() if counted[0] < LABELLED]
    return f'too few samples of {" ".join(few)}' if few else \
        labels.check(found, LIMIT_LABELS)


CHECKS = (
    ('trace -p', check_running),
    ('trace --core', check_core),
    ('goroutines as Go prints them', check_goroutines),
    ('goroutines of a core file', check_core_goroutines),
    ('record', check_record),
    ('labels', check_recorded_labels),
)


def checked(check, step, sent):
    try:
        return check(step, sent)
    except (KeyError, ValueError) as error:
        return f'the guest did not send all: {error!r}'


def judge(path):
    cases = []
    for step, sent in read_log(path).items():
        for name, check in CHECKS:
            cases.append((f'{step} {name}', checked, (check, step, sent)))
    if not cases:
        print('1..0 # SKIP the guest sent nothing')
        return 4
    return common.main(cases)


def step_of(version, root, variant):
    words = ['selftests/go/guest.sh', SHSTK,
             *(common.build(version, root, source, variant, 'arm64') for source in SOURCES),
             str(SUITE_ROUNDS), str(SUITE_CORES), str(SUITE_SECONDS), AGENT,
             'selftests/loader/cases.sh', *([BPF] if os.path.exists(BPF) else [])]
    return f'go:{version}:{variant}=' + ' '.join(os.path.relpath(w, common.TOP)
                                                 if '/' in w else w for w in words)


def run_guest(version, steps, first):
    """A guest whose test points are numbered from there on: the next number, and its exit code."""
    command = ['selftests/guest/run', 'arm64-7.2', '--out', f'{OUT}-{version}',
               '--after', f'go={os.path.relpath(__file__, common.TOP)}', *steps]
    number = first
    with subprocess.Popen(command, cwd=common.TOP, stdout=subprocess.PIPE, text=True) as guest:
        for line in guest.stdout:
            point = re.match(r'((?:not )?ok) \d+ (.*)', line)
            if point:
                print(f'{point.group(1)} {number} {point.group(2)}', flush=True)
                number += 1
            elif not line.startswith(('TAP version', '1..')):
                print(line, end='', flush=True)
    return number, guest.returncode


def run_suites():
    """A guest for each release: the programs of all do not fit into one's memory."""
    print('TAP version 13')
    number, worst = 1, 0
    for version, root in common.toolchains(False):
        steps = [step_of(version, root, variant) for variant in common.VARIANTS]
        number, code = run_guest(version, steps, number)
        worst = max(worst, code)
    print(f'1..{number - 1}')
    return worst


def main(args):
    if args[:1] == ['--build'] and len(args) == 4:
        version, root = common.toolchains()[0]
        shutil.copy(common.build(version, root, args[1], args[2], 'arm64'), args[3])
        return 0
    if args == ['--suites']:
        return run_suites()
    return judge(*args)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
