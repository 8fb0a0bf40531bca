#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk record --heap` on programs whose allocations are known. Prints KTAP."""

import glob
import gzip
import os
import shutil
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, HERE, LIMIT, SHSTK, TEST_LIMIT, TMP, Skip, check, equal, main, shstk, test)

TARGET = os.path.join(HERE, 'target')
OWN = os.path.join(HERE, 'own')
TYPES = ('alloc_objects', 'alloc_space', 'inuse_objects', 'inuse_space',
         'peak_objects', 'peak_space', 'temporary_objects', 'lifetime')


class Run:
    """A recording: its status, error output, and {function: value} of a type. The function is the
    innermost one that the target defines."""

    def __init__(self, *args, options=(), status=0, env=None):
        out = os.path.join(TMP, 'out')
        command = [SHSTK, 'record', '--heap', *options]
        self.files = {}
        for show in TYPES:
            self.files[show] = None
        self.command = command
        self.args = args
        self.status = status
        self.env = dict(os.environ, **(env or {}))
        self.out = out
        self.err = ''

    def stacks(self, show):
        """Return [(frames, value)] of a type; each type is a run of its own."""
        path = f'{self.out}.{show}.folded'
        done = subprocess.run(
            [*self.command, '--heap-show', show, '-o', path, '--', *self.args],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=LIMIT, check=False)
        self.err = done.stderr.decode()
        equal(done.returncode, self.status, f'exit status ({self.err})')
        stacks = []
        with open(path, encoding='utf-8') as file:
            for line in file:
                frames, value = line.rstrip('\n').rsplit(' ', 1)
                stacks.append((frames.split(';'), int(value)))
        return stacks

    def leaves(self, show):
        """Return {innermost function: sum}."""
        sums = {}
        for frames, value in self.stacks(show):
            sums[frames[-1]] = sums.get(frames[-1], 0) + value
        return sums

    def within(self, show, name):
        """Return the sum over stacks that contain a function."""
        return sum(value for frames, value in self.stacks(show)
                   if name in frames)


@test
def every_function_is_seen_and_its_caller_named():
    run = Run(TARGET, 'kinds')
    want = {
        'by_malloc': 100, 'by_calloc': 200, 'by_realloc_null': 300,
        'by_reallocarray': 400, 'by_aligned_alloc': 512, 'by_memalign': 600,
        'by_valloc': 700, 'by_pvalloc': 800, 'by_posix_memalign': 900,
        'by_new': 1, 'by_new_array': 1001, 'by_new_nothrow': 1002,
        'by_new_aligned': 256, 'by_new_aligned_nothrow': 512,
        'by_operator_new': 1003,
    }
    got = run.leaves('inuse_space')
    for name, size in want.items():
        equal(got.get(name), size, name)
    equal(run.within('inuse_space', 'by_strdup'), 11, 'strdup')
    got = run.leaves('alloc_objects')
    for name in want:
        equal(got.get(name), 1, name)


@test
def peak_and_leaks_are_exact():
    run = Run(TARGET, 'peak')
    got = run.leaves('peak_space')
    equal(got.get('first_half'), 40000, 'first_half at the peak')
    equal(got.get('second_half'), 30000, 'second_half at the peak')
    equal(got.get('kept', 0), 0, 'kept at the peak')
    got = run.leaves('inuse_space')
    equal(got.get('kept'), 5000, 'kept at the end')
    for name in ('first_half', 'second_half', 'grown'):
        equal(got.get(name, 0), 0, f'{name} at the end')
    got = run.leaves('alloc_space')
    equal(got.get('grown'), 6000, 'grown by realloc')


def peak_of(err):
    """Return the bytes in the line about the peak."""
    number, unit = re.search(r'peak ([0-9.]+) (B|KiB|MiB)', err).groups()
    return float(number) * {'B': 1, 'KiB': 1 << 10, 'MiB': 1 << 20}[unit]


def check_peak(run, got):
    """The line about the peak has the sum of what the profile of it has, by two decimals of KiB."""
    if abs(peak_of(run.err) - sum(got.values())) > 6:
        raise AssertionError(f'{sum(got.values())} bytes in the profile: {run.err}')


