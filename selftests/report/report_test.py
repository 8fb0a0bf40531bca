#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk report` and `shstk diff`: profiles that are read and written again, profiles of other
programs, harmful files, and differences compared with `go tool pprof -diff_base`.
"""

import collections
import gzip
import json
import os
import random
import re
import resource
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
SELFTESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [SELFTESTS, os.path.join(SELFTESTS, 'export')]
from pprof import Decoded  # noqa: E402
from cases import Skip, case, equal, main, need, run  # noqa: E402
from export_test import Profile  # noqa: E402
from harness import SHSTK, on_terminal, stack_lines  # noqa: E402

LIMIT = 450     # seconds until a command counts as hung


def native_case(function):
    """Marks a function as a case of the command, of which there is one variant."""
    function.variants = ('native',)
    return case(function)


def shstk(*args, status=0, **more):
    """Runs the command. Returns what it printed, or its line on standard error if it is to fail."""
    done = subprocess.run([SHSTK, *args], capture_output=True, text=True, timeout=LIMIT,
                          check=False, **more)
    equal(done.returncode, status, f'{args}: {done.stderr}')
    if status and done.stderr.count('\n') != 1:
        raise AssertionError(f'{args}: not one line: {done.stderr!r}')
    return done.stderr if status else done.stdout


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def put(path, data):
    with open(path, 'wb') as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return path


# ---- pprof's format by hand ----

def varint(number):
    number &= (1 << 64) - 1
    ret = b''
    while number > 127:
        ret += bytes([number & 127 | 128])
        number >>= 7
    return ret + bytes([number])


def field(number, value):
    """Returns a field of a message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def pack(numbers):
    return b''.join(map(varint, numbers))


STRINGS = ['', 'alloc_space', 'bytes', 'main', 'work', 'inlined', '/bin/prog', 'bytes_each',
           'job', 'blue']


def foreign(strings=tuple(STRINGS), types=((1, 2),), functions=((11, 3), (7, 4), (900, 5)),
            locations=((5, 1, 0x1005, (7,)), (6, 1, 0x1105, (900, 11)), (9, 1, 0x1205, ())),
            samples=(((5, 6), (100,)), ((6,), (20,)), ((9, 6), (3,)))):
    """Returns a profile as other programs write them: no threads, IDs in no order, inlined calls, a
    location without a function, labels that are numbers."""
    data = b''.join(field(1, field(1, t) + field(2, u)) for t, u in types)
    for ids, values in samples:
        label = field(1, 8) + field(2, 9)
        number = field(1, 7) + field(3, 512)
        data += field(2, field(1, pack(ids)) + field(2, pack(values)) +
                      field(3, label) + field(3, number))
    data += field(3, field(1, 1) + field(2, 0x1000) + field(3, 0x2000) + field(5, 6))
    for ident, mapping, addr, lines in locations:
        data += field(4, field(1, ident) + field(2, mapping) + field(3, addr) +
                      b''.join(field(4, field(1, f) + field(2, 10)) for f in lines))
    data += b''.join(field(5, field(1, ident) + field(2, name)) for ident, name in functions)
    return data + b''.join(field(6, s.encode()) for s in strings)


# ---- Written profiles are read again ----

@native_case
def read_again(variant, folder):
    """a profile that is read again is written as it was, byte for byte, in every format"""
    profile = Profile(variant, folder)
    profile.driver.do('caution', 'lost 7 records; 1 of 2 s')
    # A call, and the instruction in it: two entries that look the same in pprof's format.
    profile.add('p', 111, 'main', [profile.at('p', 'exported', 5, 'p'),
                                   profile.at('p', 'exported', 6), profile.at('p', 'main', 9)], [])
    formats = ('pb.gz', 'pb', 'folded', 'txt', 'json')
    for suffix in formats:
        profile.write(f'{folder}/direct.{suffix}')
    profile.driver.close()
    for source in ('pb.gz', 'pb'):
        shstk('report', '-q', *(f'-o{folder}/again.{s}' for s in formats),
              f'{folder}/direct.{source}')
        for suffix in formats:
            equal(content(f'{folder}/again.{suffix}'), content(f'{folder}/direct.{suffix}'),
                  f'{source} to {suffix}')
    # From folded stacks, all that is in them.
    shstk('report', '-q', f'-o{folder}/again.folded', f'-o{folder}/names.pb.gz',
          f'{folder}/direct.folded')
    equal(content(f'{folder}/again.folded'), content(f'{folder}/direct.folded'), 'folded')
    equal(sum(values[0] for _, values, _ in Decoded(f'{folder}/names.pb.gz').samples),
          profile.total)


