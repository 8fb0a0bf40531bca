# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests in Python share: marking tests, failing and skipping them, running them.

A test is a function with @test; its docstring says what holds. The script ends with
sys.exit(main()), which prints KTAP and returns kselftest's exit status: 0, 1 where a test
failed, 4 where the whole script is skipped. Names of functions on the command line choose tests.
"""

import atexit
import ctypes
import fcntl
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

SELFTESTS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(SELFTESTS)
BUILD = os.path.join(TOP, os.environ.get('B', 'build'))
# The folder where make puts what the tests of the script run.
HERE = os.path.join(BUILD, 'selftests', os.path.relpath(
    os.path.dirname(os.path.abspath(sys.argv[0])), SELFTESTS))
SHSTK = os.path.join(BUILD, 'shstk')
LIMIT = 450         # seconds until a command counts as hung
TEST_LIMIT = 1100   # and until a test does; selftests/run waits longer for its line
CPU_LIMIT = 2000    # seconds of CPU time, until the kernel ends a process
TRIES = 4           # recordings of the same, of which something was lost
AGAIN = [60]        # seconds that a script may record again
PR_SET_PDEATHSIG = 1
PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616d61, ctypes.c_ulong(-1)
LIBC = ctypes.CDLL(None)
NOBODY = {'user': 65534, 'group': 65534, 'extra_groups': [], 'umask': 0}    # an ordinary user

TESTS = []


def remove_folder(folder, owner):
    """At the end of the script, not of a process that a test forked."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def make_folder(place=HERE):
    """A new folder that goes when the script ends; by default beside the script, as programs
    may not be allowed to run in /tmp."""
    os.makedirs(HERE, exist_ok=True)
    folder = tempfile.mkdtemp(prefix='tmp-', dir=place)
    atexit.register(remove_folder, folder, os.getpid())
    return folder


TMP = make_folder()


class Skip(Exception):
    """The test cannot be run here; the text says why."""


def test(function):
    """Mark a test."""
    TESTS.append(function)
    return function


def check(condition, text):
    """Fail the test with a text unless a condition holds."""
    if not condition:
        raise AssertionError(text)


def equal(got, wanted, what):
    """Fail the test unless both are the same."""
    check(got == wanted, f'{what}: {got!r}, not {wanted!r}')


def one_line(text):
    """The text is one line; returns it."""
    lines = text.strip().split('\n')
    check(len(lines) == 1, f'not one line: {text!r}')
    return lines[0]


def lost_records(messages):
    """Whether a recorder says that records of samples were lost; see tries()."""
    return re.search(r'samples?, [1-9]\d* lost', messages)


def run(*args, **kwargs):
    """Run a command in the folder of the tests; what it prints is text."""
    return subprocess.run(args, check=False, errors='replace', **{
        'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'text': True,
        'timeout': LIMIT, 'cwd': TMP, **kwargs})


def tries():
    """For the recordings of the same until one has lost nothing. On a machine where each takes long, and
    loses something, there are few."""
    yield 0
    for number in range(1, TRIES):
        if AGAIN[0] <= 0:
            return
        start = time.monotonic()
        print('# recorded again', flush=True)
        try:
            yield number
        finally:
            AGAIN[0] -= time.monotonic() - start


def shstk(*args, **kwargs):
    """Run the command shstk; see run()."""
    return run(SHSTK, *args, **kwargs)


