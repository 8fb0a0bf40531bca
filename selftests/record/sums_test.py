#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the sums of `shstk record`: what was counted, of how much, and what is missing of it.

The programs know their own shares, by the clocks of their threads: nothing that is expected depends
on how busy the machine is. Prints KTAP.
"""

import collections
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, HERE, NOBODY, SHSTK, TMP, Process, Skip, check, lost_records, main,
    need_nobody, run, stolen, test, tries)
from without_events import forbid_perf_events, need_filters  # noqa: E402

SUMS = os.path.join(HERE, 'sums')
PATIENCE = 450      # seconds after which a program counts as hung
SUFFIXES = ('folded', 'svg', 'txt', 'json', 'perf', 'pb.gz', 'speedscope.json', 'firefox.json',
            'callgrind')


def no_events(text):
    """Skips the test if its recorder may not have perf events."""
    for line in text.split('\n'):
        if 'perf event' in line and ('not permitted' in line or 'has none' in line or
                                     'on this machine' in line):
            raise Skip(line.strip())


def folded(path):
    """Returns [(frames, value)] of folded stacks; a line without a stack is a failure."""
    with open(path, encoding='utf-8') as file:
        lines = [line.rstrip('\n').rsplit(' ', 1) for line in file]
    return [(stack.split(';'), int(value)) for stack, value in lines]


def cpu_time(pid):
    """Returns the CPU seconds that a process has used."""
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def wait_cpu(pid, seconds):
    """Waits until a process has used this much more CPU time."""
    until = cpu_time(pid) + seconds
    end = time.monotonic() + PATIENCE
    while cpu_time(pid) < until:
        check(time.monotonic() < end, 'the program gets no CPU time')
        time.sleep(0.02)


def outputs(name):
    """Returns options for an output in each format, and the paths."""
    paths = [os.path.join(TMP, f'{name}.{suffix}') for suffix in SUFFIXES]
    return [f'--output={path}' for path in paths], paths


def read(path):
    """Returns a file's text, unpacked."""
    with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
        return file.read().decode('utf-8', 'replace')


@contextlib.contextmanager
def stopped_recorder(*options):
    """A recorder, who has stopped for a while, and the program that worked meanwhile."""
    with Process([SUMS, 'burn'], stdout=subprocess.PIPE, text=True) as target, \
            contextlib.ExitStack() as at_the_end:
        at_the_end.callback(target.kill)
        target.stdout.readline()
        with Process([SHSTK, 'record', *options, '-p', str(target.pid)],
                     stderr=subprocess.PIPE, text=True) as recorder:
            line = recorder.stderr.readline()
            no_events(line)
            check('by perf events' in line, line)
            wait_cpu(target.pid, 0.1)
            recorder.send_signal(signal.SIGSTOP)
            wait_cpu(target.pid, 1.0)
            recorder.send_signal(signal.SIGCONT)
            yield recorder, target


