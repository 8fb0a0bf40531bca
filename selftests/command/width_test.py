#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the commands print on a terminal fits its 80 columns, also with names of a thousand
characters. Prints KTAP.
"""

import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, SHSTK, TMP, Process, Skip, check, equal, main, on_terminal, run, test)

COLUMNS = 80
LONG = 'n' * 1000
COMMANDS = ('record', 'top', 'report', 'diff', 'trace', 'unwind', 'run', 'check', 'events',
            'rules', 'broker', 'status', 'push', 'crash')
# A program that works for ever in functions with long names.
PROGRAM = os.path.join(BUILD, 'selftests', 'record', 'long_names')


def fits(*args, status=0):
    """Returns the lines that a command prints on a terminal, none of which is too long."""
    lines = on_terminal(*args, columns=COLUMNS, status=status)
    long = [line for line in lines if len(line) > COLUMNS]
    check(not long, f'shstk {" ".join(args):.200}: {long[:3]}')
    check(lines, f'{args}: no line')
    return lines


def profile(name, first, second):
    """A profile with long names and cautions, of which one is a single word. Returns its path."""
    path = os.path.join(TMP, f'{name}.folded')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'thread{LONG};main;{LONG}_end;short {first}\n'
                   f'thread{LONG};main;{LONG}\u4e2d_other {second}\n'
                   f'[caution] {"many words " * 30} 0\n[caution] {LONG} 0\n')
    return path


@test
def help_of_all():
    """--help of each command, and the list of commands"""
    fits('--help')
    fits('--version')
    for command in COMMANDS:
        fits(command, '--help')


@test
def tables():
    """report and diff: tables, trees and cautions, names cut in their middle"""
    before, after = profile('before', 5, 7), profile('after', 9, 2)
    for options in [], ['--lines'], ['--sort=total'], ['--inverted'], ['-o', '-']:
        lines = fits('report', *options, before)
        check(sum('nn..nn' in line for line in lines) >= 2, f'{options}: {lines}')
    for options in [], ['--inverted'], ['--by=thread,pid']:
        lines = fits('report', '--tree', *options, before)
        check(any('nn..nn' in line for line in lines), f'{options}: {lines}')
    lines = fits('diff', before, after)
    check(any(line.endswith('_other') for line in lines), f'{lines}')
    # Where there is no terminal, nothing is cut.
    text = run(SHSTK, 'report', '--tree', '--full-names', before).stdout
    check(f'{LONG}_end' in text, text)


@test
def cautions_go_on():
    """a caution is whole, over several lines"""
    path = profile('cautions', 1, 2)
    lines = fits('report', path)
    text = ' '.join(line[9:] for line in lines[:lines.index(next(
        line for line in lines if 'in all' in line))])
    equal(text.count('many words'), 30, 'words')
    check(len(lines) > 1000 // COLUMNS, f'{lines}')


@test
def recording():
    """record --top: the table of a program with such names"""
    lines = fits('record', '--via=agent', '-q', '-o', os.path.join(TMP, 'r.folded'), '--top', '--',
                 'sh', '-c', f'(ulimit -t 1; exec {PROGRAM} >/dev/null); true')
    check(any(line.endswith('n_end') for line in lines), f'{lines}')


@test
def stacks():
    """trace: frames of functions with such names, and where they are"""
    with Process([PROGRAM], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        done = run(SHSTK, 'trace', '-p', str(child.pid))
        if not done.returncode:
            plain = [fits('trace', '-p', str(child.pid)) for _ in range(3)]
            fits('trace', '--addresses', '-p', str(child.pid))
        child.kill()
    if done.returncode:
        raise Skip(f'cannot trace here: {done.stderr.strip()}')
    check(all('  #0   ' in ' '.join(lines) for lines in plain), f'{plain}')


@test
def recursion():
    """trace: what repeats, in a function with such a name"""
    with Process([PROGRAM, '8000'], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        done = run(SHSTK, 'trace', '-p', str(child.pid))
        lines = [] if done.returncode else fits('trace', '-p', str(child.pid))
        child.kill()
    if done.returncode:
        raise Skip(f'cannot trace here: {done.stderr.strip()}')
    check(f'times, innermost first: deep_{LONG}_end' in done.stdout, done.stdout)
    text = '\n'.join(lines)
    check('times, innermost first:\n       deep_nn' in text, text)


def far(name):
    """A copy of a program, in folders with long names. Returns its path."""
    folder = os.path.join(TMP, 'far', *['d' * 100] * 6)
    os.makedirs(folder, exist_ok=True)
    return shutil.copy(os.path.realpath(shutil.which(name)), os.path.join(folder, name))


@test
def machine():
    """status: what is too long goes on in further lines, below where it began"""
    plain = run(SHSTK, 'status').stdout
    lines = fits('status')
    last = next(i for i, line in enumerate(lines) if line.startswith('next '))
    equal(' '.join(lines[last:]).split(), plain.splitlines()[-1].split(), 'the words')
    if any(len(line) > COLUMNS for line in plain.splitlines()):
        check(any(re.match(' {15}[^ ]', line) for line in lines), f'{lines}')
    fits('status', str(os.getpid()))


@test
def paths():
    """check and rules: paths are cut in their middle, but not in JSON"""
    path = far('sleep')
    for command in ('check', '--all'), ('rules', 'compile'):
        done = run(SHSTK, *command, path)
        check(path in done.stdout, f'{command}: {done.stdout} {done.stderr}')
        lines = fits(*command, path, status=done.returncode)
        check(re.search(r'\.\..*d/sleep:$', lines[0]) and len(lines) > 1, f'{command}: {lines}')
    status = run(SHSTK, 'check', '--json', path).returncode
    check(path in '\n'.join(on_terminal('check', '--json', path, status=status)), 'JSON is cut')


sys.exit(main())
