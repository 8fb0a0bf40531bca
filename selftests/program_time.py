# SPDX-License-Identifier: GPL-2.0-or-later
"""The time that BPF programs at perf events take, as the kernel measures it (bpf_stats_enabled)."""

import contextlib
import os

STATS = '/proc/sys/kernel/bpf_stats_enabled'
PERF_EVENT = '7'    # BPF_PROG_TYPE_PERF_EVENT


@contextlib.contextmanager
def measured():
    """Meanwhile the kernel measures all programs, if who calls this is root."""
    if os.getuid():
        yield
        return
    with open(STATS, encoding='ascii') as old:
        before = old.read()
    with open(STATS, 'w', encoding='ascii') as new:
        new.write('1')
    try:
        yield
    finally:
        with open(STATS, 'w', encoding='ascii') as new:
            new.write(before)


def runs_of(pid):
    """The nanoseconds that BPF programs at perf events of a process ran for, and how often."""
    ns = runs = 0
    for fd in os.listdir(f'/proc/{pid}/fdinfo'):
        try:
            with open(f'/proc/{pid}/fdinfo/{fd}', encoding='ascii') as file:
                words = dict(line.split(':', 1) for line in file if ':' in line)
        except FileNotFoundError:
            continue
        if words.get('prog_type', '').strip() == PERF_EVENT:
            ns, runs = ns + int(words['run_time_ns']), runs + int(words['run_cnt'])
    return ns, runs
