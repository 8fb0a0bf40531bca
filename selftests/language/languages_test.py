#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of languages (languages.py), of short runs: those whose functions are read have them."""

import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.dirname(FOLDER)]
from harness import HERE, Process, Skip, check, main, shstk, test    # noqa: E402
from languages import JUDGES, ROWS, is_installed, record, write_sources    # noqa: E402
from permitted import (    # noqa: E402
    check_not_refused, skip_for_machine, skip_unless_native_read, skip_unless_read)
from truth_runs import SKIP    # noqa: E402

SECONDS = 1
STACKS = '20'   # that are judged of a language


def shares_of(wanted, seconds=SECONDS):
    """The shares of the language with that name: whole stacks, functions in order, any of them."""
    _, compiler, command = next(row for row in ROWS if row[0] == wanted)
    if not is_installed(compiler, command):
        raise Skip(f'{wanted} is not installed')
    with tempfile.TemporaryDirectory() as folder:
        shares, said = record(folder, compiler, command, seconds)
    print('#', said.replace('\n', '\n# '))
    if 'not permitted' in said:
        raise Skip(said.splitlines()[-1])
    check(shares, said)
    print('# whole, in order, any:', *(f'{share:.1f} %' for share in shares))
    check(shares[0] <= 100 and shares[1] <= shares[2], 'shares are no parts of each other')
    return shares, said


def judge(wanted):
    """Most of the time is in the three functions, in their order."""
    shares, said = shares_of(wanted)
    skip_unless_read(said)
    check(shares[1] > 50, f'the functions are in order in {shares[1]:.1f} %')


@test
def python():
    """functions of Python, the caller outside"""
    judge('python3')


@test
def php():
    """functions of PHP, the caller outside"""
    judge('php')


@test
def ruby():
    """functions of Ruby, the caller outside"""
    judge('ruby')


@test
def node():
    """functions of JavaScript are shown"""
    # V8 inlines all three of them, and does not tell which one runs.
    # The kernel takes its time to verify the program for it, in which node may have ended.
    seconds, shown = SECONDS, None
    while not shown and seconds <= LONGEST:
        said = shares_of('node', seconds)[1]
        skip_unless_native_read(said)
        shown = re.search('[1-9][0-9]* of [0-9]* stacks of interpreters show the functions', said)
        seconds *= 2
    check(shown, said)


def judge_by_word(name):
    """Stacks of a language are compared with the word of its program."""
    if not is_installed(name):
        raise Skip(f'{name} is not installed')
    with tempfile.TemporaryDirectory() as folder:
        stacks = JUDGES[name](folder, ('-n', STACKS, '-f', '1999'))
    if stacks.status == SKIP:
        raise Skip(stacks.last)
    check(not stacks.complaint(), stacks.complaint())
    check(stacks.judge.counts['compared'], f'none is: {stacks.judge.counts}')


@test
def judged_python():
    """stacks of Python are compared with its program's word"""
    judge_by_word('python3')


@test
def judged_php():
    """so are those of PHP"""
    judge_by_word('php')


@test
def judged_node():
    """so are those of JavaScript"""
    judge_by_word('node')


@test
def judged_ruby():
    """so are those of Ruby"""
    judge_by_word('ruby')


def check_refused(program, words):
    """The program, which is a forged interpreter, is refused with these words."""
    seconds, said = SECONDS, ''
    with tempfile.TemporaryDirectory() as folder, Process([os.path.join(HERE, program)]) as process:
        while words not in said and seconds <= LONGEST:
            said = shstk('record', '-F', '499', f'--duration={seconds}', '-p', str(process.pid),
                         '-o', os.path.join(folder, 'out.folded')).stderr
            if words not in said:
                skip_for_machine(said)
            seconds *= 2
        process.kill()
    check('functions of programs in an interpreter are not shown: ' + words in said, said)


@test
def newer():
    """a version of V8 that is not known is refused by name"""
    check_refused('newer/node', 'JavaScript: V8 99.9 is not known')


@test
def free_threaded():
    """so is Python without its lock"""
    check_refused('free_threaded/python3', 'Python 3.14: a free-threaded build, which is not known')


