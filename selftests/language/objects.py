# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that keeps objects, which lines of its own allocate: small ones, large ones, and ones that grow.

    objects.py ROUNDS [FILE]

If FILE is given, tracemalloc says there what each line has in use at the end, as "LINE OBJECTS BYTES":
PYTHONTRACEMALLOC=1 has it begin with the interpreter. The program ends without freeing anything.
"""
import os
import sys

kept = []


class Point:
    def __init__(self, x):
        self.x = x
        self.rest = {'y': -x - 10 ** 6, 'z': [x]}


def drain():
    """Takes what the interpreter keeps of freed objects: a run has more of these than another one."""
    for i in range(100):
        kept.append([[i], {'x': i}, {}, float(i)])
    for size in range(1, 5):
        kept.extend(tuple([i] * size) for i in range(2010))


def texts(rounds):
    found = []
    for i in range(rounds):
        found.append('text %d' % i)
    kept.append(found)


def tuples(rounds):
    kept.append([(i + 10 ** 9, str(i)) for i in range(rounds)])


def points(rounds):
    for i in range(rounds):
        kept.append(Point(i + 10 ** 7))


def large(rounds):
    for i in range(rounds):
        kept.append(bytes(470 + i % 30))
        kept.append(bytearray(3000 + i))


def growing(rounds):
    grown = bytearray()
    for i in range(rounds):
        grown += b'0123456789'
    kept.append(grown)


def dropped(rounds):
    for i in range(rounds):
        [str(i + j) for j in range(10)]


def work(rounds):
    drain()
    for what in texts, tuples, points, large, growing, dropped:
        what(rounds)


def write(path):
    import tracemalloc  # pylint: disable=import-outside-toplevel
    found = {}
    for trace in tracemalloc.take_snapshot().traces:
        frame = trace.traceback[-1]
        if os.path.basename(frame.filename) == os.path.basename(__file__):
            objects, size = found.get(frame.lineno, (0, 0))
            found[frame.lineno] = (objects + 1, size + trace.size)
    with open(path, 'w', encoding='ascii') as file:
        for line, (objects, size) in sorted(found.items()):
            print(line, objects, size, file=file)


if __name__ == '__main__':
    work(int(sys.argv[1]))
    if len(sys.argv) > 2:
        write(sys.argv[2])
    os._exit(0)