@native_case
def from_fifo(_variant, folder):
    """a FIFO is opened once, so that who waits to write a profile into it can do so"""
    path = f'{folder}/fifo.folded'
    os.mkfifo(path)
    for _ in range(10):
        writer = threading.Thread(target=put, args=(path, 'prog;main 5\n'), daemon=True)
        writer.start()
        equal(shstk('report', '-q', '--format=folded', '-o-', path), 'prog;main 5\n')
        writer.join(LIMIT)


@native_case
def format_alone(_variant, folder):
    """--format without -o is for standard output; what is not text is not written to a terminal"""
    path = put(f'{folder}/in.folded', 'prog;main 5\n')
    equal(shstk('report', '-q', '--format=folded', path), 'prog;main 5\n')
    equal(on_terminal('report', '-q', '--format=folded', path), ['prog;main 5'])
    if 'nosuch' not in shstk('report', '--format=nosuch', path, status=2):
        raise AssertionError('the unknown format is not named')
    for name in 'pprof', 'pb', 'shstk':
        equal(on_terminal('report', '-q', f'--format={name}', path, status=2), [])
        shstk('report', '-q', f'--format={name}', f'-o{folder}/{name}', path)
        equal(shstk('report', '-q', '--format=folded', f'{folder}/{name}'), 'prog;main 5\n', name)


@native_case
def pictures_and_text(variant, folder):
    """flame graphs and perf's text have the stacks of the profile that is read"""
    profile = Profile(variant, folder)
    profile.write(f'{folder}/direct.pb.gz')
    profile.write(f'{folder}/direct.svg')
    profile.write(f'{folder}/direct.perf')
    profile.driver.close()
    shstk('report', '-q', f'-o{folder}/again.svg', f'-o{folder}/again.perf',
          f'{folder}/direct.pb.gz')
    boxes = [[line for line in content(f'{folder}/{which}.svg').decode().splitlines()
              if '<title>' in line and 'direct.pb.gz' not in line]
             for which in ('direct', 'again')]
    assert len(boxes[0]) > 10, boxes[0]
    equal(len(boxes[1]), len(boxes[0]), 'boxes')
    heads = [[line for line in content(f'{folder}/{which}.perf').decode().splitlines()
              if line and line[0] not in '\t#'] for which in ('direct', 'again')]
    equal([sorted(line.split()[-2] for line in h) for h in heads[:1]],
          [sorted(line.split()[-2] for line in h) for h in heads[1:]], 'values')


@native_case
def several_files(_variant, folder):
    """several files are summed up; those that hold other values are refused by name"""
    one = put(f'{folder}/one.folded', 'a;main;x 5\na;main;y 1\n')
    two = put(f'{folder}/two.folded', 'a;main;x 2\nb;main;z 4\n\n')
    shstk('report', '-q', f'-o{folder}/sum.folded', one, two)
    equal(content(f'{folder}/sum.folded'), b'a;main;x 7\na;main;y 1\nb;main;z 4\n')
    other = put(f'{folder}/other.pb', foreign())
    equal(shstk('report', one, other, status=1),
          f"shstk report: cannot read '{other}': holds other values than the file before: "
          "'alloc_space'\n")


# ---- Profiles of other programs ----