@test
def other_code():
    """so is a Python 3.15 whose code does not tell where threads have their state"""
    check_refused('other_code/python3',
                  'Python 3.15: the code of its PyGILState_GetThisThreadState() is not known')


def perf_file(folder, command):
    """Records a command with a file of perf: what is said of interpreters then, and when that is unwound."""
    data, out = (os.path.join(folder, name) for name in ('perf.data', 'out.folded'))
    for done in (shstk('record', '--perf-data', data, '-o', out, '--', *command.split(), cwd=folder),
                 shstk('unwind', '-o', out, data)):
        if 'not permitted' in done.stderr:
            raise Skip(done.stderr.strip().splitlines()[-1])
        check(done.returncode == 0, done.stderr)
        print('#', done.stderr.strip().replace('\n', '\n# '))
        yield re.findall(r'of processes that have an interpreter \((\S+)\)', done.stderr)


@test
def perf_data():
    """a file of perf has no functions of an interpreter's program, which is said by the interpreter's name"""
    for name, command in ('python3', 'python3 t.py .3'), ('perl', 'perl t.pl .3'):
        if not shutil.which(name):
            raise Skip(f'{name} is not installed')
        with tempfile.TemporaryDirectory() as folder:
            write_sources(folder)
            for said in perf_file(folder, command):
                check(said and 'python' in said[0] if name == 'python3' else not said, f'{name}: {said}')


# A program whose interpreter is not read.
SPIN = "perl -e 'while ((times)[0] < {seconds}) {{ 1 for 1 .. 100000 }}'"


def judge_beside(*parts):
    """Where these parts of a command run one after the other, stacks are walked in the kernel, and
    functions of JavaScript and Python are shown."""
    for name in 'node', 'python3', 'perl':
        if not shutil.which(name):
            raise Skip(f'{name} is not installed')
    seconds, missing = SECONDS, 'all'
    with tempfile.TemporaryDirectory() as folder:
        write_sources(folder)
        out = os.path.join(folder, 'out.folded')
        alone = shstk('record', '--via=bpf', '-o', out, '--', 'true')
        if alone.returncode:
            check_not_refused(alone.stderr)
            raise Skip('stacks are not walked here: ' + alone.stderr.strip().splitlines()[-1])
        while missing and seconds <= LONGEST:
            command = '; '.join(parts).format(seconds=seconds, folder=folder)
            said = shstk('record', '-F', '499', '-o', out, '--', 'sh', '-c', command).stderr
            skip_unless_native_read(said)
            with open(out, encoding='utf-8') as of:
                text = of.read()
            missing = [name for name, pattern, where in (
                ('a walk', '[1-9][0-9]* of [0-9]* stacks were walked in the kernel', said),
                ('JavaScript', r'\(t\.js\)', text),
                ('Python', r'<module> \(t\.py\)', text)) if not re.search(pattern, where)]
            seconds *= 2
    print('#', said.strip().replace('\n', '\n# '))
    check(not missing, f'missing: {missing}')


JS, PY = 'node {folder}/t.js {seconds}', 'python3 {folder}/t.py {seconds}'


@test
def walk_then_node():
    """JavaScript that begins when stacks are walked already is shown"""
    judge_beside(SPIN, JS, PY)


@test
def node_then_walk():
    """stacks are walked although JavaScript was met first"""
    judge_beside(JS, SPIN, PY)


@test
def python_then_node():
    """JavaScript is shown that is met after Python, and stacks are walked"""
    judge_beside(PY, JS, SPIN)


@test
def java():
    """a program of Java is recorded"""
    shares_of('java')


@test
def lua():
    """a program in LuaJIT's interpreter is recorded"""
    shares_of('luajit -joff')


