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
