# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of the cache that selftests/guest/setup fetches from Debian's archive."""

import os
import subprocess

import harness
from harness import Skip, equal

CACHE = os.environ.get('SHSTK_CACHE', os.path.expanduser('~/.cache/shstk'))
SETUP = os.path.join(harness.SELFTESTS, 'guest/setup')


def fetched(part):
    """Return the folder of a part, which is fetched unless it is there. Skips the test if it cannot be."""
    try:
        run = subprocess.run([SETUP, part], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False, timeout=harness.LIMIT)
    except subprocess.TimeoutExpired as late:
        raise Skip(f'{SETUP} {part} does not end within {harness.LIMIT} s') from late
    if run.returncode == 4:
        raise Skip(run.stdout.strip().split('\n')[-1])
    equal(run.returncode, 0, run.stdout)
    return os.path.join(CACHE, part)


def fetched_python(minor, *program):
    """The command of Python 3.minor of Debian 14 for x86-64, which is fetched with its C library.

    program: another one that has its library, and arguments.
    """
    if os.uname().machine != 'x86_64':
        raise Skip('the Python that is fetched is for x86-64')
    folder = os.path.join(fetched('python'), 'usr')
    libraries = os.path.join(folder, 'lib/x86_64-linux-gnu')
    library = os.path.join(libraries, f'libpython3.{minor}.so.1.0')
    return ['/usr/bin/env', 'PYTHONHOME=' + folder, 'PYTHONDONTWRITEBYTECODE=1',
            os.path.join(libraries, 'ld-linux-x86-64.so.2'), '--library-path', libraries,
            *(['--preload', library, *program, library] if program else [os.path.join(folder, f'bin/python3.{minor}')])]
