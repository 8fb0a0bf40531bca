# SPDX-License-Identifier: GPL-2.0-or-later
"""What the checks of the agent's cost and of its load share: a crowd of processes, and the agent."""

import os
import signal
import time

import harness
from harness import Skip, equal
from received import ENVIRONMENT, need_sender, place

TICK = os.sysconf('SC_CLK_TCK')


class Crowd(harness.Process):
    """Processes that come and go, or stay."""

    def __init__(self, *numbers, enter=harness.end_with_parent):
        def begin():
            harness.end_with_parent()
            enter()

        super().__init__([os.path.join(harness.HERE, 'crowd'), *map(str, numbers)],
                         stdout=-1, text=True, preexec_fn=begin)
        if self.stdout.readline() != 'ready\n':
            raise Skip(f'so many processes and threads can not be started here: {numbers}')


def numbers_of(pid):
    """CPU time of a process in seconds, that of its children which have ended, parent, name."""
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
        name, _, rest = file.read().partition('(')[2].rpartition(')')
    words = rest.split()
    times = [int(words[n]) / TICK for n in (11, 12, 13, 14)]
    return times[0] + times[1], times[2] + times[3], int(words[1]), name


def children_of(parent):
    """The processes that a process started: their numbers and names."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            _, _, above, name = numbers_of(pid)
        except (OSError, ValueError):
            continue
        if above == parent:
            found.append((int(pid), name))
    return found


def memory_of(pid):
    """Memory of a process in KiB that is its own, and all that it has in RAM."""
    found = {}
    with open(f'/proc/{pid}/status', encoding='utf-8', errors='replace') as file:
        for line in file:
            name, _, value = line.partition(':')
            if name in ('RssAnon', 'RssShmem', 'VmRSS'):
                found[name] = int(value.split()[0])
    return found['RssAnon'] + found['RssShmem'], found['VmRSS']


def cpu_seconds(pid):
    """CPU time of a process in seconds, as exactly as the scheduler counts it."""
    total = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/schedstat', encoding='ascii') as file:
            total += int(file.read().split()[0])
    return total / 1e9


def descriptors_of(pid):
    """The number of descriptors of a process. Files that others on this machine run are left out: one
    is kept open for each, so they say what else the machine does."""
    number = 0
    for name in os.listdir(f'/proc/{pid}/fd'):
        try:
            target = os.readlink(f'/proc/{pid}/fd/{name}')
        except OSError:
            continue
        number += not target.startswith('/') or target.startswith('/proc/') or 'crowd' in target
    return number


class Agent:
    """A recording that sends, as the service does; what is recorded is as the options say."""

    def __init__(self, server, every, *what):
        need_sender()
        log = open(place('agent.log'), 'wb')    # pylint: disable=consider-using-with
        self.child = harness.Process(
            [harness.SHSTK, 'record', *what, '-F', '20', f'--every={every}', '--timeout=100',
             f'--push={server.url}', f'--spool={place("spool")}', '--spool-wait=100'],
            stdout=log, stderr=log, env=ENVIRONMENT)
        found = []
        while not found:
            time.sleep(0.2)
            if self.child.poll() is not None:
                raise Skip(f'this can not be recorded: {self.said()}')
            found = [pid for pid, name in children_of(self.child.pid) if name == 'shstk-push']
        self.sender, = found

    def said(self):
        with open(place('agent.log'), encoding='utf-8', errors='replace') as file:
            return file.read()[-2000:]

    def times(self):
        """CPU time of the recorder, of what wrote profiles, and of what sends."""
        writers = numbers_of(self.child.pid)[1]
        return cpu_seconds(self.child.pid), writers, cpu_seconds(self.sender)

    def look(self):
        """Its memory now in KiB, that of all of its processes at this moment, and descriptors."""
        own, total = memory_of(self.child.pid)
        for pid, _ in children_of(self.child.pid):
            try:
                # What a child shares with the recorder is counted there.
                total += memory_of(pid)[0 if pid != self.sender else 1]
            except (OSError, KeyError):
                pass
        return own, total, descriptors_of(self.child.pid)

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        equal(self.child.wait(harness.LIMIT), 0, self.said())