@native_case
def foreign_pprof(_variant, folder):
    """a profile of somebody else: no threads, IDs in no order, inlined calls, no functions"""
    path = put(f'{folder}/f.pb.gz', gzip.compress(foreign()))
    shstk('report', '-q', f'-o{folder}/f.folded', f'-o{folder}/out.pb.gz', path)
    equal(content(f'{folder}/f.folded').decode(),
          'main;inlined 20\nmain;inlined;[prog+0x205] 3\nmain;inlined;work 100\n')
    got = Decoded(f'{folder}/out.pb.gz')
    equal(got.types, [('alloc_space', 'bytes')])
    equal([labels for _, _, labels in got.samples], [{'job': 'blue'}] * 3)
    equal([values for _, values, _ in got.samples], [[100], [20], [3]])


@native_case
def inlined_apart(_variant, folder):
    """inlined functions as locations of their own are one entry of a stack where all follow"""
    # Locations of one address with successive IDs are joined, those without an address are not.
    places = [(5, 1, 0x1005, (11,)), (6, 1, 0x1005, (7,)), (7, 1, 0x1005, (900,)),
              (8, 0, 0, (11,)), (9, 0, 0, (900,))]
    whole, cut, twice, others = (5, 6, 7), (6, 7), (5, 6, 7, 5, 6, 7), (8, 9)
    broken = (5, 7), (5, 6), (7, 6, 5), (6, 5, 6, 7)
    path = put(f'{folder}/in.pb', foreign(locations=places, samples=[
        (ids, (1 << i,)) for i, ids in enumerate([whole, cut, twice, others, *broken])]))
    shstk('report', '-q', f'-o{folder}/once.pb.gz', f'-o{folder}/names.folded', path)
    shstk('report', '-q', f'-o{folder}/twice.pb.gz', f'{folder}/once.pb.gz')
    names = {5: 'main', 6: 'work', 7: 'inlined', 8: 'main', 9: 'inlined'}
    want = {}
    for i, ids in enumerate([whole, cut, twice, others, *broken]):
        stack = ';'.join(names[n] for n in reversed(ids))
        want[stack] = want.get(stack, 0) + (1 << i)
    equal(dict(stack_lines(content(f'{folder}/names.folded').decode())), want)
    equal(content(f'{folder}/twice.pb.gz'), content(f'{folder}/once.pb.gz'))
    # Of the address there are the whole, the part that begins in its midst, and each alone.
    locations = Decoded(f'{folder}/once.pb.gz').locations.values()
    runs = sorted(loc[1] for loc in locations if loc.get(3))
    equal(sum(1 for n in runs if n - 1 not in runs), 5, f'{runs}')


@native_case
def written_by_pprof(variant, folder):
    """what go tool pprof wrote has the stacks and the sums that it had"""
    need('go')
    profile = Profile(variant, folder)
    profile.write(f'{folder}/ours.pb.gz')
    profile.driver.close()
    pprof(folder, '-proto', f'-output={folder}/theirs.pb.gz', f'{folder}/ours.pb.gz')
    shstk('report', '-q', f'-o{folder}/back.pb.gz', f'{folder}/theirs.pb.gz')
    equal(stacks(f'{folder}/back.pb.gz'), stacks(f'{folder}/ours.pb.gz'))


@native_case
def folded_of_others(_variant, folder):
    """folded stacks without a thread's name (--frames-only), from standard input too"""
    text = 'main;work 5\nmain;work;std::map<int, a b>::find 7\n'
    path = put(f'{folder}/in', text)
    shstk('report', '-q', '--frames-only', f'-o{folder}/out.folded', path)
    equal(content(f'{folder}/out.folded').decode(), text)
    table = shstk('report', '-', input=text)
    equal([line.split(maxsplit=4)[4] for line in table.splitlines()[2:]],
          ['std::map<int, a b>::find', 'work'], 'the thread is no function')


