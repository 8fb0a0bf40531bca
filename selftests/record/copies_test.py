#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record` by copies of stacks: of commands and of running processes.

The profile has to be equal to what `shstk unwind` makes of the same samples. Prints KTAP.
"""

import collections
import contextlib
import ctypes
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import pprof  # noqa: E402
from harness import (  # noqa: E402
    HERE, LIMIT, NOBODY, SHSTK, TMP, Process, Skip, check, lost_records, main, make_folder,
    need_nobody, one_line, run, stack_lines, stolen, test, tries)
from perf import kernel_names  # noqa: E402

TARGET = os.path.join(HERE, 'target')
JIT = os.path.join(HERE, 'jit')
MADE = ['main', 'run_code', '[ExceptionBlob]',
        *(f'tests.Made.{name}' for name in ('outer', 'middle', 'inner', 'leaf'))]
DEEP_FP = os.path.join(HERE, 'deep-fp')
DEEP = os.path.join(HERE, 'deep')
STATIC = os.path.join(HERE, 'target-static')
OUT = os.path.join(TMP, 'out.folded')
COPIES = 'stacks copied and unwound here'
LONGER = 2, 10, 50      # seconds of a recording, as on a busy machine nothing may run for a while

# Programs that work for a while in different ways: deep calls, threads, many short processes.
PYTHON = '''
import json, re
for i in range(40000):
    json.loads(json.dumps({"a": [1, 2, {"b": i}]}))
    re.sub("a", "b", "banana" * 9)
'''
SHELL = 'i=0; while [ $i -lt 40 ]; do ls / >/dev/null; grep -c a /etc/passwd; i=$((i + 1)); done'
XZ = f'cat {SHSTK} {SHSTK} | xz -1 -T2 --block-size=1MiB -c >/dev/null'


def folded(path):
    """Returns [(frames, value)] of a file of folded stacks."""
    with open(path, encoding='utf-8') as file:
        return [(stack.split(';'), value) for stack, value in stack_lines(file.read())]


def record(*args):
    """Records into folded stacks: (run, stacks). Skips where perf events are forbidden. Records again if
    something found no room, as the recorder had to wait for a CPU: it may tell of a process or a program."""
    for _ in tries():
        if os.path.exists(OUT):
            os.unlink(OUT)
        done = run(SHSTK, 'record', '-o', OUT, *args)
        if not lost_records(done.stderr):
            break
    refused = re.search('perf events: (not permitted|this kernel has none).*', done.stderr)
    if refused and done.returncode == 125:
        raise Skip(refused[0])
    instead = re.search('sampling in process: .*(not permitted|hides).*', done.stderr)
    if instead:
        raise Skip(instead[0])
    return done, folded(OUT) if os.path.exists(OUT) else []


def need_all(said):
    """Skips the test if records were lost: they may be those that tell what a process has become."""
    if ' 0 lost' not in said:
        raise Skip('records were lost: the machine is too busy')


def seconds(stacks, *functions):
    """Returns the CPU time of the stacks that have all of the functions, in seconds."""
    return sum(value for frames, value in stacks if all(f in frames for f in functions)) / 1e9


def cpu_time(pid):
    """Returns the CPU seconds of a process."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def vdso_ids(path):
    """Returns, for each mapping of the vDSO in a perf.data file, whether it has a build id."""
    mmap2, has_id, found, at = 10, 1 << 14, [], 16
    with open(path, 'rb') as file:
        data = file.read()
    while at < len(data):
        kind, misc, size = struct.unpack_from('=IHH', data, at)
        if kind == mmap2 and b'[vdso]\0' in data[at:at + size]:
            found.append(bool(misc & has_id))
        at += size
    return found


def without_kernel(stacks):
    """Returns the same stacks; those in the kernel while a program is executed end there.

    They have no name of a process, which changes at that moment: one in ten recordings of a shell has
    a sample with the old name that has the new one in the file.
    """
    found = collections.Counter()
    for stack, value in stacks.items():
        found[re.sub(r'^[^;]*;\[exec, loader\](;.*)?$', '[exec, loader]', stack)] += value
    return found


def time_of(stacks, cut):
    """Returns the CPU time of the stacks that are cut off, or of those that are not."""
    return sum(value for stack, value in stacks.items() if ('[truncated]' in stack) == cut)


def equal(name, *command):
    """Checks that the profile made while recording is the one made from the records."""
    data, after = os.path.join(TMP, f'{name}.data'), os.path.join(TMP, f'{name}.folded')
    done, now = record('-F', '999', '--perf-data', data, '--', *command)
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    ids = vdso_ids(data)
    check(len(ids) > 1 and all(ids), f'{name}: not each vdso has a build id: {ids}')
    later = run(SHSTK, 'unwind', '-q', '-o', after, data)
    check(later.returncode == 0, later.stderr)
    # The other profile lacks stacks without user-space registers, and the kernel's part of what was
    # sampled while a program was executed. What has no sample is in no record.
    now = collections.Counter({';'.join(f): v for f, v in now
                               if len(f) > 1 and f[1] not in ('[exit]', '[not sampled]')})
    later = collections.Counter({';'.join(f): v for f, v in folded(after)})
    check(len(now) > 3, f'{name}: {len(now)} stacks: {done.stderr}')
    fewer, more = without_kernel(now) - without_kernel(later), \
        without_kernel(later) - without_kernel(now)
    # What was not copied is read from the process while it is recorded, by a recorder that is not too
    # late: some stacks that are cut off in one profile are whole in the other.
    check(time_of(fewer, False) <= time_of(more, True) and
          time_of(more, False) <= time_of(fewer, True),
          f'{name}: of {len(now)} stacks some differ: {fewer.most_common(3)} {more.most_common(3)}')
    return now


@test
def equal_to_unwind():
    """every stack is the one that `shstk unwind` makes of the same samples"""
    equal('python3', sys.executable, '-c', PYTHON)
    # Otherwise events begin anew in each process, and hardly any process has a sample.
    if not os.getuid():
        equal('shell', 'sh', '-c', SHELL)
    equal('xz', 'sh', '-c', XZ)
    equal('deep', DEEP_FP, '800')
    # The code of its vDSO is in no file.
    stacks = equal('vdso', os.path.join(HERE, 'reuse-first'), '800')
    check(any('clock_gettime' in stack for stack in stacks), f'{stacks}')


