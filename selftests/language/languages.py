#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `shstk record` shows of programs in many languages, as a table.

    languages.py [SECONDS]

Each program calls inner() from middle() from outer(), for SECONDS (3) of CPU time. By time of the
profile: how much has whole stacks, all three functions in their order, and any of them. For
languages whose functions are read by BPF also, of another program:

    right, wrong    stacks, by that program's own word
    torn            stacks that were read and have native functions only, as not all frames could be placed
    none %          samples from the first one with frames on of which none was read, of all threads
    us              what a sample takes the BPF program, as the kernel measures it

The environment may choose how many stacks are judged (SAMPLES), and of which Python (PYTHON). Languages
that are not installed are left out.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [FOLDER, os.path.dirname(FOLDER)]
from harness import HERE, SHSTK    # noqa: E402
from judge import Judge    # noqa: E402
from node_judge import NodeJudge    # noqa: E402
import node_program    # noqa: E402
from php_judge import PhpJudge    # noqa: E402
import php_program    # noqa: E402
from program_time import measured, runs_of    # noqa: E402
from ruby_judge import RubyJudge    # noqa: E402
import ruby_program    # noqa: E402

NAMES = 'outer', 'middle', 'inner'
SAMPLES = os.environ.get('SAMPLES', '5000')    # stacks that are judged
PYTHON = os.environ.get('PYTHON', 'python3')    # the interpreter whose stacks are judged
LOOK = .1   # seconds between two looks at what the BPF program took
SOURCES = {
    't.py': '''import sys, time
def inner(n):
    s = 0
    for i in range(n): s += i * i % 7
    return s
def middle(n): return inner(n) + 1
def outer(n): return middle(n) + 1
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end: outer(20000)
''',
    't.php': '''<?php
function inner($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s += $i * $i % 7; return $s; }
function middle($n) { return inner($n) + 1; }
function outer($n) { return middle($n) + 1; }
function used() { $u = getrusage(); return $u['ru_utime.tv_sec'] + $u['ru_utime.tv_usec'] / 1e6; }
while (used() < (float)$argv[1]) outer(20000);
''',
    't.js': '''function inner(n) { let s = 0; for (let i = 0; i < n; i++) s += i * i % 7; return s; }
function middle(n) { return inner(n) + 1; }
function outer(n) { return middle(n) + 1; }
while (process.cpuUsage().user < process.argv[2] * 1e6) outer(20000);
''',
    'T.java': '''class T {
    static long inner(int n) { long s = 0; for (int i = 0; i < n; i++) s += (long)i * i % 7; return s; }
    static long middle(int n) { return inner(n) + 1; }
    static long outer(int n) { return middle(n) + 1; }
    public static void main(String[] a) {
        var of = java.lang.management.ManagementFactory.getThreadMXBean();
        long k = 0, end = (long)(Double.parseDouble(a[0]) * 1e9);
        while (of.getCurrentThreadCpuTime() < end) k += outer(20000);
        if (k == 1) System.out.println(k);
    }
}
''',
    't.lua': '''function inner(n) local s = 0 for i = 1, n do s = s + i * i % 7 end return s end
function middle(n) return inner(n) + 1 end
function outer(n) return middle(n) + 1 end
while os.clock() < tonumber(arg[1]) do outer(20000) end
''',
    't.rb': '''def inner(n)
  s = 0
  n.times { |i| s += i * i % 7 }
  s
end
def middle(n) = inner(n) + 1
def outer(n) = middle(n) + 1
outer(20000) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < ARGV[0].to_f
''',
    't.pl': '''sub inner { my $s = 0; $s += $_ * $_ % 7 for 1 .. $_[0]; $s }
sub middle { inner($_[0]) + 1 }
sub outer { middle($_[0]) + 1 }
outer(20000) while (times)[0] < $ARGV[0];
''',
    'T.cs': '''class T {
  const System.Runtime.CompilerServices.MethodImplOptions No = System.Runtime.CompilerServices.MethodImplOptions.NoInlining;
  [System.Runtime.CompilerServices.MethodImpl(No)] static int inner(int n) { int s = 0; for (int i = 0; i < n; i++) s = (s + i * 3) % 7919; return s; }
  [System.Runtime.CompilerServices.MethodImpl(No)] static int middle(int n) { return inner(n) + 1; }
  [System.Runtime.CompilerServices.MethodImpl(No)] static int outer(int n) { return middle(n) + 1; }
  static void Main(string[] a) {
    var p = System.Diagnostics.Process.GetCurrentProcess();
    int k = 0;
    while (p.TotalProcessorTime.TotalSeconds < double.Parse(a[0])) { k += outer(20000); p.Refresh(); }
    if (k == 1) System.Console.WriteLine(k);
  }
}
''',
}
# Name, what compiles the source in the folder, and the command; the seconds come behind it.
ROWS = [
    ('python3', None, 'python3 t.py'),
    ('php', None, 'php t.php'),
    ('node', None, 'node t.js'),
    ('node --perf-basic-prof', None, 'node --perf-basic-prof t.js'),
    ('java', 'javac T.java', 'java T'),
    ('java -Xint', 'javac T.java', 'java -Xint T'),
    ('luajit', None, 'luajit t.lua'),
    ('luajit -joff', None, 'luajit -joff t.lua'),
    ('lua5.4', None, 'lua5.4 t.lua'),
    ('ruby', None, 'ruby t.rb'),
    ('perl', None, 'perl t.pl'),
    ('mono --jitmap', 'mcs T.cs', 'mono --jitmap T.exe'),
]


