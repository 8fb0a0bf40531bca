# SPDX-License-Identifier: LGPL-2.1-or-later
"""Native stack traces of Python programs, by libshstk.

    import shstk

    shstk.capture()             # return addresses of the calling thread, innermost first
    shstk.capture(names=True)   # the functions at them: shstk.Frame objects

The stack is that of the native code: of this module's call (libffi), of the interpreter, of
extension modules, down to the start of the thread. Functions in Python have no frames of their
own there. The module needs nothing but the libraries: libshstk.so.0, and for names
libshstk-symbolize.so.0, which the loader of shared libraries must find (LD_LIBRARY_PATH, if
they are not installed).
"""

import ctypes
import os
import threading
from typing import NamedTuple

__all__ = ['Frame', 'Trace', 'Symbolizer', 'capture',
           'MARK_PC', 'MARK_SIGNAL', 'MARK_GUESS', 'MARK_GAP',
           'END_COMPLETE', 'END_CAPACITY', 'SOURCE_HARDWARE', 'SOURCE_MEMO', 'SOURCE_WALK']

# Bits of Trace.marks; shstk.h says what they mean.
MARK_PC, MARK_SIGNAL, MARK_GUESS, MARK_GAP = 1, 2, 4, 8
# Values of Trace.end and Trace.source; shstk.h has the others.
END_COMPLETE, END_CAPACITY = 0, 1
SOURCE_HARDWARE, SOURCE_MEMO, SOURCE_WALK = 1, 3, 4

NAMES_AT_FIRST = 8      # room for functions that were inlined at one address


class Options(ctypes.Structure):
    """struct shstk_opts"""
    _fields_ = [('size', ctypes.c_uint32), ('sources', ctypes.c_uint32),
                ('skip', ctypes.c_uint32), ('flags', ctypes.c_uint32),
                ('marks', ctypes.POINTER(ctypes.c_uint8)),
                ('sps', ctypes.POINTER(ctypes.c_uint64))]


class Info(ctypes.Structure):
    """struct shstk_info"""
    _fields_ = [('size', ctypes.c_uint32), ('source', ctypes.c_uint16), ('end', ctypes.c_uint16),
                ('reused', ctypes.c_uint32), ('guessed', ctypes.c_uint32),
                ('end_pc', ctypes.c_uint64)]


class Name(ctypes.Structure):
    """struct shstk_name"""
    _fields_ = [('size', ctypes.c_uint32), ('line', ctypes.c_uint32),
                ('inlined', ctypes.c_uint32), ('reserved', ctypes.c_uint32),
                ('offset', ctypes.c_uint64), ('function', ctypes.c_char_p),
                ('linkage', ctypes.c_char_p), ('file', ctypes.c_char_p),
                ('module', ctypes.c_char_p)]


class Frame(NamedTuple):
    """A function at an entry of a trace; inlined functions stand before the one they are in."""
    address: int        # the entry of the trace
    function: str       # readable name, never empty
    offset: int         # bytes from the start of the function; 0 if that is not known
    file: str           # source file, or ''
    line: int           # line in it, or 0
    module: str         # name of the file that is mapped at the address
    linkage: str        # the name in the symbol table or the debug information
    inlined: bool       # whether it was inlined into the next frame

    def __str__(self):
        start = f'{self.function}+{self.offset:#x}' if self.offset else self.function
        return f'{start} ({self.file}:{self.line})' if self.file else start


class Trace(list):
    """The addresses of a stack, innermost first, and how they were captured."""

    def __init__(self, addresses, marks, info):
        super().__init__(addresses)
        self.marks = marks              # MARK_* of each address
        self.source = info.source       # SOURCE_*
        self.end = info.end             # END_*
        self.reused = info.reused       # entries that were verified instead of unwound
        self.guessed = info.guessed     # entries with MARK_GUESS

    @property
    def complete(self):
        """Whether the outermost frame was reached."""
        return self.end == END_COMPLETE


def load_capture():
    """shstk_capture() of libshstk. It waits for nothing, so it keeps the interpreter's lock."""
    call = ctypes.PyDLL('libshstk.so.0').shstk_capture
    call.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint, ctypes.POINTER(Options),
                     ctypes.POINTER(Info)]
    call.restype = ctypes.c_int
    return call


