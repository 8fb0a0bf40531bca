#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk report --annotate`: a small program with one hot line is recorded once, and its lines and
instructions are compared with the table of functions. Then its source, its program file, and
objdump are replaced by harmful ones. Prints KTAP.
"""

import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    TMP, check, equal, main, on_terminal, one_line, run, shstk, test)

# Each iteration is many times as long as all other lines of the function together are.
PROGRAM = '''#include <time.h>

static volatile unsigned long sum;

__attribute__((noinline)) void work(unsigned long n)
{
	sum = 0;
	for (unsigned long i = 0; i < n; i++) sum += i * i; /* hot */
	sum ^= n;
}

int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		work(200000);
	return 0;
}
'''
HOT = 1 + PROGRAM[:PROGRAM.index('/* hot */')].count('\n')
SOURCE = os.path.join(TMP, 'hot.c')
BINARY = os.path.join(TMP, 'hot')
KINDS = ('pb.gz', 'shstk')
ROW = re.compile(r' *(\d+) +(\d+\.\d+) +(\d+) ')      # values of --type=samples
LINE = re.compile(r'(?P<values>.{29})(?P<line>[ \d]{6})  (?P<text>.*)')
CODE = re.compile(r'(?P<values>.{29})(?P<address>[ 0-9a-f]{8})  (?P<text>.*)')


def put(path, data):
    with open(path, 'wb') as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return path


def build(text=PROGRAM, flags=('-g',)):
    put(SOURCE, text)
    done = run('gcc', '-O1', '-Wl,--build-id', *flags, '-o', BINARY, SOURCE)
    equal(done.returncode, 0, done.stderr)


def recording(kind, made=[]):       # pylint: disable=dangerous-default-value
    """Returns the recording of the program, made by the first call, in one of two formats."""
    if not made:
        build()
        outputs = [f'-o{TMP}/hot.{k}' for k in KINDS]
        done = shstk('record', '-q', '--via=agent', '-F', '499', *outputs, '--', BINARY)
        equal(done.returncode, 0, done.stderr)
        made.append(True)
    return f'{TMP}/hot.{kind}'


def report(*args, status=0, **more):
    done = shstk('report', *args, **more)
    equal(done.returncode, status, f'{args}: {done.stderr}')
    return done.stdout if not status else one_line(done.stderr)


def annotate(*args, kind='pb.gz', function='work', **more):
    return report('--type=samples', f'--annotate={function}', *args, recording(kind), **more)


def table(kind='pb.gz', *options):
    """Own value and value with callees of the function, as the table of functions has them."""
    got = json.loads(report('--type=samples', '--json', '--top=1000', *options, recording(kind)))
    return [(f['self'], f['total']) for f in got['functions'] if f['function'] == 'work'][0]


def called():
    """The value of the function where main() is on the stack."""
    return table('pb.gz', '--focus=^main$')[1]


def rows(text, pattern):
    """The rows of the source, or of the instructions: (own value, total, match) each."""
    begin = 'line  source' if pattern is LINE else 'address  instruction'
    part = text.split(begin, 1)[1].split('instructions from', 1)[0]
    ret = []
    for line in part.splitlines()[1:]:
        match = pattern.fullmatch(line)
        if match:
            values = ROW.fullmatch(match['values'])
            ret.append((int(values[1]), int(values[3]), match) if values else (0, 0, match))
    return ret


@test
def hot_line():
    """the hot line has the largest share; own values of all lines are the function's"""
    for kind in KINDS:
        text = annotate(kind=kind)
        got = rows(text, LINE)
        lines = {int(match['line']): (own, match['text']) for own, _, match in got
                 if match['line'].strip()}
        best = max(lines, key=lambda number: lines[number][0])
        equal(best, HOT, text)
        own = table(kind)[0]
        check(own, 'there is no sample')
        equal(sum(r[0] for r in got), own, 'sum of the lines')
        for number, (_, shown) in lines.items():
            equal(shown, PROGRAM.splitlines()[number - 1].expandtabs(8), f'line {number}')
        check('void work' in text, f'the declaration is not shown: {text}')


@test
def callers():
    """a line of a caller has the values of what it calls besides its own"""
    got = rows(annotate(function='main'), LINE)
    call = [total - own for own, total, match in got if 'work(200000)' in match['text']]
    equal(call, [called()], 'the line of the call')


@test
def formats_agree():
    """a kept recording and pprof's file of the same run are annotated the same"""
    equal(annotate('--assembly', kind='shstk'), annotate('--assembly', kind='pb.gz'), 'text')


