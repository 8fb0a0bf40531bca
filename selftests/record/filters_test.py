#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record` of programs that forbid themselves system calls or give up rights.

Prints KTAP.
"""

import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, LIMIT, SHSTK, Skip, check, main, test  # noqa: E402
from recording import STATIC, TARGET, TMP, agrees, record, seconds  # noqa: E402
from without_events import forbid_perf_events, need_filters  # noqa: E402

SANDBOX = os.path.realpath(os.path.join(HERE, 'sandbox'))


@test
def seccomp_sandbox():
    """a program that forbids itself system calls is sampled and lives"""
    result = record(TARGET, 'sandbox', '0.4')
    if result.status == 4:
        raise Skip('seccomp filters are not available')
    check(result.status == 17, f'{result.status} {result.err}')
    # The first call; the thread of the second one is not sampled. What comes late on a busy machine
    # cannot be counted without a system call: there may be less, never more.
    got, true = seconds(result, 'do_sandbox', 'sandboxed_work'), result.truth['sandboxed_work'][0]
    check(0.01 < got < true + 0.1 + result.stolen, f'{got:.3f} of {true:.3f} s: {result.err}')
    check('1 threads or processes were not sampled' in result.err, result.err)


@test
def sandbox_without_perf_events():
    """the same where each tick signals, but is no period: no time is counted twice"""
    need_filters()
    for rate in '99', '199':
        result = record(TARGET, 'sandbox', '0.4', options=['-F', rate],
                        preexec_fn=forbid_perf_events)
        got, true = seconds(result, 'sandboxed_work'), result.truth['sandboxed_work'][0]
        check(result.status == 17 and got < true + 0.1 + result.stolen,
              f'{got:.3f} of {true:.3f} s: {result.err}')


def in_sandbox(how, what, *options, used='0.1'):
    """Records a program that installs a filter in its middle, in one way, and then works."""
    result = record(SANDBOX, how, what, used, options=options)
    if result.status == 4:
        raise Skip('seccomp filters are not available')
    check(result.status == 17, f'{how} {what}: {result.status} {result.err}')
    return result


LEFT_OUT = '1 threads or processes were not sampled'


@test
def sandbox_begins_in_any_way():
    """no call that a filter ends the program for, however that is installed"""
    for how in ['prctl', 'seccomp', 'calls'] + ['privileged'] * (not os.getuid()):
        result = in_sandbox(how, 'self')
        check(seconds(result, 'main', 'sandboxed_work') > 0, f'{how}: {result.stacks[:5]}')
        check(LEFT_OUT not in result.err, f'{how}: {result.err}')


@test
def sandbox_of_many_kinds():
    """threads, forks and programs that begin in a sandbox live, and are said to be missing"""
    for what in 'thread', 'fork', 'exec', 'spawn':
        result = in_sandbox('prctl', what)
        check(seconds(result, 'main', 'free_work') > 0, f'{what}: {result.stacks[:5]}')
        check(LEFT_OUT in result.err, f'{what}: {result.err}')


@test
def executed_behind_an_unseen_filter():
    """a program that is executed behind a filter that no agent saw lives, with --heap, too"""
    for options in (), ('--heap',):
        in_sandbox('unseen', 'exec', *options)


@test
def sandbox_begins_during_a_sample():
    """a filter for all threads comes when the handler of another one is done"""
    result = in_sandbox('seccomp', 'held')
    check(seconds(result, 'sandboxed_work') > 0, f'{result.stacks[:5]}')


@test
def sandboxed_stacks():
    """in a sandbox: a thread from before, a stack that grows, code that nobody knows"""
    result = in_sandbox('seccomp', 'waiting')
    check(seconds(result, 'wait_and_work', 'sandboxed_work') > 0, f'{result.stacks[:5]}')
    result = in_sandbox('seccomp', 'deep')
    check(seconds(result, 'main', 'call_deep', 'sandboxed_work') > 0, f'{result.stacks[:5]}')
    check(not seconds(result, '[truncated]'), f'{result.stacks[:5]}')
    result = in_sandbox('seccomp', 'made')
    check(seconds(result, 'sandboxed_work') > 0, f'{result.stacks[:5]}')


@test
def sandboxed_loader():
    """a program in a sandbox loads and closes libraries, and is sampled in one"""
    for what in 'loads', 'closes':
        result = in_sandbox('seccomp', what)
        check(seconds(result, 'plugin_one') > 0, f'{what}: {result.stacks[:5]}')
        if what == 'loads':
            check(seconds(result, 'plugin_one') == seconds(result, 'main', 'load_and_work',
                                                           'work_in_library', 'plugin_one'),
                  f'{result.stacks[:5]}')


@test
def sandbox_outlasts_recording():
    """a program in a sandbox goes on when the recording ends"""
    in_sandbox('seccomp', 'self', used='0.01')
    with subprocess.Popen(
            [SHSTK, 'record', '--via=agent', '-F', '999', '-o', os.path.join(TMP, 'out.folded'),
             '--', SANDBOX, 'seccomp', 'self', '1'], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True) as run:
        try:
            told = run.stdout.readline()
            run.send_signal(signal.SIGINT)
            run.send_signal(signal.SIGTERM)
            out, err = run.communicate(timeout=LIMIT)
        finally:
            run.kill()
    check((told, out) == ('in the sandbox\n', 'done\n'), f'{told} {out} {err}')


@test
def sandboxed_allocations():
    """--heap: programs go on in a sandbox, with new threads and processes"""
    for what in 'self', 'thread', 'fork', 'exec':
        in_sandbox('seccomp', what, '--heap')


@test
def rights_given_up_without_a_filter():
    """what a program without new privileges, and without a filter, executes is sampled"""
    result = in_sandbox('none', 'exec')
    check(seconds(result, 'main', 'sandboxed_work') > 0, f'{result.stacks[:5]} {result.err}')


@test
def rights_given_up_by_a_child_of_vfork():
    """what a child of vfork() gives up is not its parent's"""
    for how in 'vfork-rights', 'vfork-filter':
        result = record(TARGET, how, '0.2')
        if result.status == 4:
            raise Skip('no filters of system calls')
        check(result.status == 0, f'{how}: {result.status} {result.err}')
        agrees(result, 'thread_work')
        check(LEFT_OUT not in result.err, f'{how}: {result.err}')


@test
def filter_after_a_program_of_a_child_of_vfork():
    """what is undone in a child of vfork() that executes a program is not undone by its parent, behind a filter"""
    result = record(TARGET, 'vfork-exec-filter', STATIC)
    if result.status == 4:
        raise Skip('no filters of system calls')
    check(result.status == 0, f'{result.status} {result.err}')


@test
def filters_that_cannot_be_read():
    """a program behind a filter is told that another filter cannot be read, as without the agent"""
    for what in 'program', 'code':
        result = record(TARGET, 'bad-filter', what)
        if result.status == 4:
            raise Skip('no filters of system calls')
        check(result.status == 0, f'{what}: {result.status} {result.err}')


@test
def no_filter_is_installed():
    """a program that asks whether there are filters of system calls, and installs none, is sampled as before"""
    result = record(TARGET, 'no-filter', '0.2')
    if result.status == 4:
        raise Skip('no filters of system calls')
    check(result.status == 0, f'{result.status} {result.err}')
    agrees(result, 'thread_work')
    check(LEFT_OUT not in result.err, result.err)


sys.exit(main())
