#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record` by perf events: of commands, processes, groups, the machine. Prints KTAP."""

import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, LIMIT, NOBODY, SHSTK, Skip, check, main, need_nobody, test  # noqa: E402
from perf import kernel_names  # noqa: E402
from recording import (  # noqa: E402
    Recording, Result, Running, STATIC, TARGET, TMP, about, agrees, cpu_time, parse_folded, record,
    refused, seconds, share_agrees, shstk, summary, wait_cpu)

TARGET_FP = os.path.realpath(os.path.join(HERE, 'target-fp'))


def by_perf(*args, options=(), **kwargs):
    """Records by the kernel's samples, whose callchains follow frame pointers."""
    result = record(*args, options=['--via=perf', *options], **kwargs)
    reason = re.search('perf event.*(not permitted|no event|has none).*',
                       result.err)
    if reason:
        raise Skip(reason[0])
    return result


@test
def perf_share_of_two_functions():
    """perf events: 70 % and 30 % of 1.5 s, below main"""
    result = by_perf(TARGET_FP, 'share', '1.5')
    agrees(result, 'work_seventy', 'main', slack=0.15)
    agrees(result, 'work_thirty', 'main', slack=0.1)
    share_agrees(result, summary(result)[0], 'work_seventy', 'work_thirty')
    check(result.status == 0 and summary(result)[1:] == (0, 1, 1), result.err)
    check('sampled by perf events' in result.err, result.err)


@test
def perf_follows_threads_and_processes():
    """perf events: threads, forks, exec, each with its name"""
    result = by_perf(TARGET_FP, 'threads', '6', '6', '0.1',
                     options=['--per-thread'])
    towers = {frames[0] for frames, _ in result.stacks
              if 'thread_work' in frames}
    check(len(towers) == 6, f'{towers} {result.err}')
    result = by_perf(TARGET_FP, 'fork', '4', '0.1')
    agrees(result, 'child_work', 'do_fork')
    check(summary(result)[3] >= 4, result.err)
    result = by_perf('sh', '-c', f'{TARGET_FP} exec 0.2; {STATIC} burn 0.2;'
                     'exit 5')
    check(result.status == 5, f'{result.status} {result.err}')
    # The last call is in the static program.
    before, static = result.truth['burn']
    about(seconds(result, 'do_exec'), before, 0.08 + result.stolen, 'before exec')
    agrees(result, 'after_exec_work', slack=0.08)
    about(seconds(result, 'target-static'), static, 0.08 + result.stolen, 'static program')


@test
def perf_libraries_at_one_address():
    """perf events: samples of closed libraries keep the right name"""
    result = by_perf(TARGET_FP, 'plugins')
    for name in 'plugin_one', 'plugin_two':
        agrees(result, name)


@test
def perf_time_off_the_cpu():
    """--off-cpu: where a thread sleeps and how long; --wall: both"""
    start = time.monotonic()
    result = by_perf('sleep', '0.7', options=['--off-cpu'])
    got, took = seconds(result), time.monotonic() - start
    check(0.69 < got < took, f'{got} s off the CPU, {took} s in all: {result.err}')
    check(any('nanosleep' in f for frames, _ in result.stacks
              for f in frames), f'{result.stacks}')
    result = by_perf(TARGET_FP, 'sleeper', '1', options=['--wall'])
    got = seconds(result, 'sleeping_thread') + seconds(result)
    check(got > 1.9, f'{got} s')
    check(seconds(result, 'do_sleeper') > 0.1, result.err)


@test
def perf_threads_that_begin_all_the_time():
    """--off-cpu: the sleep of each of 160 threads, while the recorder changes how it samples"""
    result = record(TARGET, 'births', '16', '10', options=['--off-cpu', '--via=copies'])
    if 'not permitted' in result.err:
        raise Skip(result.err)
    slept = result.truth['slept'][0]
    about(seconds(result, 'born_sleeper'), slept, 0.01 * slept, 'their sleep')


@test
def perf_statuses():
    """perf events: exit status, a crash, and the profile of it"""
    result = by_perf(TARGET_FP, 'exit', '77')
    check(result.status == 77, f'{result.status}')
    result = by_perf(TARGET_FP, 'crash', '0.3')
    check(result.status == 128 + signal.SIGSEGV, f'{result.status}')
    agrees(result, 'burn')
    refused(record('/nonexistent/program', options=['--via=perf']), 127,
            'not found')


@test
def perf_attaches():
    """-p: a running process with its threads, until Ctrl-C or its end"""
    by_perf('true')
    for how in signal.SIGINT, signal.SIGKILL:
        path = os.path.join(TMP, 'attach.folded')
        with Running('stacks', target=TARGET_FP) as target:
            with subprocess.Popen(
                    [SHSTK, 'record', '--via=perf', '-F', '999', '-o', path,
                     '-p', str(target.pid)], stderr=subprocess.PIPE,
                    text=True) as run:
                try:
                    check('by perf events' in run.stderr.readline(), 'not attached')
                    before = cpu_time(target.pid)
                    wait_cpu(target.pid, before + 0.4)
                    used = cpu_time(target.pid) - before
                    if how == signal.SIGKILL:
                        os.kill(target.pid, how)
                    else:
                        run.send_signal(how)
                    _, err = run.communicate(timeout=LIMIT)
                finally:
                    run.kill()
        check(run.returncode == 0, f'{run.returncode} {err}')
        got = seconds(Result(0, '', '', parse_folded(path), {}), 'busy_forever')
        check(got > used - 0.1, f'{got} s of {used} s: {err}')


