# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest is made of: kernel, initramfs, emulator.

The emulators are run from the Debian folder of the cache by that folder's own
dynamic loader, so neither root nor chroot is needed once the cache is there.
"""

import gzip
import hashlib
import json
import math
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

CACHE = os.environ.get('SHSTK_CACHE') or os.path.expanduser('~/.cache/shstk')
HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get('B') or 'build'

# x86-qemu-V has the kernel of x86-V, more CPUs and more speed, but no shadow stacks.
GUESTS = ('arm64-7.2', 'x86-7.2', 'x86-6.12', 'x86-6.12-deb12', 'x86-qemu-7.2', 'x86-qemu-6.12',
          'riscv-7.2', 'arm64-7.3', 'x86-7.3', 'x86-qemu-7.3', 'arm64-6.18', 'x86-6.18',
          'x86-qemu-6.18', 'x86-6.12-rt', 'x86-qemu-6.12-rt', 'x86-qemu-6.12-deb12',
          'x86-6.1', 'x86-qemu-6.1')

# The parts of the cache that are whole systems.
ROOTS = ('root-arm64', 'root-x86', 'programs-arm64', 'programs-x86')


def kernel_name(key):
    """Which of the cache's kernels a guest has."""
    return key.replace('-qemu-', '-')


def in_bochs(key):
    return key.startswith('x86-') and kernel_name(key) == key


class Unavailable(Exception):
    """A part of the guest can not be had on this machine; says which, why."""


class Mistake(Exception):
    """The caller named something that is not there."""


