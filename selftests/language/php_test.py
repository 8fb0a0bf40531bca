#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of PHP programs in stacks: they are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (PHP).
"""

import itertools
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TMP, Process, Skip, check, main, run, test    # noqa: E402
from php_judge import PhpJudge    # noqa: E402
from php_program import write    # noqa: E402
from told import (    # noqa: E402
    await_file, await_reading, read_told, shown as functions_of, trace, trace_shown)
from truth_runs import add_tests    # noqa: E402

PHP = os.environ.get('PHP', '/usr/bin/php')
WAITING = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'waiting.php')
KINDS = 'sort map generator deep magic made fiber'.split()
THROWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'thrown.php')
CALLERS = {      # of the functions of that program
    '{main}': [None], 'Generator::current': ['{main}'], 'array_map': ['{main}'], 'inside': ['array_map'],
    'throw_in': ['inside'], 'Generator::throw': ['throw_in'], 'generate': ['Generator::current', 'Generator::throw']}
FIBERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'fibers.php')
STACKS = {      # what fibers.php may run where it goes on with a fiber: in its main stack, and by the native calls in others
    'main': ['Fiber::start go_on_always {main}'.split(), 'Fiber::resume go_on go_on_always {main}'.split()],
    1: ['Fiber::suspend in_fiber'.split()],
    2: ['Fiber::start go_on_always'.split(), 'Fiber::resume go_on go_on_always'.split()]}
RESUMED = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'resumed.php')
BEGIN = 'Generator::current begin {main}'.split()     # who goes on with a generator there
GO_ON = 'Generator::next go_on {main}'.split()
INSIDE = 'Generator::next go_on inside array_map {main}'.split()
LOOP = b'\xeb\xfe'     # jmp to itself
PATIENCE = 300      # seconds


def command(word):
    """php_program.py's program, which is written to TMP."""
    write(TMP)
    return *PHP.split(), os.path.join(TMP, 'functions.php'), word


add_tests(command, PhpJudge)


def stack_of(kind):
    """Traces waiting.php: what it told, and the functions of its stack."""
    path = os.path.join(TMP, kind)
    with Process([*PHP.split(), WAITING, path, kind], stdin=subprocess.PIPE) as process:
        check(await_file(path, process), 'the program does not wait')
        told = read_told(path)
        await_reading(process.pid, told)
        found = trace_shown(process, told, lambda: trace(process.pid))
        process.kill()
    return told[process.pid], found[process.pid]


@test
def traced():
    """`shstk trace -p` shows the functions and lines where a program says that it waits; of a fiber its own ones"""
    for kind in KINDS:
        told, frames = stack_of(kind)
        told = list(itertools.takewhile(lambda frame: frame[0] != 'Fiber::start', told))
        seen = list(functions_of(frames))
        check(seen[0][0] == 'fread' and seen[1:] == told, f'{kind}: told: {told}\nseen: {seen}')
        check('execute_ex' not in [frame['function'] for frame in frames], f'{kind}: {frames}')


@test
def nested():
    """Of a fiber with a deep stack in another one, no function of that one is shown, though it has the outer end"""
    told, frames = stack_of('nested')
    check('make_inside' in [name for name, _ in told], f'{told}')
    names = [frame['function'] for frame in frames]
    check('make_inside' not in names and 'zif_fread' in names, f'{frames}')


def path_of_php():
    """The program's file. Skips the test where its instructions are not known."""
    if platform.machine() != 'x86_64' or not shutil.which('readelf') or not shutil.which('objdump'):
        raise Skip('this needs x86-64, readelf and objdump')
    return shutil.which(PHP.split()[0])


def range_of(function):
    """Where the program's file has a function."""
    symbols = run('readelf', '-W', '--dyn-syms', path_of_php()).stdout
    found = re.search(rf'([0-9a-f]{{16}}) +(\d+) FUNC .* {function}$', symbols, re.MULTILINE)
    if not found:
        raise Skip(function + ' is not known in ' + path_of_php())
    return int(found.group(1), 16), int(found.group(1), 16) + int(found.group(2))


