#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk record` and `shstk trace` on programs of known behaviour.

What is expected of a profile never depends on how long something took on the
wall clock: the target measures what its functions use by its own CPU time, and
tells it in a file. Prints KTAP.
"""

import collections
import ctypes
import errno
import glob
import gzip
import math
import os
import platform
import pty
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, HERE, LIMIT, SHSTK, Skip, check, end_with_parent, main, make_folder, one_line, test)
from harness import run as run_here  # noqa: E402
from perf import kernel_names  # noqa: E402

TARGET = os.path.realpath(os.path.join(HERE, 'target'))
POINTERS = os.path.join(HERE, 'pointers')
TIGHT = os.path.join(HERE, 'tight')
SANDBOX = os.path.realpath(os.path.join(HERE, 'sandbox'))
TARGET_FP = os.path.realpath(os.path.join(HERE, 'target-fp'))
STORM = os.path.join(HERE, 'storm')
STATIC = os.path.join(HERE, 'target-static')
NAMES = os.path.join(HERE, 'names')
MUSL = os.path.join(HERE, 'target-musl')
SYMBOLIZER = os.path.join(BUILD, 'libshstk-go-symbolize.so')
TRUTH = 99      # the target's file descriptor for what its functions used


def make_tmp():
    """A folder that other users may enter and where programs can run: in /tmp, else beside
    the script, which may lie below somebody's private home."""
    for place in None, HERE:
        folder = make_folder(place)
        os.chmod(folder, 0o755)
        try:
            subprocess.run([shutil.copy('/bin/true', folder)], check=True)
            return folder
        except PermissionError:
            pass
    raise OSError('programs can run in no folder')


TMP = make_tmp()


# truth: {function: [seconds of each call]}, as the target measured it.
Result = collections.namedtuple('Result', 'status out err stacks truth')


def parse_folded(path):
    """[(list of frames, value)]"""
    stacks = []
    if os.path.exists(path):
        with open(path, encoding='utf-8') as file:
            for line in file:
                stack, value = line.rstrip('\n').rsplit(' ', 1)
                stacks.append((stack.split(';'), int(value)))
    return stacks


def shstk(*args, **kwargs):
    """Run the command where every user may be."""
    return run_here(SHSTK, *args, **{'cwd': TMP, **kwargs})


