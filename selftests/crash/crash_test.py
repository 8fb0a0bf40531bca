#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk crash` with core files, and with a process that stands while its core file is read.

Prints KTAP.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    HERE, LIMIT, SHSTK, TMP, Process, Skip, check, equal, main, one_line, run, test)
from ways import CALLERS, WAYS, may_trace_all, why_unreadable  # noqa: E402

CRASHER = os.path.abspath(os.environ.get('CRASHER', os.path.join(HERE, 'crasher')))
CORES = {}
OWN = {function for function, _ in WAYS.values()}


def core(way, *command, **env):
    """Path of the kernel's core file of a program that ends in this way, or of a command."""
    if way in CORES:
        return CORES[way]
    with tempfile.TemporaryDirectory(dir=TMP) as folder:
        subprocess.run(['sh', '-c', 'ulimit -c unlimited; ulimit -s 1024; exec "$@"', 'sh',
                        *(command or (CRASHER, way))], cwd=folder, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT,
                       env=dict(os.environ, **env))
        found = [name for name in os.listdir(folder) if name.startswith('core')]
        if not found:
            with open('/proc/sys/kernel/core_pattern', encoding='utf-8') as file:
                raise Skip('no core file in the working directory; '
                           f'core_pattern is {file.read().strip()!r}')
        CORES[way] = os.path.join(TMP, f'{way}.core')
        shutil.move(os.path.join(folder, found[0]), CORES[way])
    return CORES[way]


def first_stack(text):
    """The functions of the first stack in a report."""
    part = text.split('\n\n')[1]
    return re.findall(r'^  #\d+ +0x[0-9a-f]+ (\S+?)(?:\+0x[0-9a-f]+)? ', part, re.M)


@test
def names_what_crashed():
    """each way to crash has its function first, and its cause in words"""
    wrong = []
    for way, (function, cause) in WAYS.items():
        done = run(SHSTK, 'crash', core(way))
        head, stack = done.stdout.split('\n')[0], first_stack(done.stdout)
        own = [name for name in stack if name in OWN]
        if done.returncode or done.stderr or own[:1] != [function] or \
                CALLERS.get(way, function) not in stack or not re.fullmatch(
                rf'process \d+ \([^)]*\) ended by {cause}', head):
            wrong.append(f'{way}: {done.returncode} {head} {stack[:6]} {done.stderr}')
    check(not wrong, '\n'.join(wrong))


@test
def data_without_a_name():
    """a file of data that was removed is not looked for, and no line says that it is not there"""
    # It is the last file in memory, before pages of the kernel's that have code.
    done = run(SHSTK, 'crash', core('static', os.path.join(HERE, 'crasher-static'), 'truncated'))
    equal((done.returncode, done.stderr), (0, ''), 'status')
    check(' (deleted)\n' in done.stdout and 'truncated' in first_stack(done.stdout), done.stdout)


RUST = """
#[inline(never)]
fn crash_here(p: *mut i32) {
    unsafe { std::ptr::write_volatile(p, 1) }
}
fn main() {
    crash_here(std::env::args().count() as *mut i32);
}
"""
GO = """
package main

import "os"

//go:noinline
func crashHere(p *int) {
	*p = 1
}
func main() {
	if len(os.Args) > 1 {
		done := make(chan int)
		go func() {
			crashHere(nil)
			done <- 1
		}()
		<-done
	}
	crashHere(nil)
}
"""


CXX = """
#include <stdexcept>
[[gnu::noinline]] void throws(int n) { throw std::runtime_error(n ? "one" : "none"); }
struct base {
    base() { calls(); }
    [[gnu::noinline]] void calls() { pure(); }
    virtual void pure() = 0;
};
struct derived : base { void pure() override {} };
[[gnu::noinline]] void promises(int n) noexcept { throws(n); }
int main(int argc, char **argv)
{
    switch (argc > 1 ? *argv[1] : 0) {
    case 'p': { derived d; break; }
    case 'n': promises(argc); break;
    default: throws(argc);
    }
    return 0;
}
"""
JAVA = """
import sun.misc.Unsafe;

public class Java {
    static void crashHere(Unsafe unsafe) {
        unsafe.putAddress(16, 1);
    }
    public static void main(String[] args) throws Exception {
        var field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        crashHere((Unsafe) field.get(null));
    }
}
"""
PYTHON = """
import ctypes, os, threading
def crash_here():
    %s
%s
"""