@native_case
def from_heaptrack(_variant, folder):
    """heaptrack's recording, by the folded stacks that heaptrack_print makes of it"""
    need('heaptrack', 'heaptrack_print', 'cc')
    put(f'{folder}/prog.c', '#include <stdlib.h>\nvoid *volatile keep;\n'
        '__attribute__((noinline)) void grow(void) { keep = malloc(1000); }\n'
        'int main(void) { for (int i = 0; i < 50; i++) grow(); return 0; }\n')
    run('cc', '-O1', '-g', '-o', f'{folder}/prog', f'{folder}/prog.c')
    done = subprocess.run(['heaptrack', '-o', f'{folder}/heap', f'{folder}/prog'], cwd=folder,
                          capture_output=True, text=True, check=False)
    made = [name for name in os.listdir(folder) if name.startswith('heap.')]
    if done.returncode or not made:
        raise Skip(f'heaptrack records nothing here: {done.stderr.strip():.200}')
    run('heaptrack_print', '-f', f'{folder}/{made[0]}', '-F', f'{folder}/heap.folded',
        '--flamegraph-cost-type', 'leaked')
    shstk('report', '-q', '--frames-only', '-o', f'{folder}/x.folded', f'{folder}/heap.folded')
    # Each line ends in a semicolon, behind which there is no function.
    stacks_ = stack_lines(content(f'{folder}/x.folded').decode())
    equal({value for stack, value in stacks_ if re.search(r';grow \(prog\.c\)$', stack)}, {50000})
    assert not any('[no name]' in stack for stack, _ in stacks_), stacks_


# ---- Choosing ----

SAMPLES = '''web;main;serve;parse 10
web;main;serve;copy 20
worker;main;loop;parse 30
worker;main;loop 40
'''


@native_case
def filters(_variant, folder):
    """--focus, --ignore and --thread take the stacks that they say"""
    path = put(f'{folder}/in.folded', SAMPLES)

    def have(*options):
        shstk('report', '-q', f'-o{folder}/out.folded', *options, path)
        return [int(line.split()[-1]) for line in
                content(f'{folder}/out.folded').decode().splitlines()]

    equal(have('--focus=^parse$'), [10, 30])
    equal(have('--ignore=parse|copy'), [40])
    equal(have('--thread=^w.b'), [20, 10])
    equal(have('--comm=worker', '--focus=parse'), [30])
    equal(shstk('report', '--focus=nothing', path, '--top=1').splitlines()[0],
          'samples, 0 in all')
    assert 'not a regular expression' in shstk('report', '--focus=(', path, status=2)


@native_case
def processes_and_types(variant, folder):
    """--pid and --tid take the samples with these labels, --type another kind of values"""
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/in.pb.gz')
    profile.driver.close()
    for option, key, number in (('--pid=222', 'pid', 222), ('--tid=112', 'tid', 112)):
        shstk('report', '-q', option, f'-o{folder}/out.pb.gz', path)
        equal({labels[key] for _, _, labels in Decoded(f'{folder}/out.pb.gz').samples}, {number})
    table = shstk('report', '--type=samples', path).splitlines()
    cut = sum(value for stack, value in profile.expected.items() if '[truncated]' in stack)
    words = f'samples, {profile.count} in all; {100 * cut / profile.total:.2f} % truncated'
    assert cut, 'it has no such stack'
    equal(table[0], words)
    tree = shstk('report', '--tree', '--type=samples', path).splitlines()
    equal(tree[0], f'{words}; what has less than 1 % is left out')
    assert 'there are: samples, cpu' in shstk('report', '--type=time', path, status=2)


@native_case
def trees(_variant, folder):
    """--tree shows calls and their sums, the largest first; --inverted begins with the callees"""
    path = put(f'{folder}/in.folded', SAMPLES)
    lines = [line.split(None, 2) for line in shstk('report', '--tree', path).splitlines()[1:]]
    equal([(share, value, name) for share, value, name in lines],
          [('70.00%', '70', 'worker'), ('70.00%', '70', 'main'), ('70.00%', '70', 'loop'),
           ('30.00%', '30', 'parse'), ('30.00%', '30', 'web'), ('30.00%', '30', 'main'),
           ('30.00%', '30', 'serve'), ('20.00%', '20', 'copy'), ('10.00%', '10', 'parse')])
    names = [line.split()[2] for line in
             shstk('report', '--tree=35', path).splitlines()[1:]]
    equal(names, ['worker', 'main', 'loop'], 'what is small is left out')
    shstk('report', '-q', '--inverted', f'-o{folder}/out.folded', path)
    equal(content(f'{folder}/out.folded').decode(),
          'web;copy;serve;main 20\nweb;parse;serve;main 10\n'
          'worker;loop;main 40\nworker;parse;loop;main 30\n')


