#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python programs in stacks that the agent takes, in the process: they are what the program
itself says that runs.

The agent reads the word in which the program says it in the same handler as the frames: the word is
published as a trace context (publish_word.c), and so it is a label of the sample.

The environment may choose how much CPU time is recorded (SECONDS) of which interpreter (PYTHON).
"""

import functools
import os
import platform
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, NOBODY, TESTS, TMP, Skip, check, main, make_folder, run, shstk, test  # noqa: E402
from judge import Judge, PartJudge    # noqa: E402
from pprof import Decoded   # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3')
SECONDS = os.environ.get('SECONDS', '3')
FOLDER = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(FOLDER, 'program.py')
PUBLISH = os.path.join(HERE, 'publish_word.so')
# What program.py runs; how much of what is read must have its place, and the module that it needs.
WAYS = {
    'plain': ('functions that call each other', 0.9, 'sys'),
    'tasks': ('coroutines in two tasks of asyncio', 0.9, 'asyncio'),
    'generators': ('generators that yield from each other', 0.9, 'sys'),
    'greenlets': ('functions that are each in a greenlet of its own', 0.5, 'greenlet'),
    'threads': ('functions in four threads', 0.9, 'ctypes'),
    'forks': ('functions in children that were forked', 0.9, 'ctypes'),
    # Up to 3.13 a thread has the state of the first interpreter while another one runs.
    'subinterpreter': ('functions in another interpreter of the process', 0, 'ctypes'),
}
SAID = re.compile(r'(\d+) of (\d+) stacks of interpreters show the functions')


def record(folder, *command, environment=None, user=None):
    """Records a command by the agent: how that ended, and the profile."""
    out = os.path.join(folder, 'out.pb.gz')
    ended = shstk('record', '--via=agent', '-F', '1999', '-o', out, '--', *command,
                  env={**os.environ, **(environment or {})}, timeout=None, **(user or {}))
    print('#', ended.stderr.strip().replace('\n', '\n# '))
    check(ended.returncode == 0, ended.stderr)
    return ended, Decoded(out)


def functions(profile, ids):
    """NAME@FILE:LINE of each function of a sample, the innermost first."""
    for ident in ids:
        for line in profile.locations[ident][4]:
            function = profile.functions[line[1]]
            yield (f'{profile.text(function[2])}@{profile.text(function.get(4, 0))}:{line.get(2, 0)}')


def word_of(labels):
    """The word that the program had written."""
    return int.from_bytes(bytes.fromhex(labels.get('trace_id', ''))[:8], 'little')


@functools.lru_cache(maxsize=None)
def judge(way):
    """Records the program. Its judge, and how many stacks have their functions of how many."""
    folder = make_folder(TMP)
    word = os.path.join(folder, 'word')
    with open(word, 'wb') as file:
        file.truncate(4096)
    ended, profile = record(folder, *PYTHON.split(), PROGRAM, word, folder, SECONDS, way,
                            environment={'LD_PRELOAD': PUBLISH, 'PUBLISHED_WORD': word})
    ret = (PartJudge if way == 'greenlets' else Judge)(folder)
    for ids, values, labels in profile.samples:
        text = '\t'.join([str(word_of(labels)), *functions(profile, ids)])
        for _ in range(values[0]):
            ret.take(text)
    for key, value in sorted(ret.counts.items()):
        print(f'# {key}: {value}')
    said = SAID.search(ended.stderr)
    check(said, 'no stack of an interpreter was met')
    return ret, int(said[1]), int(said[2])


def add_test(way, what, share, module):
    def right():
        if run(*PYTHON.split(), '-c', 'import ' + module).returncode:
            raise Skip(f'{PYTHON} has no module {module}')
        judged, placed, read = judge(way)
        check(not judged.wrong, '\n'.join(text[:400] for text in judged.wrong[:5]))
        if not share:
            return
        check(judged.counts['compared'] > 0, 'none is compared with what the program says')
        check(placed > read * share, f'{placed} of {read} that were met have their place')

    right.__name__ = way
    right.__doc__ = f'{what}: none has another function, caller or line than the program'
    TESTS.append(right)


for name, of in WAYS.items():
    add_test(name, *of)


DEEP = """
import sys, time
sys.setrecursionlimit(10 ** 6)
end = time.process_time() + 1
def down(n):
    if n:
        return down(n - 1)
    while time.process_time() < end:
        pass
def first(n):
    down(n)
