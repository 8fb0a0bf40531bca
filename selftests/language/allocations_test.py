#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python in the stacks of `shstk record --heap`: they are those that allocate.

The size of each block tells which function allocates it (allocations.py). It is recorded as a command,
by the agent in it, and while it runs, by probes. The environment may choose
the interpreter (PYTHON) and how many functions are made (ROUNDS).
"""

import ast
import functools
import glob
import os
import platform
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from allocations import FIRST, LOCKED, STEP, UNLOCKED, first_line, size_of  # noqa: E402
from harness import HERE, TMP, Skip, check, equal, main, shstk, test     # noqa: E402
import node_program    # noqa: E402
from pprof import Decoded   # noqa: E402
from probed import go_on, lines_of, record_process  # noqa: E402

PYTHON = os.environ.get('PYTHON', '/usr/bin/python3')
ROUNDS = int(os.environ.get('ROUNDS', '500'))
PROCESS_ROUNDS = ROUNDS * 4 // 5    # of the process itself: its child is not recorded
SIGTIMEDWAIT = '128'    # the system call's number on x86-64
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'allocations.py')


def record_command(out):
    """Records the program as a command. Returns what was said."""
    ended = shstk('record', '--heap', '-o', out, '--', *PYTHON.split(), '-S', PROGRAM, str(ROUNDS))
    check(ended.returncode == 0, ended.stderr)
    return ended.stderr


def record_running(out):
    """Records the program while it runs. Returns what was said."""
    return record_process(out, [*PYTHON.split(), '-S', PROGRAM, str(ROUNDS), 'wait'],
                          lambda program, _: go_on(program))


NO_JAVA = 'methods of Java are not read at probes'


def java_library():
    """The path of a library that is taken for Java's."""
    return shutil.copy(os.path.join(HERE, 'late.so'), os.path.join(TMP, 'libjvm.so'))


def is_bpf_program(path):
    """Whether that is a descriptor of a BPF program. Its process may have closed it meanwhile."""
    try:
        return 'bpf-prog' in os.readlink(path)
    except FileNotFoundError:
        return False


def bpf_programs(process):
    """How many BPF programs a process has."""
    folder = f'/proc/{process.pid}/fd'
    return sum(is_bpf_program(os.path.join(folder, fd)) for fd in os.listdir(folder))


def is_waiting(process):
    """Whether a process waits for a signal, as the recorder does when it has done what there was to do."""
    with open(f'/proc/{process.pid}/syscall', encoding='ascii') as file:
        return file.read().split()[0] == SIGTIMEDWAIT


def meet_interpreter(program, recorder):
    """Has the program load its interpreter, and waits until the recorder has the program that reads frames. If
    the kernel refuses that, the recorder does nothing for a minute, and says so in the end."""
    before, until, idle = bpf_programs(recorder), time.monotonic() + 400, 0
    equal(go_on(program), 'ready\n', 'the program')
    while recorder.poll() is None and time.monotonic() < until and idle < 6000:
        if is_waiting(recorder):
            if bpf_programs(recorder) != before:
                break
            idle += 1
        time.sleep(0.01)
    go_on(program)


def record_embedding(out, before=(), may_refuse=None):
    """Records a program that loads Python while it runs. Returns what was said."""
    found = sorted(glob.glob('/usr/lib/*/libpython3.1[1-4].so.1.0'))
    if not found:
        raise Skip('no libpython3 is installed')
    command = [*before, os.path.join(HERE, 'embed'), '-w', found[-1], '-S', PROGRAM, str(ROUNDS), 'wait']
    # If the program had to wait for a CPU while it began, its interpreter is met later, after more allocations.
    for _ in range(5):
        said = record_process(out, command, meet_interpreter, may_refuse)
        if is_shown(blocks_in(stacks_in(out)), PROCESS_ROUNDS):
            break
    return said


def record_beside_java(out):
    """The same of a program that has Java already."""
    return record_embedding(out, ['env', 'LD_PRELOAD=' + java_library()], NO_JAVA)


WAYS = {'a command': record_command, 'a process': record_running, 'a process that loads it': record_embedding,
        'a process with Java that loads it': record_beside_java}