@native_case
def callers_and_callees(_variant, folder):
    """--callers-of cuts stacks below a function and --callees-of above it, inlined ones too"""
    path = put(f'{folder}/in.folded', SAMPLES + 'worker;main;parse;loop;parse;copy 5\n')

    def have(*options):
        shstk('report', '-q', f'-o{folder}/out.folded', *options, path)
        return content(f'{folder}/out.folded').decode().splitlines()

    equal(have('--callers-of=^parse$'), ['web;parse;serve;main 10', 'worker;parse;loop;main 30',
                                         'worker;parse;loop;parse;main 5'])
    equal(have('--callees-of=^(parse|serve)$'), ['web;serve;copy 20', 'web;serve;parse 10',
                                                 'worker;parse 30', 'worker;parse;loop;parse;copy 5'])
    equal(have('--callees-of=^loop$', '--callers-of=copy'), ['worker;copy;parse;loop 5'])
    equal(shstk('report', '--callers-of=nothing', path, '--top=1').splitlines()[0],
          'samples, 0 in all')
    # main;inlined;work at one address, and main;inlined at another one that is called.
    path = put(f'{folder}/f.pb', foreign())
    equal(have('--callees-of=^inlined$'), ['inlined 20', 'inlined;[prog+0x205] 3',
                                           'inlined;work 100'])
    equal(have('--callers-of=^inlined$'), ['inlined;main 123'])
    one = put(f'{folder}/one.folded', 'a;main;x 5\n')
    lines = shstk('diff', '--callees-of=^loop$', one, f'{folder}/in.folded').splitlines()
    equal(lines[0], 'samples: 0 before, 75 after, +75 (+inf %)')


@native_case
def roots(variant, folder):
    """--by: what stacks begin with: names, numbers and labels, as many as are named"""
    profile = Profile(variant, folder)
    profile.driver.do('label', 'job', 'blue')
    profile.add('p', 112, 'worker', [profile.at('p', 'exported', 6)], [])
    path = profile.write(f'{folder}/in.pb.gz')
    profile.driver.close()

    def roots_of(by, count):
        shstk('report', '-q', f'--by={by}', f'-o{folder}/out.folded', path)
        ret = collections.Counter()
        for line in content(f'{folder}/out.folded').decode().splitlines():
            stack, value = line.rsplit(' ', 1)
            ret[tuple(stack.split(';')[:count])] += int(value)
        return ret

    pids = roots_of('pid', 1)
    equal(set(pids), {('pid 111',), ('pid 222',)})
    equal(sum(pids.values()), profile.total)
    both = roots_of('comm,tid', 2)
    assert both['worker', 'tid 113'] and both['worker', 'tid 112'], both
    jobs = roots_of('job', 1)
    equal(set(jobs), {('job: blue',), ('(no job)',)})
    equal(jobs[('job: blue',)], 1001001)


@native_case
def sorted_tables(variant, folder):
    """--sort=total puts those with the highest sums first; --lines has a row for each line"""
    path = put(f'{folder}/in.folded', SAMPLES)

    def names(*options):
        return [line.split(maxsplit=4)[4] for line in
                shstk('report', *options, path).splitlines()[2:]]

    equal(names(), ['loop', 'parse', 'copy', 'main', 'serve'])
    equal(names('--sort=total'), ['main', 'loop', 'parse', 'serve', 'copy'])
    assert 'neither self nor total' in shstk('report', '--sort=x', path, status=2)
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/in.pb.gz')
    profile.driver.close()
    lines = [n for n in names('--lines', '--top=100') if n.endswith(' exported')]
    assert lines and all(re.fullmatch(r'[^/]+\.c:\d+ exported', n) for n in lines), lines


