#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares `shstk unwind` with `perf script`: the same perf.data file, stack by stack.

perf unwinds with libdw. Both must find the same addresses in every sample, except where one of them
stops earlier, which is counted. Prints KTAP.
"""

import collections
import os
import re
import shutil
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from arm64 import on_arm64  # noqa: E402
from harness import (  # noqa: E402
    HERE, LIMIT, SHSTK, TMP, check, main, one_line, run, test)
from perf import perf  # noqa: E402

BURN = os.path.join(HERE, 'burn')
JUDGE = os.path.join(HERE, 'judge')
HERE_AND_IN_TIME = {'cwd': TMP, 'timeout': LIMIT}


def record(name, *args, size=8192, options=()):
    """Runs perf record into a file, once for all tests, and returns the path."""
    path = os.path.join(TMP, name)
    if not os.path.exists(path):
        done = perf('record', '-q', '-e', 'cpu-clock:u', '-F', '2000', '--call-graph',
                    f'dwarf,{size}', '-o', path, *options, '--', *args, **HERE_AND_IN_TIME)
        check(done.returncode == 0, done.stderr)
    return path


def unwind(path, *args):
    """Runs shstk unwind, which must succeed."""
    done = run(SHSTK, 'unwind', *args, path)
    check(done.returncode == 0, done.stderr)
    return done


def script(path, *args):
    """Returns what perf script prints."""
    done = perf('script', '-i', path, *args, **HERE_AND_IN_TIME)
    check(done.returncode == 0, done.stderr)
    return done.stdout


def code_maps(path):
    """Returns {pid: [(start, end, offset, file)]} of the executable mappings."""
    maps = collections.defaultdict(list)
    out = script(path, '--show-mmap-events')
    for line in out.split('\n'):
        found = re.search(r'PERF_RECORD_MMAP2? (\d+)/\d+: \[0x([0-9a-f]+)'
                          r'\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+).*?: '
                          r'(?:r-x[ps]|x) (.*)$', line)
        if found:
            start = int(found[2], 16)
            maps[int(found[1])].append((start, start + int(found[3], 16),
                                        int(found[4], 16), found[5]))
    return maps


def by_perf(path):
    """Returns {(tid, time): [offsets in files]} of perf script, innermost first.

    perf may lose its way after an exec: a stack ends before the first address for which perf has no
    file.
    """
    stacks = {}
    out = script(path, '--no-inline', '-F', 'tid,time,ip,dso')
    key = None
    for line in out.split('\n'):
        head = re.match(r'\s*(\d+)\s+(\d+\.\d+):', line)
        if head:
            key = int(head[1]), head[2]
            stacks[key] = []
        elif line.strip() and key:
            at = int(line.split()[0], 16)
            if line.endswith('([unknown])'):
                key = None
            elif at != 2 ** 64 - 1:
                stacks[key].append(at)
    return stacks


def in_file(maps, pid, at):
    """Returns the offset in its file of an address; children have the maps of their parents."""
    for start, end, offset, _ in maps[pid] + [m for p in maps for m in maps[p]]:
        if start <= at < end:
            return at + offset - start
    return at


def by_shstk(path, maps):
    """Returns the same of `shstk unwind -o FILE.perf`, with calls instead of return addresses."""
    out = os.path.join(TMP, 'out.perf')
    unwind(path, '-q', '-o', out)
    stacks, key, pid = {}, None, 0
    with open(out, encoding='utf-8') as file:
        for line in file:
            head = re.match(r'.*\s(\d+)/(\d+)\s+(\d+\.\d+):', line)
            if head and not line.startswith('\t'):
                pid = int(head[1])
                key = int(head[2]), head[3]
                stacks[key] = []
            elif line.strip() and '(inlined)' not in line:
                pc = int(line.split()[0], 16)
                if '[truncated]' in line:
                    continue
                at = pc - bool(stacks[key])
                stacks[key].append(in_file(maps, pid, at))
    return stacks


def compare(path, wanted):
    """Returns {kind: samples}: equal, perf shorter, shstk shorter, different."""
    theirs, ours = by_perf(path), by_shstk(path, code_maps(path))
    check(len(theirs) >= wanted, f'only {len(theirs)} samples')
    check(set(theirs) == set(ours),
          f'{len(theirs)} samples by perf, {len(ours)} by shstk')
    kinds = collections.defaultdict(list)
    for key, a in theirs.items():
        b = ours[key]
        n = min(len(a), len(b))
        kind = ('equal' if a == b else 'different' if a[:n] != b[:n] else
                'perf shorter' if len(a) < len(b) else 'shstk shorter')
        kinds[kind].append(key)
    print(f'# {len(theirs)} samples: ' +
          ', '.join(f'{len(keys)} {kind}' for kind, keys in kinds.items()))
    for kind in 'different', 'shstk shorter':
        for key in kinds[kind][:3]:
            print(f'# {kind}: {key}\n#   perf  {[hex(x) for x in theirs[key]]}'
                  f'\n#   shstk {[hex(x) for x in ours[key]]}')
    return kinds


def alike(kinds):
    """Checks that stacks are alike; libdw sometimes leaves out frames of the dynamic linker."""
    check(len(kinds['different']) <= len(kinds['equal']) // 100 and
          not kinds['shstk shorter'], 'see above')


@test
def own_program():
    """recursion, callbacks, a thread, a fork, an exec: as perf script has them"""
    path = record('burn.data', BURN)
    kinds = compare(path, 40)
    alike(kinds)
    # perf may end earlier (after an exec), but not in all stacks.
    check(len(kinds['equal']) >= 20, f'{len(kinds["equal"])} equal')


@test
def debian_program():
    """python3 of Debian: never shorter than perf script, and the same"""
    path = record('python.data', '/usr/bin/python3', '-S', '-c', 'import re\n'
                  'x=[re.compile("(a|b)*c%d" % i) for i in range(100)]')
    kinds = compare(path, 10)
    check(not kinds['shstk shorter'], 'see above')
    # libdw sometimes leaves out or invents frames of the dynamic linker.
    check(len(kinds['different']) <= 3 + len(kinds['equal']) // 10, 'see above')


@test
def without_build_ids():
    """perf record -B: the vdso is unwound all the same"""
    path = record('vdso.data', '/usr/bin/python3', '-S', '-c',
                  'import time\nt = time.perf_counter\n'
                  'while time.process_time() < 1:\n'
                  ' for _ in range(1000): t(), t(), t(), t(), t()',
                  size=1024, options=['-B'])
    kinds = compare(path, 100)
    check(not kinds['shstk shorter'], 'see above')
    found = [s for s in folded(path)[0] if re.search(r';__vdso|\[vdso', s) or
             s.endswith('clock_gettime')]
    check(found, 'no samples in the vdso')


def read_folded(path):
    """Returns {stack: value} of a file of folded stacks."""
    with open(path, encoding='utf-8') as file:
        lines = [line.rstrip('\n').rsplit(' ', 1) for line in file]
    return {stack: int(value) for stack, value in lines}


def folded(path, *args):
    """Returns {stack: value} of `shstk unwind -o FILE.folded`, and its messages."""
    out = os.path.join(TMP, 'out.folded')
    done = unwind(path, '-o', out, *args)
    return read_folded(out), done.stderr


@test
def whole_stacks():
    """every stack of the program is complete, through fork and exec"""
    stacks, said = folded(record('burn.data', BURN))
    found = re.search(r'(\d+) samples of cpu-clock:u, (\d+) stacks complete', said)
    check(found, said)
    total = sum(stacks.values())
    named = sum(v for s, v in stacks.items()
                if re.search(r'(_start|clone3).*;work;(dig;){21}spin$', s) or
                re.search(r'(_start|clone3).*;work;sort;qsort.*;compare;spin$', s))
    check(named > 0.9 * total, f'{named} of {total} ns in known stacks')
    for way in ('main;work', 'thread_main;work', 'main;in_child;work'):
        check(any(way in s for s in stacks), f'no {way} in {list(stacks)[:5]}')
    check(any(s.startswith('exe;') or s.startswith('executed;') or
              'main;work' in s for s in stacks), 'no executed program')


def judged(program, *options, env=None):
    """Returns what judge counts: samples, whole chains, and of copies: equal, different."""
    path = os.path.join(TMP, 'chains.data')
    done = perf('record', '-q', '-e', 'cpu-clock:u', '-F', '2000', *options, '-o', path,
                '--', 'env', '-u', 'LD_PRELOAD', os.path.join(HERE, program),
                env={**os.environ, **(env or {})})
    check(done.returncode == 0, done.stderr)
    out = run(JUDGE, path).stdout
    print('# ' + out.replace('\n', '\n# '))
    check(run(JUDGE, path, '20').stdout.startswith('20 samples'), 'the first 20')
    return [int(n) for n in re.findall(r'(\d+) (?:samples have|chains whole|equal|differ)', out)]


@test
def kernel_chains():
    """the kernel's own callchains are judged: whole, equal to copies, and not"""
    samples, whole = judged('whole', '-g')
    check(samples > 50 and whole >= 0.9 * samples, 'see above')
    both = ['--call-graph', 'dwarf'], {'LD_PRELOAD': os.path.join(HERE, 'both.so')}
    samples, whole, equal, _ = judged('whole', *both[0], env=both[1])
    check(samples > 50 and equal >= 0.8 * samples, 'see above')
    # The innermost function has no frame: its caller is missing in the kernel's chains.
    samples, whole, equal, differ = judged('whole-leaf', *both[0], env=both[1])
    check(whole >= 0.8 * samples and differ >= 0.8 * samples and equal < 0.2 * samples,
          'see above')
    # Without frame pointers no chain is whole, except in start-up code.
    samples, whole = judged('burn', '-g')
    check(samples > 30 and whole < 0.5 * samples, 'see above')


