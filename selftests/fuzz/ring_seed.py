#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes what agents send to the recorder (tools/inject/agent/ring.h), for ring_fuzz.c.

    ring_seed.py FILE

FILE has two threads of a process, of which the second one told of a function of Python that both run.
"""

import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from heap_seed import python_code, python_frames     # noqa: E402

SAMPLE, PYTHON, CODE = 4, 7, 8
ACTIVE = 2
PCS = [0x55d000000123, 0x55d000000456, 0x55d000000789]


def record(kind, body):
    size = 8 + (len(body) + 7) // 8 * 8
    return (struct.pack('<I2H', size, kind, 0) + body).ljust(size, b'\0')


def sample():
    frames = python_frames(PCS)
    body = struct.pack('<2QI2H6I', 1, 1000000, len(PCS), 0, 2, 0, 0, 0, 0, len(frames), 0)
    body += struct.pack(f'<{len(PCS)}Q', *PCS) + bytes(len(PCS))
    return record(SAMPLE, body.ljust((len(body) + 7) // 8 * 8, b'\0') + frames)


def slot(records):
    return struct.pack('<6BH2Q', ACTIVE, 0, 0, 1, 0, 0, len(records), 0, 0) + records


def main():
    python = record(PYTHON, struct.pack('<2I2Q', 12, 0, 0x55d000000400, 256) + bytes(256))
    with open(sys.argv[1], 'wb') as out:
        out.write(bytes([1]) + slot(sample()) + slot(python + record(CODE, python_code()) + sample()))


main()