@native_case
def fits_a_terminal(_variant, folder):
    """trees and differences fit 80 columns; long names are cut in their middle"""
    long = 'begin_' + 'x' * 200 + '_end'
    deep = ';'.join(f'{long}{i}' for i in range(100))
    path = put(f'{folder}/in.folded', f'prog;{deep} 5\n')
    none = put(f'{folder}/none.folded', 'prog;main 5\n')
    for columns, args in ((80, ('report', '--tree', path)), (80, ('diff', none, path)),
                          (100, ('report', '--tree', path))):
        lines = on_terminal(*args, columns=columns)
        equal([line for line in lines if len(line) > columns], [], f'{args}')
        cut = [line for line in lines if 'begin' in line]
        assert cut and all('..' in line and '_end' in line for line in cut), lines
        assert max(map(len, cut)) == columns, 'there is room'


# ---- Files that are made to do harm, or are something else ----

BROKEN = {
    'a sample has a location that is not there': {'samples': (((4,), (1,)),)},
    'a sample has more or fewer values than there are kinds': {'samples': (((5,), (1, 2)),)},
    'a location is in a mapping that is not there': {'locations': ((5, 77, 0, (7,)),)},
    'a location is in a function that is not there': {'locations': ((5, 1, 0, (8,)),)},
    'the name of a function is not there': {'functions': ((7, 99), (11, 3), (900, -1))},
    'a kind of values has no name': {'types': ((1, 99),)},
}


@native_case
def broken_profiles(_variant, folder):
    """a profile that refers to what is not there is refused: file and cause are named"""
    for what, change in BROKEN.items():
        path = put(f'{folder}/broken.pb', foreign(**change))
        equal(shstk('report', path, status=1),
              f"shstk report: cannot read '{path}': contradicts itself: {what}\n")


@native_case
def no_profiles(_variant, folder):
    """what is no profile is refused in one line that names it and says what could be done"""
    for data, what in ((b'', 'is empty'),
                       (b'\x7fELF\x02\x01\x01' + bytes(99), 'neither pprof'),
                       ('text without numbers\n', 'line 1 has no number at its end'),
                       ('a;b 1\na;c x\n', 'line 2'),
                       (b'PERFILE2' + bytes(99), 'ends within its headers'),
                       (gzip.compress(foreign())[:-20], 'cut off'),
                       (gzip.compress(foreign())[:40] + b'\xff' * 40, 'damaged'),
                       (gzip.compress(b''), 'is empty')):
        path = put(f'{folder}/in', data)
        for args in (('report', path), ('diff', path, path)):
            line = shstk(*args, status=1)
            assert path in line and what in line, (line, what)
    assert 'No such file' in shstk('report', f'{folder}/none', status=1)
    assert 'directory' in shstk('report', folder, status=1)


def little_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


@native_case
def too_large(_variant, folder):
    """files that unpack to much, or make much of little, are refused before memory is gone"""
    zeros = put(f'{folder}/zeros.pb.gz', gzip.compress(bytes(1 << 28), 1))
    # Each empty message takes two bytes in the file, and about a hundred in memory.
    many = put(f'{folder}/many.pb.gz', gzip.compress(field(2, b'') * (1 << 22), 1))
    inlined = tuple([7] * 120)
    stack = tuple([5, 6] * 20000)
    wide = put(f'{folder}/wide.pb', foreign(
        locations=((5, 1, 0x1005, inlined), (6, 1, 0x1105, inlined)),
        samples=((stack, (1,)), (stack[1:], (1,)), (stack, (1,)))))
    for path in zeros, many, wide:
        line = shstk('report', '--read-limit=64M', path, status=1, preexec_fn=little_memory)
        equal(line, f"shstk report: cannot read '{path}': takes too much memory, see "
              '--read-limit\n')


