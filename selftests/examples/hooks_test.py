#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""examples/hooks/: each is built as its comment says, with the library of others that it is for,
and gives the stacks that that library or the compiler's unwinder finds. A program that is only
linked with libshstk.a is as it would be without. Prints KTAP.
"""

import ctypes
import errno
import os
import platform
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import BUILD, LIBC, TMP, TOP, Skip, check, equal, main, run, test  # noqa: E402
from hooking import ENVIRONMENT, SOURCE, hooked, output  # noqa: E402

# The constructors of libshstk.a, as Documentation/hooks.rst describes them.
CONSTRUCTORS = {'thread_init', 'modmap_init', 'modmap_retire_init', 'find_features', 'find_ssp'}
OF_COMPILER = {'frame_dummy'}
MEMBARRIER = 324 if platform.machine() == 'x86_64' else 283
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def own(addresses):
    """Those that lie in the program itself, which is at a fixed address below all else."""
    return [address for address in addresses if int(address, 16) < 0x10000000]


def heap_stacks(path):
    """A profile of jemalloc as {the program's own entries of a stack: objects and bytes}."""
    with open(path, encoding='utf-8') as file:
        text = file.read().split('\nMAPPED_LIBRARIES')[0]
    found = {}
    for stack, counts in re.findall(r'^@((?: 0x[0-9a-f]+)+)\n\s+t\*: (\d+: \d+) ', text, re.M):
        entries = own(stack.split())
        if entries:
            found.setdefault(' '.join(entries), []).append(counts)
    return found


def allocated(mode):
    """Stacks of allocate's run, and the number of captures that it made."""
    program = hooked('jemalloc.c', 'allocate.c')
    path = os.path.join(TMP, f'{mode}.heap')
    done = run(program, mode, path,
               env=dict(ENVIRONMENT, MALLOC_CONF='prof:true,lg_prof_sample:0'))
    if 'Invalid conf pair: prof:' in done.stderr:
        raise Skip('this jemalloc is built without its heap profiler')
    equal((done.returncode, done.stderr), (0, ''), 'allocate')
    return heap_stacks(path), int(re.fullmatch(r'(\d+) captures\n', done.stdout)[1])


@test
def stacks_of_jemalloc():
    """a heap profile has the same stacks, of 1 to 128 entries, with the hook"""
    before, none = allocated('plain')
    after, captures = allocated('hook')
    equal(none, 0, 'captures without the hook')
    check(captures >= 149, f'only {captures} captures')
    # Those of 128 entries are cut, and all have one kind of end then.
    depths = {len(stack.split()) for stack in before}
    check(len(before) > 100 and max(depths) > 100, f'{len(before)} stacks of {depths} entries')
    # A trace of jemalloc's own has one entry more of jemalloc's, so one less where it is cut.
    short = {stack for stack in before if len(stack.split()) < 100}
    equal(sorted(short - set(after)), [], 'stacks that the hook lacks')
    for stack in short:
        equal(after[stack], before[stack], stack)
    sizes = sum(int(one.split()[1]) for counts in after.values() for one in counts)
    wanted = sum(int(one.split()[1]) for counts in before.values() for one in counts)
    equal(sizes, wanted, 'bytes')


@test
def jemalloc_without_profiling():
    """where jemalloc profiles nothing, its hook says that there is none"""
    program = hooked('jemalloc.c', 'allocate.c')
    done = run(program, 'hook', os.devnull,
               env=dict(ENVIRONMENT, MALLOC_CONF='prof:false'))
    equal((done.returncode, done.stderr), (1, 'allocate: No such file or directory\n'), 'the hook')


def traces(program):
    """What a program prints: {name: the words behind it}."""
    return {name: words.split() for name, words in
            (line.split(':') for line in output(program).splitlines())}


@test
def traces_of_abseil():
    """absl::GetStackTrace() finds what the compiler's unwinder does, and no frame is lost"""
    found = traces(hooked('abseil.cc', 'abseil_traces.cc'))
    check(len(own(found['libgcc'])) >= 32, found['libgcc'])
    equal(own(found['hook']), own(found['libgcc']), 'trace')
    equal(own(found['hook-frames']), own(found['libgcc']), 'trace with sizes')
    equal(found['five'], found['hook'][:5], 'trace of five entries')
    equal((found['dropped-of-five'], found['dropped-of-whole']), (['1'], ['0']), 'dropped frames')
    equal(found['whole'], found['hook'], 'trace with a count of what is dropped')


@test
def sizes_of_abseil():
    """absl::GetStackFrames() tells how large frames are: those of one function are the same"""
    found = traces(hooked('abseil.cc', 'abseil_traces.cc'))['sizes']
    # The first entry is in take_it(), then come 29 of deep().
    check(len(set(found[2:29])) == 1 and 8 <= int(found[2]) <= 256, found)
    check(int(found[0]) >= 8, found)


@test
def handlers_of_abseil():
    """absl::GetStackTraceWithContext() goes through the frame of a signal"""
    found = traces(hooked('abseil.cc', 'abseil_traces.cc'))
    check(len(own(found['handled-libgcc'])) >= 31, found['handled-libgcc'])
    equal(own(found['handled-hook']), own(found['handled-libgcc']), 'trace')


@test
def traces_of_boost():
    """shstk_stacktrace() has the frames of boost::stacktrace::stacktrace()"""
    found = traces(hooked('boost.hpp', 'boost_traces.cc'))
    check(len(own(found['libgcc'])) >= 32, found['libgcc'])
    equal(own(found['plain']), own(found['libgcc']), "Boost's own")
    equal(own(found['hook']), own(found['libgcc']), 'with the hook')


@test
def traces_for_folly():
    """the functions that folly looks for give the frames that the compiler's unwinder finds"""
    found = traces(hooked('folly.cc', 'folly_traces.cc'))
    check(len(own(found['libgcc'])) >= 32, found['libgcc'])
    equal(own(found['hook']), own(found['libgcc']), 'trace')
    equal(found['five'], found['hook'][:5], 'trace of five entries')
    equal(found['none'], [], 'trace without room')


def linked(name, *more):
    """Path of idle.c as a program."""
    out = os.path.join(TMP, name)
    done = run('gcc', '-O1', '-no-pie', '-I', os.path.join(TOP, 'libshstk'), '-o', out,
               os.path.join(SOURCE, 'idle.c'), *more, '-pthread', '-ldl')
    check(done.returncode == 0, done.stderr)
    return out


def start_functions(program):
    """Names of the functions in the .init_array of a program at a fixed address."""
    sections = run('readelf', '-SW', program).stdout
    found = re.search(r' \.init_array +INIT_ARRAY +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) ', sections)
    check(found, sections)
    with open(program, 'rb') as file:
        file.seek(int(found[1], 16))
        words = struct.unpack(f'<{int(found[2], 16) // 8}Q', file.read(int(found[2], 16)))
    names = {}
    for line in run('nm', program).stdout.splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[1] in 'tT':
            names.setdefault(int(parts[0], 16), set()).add(parts[2])
    return [names.get(word, {hex(word)}) for word in words]


@test
def constructors_of_the_archive():
    """libshstk.a brings only the constructors that are described"""
    found = start_functions(linked('idle', os.path.join(BUILD, 'libshstk.a')))
    if any(name.startswith('_sub_I_') for names in found for name in names):
        raise Skip('optimization at link time has made one constructor of all')
    known = CONSTRUCTORS | OF_COMPILER
    check(all(names & known for names in found), f'unknown: {found}')
    check(any('thread_init' in names for names in found), f'not linked at all: {found}')


@test
def a_program_that_only_links_it():
    """a program that captures nothing has no thread, signal handler or file more"""
    alone = output(linked('alone', '-DALONE'))
    text, _, last = output(linked('idle', os.path.join(BUILD, 'libshstk.a'))).rstrip('\n') \
        .rpartition('\n')
    check('Threads:\t1\n' in alone and 'files: ' in alone, alone)
    equal(text, alone.rstrip('\n'), 'process')
    equal(last, 'library: 0 modules, 0 bytes, 0 captures', 'library')


def forbid_membarrier():
    """In a new process: a filter refuses the one call that a constructor makes everywhere."""
    load, if_equal, answer = 0x20, 0x15, 0x06
    refuse, allow = 0x00050000 | errno.ENOSYS, 0x7fff0000
    program = b''.join(struct.pack('=HBBI', *insn) for insn in (
        (load, 0, 0, 0), (if_equal, 0, 1, MEMBARRIER), (answer, 0, 0, refuse),
        (answer, 0, 0, allow)))
    at = ctypes.create_string_buffer(program)
    filters = ctypes.create_string_buffer(struct.pack('@HP', 4, ctypes.addressof(at)))
    if (LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or
            LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filters, 0, 0)):
        raise OSError('no filter')