@test
def peaks_of_threads_are_exact():
    run = Run(TARGET, 'together')
    got = run.leaves('peak_space')
    equal(got.get('held_in_thread'), 8 * 60 * 1000, 'held_in_thread at the peak')
    check_peak(run, got)
    equal(run.leaves('peak_objects').get('held_in_thread'), 8 * 60, 'its blocks')


def check_top(case, in_main):
    """The peak has what main() allocates, and what threads have that wait."""
    run = Run(TARGET, case)
    got = run.leaves('peak_space')
    equal(got.get('in_main'), in_main, 'in_main at the peak')
    equal(got.get('small_in_thread'), 8 * 5 * 100, 'small_in_thread at the peak')
    check_peak(run, got)


@test
def what_threads_have_counts_in_a_peak_of_another():
    check_top('top-beside-threads', 200000)


@test
def what_threads_have_makes_a_peak_of_another():
    check_top('top-with-threads', 197000)


@test
def what_threads_have_counts_in_a_peak_of_another_beside_much():
    run = Run(TARGET, 'top-beside-threads-in-much')
    got = run.leaves('peak_space')
    equal(got.get('in_main'), 4700000, 'in_main at the peak')
    equal(got.get('small_in_thread'), 60 * 5 * 100, 'small_in_thread at the peak')
    missing = sum(got.values()) - peak_of(run.err)
    if missing > sum(got.values()) / 1000 + 5300:   # 4.5 MiB have two decimals
        raise AssertionError(f'{missing} bytes are missing: {run.err}')


@test
def peaks_of_threads_beside_much_are_right_to_a_thousandth():
    run = Run(TARGET, 'together-in-much')
    got = run.leaves('peak_space')
    equal(got.get('in_main'), 500 << 20, 'in_main at the peak')
    missing = (500 << 20) + 8 * 60 * 1000 - peak_of(run.err)
    if missing > (500 << 20) / 1024 + 5000:
        raise AssertionError(f'{missing} bytes are missing: {run.err}')


@test
def a_program_that_writes_to_the_shared_memory_ends_no_other():
    Run(os.path.join(HERE, 'neighbour')).stacks('alloc_objects')


@test
def libraries_that_call_past_the_agent_are_named():
    said = '1 program loaded libraries with RTLD_DEEPBIND'
    for job, wanted in ('deepbind', True), ('plugins', False):
        run = Run(TARGET, job)
        run.stacks('inuse_space')
        equal(said in run.err, wanted, f'{job}: {run.err}')


@test
def libraries_that_prefer_their_own_functions_are_seen():
    for job, rounds in ('deep-lazy', 1), ('deep-now', 1), ('deep-direct', 1), ('deep-again', 2):
        run = Run(TARGET, job)
        got = run.leaves('alloc_space')
        equal('RTLD_DEEPBIND' in run.err, False, f'{job}: {run.err}')
        for name, size in (('deep_makes', 3000), ('deep_points', 700), ('main_makes', 100)):
            equal(got.get(name), 100 * size * rounds, f'{job}: {name}')
        # asprintf() may make its block smaller before it returns it.
        got = run.within('alloc_objects', 'deep_prints')
        if not 200 * rounds <= got <= 300 * rounds:
            raise AssertionError(f'{job}: {got} of deep_prints')
        got = run.leaves('inuse_objects')
        for name in ('deep_makes', 'deep_points', 'deep_prints', 'main_makes'):
            equal(got.get(name, 0), 0, f'{job}: {name} leaked')


@test
def lifetimes_and_temporary_blocks():
    run = Run(TARGET, 'lifetimes')
    got = run.leaves('temporary_objects')
    equal(got.get('temporary'), 50, 'temporary')
    equal(got.get('lasting', 0), 0, 'temporary ones of lasting')
    equal(got.get('resized'), 1, 'resized')
    equal(got.get('emptied', 0), 0, 'emptied')
    got = run.leaves('lifetime')
    if not got['lasting'] >= 50 * 19000000:
        raise AssertionError(f'50 blocks lived 20 ms or more: {got}')
    if not got.get('temporary', 0) < got['lasting']:
        raise AssertionError(f'temporary blocks lived longer: {got}')


