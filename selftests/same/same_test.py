#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs do under `shstk record` what they do without it.

Each program runs plain, and then with each way of recording that works inside or beside it: the
agent by CPU time, the agent by wall-clock time, the agent for allocations, and `record -p` while it
runs. Exit status, output, error output and the files that it leaves have to be the same, and it has
to end. Each program runs plain three times: what differs between these runs is not compared.

Without an argument the short form runs, which is part of `make check`; `make check-same` runs all
(--long), and installs what is missing as root. Prints KTAP.
"""

import argparse
import atexit
import collections
import contextlib
import fcntl
import fnmatch
import functools
import glob
import hashlib
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import programs  # noqa: E402
from harness import SHSTK, Skip, check, run_tests  # noqa: E402

PLAIN_RUNS = 3
# A program has hung if it takes longer than LEAST_SECONDS and TIMES_PLAIN times a plain run.
LEAST_SECONDS = 450
TIMES_PLAIN = 40
# How names of folders begin.
FOLDER = 'shstk-same-'
# Seconds between keys that are typed.
KEY_PAUSE = 0.5

MODES = {
    'agent': ['--via=agent', '-F', '997'],
    'wall': ['--via=agent', '--wall', '-F', '199'],
    'heap': ['--heap'],
    'attached': [],
}

# The result of a run, for comparison. files: {path: digest}.
Run = collections.namedtuple('Run', 'status out err files hung seconds')


def digest(path):
    """Return a description of a file, link or other node; for a file, its digest."""
    if os.path.islink(path):
        return 'link to ' + os.readlink(path)
    if not os.path.isfile(path):
        return 'node'
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def files_in(folder):
    """Return {path: digest} of everything below a folder."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with contextlib.suppress(OSError):
                found[os.path.relpath(path, folder)] = digest(path)
    return found


def kill_session(pid):
    """Kill the processes that are left of a run, which has a session of its own."""
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            if os.getsid(int(entry)) == pid:
                os.kill(int(entry), signal.SIGKILL)


def end_recorder(process):
    """Wait for the end of a recorder whose program has ended; it gets a minute for its profile."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(60)
    process.kill()
    process.wait()


def end_on_signals():
    """From now on signals end this script as sys.exit() does: what it has started is killed, and its
    folders go."""
    for signo in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        signal.signal(signo, lambda number, _: sys.exit(128 + number))


def lock_folder(path):
    """Return a descriptor of a folder of this user, which is locked as long as it is open; or None if there is
    no such folder, or another process has it locked."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(held).st_uid == os.geteuid() and os.path.samestat(os.fstat(held), os.stat(path)):
            return held
    os.close(held)
    return None


def remove_left():
    """Remove folders of runs that were killed: nobody has these locked."""
    for path in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), FOLDER + '*')):
        held = lock_folder(path)
        if held is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(held)


class Folder:
    """A folder that goes with remove(), or when the next one is made after this process was killed."""

    def __init__(self):
        self.held = None
        while self.held is None:    # another run may have removed the folder before it was locked
            self.name = tempfile.mkdtemp(prefix=FOLDER)
            self.held = lock_folder(self.name)

    def remove(self):
        """Remove the folder."""
        shutil.rmtree(self.name, ignore_errors=True)
        os.close(self.held)


def takes(terminal, keys, reader):
    """Return whether the terminal is as these keys expect it. Those that stop or interrupt are for a
    command in the foreground, which is not the process group that read keys last; others are for who
    reads them one by one."""
    lines = bool(termios.tcgetattr(terminal)[3] & termios.ICANON)
    if keys in ('\x1a', '\x03'):
        return lines and os.tcgetpgrp(terminal) != reader
    return not lines