def instructions(start, end):
    """The instructions in the program's file from an address to another one: those that have room for LOOP."""
    listing = run('objdump', '-d', '-w', f'--start-address={start}', f'--stop-address={end}', path_of_php()).stdout
    found = [int(text, 16) for text in re.findall(r'^ +([0-9a-f]+):\t', listing, re.MULTILINE)]
    return [a for a, b in zip(found, found[1:]) if b - a >= len(LOOP)]


def resume_places():
    """The addresses in the program's file of the instructions of the function that goes on with a generator."""
    return instructions(*range_of('zend_generator_resume'))


def publishing_places():
    """The addresses of the first instructions behind those that make a frame the innermost one, outside of the
    function that runs frames."""
    start, end = range_of('execute_ex')
    code = re.search(r'LOAD +0x(\S+) +0x(\S+) \S+ 0x(\S+) \S+ R E', run('readelf', '-lW', path_of_php()).stdout)
    offset, address, size = (int(text, 16) for text in code.groups())
    with open(path_of_php(), 'rb') as file:
        file.seek(offset)
        text = file.read(size)
    # mov %r64,0x1e8(%r64)
    for found in re.finditer(rb'[\x48\x49\x4c\x4d]\x89[\x80-\xbf]\xe8\x01\x00\x00', text):
        place = address + found.end()
        if not start <= place < end:
            yield from instructions(place, place + 32)[:4]


def bias_of(pid):
    """What addresses in the memory of the process have more than those in its program's file."""
    path = os.readlink(f'/proc/{pid}/exe')
    first = re.search(r'^ +LOAD +\S+ +0x([0-9a-f]+)', run('readelf', '-W', '-l', path).stdout, re.MULTILINE)
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps:
        start = next(row.split('-')[0] for row in maps if row.rstrip().endswith(path))
    return int(start, 16) - int(first.group(1), 16)


