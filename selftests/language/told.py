# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of threads that say where they wait, and what `shstk trace -p` shows of them."""

import json
import os
import platform
import re
import resource
import signal
import time

from harness import Skip, check, end_with_parent, shstk

PATIENCE = 450      # seconds until all threads wait
READ = '63' if platform.machine() == 'aarch64' else '0'     # number of read(2)


def await_file(path, process):
    until = time.monotonic() + PATIENCE
    while not os.path.exists(path):
        if process.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def reads(pid, tid):
    """Whether a thread is in read(2)."""
    try:
        with open(f'/proc/{pid}/task/{tid}/syscall') as call:
            return call.read().split()[0] == READ
    except OSError as error:
        raise Skip(f'the system calls of threads cannot be read: {error}') from error


def await_reading(pid, tids):
    """Until all of them wait: what they tell is from just before."""
    until = time.monotonic() + PATIENCE
    while not all(reads(pid, tid) for tid in tids) and time.monotonic() < until:
        time.sleep(0.02)


def read_told(path):
    """By thread ID: (function, line), the innermost first."""
    told = {}
    with open(path) as file:
        for row in file.read().splitlines():
            words = row.split('\t')
            told[int(words[0])] = [tuple(w.rsplit('@', 1)) for w in words[1:]]
    return told


def may_leave_core():
    """In a new process: it may leave a core file."""
    end_with_parent()
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def leave_core(process, folder):
    """Ends a process, which works in the folder. Returns the path of the core file that it left."""
    process.send_signal(signal.SIGABRT)
    process.wait()
    for name in os.listdir(folder):
        if name.startswith('core'):
            return os.path.join(folder, name)
    with open('/proc/sys/kernel/core_pattern', encoding='utf-8') as file:
        raise Skip(f'no core file in the working directory; core_pattern is {file.read().strip()!r}')


def trace(pid):
    return trace_by('-p', str(pid))


def trace_by(*source):
    ended = shstk('trace', '--json', *source)
    if ended.returncode == 1 and re.search('no permission to trace|cannot trace process', ended.stderr):
        raise Skip(ended.stderr.strip())
    check(ended.returncode == 0, f'shstk trace ended with {ended.returncode}: {ended.stderr}')
    return json.loads(ended.stdout)


def trace_until(condition, process, trace_it):
    """The threads of a process. Traces it again as long as a condition of them does not hold, twenty times
    at most: a machine that is busy may have no time for all frames while a thread is held."""
    for _ in range(20):
        threads = trace_it()['threads']
        if condition(threads) or process.poll() is not None:
            break
    return threads


def trace_shown(process, tids, trace_it):
    """By thread ID: the frames of threads, once functions are shown in those of all of them."""
    def are_shown(threads):
        return set(tids) <= {thread['tid'] for thread in threads if any(shown(thread['frames']))}

    return {thread['tid']: thread['frames'] for thread in trace_until(are_shown, process, trace_it)}


def shown(frames):
    """(function, line) of a program's functions in a stack, the innermost first."""
    for frame in frames:
        if frame['address'] == '0x0':
            yield frame['function'].partition(' (')[0], str(frame.get('line') or 0)