@contextlib.contextmanager
def on_one_cpu():
    """What is started meanwhile runs on one CPU, whose number this returns."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cpus)})
    try:
        yield max(cpus)
    finally:
        os.sched_setaffinity(0, cpus)


@test
def losses_in_every_output():
    """what found no room is said in each format, of how much and on which CPU; by report, too"""
    options, paths = outputs('lost')
    kept = os.path.join(TMP, 'lost.shstk')
    with on_one_cpu() as cpu, \
            stopped_recorder('-F', '2000', '--buffer=16', f'--output={kept}', *options) as running:
        recorder, _ = running
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate()
    check(recorder.returncode == 0, err)
    found = re.search(r'(lost (\d+) records: a ring was full \(see --buffer\); '
                      rf'([0-9.]+) of ([0-9.]+) s CPU time are here; all on CPU {cpu})\n', err)
    check(found and int(found[2]) > 200, err)
    check(float(found[3]) < float(found[4]) and float(found[4]) > 1.0, err)
    again, reported = outputs('reported')
    done = run(SHSTK, 'report', *again, kept)
    check(done.returncode == 0, done.stderr)
    for path in [*paths, *reported]:
        text = read(path)
        check(found[1].replace(';', ':') in text.replace(';', ':'), f'{path}: {text[:400]}')
    check([value for frames, value in folded(paths[0]) if frames[0].startswith('[caution]')]
          == [0], 'folded stacks')
    check(found[1] in json.loads(read(paths[3]))['cautions'], 'JSON')


def check_in_all(begin, *command):
    """Records a command, and checks that a line that begins so is printed and in each output."""
    options, paths = outputs('missing')
    kept, again = (os.path.join(TMP, name) for name in ('missing.shstk', 'missing.again.txt'))
    done = run(SHSTK, 'record', '--via=agent', f'--output={kept}', *options, '--', *command)
    check(done.returncode == 0 and done.stderr.count(begin) == 1, done.stderr)
    done = run(SHSTK, 'report', f'--output={again}', kept)
    check(done.returncode == 0, done.stderr)
    for path in [*paths, again]:
        text = read(path)
        # Tables break lines.
        check(begin in re.sub(r'\s+', ' ', text), f'{path}: {text[:400]}')


def check_in_parts(begin, function, *command):
    """Checks with --every that a line that begins so is in each part with a function of that name."""
    for number in range(150):
        name = os.path.join(TMP, f'every{number}{os.path.basename(command[0])}.folded')
        done = run(SHSTK, 'record', '--every=250ms', '-o', name, '--', *command)
        no_events(done.stderr)
        check(done.returncode == 0, done.stderr)
        said = []
        for stacks in map(folded, parts(name)):
            names = {frame for frames, _ in stacks for frame in frames}
            if any(n.startswith(function) for n in names):
                said.append(any(n.startswith(f'[caution] {begin}') for n in names))
        check(all(said), f'{said}: {done.stderr}')
        if len(said) >= 3:      # a recorder that has to wait for a CPU writes fewer parts
            return
    check(False, f'never three parts: {done.stderr}')


DWO_MISSING = 'inlined functions of 1 source file are not shown'


@test
def missing_descriptions():
    """a .dwo file that is missing is said in each output, and in each part"""
    program = os.path.join(HERE, 'split')
    check_in_all(DWO_MISSING, program)
    check_in_parts(DWO_MISSING, 'works', program)


@test
def missing_descriptions_of_what_is_sent():
    """the same is said if the profile is only sent"""
    if not os.path.exists(os.path.join(BUILD, 'shstk-push')):
        raise Skip('shstk-push was not built: the headers of libcurl are missing')
    done = run(SHSTK, 'record', '--via=agent', '--push=http://127.0.0.1:1',
               f'--spool={os.path.join(TMP, "spool")}', '--', os.path.join(HERE, 'split'))
    check(done.stderr.count(DWO_MISSING) == 1, done.stderr)


@test
def missing_debug_files():
    """a debug file that .gnu_debuglink names, and that is gone or another's, is, too"""
    if not shutil.which('objcopy'):
        raise Skip('objcopy is not installed')
    program, debug = (os.path.join(TMP, name) for name in ('linked', 'linked.debug'))
    for options in (['--only-keep-debug', SUMS, debug],
                    ['--strip-all', f'--add-gnu-debuglink={debug}',
                     '--remove-section=.note.gnu.build-id', SUMS, program]):
        done = run('objcopy', *options)
        check(done.returncode == 0, done.stderr)
    command = [program, 'cpu', '0.1']
    begin = 'lines, inlined functions and some names of linked are not shown: the debug file'
    done = run(SHSTK, 'record', '--via=agent', '-o', f'{program}.folded', '--', *command)
    check(done.returncode == 0 and begin not in done.stderr, done.stderr)
    with open(debug, 'ab') as file:
        file.write(b'not the same')
    check_in_all(begin, *command)
    os.unlink(debug)
    check_in_all(begin, *command)
    check_in_parts(begin, '[linked+', program, 'cpu', '1.5')


def next_part(recorder, name):
    """Has a recorder with --every write what it has, and waits for that."""
    before = len(parts(name))
    recorder.send_signal(signal.SIGHUP)
    end = time.monotonic() + PATIENCE
    while len(parts(name)) == before:
        check(time.monotonic() < end, 'no profile is written')
        time.sleep(0.02)


@test
def losses_of_each_part():
    """--every: the profile in which records are missing says so, those after it do not"""
    name = os.path.join(TMP, 'part.folded')
    with stopped_recorder('-F', '2000', '--buffer=16', '--every=1h', '-o', name) as both:
        recorder, target = both
        next_part(recorder, name)
        # Nothing more is to be recorded, nor lost.
        target.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED)
        next_part(recorder, name)
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate()
    check(recorder.returncode == 0, err)
    lost = [any(frames[0].startswith('[caution] lost') for frames, _ in folded(part))
            for part in parts(name)]
    check(len(lost) == 3 and lost[0] and not lost[2], f'{lost}: {err}')


