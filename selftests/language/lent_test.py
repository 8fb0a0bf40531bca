#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python and JavaScript programs in stacks of ordinary users, by what the broker lends.

The environment may choose how many samples are taken (SAMPLES).
"""

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TOP, os.path.join(TOP, 'broker')]
from harness import (   # noqa: E402
    HERE, NOBODY, SHSTK, TMP, Process, Skip, check, main, one_line, run, stack_lines, test)
from judge import Judge    # noqa: E402
import lending    # noqa: E402
from node_judge import NodeJudge    # noqa: E402
import node_program    # noqa: E402
from truth_runs import SAMPLES, Judged, add_tests, lines_of, record    # noqa: E402

PYTHON = '/usr/bin/python3'
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'program.py')
NESTED = """def inner(n):
    for i in range(n): i * i % 7
def outer(n): inner(n)
"""
NAPS = """import time
def inner(): time.sleep(0.01)
def outer(): inner()
for i in range(100): outer()
"""
BUSY = NESTED + 'while True: outer(20000)'
BUSY_NODE = """function inner(n) { let s = 0; for (let i = 0; i < n; i++) s += i * i % 7; return s; }
function middle(n) { return inner(n) + 1; }
function outer(n) { return [n].map(middle)[0]; }
process.stdout.write("runs\\n"); while (true) outer(20000);
"""
FORKS = NESTED + """import os, sys, time
for i in range(2):
    if not os.fork():
        end = time.process_time() + float(sys.argv[1])
        while time.process_time() < end: outer(20000)
        os._exit(0)
for i in range(2): os.wait()
"""
# Interpreters, and programs that call inner() in outer() for so many seconds.
OTHERS = (
    ('php', '-r', 'function inner() { $s = 0; for ($i = 0; $i < 3000; $i++) $s += $i % 7; return $s; }'
     'function used() { $u = getrusage(); return $u["ru_utime.tv_sec"] + $u["ru_utime.tv_usec"] / 1e6; }'
     'function outer($s) { while (used() < $s) inner(); } outer($argv[1]);'),
    ('ruby', '-e', 'def inner() = 3000.times.sum { _1 % 7 }\n'
     'def outer(s) = (inner while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < s)\n'
     'outer(ARGV[0].to_f)'),
)


@functools.lru_cache(maxsize=None)
def begin_broker():
    """Begins a broker, which lasts. Gives how to run a command as a user who asks it."""
    lasting = contextlib.ExitStack()
    atexit.register(lasting.close)
    _, who = lasting.enter_context(lending.broker())
    return who


def user():
    """How to run a command as a user who asks a broker, in the present environment."""
    who = begin_broker()
    return {**who, 'env': {**os.environ, 'SHSTK_BROKER': who['env']['SHSTK_BROKER']}}


def give(path):
    """Makes a file the user's."""
    os.chown(path, NOBODY['user'], NOBODY['group'])


class Lent(Judged):
    """A program that is recorded as a user."""

    def record(self, word):
        give(word)
        return record('-b', '-n', SAMPLES, '-f', '1999', word, *self.make_command(word), **user())


def command(word):
    return PYTHON, PROGRAM, word, TMP, '1000'


RUN = add_tests(command, Judge, Lent)

@test
def part():
    """from the first sample with frames on, the frames of 99 of 100 are read"""
    words = RUN.judged[1].split()
    read, samples = int(words[3]), int(words[5])
    check(read >= 0.99 * samples, f'{read} of {samples}')


def forge(*kind, may_show=False, program='python3-forged'):
    """Records a program of the user's that forges an interpreter's memory (forged.c, forged_node.c)."""
    last = lines_of(record('-b', '-f', '999', '-r', '100', os.path.join(TMP, 'word'),
                           os.path.join(HERE, program), *kind, **user()))[-1]
    print('#', last)
    words = last.split()
    check(len(words) == 7 and int(words[3]) > 0, 'no frames are read')
    check(may_show or words[1] == '0', 'a function is shown')


@test
def forged():
    """forged frames end, and none of them is shown"""
    for kind in 'cycle', 'marks', 'deep', 'edge', 'kernel':
        forge(kind)
    for kind in 'lengths', 'task':
        forge(kind, may_show=True)


@test
def javascript():
    """functions of a JavaScript program are shown, none with another function, caller or line"""
    no = node_program.why_not()
    if no:
        raise Skip(no)
    judge, last = Lent(node_program.command(TMP, HERE), NodeJudge).judged
    has_place, read = (int(w) for w in last.replace(' of', '').split()[1:3])
    check(judge.counts['compared'] > 0, 'none is compared')
    check(not judge.wrong, '\n'.join(text[:400] for text in judge.wrong[:5]))
    check(has_place > read / 2, f'{has_place} of {read} are placed')


