#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the memory of a Python that has three tasks, for awaits_fuzz.c.

    awaits_seed.py FILE

Two tasks wait for the third one, by a set; the first also waits for the second one.
"""

import struct
import sys

memory = bytearray(1024)
INTERPRETER, THREAD, TASKS, CODE, TYPE, SET = 0x10, 0x40, 0x80, 0x180, 0x240, 0x280
LIST, LONG, TEXT = THREAD + 24, 0x2e0, 0x340


def put(at, *words):
    struct.pack_into(f'<{len(words)}Q', memory, at, *words)


put(0, INTERPRETER)
put(INTERPRETER, 0, 0, THREAD, INTERPRETER + 24, INTERPRETER + 24)
nodes = [TASKS + 64 * i + 40 for i in range(3)]
put(THREAD, 0, 0, 99, nodes[0], nodes[2])
for i, node in enumerate(nodes):
    task, coroutine = node - 40, CODE + 64 * i
    awaited_by = (0, TASKS, SET)[i]
    put(task, TEXT if i else LONG, 0, awaited_by, 1 | (i == 2) << 8, coroutine,
        nodes[i + 1] if i < 2 else LIST, nodes[i - 1] if i else LIST)
    # An object, its state (it awaits), its frame, and the top of its stack.
    put(coroutine, coroutine, 1, 255, CODE, CODE + 8, coroutine + 8, 0)
    put(coroutine, TYPE)
put(TYPE, 0, TYPE, TYPE + 40, 1 << 24, 0, int.from_bytes(b'FutureIt', 'little'))
put(SET, 0, 4, 2, SET + 40, 1, TASKS, 7, TASKS + 64, 8)
put(LONG, 0, TYPE, 8, 5)
put(TEXT, 0, TEXT + 64, 3, 0, 0x60 | 1 << 2, int.from_bytes(b'abc', 'little'))
put(TEXT + 64, 0, 0, 0, 1 << 28)
with open(sys.argv[1], 'wb') as out:
    out.write(memory)