def compiled(name, text, *command):
    """Path of a source without its suffix, after a compiler has taken it; None if none works here."""
    if not shutil.which(command[0]):
        return None
    source = os.path.join(TMP, name)
    with open(source, 'w', encoding='utf-8') as file:
        file.write(text)
    done = run(*command, source, env=dict(os.environ, GOFLAGS='', GOCACHE=os.path.join(TMP, 'go')))
    return None if done.returncode else os.path.splitext(source)[0]


def made(name, text, *command):
    """Path of a program in another language; None if no compiler for it works here."""
    return compiled(name, text, *command, '-o', os.path.join(TMP, os.path.splitext(name)[0]))


def programs():
    """(name, command, function) of programs in languages that can be compiled or run here. The
    function is that of the program, or the one of the interpreter's that it crashed in."""
    rust = made('rusty.rs', RUST, 'rustc', '-g')
    go = made('going.go', GO, 'go', 'build')
    cxx = made('plus.cc', CXX, 'g++', '-g', '-O1')
    java = compiled('Java.java', JAVA, 'javac', '-nowarn', '-d', TMP) and shutil.which('java')
    python = shutil.which('python3', path='/usr/bin:/bin')
    small = ('-Xmx16m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:+CreateCoredumpOnCrash',
             f'-XX:ErrorFile={TMP}/hs_err')
    return [(name, command, function) for name, command, function in (
        ('rust', [rust], 'rusty::crash_here'),
        ('go', [go], 'main.crashHere'),
        ('go-goroutine', [go, 'goroutine'], 'main.crashHere'),
        ('c++-exception', [cxx], 'throws(int)'),
        ('c++-noexcept', [cxx, 'n'], 'promises(int)'),
        ('c++-pure', [cxx, 'p'], 'base::calls()'),
        ('java', [java, *small, '-cp', TMP, 'Java'], 'Unsafe_Put'),
        ('python', [python, '-c', PYTHON % ('ctypes.string_at(16)', 'crash_here()')], 'strlen'),
        ('python-thread', [python, '-c', PYTHON % (
            'ctypes.string_at(16)', 't = threading.Thread(target=crash_here); t.start(); t.join()')],
         'strlen'),
        ('python-abort', [python, '-c', PYTHON % ('os.abort()', 'crash_here()')], 'abort'),
    ) if command[0]]


@test
def other_languages():
    """programs in C++, Rust and Go, and those of Java's machine and Python, have their function, too"""
    core('null')    # or the test is skipped
    wrong, seen = [], 0
    for name, command, function in programs():
        # Go's runtime raises the signal again for a core file only if it is asked to.
        try:
            path = core(name, *command, GOTRACEBACK='crash')
        except Skip:
            print(f'# {name}: it does not run, or makes no core file, here')
            continue
        text = run(SHSTK, 'crash', path).stdout
        seen += 1
        if not any(function in frame for frame in re.findall(r'^  #.*', text.split('\n\n')[1], re.M)):
            wrong.append(f'{name}: {text[:3000]}')
        os.remove(CORES[name])
    check(not wrong, '\n'.join(wrong))
    if not seen:
        raise Skip('no compiler and no interpreter of another language works here')


@test
def says_all():
    """registers, files with their build ids, and the other threads, folded"""
    text = run(SHSTK, 'crash', core('null')).stdout
    check(re.search(r'^registers of thread \d+\n  pc  0x[0-9a-f]{16}  ', text, re.M), text)
    check(re.search(r'^  0x\w+-0x\w+ \S+/crasher$', text, re.M), text)
    check(re.search(r'/libc\.so\.6\n    build id [0-9a-f]{40}$', text, re.M), text)
    check(re.search(r'^machine +\S+, 3 threads$', text, re.M), text)
    check(max(len(line) for line in text.split('\n')) < 400, text)


