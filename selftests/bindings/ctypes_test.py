#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bindings/python/shstk.py: beside captures in C from the same frame. Prints KTAP."""

import ctypes
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import BUILD, TMP, TOP, check, equal, main, run, test  # noqa: E402

PYTHON = os.path.join(TOP, 'bindings/python')
sys.path.insert(0, PYTHON)
# What is loaded is found again by its name, as if it was installed.
for loaded in 'libshstk.so.0', 'libshstk-symbolize.so.0':
    ctypes.CDLL(os.path.join(BUILD, loaded))
import shstk  # noqa: E402   pylint: disable=wrong-import-position

MOST = 256      # as in nest.c
CALLBACK = ctypes.CFUNCTYPE(None)


class Nest(ctypes.Structure):
    """struct nest of nest.c"""
    _fields_ = [('n', ctypes.c_int), ('info', shstk.Info), ('pcs', ctypes.c_uint64 * MOST),
                ('back', CALLBACK)]


def load_nest():
    """nest() of nest.c."""
    path = os.path.join(TMP, 'nest.so')
    if not os.path.exists(path):
        done = run('gcc', '-O2', '-g', '-shared', '-fPIC', '-Wall', '-Wextra', '-Werror',
                   f'-I{TOP}/libshstk', '-o', path, os.path.join(TOP, 'selftests/bindings/nest.c'),
                   f'-L{BUILD}', '-lshstk', cwd=TOP)
        equal(done.returncode, 0, f'gcc: {done.stderr}')
    return ctypes.CDLL(path).nest


def nested(depth, capture):
    """What C captures in a frame so deep, and what a function returns that the frame calls."""
    got = []
    back = CALLBACK(lambda: got.append(capture()))
    nest = Nest(back=back)
    count = load_nest()(ctypes.byref(nest), depth)
    check(depth < count < MOST, f'{count} entries at depth {depth}')
    equal(len(got), 1, 'calls back')
    return nest, got[0]


@test
def entries_are_the_same():
    """from the frame of C code outwards, every entry is what C captures there, at every depth"""
    names = shstk.Symbolizer()
    for depth in range(30):
        nest, trace = nested(depth, lambda: shstk.capture(limit=2 * MOST))
        equal(trace[1 - nest.n:], nest.pcs[1:nest.n], f'entries at depth {depth}')
        equal(trace.end, nest.info.end, 'how it ended')
        # Two calls in one frame return to two places in one function.
        places = trace[-nest.n], nest.pcs[0]
        check(places[0] != places[1], f'{places}')
        equal([names.frames(place)[-1].function for place in places], ['nest'] * 2, 'function')


@test
def names_are_of_the_entries():
    """names=True: the functions of C code are there as often as they were called"""
    nest, frames = nested(7, lambda: shstk.capture(names=True))
    equal([frame.function for frame in frames].count('nest'), 8, 'nest')
    inner = next(frame for frame in frames if frame.function == 'nest')
    check(inner.file.endswith('nest.c') and inner.line and inner.offset, f'{inner!r}')
    equal((inner.module, inner.inlined), ('nest.so', False), 'where it is')
    check(str(inner).startswith(f'nest+{inner.offset:#x} ('), str(inner))
    behind = [frame.address for frame in frames if frame.address in nest.pcs[1:nest.n]]
    check(set(behind) == set(nest.pcs[1:nest.n]), 'an entry has no name')


@test
def trace_says_how():
    """a trace has marks, its source and its end; a short one says that there is more"""
    trace = shstk.capture()
    equal(len(trace.marks), len(trace), 'marks')
    check(trace.source in (shstk.SOURCE_HARDWARE, shstk.SOURCE_MEMO, shstk.SOURCE_WALK),
          f'source {trace.source}')
    equal(trace.complete, trace.end == shstk.END_COMPLETE, 'complete')
    short = shstk.capture(limit=3)
    equal((len(short), short.end, short.complete), (3, shstk.END_CAPACITY, False), 'short')
    equal(short[0], trace[0], 'entry 0')


@test
def nonsense_is_refused():
    """a limit of 0 and a process that is not there are errors"""
    for wrong, kind in ((lambda: shstk.capture(limit=0), ValueError),
                        (lambda: shstk.Symbolizer(0x7fffffff), OSError)):
        try:
            wrong()
        except kind:
            continue
        raise AssertionError(f'no {kind.__name__}')


@test
def child_has_names():
    """a child of fork() has names, too"""
    check(shstk.capture(names=True), 'no names')
    pid = os.fork()
    if not pid:
        status = 1
        try:
            status = 0 if len(shstk.capture(names=True)) > 3 else 2
        finally:
            os._exit(status)
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, 'the child ends with')


@test
def example():
    """the example prints the functions of the interpreter"""
    done = run(sys.executable, os.path.join(PYTHON, 'example.py'), env={
        **os.environ, 'PYTHONPATH': PYTHON, 'LD_LIBRARY_PATH': BUILD,
        'PYTHONDONTWRITEBYTECODE': '1'})
    equal((done.returncode, done.stderr), (0, ''), 'it ends with')
    lines = done.stdout.splitlines()
    check(len(lines) > 5 and all(' in ' in line for line in lines), f'it prints {done.stdout}')
    check(any(line.startswith('Py_BytesMain+0x') for line in lines), f'it prints {done.stdout}')


if __name__ == '__main__':
    sys.exit(main(lambda: None if shutil.which('gcc') else 'no gcc here'))