@functools.lru_cache(maxsize=None)
def stacks(way):
    """Records the program once for all tests. Of each stack: the mean size of its blocks, and itself."""
    out = os.path.join(TMP, 'out.pb.gz')
    print('#', WAYS[way](out).strip().replace('\n', '\n# '))
    return stacks_in(out)


def blocks(way):
    """Of each round's block: its number, and the stack."""
    return blocks_in(stacks(way))


def stacks_in(out):
    """Of each stack in a profile: the mean size of its blocks, and itself."""
    profile = Decoded(out)
    objects, space = (profile.types.index(t) for t in (('alloc_objects', 'count'), ('alloc_space', 'bytes')))
    return [(values[space] // values[objects], list(lines_of(profile, ids)))
            for ids, values, _ in profile.samples if values[objects]]


def blocks_in(found_stacks):
    """Of those stacks that are of a round's block: its number, and the stack."""
    found = []
    for each, frames in found_stacks:
        number, rest = divmod(each - 33 - FIRST, STEP)
        # A bytes object has a head of 32 bytes, and a zero behind its bytes.
        if not rest and 0 <= number < ROUNDS:
            found.append((number, frames))
    return found


def made(frames):
    """The functions of a stack that the program made."""
    return [frame for frame in frames if frame[1].rpartition('/')[2].startswith('made-')]


def find_fault(number, frames):
    """What is wrong with the functions of a stack, or None."""
    size, line = size_of(number), first_line(number)
    *inner, outer = made(frames)
    if outer[0] != f'from_{size}' or outer[2] != line + 3:
        return 'the caller'
    if not inner or any(name.partition('.')[0] != f'at_{size}' or at != line + 1 for name, _, at in inner):
        return 'the function that allocates'
    if any(path.rpartition('/')[2] != f'made-{size}' for _, path, _ in [*inner, outer]):
        return 'the file'
    return None


def check_right(way):
    """No stack has another function, file or line than the one that allocates blocks of that size."""
    wrong = [(find_fault(number, frames), number, frames) for number, frames in blocks(way) if made(frames)]
    wrong = [text for text in wrong if text[0]]
    check(not wrong, '\n'.join(str(text)[:600] for text in wrong[:3]))


def count_shown(found):
    """How many blocks have their functions."""
    return sum(1 for _, frames in found if made(frames))


def is_shown(found, rounds):
    """Whether most blocks have their functions."""
    return count_shown(found) > rounds * 0.9


def check_shown(way, rounds):
    """Most blocks have their functions."""
    with_functions = count_shown(blocks(way))
    print(f'# {with_functions} of {len(blocks(way))} stacks, {rounds} blocks')
    check(is_shown(blocks(way), rounds), f'{with_functions} stacks of {rounds} blocks')


def in_c(way):
    """The program's functions in which C code allocates with the interpreter's lock, and without it."""
    sizes = dict(stacks(way))
    if subprocess.run([*PYTHON.split(), '-S', '-c', 'import ctypes'], stderr=subprocess.DEVNULL).returncode:
        raise Skip(PYTHON + ' has no ctypes')
    check(LOCKED in sizes and UNLOCKED in sizes, 'blocks that C code allocates have no stack of their own')
    return [[name for name, path, _ in sizes[size] if os.path.basename(path) == 'allocations.py']
            for size in (LOCKED, UNLOCKED)]


@test
def right():
    """a command: no stack has another function, file or line than the one that allocates such blocks"""
    check_right('a command')


@test
def shown():
    """a command: most blocks have their functions"""
    check_shown('a command', ROUNDS)


@test
def lock():
    """a command: functions are read only with the interpreter's lock: others may take them away"""
    locked, unlocked = in_c('a command')
    equal(locked[:1], ['with_lock'], 'with the lock')
    equal(unlocked, [], 'without the lock')


@test
def right_of_process():
    """a process: no stack has another function, file or line than the one that allocates such blocks"""
    check_right('a process')


@test
def shown_of_process():
    """a process: most blocks have their functions"""
    check_shown('a process', PROCESS_ROUNDS)


@test
def lock_of_process():
    """a process: functions are read without the interpreter's lock, too: the thread stands still"""
    locked, unlocked = in_c('a process')
    equal(locked[:1], ['with_lock'], 'with the lock')
    equal(unlocked[:1], ['without_lock'], 'without the lock')


@test
def right_of_loaded():
    """a process that loads the interpreter later: no stack has another function, file or line"""
    check_right('a process that loads it')


@test
def shown_of_loaded():
    """a process that loads the interpreter later: most blocks have their functions"""
    check_shown('a process that loads it', PROCESS_ROUNDS)


@test
def shown_beside_java():
    """a process that has Java and loads the interpreter later: most blocks have their functions"""
    check_shown('a process with Java that loads it', PROCESS_ROUNDS)


# ---- Libraries that are loaded meanwhile ----

LOADS = """import ctypes, sys
print('ready', flush=True); sys.stdin.readline()
for i, path in enumerate(sys.argv[1:]):
    ctypes.CDLL(path).late_outer(100000 + 8 * i)
print('done', flush=True); sys.stdin.readline()
"""


@test
def late():
    """a process: in each library that it loads, one at once after the other, stacks are whole"""
    if subprocess.run([*PYTHON.split(), '-S', '-c', 'import ctypes'], stderr=subprocess.DEVNULL).returncode:
        raise Skip(PYTHON + ' has no ctypes')
    out, copies = os.path.join(TMP, 'late.pb.gz'), []
    for i in range(30):
        copies.append(os.path.join(TMP, f'late-{i}.so'))
        shutil.copy(os.path.join(HERE, 'late.so'), copies[i])
    print('#', record_process(out, [*PYTHON.split(), '-S', '-c', LOADS, *copies], lambda program, _: go_on(program)))
    profile = Decoded(out)
    objects, space = (profile.types.index(t) for t in (('alloc_objects', 'count'), ('alloc_space', 'bytes')))
    sizes = [100000 + 8 * i for i in range(len(copies))]
    whole = [values[space] for ids, values, _ in profile.samples if values[objects] == 1 and
             {'late_inner', 'late_outer', '_start'} <= {name for name, _, _ in lines_of(profile, ids)}]
    equal([size for size in sizes if size not in whole], [], 'blocks whose stacks are cut')


# ---- Languages whose functions are not shown ----

READY_NODE = 'process.stdin.on("data", () => console.log("done")); console.log("ready")'
READY_JAVA = """import ctypes, sys
ctypes.CDLL(sys.argv[1])
print('ready', flush=True); sys.stdin.readline(); print('done', flush=True); sys.stdin.readline()
"""


@test
def java():
    """a process that has Java: it is said that its methods are not shown"""
    said = record_process(os.path.join(TMP, 'java.pb.gz'), [*PYTHON.split(), '-S', '-c', READY_JAVA, java_library()],
                          lambda program, _: go_on(program), may_refuse=NO_JAVA)
    check('are not shown: ' + NO_JAVA in said, said)


@test
def javascript():
    """a process that has JavaScript: it is said that its functions are not shown"""
    no = node_program.why_not()
    if no:
        raise Skip(no)
    said = record_process(os.path.join(TMP, 'js.pb.gz'), [*node_program.NODE.split(), '-e', READY_NODE],
                          lambda program, _: go_on(program), may_refuse='as JavaScript has, are not read at probes')
    check('are not shown: frames on the native stack, as JavaScript has, are not read at probes' in said, said)


# ---- Objects (--heap-python) ----

OBJECTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'objects.py')
EXACT = ['texts', 'large', 'growing']   # in these, no object has the place of one that was freed
BYTES = 1000    # lines with less than this make functions, or an object or two


