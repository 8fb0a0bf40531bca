#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests libshstk-crash: reports that a program makes of its own crash, preloaded and by its functions.

Prints KTAP.
"""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, HERE, LIMIT, NOBODY, SHSTK, TMP, Process, Skip, check, equal, main, need_nobody, one_line, run,
    test)
from ways import CALLERS, WAYS, may_trace_all, why_unreadable  # noqa: E402

CRASHER = os.path.join(HERE, 'crasher')
CATCHER = os.path.join(HERE, 'catcher')
PRELOAD = os.path.join(BUILD, 'libshstk-crash-preload.so')
OWN = {function for function, _ in WAYS.values()}


def crash(*command, args='', command_path=SHSTK, **how):
    """Run a program with the library preloaded; no core file is written. On a busy machine a report
    may take longer than it does by default."""
    env = dict(os.environ, LD_PRELOAD=PRELOAD, SHSTK_CRASH_COMMAND=command_path,
               SHSTK_CRASH_ARGS=f'--timeout=150 {args}')
    return subprocess.run(['sh', '-c', 'ulimit -c 0; ulimit -s 1024; exec "$@"', 'sh', *command],
                          env=env, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          errors='replace', timeout=LIMIT, **how)


def plain(*command):
    """Status of a program without the library."""
    return subprocess.run(['sh', '-c', 'ulimit -c 0; ulimit -s 1024; exec "$@"', 'sh', *command],
                          check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          timeout=LIMIT).returncode


def functions(text):
    """The functions of the first stack in a report."""
    return re.findall(r'^  #\d+ +0x[0-9a-f]+ (\S+?)(?:\+0x[0-9a-f]+)? ', text.split('\n\n')[1],
                      re.M)


@test
def names_what_crashed():
    """each way to crash has its function first and its cause in words, and ends as without us"""
    wrong = []
    for way, (function, cause) in WAYS.items():
        if way == 'quits':      # that is no crash: the library has no handler for it
            continue
        done = crash(CRASHER, way)
        # The C library may have said something before.
        text = done.stderr[max(done.stderr.find('process '), 0):]
        head, stack = text.split('\n')[0], functions(text + '\n\n')
        own = [name for name in stack if name in OWN]
        if done.returncode != plain(CRASHER, way) or own[:1] != [function] or \
                CALLERS.get(way, function) not in stack or not re.fullmatch(
                rf'process \d+ \([^)]*\) ended by {cause}', head):
            wrong.append(f'{way}: {done.returncode} {head} {stack[:6]} {done.stderr[-200:]}')
    check(not wrong, '\n'.join(wrong))


@test
def overflow_in_a_thread():
    """a thread whose stack is full has its report, too, by the alternate stack that it got"""
    done = crash(CRASHER, 'thread-overflow')
    equal(done.returncode, -signal.SIGSEGV, 'status')
    equal(functions(done.stderr + '\n\n')[:1], ['overflow'], done.stderr[:400])


@test
def child_that_shares_memory():
    """a child of vfork() that crashes has its report, and its parent one of its own afterwards"""
    done = crash(CRASHER, 'child-and-parent')
    equal(done.returncode, -signal.SIGSEGV, 'status')
    reports = re.split('^(?=process )', done.stderr, flags=re.M)[1:]
    equal([functions(text)[0] for text in reports], ['child', 'null'], done.stderr)


@test
def all_threads():
    """each thread is in the report, the mapped files with their build ids, and the registers"""
    text = crash(CRASHER, 'null').stderr
    lists = re.findall(r'^(?:\d+ threads|thread) (\d[\d, ]*) \(crasher\), by unwinding:$', text,
                       re.M)
    equal(len(set(re.findall(r'\d+', ' '.join(lists)))), 3, text)
    check('mapped files' in text and 'build id' in text, text)
    pc = re.search(r'^  pc +(0x\w+)', text, re.M)[1]
    check(int(pc, 16) == int(re.search(r'#0 +(0x\w+) null', text)[1], 16), text)


@test
def removed_program():
    """a program whose file is gone is unwound by the rules in its memory, without guesses"""
    copy = os.path.join(TMP, 'removed')
    shutil.copy(CRASHER, copy)
    os.environ['CRASHER_REMOVES_ITSELF'] = '1'
    try:
        text = crash(copy, 'null').stderr
    finally:
        del os.environ['CRASHER_REMOVES_ITSELF']
    check(not os.path.exists(copy), 'the file is still there')
    stack = text.split('\n\n')[1]
    check('__libc_start_main' in stack and '[guess]' not in stack and '(deleted)' in text, text)
    equal(stack.count(' in removed'), 3, stack)     # null(), main(), _start()


@test
def as_json():
    """SHSTK_CRASH_ARGS are arguments of the command"""
    path = os.path.join(TMP, 'report.json')
    done = crash(CRASHER, 'null', args=f'--json  -o {path}')
    equal((done.returncode, done.stderr), (-signal.SIGSEGV, ''), 'status')
    with open(path, encoding='utf-8') as file:
        out = json.load(file)
    equal((out['signal'], len(out['threads'])), ('SIGSEGV', 3), 'signal and threads')
    equal(out['threads'][0]['frames'][0]['function'], 'null', 'innermost')


def minidump(way, **env):
    """Crashes and returns the bytes of a minidump file, and where its streams begin, by their types."""
    path = os.path.join(TMP, 'caught.dmp')
    os.environ.update(env)
    try:
        done = crash(CRASHER, way, args=f'--minidump -o {path}')
    finally:
        for name in env:
            del os.environ[name]
    if done.returncode in (77, -signal.SIGXFSZ):
        raise Skip('no file of 4 GiB can be made here')
    equal((done.returncode, done.stderr), (-signal.SIGSEGV, ''), 'status')
    with open(path, 'rb') as file:
        data = file.read()
    number, directory = struct.unpack_from('<II', data, 8)
    return data, {kind: (at, size) for kind, size, at in
                  struct.iter_unpack('<III', data[directory:directory + 12 * number])}


def stacks_of(data, streams):
    """Sizes of the threads' stacks in a minidump file; each is there, and in the list of memory, too."""
    (at, size), sizes, places = streams[3], [], []
    threads, = struct.unpack_from('<I', data, at)
    equal(size, 4 + 48 * threads, 'size of the list of threads')
    for i in range(threads):
        tid, = struct.unpack_from('<I', data, at + 4 + 48 * i)
        places.append(struct.unpack_from('<QII', data, at + 4 + 48 * i + 24))
        _, size, begin = places[-1]
        check(tid and 0 < size <= 65536 and begin + size <= len(data), f'{i}: {tid} {places[-1]}')
        sizes.append(size)
    at, size = streams[5]
    equal(struct.unpack_from('<I', data, at)[0], threads, 'ranges of memory')
    equal(list(struct.iter_unpack('<QII', data[at + 4:at + size])), places, 'ranges of memory')
    return sizes


