#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes threads that wait for each other's mutexes, as mutex_fuzz.c takes them.

    mutex_seed.py PREFIX

In each seed two threads wait for each other, of x86-64 or arm64, and a third one for another lock.
"""

import struct
import sys

LOCK, CONDITION, RWLOCK = 1, 3, 5  # names of functions in mutex_fuzz.c
CODE, MUTEXES, STACK = 0x40, 0x80, 0x400
WAIT, LOCK_PI = 0, 6
WAITERS = 1 << 31


def thread(arm64, tid, word, operation, value, function):
    """A thread that waits at a word."""
    registers = [0] * 32
    arguments = (word, operation | 128, value, 0)
    for number, argument in zip((0, 1, 2, 3) if arm64 else (5, 4, 1, 10), arguments):
        registers[number] = argument
    registers[31 if arm64 else 7] = STACK
    if not arm64:
        registers[0] = -512
    names = bytes((0, function)) + bytes((7 | 128,)) * 6
    return struct.pack('<BBH32h8s8s', tid, 98 if arm64 else 202, CODE if arm64 else CODE + 2,
                       *registers, names, bytes(8))


def put(memory, at, *words):
    struct.pack_into(f'<{len(words)}I', memory, at, *words)


def make(arm64, mutexes, operation, value, third):
    """The first two threads wait for the first two mutexes."""
    memory = bytearray(0x800)
    put(memory, CODE, 0xd4000001 if arm64 else 0x050f)
    for at, words in mutexes:
        put(memory, at, *words)
    put(memory, STACK + 0x40, MUTEXES)
    threads = [thread(arm64, i + 1, mutexes[i][0], operation, value, LOCK) for i in range(2)] + [third]
    return bytes((2 if arm64 else 1, len(threads) - 1)) + b''.join(threads) + memory


def main():
    glibc = [(MUTEXES, (2, 0, 2, 1, 0)), (MUTEXES + 64, (2, 0, 1, 1, 1))]
    inheriting = [(MUTEXES, (2 | WAITERS, 1, 2, 1, 0x20)), (MUTEXES + 64, (1 | WAITERS, 1, 1, 1, 0x20))]
    # The writer of a read-write lock, which lies 8 bytes in front of the word.
    rwlock = (MUTEXES + 128, (0, 0, 2, 0, 0, 0, 1))
    seeds = {}
    for name, arm64 in (('glibc', False), ('glibc-arm64', True)):
        third = thread(arm64, 3, MUTEXES + 136, WAIT, 2, RWLOCK)
        seeds[name] = make(arm64, glibc + [rwlock], WAIT, 2, third)
    third = thread(False, 3, MUTEXES, WAIT, 2, CONDITION)
    seeds['condition'] = make(False, glibc, WAIT, 2, third)
    seeds['inheriting'] = make(False, inheriting, LOCK_PI, 0, third)
    # The kernel refused it, so it waits at a word on its stack.
    third = thread(False, 3, STACK + 0x20, WAIT, 0, LOCK)
    seeds['refused'] = make(False, inheriting, LOCK_PI, 0, third)
    for name, seed in seeds.items():
        with open(f'{sys.argv[1]}-{name}', 'wb') as out:
            out.write(seed)
    # The makefile's rule.
    with open(sys.argv[1], 'wb'):
        pass


main()
