#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record` of what runs already: processes with their children, several processes,
processes by name, threads; and the reasons if there is no sample. Prints KTAP.
"""

import contextlib
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
from harness import HERE, SHSTK, TMP, Process, Skip, check, main, run, test  # noqa: E402

FAMILY = os.path.join(HERE, 'family')
CROWD = os.path.join(HERE, 'crowd')
WORK = 0.3          # CPU seconds that each recorded process has to use meanwhile
PATIENCE = 450      # seconds


@contextlib.contextmanager
def family(*args, program=FAMILY, members=3):
    """The program: {who: number}."""
    with Process([program, *args], text=True, stdin=subprocess.PIPE,
                 stdout=subprocess.PIPE) as process:
        try:
            yield {who: int(number) for who, number in
                   (process.stdout.readline().split() for _ in range(members))}
        finally:
            process.kill()


def cpu_time(number):
    """Returns the CPU seconds of a thread, or of a process with one thread."""
    try:
        with open(f'/proc/{number}/task/{number}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
    except FileNotFoundError:
        return PATIENCE
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def record(*args, working=()):
    """Records until all of these have used some time: (functions, messages)."""
    out = os.path.join(tempfile.mkdtemp(dir=TMP), 'out.folded')
    with Process([SHSTK, 'record', '-F', '499', '-o', out, *args], text=True,
                 stderr=subprocess.PIPE) as recorder:
        first = ''
        for line in recorder.stderr:
            first += line
            if 'sampling' in line:
                break
        before = {number: cpu_time(number) for number in working}
        end = time.monotonic() + PATIENCE
        while 'by perf events' in first and recorder.poll() is None and any(
                cpu_time(n) < before[n] + WORK for n in working):
            check(time.monotonic() < end, 'they do not work')
            time.sleep(0.02)
        recorder.send_signal(signal.SIGINT)
        text = first + recorder.communicate()[1]
    if re.search('not permitted|this kernel has none', text):
        raise Skip(text.strip())
    check(recorder.returncode == 0, text)
    with open(out, encoding='utf-8') as file:
        return set(re.findall(r'work_of_\w+', file.read())), text


def expect(have, *want):
    names, text = have
    check(names == {f'work_of_{name}' for name in want}, f'{names} {text}')
    return text


@test
def children():
    """-p takes the children that are there already, and theirs; --no-children does not"""
    with family() as pids:
        workers = pids['child'], pids['grandchild']
        parent = str(pids['parent'])
        expect(record('-p', parent, working=workers), 'child', 'grandchild')
        text = expect(record('-p', parent, '--no-children', working=workers))
        check(f'no samples: nothing ran for as long as a period (2.0 ms); process {parent} '
              '(family) sleeps (see --off-cpu and --wall)' in text, text)
        expect(record('-p', str(pids['child']), '--no-children', working=workers), 'child')


@test
def several():
    """several processes: with commas, repeated, given twice, as pidof prints them"""
    with family() as pids:
        a, b = str(pids['child']), str(pids['grandchild'])
        workers = pids['child'], pids['grandchild']
        for args in (('-p', f'{a},{b}'), ('-p', a, '-p', b), ('-p', a, b), ('-p', f'{b} {a}'),
                     ('-p', a, '-p', a, b, b)):
            text = expect(record('--no-children', *args, working=workers), 'child', 'grandchild')
            check(' 2 processes,' in text, text)
        text = expect(record('-p', f'4999999,{a}', '--no-children', working=workers), 'child')
        check('process 4999999: No such process: not recorded' in text, text)


@test
def names():
    """--name: what processes are called, and the programs that they run"""
    # No other process on this machine has this name.
    called = f'{os.getpid()}-is-a-name-that-the-kernel-cuts'
    long_name = os.path.join(TMP, called)
    shutil.copy(FAMILY, long_name)
    with family(program=long_name) as pids:
        workers = pids['child'], pids['grandchild']
        for name in called, called[:15]:
            text = expect(record(f'--name={name}', working=workers), 'child', 'grandchild')
            check(' 2 processes,' in text, text)
    done = run(SHSTK, 'record', '--name=a-name-that-nobody-has')
    check(done.returncode == 125 and done.stderr ==
          "shstk record: no process is called 'a-name-that-nobody-has', and none runs a program "
          'of that name\n', done.stderr)


@test
def threads():
    """-t: some threads of a process, not the others"""
    with family('threads') as tids:
        workers = tids['first'], tids['second']
        expect(record('-t', str(tids['first']), working=workers), 'first')
        expect(record('-t', f'{tids["second"]}', working=workers), 'second')
        expect(record('-t', f'{tids["first"]},{tids["second"]}', working=workers),
               'first', 'second')
        text = expect(record('-t', str(tids['parent']), working=workers))
        check(f'; thread {tids["parent"]} (family) sleeps (see --off-cpu' in text, text)
    done = run(SHSTK, 'record', '-t', '4999999')
    if 'not permitted' not in done.stderr:
        check('thread 4999999: No such process' in done.stderr, done.stderr)


@test
def too_many_threads():
    """threads for whose events there are not enough files have those of the CPUs, and others are left out"""
    if os.getuid():
        raise Skip('needs root, who may have events of the CPUs')
    out = os.path.join(TMP, 'many.folded')
    with Process([CROWD, '400', '3000'], stdin=subprocess.PIPE, text=True,
                 stdout=subprocess.PIPE) as crowd, family():
        check(crowd.stdout.readline() == 'ready\n', 'no threads')
        with Process(['sh', '-c', 'ulimit -n 256; exec "$@"', 'sh', SHSTK, 'record', '--via=copies',
                      '-F', '499', '-o', out, '-p', str(crowd.pid)],
                     text=True, stderr=subprocess.PIPE) as recorder:
            text = recorder.stderr.readline()
            if 'by perf events' in text:
                crowd.stdin.write('x')
                crowd.stdin.flush()
                crowd.stdout.readline()
            recorder.send_signal(signal.SIGINT)
            text += recorder.communicate()[1]
        crowd.kill()
    if re.search('not permitted|this kernel has none', text):
        raise Skip(text.strip())
    check(recorder.returncode == 0 and 'of the CPUs, as there are too many threads' in text and
          ' 1 process,' in text, text)
    with open(out, encoding='utf-8') as file:
        stacks = file.read()
    check(';one_of_many' in stacks and 'work_of_' not in stacks, f'{stacks[:400]} {text}')


@test
def reasons():
    """no samples: it is said what the process does instead of running"""
    with family('threads') as tids:
        os.kill(tids['parent'], signal.SIGSTOP)
        os.waitid(os.P_PID, tids['parent'], os.WSTOPPED)
        text = expect(record('-p', str(tids['parent'])))
        check(f'; process {tids["parent"]} (family) is stopped' in text, text)


@test
def last_profiles():
    """--keep: the last profiles of --every are there, older ones are removed"""
    folder = tempfile.mkdtemp(dir=TMP)
    other = os.path.join(folder, 'p-20000101-000000.folded')
    with open(other, 'wb'):
        pass
    with family() as pids, Process(
            [SHSTK, 'record', '-F', '499', '--every=50ms', '--keep=3', '-p', str(pids['parent']),
             '-o', os.path.join(folder, 'p.folded')], text=True, stderr=subprocess.PIPE) as recorder:
        written = 0
        for line in recorder.stderr:
            written += 'wrote' in line
            check(len(os.listdir(folder)) <= 6, os.listdir(folder))
            if written == 10 and 'wrote' in line:
                recorder.send_signal(signal.SIGINT)
            if re.search('not permitted|this kernel has none', line):
                raise Skip(line.strip())
    check(recorder.returncode == 0 and written >= 10, f'{written} {line}')
    check(os.path.exists(other) and len(os.listdir(folder)) == 4, os.listdir(folder))


@test
def words():
    """-g and --call-graph are accepted, and it is said that they are not needed"""
    for option in ['-g'], ['--call-graph', 'dwarf'], ['--call-graph=fp']:
        done = run(SHSTK, 'record', *option, '--format=folded', '-o', '/dev/null', '--', 'true')
        check(done.returncode == 0 and 'stacks are always recorded' in done.stderr, done.stderr)


@test
def refusals():
    """what does not go together, and what is no number, name the option and the cure"""
    for args, words in (
            (['-p', '12,x'], "process ID 'x' is not a number"),
            (['-p', ''], "process ID '' is not a number"),
            (['-t', '0'], 'thread ID'),
            (['--name='], 'name: an empty name is given'),
            (['-p', '1', '-t', '1'], '--tid does not go with --pid and --name'),
            (['-t', '1', 'true'], 'more than one of --tid, --all, --cgroup and a command'),
            (['-p', '1', '12', 'true'], 'more than one of --pid, --all, --cgroup and a command'),
            (['--no-children', 'true'], '--no-children goes with --pid and --name only'),
            (['--keep=2', 'true'], '--keep needs --every'),
            (['--heap', '-t', '1'], '--tid does not go with --heap'),
            (['--via=agent', '--name=init'], '--name does not go with --via=agent')):
        done = run(SHSTK, 'record', *args)
        check(done.returncode == 2 and words in done.stderr, f'{args}: {done.stderr}')


def is_at_work(pid):
    """Returns whether the process exists and is not a zombie."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return False


@test
def nothing_left_by_a_killed_test():
    """what a test had started ends when the test is killed"""
    reader, writer = os.pipe()
    killed = os.fork()
    if not killed:
        # pylint: disable-next=consider-using-with
        os.write(writer, str(Process(['sleep', '1000']).pid).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writer)
    os.waitpid(killed, 0)
    left = int(os.read(reader, 20))
    os.close(reader)
    end = time.monotonic() + PATIENCE
    while is_at_work(left):
        check(time.monotonic() < end, f'{left} goes on')
        time.sleep(0.01)


if __name__ == '__main__':
    sys.exit(main())