@test
def as_minidump():
    """a minidump file of the process has its modules and its threads' stacks"""
    data, streams = minidump('null')
    equal(len(stacks_of(data, streams)), 3, 'threads')
    check('crasher'.encode('utf-16-le') in data, 'no module')


@test
def minidump_of_a_full_stack():
    """the stack of a thread is there, too, whose pointer is below it"""
    for way in ('overflow', 'thread-overflow'):
        equal(stacks_of(*minidump(way))[0], 65536, way)


@test
def minidump_before_a_guard():
    """a stack is there up to memory of the same mapping that cannot be read"""
    equal(len(stacks_of(*minidump('thread-before-guard'))), 4, 'threads')


@test
def minidump_of_a_large_file():
    """a mapping of 4 GiB, a size that the format does not have, is not one of 0 bytes"""
    data, streams = minidump('null', CRASHER_MAPS_4_GIB='1')
    at, size = streams[4]
    sizes = [struct.unpack_from('<I', data, i)[0] for i in range(at + 4 + 8, at + size, 108)]
    check(2**32 - 1 in sizes and 0 not in sizes, sizes)


@test
def same_core_file():
    """the core file is the same as without the library: signal, cause, registers of the crash"""
    folder = os.path.join(TMP, 'core-here')
    os.mkdir(folder)
    env = dict(os.environ, LD_PRELOAD=PRELOAD, SHSTK_CRASH_COMMAND=SHSTK,
               SHSTK_CRASH_ARGS='--timeout=150 -o /dev/null')
    subprocess.run(['sh', '-c', 'ulimit -c unlimited; exec "$@"', 'sh', CRASHER, 'null'],
                   cwd=folder, env=env, check=False, timeout=LIMIT)
    found = [name for name in os.listdir(folder) if name.startswith('core')]
    if not found:
        with open('/proc/sys/kernel/core_pattern', encoding='utf-8') as file:
            raise Skip(f'no core file in the working directory; core_pattern is {file.read()!r}')
    text = run(SHSTK, 'crash', os.path.join(folder, found[0])).stdout
    check(re.match(r'process \d+ \(crasher\) ended by SIGSEGV: address 0x0 is not mapped\n', text),
          text)
    equal(functions(text)[0], 'null', 'innermost')


