#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Seeds for dump_fuzz: every 16th byte of a file's code as the program counter.

usage: dump_seed.py X86-FILE ARM64-FILE OUT-PREFIX
"""

import struct
import sys


def code(path):
    """Returns (offset, size) of the segment with code."""
    with open(path, 'rb') as file:
        data = file.read()
    phoff, = struct.unpack_from('<Q', data, 32)
    count, = struct.unpack_from('<H', data, 56)
    for i in range(count):
        kind, flags, off, _, _, size = struct.unpack_from('<IIQQQQ', data, phoff + 56 * i)
        if kind == 1 and flags & 1:
            return off, size
    sys.exit(f'{path}: no code')


def main():
    x86, arm64, out = sys.argv[1:]
    for arch, path in enumerate((x86, arm64)):
        off, size = code(path)
        for at in range(0, size, 16):
            pc = 0xcc << 56 | off + at
            # Stack pointer, frame pointer and link register; frame records.
            regs = [0x5a << 56 | 64] * 32
            stack = []
            for i in range(24):
                stack += [0x5a << 56 | 16 * (i + 2), 0xcc << 56 | off + (at + 5 + 4 * i) % size]
            with open(f'{out}{arch}-{at:x}', 'wb') as file:
                file.write(bytes([arch]) + b'\xff' * 4
                           + struct.pack('<33Q', pc, *regs) + struct.pack(f'<{len(stack)}Q', *stack))


main()
