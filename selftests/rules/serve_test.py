#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk rules` and the daemon with a device that this test imitates: how files are read,
depending on their owner, what is not asked for again, and that nothing stops the daemon.
Prints KTAP."""

import array
import contextlib
import ctypes
import errno
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, HERE, LIMIT, SELFTESTS, TMP, Skip, check, children_of, main, test)

SHSTK = os.environ.get('SHSTK') or os.path.join(BUILD, 'shstk')
FAKE = os.path.join(HERE, 'fake_device.so')
PROGRAM = '/bin/bash'
INFO, LOAD, DROP, LIST, CUTS, USERS = 0x40, 0x41, 0x42, 0x43, 0x45, 0x46
DROP_ALL = 1
NOBODY = 65534
MINUTES = 300           # seconds for which the daemon leaves a file alone that failed
RED = '\x1b[31m'


def need_root():
    """Skips the test if this is not root."""
    if os.getuid():
        raise Skip('root only')


def file_of(fd):
    """Returns what identifies a file."""
    st = os.fstat(fd)
    return st.st_dev, st.st_ino


class Device:
    """The device: notes the calls, and answers them."""

    def __init__(self, env=()):
        self.path = tempfile.mktemp(prefix='device-', dir='/tmp')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(self.path)
        self.socket.listen(64)
        self.reader = None      # connection of the one who waits for misses
        self.loads = []         # (name, file), in the order of the calls
        self.drops = 0          # calls that drop all tables
        self.full = False       # there is no room until all tables are dropped
        self.listed = []        # names of tables to list
        self.cuts = []          # (dev, ino) of files in which chains ended
        self.users = []         # what was told of further ids: number of loads before, ranges
        self.knows_users = True     # the module does
        self.users_error = 0    # an errno: further ids are not taken
        self.changed = threading.Condition()
        self.env = {**os.environ, 'LD_PRELOAD': FAKE, 'FAKE_DEVICE': self.path, **dict(env)}
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        """Accepts connections until the socket is closed."""
        with contextlib.suppress(OSError):
            while True:
                connection = self.socket.accept()[0]
                with contextlib.suppress(OSError):
                    self.answer(connection)

    def answer(self, connection):
        """Answers a call. An opened device stays connected."""
        message, fds = receive(connection)
        if message == bytes(4):
            self.reader = connection
        if len(message) <= 4:
            return
        call, arg = message[0], bytearray(message[4:])
        with self.changed:
            err = self.act(call, arg, fds, connection)
            self.changed.notify_all()
        for fd in fds:
            os.close(fd)
        connection.send(struct.pack('<I', err) + arg)
        connection.close()

    def act(self, call, arg, fds, connection):
        """Does what the call asks for. Returns an errno."""
        if call == LOAD:
            name = bytes(arg[24:56]).rstrip(b'\0').decode()
            self.loads.append((name, file_of(fds[0]) if fds else None))
            if self.full:
                return errno.ENOSPC
        elif call == DROP:
            if struct.unpack_from('<I', arg, 4)[0] & DROP_ALL:
                self.drops += 1
                self.full = False
        elif call == LIST:
            at = struct.unpack_from('<I', arg)[0]
            if at >= len(self.listed):
                return errno.ENOENT
            struct.pack_into('<I', arg, 0, at + 1)
            struct.pack_into('32s', arg, 48, self.listed[at].encode())
        elif call == CUTS:
            at = struct.unpack_from('<I', arg)[0]
            if at >= len(self.cuts):
                return errno.ENOENT
            dev, ino = self.cuts[at]
            struct.pack_into('<IIQQQQQQ', arg, 0, at + 1, 0,
                             os.major(dev) << 20 | os.minor(dev), ino, 0, 1000 - at, 0, 0)
        elif call == USERS and self.knows_users:
            at, nr, reserved = struct.unpack_from('<QII', arg)
            check(not reserved, 'a reserved field')
            if self.users_error:
                return self.users_error
            self.users.append((len(self.loads), ranges_at(connection, at, nr)))
        elif call != INFO:
            return errno.ENOTTY
        return 0

    def miss(self, path=None, err=0):
        """Reports a file to the daemon, or one that cannot be opened."""
        fds = [] if path is None else [os.open(path, os.O_RDONLY)]
        self.reader.sendmsg([struct.pack('<I', err)],
                            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))]
                            if fds else [])
        for fd in fds:
            os.close(fd)

    def count(self, path):
        """Returns how often a table of this file came."""
        st = os.stat(path)
        return sum(load[1] == (st.st_dev, st.st_ino) for load in self.loads)

    def await_load(self, path, times=1):
        """Waits until the file's table has come TIMES times. Returns whether it has."""
        with self.changed:
            return self.changed.wait_for(lambda: self.count(path) >= times, LIMIT)

    def run(self, *args, before=()):
        """Runs shstk rules to its end."""
        return subprocess.run([*before, SHSTK, 'rules', *args], env=self.env, cwd=TMP,
                              capture_output=True, text=True, check=False, timeout=LIMIT)

    def close(self):
        """Closes the device."""
        self.socket.close()
        if self.reader:
            self.reader.close()
        os.unlink(self.path)