def open_truth():
    """Make the file that targets tell their truth in."""
    file = os.open(os.path.join(TMP, 'truth'),
                   os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(file, TRUTH)
    os.close(file)


def read_truth():
    """What targets told since it was emptied."""
    truth = collections.defaultdict(list)
    with open(os.path.join(TMP, 'truth'), encoding='ascii') as file:
        for line in file:
            function, used = line.split()
            truth[function].append(float(used))
    return truth


KERNEL = ('--via', '--off-cpu', '--kernel', '--event', '--cgroup', '-e', '-a', '--heap')


def by_agent(options):
    """The option that has the agent sample, if nothing else is said."""
    return () if any(o.startswith(KERNEL) for o in options) else ('--via=agent',)


def record(*args, options=(), **kwargs):
    """Record a command into folded stacks."""
    path = os.path.join(TMP, 'out.folded')
    if os.path.exists(path):
        os.unlink(path)
    os.ftruncate(TRUTH, 0)
    run = shstk('record', '-o', path, '-F', '999', *by_agent(options), *options, '--', *args,
                pass_fds=(TRUTH,), **kwargs)
    return Result(run.returncode, run.stdout, run.stderr, parse_folded(path),
                  read_truth())


def seconds(result, *functions):
    """CPU time of the stacks that contain all of the functions, in seconds."""
    return sum(value for frames, value in result.stacks
               if all(f in frames for f in functions)) / 1e9


def refused(run, status, words):
    """The command refused with a status and one line that has the words."""
    line = one_line(run.err if isinstance(run, Result) else run.stderr)
    code = run.status if isinstance(run, Result) else run.returncode
    check(code == status, f'status {code}, not {status}: {line}')
    check(re.search(words, line), f'{words!r} is not in {line!r}')


def about(value, wanted, slack, what, late=0):
    """The value is within a tolerance; so much of it may be in the profile elsewhere."""
    check(wanted - slack <= value + late and value <= wanted + slack,
          f'{what}: {value:.3f} and {late:.3f} elsewhere, not {wanted:.3f} within {slack:.3f}')


def unsampled(result, *functions):
    """CPU time that no tick of the kernel sampled, where there are no perf events."""
    return seconds(result, '[between ticks]', *functions)


def agrees(result, function, *others, slack=0.1):
    """A function's time in the profile is what the target says it used."""
    check(result.truth[function], f'{function} did not run: {result.err}')
    about(seconds(result, function, *others), sum(result.truth[function]), slack,
          f'CPU seconds of {function}', unsampled(result))


def share_agrees(result, samples, *functions):
    """The first function's share of both is what the target says it was."""
    used = [sum(result.truth[f]) for f in functions]
    got = [seconds(result, f) for f in functions]
    share = used[0] / sum(used)
    # Five standard deviations of so many samples, were they at random.
    about(got[0] / sum(got), share, 5 * (share * (1 - share) / samples) ** 0.5,
          f'share of {functions[0]}')


def summary(result):
    """(samples, lost, threads, processes) of the last line."""
    found = re.search(r'(\d+) samples?, (\d+) lost, (\d+) threads?, '
                      r'(\d+) process', result.err)
    check(found, f'no summary in {result.err!r}')
    return tuple(int(n) for n in found.groups())


@test
def share_of_two_functions():
    """70 % and 30 % of 2 s are measured within five standard deviations"""
    result = record(TARGET, 'share', '2')
    about(seconds(result, 'work_seventy') + seconds(result, 'work_thirty'),
          sum(map(sum, result.truth.values())), 0.1, 'CPU seconds in all',
          unsampled(result))
    # The work alternates every 35 and 15 ms.
    share_agrees(result, summary(result)[0], 'work_seventy', 'work_thirty')


@test
def stacks_reach_the_first_frame():
    """every stack is complete: main below _start, nothing of the agent"""
    result = record(TARGET, 'share', '1')
    for frames, _ in result.stacks:
        check('[truncated]' not in frames, f'truncated: {frames}')
        check(not any('agent' in f for f in frames), f'agent in {frames}')
        if 'do_share' in frames:
            check(frames[1] == '_start' and 'main' in frames, f'{frames}')


@test
def threads_are_followed():
    """12 threads at once: each in the profile, with its share"""
    result = record(TARGET, 'threads', '12', '12', '0.25',
                    options=['--per-thread'])
    towers = collections.Counter()
    for frames, value in result.stacks:
        if 'thread_work' in frames:
            towers[frames[0]] += value / 1e9
            check(any('clone' in f for f in frames[:3]) or
                  'start_thread' in frames[:4], f'{frames}')
    check(len(towers) == 12, f'{len(towers)} threads: {towers}')
    late = collections.Counter()
    for frames, value in result.stacks:
        if '[between ticks]' in frames and frames[0] in towers:
            late[frames[0]] += value / 1e9
    for value, used in zip(sorted(towers[name] + late[name] for name in towers),
                           sorted(result.truth['thread_work'])):
        about(value, used, 0.1, f'one of {towers}, {late}')
    check(summary(result)[2] == 13, result.err)


@test
def short_threads_by_the_thousand():
    """2000 threads of 1 ms: slots are reused, the CPU time adds up"""
    result = record(TARGET, 'threads', '2000', '10', '0.001')
    check(result.status == 0, result.err)
    samples, lost, threads, _ = summary(result)
    check(threads == 2001, result.err)
    check(lost == 0 and samples > 0, result.err)
    # Starting and ending threads is on top of the work. Of a thread of 1 ms there is a sample
    # or two: what the kernel did in its time, and what no tick saw, have frames of their own.
    used = float(re.search(r'of ([\d.]+) s CPU', result.err)[1])
    work = sum(result.truth['thread_work'])
    got = seconds(result, 'thread_work')
    rest = seconds(result, '[kernel]') + unsampled(result)
    check(0.5 * work < got < used + 0.1, f'{got} s of {work} s, {used} s in all')
    check(got + rest > 0.85 * work, f'{got} and {rest} s of {work} s, {used} s in all')


@test
def threads_that_end_with_a_period():
    """2000 threads, each of which may end with a period: no sample is of less than none"""
    result = record(TARGET, 'threads', '2000', '10', '0.001', options=['-F', '9999'])
    check(result.status == 0 and 'wrote into the rings' not in result.err, result.err)


@test
def more_threads_than_slots():
    """5000 threads one after the other: more than there are slots"""
    result = record(TARGET, 'threads', '5000', '50', '0.0001')
    check(result.status == 0 and summary(result)[2] == 5001, result.err)
    check('not sampled' not in result.err, result.err)


@test
def fork_without_exec():
    """forked children are sampled on their own"""
    result = record(TARGET, 'fork', '6', '0.25', options=['--per-thread'])
    # Of them and perhaps the parent; on a busy machine the kernel may see one late.
    towers = {frames[0] for frames, _ in result.stacks if 'do_fork' in frames}
    check(len(towers) in (6, 7), f'{towers}')
    if 'sampled late' not in result.err:
        agrees(result, 'child_work', 'do_fork', slack=0.2)
    work = sum(result.truth['child_work'])
    check(seconds(result, 'do_fork') + unsampled(result) > 0.8 * work, result.err)
    check(summary(result)[3] == 7, result.err)


@test
def many_forks():
    """200 short children: none is lost from the count"""
    result = record(TARGET, 'fork', '200', '0.004')
    check(result.status == 0 and summary(result)[3] == 201, result.err)
    # The kernel looks at timers at its ticks. What a child that saw none has used is
    # charged to the place where it ended, and on a busy machine most may see none.
    work, got = sum(result.truth['child_work']), seconds(result)
    check(got > 0.9 * work, f'{got} of {work} s: {result.err}')
    check(seconds(result, 'child_work') > 0, result.err)


@test
def exec_is_followed():
    """the image after exec is sampled, under its own frames"""
    result = record(TARGET, 'exec', '0.4')
    agrees(result, 'burn', 'do_exec')
    agrees(result, 'after_exec_work')


@test
def cleared_environment():
    """children started without LD_PRELOAD are followed: three ways"""
    for how in 'spawn', 'vfork', 'fork':
        result = record(TARGET, 'spawn', how, '0.3')
        check(result.status == 0, f'{how}: {result.err}')
        agrees(result, 'after_exec_work')


@test
def shell_pipeline():
    """processes of a shell script are followed; the status is the script's"""
    result = record('sh', '-c', f'{TARGET} burn 0.3 | cat; {TARGET} share 0.3;'
                    f'({TARGET} after-exec 0.3); exit 5')
    check(result.status == 5, f'status {result.status}')
    for name in 'burn', 'work_seventy', 'work_thirty', 'after_exec_work':
        agrees(result, name)


@test
def all_signals_blocked():
    """a thread that blocks every signal is sampled"""
    result = record(TARGET, 'masked', '0.5')
    agrees(result, 'masked_work')


@test
def handler_with_full_mask():
    """a handler that blocks every signal is sampled as other code is"""
    result = record(TARGET, 'handler', '1.5')
    agrees(result, 'handler_work', 'do_handler', slack=0.15)
    agrees(result, 'burn', 'do_handler', slack=0.15)


@test
def signal_soon_after():
    """a signal that comes when a call has begun, but does not wait yet, ends it"""
    for options in [], ['--wall']:
        result = record(TARGET, 'soon', options=options)
        # On a busy machine some come before the call, by itself too.
        check(result.status < 8, f'{result.status} of 40 waited in vain {options}')


@test
def stack_with_a_guard():
    """a page of the stack that can't be read for a while cuts stacks, not the program"""
    for options in [], ['--wall']:
        result = record(TARGET, 'guarded', '0.6', options=options)
        check(result.status == 0, result.err)
        whole = seconds(result, 'guarded', 'guard_below', 'burn')
        below = seconds(result, 'guard_below', 'burn')
        check(below > 0.6, f'{below} s')
        # Frames on this side of the guard are found, those beyond it before and after.
        check(0.4 * below < whole < 0.9 * below, f'{whole} of {below} s')


@test
def handlers_without_alignment():
    """handlers that are entered on a stack of no alignment"""
    if platform.machine() != 'x86_64':
        raise Skip('the ABI of x86')
    result = record(TARGET, 'unaligned', '0.5')
    check(result.status == 1, f'{result.status}: 1 is the number of handlers of the agent')
    agrees(result, 'burn', 'do_unaligned', slack=0.15)


@test
def masks_and_actions_read_back():
    """masks and actions read back as the program set them"""
    check(not subprocess.run([TARGET, 'masks'], check=False).returncode, 'by itself')
    for options in [], ['--wall']:
        result = record(TARGET, 'masks', options=options)
        check(result.status == 0, result.out)


@test
def storm_of_handlers():
    """every call of signal(7), ended by every kind of handler, ends as by itself"""
    rounds = os.environ.get('STORM_ROUNDS', '40')
    limit = 1000 + int(rounds)
    def storm(*command):
        run = subprocess.run([*command, STORM, rounds], capture_output=True, text=True,
                             timeout=limit, check=False)
        check(run.returncode == 0, f'{run.stdout[-200:]} {run.stderr}')
        return run.stdout.split('\n')
    alone = storm()
    for options in ['--via=agent'], ['--via=agent', '--wall']:
        recorded = storm(SHSTK, 'record', '-q', '-F', '9999', *options, '-o',
                         os.path.join(TMP, 'storm.folded'), '--')
        for line, got in zip(alone, recorded):
            check(line == got, f'{line} by itself, {got} recorded {options}')


@test
def orders_of_two_signals():
    """the agent's signal among the instructions of a call that another one ends"""
    if platform.machine() != 'x86_64':
        raise Skip('steps by ptrace: on x86 only')
    stride = os.environ.get('STORM_STRIDE')
    run = subprocess.run([SHSTK, 'record', '--via=agent', '-q', '-F', '1', '-o', '/dev/null',
                          '--format=folded', '--', os.path.join(HERE, 'interleave'),
                          stride or '10000'], capture_output=True, text=True,
                         check=False, timeout=None if stride else LIMIT)
    check(run.returncode == 0, f'{run.returncode} {run.stdout} {run.stderr}')


def in_all_hooks(*options):
    """Record a program that gets the agent's signal at each instruction of the agent's hooks."""
    result = record(os.path.join(HERE, 'inside'), '1000', options=('-F', '1', *options))
    check(result.status == 0, f'{options}: {result.status} {result.out} {result.err}')
    calls = re.findall(r'^(\w+) (\d+) of \d+$', result.out, re.MULTILINE)
    check(len(calls) == 11, result.out)
    return result, calls


@test
def signals_in_hooks():
    """a sample in any hook of the agent is of its caller or the call, which do not notice"""
    if platform.machine() != 'x86_64':
        raise Skip('steps by ptrace: on x86 only')
    for options in (), ('--wall',):
        result, calls = in_all_hooks(*options)
        for name, signals in calls:
            hit = [(frames, value) for frames, value in result.stacks if 'in_' + name in frames]
            got = sum(value for _, value in hit) / 1e9
            check(int(signals) <= got < int(signals) + 1, f'{options} {name}: {got}')
            for frames, _ in hit:
                at = frames.index('in_' + name)
                check(frames[1] == '_start' and frames[at - 1] == 'be_child' and
                      len(frames) - at <= 2 and 'shstk' not in frames[-1], f'{frames}')


@test
def sampled_late():
    """time that nothing could sample has a frame of its own, and that is said"""
    result = record(TARGET, 'held', '0.4')
    late = re.search(r'(\d+)% of the CPU time passed between', result.err)
    check(late and int(late[1]) > 60, result.err)
    check(seconds(result) > 0.4, result.err)
    check(seconds(result, '[between ticks]') > 0.6 * seconds(result), str(result.stacks))


@test
def rate_in_process():
    """-F 999: a sample for each millisecond of CPU time, which the kernel's ticks need not see"""
    if not has_own_event():
        raise Skip('the kernel gives a thread no perf event on its own CPU clock')
    result = record(TARGET, 'burn', '1')
    got, used = summary(result)[0] / 999, sum(result.truth['burn'])
    # On a busy machine some signals come late, and then count for several periods.
    check(0.6 * used < got < 1.1 * used + 0.1, f'{got:.3f} s of {used:.3f} s: {result.err}')


@test
def samples_longer_than_periods():
    """a program gets on where a sample takes longer than a period, and its time is counted"""
    os.ftruncate(TRUTH, 0)
    subprocess.run([TARGET, 'undescribed', '1500'], pass_fds=(TRUTH,), check=True)
    alone = read_truth()['undescribed'][0]
    result = record('bash', '-c', f'ulimit -t {int(100 * alone) + 10}; exec "$@"', '-', TARGET,
                    'undescribed', '1500', options=['-F', '10000', '--depth=2000'])
    check(result.status == 0, f'{result.status}: it takes {alone:.2f} s alone; {result.err}')
    agrees(result, 'undescribed', slack=0.1 + 0.1 * result.truth['undescribed'][0])


def filter_calls():
    """Give this process a filter of system calls that lets all pass."""
    code = ctypes.create_string_buffer(struct.pack('=HBBI', 6, 0, 0, 0x7fff0000))
    program = ctypes.create_string_buffer(struct.pack('=HxxxxxxQ', 1, ctypes.addressof(code)))
    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), 'no filter')