@contextlib.contextmanager
def at_work():
    """The target, which works until this ends."""
    with Process([TARGET, 'forever'], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        try:
            yield target.pid
        finally:
            target.kill()


def wait_cpu(pid, recorder, work):
    """Waits until a process has used this much more CPU time while it is recorded; returns it."""
    before, end = cpu_time(pid), time.monotonic() + LIMIT
    while cpu_time(pid) < before + work and recorder.poll() is None:
        check(time.monotonic() < end, 'the target makes no progress')
        time.sleep(0.05)
    return cpu_time(pid) - before


def attach(pid, work, *options):
    """Records a process until it has used this CPU time: (stacks, seconds, messages)."""
    with Process([SHSTK, 'record', '-F', '999', '-o', OUT, *options, '-p', str(pid)],
                 stderr=subprocess.PIPE, text=True) as recorder:
        line = recorder.stderr.readline()
        used = wait_cpu(pid, recorder, work)
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate()
    if 'not permitted' in line or 'has none' in line:
        raise Skip(line.strip())
    check(COPIES in line, line)
    return folded(OUT), used, err


@test
def running_process():
    """-p, with nothing else said: whole stacks of a program without frame pointers"""
    with at_work() as pid:
        stacks, used, err = attach(pid, 0.5)
    got = seconds(stacks, 'main', 'do_forever')
    check(got > used - 0.1, f'{got} of {used} s: {err}')
    check(got > 0.99 * seconds(stacks), f'{got} of {seconds(stacks)} s have whole stacks: {err}')


@test
def running_process_becomes_another():
    """-p of a process that executes another program: whole stacks of both"""
    stolen_before = stolen()
    script = f'read x; i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; exec {TARGET} burn 0.5'
    with Process(['sh', '-c', script], stdin=subprocess.PIPE, text=True) as target, \
            Process([SHSTK, 'record', '-F', '999', '-o', OUT, '-p', str(target.pid)],
                    stderr=subprocess.PIPE, text=True) as recorder:
        line = recorder.stderr.readline()
        target.communicate('begin\n')
        _, err = recorder.communicate()
    if 'not permitted' in line or 'has none' in line:
        raise Skip(line.strip())
    check(COPIES in line and recorder.returncode == 0, line + err)
    need_all(err)
    stacks = folded(OUT)
    check({frames[0] for frames, _ in stacks} == {'sh', 'target'}, f'{stacks[:3]} {err}')
    cut = [frames for frames, _ in stacks if '[truncated]' in frames]
    check(not cut, f'{cut[:3]} {err}')
    old = [frames for frames, _ in stacks if frames[0] == 'target' and
           any(name.startswith(('[dash', '[sh')) for name in frames)]
    check(not old, f'functions of the shell in the other program: {old[:3]}')
    before = seconds([s for s in stacks if s[0][0] == 'sh'])
    burnt = seconds([s for s in stacks if s[0][0] == 'target'], 'main', 'do_burn')
    most = 0.6 + stolen() - stolen_before
    check(before > 0.02 and 0.4 < burnt < most, f'{before} s in the shell, {burnt} s after: {err}')


@test
def deep_stacks():
    """stacks that are larger than any copy: whole, and as deep as they were"""
    done, stacks = record('-F', '999', '--', DEEP, '1500')
    check(done.returncode == 0, done.stderr)
    stacks = [(frames, value) for frames, value in stacks if 'work' in frames]
    whole = [(frames, value) for frames, value in stacks if '[truncated]' not in frames]
    depths = {frames.count('down') for frames, _ in whole}
    # Only stacks from before the copy grew, or after a change that was not seen, are cut off.
    share = sum(value for _, value in whole) / sum(value for _, value in stacks)
    check(share > 0.8, f'{share:.3f} of the stacks are whole: {done.stderr}')
    check(depths and depths <= set(range(1, 402, 40)), f'calls of down(): {sorted(depths)}')
    check('have an outer part that was not copied' in done.stderr, done.stderr)


@test
def read_from_the_process():
    """what lies above the copy is read from the process: stacks are whole, and none is wrong"""
    done, stacks = record('-F', '499', '--', DEEP, '3000')
    check(done.returncode == 0, done.stderr)
    with Process(['sleep', '1000']) as child:
        try:
            os.close(os.open(f'/proc/{child.pid}/mem', os.O_RDONLY))
        except OSError as err:
            raise Skip(f'memory of processes cannot be read: {err}') from err
        finally:
            child.kill()
    found = re.search(r'(\d+) of (\d+) stacks have an outer part .* before and after', done.stderr)
    check(found and int(found[1]) > 0, done.stderr)
    # Complete stacks have all their calls of down(), and main() once.
    whole = [frames for frames, _ in stacks
             if 'work' in frames and '[truncated]' not in frames]
    check(all(frames.count('main') == 1 and frames.count('down') % 40 == 1 for frames in whole),
          f'{whole[:2]}')


@test
def frame_pointers_behind_the_copy():
    """a program with frame pointers: what is not copied is the kernel's callchain"""
    done, stacks = record('-F', '999', '--', DEEP_FP, '1500')
    check(done.returncode == 0, done.stderr)
    check(re.search('is the one that the kernel found by frame pointers|before and after', done.stderr),
          done.stderr)
    stacks = [(frames, value) for frames, value in stacks if 'work' in frames]
    whole = [(frames, value) for frames, value in stacks if '[truncated]' not in frames]
    depths = {frames.count('down') for frames, _ in whole}
    check(depths and depths <= set(range(1, 52, 10)), f'calls of down(): {sorted(depths)}')
    check(all('main' in frames for frames, _ in whole), f'{whole[:3]}')
    share = sum(value for _, value in whole) / sum(value for _, value in stacks)
    check(share > 0.8, f'{share:.3f} of the stacks are whole: {done.stderr}')


def outer_parts(profile):
    """Returns how many samples have which label of an outer part that was not copied."""
    found = collections.Counter()
    for _, values, labels in profile.samples:
        if 'outer' in labels:
            found[labels['outer']] += values[0]
    return found


@test
def outer_parts_are_marked():
    """what is not from the copy has a label and a comment in the profile, also by `shstk unwind`"""
    data, paths = os.path.join(TMP, 'outer.data'), [os.path.join(TMP, f'outer-{n}.pb.gz')
                                                    for n in ('now', 'later')]
    words = {'remembered': 'it is taken from an earlier sample of the thread',
             'frame-pointers': 'it is the one that the kernel found by frame pointers',
             'read-twice': 'it was read from the process before and after, and was the same'}
    for program, kind in (DEEP, 'remembered'), (DEEP_FP, 'frame-pointers'):
        done, _ = record('-F', '999', '--perf-data', data, '-o', paths[0], '--', program, '1000')
        later = run(SHSTK, 'unwind', '-q', '-o', paths[1], data)
        for said, profile in zip((done, later), map(pprof.Decoded, paths)):
            found = outer_parts(profile)
            # If there is a process, it can be read.
            check((found[kind] or (said is done and found['read-twice'])) and
                  set(found) <= set(words), f'{found} {said.stderr}')
            for label, number in found.items():
                text = rf'{number} of \d+ stacks have an outer part .*: {words[label]}'
                check(re.search(text, said.stderr), f'{found}: {said.stderr}')
                check(any(re.fullmatch(text, c) for c in profile.comments), f'{profile.comments}')


@test
def code_made_at_run_time():
    """code as HotSpot makes it, without frame pointers: all of its frames, by their names"""
    if platform.machine() != 'x86_64':
        raise Skip('HotSpot is known on x86-64 only')
    done, stacks = record('-F', '999', '--', JIT, '1000')
    check(done.returncode == 0, done.stderr)
    stacks = [(frames, value) for frames, value in stacks
              if 'run_code' in frames or '[truncated]' in frames]
    good = sum(value for frames, value in stacks
               if frames[-7:] == MADE and '[truncated]' not in frames)
    total = sum(value for _, value in stacks)
    check(total > 0.5e9 and good > 0.95 * total,
          f'{good} of {total} ns: {done.stderr} {sorted(stacks, key=lambda s: -s[1])[:5]}')


@test
def names_in_each_profile():
    """--every: code made at run time has its names in each profile"""
    if platform.machine() != 'x86_64':
        raise Skip('HotSpot is known on x86-64 only')
    done = run(SHSTK, 'record', '-F', '999', '--every=300ms', '-o',
               os.path.join(TMP, 'named.folded'), '--', JIT, '2000')
    check(done.returncode == 0, done.stderr)
    parts = [folded(os.path.join(TMP, name)) for name in os.listdir(TMP)
             if name.startswith('named-')]
    inside = [sum(value for frames, value in part if 'run_code' in frames) for part in parts]
    named = [sum(value for frames, value in part if frames[-7:] == MADE) for part in parts]
    check(len(parts) > 2 and sum(n > 0 for n in inside) > 2, f'{inside}: {done.stderr}')
    check(all(n > 0.9 * i for n, i in zip(named, inside) if i > 0.05e9), f'{named} of {inside}')


@test
def short_processes():
    """a loop of short commands: all of their CPU time, with whole stacks"""
    if os.getuid():
        raise Skip('needs root: events of processes begin anew in each')
    before = stolen()
    done, stacks = record('-F', '999', '--', 'sh', '-c', SHELL)
    check(done.returncode == 0, done.stderr)
    got, used = map(float, re.search(r'; ([0-9.]+) of ([0-9.]+) s CPU', done.stderr).groups())
    check(abs(got - used) < 0.1 * used + 0.05 + stolen() - before, done.stderr)
    total = sum(value for _, value in stacks)
    cut = sum(value for frames, value in stacks if '[truncated]' in frames)
    check(cut < 0.05 * total, f'{cut / 1e9} of {total / 1e9} s are cut off: {done.stderr}')
    names = {frames[0] for frames, _ in stacks}
    check({'sh', 'ls', 'grep'} <= names, f'{names}')


def family_time(pid):
    """Returns the CPU seconds of a process and of the children that it waited for."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf('SC_CLK_TCK')


def own_time(pid):
    """Returns the CPU seconds of a process without its children."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf('SC_CLK_TCK')


def record_short_processes(**who):
    """Records a shell that starts one command after the other.

    Returns (stacks, seconds of all, seconds of the shell itself, messages).
    """
    with Process(['sh', '-c', 'while :; do /bin/true; done'], **who) as target, \
            contextlib.ExitStack() as at_the_end:
        at_the_end.callback(target.kill)
        with Process([SHSTK, 'record', '-o', '-', '--format=folded', '-p',
                      str(target.pid)], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True, **who) as recorder:
            line = recorder.stderr.readline()
            before, end = family_time(target.pid), time.monotonic() + 200
            own = own_time(target.pid)
            while 'by perf events' in line and family_time(target.pid) < before + 2:
                check(time.monotonic() < end and recorder.poll() is None, 'no progress')
                time.sleep(0.05)
            used = family_time(target.pid) - before
            own = own_time(target.pid) - own
            recorder.send_signal(signal.SIGINT)
            out, err = recorder.communicate()
    if 'by perf events' not in line:
        raise Skip(line.strip())
    with open(OUT, 'w', encoding='utf-8') as file:
        file.write(out)
    return folded(OUT), used, own, err


@test
def short_processes_of_what_runs():
    """-p of a shell that starts short commands all the time: their CPU time, and the shell's"""
    if os.getuid():
        raise Skip('needs root: events of processes begin anew in each')
    stacks, used, own, err = record_short_processes()
    # How the commands' time is divided depends on the machine: before they execute their program,
    # they have the shell's name.
    for name, least in ('true', 0), ('sh', 0.5 * own), (None, 0.7 * used):
        got = seconds([s for s in stacks if name in (None, s[0][0])])
        check(got > least, f'{name}: {got} of {used} s, the shell itself {own} s: {err}')


@test
def short_processes_of_a_user():
    """the same, where only events of processes are permitted: it is said that they are missing"""
    need_nobody()
    with open('/proc/sys/kernel/perf_event_paranoid', encoding='ascii') as file:
        if int(file.read()) < 1:
            raise Skip('events of all CPUs are permitted')
    *_, err = record_short_processes(user=65534, group=65534, extra_groups=[])
    check(re.search(r'\d+ threads ended before their first sample', err), err)


@test
def same_number():
    """processes, programs and threads that have the same number one after the other"""
    reuse, rounds, each = os.path.join(HERE, 'reuse'), 12, 20
    names = {'reuse-first': 'work_in_first', 'reuse-other': 'work_in_other',
             'child': 'work_in_child', 'thread': 'work_in_thread'}
    done, stacks = record('-F', '999', '--', reuse, str(rounds), str(each),
                          f'{reuse}-first', f'{reuse}-other')
    if done.returncode == 4:
        raise Skip('the numbers of processes may not be chosen')
    check(done.returncode == 0, done.stderr)
    need_all(done.stderr)
    if os.getuid():
        raise Skip('needs root: events of processes begin anew in each')
    for name, function in names.items():
        wrong = [frames for frames, _ in stacks
                 if frames[0] == name and any(f in frames for f in names.values() if f != function)]
        check(not wrong, f'{name}: {wrong[:3]}')
        got = seconds([s for s in stacks if s[0][0] == name], function, 'main')
        # Other programs may have been faster to get the number of the thread.
        check(name == 'thread' or got > 0.7e-3 * rounds * each, f'{name}: {got} s: {done.stderr}')


def run_with_number(number, *command):
    """Runs a program whose process has this number."""
    class Args(ctypes.Structure):
        """struct clone_args"""
        _fields_ = [(name, ctypes.c_uint64) for name in (
            'flags', 'pidfd', 'child_tid', 'parent_tid', 'exit_signal', 'stack', 'stack_size',
            'tls', 'set_tid', 'set_tid_size')]

    clone3, libc = 435, ctypes.CDLL(None, use_errno=True)
    tid = ctypes.c_int(number)
    args = Args(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(tid), set_tid_size=1)
    pid = libc.syscall(clone3, ctypes.byref(args), ctypes.sizeof(args))
    if not pid:
        try:
            os.execv(command[0], command)
        finally:
            os._exit(127)   # no second run of these tests
    if pid < 0:
        raise Skip(f'the number can not be chosen: {os.strerror(ctypes.get_errno())}')
    check(os.waitpid(pid, 0)[1] == 0, f'{command}')


@test
def number_of_another():
    """a process that is not to be recorded has the number of one that was, and has just ended"""
    if os.getuid():
        raise Skip('needs root: events of processes begin anew in each')
    other = os.path.join(HERE, 'reuse-other')
    if os.path.exists(OUT):
        os.unlink(OUT)
    with Process([SHSTK, 'record', '-F', '999', '-o', OUT, '--', 'sh', '-c',
                  'true & echo $!; wait; read x'], stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        number = int(recorder.stdout.readline())
        end = time.monotonic() + LIMIT
        while os.path.exists(f'/proc/{number}'):
            check(time.monotonic() < end, 'it does not end')
            time.sleep(0.01)
        run_with_number(number, other, '100')
        _, err = recorder.communicate('\n')
    if COPIES not in err:
        raise Skip(err.split('\n', maxsplit=1)[0])
    need_all(err)
    wrong = [frames for frames, _ in folded(OUT) if 'work_in_other' in frames]
    check(not wrong, f'{wrong[:3]} {err}')


@test
def few_descriptors():
    """more files than there may be descriptors: whole stacks, and the profile is written"""
    folder = os.path.join(TMP, 'programs')
    os.mkdir(folder)
    for i in range(120):
        shutil.copy(TARGET, f'{folder}/{i}')
    if os.path.exists(OUT):
        os.unlink(OUT)
    done = run('prlimit', '--nofile=100:100', SHSTK, 'record', '-F', '999', '-o', OUT, '--', 'sh',
               '-c', f'for f in {folder}/*; do $f burn 0.01; done')
    if COPIES not in done.stderr:
        raise Skip(done.stderr.split('\n', maxsplit=1)[0])
    check(done.returncode == 0, done.stderr)
    stacks = [(frames, value) for frames, value in folded(OUT) if frames[0].isdigit()]
    cut = [s for s in stacks if '[truncated]' in s[0]]
    check(len({frames[0] for frames, _ in stacks}) > 100, f'{stacks[:3]} {done.stderr}')
    check(seconds(cut) < 0.1 * seconds(stacks), f'{len(cut)} of {len(stacks)} {done.stderr}')


@test
def ended_threads():
    """a command whose threads ended just before it did: no process outlived it"""
    done, _ = record('-F', '999', '--', 'sh', '-c', XZ)
    check(done.returncode == 0 and 'outlived' not in done.stderr, done.stderr)


@test
def rate():
    """-F 999: a sample for each millisecond of CPU time"""
    before = stolen()
    done, _ = record('-F', '999', '--', TARGET, 'burn', '1')
    more = stolen() - before
    number, got, used = re.search(r'(\d+) samples.*; ([0-9.]+) of ([0-9.]+) s CPU',
                                  done.stderr).groups()
    check(abs(int(number) / 999 - float(got)) < 0.02 + more, done.stderr)
    check(abs(float(got) - float(used)) < 0.1 + more, done.stderr)


def memory(pid):
    """Returns the KiB of private memory of a process."""
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return int(re.search(r'RssAnon:\s+(\d+)', file.read())[1])


@test
def one_profile_after_another():
    """--every: complete profiles, also at SIGHUP, until SIGTERM; memory does not grow"""
    def parts():
        return sorted(name for name in os.listdir(TMP) if name.startswith('part-'))

    # It forks all the time, so that memory kept for processes would show: 500 times a second at
    # most. The recorder keeps what it knows of a process for 5 s after its end, so memory grows
    # at first, and is compared from the 20th profile on (6 s): a recorder that kept all takes
    # some 3.5 MiB more until the 70th, and a target that forks unevenly some 1.2 MiB.
    forks = """
use Time::HiRes qw(sleep time);
for (;;) {
    my $begin = time;
    if (!fork) {
        1 while time < $begin + 0.0005;
        exit;
    }
    wait;
    my $rest = $begin + 0.002 - time;
    sleep $rest if $rest > 0;
}
"""
    with Process(['perl', '-e', forks]) as target, \
            contextlib.ExitStack() as at_the_end:
        at_the_end.callback(target.kill)
        with Process([SHSTK, 'record', '-F', '999', '--every=300ms', '-o',
                      os.path.join(TMP, 'part.folded'), '-p', str(target.pid)],
                     stderr=subprocess.PIPE, text=True) as recorder:
            line = recorder.stderr.readline()
            first, end = 0, time.monotonic() + LIMIT
            while 'by perf events' in line and len(parts()) < 70:
                check(time.monotonic() < end and recorder.poll() is None, f'{parts()}')
                if len(parts()) == 3:
                    recorder.send_signal(signal.SIGHUP)
                if len(parts()) >= 20:
                    first = first or memory(recorder.pid)
                time.sleep(0.02)
            last = memory(recorder.pid) if first else 0
            recorder.send_signal(signal.SIGTERM)
            _, err = recorder.communicate()
    if 'by perf events' not in line:
        raise Skip(line.strip())
    check(recorder.returncode == 0, err)
    check(last < first + 2048, f'{first} KiB after 20 profiles, {last} KiB after 70')
    for name in parts():
        check(re.fullmatch(r'part-\d{8}-\d{6}_\d{3}\.folded', name), name)
        folded(os.path.join(TMP, name))
    check(not [name for name in os.listdir(TMP) if name.startswith('.part')], 'left overs')
    written = [os.stat(os.path.join(TMP, name)).st_mtime_ns for name in parts()]
    check(written == sorted(written), f'names are not in the order of time: {parts()}')


@test
def nobody_reads_what_is_said():
    """who reads standard error is gone when the recording ends: the profile is written"""
    if os.path.exists(OUT):
        os.unlink(OUT)
    # 16 frames: cut stacks are reported before anything is written.
    with Process([DEEP, '60000']) as target, contextlib.ExitStack() as at_the_end:
        at_the_end.callback(target.kill)
        with Process([SHSTK, 'record', '--depth=16', '-F', '999', '-o', OUT, '-p',
                      str(target.pid)], stderr=subprocess.PIPE, text=True) as recorder:
            line = recorder.stderr.readline()
            if 'by perf events' not in line:
                raise Skip(line.strip())
            wait_cpu(target.pid, recorder, 0.3)
            recorder.stderr.close()
            recorder.send_signal(signal.SIGINT)
            check(recorder.wait() == 0, f'ended with {recorder.returncode}')
    check(folded(OUT), 'nothing was written')


@test
def profile_that_cannot_be_written():
    """--every: one that could not be written is kept elsewhere, and the status at the end tells"""
    folder = os.path.join(TMP, 'taken-away')
    os.mkdir(folder)
    with at_work() as pid, Process(
            [SHSTK, 'record', '-F', '999', '--every=1h', '-o', os.path.join(folder, 'a.folded'),
             '-p', str(pid)], stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, TMPDIR=TMP)) as recorder:
        first = recorder.stderr.readline()
        if 'by perf events' in first:
            wait_cpu(pid, recorder, 0.3)
            os.rmdir(folder)
            recorder.send_signal(signal.SIGHUP)
            first = recorder.stderr.readline() + recorder.stderr.readline()
            os.mkdir(folder)
            wait_cpu(pid, recorder, 0.3)
        recorder.send_signal(signal.SIGTERM)
        _, err = recorder.communicate()
    if 'kept in' not in first:
        check('not permitted' in first or 'has none' in first, first + err)
        raise Skip(first.strip())
    check(len(os.listdir(folder)) == 1, f'{os.listdir(folder)} {first} {err}')
    check(recorder.returncode == 125, f'{recorder.returncode}: {first} {err}')


@test
def profile_at_a_signal():
    """--every: SIGHUP has the profile written long before its time, and recording goes on"""
    def parts():
        return sorted(name for name in os.listdir(TMP) if name.startswith('hour-'))

    with at_work() as pid, Process(
            [SHSTK, 'record', '-F', '999', '--every=1h', '-o', os.path.join(TMP, 'hour.folded'),
             '-p', str(pid)], stderr=subprocess.PIPE, text=True) as recorder:
        line = recorder.stderr.readline()
        for n in 1, 2:
            wait_cpu(pid, recorder, 0.3)
            recorder.send_signal(signal.SIGHUP)
            end = time.monotonic() + LIMIT
            while len(parts()) < n and recorder.poll() is None:
                check(time.monotonic() < end, f'no profile at signal {n}: {parts()}')
                time.sleep(0.02)
        recorder.send_signal(signal.SIGTERM)
        _, err = recorder.communicate()
    if 'by perf events' not in line:
        raise Skip(line.strip())
    check(recorder.returncode == 0 and 1 < len(parts()) < 4, f'{parts()} {err}')
    got = [seconds(folded(os.path.join(TMP, name)), 'do_forever') for name in parts()]
    check(sum(value > 0.1 for value in got) >= 2, f'{got}: {err}')


@test
def static_program():
    """a static program, with nothing else said"""
    done, stacks = record('-F', '999', '--', STATIC, 'burn', '0.5')
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    check(seconds(stacks, 'main', 'do_burn') > 0.3, f'{stacks[:3]} {done.stderr}')


def until_used(pid, work):
    """Returns a script that ends once a process has used this much more CPU time than when the script began."""
    ticks = work * os.sysconf('SC_CLK_TCK')
    return (f'ticks=$(awk \'{{ print $14 + $15 + {ticks} }}\' /proc/{pid}/stat); '
            f'until awk -v ticks=$ticks \'{{ exit !($14 + $15 >= ticks) }}\' /proc/{pid}/stat; do :; done')


@test
def whole_system():
    """-a: another process is in the profile, with whole stacks"""
    # All that a busy machine runs is copied, so that at a higher rate its part of the rings may be full each time.
    with at_work() as pid:
        done, stacks = record('-F', '99', '-a', '--', 'sh', '-c', until_used(pid, 0.5))
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    check(seconds(stacks, 'main', 'do_forever') > 0.2, done.stderr)


@contextlib.contextmanager
def control_group():
    """A new cgroup, removed at the end."""
    roots = [where for where in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified',
                                 '/sys/fs/cgroup/perf_event')
             if os.path.exists(os.path.join(where, 'cgroup.procs'))]
    if not roots:
        raise Skip('no cgroup file system')
    path = os.path.join(roots[0], f'shstk-copies-{os.getpid()}')
    try:
        os.mkdir(path)
    except OSError as err:
        raise Skip(f'{path}: {err.strerror}') from err
    try:
        yield path
    finally:
        end = time.monotonic() + LIMIT
        while os.path.exists(path) and time.monotonic() < end:
            with contextlib.suppress(OSError):
                os.rmdir(path)
            time.sleep(0.05)


