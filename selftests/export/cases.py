# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases in KTAP and the conversation with driver.c, for the scripts in this folder."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import Skip  # noqa: E402

BUILD = os.path.join(harness.BUILD, 'selftests', 'export')
VARIANTS = ('native', 'asan')

CASES = []

# A compiler's cache may answer with the debug information of another folder, whose name is in it.
os.environ['CCACHE_DISABLE'] = '1'


class Failure(Exception):
    """The driver ended or gave an unexpected answer."""


def case(function):
    """Marks a function as a case; its docstring is the name."""
    CASES.append(function)
    return function


def sanitized_case(function):
    """Marks a function as a case that is useful only with sanitizers."""
    function.variants = ('asan',)
    return case(function)


def quote(word):
    """Returns a word of a command with tab, line break and % escaped."""
    raw = os.fsencode(str(word))
    return b''.join(b'%%%02x' % c if c < 0x20 or c in (0x25, 0x7f) else bytes([c])
                    for c in raw)


class Driver:
    """One run of driver.c."""

    def __init__(self, variant, debug_dirs=None, option=None, through=()):
        args = [*through, os.path.join(BUILD, f'driver-{variant}')]
        if debug_dirs is not None:
            args.append(debug_dirs)
        if option:
            args.append(option)
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, *words):
        """Sends a command. Returns its lines, and the error text or None."""
        self.process.stdin.write(b'\t'.join(quote(w) for w in words) + b'\n')
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline().decode('utf-8', 'strict')
            if not line:
                raise Failure(f'driver ended at {words}: {self.process.wait()}')
            line = line[:-1]
            if line == 'ok':
                return lines, None
            if line.startswith('error '):
                return lines, line[6:]
            lines.append(line)

    def do(self, *words):
        """Sends a command that must not fail. Returns its lines."""
        lines, error = self.ask(*words)
        if error:
            raise Failure(f'{words}: {error}')
        return lines

    def lookup(self, proc, addr, how='pc'):
        """Returns the frames of an address, innermost first."""
        return [Frame(line) for line in self.do('lookup', proc, hex(addr), how)]

    def cpu(self):
        """Returns the CPU time that the driver has used, in seconds."""
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(200)
        self.process.stdout.close()
        if code:
            raise Failure(f'driver ended with {code}')


class Frame:
    """A frame as driver.c prints it."""

    def __init__(self, line):
        (self.function, self.linkage, self.file, number, start, inlined, offset,
         self.module, self.build_id, resolved) = line.split('\t')
        self.line = int(number)
        self.start_line = int(start)
        self.inlined = inlined == '1'
        self.offset = int(offset, 16)
        self.resolved = resolved == '1'

    def __repr__(self):
        return f'{self.function} {self.file}:{self.line}{" inlined" if self.inlined else ""}'


def run(*args, **more):
    """Runs a program that must succeed. Returns its output."""
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f'no {program} here')


def equal(have, want, what=''):
    if have == want:
        return
    if isinstance(have, dict) and isinstance(want, dict):
        have, want = [{k: v for k, v in a.items() if b.get(k) != v}
                      for a, b in ((have, want), (want, have))]
    if have != want:
        raise AssertionError(f'{what}: have {have!r:.1000}, want {want!r:.1000}')


class Elf:
    """An ELF file and where a test pretends it is mapped."""

    BASE = 0x7000_0000_0000

    def __init__(self, path):
        self.path = path
        self.bias = self.segment = None
        for line in run('readelf', '-lW', path).splitlines():
            f = line.split()
            if f[:1] == ['LOAD'] and 'E' in f[6:8]:
                offset, addr, size = int(f[1], 16), int(f[2], 16), int(f[4], 16)
                self.segment = (offset & ~4095, addr & ~4095, (addr + size + 4095) & ~4095)
        self.symbols = {}
        for line in run('nm', path, stderr=subprocess.DEVNULL).splitlines():
            f = line.split(None, 2)
            if len(f) == 3:
                self.symbols[f[2]] = int(f[0], 16)

    def map(self, driver, proc, base=BASE, path=None, build_id=()):
        offset, start, end = self.segment
        driver.do('map', proc, hex(base + start), hex(base + end), hex(offset),
                  path or self.path, *build_id)

    def addr(self, symbol, offset=0, base=BASE):
        return base + self.symbols[symbol] + offset


def build_id(path):
    for line in run('readelf', '-n', path).splitlines():
        if 'Build ID:' in line:
            return line.split()[-1]
    return None


def in_folder(variant, function):
    """Returns a test that runs a case with one variant, in a folder of its own."""
    def test():
        with tempfile.TemporaryDirectory(prefix='tmp-', dir=BUILD) as folder:
            function(variant, folder)
    return test


def main():
    """Runs all cases with each variant of the library; prints KTAP on standard output."""
    os.environ.setdefault('ASAN_OPTIONS', 'detect_leaks=1')
    return harness.run_tests([
        (f'{variant}: {function.__doc__}', in_folder(variant, function))
        for variant in VARIANTS for function in CASES
        if function.__module__ == '__main__' and
        variant in getattr(function, 'variants', VARIANTS) and
        (not sys.argv[1:] or function.__name__ in sys.argv[1:])])
