#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The Go package shstktraceback: profiles of runtime/pprof show Go, C, Go and C again. And
shstktraceback/symbolize, with which they and the runtime's own traces have C's names.

Prints KTAP; 4: there is no Go here.

usage: traceback_test [--suites]

--suites: by all releases that selftests/go/toolchains fetched, too.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import common       # noqa: E402
import tracebacks   # noqa: E402

SOURCE = os.path.join(common.TOP, 'selftests', 'go', 'traceback')
FIRST = (1, 19)     # the first release for which the packages are made
SIGNALS = 5000      # signals that a storm sends at least

# The chain of calls, innermost first. cgo's names have a number in them, and in pprof of Go 1.25 no
# underscore in front.
CHAIN = re.compile('c_spin _?cgo_\\S+_c_spin (runtime.\\S+ )+main._Cfunc_c_spin main.goInner '
                   '(main.\\S+ )?(_?cgoexp_\\S+ )?(main.\\S+ )?(runtime.\\S+ )+(crosscall2 )?'
                   'goBack (c_there ){6}_?cgo_\\S+_c_there (runtime.\\S+ )+main._Cfunc_c_there '
                   'main.goOuter ')


def run_any(program, folder, what, seconds):
    """Its profile, exit code and what it said."""
    profile = os.path.join(folder, what + '.pprof')
    done = subprocess.run([program, profile, str(seconds), what], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=tracebacks.PATIENCE)
    return profile, done.returncode, done.stdout


def run(program, folder, what, seconds):
    """Its profile and what it said."""
    profile, code, text = run_any(program, folder, what, seconds)
    common.check(not code, f'{what}: {code}: {text[-2000:]}')
    return profile, text


def stacks(root, profile, *programs):
    """[(milliseconds, 'inner outer ...')] as go tool pprof names them."""
    found = []
    for part in tracebacks.traces(root, profile, *programs):
        lines = [line.split() for line in part.splitlines()[1:] if line.strip()]
        if lines and lines[0][0].endswith('ms'):
            names = [lines[0][1]] + [line[0] for line in lines[1:]]
            found.append((float(lines[0][0][:-2]), ' '.join(names) + ' '))
    return found


def go_and_c_and_go(root, program, folder):
    """a profile has Go, C, Go that C called, and C again in one stack"""
    is_whole(stacks(root, run(program, folder, 'callbacks', 2)[0], program))


def is_whole(found):
    """Stacks in c_spin() have all callers."""
    spin = [(ms, names) for ms, names in found if names.startswith('c_spin ')]
    total = sum(ms for ms, _ in spin)
    whole = sum(ms for ms, names in spin if CHAIN.match(names))
    print(f'# {total} ms in c_spin, {whole} ms of it with all callers')
    common.check(total > 100, f'{found[:5]}')
    common.check(whole >= 0.98 * total,
                 f'{[names for _, names in spin if not CHAIN.match(names)][:3]}')


def exceptions(_root, program, folder):
    """a storm of signals in C++ code that throws does not hang it"""
    text = run(program, folder, 'throw', 3)[1]
    print('# ' + text.strip())
    sent = re.search(r'^signals: (\d+)$', text, re.M)
    common.check(sent and int(sent.group(1)) >= SIGNALS, text)


def every_frame(root, program, folder):
    """all C frames up to the 32 that the runtime keeps, large ones too, and below callbacks"""
    for function, depth, wanted in (('c_small', 25, 25), ('c_small', 40, 31), ('c_large', 12, 12),
                                    ('c_below', 12, 12)):
        most, share = tracebacks.frames_found(root, program + '.versus', folder, function, depth)
        print(f'# {most} of {depth} {function}, in {share:.1%} of the time')
        common.check(most == wanted and share >= 0.9, f'{function}: {most} of {depth}, {share:.1%}')


def all_goroutines(_root, program, folder):
    """stacks of all goroutines, asked for by another one, have their C functions"""
    run(program, folder, 'stacks', 2)


def loaded_libraries(_root, program, folder):
    """a library that is loaded is looked up by the next collection, and only then"""
    run(program, folder, 'load', 0)


def a_profile_names_them(root, program, folder):
    """with names, a profile has those of C functions without the program"""
    moved = os.path.join(folder, 'moved')
    os.rename(program + '.symbolize', moved)
    profile = run(moved, folder, 'callbacks', 2)[0]
    os.rename(moved, program + '.symbolize')
    is_whole(stacks(root, profile))


def line_of(text):
    """The line of the test's C code that has a text; the only one."""
    with open(os.path.join(SOURCE, 'work.c'), encoding='utf-8') as file:
        found = [n for n, line in enumerate(file, 1) if text in line]
    common.check(len(found) == 1, f'{text!r} is in lines {found}')
    return found[0]


def frames_are_named(_root, program, folder):
    """with names, runtime.CallersFrames has C's functions, files, lines and what was inlined"""
    text = run_any(program + '.symbolize', folder, 'names', 0)[2]
    inner = f'^c_inlined \\S+/work.c {line_of("goNames(n) + 1")}$'
    outer = f'^c_names \\S+/work.c {line_of("c_inlined(n) + 1")}$'
    common.check(re.search(inner + '\\s' + outer, text, re.M), text)
    common.check(re.search('^main.main ', text, re.M), text)


def traces_are_named(_root, program, folder):
    """with names, the runtime's own trace of Go that C called has them"""
    text = run_any(program + '.symbolize', folder, 'stack', 0)[2]
    inner = f'^c_inlined\\n\\s+\\S+/work.c:{line_of("goNames(n) + 1")} '
    outer = f'^c_names\\n\\s+\\S+/work.c:{line_of("c_inlined(n) + 1")} '
    common.check(re.search(inner, text, re.M) and re.search(outer, text, re.M), text)


def crashes_are_named(_root, program, folder):
    """with names, the report of a crash in C has them"""
    _, code, text = run_any(program + '.symbolize', folder, 'crash', 0)
    common.check(code == 2 and 'SIGSEGV' in text, text)
    common.check(re.search(f'^c_crash\n\\s+\\S+/work.c:{line_of("*nowhere + 1")} ', text, re.M),
                 text)


TESTS = (go_and_c_and_go, every_frame, exceptions, all_goroutines, loaded_libraries,
         a_profile_names_them, frames_are_named, traces_are_named, crashes_are_named)


def build(root, folder):
    """The program without names of C functions; the one with them has .symbolize behind its
    name, and the one with stacks of all kinds .versus."""
    module = tracebacks.make_module(folder, 'traceback', 'versus')
    program = os.path.join(folder, 'traceback')
    for name, tags, out in (('traceback', '', program),
                            ('traceback', 'symbolize', program + '.symbolize'),
                            ('versus', 'shstk', program + '.versus')):
        tracebacks.build(root, module, name, tags, out)
    return program


class Programs:
    """Those of one release of Go, built when the first is wanted."""

    def __init__(self, root, folder):
        self.root, self.folder, self.program = root, folder, None

    def run(self, test):
        if not self.program:
            os.makedirs(self.folder)
            self.program = build(self.root, self.folder)
        return test(self.root, self.program, self.folder) or ''


def cases(suites, folder):
    for version, root in common.toolchains(not suites):
        if common.release(version) < FIRST:
            continue
        programs = Programs(root, os.path.join(folder, version))
        for test in TESTS:
            yield f'{version}: {test.__doc__}', programs.run, (test,)


def main():
    os.makedirs(common.WHERE, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='shstk-go-', dir=common.WHERE) as folder:
        return common.main(cases(sys.argv[1:] == ['--suites'], folder))


if __name__ == '__main__':
    sys.exit(main())
