# SPDX-License-Identifier: GPL-2.0-or-later
"""A broker that lends walks of stacks in the kernel, for tests."""

import contextlib
import os
import time

from harness import HERE, NOBODY, SHSTK, Process, check, make_folder, need_nobody, run


def why_not():
    """Why nothing can be tested here, or None."""
    if os.getuid():
        return 'needs root, which runs the broker'
    with open('/proc/sys/kernel/perf_event_paranoid', encoding='ascii') as file:
        level = int(file.read())
    if level < 2:
        return f'kernel.perf_event_paranoid is {level}: users need no broker'
    if run('stat', '-f', '-c', '%T', HERE).stdout.strip() == 'overlayfs':
        return 'an overlay may tell other inode numbers than the kernel'
    if os.path.exists('/sys/module/shstk_perf'):
        return 'shstk_perf is loaded: its callchains are preferred'
    done = run(SHSTK, 'record', '--via=bpf', '-o', '-', '--format=folded', '--', 'true')
    return done.stderr.strip().split('\n')[-1] if done.returncode else None


def await_socket(path):
    until = time.monotonic() + 300
    while not os.path.exists(path):
        check(time.monotonic() < until, 'the broker makes no socket')
        time.sleep(0.01)


@contextlib.contextmanager
def broker(*options):
    """Runs a broker. Gives its process, and how to run a command as a user who asks it."""
    need_nobody()
    # Names of sockets are short: the tree may lie deep.
    folder = make_folder(None)
    os.chmod(folder, 0o755)
    socket = os.path.join(folder, 'broker')
    with Process([SHSTK, 'broker', '--socket', socket, *options]) as process:
        await_socket(socket)
        yield process, {**NOBODY, 'env': dict(os.environ, SHSTK_BROKER=socket)}
        process.terminate()