@test
def one_cgroup():
    """--cgroup: what runs there, with whole stacks, and nothing else"""
    with control_group() as path, at_work() as pid:
        with open(os.path.join(path, 'cgroup.procs'), 'w', encoding='ascii') as file:
            file.write(str(pid))
        done, stacks = record('-F', '499', '--cgroup', path, '--', 'sh', '-c',
                              until_used(pid, 0.3) + f'; exec {TARGET} burn 0.3')
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    got = seconds(stacks, 'main', 'do_forever')
    check(got > 0.1 and got > 0.99 * seconds(stacks), f'{got} of {seconds(stacks)} s')
    check(not seconds(stacks, 'do_burn'), 'the command is outside')


@test
def no_cgroup():
    """--cgroup of a folder that is none: that is said"""
    done, _ = record('--cgroup', TMP, '--', 'true')
    check(done.returncode == 125 and 'is it a cgroup' in done.stderr, done.stderr)


@test
def nothing_sampled():
    """no samples: what was not there is what was asked for, not time on the CPU"""
    def is_off():
        with open(f'/proc/{target.pid}/syscall', encoding='ascii') as file:
            return not file.read().startswith('running')

    with Process(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as target:
        target.stdin.write(b'x')
        end = time.monotonic() + LIMIT
        while target.stdout.read(1) and not is_off():
            check(time.monotonic() < end, 'cat does not wait')
            target.stdin.write(b'x')
        for option, words in (('--off-cpu', 'no thread left a CPU and came back'),
                              ('--event=page-faults', 'no page-faults'),
                              ('--kernel', 'nothing ran for as long as a period')):
            done, _ = record('--duration=10ms', option, '-p', str(target.pid))
            check(done.returncode == 0 and f'no samples: {words}' in done.stderr, done.stderr)


@test
def another_event():
    """-e page-faults: the stacks of those who touch new memory"""
    done, stacks = record('-F', '9999', '-e', 'page-faults', '--', TARGET, 'fork', '50',
                          '0.001')
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    check(re.search(r'; \d+ of \d+ page-faults, sampled', done.stderr), done.stderr)
    faults = sum(value for frames, value in stacks if {'main', 'do_fork'} <= set(frames))
    check(faults > 50, f'{faults} page faults of 50 children: {stacks[:3]}')


@test
def kernel_frames():
    """--kernel: the kernel's functions above those of the program, in one stack"""
    if not kernel_names():
        raise Skip('the kernel hides its addresses')
    done, stacks = record('-F', '999', '--kernel', '--', TARGET, 'fork', '200', '0.001')
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    inside = [frames for frames, _ in stacks if 'main' in frames and 'do_fork' in frames
              and any(re.match('(do_syscall_64|el0_svc)', name)
                      for name in frames[frames.index('do_fork'):])]
    check(inside, f'{stacks[:5]} {done.stderr}')


@test
def kernel_frames_alone():
    """without --kernel: its functions where a process ends or executes, and has no other stack"""
    if not kernel_names():
        raise Skip('the kernel hides its addresses')
    done, stacks = record('-F', '4999', '--', 'sh', '-c', SHELL)
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    alone = [frames for frames, _ in stacks if '[exit]' in frames or '[exec, loader]' in frames]
    check(alone and all(len(frames) > 2 for frames in alone), f'{alone[:5]} {done.stderr}')
    check(any('do_exit' in frames for frames in alone), f'{alone}')
    others = [frames for frames, _ in stacks if frames not in alone and len(frames) > 1]
    check(not any('do_syscall_64' in frames or 'el0_svc' in frames for frames in others),
          f'{others[:5]}')


@test
def other_rights():
    """as root a program that has another user's rights, with whole stacks"""
    if os.getuid():
        raise Skip('needs root to make such a file')
    path = os.path.join(TMP, 'setuid')
    shutil.copy(TARGET, path)
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o4755)
    os.chmod(TMP, 0o755)
    done, stacks = record('-F', '999', '--', path, 'burn', '0.5')
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    check(seconds(stacks, 'main', 'do_burn') > 0.4, f'{stacks[:3]} {done.stderr}')