@test
def threads_and_their_destructors():
    run = Run(TARGET, 'threads')
    got = run.leaves('inuse_objects')
    equal(got.get('in_thread'), 8000, 'in threads')
    equal(got.get('in_key_destructor'), 8, 'in key destructors')
    equal(got.get('in_tls_destructor'), 8, 'in TLS destructors')


@test
def threads_kept_apart():
    run = Run(TARGET, 'threads', options=['--per-thread'])
    sums = {}
    for frames, value in run.stacks('inuse_objects'):
        if frames[-1] == 'in_thread':
            sums[frames[0]] = sums.get(frames[0], 0) + value
    equal(sorted(sums.values()), [1000] * 8, 'allocations of each thread')
    for i in range(8):
        if not any(f'work{i}' in name for name in sums):
            raise AssertionError(f'no thread work{i}: {sorted(sums)}')


@test
def blocks_freed_by_other_threads():
    run = Run(TARGET, 'handover')
    equal(run.leaves('alloc_objects').get('pass'), 20000, 'allocated')
    equal(run.leaves('inuse_objects').get('pass', 0), 0, 'in use')


@test
def children_of_fork():
    run = Run(TARGET, 'forks')
    got = run.leaves('inuse_space')
    equal(got.get('before_fork'), 1000, 'before_fork')
    equal(got.get('in_child'), 2000, 'in_child')
    equal(got.get('in_raw_child'), 3000, 'in_raw_child')
    equal(got.get('in_parent'), 4000, 'in_parent')


@test
def exec_begins_anew():
    run = Run(TARGET, 'exec')
    got = run.leaves('inuse_space')
    equal(got.get('main'), 50, 'before exec')
    equal(got.get('kept'), 5000, 'after exec')


@test
def constructors_destructors_and_exit_handlers():
    run = Run(TARGET, 'exit', status=7)
    got = run.leaves('inuse_space')
    for name, size in (('in_constructor', 10), ('in_destructor', 20),
                       ('in_static_object', 30), ('at_exit', 40)):
        equal(got.get(name), size, name)


@test
def a_killed_program_is_read():
    run = Run(TARGET, 'killed', status=128 + 9)
    equal(run.leaves('inuse_space').get('by_malloc'), 100, 'by_malloc')


# The file of the recorder's memory. The recorder may close others while they are looked at.
MEMORY = '''
import os
def link_of(file):
    try:
        return os.readlink(file)
    except OSError:
        return ''
folder = f'/proc/{os.getppid()}/fd'
memory = next(f'{folder}/{fd}' for fd in os.listdir(folder) if 'shstk-heap' in link_of(f'{folder}/{fd}'))
'''

# A program that writes a false 'used' to its struct heap_image, at the start of its region. Then it
# prints the most MiB that the recorder's memory takes while it watches.
LIAR = MEMORY + '''
import ctypes, re, time
for line in open('/proc/self/maps'):
    start = re.match('([0-9a-f]+)-[0-9a-f]+ rw-s .*shstk-heap', line)
    address = start and int(start[1], 16)
    if address and ctypes.c_uint32.from_address(address).value == os.getpid():
        ctypes.c_uint64.from_address(address + 64).value = 2 << 30
most, end = 0, time.monotonic() + 3
while time.monotonic() < end:
    most = max(most, os.stat(memory).st_blocks >> 11)
    time.sleep(0.01)
print(most)
'''


@test
def a_program_that_says_it_used_all_memory():
    done = subprocess.run([SHSTK, 'record', '--heap', '--every=300ms', '-o',
                           os.path.join(TMP, 'liar.folded'), '--', sys.executable, '-c', LIAR],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
                          check=False)
    equal(done.returncode, 0, f'exit status ({done.stderr})')
    if int(done.stdout) > 200:
        raise AssertionError(f'what was not used is filled: {done.stdout} MiB')


