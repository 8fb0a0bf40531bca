# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares offsets with objects of the Python that runs this.

    offsets.py VALUES

VALUES is JSON: offsets as versions.c and versions.h name them. Prints a line for each that was compared:
"ok NAME", or "wrong NAME: ...". Memory is read with ctypes, and what is to be there is what Python's own
attributes and functions say.
"""
import asyncio
import ctypes
import dis
import json
import opcode
import platform
import sys

VALUES = json.loads(sys.argv[1])
MINOR = sys.version_info[1]
WORD = ctypes.c_uint64
C = ctypes.CDLL(None)
RUNTIME = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime'))
FRAME_AT = 24   # in the object that sys._getframe() returns, of the interpreter's frame
OWNER_THREAD, OWNER_GENERATOR = 0, 1
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.pythonapi.PyGILState_GetThisThreadState.restype = WORD
C.pthread_self.restype = C.pthread_getspecific.restype = WORD


def read(address, kind=WORD):
    return kind.from_address(address).value


def compare(name, got, wanted):
    print(f'ok {name}' if got == wanted else f'wrong {name}: {got!r}, not {wanted!r}', flush=True)


def frame_of(frame):
    """The address of the interpreter's frame."""
    return read(id(frame) + FRAME_AT)


def compare_key(state):
    """Compares the value that has the thread's state."""
    key_at = RUNTIME + VALUES['key'] + (VALUES.get('key_arm64', 0) if platform.machine() == 'aarch64' else 0)
    key = read(key_at, ctypes.c_int32)
    first = {'x86_64': 'PYTHON_FIRST_VALUE', 'aarch64': 'PYTHON_FIRST_VALUE_ARM64'}.get(platform.machine())
    # The key itself may be 0, as any other word may.
    compare('that there is a key', read(key_at - 4, ctypes.c_int32), 1)
    compare('key', C.pthread_getspecific(key), state)
    if first:
        compare(first, read(C.pthread_self() + VALUES[first] + 16 * key), state)


def compare_state():
    """Compares what a thread has: where its state is, and what that refers to."""
    state, frame, code = ctypes.pythonapi.PyThreadState_Get(), sys._getframe(), sys._getframe().f_code
    if 'key' in VALUES:
        compare_key(state)
    else:
        compare('the function that returns the state', ctypes.pythonapi.PyGILState_GetThisThreadState(), state)
    compare('state_thread', read(state + VALUES['state_thread']), C.pthread_self())
    # These change with each function of Python that is called, as read().
    frames = WORD.from_address(state + VALUES['state_frames']).value
    if 'cframe_frame' in VALUES:
        frames = WORD.from_address(frames + VALUES['cframe_frame']).value
    top = WORD.from_address(state + VALUES['state_top']).value
    compare('state_frames', frames, frame_of(frame))
    compare('state_top', top, frame_of(frame) + VALUES['locals'] + 8 * (code.co_nlocals + code.co_stacksize))


def compare_frame(argument):
    """Compares what frames have, of a function whose caller is one, too."""
    frame = sys._getframe()
    at, back, code = frame_of(frame), frame.f_back, frame.f_code
    compare('previous', read(at + VALUES['previous']), frame_of(back))
    compare('code', read(at + VALUES['code']) & ~VALUES.get('code_tags', 0), id(code))
    compare('locals', read(at + VALUES['locals']) & ~VALUES.get('code_tags', 0), id(argument))
    compare('owner', read(at + VALUES['owner'], ctypes.c_uint8), OWNER_THREAD)
    compare('instruction', read(frame_of(back) + VALUES['instruction']) - id(back.f_code) - VALUES['instructions'],
            back.f_lasti)


def compare_entered():
    """Compares the mark of frames for which the interpreter was entered: sorted() enters it for its key."""
    marks = []

    def key(value):
        marks.append(read(frame_of(sys._getframe()) + VALUES['entry'], ctypes.c_uint8))
        inner(marks)
        return value

    def inner(marks):
        marks.append(read(frame_of(sys._getframe()) + VALUES['entry'], ctypes.c_uint8))

    sorted([1], key=key)
    compare('entry', marks, [1, 0])


