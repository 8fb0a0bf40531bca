#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures what recording a machine all the time costs while 500 processes are idle, beside its bars.

Two rows are printed: of the whole machine, as the service records it, and of the 500 processes
alone, which is what a machine costs on which nothing else runs. All figures are CPU time, so they
mean something on a busy machine, too; but there the first row has its work to show. BENCH_SECONDS
says how long each row takes, after what begins is past.
"""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), 'push')]
from agent import Agent, Crowd  # noqa: E402
from harness import Skip  # noqa: E402
from server import Server  # noqa: E402

SECONDS = int(os.environ.get('BENCH_SECONDS', '60'))
PROCESSES = 500
BEGINNING = 20      # seconds in which programs are loaded and processes are met
BAR_CPU, BAR_SENDING, BAR_MIB = 0.5, 5, 100     # percent of a CPU, of the recorder's time; MiB
GROUPS = ('/sys/fs/cgroup/unified', '/sys/fs/cgroup')   # where Linux's second version is mounted


def make_group():
    """A new control group, or None if there is none to be had."""
    for place in GROUPS:
        path = os.path.join(place, f'shstk-bench-{os.getpid()}')
        if not os.path.exists(os.path.join(place, 'cgroup.procs')):
            continue
        try:
            os.mkdir(path)
            return path
        except OSError:
            pass
    return None


def measure(agent):
    """CPU time by clocks of the recorder, its writers and the sender in percent of a CPU, and MiB."""
    time.sleep(BEGINNING)
    before, start, most = agent.times(), time.monotonic(), 0
    while time.monotonic() < start + SECONDS:
        time.sleep(0.5)
        most = max(most, agent.look()[1])
    passed = time.monotonic() - start
    return [100 * (b - a) / passed for a, b in zip(before, agent.times())], most / 1024


def row(name, group, *what):
    """Measures and prints one row. The crowd is in the control group, if there is one."""
    def enter():
        if group:
            with open(f'{group}/cgroup.procs', 'w', encoding='ascii') as file:
                file.write(str(os.getpid()))

    with Server() as server, Crowd(PROCESSES, 0, 0, enter=enter) as crowd:
        agent = Agent(server, '10s', *what)
        (own, writers, sender), most = measure(agent)
        agent.end()
        crowd.kill()
    cost, sending = own + writers + sender, 100 * sender / (own + writers)
    print(f'{name:>22} {own:8.3f} % {writers:8.3f} % {sender:8.3f} % {cost:8.3f} % {sending:8.2f} % '
          f'{most:8.1f} MiB {os.getloadavg()[0]:8.1f}', flush=True)


def main():
    """Prints the table."""
    if os.getuid():
        print('bench-fleet: needs root to record the machine')
        return 1
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print(f'{"recorded":>22} {"recorder":>10} {"writers":>10} {"sender":>10} {"all":>10} '
          f'{"sending":>10} {"memory":>12} {"load":>8}\n'
          f'{"bars":>22} {"":>10} {"":>10} {"":>10} {BAR_CPU:>8.3f} % {BAR_SENDING:>8.2f} % '
          f'{BAR_MIB:>8.1f} MiB', flush=True)
    group = make_group()
    try:
        if group:
            row(f'{PROCESSES} idle processes', group, f'--cgroup={group}')
        row('the whole machine', None, '-a')
    except Skip as skip:
        print(f'bench-fleet: {skip}')
        return 1
    finally:
        if group:
            time.sleep(1)
            os.rmdir(group)
    return 0


if __name__ == '__main__':
    sys.exit(main())
