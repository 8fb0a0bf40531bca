# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of the target, and what they are compared with: shared by the tests of this folder.

What is expected of a profile never depends on wall-clock time: the target measures by its own CPU
time what its functions use, and writes it to a file.
"""

import collections
import ctypes
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import time

from harness import (
    HERE, LIMIT, SHSTK, check, children_of, end_with_parent, lost_records, make_folder, one_line,
    stack_lines, stolen, tries)
from harness import run as run_here

TARGET = os.path.realpath(os.path.join(HERE, 'target'))
POINTERS = os.path.join(HERE, 'pointers')
STATIC = os.path.join(HERE, 'target-static')
TRUTH = 99      # the target's descriptor for what its functions used


def make_tmp():
    """Makes a folder that other users may enter and where programs can run.

    It is in /tmp, or beside the script, which may be below somebody's private home.
    """
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


# truth: {function: [seconds of each call]}, as the target measured them. stolen: seconds that a hypervisor
# took meanwhile: perf events count them where the clocks of threads do not.
Result = collections.namedtuple('Result', 'status out err stacks truth stolen', defaults=(0,))


def parse_folded(path):
    """Returns [(list of frames, value)] of a file of folded stacks."""
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as file:
        return [(stack.split(';'), value) for stack, value in stack_lines(file.read())]


def shstk(*args, **kwargs):
    """Runs the command in a folder where every user may be."""
    return run_here(SHSTK, *args, **{'cwd': TMP, **kwargs})


def open_truth():
    """Makes the file to which targets write what they used."""
    file = os.open(os.path.join(TMP, 'truth'),
                   os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(file, TRUTH)
    os.close(file)


def read_truth():
    """Returns what targets wrote since the file was emptied."""
    truth = collections.defaultdict(list)
    with open(os.path.join(TMP, 'truth'), encoding='ascii') as file:
        for line in file:
            function, used = line.split()
            truth[function].append(float(used))
    return truth


KERNEL = ('--via', '--off-cpu', '--kernel', '--event', '--cgroup', '-e', '-a', '--heap')


def by_agent(options):
    """Returns the option that lets the agent sample, unless the options choose something else."""
    return () if any(o.startswith(KERNEL) for o in options) else ('--via=agent',)


def record(*args, options=(), **kwargs):
    """Records a command into folded stacks: again if something found no room, as the recorder had to wait
    for a CPU. What is lost may tell of a process, a thread or a program."""
    for _ in tries():
        result = record_once(*args, options=options, **kwargs)
        if not lost_records(result.err):
            break
    return result


def record_once(*args, options=(), **kwargs):
    """Records a command into folded stacks."""
    path = os.path.join(TMP, 'out.folded')
    if os.path.exists(path):
        os.unlink(path)
    os.ftruncate(TRUTH, 0)
    before = stolen()
    run = shstk('record', '-o', path, '-F', '999', *by_agent(options), *options, '--', *args,
                pass_fds=(TRUTH,), **kwargs)
    return Result(run.returncode, run.stdout, run.stderr, parse_folded(path),
                  read_truth(), stolen() - before)


def seconds(result, *functions):
    """Returns the CPU time of the stacks that contain all of the functions, in seconds."""
    return sum(value for frames, value in result.stacks
               if all(f in frames for f in functions)) / 1e9


def refused(run, status, words):
    """Checks that the command refused with a status and one line that has the words."""
    line = one_line(run.err if isinstance(run, Result) else run.stderr)
    code = run.status if isinstance(run, Result) else run.returncode
    check(code == status, f'status {code}, not {status}: {line}')
    check(re.search(words, line), f'{words!r} is not in {line!r}')


def about(value, wanted, slack, what, late=0):
    """Checks that a value is within a tolerance; late is the part that may be elsewhere in the
    profile.
    """
    check(wanted - slack <= value + late and value <= wanted + slack,
          f'{what}: {value:.3f} and {late:.3f} elsewhere, not {wanted:.3f} within {slack:.3f}')


def unsampled(result, *functions):
    """Returns the CPU time that no tick of the kernel sampled, where there are no perf events."""
    return seconds(result, '[between ticks]', *functions)


def agrees(result, function, *others, slack=0.1):
    """Checks that a function's time in the profile is what the target says it used."""
    check(result.truth[function], f'{function} did not run: {result.err}')
    about(seconds(result, function, *others), sum(result.truth[function]), slack + result.stolen,
          f'CPU seconds of {function}', unsampled(result))


def share_agrees(result, samples, *functions):
    """Checks that the first function's share of both is what the target says it was."""
    used = [sum(result.truth[f]) for f in functions]
    got = [seconds(result, f) for f in functions]
    share = used[0] / sum(used)
    # Five standard deviations for this number of samples, if they were random.
    about(got[0] / sum(got), share, 5 * (share * (1 - share) / samples) ** 0.5,
          f'share of {functions[0]}')


def summary(result):
    """Returns (samples, lost, threads, processes) of the last line."""
    found = re.search(r'(\d+) samples?, (\d+) lost, (\d+) threads?, '
                      r'(\d+) process', result.err)
    check(found, f'no summary in {result.err!r}')
    return tuple(int(n) for n in found.groups())


def has_own_event():
    """Returns whether a thread may have a perf event on its own CPU clock, as the agent needs."""
    with open('/proc/self/status', encoding='ascii') as file:
        if 'Seccomp:\t0\n' not in file.read():
            return False    # the agent does not try if there is a filter
    number = {'x86_64': 298, 'aarch64': 241}.get(platform.machine())
    if not number:
        return False
    # struct perf_event_attr: type (software), size, config (CPU clock), ..., and the bits
    # exclude_kernel and exclude_hv.
    attr = struct.pack('=IIQ24xQ', 1, 128, 0, 1 << 5 | 1 << 6).ljust(128, b'\0')
    fd = ctypes.CDLL(None).syscall(number, attr, 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


class Recording:
    """Runs `shstk record` of a target that runs until a signal ends it."""

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
        """Waits for the end, and returns the result."""
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
    """Returns the first child of a process."""
    return children_of(pid)[0]


def cpu_time(pid):
    """Returns the CPU seconds of a process."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def wait_cpu(pid, wanted):
    """Waits until a process has used this CPU time."""
    end = time.monotonic() + LIMIT
    while cpu_time(pid) < wanted:
        check(time.monotonic() < end, 'the target makes no progress')
        time.sleep(0.05)


AGENTS = ('--via=agent',), ('--via=agent', '--wall'), ('--heap',)


class Running:
    """Runs a target that says when it is ready."""

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


def state_of(path):
    """Returns the letter of the state of a process or thread."""
    with open(os.path.join(path, 'stat'), encoding='ascii') as file:
        return file.read().rsplit(')', 1)[1].split()[0]


def wait_state(pid, states):
    """Waits until a process is in one of these states."""
    end = time.monotonic() + LIMIT
    while True:
        state = state_of(f'/proc/{pid}')
        if state in states:
            return
        check(time.monotonic() < end, f'state {state}, not {states}')
        time.sleep(0.02)


open_truth()