def setup(*parts):
    """Make sure that parts of the cache are there."""
    done = subprocess.run([os.path.join(HERE, 'setup'), *parts], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in done.stdout.splitlines():
        print('# ' + line, flush=True)
    if done.returncode:
        lines = done.stdout.strip().splitlines() or ['setup failed']
        found = [l for l in lines if 'cannot set up' in l] or lines
        raise Unavailable(found[0].removeprefix('setup: '))


def folder_program(folder, *argv, part=None):
    """Command line of a program of an amd64 Debian folder, run in place.

    part is where the program itself is, if not in the folder of its libraries.
    """
    root = os.path.join(CACHE, folder)
    libs = [f'{root}/usr/lib/x86_64-linux-gnu', f'{root}/lib/x86_64-linux-gnu']
    program = os.path.join(CACHE, part or folder, 'usr/bin', argv[0])
    if not os.path.exists(program):
        raise Unavailable(f'no emulator: {program} is missing, run selftests/guest/setup '
                          f'{part or folder}')
    return [f'{root}/usr/lib64/ld-linux-x86-64.so.2', '--library-path', ':'.join(libs),
            program, *argv[1:]]


def find_root(name):
    """The directory of a whole system: a path, or a part of the cache."""
    if os.path.isdir(name):
        return name
    if name not in ROOTS:
        raise Mistake(f'{name}: no such directory')
    setup(name)
    return os.path.join(CACHE, name)


class Tree:
    """The guest's files, collected in a directory and packed as cpio.

    root is a whole system to begin with. It is copied first: its own /bin may be a link.
    """

    def __init__(self, path, root=None):
        self.path = path
        if root:
            self._copy_root(root)
        for sub in ('bin', 't', 'root', 'proc', 'sys', 'dev', 'tmp', 'run', 'etc'):
            os.makedirs(os.path.join(path, sub), exist_ok=True)

    def at(self, where):
        """Host path of a guest path, following links made inside the tree."""
        parts = os.path.normpath('/' + where).strip('/').split('/')
        path = self.path
        for i, part in enumerate(parts):
            path = os.path.join(path, part)
            if os.path.islink(path) and i < len(parts) - 1:
                target = os.readlink(path)
                base = '' if target.startswith('/') else '/'.join(parts[:i])
                return self.at('/'.join([base, target, *parts[i + 1:]]))
        return path

    def add(self, source, where):
        """Copy a file or directory of the host to a guest path."""
        if not os.path.exists(source):
            raise Mistake(f'{source}: no such file')
        dest = self.at(where)
        if os.path.isdir(source):
            shutil.copytree(source, dest, symlinks=True, dirs_exist_ok=True,
                            ignore_dangling_symlinks=True)
        else:
            os.makedirs(os.path.dirname(dest), exist_ok=True)
            if os.path.lexists(dest):
                os.unlink(dest)
            shutil.copy2(source, dest)
            os.chmod(dest, os.stat(dest).st_mode | 0o444)

    def _copy_root(self, root):
        """A whole system, without what only a running one needs."""
        os.makedirs(self.path, exist_ok=True)
        done = subprocess.run(['cp', '-a', '--reflink=auto', root + '/.', self.path], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Mistake(f'{root}: cannot be copied: {done.stdout.strip().splitlines()[-1]}')
        for sub in ('dev', 'proc', 'sys', 'boot', 'var/cache/apt', 'var/lib/apt'):
            shutil.rmtree(self.at(sub), ignore_errors=True)

    def write(self, where, text):
        path = self.at(where)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as out:
            out.write(text)

    def add_busybox(self, busybox, applets):
        """A shell and tools for scripts; what is already there stays."""
        self.add(busybox, 'bin/busybox')
        for name in applets:
            if not any(os.path.lexists(self.at(f'{d}/{name}'))
                       for d in ('bin', 'usr/bin', 'sbin', 'usr/sbin')):
                os.symlink('busybox', self.at(f'bin/{name}'))

    def pack(self, archive, compress):
        """Write the tree as a newc archive, whose last file tells the guest that all are there.

        What /init needs to say that they are not comes first.
        """
        self.write('complete', '')
        found = subprocess.run(['find', '.', '-mindepth', '1', '-print0'], cwd=self.path,
                               check=True, stdout=subprocess.PIPE).stdout.rstrip(b'\0').split(b'\0')
        first, last = [b'./init', b'./t', b'./t/guest'], [b'./complete']
        names = [n for n in first if n in found] + sorted(set(found) - {*first, *last}) + last
        data = subprocess.run(['cpio', '--quiet', '-0', '-o', '-H', 'newc', '-R', '0:0'],
                              cwd=self.path, input=b'\0'.join(names), check=True,
                              stdout=subprocess.PIPE).stdout
        if compress:
            data = gzip.compress(data, 1)
        with open(archive, 'wb') as out:
            out.write(data)

    def megabytes(self):
        """What the files take in a guest's memory."""
        pages = 0
        for folder, folders, files in os.walk(self.path):
            for name in folders + files:
                pages += 1 + os.lstat(os.path.join(folder, name)).st_size // 4096
        return pages * 4096 / (1 << 20)


def elf_needs(path):
    """(interpreter, [needed], [runpath]) of a dynamic program or library."""
    out = subprocess.run(['readelf', '-W', '-l', '-d', path], check=False, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    interp = re.search(r'Requesting program interpreter: ([^]]+)\]', out)
    needed = re.findall(r'\(NEEDED\).*\[([^]]+)\]', out)
    runpath = re.findall(r'\((?:RUNPATH|RPATH)\).*\[([^]]+)\]', out)
    dirs = [d.replace('$ORIGIN', os.path.dirname(os.path.abspath(path)))
            for r in runpath for d in r.split(':')]
    return interp.group(1) if interp else None, needed, dirs


def is_elf(path):
    with open(path, 'rb') as file:
        return file.read(4) == b'\x7fELF'


def add_libraries(tree, program, root, dirs):
    """Copy the loader and libraries a dynamic program needs.

    They are looked for in the program's own run path, in dirs, then in the
    system at root.
    """
    system = [os.path.join(root, d) for d in
              ('usr/lib/x86_64-linux-gnu', 'usr/lib/aarch64-linux-gnu',
               'usr/lib/riscv64-linux-gnu', 'lib/x86_64-linux-gnu', 'usr/lib', 'lib', 'lib64')]
    seen, queue = set(), [program]
    while queue:
        path = queue.pop()
        interp, needed, runpath = elf_needs(path)
        if interp and interp not in seen:
            seen.add(interp)
            real = os.path.realpath(os.path.join(root, interp.lstrip('/')))
            if not os.path.exists(real):
                raise Mistake(f'{program}: its loader {interp} is not in {root}')
            tree.add(real, interp)
        for name in needed:
            if name in seen:
                continue
            seen.add(name)
            own = [d for d in runpath + list(dirs)]
            found = [os.path.join(d, name) for d in own + system
                     if os.path.exists(os.path.join(d, name))]
            if not found:
                raise Mistake(f'{program}: its library {name} is neither in '
                              f'{":".join(own) or "its run path"} nor in {root}')
            libdir = os.path.dirname(interp_dir(root, found[0]))
            tree.add(os.path.realpath(found[0]), f'{libdir}/{name}')
            queue.append(os.path.realpath(found[0]))


def interp_dir(root, library):
    """Where a library goes: its own place if of the system, else /usr/lib."""
    path = os.path.abspath(library)
    top = os.path.abspath(root).rstrip('/')
    if path.startswith(top + '/usr/lib') or path.startswith(top + '/lib'):
        return path[len(top):]
    return '/usr/lib/' + os.path.basename(library)


class Machine:
    """One booted emulator. The caller polls lines() and calls kill()."""

    def __init__(self, key, work, memory=None):
        self.key = key
        self.arch = key.split('-')[0]
        self.work = work
        self.memory = memory
        self.kernel = os.path.join(CACHE, 'kernels', kernel_name(key))
        self.image = os.path.join(self.kernel, 'vmlinuz')
        self.console = os.path.join(work, 'console.log')
        self.report = os.path.join(work, 'report')
        self.process = None
        self._read = 0
        self._partial = b''

    def make_room(self, tree):
        """Unless a size was asked for, give the guest enough memory for the tree's files.

        The kernel unpacks them into a file system that may take half of the memory that the
        archive itself leaves, and leaves out what does not fit.
        """
        if not self.memory:
            self.memory = max(512, 64 * math.ceil((3 * tree.megabytes() + 192) / 64))

    compress = True
    boot_limit = 1200   # ten seconds suffice in QEMU on two idle cores, thirty in Bochs
    cpus = 1

    def settings(self):
        """Lines of /t/guest."""
        raise NotImplementedError

    def command(self, initrd, extra):
        raise NotImplementedError

    def start(self, initrd, extra=''):
        for path in (self.console, self.report):
            with open(path, 'wb'):
                pass
        self._read, self._partial = 0, b''
        self._spawn(self.command(initrd, extra))

    def _spawn(self, command):
        # setpriv makes sure that the emulator does not outlive this process.
        log = open(os.path.join(self.work, 'emulator.log'), 'ab')
        with log:
            self.process = subprocess.Popen(       # pylint: disable=consider-using-with
                ['setpriv', '--pdeathsig=KILL', *command], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, cwd=self.work,
                env=self.environment())

    def environment(self):
        return dict(os.environ)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stand_still(self, seconds):
        """Stop the emulator for so long, as a hypervisor may stop a machine."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if not self.process:
            return
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sig)
            except ProcessLookupError:
                break
            try:
                self.process.wait(2)
                break
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()
        self.process = None

    def lines(self):
        """Complete report lines since the last call."""
        with open(self.report, 'rb') as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        parts = (self._partial + data).split(b'\n')
        self._partial = parts.pop()
        return [p.rstrip(b'\r').decode('utf-8', 'replace') for p in parts]

    def emulator_log(self):
        with open(os.path.join(self.work, 'emulator.log'), encoding='utf-8',
                  errors='replace') as file:
            return file.read()


class Qemu(Machine):
    """arm64, riscv64, and x86 without shadow stacks, by QEMU's translator.

    With icount two instructions take a nanosecond, whatever they are; the arm64 and
    riscv64 guests' performance counters then count instructions, as x86's TSC does.
    """

    icount = False
    board = ''      # more options for -M

    # Per architecture: program, part of the cache, machine, processor, console.
    KIND = {
        'arm64': ('qemu-system-aarch64', 'trixie', 'virt', 'max,pauth-impdef=on', 'ttyAMA0'),
        'riscv': ('qemu-system-riscv64', 'trixie', 'virt',
                  'rv64,zimop=on,zcmop=on,zicfiss=on,zicfilp=on', 'ttyS0'),
        'x86': ('qemu-system-x86_64', 'qemu-x86', 'pc', 'max', 'ttyS0'),
    }
    # Linux 6.18 maps shadow stacks wrongly where addresses may have 52 bits.
    CPU = {'arm64-6.18': ',lpa2=off'}

    # A busy host may leave an emulated processor without time for half a minute while the guest's
    # clock goes on. The kernel's watchdogs must not take that for a lockup or an RCU stall.
    WATCHDOGS = 'watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120'

    # An emulated clock needs no second clock to watch it, and emulated timers need no test.
    CMDLINE = {'x86': 'tsc=reliable no_timer_check mitigations=off'}

    def has_virtio(self):
        """Whether the kernel has virtio's ports built in, as those of clouds do since 6.12."""
        return not self.key.endswith(('-rt', '-6.1'))

    def settings(self):
        return 'report=/dev/vport0p1\n' if self.has_virtio() else 'report=/dev/ttyS1\n'

    def cmdline(self, extra=''):
        return (f'console={self.KIND[self.arch][4]} loglevel=5 panic=-1 cryptomgr.notests '
                f'proc_mem.force_override=always {self.WATCHDOGS} '
                f'{self.CMDLINE.get(self.arch, "")} {extra}').strip()

    def base(self):
        program, part, board, cpu, _ = self.KIND[self.arch]
        cpu += self.CPU.get(self.key, '')
        board += self.board and ',' + self.board
        share = os.path.join(CACHE, 'trixie/usr/share/qemu')
        argv = folder_program('trixie', program, '-L', share, '-M', board, '-cpu', cpu,
                              '-accel', 'tcg,thread=' + ('single' if self.icount else 'multi'),
                              '-smp', str(self.cpus),
                              '-m', f'{self.memory or 512}M', '-display', 'none',
                              '-no-reboot', '-nic', 'none', part=part)
        if self.arch == 'riscv':
            argv += ['-bios', os.path.join(
                CACHE, 'forky/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin')]
        if self.arch == 'x86':
            argv += ['-nodefaults', '-L', os.path.join(CACHE, 'qemu-x86/usr/share/seabios')]
        if self.icount:
            argv += ['-icount', 'shift=1,sleep=off']
        return argv

    def ports(self):
        report = ['-serial', 'chardev:report']
        if self.has_virtio():
            report = ['-device', 'virtio-serial-pci',
                      '-device', 'virtserialport,chardev=report,name=report,nr=1']
        return ['-monitor', 'none',
                '-chardev', f'file,id=console,path={self.console}', '-serial', 'chardev:console',
                '-chardev', f'file,id=report,path={self.report}', *report]

    def boot(self, initrd, extra):
        return ['-kernel', self.image, '-initrd', initrd,
                '-append', self.cmdline(extra)]

    def command(self, initrd, extra):
        return self.base() + self.ports() + self.boot(initrd, extra)

    def interactive(self, initrd, extra=''):
        return self.base() + ['-serial', 'mon:stdio'] + self.boot(initrd, extra)


class SavedQemu(Qemu):
    """A QEMU guest that was booted once, saved, and is restored for each run.

    It waits for an archive on a second virtio-serial port.
    """

    def __init__(self, key, work, memory=None):
        super().__init__(key, work, memory)
        self.feed = os.path.join(work, 'feed')
        self.qmp = os.path.join(work, 'qmp')

    def settings(self):
        return super().settings() + 'payload=/dev/vport0p2\n'

    def ports(self):
        return super().ports() + [
            '-chardev', f'socket,id=feed,path={self.feed},server=on,wait=off',
            '-device', 'virtserialport,chardev=feed,name=feed,nr=2',
            '-qmp', f'unix:{self.qmp},server=on,wait=off']

    def connect(self, path):
        sock = socket.socket(socket.AF_UNIX)
        until = time.monotonic() + 20
        while True:
            try:
                sock.connect(path)
                return sock
            except OSError:
                if time.monotonic() > until or not self.alive():
                    raise Unavailable(f'{self.key}: the emulator does not answer: '
                                      + self.emulator_log()[-300:]) from None
                time.sleep(0.01)

    def save(self, initrd, state):
        """Boot, wait for the greeting, and write the guest's state."""
        self.start(initrd)
        until = time.monotonic() + self.boot_limit
        while not any(l.startswith('hello ') for l in self.lines()):
            if time.monotonic() > until or not self.alive():
                raise Unavailable(f'{self.key}: does not boot: ' + self.emulator_log()[-300:])
            time.sleep(0.02)
        time.sleep(0.3)
        with self.connect(self.qmp) as sock:
            file = sock.makefile('rw', encoding='utf-8')
            file.readline()

            def ask(what, **arguments):
                file.write(json.dumps({'execute': what, 'arguments': arguments}) + '\n')
                file.flush()
                while True:
                    answer = json.loads(file.readline())
                    if 'return' in answer or 'error' in answer:
                        return answer

            ask('qmp_capabilities')
            answer = ask('migrate', uri=f'file:{state}.new')
            while 'error' not in answer:
                status = ask('query-migrate')['return'].get('status')
                if status == 'completed':
                    break
                if status == 'failed':
                    answer = {'error': 'migration failed'}
                time.sleep(0.05)
            if 'error' in answer:
                raise Unavailable(f'{self.key}: cannot be saved: {answer["error"]}')
        self.kill()
        os.rename(f'{state}.new', state)

    def restore(self, state, archive):
        for path in (self.console, self.report):
            with open(path, 'wb'):
                pass
        self._read, self._partial = 0, b''
        self._spawn(self.base() + self.ports() + ['-incoming', f'file:{state}'])
        sock = self.connect(self.feed)

        def send():
            with sock, open(archive, 'rb') as file:
                try:
                    sock.sendfile(file)
                    # The port is kept open, as a closed port loses what has not been read yet.
                    while self.alive():
                        time.sleep(0.1)
                except OSError:
                    pass

        threading.Thread(target=send, daemon=True).start()


class Bochs(Machine):
    """x86 with CET: only Bochs emulates it."""

    compress = False
    # cryptomgr.notests saves most. Without nohpet and tsc=reliable the kernel
    # calibrates for long. Bochs 3.0's compacted XRSTOR misplaces the shadow
    # stack pointer when PKRU or AVX state precedes it: keep both away.
    CMDLINE = ('rdinit=/init panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check nohpet '
               'cryptomgr.notests proc_mem.force_override=always '
               'initcall_blacklist=jent_mod_init,load_system_certificate_list '
               'clearcpuid=pku,avx')

    def settings(self):
        return 'report=/dev/ttyS1\n'

    def share(self, *path):
        return os.path.join(CACHE, 'trixie/usr', *path)

    def environment(self):
        env = dict(os.environ)
        env.update(LTDL_LIBRARY_PATH=self.share('lib/x86_64-linux-gnu/bochs/plugins'),
                   BXSHARE=self.share('share/bochs'), TERM='vt100',
                   TERMINFO=self.share('share/terminfo') if os.path.exists(
                       self.share('share/terminfo/v/vt100'))
                   else os.path.join(CACHE, 'trixie/usr/lib/terminfo'))
        return env

    def command(self, initrd, extra, console=None):
        iso = os.path.join(self.work, 'iso')
        os.makedirs(os.path.join(iso, 'isolinux'), exist_ok=True)
        shutil.copy(self.image, os.path.join(iso, 'vmlinuz'))
        os.replace(initrd, os.path.join(iso, 'initrd'))
        shutil.copy(self.share('lib/ISOLINUX/isolinux.bin'), os.path.join(iso, 'isolinux'))
        shutil.copy(self.share('lib/syslinux/modules/bios/ldlinux.c32'),
                    os.path.join(iso, 'isolinux'))
        with open(os.path.join(iso, 'isolinux/isolinux.cfg'), 'w', encoding='ascii') as out:
            out.write('default l\nprompt 0\ntimeout 1\nlabel l\n kernel /vmlinuz\n'
                      f' append initrd=/initrd console=ttyS0,115200 loglevel=5 '
                      f'{self.CMDLINE} {extra}\n')
        boot = os.path.join(self.work, 'boot.iso')
        subprocess.run(folder_program(
            'trixie', 'xorriso', '-as', 'mkisofs', '-quiet', '-o', boot, '-b',
            'isolinux/isolinux.bin', '-c', 'isolinux/boot.cat', '-no-emul-boot',
            '-boot-load-size', '4', '-boot-info-table', iso), check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(iso)
        memory = self.memory or 512
        com1 = f'mode=file, dev={self.console}' if console is None else f'mode=term, dev={console}'
        with open(os.path.join(self.work, 'bochsrc'), 'w', encoding='ascii') as out:
            out.write(f'''plugin_ctrl: unmapped=1, biosdev=1, speaker=0, extfpuirq=1, parallel=0, serial=1, gameport=0, iodebug=0
config_interface: textconfig
display_library: term
cpu: model=tigerlake, count=1, ips=50000000, reset_on_triple_fault=0, ignore_bad_msrs=1
memory: guest={memory}, host={memory}
romimage: file={self.share('share/bochs/BIOS-bochs-latest')}, options=fastboot
vgaromimage: file={self.share('share/vgabios/vgabios.bin')}
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={boot}, status=inserted
boot: cdrom
clock: sync=none, time0=local
com1: enabled=1, {com1}
com2: enabled=1, mode=file, dev={self.report}
log: {os.path.join(self.work, 'bochs.log')}
panic: action=fatal
error: action=report
info: action=ignore
debug: action=ignore
''')
        # Debian's build has the debugger in it and waits at its prompt.
        with open(os.path.join(self.work, 'cont.rc'), 'w', encoding='ascii') as out:
            out.write('c\n')
        return folder_program('trixie', 'bochs-bin', '-q', '-rc', 'cont.rc', '-f', 'bochsrc')

    def _spawn(self, command):
        # Bochs's text display needs a terminal; what it draws is thrown away.
        master, slave = pty.openpty()
        self.process = subprocess.Popen(       # pylint: disable=consider-using-with
            ['setpriv', '--pdeathsig=KILL', *command], stdin=slave, stdout=slave,
            stderr=slave, start_new_session=True, cwd=self.work, env=self.environment())
        os.close(slave)

        def drain():
            log = os.path.join(self.work, 'emulator.log')
            with open(log, 'ab') as out:
                try:
                    while True:
                        data = os.read(master, 65536)
                        if not data:
                            break
                        if out.tell() < 1 << 20:
                            out.write(data)
                            out.flush()
                except OSError:
                    pass
            os.close(master)

        threading.Thread(target=drain, daemon=True).start()


def machine(key, work, memory=None, saved=False, icount=False):
    if in_bochs(key):
        if saved or icount:
            raise Mistake(f'{key}: only QEMU guests can be saved or count instructions')
        return Bochs(key, work, memory)
    if saved and icount:
        raise Mistake(f'{key}: a saved guest does not count instructions')
    guest = (SavedQemu if saved else Qemu)(key, work, memory)
    guest.icount = icount
    return guest


def parts(key):
    """Parts of the cache that a guest needs."""
    more = ['forky'] if key.startswith('riscv') else []
    more += ['qemu-x86'] if key.startswith('x86-qemu') else []
    return ['trixie', f'kernel-{kernel_name(key)}', *more]


def init_program(arch):
    """The guest's init, built if make has not done so yet."""
    path = os.path.join(BUILD, 'guest', f'init-{arch}')
    done = subprocess.run(['make', '-s', '-C', TREE, path] if not os.path.isabs(path)
                          else ['make', '-s', '-C', TREE, f'B={BUILD}', path],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    path = path if os.path.isabs(path) else os.path.join(TREE, path)
    if done.returncode or not os.path.exists(path):
        raise Unavailable(f'{path}: cannot be built: {done.stdout.strip()[-300:]}')
    return path


def applets():
    """Names busybox answers to; the same list for every architecture."""
    for key in GUESTS:
        if key.startswith('x86'):
            path = os.path.join(CACHE, 'kernels', kernel_name(key), 'busybox')
            if os.path.exists(path):
                out = subprocess.run([path, '--list'], check=False, text=True,
                                     stdout=subprocess.PIPE).stdout.split()
                if out:
                    return out
    return ['sh', 'ls', 'cat', 'echo', 'sleep', 'mount', 'grep', 'sed', 'awk', 'dmesg', 'kill',
            'ps', 'mkdir', 'rm', 'cp', 'mv', 'ln', 'test', '[', 'true', 'false', 'seq', 'head',
            'tail', 'wc', 'sort', 'uniq', 'tr', 'cut', 'od', 'env', 'uname', 'date', 'timeout']


def base_tree(guest, path, root=None):
    tree = Tree(path, root)
    tree.add(init_program(guest.arch), 'init')
    tree.add_busybox(os.path.join(guest.kernel, 'busybox'), applets())
    return tree


def saved_state(key, memory):
    """Path of the saved guest of this build; those of older builds go."""
    arch = key.split('-')[0]
    digest = hashlib.sha256()
    program, part = Qemu.KIND[arch][:2]
    for path in (init_program(arch), os.path.join(CACHE, 'kernels', kernel_name(key), 'version'),
                 os.path.join(CACHE, part, 'usr/bin', program)):
        with open(path, 'rb') as file:
            digest.update(file.read())
    digest.update(str((memory, Qemu.KIND[arch], Qemu.CMDLINE.get(arch), Qemu.WATCHDOGS)).encode())
    where = os.path.join(CACHE, 'saved')
    os.makedirs(where, exist_ok=True)
    state = f'{key}-{digest.hexdigest()[:16]}'
    for name in os.listdir(where):
        if re.fullmatch(re.escape(key) + r'-[0-9a-f]{16}', name) and name != state:
            os.unlink(os.path.join(where, name))
    return os.path.join(where, state)
