#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes processes that have an interpreter, as interpreter_fuzz.c takes them: one for each way to find one.

    interpreter_seed.py PREFIX FILE

FILE becomes the input that is a file as it is.
"""

import re
import struct
import sys

KINDS = ['php', 'python', 'ruby', 'v8', 'file']
SOURCE = 'selftests/fuzz/interpreter_fuzz.c'
HEAD = '<BB8HH5H4H'
THREAD, RUN, RUN_BYTES = 0x400, 0x1800, 0x100  # where all have them


def names_of(kind):
    """Returns the names of symbols of a kind, in the order of the source."""
    with open(SOURCE, encoding='utf-8') as source:
        found = re.search(rf'\*const {kind}\[\] = {{(.*?)NULL', source.read(), re.S)
    return re.findall(r'"([^"]*)"', found.group(1))


def check_names(kind):
    """Ends if the source lacks a name of a symbol that is looked for in an interpreter's file."""
    with open(f'tools/language/{kind}/recognise.c', encoding='utf-8') as source:
        wanted = re.findall(r'if \(!strcmp\(name, "(\w+)"\)', source.read())
    if not wanted or not set(wanted) <= set(names_of(kind)):
        sys.exit(f'{SOURCE} lacks a name of {kind}: {set(wanted) - set(names_of(kind))}')


class Process:
    """The memory of a process, and what its file says."""

    def __init__(self, kind):
        self.kind = kind
        self.symbols = {}
        self.memory = bytearray(0x2000)
        self.parts = {'header': (0, 0), 'frames': (0, 0), 'tasks': (0, 0), 'relocations': (0, 0)}
        self.arm64 = 0
        self.registers = [THREAD, RUN + 8, 0x1000, 0, 0]

    def words(self, at, *words):
        struct.pack_into(f'<{len(words)}Q', self.memory, at, *(w % 2 ** 64 for w in words))

    def ints(self, at, *ints):
        struct.pack_into(f'<{len(ints)}I', self.memory, at, *(i % 2 ** 32 for i in ints))

    def bytes(self, at, what):
        self.memory[at:at + len(what)] = what

    def symbol(self, name, at):
        self.symbols[name] = at
        return at

    def write(self, path):
        values = [self.symbols[name] if name in self.symbols else 0
                  for name in names_of(self.kind)]
        if not set(self.symbols) <= set(names_of(self.kind)):
            sys.exit(f'{SOURCE} lacks a name of {self.symbols}')
        parts = [number for part in self.parts.values() for number in part]
        with open(path, 'wb') as out:
            out.write(struct.pack(HEAD, KINDS.index(self.kind), self.arm64, *parts, RUN_BYTES,
                                  *self.registers, RUN + 16, RUN + 32, 0, 0))
            out.write(struct.pack(f'<{len(values)}H', *values))
            out.write(self.memory.rstrip(b'\0') + bytes(8))


def make_php(cold):
    """PHP 8.2 with two frames. cold: a part of the function that runs them is elsewhere."""
    it = Process('php')
    registry, module = it.symbol('module_registry', 0x100), 0x140
    it.words(registry + 16, 0x130, 1)
    it.words(0x130, module)
    it.ints(module + 4, 20220829)
    it.bytes(it.symbol('zend_vm_kind', 0x160), b'\xf3\x0f\x1e\xfa\xb8\4\0\0\0\xc3')
    it.symbol('execute_ex', RUN)
    globals_, frame, function = it.symbol('executor_globals', 0x200), 0x800, 0x900
    it.words(globals_ + 480, 262144, frame)
    for at, caller, flags in ((frame, frame + 64, 0), (frame + 64, 0, 1 << 17)):
        it.words(at + 24, function, 0, flags, caller)
        it.words(at, 0xa00)
    it.words(function, 2, 0xb00, 0, 0, 0, 0xb00)
    it.ints(function + 80, 4)
    it.words(function + 88, 0xa00)
    it.words(function + 152, 0xb00)
    for i in range(4):
        it.ints(0xa00 + 32 * i + 24, 10 + i)
    it.words(0xb00, 0, 77, 5, int.from_bytes(b'a.php', 'little'))
    it.registers[3:] = frame, 0xa20
    if cold:
        table, elsewhere = 0xc00, 0x1a00
        it.bytes(table, b'\1\x1b\3\x3b')
        it.ints(table + 4, 0, 3)
        for i, at in enumerate((RUN, elsewhere, elsewhere + 64)):
            it.ints(table + 12 + 8 * i, at - table, 0)
        it.parts['header'] = (table, 12 + 3 * 8)
        for i in range(12):
            at = RUN + 8 * i
            it.bytes(at, b'\x0f\x84' + struct.pack('<i', elsewhere + i - at - 6))
    return it