def await_that(process, condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        check(process.poll() is None and time.monotonic() < until, 'the program does not go on')
        time.sleep(0.001)


def is_stopped(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        return file.read().rpartition(')')[2].split()[0] == 'T'


def stop(process):
    process.send_signal(signal.SIGSTOP)
    await_that(process, lambda: is_stopped(process.pid))


def address_of(pid):
    """The address at which a process is that is stopped; None: in a system call."""
    with open(f'/proc/{pid}/syscall', encoding='ascii') as file:
        words = file.read().split()
    return int(words[2], 16) if words[0] == '-1' else None


def write_code(pid, address, code):
    """Writes code of a process that is stopped. Returns what was there."""
    with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as memory:
        memory.seek(address)
        was = memory.read(len(code))
        memory.seek(address)
        memory.write(code)
    return was


def skip_unless_held(pid, address):
    """Skips the test if a process cannot be held at an instruction: kernels may be told that nobody but a debugger
    writes code (proc_mem.force_override)."""
    try:
        write_code(pid, address, write_code(pid, address, LOOP))
        address_of(pid)
    except OSError as error:
        raise Skip(f'the program cannot be held at an instruction: {error}') from error


def run_on(process):
    """The program has so much CPU time that it does many times what it does in a loop."""
    clock = ~process.pid << 3 | 2
    until = time.clock_gettime(clock) + 0.001
    process.send_signal(signal.SIGCONT)
    await_that(process, lambda: time.clock_gettime(clock) > until)


def stack_at(process, address):
    """The frames of a process, which is stopped, that comes to an instruction and stays there; or None if it does
    not come there."""
    was = write_code(process.pid, address, LOOP)
    run_on(process)
    stop(process)
    frames = trace(process.pid)['threads'][0]['frames'] if address_of(process.pid) == address else None
    write_code(process.pid, address, was)
    return frames


def resumed_is_right(frames):
    """Whether frames of a process that runs resumed.php may be those that it has."""
    names = [name for name, _ in functions_of(frames)]
    behind = names[names[:1] == ['generate']:]
    inside = any(frame['function'] == 'zend_call_function' for frame in frames)
    return not names or behind in ([INSIDE] if inside else [BEGIN, GO_ON])


def held_stacks(places, script, *args):
    """For each of the instructions that a script comes to: its address in the file, and the frames there."""
    with Process([*PHP.split(), script, *args]) as process:
        bias = bias_of(process.pid)
        stop(process)
        skip_unless_held(process.pid, bias + places[0])
        await_that(process, lambda: stack_at(process, bias + places[0]))
        for place in places:
            frames = stack_at(process, bias + place)
            if frames:
                yield place, frames
        process.kill()


@test
def resumed():
    """At each instruction at which PHP goes on with a generator, its function has its callers, or is not shown"""
    places = resume_places()
    for kind in 'made', 'other':
        found = dict(held_stacks(places, RESUMED, kind))
        check(len(found) >= 50, f'{kind}: {len(found)} of {len(places)} instructions were reached')
        for place, frames in found.items():
            check(resumed_is_right(frames), f'{kind}, at {place:#x}: {frames}')
        places = list(found)


def stack_name(frames):
    """Which of STACKS that is."""
    functions = [frame['function'] for frame in frames]
    return 'main' if 'php_execute_script' in functions else functions.count('zend_call_function')


@test
def switched():
    """At each instruction at which PHP goes on with a fiber, functions are only in stacks of their own fiber"""
    places = instructions(*range_of('zend_fiber_switch_context'))
    for inside in ([], ['inside']):
        # From one instruction to that in front of it, the program goes on with the other stack.
        found = list(held_stacks(instructions(*range_of('jump_fcontext')) + places + places[::-1], FIBERS, *inside))
        for place, frames in found:
            names = [name for name, _ in functions_of(frames)]
            check(not names or names in STACKS.get(stack_name(frames), []), f'{inside} at {place:#x}: {frames}')
        reached = {(place, stack_name(frames)) for place, frames in found}
        check(len(reached) >= 80, f'{inside}: {len(reached)} of {2 * len(places)} instructions were reached')


def thrown_is_right(frames):
    """Whether frames of a process that runs thrown.php may be those that it has."""
    names = [name for name, _ in functions_of(frames)]
    return all(caller in CALLERS[name] for name, caller in zip(names, [*names[1:], None]))


def stacks_at(process, places):
    """The frames of a process, which is stopped, at each of these addresses that it comes to."""
    was = {place: write_code(process.pid, place, LOOP) for place in places}
    tries = 0
    while tries < 20:
        run_on(process)
        stop(process)
        place = address_of(process.pid)
        tries += 1
        if place in was:
            yield place, trace(process.pid)['threads'][0]['frames']
            write_code(process.pid, place, was.pop(place))
            tries = 0


@test
def thrown():
    """Where PHP makes a frame the innermost one, to throw an exception into a generator, that has its callers, or is
    not shown"""
    reached, places = 0, list(publishing_places())
    with Process([*PHP.split(), THROWN]) as process:
        bias = bias_of(process.pid)
        places = [bias + place for place in places]
        stop(process)
        skip_unless_held(process.pid, places[0])
        for place, frames in stacks_at(process, places):
            reached += 1
            check(thrown_is_right(frames), f'at {place - bias:#x}: {frames}')
        process.kill()
    check(reached >= 8, f'{reached} of {len(places)} instructions were reached')


def why():
    """Why nothing can be tested, or None."""
    if not os.path.exists(PHP.split()[0]):
        return PHP + ' is not installed'
    has = run(*PHP.split(), '-r', 'exit(class_exists("FFI") ? 0 : 1);').returncode == 0
    return None if has else PHP + ' has no FFI, by which the program maps a word'


if __name__ == '__main__':
    sys.exit(main(why))