def end_with_parent():
    """In a new process: it ends when the one that started it does, in whatever way. And its user
    may trace it, also where Yama lets nobody but its parents do so (ptrace_scope 1)."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    LIBC.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)


def in_pid_namespace():
    """How a command begins that runs as the first process of a PID namespace of its own, and ends with what runs it.
    Skips the test where that is not permitted."""
    begin = [shutil.which('unshare') or 'unshare', *([] if os.geteuid() == 0 else ['-r']), '--pid', '--fork', '--kill-child']
    try:
        ended = run(*begin, 'true')
    except OSError as err:
        raise Skip(f'unshare: {err.strerror}') from err
    if ended.returncode:
        raise Skip(' '.join(ended.stderr.split()) or f'unshare ended with {ended.returncode}')
    return begin


def children_of(pid):
    """The process IDs of the children that the first thread of a process has, the oldest first."""
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return [int(word) for word in file.read().split()]


def only_child(pid):
    """The process ID of the child that a process has, as unshare(1) has one."""
    child, = children_of(pid)
    return child


def need_nobody():
    """Skip the test unless it can run what was built as another user, NOBODY."""
    if os.getuid():
        raise Skip('needs root to become another user')
    try:
        run(SHSTK, '--version', **NOBODY)
    except OSError as err:      # a private folder, or a namespace without other users
        raise Skip(f'another user may not run {SHSTK}: {err.strerror}') from err


def stack_lines(text):
    """[(stack, value)] of folded stacks. Cautions, as of lost records, are left out: they are stacks
    of the value 0, which come and go when a machine is busy."""
    lines = [line.rsplit(' ', 1) for line in text.split('\n')
             if line and not line.startswith('[caution]')]
    return [(stack, int(value)) for stack, value in lines]


def stolen():
    """Returns the seconds that a hypervisor has taken from all CPUs so far."""
    with open('/proc/stat', encoding='ascii') as file:
        fields = file.readline().split()
    # user, nice, system, idle, iowait, irq, softirq, steal; a tick may not be full yet.
    return int(fields[8]) / os.sysconf('SC_CLK_TCK') if len(fields) > 8 else 0


def open_terminal():
    """A new terminal: its two ends, that of whoever types first."""
    try:
        return pty.openpty()
    except OSError as err:
        raise Skip(f'there are no terminals here: {err}') from err


def on_terminal(*args, columns=80, status=0):
    """Runs the command shstk on a terminal of so many columns, which must end with the status.
    Returns the lines that it prints."""
    leader, follower = open_terminal()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    with subprocess.Popen([SHSTK, *args], stdout=follower) as child:
        os.close(follower)
        text = b''
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:     # the other end was closed
                break
            if not part:
                break
            text += part
        equal(child.wait(LIMIT), status, 'status')
    os.close(leader)
    return text.decode().replace('\r\n', '\n').splitlines()


class Process(subprocess.Popen):
    """A command that goes on beside the test; if that fails or is killed, it is killed.

    Else it would be waited for, for as long as what it waits for goes on.
    """

    def __init__(self, *args, **kwargs):
        kwargs.setdefault('preexec_fn', end_with_parent)
        super().__init__(*args, **kwargs)

    def __exit__(self, kind, *rest):
        if kind:
            self.kill()
        super().__exit__(kind, *rest)


def hung(*_):
    """At the limit of a test: it fails, wherever it waits; later, if it waits on its way out."""
    raise AssertionError('no end within the limit of a test')


def limit_cpu_time():
    """What the calling process starts, and its children, do not work for ever.

    That holds for what ignores signals, too, and for what has no parent any more.
    """
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard == resource.RLIM_INFINITY or hard > CPU_LIMIT:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))


def default_signals():
    """Signals do what they do by default, whatever started the script in the background."""
    for signo in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
        signal.signal(signo, signal.SIG_DFL)


def why_failed(error):
    """The lines that say why a test failed: its own words, else where it was."""
    text = str(error) if isinstance(error, AssertionError) and str(error) else \
        ''.join(traceback.format_exception(type(error), error, error.__traceback__))
    return text.rstrip('\n').split('\n')


def run_test(number, name, function, limit):
    """Run one test and print its lines of KTAP; 'ok', 'skipped' or 'failed'."""
    start = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, limit, 20)
        function()
    except Skip as skip:
        print(f'ok {number} {name} # SKIP {skip}'.replace('\n', ' '), flush=True)
        return 'skipped'
    except Exception as error:      # pylint: disable=broad-exception-caught
        for line in why_failed(error):
            print('#', line)
        print(f'not ok {number} {name}', flush=True)
        return 'failed'
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    print(f'# {time.monotonic() - start:.1f} s\nok {number} {name}', flush=True)
    return 'ok'


def run_tests(tests, limit=TEST_LIMIT):
    """Run tests: (name, function) each, for so many seconds at most. Returns the exit status,
    which is 4 where all were skipped."""
    signal.signal(signal.SIGALRM, hung)
    default_signals()
    print(f'KTAP version 1\n1..{len(tests)}', flush=True)
    results = {run_test(number, *named, limit) for number, named in enumerate(tests, 1)}
    return 1 if 'failed' in results else 0 if 'ok' in results else 4


def name_of(function):
    """What the line of a test says: the function's name, and what holds if it has said so."""
    words = (function.__doc__ or '').strip().split('\n', maxsplit=1)[0]
    return f'{function.__name__}: {words}' if words else function.__name__


def main(why=None):
    """Run all tests, or those named on the command line; returns the exit status.

    why() returns the reason to skip the whole script, or None.
    """
    reason = why() if why else None
    if reason:
        print(f'KTAP version 1\n1..0 # SKIP {reason}')
        return 4
    limit_cpu_time()
    return run_tests([(name_of(t), t) for t in TESTS
                      if len(sys.argv) < 2 or t.__name__ in sys.argv[1:]])
