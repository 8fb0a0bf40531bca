#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""shstk rules serve --bpf for a program that starts it: what that is told, and when serving ends.

The script runs with file systems of its own, so that the maps are pinned where nobody else sees them.
"""

import errno
import os
import select
import shutil
import socket
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import LIMIT, SHSTK, Process, check, equal, main, run, shstk, test     # noqa: E402

FOLDER = '/sys/fs/bpf'
READY = b'READY=1'


class Server(Process):
    """A process that serves, for this one."""

    def __init__(self, *options, command=(), **kwargs):
        self.socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(LIMIT)
        with other:
            super().__init__([*command, SHSTK, 'rules', 'serve', '--bpf', f'--tell={other.fileno()}',
                              *options], pass_fds=[other.fileno(), *kwargs.pop('pass_fds', [])],
                             **kwargs)

    def __exit__(self, *rest):
        self.socket.close()
        super().__exit__(*rest)

    def told(self):
        """The next message; empty if the process has ended without one."""
        return self.socket.recv(1024)

    def end(self):
        """Has it end. Returns its status."""
        self.socket.close()
        return self.wait(LIMIT)


def failure(server):
    """The number of the error that a server tells, and its text."""
    lines = server.told().decode().split('\n')
    check(len(lines) == 2 and lines[0].startswith('ERRNO=') and lines[1].startswith('STATUS='),
          f'{lines}')
    equal(server.wait(LIMIT), 1, 'status')
    return int(lines[0].split('=')[1]), lines[1].split('=', 1)[1]


def remove_maps():
    """No map is pinned any more."""
    for name in os.listdir(FOLDER):
        if name.startswith('shstk_'):
            os.unlink(os.path.join(FOLDER, name))


@test
def starter_is_told():
    """READY=1 is sent when the maps are there; the process ends when the socket is closed"""
    remove_maps()
    with Server() as server:
        equal(server.told(), READY, 'message')
        for name in 'tables', 'files', 'asked', 'config':
            check(os.path.exists(f'{FOLDER}/shstk_{name}'), f'no map {name}')
        equal(server.end(), 0, 'status')


@test
def next_one_waits():
    """a second process says READY=1 at once, and serves when the first has ended"""
    with Server() as first:
        equal(first.told(), READY, 'message of the first')
        with Server() as second, Server() as third:
            equal(second.told(), READY, 'message of the second')
            equal(third.told(), READY, 'message of the third')
            equal(third.end(), 0, 'status of one that waits')
            # The second is not the one that serves: it would have said so.
            check(not select.select([second.socket], [], [], 1)[0], 'two serve at once')
            first.kill()
            first.wait(LIMIT)
            equal(second.told(), READY, 'message of the second when it serves')
            equal(second.end(), 0, 'status of the second')


@test
def without_starter_there_is_one():
    """without a starter, a second process fails"""
    with Server() as first:
        equal(first.told(), READY, 'message')
        said = shstk('rules', 'serve', '--bpf')
        equal(said.returncode, 1, 'status')
        check('served already' in said.stderr, said.stderr)
        equal(first.end(), 0, 'status of the first')


@test
def ends_with_a_process():
    """--until with a pidfd: serving ends with that process, though somebody else has the socket"""
    with Process(['sleep', str(LIMIT)]) as starter:
        pidfd = os.pidfd_open(starter.pid)
        with Server(f'--until={pidfd}', pass_fds=[pidfd]) as server:
            os.close(pidfd)
            equal(server.told(), READY, 'message')
            starter.kill()
            equal(server.wait(LIMIT), 0, 'status')
            equal(server.told(), b'', 'message at the end')


@test
def ends_with_a_pipe():
    """--until with a pipe, and no socket: serving ends when its other end is closed"""
    ours, other = os.pipe()
    with Process([SHSTK, 'rules', 'serve', '--bpf', f'--until={ours}'], pass_fds=[ours]) as server:
        os.close(ours)
        os.close(other)
        equal(server.wait(LIMIT), 0, 'status')


@test
def failures_are_told():
    """maps of another version, no file system for maps, no rights: the starter gets number and text"""
    remove_maps()
    if shutil.which('bpftool'):
        made = run('bpftool', 'map', 'create', f'{FOLDER}/shstk_config', 'type', 'array', 'key', '4',
                   'value', '8', 'entries', '1', 'name', 'shstk_config')
        equal(made.returncode, 0, made.stderr)
        with Server() as server:
            number, text = failure(server)
        equal(number, errno.EPROTO, text)
        check('of another version' in text, text)
        remove_maps()
    with Server(command=['unshare', '-m', 'sh', '-c', f'mount -t tmpfs none {FOLDER} && exec "$@"', 'sh']) as server:
        number, text = failure(server)
    equal(number, errno.ENODEV, text)
    check('mount -t bpf' in text, text)
    with Server(command=['setpriv', '--bounding-set=-bpf,-sys_admin']) as server:
        number, text = failure(server)
    equal(number, errno.EPERM, text)
    check('CAP_BPF' in text, text)


@test
def wrong_options_are_refused():
    """--tell and --until go with serve --bpf, and take open descriptors that can be waited for"""
    for options in ('serve', '--tell=0'), ('serve', '--until=0'), ('serve', '--bpf', '--tell=-1'):
        equal(shstk('rules', *options).returncode, 2, f'{options}')
    for action in 'compile', 'load', 'list', 'drop', 'status':
        for option in '--bpf', '--tell=0', '--until=0':
            said = shstk('rules', action, option)
            equal(said.returncode, 2, f'{action} {option}')
            check(f'{option.split("=")[0]} is an option of serve' in said.stderr, said.stderr)
    for option in '--tell=1000000', '--until=1000000':
        said = shstk('rules', 'serve', '--bpf', option)
        equal(said.returncode, 1, option)
        check(f'{option}: Bad file descriptor' in said.stderr, said.stderr)
    with open(__file__, encoding='utf-8') as file:
        option = f'--until={file.fileno()}'
        said = shstk('rules', 'serve', '--bpf', option, pass_fds=[file.fileno()])
    equal(said.returncode, 1, option)
    check(f'{option}: Operation not permitted' in said.stderr, said.stderr)


def why_not():
    """Why no BPF program can be served here, or None."""
    if run('mount', '-t', 'bpf', 'bpf', FOLDER).returncode:
        return 'no BPF file system can be mounted here'
    with Server() as server:
        message = server.told().decode(errors='replace')
        missing = [f'ERRNO={number}' for number in (errno.EPERM, errno.EOPNOTSUPP)]
        # What a kernel says that has no such programs, or is locked down.
        if 'the kernel refuses it' in message:
            missing.append(f'ERRNO={errno.EINVAL}')
        return message.replace('\n', ' ') if message.split('\n', maxsplit=1)[0] in missing else None


if __name__ == '__main__':
    if sys.argv[1:2] != ['inside']:
        if shutil.which('unshare') and not run('unshare', '-m', 'true').returncode:
            os.execvp('unshare', ['unshare', '-m', sys.executable, sys.argv[0], 'inside', *sys.argv[1:]])
        print('KTAP version 1\n1..0 # SKIP no file systems of its own')
        sys.exit(4)
    del sys.argv[1]
    sys.exit(main(why_not))