@test
def without_the_command():
    """where the command cannot run, addresses are written, and the program ends as it would"""
    for path in ('/nonexistent/shstk', '/bin/false'):
        done = crash(CRASHER, 'null', command_path=path)
        equal(done.returncode, -signal.SIGSEGV, 'status')
        lines = done.stderr.splitlines()
        check(re.fullmatch(r'shstk-crash: signal 11, pc 0x[0-9a-f]+; there is no report by '
                           + re.escape(path), lines[0]), done.stderr)
        # null(), main(), and the C library's beginning.
        check(len(lines) > 3 and all(re.fullmatch('  0x[0-9a-f]+', line) for line in lines[1:]),
              done.stderr)


@test
def nobody_reads():
    """a report that cannot be written holds the program for the time limit only"""
    ends = os.pipe()
    try:
        os.set_blocking(ends[1], False)
        try:
            while True:
                os.write(ends[1], bytes(65536))
        except BlockingIOError:
            os.set_blocking(ends[1], True)
        env = dict(os.environ, LD_PRELOAD=PRELOAD, SHSTK_CRASH_COMMAND=SHSTK,
                   SHSTK_CRASH_ARGS='--timeout=1')
        begin = time.monotonic()
        with Process([CRASHER, 'null'], env=env, stdout=subprocess.DEVNULL,
                     stderr=ends[1]) as target:
            # There is no room for the handler's own words either.
            equal(target.wait(LIMIT), -signal.SIGSEGV, 'status')
        check(time.monotonic() > begin + 1, 'it ended before the time limit')
    finally:
        os.close(ends[0])
        os.close(ends[1])


@test
def handlers_of_the_program():
    """a program's own handlers stay; what it ignores stays ignored"""
    for way in ('own', 'ignored'):
        done = crash(CATCHER, way)
        equal((done.returncode, done.stderr), (plain(CATCHER, way), ''), way)


@test
def own_handler_reports():
    """a handler of the program's own calls shstk_crash_report(), and the program goes on"""
    done = run(CATCHER, 'report', SHSTK)
    equal(done.returncode, 0, 'status')
    check(re.match(r'process \d+ \(catcher\) ended by SIGSEGV: ', done.stderr), done.stderr)
    check('careless' in functions(done.stderr)[0], done.stderr)
    equal(done.stdout, 'reported 0, then -114, errno 7\n', 'what the functions return')


@test
def installed_by_a_call():
    """shstk_crash_install() takes options, and refuses what is wrong"""
    done = run(CATCHER, 'install', SHSTK)
    equal(done.returncode, -signal.SIGSEGV, 'status')
    check('"signal": "SIGSEGV"' in done.stderr or '"signal":"SIGSEGV"' in done.stderr, done.stderr)
    equal(done.stdout, 'wrong size -22, two times 0\n', 'what the function returns')


@test
def children_are_not_found():
    """no wait of the program's finds the process that reports, and no SIGCHLD comes"""
    done = run(CATCHER, 'waits', SHSTK)
    equal((done.returncode, done.stdout), (0, 'reported 0, waits found 0, SIGCHLD 0\n'), done.stderr)


@test
def first_thread_has_ended():
    """a process whose first thread ended before has its report as well"""
    done = run(CATCHER, 'leaderless', SHSTK)
    equal(done.returncode, -signal.SIGSEGV, 'status')
    check(re.match(r'process \d+ \(catcher\) ended by SIGSEGV: ', done.stderr), done.stderr)
    check('careless' in functions(done.stderr)[0], done.stderr)
    check('mapped files' in done.stderr and '/catcher' in done.stderr, done.stderr)


@test
def two_threads_crash():
    """threads that crash at once are one report"""
    done = crash(CATCHER, 'both')
    equal(done.returncode, -signal.SIGSEGV, 'status')
    equal(len(re.findall('^process ', done.stderr, re.M)), 1, done.stderr[:300])


@test
def ordinary_user():
    """a report needs no rights but those of the program's user"""
    need_nobody()
    if why_unreadable(False):
        raise Skip(why_unreadable(False))
    done = crash(CRASHER, 'null', **NOBODY)
    equal(done.returncode, -signal.SIGSEGV, 'status')
    check('ended by SIGSEGV: address 0x0 is not mapped' in done.stderr, done.stderr)


@test
def wrong_words():
    """--caught without a message, or of nobody, is one line"""
    for args, data, status, what in (
            (('--caught', '/etc/passwd'), b'', 2, '--caught reports the process'),
            (('--caught', '-p', '1', '--core-dir=/'), b'', 2, 'no core file'),
            (('--caught', '-p', str(os.getpid())), b'x' * 400, 1, 'no message of libshstk-crash'),
            (('--caught', '-p', str(os.getpid())), b'', 1, 'no message of libshstk-crash')):
        done = subprocess.run([SHSTK, 'crash', *args], input=data, check=False, timeout=LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(done.returncode, status, f'{args}')
        check(what in one_line(done.stderr.decode()), done.stderr)


sys.exit(main(lambda: why_unreadable(may_trace_all())))