@test
def json_is_the_same():
    """--json has the same stacks, and is one object"""
    text = run(SHSTK, 'crash', core('overflow')).stdout
    out = json.loads(run(SHSTK, 'crash', '--json', core('overflow')).stdout)
    equal(len(out['threads']), 3, 'threads')
    equal(out['signal'], 'SIGSEGV', 'signal')
    equal(out['threads'][0]['frames'][0]['function'], first_stack(text)[0], 'innermost')
    pc = re.search(r'^  pc +(0x\w+)', text, re.M)[1]
    equal(int(str(out['registers']['pc']), 0), int(pc, 16), 'pc')
    check(any(file['build_id'] and file['path'].endswith('libc.so.6') for file in out['files']),
          f'{out["files"]}')
    equal(out['cautions'], re.findall('^caution: (.*)$', text, re.M), 'cautions')


def await_all_asleep(pid):
    """Waits until all threads of a process sleep, so that their stacks stay as they are."""
    while True:
        states = []
        for path in glob.glob(f'/proc/{pid}/task/*/stat'):
            with open(path, encoding='utf-8') as file:
                states.append(file.read().rsplit(')', 1)[1].split()[0])
        check(states, 'the process has ended')
        if set(states) == {'S'}:
            return
        time.sleep(0.01)


def standing():
    """A process that stands, its core file, and where the notes of that end."""
    if not shutil.which('gcore'):
        raise Skip('gdb is not installed')
    target = Process([CRASHER, 'stop'], stdout=subprocess.PIPE)
    target.stdout.readline()
    await_all_asleep(target.pid)
    made = run('gcore', '-o', os.path.join(TMP, 'gcore'), str(target.pid))
    path = os.path.join(TMP, f'gcore.{target.pid}')
    if not os.path.exists(path):
        target.kill()
        raise Skip(f'gcore cannot attach here: {made.stderr.splitlines()[-1:]}')
    return target, path


def of(pid):
    """Begins a report of a process, which is given more time than a user would give it."""
    return [SHSTK, 'crash', '-p', str(pid), '--timeout=150']


def crash(pid, data, *args, command=(), **how):
    """Runs the command as the kernel does, with a core file coming by a pipe."""
    return subprocess.run([*of(pid), *args,
                           *(['--', *command] if command else [])], input=data, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT, **how)


def without_memory(data):
    """A core file as the kernel begins it: the notes come first, and then nothing. gdb's come last."""
    headers = int.from_bytes(data[32:40], 'little')
    number = int.from_bytes(data[56:58], 'little')
    new, notes = bytearray(data[:headers + 56 * number]), b''
    for at in range(headers, len(new), 56):
        kind = int.from_bytes(data[at:at + 4], 'little')
        offset, size = (int.from_bytes(data[at + o:at + o + 8], 'little') for o in (8, 32))
        if kind == 4:
            new[at + 8:at + 16] = (len(new) + len(notes)).to_bytes(8, 'little')
            notes += data[offset:offset + size]
        else:
            new[at + 8:at + 16] = (offset + (1 << 32)).to_bytes(8, 'little')
    check(notes, 'no notes')
    return bytes(new) + notes


@test
def memory_of_the_process():
    """while the process stands, its stacks need no memory from the core file"""
    target, path = standing()
    with target, open(path, 'rb') as file:
        data = file.read()
        done = crash(target.pid, without_memory(data), '-o', '-')
        target.kill()
    text = done.stdout.decode()
    equal((done.returncode, done.stderr), (0, b''), 'status')
    check(text.startswith(f'process {target.pid} (crasher) ended by'), text)
    check(re.search(rf'^command +{re.escape(CRASHER)} stop$', text, re.M), text)
    check('stop' in text and text.count(' waits') == 1 and 'ends here' not in text, text)
    check('build id' in text, text)


def fixed_addresses():
    """What begins a command whose addresses are the same each time, and whose core file is small."""
    # The limit of the stack moves libraries, too.
    plain = ('sh', '-c', 'ulimit -c 2000; ulimit -s 1024; exec "$@"', 'sh', 'setarch', '-R')
    maps = [run(*plain, 'head', '-n1', '/proc/self/maps') for _ in range(3)]
    if maps[0].returncode or len({one.stdout for one in maps}) > 1:
        raise Skip('addresses can not be made the same here (setarch -R)')
    return plain


