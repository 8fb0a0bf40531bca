#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Trace contexts of threads (OpenTelemetry's OTEP 4947) as labels of samples: each is the one under
which the function runs that was sampled, whole and not late.

publish.c changes its context all the time, and each of its functions runs under contexts of its own.
The environment may choose how often (SWITCHES, NAPS), and the format in which samples are kept (SUFFIX).
"""

import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TOP, os.path.join(TOP, 'language')]
import pprof    # noqa: E402
from harness import (   # noqa: E402
    HERE, NOBODY, SHSTK, TMP, Process, Skip, check, main, shstk, test)
from permitted import check_not_refused    # noqa: E402

SWITCHES = int(os.environ.get('SWITCHES', 1000000))
NAPS = int(os.environ.get('NAPS', 4000))     # the same where each function sleeps
LEAST = 20          # samples that are compared
OUT = os.path.join(TMP, 'out' + os.environ.get('SUFFIX', '.shstk'))
FOLDED = os.path.join(TMP, 'out.folded')
BY = 'trace_id', 'span_id', 'http.route', 'shard'
MASK = (1 << 64) - 1


def switches_of(style):
    return NAPS if style == 'nap' else SWITCHES


def record(style, library, *options, who=None):
    """Records the program from its first switch to the last one; returns what the recorder said.
    library: arguments that name it. who: how to run both as a user."""
    who = who or {}
    command = [os.path.join(HERE, 'publish'), style, str(switches_of(style))]
    if library:
        command += [os.path.join(HERE, library[0]), *library[1:]]
    with Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **who) as program:
        check(program.stdout.readline() == 'ready\n', 'the program does not begin')
        with Process([SHSTK, 'record', '-F', '4999', *options, '-o', OUT, '-p', str(program.pid)],
                     stderr=subprocess.PIPE, text=True, **who) as recorder:
            said = recorder.stderr.readline()
            if recorder.poll() is None:
                program.stdin.write('\n')
                program.stdin.flush()
                check(program.stdout.readline() == 'done\n', 'the program does not end')
                recorder.send_signal(signal.SIGINT)
            said += recorder.communicate()[1]
    return said


def report(*options):
    done = shstk('report', '-q', '--frames-only', *options, '-o', FOLDED, OUT)
    check(done.returncode == 0, done.stderr)
    with open(FOLDED) as file:
        return file.read().splitlines()


def decoded():
    """The same of a file of pprof's, for which no report is needed."""
    profile = pprof.Decoded(OUT)
    for ids, _, labels in profile.samples:
        names = [name for name in profile.frames(ids) if not name.startswith('[')]
        yield {name: labels.get(name, '') for name in BY}, names or ['']


def stacks():
    """(labels, functions) of each distinct sample, the outermost function first."""
    if OUT.endswith('.pb.gz'):
        yield from decoded()
        return
    for line in report('--by=' + ','.join(BY)):
        if line.startswith('[caution]'):     # that records were lost
            continue
        words = line.rsplit(' ', 1)[0].split(';')
        labels = dict(zip(BY, (word.partition(': ')[2] for word in words)))
        yield labels, words[len(BY):]


def work_of(functions):
    """The number of the function that a sample is in, or None. What it calls belongs to it."""
    return next((int(name[5:]) for name in functions if name.startswith('work_')), None)