def lines_in(functions):
    """The numbers of the lines of functions of objects.py."""
    with open(OBJECTS, encoding='utf-8') as file:
        tree = ast.parse(file.read())
    return {line for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in functions
            for line in range(node.lineno + 1, node.end_lineno + 1)}


def told_by_python(rounds):
    """What tracemalloc says that each line has in use: {line: (objects, bytes)}."""
    told = os.path.join(TMP, 'told')
    subprocess.run([*PYTHON.split(), '-S', OBJECTS, str(rounds), told], check=True,
                   env={**os.environ, 'PYTHONHASHSEED': '0', 'PYTHONTRACEMALLOC': '1'})
    with open(told, encoding='ascii') as file:
        return {line: (objects, size) for line, objects, size in (map(int, text.split()) for text in file)}


def record_objects(rounds, *options, env=()):
    """Records objects.py. Returns what each line has in use, as above, and what was said."""
    out = os.path.join(TMP, 'objects.pb.gz')
    ended = shstk('record', '--heap', *options, '-o', out, '--', *PYTHON.split(), '-S', OBJECTS, str(rounds),
                  env={**os.environ, 'PYTHONHASHSEED': '0', **dict(env)})
    check(ended.returncode == 0, ended.stderr)
    profile, found = Decoded(out), {}
    objects, space = (profile.types.index(t) for t in (('inuse_objects', 'count'), ('inuse_space', 'bytes')))
    for ids, values, _ in profile.samples:
        line = next((line for _, path, line in lines_of(profile, ids)
                     if os.path.basename(path) == 'objects.py'), 0)
        before = found.get(line, (0, 0))
        found[line] = (before[0] + values[objects], before[1] + values[space])
    return found, ended.stderr


