#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk top`: the screen on a terminal, which is restored on every exit, and tables
elsewhere. Prints KTAP.
"""

import contextlib
import fcntl
import os
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    HERE, LIMIT, SHSTK, TMP, Process, Skip, check, equal, main, open_terminal, run, test)

try:
    import pyte     # Debian's python3-pyte: what a terminal shows
except ImportError:
    pyte = None

TARGET = os.path.join(HERE, 'target')
ENTER, LEAVE = b'\x1b[?1049h', b'\x1b[?1049l'
# The agent needs no permission: this test is about the terminal.
TOP = [SHSTK, 'top', '--via=agent', '-d', '0.2']
LONGER = 1, 10      # times as long as usual, on a machine that was too busy


def limited(seconds):
    """A command that ends after so many seconds, with status 124."""
    return ['sh', '-c', f'exec timeout --foreground {seconds} {TARGET} forever >/dev/null']


def own_terminal():
    """In the child: takes the terminal for its own; signals end it, whoever ignores them above."""
    for signo in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM:
        signal.signal(signo, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *command, size=(24, 80), term='xterm'):
        self.main, self.other = open_terminal()
        self.resize(*size)
        self.before = termios.tcgetattr(self.other)
        self.text, self.seen = b'', 0
        self.screens = 1 if term == 'linux' else 2
        self.picture = self.stream = None
        self.process = subprocess.Popen(
            command, stdin=self.other, stdout=self.other, stderr=self.other,
            start_new_session=True, env={**os.environ, 'TERM': term},
            preexec_fn=own_terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.main)
        os.close(self.other)

    def resize(self, rows, columns):
        """Gives the terminal another size."""
        fcntl.ioctl(self.other, termios.TIOCSWINSZ, struct.pack('4H', rows, columns, 0, 0))

    def read(self):
        """Takes what there is to read."""
        if select.select([self.main], [], [], 0.05)[0]:
            data = os.read(self.main, 65536)
            self.text += data
            if self.stream:
                self.stream.feed(data)

    def emulate(self, rows, columns):
        """Keeps from now on what the terminal shows, beginning with an empty one of this size."""
        self.picture = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.picture)

    def lines(self):
        """The lines that the terminal shows."""
        return [line.rstrip() for line in self.picture.display]

    def row(self, text):
        """Waits for a line that matches, and returns it."""
        def find():
            return [line for line in self.lines() if re.search(text, line)]
        end = time.monotonic() + LIMIT
        while not find():
            check(time.monotonic() < end, f'{text!r} is not shown: {self.lines()}')
            self.read()
        return find()[0]

    def pause(self, holds):
        """Pauses the screen at an interval for which a condition holds: a busy machine has some
        without a sample."""
        end = time.monotonic() + LIMIT
        while True:
            self.type('p')
            self.row('^PAUSED')
            for _ in range(5):
                self.read()
            if holds():
                return
            check(time.monotonic() < end, f'no interval to pause at: {self.lines()}')
            self.type('p')
            self.wait(lambda: not self.lines()[0].startswith('PAUSED'), 'goes on')

    def names(self):
        """The names of functions in the rows; "[exec, loader]" and the like are none."""
        return [line.split()[-1] for line in self.lines()[3:-1] if line and line[-1] != ']']

    def type(self, text):
        """Presses keys."""
        os.write(self.main, text.encode())

    def wait(self, condition, what):
        """Reads until a condition holds."""
        end = time.monotonic() + LIMIT
        while not condition():
            check(time.monotonic() < end, f'{what}: {self.text[-2000:]!r}')
            self.read()

    def see(self, text):
        """Waits until a text is drawn behind the one that was seen before."""
        self.wait(lambda: text in self.text[self.seen:], text)
        self.seen = self.text.index(text, self.seen) + len(text)

    def end(self):
        """Waits for the end, checks that the terminal is as it was, and returns the exit status."""
        self.wait(lambda: self.process.poll() is not None, 'does not end')
        while select.select([self.main], [], [], 0)[0]:
            self.read()
        self.restored()
        return self.process.returncode

    def restored(self):
        """Checks that the terminal is as it was."""
        self.wait(lambda: self.screens == 1 or self.text.rfind(LEAVE) > self.text.rfind(ENTER),
                  'the first screen')
        self.wait(lambda: termios.tcgetattr(self.other) == self.before, 'the settings')
        check(self.text.rfind(b'\x1b[?25h') > self.text.rfind(b'\x1b[?25l'), 'no cursor')


def top(*options, **kwargs):
    """Runs `shstk top` of a program that runs until it is ended."""
    return Terminal(*TOP, *options, '--', TARGET, 'forever', **kwargs)


@test
def ends_with_q():
    """q: the command ends, the table stays, the terminal is as it was"""
    with top() as terminal:
        terminal.see(b'do_forever')
        check(not termios.tcgetattr(terminal.other)[3] & termios.ECHO, 'keys are shown')
        os.write(terminal.main, b'xq')
        status = terminal.end()
        check(status == 128 + signal.SIGINT, f'status {status}')
        # The table may be of an interval in which nothing ran: the machine may be busy.
        terminal.wait(lambda: b'cpu, ' in terminal.text.split(LEAVE)[-1], 'the last table')


@test
def every_exit_restores():
    """signals, deadly ones too, and the end of the command"""
    for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT,
                  signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1):
        with top() as terminal:
            terminal.see(b'do_forever')
            terminal.process.send_signal(signo)
            if signo in (signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1):
                check(terminal.end() == -signo, f'status of signal {signo}')
            else:
                terminal.end()
    with Terminal(*TOP, '--', 'sh', '-c', 'echo spoken; sleep 1; exit 9') as terminal:
        check(terminal.end() == 9, 'the own status')
        check(b'spoken' not in terminal.text, 'the command writes to the screen')


@test
def stops_and_goes_on():
    """Ctrl-Z gives the terminal back until SIGCONT"""
    with Terminal('sh', '-mc', f'{" ".join(TOP)} -- {TARGET} forever; echo shell; read line; '
                  'kill -CONT -- -$(jobs -p); fg') as terminal:
        terminal.see(b'do_forever')
        os.write(terminal.main, b'\x1a')
        terminal.see(b'shell')
        terminal.wait(lambda: termios.tcgetattr(terminal.other)[3] & termios.ECHO, 'echo')
        os.write(terminal.main, b'\n')
        terminal.see(ENTER)
        terminal.see(b'do_forever')
        os.write(terminal.main, b'q')
        terminal.wait(lambda: terminal.process.poll() is not None, 'does not end')
        terminal.restored()


@contextlib.contextmanager
def shown(*command, size=(24, 80)):
    """Runs a command on a terminal whose picture is kept."""
    if not pyte:
        raise Skip('no python3-pyte here')
    # pyte does not know all that xterm does, such as to scroll by several lines.
    with Terminal(*command, size=size, term='linux') as terminal:
        terminal.emulate(*size)
        yield terminal


@test
def follows_the_size():
    """a terminal that becomes smaller, and larger: each line at its place"""
    with shown(*TOP, '--', TARGET, 'forever', size=(40, 100)) as terminal:
        terminal.row('do_forever$')
        for rows, columns in (6, 30), (24, 80), (8, 20), (30, 120):
            terminal.resize(rows, columns)
            terminal.process.send_signal(signal.SIGWINCH)
            terminal.emulate(rows, columns)
            terminal.wait(lambda: terminal.lines()[-1].startswith('q: end'), 'no last line')
            terminal.row('^cpu, ')
            terminal.wait(lambda: 'self' in terminal.lines()[2], 'no columns')


@test
def sorts_and_filters():
    """s: other orders; /: names as they are typed; p: the interval stays; ?: all keys"""
    with shown(*TOP, '--', TARGET, 'forever-below', '3') as terminal:
        terminal.row('[1-9].* below$')
        check('*self' in terminal.lines()[2], f'{terminal.lines()}')
        terminal.type('s')
        terminal.row(r'\*with callees')
        terminal.type('s')
        terminal.row(r'\*function')
        # Recording goes on, but nothing changes.
        terminal.pause(lambda: {'below', 'do_forever_below', 'main'} <= set(terminal.names()))
        names = terminal.names()
        equal(names, sorted(names, key=str.lower), 'order by name')

        def shows(*wanted):
            terminal.wait(lambda: terminal.names() == list(wanted), f'{wanted}')
        terminal.type('/elo')
        terminal.row('^/elo_$')
        shows('below', 'do_forever_below')
        terminal.type('q')      # a letter here
        shows()
        terminal.type('\x7fW\r')
        terminal.row('^/eloW$')
        shows('below', 'do_forever_below')
        terminal.type('\x1b')
        shows(*names)
        terminal.type('?')
        terminal.row('filter by name')
        terminal.type('xp')
        terminal.row('^cpu, ')
        terminal.type('q')
        terminal.end()


@test
def threads_processes_callers():
    """t, P: threads and processes; Enter: functions of one of them, callers of a function; Esc"""
    two = f'{TARGET} forever & exec {TARGET} forever-below 2'
    with shown(*TOP, '--', 'sh', '-c', two) as terminal:
        try:
            terminal.row('do_forever$')
            terminal.type('P')
            terminal.wait(lambda: sum(' target' in line for line in terminal.lines()) == 2,
                          'not two processes')
            terminal.type('t')
            terminal.row('pid +tid +value')
            terminal.pause(lambda: 'target' in terminal.names())
            pid, tid = terminal.row(' target$').split()[:2]
            equal(pid, tid, 'the first thread')
            terminal.type('\r')
            terminal.row(f'functions, thread {tid}')
            terminal.row(' do_forever$')
            terminal.type('/do_forever\r')
            terminal.row('^/do_forever$')
            terminal.type('\x1b[H\r')      # Home, Enter
            terminal.row('callers of do_forever')
            terminal.row('  (main|below)$')
            terminal.type('\r')
            terminal.row('callers of (main|below)')
            for text in 'callers of do_forever', 'functions, thread', ' threads$':
                terminal.type('\x1b')
                terminal.row(text)
            terminal.type('f')
            terminal.row(': functions$')
            terminal.type('q')
            terminal.end()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(terminal.process.pid, signal.SIGTERM)


def with_hostile_name():
    """A copy of long_names with a function whose name would move the cursor and clear the screen."""
    path = os.path.join(TMP, 'hostile')
    with open(os.path.join(HERE, 'long_names'), 'rb') as file:
        data = file.read()
    name = b'to_be_replaced' + 16 * b'_'
    evil = b'evil\x1b[2J\x1b[1;1H\xe4\xb8\xad\x07'
    with open(path, 'wb') as file:
        file.write(data.replace(name, evil.ljust(len(name), b'_')))
    os.chmod(path, 0o755)
    return path


@test
def hostile_names():
    """names with a thousand characters, or with such that act on terminals: one line for each"""
    with shown(*TOP, '--', with_hostile_name()) as terminal:
        terminal.row(r'long_n+\.\.n+_end$')
        # Control characters are question marks; the wide character has its two columns.
        terminal.row(r'  evil\?\[2J\?\[1;1H\u4e2d ?\?_+$')
        terminal.row('  main$|  thread$')
        terminal.wait(lambda: terminal.lines()[2].lstrip().startswith('*self'), 'no columns')
        terminal.type('t')
        terminal.row(r'  \?\[2J\?\[9;9Hx$')
        terminal.row(r'  \u4e2d ?\u6587 ?\?\?z$')
        terminal.type('q')
        terminal.end()


@test
def unknown_terminals():
    """a terminal that ncurses does not know: tables, and a line that says why"""
    with top(term='nonesuch') as terminal:
        terminal.see(b"tables instead of a screen: libncursesw6 is not installed, or the terminal "
                     b"'nonesuch' is not known")
        terminal.see(b'do_forever')
        check(b'\x1b' not in terminal.text, f'{terminal.text}')


@test
def line_of_progress():
    """`shstk record` on a terminal: the hottest function so far, in one line of it"""
    with Terminal(SHSTK, 'record', '--via=agent', '-o', os.path.join(TMP, 'progress.folded'),
                  '--', TARGET, 'forever', size=(24, 60)) as terminal:
        terminal.wait(lambda: re.search(rb'; [0-9.]+ % \w', terminal.text), 'no function')
        lines = terminal.text.split(b'\r\x1b[K')[1:]     # before ^C is shown
        os.write(terminal.main, b'\x03')
        terminal.wait(lambda: terminal.process.poll() is not None, 'does not end')
        check(lines and all(len(line) < 60 for line in lines), f'{lines}')
        check(terminal.process.returncode == 128 + signal.SIGINT, f'{terminal.text[-500:]}')


@test
def tables_without_a_terminal():
    """no terminal: tables of each interval; a dumb terminal: the same"""
    for times in LONGER:
        done = run(*TOP, '--duration', str(2 * times), '--', *limited(3 * times))
        check(done.returncode == 124, f'{done}')
        tables = done.stdout.split('\n\n')
        if len(tables) > 2 and 'do_forever' in done.stdout:
            break
    check(len(tables) > 2, f'{len(tables)} tables: {done.stdout}')
    check(all(table.startswith('cpu, ') for table in tables if table.strip()), done.stdout)
    check('do_forever' in done.stdout and '\x1b' not in done.stdout, done.stdout)
    with top(term='dumb') as terminal:
        terminal.see(b'do_forever')
        check(b'\x1b' not in terminal.text, f'{terminal.text}')


@test
def running_process():
    """-p: what runs already, and goes on"""
    with Process([TARGET, 'forever'], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        for times in LONGER:
            done = run(SHSTK, 'top', '-d', '0.2', '--duration', str(times), '-p', str(target.pid))
            refused = re.search('perf events: (not permitted|this kernel has none).*', done.stderr)
            if refused or 'do_forever' in done.stdout:
                break
        if not refused:
            with Terminal(SHSTK, 'top', '-d', '0.2', '-p', str(target.pid)) as terminal:
                terminal.see(b'do_forever')
                os.write(terminal.main, b'q')
                status = terminal.end()
        goes_on = target.poll() is None
        target.kill()
    if refused:
        raise Skip(refused[0])
    check(done.returncode == 0 and 'do_forever' in done.stdout, f'{done}')
    check(status == 0 and goes_on, f'status {status}, {goes_on}')


@test
def missing_descriptions():
    """inlined functions that cannot be shown, as a .dwo file is missing: said at the end"""
    record = [SHSTK, 'record', '--via=agent', '-q', '-o']
    for command in TOP, [*record, '/dev/stdout', '--format=folded']:
        done = run(*command, '--', os.path.join(HERE, 'split'))
        check(done.returncode == 0 and 'works' in done.stdout, f'{done}')
        check(re.search(r'inlined functions of 1 source file are not shown: .*\.dwo files',
                        done.stderr), f'{command}: {done.stderr}')


def lost_while_stopped(pid, target):
    """Stops the command until its rings are full, if it takes 1000 samples a second or more."""
    ticks = os.sysconf('SC_CLK_TCK')

    def used():
        with open(f'/proc/{target}/stat', encoding='ascii', errors='replace') as file:
            return sum(int(n) for n in file.read().rsplit(')', 1)[1].split()[11:13]) / ticks

    os.kill(pid, signal.SIGSTOP)
    until, end = used() + 4, time.monotonic() + LIMIT
    while used() < until:
        check(time.monotonic() < end, 'the program gets no CPU time')
        time.sleep(0.05)
    os.kill(pid, signal.SIGCONT)


@test
def what_is_lost():
    """records that found no room are counted at the end"""
    with Process([TARGET, 'forever'], stdout=subprocess.PIPE) as target, \
            contextlib.ExitStack() as at_the_end:
        at_the_end.callback(target.kill)
        target.stdout.readline()
        with Process([SHSTK, 'top', '-F', '10000', '-d', '0.2', '-p', str(target.pid)],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as shown:
            line = shown.stderr.readline()
            if re.search('perf events: (not permitted|this kernel has none).*', line):
                raise Skip(line.strip())
            shown.stdout.readline()
            lost_while_stopped(shown.pid, target.pid)
            shown.send_signal(signal.SIGINT)
            _, err = shown.communicate(timeout=LIMIT)
    found = re.search(r'(\d+) lost', err)
    check(shown.returncode == 0 and found, err)
    if found[1] == '0':
        raise Skip('the kernel took no more samples than the rings have room for')
    check(re.search(r'lost [0-9]+ .*', err), err)


@test
def closed_output_ends():
    """nobody reads any more"""
    done = run('sh', '-c', f'{" ".join(TOP)} -- {shlex.join(limited(3))} | head -1')
    check(done.stdout.startswith('cpu, ') and done.returncode == 0, f'{done}')


sys.exit(main())
