#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Ruby programs in stacks: they are what the program itself says that runs.

The environment may choose how many samples are taken (SAMPLES) of which interpreter (RUBY).
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import SHSTK, TMP, Process, check, main, run, stack_lines, test    # noqa: E402
from pprof import Decoded    # noqa: E402
from probed import go_on, lines_of, record_process    # noqa: E402
from ruby_judge import RubyJudge    # noqa: E402
from ruby_program import write    # noqa: E402
from told import await_file, await_reading, read_told, trace, trace_shown    # noqa: E402
from truth_runs import add_tests    # noqa: E402

RUBY = os.environ.get('RUBY', '/usr/bin/ruby')
KNOWN = '3.1.', '3.3.'     # versions that are known
WAITING = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'waiting.rb')
KINDS = 'sort map deep lambda missing made defined fiber thread rescue ensure long'.split()


def command(word):
    """ruby_program.py's program, which is written to TMP."""
    write(TMP)
    return *RUBY.split(), '-W0', os.path.join(TMP, 'functions.rb'), word


RUN = add_tests(command, RubyJudge)


@test
def written_in_c():
    """functions in C are among them, with the names that Ruby has"""
    counts = RUN.judged[0].counts
    shown, missing = counts['functions in C'], counts['functions in C that are not shown']
    check(shown > missing, f'{shown}, {missing} are not shown')


SWITCHES = """
def produce = Enumerator.new { |y| loop { y << 1 } }
def consume(e) = 1000.times { e.next }
e = produce
consume(e) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < 2
"""


@test
def switched():
    """where fibers are switched all the time, functions are only in stacks of their own fiber"""
    check(RUN.judged, 'nothing is recorded')
    done = run(SHSTK, 'record', '-F', '1999', '-o', '-', '--format=folded', '--', *RUBY.split(), '-W0', '-e',
               SWITCHES)
    outside = inside = 0
    for stack, value in stack_lines(done.stdout):
        names = stack.split(';')
        of_main, of_fiber = 'consume' in names, 'in produce' in stack
        check(not (of_main and of_fiber), stack)
        check(of_main == ('_start' in names) or not (of_main or of_fiber), stack)
        outside += value * of_main
        inside += value * of_fiber
    check(outside and inside, done.stderr)


def stack_of(kind):
    """Traces waiting.rb: what it told, and the stack of the thread that waits."""
    path = os.path.join(TMP, kind)
    with Process([*RUBY.split(), '-W0', WAITING, path, kind], stdin=subprocess.PIPE) as process:
        check(await_file(path, process), 'the program does not wait')
        (tid, told), = read_told(path).items()
        await_reading(process.pid, [tid])
        found = trace_shown(process, [tid], lambda: trace(process.pid))
        process.kill()
    return told, found[tid]


@test
def traced():
    """`shstk trace -p` shows the functions and lines where a program says that it waits"""
    for kind in KINDS:
        told, frames = stack_of(kind)
        seen = [(frame['function'].removesuffix(' (waiting.rb)'), str(frame.get('line') or 0))
                for frame in frames if frame['address'] == '0x0']
        check(seen == told, f'{kind}: told: {told}\nseen: {seen}')
        check('rb_vm_exec' not in [frame['function'] for frame in frames], f'{kind}: {frames}')


# Functions that allocate strings, each of a size of its own.
SIZES = range(20002, 20002 + 16 * 300, 16)
ALLOCATES = """
sizes = (0...300).map { |i| 20_002 + 16 * i }
sizes.each do |s|
  eval("def at_#{s}\\n 'x' * #{s}\\nend\\ndef from_#{s}\\n at_#{s}\\nend", nil, "made-#{s}", s % 37 + 1)
end
$stdout.sync = true
puts 'ready'; $stdin.gets
sizes.each { |s| send("from_#{s}") }
puts 'done'; $stdin.gets
"""


def find_fault(size, frames):
    """What is wrong with the functions in whose stack a string of that size is allocated, or None."""
    line = size % 37 + 1
    made = [frame for frame in frames if os.path.basename(frame[1]).startswith('made-')]
    wanted = [(f'at_{size}', f'made-{size}', line + 1), (f'from_{size}', f'made-{size}', line + 4)]
    return None if [(name, os.path.basename(path), at) for name, path, at in made] == wanted else made


@test
def allocations():
    """record --heap -p: most strings have their functions, none another function, caller or line"""
    out = os.path.join(TMP, 'heap.pb.gz')
    print('#', record_process(out, [*RUBY.split(), '-W0', '-e', ALLOCATES], lambda program, _: go_on(program)))
    profile = Decoded(out)
    objects, space = (profile.types.index(t) for t in (('alloc_objects', 'count'), ('alloc_space', 'bytes')))
    shown, wrong = 0, []
    for ids, values, _ in profile.samples:
        frames = list(lines_of(profile, ids))
        # A string has a zero behind its characters.
        size = values[space] // values[objects] - 1 if values[objects] else 0
        if size not in SIZES or not any(name.startswith(('at_', 'from_')) for name, _, _ in frames):
            continue
        fault = find_fault(size, frames)
        shown += not fault
        wrong += [fault] if fault else []
    print(f'# {shown} of 300 are shown, {len(wrong)} are wrong')
    check(not wrong, str(wrong[:3]))
    check(shown > 270, f'{shown} of 300')


def why():
    """Why nothing can be tested, or None."""
    if not os.path.exists(RUBY.split()[0]):
        return RUBY + ' is not installed'
    version = run(*RUBY.split(), '-e', 'print RUBY_VERSION').stdout
    return None if version.startswith(KNOWN) else f'Ruby {version or "of this program"} is not known'


if __name__ == '__main__':
    sys.exit(main(why))