@test
def no_chains():
    """a file without callchains has nothing to judge, which is said in one line"""
    path = os.path.join(TMP, 'plain.data')
    perf('record', '-q', '-e', 'cpu-clock:u', '-o', path, '--', BURN)
    done = run(JUDGE, path)
    check(done.returncode == 1 and 'record with perf record -g' in one_line(done.stderr),
          done.stderr)


@test
def on_another_machine():
    """read by the arm64 command: the same stacks"""
    path = record('burn.data', BURN)
    out = os.path.join(TMP, 'there.folded')
    done = on_arm64('unwind', '-o', out, path)
    check(done.returncode == 0, done.stderr)
    folded(path)

    def stacks(name):
        """Returns all stacks except those in the vDSO, which only this machine has."""
        with open(os.path.join(TMP, name), encoding='utf-8') as file:
            return {s for s in file if not re.search(r'\[vdso|clock_gettime', s)}
    there, here = stacks('there.folded'), stacks('out.folded')
    check(there == here and here, f'{there ^ here}')


@test
def formats():
    """pprof, flame graph, folded, perf script and top from one file"""
    path = record('burn.data', BURN)
    names = [os.path.join(TMP, n) for n in ('a.pb.gz', 'a.svg', 'a.perf')]
    args = [x for n in names for x in ('-o', n)]
    done = unwind(path, '--top=5', *args)
    check(all(os.path.getsize(n) > 500 for n in names), f'{names}')
    check(' spin' in done.stdout, done.stdout)
    check('wrote ' + ' '.join(names) in done.stderr, done.stderr)


