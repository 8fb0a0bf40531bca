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
    HERE, LIMIT, SHSTK, TMP, Process, Skip, check, main, open_terminal, run, test)

TARGET = os.path.join(HERE, 'target')
ENTER, LEAVE = b'\x1b[?1049h', b'\x1b[?1049l'
# The agent needs no permission: this test is about the terminal.
TOP = [SHSTK, 'top', '--via=agent', '-d', '0.2']
# Ends with status 124.
LIMITED = ['sh', '-c', f'exec timeout --foreground 3 {TARGET} forever >/dev/null']


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
        self.text = b''
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
            self.text += os.read(self.main, 65536)

    def wait(self, condition, what):
        """Reads until a condition holds."""
        end = time.monotonic() + LIMIT
        while not condition():
            check(time.monotonic() < end, f'{what}: {self.text[-2000:]!r}')
            self.read()

    def see(self, text):
        """Waits until a text is drawn from now on."""
        self.text = b''
        self.wait(lambda: text in self.text, text)

    def end(self):
        """Waits for the end, checks that the terminal is as it was, and returns the exit status."""
        self.wait(lambda: self.process.poll() is not None, 'does not end')
        while select.select([self.main], [], [], 0)[0]:
            self.read()
        self.restored()
        return self.process.returncode

    def restored(self):
        """Checks that the terminal is as it was."""
        self.wait(lambda: self.text.rfind(LEAVE) > self.text.rfind(ENTER), 'the first screen')
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


def frames(text):
    """Yields the lines of each screen that was drawn."""
    for frame in text.split(b'\x1b[H')[1:]:
        yield re.sub(rb'\x1b\[[?0-9]*[a-zA-Z]', b'', frame.split(b'\x1b[J')[0]).replace(b'\r', b'').split(b'\n')


@test
def follows_the_size():
    """a terminal that becomes smaller"""
    with top(size=(40, 100)) as terminal:
        terminal.see(b'do_forever')
        terminal.resize(6, 30)
        terminal.see(b'\x1b[H')
        terminal.text = b''
        terminal.wait(lambda: terminal.text.count(b'\x1b[J') > 4, 'is not drawn')
        got = list(frames(terminal.text))[1:-1]
        check(got and all(len(lines) <= 6 and all(len(line) <= 30 for line in lines)
                          for lines in got), f'{got}')


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
    done = run(*TOP, '--duration', '2', '--', *LIMITED)
    check(done.returncode == 124, f'{done}')
    tables = done.stdout.split('\n\n')
    check(len(tables) > 2, f'{len(tables)} tables: {done.stdout}')
    check(all(table.startswith('cpu, ') for table in tables if table.strip()), done.stdout)
    check('do_forever' in done.stdout and '\x1b' not in done.stdout, done.stdout)
    with top('--duration', '1', term='dumb') as terminal:
        terminal.see(b'do_forever')
        check(b'\x1b' not in terminal.text, f'{terminal.text}')


@test
def running_process():
    """-p: what runs already, and goes on"""
    with Process([TARGET, 'forever'], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        done = run(SHSTK, 'top', '-d', '0.2', '--duration', '1', '-p', str(target.pid))
        refused = re.search('perf events: (not permitted|this kernel has none).*', done.stderr)
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
    done = run('sh', '-c', f'{" ".join(TOP)} -- {shlex.join(LIMITED)} | head -1')
    check(done.stdout.startswith('cpu, ') and done.returncode == 0, f'{done}')


sys.exit(main())
