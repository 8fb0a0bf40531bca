#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes what bpf/language_walk.h copies of a function of Ruby 3.1, for ruby_fuzz.c.

    ruby_seed.py FILE
"""

import struct
import sys


def main():
    label, path = b'block in <main>', b'/srv/www/index.rb'
    words = [0, 1] + [0] * 9 + [6 << 1 | 1] + [0] * 12
    head = struct.pack('<2IQ4I', 0, 0x101, 1, 1, len(label), len(path), 0)
    with open(sys.argv[1], 'wb') as out:
        out.write(b'\0' + struct.pack('<i', 6) + head + struct.pack('<24Q', *words)
                  + label.ljust(1024, b'\0') + path.ljust(1024, b'\0'))


main()
