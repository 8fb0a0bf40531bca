#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""same_test leaves nothing behind when a signal ends it. Prints KTAP."""

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


def end_by(signo, programs):
    """End same_test by a signal while its program runs, and look at what is left."""
    folder = make_folder()
    env = dict(os.environ, TMPDIR=folder, PATH=f'{programs}:{os.environ["PATH"]}')
    try:
        with Process([sys.executable, SAME_TEST, '--modes', 'agent', 'sqlite3'], env=env,
                     stdout=subprocess.DEVNULL) as same:
            wait_for(lambda: 'sleep' in processes_in(folder).values(), 'the program runs')
            same.send_signal(signo)
            equal(same.wait(LIMIT), 128 + signo, 'exit status')
        wait_for(lambda: not processes_in(folder), 'all processes have ended')
        equal(os.listdir(folder), [], 'folders that are left')
    finally:
        for pid in processes_in(folder):
            os.kill(pid, signal.SIGKILL)


@test
def signals_leave_nothing():
    """no process and no folder is left"""
    programs = make_folder()
    program = os.path.join(programs, 'sqlite3')
    with open(program, 'w', encoding='ascii') as file:
        file.write(ENDLESS)
    os.chmod(program, 0o755)
    for signo in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        end_by(signo, programs)


sys.exit(main())
