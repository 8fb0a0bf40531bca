# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that waits in known places, and says which.

    waiting.py FILE

It writes into FILE a line for each thread: its ID, and the functions and lines where it waits, as
Python itself tells them. Then it waits until it is killed.
"""
import functools
import os
import sys
import threading

never, _ = os.pipe()
lock = threading.Lock()
lines = []


def tell():
    """Notes where the caller of this function is, at the line that calls it."""
    frame, words = sys._getframe(1), [str(threading.get_native_id())]
    while frame:
        code = frame.f_code
        words.append(f'{getattr(code, "co_qualname", code.co_name)}@{frame.f_lineno}')
        frame = frame.f_back
    with lock:
        lines.append('\t'.join(words))


def wait(value=0):
    tell(), os.read(never, 1)
    return value


class Key:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return wait(self.n < other.n)


def generate(n):
    if n:
        yield from generate(n - 1)
    yield wait(n)


def by_sort():
    return sorted([Key(2), Key(1)])


def by_generator():
    return sum(v for v in generate(4))


def by_reduce():
    return functools.reduce(lambda a, b: wait(a + b), [1, 2])


def deep(n=60):
    return deep(n - 1) if n else wait()


class Made:
    def __init__(self):
        wait()


threads = [threading.Thread(target=f, daemon=True)
           for f in (by_sort, by_generator, by_reduce, deep, Made)]
for thread in threads:
    thread.start()
while len(lines) < len(threads):
    os.sched_yield()
with open(sys.argv[1] + '.new', 'w') as out:
    out.write('\n'.join(lines) + '\n')
os.rename(sys.argv[1] + '.new', sys.argv[1])
os.read(never, 1)