def make_php_fiber():
    """PHP 8.2 in a fiber: its frames end with one of a function without a name and without code."""
    it = make_php(False)
    globals_, second, begins, function = it.symbols['executor_globals'], 0x840, 0xd00, 0xd80
    it.words(globals_ + 1680, 0xe00)
    it.words(second + 48, begins)
    it.words(begins + 24, function, 0, 1 << 17, 0)
    it.words(function, 1)
    it.symbol('zend_generator_resume', 0x1a00)
    it.symbol('zend_fiber_switch_context', 0x1b00)
    it.symbol('jump_fcontext', RUN + 32)
    return it


def put_python_text(it, at, text, text_type):
    it.words(at, 1, text_type, len(text), 0, 0x60 | 1 << 2)
    it.bytes(at + 40, text + b'\0')


def put_python_code(it, at, code_type, name):
    it.words(at, 1, code_type, 7)
    it.ints(at + 68, 30)
    it.words(at + 112, name, name, name, name + 128)


def make_python_11():
    """Python 3.11: a frame of a list that begins on the native stack."""
    it = Process('python')
    it.words(it.symbol('Py_Version', 0x100), 0x030b02f0)
    runtime, state, cframe, frame, code = it.symbol('_PyRuntime', 0x900), 0x200, 0xc00, 0xc40, 0xd00
    it.ints(runtime + 592, 1, 0)
    it.words(THREAD + 0x318, state)
    it.words(state + 56, cframe)
    it.words(state + 152, THREAD)
    it.words(state + 304, 0x1000)
    it.words(cframe, 0, frame, 0)
    for at, caller in ((frame, frame + 80), (frame + 80, 0)):
        it.words(at + 32, code, 0, caller, code + 190)
        it.bytes(at + 68, bytes([not caller, 0]))
    put_python_code(it, code, it.symbol('PyCode_Type', 0x120), 0xf00)
    put_python_text(it, 0xf00, b'name', it.symbol('PyUnicode_Type', 0x140))
    it.words(0xf80, 1, 0, 4, 0, 0xf00180f00180)
    it.symbol('PyCoro_Type', 0x130)
    it.symbol('_PyEval_EvalFrameDefault', RUN)
    it.bytes(RUN, b'\x90\x48\x89\x47\x38\x90\xff\xe0')
    return it


# Words of _Py_DebugOffsets and of _AsyncioDebug; see versions.c and awaits_find.c.
OFFSETS_14 = {
    4: 784, 26: 72, 27: 152, 31: 88, 32: 8, 33: 0, 34: 56, 36: 74, 39: 216, 40: 112, 42: 128, 43: 136,
    44: 68, 48: 208, 51: 8, 75: 16, 76: 32, 78: 32, 79: 16, 80: 40,
    5: 0x320, 8: 8, 9: 16, 23: 0, 24: 8, 28: 16, 37: 64, 53: 16, 55: 24, 63: 16, 64: 24, 65: 32,
    72: 16, 73: 24, 85: 24, 86: 16, 87: 0, 88: 8,
}
OFFSETS_15 = {
    4: 912, 26: 72, 30: 176, 39: 88, 40: 8, 41: 0, 42: 56, 44: 74, 47: 216, 48: 112, 50: 128, 51: 136,
    52: 68, 56: 208, 59: 8, 87: 16, 88: 32, 90: 32, 91: 16, 92: 40,
    5: 0x388, 8: 8, 9: 16, 23: 0, 24: 8, 31: 16, 45: 64, 61: 16, 63: 24, 75: 16, 76: 24, 77: 32,
    84: 16, 85: 24, 101: 24, 102: 16, 103: 0, 104: 8,
}
TASK_OFFSETS = (56, 0, 16, 24, 25, 32, 40, 0, 24, 0, 0, 40, 24)


