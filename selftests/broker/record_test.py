#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests what ordinary users record with a broker that lends walks of stacks in the kernel.

    record_test.py [TEST...]

Prints KTAP.
"""

import atexit
import collections
import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, SHSTK, Process, check, main, one_line, run, stack_lines, test)
from lending import broker, why_not    # noqa: E402

SPIN = os.path.join(BUILD, 'selftests/bpf/spin')
NAPS = os.path.join(BUILD, 'selftests/bpf/naps')
WALKED = re.compile(r'(\d+) of \d+ stacks were walked in the kernel')
PATIENCE = 400      # seconds


def record(who, *options):
    return run(SHSTK, 'record', '-F', '499', '-o', '-', '--format=folded', *options, **who)


def walked(done):
    """How many stacks were walked, as the recorder says."""
    check(done.returncode == 0, done.stderr)
    found = WALKED.search(done.stderr)
    return int(found.group(1)) if found else 0


def record_until_walked(who, *options):
    """Records again and again, as long as no stack is walked: a file has its table later."""
    until = time.monotonic() + PATIENCE
    while True:
        done = record(who, *options)
        if walked(done):
            return done
        check(time.monotonic() < until, f'nothing is walked: {done.stderr}')


def stacks_of(done, function):
    """The stacks of a function, each up to it."""
    lines = [stack + ';' for stack, _ in stack_lines(done.stdout)]
    return {line[:line.index(f';{function};')] for line in lines if f';{function};' in line}


def heaviest(done, function):
    """The stack of a function that most time was spent in, up to it."""
    sums = collections.Counter()
    for stack, value in stack_lines(done.stdout):
        if f';{function};' in stack + ';':
            sums[stack[:(stack + ';').index(f';{function};')]] += value
    return sums.most_common(1)[0][0]


def check_whole(done, function, callers):
    stacks = stacks_of(done, function)
    check(stacks and all(stack.endswith(callers) for stack in stacks), done.stdout)


@contextlib.contextmanager
def at_work(who, *command):
    with Process(command, **who) as process:
        yield process.pid
        process.kill()


@functools.lru_cache(maxsize=None)
def shared():
    """How to run a command as a user who asks a broker that knows the files of the tests."""
    lasting = contextlib.ExitStack()
    atexit.register(lasting.close)
    _, who = lasting.enter_context(broker())
    for program in SPIN, NAPS:
        with at_work(who, program, '100000000') as pid:
            way = ['--off-cpu'] if program == NAPS else []
            record_until_walked(who, *way, '-p', str(pid), '--duration=1')
    return who


@test
def running():
    """what runs already is walked, and what waits"""
    who = shared()
    with at_work(who, SPIN, '100000') as pid:
        done = record_until_walked(who, '-p', str(pid), '--duration=1')
        check_whole(done, 'innermost', 'main;outer;middle')
    with at_work(who, NAPS, '100000000') as pid:
        done = record_until_walked(who, '--off-cpu', '-p', str(pid), '--duration=1')
        check_whole(done, 'innermost', 'main;outer;middle')


@test
def command():
    """a command is walked, and its stacks are those that copies give"""
    who = shared()
    done = record_until_walked(who, '--', SPIN, '0.5')
    check('that the broker opened, stacks walked by unwind rules' in done.stderr, done.stderr)
    check_whole(done, 'innermost', 'main;outer;middle')
    copied = record(who, '--via=copies', '--', SPIN, '0.5')
    check(not walked(copied), copied.stderr)
    check(heaviest(done, 'innermost') == heaviest(copied, 'innermost'), done.stdout)


@test
def explicit():
    """--via=bpf works, and says how many stacks were walked"""
    done = record_until_walked(shared(), '--via=bpf', '--', SPIN, '0.5')
    check_whole(done, 'innermost', 'main;outer;middle')


@test
def explicit_without():
    """--via=bpf without a broker, or where it lends no walks, says what helps"""
    with broker('--no-walk') as (_, who):
        for environment in who['env'], dict(os.environ, SHSTK_BROKER=''):
            done = record({**who, 'env': environment}, '--via=bpf', '--', 'true')
            check(done.returncode == 125 and 'shstk-broker(1)' in one_line(done.stderr),
                  done.stderr)


@test
def switched_off():
    """with --no-walk stacks are copied, and nothing is said of walks"""
    with broker('--no-walk') as (_, who):
        done = record(who, '--', SPIN, '0.5')
    check(done.returncode == 0, done.stderr)
    check('walked' not in done.stderr and 'BPF' not in done.stderr, done.stderr)
    check_whole(done, 'innermost', 'main;outer;middle')


def record_and_kill(seconds):
    """Records a program for so long, and kills the broker meanwhile."""
    with broker() as (process, who), at_work(who, SPIN, '100000') as pid:
        recorder = Process(
            [SHSTK, 'record', '-F', '499', '-o', '-', '--format=folded', '-p', str(pid),
             f'--duration={seconds}'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **who)
        # It says so when it has what the broker gives.
        said = recorder.stderr.readline()
        process.kill()
        out, err = recorder.communicate(timeout=300)
    check('that the broker opened, stacks walked' in said, said + err)
    check(recorder.returncode == 0, err)
    return subprocess.CompletedProcess([], 0, out, err)


@test
def broker_killed():
    """when the broker is killed, the recording goes on with copies"""
    for seconds in 3, 15, 75:   # on a busy machine nothing may run for a while
        done = record_and_kill(seconds)
        if stacks_of(done, 'innermost'):
            break
    check_whole(done, 'innermost', 'main;outer;middle')


# recvmsg(2)
RECEIVES = '47' if os.uname().machine == 'x86_64' else '212'


def await_call(pid, number):
    """Waits until a process waits in a system call."""
    until = time.monotonic() + PATIENCE
    while True:
        with open(f'/proc/{pid}/syscall', encoding='ascii') as file:
            if file.read().split()[0] == number:
                return
        check(time.monotonic() < until, 'it does not wait for the broker')
        time.sleep(0.01)


def stop(process):
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


@test
def stopped_meanwhile():
    """a recorder that is stopped while it waits for the broker gets its answer when it goes on"""
    with broker() as (process, who):
        stop(process)
        recorder = Process([SHSTK, 'record', '-F', '499', '-o', '-', '--format=folded', '--', SPIN, '0.1'],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **who)
        try:
            await_call(recorder.pid, RECEIVES)
            stop(recorder)
            recorder.send_signal(signal.SIGCONT)
        finally:
            process.send_signal(signal.SIGCONT)
            _, err = recorder.communicate(timeout=PATIENCE)
    check(recorder.returncode == 0 and 'that the broker opened, stacks walked' in err, err)


if __name__ == '__main__':
    sys.exit(main(why_not))
