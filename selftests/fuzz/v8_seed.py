#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes what bpf/native_walk.h copies of a function of V8, of machine code and of code of the first
compiler, for v8_fuzz.c.

    v8_seed.py FUNCTION MACHINE BASELINE
"""

import struct
import sys

ONE_BYTE = 8        # type of a string of characters of one byte


def short(data):
    return data.ljust(1024, b'\0')


def write(path, words, texts, table):
    words = (words + [0] * 24)[:24]
    head = struct.pack('<2IQ4I', 0, 0x101, 1, 1, *(len(text) for text in texts))
    with open(path, 'wb') as out:
        out.write(b'\0' + struct.pack('<i', 6) + head + struct.pack('<24Q', *words)
                  + short(texts[0]) + short(texts[1]) + table)


def main():
    name, file, positions, source = b'inner', b'/srv/index.js', bytes([0, 0xa, 8, 2, 4, 6]), b'(n) {\n f()\r\n}'
    head = [len(text) << 32 for text in (name, file)]
    words = [64, 1, 128, 192, 256, head[0], 320, head[1], 5 << 32, 4, 4 + len(source), 384, 0, 99,
             ONE_BYTE, ONE_BYTE, ONE_BYTE, 7, len(source)]
    write(sys.argv[1], words, (name, file, positions), positions + source)
    ids, calls = struct.pack('<Q', 9), struct.pack('<QiI', 6, 0, 0)
    # test %eax,%eax; jne; call; jmp; call; ret, of which the last one goes back to the interpreter.
    code = bytes.fromhex('85c0 7507 e800000000 eb05 ffd1 9090 c3')
    # A state of V8 11.3 of two functions, and one that takes the first of these from it.
    states = bytes([2, 0, 4, 4, 24, 10, 2, 8, 24, 6, 0, 4, 2, 12, 4, 4, 37, 25, 2, 4, 0])
    returns = b''.join(struct.pack('<6I', 0, 0, 0, at, 0, pc) for at, pc in ((0, 9), (12, 13)))
    words = [64, 3, 128, 0, 192, 256, len(code), 3, 1, 1, 16, len(code), len(code) - 1, len(returns), 2,
             len(states)]
    write(sys.argv[2], words, (ids, calls, positions), positions + code + returns + states)
    # A bytecode of one byte, one with a prefix, and one of three.
    bytecodes, table = bytes([14, 0, 11, 1, 2, 34, 3, 4]), bytes([4, 5, 0, 0x82, 1])
    words = [64, 2, 128, len(table), 192, 256, len(bytecodes), 0, 1, 0, 0, len(bytecodes)]
    write(sys.argv[3], words, (b'', b'', table), table + bytecodes)


main()