@test
def time_off_the_cpu():
    """--off-cpu: where a program without frame pointers sleeps"""
    done, stacks = record('--off-cpu', '--', TARGET, 'sleeper', '1')
    check(done.returncode == 0, done.stderr)
    check(seconds(stacks, 'sleeping_thread') > 0.95, f'{stacks} {done.stderr}')


@test
def stacks_of_the_preempted():
    """--off-cpu: of preempted threads stacks are taken, too, but those that are told of are of waits"""
    cpu = str(min(os.sched_getaffinity(0)))
    deep = f'taskset -c {cpu} {DEEP} 1000'
    done, _ = record('--off-cpu', '--', 'sh', '-c', f'{deep} & {deep}; wait')
    check(done.returncode == 0, done.stderr)
    counts = [tuple(map(int, found)) for found in re.findall(r'(\d+) of (\d+) stacks', done.stderr)]
    check(all(part <= whole for part, whole in counts), done.stderr)


@test
def wall_clock_time():
    """--wall: where a program runs and waits, and nothing is put into it"""
    done, stacks = record('--wall', '--', TARGET, 'sleeper', '1')
    check(done.returncode == 0 and COPIES in done.stderr, done.stderr)
    # The thread sleeps for a second; the first thread waits for it or works meanwhile.
    check(seconds(stacks, 'sleeping_thread') > 0.95, f'{stacks} {done.stderr}')
    check(seconds(stacks, 'main', 'do_sleeper') > 0.9, f'{stacks} {done.stderr}')
    check(seconds(stacks, 'main', 'do_sleeper', 'burn') > 0.05, f'{stacks} {done.stderr}')
    done, _ = record('--wall', '--', 'sh', '-c', 'echo "<$LD_PRELOAD>"; cat /proc/$$/maps')
    check(done.returncode == 0 and '<>' in done.stdout, done.stdout[:200])
    check('libshstk-agent' not in done.stdout, done.stdout)


