#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk trace --goroutines`, of a running program and of a core file.

What is printed of goroutines that wait is compared with what Go itself prints of them
(runtime/pprof): number, what for, each function, who made it. Prints KTAP; 4: there is
no Go here.

usage: goroutines_test [--suites]

--suites: by all releases that selftests/go/toolchains fetched, too.
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import common      # noqa: E402
import verdict     # noqa: E402

VARIANTS = ['stripped', 'stripped-pie', 'stripped-cgo']


def goroutines(*args):
    """[(goroutine, its functions)], one for each group."""
    return verdict.groups_of(common.trace('--goroutines', *args))


def check_running(version, root, variant):
    path = common.build(version, root, 'load.go', variant)
    with common.start(path) as child:
        try:
            groups = goroutines('-p', str(child.pid))
            wrong = verdict.check_goroutines(groups)
            text = child.communicate('stacks', timeout=common.PATIENCE)[0]
            return wrong or verdict.compare_dump(groups, verdict.own_dump(text))
        finally:
            child.kill()


def check_core(version, root, variant):
    path = common.build(version, root, 'load.go', variant)
    with tempfile.TemporaryDirectory(dir=common.WHERE) as folder:
        return verdict.check_goroutines(goroutines('--core', common.make_core(path, folder)))


def check_refused(*_):
    """Of other programs and with other options: a line that says why."""
    for args, wanted in ((('-p', str(os.getpid())), 'no runtime of Go'),
                         (('-p', str(os.getpid()), '--compare'), '--goroutines')):
        done = subprocess.run([common.SHSTK, 'trace', '--goroutines', *args],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=common.PATIENCE)
        if not done.returncode or wanted not in done.stderr or done.stderr.count('\n') != 1:
            return f'{args}: {done.returncode}: {done.stderr}'
    return ''


def cases(suites):
    for version, root in common.toolchains(not suites):
        for variant in VARIANTS:
            yield (f'{version} {variant}: as Go prints them', check_running,
                   (version, root, variant))
        yield f'{version} stripped: from a core file', check_core, (version, root, 'stripped')
    yield 'other programs and wrong options: one line', check_refused, ()


if __name__ == '__main__':
    sys.exit(common.main(cases(sys.argv[1:] == ['--suites'])))