def find_fault_at_work(style, labels, n):
    """What is wrong with the labels of a sample in work_N(), or None."""
    if not labels['trace_id']:
        return 'no context'
    k = int(labels['trace_id'][:16], 16)
    if k % 8 != n:
        return 'it is the context of another function'
    if labels['http.route'] != f'/{n}':
        return 'the attribute'
    if labels['shard'] != (f'/{n}' if k > switches_of(style) // 2 else ''):
        return 'the attribute whose name was published later'
    return None


def is_torn(labels):
    """Whether ids are not those of one context."""
    k, second = int(labels['trace_id'][:16], 16), int(labels['trace_id'][16:], 16)
    return second != k * 0x9e3779b97f4a7c15 & MASK or \
        int(labels['span_id'], 16) != k * 0xc2b2ae3d27d4eb4f & MASK


def find_fault(style, labels, functions):
    """What is wrong with a sample, or None."""
    if labels['trace_id']:
        if is_torn(labels):
            return 'the context is torn'
        if style == 'valid' and 'fill' in functions:
            return 'a context while the record is being changed'
    n = work_of(functions)
    return None if n is None else find_fault_at_work(style, labels, n)


def read(style, library, *options):
    """Records the program; returns the samples and what was said."""
    said = record(style, library, *options)
    check_not_refused(said)
    if 'are not shown:' in said or 'not permitted' in said or 'has none' in said:
        raise Skip(said.strip().splitlines()[-1])
    return list(stacks()), said


def judge(style, library, *options):
    found, said = read(style, library, *options)
    compared = [stack for stack in found if work_of(stack[1]) is not None]
    wrong = [(fault, *stack) for stack in found for fault in [find_fault(style, *stack)] if fault]
    print(f'# {len(found)} samples, {len(compared)} of them in the functions, {len(wrong)} wrong',
          flush=True)
    # The context of a sample may be lost without it.
    if ' 0 lost' not in said:
        wrong = [fault for fault in wrong if fault[0] != 'no context']
    check(not wrong, f'{wrong[:3]} {said}')
    if len(compared) < LEAST:
        raise Skip(f'only {len(compared)} samples: {said}')


@test
def variable_of_the_program():
    """the variable is one of the program; records are exchanged"""
    judge('pointer', None)


@test
def record_that_is_changed():
    """one record, whose byte says whether it counts"""
    judge('valid', None)


@test
def descriptor():
    """a library that is loaded later, with a TLS descriptor"""
    judge('pointer', ['desc.so'])


@test
def descriptor_far():
    """the same, whose data has no room beside the thread pointer"""
    judge('valid', ['desc_far.so'])


@test
def general_dynamic():
    """a library of the older dialect, with a module's number"""
    judge('pointer', ['gnu.so'])


@test
def general_dynamic_far():
    """the same, whose data has no room beside the thread pointer"""
    judge('pointer', ['gnu_far.so'])


@test
def initial_exec():
    """a library whose data is beside the thread pointer"""
    judge('pointer', ['initial.so'])


@test
def descriptor_own():
    """a library that lets nobody replace its variable, with a TLS descriptor"""
    judge('pointer', ['desc_own.so'])


@test
def general_dynamic_own():
    """the same, with a module's number"""
    judge('pointer', ['gnu_own.so'])


@test
def late():
    """a library that is loaded while the program is recorded: contexts once it was found"""
    found, said = read('pointer', ['gnu_far.so', 'late'])
    known = [stack for stack in found if stack[0]['trace_id']]
    wrong = [fault for stack in known for fault in [find_fault('pointer', *stack)] if fault]
    check(not wrong, f'{wrong[:3]} {said}')
    if not known:
        raise Skip('it was found when the program had ended: ' + said.strip())


@test
def draft():
    """the name that the version had in drafts of the document"""
    judge('draft', None)


@test
def elsewhere():
    """a program that says that its contexts are elsewhere: none is read"""
    found, said = read('other', None)
    check(found, said)
    check(not any(labels['trace_id'] for labels, _ in found), f'{found[:3]}')


@test
def walked():
    """stacks that a BPF program walks have their contexts, too"""
    judge('pointer', None, '--via=bpf')


@test
def off_cpu():
    """where a thread waits, its sample has the context under which it began to"""
    judge('nap', None, '--off-cpu')


@test
def off_cpu_walked():
    """the same, by a BPF program that walks the stacks"""
    judge('nap', None, '--off-cpu', '--via=bpf')


def lend_once(style, who, *options):
    """Records the program as a user. Returns how many samples have contexts; none has a wrong one."""
    said = record(style, None, *options, who=who)
    check('broker reads none' not in said, said)
    known = [stack for stack in stacks() if stack[0]['trace_id']]
    wrong = [fault for stack in known for fault in [find_fault(style, *stack)] if fault]
    check(not wrong, f'{wrong[:3]} {said}')
    return len(known)


def lend(style, *options):
    """The same with a broker, until samples have contexts: it walks no stack for three times as long as a walk
    took, and reads no context then, however long the machine was stopped in that walk."""
    sys.path[:0] = [os.path.join(TOP, 'broker')]
    import lending
    no = lending.why_not()
    if no:
        raise Skip(no)
    os.chown(TMP, NOBODY['user'], NOBODY['group'])
    if os.path.exists(OUT):
        os.remove(OUT)
    with lending.broker() as (_, who):
        check(any(lend_once(style, who, *options) >= LEAST for _ in range(5)), 'no contexts are read')


@test
def lent():
    """samples of ordinary users' own programs have them by what the broker lends"""
    lend('pointer')


@test
def lent_off_cpu():
    """and so have those where a thread waits"""
    lend('nap', '--off-cpu')


def find_fault_of_ids(labels, functions):
    """What is wrong with the ids of a sample, or None."""
    if labels['trace_id'] and is_torn(labels):
        return 'the context is torn'
    n = work_of(functions)
    if n is None:
        return None
    if not labels['trace_id']:
        return 'no context'
    return None if int(labels['trace_id'][:16], 16) % 8 == n else \
        'it is the context of another function'


def judge_agent(style, *before, options=()):
    """Judges the ids in a recording by the agent. before: what starts the program."""
    done = shstk('record', '--via=agent', '-F', '999', *options, '-o', OUT, '--', *before,
                 os.path.join(HERE, 'publish'), style, str(switches_of(style)), input='\n\n')
    check(done.returncode == 0 and done.stdout == 'ready\ndone\n', done.stderr)
    found = list(stacks())
    compared = [stack for stack in found if work_of(stack[1]) is not None]
    wrong = [(fault, *stack) for stack in found for fault in [find_fault_of_ids(*stack)] if fault]
    print(f'# {len(found)} samples, {len(compared)} of them in the functions, {len(wrong)} wrong',
          flush=True)
    check(not wrong, f'{wrong[:3]} {done.stderr}')
    if not compared:
        raise Skip(f'no samples: {done.stderr.strip()}')


@test
def by_the_agent():
    """in recordings by the agent samples have the ids, too, of the program's variable"""
    judge_agent('pointer')
    judge_agent('valid')


@test
def by_the_agent_while_it_waits():
    """and so have those of threads that wait (--wall)"""
    judge_agent('nap', options=['--wall'])


@test
def by_the_agent_in_a_library():
    """and of the variable of a library that is loaded with the program"""
    judge_agent('pointer', 'env', 'LD_PRELOAD=' + os.path.join(HERE, 'initial.so'))


if __name__ == '__main__':
    sys.exit(main())
