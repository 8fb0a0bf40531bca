#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests stacks of functions that OCaml's effect handlers run: who is shown as their caller.

Each of these functions is named for the only one that sets a handler which runs it. The environment may choose
the compiler (OCAMLOPT), a program that was made of effects_many.c and effects.ml elsewhere (EFFECTS), and CPU
seconds of a recording (SECONDS). Prints KTAP.
"""

import json
import os
import re
import shutil
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(FOLDER))
from harness import TMP, TRIES, Process, Skip, check, main, shstk, stack_lines, test  # noqa: E402

SECONDS = os.environ.get('SECONDS', '2')
TRACES = int(os.environ.get('TRACES', '20'))
PUSHES = 'caml_c_call_copy_stack_args'      # pushes arguments, from 5.4 on, on arm64
NAME = re.compile(r'(?:^|\W|__)(body|setter)_([a-f])(?:_\d+)?$')


def program():
    """Makes the program, once. Returns its path."""
    given, path = os.environ.get('EFFECTS'), os.path.join(TMP, 'effects')
    if given and not os.path.exists(given):
        raise Skip(f'{given} is not there')
    if given or os.path.exists(path):
        return given or path
    compiler = os.environ.get('OCAMLOPT', 'ocamlopt')
    if not shutil.which(compiler):
        raise Skip(f'{compiler} is not installed')
    version = subprocess.run([compiler, '-version'], stdout=subprocess.PIPE, text=True, check=True).stdout
    if int(version.split('.')[0]) < 5:
        raise Skip(f'OCaml {version.strip()} has no effect handlers')
    sources = ['effects_many.c', 'effects.ml']
    for source in sources:
        shutil.copy(os.path.join(FOLDER, source), TMP)
    done = subprocess.run([compiler, '-g', '-o', path, *sources], cwd=TMP, stderr=subprocess.PIPE, text=True,
                          check=False)
    check(done.returncode == 0, done.stderr)
    return path


def judge(functions, whole):
    """Judges a stack, outermost function first. Returns whether it has a function that a handler runs."""
    before, bodies = None, 0
    for kind, letter in (match.groups() for match in map(NAME.search, functions) if match):
        if kind == 'body':
            bodies += 1
            check(before == ('setter', letter) or (before is None and not whole), f'wrong: {functions}')
        else:
            check(before is None or before[0] == 'body', f'wrong: {functions}')
        before = kind, letter
    return bodies > 0


def record(*options):
    """Records the program. Returns how many stacks of handlers' functions there were, how many of these are whole,
    and what the recorder said."""
    out = os.path.join(TMP, 'effects.folded')
    done = shstk('record', '-F', '499', '-o', out, *options, '--', program(), SECONDS)
    if 'not permitted' in done.stderr or not os.path.exists(out):
        raise Skip(done.stderr.strip().split('\n')[0])
    with open(out, encoding='utf-8') as file:
        stacks = [(stack.split(';'), value) for stack, value in stack_lines(file.read())]
    os.unlink(out)
    found = whole = 0
    for functions, value in stacks:
        is_whole = '[truncated]' not in functions
        if judge(functions, is_whole):
            found += value
            whole += value * is_whole
    print(f'# {100 * whole / max(found, 1):.2f} % of the time in handlers\' functions is in whole stacks')
    return found, whole, done.stderr


@test
def walked():
    """functions that handlers run have the right callers where the kernel walks stacks by rules"""
    for _ in range(TRIES):
        found, whole, said = record('--via=bpf')
        # Until the program has a table of rules, its stacks are copied.
        if re.search(r' [1-9]\d* of \d+ stacks were walked in the kernel', said) and whole:
            return
        check('BPF' in said, said)
    check(found and whole, said)


@test
def copied():
    """where stacks are copied, such stacks are truncated, which is said, and none has another caller"""
    found, whole, said = record('--via=copies')
    check(found and not whole, f'{whole} of {found}')
    check('stacks continue elsewhere' in said, said)


@test
def traced():
    """trace shows the right callers, also of a C function that has arguments on the stack"""
    with Process([program(), '1000000'], stdout=subprocess.DEVNULL) as target:
        try:
            found = many = nr = 0
            while nr < TRACES or (not many and nr < 50 * TRACES):
                done = shstk('trace', '-p', str(target.pid), '--json', '--source=unwind')
                check(done.stdout, done.stderr)
                thread = json.loads(done.stdout)['threads'][0]
                names = [frame['function'] or '' for frame in thread['frames']]
                found += judge(names[::-1], thread['complete'])
                nr += 1
                if 'many' in names:
                    # Before 5.4, OCaml's description for arm64 counts from the stack pointer, below what was pushed.
                    check(thread['complete'] or (os.uname().machine == 'aarch64' and PUSHES not in names), f'{thread}')
                    many += 1
            check(found and many, f'{found} of functions of handlers, {many} of the C function')
        finally:
            target.kill()


sys.exit(main())