@test
def rate_of_ticks():
    """where the kernel's ticks limit the rate it is said, at the start and in the profile"""
    words = r'\d+ samples a second of each thread at most here, not 9999: the kernel.s tick'
    path = os.path.join(TMP, 'limited.pb')
    if os.getuid():
        raise Skip('needs root to have a filter of system calls and no other limits')
    for rate, wanted in ('9999', 1), ('99', 0):
        run = subprocess.run([SHSTK, 'record', '--via=agent', '-F', rate, '-o', path, '--',
                              TARGET, 'burn', '0.2'], preexec_fn=filter_calls, capture_output=True,
                             text=True, timeout=LIMIT, check=False)
        check(run.returncode == 0, run.stderr)
        check(len(re.findall(words, run.stderr)) == wanted, f'{rate}: {run.stderr}')
        with open(path, encoding='utf-8', errors='replace') as file:
            check(len(re.findall(words, file.read())) == wanted, f'{rate}: not in the profile')
    if has_own_event():
        result = record(TARGET, 'burn', '0.2', options=['-F', '9999'])
        check('at most here' not in result.err, result.err)


@test
def own_sigprof():
    """a program's own SIGPROF timer works as without recording"""
    result = record(TARGET, 'sigprof', '0.5')
    check(result.status == 0, f'{result.out} {result.err}')
    agrees(result, 'burn')


@test
def own_realtime_signals():
    """a program that takes all real-time signals gets all of its own"""
    result = record(TARGET, 'signals')
    check(result.status == 0, result.out)
    agrees(result, 'burn', 'do_signals', slack=0.15)


@test
def signals_that_nobody_handles():
    """a program may wait for, read, block, ignore and die by any signal, the agent's too"""
    plain = subprocess.run([TARGET, 'uses', '1', '3'], capture_output=True, text=True,
                           check=False, timeout=LIMIT, pass_fds=(TRUTH,))
    check(plain.returncode == 0, f'{plain.returncode} {plain.stdout}')
    for options in ((), ('--wall',)):
        result = record(TARGET, 'uses', '1', '3', options=options)
        check(result.status == 0, f'{options}: {result.status} {result.out}')


@test
def actions_by_number():
    """a process that resets all signals by system calls of its own lives"""
    plain = subprocess.run([TARGET, 'by-number'], capture_output=True, text=True, check=False,
                           timeout=LIMIT, pass_fds=(TRUTH,))
    check(plain.returncode == 0, f'{plain.returncode} {plain.stdout}')
    for options in ((), ('--wall',)):
        result = record(TARGET, 'by-number', options=options)
        check(result.status == 0, f'{options}: {result.status} {result.out}')


@test
def seccomp_sandbox():
    """a program that forbids itself system calls is sampled and lives"""
    result = record(TARGET, 'sandbox', '0.4')
    if result.status == 4:
        raise Skip('seccomp filters are not available')
    check(result.status == 17, f'{result.status} {result.err}')
    # The first call; the thread of the second one is not sampled. What comes late on a busy
    # machine can't be counted without a system call: there may be less, never more.
    got, true = seconds(result, 'do_sandbox', 'sandboxed_work'), result.truth['sandboxed_work'][0]
    check(0.03 < got < true + 0.1, f'{got:.3f} of {true:.3f} s: {result.err}')
    check('1 threads or processes were not sampled' in result.err, result.err)


def in_sandbox(how, what, *options, used='0.1'):
    """Record a program that installs a filter in its middle, one way, and then works."""
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
def thread_without_libc():
    """a thread made by clone(2) is found and sampled; no call is cut short for it"""
    result = record(TARGET, 'raw', '0.4')
    check(result.status == 0, f'status {result.status} {result.err}')
    got = seconds(result, 'raw_thread_work')
    check(got > 0 and got + unsampled(result) > 0.3, f'{got} s; {result.err}')
    sampled, used = map(float, re.search(r'([\d.]+) of ([\d.]+) s CPU', result.err).groups())
    check(sampled < used + 0.1, f'some of it twice: {result.err}')


@test
def libraries_at_one_address():
    """samples of closed libraries keep the right name"""
    result = record(TARGET, 'plugins')
    check(result.status == 0, result.out)
    agrees(result, 'plugin_one')
    agrees(result, 'plugin_two')


@test
def loader_locked_at_fork():
    """a child of fork() ends though another thread held the loader's lock"""
    for options in (), ('--wall',):
        result = record(TARGET, 'forks-locked', options=options)
        check(result.status == 0, f'{options}: {result.status} {result.err}')


@test
def child_without_fork():
    """a child made by clone(2) writes nothing of its own into its parent's ring"""
    result = record(TARGET, 'raw-fork', options=('--wall', '-F', '1'))
    check(result.status == 0, f'{result.status} {result.err}')
    check(not seconds(result, 'child_sleeps'), f'{result.stacks}')


@test
def signal_of_another_thread():
    """a signal that another thread's timer sent is no sample"""
    result = record(TARGET, 'others-signal', options=('-F', '1'))
    check(result.status == 0, f'{result.status} {result.err}')
    check(seconds(result, 'get_signals_of_others') < 2, f'{result.stacks}')


@test
def tiny_alternate_stack():
    """an alternate stack with no room for a sample is left alone, and the time is not lost"""
    result = record(TARGET, 'tiny-altstack', '0.3')
    check(result.status == 0, f'{result.status} {result.err}')
    check(seconds(result) > 0.29, f'{result.stacks}')


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
def locked_memory():
    """a program that locks its memory does not lock the rings of all others, and is sampled"""
    result = record(TARGET, 'locks', '0.2')
    if result.status == 4:
        raise Skip('memory can not be locked')
    check(result.status == 0, f'{result.status} {result.err}')
    check(int(result.out.split()[0]) < 100 << 10, result.out)
    for function in 'burn', 'thread_work', 'child_work':
        agrees(result, function)


@test
def late_library():
    """a library loaded shortly before _exit is named"""
    result = record(TARGET, 'late')
    agrees(result, 'plugin_two')