def what_was_read(pid):
    """How often a process that has ended, and its children, read, and how many bytes."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        with open(f'/proc/{pid}/io', encoding='ascii') as file:
            counts = dict(line.split(': ') for line in file)
    except OSError:
        return None     # the kernel does not count it
    return int(counts['syscr']), int(counts['rchar'])


def report_of_first_ends(*more, **env):
    """The report of a process whose first thread has ended, what making it used, and what it read."""
    if why_unreadable(may_trace_all()):
        raise Skip(why_unreadable(may_trace_all()))
    fixed = (*fixed_addresses(), CRASHER, 'first-ends', *more)
    path, head = os.path.join(TMP, 'report'), os.path.join(TMP, 'head')
    path_of_core = core(f'first-ends-{more}{env}', *fixed, **env)
    with open(path_of_core, 'rb') as file, open(head, 'wb') as out:
        out.write(without_memory(file.read(1 << 20)))       # its notes come first
    with Process(fixed, stdout=subprocess.PIPE,
                 env=dict(os.environ, CRASHER_STANDS='1', **env)) as target, open(head, 'rb') as file:
        equal(target.stdout.readline(), b'ready\n', 'the other one')
        with Process([*of(target.pid), '-o', path], stdin=file,
                     stderr=subprocess.PIPE) as reporter:
            said = reporter.stderr.read()
            reads = what_was_read(reporter.pid)
            _, status, usage = os.wait4(reporter.pid, 0)
            reporter.returncode = status
        target.kill()
    equal((status, said), (0, b''), 'status')
    with open(path, encoding='utf-8') as file:
        return file.read(), usage, reads


@test
def first_thread_has_ended():
    """a process whose first thread has ended is read by another one of its threads"""
    text, _, _ = report_of_first_ends()
    equal(first_stack(text)[:2], ['null', 'crash_alone'], text)
    check('[guess]' not in text.split('\n\n')[1], text)
    check(re.search(r'^command +.*crasher first-ends$', text, re.M), text)


@test
def little_memory():
    """the report of a process that has used 256 MiB takes a quarter of that at most"""
    text, usage, _ = report_of_first_ends('256')
    equal(first_stack(text)[:2], ['null', 'crash_alone'], text)
    check(usage.ru_maxrss < 64 << 10, f'{usage.ru_maxrss} KiB')


@test
def size_costs_nothing():
    """the report of a process of 10 GiB takes as many reads as that of a small one, and as many bytes"""
    small, large = report_of_first_ends(), report_of_first_ends(CRASHER_USES_10_GIB='1')
    equal(first_stack(large[0])[:2], ['null', 'crash_alone'], large[0])
    if not small[2] or not large[2]:
        raise Skip('this kernel does not count what a process reads')
    print(f'# small: {small[2]}, large: {large[2]} reads and bytes')
    # There is one mapping more, and numbers have more digits.
    check(large[2][0] - small[2][0] <= 8 and large[2][1] - small[2][1] <= 8192, 'more is read')


def time_of_pieces(variable, number, says=b''):
    """CPU time, in seconds, of the report of a process that has mapped a file in so many pieces, which
    says on standard error what the pattern tells. How much of it is user time is only guessed by the
    kernel, from a few ticks."""
    path = core(f'{variable}-{number}', CRASHER, 'null', **{variable: str(number)})
    with Process([SHSTK, 'crash', path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reporter:
        text, said = reporter.stdout.read().decode(), reporter.stderr.read()
        _, status, usage = os.wait4(reporter.pid, 0)
        reporter.returncode = status
    check(not status and re.fullmatch(says, said), f'status {status}: {said}')
    equal(first_stack(text)[:2], ['null', 'main'], text[:3000])
    return usage.ru_utime + usage.ru_stime


@test
def many_mappings():
    """eight times as many mappings of a file take at most eight times the time"""
    few, many = (time_of_pieces('CRASHER_MAPS_PIECES', number) for number in (7500, 60000))
    print(f'# 7500 mappings: {few:.3f} s, 60000: {many:.3f} s of CPU time')
    check(many < 8 * few, 'the time grows with the square of the number')


@test
def many_mappings_of_removed_code():
    """the same of a removed file's code, which is put together once"""
    few, many = (time_of_pieces('CRASHER_MAPS_REMOVED', number,
                                rb'shstk crash: cannot open [^\n]* \(deleted\): [^\n]*\n')
                 for number in (3000, 24000))
    print(f'# 3000 mappings: {few:.3f} s, 24000: {many:.3f} s of CPU time')
    check(many < 8 * few, 'the time grows with the square of the number')