# A program that writes records of mappings, of 2 MiB each, of which only the first page is written.
# Their numbers begin at 1 and skip some.
HOLES = MEMORY + '''
import re, struct
SIZE, MAPS = 2 << 20, 0x706d3032
memory = os.open(memory, os.O_RDWR)
for line in open('/proc/self/maps'):
    found = re.match('[0-9a-f]+-[0-9a-f]+ rw-s ([0-9a-f]+) .*shstk-heap', line)
    region = int(found[1], 16) if found else 0
    if found and struct.unpack('<I', os.pread(memory, 4, region))[0] == os.getpid():
        break
used, = struct.unpack('<Q', os.pread(memory, 8, region + 64))
at = (used + (1 << 20)) & ~0xffff
for i in range(700):
    head = struct.pack('<4I', MAPS, SIZE // 64, 100 + 1000 * i, SIZE - 16)
    os.pwrite(memory, head, region + at)
    at += SIZE
os.pwrite(memory, struct.pack('<Q', at), region + 64)
os._exit(0)
'''


@test
def a_program_whose_records_are_holes():
    command = [SHSTK, 'record', '--heap', '-o', os.path.join(TMP, 'holes.folded'), '--',
               sys.executable, '-c', HOLES]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
        error = run.stderr.read()
        status, usage = os.wait4(run.pid, 0)[1:]
        run.returncode = os.waitstatus_to_exitcode(status)
    equal(run.returncode, 0, f'exit status ({error})')
    if usage.ru_maxrss > 400 << 10:
        raise AssertionError(f'the recorder took {usage.ru_maxrss >> 10} MiB')


@test
def signal_handlers():
    run = Run(TARGET, 'signals')
    equal(run.leaves('inuse_objects').get('on_alarm', 0), 0, 'in use')


@test
def deep_stacks():
    run = Run(TARGET, 'deep')
    found = [frames for frames, _ in run.stacks('inuse_space')
             if frames[-1] == 'recursion']
    equal([frames.count('recursion') for frames in found], [601], 'depth')
    run = Run(TARGET, 'deep', options=['--depth=100'])
    found = [frames for frames, _ in run.stacks('inuse_space')
             if frames[-1] == 'recursion']
    equal([frames.count('recursion') for frames in found], [100], 'cut depth')
    if '[truncated]' not in found[0]:
        raise AssertionError(f'not shown as truncated: {found[0][:4]}')


@test
def deep_recursions():
    """stacks that differ only by the depth of a recursion are one, which has both ends"""
    run = Run(TARGET, 'deeper', options=['--heap-mmap'])
    found = sorted((frames[frames.index(begun):], value)
                   for frames, value in run.stacks('inuse_space')
                   for begun in ('deeper()', 'descend_in_thread')
                   if begun in frames and 'descend' in frames)
    repeated, inner = '[recursion of 2 calls]', ['descend', 'fall', 'descend']
    equal(found, [
        (['deeper()', repeated, *inner], 210),
        (['deeper()', 'descend', repeated, *inner[1:], 'fall', 'mmap'], 20 * 4096),
        (['descend_in_thread', repeated, *inner], 10)], 'stacks')
    if '4 of ' not in run.err or 'are deeper than 1024 frames' not in run.err:
        raise AssertionError(f'two of the program, one of its thread, one of its child: {run.err}')


@test
def stacks_without_an_outer_end_are_told():
    """what is deeper than there is room for lacks its outer end, and the profile says so"""
    said = 'lack the outer end: shown as [truncated]'
    run = Run(TARGET, 'deepest')
    stacks = [frames for frames, _ in run.stacks('inuse_space')]
    equal([frames[1] for frames in stacks if 'descend' in frames], ['[truncated]'], 'stacks')
    equal([said in frames[0] for frames in stacks if frames[0].startswith('[caution]')], [True],
          'cautions')
    equal(said in run.err, True, f'{run.err}')
    run = Run(TARGET, 'deeper')
    run.stacks('inuse_space')
    equal(said in run.err, False, f'whole: {run.err}')