@test
def another_user():
    """an ordinary user: his own processes, as far as the kernel permits it; else the agent"""
    need_nobody()
    with open('/proc/sys/kernel/perf_event_paranoid', encoding='ascii') as file:
        level = int(file.read())
    out = os.path.join(TMP, 'user.folded')
    os.chmod(TMP, 0o755)
    os.close(os.open(out, os.O_CREAT | os.O_WRONLY, 0o666))
    os.chmod(out, 0o666)
    who = NOBODY
    with Process([TARGET, 'forever'], stdout=subprocess.PIPE, **who) as target:
        target.stdout.readline()
        for duration in LONGER:
            done = run(SHSTK, 'record', '-o', '-', '--format=folded', f'--duration={duration}', '-p',
                       str(target.pid), **who)
            if done.returncode or 'do_forever' in done.stdout:
                break
        target.kill()
    if 'which is enough' in done.stderr:
        raise Skip(one_line(done.stderr))
    if level > 2:
        check(done.returncode == 125 and 'not permitted' in one_line(done.stderr), done.stderr)
    else:
        check(done.returncode == 0 and ';main;do_forever;' in done.stdout, done.stderr)
    done = run(SHSTK, 'record', '-o', '-', '--format=folded', '--', TARGET, 'burn', '0.3', **who)
    check(done.returncode == 0 and ';main;do_burn;' in done.stdout, done.stderr)
    check((COPIES if level < 3 else 'sampling in process: ') in done.stderr, done.stderr)
    done = run(SHSTK, 'record', '-o', '-', '--format=folded', '--', 'dd', 'if=/dev/zero',
               'of=/dev/null', 'bs=1M', 'count=4000', **who)
    check(done.returncode == 0, done.stderr)
    if level == 2:
        check('s of CPU time in the kernel are shown as [kernel]' in done.stderr, done.stderr)


