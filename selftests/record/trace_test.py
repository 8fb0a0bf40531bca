#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk trace` of processes: all threads are shown, and none is disturbed. Prints KTAP."""

import glob
import json
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import LIMIT, NOBODY, Process, Skip, check, main, need_nobody, test  # noqa: E402
from recording import (  # noqa: E402
    Running, cpu_time, refused, shstk, state_of, wait_cpu, wait_state)

def trace(pid, *args):
    """Returns the threads of a trace, [(header, [frames])], and the first line."""
    run = shstk('trace', '-p', str(pid), *args)
    check(run.returncode == 0, f'{run.returncode} {run.stderr}')
    parts = run.stdout.split('\n\n')
    threads = []
    for part in parts[1:]:
        lines = part.strip().split('\n')
        threads.append((lines[0], [line.split()[1].split('+')[0]
                                   for line in lines[1:]
                                   if line.startswith('  #')]))
        check(not any('ends here' in line for line in lines), part)
    return parts[0], threads


@test
def trace_threads():
    """trace -p: all threads, their states, and the pause"""
    with Running('stacks') as target:
        wait_sleeping(target.pid, 3)
        first, threads = trace(target.pid)
    check(re.search(r'4 threads, stopped for \d+\.\d+ ms', first), first)
    for name, states in (('blocked_in_read', 'sleeping'),
                         ('waiting_for_semaphore', 'sleeping'),
                         ('busy_forever', 'running|sleeping'),
                         ('do_stacks', 'sleeping')):
        found = [head for head, frames in threads if name in frames]
        check(len(found) == 1, f'{name}: {threads}')
        check(re.search(states, found[0]), found[0])
    for head, frames in threads:
        check(frames[-1] in ('_start', 'clone3', '__clone3', 'clone',
                             '__clone'), f'{head} {frames}')


@test
def trace_leaves_no_trace():
    """the traced process runs on, untraced, and can be traced again"""
    with Running('stacks') as target:
        wait_sleeping(target.pid, 3)
        for _ in range(10):
            trace(target.pid)
        with open(f'/proc/{target.pid}/status', encoding='ascii') as file:
            text = file.read()
        check('TracerPid:\t0\n' in text, text)
        before = cpu_time(target.pid)
        wait_cpu(target.pid, before + 0.2)


@test
def trace_stopped_process():
    """a process stopped by SIGSTOP is traced and stays stopped"""
    with Running('stacks') as target:
        wait_sleeping(target.pid, 3)
        os.kill(target.pid, signal.SIGSTOP)
        wait_state(target.pid, 'T')
        _, threads = trace(target.pid)
        check(any('blocked_in_read' in frames for _, frames in threads),
              f'{threads}')
        wait_state(target.pid, 'T')
        os.kill(target.pid, signal.SIGCONT)
        wait_state(target.pid, 'SR')


def wait_sleeping(pid, wanted):
    """Waits until this number of a process's threads sleep, and stay asleep."""
    end = time.monotonic() + LIMIT
    looks = 0
    while looks < 3:
        states = [state_of(path) for path in glob.glob(f'/proc/{pid}/task/*')]
        looks = looks + 1 if states.count('S') >= wanted else 0
        check(time.monotonic() < end, f'states {states}')
        time.sleep(0.02)


@test
def trace_of_waiting_calls():
    """a call without a limit of time goes on waiting behind a stop"""
    if platform.machine() != 'x86_64':
        raise Skip('on x86 only')
    with Running('waits') as target:
        for _ in range(5):
            wait_sleeping(target.pid, 4)
            trace(target.pid)
        wait_sleeping(target.pid, 4)
        out, _ = target.run.communicate('\n')
    check(not out, out)


@test
def trace_alternate_stack():
    """a handler on an alternate stack: through to the interrupted code"""
    with Running('altstack') as target:
        wait_sleeping(target.pid, 1)
        _, threads = trace(target.pid)
    frames = threads[0][1]
    for name in 'in_handler', 'interrupted_here', 'do_altstack', '_start':
        check(name in frames, f'{name} is not in {frames}')


@test
def trace_deep_stack():
    """2 MiB of stack, more than is copied: complete all the same"""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if limit != resource.RLIM_INFINITY and limit < 3 << 20:
        raise Skip(f'stacks are limited to {limit} bytes')
    with Running('deep', '3500') as target:
        wait_sleeping(target.pid, 1)
        _, threads = trace(target.pid)
    frames = threads[0][1]
    check(frames.count('deep') == 3501, f'{frames.count("deep")} frames')
    check(frames[-1] == '_start', frames[-1])


SPLIT = """
#include <unistd.h>
static inline __attribute__((always_inline)) int inner(int x) { return pause() + x; }
int outer(int x) { return inner(x) + 1; }
int main(int argc, char **argv) { return write(1, "ready\\n", 6) < 0 ? 1 : outer(argc); }
"""


def split_program(folder):
    """Compiles a program whose inlined functions are told by a file that is not there any more, and in
    whose name a line ends."""
    source, path = (os.path.join(folder, name) for name in ('split.c', 'split'))
    with open(source, 'w', encoding='ascii') as file:
        file.write(SPLIT)
    for words in (['-c', '-gsplit-dwarf', '-o', 'split\n.o', source], ['-o', path, 'split\n.o']):
        subprocess.run(['gcc', '-O1', '-g', *words], cwd=folder, check=True)
    os.unlink(os.path.join(folder, 'split\n.dwo'))
    return path


@test
def trace_says_which_names_are_missing():
    """inlined functions that cannot be shown: in JSON, in the report and on standard error"""
    if not shutil.which('gcc'):
        raise Skip('gcc is not installed')
    with tempfile.TemporaryDirectory() as folder, \
            Process([split_program(folder)], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        wait_sleeping(target.pid, 1)
        made, plain = (shstk('trace', '-p', str(target.pid), *words) for words in (['--json'], []))
        target.kill()
    said = [line.split(': ', 1)[1] for line in plain.stderr.splitlines()]
    check(len(said) == 1 and 'split?.dwo is not there' in said[0], plain.stderr)
    cautions = json.loads(made.stdout)['cautions']
    check([line.replace('\n', '?') for line in cautions] == said, f'{made.stdout} {said}')
    check(plain.stdout.splitlines()[-1] == f'caution: {said[0]}', plain.stdout)
    with Running('stacks') as target:
        made = shstk('trace', '-p', str(target.pid), '--json')
    check(json.loads(made.stdout)['cautions'] == [], made.stdout)


@test
def trace_refusals():
    """no such process, zombie, no permission, wrong options: one line each"""
    refused(shstk('trace', '-p', '4194303'), 1, 'no process')
    refused(shstk('trace', '-p', 'x'), 2, "'x'")
    refused(shstk('trace', '-p', '0'), 2, "'0'")
    refused(shstk('trace'), 2, '-p')
    with subprocess.Popen(['true']) as zombie:
        wait_state(zombie.pid, 'Z')
        refused(shstk('trace', '-p', str(zombie.pid)), 1, 'zombie')
        zombie.wait()


@test
def trace_without_permission():
    """another user's process: one line"""
    if os.getuid():
        # With hidepid, another user's process is not even visible.
        words = 'no permission' if os.path.exists('/proc/1') else 'no process 1'
        refused(shstk('trace', '-p', '1'), 1, words)
        return
    need_nobody()
    with Running('stacks') as target:
        refused(shstk('trace', '-p', str(target.pid), **NOBODY), 1, 'no permission')


sys.exit(main())
