#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record` by its agent, on programs of known behaviour: shares, threads, processes,
rates, and what is between samples.

What is expected of a profile never depends on wall-clock time: the target measures by its own CPU
time what its functions use, and writes it to a file. Prints KTAP.
"""

import collections
import ctypes
import math
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, LIMIT, SHSTK, Skip, check, main, stolen, test  # noqa: E402
from recording import (  # noqa: E402
    AGENTS, Result, STATIC, TARGET, TMP, TRUTH, about, agrees, child_of, has_own_event,
    parse_folded, read_truth, record, refused, seconds, share_agrees, summary, unsampled,
    wait_state)

@test
def share_of_two_functions():
    """70 % and 30 % of 2 s are measured within five standard deviations"""
    result = record(TARGET, 'share', '2')
    about(seconds(result, 'work_seventy') + seconds(result, 'work_thirty'),
          sum(map(sum, result.truth.values())), 0.1 + result.stolen, 'CPU seconds in all',
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
        about(value, used, 0.1 + result.stolen, f'one of {towers}, {late}')
    check(summary(result)[2] == 13, result.err)


@test
def short_threads_by_the_thousand():
    """2000 threads of 1 ms: slots are reused, the CPU time adds up"""
    result = record(TARGET, 'threads', '2000', '10', '0.001')
    check(result.status == 0, result.err)
    samples, lost, threads, _ = summary(result)
    check(threads == 2001, result.err)
    check(lost == 0 and samples > 0, result.err)
    # Starting and ending threads comes on top of the work. A thread of 1 ms has a sample or two.
    # What the kernel did in its time, and what no tick saw, have frames of their own.
    used = float(re.search(r'of ([\d.]+) s CPU', result.err)[1])
    work = sum(result.truth['thread_work'])
    got = seconds(result, 'thread_work')
    rest = seconds(result, '[kernel]') + unsampled(result)
    check(0.5 * work < got < used + 0.1 + result.stolen, f'{got} s of {work} s, {used} s in all')
    check(got + rest > 0.85 * work, f'{got} and {rest} s of {work} s, {used} s in all')


@test
def calls_of_short_threads():
    """700 threads of 1 ms: the time of their system calls is theirs, and not the kernel's"""
    if not has_own_event():
        raise Skip('no perf event on its own clock signals a thread here')
    result = record(TARGET, 'calls', '700', '0.001')
    work = sum(result.truth['thread_calls'])
    got, rest = seconds(result, 'thread_calls'), seconds(result, '[kernel]')
    # Ticks of the kernel, some 200 here, tell which part of its time was in calls: seen were 0.43 to
    # 0.75 s of 0.71. Without them nearly all is the kernel's. How dear it is to start and to end a
    # thread, which the work leaves out, is the machine's affair: 0.4 s for all on a busy one.
    used = float(re.search(r'of ([\d.]+) s CPU', result.err)[1])
    said = f'{got} s of {work} s, {rest} s in the kernel, {used} s in all'
    check(0.3 * work < got < used + 0.1 + result.stolen, said)
    check(got + rest > 0.85 * work, said)


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
    # The children, and perhaps the parent; on a busy machine the kernel may see one late.
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
    # The kernel checks timers at its ticks. What a child that saw no tick has used is charged to
    # the place where it ended, and on a busy machine most children may see none.
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
    check(0.6 * used < got < 1.1 * used + 0.1 + result.stolen, f'{got:.3f} s of {used:.3f} s: {result.err}')


@test
def samples_longer_than_periods():
    """a program gets on where a sample takes longer than a period, and its time is counted"""
    os.ftruncate(TRUTH, 0)
    subprocess.run([TARGET, 'undescribed', '1500'], pass_fds=(TRUTH,), check=True)
    alone = read_truth()['undescribed'][0]
    # The ring has room for all of it: a sample has 12 KB, and a fast CPU takes each of the 10000 a second.
    result = record('bash', '-c', f'ulimit -t {int(100 * alone) + 10}; exec "$@"', '-', TARGET,
                    'undescribed', '1500', options=['-F', '10000', '--depth=2000', '--buffer=65536'])
    check(result.status == 0, f'{result.status}: it takes {alone:.2f} s alone; {result.err}')
    agrees(result, 'undescribed', slack=0.1 + 0.1 * result.truth['undescribed'][0])
    # No period counts twice, though many end while a sample is taken and before the next one is.
    used, got = result.truth['undescribed'][0], seconds(result, 'undescribed')
    check(got < 1.2 * used + 0.02 + result.stolen, f'{got} of {used} s; {result.err}')


def filter_calls():
    """Gives this process a filter of system calls that lets all calls pass."""
    code = ctypes.create_string_buffer(struct.pack('=HBBI', 6, 0, 0, 0x7fff0000))
    program = ctypes.create_string_buffer(struct.pack('=HxxxxxxQ', 1, ctypes.addressof(code)))
    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), 'no filter')


@test
def rate_of_ticks():
    """where the kernel's ticks limit the rate it is said, at the start and in the profile"""
    words = r'at most \d+ samples a second of each thread, not 9999: the kernel.s tick'
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
        check('limits the rate here' not in result.err, result.err)