def in_order(functions):
    """Whether the three functions are in a stack, the outermost first."""
    rest = iter(functions)
    return all(any(re.search(rf'(^|[^A-Za-z]){name}(?![a-z])', f) for f in rest) for name in NAMES)


def evaluate(path):
    """Shares in percent: whole stacks, functions in order, any of the functions."""
    total = whole = order = some = 0
    with open(path, errors='replace') as file:
        for row in file:
            stack, _, value = row.rstrip('\n').rpartition(' ')
            functions, value = stack.split(';'), int(value)
            total += value
            whole += value * ('[truncated]' not in functions)
            order += value * in_order(functions)
            some += value * any(re.search(rf'(^|[^A-Za-z]){name}(?![a-z])', f)
                                for f in functions for name in NAMES)
    return [100 * part / max(total, 1) for part in (whole, order, some)]


def is_installed(*commands):
    return all(command is None or shutil.which(command.split()[0]) for command in commands)


def write_sources(folder):
    for name, source in SOURCES.items():
        with open(os.path.join(folder, name), 'w') as file:
            file.write(source)


def record(folder, compiler, command, seconds):
    """The shares of a program, or None, and what is said."""
    write_sources(folder)
    if compiler and subprocess.run(compiler.split(), cwd=folder, capture_output=True).returncode:
        return None, f'{compiler} fails'
    out = os.path.join(folder, 'out.folded')
    ended = subprocess.run([SHSTK, 'record', '-F', '499', '-o', out, '--', *command.split(), str(seconds)],
                           cwd=folder, capture_output=True, text=True)
    return evaluate(out) if os.path.exists(out) else None, ended.stderr.strip()


class Watch(threading.Thread):
    """Looks at what the BPF program of a process takes a sample, until that ends: .microseconds."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.ended, self.microseconds = pid, threading.Event(), 0
        self.start()

    def run(self):
        while not self.ended.wait(LOOK):
            try:
                ns, runs = runs_of(self.pid)
            except OSError:     # it has ended
                return
            if runs:
                self.microseconds = ns / runs / 1000

    def end(self):
        self.ended.set()
        self.join()
        return self.microseconds


class Stacks:
    """What truth.c says of a program's stacks, which are judged while they come.

    .status is how it ended, .last its last line, .microseconds what a sample took, .judge the judge.
    """

    def __init__(self, folder, command, kind, options):
        word = os.path.join(folder, 'word')
        with open(word, 'wb') as file:
            file.truncate(4096)
        self.judge, self.last = kind(folder), None
        with measured(), subprocess.Popen([os.path.join(HERE, 'truth'), *options, word, *command], text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                          errors='replace') as truth:
            watch = Watch(truth.pid)
            for line in truth.stdout:
                if self.last is not None:
                    self.judge.take(self.last)
                self.last = line.rstrip('\n')
            # It is still there, as nobody has waited for it.
            self.microseconds = watch.end()
            self.status = truth.wait()

    def complaint(self):
        """Why nothing is known, or None."""
        return (self.last or 'truth says nothing') if self.status or not self.last else None

    def numbers(self):
        """Stacks that were placed, stacks that were read, samples."""
        return map(int, re.findall(r'\d+', self.last))


def make_cells(stacks):
    """The cells of the table, or why there are none."""
    if stacks.complaint():
        return '  ' + stacks.complaint()
    has_place, read, samples = stacks.numbers()
    it = stacks.judge
    return (f'{it.counts["stacks"] - it.counts["wrong"]:8}{it.counts["wrong"]:8}{read - has_place:8}'
            f'{100 * (samples - read) / max(samples, 1):8.1f}{stacks.microseconds:8.2f}')


def judge_python(folder, options):
    command = [PYTHON, os.path.join(FOLDER, 'program.py'), os.path.join(folder, 'word'), folder]
    # The judge reads what the program writes when it begins.
    subprocess.run([*command, '0'], check=True)
    return Stacks(folder, [*command, '1000000'], Judge, options)


def judge_php(folder, options):
    php_program.write(folder)
    return Stacks(folder, ['php', os.path.join(folder, 'functions.php'), os.path.join(folder, 'word')],
                  PhpJudge, options)


def judge_node(folder, options):
    node_program.write(folder)
    os.environ['WORD'] = os.path.join(folder, 'word')
    return Stacks(folder, ['node', os.path.join(folder, 'functions.js'), os.path.join(HERE, 'word.node')],
                  NodeJudge, options)


def judge_ruby(folder, options):
    ruby_program.write(folder)
    return Stacks(folder, ['ruby', '-W0', os.path.join(folder, 'functions.rb'),
                           os.path.join(folder, 'word')], RubyJudge, options)


JUDGES = {'python3': judge_python, 'php': judge_php, 'node': judge_node, 'ruby': judge_ruby}


def make_row(name, compiler, command, seconds):
    with tempfile.TemporaryDirectory() as folder:
        shares, said = record(folder, compiler, command, seconds)
        if not shares:
            return f'{name:24}{said.splitlines()[-1]}'
        row = f'{name:24}' + ''.join(f'{share:8.1f}' for share in shares)
        options = '-n', SAMPLES, '-f', '1999'
        return row + (make_cells(JUDGES[name](folder, options)) if name in JUDGES else '')


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f'{"":24}{"whole %":>8}{"order %":>8}{"any %":>8}{"right":>8}{"wrong":>8}'
          f'{"torn":>8}{"none %":>8}{"us":>8}')
    for name, compiler, command in ROWS:
        if is_installed(compiler, command):
            print(make_row(name, compiler, command, seconds), flush=True)


if __name__ == '__main__':
    main()
