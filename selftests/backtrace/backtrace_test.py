#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""libshstk-backtrace.so against what it stands in for: the same results, in
every kind of call and for profilers of Debian. Prints KTAP."""

import glob
import os
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import BUILD, HERE, LIBC, LIMIT, TMP, Skip, equal, main, test  # noqa: E402

DROP = os.path.join(BUILD, 'libshstk-backtrace.so')
WALKERS = os.path.join(HERE, 'walkers')
ALLOCS = os.path.join(HERE, 'allocs')
BURN = os.path.join(HERE, 'burn')
CANCEL = os.path.join(HERE, 'cancel')
TRUE_WALKS = os.path.join(HERE, 'true_walks.so')
ADDR_NO_RANDOMIZE = 0x0040000
SOURCE = os.path.dirname(os.path.abspath(__file__))


def run(command, preload=(), **env):
    """Standard output of a command."""
    environment = dict(os.environ, **env)
    environment['LD_PRELOAD'] = ' '.join(preload)
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=LIMIT,
                          check=True, cwd=TMP).stdout.decode()


def same(before, after):
    """Fail the test at the first line that differs."""
    before, after = before.splitlines(), after.splitlines()
    for number, (one, two) in enumerate(zip(before, after), 1):
        if one != two:
            raise AssertionError(f'line {number}: {two}\nexpected: {one}')
    if len(before) != len(after):
        raise AssertionError(f'{len(after)} lines, expected {len(before)}')
    if len(before) < 5:
        raise AssertionError(f'only {len(before)} lines')


@test
def all_walkers_see_the_same():
    before, after = run([WALKERS]), run([WALKERS], [DROP])
    if before.count('backtrace 0:') < 20 or 'caught 10' not in before:
        raise AssertionError('the program did not do its work')
    same(before, after)


def served(command, preload, caller, names, **env):
    """Fail the test unless calls of these names from an object are bound to the
    drop-in, as the loader tells."""
    log = os.path.join(TMP, 'bindings')
    for old in glob.glob(log + '.*'):
        os.remove(old)
    run(command, preload, LD_DEBUG='bindings', LD_DEBUG_OUTPUT=log, **env)
    text = ''
    for path in glob.glob(log + '.*'):
        with open(path, encoding='utf-8', errors='replace') as file:
            text += file.read()
    for name in names:
        if not re.search(rf'{caller} \[0\] to \S*libshstk-backtrace\.so \[0\]: '
                         rf'\S+ symbol .{name}\'', text):
            raise AssertionError(f'{name} is bound elsewhere')


@test
def it_serves_them():
    served([WALKERS], [DROP], 'walkers', ('backtrace', '_Unwind_Backtrace',
                                           '_Unwind_FindEnclosingFunction'))


@test
def the_real_unwinder_rarely_works():
    counts = []
    for rounds in '0', '1000':
        done = subprocess.run([WALKERS, 'places', rounds], check=True, timeout=LIMIT,
                              env=dict(os.environ, LD_PRELOAD=f'{DROP} {TRUE_WALKS}'),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = re.fullmatch(rb'([0-9]+) true walks, ([0-9]+) true look-ups\n', done.stderr)
        counts.append([int(count) for count in said.groups()])
    # It finds the CFA of the outermost frame once, and no function.
    equal(counts[1][0] - counts[0][0] in (0, 1), True, 'walks of 1000')
    equal(counts[1][1], 0, 'look-ups')


@test
def functions_of_an_object_in_anothers_place():
    command = [os.path.join(HERE, name) for name in ('replaced', 'functions4.so', 'functions12.so')]
    for preload in (), (DROP,):
        said = re.fullmatch(r'([0-9]+) replaced, ([0-9]+) wrong\n', run(command, preload))
        equal(int(said[2]), 0, f'wrong answers with {preload or "nothing"}')
        if not int(said[1]):
            raise Skip('the loader puts the second object elsewhere')


def library(pattern):
    """Path of a library, or the test is skipped."""
    found = sorted(glob.glob(f'/usr/lib/*/{pattern}'))
    if not found:
        raise Skip(f'no {pattern}')
    return found[0]


def own_stacks(text):
    """Lines of a heap profile, of addresses only the program's own: it is
    linked to a fixed place, libraries are not."""
    def is_own(address):
        return int(address, 16) < 0x10000000

    lines = []
    for line in text.splitlines():
        if line.startswith(('MAPPED', 'heap profile:')):
            break_here = line.startswith('MAPPED')
            if break_here:
                break
            continue
        addresses = [a for a in re.findall(r'0x[0-9a-f]+', line) if is_own(a)]
        if addresses:
            head = line.split('@')[0].split()
            lines.append(' '.join(head + addresses))
    return '\n'.join(sorted(lines))


def profile(preload, pattern, **env):
    """The profile that a run of allocs leaves."""
    for old in glob.glob(os.path.join(TMP, pattern)):
        os.remove(old)
    run([ALLOCS], preload, **env)
    files = sorted(glob.glob(os.path.join(TMP, pattern)))
    if not files:
        raise Skip('no profile written: built without it')
    with open(files[-1], encoding='utf-8', errors='replace') as file:
        return file.read()


@test
def heap_profiler_of_gperftools():
    tcmalloc = library('libtcmalloc.so.4')
    env = {'HEAPPROFILE': os.path.join(TMP, 'gperf'),
           'HEAP_PROFILE_ALLOCATION_INTERVAL': '0'}
    before = own_stacks(profile([tcmalloc], 'gperf.*', **env))
    after = own_stacks(profile([DROP, tcmalloc], 'gperf.*', **env))
    same(before, after)


def hot_stack(path):
    """Most frequent stack of a CPU profile of gperftools: the program's own return
    addresses. The file is words: a header, then (count, entries, entry...)."""
    with open(path, 'rb') as file:
        data = file.read()
    words = struct.unpack(f'<{len(data) // 8}Q', data[:len(data) // 8 * 8])
    at, counts = 2 + words[1], {}
    while words[at]:
        nr = words[at + 1]
        stack = tuple(hex(pc) for pc in words[at + 3:at + 2 + nr]
                      if pc < 0x10000000)
        counts[stack] = counts.get(stack, 0) + words[at]
        at += 2 + nr
    return max(counts, key=counts.get)


@test
def cpu_profiler_of_gperftools():
    profiler = library('libprofiler.so.0')
    stacks = []
    for preload in ([profiler], [DROP, profiler]):
        out = os.path.join(TMP, f'cpu{len(preload)}')
        run([BURN], preload, CPUPROFILE=out, CPUPROFILE_FREQUENCY='1000')
        stacks.append('\n'.join(hot_stack(out)))
    same(*stacks)
    served([BURN], [DROP, profiler], r'libprofiler\.so\.0',
           ['_Z24GetStackTraceWithContextPPviiPKv'],
           CPUPROFILE=os.path.join(TMP, 'cpu'))


def exports(path):
    """Names that an object defines for others."""
    lines = subprocess.run(['nm', '-D', '--defined-only', path], check=True,
                           stdout=subprocess.PIPE).stdout.decode().splitlines()
    return {line.split()[-1] for line in lines}


@test
def the_name_of_abseil():
    # Which inline namespace it is in depends on who built it.
    names = {name for name in exports(library('libabsl_stacktrace.so.*'))
             if name.endswith('13GetStackTraceEPPvii')}
    equal(len(names), 1, 'names')
    if not names <= exports(DROP):
        raise AssertionError(f'not served: {names}')


@test
def prof_of_jemalloc():
    jemalloc = library('libjemalloc.so.2')
    env = {'MALLOC_CONF': 'prof:true,prof_final:true,lg_prof_sample:0,'
                          f'prof_prefix:{os.path.join(TMP, "je")}'}

    def stacks(text):
        # "@ addresses" and a line of counts below it.
        lines = text.split('MAPPED')[0].splitlines()
        joined = []
        for number, line in enumerate(lines[:-1]):
            if line.startswith('@'):
                joined.append(lines[number + 1].replace('*', '') + ' ' + line)
        return '\n'.join(sorted(
            ' '.join([re.sub(r'\[.*?\]', '', one.split('@')[0])] +
                     [a for a in re.findall(r'0x[0-9a-f]+', one)
                      if int(a, 16) < 0x10000000]) for one in joined
            if re.search(r' 0x4[0-9a-f]{5}\b', one)))

    before = stacks(profile([jemalloc], 'je.*.heap', **env))
    after = stacks(profile([DROP, jemalloc], 'je.*.heap', **env))
    same(before, after)


@test
def heaptrack_sees_the_same():
    if not shutil.which('heaptrack'):
        raise Skip('no heaptrack')
    served([ALLOCS], ['/usr/lib/heaptrack/libheaptrack_preload.so', DROP],
           r'libheaptrack_preload\.so', ['unw_backtrace'],
           DUMP_HEAPTRACK_OUTPUT=os.path.join(TMP, 'heaptrack.raw'))
    texts = []
    for preload in ([], [DROP]):
        out = os.path.join(TMP, f'heaptrack{len(preload)}')
        run(['heaptrack', '-o', out, ALLOCS], preload)
        files = [name for name in glob.glob(out + '*')]
        folded = out + '.folded'
        run(['heaptrack_print', '-f', files[0], '-F', folded,
             '--flamegraph-cost-type', 'allocations'])
        with open(folded, encoding='utf-8') as file:
            texts.append('\n'.join(sorted(line for line in file.read()
                                          .splitlines() if 'leaf' in line)))
    same(*texts)


def built(command, out, **env):
    """Path of a program that this compiler can build, or the test is skipped."""
    path = os.path.join(TMP, out)
    try:
        done = subprocess.run([*command, '-o', path], stdout=subprocess.PIPE, timeout=LIMIT,
                              stderr=subprocess.STDOUT, check=False, env=dict(os.environ, **env))
    except FileNotFoundError as error:
        raise Skip(f'no {command[0]}') from error
    return path if not done.returncode else None


@test
def backtrace_of_rust():
    # Before 1.65 std::backtrace is not stable.
    program = built(['rustc', '-O', '-g', '--cap-lints=allow', '-Zcrate-attr=feature(backtrace)',
                     os.path.join(SOURCE, 'captured.rs')], 'captured', RUSTC_BOOTSTRAP='1')
    if not program:
        raise AssertionError('captured.rs is not compiled')
    before, after = run([program]), run([program], [DROP])
    if before.count('captured::deep') < 2 * 275:
        raise AssertionError('the program did not do its work')
    same(before, after)


@test
def stacktrace_of_cxx23():
    for library_option in '-lstdc++exp', '-lstdc++_libbacktrace':
        program = built(['g++', '-std=c++23', '-g', '-O1', '-fno-optimize-sibling-calls',
                         os.path.join(SOURCE, 'stacktrace.cc'), library_option], 'stacktrace')
        if program:
            break
    else:
        raise Skip('g++ has no <stacktrace>')
    before, after = run([program]), run([program], [DROP])
    # deep() alone is in them 1820 times: twice n + 1 times for each n.
    if before.count('/stacktrace+') < 1820:
        raise AssertionError('the program did not do its work')
    same(before, after)


def sanitized(program, preload, *args):
    """Standard error of a program whose AddressSanitizer uses the slow unwinder. It lies at fixed
    addresses where the kernel permits that: older sanitizers do not start at some random ones."""
    def fix_addresses():
        LIBC.personality(ADDR_NO_RANDOMIZE)

    return subprocess.run([program, *args], preexec_fn=fix_addresses, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=LIMIT, check=False,
                          env=dict(os.environ, LD_PRELOAD=' '.join(preload),
                                   ASAN_OPTIONS='fast_unwind_on_malloc=0:detect_leaks=0'),
                          ).stderr.decode(errors='replace')


def report_of(program, preload):
    """The stacks in the report of AddressSanitizer."""
    return '\n'.join(re.sub(r'0x[0-9a-f]+', '', line)
                     for line in sanitized(program, preload).splitlines()
                     if re.match(r' *#[0-9]+ ', line))


@test
def slow_unwinder_of_address_sanitizer():
    program = built(['gcc', '-fsanitize=address', '-g', '-O1', '-fno-optimize-sibling-calls',
                     os.path.join(SOURCE, 'freed.c')], 'freed')
    before = report_of(program, []) if program else ''
    if 'in freed ' not in before:
        raise Skip('programs with AddressSanitizer do not run here')
    asan = subprocess.run(['gcc', '-print-file-name=libasan.so'], stdout=subprocess.PIPE,
                          check=True).stdout.decode().strip()
    # The sanitizer wants to be the first object.
    preload = [os.path.realpath(asan), DROP, TRUE_WALKS]
    same(before, report_of(program, preload))
    walks = re.search('([0-9]+) true walks', sanitized(program, preload, '1000'))
    equal(walks is not None and int(walks[1]) < 100, True, f'{walks} of 2000')


@test
def no_cancellation_point():
    run([CANCEL], [DROP])


@test
def a_program_of_another_c_library_runs_as_it_did():
    musl = os.path.join(BUILD, 'selftests', 'record', 'target-musl')
    done = subprocess.run([musl], env=dict(os.environ, LD_PRELOAD=DROP), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
    equal((done.returncode, done.stdout, done.stderr), (4, b'hello\n', b''), 'musl')


sys.exit(main())