@test
def deep_recursions_are_cut():
    """so it is with --depth, and where all memory is locked"""
    for job, options in ('deeper', ['--depth=1024']), ('deeper-locked', []):
        run = Run(TARGET, job, options=options)
        found = [frames for frames, _ in run.stacks('inuse_space') if 'descend' in frames]
        equal({len(frames) - frames.index('[truncated]') - 1 for frames in found}, {1024}, job)
        equal({'[recursion' in frame for frames in found for frame in frames}, {False}, job)
        equal('deeper than 1024 frames' in run.err, False, f'{job}: {run.err}')
        equal('lack the outer end' in run.err, True, f'{job}: {run.err}')


@test
def code_that_comes_and_goes():
    run = Run(TARGET, 'plugins')
    got = run.leaves('inuse_space')
    equal(got.get('plugin_one'), 500, 'plugin_one')
    equal(got.get('plugin_two'), 500, 'plugin_two')


@test
def a_library_closed_by_a_child_of_a_locked_loader():
    run = Run(TARGET, 'closes-locked')
    equal(run.leaves('inuse_space').get('in_child'), 2000, 'in_child')


@test
def a_plugin_with_its_own_operators_in_a_program_of_c():
    run = Run(os.path.join(HERE, 'host'), os.path.join(HERE, 'plugin.so'))
    got = run.leaves('inuse_space')
    for name, size in (('plugin_new', 1000), ('plugin_new_nothrow', 500),
                       ('plugin_new_aligned', 256), ('plugin_deletes', 0)):
        equal(got.get(name, 0), size, name)
    equal(run.leaves('alloc_objects').get('plugin_deletes'), 2, 'deleted ones')


@test
def sampled_sums_are_unbiased():
    # 200000 blocks of 48 bytes, 3000 of 5000, one sample in 2000 bytes: the sums vary by 1.4 % and
    # 0.5 %; six times that is allowed.
    run = Run(TARGET, 'samples', options=['--heap-sample=2000'])
    for show, small, large in (('alloc_objects', 200000, 3000),
                               ('alloc_space', 9600000, 15000000)):
        got = run.leaves(show)
        for name, want, off in (('small_blocks', small, .09),
                                ('large_blocks', large, .04)):
            if not abs(got.get(name, 0) - want) < want * off:
                raise AssertionError(f'{show} of {name}: {got}, not {want}')
    got = run.leaves('inuse_space')
    equal(got.get('small_blocks', 0) + got.get('large_blocks', 0), 0, 'in use')


@test
def allocations_behind_some_that_failed():
    for options in (), ('--heap-sample=10',):
        run = Run(TARGET, 'failures', options=options)
        got = run.leaves('alloc_objects')
        equal(got.get('behind_failures'), 100, f'behind failures {options}')
        equal(got.get('ask_for', 0), 0, f'failures {options}')


@test
def addresses_that_are_limited_are_the_programs():
    run = Run(TARGET, 'limited')
    equal(run.leaves('alloc_objects').get('half_of_the_limit'), 2, 'allocations')


