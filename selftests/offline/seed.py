#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes small files for the fuzz targets to start from: a core file of each machine, and perf.data
files, with one of everything that is read from them.

usage: seed.py FOLDER
"""

import os
import struct
import sys

PAGE = 4096


def pad(data, size=4):
    """Fills up with zeros to a multiple of size."""
    return data + bytes(-len(data) % size)


def note(name, kind, desc):
    """Returns a note."""
    return (struct.pack('<III', len(name) + 1, len(desc), kind) +
            pad(name + b'\0') + pad(desc))


def prstatus(tid, regs):
    """Returns the contents of NT_PRSTATUS."""
    head = bytearray(112)
    struct.pack_into('<h', head, 12, 11)
    struct.pack_into('<i', head, 32, tid)
    return bytes(head) + struct.pack(f'<{len(regs)}Q', *regs) + bytes(8)


def core(machine):
    """Returns a core file with two threads, code, a stack and a shadow stack."""
    code, stack, shadow = 0x400000, 0x7ff000, 0x900000
    if machine == 62:
        regs = [0] * 27
        regs[4], regs[16], regs[19] = stack + 64, code + 16, stack + 32
        shadow_notes = note(b'LINUX', 0x204, struct.pack('<Q', shadow + 64))
    elif machine == 243:
        regs = [code + 16, code + 32, stack + 32] + [0] * 29
        shadow_notes = note(b'LINUX', 0x903, struct.pack('<QQ', 1 << 3 | 1 << 5, shadow + 64))
    else:
        regs = [0] * 34
        regs[29], regs[30], regs[31], regs[32] = stack + 64, code + 32, stack + 32, code + 16
        shadow_notes = (note(b'LINUX', 0x410, struct.pack('<QQQ', 1, 0, shadow + 64)) +
                        note(b'LINUX', 0x406, struct.pack('<QQ', 0, 0xff << 48)))
    names = b'/bin/program\0/bin/program\0'
    files = struct.pack('<QQ', 2, PAGE) + struct.pack(
        '<6Q', code, code + PAGE, 0, code + PAGE, code + 2 * PAGE, 1) + names
    auxv = struct.pack('<6Q', 9, code + 16, 33, 0, 0, 0)
    notes = (note(b'CORE', 1, prstatus(100, regs)) +
             note(b'CORE', 3, bytes(24) + struct.pack('<i', 100) + bytes(12) +
                  pad(b'program', 16) + bytes(80)) +
             note(b'CORE', 6, auxv) + note(b'CORE', 0x46494c45, files) + shadow_notes +
             note(b'CORE', 1, prstatus(101, regs)) + shadow_notes)
    frames = struct.pack('<16Q', *([0] * 8 + [stack + 96, code + 33, 0, 0, 0, code + 49, 0, 0]))
    entries = struct.pack('<16Q', *([0] * 8 + [code + 33, code + 49] + [0] * 6))
    loads = [(code, 5, bytes(64)), (stack, 6, frames), (shadow, 6, entries)]
    headers, body = b'', b''
    at = 64 + 56 * (len(loads) + 1)
    headers += struct.pack('<IIQQQQQQ', 4, 0, at, 0, 0, len(notes), 0, 4)
    body += notes
    for addr, flags, data in loads:
        headers += struct.pack('<IIQQQQQQ', 1, flags, at + len(body), addr, 0,
                               len(data), PAGE, PAGE)
        body += data
    return (b'\x7fELF\x02\x01\x01' + bytes(9) +
            struct.pack('<HHIQQQIHHHHHH', 4, machine, 1, 0, 64, 0, 0, 64, 56,
                        len(loads) + 1, 0, 0, 0) + headers + body)


def record(kind, misc, body):
    """Returns a record of a perf.data file."""
    body = pad(body, 8)
    return struct.pack('<IHH', kind, misc, len(body) + 8) + body


def attribute(ids, copies=True):
    """Returns a perf_event_attr with these IDs, with copies of stacks or callchains alone."""
    # IP, TID, TIME, PERIOD, CALLCHAIN, IDENTIFIER
    kinds = 0x1 | 0x2 | 0x4 | 0x100 | 0x20 | 0x10000
    if copies:
        kinds |= 0x1000 | 0x2000    # REGS_USER, STACK_USER
    attr = bytearray(112)
    struct.pack_into('<IIQQQQQ', attr, 0, 1, 112, 0, 4000, kinds, 4,
                     1 << 10 | 1 << 18)
    if copies:
        struct.pack_into('<QIi', attr, 80, 0xff0fff, 64, 0)
    return bytes(attr), ids


def sample_body(copies):
    """Returns a sample: with a copy of the stack, or a callchain of the kernel and the program."""
    head = struct.pack('<QQIIQQ', 1, 0x400010, 100, 100, 6, 1000)
    if not copies:
        return head + struct.pack('<7Q', 6, 2**64 - 128, 0xffffffff81000010, 2**64 - 512, 0x400010,
                                  0x400021, 0x400101)
    return (head + struct.pack('<QQ', 1, 0x400010) + struct.pack('<Q', 2) +
            struct.pack('<20Q', *range(0x7ff000, 0x7ff000 + 20)) +
            struct.pack('<Q', 64) + bytes(64) + struct.pack('<Q', 48))


def records(copies=True):
    """Returns records: a program with two samples that forks."""
    tail = struct.pack('<IIQQ', 100, 100, 5, 1)
    mmap = struct.pack('<IIQQQ', 100, 100, 0x400000, 0x2000, 0) + bytes(24)
    sample = sample_body(copies)
    return (record(3, 1 << 13, struct.pack('<II', 100, 100) + b'program\0' + tail) +
            record(10, 2, mmap + struct.pack('<II', 5, 2) + pad(b'/bin/program\0', 8) + tail) +
            record(10, 2 | 1 << 14, mmap[:32] + bytes([20, 0, 0, 0]) + bytes(20) +
                   struct.pack('<II', 5, 2) + pad(b'[vdso]\0', 8) + tail) +
            record(9, 2, sample) +
            record(7, 0, struct.pack('<IIIIQ', 101, 100, 101, 100, 7) + tail) +
            record(9, 2, sample) +
            record(2, 0, struct.pack('<QQ', 1, 3) + tail) +
            record(13, 0, struct.pack('<Q', 3) + tail) + record(68, 0, b''))


def packed(data):
    """Returns the same records as perf record -z writes them: a stream, here with raw blocks."""
    half = len(data) // 2 - 3
    blocks = [struct.pack('<I', len(part) << 3)[:3] + part for part in (data[:half], data[half:])]
    first = b'\x28\xb5\x2f\xfd\x00\x38' + blocks[0]
    # The newer kind of record tells its size.
    second = struct.pack('<Q', len(blocks[1])) + blocks[1]
    return struct.pack('<IHH', 81, 0, len(first) + 8) + first + record(83, 0, second)


def perfdata(data, copies=True):
    """Returns a file with these records as perf record writes it."""
    attr, ids = attribute(struct.pack('<QQ', 1, 2), copies)
    at = 104
    attrs_at = at + len(ids)
    attrs = attr + struct.pack('<QQ', at, len(ids))
    data_at = attrs_at + len(attrs)
    features = data_at + len(data)
    build_id = record(67, 1 << 15, struct.pack('<i', -1) + bytes(20) + bytes([20, 0, 0, 0]) +
                      pad(b'/bin/program\0', 8))
    arch = struct.pack('<I', 64) + pad(b'x86_64', 64)
    desc = (struct.pack('<II', 1, len(attr)) + attr + struct.pack('<II', 2, 16) +
            pad(b'cpu-clock', 16) + ids)
    parts, where, offset = b'', b'', features + 3 * 16
    for part in build_id, arch, desc:
        where += struct.pack('<QQ', offset + len(parts), len(part))
        parts += part
    head = b'PERFILE2' + struct.pack('<QQQQQQQQ', 104, len(attrs), attrs_at, len(attrs),
                                     data_at, len(data), 0, 0)
    bits = 1 << 2 | 1 << 6 | 1 << 12
    return head + struct.pack('<4Q', bits, 0, 0, 0) + ids + attrs + data + where + parts


def pipe(data, copies=True):
    """Returns a file with these records as perf record -o - writes it."""
    attr, ids = attribute(struct.pack('<QQ', 1, 2), copies)
    return (b'PERFILE2' + struct.pack('<Q', 16) + record(64, 0, attr + ids) + data)


def perf_files():
    """Returns {name: data} of perf.data files of every form."""
    files = {}
    for copies, tail in (True, ''), (False, '-chains'):
        data = records(copies)
        for packing, form in (data, ''), (packed(data), '-z'):
            files[f'file{form}{tail}'] = perfdata(packing, copies)
            files[f'pipe{form}{tail}'] = pipe(packing, copies)
    return files


def main():
    """Writes all files. Those of perf.data are read by two targets."""
    files = {f'core_seed-{name}': core(machine)
             for name, machine in (('x86', 62), ('arm64', 183), ('riscv', 243))}
    for name, data in perf_files().items():
        files[f'perfdata_seed-{name}'] = files[f'convert_seed-{name}'] = data
    for name, data in files.items():
        with open(os.path.join(sys.argv[1], name), 'wb') as file:
            file.write(data)


if __name__ == '__main__':
    main()
