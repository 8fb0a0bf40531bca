#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bindings/rust: builds without a network, and passes its own tests, which compare it with the C
functions. Prints KTAP.
"""

import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import BUILD, TMP, TOP, check, equal, main, run, test  # noqa: E402

CRATE = os.path.join(TMP, 'rust')
# Debian's own, else what PATH has. Only one that runs is of use: a command may be there whose
# toolchain is not.
TOOLS = [('/usr/bin/cargo', '/usr/bin/rustc'), ('cargo', 'rustc')]


def answers(command):
    """Whether a command says its version."""
    try:
        return subprocess.run([command, '--version'], check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_tools():
    """(cargo, rustc), or None."""
    return next((pair for pair in TOOLS if all(map(answers, pair))), None)


def environment():
    """That of cargo: nothing of the caller's but where programs and toolchains lie. It writes and
    reads nothing outside of the test's folder."""
    kept = {k: v for k, v in os.environ.items() if k in ('PATH', 'HOME', 'RUSTUP_HOME', 'LANG')}
    return {**kept, 'CARGO_HOME': os.path.join(TMP, 'cargo'), 'RUSTC': find_tools()[1],
            'CARGO_TARGET_DIR': os.path.join(TMP, 'target'), 'CARGO_TERM_COLOR': 'never',
            'SHSTK_LIB_DIR': BUILD, 'LD_LIBRARY_PATH': BUILD}


def cargo(*words):
    """Run cargo in a copy of the crate; what it prints on both outputs."""
    if not os.path.exists(CRATE):
        shutil.copytree(os.path.join(TOP, 'bindings/rust'), CRATE,
                        ignore=shutil.ignore_patterns('target', 'Cargo.lock'))
    done = run(find_tools()[0], *words, cwd=CRATE, env=environment())
    said = done.stdout + done.stderr
    equal(done.returncode, 0, f'cargo {" ".join(words)}: {said}')
    return said


def passed(said):
    """The tests of the crate that passed."""
    return set(re.findall(r'^test (\w+) \.\.\. ok$', said, re.M))


CORE = {'every_entry_is_what_c_gives', 'handler_gives_what_c_gives', 'nonsense_is_refused',
        'traces_are_values'}


@test
def core():
    """without std and an allocator: every entry is what the C function gives"""
    equal(passed(cargo('test', '--offline', '--tests')), CORE, 'tests that passed')


@test
def optimised():
    """with names, optimised: the same"""
    said = cargo('test', '--offline', '--tests', '--release', '--features', 'names')
    equal(passed(said), CORE | {'names_are_of_the_entries'}, 'tests that passed')


@test
def example():
    """the example prints its functions"""
    said = cargo('run', '--quiet', '--offline', '--features', 'names', '--example', 'trace')
    # Before it stands the capture, which was inlined there.
    check(re.search(r'^trace::inner\S*\+0x\w+ \(.*trace\.rs:\d+\)\n'
                    r'trace::main\S*\+0x\w+ \(.*trace\.rs:\d+\)$', said, re.M),
          f'it prints {said}')


if __name__ == '__main__':
    sys.exit(main(lambda: None if find_tools() else "no cargo that runs: Debian's package cargo"))