@test
def errno_of_main():
    """main() begins with the errno 0, also where a constructor's system call is refused"""
    program = linked('idle', os.path.join(BUILD, 'libshstk.a'))
    try:
        done = run(program, preexec_fn=forbid_membarrier)
    except subprocess.SubprocessError as error:
        raise Skip('seccomp filters are not available') from error
    equal(done.stdout.split('\n', maxsplit=1)[0], 'errno: 0', 'main() with the filter')


@test
def gstreamer_is_served():
    """traces of GStreamer's leaks tracer are the drop-in's"""
    try:
        ctypes.CDLL('libgstreamer-1.0.so.0')
    except OSError as error:
        raise Skip(str(error)) from error
    log = os.path.join(TMP, 'bindings')
    # The function that the tracer calls for each object.
    done = run(sys.executable, '-c', 'import ctypes\n'
               'get = ctypes.CDLL("libgstreamer-1.0.so.0").gst_debug_get_stack_trace\n'
               'get.restype = ctypes.c_char_p\n'
               'print(get(0).decode())',
               env=dict(os.environ, LD_DEBUG='bindings', LD_DEBUG_OUTPUT=log,
                        LD_PRELOAD=os.path.join(BUILD, 'libshstk-backtrace.so')))
    check(done.returncode == 0 and len(done.stdout.splitlines()) > 3,
          f'{done.stdout}{done.stderr}')
    text = ''
    for name in os.listdir(TMP):
        if name.startswith('bindings.'):
            with open(os.path.join(TMP, name), encoding='utf-8', errors='replace') as file:
                text += file.read()
    check(re.search(r'libgstreamer-1\.0\.so\.0 \[0\] to \S*libshstk-backtrace\.so \[0\]: '
                    r"\S+ symbol .backtrace'", text), 'backtrace is bound elsewhere')


sys.exit(main())
