# SPDX-License-Identifier: GPL-2.0-or-later
"""Building Go programs for the tests, and reading what they are made of."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import BUILD as B, SHSTK, TOP, Skip, check, run_tests  # noqa: E402,F401

WHERE = os.path.join(B, 'selftests', 'go')
CACHE = os.environ.get('SHSTK_CACHE', os.path.expanduser('~/.cache/shstk'))

PATIENCE = 450      # seconds that a command may take at most

# The ways to build a program: (link flags, build mode, cgo).
VARIANTS = {
    'static': ('', '', False),
    'stripped': ('-s -w', '', False),
    'pie': ('', 'pie', False),
    'stripped-pie': ('-s -w', 'pie', False),
    'cgo': ('', '', True),
    'stripped-cgo': ('-s -w', '', True),
    'cgo-pie': ('', 'pie', True),
    'stripped-cgo-pie': ('-s -w', 'pie', True),
}
# The variant with symbols that belongs to a variant without.
WHOLE = {
    'stripped': 'static',
    'stripped-pie': 'pie',
    'stripped-cgo': 'cgo',
    'stripped-cgo-pie': 'cgo-pie',
}
# Further files of a program, and the first release that can compile them.
PARTS = {
    'where.go': [('generics.go', (1, 18))],
    'named.go': [('named_generics.go', (1, 18))],
}


def toolchains(only_native=True):
    """Installed Go releases: name and GOROOT, the native one first."""
    found = []
    done = subprocess.run(['go', 'env', 'GOROOT', 'GOVERSION'], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False) \
        if any(os.access(os.path.join(p, 'go'), os.X_OK)
               for p in os.environ.get('PATH', '').split(':')) else None
    if done and not done.returncode:
        root, version = done.stdout.split()[:2]
        found.append((re.match(r'go(\d+\.\d+)', version).group(1), root))
    if only_native:
        return found
    folder = os.path.join(CACHE, 'go')
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not re.fullmatch(r'\d+\.\d+', name):
            continue    # the folder that toolchains fetches with, not a release
        found.append((name, os.path.join(folder, name, 'usr', 'lib', 'go-' + name)))
    return found


def emulator():
    """What runs arm64 programs here."""
    for path in os.path.join(CACHE, 'user', 'qemu-aarch64'), 'qemu-aarch64', \
            'qemu-aarch64-static':
        if shutil.which(path):
            return [path]
    raise Skip('no qemu-aarch64: apt-get install qemu-user-static')


def release(version):
    """1.19 as (1, 19)."""
    return tuple(int(n) for n in version.split('.')[:2])


def build(version, root, source, variant, arch='amd64'):
    """Build a program of selftests/go; returns its path."""
    flags, mode, cgo = VARIANTS[variant]
    folder = os.path.join(WHERE, f'{version}-{arch}')
    out = os.path.join(folder, f'{os.path.basename(source)[:-3]}-{variant}')
    os.makedirs(folder, exist_ok=True)
    env = dict(os.environ, GOROOT=root, GOTOOLCHAIN='local', GOFLAGS='', GO111MODULE='off',
               GOCACHE=os.path.join(WHERE, 'cache-' + version), GOARCH=arch, GOOS='linux',
               CGO_ENABLED='1' if cgo else '0', HOME=os.environ.get('HOME', '/'))
    if arch == 'arm64':
        env['CC'] = os.environ.get('ARM64', 'aarch64-linux-gnu-') + 'gcc'
    command = [os.path.join(root, 'bin', 'go'), 'build', '-o', out]
    if flags:
        command.append('-ldflags=' + flags)
    if mode:
        command.append('-buildmode=' + mode)
    # Variants with cgo need a file with C in it, as the program's own source may have none.
    sources = [source] + (['calls.go'] if cgo else [])
    sources += [name for name, since in PARTS.get(source, []) if release(version) >= since]
    command += [os.path.join(TOP, 'selftests', 'go', name) for name in sources]
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'{" ".join(command)}: {done.stdout[-1500:]}')
    return out


def functions(path):
    """Functions of the symbol table that Go's compiler made: (start, size, name)."""
    with open(path, 'rb') as f:
        data = f.read()
    shoff, = struct.unpack_from('<Q', data, 40)
    count, = struct.unpack_from('<H', data, 60)
    heads = [struct.unpack_from('<IIQQQQIIQQ', data, shoff + 64 * i) for i in range(count)]
    found = []
    for head in heads:
        if head[1] != 2:
            continue
        names = heads[head[6]][4]
        for at in range(head[4], head[4] + head[5], 24):
            name, info, _, _, value, size = struct.unpack_from('<IBBHQQ', data, at)
            if info & 15 != 2 or not size:
                continue
            text = data[names + name:data.index(b'\0', names + name)].decode()
            found.append((value, size, text))
    return found


def start(path):
    """Start a program that says when it is ready, with its input open."""
    child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if not child.stdout.readline().startswith('ready'):
        child.kill()
        raise RuntimeError(f'{path} does not run')
    return child


def trace(*args):
    """What `shstk trace --json` tells, of a process or a core file. A machine that is busy may not stop a
    thread in time, or let it go before all was read: then it is traced again."""
    for _ in range(20):
        done = subprocess.run([SHSTK, 'trace', '--json', *args], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE)
        if not done.returncode and 'memory not readable' not in done.stdout:
            break
    if done.returncode:
        raise RuntimeError(f'trace {args}: {done.returncode}: {done.stderr[-500:]}')
    return json.loads(done.stdout)


def make_core(path, folder):
    """Have a program leave a core file; its name."""
    script = 'ulimit -c unlimited; exec "$1"'
    with subprocess.Popen(['sh', '-c', script, 'sh', path], cwd=folder, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as child:
        child.stdout.readline()
        child.communicate('core', timeout=PATIENCE)
    found = [f for f in os.listdir(folder) if f.startswith('core')]
    if not found:
        with open('/proc/sys/kernel/core_pattern', encoding='utf-8') as f:
            raise Skip(f'no core file in its folder; core_pattern is {f.read().strip()!r}')
    return os.path.join(folder, found[0])


def wait_ready(child, path):
    """Until a recorded program works. Skips where perf events would be needed and are not
    permitted."""
    if child.stdout.readline().startswith('ready'):
        return
    text = child.communicate()[1][-500:]
    if child.returncode == 125 and 'not permitted' in text:
        raise Skip(text.strip())
    raise RuntimeError(f'{path} does not run: {text}')


def as_test(function, args):
    """A case as a test: what it returns is what is wrong."""
    def test():
        wrong = function(*args)
        check(not wrong, wrong)
    return test


def main(cases):
    """Run all cases: (name, function, its arguments), which returns what is wrong. They have
    limits of their own."""
    todo = [(name, as_test(function, args)) for name, function, args in cases]
    if not todo:
        print('1..0 # SKIP no Go here: apt-get install golang-go')
        return 4
    return run_tests(todo, limit=0)