@test
def running_javascript():
    """functions of a JavaScript program that runs already are shown"""
    no = node_program.why_not()
    if no:
        raise Skip(no)
    with Process([*node_program.NODE.split(), '--no-turbo-inlining', '-e', BUSY_NODE], stdout=subprocess.PIPE,
                 **user()) as process:
        process.stdout.readline()
        # A busy recorder takes its time to look at the large file.
        for seconds in '1', '5', '25', '125':
            done = shstk_record('-p', str(process.pid), '--duration=' + seconds)
            if 'frames on the native stack' in done.stderr:
                raise Skip(one_line(done.stderr))
            shown, _ = shows(done, 'outer', 'inner')
            if shown:
                break
        process.kill()
    check(shown, done.stdout + done.stderr)


@test
def forged_javascript():
    """forged frames and objects of JavaScript end, and none of them is shown"""
    forge(program='forged/node')


@test
def beside():
    """beside a forged interpreter of the same user the stacks of another program are right"""
    with Process([SHSTK, 'record', '-F', '999', '-o', '/dev/null', '--format=folded', '--',
                  os.path.join(HERE, 'python3-forged'), 'deep'], **user()) as forger:
        run_of = Lent(command, Judge)
        judge = run_of.judged[0]
        forger.terminate()
    check(judge.counts['stacks'] > 0 and not judge.wrong, '\n'.join(judge.wrong[:5]))


def shows(done, *functions):
    """How much of a recording's samples is in stacks with all these functions."""
    check(done.returncode == 0, done.stderr)
    rows = [(stack.split(';'), value) for stack, value in stack_lines(done.stdout)]
    return sum(value for stack, value in rows if set(functions) <= set(stack)), \
        sum(value for _, value in rows)


def shstk_record(*options):
    return run(SHSTK, 'record', '-F', '499', '-o', '-', '--format=folded', *options, **user())


@test
def running():
    """functions of a process that runs already are shown"""
    # At first nothing is shown: the recorder has to look at the process, for which it needs a CPU.
    with Process([PYTHON, '-c', BUSY], **user()) as process:
        for seconds in 2, 10, 50:
            done = shstk_record('-p', str(process.pid), f'--duration={seconds}')
            shown, whole = shows(done, 'outer', 'inner')
            if shown > whole / 2:
                break
        process.kill()
    check(shown > whole / 2, done.stdout + done.stderr)


def record_longer(*command):
    """Records a command, which is told for how many seconds it works, for longer as long as most of its time is
    in other functions: the recorder has to look at its processes, for which it needs a CPU. Returns how it ended,
    and how much of the samples is in the functions."""
    for seconds in '0.5', '2', '8':
        done = shstk_record('--', *command, seconds)
        shown, whole = shows(done, 'outer', 'inner')
        if shown > whole / 2 or 'are not shown: ' in done.stderr:
            break
    return done, shown, whole


@test
def children():
    """functions of processes that it starts are shown"""
    done, shown, whole = record_longer(PYTHON, '-c', FORKS)
    check(shown > whole / 2, done.stdout + done.stderr)


@test
def others():
    """functions of PHP and Ruby programs are shown, too"""
    judged = 0
    for name, *program in OTHERS:
        if not shutil.which(name):
            continue
        done, shown, whole = record_longer(name, *program)
        if 'are not shown: ' in done.stderr and 'not permitted' not in done.stderr:
            print('#', one_line(done.stderr))   # another version than those that are known
            continue
        check(shown > whole / 2, done.stdout + done.stderr)
        judged += 1
    if not judged:
        raise Skip('no PHP and no Ruby of a known version is installed')


@test
def off_cpu():
    """functions are shown where they wait"""
    shown, whole = shows(shstk_record('--off-cpu', '--', PYTHON, '-c', NAPS), 'outer', 'inner')
    check(shown > whole / 2, f'{shown} of {whole}')


@test
def switched_off():
    """with --no-walk they are not shown, and one line says why"""
    with lending.broker('--no-walk') as (_, who):
        done = run(SHSTK, 'record', '-o', '-', '--format=folded', '--', PYTHON, '-c',
                   NESTED + 'outer(5000000)', **who)
    check(not shows(done, 'outer')[0], done.stdout)
    said = [line for line in done.stderr.splitlines() if 'are not shown' in line]
    check('not permitted' in one_line('\n'.join(said)), done.stderr)


def why():
    """Why nothing can be tested, or None. The folder becomes the user's."""
    if not os.path.exists(PYTHON):
        return PYTHON + ' is not installed'
    no = lending.why_not()
    if not no:
        give(TMP)
    return no


if __name__ == '__main__':
    sys.exit(main(why))
