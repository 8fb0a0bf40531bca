# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether this machine permits to read the frames of interpreters while programs are recorded."""

import re

from harness import Skip, check

LOCKDOWN = '/sys/kernel/security/lockdown'


def is_locked_down():
    """Whether no BPF program may read the kernel's memory."""
    try:
        with open(LOCKDOWN) as file:
            return '[confidentiality]' in file.read()
    except OSError:
        return False


def check_not_refused(said):
    """Fails where the kernel's verifier refused a BPF program: no permission is missing then.
    A kernel that is built without such programs says "Invalid argument"."""
    refusal = re.search('.*BPF program load failed(?!: Invalid argument).*', said)
    check(not refusal or is_locked_down(), refusal and refusal.group())


def skip_unless_native_read(said):
    """Skips a test of frames on the native stack: some kernels refuse the large program for them, as
    languages.rst says."""
    refusal = re.search('.*reading frames on the native stack by BPF: .*', said)
    if refusal:
        raise Skip(refusal.group())
    skip_unless_read(said)


# Reasons of the machine, for any interpreter.
MACHINE = 'by BPF|not permitted|the broker|on this kind of machine|on arm64'


def skip_for_machine(said):
    """Skips a test of what is said of an interpreter where this machine has no frames read of any; other
    reasons for that are not looked for."""
    check_not_refused(said)
    refusal = re.search('.*are not shown: .*', said)
    if refusal and re.search(MACHINE, refusal.group()):
        raise Skip(refusal.group())
    if not refusal and 'stacks copied' not in said:
        raise Skip('stacks are not copied here: ' + (said.strip().splitlines() or ['nothing is said'])[-1])


def skip_unless_read(said):
    """Skips a test whose recording, which said that, could not read frames.
    A BPF program that the kernel refuses fails it."""
    check_not_refused(said)
    last = (said.strip().splitlines() or ['nothing is said'])[-1]
    if 'are not shown:' in said or 'not permitted' in said:
        raise Skip(last)
    if 'stacks copied' not in said:
        raise Skip('stacks are not copied here: ' + last)
