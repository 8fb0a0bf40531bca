#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a record of a thread and the message of its process, for context_fuzz.c.

    context_seed.py FILE
"""

import struct
import sys


def field(number, value):
    return bytes([number << 3 | 2, len(value)]) + value


def pair(key, value):
    return field(2, field(1, key) + field(2, value))


def main():
    attributes = b'\0\2/a\1\1b\0\2/c'
    record = bytes(range(1, 25)) + struct.pack('<2BH', 1, 1, len(attributes)) + attributes
    names = field(5, b''.join(field(1, field(1, name)) for name in (b'http.route', b'shard')))
    with open(sys.argv[1], 'wb') as out:
        out.write(bytes([len(record)]) + record
                  + pair(b'threadlocal.schema_version', field(1, b'tls_v1'))
                  + pair(b'threadlocal.attribute_key_map', names))


main()