@test
def instructions():
    """own values of all instructions are the function's, and all are inside the function"""
    for kind in KINDS:
        got = rows(annotate('--assembly', kind=kind), CODE)
        equal(sum(r[0] for r in got), table(kind)[0], 'sum of the instructions')
        symbol = [line.split() for line in run('nm', '-S', BINARY).stdout.splitlines()
                  if line.endswith(' work')][0]
        start, size = int(symbol[0], 16), int(symbol[1], 16)
        addresses = [int(match['address'], 16) for _, _, match in got]
        check(addresses and addresses[0] == start, f'{addresses} do not begin at {start:#x}')
        check(all(start <= a < start + size for a in addresses), f'{addresses} of {symbol}')
        shown = run('objdump', '-d', '--no-show-raw-insn', f'--start-address={start:#x}',
                    f'--stop-address={start + size:#x}', BINARY).stdout
        wanted = re.findall(r'^ *([0-9a-f]+):\t(\S+)', shown, re.M)
        equal([(f'{a:x}', match['text'].split()[0]) for a, (_, _, match) in zip(addresses, got)],
              wanted, 'instructions')


@test
def the_call():
    """the instruction that calls has the values of what it calls"""
    got = rows(annotate('--assembly', function='main'), CODE)
    calls = [total - own for own, total, match in got if '<work>' in match['text']]
    equal(calls, [called()], f'calls: {got}')


@test
def without_debug_information():
    """a function without lines is refused in one line; its instructions are shown"""
    recording('pb.gz')
    shutil.copy(BINARY, f'{TMP}/bare')
    equal(run('strip', '-g', f'{TMP}/bare').returncode, 0, 'strip')
    done = shstk('record', '-q', '--via=agent', '-F', '499', f'-o{TMP}/bare.pb.gz', '--',
                 f'{TMP}/bare')
    equal(done.returncode, 0, done.stderr)
    line = report('--annotate=work', f'{TMP}/bare.pb.gz', status=1)
    check('debug information' in line and '--assembly' in line, line)
    text = report('--annotate=work', '--assembly', f'{TMP}/bare.pb.gz')
    check('line  source' not in text and 'ret' in text, text)


# ---- What is not there ----

@test
def no_such_function():
    """a function that is not in the profile is refused, with the nearest names"""
    line = annotate(function='wrok', status=1)
    check("'wrok'" in line and re.search(r': (.*, )?work(,|$)', line), line)
    line = annotate(function='no_such_thing', status=1)
    check("'no_such_thing'" in line and 'similar' not in line, line)
    check('no sample was chosen' in annotate('--pid=1', status=1), 'no sample')


@test
def no_addresses():
    """folded stacks, which have neither lines nor addresses, are refused in one line"""
    path = put(f'{TMP}/in.folded', 'hot;main;work 7\n')
    for options in [], ['--assembly']:
        line = report('--annotate=work', *options, path, status=1)
        check(path in line and 'no addresses' in line and '.pb.gz' in line, line)


@test
def wrong_options():
    """--assembly and --source-dir need a function"""
    for option in '--assembly', '--source-dir=/':
        line = report(option, recording('pb.gz'), status=2)
        check('--annotate' in line, line)


@test
def another_program():
    """a program of another build id, and one that is gone, are refused; the lines are shown"""
    recording('pb.gz')
    kept = f'{BINARY}.kept'
    os.rename(BINARY, kept)
    try:
        done = shstk('report', '--annotate=work', '--assembly', recording('pb.gz'))
        equal(done.returncode, 1, done.stderr)
        check(f'{BINARY} can' in done.stderr and 'No such file' in one_line(done.stderr),
              done.stderr)
        check('/* hot */' in done.stdout, done.stdout)
        build(PROGRAM.replace('i * i', 'i * i * i'))
        put(SOURCE, PROGRAM)
        done = shstk('report', '--annotate=work', '--assembly', recording('pb.gz'))
        equal(done.returncode, 1, done.stderr)
        check('build id' in one_line(done.stderr), done.stderr)
        os.unlink(BINARY)
        os.mkfifo(BINARY)
        done = shstk('report', '--annotate=work', '--assembly', recording('pb.gz'))
        equal(done.returncode, 1, done.stderr)
        check('not a regular file' in one_line(done.stderr), done.stderr)
    finally:
        os.rename(kept, BINARY)