@test
def late_recorder():
    """what was closed or ended while the recorder did not run is named"""
    path = os.path.join(TMP, 'stopped.folded')
    for job in 'plugins', 'late':
        os.ftruncate(TRUTH, 0)
        with subprocess.Popen(
                [SHSTK, 'record', '--via=agent', '-F', '999', '-o', path, '--', 'sh', '-c',
                 f'kill -STOP $PPID; exec {TARGET} {job}'], pass_fds=(TRUTH,),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
            try:
                wait_state(run.pid, 'T')
                wait_state(child_of(run.pid), 'Z')
                run.send_signal(signal.SIGCONT)
                _, err = run.communicate(timeout=LIMIT)
            finally:
                run.kill()
        result = Result(run.returncode, '', err, parse_folded(path), read_truth())
        for function in result.truth:
            agrees(result, function)
        check('plugin_two' in result.truth, err)


@test
def exit_statuses():
    """the exit status is the command's"""
    for status in 0, 1, 77, 255:
        result = record(TARGET, 'exit', str(status))
        check(result.status == status, f'{result.status}, not {status}')
    result = record(TARGET, 'quick-exit', '0.1', '3')
    check(result.status == 3, f'{result.status}, not 3')


def has_own_event():
    """Whether a thread may have a perf event on its own CPU clock, as the agent wants one."""
    with open('/proc/self/status', encoding='ascii') as file:
        if 'Seccomp:\t0\n' not in file.read():
            return False    # it does not try where there is a filter
    number = {'x86_64': 298, 'aarch64': 241}.get(platform.machine())
    if not number:
        return False
    # struct perf_event_attr: type (software), size, config (CPU clock), ..., the bits
    # exclude_kernel and exclude_hv
    attr = struct.pack('=IIQ24xQ', 1, 128, 0, 1 << 5 | 1 << 6).ljust(128, b'\0')
    fd = ctypes.CDLL(None).syscall(number, attr, 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def until_death(got, used):
    """What a process used after its last sample is lost if it is killed. With perf events
    that is little; the kernel's ticks may pass a thread over on a busy machine."""
    check(got > (used - 0.1 if has_own_event() else used / 2), f'{got} s of {used} s')


@test
def crash_of_the_target():
    """after SIGSEGV and SIGKILL the profile is there, status 128 + signal"""
    for how, signo in ('crash', signal.SIGSEGV), ('kill', signal.SIGKILL):
        result = record(TARGET, how, '0.5')
        check(result.status == 128 + signo, f'{how}: {result.status}')
        used = sum(result.truth['burn'])
        until_death(seconds(result, 'burn') + unsampled(result), used)
        check(seconds(result, 'burn') < used + 0.1, f'{result.stacks}')


@test
def killed_from_outside():
    """SIGKILL to the target: the profile so far is written"""
    with Recording('killed', '-F', '999') as recording:
        before = cpu_time(recording.target)
        wait_cpu(recording.target, before + 0.5)
        used = cpu_time(recording.target) - before
        os.kill(recording.target, signal.SIGKILL)
        result = recording.finish()
    check(result.status == 128 + signal.SIGKILL, f'{result.status}')
    until_death(seconds(result, 'do_forever') + unsampled(result), used)


class Recording:
    """`shstk record` of a target that runs until a signal ends it."""

    def __init__(self, name, *options, target=None, job=('forever',)):
        self.program = target or TARGET
        self.path = os.path.join(TMP, name + '.folded')
        self.run = subprocess.Popen(
            [SHSTK, 'record', '-o', self.path, *by_agent(options), *options, '--',
             self.program, *job], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        self.target = 0
        self.status = None
        self.err = ''

    def __enter__(self):
        check(self.run.stdout.readline() == 'ready\n', 'not ready')
        self.target = child_of(self.run.pid)
        return self

    def finish(self):
        """Wait for the end; the result."""
        _, self.err = self.run.communicate(timeout=LIMIT)
        return Result(self.run.returncode, '', self.err,
                      parse_folded(self.path), {})

    def __exit__(self, *_):
        try:
            if os.readlink(f'/proc/{self.target}/exe') == self.program:
                os.kill(self.target, signal.SIGKILL)
        except OSError:
            pass
        self.run.kill()
        self.run.communicate()


def child_of(pid):
    """The only child of a process."""
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return int(file.read().split()[0])


def cpu_time(pid):
    """CPU seconds of a process."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def wait_cpu(pid, wanted):
    """Wait until a process used so much CPU time."""
    end = time.monotonic() + LIMIT
    while cpu_time(pid) < wanted:
        check(time.monotonic() < end, 'the target makes no progress')
        time.sleep(0.05)


def on_terminal(args, until, keys):
    """Run on a terminal, press keys after the text; (status, output)."""
    pid, fd = pty.fork()
    if not pid:
        try:
            os.execv(args[0], args)
        finally:
            os._exit(127)   # no second run of these tests
    out, sent = b'', False
    end = time.monotonic() + LIMIT
    while True:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.killpg(os.tcgetpgrp(fd), signal.SIGKILL)
            break
        if not select.select([fd], [], [], 0.5)[0]:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
        if not sent and until(out):
            os.write(fd, keys)
            sent = True
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return os.waitstatus_to_exitcode(status), out.decode()


@test
def ctrl_c_on_a_terminal():
    """Ctrl-C ends the command, and the profile so far is written"""
    path = os.path.join(TMP, 'int.folded')
    status, out = on_terminal(
        [SHSTK, 'record', '-F', '999', '-o', path, '--', TARGET, 'forever'],
        lambda text: re.search(rb'([2-9]\d|\d{3,}) samples', text), b'\x03')
    check(status == 128 + signal.SIGINT, f'{status}: {out}')
    # The 20 samples and more that it was waited for are one period each, or more.
    got = seconds(Result(0, '', '', parse_folded(path), {}), 'do_forever')
    check(got > 19 / 999, f'{got} s')
    check(re.search(r'\r\x1b\[Kshstk record: \d+ samples?, 0 lost, 1 thread, '
                    r'1 process, [\d.]+ s', out), f'no progress line: {out!r}')


@test
def interrupt_by_kill():
    """SIGINT and SIGTERM sent to the recorder alone reach the command"""
    for signo in signal.SIGINT, signal.SIGTERM:
        with Recording('term') as recording:
            wait_cpu(recording.target, 0.3)
            recording.run.send_signal(signo)
            result = recording.finish()
        check(result.status == 128 + signo, f'{result.status}')
        check(result.stacks, 'no profile')


@test
def duration_ends_recording():
    """--duration: the profile is written, the command goes on to its end"""
    # The command ends when it sees the profile, which must not wait for that. On
    # a busy machine nothing may have run in half a second.
    for duration in 0.5, 5, 50:
        result = record('sh', '-c', f'until [ -s {TMP}/out.folded ]; do '
                        f'{TARGET} burn 0.1; done; {TARGET} share 0.1; exit 9',
                        options=[f'--duration={duration}'])
        check(result.status == 9, f'status {result.status}')
        check(not seconds(result, 'do_share'), 'recorded after its end')
        if seconds(result, 'do_burn'):
            return
    check(False, f'no samples in {duration} s: {result.err}')


def leaves_daemon(via):
    """What recording a command that leaves a daemon prints."""
    path = os.path.join(TMP, 'daemon.folded')
    # To files: the daemon keeps its ends of pipes open.
    with open(os.path.join(TMP, 'daemon.out'), 'w+', encoding='ascii') as out, \
         open(os.path.join(TMP, 'daemon.err'), 'w+', encoding='ascii') as err:
        run = subprocess.run([SHSTK, 'record', f'--via={via}', '-o', path, '--', TARGET,
                              'daemon', '1000'], stdout=out, stderr=err,
                             timeout=LIMIT, check=False)
        out.seek(0)
        err.seek(0)
        text = err.read()
        os.kill(int(out.read()), signal.SIGKILL)
    check(run.returncode == 0, f'{run.returncode} {text}')
    return text


@test
def outliving_daemon():
    """a daemon that outlives the command is not waited for, and named"""
    for via in 'agent', 'auto':
        text = leaves_daemon(via)
        named = re.search('1 process outlived the command.*: target \\(([0-9.]+) s of CPU', text)
        check(named and float(named[1]) < 0.1, f'{via}: {text}')


@test
def lost_samples_are_counted():
    """with the recorder stopped and a tiny ring, lost + kept = taken"""
    # At this depth the ring holds some 25 samples, a tenth of a second at 250 Hz.
    with Recording('lost', '-F', '10000', '--buffer=16', '--depth=64',
                   job=('forever-below', '60')) as recording:
        target = recording.target
        recording.run.send_signal(signal.SIGSTOP)
        wait_cpu(target, cpu_time(target) + 1.3)
        os.kill(target, signal.SIGKILL)
        recording.run.send_signal(signal.SIGCONT)
        result = recording.finish()
    err = result.err
    samples, lost, _, _ = summary(result)
    found = re.search(r'lost (\d+) of (\d+) samples of thread (\d+) of '
                      r'process (\d+)', err)
    check(found, f'no report of lost samples: {err!r}')
    check(lost > 20, f'lost {lost}')
    check(int(found[1]) == lost and int(found[2]) == lost + samples, err)
    check(int(found[3]) == target and int(found[4]) == target, err)


@test
def recorder_is_killed():
    """when the recorder is killed the target runs on, without its timers"""
    with Recording('orphan', '-F', '10000', '--buffer=16',
                   '--depth=64') as recording:
        target = recording.target
        check(timers(target) == 1, f'{timers(target)} timers')
        recording.run.kill()
        recording.run.wait(LIMIT)
        end = time.monotonic() + LIMIT
        while timers(target):
            check(time.monotonic() < end, 'the timer is still there')
            time.sleep(0.1)
        wait_cpu(target, cpu_time(target) + 0.2)


@test
def nonsense_in_shared_memory():
    """a target that scribbles over the rings: counted, and nothing worse"""
    result = record(TARGET, 'scribble', '1.5')
    check(result.status in (23, 128 + signal.SIGSEGV, 128 + signal.SIGBUS),
          f'{result.status} {result.err[-500:]}')
    check('the target wrote into the rings' in result.err, result.err[-500:])


def timers(pid):
    """Number of POSIX timers of a process."""
    with open(f'/proc/{pid}/timers', encoding='ascii') as file:
        return file.read().count('signal:')


@test
def nothing_is_lost_in_time():
    """deep samples at the highest rate in a ring of usual size: none lost"""
    result = record(TARGET, 'share', '1', options=['-F', '10000'])
    check(summary(result)[1] == 0, result.err)


@test
def sleeping_thread_by_cpu_time():
    """a sleeping thread does not show in CPU time"""
    result = record(TARGET, 'sleeper', '2')
    about(seconds(result, 'sleeping_thread'),
          sum(result.truth['cpu_of_sleeper']), 0.05, 'CPU seconds of the sleeper')
    agrees(result, 'burn', 'do_sleeper')


@test
def sleeping_thread_by_wall_clock():
    """a sleeping thread shows in wall-clock time, for as long as it slept"""
    result = record(TARGET, 'sleeper', '2', options=['--wall', '-F', '199'])
    about(seconds(result, 'sleeping_thread'), sum(result.truth['slept']), 0.3,
          'sleeping')
    got, awake = seconds(result, 'do_sleeper'), sum(result.truth['awake'])
    check(got > awake - 0.5, f'{got} s of {awake} s: {result.err}')


@test
def crowd_by_wall_clock():
    """2000 threads that wait are sampled less often, and take little of the CPU"""
    result = record(TARGET, 'crowd', '2000', '1', options=['--wall', '-F', '199'])
    check(result.status == 0, result.err)
    check(re.search(r'threads that waited were sampled every [0-9.]+ ms only', result.err),
          result.err)
    # 398000 it would be.
    per_second = summary(result)[0] / float(re.search(r'([\d.]+) s;', result.err)[1])
    check(per_second < 40000, result.err)
    check(seconds(result, 'at_barrier') > 500, result.err)


@test
def sleeping_calls_keep_their_time():
    """--wall: sleeping calls last as long as asked; own signals interrupt"""
    result = record(TARGET, 'sleeps', options=['--wall', '-F', '499'])
    check(result.status == 0, result.out)


@test
def selects_as_without():
    """select(), pselect() and epoll_pwait2(): results and errors as without recording"""
    alone = subprocess.run([TARGET, 'selects'], capture_output=True, text=True, check=False)
    check(alone.returncode == 0, alone.stdout)
    for options in [], ['--wall']:
        result = record(TARGET, 'selects', options=options)
        check(result.status == 0 and not result.out, f'{options}: {result.out} {result.err}')


@test
def static_target():
    """a static program is refused in one line"""
    refused(record(STATIC, 'burn', '0.1'), 125, 'statically linked')


@test
def static_child():
    """a static child of a script runs, unrecorded"""
    result = record('sh', '-c', f'{STATIC} burn 0.2; {TARGET} burn 0.3; exit 4')
    check(result.status == 4, f'{result.status} {result.err}')
    # The second call; the static program was the first one.
    about(seconds(result, 'do_burn'), result.truth['burn'][1], 0.1, 'CPU seconds')


def named_gap(result, words, wanted):
    """A line names CPU time that is missing; @wanted: seconds, as the program says."""
    found = re.search(r'([0-9.]+) s of CPU time.* not sampled: .*' + words, result.err)
    check(found, f'{words!r}: {result.err}')
    about(float(found[1]), wanted, 0.1 + 0.1 * wanted, f'missing: {words}')


@test
def missing_time_is_named():
    """CPU time of programs that no agent enters: a line with the name and the reason"""
    for script in (f'{STATIC} burn 0.2; {STATIC} burn 0.1; true', f'exec {STATIC} burn 0.3'):
        result = record('sh', '-c', script)
        named_gap(result, 'target-static is statically linked',
                  sum(result.truth['burn']))
    result = record('sh', '-c', f'{TARGET} burn 0.1; sh -c "exit 3"; nosuch; true')
    check('not sampled' not in result.err, result.err)
    if os.getuid():
        return
    path = os.path.join(TMP, 'becomes')
    shutil.copy(TARGET, path)
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o4755)
    result = record('sh', '-c', f'{path} burn 0.3; true')
    named_gap(result, 'becomes is set-user-ID', sum(result.truth['burn']))
    if subprocess.run(['unshare', '-pf', 'true'], check=False).returncode:
        return
    result = record('sh', '-c', f'unshare -pf {TARGET} burn 0.3; true')
    named_gap(result, 'another PID namespace', sum(result.truth['burn']))


TICK = time.clock_getres(6)     # CLOCK_MONOTONIC_COARSE: a tick of the kernel
SHARES = [f'share_{c}' for c in 'abcd']


def gained_nothing(got, true, unit):
    """What nothing could sample is in no other function's share (by chance once in 10^6)."""
    for name in SHARES:
        most = true[name] + 5 * math.sqrt(true[name] * unit) + unit
        check(got[name] <= most, f'{name}: {got[name]:.3f} of at most {most:.3f}')


def chi_square(got, true, unit):
    """How far shares are from the truth, with 3 degrees of freedom."""
    scale = sum(got.values()) / sum(true.values())
    return sum((got[name] - true[name] * scale) ** 2 / (true[name] * scale * unit)
               for name in SHARES)


def run_truth(phase):
    """Records truth.c, for a second at least: a run in which the machine was not kept from
    running for long, as one sample stands for all of such a time."""
    for _ in range(5):
        result = record(os.path.join(HERE, 'truth'), phase, str(max(250, round(1 / TICK))),
                        options=['-F', '199'])
        used = sum(sum(result.truth[name]) for name in SHARES)
        if sum(result.truth['stalled']) <= 0.02 * used:
            return result
    raise Skip('this machine was kept from running in each of 5 runs')


def shares_of(phase):
    """The chi-square of a run of truth.c; none (0) of what this machine can't sample, which
    must be shown as such."""
    # A sample stands for a period, or for all of them since the last tick.
    unit = max(1 / 199, TICK) + 1 / 199
    result = run_truth(phase)
    got = {name: seconds(result, name) for name in SHARES}
    true = {name: sum(result.truth[name]) for name in SHARES}
    total, late, used = sum(got.values()), seconds(result, '[between ticks]'), sum(true.values())
    missed = sum(result.truth['missed'])
    if phase != 'free' and missed > 0.9 * used:
        raise Skip('no perf event on its own clock signals a thread here')
    text = f'{phase}: {got}, {late:.3f} between ticks, of {true}, {missed:.3f} missed: {result.err}'
    check(0.75 * used - 0.1 < total + late < 1.25 * used + 0.1, text)
    check(late < missed + 0.1 * used + 0.05, text)
    if late > 0.1 * used:
        gained_nothing(got, true, unit)
        return 0
    return chi_square(got, true, unit)


@test
def shares_agree_with_the_truth():
    """chi-square over runs of work that begins anywhere between the kernel's ticks"""
    # 9 degrees of freedom: by chance above 45 once in a million.
    chi = sum(shares_of('free') for _ in range(3))
    check(chi < 60, f'chi-square {chi:.1f}')


@test
def shares_in_phase_with_the_tick():
    """chi-square over runs of work in phase with the kernel's tick"""
    chi = sum(shares_of(phase) for phase in ('0', '40', '75'))
    check(chi < 60, f'chi-square {chi:.1f}')


@test
def loading_and_exit_have_names():
    """what short programs use before and after their own code is theirs, and the sums hold"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = record('sh', '-c', 'i=0; while [ $i -lt 150 ]; do /bin/true; i=$((i+1)); done')
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    most = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = re.search(r'([0-9.]+) of ([0-9.]+) s CPU time', result.err)
    got, used = float(found[1]), float(found[2])
    check(used < most, f'{used} of {most} s')
    # 150 first periods of random length: the error of their sum is some 15 ms.
    check(0.8 * used - 0.1 < got < 1.15 * used + 0.1, result.err)
    check(seconds(result, 'true', '[exec, loader]') > 0.3 * used, str(result.stacks))
    for name in 'agent_settle', '_dl_call_fini', '_dl_fini':
        check(seconds(result, name) < 0.02 * used + 0.006, f'{name}: {result.stacks}')


@test
def another_c_library():
    """programs of musl are sampled, by themselves and as children"""
    for command in [MUSL], ['sh', '-c', f'{MUSL}; exit $?']:
        result = record(*command)
        check(result.status == 4 and result.out == 'hello\n',
              f'{result.status} {result.out} {result.err}')
        agrees(result, 'musl_thread')
        agrees(result, 'musl_child', 'main')


@test
def preloaded_objects_need_what_every_c_library_has():
    """none of them refers to a function that musl lacks"""
    with open(MUSL, 'rb') as file:
        loader = re.search(rb'/[^\0]*/ld-musl-[^\0]*', file.read())[0].decode()

    def symbols(path, *options):
        out = subprocess.run(['nm', '-D', *options, path], capture_output=True,
                             text=True, check=True).stdout
        return [line.split()[-2:] for line in out.splitlines()]

    musl = {name for _, name in symbols(loader, '--defined-only')}
    check('malloc' in musl, 'no symbols of musl')
    # The symbolizers are linked into programs, and preloaded nowhere.
    symbolizers = {SYMBOLIZER, os.path.join(BUILD, 'libshstk-symbolize.so')}
    for path in set(glob.glob(os.path.join(BUILD, 'libshstk-*.so'))) - symbolizers:
        needed = {name.split('@')[0] for kind, name in symbols(path, '--undefined-only')
                  if kind == 'U'}
        check(needed <= musl, f'{path} needs {needed - musl}')


@test
def setuid_target():
    """a set-user-ID program of another user is refused in one line"""
    if os.getuid():
        raise Skip('needs root to make such a file')
    path = os.path.join(TMP, 'setuid')
    shutil.copy(TARGET, path)
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o4755)
    refused(record(path, 'exit', '0'), 125, 'set-user-ID')


@test
def capability_target():
    """a program with file capabilities is refused to an ordinary user by the agent, and perf events end there"""
    if os.getuid():
        raise Skip('needs root to make such a file')
    path = os.path.join(TMP, 'capable')
    shutil.copy(TARGET, path)
    # VFS_CAP_REVISION_2, effective; permitted: CAP_NET_RAW.
    cap = bytes.fromhex('0100000200200000000000000000000000000000')
    try:
        os.setxattr(path, 'security.capability', cap)
    except OSError as err:
        raise Skip(f'no file capabilities in {TMP}: {err.strerror}') from err
    run = subprocess.run([SHSTK, 'record', '--via=agent', '-o', '/dev/null', '--format=folded',
                          '--', path, 'exit', '0'], user=65534, group=65534,
                         capture_output=True, text=True, check=False)
    refused(run, 125, 'file capabilities')
    run = subprocess.run([SHSTK, 'record', '-o', '/dev/null', '--format=folded',
                          '--', path, 'exit', '0'], user=65534, group=65534,
                         capture_output=True, text=True, check=False)
    check('file capabilities' in run.stderr, run.stderr)


@test
def missing_and_unusable_files():
    """missing, not executable, foreign: one line and a shell's status"""
    plain = os.path.join(TMP, 'plain')
    with open(plain, 'w', encoding='ascii') as file:
        file.write('text\n')
    refused(record('/nonexistent/program'), 127, 'not found')
    refused(record('no-such-command-anywhere'), 127, 'not found')
    refused(record(plain), 126, 'not an executable')
    refused(record(TMP), 126, 'not an executable')
    script = os.path.join(TMP, 'script')
    with open(script, 'w', encoding='ascii') as file:
        file.write('#!/nonexistent/interpreter\n')
    os.chmod(script, 0o755)
    refused(record(script), 126, '/nonexistent/interpreter')


@test
def corrupt_programs():
    """truncated and damaged ELF files get one line and no crash"""
    with open(TARGET, 'rb') as file:
        image = file.read()
    path = os.path.join(TMP, 'damaged')
    for size in 5, 40, 64:
        with open(path, 'wb') as file:
            file.write(image[:size])
        os.chmod(path, 0o755)
        refused(record(path), 126, 'not a valid program')
    for at, value in (4, 1), (18, 0x28), (54, 7):
        with open(path, 'wb') as file:
            file.write(image[:at] + bytes([value]) + image[at + 1:])
        os.chmod(path, 0o755)
        run = record(path)
        check(run.status in (125, 126), f'byte {at}: {run.status}')
        one_line(run.err)


@test
def unwritable_output():
    """an output that cannot be written is said before the command runs"""
    mark = os.path.join(TMP, 'ran')
    for path in '/nonexistent/x.svg', TMP, '/proc/x.folded':
        run = shstk('record', '-o', path, '--format', 'folded', '--', 'touch',
                    mark)
        refused(run, 125, re.escape(path))
        check(not os.path.exists(mark), 'the command ran')
    refused(shstk('record', '-o', 'x.unknown', 'true'), 2, 'x.unknown')
    refused(shstk('record', '--format', 'nosuch', 'true'), 2, 'nosuch')


@test
def wrong_options():
    """numbers out of range are named"""
    for option in ('-F0', '-F10001', '-F-5', '-Fx', '--depth=15',
                   '--depth=99999', '--buffer=15', '--buffer=100',
                   '--duration=0', '--duration=x', '--every=49ms'):
        run = shstk('record', option, 'true')
        value = re.search(r'-?\w+$', option.replace('-F', ' ')
                          .replace('=', ' '))[0]
        check(run.returncode == 2 and (value in run.stderr or 'at least 50ms' in run.stderr),
              f'{option}: {run.returncode} {run.stderr}')
        check(len(run.stderr.strip().split('\n')) == 1, run.stderr)
    check(shstk('record').returncode == 2, 'no command')


@test
def own_memory():
    """the last line says how much memory the recorder itself had at most, and shared"""
    for options in ['--via=agent'], ['--heap']:
        run = shstk('record', *options, '-o', os.path.join(TMP, 'own.folded'), '--', TARGET,
                    'burn', '0.1')
        found = re.search(r'recorder: (\d+) MiB and (\d+) MiB shared at most(; wrote .*)?\n$',
                          run.stderr)
        check(found and 0 < int(found[1]) < 100 and 0 < int(found[2]) < 100,
              f'{options}: {run.stderr}')


@test
def no_samples():
    """a command too short to be sampled says so; its status stays"""
    result = record('sh', '-c', 'exit 6', options=['-F', '1'])
    check(result.status == 6, f'{result.status}')
    check('no samples' in result.err and not result.stacks, result.err)


@test
def usage_texts():
    """--help and --version of each command"""
    for args in ['--help'], ['record', '--help'], ['trace', '--help']:
        run = shstk(*args)
        check(run.returncode == 0 and 'Usage:' in run.stdout, run.stdout)
    for args in ['--version'], ['record', '--version']:
        run = shstk(*args)
        check(run.returncode == 0 and run.stdout.startswith('shstk '),
              run.stdout)
    run = shstk('nosuch')
    check(run.returncode == 2 and 'nosuch' in one_line(run.stderr), run.stderr)


@test
def formats_agree():
    """one run written in five formats: same total, all well-formed"""
    paths = {kind: os.path.join(TMP, f'all.{kind}')
             for kind in ('pb.gz', 'pb', 'folded', 'svg', 'perf')}
    options = [word for path in paths.values() for word in ('-o', path)]
    run = shstk('record', '-F', '999', *options, '--', TARGET, 'share', '1')
    check(run.returncode == 0, run.stderr)
    total = sum(value for _, value in parse_folded(paths['folded']))
    with gzip.open(paths['pb.gz']) as file:
        packed = file.read()
    check(b'work_seventy' in packed, 'not in pprof')
    with open(paths['pb'], 'rb') as file:
        check(file.read() == packed, 'the uncompressed one is another one')
    with open(paths['svg'], encoding='utf-8') as file:
        check('work_seventy' in file.read(), 'not in svg')
    with open(paths['perf'], encoding='utf-8') as file:
        text = file.read()
    periods = [int(n) for n in re.findall(r'^\S.*?:\s+(\d+) +\S+:', text,
                                          re.MULTILINE)]
    check(sum(periods) == total, f'{sum(periods)} in perf, {total} in folded')


@test
def names_in_full():
    """--full-names: C++ names with all arguments of templates, else without what is the default"""
    short = 'count_words(std::map<std::string, std::vector<int>> const&, double)'
    for options in [], ['--full-names']:
        result = record(NAMES, '0.3', options=options)
        found = {f for frames, _ in result.stacks for f in frames if f.startswith('count_words')}
        check(len(found) == 1, f'{options}: {found} {result.err}')
        name = found.pop()
        if options:
            check('std::allocator<std::pair<' in name and 'std::less<' in name and
                  'basic_string<char' in name, name)
        else:
            check(name.replace('> >', '>>') == short, name)


@test
def memory_limit():
    """under a limit of address space fewer rings are mapped, not none"""
    result = record('sh', '-c', f'ulimit -v 600000; exec {TARGET} share 0.5')
    check(result.status == 0, f'{result.status} {result.err}')
    agrees(result, 'work_seventy', 'do_share')


@test
def pending_cancellation():
    """samples are no cancellation points: threads end where they would have"""
    for options in ((), ('--wall',), ('--heap',)):
        result = record(os.path.join(HERE, 'cancel'), options=options)
        check(result.status == 0, f'{options}: {result.status} {result.out} {result.err}')


@test
def memory_limit_by_the_program():
    """a limit that the program sets leaves it the addresses that it asks for"""
    result = record(TARGET, 'limit', '0.3')
    check(result.status == 0, f'{result.status} {result.err}')
    agrees(result, 'limited_work')


@test
def ptrace_traceme():
    """a program that asks to be traced runs as if nobody did"""
    for options in [], ['--duration=0.05']:
        result = record(TARGET, 'traced', '0.3', options=options)
        check(result.status == 7, f'{result.status} {result.err}')
        if not options:
            agrees(result, 'burn', 'do_traced')


@test
def small_alternate_stack():
    """8 KiB of alternate signal stack are enough to be sampled"""
    result = record(TARGET, 'smallstack', '0.5')
    check(result.status == 0, f'{result.status} {result.err}')
    agrees(result, 'burn', 'do_smallstack')


def most_used(how, size):
    """Bytes of such a stack that a program can use before it dies, without an agent."""
    for use in range(size, 0, -128):
        plain = subprocess.run([TIGHT, how, str(size), str(use), '0'], check=False, timeout=LIMIT)
        if not plain.returncode:
            return use
    raise Skip(f'no stack of {size} bytes here ({how})')


def small_stacks(how, sizes, *options, less=0):
    """Record a program that uses all of its stack, or so much less; yields where its time is
    said to be."""
    for size in sizes:
        use = most_used(how, size) - less
        result = record(TIGHT, how, str(size), str(use), '0.3', options=options)
        check(result.status == 0, f'{how} {size} {use} {options}: {result.status} {result.err}')
        yield seconds(result, '[small stack]'), seconds(result, 'tight_work')


@test
def threads_with_small_stacks():
    """a thread that uses all of its small stack lives, and is sampled"""
    least = os.sysconf('SC_THREAD_STACK_MIN')
    for _, sampled in small_stacks('thread', (least, 65536)):
        check(sampled > 0.2, f'{sampled} s')
    for _ in small_stacks('thread', (least,), '--via=agent', '--wall'):
        pass
    for _ in small_stacks('thread', (least,), '--heap'):
        pass


@test
def provided_stacks():
    """a thread on a small stack of the program's own lives, and its time has a name"""
    # The variables that the agent has for each thread lie there too, as those of all objects.
    size = 16384 + os.sysconf('SC_THREAD_STACK_MIN')
    for named, _ in small_stacks('provided', (size,), less=512):
        check(named > 0.2, f'{named} s')


@test
def handlers_on_small_alternate_stacks():
    """a handler that uses all of its alternate stack lives, and its time has a name"""
    for named, _ in small_stacks('handler', (8192 + os.sysconf('SC_MINSIGSTKSZ'), 65536)):
        check(named > 0.2, f'{named} s')
    result = record(TIGHT, 'handler', '1048576', '65536', '0.3')
    check(result.status == 0 and seconds(result, 'tight_work') > 0.2, str(result))


@test
def alternate_stacks_without_room_for_a_sample():
    """an alternate stack that no handler uses may be as small as the kernel takes"""
    for named, _ in small_stacks('unused', (2048, 4096)):
        check(named > 0.2, f'{named} s')


@test
def handlers_left_by_a_jump():
    """a thread that leaves a handler on a small alternate stack is sampled again"""
    result = record(TIGHT, 'left', '16384', '0', '0.3')
    check(result.status == 0 and seconds(result, 'tight_work') > 0.2, str(result))


@test
def no_timers():
    """where the kernel gives no timer that is said, and the command runs"""
    result = record(TARGET, 'exit', '3', preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_SIGPENDING, (0, 0)))
    check(result.status == 3, f'{result.status} {result.err}')
    check('no more timers' in result.err, result.err)


AGENTS = ('--via=agent',), ('--via=agent', '--wall'), ('--heap',)


@test
def traced_by_a_recorded_program():
    """a tracer that is recorded sees no signal of the agent's"""
    for options in AGENTS:
        result = record(TARGET, 'tracer', '0.2', options=options)
        check(result.status == 0, f'{options}: {result.status} {result.err}')


@test
def mask_of_a_cancelled_thread():
    """a thread that is cancelled while it waits sees the mask that it set"""
    for options in AGENTS:
        result = record(TARGET, 'cancelled', options=options)
        check(result.status == 0, f'{options}: {result.status} {result.err}')


@test
def without_time_stamp_counter():
    """a program that forbids itself the time stamp counter is sampled and lives"""
    if platform.machine() != 'x86_64':
        raise Skip('x86 alone can forbid it')
    for options in AGENTS:
        result = record(TARGET, 'no-tsc', '0.3', options=options)
        check(result.status == 0, f'{options}: {result.status} {result.err}')
        if '--heap' not in options:
            check(seconds(result, 'burn_without_tsc') > 0.2, f'{options}: {result.stacks}')


@test
def calls_that_move_much():
    """what a call moves is not cut into pieces where it waits"""
    for options in AGENTS:
        result = record(os.path.join(HERE, 'pieces'), options=options)
        check(result.status == 0, f'{options}: {result.status} {result.out} {result.err}')


@test
def bad_pointers():
    """calls with pointers that can't be read end as they do without an agent"""
    compare_pointers('EFAULT', f'errno {errno.EFAULT}')


@test
def handled_faults():
    """signals of a fault, in a hook too, are the program's, which goes on from its handler"""
    compare_pointers('handlers', f'handled {signal.SIGSEGV}', 'handled')


def compare_pointers(what, text, *how):
    """Each line that it prints is to be the same with each agent."""
    plain = subprocess.run([POINTERS, *how], capture_output=True, text=True, check=True,
                           timeout=LIMIT)
    check(text in plain.stdout, f'{what}: {plain.stdout}')
    for options in AGENTS:
        result = record(POINTERS, *how, options=options)
        differ = set(plain.stdout.splitlines()) ^ set(result.out.splitlines())
        check(result.status == 0 and not differ, f'{options}: {differ} {result.err}')


@test
def many_variables():
    """20,000 variables are given to a program by a thread with a small stack"""
    for options in AGENTS:
        result = record(POINTERS, 'environment', '20000', options=options)
        check(result.out == '20000 variables\n', f'{options}: {result}')


@test
def without_preload_on_purpose():
    """a program that executes itself again when it finds LD_PRELOAD gets on"""
    script = os.path.join(TMP, 'again')
    for again, put_back in ('unset LD_PRELOAD; exec sh', 0), ('exec env -i sh', 8):
        with open(script, 'w', encoding='ascii') as file:
            file.write(f'echo run; test "$LD_PRELOAD" || exit 7; {again} "$0"\n')
        result = record('sh', script)
        runs = result.out.count('run')
        check(result.status == 7 and runs == put_back + 2, f'{again}: {result}')


@test
def root_folder_of_its_own():
    """where the agent is not to be found the loader does not complain of it"""
    root = os.path.join(TMP, 'root')
    libraries = subprocess.run(['ldd', '/bin/sh'], capture_output=True, text=True, check=True)
    for path in '/bin/sh', *re.findall(r'(/\S+) \(0x', libraries.stdout):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.realpath(path), root + path)
    other = os.path.join(HERE, 'plugin-one.so')
    os.makedirs(root + os.path.dirname(other), exist_ok=True)
    shutil.copy(other, root + other)
    for way in (('chroot', root, '/bin/sh', '-c', 'echo "$LD_PRELOAD"'), (TARGET, 'root', root)):
        command = ('unshare', '-r', *way) if os.geteuid() else way
        plain = subprocess.run(command, capture_output=True, text=True, check=False,
                               timeout=LIMIT)
        if plain.returncode:
            raise Skip(f'no root folder of its own: {plain.stderr.strip()}')
        for preload in '', other:
            env = dict(os.environ, LD_PRELOAD=preload)
            for options in AGENTS:
                result = record(*command, options=options, env=env)
                check('ld.so' not in result.err and result.out == preload + '\n',
                      f'{way} {options} {preload}: {result}')


@test
def existing_preload():
    """a program's own LD_PRELOAD is kept"""
    env = dict(os.environ, LD_PRELOAD=os.path.join(HERE, 'plugin-one.so'))
    result = record('sh', '-c', f'grep -c plugin-one /proc/self/maps; '
                    f'{TARGET} burn 0.2', env=env)
    check(int(result.out.split()[0]) > 0, 'not loaded')
    agrees(result, 'burn')


@test
def python3():
    """Debian's python3: stacks are complete, the interpreter on top"""
    if not os.path.exists('/usr/bin/python3'):
        raise Skip('no /usr/bin/python3')
    result = record('/usr/bin/python3', '-c',
                    'import json\nfor i in range(60):\n'
                    ' json.loads(json.dumps([[i, str(i)]] * 20000))')
    total = seconds(result)
    check(result.status == 0 and total > 0.3, f'{total} s {result.err}')
    check(seconds(result, '[truncated]') < 0.02 * total,
          f'{seconds(result, "[truncated]")} of {total} s truncated')
    check(seconds(result, 'Py_BytesMain') > 0.8 * total,
          f'{seconds(result, "Py_BytesMain")} of {total} s in Py_BytesMain')


@test
def xz_with_threads():
    """Debian's xz -T2: two workers, complete stacks"""
    if not shutil.which('xz'):
        raise Skip('no xz')
    path = os.path.join(TMP, 'data')
    with open(path, 'wb') as out:
        for name in '/usr/bin/python3', '/bin/bash', TARGET, SHSTK:
            with open(name, 'rb') as file:
                out.write(file.read())
    result = record('xz', '-k', '-T2', '-1', '--block-size=1MiB', path,
                    options=['--per-thread'])
    total = seconds(result)
    towers = {frames[0] for frames, value in result.stacks
              if 'start_thread' in frames}
    # Where the first thread comes late one worker may do it all.
    check(len(towers) == summary(result)[2] - 1 > 0, f'{towers}: {result.err}')
    check(seconds(result, '[truncated]') < 0.02 * total, 'truncated')
    check(seconds(result, 'start_thread') > 0.7 * total,
          f'{seconds(result, "start_thread")} of {total} s')


class Running:
    """A target that says when it is ready."""

    def __init__(self, *args, target=None):
        self.run = subprocess.Popen([target or TARGET, *args], text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    preexec_fn=end_with_parent)
        check(self.run.stdout.readline() == 'ready\n', 'not ready')
        self.pid = self.run.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run.kill()
        self.run.communicate()


def trace(pid, *args):
    """Threads of a trace: [(header, [frames])], and the first line."""
    run = shstk('trace', '-p', str(pid), *args)
    check(run.returncode == 0, f'{run.returncode} {run.stderr}')
    parts = run.stdout.split('\n\n')
    threads = []
    for part in parts[1:]:
        lines = part.strip().split('\n')
        threads.append((lines[0], [line.split()[1].split('+')[0]
                                   for line in lines[1:]
                                   if line.startswith('  #')]))
        check(not any('ends here' in line for line in lines), part)
    return parts[0], threads


@test
def trace_threads():
    """trace -p: all threads, their states, and the pause"""
    with Running('stacks') as target:
        wait_sleeping(target.pid, 3)
        first, threads = trace(target.pid)
    check(re.search(r'4 threads, stopped for \d+\.\d+ ms', first), first)
    for name, states in (('blocked_in_read', 'sleeping'),
                         ('waiting_for_semaphore', 'sleeping'),
                         ('busy_forever', 'running|sleeping'),
                         ('do_stacks', 'sleeping')):
        found = [head for head, frames in threads if name in frames]
        check(len(found) == 1, f'{name}: {threads}')
        check(re.search(states, found[0]), found[0])
    for head, frames in threads:
        check(frames[-1] in ('_start', 'clone3', '__clone3', 'clone',
                             '__clone'), f'{head} {frames}')


@test
def trace_leaves_no_trace():
    """the traced process runs on, untraced, and can be traced again"""
    with Running('stacks') as target:
        # Right behind clone3()'s system call there are no rules for a new thread.
        wait_sleeping(target.pid, 3)
        for _ in range(10):
            trace(target.pid)
        with open(f'/proc/{target.pid}/status', encoding='ascii') as file:
            text = file.read()
        check('TracerPid:\t0\n' in text, text)
        before = cpu_time(target.pid)
        wait_cpu(target.pid, before + 0.2)


@test
def trace_stopped_process():
    """a process stopped by SIGSTOP is traced and stays stopped"""
    with Running('stacks') as target:
        wait_sleeping(target.pid, 3)
        os.kill(target.pid, signal.SIGSTOP)
        wait_state(target.pid, 'T')
        _, threads = trace(target.pid)
        check(any('blocked_in_read' in frames for _, frames in threads),
              f'{threads}')
        wait_state(target.pid, 'T')
        os.kill(target.pid, signal.SIGCONT)
        wait_state(target.pid, 'SR')


def state_of(path):
    """The state of a process or thread, a letter."""
    with open(os.path.join(path, 'stat'), encoding='ascii') as file:
        return file.read().rsplit(')', 1)[1].split()[0]


def wait_state(pid, states):
    """Wait until a process is in a state."""
    end = time.monotonic() + LIMIT
    while True:
        state = state_of(f'/proc/{pid}')
        if state in states:
            return
        check(time.monotonic() < end, f'state {state}, not {states}')
        time.sleep(0.02)


def wait_sleeping(pid, wanted):
    """Wait until so many of a process's threads sleep, and stay asleep."""
    end = time.monotonic() + LIMIT
    looks = 0
    while looks < 3:
        states = [state_of(path) for path in glob.glob(f'/proc/{pid}/task/*')]
        looks = looks + 1 if states.count('S') >= wanted else 0
        check(time.monotonic() < end, f'states {states}')
        time.sleep(0.02)


@test
def trace_of_waiting_calls():
    """a call without a limit of time goes on waiting behind a stop"""
    if platform.machine() != 'x86_64':
        raise Skip('on x86 only')
    with Running('waits') as target:
        for _ in range(5):
            wait_sleeping(target.pid, 4)
            trace(target.pid)
        wait_sleeping(target.pid, 4)
        out, _ = target.run.communicate('\n')
    check(not out, out)


@test
def trace_alternate_stack():
    """a handler on an alternate stack: through to the interrupted code"""
    with Running('altstack') as target:
        wait_sleeping(target.pid, 1)
        _, threads = trace(target.pid)
    frames = threads[0][1]
    for name in 'in_handler', 'interrupted_here', 'do_altstack', '_start':
        check(name in frames, f'{name} is not in {frames}')


@test
def trace_deep_stack():
    """2 MiB of stack, more than is copied: complete all the same"""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if limit != resource.RLIM_INFINITY and limit < 3 << 20:
        raise Skip(f'stacks are limited to {limit} bytes')
    with Running('deep', '3500') as target:
        wait_sleeping(target.pid, 1)
        _, threads = trace(target.pid)
    frames = threads[0][1]
    check(frames.count('deep') == 3501, f'{frames.count("deep")} frames')
    check(frames[-1] == '_start', frames[-1])


@test
def trace_refusals():
    """no such process, zombie, no permission, wrong options: one line each"""
    refused(shstk('trace', '-p', '4194303'), 1, 'no process')
    refused(shstk('trace', '-p', 'x'), 2, "'x'")
    refused(shstk('trace', '-p', '0'), 2, "'0'")
    refused(shstk('trace'), 2, '-p')
    with subprocess.Popen(['true']) as zombie:
        wait_state(zombie.pid, 'Z')
        refused(shstk('trace', '-p', str(zombie.pid)), 1, 'zombie')
        zombie.wait()


@test
def trace_without_permission():
    """another user's process: one line"""
    if os.getuid():
        # With hidepid another user's process is not even there.
        words = 'no permission' if os.path.exists('/proc/1') else 'no process 1'
        refused(shstk('trace', '-p', '1'), 1, words)
        return
    with Running('stacks') as target:
        run = subprocess.run([SHSTK, 'trace', '-p', str(target.pid)],
                             user=65534, group=65534, capture_output=True,
                             text=True, check=False)
    refused(run, 1, 'no permission')


def by_perf(*args, options=(), **kwargs):
    """Record by the kernel's samples, whose callchains follow frame pointers."""
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
    # The last call is the static program's.
    before, static = result.truth['burn']
    about(seconds(result, 'do_exec'), before, 0.08, 'before exec')
    agrees(result, 'after_exec_work', slack=0.08)
    about(seconds(result, 'target-static'), static, 0.08, 'static program')


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
    """Words of a shell script: wait until a process used more CPU time."""
    ticks = int((cpu_time(pid) + wanted) * os.sysconf('SC_CLK_TCK'))
    return (f'until awk \'{{ exit !($14 + $15 >= {ticks}) }}\' /proc/{pid}/stat; '
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
    if os.getuid():
        raise Skip('needs root to become another user')
    by_perf('true')
    for args in ['-a', '--duration=1'], ['-p', str(os.getpid())]:
        run = subprocess.run([SHSTK, 'record', '--via=perf', '-o', '/dev/null',
                              '--format=folded', *args], user=65534,
                             group=65534, extra_groups=[], capture_output=True,
                             text=True, check=False)
        refused(run, 125, 'not permitted[, ].*perf_event_paranoid')


open_truth()
sys.exit(main())