@test
def by_the_broker():
    """an ordinary user, by the broker: where a program waits, also one that runs; else the agent"""
    with open('/proc/sys/kernel/perf_event_paranoid', encoding='ascii') as file:
        level = int(file.read())
    need_nobody()
    if level < 2:
        raise Skip(f'kernel.perf_event_paranoid is {level}: users need no broker')
    record('--', 'true')    # skips where not even root may
    # Names of sockets are short: the tree may lie deep.
    folder = make_folder(None)
    os.chmod(folder, 0o755)
    socket = os.path.join(folder, 'broker')
    who = {**NOBODY, 'env': dict(os.environ, SHSTK_BROKER=socket)}
    words = 'perf events that the broker opened'
    with Process([SHSTK, 'broker', '--socket', socket]) as broker:
        wait_for(lambda: os.path.exists(socket), 'the broker')
        done = run(SHSTK, 'record', '--wall', '-o', '-', '--format=folded', '--', TARGET,
                   'sleeper', '1', **who)
        check(done.returncode == 0 and done.stderr.count(words) == 2, done.stderr)
        slept = [int(line.rsplit(' ', 1)[1]) for line in done.stdout.split('\n')
                 if ';sleeping_thread;' in line]
        check(sum(slept) > 0.95e9 and ';main;do_sleeper;burn' in done.stdout, done.stdout)
        with Process([TARGET, 'forever'], stdout=subprocess.PIPE, **who) as target:
            target.stdout.readline()
            done = run(SHSTK, 'record', '--off-cpu', '-o', '-', '--format=folded',
                       '--duration=0.5', '-p', str(target.pid), **who)
            target.kill()
        check(done.returncode == 0 and words in done.stderr, done.stderr)
        done = run(SHSTK, 'record', '--wall', '-o', '-', '-p', str(os.getpid()), '--duration=0.1',
                   **who)
        check(done.returncode == 125 and 'the broker opens no events' in done.stderr, done.stderr)
        broker.terminate()
    done = run(SHSTK, 'record', '--wall', '-o', '-', '--format=folded', '--', TARGET,
               'burn', '0.1', **who)
    check(done.returncode == 0 and 'sampling in process: ' in done.stderr, done.stderr)