def sums(found, lines):
    return [sum(found.get(line, (0, 0))[of] for line in lines) for of in (0, 1)]


@test
def objects_are_those_of_tracemalloc():
    """--heap-python: each line has as many objects in use as tracemalloc says, and as many bytes"""
    told = told_by_python(1000)
    found, _ = record_objects(1000, '--heap-python')
    for line in lines_in(EXACT):
        if told.get(line, (0, 0))[1] > BYTES:
            equal(found.get(line), told[line], f'line {line}')
    # An object that takes the place of a freed one, without an allocation, is one of the new line for
    # tracemalloc, and of the old one here, which may be one of the interpreter's start.
    lines = lines_in([*EXACT, 'drain', 'tuples', 'points', '__init__', 'dropped'])
    (objects, size), (all_objects, all_size) = sums(found, lines), sums(told, lines)
    print(f'# {objects} objects of {size} bytes; tracemalloc: {all_objects} of {all_size}')
    check(abs(objects - all_objects) < all_objects / 100 and abs(size - all_size) < all_size / 100,
          'the sums differ')


@test
def objects_sampled():
    """--heap-python with --heap-sample: sums are right, also of objects for which malloc() is called"""
    lines = lines_in(['large'])
    whole = sums(told_by_python(1000), lines)[1]
    about = sums(record_objects(1000, '--heap-python', '--heap-sample=2000')[0], lines)[1]
    check(0.8 * whole < about < 1.2 * whole, f'{about} bytes of {whole}')


@test
def objects_unseen():
    """it is said where objects are not in the sums"""
    said = record_objects(10)[1]
    check("Python's objects of up to 512 bytes are not in these sums (1 process): see --heap-python" in said, said)
    said = record_objects(10, '--heap-python', env={'PYTHONMALLOC': 'debug'}.items())[1]
    check('Python in 1 process has replaced what records its objects' in said, said)


@test
def objects_without_samples():
    """it is not said where there are just no samples"""
    ended = shstk('record', '--heap-python', '--heap-sample=1000000000', '-o', os.path.join(TMP, 'few.pb.gz'), '--',
                  *PYTHON.split(), '-S', '-c', '')
    check('in 1 process' in ended.stderr and 'objects' not in ended.stderr, ended.stderr)


@test
def objects_by_malloc():
    """with PYTHONMALLOC=malloc nothing is missing, and nothing counted twice"""
    with_malloc = {'PYTHONMALLOC': 'malloc'}.items()
    for options in (), ('--heap-python',):
        found, said = record_objects(500, *options, env=with_malloc)
        check('are not in these sums' not in said, said)
        equal(sums(found, lines_in(['large']))[0], 500 * 3 + 1, f'{options}: objects of large()')