def load_symbolize():
    """libshstk-symbolize, with the types of its functions. It reads files, so others may run."""
    library = ctypes.CDLL('libshstk-symbolize.so.0')
    library.shstk_symbolizer_create.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)]
    library.shstk_symbolizer_create.restype = ctypes.c_int
    library.shstk_symbolizer_destroy.argtypes = [ctypes.c_void_p]
    library.shstk_symbolizer_destroy.restype = None
    library.shstk_symbolize.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint8,
                                        ctypes.POINTER(Name), ctypes.c_uint, ctypes.c_size_t]
    library.shstk_symbolize.restype = ctypes.c_int
    return library


shstk_capture = load_capture()


def text(string):
    """What a char pointer of the library says; '' for NULL."""
    return string.decode(errors='replace') if string else ''


class Symbolizer:
    """Names for the addresses of a process (0: this one). Threads may share one."""

    def __init__(self, pid=0):
        self._handle = ctypes.c_void_p()
        self._library = load_symbolize()
        error = self._library.shstk_symbolizer_create(pid, ctypes.byref(self._handle))
        if error:
            self._handle = ctypes.c_void_p()
            raise OSError(-error, f'no symbolizer for process {pid}: {os.strerror(-error)}')

    def __del__(self):
        if getattr(self, '_handle', None):
            self._library.shstk_symbolizer_destroy(self._handle)
            self._handle = None

    def abandon(self):
        """Leave what the library holds for it as it is; it has no names any more."""
        self._handle = None

    def _names(self, address, mark, room):
        """(number of functions at an address, array of so many of them)"""
        names = (Name * room)()
        count = self._library.shstk_symbolize(self._handle, address, mark, names, room,
                                              ctypes.sizeof(Name))
        if count < 0:
            raise OSError(-count, os.strerror(-count))
        return count, names

    def frames(self, address, mark=0):
        """The functions at an address: those that were inlined first, the one called last."""
        count, names = self._names(address, mark, NAMES_AT_FIRST)
        if count > len(names):
            count, names = self._names(address, mark, count)
        return [Frame(address, text(name.function), name.offset, text(name.file), name.line,
                      text(name.module), text(name.linkage), bool(name.inlined))
                for name in names[:count]]


class Shared:
    """The symbolizer of capture(names=True), made when it is first needed."""
    lock = threading.Lock()
    symbolizer = None

    @classmethod
    def get(cls):
        """The symbolizer of this process."""
        with cls.lock:
            if not cls.symbolizer:
                cls.symbolizer = Symbolizer()
            return cls.symbolizer

    @classmethod
    def forget(cls):
        """In a child of fork(): another thread of the parent may have been using the symbolizer,
        so it is in no state to be used or released here."""
        cls.lock = threading.Lock()
        if cls.symbolizer:
            cls.symbolizer.abandon()
            cls.symbolizer = None


os.register_at_fork(after_in_child=Shared.forget)


def capture(names=False, limit=256):
    """Capture the native stack of the calling thread, innermost first.

    names: return a list of Frame, else a Trace, which is the list of return addresses.
    limit: the largest number of addresses; Trace.end is END_CAPACITY where there are more.

    Entry 0 lies in libffi, by which Python calls the library.
    """
    if limit < 1:
        raise ValueError(f'limit is {limit}: a trace has 1 address or more')
    pcs, marks = (ctypes.c_uint64 * limit)(), (ctypes.c_uint8 * limit)()
    options = Options(size=ctypes.sizeof(Options),
                      marks=ctypes.cast(marks, ctypes.POINTER(ctypes.c_uint8)))
    info = Info(size=ctypes.sizeof(Info))
    count = shstk_capture(pcs, limit, options, info)
    if count < 0:
        raise OSError(-count, os.strerror(-count))
    trace = Trace(pcs[:count], bytes(marks[:count]), info)
    if not names:
        return trace
    symbolizer = Shared.get()
    return [frame for address, mark in zip(trace, trace.marks)
            for frame in symbolizer.frames(address, mark)]
