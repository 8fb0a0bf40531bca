#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes what a heap agent counts (tools/inject/heap/region.h), for heap_fuzz.c.

    heap_seed.py FILE PROGRAM

FILE has a process that ended, and FILE2 two that run while snapshots are made, of which one says how
much of its region it uses. A stack has a function of Python 3.12. FILE3 has one whose innermost entries
are operator new's, in PROGRAM, and in the place of all entries but the last are frames that are not
shown.
"""

import os
import re
import struct
import subprocess
import sys

UNIT = 64
HEAD = 320      # bytes of struct heap_image
TRACE, MAPS, THREAD, PYTHON, CODE = 0x72743031, 0x706d3032, 0x68743033, 0x79703035, 0x6f633036
SAMPLED, SNAPSHOTS, ALIVE = 4, 8, 16
BASE = 0x100000000000     # where the program is mapped
TEXT = b'55d000000000-55d000001000 r-xp 00000000 fe:00 11 /usr/bin/a\n'


def record(kind, body):
    units = (8 + len(body) + UNIT - 1) // UNIT
    return (struct.pack('<2I', kind, units) + body).ljust(units * UNIT, b'\0')


def trace(counter, tid, pcs):
    return record(TRACE, struct.pack('<8I', counter, 1, tid, len(pcs), 0, 0, 0, 0)
                  + struct.pack(f'<{len(pcs)}Q', *pcs) + b'\1' * len(pcs))


def text(string):
    """A str object that is all ASCII."""
    return (struct.pack('<5Q', 1, 0, len(string), 0, 0x64) + string).ljust(64, b'\0')


def python_code():
    """A struct language_code."""
    name, file, table = text(b'inner'), text(b'/x.py'), struct.pack('<4Q', 1, 0, 3, 0) + b'\xd8\4\5'
    words = [0] * 24
    words[7], words[8] = 3 << 32, 12 << 32
    return (struct.pack('<2IQ4I', 0, 0x101, 99, 0, len(name), len(file), len(table))
            + struct.pack('<24Q', *words) + name.ljust(1024, b'\0') + file.ljust(1024, b'\0') + table)


def python():
    """The interpreter and a function."""
    return (record(PYTHON, struct.pack('<2I2Q', 12, 0, 0x55d000000400, 256)) + record(CODE, python_code()))


def python_frames(pcs):
    """What Python ran in three entries, of which the last is outside: the entry frame lies in the second."""
    frames = struct.pack('<3Q', 0x1000, 0x1100, 0x1200)
    frames += struct.pack('<10I4Q', 0, 0x100, 0, 0, 0, 2, 0, 0, 0, 0, pcs[0], 0x1000, 0, 0)
    return frames + struct.pack('<2QiI', 0x9000, 99, 0, 0) + struct.pack('<2QiI', 0x1110, 0, 0, 3 << 16)


def python_trace(counter, pcs):
    """A stack in which Python ran a function."""
    frames = python_frames(pcs)
    return record(TRACE, struct.pack('<8I', counter, 1, 0, len(pcs), 0, len(frames), 0, 0)
                  + struct.pack(f'<{len(pcs)}Q', *pcs) + frames + b'\0' * len(pcs))


def hidden_trace(counter, new):
    """A stack in which nearly every entry ran an entry frame, which is not shown."""
    pcs = [new] * 4 + [0x55d000000123] * 2
    places = range(0x1000, 0x1600, 0x100)
    frames = struct.pack('<6Q', *places)
    frames += struct.pack('<10I4Q', 0, 0x100, 0, 0, 0, 5, 0, 0, 0, 0, pcs[0], 0x1000, 0, 0)
    for place in places[:5]:
        frames += struct.pack('<2QiI', place + 16, 0, 0, 3 << 16)
    return record(TRACE, struct.pack('<8I', counter, 1, 0, len(pcs), 0, len(frames), 0, 0)
                  + struct.pack(f'<{len(pcs)}Q', *pcs) + frames + b'\0' * len(pcs))


def counter(objects, size):
    return struct.pack('<7Q2I', objects, objects * size, objects // 2, objects * size // 2, 999,
                       objects, objects * size, 1, 0)


def operator_new(program):
    """A line of maps by which the program is in memory as in its file, and an address in what is named
    like operator new there."""
    names = subprocess.run(['nm', program], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r'^([0-9a-f]+) t _Znwm_of_this_program$', names, re.M)
    headers = subprocess.run(['readelf', '-lW', program], check=True, stdout=subprocess.PIPE,
                             text=True).stdout
    part = re.search(r'^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E', headers, re.M)
    offset, start, size = (int(word, 16) for word in part.groups())
    stat = os.stat(program)
    first = start - start % 4096 + BASE
    return (f'{first:x}-{first + (start % 4096 + size + 4095) // 4096 * 4096:x} r-xp '
            f'{offset - offset % 4096:08x} {os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x} '
            f'{stat.st_ino} {os.path.abspath(program)}\n'.encode(), BASE + int(found[1], 16) + 1)


def hidden_region(program):
    """The same as region(), of a process that says of its frames what can't be."""
    maps, new = operator_new(program)
    maps += TEXT
    records = record(MAPS, struct.pack('<2I', 1, len(maps)) + maps)
    first = (HEAD + len(records)) // UNIT
    records += counter(10, 100) + python() + hidden_trace(first, new)
    head = struct.pack('<2BHIHBx16s2Q2qQq', 0, 2, len(records), 4096, 0, 0, b'name', 0, 1, 500, 900,
                       1 << 40, 4096)
    return head + records


def region(used=0):
    records = record(MAPS, struct.pack('<2I', 1, len(TEXT)) + TEXT)
    records += record(THREAD, struct.pack('<2I', 7, 0) + b'worker'.ljust(16, b'\0'))
    first = (HEAD + len(records)) // UNIT
    records += counter(10, 100) + counter(20, 8)
    records += trace(first, 0, [0x55d000000123, 0x55d000000456])
    records += trace(first + 1, 7, [0x55d000000123])
    records += python() + python_trace(first, [0x55d000000123, 0x55d000000456, 0x55d000000789])
    far = trace(first, 7, [0x55d000000789])
    head = struct.pack('<2BHIHBx16s2Q2qQq', 2, 2, len(records), 4096, len(far), bool(used),
                       b'name', used, 1, 500, 900, 1 << 40, 4096)
    return head + records + far


def main():
    with open(sys.argv[1], 'wb') as out:
        out.write(bytes([0]) + region())
    with open(sys.argv[1] + '2', 'wb') as out:
        out.write(bytes([1 | SAMPLED | SNAPSHOTS | ALIVE]) + region() + region(1 << 20))
    with open(sys.argv[1] + '3', 'wb') as out:
        out.write(bytes([0]) + hidden_region(sys.argv[2]))


if __name__ == '__main__':
    main()
