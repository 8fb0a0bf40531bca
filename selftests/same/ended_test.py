#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""same_test leaves nothing behind when a signal ends it, and after SIGKILL the next run removes what is left.
Prints KTAP."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import LIMIT, Process, check, equal, main, make_folder, test  # noqa: E402

SAME_TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'same_test.py')
# Takes the place of the program that is compared: it goes on until it is killed.
ENDLESS = '#!/bin/sh\nexec sleep 1000000\n'


def processes_in(folder):
    """Return {process: name} of those whose working directory is below a folder."""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            inside = os.readlink(f'/proc/{pid}/cwd').startswith(folder + '/')
            with open(f'/proc/{pid}/comm', encoding='ascii', errors='replace') as file:
                found.update({int(pid): file.read().strip()} if inside else {})
        except OSError:     # it has ended
            pass
    return found


def wait_for(holds, what):
    """Wait until holds() is true; fail if that takes too long."""
    end = time.monotonic() + LIMIT
    while not holds():
        check(time.monotonic() < end, f'never: {what}')
        time.sleep(0.05)


def kill_processes(folder):
    """Kill those processes, and those that they begin meanwhile, and wait until all have ended."""
    def killed():
        left = processes_in(folder)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):   # it has ended just now
                os.kill(pid, signal.SIGKILL)
        return not left
    wait_for(killed, 'all processes were killed')


def end_by(signo, programs):
    """End same_test by a signal while its program runs. Return the folder in which it made its own."""
    folder = make_folder()
    env = dict(os.environ, TMPDIR=folder, PATH=f'{programs}:{os.environ["PATH"]}')
    try:
        with Process([sys.executable, SAME_TEST, '--modes', 'agent', 'sqlite3'], env=env,
                     stdout=subprocess.DEVNULL) as same:
            wait_for(lambda: 'sleep' in processes_in(folder).values(), 'the program runs')
            same.send_signal(signo)
            equal(same.wait(LIMIT), -signo if signo == signal.SIGKILL else 128 + signo, 'exit status')
        if signo != signal.SIGKILL:
            wait_for(lambda: not processes_in(folder), 'all processes have ended')
    finally:
        kill_processes(folder)
    return folder


def endless_programs():
    """Return a folder with an endless program that takes the place of one that is compared."""
    programs = make_folder()
    program = os.path.join(programs, 'sqlite3')
    with open(program, 'w', encoding='ascii') as file:
        file.write(ENDLESS)
    os.chmod(program, 0o755)
    return programs


@test
def signals_leave_nothing():
    """no process and no folder is left"""
    programs = endless_programs()
    for signo in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        equal(os.listdir(end_by(signo, programs)), [], 'folders that are left')


@test
def next_run_cleans():
    """what is left of a run that was killed goes with the next one, and nothing else"""
    folder = end_by(signal.SIGKILL, endless_programs())
    equal(len(os.listdir(folder)), 1, 'a killed run leaves its folder')
    left = os.path.join(folder, os.listdir(folder)[0])
    others = [os.path.join(folder, name) for name in ('shstk-same-used', 'shstk-same-linked', 'same-other')]
    os.mkdir(others[0])
    os.symlink(folder, others[1])
    os.mkdir(others[2])
    held = os.open(others[0], os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    subprocess.run([sys.executable, SAME_TEST, '--modes', 'heap', 'pipes*'], check=True, timeout=LIMIT,
                   env=dict(os.environ, TMPDIR=folder), stdout=subprocess.DEVNULL)
    os.close(held)
    check(not os.path.exists(left), 'it is still there')
    equal(sorted(os.listdir(folder)), sorted(map(os.path.basename, others)), 'what else is there')


sys.exit(main())
