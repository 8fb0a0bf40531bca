#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes what bpf/language_walk.h copies of a function of Python 3.11, for python_fuzz.c.

    python_seed.py FILE

FILE-empty is the same with an empty table of lines.
"""

import struct
import sys


def text(string):
    """A str object that is all ASCII."""
    return struct.pack('<4Q2Q', 1, 0, len(string), 0, 0xe5, 0) + string


def short(data):
    return data.ljust(1024, b'\0')


def write(path, lines):
    name, file = text(b'C.method'), text(b'/usr/lib/python3/x.py')
    table = struct.pack('<4Q', 1, 0, len(lines), 0) + lines
    words = [0] * 24
    words[7], words[8] = 3 << 32, 12 | 4 << 32
    head = struct.pack('<2IQ4I', 0, 0x101, 1, 1, len(name), len(file), len(table))
    with open(path, 'wb') as out:
        out.write(b'\0' + struct.pack('<i', 6) + head + struct.pack('<24Q', *words)
                  + short(name) + short(file) + table)


write(sys.argv[1], bytes([0x80, 0, 0xd8, 4, 5, 0xf0, 2, 1, 5, 14, 0xe9, 2, 0, 0xf8, 0xa0, 6, 9]))
write(sys.argv[1] + '-empty', b'')