def put_python_task(it, minor, state, code):
    """A task of a version, whose coroutine waits."""
    interpreter, node, awaited = 0x1300, 0x1400 + 40, 0x16c0
    it.words(interpreter, 0, 0, state, interpreter + 24, interpreter + 24)
    it.words(state, 0, 0, 99, node, node)
    it.words(node - 40, 0xf00, 0, 0, 1, 0x1480, state + 24, state + 24)
    # Its coroutine, and what that awaits: an object of a type that is its own.
    it.words(0x1480, 0, it.symbol('PyCoro_Type', 0x130), 255 if minor == 14 else 2, code)
    it.words(0x1480 + 24 + 56, code + 210, 0x1500)
    it.words(0x1500 - 16, awaited, awaited)
    it.words(awaited, 0, awaited, awaited + 40, 1 << 24, 0, int.from_bytes(b'FutureIt', 'little'))
    it.words(0x1540, *TASK_OFFSETS)
    it.parts['tasks'] = (0x1540, 8 * len(TASK_OFFSETS))
    return interpreter


def put_python(it, minor, runtime):
    """Python of a version with a frame and a task. Returns the address of a thread's state."""
    state, frame, code = 0x200, {14: 0xc40, 15: 0x1900}[minor], 0xd00
    it.words(it.symbol('Py_Version', 0x100), 0x030000f0 | minor << 16)
    it.symbol('_PyRuntime', runtime)
    it.bytes(runtime, b'xdebugpy')
    for word, value in {14: OFFSETS_14, 15: OFFSETS_15}[minor].items():
        it.words(runtime + 8 * word, value)
    it.words(runtime + {14: 0x320, 15: 0x388}[minor], put_python_task(it, minor, state, code))
    it.words(state + 72, frame)
    it.words(state + {14: 152, 15: 176}[minor], THREAD)
    it.words(frame, code, 0)
    it.words(frame + 56, code + 210)
    put_python_code(it, code, it.symbol('PyCode_Type', 0x120), 0xf00)
    put_python_text(it, 0xf00, b'name', it.symbol('PyUnicode_Type', 0x170))
    it.words(0x170 + 24, 1 << 28)
    it.words(0xf80, 1, 0, 4, 0, 0xf00180f00180)
    for name, at in (('PyGen_Type', 0x150), ('PyAsyncGen_Type', 0x158), ('PySet_Type', 0x160)):
        it.symbol(name, at)
    it.symbol('_PyEval_EvalFrameDefault', RUN)
    return state


def put_python_thread(it):
    """Where a thread of arm64 begins, which the code of pthread_self() tells."""
    it.arm64 = 1
    names = names_of('python')
    it.words(0x1600, 0x1640, (1 + names.index('pthread_self')) << 32 | 1026, 0)
    it.parts['relocations'] = (0x1600, 24)
    it.words(0x1640, 0x1650)
    it.ints(0x1650, 0xd503245f, 0xd53bd040, 0xd1000000 | 0x100 << 10, 0xd65f03c0)
    it.registers[0] = THREAD + 0x100


def make_python_14(arm64):
    """Python 3.14 with a task."""
    it = Process('python')
    # The table is in the middle of other things, as it has gaps.
    runtime = 0x900
    state = put_python(it, 14, runtime)
    it.ints(runtime + 2336, 1, 0)
    it.words(THREAD + 0x318, state)
    if arm64:
        put_python_thread(it)
        it.words(THREAD + 0x118, state)
    return it


def make_python_15(code, arm64=False):
    """Python 3.15 with a task. code: that of the function which reads the variable that has a thread's state."""
    it = Process('python')
    state, reader = put_python(it, 15, 0x900), 0x1700
    # The outermost frame is none.
    it.words(0x1900 + 8, 0x1980)
    it.bytes(0x1980 + 74, b'\3')
    it.bytes(it.symbol('PyGILState_GetThisThreadState', reader), code)
    if arm64:
        put_python_thread(it)
        it.words(0x1680, RUN, 0x30)
        it.words(THREAD + 0x100 + 0x30, state)
        return it
    it.words(THREAD - 40, state)
    # The thread's table of blocks, of which the first one is this module's.
    it.words(0x1780, 1, 0)
    it.words(THREAD + 8, 0x17b0)
    it.words(0x17a0, 1)
    it.words(0x17b0, 1, 0, 0x17d0)
    it.words(0x17d0 + 40, state)
    return it


