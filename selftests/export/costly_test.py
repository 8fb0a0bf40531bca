#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Small files whose debug information takes much memory or time to read: both are bounded,
functions still get names, and the user is told which file took too much.
"""

import os
import random
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from cases import Driver, Elf, Skip, case, equal, main, run  # noqa: E402

MIB = 1 << 20
MEMORY, TIME = '1', '2'     # as the command "excess" of driver.c prints them

# A function of 1 MiB, and its debug information: an entry for the function, with blocks inside.
PROGRAM = '''
	.globl _start, big
	.text
_start:
big:	.fill 1048576, 1, 0x90
end:
	.type big, @function
	.size big, end - big
	.section .debug_abbrev, "", @progbits
abbrevs:
	.uleb128 1, 0x11
	.byte 1
	.uleb128 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0
	.uleb128 2, 0x2e
	.byte 1
	.uleb128 0x11, 0x01, 0x12, 0x07, 0x03, 0x08, 0, 0
	.uleb128 3, 0x0b
	.byte 0
	.uleb128 {block}0, 0
	.uleb128 4, 0x2e
	.byte 0
	.uleb128 0x55, 0x17
	.fill {attributes}, 2, 0x0b03
	.byte 0, 0
	.byte 0
	.section .debug_info, "", @progbits
	.long 3f - 2f
2:	.value 4
	.long 0
	.byte 8
	.uleb128 1
	.long 0
	.quad _start, end - _start
	.uleb128 2
	.quad _start, end - _start
	.asciz "big"
	.fill {blocks}, 1, 3
	.byte 0
	.rept {lists}
	.byte 4
	.long 0
	.endr
	.byte 0
3:
	.rept {units}
	.long 8
	.value 4
	.long 0
	.byte 8, 0
	.endr
	.section .debug_ranges, "", @progbits
	.rept {bases}
	.quad -1, 0
	.endr
	.quad 0, 0
	.section .debug_line, "", @progbits
	.long 9f - 4f
4:	.value 4
	.long 6f - 5f
5:	.byte 1, 1, 1, -5, 14, 13
	.byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
	.byte 0
	.asciz "a.c"
	.byte 0, 0, 0, 0
6:	.byte 0, 9, 2
	.quad _start
	.fill {rows}, 1, {opcode}
	.byte 2
	.uleb128 1
	.byte 0, 1, 1
9:
'''


def build(folder, name='prog', blocks=1, block='', units=0, rows=4, opcode=33, strings=0,
          lists=0, bases=0, attributes=0):
    """Builds a program. @rows: rows of its line table. @opcode: opcode of the line table that is
    repeated; 33 adds a row for each byte. @blocks: blocks in its function. @block: more attributes
    of blocks. @units: empty units. @strings: bytes of its strings. @lists: functions with the same
    list of ranges. @bases: base addresses in that, which has no ranges. @attributes: more attributes
    of these functions."""
    path = f'{folder}/{name}'
    with open(f'{path}.s', 'w', encoding='ascii') as file:
        file.write(PROGRAM.format(blocks=blocks, block=block, units=units, rows=rows,
                                  opcode=opcode, lists=lists, bases=bases, attributes=attributes))
    run('gcc', '-nostdlib', '-static', '-Wl,--build-id=none', '-o', path, f'{path}.s')
    if strings:
        add_strings(path, strings)
    run('objcopy', '--compress-debug-sections=zlib', path)
    os.unlink(f'{path}.s')
    return Elf(path)


def add_strings(path, size):
    with open(f'{path}.str', 'wb') as file:
        file.truncate(size)
    run('objcopy', '--add-section', f'.debug_str={path}.str', path)
    os.unlink(f'{path}.str')


def begin(variant, **options):
    option = ''.join(f'{name}={value}' for name, value in options.items())
    driver = Driver(variant, '/nonexistent', option)
    driver.do('proc', 'p', 0)
    return driver


def most(driver):
    """Returns the most memory that the driver had, in bytes."""
    with open(f'/proc/{driver.process.pid}/status', encoding='ascii') as file:
        for line in file:
            if line.startswith('VmHWM:'):
                return int(line.split()[1]) * 1024
    raise AssertionError('no VmHWM')


def excess(driver):
    return {path: what for what, path in (line.split('\t') for line in driver.do('excess'))}


def check_memory(driver, bound):
    have = most(driver)
    assert have < bound, f'{have >> 20} MiB'


def named(driver, elf, offset=1):
    frames = driver.lookup('p', elf.addr('big', offset))
    assert frames[-1].function in ('big', '_start'), frames
    return frames[-1]


def native_only(variant):
    if variant != 'native':
        raise Skip('sanitizers need more memory than what they look at')


@case
def lines(variant, folder):
    """lines: as many rows as bytes, by one function without its line"""
    elf = build(folder, rows=MIB - 8)
    driver = begin(variant)
    elf.map(driver, 'p')
    frame = named(driver, elf, 1000)
    equal((os.path.basename(frame.file), frame.line), ('a.c', 1001))
    equal(excess(driver), {})
    driver.close()
    native_only(variant)
    elf = build(folder, rows=60 * MIB)
    driver = begin(variant, memory=128 * MIB)
    elf.map(driver, 'p')
    equal(named(driver, elf).line, 0)
    equal(excess(driver), {elf.path: MEMORY})
    check_memory(driver, 192 * MIB)
    driver.close()


@case
def rows_of_one_address(variant, folder):
    """lines: rows that no address can be found in take no memory"""
    native_only(variant)
    elf = build(folder, rows=60 * MIB, opcode=18)
    driver = begin(variant, memory=128 * MIB)
    elf.map(driver, 'p')
    named(driver, elf)
    equal(excess(driver), {})
    check_memory(driver, 100 * MIB)
    driver.close()


@case
def sections_of_many(variant, folder):
    """sections that unpack to much, of several files: one bound for all, and each has some"""
    native_only(variant)
    elves = [build(folder, f'prog{i}', strings=60 * MIB) for i in range(4)]
    driver = begin(variant, memory=160 * MIB)
    for i, elf in enumerate(elves):
        driver.do('proc', 'p', i)
        elf.map(driver, 'p')
        named(driver, elf)
    over = excess(driver)
    assert 0 < len(over) < 4 and set(over.values()) == {MEMORY}, over
    check_memory(driver, 180 * MIB)
    driver.close()


@case
def units(variant, folder):
    """units: libdw keeps a record for each"""
    native_only(variant)
    elf = build(folder, units=1 << 20)
    driver = begin(variant, memory=100 * MIB)
    elf.map(driver, 'p')
    named(driver, elf)
    equal(excess(driver), {elf.path: MEMORY})
    check_memory(driver, 120 * MIB)
    driver.close()


@case
def blocks(variant, folder):
    """blocks of a function: they are gone through once, not for each address"""
    elf = build(folder, blocks=2 * MIB)
    driver = begin(variant)
    elf.map(driver, 'p')
    for i in range(1000):
        equal(named(driver, elf, 1 + 1000 * i).function, 'big')
    assert driver.cpu() < 15, driver.cpu()
    equal(excess(driver), {})
    driver.close()


@case
def attributes(variant, folder):
    """attributes that take no bytes: entries of thousands of them are not gone through"""
    elf = build(folder, blocks=4 * MIB, block='0x3c, 0x19, ' * 4000)
    driver = begin(variant)
    elf.map(driver, 'p')
    named(driver, elf)
    assert driver.cpu() < 10, driver.cpu()
    driver.close()


def ends_in_time(variant, elf):
    """Names are read for a second, and it is said that there was no more time."""
    driver = begin(variant, time=10 ** 9)
    elf.map(driver, 'p')
    named(driver, elf)
    assert driver.cpu() < 5, driver.cpu()
    equal(excess(driver), {elf.path: TIME})
    driver.close()


@case
def ranges(variant, folder):
    """lists without a range: functions of which each has a long one are not gone through"""
    ends_in_time(variant, build(folder, lists=20000, bases=1 << 16))


@case
def abbreviations(variant, folder):
    """an abbreviation of megabytes: it is not gone through for each of many units"""
    ends_in_time(variant, build(folder, units=1000, attributes=2 * MIB))


@case
def time(variant, folder):
    """CPU time: what takes too long has symbols only, and is told"""
    elf = build(folder, blocks=4 * MIB)
    other = build(folder, 'other')
    driver = begin(variant, time=1000)
    elf.map(driver, 'p')
    named(driver, elf)
    equal(named(driver, elf, 2).line, 0)
    equal(excess(driver), {elf.path: TIME})
    driver.do('proc', 'p', 2)
    other.map(driver, 'p')
    driver.lookup('p', other.addr('big', 1))
    equal(excess(driver), {elf.path: TIME, other.path: TIME})
    driver.close()


@case
def nothing_left(variant, folder):
    """no memory at all for what files say: addresses"""
    elf = build(folder)
    driver = begin(variant, memory=1)
    elf.map(driver, 'p')
    frame = driver.lookup('p', elf.addr('big', 1))[0]
    assert frame.function in ('big', '_start') or frame.function.startswith('[prog+0x'), frame
    equal(excess(driver), {elf.path: MEMORY})
    driver.close()


@case
def former_mappings(variant, folder):
    """thousands of former mappings: they are not gone through for each address of a stack"""
    elf = build(folder)
    driver = begin(variant)
    driver.do('type', 'samples', 'count')
    base, size, nr = 0x10000000, 0x2000, 4000
    for i in range(nr):
        driver.do('map', 'p', hex(base + i * size), hex(base + i * size + 0x1000), 0, '')
        driver.do('unmap', 'p', hex(base + i * size), hex(base + i * size + 0x1000))
    driver.do('proc', 'q', 0)
    used = {}
    for proc in 'q', 'p':
        before = driver.cpu()
        for n in range(600):
            stack = ','.join(hex(base + i * size + 0x1800 + n) for i in range(500))
            driver.do('sample', proc, 1, 'x', 0, 0, '1', stack)
        used[proc] = driver.cpu() - before
    assert used['p'] < 3 * used['q'] + 0.2, used
    # The last mapping that was at an address is found there.
    elf.map(driver, 'p', 0x30000000)
    start, end = 0x30000000, 0x40000000
    driver.do('unmap', 'p', hex(start), hex(end))
    driver.do('map', 'p', hex(start), hex(start + 0x1000), 0, '')
    driver.do('unmap', 'p', hex(start), hex(start + 0x1000))
    equal(driver.lookup('p', start + 0x800)[0].function, f'[{start + 0x800:#x}]')
    frames = driver.lookup('p', elf.addr('big', 0x8000, start))
    assert frames[-1].function in ('big', '_start'), frames
    driver.close()


class Changes:
    """Changes a file all the time: some bytes of it, its end, or all of it."""

    def __init__(self, path):
        self.path = path
        with open(path, 'rb') as file:
            self.whole = file.read()
        self.random = random.Random(5)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def change(self, file):
        size = len(self.whole)
        kind = self.random.randrange(4)
        if kind == 0:
            os.pwrite(file, self.whole, 0)
        elif kind == 1:
            os.ftruncate(file, self.random.randrange(size))
        else:
            os.pwrite(file, self.random.randbytes(self.random.randrange(1, 64)),
                      self.random.randrange(size))

    def run(self):
        file = os.open(self.path, os.O_RDWR)
        while not self.stop.is_set():
            self.change(file)
        os.close(file)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()


@case
def files_that_change(variant, folder):
    """a file that is written and cut off while it is read: any names, and no more harm"""
    elf = build(folder, blocks=1000, rows=2000)
    if os.geteuid() == 0:
        os.chown(elf.path, 12345, 12345)    # a file of root's would be mapped
    with Changes(elf.path):
        for _ in range(25):
            driver = begin(variant)
            elf.map(driver, 'p')
            for offset in range(1, 2000, 97):
                assert driver.lookup('p', elf.addr('big', offset))
            driver.close()


if __name__ == '__main__':
    sys.exit(main())