@test
def parts():
    """each of several profiles counts its own stacks of interpreters"""
    if not shutil.which('python3'):
        raise Skip('python3 is not installed')
    seconds, shown = SECONDS, []
    # On a busy machine there may be one part only, or a last one without such stacks.
    while (len(shown) < 2 or not shown[-1]) and seconds <= LONGEST:
        with tempfile.TemporaryDirectory() as folder:
            write_sources(folder)
            said = shstk('record', '-F', '499', '--every=400ms', '-o', os.path.join(folder, 'out.folded'), '--',
                         'python3', os.path.join(folder, 't.py'), str(seconds)).stderr
        skip_unless_read(said)
        shown = [sum(int(n) for n in re.findall(r'of (\d+) stacks of interpreters show', text))
                 for text in re.split(r'wrote \S+\n', said) if text.strip()]
        seconds *= 2
    print('# ...', *said.splitlines()[-5:], sep='\n# ')
    samples, lost = map(int, re.findall(r': (\d+) samples?, (\d+) lost', said)[-1])
    check(len(shown) > 1 and shown[-1], said)
    # Frames whose sample was lost, or is the first one of the last part, are counted, too.
    check(shown[-1] <= samples + lost + 1, f'{shown[-1]} of {samples} samples, {lost} lost')


DEEP_PYTHON = '''
import sys, time
sys.setrecursionlimit(100000)
def inner():
    while time.process_time() < float(sys.argv[1]):
        for i in range(10000): pass
def ping(n):
    pong(n - 1)
def pong(n):
    ping(n - 1) if n else inner()
def outer():
    ping(int(sys.argv[2]))
outer()
'''
DEEP_PHP = '''<?php
function inner() {
    global $argv;
    while (getrusage()["ru_utime.tv_sec"] < $argv[1])
        for ($i = 0; $i < 10000; $i++);
}
function ping($n) { pong($n - 1); }
function pong($n) { if ($n) ping($n - 1); else inner(); }
function outer() { ping(3001); }
outer();
'''
DEEP_RUBY = '''
def inner
  nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < ARGV[0].to_f
end
def ping(n) = pong(n - 1)
def pong(n) = n > 0 ? ping(n - 1) : inner
def outer = ping(3001)
outer
'''
LONGEST = 16    # seconds that a program works, at most


def judge_deep(interpreter, program):
    """A stack has both ends. How many samples are needed for that depends on the machine."""
    if not shutil.which(interpreter):
        raise Skip(f'{interpreter} is not installed')
    seconds, found = 1, False
    with tempfile.TemporaryDirectory() as folder:
        file, out = os.path.join(folder, 'program'), os.path.join(folder, 'out.folded')
        with open(file, 'w', encoding='utf-8') as to:
            to.write(program)
        while not found and seconds <= LONGEST:
            said = shstk('record', '-F', '199', '-o', out, '--', interpreter, file,
                         str(seconds), '3001').stderr
            skip_unless_read(said)
            with open(out, encoding='utf-8') as of:
                found = any(re.search(BOTH_ENDS, line) for line in of)
            seconds *= 2
    print('#', said.strip().replace('\n', '\n# '))
    check(found, 'no stack has both ends')
    check('deeper than 1024 frames' in said, said)


BOTH_ENDS = r';outer;(ping;)?\[recursion of 2 calls\];(pong;)?ping;pong;(ping;pong;)?inner[; ]'


@test
def deep_python():
    """a deep recursion of Python has both ends, and what repeats once"""
    judge_deep('python3', DEEP_PYTHON)


@test
def deeper_python_is_told():
    """where there are more functions than are read, the profile says so"""
    seconds, said = 1, ''
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out.txt')
        while 'are too deep to show the functions' not in said and seconds <= LONGEST:
            err = shstk('record', '-F', '199', '-o', out, '--', 'python3', '-c', DEEP_PYTHON,
                        str(seconds), '9001').stderr
            skip_unless_read(err)
            with open(out, encoding='utf-8') as of:
                said = of.read()
            seconds *= 2
    check('are too deep to show the functions' in said, err + said)


@test
def deep_php():
    """a deep recursion of PHP has both ends, and what repeats once"""
    judge_deep('php', DEEP_PHP)


@test
def deep_ruby():
    """a deep recursion of Ruby has both ends, and what repeats once"""
    judge_deep('ruby', DEEP_RUBY)


def why():
    """Why nothing can be tested, or None."""
    return 'root only loads BPF programs' if os.geteuid() else None


if __name__ == '__main__':
    sys.exit(main(why))
