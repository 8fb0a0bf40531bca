# SPDX-License-Identifier: GPL-2.0-or-later
"""How much stack the functions of a BPF object take when they call each other, by its instructions."""

import collections
import struct

FRAME = 10              # the register that points to the end of a function's stack
CALLED = range(6)       # registers that a call changes
FUNCTION, EXECUTABLE, SYMBOLS, RELOCATIONS = 2, 4, 2, 9
LOAD_WORDS, CALL, EXIT = 0x18, 0x85, 0x95
MOVE, ADD = 0xbf, 0x07

Section = collections.namedtuple('Section', 'name kind flags offset size link info')
Symbol = collections.namedtuple('Symbol', 'name info section value size')
Instruction = collections.namedtuple('Instruction', 'code to of offset value')


class Function:
    """A function: its name, the bytes of its stack, and the functions that it calls or hands on."""

    def __init__(self, name):
        self.name = name
        self.stack = 0
        self.calls = set()


def text(strings, at):
    return strings[at:strings.index(b'\0', at)].decode()


class Object:
    """An ELF object for BPF, little-endian."""

    def __init__(self, path):
        with open(path, 'rb') as file:
            self.data = file.read()
        begin, = struct.unpack_from('<Q', self.data, 40)
        size, number, names = struct.unpack_from('<HHH', self.data, 58)
        raw = [struct.unpack_from('<IIQQQQII', self.data, begin + i * size) for i in range(number)]
        strings = self.data[raw[names][4]:][:raw[names][5]]
        self.sections = [Section(text(strings, r[0]), r[1], r[2], *r[4:8]) for r in raw]
        self.symbols = self.read_symbols()
        self.targets = self.read_targets()

    def contents(self, section):
        return self.data[section.offset:section.offset + section.size]

    def read_symbols(self):
        table = next(s for s in self.sections if s.kind == SYMBOLS)
        strings = self.contents(self.sections[table.link])
        return [Symbol(text(strings, name), info, section, value, size)
                for name, info, _, section, value, size
                in struct.iter_unpack('<IBBHQQ', self.contents(table))]

    def read_targets(self):
        """The symbols that instructions refer to, by section and place."""
        return {(section.info, at): self.symbols[info >> 32]
                for section in self.sections if section.kind == RELOCATIONS
                for at, info in struct.iter_unpack('<QQ', self.contents(section))}

    def instructions(self, symbol):
        """Yields the instructions of a function with their places in its section."""
        data = self.contents(self.sections[symbol.section])
        for at in range(symbol.value, symbol.value + symbol.size, 8):
            code, registers, offset, value = struct.unpack_from('<BBhi', data, at)
            yield at, Instruction(code, registers & 15, registers >> 4, offset, value)

    def called(self, section, at, i):
        """The section and place of the function that an instruction calls or has the address of, or None.

        A function of the kernel takes none of the program's stack.
        """
        symbol = self.targets.get((section, at))
        if symbol and not symbol.section:
            return None
        if i.code == CALL and i.of == 1:
            return (symbol.section, symbol.value + 8 * (i.value + 1)) if symbol \
                else (section, at + 8 * (i.value + 1))
        if i.code == LOAD_WORDS and symbol and symbol.section < len(self.sections) \
                and self.sections[symbol.section].flags & EXECUTABLE:
            return symbol.section, symbol.value + i.value
        return None

    def functions(self):
        """All functions, by section and place."""
        places = {(s.section, s.value): s for s in self.symbols if s.info & 15 == FUNCTION}
        found = {place: Function(symbol.name) for place, symbol in places.items()}
        for place, symbol in places.items():
            stack = Stack()
            for at, instruction in self.instructions(symbol):
                stack.pass_instruction(instruction)
                called = self.called(symbol.section, at, instruction)
                if called:
                    found[place].calls.add(called)
            found[place].stack = stack.depth
        return found


class Stack:
    """The deepest place of its stack that a function's instructions name."""

    def __init__(self):
        self.depth = 0
        self.pointers = {FRAME: 0}      # registers that point to the stack, and how far from its end

    def pass_instruction(self, i):
        kind = i.code & 7
        if kind in (1, 2, 3):           # loads and stores: what they name is below the register
            self.name(i.of if kind == 1 else i.to, i.offset)
        if i.code == ADD and i.to in self.pointers:
            self.pointers[i.to] += i.value
            self.name(i.to, 0)
        elif i.code == MOVE and i.of in self.pointers:
            self.pointers[i.to] = self.pointers[i.of]
        elif i.code == CALL:
            for register in CALLED:
                self.pointers.pop(register, None)
        elif kind in (0, 1, 4, 7) and i.to != FRAME:
            self.pointers.pop(i.to, None)

    def name(self, register, offset):
        if register in self.pointers:
            self.depth = max(self.depth, -self.pointers[register] - offset)


def most(path, unit, measure):
    """The path of calls that has the most by a measure, as [(function, bytes of stack)]. Each function
    takes full units."""
    functions = Object(path).functions()
    known = {}

    def way(place):
        if place not in known:
            function = functions[place]
            taken = -(-max(function.stack, 1) // unit) * unit
            below = max((way(called) for called in function.calls), key=measure, default=[])
            known[place] = [(function.name, taken)] + below
        return known[place]
    return max((way(place) for place in functions), key=measure)


def deepest(path, unit):
    """The path of calls that takes the most stack."""
    return most(path, unit, total)


def longest(path):
    """The path of the most calls, as the functions' names."""
    return [function for function, _ in most(path, 1, len)]


def total(way):
    return sum(taken for _, taken in way)