@test
def memory_that_is_locked_is_the_programs():
    if subprocess.run([TARGET, 'locks'], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip('memory can not be locked')
    run = Run(TARGET, 'locks')
    equal(run.leaves('alloc_objects').get('by_malloc'), 1, 'behind mlockall()')
    kib = int(run.err.split('VmLck:')[1].split()[0])
    equal(kib < 100 << 10, True, f'{kib} KiB')


@test
def no_call_is_made_behind_a_filter():
    if subprocess.run([TARGET, 'sandbox'], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip('no filters of system calls')
    run = Run(TARGET, 'sandbox')
    got = run.leaves('alloc_objects')
    equal(got.get('behind_a_filter'), 20000, 'behind a filter')
    equal(got.get('recursion'), 1, 'in a deep stack')
    equal(run.leaves('inuse_objects').get('behind_a_filter', 0), 0, 'not freed')


@test
def rights_given_up_by_a_child_of_vfork():
    run = Run(TARGET, 'vfork-rights')
    equal(run.leaves('inuse_space').get('in_child'), 2000, 'in_child')


@test
def reserves_count_when_they_are_used():
    run = Run(TARGET, 'reserves')
    run.stacks('inuse_space')
    equal('12.00 MiB at a time were allocated by mmap()' in run.err, True, run.err)
    run = Run(TARGET, 'reserves', options=['--heap-mmap'])
    equal(run.within('alloc_space', 'uses_reserve'), 12 << 20, 'used in all')
    equal(run.within('inuse_space', 'uses_reserve'), 10 << 20, 'used at the end')


@test
def mappings_on_request():
    run = Run(TARGET, 'mappings')
    equal(run.within('alloc_space', 'mapping'), 0, 'without --heap-mmap')
    if not re.search(r'1\.00 MiB at a time were allocated by mmap\(\) in target '
                     r'.*see --heap-mmap', run.err):
        raise AssertionError(f'not said how much that is: {run.err}')
    run = Run(TARGET, 'mappings', options=['--heap-mmap'])
    equal(run.within('alloc_space', 'gone'), 1 << 20, 'mapped')
    equal('by mmap() in' in run.err, False, run.err)
    equal(run.within('inuse_space', 'gone'), 0, 'unmapped')
    equal(run.within('inuse_space', 'trimmed'), 28 << 10, 'trimmed')
    equal(run.within('inuse_objects', 'trimmed'), 1, 'objects')
    if not any(frames[-1] == 'mmap' for frames, _ in run.stacks('alloc_space')
               if 'gone' in frames):
        raise AssertionError('mmap is not the innermost function')


@test
def an_allocator_of_the_program_is_reported():
    for args, said in ((), '1 program has a'), (('forks',), '2 programs have a'):
        run = Run(OWN, *args)
        run.stacks('alloc_space')
        if said + ' malloc() of its own' not in run.err:
            raise AssertionError(run.err)


@test
def functions_of_the_program_that_are_not_ready():
    program = os.path.join(HERE, 'interceptors')
    for options in (['--heap'], ['--via=agent']):
        done = subprocess.run([SHSTK, 'record', *options, '-o', os.path.join(TMP, 'out.folded'),
                               '--', program], stdin=subprocess.DEVNULL, timeout=LIMIT,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        equal(done.returncode, 0, f'exit status {options} ({done.stderr.decode()})')
    for name in ('libshstk-heap.so', 'libshstk-agent.so'):
        done = subprocess.run(['nm', '-D', '--undefined-only', os.path.join(BUILD, name)],
                              capture_output=True, text=True, check=True)
        taken = [w.split('@')[0] for w in done.stdout.split() if len(w) > 1]
        # The functions that allocate do not matter: where agents call them, none does.
        equal([w for w in taken if w.startswith(('mem', 'str', 'stp', 'dl_iterate')) and
               w != 'strdup'], [], name)


@test
def an_allocator_that_nobody_can_see_is_reported():
    for program, name in ((OWN + '_hidden', '(malloc)'),
                          (OWN + '_stripped', '(malloc())')):
        run = Run(program)
        run.stacks('alloc_space')
        if f'{program} has an allocator linked into it {name}' not in run.err:
            raise AssertionError(run.err)
    run = Run(TARGET, 'peak')
    run.stacks('alloc_space')
    equal('linked into it' in run.err, False, 'one is seen where there is none')


def other_allocator(pattern):
    found = glob.glob(f'/usr/lib/*/{pattern}')
    if not found:
        raise Skip(f'no {pattern}')
    env = {'LD_PRELOAD': found[0]}
    run = Run(TARGET, 'threads', env=env)
    got = run.leaves('inuse_objects')
    equal(got.get('in_thread'), 8000, 'in threads')
    equal(got.get('in_tls_destructor'), 8, 'in TLS destructors')
    run = Run(TARGET, 'peak', env=env)
    equal(run.leaves('peak_space').get('second_half'), 30000, 'peak')
    run = Run(TARGET, 'handover', env=env, options=['--heap-mmap'])
    equal(run.leaves('inuse_objects').get('pass', 0), 0, 'in use')
    run = Run(TARGET, 'forks', env=env)
    equal(run.leaves('inuse_space').get('in_child'), 2000, 'in_child')
    run = Run(TARGET, 'kinds', env=env)
    equal(run.leaves('inuse_space').get('by_new'), 1, 'by_new')


@test
def with_jemalloc():
    other_allocator('libjemalloc.so.2')


@test
def with_mimalloc():
    other_allocator('libmimalloc.so.2*')


@test
def with_tcmalloc():
    other_allocator('libtcmalloc_minimal.so.4')


def leaves(path):
    """Return {innermost function: sum} of folded stacks."""
    sums = {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            stack, value = line.rsplit(' ', 1)
            name = stack.split(';')[-1]
            sums[name] = sums.get(name, 0) + int(value)
    return sums


def wait_for(recorder, what):
    """Wait until a function returns something true, and return it."""
    end = time.monotonic() + LIMIT
    while not what():
        if time.monotonic() > end or recorder.poll() is not None:
            raise AssertionError(f'{recorder.poll()}: {recorder.stderr.read()}')
        time.sleep(0.02)
    return what()


def snapshots(name, *options):
    """Run the stages of the target with a snapshot after each. Return {suffix: paths in the order
    of time, which is that of their names} and the error output."""
    folder = os.path.join(TMP, name)
    os.mkdir(folder)
    suffixes = ('folded', 'txt', 'pb.gz')
    outputs = [word for s in suffixes for word in ('-o', os.path.join(folder, f'out.{s}'))]

    def written(suffix):
        return sorted(glob.glob(f'{folder}/*.{suffix}'))

    with subprocess.Popen([SHSTK, 'record', '--heap', '--every=1h', *options, *outputs, '--',
                           TARGET, 'stages'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as recorder:
        equal(sorted(recorder.stdout.read(2)), sorted(b'c1'), 'first stage')
        for number in 1, 2:
            recorder.send_signal(signal.SIGHUP)
            # Files are written one after the other.
            wait_for(recorder, lambda number=number: len(written(suffixes[-1])) == number)
            recorder.stdin.write(b'x')
            recorder.stdin.flush()
            if number == 1:
                equal(recorder.stdout.read(1), b'2', 'second stage')
        err = recorder.communicate()[1].decode()
    equal(recorder.returncode, 0, err)
    return {s: written(s) for s in suffixes}, err


@test
def snapshots_of_what_is_in_use():
    files, err = snapshots('snapshots')
    equal([len(paths) for paths in files.values()], [3] * 3, err)
    want = ({'first_half': 40000, 'kept': 5000, 'in_child': 2000},
            # The child has ended meanwhile.
            {'second_half': 30000, 'kept': 10000, 'in_child': 2000},
            {'second_half': 60000, 'kept': 10000})
    names = ('first_half', 'second_half', 'kept', 'in_child')
    for path, sums in zip(files['folded'], want):
        got = leaves(path)
        equal({n: got[n] for n in names if n in got}, sums, os.path.basename(path))
    if not shutil.which('go'):
        raise Skip('no go tool pprof to subtract one from the other')
    done = subprocess.run(['go', 'tool', 'pprof', '-symbolize=none', '-top', '-unit=B',
                           '-sample_index=inuse_space', '-base', *files['pb.gz'][:2]],
                          env={**os.environ, 'HOME': TMP, 'PPROF_TMPDIR': TMP}, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = {line.split()[-1]: line.split()[0] for line in done.stdout.splitlines() if '%' in line}
    equal({n: rows.get(n) for n in names},
          {'first_half': '-40000B', 'second_half': '30000B', 'kept': '5000B', 'in_child': None},
          done.stdout)


@test
def growth_from_one_snapshot_to_the_next():
    files, err = snapshots('growth', '--heap-show=growth_space')
    want = ({'first_half': 40000, 'kept': 5000, 'in_child': 2000},
            {'second_half': 30000, 'kept': 5000}, {'second_half': 30000})
    names = ('first_half', 'second_half', 'kept', 'in_child')
    for path, sums in zip(files['folded'], want):
        got = leaves(path)
        equal({n: got[n] for n in names if n in got}, sums, f'{os.path.basename(path)} {err}')
    with open(files['txt'][1], encoding='utf-8') as file:
        text = file.read()
    if not text.startswith('growth_space, ') or '-39.06 KiB' not in text:
        raise AssertionError(text)


@test
def the_pprof_file_has_the_types_of_go():
    path = os.path.join(TMP, 'out.pb.gz')
    subprocess.run([SHSTK, 'record', '--heap', '-q', '-o', path, '--', TARGET,
                    'peak'], timeout=LIMIT, check=True)
    with gzip.open(path) as file:
        data = file.read()
    places = [data.find(name.encode()) for name in TYPES]
    if min(places) < 0:
        raise AssertionError(f'types are missing: {places}')
    equal(sorted(places[:4]), places[:4], 'order of the first four')


@test
def real_programs():
    # No folder of the system is listed, as others may install programs meanwhile.
    folder = os.path.join(TMP, 'files')
    os.mkdir(folder)
    for i in range(1000):
        with open(os.path.join(folder, str(i)), 'wb'):
            pass
    for command in (['python3', '-c', 'print(sum(len(str(i)) for i in range(99999)))'],
                    ['sh', '-c', f'ls {folder} | sort | wc -l']):
        plain = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        heap = subprocess.run(
            [SHSTK, 'record', '--heap', '--heap-mmap', '-o',
             os.path.join(TMP, 'x.svg'), '--', *command], timeout=LIMIT,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        equal(heap.stdout, plain.stdout, f'output of {command[0]}')
        equal('of its own' in heap.stderr.decode(), False, 'own malloc()')
        equal('linked into it' in heap.stderr.decode(), False, 'an allocator')


NODE = '''
const crypto = require('crypto');
for (let i = 0; i < 2000; i++)
    crypto.createHash('md5').update('text ' + i).digest();
'''
COUNTED = 'valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', 'node', '-e', NODE
# What node executes for each of its allocations is among these, some 1,300. Where each guesses the
# frames of its stack anew they are 7,000.
NODE_MOST = 5000


@test
def stacks_of_made_code_are_guessed_once():
    """what nothing describes on node's stacks costs little: instructions are counted"""
    if not shutil.which('node') or not shutil.which('valgrind'):
        raise Skip('needs node and valgrind')
    done = shstk('record', '--heap', '-o', os.path.join(TMP, 'node.pb.gz'), '--', *COUNTED, timeout=TEST_LIMIT)
    refs = re.search(r'refs: +([0-9,]+)', done.stderr)
    if not refs and subprocess.run(COUNTED, capture_output=True, timeout=TEST_LIMIT, check=False).returncode:
        raise Skip('valgrind does not run node here')
    check(refs, f'no count: {done.stderr}')
    allocations = re.search(r'(\d+) allocations of', done.stderr)
    check(allocations and int(allocations[1]) > 200000, f'too few allocations: {done.stderr}')
    each = int(refs[1].replace(',', '')) // int(allocations[1])
    print(f'# {each} instructions for each of {allocations[1]} allocations', flush=True)
    check(each < NODE_MOST, f'{each} instructions for each allocation, {NODE_MOST} at most')


@test
def children_with_another_environment_are_followed():
    own = os.path.join(os.path.dirname(TARGET), 'plugin-one.so')
    for command in (f'LD_PRELOAD={own} {TARGET} peak; exit $?',
                    f'env -i {TARGET} peak; exit $?'):
        run = Run('sh', '-c', command)
        equal(run.leaves('inuse_space').get('kept'), 5000, command)


@test
def programs_of_another_c_library():
    musl = os.path.join(BUILD, 'selftests', 'record', 'target-musl')
    for command in ([musl], ['sh', '-c', f'{musl}; exit $?']):
        run = Run(*command, status=4)
        equal(run.within('inuse_space', 'musl_keeps'), 54321, ' '.join(command))


@test
def wrong_options_are_refused():
    for options in (['--heap', '--wall'], ['--heap', '-a'],
                    ['--heap-show', 'alloc_space', '--wall'], ['--heap-sample=x'],
                    ['--heap', '--heap-show=nothing'], ['--heap-show=growth_space'],
                    ['--heap', '-p', '1']):
        done = subprocess.run([SHSTK, 'record', *options, '--', 'true'],
                              stderr=subprocess.PIPE, check=False, cwd=TMP)
        equal(done.returncode, 2, ' '.join(options))


sys.exit(main())