@native_case
def damaged_profiles(_variant, folder):
    """bytes of a profile that are not what they were end no run by a signal"""
    whole = foreign()
    random.seed(1)
    for i in range(150):
        data = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.choice((0, 1, 0x7f, 0x80, 0xff,
                                                               random.randrange(256)))
        path = put(f'{folder}/in.pb', bytes(data[:random.randint(1, len(data))]
                                            if i % 3 == 0 else data))
        done = subprocess.run([SHSTK, 'report', '--tree', '--top', path], check=False,
                              capture_output=True, timeout=LIMIT)
        assert done.returncode in (0, 1), (i, done)


# ---- Differences ----

def pprof(folder, *args):
    """Runs go tool pprof. Returns what it printed."""
    env = dict(os.environ, PPROF_TMPDIR=folder, GOFLAGS='', GOTOOLCHAIN='local',
               HOME=os.environ.get('HOME', '/'))
    done = subprocess.run(['go', 'tool', 'pprof', '-symbolize=none', *args], env=env,
                          capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def pprof_rows(folder, *args):
    """Returns the rows of go tool pprof's table, with the line of its sums."""
    return sorted(pprof(folder, '-top', '-nodecount=1000', *args).split('Showing nodes', 1)[1].splitlines())


def stacks(path):
    """Returns {(type, frames): sum} without the sums that are 0. pprof leaves out samples without a
    stack."""
    profile = Decoded(path)
    ret = collections.Counter()
    for ids, values, _ in profile.samples:
        for kind, value in zip(profile.types, values):
            if ids:
                ret[kind[0], profile.frames(ids)] += value - (value >> 63 << 64)
    return {key: value for key, value in ret.items() if value}


def two_profiles(variant, folder):
    """Writes two profiles of the same program, with stacks that grew, shrank, came and went."""
    paths = []
    for name in ('before', 'after'):
        profile = Profile(variant, folder)
        if name == 'after':
            profile.add('p', 112, 'worker', [profile.at('p', 'hidden', 3, 'p'),
                                             profile.at('p', 'exported', 6)], [], times=20)
            profile.add('p', 112, 'worker', [profile.at('p', 'hidden', 3, 'p')], [], times=2)
        else:
            profile.add('q', 222, 'jit;thread', ['0x500010p'], [], times=4)
        paths.append(profile.write(f'{folder}/{name}.pb.gz'))
        profile.driver.close()
    return paths


@native_case
def as_diff_base(variant, folder):
    """differences are those of go tool pprof -diff_base, stack by stack, also --normalize"""
    need('go')
    before, after = two_profiles(variant, folder)
    for ours, theirs in (((), ()), (('--normalize',), ('-normalize',))):
        shstk('diff', *ours, f'-o{folder}/ours.pb.gz', before, after)
        pprof(folder, '-proto', f'-output={folder}/theirs.pb.gz', *theirs, f'-diff_base={before}', after)
        have = stacks(f'{folder}/ours.pb.gz')
        equal(have, stacks(f'{folder}/theirs.pb.gz'), f'{ours}')
        assert min(have.values()) < 0 < max(have.values())
        if not ours:
            equal(pprof_rows(folder, f'{folder}/ours.pb.gz'),
                  pprof_rows(folder, f'-diff_base={before}', after), 'with shares')


@native_case
def difference_table(_variant, folder):
    """the table has what grew and what shrank, the largest change first, and its sums"""
    before = put(f'{folder}/before.folded', 'p;main;a 50\np;main;b 30\np;main;same 20\n')
    after = put(f'{folder}/after.folded', 'p;main;a 80\np;main;c 10\np;main;same 20\n')
    lines = shstk('diff', before, after).splitlines()
    equal(lines[0], 'samples: 100 before, 110 after, +10 (+10.00 %)')
    equal([line.split() for line in lines[2:]],
          [['50', '80', '+30', '+30.00%', 'a'], ['30', '0', '-30', '-30.00%', 'b'],
           ['0', '10', '+10', '+10.00%', 'c']])
    lines = shstk('diff', '--normalize', before, after, '--top=1').splitlines()
    equal(lines[0], 'samples: 100 before, 100 after (scaled), 0 (+0.00 %)')
    equal(len(lines), 3)
    equal(len(shstk('diff', after, after).splitlines()), 2, 'nothing changed')
    lines = shstk('diff', '--ignore=^a$', before, after).splitlines()
    equal(lines[0], 'samples: 50 before, 30 after, -20 (-40.00 %)')


@native_case
def both_sides(_variant, folder):
    """both sides: red and blue boxes (.svg), stacks with two values (.folded), JSON (--json)"""
    before = put(f'{folder}/before.folded', 'p;main;a 50\np;main;b;c 30\np;main;same 20\n')
    after = put(f'{folder}/after.folded', 'p;main;a 80\np;main;d 10\np;main;same 20\n')
    shstk('diff', f'-o{folder}/out.folded', before, after)
    equal(content(f'{folder}/out.folded').decode(),
          'p;main;a 50 80\np;main;b;c 30 0\np;main;d 0 10\np;main;same 20 20\n')
    shstk('diff', f'-o{folder}/out.svg', before, after)
    drawn = {name: (about, fill) for name, about, fill in re.findall(
        r'<title>(.*)\n(.*)</title><rect [^>]*fill="#(\w+)"', content(f'{folder}/out.svg').decode())}
    equal(set(drawn), {'all', 'p', 'main', 'a', 'd', 'same'})
    equal(drawn['a'], ('80, 72.73 %, before: 50', 'f0b1b1'))
    equal(drawn['d'], ('10, 9.09 %, before: 0', 'f04848'))
    equal(drawn['same'][1], 'f0f0f0')
    shstk('diff', f'-o{folder}/back.svg', after, before)
    drawn = dict(re.findall(r'<title>(.*)\n.*</title><rect [^>]*fill="#(\w+)"',
                            content(f'{folder}/back.svg').decode()))
    equal([drawn['a'], drawn['b'], drawn['same']], ['b1b1f0', 'f04848', 'f0f0f0'])
    got = json.loads(shstk('diff', '--json', before, after))
    equal((got['type'], got['before'], got['after'], got['scaled']), ('samples', 100, 110, False))
    equal([(f['function'], f['before'], f['after']) for f in got['functions']],
          [('a', 50, 80), ('c', 30, 0), ('d', 0, 10)])


@native_case
def limits(_variant, folder):
    """--fail-above: status 3 if the total or a function grew by more, 0 if not"""
    before = put(f'{folder}/before.folded', 'p;main;a 50\np;main;b 50\n')
    moved = put(f'{folder}/moved.folded', 'p;main;a 57\np;main;b 43\n')
    grown = put(f'{folder}/grown.folded', 'p;main;a 54\np;main;b 54\n')
    shstk('diff', '--fail-above=7%', before, moved)
    equal(shstk('diff', '--fail-above=6.5', before, moved, status=3),
          'shstk diff: a grew by 7.00 % of the total\n')
    equal(shstk('diff', '--fail-above=5%', before, grown, status=3),
          'shstk diff: the total grew by 8.00 %\n')
    shstk('diff', '--fail-above=5%', '--normalize', before, grown)
    shstk('diff', '--fail-above=0', before, before)
    assert 'fail-above' in shstk('diff', '--fail-above=x', before, grown, status=2)


@native_case
def outputs_of_differences(_variant, folder):
    """differences are only written in a format that shows them"""
    path = put(f'{folder}/in.folded', 'p;main;a 50\n')
    for name in ('out.json', 'out.perf', 'out'):
        assert name in shstk('diff', f'-o{folder}/{name}', path, path, status=2)
    equal(os.listdir(folder), ['in.folded'])
    assert 'two files are compared' in shstk('diff', path, path, path, status=2)
    assert 'name two profiles' in shstk('diff', path, status=2)


if __name__ == '__main__':
    sys.exit(main())
