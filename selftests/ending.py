# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests start ends with them, though they may be killed themselves."""

import ctypes
import resource
import signal

CPU_LIMIT = 2000    # seconds of CPU time, until the kernel ends a process
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def end_with_parent():
    """In a new process: it ends when the one that started it does, in whatever way."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def limit_cpu_time():
    """What the calling process starts, and its children, do not work for ever.

    That holds for what ignores signals, too, and for what has no parent any more.
    """
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard == resource.RLIM_INFINITY or hard > CPU_LIMIT:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))
