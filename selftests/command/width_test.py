#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the commands print on a terminal fits its 80 columns, also with names of a thousand
characters. Prints KTAP.
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, SHSTK, TMP, Process, Skip, check, equal, main, on_terminal, run, test)

COLUMNS = 80
LONG = 'n' * 1000
COMMANDS = ('record', 'top', 'report', 'diff', 'trace', 'unwind', 'run', 'check', 'events',
            'rules', 'broker', 'status', 'push')
# A program that works for ever in functions with long names.
PROGRAM = os.path.join(BUILD, 'selftests', 'record', 'long_names')


def fits(*args):
    """Returns the lines that a command prints on a terminal, none of which is too long."""
    lines = on_terminal(*args, columns=COLUMNS)
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


sys.exit(main())