@test
def thread_without_libc():
    """a thread made by clone(2) is found and sampled; no call is cut short for it"""
    result = record(TARGET, 'raw', '0.4')
    check(result.status == 0, f'status {result.status} {result.err}')
    got = seconds(result, 'raw_thread_work')
    check(got > 0 and got + unsampled(result) > 0.3, f'{got} s; {result.err}')
    sampled, used = map(float, re.search(r'([\d.]+) of ([\d.]+) s CPU', result.err).groups())
    check(sampled < used + 0.1 + result.stolen, f'some of it twice: {result.err}')


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
        before = stolen()
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
        result = Result(run.returncode, '', err, parse_folded(path), read_truth(), stolen() - before)
        for function in result.truth:
            agrees(result, function)
        check('plugin_two' in result.truth, err)


@test
def nothing_is_lost_in_time():
    """samples at the highest rate in a ring of usual size: none lost while the recorder gets a CPU"""
    for _ in range(5):
        result = record(TARGET, 'share', '1', options=['-F', '10000'])
        if not summary(result)[1]:
            return
    check(False, f'each time: {result.err}')


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
    # Without the limit it would be 398000.
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
    # The second call; the first one was in the static program.
    about(seconds(result, 'do_burn'), result.truth['burn'][1], 0.1 + result.stolen, 'CPU seconds')


def named_gap(result, words, wanted):
    """Checks that a line names CPU time that is missing; @wanted: seconds, as the program says."""
    found = re.search(r'([0-9.]+) s of CPU time.* not sampled: .*' + words, result.err)
    check(found, f'{words!r}: {result.err}')
    about(float(found[1]), wanted, 0.1 + 0.1 * wanted + result.stolen, f'missing: {words}')


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
    """Checks that what nothing could sample is in no other function's share (by chance once in
    10^6).
    """
    for name in SHARES:
        most = true[name] + 5 * math.sqrt(true[name] * unit) + unit
        check(got[name] <= most, f'{name}: {got[name]:.3f} of at most {most:.3f}')


def chi_square(got, true, unit):
    """Returns how far shares are from the truth, as chi-square with 3 degrees of freedom."""
    scale = sum(got.values()) / sum(true.values())
    return sum((got[name] - true[name] * scale) ** 2 / (true[name] * scale * unit)
               for name in SHARES)


def run_truth(phase):
    """Records truth.c, for a second at least, in a run in which the machine was not kept from
    running for long.

    One sample stands for all of such a time.
    """
    for _ in range(5):
        result = record(os.path.join(HERE, 'truth'), phase, str(max(250, round(1 / TICK))),
                        options=['-F', '199'])
        used = sum(sum(result.truth[name]) for name in SHARES)
        if sum(result.truth['stalled']) <= 0.02 * used:
            return result
    raise Skip('this machine was kept from running in each of 5 runs')


def shares_of(phase):
    """Returns the chi-square of a run of truth.c.

    It is 0 for what this machine cannot sample, which must be shown as such.
    """
    # A sample stands for a period, or for all periods since the last tick.
    unit = max(1 / 199, TICK) + 1 / 199
    result = run_truth(phase)
    got = {name: seconds(result, name) for name in SHARES}
    true = {name: sum(result.truth[name]) for name in SHARES}
    total, late, used = sum(got.values()), seconds(result, '[between ticks]'), sum(true.values())
    missed = sum(result.truth['missed'])
    if phase != 'free' and missed > 0.9 * used:
        raise Skip('no perf event on its own clock signals a thread here')
    text = f'{phase}: {got}, {late:.3f} between ticks, of {true}, {missed:.3f} missed: {result.err}'
    check(0.75 * used - 0.1 < total + late < 1.25 * used + 0.1 + result.stolen, text)
    check(late < missed + 0.1 * used + 0.05, text)
    if late > 0.1 * used:
        gained_nothing(got, true, unit)
        return 0
    return chi_square(got, true, unit)


@test
def shares_agree_with_the_truth():
    """chi-square over runs of work that begins anywhere between the kernel's ticks"""
    # With 9 degrees of freedom, it is above 45 by chance once in a million.
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
    # 150 first periods of random length: the error of their sum is about 15 ms.
    check(0.8 * used - 0.1 < got < 1.15 * used + 0.1 + result.stolen, result.err)
    check(seconds(result, 'true', '[exec, loader]') > 0.3 * used, str(result.stacks))
    for name in 'agent_settle', '_dl_call_fini', '_dl_fini':
        check(seconds(result, name) < 0.02 * used + 0.006 + result.stolen, f'{name}: {result.stacks}')


@test
def no_timers():
    """where the kernel gives no timer that is said, and the command runs"""
    result = record(TARGET, 'exit', '3', preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_SIGPENDING, (0, 0)))
    check(result.status == 3, f'{result.status} {result.err}')
    check('no more timers' in result.err, result.err)


@test
def calls_that_move_much():
    """what a call moves is not cut into pieces where it waits"""
    for options in AGENTS:
        result = record(os.path.join(HERE, 'pieces'), options=options)
        check(result.status == 0, f'{options}: {result.status} {result.out} {result.err}')


@test
def python3():
    """Debian's python3: stacks are complete, the interpreter on top"""
    if not os.path.exists('/usr/bin/python3'):
        raise Skip('no /usr/bin/python3')
    result = record('/usr/bin/python3', '-c',
                    'import json, time\nwhile time.process_time() < 0.6:\n'
                    ' json.loads(json.dumps([[7, "7"]] * 20000))')
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
    # If the first thread comes late, one worker may do everything, or all that takes a period.
    check(0 < len(towers) < summary(result)[2], f'{towers}: {result.err}')
    check(seconds(result, '[truncated]') < 0.02 * total, 'truncated')
    check(seconds(result, 'start_thread') > 0.7 * total,
          f'{seconds(result, "start_thread")} of {total} s')


sys.exit(main())
