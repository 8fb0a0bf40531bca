#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Seeds for rules_fuzz: the sections of an ELF file with unwind information.

usage: rules_seed.py FILE OUT-PREFIX
"""

import struct
import sys


def sections(data):
    """Returns {name: bytes}."""
    shoff, = struct.unpack_from('<Q', data, 40)
    size, count, strndx = struct.unpack_from('<HHH', data, 58)
    strings, = struct.unpack_from('<Q', data, shoff + strndx * size + 24)
    found = {}
    for i in range(count):
        at = shoff + i * size
        name, kind = struct.unpack_from('<II', data, at)
        off, length = struct.unpack_from('<QQ', data, at + 24)
        end = data.index(b'\0', strings + name)
        if kind != 8:
            found[data[strings + name:end].decode()] = data[off:off + length]
    return found


def main():
    path, out = sys.argv[1:]
    with open(path, 'rb') as file:
        data = file.read()
    have = sections(data)
    arm64 = 4 if data[18] == 183 else 0
    for kind, name in ((0, '.eh_frame'), (1, '.eh_frame'), (2, '.debug_frame'), (3, '.sframe')):
        if name not in have:
            continue
        hdr = have.get('.eh_frame_hdr', b'') if kind == 1 else b''
        with open(f'{out}{kind}{arm64}', 'wb') as file:
            file.write(bytes([kind | arm64]) + struct.pack('<H', len(hdr)) + hdr + have[name])


main()
