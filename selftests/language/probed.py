# SPDX-License-Identifier: GPL-2.0-or-later
"""Records allocations of a running process by probes (`shstk record --heap -p`), and reads the profile."""

import platform
import re
import subprocess

from harness import SHSTK, Process, Skip, equal
from permitted import check_not_refused


def lines_of(profile, ids):
    """(function, file, line) of a sample, the innermost first."""
    for ident in ids:
        for line in profile.locations[ident][4]:
            function = profile.functions[line[1]]
            yield (profile.text(function[2]), profile.text(function.get(4, 0)), line.get(2, 0))


def skip_unless_probed(said):
    """Skips a test whose recording, which said that, could not put probes, or read frames at them."""
    reason = re.search('.*(not permitted|has no probes|is needed|are not shown|is missing).*', said)
    check_not_refused(said)
    if reason:
        raise Skip(reason.group())


def go_on(program):
    """Has a program go on that waits, and waits for its answer."""
    print(file=program.stdin, flush=True)
    return program.stdout.readline()


def record_process(out, command, action, may_refuse=None):
    """Records a program that says that it is ready while action() goes on with it. Returns what was said, in
    which may_refuse may be why no functions are shown."""
    if platform.machine() not in ('x86_64', 'aarch64'):
        raise Skip('frames are read at probes on x86-64 and arm64')
    with Process(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        equal(program.stdout.readline(), 'ready\n', 'the program')
        with Process([SHSTK, 'record', '--heap', '-p', str(program.pid), '--duration=1h', '-o', out],
                     text=True, stderr=subprocess.PIPE) as recorder:
            said = recorder.stderr.readline()
            if 'from now on' in said:
                action(program, recorder)
            recorder.terminate()
            said += recorder.stderr.read()
        program.kill()
    if not may_refuse or may_refuse not in said:
        skip_unless_probed(said)
    equal(recorder.returncode, 0, said)
    return said