@test
def short_copies():
    """stacks that continue beyond their copy are marked, not guessed at"""
    stacks, said = folded(record('short.data', BURN, '20', size=256))
    check(re.search(r'\d+ stacks continue beyond the piece that was copied', said),
          said)
    cut = [s for s in stacks if '[truncated]' in s]
    check(cut, f'{list(stacks)[:3]}')
    # A stack that ends in its known outermost function is not called truncated.
    check(not any(re.search(r'\[truncated\];(_start|clone3);', s) for s in cut),
          f'{cut}')


@test
def cut_off():
    """a file that is cut off anywhere: what is there, or one line of error"""
    path = record('burn.data', BURN)
    with open(path, 'rb') as file:
        whole = file.read()
    cut = os.path.join(TMP, 'cut.data')
    out = os.path.join(TMP, 'cut.folded')
    for size in (0, 7, 16, 100, 300, 1000, len(whole) // 3, len(whole) - 100):
        with open(cut, 'wb') as file:
            file.write(whole[:size])
        done = run(SHSTK, 'unwind', '-o', out, cut)
        check(done.returncode in (0, 1), f'{size}: {done.returncode}')
        check(done.stderr.strip(), f'{size}: nothing said')
        if size >= len(whole) // 3:
            check(done.returncode == 0 and 'cut off' in done.stderr,
                  done.stderr)


def refused(words, *args):
    """Checks that the command fails with one line that has these words."""
    done = run(SHSTK, 'unwind', '-o', os.path.join(TMP, 'no.folded'), *args)
    check(done.returncode in (1, 2), f'{args}: {done.returncode}')
    line = one_line(done.stderr)
    check(re.search(words, line), f'{words!r} not in {line!r}')


@test
def refusals():
    """no file, another file, no stacks, other byte order: one line"""
    path = record('burn.data', BURN)
    refused('cannot open', '/nonexistent')
    refused('not a perf.data file', SHSTK)
    refused('not a regular file|is a folder', TMP)
    refused("no event 'cycles'", '--event', 'cycles', path)
    refused("unexpected argument 'y'", path, 'y')
    flat = os.path.join(TMP, 'flat.data')
    done = perf('record', '-q', '-e', 'cpu-clock:u', '-o', flat, 'true',
                **HERE_AND_IN_TIME)
    check(done.returncode == 0, done.stderr)
    refused('no copies of the stack', flat)
    with open(path, 'rb') as file:
        whole = bytearray(file.read())
    other = os.path.join(TMP, 'other.data')
    with open(other, 'wb') as file:
        file.write(b'2ELIFREP' + whole[8:])
    refused('big-endian', other)


@test
def compressed():
    """perf record -z: as perf script has them; also cut off, and damaged"""
    path = record('burn-z.data', BURN, options=['-z'])
    with open(path, 'rb') as file:
        whole = bytearray(file.read())
    at, size = struct.unpack_from('<QQ', whole, 40)
    starts, end = [], at + size
    while at < end:
        kind, _, size = struct.unpack_from('<IHH', whole, at)
        if kind in (81, 83):
            starts.append(at)
        at += size
    check(starts, 'no compressed records')
    alike(compare(path, 40))
    other = os.path.join(TMP, 'other-z.data')
    with open(other, 'wb') as file:
        file.write(whole[:starts[-1] + 100])
    check('cut off' in folded(other)[1], 'cut off')
    # The last record is nonsense: what came before it is still there.
    whole[starts[-1] + 8:starts[-1] + 40] = b'\xff' * 32
    with open(other, 'wb') as file:
        file.write(whole)
    check('cut off' in folded(other)[1], 'damaged')


@test
def through_a_pipe():
    """perf record -o - writes another layout: the same stacks"""
    path = os.path.join(TMP, 'pipe.data')
    command = ['sh', '-c', 'exec perf "$@" >pipe.data', 'sh']
    done = perf('record', '-q', '-e', 'cpu-clock:u', '-F', '2000', '--call-graph', 'dwarf',
                '-o', '-', '--', BURN, '20', through=command, **HERE_AND_IN_TIME)
    check(done.returncode == 0, done.stderr)
    stacks, _ = folded(path)
    check(any(re.search(r'_start;.*main;work;(dig;){21}spin', s)
              for s in stacks), f'{list(stacks)[:5]}')


@test
def callchains():
    """perf record -g: the kernel's callchains are the stacks, from a file and through a pipe"""
    path = os.path.join(TMP, 'only-chains.data')
    whole = os.path.join(HERE, 'whole')
    done = perf('record', '-q', '-e', 'cpu-clock:u', '-F', '2000', '-g', '-o', path, '--', whole,
                **HERE_AND_IN_TIME)
    check(done.returncode == 0, done.stderr)
    out = os.path.join(TMP, 'pipe-chains.folded')
    piped = ['sh', '-c', 'perf "$@" | "$SHSTK" unwind -q -o "$OUT" -', 'sh']
    done = perf('record', '-q', '-e', 'cpu-clock:u', '-F', '2000', '-g', '-o', '-', '--', whole,
                through=piped, env={**os.environ, 'SHSTK': SHSTK, 'OUT': out}, **HERE_AND_IN_TIME)
    check(done.returncode == 0, done.stderr)
    for stacks in folded(path)[0], read_folded(out):
        named = sum(v for s, v in stacks.items() if s.startswith('whole;_start;'))
        total = sum(stacks.values())
        check(named > 0.9 * total > 0, f'{named} of {total} ns from the first function on: '
              f'{list(stacks)[:5]}')


@test
def another_build():
    """a file that was built anew is named, and not used"""
    program = os.path.join(TMP, 'moved')
    shutil.copy(BURN, program)
    path = record('moved.data', program, '20')
    shutil.copy(SHSTK, program)
    stacks, said = folded(path)
    check(re.search('moved is not used, as it is not the file that was mapped: its build id is', said),
          said)
    check(not any(';main;' in s for s in stacks), f'{list(stacks)[:5]}')


def may_record():
    """Returns the reason why perf cannot record here, or None."""
    if not shutil.which('perf'):
        return 'no perf'
    done = perf('record', '-q', '-e', 'cpu-clock:u', '--call-graph', 'dwarf', '-o',
                os.path.join(TMP, 'try.data'), 'true', **HERE_AND_IN_TIME)
    if done.returncode:
        text = done.stderr.strip().split('\n')
        return 'perf cannot record here: ' + (text[0] if text else '?')
    return None


sys.exit(main(may_record))