def wait_on_terminal(process, terminal, limit, typed):
    """Read what the terminal shows until the process ends, and type the next keys once they were
    expected for half a second. Return what was shown."""
    shown, end, keys, reader = b'', time.monotonic() + limit, list(typed), 0
    next_key = time.monotonic() + KEY_PAUSE
    while time.monotonic() < end:
        if keys and not takes(terminal, keys[0], reader):
            next_key = time.monotonic() + KEY_PAUSE
        elif keys and time.monotonic() > next_key:
            reader = os.tcgetpgrp(terminal)
            os.write(terminal, keys.pop(0).encode())
            next_key = time.monotonic() + KEY_PAUSE
        ready = select.select([terminal], [], [], 0.1)[0]
        try:
            shown += os.read(terminal, 65536) if ready else b''
        except OSError:     # nobody has the other end open any more
            process.wait(max(0.1, end - time.monotonic()))
        if process.poll() is not None:
            return shown
    raise subprocess.TimeoutExpired(process.args, limit)


def own_terminal():
    """Make a session whose terminal is standard input, in the new process."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Program:
    """A program of programs.py, in folders of its own."""

    def __init__(self, case, top):
        self.case = case
        self.top = top

    def command(self, folder):
        """Return the command; the program's output goes to files, apart from the recorder's."""
        redirect = '' if self.case.typed else ' >../out 2>../err </dev/null'
        return ['/bin/bash', '-c', f'cd "$0" && {{ {self.case.script}\n}}{redirect}', folder]

    def start(self, mode, command):
        """Start the program. Return the process and its terminal, or None."""
        env = dict(os.environ, LC_ALL='C.UTF-8', HOME=self.top, TERM='xterm', TZ='UTC')
        if mode not in (None, 'attached'):
            command = [SHSTK, 'record', *MODES[mode], '-o',
                       os.path.join(self.top, 'profile.folded'), '--', *command]
        with open(os.path.join(self.top, 'words'), 'wb') as words:
            if not self.case.typed:
                return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=words,
                                        stderr=words, start_new_session=True), None
            ours, theirs = pty.openpty()
            process = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs,
                                       stderr=words, preexec_fn=own_terminal)
            os.close(theirs)
            return process, ours

    def attach(self, pid):
        """Start `record -p` of the process."""
        return subprocess.Popen([SHSTK, 'record', '-o', os.path.join(self.top, 'profile.folded'),
                                 '-p', str(pid)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, mode, limit):
        """Run the program once, and return a Run."""
        folder = os.path.join(self.top, 'work')
        for name in (folder, os.path.join(self.top, 'out'), os.path.join(self.top, 'err')):
            shutil.rmtree(name, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.unlink(name)
        os.mkdir(folder)
        start, hung, shown, status = time.monotonic(), False, b'', None
        process, terminal = self.start(mode, self.command(folder))
        beside = None
        try:
            beside = self.attach(process.pid) if mode == 'attached' else None
            if terminal is not None:
                shown = wait_on_terminal(process, terminal, limit, self.case.typed)
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            hung = True
        finally:
            kill_session(process.pid)
            process.wait()
            seconds = time.monotonic() - start
            if beside:
                end_recorder(beside)
        if terminal is not None:
            os.close(terminal)
        return Run(status if status is None or status >= 0 else 128 - status,
                   self.read('out') or shown, self.read('err'), files_in(folder), hung, seconds)

    def read(self, name):
        """Return the content of a file that the run wrote, or nothing."""
        with contextlib.suppress(OSError):
            with open(os.path.join(self.top, name), 'rb') as file:
                return file.read()
        return b''


def stable(runs):
    """Return what is the same in all plain runs: {name: value}."""
    same = {'status': runs[0].status}
    for name in ('out', 'err'):
        if len({getattr(run, name) for run in runs}) == 1:
            same[name] = getattr(runs[0], name)
    for path, what in runs[0].files.items():
        if all(run.files.get(path) == what for run in runs):
            same['file ' + path] = what
        elif all(path in run.files for run in runs):
            same['name ' + path] = True
    return same


def seen(run, name):
    """Return the value in a run that stable() has by this name."""
    kind, _, path = name.partition(' ')
    if kind == 'file':
        return run.files.get(path)
    if kind == 'name':
        return path in run.files
    return getattr(run, name)


def short(value):
    """Return enough of a value to recognize it."""
    text = value.decode(errors='replace') if isinstance(value, bytes) else str(value)
    return text if len(text) < 600 else text[:280] + ' ... ' + text[-280:]


def differences(plain, run):
    """Return lines that say what is not the same."""
    lines = ['it hangs'] if run.hung else []
    for name, want in plain.items():
        got = seen(run, name)
        if got != want and not (run.hung and name != 'status'):
            lines.append(f'{name}: plain {short(want)!r}, here {short(got)!r}')
    return lines


def missing(case, install):
    """Return why a program cannot run here, or ''."""
    lacking = [p for p in case.needs if not shutil.which(p) and not os.path.exists(p)]
    if lacking and install and case.packages and os.geteuid() == 0:
        subprocess.run(['apt-get', 'install', '-y', '-q', *case.packages], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lacking = [p for p in case.needs if not shutil.which(p) and not os.path.exists(p)]
    if lacking:
        return 'not here: ' + ' '.join(lacking)
    if case.unless and not subprocess.run(['/bin/bash', '-c', case.unless], check=False,
                                          stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL).returncode:
        return case.reason
    return ''


class Comparison:
    """Of a program with how it ends plain, for which it runs when the first mode is compared."""

    def __init__(self, case, modes, install):
        self.case = case
        self.left = len(modes)
        self.install = install
        self.folder = None

    @functools.cached_property
    def reason(self):
        """Why the program cannot run here, or ''."""
        return missing(self.case, self.install)

    @functools.cached_property
    def program(self):
        """The program, in a folder of its own, which goes after the last mode."""
        end_on_signals()
        remove_left()
        self.folder = Folder()
        atexit.register(self.remove_folder)
        return Program(self.case, self.folder.name)

    @functools.cached_property
    def plain(self):
        """What is the same in all plain runs, or None; and the seconds that a run may take."""
        runs = [self.program.run(None, LEAST_SECONDS * TIMES_PLAIN) for _ in range(PLAIN_RUNS)]
        same = stable(runs)
        if any(run.hung or run.status != runs[0].status for run in runs):
            return None, 0
        return same, max(LEAST_SECONDS, TIMES_PLAIN * max(run.seconds for run in runs))

    def compare(self, mode):
        """Fail unless the program does in this mode what it does plain."""
        try:
            self.judge(mode)
        finally:
            self.left -= 1
            if not self.left:
                self.remove_folder()

    def remove_folder(self):
        """Remove the folder, if there is one."""
        if self.folder:
            self.folder.remove()
        self.folder = None

    def judge(self, mode):
        """Does what compare() does, and leaves the folder."""
        if self.reason:
            raise Skip(self.reason)
        plain, limit = self.plain
        if plain is None:
            raise Skip('it does not end the same way when it runs plain')
        if mode in self.case.differs:
            raise Skip(self.case.differs[mode])
        lines = differences(plain, self.program.run(mode, limit))
        check(not lines, '\n'.join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--long', action='store_true', help='all programs, for hours')
    parser.add_argument('--modes', default=','.join(MODES), help='of ' + ', '.join(MODES))
    parser.add_argument('names', nargs='*', help='programs, by pattern')
    args = parser.parse_args()
    modes = args.modes.split(',')
    cases = [c for c in programs.all_cases(args.long or bool(args.names))
             if not args.names or any(fnmatch.fnmatch(c.name, n) for n in args.names)]
    return run_tests([(f'{case.name}: {mode}', functools.partial(one.compare, mode))
                      for case in cases for one in [Comparison(case, modes, args.long)]
                      for mode in modes], limit=0)


sys.exit(main())
