#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Methods of Java programs in stacks: they are what the program itself says that runs.

Truth.java gives its thread the name of the calls that it makes then, and the kernel notes names in the
order of samples. It does so in the last two thirds of its time. The environment may say which Java is run (JAVA), and for how much CPU time (SECONDS).
"""

import collections
import os
import platform
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import SHSTK, TMP, Skip, check, main, run, test    # noqa: E402
from pprof import Decoded    # noqa: E402

JAVA = os.environ.get('JAVA', 'java').split()
SECONDS = os.environ.get('SECONDS', '2')
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'Truth.java')
THAWED = os.path.join(os.path.dirname(SOURCE), 'Thawed.java')
IN_HEAP = '[callers in the heap]'
THAWS = re.compile(r'\[StubRoutines \(continuation')
OURS = re.compile(r'Truth[.$]')
MAIN = 'Truth.main'
KNOWN = range(11, 26)       # releases of Java whose methods are known,
WITH_PLACES = *range(11, 23), 25      # and those that tell what compiled code has inlined
NAMED = 0.98    # of the samples, at least, have the name of each frame, are whole, and placed
CUT = '[truncated]'
TRIES = 5


def read_kinds():
    """Of each kind the calls that are in its stacks: method and line, the outermost first."""
    kinds = collections.defaultdict(list)
    with open(SOURCE, encoding='ascii') as file:
        for number, text in enumerate(file, 1):
            found = re.search(r'    // (\w+) ([\w$.]+?)(\.?)(\*\d+)?$', text)
            if found and not text.startswith('//'):
                kind, method, works, times = found.groups()
                kinds[kind].append((method, number, bool(works), int((times or '*1')[1:])))
    return {kind: in_order(calls) for kind, calls in kinds.items()}


def in_order(calls):
    """The calls of a kind, from run() inwards: the source has the callees first."""
    ret = []
    for method, line, works, times in sorted(calls, key=rank):
        ret += [(method, line)] * times
    return ret


def rank(call):
    method, line, works, times = call
    return works, 0 if method == 'Truth.run' else 1 if 'uter' in method else 2 if times > 1 else 3


def record(program, options=(), seconds=SECONDS):
    """Records a program for so many seconds: its profile, and what is said."""
    path = os.path.join(TMP, 'java.pb.gz')
    done = run(SHSTK, 'record', '--via=copies', '-F', '999', '-o', path, '--', *JAVA, *options, '-cp', TMP,
               program, str(seconds))
    check(done.returncode == 0, done.stderr)
    return Decoded(path), done.stderr


def frames_of(profile, ids):
    """Function and line of each frame of a stack, the outermost first."""
    for ident in reversed(ids):
        for line in reversed(profile.locations[ident][4]):
            yield profile.text(profile.functions[line[1]][2]), line.get(2, 0)


def record_all(program, options):
    """The same, of which nothing was lost: a name may be, and then the next samples have the one before."""
    for _ in range(TRIES):
        profile, said = record(program, options)
        if ' 0 lost' in said:
            return profile, said
    raise Skip('records were lost each time: the machine is too busy')


class Java:
    """What a recording of Truth.java has."""

    def __init__(self, *options):
        self.profile, self.said = record_all('Truth', options)
        self.counts = collections.Counter()
        self.wrong = []
        for ids, values, labels in self.profile.samples:
            self.judge(labels.get('thread'), list(frames_of(self.profile, ids)), values[0])

    def judge(self, kind, frames, number):
        if kind not in KINDS:
            return
        self.counts['all'] += number
        ours = [f for f in frames if OURS.match(f[0]) and '$$Lambda' not in f[0]]
        if not ours or ('[Interpreter]', 0) in frames:
            self.counts['unnamed'] += number
            return
        right = [(MAIN, CALL), *KINDS[kind]]
        if frames[0][0] == CUT and is_inner(ours, right):
            self.counts['cut'] += number
        elif ours[:-1] == right[:-1] and ours[-1] in (right[-1], (right[-1][0], 0)):
            self.counts['right'] += number
        elif is_begun(ours, right):
            self.counts['begun'] += number
        elif is_unplaced(ours, right):
            self.counts['unplaced'] += number
        else:
            self.counts['wrong'] += number
            self.wrong.append((kind, frames[0][0], ours))


def is_inner(ours, right):
    """Whether the methods are the innermost ones: the stack ends at one that was just entered or left."""
    return [method for method, _ in ours] == [method for method, _ in right[-len(ours):]]


def is_unplaced(ours, right):
    """Whether a caller has no line, as HotSpot was about to replace its code: what was inlined there is not
    known either."""
    methods = iter(method for method, _ in right)
    return (any(not line for _, line in ours[:-1]) and ours[-1][0] == right[-1][0] and
            all(method in methods for method, _ in ours))


def is_begun(ours, right):
    """Whether the calls are being made or left: the innermost method is at another line."""
    if ours[-1:] and ours[-1][0] == 'Truth.fail':
        return len(ours) == 4 and ours[:2] == right[:2]
    return (len(ours) <= len(right) and ours[:-1] == right[:len(ours) - 1] and
            ours[-1][0] == right[len(ours) - 1][0])


KINDS = read_kinds()
CALL = KINDS.pop('main')[0][1]


def release():
    """The release of Java that is run, such as 17."""
    said = run(*JAVA, '-XshowSettings:properties', '-version')
    found = re.search(r'java\.specification\.version = ([\d.]+)', said.stdout + said.stderr)
    return int(found[1].removeprefix('1.')) if found else 0


def compile_program(source):
    done = run('javac', '--release', '11', '-g', '-nowarn', '-d', TMP, source)
    check(done.returncode == 0, done.stderr)


def judged(*options):
    compile_program(SOURCE)
    java = Java(*options)
    n = java.counts
    print(f'# {" ".join(options)}: {dict(n)}')
    check(n['all'] > 500, f'{n}\n{java.said}')
    check(not n['wrong'], f'{n}: {java.wrong[:5]}')
    less = n['unnamed'] + n['cut'] + n['unplaced']
    check(n['all'] - less >= NAMED * n['all'], f'{n}\n{java.said}')
    check(n['right'] >= 0.9 * n['all'], str(n))


@test
def interpreted():
    """methods that are interpreted have their names, callers, and lines"""
    judged('-Xint')


@test
def inlined():
    """methods that are compiled have their callers with lines, also where these were inlined"""
    if release() not in WITH_PLACES:
        raise Skip(f'Java {release()} does not tell where they have called')
    judged(*(f'-XX:CompileCommand=dontinline,{method}' for method in ('Truth::*Spin', 'Truth$Circle::area')))


def kind_of_thawed(names):
    """What the stack of a virtual thread is; None: another stack, or one that is cut."""
    if names[-1] != 'Thawed.spin' or names[0] == CUT:
        return None
    if 'Thawed.outer' in names:
        return 'whole' if names.count('Thawed.middle') == 11 else 'wrong'
    first = next(i for i, name in enumerate(names) if name.startswith('Thawed.'))
    if THAWS.match(names[first - 1]):
        return 'unnamed'
    return 'in the heap' if names[first - 1] == IN_HEAP else 'wrong'


def count_thawed(seconds):
    """Samples of each kind of a run of Thawed.java, of which none is wrong, and what is said."""
    profile, said = record('Thawed', ['-XX:CompileCommand=dontinline,Thawed::*'], seconds)
    counts = collections.Counter()
    for ids, values, _ in profile.samples:
        names = [name for name, _ in frames_of(profile, ids)]
        kind = kind_of_thawed(names)
        counts[kind] += values[0]
        check(kind != 'wrong', f'{names}\n{said}')
    return counts, said


@test
def thawed():
    """a virtual thread's callers that are in the heap are said to be there"""
    if release() < 21:
        raise Skip(f'Java {release()} has no virtual threads')
    compile_program(THAWED)
    # The program works for a time by the clock, in which it may have to wait for a CPU.
    for times in 1, 5, 25:
        counts, said = count_thawed(float(SECONDS) * times)
        print(f'# {dict(counts)}')
        if counts['in the heap'] > 100:
            break
    check(counts['in the heap'] > 100 and counts['unnamed'] <= (1 - NAMED) * counts['in the heap'], said)
    check('not on the stack: shown as ' + IN_HEAP in said, said)


def why():
    """Why nothing can be tested, or None."""
    if platform.machine() != 'x86_64':
        return 'HotSpot is known on x86-64 only'
    if not shutil.which('javac') or not shutil.which(JAVA[0]):
        return 'java and javac are not installed'
    return None if release() in KNOWN else f'Java {release()} is not known'


if __name__ == '__main__':
    sys.exit(main(why))