def ranges_at(connection, at, number):
    """Returns ranges of ids in the memory of the process at the other end: (first, nr, user)."""
    pid = struct.unpack_from('=i', connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
        return list(struct.iter_unpack('=III', os.pread(memory.fileno(), 12 * number, at)))


def receive(connection):
    """Returns a message and its files."""
    message, extra, *_ = connection.recvmsg(4096, socket.CMSG_SPACE(4))
    fds = array.array('i')
    for _level, _kind, data in extra:
        fds.frombytes(data)
    return message, list(fds)


@contextlib.contextmanager
def device(**env):
    """A device."""
    made = Device({name: str(value) for name, value in env.items()})
    try:
        yield made
    finally:
        made.close()


class Daemon:
    """The daemon, which uses a device."""

    def __init__(self, dev, cache=None, begin=None):
        self.dev = dev
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = tempfile.mktemp(prefix='notify-', dir='/tmp')
        self.notify.bind(path)
        self.notify.settimeout(LIMIT)
        self.errors = open(os.path.join(TMP, 'errors'), 'w+', encoding='utf-8')
        self.process = subprocess.Popen(
            [SHSTK, 'rules', 'serve', '--cache=' + (cache or os.path.join(TMP, 'cache'))],
            env={**dev.env, 'NOTIFY_SOCKET': path}, stderr=self.errors, preexec_fn=begin)
        while b'READY=1' not in self.notify.recv(4096):
            check(self.process.poll() is None, 'it does not begin')
        os.unlink(path)

    def said(self):
        """Returns what the daemon complained of."""
        with open(self.errors.name, encoding='utf-8') as file:
            return file.read()

    def await_said(self, text):
        """Waits until the daemon complains of TEXT."""
        for _ in range(LIMIT * 20):
            if text in self.said():
                return
            time.sleep(0.05)
        check(False, f'it did not complain: {text}')

    def end(self):
        """Ends the daemon. Returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(LIMIT)
        finally:
            self.process.kill()
            self.process.wait()
            self.notify.close()
            self.errors.close()


@contextlib.contextmanager
def daemon(dev, **options):
    """The daemon, which has to live until it is ended."""
    made = Daemon(dev, **options)
    try:
        yield made
        check(made.process.poll() is None, f'it has ended: {made.said()}')
    finally:
        status = made.end()
    check(status == 0, f'ended with {status}')


class Clocks:
    """How far the daemon's clocks are ahead, in seconds, which is in a file."""

    def __init__(self):
        self.path = os.path.join(TMP, 'later')
        self.put_ahead(0)

    def put_ahead(self, seconds):
        """Puts them ahead by so much."""
        with open(self.path, 'r+b' if os.path.exists(self.path) else 'wb') as file:
            file.write(struct.pack('@q', seconds))


def copy(name, size=0):
    """Makes a copy of a program with the given size. Returns its path."""
    path = os.path.join(TMP, name)
    shutil.copyfile(PROGRAM, path)
    os.chmod(path, 0o755)
    if size:
        os.truncate(path, size)
    return path


@contextlib.contextmanager
def mapped(*paths):
    """A process that has these mapped as code; its number."""
    lines = ';'.join(f'keep.append(mmap.mmap(os.open({path!r}, os.O_RDONLY), 4096, '
                     'mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))' for path in paths)
    with subprocess.Popen([sys.executable, '-c', f'import mmap, os\nkeep = []\n{lines}\n'
                           'print(flush=True)\ninput()'],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        check(process.stdout.readline(), 'nothing was mapped')
        try:
            yield process.pid
        finally:
            process.kill()


@test
def strangers_files():
    """load -p reads what a process has mapped in a worker, which has limits"""
    huge = copy('huge', 900 << 20)
    os.chmod(huge, 0o777)
    with device() as dev, mapped(huge) as pid:
        with subprocess.Popen([SHSTK, 'rules', 'load', '-p', str(pid)], env=dev.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            text, errors = process.stdout.read(), process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        check(errors.count('\n') == 1 and 'huge: ' in errors, errors)
        check(used.ru_maxrss < 600 << 10, f'it took {used.ru_maxrss >> 10} MiB')
        check('functions' in text and 'libc.so' in text, text)
        check('[vdso]' in [name for name, _ in dev.loads], dev.loads)
        check(dev.count(huge) == 0, 'it was loaded')


@test
def as_named():
    """what load -p says of a file is what load FILE says"""
    path = copy('twice')
    with device() as dev, mapped(path) as pid:
        line = next(line for line in dev.run('load', path).stdout.splitlines() if 'twice' in line)
        check('functions' in line and '% described' in line, line)
        check(line in dev.run('load', '-p', str(pid)).stdout, 'other figures')


@test
def vdso():
    """load FILE gives the vdso a table, too, unless the file got none"""
    path = copy('beside')
    with device() as dev:
        done = dev.run('load', path)
        check(done.returncode == 0, done)
        check([name for name, _ in dev.loads] == ['beside', '[vdso]'], dev.loads)
        check(dev.run('load', path + 'x').returncode == 1 and len(dev.loads) == 2, dev.loads)
        check(dev.run('load', '-v', path).returncode == 0 and len(dev.loads) == 4, dev.loads)


@test
def names():
    """names of files do nothing to a terminal"""
    path = copy(f'{RED}red')
    bad = os.path.join(TMP, f'{RED}bad')
    with open(bad, 'wb') as file:
        file.write(b'x' * 5000)
    with device() as dev, mapped(path, bad) as pid:
        dev.listed = [f'{RED}listed']
        st = os.stat(path)
        dev.cuts = [(st.st_dev, st.st_ino)]
        for action in (['load', '-p', str(pid)], ['list'], ['status'], ['load', bad],
                       ['drop', bad + 'x']):
            done = dev.run(*action)
            check('?[31m' in done.stdout + done.stderr, f'{action}: {done}')
            check('\x1b' not in done.stdout + done.stderr, f'{action}: {done}')


@test
def in_words():
    """status says in words how many chains are whole, and names the files of the most cuts"""
    folder = os.path.join(TMP, 'module', 'rules')
    os.makedirs(folder)
    for name, value in (('whole', 12236), ('zero', 23), ('cut_no_table', 151),
                        ('first_unknown', 5), ('refused', 2)):
        with open(os.path.join(folder, name), 'w', encoding='ascii') as file:
            print(value, file=file)
    path = copy('libfoo.so')
    st = os.stat(path)
    with device(FAKE_MODULE=os.path.dirname(folder)) as dev, mapped(path):
        dev.cuts = [(st.st_dev, st.st_ino)] + [(os.makedev(250, 7), n) for n in range(2, 65)]
        lines = dev.run('status').stdout.splitlines()
    check(lines[1:6] == ['98.6% of 12410 callchains whole', '23 ended at a return address of 0',
                         '151 cut in code of a file without a table, or of none',
                         '7 left to the kernel\'s own walk: nothing is known of their innermost '
                         'frame',
                         'chains were cut, or left to the kernel\'s own walk, in code of:'],
          lines)
    check(lines[6:8] == [f'  1000 in {path}: no table',
                         '  999 in inode 2 of device 250:7: no table'], lines)
    check(len(lines) == 6 + 12 + 1 and lines[-1] == '  and of 52 more files', lines)


@test
def not_opened():
    """files that cannot be opened, whatever the errno, do not end the daemon"""
    path = copy('opened')
    with device() as dev, daemon(dev):
        for err in errno.EPERM, errno.EACCES, errno.ENOTTY, errno.EBADF, errno.EIO:
            dev.miss(err=err)
        dev.miss(path)
        check(dev.await_load(path), 'the next one has no table')


@test
def passing():
    """a file that failed for want of descriptors is tried again after minutes"""
    path, other, clocks = copy('passing'), copy('passing-other'), Clocks()
    with device(FAKE_LATER=clocks.path) as dev, daemon(dev) as served:
        pid = served.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        opened = [int(fd) for fd in os.listdir(f'/proc/{pid}/fd')]
        # There is only room for the file.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(opened) + 2, before[1]))
        dev.miss(path)
        served.await_said(path)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        dev.miss(path)
        dev.miss(other)
        check(dev.await_load(other) and not dev.count(path), 'tried again at once')
        clocks.put_ahead(MINUTES)
        dev.miss(path)
        check(dev.await_load(path), f'not tried again: {served.said()}')


@test
def lasting():
    """a file of which no table can be made is left alone until it changes"""
    path, other, clocks = copy('lasting', 900 << 20), copy('lasting-other'), Clocks()
    # A stranger's file is read in a worker, which has limits. Each time it says that it is too large.
    os.chmod(path, 0o777)
    before = os.stat(path).st_ctime_ns
    with device(FAKE_LATER=clocks.path) as dev, daemon(dev) as served:
        for times in 1, 2:
            # They are read one after the other.
            dev.miss(path)
            dev.miss(other)
            check(dev.await_load(other, times), 'the next one has no table')
            check(served.said().count(path) == 1, f'not left alone: {served.said()}')
            clocks.put_ahead(MINUTES)
        shutil.copyfile(PROGRAM, path)
        # The file system's clock goes in steps.
        while os.stat(path).st_ctime_ns == before:
            os.utime(path)
        dev.miss(path)
        dev.miss(other)
        check(dev.await_load(other, 3) and dev.count(path), 'changed, and left alone')


@test
def stuck():
    """a file whose server is gone keeps its process, and nobody else"""
    path, other = copy('stuck'), copy('stuck-other')
    with device(FAKE_STUCK=os.stat(path).st_ino, FAKE_HASTE=20) as dev, daemon(dev) as served:
        start = time.monotonic()
        dev.miss(path)
        dev.miss(other)
        served.await_said(path)
        check(dev.await_load(other), 'the next one has no table')
        print(f'# after {time.monotonic() - start:.0f} s')


def await_worker(served):
    """Waits until the daemon has started a worker. Returns its process number."""
    while not (found := children_of(served.process.pid)):
        time.sleep(0.05)
    worker, = found
    return worker


@test
def nicer():
    """a worker lets the daemon go first, one for a stranger's file others, too"""
    path = copy('nicer')
    for mode, more in (0o755, 5), (0o777, 10):
        os.chmod(path, mode)
        with device(FAKE_STUCK=os.stat(path).st_ino) as dev, daemon(dev) as served:
            dev.miss(path)
            own = os.getpriority(os.PRIO_PROCESS, served.process.pid)
            worker = await_worker(served)
            end = time.monotonic() + LIMIT
            while os.getpriority(os.PRIO_PROCESS, worker) != min(own + more, 19):
                check(time.monotonic() < end, f'it does not: {oct(mode)}')
                time.sleep(0.05)


@test
def ends_at_once():
    """told to end while a file is read, it does not wait for that"""
    path = copy('slow')
    with device(FAKE_STUCK=os.stat(path).st_ino) as dev, daemon(dev) as served:
        dev.miss(path)
        await_worker(served)
        start = time.monotonic()
    # The file would be waited for for 120 s.
    check(time.monotonic() - start < 100, 'it does not end')


@test
def full():
    """when no more fits, all goes and what runs comes again, and after that nobody asks on"""
    one, two, runs = copy('full-one'), copy('full-two'), copy('full-runs')
    with device() as dev, mapped(runs), daemon(dev):
        dev.miss(one)
        check(dev.await_load(one) and not dev.drops, 'it did not fit')
        dev.full = True
        dev.miss(two)
        check(dev.await_load(two, times=2), 'it was not loaded anew')
        check(dev.drops == 1 and dev.count(one) == 1 and dev.count(runs) == 2, 'not made room')
        dev.full = True
        for path in one, one, two, two, runs:
            dev.miss(path)
        check(dev.await_load(runs, times=3), 'it has stopped')
        got = dev.drops, dev.count(one), dev.count(two)
        check(got == (1, 2, 3), f'it goes on asking: {got}')


@test
def further_ids():
    """whose further ids are is told before the first table, and again when that changes"""
    path, one = os.path.join(TMP, 'subuid'), copy('further')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('1234:700000:65536\nroot:5000:10\n')
    with device(FAKE_SUBUID=path) as dev, daemon(dev):
        told = [(5000, 10, 5000), (700000, 65536, 1234)]
        check(dev.users == [(0, told)], dev.users)
        dev.miss(one)
        check(dev.await_load(one) and len(dev.users) == 1, f'told again: {dev.users}')
        with open(path, 'w', encoding='utf-8') as file:
            file.write('1234:700000:65537\n')
        os.truncate(one, os.stat(one).st_size + 1)
        dev.miss(one)
        check(dev.await_load(one, times=2), 'it has stopped')
        check([ranges for _, ranges in dev.users] == [told, [(700000, 65537, 1234)]], dev.users)
        os.unlink(path)
        os.truncate(one, os.stat(one).st_size + 1)
        dev.miss(one)
        check(dev.await_load(one, times=3), 'it has stopped')
        check([ranges for _, ranges in dev.users][2:] == [[]], dev.users)


@test
def further_ids_unknown():
    """a module that knows nothing of further ids, or a pipe in the place of their file, ends nothing"""
    path, one = os.path.join(TMP, 'subuid'), copy('further')
    os.mkfifo(path)
    with device(FAKE_SUBUID=path) as dev, daemon(dev) as served:
        served.await_said('/etc/subuid: ')
        dev.miss(one)
        check(dev.await_load(one) and not dev.users, dev.users)
    os.unlink(path)
    with open(path, 'w', encoding='utf-8') as file:
        file.write('1234:700000:65536\n')
    with device(FAKE_SUBUID=path) as dev:
        dev.knows_users = False
        with daemon(dev) as served:
            dev.miss(one)
            check(dev.await_load(one), 'it was not loaded')
            check('subuid' not in served.said(), served.said())


@test
def further_ids_again():
    """where the module had no memory for further ids, they are told again with the next miss, until it has"""
    # No file that a daemon before has missed: this one loads those when it begins.
    path, one = os.path.join(TMP, 'subuid'), copy('further_again')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('1234:700000:65536\n')
    with device(FAKE_SUBUID=path) as dev:
        dev.users_error = errno.ENOMEM
        with daemon(dev) as served:
            served.await_said('/etc/subuid: ')
            dev.users_error = 0
            for times in 1, 2:
                os.truncate(one, os.stat(one).st_size + 1)
                dev.miss(one)
                check(dev.await_load(one, times=times), 'it has stopped')
                check([ranges for _, ranges in dev.users] == [[(700000, 65536, 1234)]], dev.users)


@contextlib.contextmanager
def mounted_fuse():
    """A file system that a process serves, and which stops to answer at SIGUSR1."""
    folder = os.path.join(TMP, 'fuse')
    os.mkdir(folder)
    with subprocess.Popen([sys.executable, os.path.join(SELFTESTS, 'rules', 'fuse_server'), folder, PROGRAM],
                          stdout=subprocess.PIPE) as server:
        try:
            if not server.stdout.readline():
                raise Skip('no FUSE here')
            yield os.path.join(folder, 'program'), server
        finally:
            server.kill()
            server.wait()
            subprocess.run(['umount', '--lazy', folder], check=False)
            os.rmdir(folder)


def change_build_id(path):
    """Changes the build id of a program. Returns the new one."""
    with open(path, 'r+b') as file:
        at = file.read().index(b'\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0') + 16
        file.seek(at)
        made = os.urandom(20)
        file.write(made)
    return made.hex()


def kept(cache):
    """Returns how many tables, names, and files with a noted build id a cache has."""
    names = os.listdir(cache)
    missed = os.path.join(cache, 'missed')
    lines = 0
    if os.path.exists(missed):
        with open(missed, encoding='utf-8') as file:
            lines = len(file.readlines())
    return (sum(name.endswith('.rules') for name in names), lines,
            sum(name.endswith('.file') for name in names))


def ways_to_a_file(folder):
    """Returns paths of a file of root that only a container has, and of one that all have."""
    with subprocess.Popen(['unshare', '--mount', '--propagation', 'private', 'sh', '-c',
                           f'mount -t tmpfs tmpfs {folder} && cp {PROGRAM} {folder}/program && '
                           f'chmod 755 {folder}/program && echo && read line'],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as inside:
        try:
            if inside.stdout.readline():
                yield f'/proc/{inside.pid}/root{folder}/program', 0
        finally:
            inside.kill()
    with mounted_fuse() as (path, _):
        yield path, 0
    yield copy('everywhere'), 1


@test
def root_elsewhere():
    """of what is root's in a container, or says a server, no table is kept"""
    need_root()
    folder, cache = os.path.join(TMP, 'folder'), os.path.join(TMP, 'kept')
    os.mkdir(folder)
    with device() as dev, daemon(dev, cache=cache):
        for path, wanted in ways_to_a_file(folder):
            for name in os.listdir(cache):
                os.unlink(os.path.join(cache, name))
            dev.miss(path)
            # What is kept for the first file is kept before the second one is served.
            dev.miss(path)
            check(dev.await_load(path, times=2), f'{path}: no table')
            check(kept(cache) == (wanted, wanted, wanted), path)


def forbid_openat2():
    """Forbids what a unit with RestrictSUIDSGID= forbids its service."""
    load, if_equal, answer = 0x20, 0x15, 0x06
    openat2, enosys, allow = 437, 0x00050000 | errno.ENOSYS, 0x7fff0000
    program = b''.join(struct.pack('=HBBI', *insn) for insn in (
        (load, 0, 0, 0), (if_equal, 0, 1, openat2), (answer, 0, 0, enosys), (answer, 0, 0, allow)))
    at = ctypes.create_string_buffer(program)
    filters = ctypes.create_string_buffer(struct.pack('@HP', 4, ctypes.addressof(at)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filters, 0, 0):
        raise OSError(ctypes.get_errno(), 'seccomp')


@test
def no_openat2():
    """where it cannot be asked whose a file is nothing is cached, which is said"""
    path, cache = copy('forbidden'), os.path.join(TMP, 'forbidden-cache')
    with device() as dev, daemon(dev, cache=cache, begin=forbid_openat2) as served:
        check('openat2(2) does not work here: Function not implemented' in served.said(),
              served.said())
        dev.miss(path)
        check(dev.await_load(path), 'no table')
    check(kept(cache) == (0, 0, 0), f'{os.listdir(cache)}')
    with device() as dev, daemon(dev, cache=cache) as served:
        check('openat2' not in served.said(), served.said())


@test
def known():
    """a file whose table the cache has is served without being read, until it changes"""
    path, cache = copy('known'), os.path.join(TMP, 'known-cache')
    with device() as dev, daemon(dev, cache=cache):
        dev.miss(path)
        check(dev.await_load(path), 'no table')
    os.unlink(os.path.join(cache, 'missed'))
    with device(FAKE_STUCK=os.stat(path).st_ino) as dev, daemon(dev, cache=cache):
        dev.miss(path)
        check(dev.await_load(path), 'it was read')
    build_id = change_build_id(path)
    with device() as dev, daemon(dev, cache=cache):
        dev.miss(path)
        check(dev.await_load(path), 'changed: no table')
        check(f'{build_id}.rules' in os.listdir(cache), 'changed, and not read')


@test
def served_by_others():
    """a mapped file whose server does not answer any more is passed over"""
    need_root()
    with mounted_fuse() as (path, server), mapped(path) as pid, device() as dev:
        server.send_signal(signal.SIGUSR1)
        try:
            done = dev.run('load', '-p', str(pid))
        finally:
            server.kill()   # otherwise the process that has mapped the file does not end
        check(done.returncode == 0 and 'libc.so' in done.stdout and path not in done.stdout,
              f'{done}')


# An ordinary user who has mounted, in a namespace of the own, an overlay over a file system that a
# process of the user's serves, maps a file of it as code. The server then answers nothing any more.
OVERLAID = '''
import ctypes, mmap, os, signal, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def mount(kind, place, options=''):
    if libc.mount(kind.encode(), place.encode(), kind.encode(), 0, options.encode()):
        print(f'no {kind}: {os.strerror(ctypes.get_errno())}', flush=True)
        sys.exit()
mount('tmpfs', '/mnt')
for name in 'served', 'empty', 'shown':
    os.mkdir(f'/mnt/{name}')
server = subprocess.Popen([sys.executable, '-c', sys.argv[1], '/mnt/served', sys.argv[2]],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
if not server.stdout.readline():
    print('no FUSE', flush=True)
    sys.exit()
mount('overlay', '/mnt/shown', 'lowerdir=/mnt/served:/mnt/empty,userxattr')
file = os.open('/mnt/shown/program', os.O_RDONLY)
code = mmap.mmap(file, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
server.send_signal(signal.SIGUSR1)
print(server.pid, flush=True)
sys.stdin.readline()
'''


@contextlib.contextmanager
def overlaid():
    """The number of a process that executes a file of an overlay about which nobody can ask."""
    with open(os.path.join(SELFTESTS, 'rules', 'fuse_server'), encoding='utf-8') as file:
        source = file.read()
    with subprocess.Popen(['unshare', '--map-root-user', '--mount', sys.executable, '-c', OVERLAID,
                           source, PROGRAM], user=NOBODY, group=NOBODY, extra_groups=[], cwd='/',
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        said = child.stdout.readline().strip()
        if not said.isdigit():
            raise Skip(f'a user cannot mount what is needed: {said or "no namespace"}')
        try:
            yield child.pid
        finally:
            os.kill(int(said), signal.SIGKILL)
            child.kill()


@test
def overlays_of_others():
    """nobody waits for a file of an overlay over such a file system, which a user can mount"""
    need_root()
    with overlaid() as pid, device() as dev:
        done = dev.run('load', '-p', str(pid))
        check(done.returncode == 0 and 'libc.so' in done.stdout and 'shown' not in done.stdout,
              f'{done}')


# A program whose first thread waits for a page of the file and holds the lock of the process'
# mappings. The second thread waits for that lock, so nobody else gets it.
LOCKED = '''
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
page = libc.mmap(None, 4096, 1, 2, os.open(sys.argv[1], os.O_RDONLY), 0)
print(flush=True)
sys.stdin.readline()
memory = os.open('/proc/self/mem', os.O_RDONLY)
def read():
    os.pread(memory, 1, page)
def change():
    call = f'/proc/self/task/{threads[0].native_id}/syscall'
    while open(call).read().split()[0] != sys.argv[2]:
        time.sleep(0.01)
    libc.mmap(None, 4096, 1, 0x22, -1, 0)
threads = [threading.Thread(target=f, daemon=True) for f in (read, change)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
'''


PREAD, MMAP = ('17', '9') if os.uname().machine == 'x86_64' else ('67', '222')


def calls_of(pid):
    """Returns the numbers of the system calls in which threads of a process wait."""
    found = set()
    for tid in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{tid}/syscall', encoding='ascii') as file:
            found.add(file.read().split()[0])
    return found


@contextlib.contextmanager
def locked(path, server):
    """A process of whose mappings the kernel tells nothing until the server has ended."""
    with subprocess.Popen([sys.executable, '-c', LOCKED, path, PREAD], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        try:
            child.stdout.readline()
            server.send_signal(signal.SIGUSR1)
            child.stdin.write(b'\n')
            child.stdin.flush()
            until = time.monotonic() + LIMIT
            while not {PREAD, MMAP} <= calls_of(child.pid):
                check(time.monotonic() < until, 'no thread waits for the lock')
                time.sleep(0.05)
            yield child.pid
        finally:
            server.kill()
            child.kill()


@test
def mappings_locked():
    """a process that keeps the lock of its mappings keeps nobody from his tables"""
    need_root()
    path = copy('not_kept')
    with mounted_fuse() as (served, server), device() as dev:
        with locked(served, server) as pid:
            done = dev.run('load', '-p', str(pid))
            check(done.returncode == 1 and 'took too long' in done.stderr, f'{done}')
            with daemon(dev):
                dev.miss(path)
                check(dev.await_load(path), 'no table')


sys.exit(main())
