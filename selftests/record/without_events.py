# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorders that the kernel refuses perf events: shared by the tests of this folder."""

import ctypes
import platform
import struct
import subprocess

from harness import Skip


def forbid_perf_events():
    """Has the kernel refuse perf events to this process, by a filter of system calls."""
    number = {'x86_64': 298, 'aarch64': 241}[platform.machine()]
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001),
            (0x06, 0, 0, 0x7fff0000)]
    text = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
    program = struct.pack('HxxxxxxP', len(code), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), 'prctl')


def need_filters():
    """Skips the test unless a filter can refuse perf events here."""
    if platform.machine() not in ('x86_64', 'aarch64'):
        raise Skip('the number of a system call is not known')
    try:
        subprocess.run(['true'], preexec_fn=forbid_perf_events, check=True)
    except (subprocess.SubprocessError, OSError) as err:
        raise Skip('seccomp filters are not available') from err
