#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What stacks cost in libraries of others, 30 calls deep, before and with examples/hooks/ and
libshstk-backtrace.so: nanoseconds of CPU time, the smallest of five runs. See
Documentation/hooks.rst.

    hooks_cost.py [jemalloc|abseil|boost|gstreamer|address_sanitizer]...
"""

import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import BUILD, TMP, TOP, Skip, check, run  # noqa: E402
from hooking import SOURCE, hooked, output  # noqa: E402

DROP = os.path.join(BUILD, 'libshstk-backtrace.so')
RUNS = 5
ROUNDS = '50000'
SLOW_UNWINDER = '_ZN11__sanitizer18BufferedStackTrace10UnwindSlowEmj'
TURNS = 9 # of runs that are compared with each other


def figure_of(*command, **env):
    """The figure that a program prints."""
    return float(re.search(r'([0-9.]+) ns$', output(*command, **env), re.M)[1])


def least(*command, **env):
    """The smallest figure of several runs of a program."""
    return min(figure_of(*command, **env) for _ in range(RUNS))


def print_times(what, base, *others):
    """How many times as long as one program others take, each named and given as a function that
    returns its figure. All run by turns, so that what else the machine does falls on all of them."""
    turns = [(base(), [other() for _, other in others]) for _ in range(TURNS)]
    print(f'{what}, {TURNS} runs by turns:')
    for i, (name, _) in enumerate(others):
        times = sorted(figures[i] / first for first, figures in turns)
        print(f'  {name}: {times[0]:.2f} to {times[-1]:.2f}, median {times[len(times) // 2]:.2f}',
              flush=True)


def print_row(what, before, hook, drop):
    """Figures that are None were not measured, because there is nothing to measure."""
    cells = ['-' if figure is None else f'{figure:.0f}' for figure in (before, hook, drop)]
    print(f'{what:<42}{cells[0]:>10}{cells[1]:>10}{cells[2]:>10}', flush=True)


def jemalloc():
    """Allocations of 100 bytes, with all of them sampled, and one every 4 KiB."""
    program = hooked('jemalloc.c', 'allocate.c')

    def cost(mode, conf, **env):
        return least(program, mode, 'cost', '300000', MALLOC_CONF=conf, **env)

    none = cost('plain', 'prof:false')
    print_row('jemalloc, malloc() and free(), no profile', none, None, None)
    for what, conf in (('every allocation sampled', 'lg_prof_sample:0'),
                       ('a sample every 4 KiB', 'lg_prof_sample:12')):
        conf = 'prof:true,' + conf
        print_row('  ' + what, cost('plain', conf), cost('hook', conf),
                  cost('plain', conf, LD_PRELOAD=DROP))


def abseil():
    """absl::GetStackTrace() and, with sizes of frames, GetStackFrames(); Abseil's own unwinder needs
    frame pointers."""
    program = hooked('abseil.cc', 'abseil_traces.cc', '-fno-omit-frame-pointer')
    print_row('absl::GetStackTrace(), frame pointers', least(program, 'plain', ROUNDS),
              least(program, 'hook', ROUNDS), least(program, 'plain', ROUNDS, LD_PRELOAD=DROP))
    print_row('absl::GetStackFrames(), frame pointers', least(program, 'plain-frames', ROUNDS),
              least(program, 'hook-frames', ROUNDS), None)


def boost():
    """boost::stacktrace::stacktrace(), and what it is made of: the walk of libgcc."""
    program = hooked('boost.hpp', 'boost_traces.cc')
    print_row('boost::stacktrace::stacktrace()', least(program, 'plain', ROUNDS),
              least(program, 'hook', ROUNDS), least(program, 'plain', ROUNDS, LD_PRELOAD=DROP))


def gstreamer():
    """A stack of GStreamer's leaks tracer, which is text."""
    program = os.path.join(TMP, 'gstreamer_cost')
    done = run('gcc', '-O2', '-fomit-frame-pointer', '-o', program,
               os.path.join(SOURCE, 'gstreamer_cost.c'))
    check(done.returncode == 0, done.stderr)
    if run(program, '1').returncode == 4:
        raise Skip('no libgstreamer-1.0.so.0')
    print_row('GStreamer, a stack as text', least(program, '5000'), None,
              least(program, '5000', LD_PRELOAD=DROP))


def address_sanitizer():
    """Allocations under AddressSanitizer. In the column of hooks its slow unwinder is the one of
    sanitized.c, which takes a whole trace by one call."""
    if not shutil.which('clang'):
        raise Skip('no clang')

    def built(name, *flags):
        program = os.path.join(TMP, name)
        done = run('clang', '-O2', '-g', '-fsanitize=address', '-fno-omit-frame-pointer',
                   '-I', os.path.join(TOP, 'libshstk'), '-o', program,
                   os.path.join(SOURCE, 'sanitized.c'), os.path.join(BUILD, 'libshstk.a'), '-pthread', *flags)
        check(done.returncode == 0, done.stderr)
        return program

    def cost(program, rounds, options, how=least, **env):
        # Some older sanitizers do not start at all random addresses.
        return how('setarch', '-R', program, rounds, ASAN_OPTIONS='detect_leaks=0:' + options, **env)

    def once(*args, **env):
        return lambda: cost(*args, how=figure_of, **env)

    plain, changed = built('sanitized'), built('sanitized-changed', f'-Wl,--wrap={SLOW_UNWINDER}')
    fast, slow = 'fast_unwind_on_malloc=1', 'fast_unwind_on_malloc=0'
    print_row('AddressSanitizer, no stacks', cost(plain, '300000', 'malloc_context_size=0'), None, None)
    print_row('  fast unwinder, frame pointers', cost(plain, '300000', fast), None, None)
    print_row('  slow unwinder', cost(plain, '20000', slow), cost(changed, '300000', slow),
              cost(plain, '300000', slow, LD_PRELOAD=DROP))
    print_times("  times the fast unwinder's", once(plain, '300000', fast),
                ('hook', once(changed, '300000', slow)),
                ('drop-in', once(plain, '300000', slow, LD_PRELOAD=DROP)))


print(f'{"":<42}{"before":>10}{"hook":>10}{"drop-in":>10}')
LIBRARIES = jemalloc, abseil, boost, gstreamer, address_sanitizer
for library in [l for l in LIBRARIES if l.__name__ in sys.argv[1:] or not sys.argv[1:]]:
    try:
        library()
    except Skip as skip:
        print(f'{library.__name__}: left out: {skip}')