def parts(name):
    """Returns the profiles of --every, the oldest first.

    Names tell the order: two files may be written in one tick of the file system's clock."""
    stem = os.path.basename(name).split('.')[0]
    return [os.path.join(TMP, n) for n in sorted(os.listdir(TMP)) if n.startswith(stem + '-')]


@test
def whole_of_running_processes():
    """-p: the summary says of how much CPU time the samples are"""
    out = os.path.join(TMP, 'whole.folded')
    with Process([SUMS, 'burn'], stdout=subprocess.PIPE) as target, \
            contextlib.ExitStack() as at_the_end:
        at_the_end.callback(target.kill)
        target.stdout.readline()
        with Process([SHSTK, 'record', '-o', out, '-p', str(target.pid)],
                     stderr=subprocess.PIPE, text=True) as recorder:
            no_events(recorder.stderr.readline())
            wait_cpu(target.pid, 0.5)
            recorder.send_signal(signal.SIGINT)
            _, err = recorder.communicate()
    found = re.search(r'([0-9.]+) of ([0-9.]+) s CPU time', err)
    check(found and float(found[1]) <= float(found[2]) and float(found[2]) >= 0.45, err)


@test
def sums_are_not_larger_than_the_whole():
    """what is recorded beside the command is not set against the command's CPU time"""
    out = os.path.join(TMP, 'beside.folded')
    with Process([SUMS, 'burn'], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        done = run(SHSTK, 'record', '-a', '-o', out, '--', SUMS, 'cpu', '0.2')
        other.kill()
    no_events(done.stderr)
    check(done.returncode == 0 and 's of CPU time' in done.stderr, done.stderr)
    # Nobody waits for this child: what it used is in no sum of its parent.
    done = run(SHSTK, 'record', '-o', out, '--', SUMS, 'orphan')
    got, used = re.search(r'([0-9.]+) of ([0-9.]+) s CPU time', done.stderr).groups()
    check(float(got) <= float(used) or '(more' in done.stderr, done.stderr)


def record_faults(*options):
    """Returns page faults: (in touch_pages, in all) by the program, (samples, counted), stacks."""
    out = os.path.join(TMP, 'faults.folded')
    done = run(SHSTK, 'record', '-e', 'page-faults', '-o', out, *options, '--', SUMS, 'faults',
               '4000')
    no_events(done.stderr)
    check(done.returncode == 0, done.stderr)
    truth = tuple(int(n) for n in done.stdout.split())
    found = re.search(r'(\d+) samples,.*; \d+ of (\d+) page-faults', done.stderr)
    check(found, done.stderr)
    return truth, tuple(int(n) for n in found.groups()), folded(out), done.stderr


EXTRA = 100     # page faults of exec before the program, and of exit after it has printed


@test
def page_faults_are_counted():
    """-e page-faults: the sum is what the program had, in each of some runs"""
    for _ in range(4):
        (touched, before_exit), (_, counted), stacks, err = record_faults()
        # If they came faster than they could be taken, a sample stands for several.
        each = int((re.search(r'one of (\d+) was sampled', err) or [0, 1])[1])
        whole = sum(value for _, value in stacks)
        check(counted <= whole < counted + each, f'{whole} of {counted}: {err}')
        check(before_exit - EXTRA <= counted <= before_exit + EXTRA,
              f'{counted} counted, {before_exit} were: {err}')
        here = sum(value for frames, value in stacks if 'touch_pages' in frames)
        missing = sum(value for frames, value in stacks if '[not sampled]' in frames)
        slack = 2 * each
        check(here <= touched + slack and here + missing >= touched - slack,
              f'{here} + {missing}, {touched} were: {err}')


@test
def count_of_events():
    """--count: a sample at each so many events, and the sum is still what was counted"""
    (_, before_exit), (samples, counted), stacks, err = record_faults('--count=10')
    lost = int(re.search(r'(\d+) lost', err)[1])
    # The rest in each thread at its end makes no sample.
    check(counted // 10 - 2 <= samples + lost <= counted // 10 + lost, err)
    check(sum(value for _, value in stacks) == counted, err)
    check(all(value % 10 == 0 for frames, value in stacks if '[not sampled]' not in frames), err)
    check(abs(counted - before_exit) <= EXTRA, err)


@test
def few_samples_are_an_estimate():
    """--count: a profile of few samples says in each output how rough it is"""
    _, (samples, _), stacks, err = record_faults('-c', '1000')
    check(0 < samples < 10, err)
    check(any(frames[0].startswith(f'[caution] an estimate from {samples} samples')
              for frames, _ in stacks), f'{stacks} {err}')
    done = run(SHSTK, 'record', '--count=5', '--', 'true')
    check(done.returncode == 2 and 'needs an --event' in done.stderr, done.stderr)


def seconds(stacks, *names):
    """Returns the seconds of the stacks that have one of the frames."""
    return sum(value for frames, value in stacks if any(n in frames for n in names)) / 1e9


def run_whole(*command, **who):
    """Runs a recorder, and again if something found no room, as it had to wait for a CPU: shares of
    what is left are not those of all."""
    for _ in tries():
        done = run(*command, **who)
        if not lost_records(done.stderr):
            break
    return done


def record_truth(options, job, **who):
    """Returns what a program says of its two functions, and the stacks."""
    done = run_whole(SHSTK, 'record', '-F', '999', '-o', '-', '--format=folded', *options, '--', SUMS,
                     *job, **who)
    no_events(done.stderr)
    check(done.returncode == 0, done.stderr)
    lines = done.stdout.splitlines()
    truth = next(line for line in lines if re.fullmatch(r'[0-9.]+ [0-9.]+', line))
    stacks = [line.rsplit(' ', 1) for line in lines if ' ' in line and line != truth]
    return ([float(n) for n in truth.split()],
            [(stack.split(';'), int(value)) for stack, value in stacks], done.stderr)


# Standard deviations that are exceeded once in a million, and the part of user code's time that
# interrupts take, which is the kernel's.
DEVIATIONS, INTERRUPTS = 5, 0.015


def check_share(got, true, samples, err):
    """Checks a share within what random samples, the worst case, can tell."""
    slack = DEVIATIONS * (true * (1 - true) / samples) ** 0.5 + INTERRUPTS
    check(abs(got - true) < slack, f'{got:.4f}, true is {true:.4f} +- {slack:.4f}: {err}')


def check_shares(options, **who):
    """Checks that user code has its share, and that system calls or the kernel have the rest."""
    (calls, user), stacks, err = record_truth(options, ('shares', '3'), **who)
    whole = sum(value for _, value in stacks) / 1e9
    samples = int(re.search(r'(\d+) samples?, ', err)[1])
    check(samples > 200, err)
    check_share(seconds(stacks, 'in_user') / whole, user / (calls + user), samples, err)
    check_share(seconds(stacks, 'in_calls', '[kernel]') / whole, calls / (calls + user), samples,
                err)
    return stacks


@test
def system_calls_have_their_time():
    """time in system calls and in user code, by perf events"""
    check_shares(('--via=copies',))


@test
def system_calls_have_their_time_by_the_agent():
    """the same by the agent, with the place of the call"""
    stacks = check_shares(('--via=agent',))
    check(seconds(stacks, 'in_calls') > 5 * seconds(stacks, '[kernel]'), f'{stacks}')


@test
def system_calls_have_their_time_for_users():
    """the same for an ordinary user: where the kernel is hidden it has a frame of its own"""
    need_nobody()
    check_shares((), **NOBODY)


@test
def short_threads_by_the_agent():
    """threads of 1 ms are sampled where they work, not charged to where they begin"""
    with open('/proc/sys/kernel/perf_event_paranoid', encoding='ascii') as file:
        if os.getuid() and int(file.read()) > 2:
            raise Skip('threads may have no perf events here')
    before = stolen()
    (inside, outside), stacks, err = record_truth(('--via=agent',), ('threads', '2'))
    if 'limits the rate here' in err:
        raise Skip('threads may have no perf events here')
    more = 0.05 + stolen() - before
    got = seconds(stacks, 'use') - seconds(stacks, 'in_main')
    # The kernel has a part of the rest: threads that begin and end, clocks that are read.
    check(0.7 * inside < got < 1.1 * inside + more, f'{got} of {inside} s in threads: {err}')
    got = seconds(stacks, 'in_main')
    check(0.85 * outside < got < 1.1 * outside + more, f'{got} of {outside} s in main: {err}')


TICK = time.clock_getres(6)     # CLOCK_MONOTONIC_COARSE: a tick of the kernel
KINDS, PARTS = ('one_kind', 'other_kind'), ('in_long', 'in_short', 'in_reads')


def record_brief(ms, used, *options, via='agent', job='brief', **who):
    """Returns what a program of threads of @ms says it used, and what the profile says: seconds of
    {(kind of thread, function)}, and all stacks."""
    done = run_whole(SHSTK, 'record', '-o', '-', '--format=folded', f'--via={via}', *options, '--', SUMS,
                     job, str(ms), str(used), **who)
    line = next((n for n in done.stdout.splitlines() if re.fullmatch(r'([0-9.]+ ?){6}', n)), None)
    check(line, f'{done.returncode} {done.stderr}')
    true = dict(zip(((k, p) for k in KINDS for p in PARTS), map(float, line.split())))
    stacks = [n.rsplit(' ', 1) for n in done.stdout.splitlines() if n != line]
    stacks = [(stack.split(';'), int(value) / 1e9) for stack, value in stacks]
    got = collections.Counter()
    for frames, value in stacks:
        got.update({(k, p): value for k in KINDS for p in PARTS if k in frames and p in frames})
    return true, got, stacks, done.stderr


def brief_shares(ms, **who):
    """Checks the shares of what threads of @ms do, within what the kernel's ticks can tell."""
    before = stolen()
    true, got, stacks, err = record_brief(ms, max(2, 500 * TICK), '-F', '999', **who)
    more = 0.05 + stolen() - before
    whole, all_true = sum(got.values()), sum(true.values())
    text = f'{ms} ms: {dict(got)} of {true}: {stacks} {err}'
    check(0.8 * all_true < whole < 1.1 * all_true + more, text)
    # A tick stands for its length, and half of the samples' weights vary by as much. With 5 degrees
    # of freedom chi-square is above 36 by chance once in a million.
    chi = sum((got[name] - used * whole / all_true) ** 2 / (used * (TICK + 1 / 999))
              for name, used in true.items())
    check(chi < 2 * 36, f'chi-square {chi:.1f}: {text}')


@test
def short_threads_by_timers():
    """threads shorter than a tick, and of some ticks, without perf events: their shares"""
    need_filters()
    for ms in 0.3, 0.9, 3, 20:
        brief_shares(ms, preexec_fn=forbid_perf_events)


@test
def short_threads_by_events():
    """the same with perf events"""
    for ms in 0.3, 0.9, 3, 20:
        brief_shares(ms)


@test
def short_threads_of_a_killed_process():
    """what short threads left to be shared is in the profile of a process that is killed"""
    need_filters()
    for _ in range(4):
        # A few ticks find few of the threads; the periods are short, so that their sum is right.
        true, _, stacks, err = record_brief(0.3, 4 * TICK, '-F', '4999', job='killed',
                                            preexec_fn=forbid_perf_events)
        got = sum(value for _, value in stacks)
        check(got > 0.9 * sum(true.values()), f'{got} of {true}: {stacks} {err}')


@test
def short_threads_of_a_running_process():
    """-p: threads of a period and a half have their share, as root; else they are counted"""
    out = os.path.join(TMP, 'threads.folded')
    for _ in tries():
        with Process([SUMS, 'threads', '3'], stdout=subprocess.PIPE, text=True) as target:
            target.stdout.readline()
            # No multiple of the kernel's tick: where threads wait for a CPU they begin at a tick.
            done = run(SHSTK, 'record', '-F', '1499', '-o', out, '-p', str(target.pid))
            truth, _ = target.communicate()
        if ' 0 lost' in done.stderr:
            break
    no_events(done.stderr)
    if os.getuid():
        raise Skip('only root may sample the CPUs')
    inside, outside = (float(n) for n in truth.split())
    stacks = folded(out)
    got = [seconds(stacks, name) for name in ('in_thread', 'in_main')]
    check(abs(got[0] / sum(got) - inside / (inside + outside)) < 0.06,
          f'{got}, {inside} and {outside} s were: {done.stderr}')


@test
def threads_in_which_sampling_begins_anew():
    """threads of some periods, that run already: how wrong their shares may be is said"""
    need_threads_events_only()
    for job, points in (('threads', '1'), True), (('shares', '0.5'), False):
        _, stacks, err = record_running(('-F', '4999'), job, **NOBODY)
        found = re.search(r'(\d+) threads ended, in each of which .* up to (\d+) points too small', err)
        check(bool(found) == points, err)
        if found:
            check(int(found[1]) >= 30 and int(found[2]) >= 2, err)
            check(any(frames[0].startswith(f'[caution] {found[0][:40]}') for frames, _ in stacks),
                  f'{stacks}')


def user_shares(ms, used):
    """Records threads of @ms as an ordinary user. Returns by how much of all their time the part in user
    mode is wrong that is the most, in points, and messages."""
    true, got, stacks, err = record_brief(ms, used, '-F', '999', via='copies', **NOBODY)
    whole = sum(true.values())
    errors = {name: 100 * (got[name] - true[name]) / whole for name in true if name[1] != 'in_reads'}
    return (max(abs(e) for e in errors.values()),
            f'{ms} ms: {errors}: {dict(got)} of {true}: {stacks} {err}')


@test
def short_threads_of_an_ordinary_users_command():
    """threads of a period and of some, with events that begin anew in each: their shares"""
    need_threads_events_only()
    if tuple(int(n) for n in re.findall(r'\d+', os.uname().release)[:2]) < (6, 12):
        raise Skip('periods cannot vary: that is from Linux 6.12 on')
    no_events(run(SHSTK, 'record', '--via=copies', '-o', '-', '--format=folded', '--', 'true',
                  **NOBODY).stderr)
    for ms in 0.9, 3:
        # The first threads began before periods varied: some 50 ms, but more if the recorder, which has
        # them vary, has to wait for a CPU.
        for used in 2, 4, 8:
            error, text = user_shares(ms, used)
            if error < 6:
                break
        check(error < 6, text)


@test
def command_that_another_process_starts():
    """an ordinary user's command has its own exit status, and says why it cannot be executed"""
    need_threads_events_only()
    with tempfile.TemporaryDirectory(dir='/tmp') as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, 'no-interpreter')
        with open(path, 'w', encoding='ascii') as file:
            file.write('#!/nonexistent/interpreter\n')
        os.chmod(path, 0o755)
        # Which of the two processes reports first is not known: some turns.
        for words, status in [(['sh', '-c', 'exit 7'], 7), (['sh', '-c', 'kill -9 $$'], 137),
                              *[([path], 127)] * 8]:
            done = run(SHSTK, 'record', '-q', '--via=copies', '-o', '-', '--format=folded', '--',
                       *words, **NOBODY)
            no_events(done.stderr)
            check(done.returncode == status, f'{words}: {done.returncode}: {done.stderr}')
            check(('No such file' in done.stderr) == (status == 127), done.stderr)


def record_running(options, job, **who):
    """Records a program that runs already until it ends: its two numbers, stacks, and messages. Again if
    something was lost, as run_whole()."""
    for _ in tries():
        recorded = record_running_once(options, job, **who)
        if ' 0 lost' in recorded[-1]:
            break
    return recorded


def record_running_once(options, job, **who):
    """Records a program that runs already until it ends: its two numbers, stacks, and messages."""
    with tempfile.TemporaryFile('w+', encoding='utf-8') as profile, \
            Process([SUMS, *job], stdout=subprocess.PIPE, text=True, **who) as target:
        # It works once it is recorded, as the recorder may have to wait for a CPU.
        target.send_signal(signal.SIGSTOP)
        with Process([SHSTK, 'record', '-o', '-', '--format=folded', *options, '-p', str(target.pid)],
                     stdout=profile, stderr=subprocess.PIPE, text=True, **who) as recorder:
            said = recorder.stderr.readline()
            target.send_signal(signal.SIGCONT)
            said += recorder.communicate()[1]
        out, _ = target.communicate()
        profile.seek(0)
        stacks = [line.rsplit(' ', 1) for line in profile]
    no_events(said)
    check(recorder.returncode == 0, said)
    return ([float(n) for n in out.splitlines()[-1].split()],
            [(stack.split(';'), int(value)) for stack, value in stacks], said)


def need_threads_events_only():
    """Skips the test if an ordinary user may have other events than those of his threads."""
    need_nobody()
    with open('/proc/sys/kernel/perf_event_paranoid', encoding='ascii') as file:
        if int(file.read()) < 1:
            raise Skip('events of all CPUs are permitted')


@test
def time_of_unsampled_threads():
    """-p by an ordinary user: what threads used that end before their first sample has a frame"""
    need_threads_events_only()
    # Five threads end within a period.
    (inside, outside), stacks, err = record_running(('-F', '199'), ('threads', '2'), **NOBODY)
    whole = sum(value for _, value in stacks) / 1e9
    got = seconds(stacks, '[unsampled threads]')
    # It also has the kernel's time, and that of main() where the kernel exchanges the events of two
    # threads, as they run on a CPU one after the other.
    least = inside / (inside + outside)
    check(got / whole > least - 0.1, f'{got} of {whole}, not {least}: {err}')
    found = re.search(r'(\d+) threads ended before their first sample: ([0-9.]+) s of CPU time',
                      err)
    check(found and int(found[1]) > 100 and abs(float(found[2]) - got) < 0.02, err)
    check(any(frames[0].startswith(f'[caution] {found[1]} threads ended') for frames, _ in stacks),
          f'{stacks}')


@test
def kernel_of_a_running_process():
    """-p by an ordinary user, of a program that ends: the kernel's time has a frame"""
    need_threads_events_only()
    (calls, user), stacks, err = record_running(('-F', '999'), ('shares', '2'), **NOBODY)
    whole = sum(value for _, value in stacks) / 1e9
    samples = int(re.search(r'(\d+) samples?, ', err)[1])
    check_share(seconds(stacks, 'in_user') / whole, user / (calls + user), samples, err)


def record_chain(**who):
    """Records a program whose threads begin each other; the time sampled, that counted, messages."""
    with Process([SUMS, 'chain'], stdout=subprocess.PIPE, text=True, **who) as target, \
            contextlib.ExitStack() as at_the_end:
        at_the_end.callback(target.kill)
        target.stdout.readline()
        with Process([SHSTK, 'record', '-F', '2999', '-o', '-', '--format=folded', '-p',
                      str(target.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                     text=True, **who) as recorder:
            line = recorder.stderr.readline()
            no_events(line)
            check('by perf events' in line, line)
            wait_cpu(target.pid, 1.0)
            recorder.send_signal(signal.SIGINT)
            _, err = recorder.communicate()
    found = re.search(r'; ([0-9.]+) (?:of ([0-9.]+) s CPU time|s of CPU time)', err)
    check(found, err)
    return float(found[1]), float(found[2] or found[1]), err


def check_chain(**who):
    """Checks that such threads have samples; the kernel may take most of so short threads' time."""
    sampled, counted, err = record_chain(**who)
    # How much of a CPU they get depends on what else runs.
    check(sampled > 0.2 * counted and sampled > 0, err)


@test
def threads_that_begin_each_other():
    """-p of a program whose threads each begin the next one and end: they are found"""
    check_chain()


@test
def threads_that_begin_each_other_for_users():
    """the same by an ordinary user, who has events of his threads only"""
    need_nobody()
    check_chain(**NOBODY)


def off_cpu(option):
    """Returns the seconds off the CPU where a program waits, and where it never does but another
    program runs on its CPU.
    """
    cpu = str(min(os.sched_getaffinity(0)))
    out = os.path.join(TMP, 'off.folded')
    with Process(['taskset', '-c', cpu, SUMS, 'burn'], stdout=subprocess.PIPE) as other, \
            contextlib.ExitStack() as at_the_end:
        at_the_end.callback(other.kill)
        other.stdout.readline()
        done = run(SHSTK, 'record', option, '-o', out, '--', 'taskset', '-c', cpu, SUMS, 'waits')
    no_events(done.stderr)
    check(done.returncode == 0, done.stderr)
    stacks = folded(out)
    return seconds(stacks, 'waits'), seconds(stacks, 'never_blocks'), done.stderr


@test
def waiting_is_not_being_preempted():
    """--off-cpu is where threads wait, --preempted where they could run, and each names the other"""
    waits, works, err = off_cpu('--off-cpu')
    check(waits > 0.4 and not works, f'{waits} and {works} s: {err}')
    check('see --preempted' in err, err)
    waits, works, err = off_cpu('--preempted')
    # A thread that was woken waits for the CPU, too.
    named = re.search(r'([0-9.]+) s more off the CPU are of threads that waited: see --off-cpu', err)
    check(works > 0.05 and named and float(named[1]) > 0.4, f'{waits} and {works} s: {err}')


sys.exit(main())
