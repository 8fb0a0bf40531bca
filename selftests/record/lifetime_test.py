#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests how a recording begins and ends, what it says and writes then, and what it refuses.

Prints KTAP.
"""

import gzip
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, LIMIT, SHSTK, Skip, check, main, one_line, test, tries  # noqa: E402
from recording import (  # noqa: E402
    Recording, Result, TARGET, TMP, agrees, cpu_time, has_own_event, parse_folded, record,
    refused, seconds, shstk, summary, unsampled, wait_cpu)

NAMES = os.path.join(HERE, 'names')


@test
def exit_statuses():
    """the exit status is the command's"""
    for status in 0, 1, 77, 255:
        result = record(TARGET, 'exit', str(status))
        check(result.status == status, f'{result.status}, not {status}')
    result = record(TARGET, 'quick-exit', '0.1', '3')
    check(result.status == 3, f'{result.status}, not 3')


def until_death(got, used):
    """Checks the time of a process that was killed: what it used after its last sample is lost.

    With perf events this is little; on a busy machine, the kernel's ticks may miss a thread.
    """
    check(got > (used - 0.1 if has_own_event() else used / 2), f'{got} s of {used} s')


@test
def crash_of_the_target():
    """after SIGSEGV and SIGKILL the profile is there, status 128 + signal"""
    for how, signo in ('crash', signal.SIGSEGV), ('kill', signal.SIGKILL):
        result = record(TARGET, how, '0.5')
        check(result.status == 128 + signo, f'{how}: {result.status}')
        used = sum(result.truth['burn'])
        until_death(seconds(result, 'burn') + unsampled(result), used)
        check(seconds(result, 'burn') < used + 0.1 + result.stolen, f'{result.stacks}')


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


def on_terminal(args, until, keys):
    """Runs a command on a terminal and presses keys after a text; returns (status, output)."""
    try:
        pid, fd = pty.fork()
    except OSError as err:
        raise Skip(f'there are no terminals here: {err}') from err
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
    # The 20 or more samples that the test waited for are at least one period each.
    got = seconds(Result(0, '', '', parse_folded(path), {}), 'do_forever')
    check(got > 19 / 999, f'{got} s')
    check(re.search(r'\r\x1b\[Kshstk record: \d+ samples?, \d+ lost, 1 thread, '
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
    # The command ends when it sees the profile, which must not wait for the command. On a busy
    # machine, nothing may have run in half a second.
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
    """Returns what recording a command that leaves a daemon prints."""
    path = os.path.join(TMP, 'daemon.folded')
    # The output goes to files, because the daemon keeps its ends of pipes open.
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
        for _ in tries():
            text = leaves_daemon(via)
            if ' 0 lost' in text:       # else what tells of the daemon may be
                break
        named = re.search('1 process outlived the command.*: target \\(([0-9.]+) s of CPU', text)
        check(named and float(named[1]) < 0.1, f'{via}: {text}')


@test
def lost_samples_are_counted():
    """with the recorder stopped and a tiny ring, lost + kept = taken"""
    # At this depth the ring holds about 25 samples, a tenth of a second at 250 Hz.
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
    """Returns the number of POSIX timers of a process."""
    with open(f'/proc/{pid}/timers', encoding='ascii') as file:
        return file.read().count('signal:')


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
def file_without_a_name():
    """without -o the file's suffix is that of the format"""
    folder = os.path.join(TMP, 'unnamed')
    os.mkdir(folder)
    for options, name in ([], 'shstk.pb.gz'), (['--format=speedscope'], 'shstk.speedscope.json'):
        run = shstk('record', *options, '--', TARGET, 'burn', '0.3', cwd=folder)
        check(run.returncode == 0 and os.listdir(folder) == [name], f'{run.stderr}')
        os.unlink(os.path.join(folder, name))


@test
def wrong_options():
    """numbers out of range are named"""
    for option in ('-F0', '-F10001', '-F-5', '-Fx', '--depth=15',
                   '--depth=99999', '--buffer=15', '--buffer=100',
                   '--duration=0', '--duration=x', '--every=49ms'):
        run = shstk('record', option, 'true')
        value = re.search(r'-?\w+$', option.replace('-F', ' ')
                          .replace('=', ' '))[0]
        check(run.returncode == 2 and value in run.stderr,
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
    # A period of a second begins at any moment, so one of some hundred runs has a sample.
    for _ in range(5):
        result = record('sh', '-c', 'exit 6', options=['-F', '1'])
        check(result.status == 6, f'{result.status}')
        if not result.stacks:
            break
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
def memory_limit_by_the_program():
    """a limit that the program sets leaves it the addresses that it asks for"""
    result = record(TARGET, 'limit', '0.3')
    check(result.status == 0, f'{result.status} {result.err}')
    agrees(result, 'limited_work')


sys.exit(main())