def until_used(pid, wanted):
    """Returns words of a shell script that waits until a process has used more CPU time than when they began."""
    ticks = int(wanted * os.sysconf('SC_CLK_TCK'))
    return (f'ticks=$(awk \'{{ print $14 + $15 + {ticks} }}\' /proc/{pid}/stat); '
            f'until awk -v ticks=$ticks \'{{ exit !($14 + $15 >= ticks) }}\' /proc/{pid}/stat; '
            'do :; done; ')


@test
def perf_whole_system():
    """-a: other processes too, for as long as a command runs"""
    by_perf('true')
    with Recording('other', target=TARGET_FP) as other:
        result = by_perf('sh', '-c', until_used(other.target, 0.2) +
                         f'exec {TARGET_FP} burn 0.5', options=['-a'])
        if 'not permitted' in result.err:
            raise Skip('not permitted')
        check(result.status == 0, result.err)
        agrees(result, 'burn', 'do_burn', slack=0.15)
        check(seconds(result, 'do_forever') > 0.1, 'not the other process')


@test
def perf_cgroup():
    """--cgroup: what runs there, and nothing else"""
    by_perf('true')
    roots = [where for where in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified',
                                 '/sys/fs/cgroup/perf_event')
             if os.path.exists(os.path.join(where, 'cgroup.procs'))]
    if not roots:
        raise Skip('no cgroup file system')
    group = os.path.join(roots[0], f'shstk-test-{os.getpid()}')
    try:
        os.mkdir(group)
    except OSError as err:
        raise Skip(f'{group}: {err.strerror}') from err
    try:
        with Recording('grouped', target=TARGET_FP) as inside:
            with open(os.path.join(group, 'cgroup.procs'), 'w',
                      encoding='ascii') as file:
                file.write(str(inside.target))
            result = record('sh', '-c', until_used(inside.target, 0.2) +
                            f'exec {TARGET_FP} burn 0.4',
                            options=['--via=perf', '--cgroup', group])
            os.kill(inside.target, signal.SIGKILL)
            inside.finish()
        if 'perf event' in result.err and not result.stacks:
            raise Skip(result.err.strip())
        check(seconds(result, 'do_forever') > 0.05, result.err)
        check(not seconds(result, 'do_burn'), 'the command is outside')
    finally:
        end = time.monotonic() + LIMIT
        while os.path.exists(group) and time.monotonic() < end:
            try:
                os.rmdir(group)
            except OSError:
                time.sleep(0.05)


@test
def perf_kernel_frames():
    """--kernel: the kernel's functions above the system call, by name"""
    if not kernel_names():
        raise Skip('the kernel hides its addresses')
    result = by_perf('dd', 'if=/dev/zero', 'of=/dev/null', 'bs=256k',
                     'count=20000', options=['--kernel'])
    names = {f for frames, _ in result.stacks for f in frames}
    check(any('read_zero' in f or 'read_iter_zero' in f for f in names) and
          'vfs_read' in names, f'{sorted(names)[:40]}')


@test
def perf_lost_records():
    """perf events: with the recorder stopped, what found no room is counted"""
    by_perf('true')
    with Recording('perf-lost', '--via=perf', '-F', '10000', '--buffer=16',
                   '--depth=64', target=TARGET_FP,
                   job=('forever-below', '60')) as recording:
        recording.run.send_signal(signal.SIGSTOP)
        wait_cpu(recording.target, cpu_time(recording.target) + 0.6)
        os.kill(recording.target, signal.SIGKILL)
        recording.run.send_signal(signal.SIGCONT)
        result = recording.finish()
    lost = summary(result)[1]
    check(lost > 20 and f'lost {lost} records: a ring was full' in result.err,
          result.err)


@test
def perf_refusals():
    """what cannot be had from perf events: one line each"""
    refused(record('true', options=['-e', 'nosuch']), 2, 'nosuch.*cpu-clock')
    refused(shstk('record', '-a', '-p', '1'), 2, 'more than one')
    refused(shstk('record', '--via=agent', '--off-cpu', 'true'), 2, 'off-cpu')
    refused(shstk('record', '--off-cpu', '--wall', 'true'), 2, 'off-cpu')
    refused(shstk('record', '--via=nobody', 'true'), 2, 'nobody')
    refused(shstk('record', '--via=perf', '-p', '4194303'), 125, 'No such proc')
    refused(shstk('record', '--via=perf', '--cgroup=/nonexistent', 'true'), 125,
            'nonexistent')


@test
def perf_events_of_the_hardware():
    """-e cycles: counted, or one line that this machine does not"""
    for name in 'cycles', 'instructions', 'branches':
        result = record(TARGET_FP, 'share', '0.1',
                        options=['--via=perf', '-e', name])
        if result.status == 125:
            refused(result, 125, f"no event '{name}' on this machine|not permitted")
        else:
            check(result.status == 0 and f' {name}, sampled by' in result.err,
                  result.err)


@test
def perf_without_permission():
    """perf events: one line where the kernel refuses"""
    need_nobody()
    by_perf('true')
    for args in ['-a', '--duration=1'], ['-p', str(os.getpid())]:
        run = shstk('record', '--via=perf', '-o', '/dev/null', '--format=folded', *args, **NOBODY)
        refused(run, 125, 'not permitted[, ].*perf_event_paranoid')


sys.exit(main())
