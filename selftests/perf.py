# SPDX-License-Identifier: GPL-2.0-or-later
"""perf, and what the kernel tells of itself, in tests.

perf 6.1 of Debian destroys its own stack ("assertion failed at util/build-id.c", then
"stack smashing detected") where anybody else on the machine records with build ids: the
kernel then tells perf, too, that mappings have some. What it wrote until then is cut off.
That says nothing about what is tested: it is run again.
"""

import subprocess
import time

TRIES = 20
PAUSE = 1     # s, until the other recording has ended, perhaps


def kernel_names():
    """Does the kernel say where its functions are? Variables of each CPU may be at 0 anyway."""
    with open('/proc/kallsyms', encoding='ascii') as file:
        for line in file:
            address, kind, _ = line.split(None, 2)
            if kind in 'tT':
                return int(address, 16) != 0
    return False


def perf(*args, through=('perf',), **options):
    """Run perf until it does not crash: as subprocess.run(), with output as text.

    through: a command that runs perf with these arguments.
    """
    for _ in range(TRIES):
        done = subprocess.run([*through, *args], stdin=subprocess.DEVNULL, check=False,
                              **{'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE,
                                 'text': True, 'errors': 'replace', **options})
        if done.returncode >= 0 and 'assertion failed at util/' not in done.stderr:
            break
        time.sleep(PAUSE)
    return done
