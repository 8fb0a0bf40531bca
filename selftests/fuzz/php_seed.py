#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes what bpf/language_walk.h copies of a function of PHP 8.2, for php_fuzz.c.

    php_seed.py FILE
"""

import struct
import sys


def text(string):
    return struct.pack('<3Q', 1, 0, len(string)) + string


def short(data):
    return data.ljust(1024, b'\0')


def main():
    name, file, cls = text(b'{closure}'), text(b'/srv/www/index.php'), text(b'Name\\Of')
    words = [2] + [0] * 23
    head = struct.pack('<2IQ4I', 0, 0x101, 1, 1, len(name), len(file), len(cls))
    with open(sys.argv[1], 'wb') as out:
        out.write(b'\0' + struct.pack('<i', 6) + head + struct.pack('<24Q', *words)
                  + short(name) + short(file) + cls)


main()
