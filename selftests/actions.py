# SPDX-License-Identifier: GPL-2.0-or-later
"""Actions of signals that programs inherit: what is ignored stays so through exec.

nohup(1) has SIGHUP ignored, a shell's "&" SIGINT and SIGQUIT, and posix_spawn(3), by which
make(1) starts programs, the two signals that libc keeps for itself, 32 and 33.
"""

import ctypes
import platform
import signal
import struct

RT_SIGACTION = 13 if platform.machine() == 'x86_64' else 134
LIBC = ctypes.CDLL(None)
OF_LIBC = {32, 33}      # it refuses to set these
OF_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}    # what it starts has their default action


def number_of(name):
    """Of a signal that is given by its name, or number."""
    return name if isinstance(name, int) else int(signal.Signals[f'SIG{name}'])


def set_actions(action, signals):
    """signal.SIG_DFL or SIG_IGN for these signals, where the kernel has it."""
    for signo in signals:
        LIBC.syscall(RT_SIGACTION, int(signo), struct.pack('QQQQ', int(action), 0, 0, 0), None, 8)


def ignored():
    """The numbers of the signals that this process ignores."""
    with open('/proc/self/status', encoding='utf-8', errors='replace') as file:
        bits = next(int(line.split()[1], 16) for line in file if line.startswith('SigIgn:'))
    return {signo for signo in range(1, signal.NSIG) if bits >> (signo - 1) & 1}


def ignore_alone():
    """Programs that this process starts no longer inherit what it ignores.

    What is handled has its default action in a program that is executed.
    """
    for signo in ignored() - OF_LIBC - OF_PYTHON:
        signal.signal(signo, lambda *_: None)
    set_actions(signal.SIG_DFL, ignored() & OF_LIBC)