def make_closure():
    kept = 1

    def closure():
        return kept
    return closure.__code__


def compare_code():
    code = make_closure()
    at = id(code)
    for name, text in ('PYTHON_FILENAME', code.co_filename), ('PYTHON_QUALNAME', code.co_qualname):
        compare(name, read(at + VALUES[name]), id(text))
    table = read(at + VALUES['PYTHON_LINETABLE'])
    compare('PYTHON_BYTES', ctypes.string_at(table + VALUES['PYTHON_BYTES'], len(code.co_linetable)),
            code.co_linetable)
    compare('PYTHON_LENGTH', read(table + VALUES['PYTHON_LENGTH']), len(code.co_linetable))
    compare('PYTHON_TYPE', read(at + VALUES['PYTHON_TYPE']), id(type(code)))
    compare('first_line', read(at + VALUES['first_line'], ctypes.c_int32), code.co_firstlineno)
    compare('instructions', ctypes.string_at(at + VALUES['instructions'], len(code.co_code)), code._co_code_adaptive)
    resume = next(i.offset for i in dis.get_instructions(code) if i.opname == 'RESUME')
    compare('first_traceable', read(at + VALUES['first_traceable'], ctypes.c_int32), resume // 2)
    if 'size_words' in VALUES:
        compare('size_words', read(at + VALUES['size_words'], ctypes.c_int32),
                VALUES['locals'] // 8 + 1 + code.co_stacksize)
    else:
        compare('PYTHON_STACK_SIZE', read(at + VALUES['PYTHON_STACK_SIZE'], ctypes.c_int32), code.co_stacksize)
        compare('PYTHON_LOCALS', read(at + VALUES['PYTHON_LOCALS'], ctypes.c_int32), 1)


def compare_texts():
    for name, text, encoding in ('ascii', 'plain', 'ascii'), ('wide', 'w\u20acde', 'utf-16-le'):
        raw = text.encode(encoding)
        compare(name, ctypes.string_at(id(text) + VALUES[name], len(raw)), raw)
    compare('PYTHON_HASH', read(id(text) + VALUES['PYTHON_HASH'], ctypes.c_int64), hash(text))


def compare_generator():
    def generator():
        yield 1

    it = generator()
    at = id(it) + VALUES['generator_frame']
    compare('generator_frame', read(at + VALUES['code']) & ~VALUES.get('code_tags', 0), id(it.gi_code))
    compare('owner of a generator', read(at + VALUES['owner'], ctypes.c_uint8), OWNER_GENERATOR)


async def compare_task():
    async def nothing():
        pass

    coroutine = nothing()
    task = asyncio.create_task(coroutine, name='its name')
    at = id(task) + VALUES['task_coroutine']
    compare('task_coroutine', [read(at), read(at + 8)], [id(coroutine), id(task.get_name())])
    await task


def compare_waits():
    numbers = {**dis.opmap, **getattr(opcode, '_specialized_opmap', {})}
    names = [name for name in ('SEND', 'SEND_GEN') if name in numbers]
    compare('waits', VALUES['waits'][:len(names)], [numbers[name] for name in names])


def compare_checks():
    for word, value, name in VALUES['checks']:
        compare(name, read(RUNTIME + 8 * word), value)


class Last:
    """Compares what is only there when the interpreter ends."""

    # By then, the names of the module may be gone.
    def __del__(self, out=sys.stdout, word=WORD.from_address(RUNTIME + VALUES['finalizing']),
                state=ctypes.pythonapi.PyThreadState_Get):
        out.write('ok finalizing\n' if word.value == state() else f'wrong finalizing: {word.value}\n')
        out.flush()


compare('finalizing before the end', read(RUNTIME + VALUES['finalizing']), 0)
compare_state()
compare_frame(VALUES)
if 'entry' in VALUES:
    compare_entered()
compare_code()
compare_texts()
compare_generator()
asyncio.run(compare_task())
if 'waits' in VALUES:
    compare_waits()
if 'checks' in VALUES:
    compare_checks()
last = Last()
