#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk trace` of Go programs under load: a running process, and core files.

At least 99.5 % of all stacks must be complete with no guessed frame. What they are made of
is checked too: a stack that comes from a goroutine begins where goroutines begin, and C
that Go called has its caller. Prints KTAP; 4: there is no Go here.

usage: stacks_test [--suites]

--suites: by all releases that selftests/go/toolchains fetched, too, in each way to build the
program, and of as many stacks of core files.
"""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import common      # noqa: E402
import verdict     # noqa: E402

STACKS = 400        # stacks looked at, at least, of each program
CORE_STACKS = 25    # stacks looked at, at least, in core files, without --suites
VARIANTS = ['static', 'stripped', 'stripped-pie', 'stripped-cgo', 'stripped-cgo-pie']
CORE_VARIANTS = ['stripped', 'stripped-cgo-pie']


def check_running(version, root, variant):
    path = common.build(version, root, 'load.go', variant)
    tally = verdict.Tally()
    with common.start(path) as child:
        try:
            while tally.stacks < STACKS:
                for thread in common.trace('-p', str(child.pid))['threads']:
                    if thread['frames'] or not thread['error']:
                        tally.add(thread)
        finally:
            child.kill()
    return tally.verdict(['runtime.goexit'])


def check_core(version, root, variant, wanted):
    path = common.build(version, root, 'load.go', variant)
    tally = verdict.Tally()
    while tally.stacks < wanted:
        with tempfile.TemporaryDirectory(dir=common.WHERE) as folder:
            for thread in common.trace('--core', common.make_core(path, folder))['threads']:
                tally.add(thread)
    return tally.verdict(['runtime.goexit'])


def cases(suites):
    for version, root in common.toolchains(not suites):
        for variant in common.VARIANTS if suites else VARIANTS:
            yield f'{version} {variant}: trace -p', check_running, (version, root, variant)
        for variant in common.VARIANTS if suites else CORE_VARIANTS:
            yield (f'{version} {variant}: trace --core', check_core,
                   (version, root, variant, STACKS if suites else CORE_STACKS))


if __name__ == '__main__':
    sys.exit(common.main(cases(sys.argv[1:] == ['--suites'])))