def codes_of_python_15():
    """Those of a program and a library, and of a library on arm64 whose descriptor is at 0x1680."""
    program = b'\x64\x48\x8b\x04\x25\xd8\xff\xff\xff\xc3'
    library = (b'\x55\x48\x89\xe5\x48\x8d\x3d' + struct.pack('<i', 0x1780 - 0x170b) +
               b'\xe8\0\0\0\0\x5d\x48\x8b\x80\x28\0\0\0\xc3')
    arm64 = struct.pack('<12I', 0xd503233f, 0xd53bd041, 0xa9bf7bfd, 0x910003fd, 0x90000000, 0xf9400002 | 0x680 // 8 << 10,
                        0x91000000 | 0x680 << 10, 0xd63f0040, 0xf8606820, 0xa8c17bfd, 0xd50323bf, 0xd65f03c0)
    return program, library, arm64


def put_ruby(it, frame_bytes, stack, frame):
    """Puts two frames of a function, and the outermost one."""
    flags, function, body = 0x700, 0x740, 0x780
    it.words(flags, 0x11110021, 0, 0x799900a1)
    it.words(function, 0x701a, 0, body)
    it.words(stack, frame + 3 * frame_bytes - stack >> 3)
    for i in range(3):
        it.words(frame + i * frame_bytes, RUN + 16, 0, function, 0, flags + (16 if i == 2 else 0))
    it.words(body, 100 << 32, 0x880)
    it.words(0x880, RUN + 8)
    it.words(body + 8 * 8, 0x8c0, 0, 0x8c0)
    for entries, count, table in ((15, 17, 18), (14, 16, 17)):
        it.words(body + 8 * entries, 0x8f0)
        it.words(body + 8 * count, 2)
        it.words(body + 8 * table, 0x8f8)
    it.words(0x8c0, 5 | 4 << 14, 0, int.from_bytes(b'a.rb', 'little'), 0)
    return flags


