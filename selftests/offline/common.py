# SPDX-License-Identifier: GPL-2.0-or-later
"""What the test scripts of this folder share."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

from ending import end_with_parent, limit_cpu_time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get('SHSTK_BUILD') or os.path.dirname(os.path.dirname(HERE))
SHSTK = os.path.join(BUILD, 'shstk')
LIMIT = 200     # seconds until a command counts as hung
TEST_LIMIT = 500    # and until a test does

# The command for arm64, run by an emulator: another machine than this one.
QEMU = shutil.which('qemu-aarch64-static')
ARM64_ROOT = os.path.join(os.environ.get('SHSTK_CACHE') or
                          os.path.expanduser('~/.cache/shstk'), 'root-arm64')
ARM64_SHSTK = os.path.join(BUILD, 'selftests', 'record', 'arm64', 'shstk')

TESTS = []
# Not in /tmp, where programs may not be allowed to run.
TMP = tempfile.mkdtemp(prefix='tmp-', dir=HERE)


class Skip(Exception):
    """The test cannot be run here; the text says why."""


def test(function):
    """Mark a test; its docstring is its name."""
    TESTS.append(function)
    return function


def check(condition, text):
    """Fail the test with a text."""
    if not condition:
        raise AssertionError(text)


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
    raise AssertionError(f'no end within {TEST_LIMIT} s')


def run(*args, **kwargs):
    """Run a command."""
    kwargs.setdefault('timeout', LIMIT)
    kwargs.setdefault('cwd', TMP)
    return subprocess.run(args, capture_output=True, check=False, text=True,
                          errors='replace', **kwargs)


def on_arm64(*args):
    """Run the command for arm64."""
    # The emulator, too, asks by access(2) whether it may look there.
    if not QEMU or not os.path.exists(ARM64_SHSTK) or not os.access(
            os.path.join(ARM64_ROOT, 'lib', 'ld-linux-aarch64.so.1'), os.R_OK):
        raise Skip('no emulator, or no arm64 libraries')
    return run(QEMU, '-L', ARM64_ROOT, ARM64_SHSTK, *args)


def one_line(text):
    """The text is one line; returns it."""
    lines = text.strip().split('\n')
    check(len(lines) == 1, f'not one line: {text!r}')
    return lines[0]


def main(why=None):
    """Run all tests, or those named on the command line; the exit status."""
    chosen = [t for t in TESTS
              if len(sys.argv) < 2 or t.__name__ in sys.argv[1:]]
    failed = 0
    try:
        why = why() if why else None
        if why:
            print(f'1..0 # SKIP {why}')
            return 4
        print(f'KTAP version 1\n1..{len(chosen)}', flush=True)
        signal.signal(signal.SIGALRM, hung)
        limit_cpu_time()
        for number, function in enumerate(chosen, 1):
            name = f'{number} {function.__name__}: {function.__doc__}'
            try:
                signal.setitimer(signal.ITIMER_REAL, TEST_LIMIT, 20)
                function()
                print(f'ok {name}', flush=True)
            except Skip as why:
                print(f'ok {name} # SKIP {why}', flush=True)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as err:
                failed += 1
                text = str(err).replace('\n', '\n# ')
                print(f'# {text}\nnot ok {name}', flush=True)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        shutil.rmtree(TMP)
    return 1 if failed else 0