@test
def other_objdumps():
    """without objdump it is said what to install; what it prints does nothing to a terminal"""
    tools = f'{TMP}/tools'
    os.makedirs(tools, exist_ok=True)
    env = dict(os.environ, PATH=tools)
    done = shstk('report', '--annotate=work', '--assembly', recording('pb.gz'), env=env)
    equal(done.returncode, 1, done.stderr)
    check('binutils' in one_line(done.stderr), done.stderr)
    real = shutil.which('objdump')
    put(f'{tools}/objdump', f'#!/bin/sh\n{real} "$@" | sed "s/:\t/:\t\033[31m/"\n')
    os.chmod(f'{tools}/objdump', 0o755)
    env['PATH'] = f'{tools}:{os.environ["PATH"]}'
    text = annotate('--assembly', env=env)
    check('\033' not in text and '\\x1b[31m' in text, text)
    equal(sum(r[0] for r in rows(text, CODE)), table()[0], 'sum of the instructions')
    put(f'{tools}/objdump', '#!/bin/sh\necho nothing\nexit 1\n')
    done = shstk('report', '--annotate=work', '--assembly', recording('pb.gz'), env=env)
    equal(done.returncode, 1, done.stderr)
    check("can't disassemble" in one_line(done.stderr), done.stderr)


@test
def full_output():
    """a standard output without room is one line and a failure, with and without instructions"""
    for options in [], ['--assembly']:
        with open('/dev/full', 'wb') as full:
            done = shstk('report', '--annotate=work', *options, recording('pb.gz'), stdout=full)
        equal(done.returncode, 1, done.stderr)
        check('standard output: No space left' in one_line(done.stderr), done.stderr)


# ---- Sources that are made to do harm ----

def with_source(data, *args):
    """Returns what is printed with another source file; None: there is none."""
    recording('pb.gz')
    try:
        os.unlink(SOURCE)
        if data is not None:
            put(SOURCE, data)
        return annotate(*args)
    finally:
        put(SOURCE, PROGRAM)


@test
def unreadable_sources():
    """of a source that is gone, a FIFO or a folder it is said once why, and values are shown"""
    own = table()[0]
    for make, why in (lambda: None, 'No such file'), \
            (lambda: os.mkfifo(SOURCE), 'not a regular file'), \
            (lambda: os.mkdir(SOURCE), 'directory'):
        os.unlink(SOURCE)
        try:
            make()
            text = annotate()
        finally:
            if os.path.isdir(SOURCE):
                os.rmdir(SOURCE)
            elif os.path.lexists(SOURCE):
                os.unlink(SOURCE)
            put(SOURCE, PROGRAM)
        equal(text.count('not shown'), 1, text)
        check(why in text, text)
        equal(sum(r[0] for r in rows(text, LINE)), own, why)


@test
def harmful_sources():
    """escape sequences are shown as text; a line of 10 MB is cut, and a short file said to end"""
    bad = b'\033]0;x\007\x9b31m \xc2\x9b \xe2\x80\xae \xff\x00\x7f \xc3\xa4'
    lines = PROGRAM.encode().split(b'\n')
    lines[HOT - 1] = bad
    text = with_source(b'\n'.join(lines))
    check('\\x1b]0;x\\x07\\x9b31m \\u009b \\u202e \\xff\\x00\\x7f \u00e4' in text, text)
    check(not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]', text), repr(text))
    lines[HOT - 1] = b'x' * 10000000
    lines[HOT - 2] = b'\t' * 10000000
    text = with_source(b'\n'.join(lines))
    check(len(text) < 20000 and 'xxxx..' in text and 'sum ^= n' in text, text[:1000])
    text = with_source(b'int one;\n')
    equal(text.count('no such line'), 1, text)
    equal(sum(r[0] for r in rows(text, LINE)), table()[0], 'values')


@test
def source_folders():
    """--source-dir finds the source by the last parts of its path; links do not lead out of it"""
    folder = f'{TMP}/moved'
    os.makedirs(f'{folder}/{os.path.basename(TMP)}', exist_ok=True)
    for place in f'{folder}/hot.c', f'{folder}/{os.path.basename(TMP)}/hot.c':
        put(place, PROGRAM.replace('/* hot */', '/* elsewhere */'))
        check('elsewhere' in with_source(None, f'--source-dir={folder}'), place)
        os.unlink(place)
    os.symlink(put(f'{TMP}/outside', PROGRAM), f'{folder}/hot.c')
    check('not shown' in with_source(None, f'--source-dir={folder}'), 'a link leads out')


@test
def fits_a_terminal():
    """rows fit 80 columns of a terminal, and are whole with --full-names"""
    long = PROGRAM.replace('/* hot */', '/* ' + 'long ' * 100 + '*/')
    recording('pb.gz')
    put(SOURCE, long)
    try:
        for options, fits in ([], True), (['--full-names'], False):
            lines = on_terminal('report', '--annotate=work', '--assembly', *options,
                                recording('pb.gz'))
            wide = [line for line in lines if len(line) > 80 and TMP not in line
                    and not line.startswith('caution')]
            equal(not wide, fits, wide)
            check(any(line.endswith('..') for line in lines) == fits, lines)
    finally:
        put(SOURCE, PROGRAM)


if __name__ == '__main__':
    sys.exit(main())