@test
def core_file_goes_on():
    """a command gets every byte, a folder the same file with holes, up to a size"""
    target, path = standing()
    with target, open(path, 'rb') as file:
        data = file.read()
        data += bytes(3 << 20)
        copy, folder = os.path.join(TMP, 'copy'), os.path.join(TMP, 'cores')
        done = crash(target.pid, data, '-o', '/dev/null',
                     command=['sh', '-c', f'cat >{copy}; exit 7'])
        equal((done.returncode, done.stderr), (7, b''), 'status of the command')
        with open(copy, 'rb') as got:
            check(got.read() == data, 'the command got other bytes')
        done = crash(target.pid, data, '-o', '/dev/null', '--core-dir', folder)
        equal((done.returncode, done.stderr), (0, b''), 'status')
        kept = os.listdir(folder)
        equal(len(kept), 1, 'files')
        kept = os.path.join(folder, kept[0])
        check(re.search(rf'/\d{{8}}T\d{{6}}Z-crasher-{target.pid}\.core$', kept), kept)
        with open(kept, 'rb') as got:
            check(got.read() == data, 'another core file was kept')
        equal(os.stat(kept).st_mode & 0o777, 0o600, 'mode')
        os.remove(kept)
        done = crash(target.pid, data, '-o', '/dev/null', '--core-dir', folder, '--core-size=1')
        equal(done.returncode, 1, 'status')
        check('is cut off at 1 MiB, see --core-size' in one_line(done.stderr.decode()), done.stderr)
        # Disks are not filled by a program that crashes again and again.
        for _ in range(3):
            done = crash(target.pid, data, '-o', '/dev/null', '--core-dir', folder, '--max=2')
            equal(done.returncode, 0, 'status')
        equal(len(os.listdir(folder)), 2, 'core files that are kept')
        target.kill()


@test
def folder_of_reports():
    """reports are new files for their owner only; the oldest go, other files stay"""
    target, path = standing()
    folder = os.path.join(TMP, 'reports')
    with target, open(path, 'rb') as file:
        data = file.read()
        for i in range(4):
            done = crash(target.pid, data, '--dir', folder, '--max=2')
            equal((done.returncode, done.stdout, done.stderr), (0, b'', b''), f'run {i}')
            with open(os.path.join(folder, 'a.txt'), 'w', encoding='utf-8') as other:
                other.write('of somebody else')
        target.kill()
    names = sorted(os.listdir(folder))
    equal(len(names), 3, f'{names}')
    equal(names[-1], 'a.txt', 'the other file')
    for name in names[:-1]:
        check(re.fullmatch(rf'\d{{8}}T\d{{6}}Z-crasher-{target.pid}(\.\d)?\.txt', name), name)
        equal(os.stat(os.path.join(folder, name)).st_mode & 0o777, 0o600, 'mode')


