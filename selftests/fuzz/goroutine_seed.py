#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the memory of Go programs with two goroutines, as goroutine_fuzz.c takes them.

    goroutine_seed.py PREFIX

One is of Go 1.20, with labels in a map, the other of Go 1.26, with labels in a list. The first goroutine
is the one that the thread runs, and has left its stack.
"""

import struct
import sys

DATA, TEXT = 0x500000, 0x401000
SIZE = 0x1800
G0, FIRST, SECOND, M, STACKS, LABELS, TEXTS = 0x100, 0x300, 0x500, 0x700, 0xa00, 0x1000, 0x1400
STACK = 0x80


def make(release):
    memory = bytearray(SIZE)

    def put(at, *words):
        struct.pack_into(f'<{len(words)}Q', memory, at, *words)

    def text(at, string, nr):
        """Puts the nth text, and a string that it is at an address."""
        place = TEXTS + 32 * nr
        memory[place:place + len(string)] = string
        put(at, DATA + place, len(string))

    new = release >= 25
    status, ident, reason = (144, 152, 176) if new or release < 23 else (152, 160, 184)
    for i, g in enumerate((G0, FIRST, SECOND)):
        stack = STACKS + STACK * i
        put(g, DATA + stack, DATA + stack + STACK)
        put(g + 0x30, DATA + M if i < 2 else 0)
        # Where it goes on, and itself.
        put(g + 0x38, DATA + stack + 0x40, TEXT + 20, DATA + g)
        put(g + (104 if new else 112), DATA + stack + 0x40, TEXT + 20)
        put(g + status, (2, 2, 4)[i])
        put(g + ident, i)
        memory[g + reason] = 1
        put(g + 280, TEXT + 70, 0, TEXT + 64)
        put(g + 280 + 64, DATA + LABELS)
        for word in range(STACK // 8):
            put(stack + 8 * word, TEXT + 130 if word % 2 else DATA + stack + STACK - 16)
    put(M, DATA + G0)
    put(M + (64 if new else 72), 4711)
    put(M + (184 if new else 192), DATA + FIRST)
    # The thread pointer is the end of this, and g is the word below it.
    put(0x50 - 8, DATA + FIRST)
    # The list of goroutines, and that of texts.
    put(0x60, DATA + 0x80, 2, 2)
    put(0x80, DATA + FIRST, DATA + SECOND)
    text(0x90, b'', 0)
    text(0xa0, b'GC assist marking', 1)
    if release >= 24:
        put(LABELS, DATA + LABELS + 24, 1, 1)
        text(LABELS + 24, b'key', 2)
        text(LABELS + 40, b'value', 3)
    else:
        bucket = LABELS + 0x40
        put(LABELS, DATA + LABELS + 8)
        put(LABELS + 8, 1, 0, DATA + bucket)
        memory[bucket] = 5
        text(bucket + 8, b'key', 2)
        text(bucket + 8 + 128, b'value', 3)
    return bytes(memory)


def main():
    for name, release, function in (('1.20', 20, 1), ('1.24', 24, 4), ('1.26', 26, 2)):
        place = STACKS + STACK + 0x40
        with open(f'{sys.argv[1]}-{name}', 'wb') as out:
            out.write(struct.pack('<B7s5H', function, f'go1.{release}'.encode(), 0x50, FIRST, place,
                                  STACKS + 0x40, STACKS + 2 * STACK + 0x40))
            out.write(make(release))
    # The makefile's rule.
    with open(sys.argv[1], 'wb'):
        pass


main()