@test
def zombie():
    """-p of a process that has ended, but was not waited for: that is said"""
    with Process(['true']) as target:
        os.waitid(os.P_PID, target.pid, os.WEXITED | os.WNOWAIT)
        for options in [], ['--off-cpu'], ['--heap']:
            done, _ = record(*options, '--duration=0.1', '-p', str(target.pid))
            text = one_line(done.stderr)
            # If there can be no probes, the message says that.
            good = 'zombie' in text or ('--heap' in options and 'malloc' not in text)
            check(done.returncode == 125 and good, f'{options}: {text}')


@test
def process_of_another_user():
    """-p of another user's process: said is what helps, whatever kernel.perf_event_paranoid is"""
    need_nobody()
    with at_work() as pid:
        done = run(SHSTK, 'record', '--duration=0.1', '-o', '-', '--format=folded', '-p', str(pid),
                   user=65534, group=65534, extra_groups=[])
    text = one_line(done.stderr)
    if 'this kernel has none' in text:
        raise Skip(text)
    check(done.returncode == 125 and f'process {pid} is another user' in text
          and 'set it to' not in text, text)


@test
def without_sys():
    """each CPU is sampled where /sys is not mounted, as in some containers"""
    cpu = max(os.sched_getaffinity(0))
    if os.getuid() or not cpu:
        raise Skip('needs root, to hide /sys, and a second CPU')
    hidden = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c',
              'mount -t tmpfs none /sys && exec "$@"', 'sh']
    if run(*hidden, 'true').returncode:
        raise Skip('/sys cannot be hidden here')
    if os.path.exists(OUT):
        os.unlink(OUT)
    done = run(*hidden, 'taskset', '-c', str(cpu), SHSTK, 'record', '-o', OUT, '--',
               sys.executable, '-c', PYTHON)
    if done.returncode == 125:
        raise Skip('perf events are not permitted')
    got, used = re.search(r'([0-9.]+) of ([0-9.]+) s CPU time', done.stderr).groups()
    check(float(got) > 0.5 * float(used), done.stderr)

@contextlib.contextmanager
def recorder_of(pid):
    """A recorder of a process, its Popen; at the end it is asked to end, and must not fail."""
    with Process([SHSTK, 'record', '-F', '999', '-o', OUT, '-p', str(pid)],
                 stderr=subprocess.PIPE, text=True) as recorder:
        line = recorder.stderr.readline()
        if 'not permitted' in line or 'has none' in line:
            raise Skip(line.strip())
        check(COPIES in line, line)
        yield recorder
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate()
        check(recorder.returncode == 0, f'ended with {recorder.returncode}: {err}')


def wait_for(fact, what):
    """Waits until fact() is true."""
    end = time.monotonic() + LIMIT
    while not fact():
        check(time.monotonic() < end, what)
        time.sleep(0.02)


@test
def shortened_library():
    """a library whose file is cut off while it is recorded: recording goes on"""
    library = os.path.join(TMP, 'shorten.so')
    shutil.copy(os.path.join(HERE, 'shorten-600.so'), library)

    def is_read_by(recorder):
        with open(f'/proc/{recorder.pid}/maps', encoding='utf-8') as maps:
            return library in maps.read()

    with Process([os.path.join(HERE, 'shorten'), library], stdout=subprocess.PIPE) as target:
        try:
            target.stdout.readline()
            with recorder_of(target.pid) as recorder:
                wait_for(lambda: is_read_by(recorder), 'the recorder does not read the library')
                target.send_signal(signal.SIGUSR1)
                check(target.stdout.readline() == b'shortened\n', 'the library is as it was')
                wait_cpu(target.pid, recorder, 0.3)
        finally:
            target.kill()
    check(seconds(folded(OUT), 'work_behind_library') > 0.1, f'{folded(OUT)[:5]}')

# Maps code of a file whose name is then the name of a FIFO; tells if the FIFO is opened.
FIFO = '''
import mmap, os, sys, threading
path = sys.argv[1]
with open(path, 'wb') as file:
    file.write(b'\\x90' * 4096)
with open(path, 'rb') as file:
    code = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
os.unlink(path)
os.mkfifo(path + ' (deleted)')
def wait():
    os.open(path + ' (deleted)', os.O_WRONLY)
    print('opened', flush=True)
threading.Thread(target=wait, daemon=True).start()
print('ready', flush=True)
while True:
    pass
'''


