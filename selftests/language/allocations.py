# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that allocates blocks whose size tells which function allocates them, and where.

    allocations.py ROUNDS [wait]

With "wait" it says that it runs, and waits for a line before it begins and for another one before it ends.
In each round it makes functions, calls them, and drops them: those of later rounds lie where these
did. A child does the last fifth of them. size_of() and first_line() say what is made of a round. At last
C code allocates a block with the interpreter's lock, and another one without it.
"""
import functools
import os
import sys
import threading

try:
    import ctypes
except ImportError:     # it is in a package of its own
    ctypes = None

FIRST, STEP, LINES = 10002, 8, 37
LOCKED, UNLOCKED = 1234567, 2345679     # sizes of the blocks that C code allocates
KINDS = [
    'def at_S():\n return bytes(S)\ndef from_S():\n return at_S()\n',
    'def at_S():\n yield bytes(S)\ndef from_S():\n return list(at_S())\n',
    'def at_S(v):\n return len(bytes(S))\ndef from_S():\n return sorted([1], key=at_S)\n',
    'def at_S(a, b):\n return bytes(S)\ndef from_S():\n return functools.reduce(at_S, [1, 2])\n',
    'def at_S(n=20):\n return at_S(n - 1) if n else bytes(S)\ndef from_S():\n return at_S()\n',
    'class at_S:\n def __init__(self): self.v = bytes(S)\ndef from_S():\n return at_S()\n',
    'async def at_S():\n return bytes(S)\ndef from_S():\n return at_S().send(None)\n',
]
IN_THREAD = 5   # every so many rounds are in a thread of their own


def size_of(number):
    """The size of the blocks that a round asks for."""
    return FIRST + STEP * number


def first_line(number):
    """The line at which at_S() begins; it allocates in the next one, and from_S() calls it two on."""
    return 1 + number % LINES


def make(number):
    source = '\n' * (first_line(number) - 1) + KINDS[number % len(KINDS)]
    size = str(size_of(number))
    names = {'functools': functools}
    exec(compile(source.replace('S', size), f'made-{size}', 'exec'), names)
    return names['from_' + size]


def call(function):
    try:
        function()
    except StopIteration:
        pass


def do(rounds):
    for number in rounds:
        if number % IN_THREAD:
            call(make(number))
            continue
        thread = threading.Thread(target=call, args=(make(number),))
        thread.start()
        thread.join()


def with_lock():
    ctypes.PyDLL(None).malloc(LOCKED)


def without_lock():
    ctypes.CDLL(None).malloc(UNLOCKED)


def allocate_in_c():
    if ctypes:
        with_lock()
        without_lock()


def main(rounds):
    own = rounds * 4 // 5
    do(range(own))
    child = os.fork()
    if not child:
        do(range(own, rounds))
        os._exit(0)
    os.waitpid(child, 0)
    allocate_in_c()


def wait():
    if 'wait' in sys.argv:
        print('ready', flush=True)
        sys.stdin.readline()


if __name__ == '__main__':
    wait()
    main(int(sys.argv[1]))
    wait()