def make_ruby_31():
    """Ruby 3.1: the context of a thread is a variable, and a method in C has a name."""
    it = Process('ruby')
    it.bytes(it.symbol('ruby_version', 0x100), b'3.1.2\0')
    context, stack, frame = 0x200, 0xa00, 0xa40
    it.words(it.symbol('ruby_current_vm_ptr', 0x120), 0x140)
    it.words(0x140 + 40, 0x180)
    it.words(0x180 + 40, context)
    flags = put_ruby(it, 64, stack, frame)
    it.words(context, stack, (frame + 3 * 64 - stack) // 8, frame)
    # The variable is at the beginning of the block of 64 bytes that ends at the thread pointer.
    it.words(THREAD - 64 + it.symbol('ruby_current_ec', 8), context)
    it.symbol('rb_vm_exec', RUN)
    put_names(it, flags)
    return it


def put_names(it, flags):
    """Puts the table of names, with those of two operators and of a method in C."""
    reader, lists, names, by_number = 0x340, 0xc00, 0xc40, 0xc80
    id2str = it.symbol('rb_id2str', 0x300)
    it.bytes(id2str, b'\x48\x81\xff\xa9\0\0\0\xe9' + struct.pack('<i', reader - id2str - 12))
    last = 0x390
    it.bytes(reader, b'\x39\x3d' + struct.pack('<i', last - reader - 6) + b'\x72\0\x48\x8b\x3d' +
             struct.pack('<i', last + 16 - reader - 15) + b'\x89\xde\xc1\xee\x09')
    it.words(last + 16, lists)
    it.words(lists, 7 | 1 << 13, 0, names)
    it.words(names, 7 | 1 << 13, 0)
    # Elements are inside, from offset 16 on, two words for each name.
    for number, text, at in ((ord('+'), b'+', by_number), (ord('-'), b'-', by_number + 64)):
        it.words(names + 16 + 16 * number, at)
        it.words(at, 5 | 1 << 14, 0)
        it.bytes(at + 16, text + b'\0')
    entry = 0x1480
    it.words(flags + 24, entry, 0, 0x55550081)
    it.words(entry, 0x601a, 0, entry + 32)
    it.words(entry + 32, 1, RUN, 0, 0, ord('+'))
    it.words(0xa40 + 32, flags + 40)


def make_ruby_33():
    """Ruby 3.3: code of functions tells where the context of a thread is."""
    it = Process('ruby')
    it.bytes(it.symbol('ruby_version', 0x100), b'3.3.8\0')
    index, machine, context, stack, frame = 0x120, 0x130, 0x200, 0xa00, 0xa40
    for name, at, member in (('rb_errinfo', 0x300, 120), ('rb_thread_current', 0x330, 48)):
        it.symbol(name, at)
        it.bytes(at, b'\x48\x83\xec\x08\x66\x48\x8d\x3d' + struct.pack('<i', index - at - 12) +
                 b'\x66\x66\x48\xe8\0\0\0\0\x48\x8b\0\x48\x8b\x40' + bytes([member]))
    for name, at in (('rb_gc_count', 0x360), ('rb_during_gc', 0x3a0)):
        it.symbol(name, at)
        it.bytes(at, b'\x48\x8d\x05' + struct.pack('<i', machine - at - 7) + b'\x48\x8b\0')
    it.words(index, 1, 0)
    it.words(machine, 0x140)
    it.words(0x140 + 40, 0x180)
    it.words(0x180 + 48, context)
    put_ruby(it, 56, stack, frame)
    it.words(context, stack, (frame + 3 * 56 - stack) // 8, frame)
    # The thread's table of blocks, of which the first one is this module's.
    it.words(THREAD + 8, 0x1520)
    it.words(0x1510, 1)
    it.words(0x1520, 1, 0, 0x1560)
    it.words(0x1560, context)
    # A CIE, and the FDE of the function that runs frames.
    cie = struct.pack('<II', 20, 0) + b'\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1\0\0'
    fde = struct.pack('<IIiIB', 16, len(cie) + 4, RUN - 0x1600 - len(cie) - 8, RUN_BYTES, 0) + bytes(3)
    it.bytes(0x1600, cie + fde)
    it.parts['frames'] = (0x1600, len(cie + fde))
    return it


V8_VALUES = (1, 1, 31, 8, 128, 7, 0, 1, 2, 5, 8, 15, 0, 8, 16, 16, 16, 16, -8, -16, -32, -40, 1, 2, 2, 3,
             12, 24, 8, 16, 32, 8, 16, 16, 257, 256, 170, 195, 194, 240, 0, 11)


def make_v8(by_code):
    """V8 10.2. by_code: the code of functions tells where a thread has its virtual machine."""
    it = Process('v8')
    names = names_of('v8')
    for i, value in enumerate(V8_VALUES):
        name = names[len(names) - len(V8_VALUES) + i]
        # Without objects for instructions there is no variable of their type.
        if 'InstructionStream' not in name:
            it.ints(it.symbol(name, 0x100 + 4 * i), value)
    it.ints(it.symbol(names[0], 0x1e0), 10)
    it.ints(it.symbol(names[1], 0x1e4), 2)
    it.bytes(it.symbol(names[6], 0x200), b'\x48\x8b\x87\x58\xea\0\0\xc3')
    it.bytes(it.symbol(names[7], 0x210), b'\x8b\x87\x60\xea\0\0\xc3')
    if by_code:
        it.bytes(it.symbol(names[4], 0x220), b'\x64\x48\x8b\x04\x25\x10\0\0\0\xc3')
        it.bytes(it.symbol(names[5], 0x240), b'\x64\x48\x8b\x04\x25\x10\0\0\0\xc3')
    else:
        it.symbol(names[2], 0x1e8)
    return it


def main():
    prefix, path = sys.argv[1:]
    for kind in KINDS[:-1]:
        check_names(kind)
    program, library, arm64 = codes_of_python_15()
    for name, it in (('php', make_php(False)), ('php-cold', make_php(True)),
                     ('php-fiber', make_php_fiber()),
                     ('python-11', make_python_11()), ('python-14', make_python_14(False)),
                     ('python-arm64', make_python_14(True)),
                     ('python-15', make_python_15(program)), ('python-15-library', make_python_15(library)),
                     ('python-15-arm64', make_python_15(arm64, True)), ('ruby-31', make_ruby_31()),
                     ('ruby-33', make_ruby_33()), ('v8', make_v8(False)), ('v8-code', make_v8(True))):
        it.write(f'{prefix}-{name}')
    with open(path, 'rb') as file, open(f'{prefix}-file', 'wb') as out:
        out.write(struct.pack(HEAD, KINDS.index('file'), *[0] * 19) + file.read())
    # The makefile's rule.
    with open(prefix, 'wb'):
        pass


main()