@test
def nothing_keeps_the_core_file():
    """what is no core file, and a report that hangs, do not lose a byte"""
    pipe, copy = os.path.join(TMP, 'nobody-reads'), os.path.join(TMP, 'handed')
    os.mkfifo(pipe)
    with open(core('null'), 'rb') as file:
        data = file.read()
    begin = time.monotonic()
    done = crash(os.getpid(), data, '-o', pipe, '--timeout=1', command=['sh', '-c', f'cat >{copy}'])
    check('the report is given up after 1 s' in one_line(done.stderr.decode()), done.stderr)
    check(time.monotonic() - begin >= 1, 'it was given up at once')
    with open(copy, 'rb') as got:
        check(got.read() == data, 'the command got other bytes')
    for what, wrong in (('not a core file', b'#!/bin/sh\n' * 20),
                        ('not a core file', data[:7] + b'9' * 200),
                        ('cannot be read', data[:100]), ('cannot be read', b'')):
        done = crash(os.getpid(), wrong, '-o', '-', command=['sh', '-c', f'cat >{copy}'])
        equal(done.returncode, 1, what)
        check(what in one_line(done.stderr.decode()), f'{what}: {done.stderr}')
        with open(copy, 'rb') as got:
            check(got.read() == wrong, 'the command got other bytes')


@test
def nothing_but_standard_input():
    """the kernel starts its handler with no other file: a report does not go into them"""
    target, path = standing()
    with target, open(path, 'rb') as file:
        folder = os.path.join(TMP, 'bare')
        done = subprocess.run(['sh', '-c', 'exec "$@" >&- 2>&-', 'sh', *of(target.pid), '--dir', folder],
                              stdin=file, check=False, timeout=LIMIT)
        equal(done.returncode, 0, 'status')
        target.kill()
    name, = os.listdir(folder)
    with open(os.path.join(folder, name), encoding='utf-8') as report:
        check(report.read().startswith(f'process {target.pid} (crasher) ended by'), name)


@test
def minidump():
    """--minidump: lldb finds the signal, the stacks of all threads, and the modules by build id"""
    path = os.path.join(TMP, 'crash.dmp')
    done = run(SHSTK, 'crash', '--minidump', '-o', path, core('thread'))
    equal((done.returncode, done.stdout, done.stderr), (0, '', ''), 'status')
    with open(path, 'rb') as file:
        data = file.read()
    check(data[:4] == b'MDMP' and len(data) < 4 * 65536 + 100000, f'{data[:32]} {len(data)}')
    if not shutil.which('lldb'):
        raise Skip('lldb is not installed')
    out = run('lldb', '-b', '-c', path, '-o', 'bt all', '-o', 'image list',
              env=dict(os.environ, DEBUGINFOD_URLS='')).stdout
    check('stop reason = signal SIGSEGV' in out, out)
    equal(re.findall(r'frame #[01]: \S+ crasher`(\w+)', out)[:2], ['null', 'crash_in_thread'], out)
    equal(len(re.findall(r'thread #\d+', out)), 4, out)
    text = run(SHSTK, 'crash', core('thread')).stdout
    build_id = re.search(r'/crasher\n +build id ([0-9a-f]+)', text)[1]
    check(build_id in out.replace('-', '').lower(), out)


@test
def minidump_of_what_is_hostile():
    """a core file that is cut off or damaged gives a smaller minidump or one line, never a crash"""
    with open(core('null'), 'rb') as file:
        data = file.read()
    path = os.path.join(TMP, 'hostile')
    for cut in (200, 3000, 20000, len(data) // 2):
        with open(path, 'wb') as file:
            file.write(data[:cut])
        done = run(SHSTK, 'crash', '--minidump', '-o', os.path.join(TMP, 'hostile.dmp'), path)
        check(done.returncode in (0, 1) and not done.stdout, f'{cut}: {done.returncode}')
        if done.returncode:
            one_line(done.stderr)


@test
def wrong_words():
    """contradictions are one line, with status 2"""
    for args, what in (((), 'no core file given'), (('--core-dir=/tmp', 'x'), 'only while'),
                       (('--minidump', '-j', 'x'), 'choose one'),
                       (('-p', '0'), 'process ID'), (('-p', '1', '--core-dir=/', '--', 'cat'),
                                                     'choose one')):
        done = run(SHSTK, 'crash', *args, stdin=subprocess.DEVNULL)
        equal(done.returncode, 2, f'{args}')
        check(what in done.stderr, done.stderr)
    done = run(SHSTK, 'crash', '/nonexistent')
    equal(done.returncode, 1, 'no file')
    check('/nonexistent' in one_line(done.stderr), done.stderr)


sys.exit(main())