@test
def fifo_for_a_library():
    """a FIFO that has the name of mapped code is not opened, which could last for ever"""
    path = os.path.join(TMP, 'code')
    with Process([sys.executable, '-c', FIFO, path], stdout=subprocess.PIPE) as target:
        try:
            check(target.stdout.readline() == b'ready\n', 'nothing is mapped')
            done = run(SHSTK, 'trace', '-p', str(target.pid))
            check(done.returncode == 0, done.stderr)
            with recorder_of(target.pid) as recorder:
                wait_cpu(target.pid, recorder, 0.3)
        finally:
            target.kill()
            os.unlink(path + ' (deleted)')
        check(target.stdout.read() == b'', 'it was opened')

# Maps very many pieces of code, none next to another.
PIECES = '''
import ctypes, mmap, sys
libc = ctypes.CDLL(None, use_errno=True)
number, page = int(sys.argv[1]), mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * number * page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for i in range(number):
    place = ctypes.c_void_p(start + 2 * i * page)
    if libc.mprotect(place, ctypes.c_size_t(page), mmap.PROT_READ | mmap.PROT_EXEC):
        sys.exit(4)
print('ready', flush=True)
while True:
    pass
'''


def time_for_pieces(number):
    """Returns the user time of a recorder; its process has this many pieces of code mapped."""
    with Process([sys.executable, '-c', PIECES, str(number)], stdout=subprocess.PIPE) as target:
        try:
            if target.stdout.readline() != b'ready\n':
                raise Skip('not so many mappings are permitted')
            with recorder_of(target.pid) as recorder:
                wait_cpu(target.pid, recorder, 0.5)
                ticks = os.sysconf('SC_CLK_TCK')
                with open(f'/proc/{recorder.pid}/stat', encoding='utf-8') as file:
                    return int(file.read().rsplit(')', 1)[1].split()[11]) / ticks
        finally:
            target.kill()


@test
def many_mappings():
    """thirty times as many pieces of code take not much more than thirty times as long"""
    few, many = time_for_pieces(1000), time_for_pieces(30000)
    check(many < 30 * max(few, 0.1), f'{few} s for 1000, {many} s for 30000')


def shared(**more):
    """Returns the MiB that the recorder shared at 999 Hz."""
    done = run(SHSTK, 'record', '-F', '999', '-o', OUT, '--', 'sleep', '0.1', **more)
    if COPIES not in done.stderr:
        raise Skip('stacks are not copied here')
    return int(re.search(r'and ([0-9]+) MiB shared at most', done.stderr)[1])


@test
def memory_of_rings():
    """the last line says what rings take: on a machine with little memory less"""
    usual = shared()
    small = os.path.join(HERE, 'small_machine.so')
    less = shared(env=dict(os.environ, LD_PRELOAD=small))
    # 64 KiB for each CPU, or half a MiB.
    most = max(1, (os.cpu_count() + 15) // 16)
    if usual <= most:
        raise Skip('kernel.perf_event_mlock_kb permits no more in any case')
    check(0 < less <= most, f'{less} MiB instead of {usual}')

def strange_copy(path, repeat=1, hole=0, tail=b''):
    """Makes a copy of a program with strange symbols.

    The table of symbols is repeated, and goes on with a hole of some bytes; the table of names ends
    with a tail.
    """
    with open(STATIC, 'rb') as file:
        image = bytearray(file.read())
    place, size, number = (struct.unpack_from('<Q', image, 0x28)[0],
                           *struct.unpack_from('<HH', image, 0x3a))
    kinds = [struct.unpack_from('<I', image, place + n * size + 4)[0] for n in range(number)]
    symbols = place + size * kinds.index(2)
    names = place + size * struct.unpack_from('<I', image, symbols + 0x28)[0]

    def content(section):
        at, length = struct.unpack_from('<QQ', image, section + 0x18)
        return image[at:at + length]

    texts, table = content(names) + tail, content(symbols) * repeat
    struct.pack_into('<QQ', image, names + 0x18, len(image), len(texts))
    struct.pack_into('<QQ', image, symbols + 0x18, len(image) + len(texts), len(table) + hole)
    with open(path, 'wb') as file:
        file.write(image + texts + table)
        file.truncate(file.tell() + hole)
    os.chmod(path, 0o755)


@test
def names_without_an_end():
    """a program whose table of names has no end, which is looked for at each name"""
    path = os.path.join(TMP, 'endless')
    strange_copy(path, repeat=50, tail=b'A' * (64 << 20))
    done, stacks = record('-F', '999', '--', path, 'burn', '0.2')
    os.unlink(path)
    check(done.returncode == 0 and stacks, done.stderr)


@test
def file_of_holes():
    """another user's program that claims to have many symbols: none of them take memory"""
    path = os.path.join(TMP, 'holes')
    strange_copy(path, hole=24 << 26)
    if os.getuid() == 0:
        os.chown(path, 65534, -1)
    done, stacks = record('-F', '999', '--', path, 'burn', '0.2')
    os.unlink(path)
    check(done.returncode == 0 and stacks, done.stderr)
    used = int(re.search(r'recorder: (\d+) MiB', done.stderr)[1])
    check(used < 500, done.stderr)

# Maps the code of a library for a moment, then that of another library at the same place.
SWAP = '''
import ctypes, mmap, struct, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long)
one, other = (open(path, 'rb') for path in sys.argv[1:])
head = one.read(4096)
for at in range(64, 64 + 56 * head[56], 56):
    kind, flags, offset = struct.unpack_from('<IIQ', head, at)
    if kind == 1 and flags & 1:
        break
def work():
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
work()
what = 4096, mmap.PROT_READ | mmap.PROT_EXEC
place = libc.mmap(None, *what, mmap.MAP_PRIVATE, one.fileno(), offset)
libc.mmap(place, *what, mmap.MAP_PRIVATE | 0x10, other.fileno(), offset)
work()
'''


@test
def another_file_at_once():
    """a program that puts a file in another one's place has only itself unwound by it"""
    one, other = (os.path.join(HERE, f'shorten-{n}.so') for n in (600, 1400))
    done, stacks = record('-F', '999', '--', 'sh', '-c',
                          'python3 -c "$1" "$2" "$3"; "$4" "$2" whole', 'sh', SWAP, one, other,
                          os.path.join(HERE, 'shorten'))
    check(done.returncode == 0, done.stderr)
    inside = [(frames, value) for frames, value in stacks if 'work_for_a_while' in frames]
    whole = [(frames, value) for frames, value in inside if 'main' in frames]
    check(sum(v for _, v in whole) > 0.9 * sum(v for _, v in inside) > 0.2e9,
          f'{inside[:3]} {done.stderr}')


sys.exit(main())