first(3000)
"""


@test
def deep_recursion():
    """a recursion of 3,000 calls has both ends, and what repeats once"""
    ended, profile = record(make_folder(TMP), *PYTHON.split(), '-S', '-c', DEEP)
    stacks = [[text.partition('@')[0] for text in functions(profile, ids)]
              for ids, _, _ in profile.samples]
    deep = [stack for stack in stacks if 'down' in stack]
    check(any(stack[i:i + 3] == ['down', '[recursion of 1 call]', 'first']
              for stack in deep for i in range(len(stack))), f'{deep[:3]}')
    check('deeper than' in ended.stderr, ended.stderr)


VARIABLES = ', '.join(f'v{i}' for i in range(200))
# Before its first line begins, make_cells() makes an object for each variable of used().
CELLS = f"""
import time
end = time.process_time() + 1
def make_cells():
    return
    {VARIABLES.replace(',', ' =')} = None
    def used():
        return {VARIABLES}
def outer():
    while time.process_time() < end:
        make_cells(); make_cells(); make_cells(); make_cells()
outer()
"""


@test
def before_the_first_line():
    """a function runs from its first line on, as sys._getframe() has it"""
    _, profile = record(make_folder(TMP), *PYTHON.split(), '-S', '-c', CELLS)
    names = [[text.partition('@')[0] for text in functions(profile, ids)]
             for ids, values, _ in profile.samples for _ in range(values[0])]
    outer = sum('outer' in stack for stack in names)
    inner = sum('make_cells' in stack for stack in names)
    check(outer > 20, f'{outer} of {len(names)}')
    check(inner < outer / 8, f'{inner} of {outer}')


RAISES = """
import signal, time
end = time.process_time() + 1
armed = [False]
def on_signal(*_):
    if armed[0]:
        armed[0] = False
        raise IndexError
def fail(n):
    raise KeyError(n)
def handle(n):
    try:
        fail(n)
    except KeyError:
        pass
    try:
        armed[0] = True
        while time.process_time() < end:
            n += 1
        armed[0] = False
    except IndexError:
        pass
signal.signal(signal.SIGALRM, on_signal)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while time.process_time() < end:
    handle(1)
signal.setitimer(signal.ITIMER_REAL, 0)
"""


@test
def signals():
    """a program that raises exceptions, also in handlers of signals, goes on"""
    _, profile = record(make_folder(TMP), *PYTHON.split(), '-S', '-c', RAISES)
    names = {text.partition('@')[0] for ids, _, _ in profile.samples for text in functions(profile, ids)}
    check('handle' in names, f'{sorted(names)[:50]}')


@test
def ordinary_user():
    """an ordinary user sees the functions, too"""
    if os.getuid():
        raise Skip('every other test shows that, too')
    folder = make_folder('/tmp')
    os.chmod(folder, 0o777)
    _, profile = record(folder, *PYTHON.split(), '-S', '-c', DEEP.replace('3000', '3'), user=NOBODY)
    names = [text.partition('@')[0] for ids, _, _ in profile.samples for text in functions(profile, ids)]
    check({'down', 'first'} <= set(names), f'{sorted(set(names))[:50]}')


FORGED = {
    'cycle': 'a list of frames that leads to itself',
    'marks': 'a list of entries that leads to itself',
    'deep': 'more frames than are copied',
    'lengths': 'texts that are longer than memory',
    'edge': 'a frame at the end of memory',
    'kernel': 'a frame in the kernel',
    'task': 'a task whose name is longer than memory',
    'codes': 'functions where no memory is',
    'unmapped': "the interpreter's variables where no memory is",
}


def add_forged(kind, what):
    def bears():
        # It runs for a second of CPU time, until the kernel ends it.
        ended, profile = record(make_folder(TMP), 'sh', '-c', f'ulimit -t 1; {HERE}/python3-forged {kind}; exit 0')
        check('Killed' in ended.stderr, 'it ended otherwise')
        check(sum(values[0] for _, values, _ in profile.samples) > 20, 'there are few samples')
        said = SAID.search(ended.stderr)
        check(bool(said) == (kind != 'unmapped'), 'its frames are read, if it says that there are some')
        check(not said or said[1] == '0' or kind in ('lengths', 'task'), f'{said and said[0]}')

    bears.__name__ = 'forged_' + kind
    bears.__doc__ = f'a program that forges an interpreter goes on: {what}'
    TESTS.append(bears)


for name, of in FORGED.items():
    add_forged(name, of)


def why():
    """Why nothing can be tested, or None."""
    if platform.machine() not in ('x86_64', 'aarch64'):
        return 'only on x86-64 and arm64'
    return None if os.path.exists(PYTHON.split()[0]) else PYTHON + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