@test
def objects_by_no_malloc():
    """where Python ignores PYTHONMALLOC (-E) they are missing, or recorded by --heap-python"""
    for options, missing in ((), True), (('--heap-python',), False):
        ended = shstk('record', '--heap', *options, '-o', os.path.join(TMP, 'ignores.pb.gz'), '--', *PYTHON.split(),
                      '-E', '-S', OBJECTS, '500', env={**os.environ, 'PYTHONMALLOC': 'malloc'})
        check(ended.returncode == 0, ended.stderr)
        equal('are not in these sums' in ended.stderr, missing, f'{options}: {ended.stderr}')


@test
def objects_of_child():
    """with PYTHONMALLOC=malloc nothing is missing of a child that is forked, either"""
    ended = shstk('record', '--heap', '-o', os.path.join(TMP, 'child.pb.gz'), '--', *PYTHON.split(), '-S', '-c',
                  'import os\nif os.fork():\n    os.wait()', env={**os.environ, 'PYTHONMALLOC': 'malloc'})
    check(ended.returncode == 0 and '2 processes' in ended.stderr, ended.stderr)
    check('are not in these sums' not in ended.stderr, ended.stderr)


@test
def objects_of_process():
    """--heap-python does not go with -p"""
    ended = shstk('record', '--heap-python', '-p', str(os.getpid()))
    equal(ended.returncode, 2, ended.stderr)
    check('--heap-python does not go with --pid' in ended.stderr, ended.stderr)


# ---- Deep stacks ----

DEEP = """
import sys, time
sys.setrecursionlimit(10 ** 6)
kept = []
def down(n):
    if n:
        down(n - 1)
    else:
        kept.append(bytearray(777777))
def first(n):
    down(n)
def second(n):
    down(n)
first(int(sys.argv[2]))
second(3000)
time.sleep(float(sys.argv[1]))
"""


@test
def deep_recursion():
    """a recursion of 3,000 calls has both ends, and what repeats once"""
    out = os.path.join(TMP, 'deep.folded')
    ended = shstk('record', '--heap', '-o', out, '--', *PYTHON.split(), '-S', '-c', DEEP, '0', '3000')
    check(ended.returncode == 0, ended.stderr)
    with open(out, encoding='utf-8') as file:
        stacks_of = [line.split(';') for line in file if int(line.rpartition(' ')[2]) > 777777]
    for name in 'first', 'second':
        check(any([name, '[recursion of 1 call]', 'down'] == stack[i:i + 3]
                  for stack in stacks_of for i, frame in enumerate(stack) if frame == name),
              f'{name}: {stacks_of}')
    check('deeper than 1024 frames' in ended.stderr, ended.stderr)
    check('too deep' not in ended.stderr, ended.stderr)


@test
def deeper_recursion_is_told():
    """where there are more functions than are read, all outputs say so"""
    out = os.path.join(TMP, 'deeper')
    ended = shstk('record', '--heap', '-o', out + '.pb', '-o', out + '.svg', '-o', out + '.txt', '--',
                  *PYTHON.split(), '-S', '-c', DEEP, '0', '9000')
    check(ended.returncode == 0, ended.stderr)
    for name in out + '.pb', out + '.svg', out + '.txt':
        with open(name, encoding='utf-8', errors='replace') as file:
            check('are too deep to show the functions' in file.read(), name)


@test
def deep_recursion_that_is_known():
    """it is also said of a file that was written while the program ran"""
    ended = shstk('record', '--heap', '-o', os.path.join(TMP, 'deep.shstk'), '--',
                  *PYTHON.split(), '-S', '-c', DEEP, '4', '3000')
    check(ended.returncode == 0, ended.stderr)
    check('deeper than 1024 frames' in ended.stderr, ended.stderr)


def why():
    """Why nothing can be tested, or None."""
    if platform.machine() not in ('x86_64', 'aarch64'):
        return 'only on x86-64 and arm64'
    return None if os.path.exists(PYTHON.split()[0]) else PYTHON + ' is not installed'


if __name__ == '__main__':
    sys.exit(main(why))
