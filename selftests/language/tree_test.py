#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk trace --tasks`: tasks of asyncio and who waits for whom, as Python itself says it (3.14).

The environment may choose the interpreter (PYTHON), and how often a program that changes its tasks is traced
(TRACES). A Python before 3.14 is refused by name; then that of Debian 14 is fetched.
"""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from changing_tasks import KEPT    # noqa: E402
from harness import (    # noqa: E402
    HERE, LIMIT, TMP, Process, Skip, check, in_pid_namespace, main, only_child, shstk, test)
from parts import fetched_python    # noqa: E402
from told import await_file, leave_core, may_leave_core    # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(__file__))
OWN = os.environ.get('PYTHON', '/usr/bin/python3').split()
TRACES = int(os.environ.get('TRACES', '10'))
TRIES = 20      # a machine that is busy may have no time for all tasks while a thread is held
THREADS = 3
NOT_PERMITTED = 'no permission to trace|cannot trace process'
# Innermost functions of tasks that Python itself does not tell: it does not look into generators.
BEYOND = {'generator': ['sleep', 'numbers'], 'x' * 100: ['sleep', 'by_generator']}


def version(command):
    try:
        ended = subprocess.run(command + ['-c', 'import sys; print(*sys.version_info[:2])'], capture_output=True,
                               text=True)
    except OSError:
        return None
    return tuple(map(int, ended.stdout.split())) if not ended.returncode else None


@functools.cache
def python():
    """The command of a Python that keeps who waits for whom."""
    if version(OWN) >= (3, 14):
        return OWN
    return fetched_python(14)


def trace_until_read(*args):
    """The command's output. Python may change its tasks, or a machine may be busy: then it is tried again."""
    for _ in range(TRIES):
        ended = shstk('trace', '--tasks', *args)
        if ended.returncode == 1 and re.search(NOT_PERMITTED, ended.stderr):
            raise Skip(ended.stderr.strip())
        if ended.returncode != 1 or not re.search('in the middle of a change|takes longer|cannot be stopped',
                                                ended.stderr):
            break
    check(ended.returncode == 0, f'shstk trace ended with {ended.returncode}: {ended.stderr}')
    return ended.stdout


def trace_tasks(*source):
    return json.loads(trace_until_read('--json', *source))['tasks']


def frames_of(task):
    return [[frame['function'], str(frame['line'])] for frame in task['frames']]


def by_name(tasks):
    """As waiting_tasks.py tells it: where each waits, and who waits for it."""
    names = {task['id']: task['name'] for task in tasks}
    return {task['name']: [frames_of(task), sorted(names[by] for by in task['awaited_by'])] for task in tasks}


def told_and_seen(trace_it):
    folder = tempfile.mkdtemp(dir=TMP)
    path = os.path.join(folder, 'told')
    with Process(python() + [os.path.join(FOLDER, 'waiting_tasks.py'), path], cwd=folder,
                 preexec_fn=may_leave_core) as process:
        check(await_file(path, process), 'the program does not wait')
        with open(path, encoding='utf-8') as file:
            told = json.load(file)
        tasks = trace_it(process, folder)
        process.kill()
    return told, tasks


def check_told(trace_it):
    told, tasks = told_and_seen(trace_it)
    seen = by_name(tasks)
    check(len(seen) == len(tasks) and seen.keys() == told.keys(), f'{seen.keys() ^ told.keys()}')
    for name, inner in BEYOND.items():
        frames = seen[name][0]
        check([function for function, _ in frames[:len(inner)]] == inner, f'{name}: {frames}')
        del frames[:len(inner)]
    for name, said in told.items():
        check(seen[name] == said, f'{name}:\ntold: {said}\nseen: {seen[name]}')
    check({task['state'] for task in tasks} == {'waiting'}, 'a task does not wait')


@test
def told_by_python():
    """all tasks, where each waits, and which tasks wait for it, as Python itself says"""
    check_told(lambda process, folder: trace_tasks('-p', str(process.pid)))


@test
def told_in_core():
    """the same of the core file that the program leaves"""
    check_told(lambda process, folder: trace_tasks('--core', leave_core(process, folder)))


@test
def tree():
    """what a task waits for stands below it, once, and a circle ends"""
    _, text = told_and_seen(lambda process, _: trace_until_read('-p', str(process.pid)))
    check(re.search(r'^task "Zoë gathers", waiting:\n    gathered at \S+/waiting_tasks.py:\d+\n'
                    r'    task "Task-\d+", waiting:\n        leaf at ', text, re.M), text[:3000])
    check(text.count('task "leaf of three", waiting:') == 1, text[:3000])
    check(re.search(r'^task "circle 0", waiting:\n    in_circle at .*\n    task "circle 1", waiting:\n'
                    r'        in_circle at .*\n        task "circle 0": see above; so these wait for each other\n',
                    text, re.M), text[-3000:])
    check('line?break' in text, text[:3000])


def check_changing(task, names):
    """Whether a task of changing_tasks.py may be so."""
    kind, _, number = task['name'].partition(' ')
    functions = [name for name, _ in frames_of(task)]
    by = [names[i] for i in task['awaited_by']]
    if task['state'] == 'waiting':
        check(functions in {
            'leaf': [['__sleep0', 'sleep', 'inner', 'leaf'], ['sleep', 'inner', 'leaf']],
            'group': [['TaskGroup._aexit', 'TaskGroup.__aexit__', 'group']],
            'gather': [['gather']], 'await_in_turn': [['await_in_turn']], 'waiter': [['wait_for_it']],
            }.get(kind, [['again'], ['main'], ['Runner.run']]), f'{task["name"]}: {functions}')
    if kind in ('leaf', 'waiter'):
        n = number.partition('.')[0]
        check(all(re.fullmatch(rf'(group|gather|await_in_turn) {n}|waiter {n}\.\d+', name) for name in by),
              f'{task["name"]}: {by}')
    return functions, by


@test
def changing():
    """nothing is wrong of a program that makes and ends tasks all the time, in several threads"""
    waiting = 0
    with Process(python() + [os.path.join(FOLDER, 'changing_tasks.py'), str(THREADS)],
                 stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        for _ in range(TRACES):
            tasks = trace_tasks('-p', str(process.pid))
            check(len(tasks) >= KEPT * THREADS, f'{len(tasks)} tasks')
            names = {task['id']: task['name'] for task in tasks}
            waits = {task['name'] for task in tasks if task['state'] == 'waiting'}
            for task in tasks:
                _, by = check_changing(task, names)
                group = 'group ' + task['name'].partition(' ')[2].partition('.')[0]
                # A group that waits waits for each of its tasks that has not ended.
                if task['name'].startswith('leaf') and group in waits and task['state'] == 'waiting':
                    check(by == [group], f'{task["name"]}: {by}')
                    waiting += 1
        process.kill()
    print(f'# {waiting} tasks whose group waits, in {TRACES} traces')


# Tasks in three interpreters beside the first one, whose code has the same names.
IN_EACH = """import asyncio
async def leaf():
    await asyncio.sleep(1e6)
async def main(n):
    asyncio.current_task().set_name('main %d' % n)
    await asyncio.create_task(leaf(), name='leaf %d' % n)
"""
INTERPRETERS = IN_EACH + f"""
import _interpreters, threading
def run(n):
    _interpreters.run_string(_interpreters.create(), {IN_EACH!r} + 'asyncio.run(main(%d))' % n)
for n in 1, 2, 3:
    threading.Thread(target=run, args=(n,)).start()
asyncio.run(main(0))
"""


@test
def of_all_interpreters():
    """tasks of all interpreters of a process"""
    until = time.monotonic() + LIMIT
    with Process(python() + ['-c', INTERPRETERS]) as process:
        tasks = []
        while len(tasks) < 8 or {task['state'] for task in tasks} != {'waiting'}:
            check(process.poll() is None and time.monotonic() < until, f'{tasks}')
            time.sleep(0.1)
            ended = shstk('trace', '--tasks', '--json', '-p', str(process.pid))
            if re.search(NOT_PERMITTED, ended.stderr):
                raise Skip(ended.stderr.strip())
            # Python may not have loaded its module for tasks yet.
            tasks = [] if ended.returncode else json.loads(ended.stdout)['tasks']
        process.kill()
    seen = {name: [[function for function, _ in frames], by] for name, (frames, by) in by_name(tasks).items()}
    told = {f'leaf {n}': [['sleep', 'leaf'], [f'main {n}']] for n in range(4)}
    told.update({f'main {n}': [['main'], []] for n in range(4)})
    check(seen == told, f'told: {told}\nseen: {seen}')


BUSY = """import asyncio, sys, threading
async def busy():
    open(sys.argv[1], 'w').close()
    while True:
        pass
async def main():
    await asyncio.create_task(busy(), name='busy')
threading.Thread(target=asyncio.run, args=(main(),)).start()
"""


@test
def in_a_container():
    """a task that runs in a PID namespace names the thread as trace does without --tasks"""
    path = os.path.join(tempfile.mkdtemp(dir=TMP), 'runs')
    with Process(in_pid_namespace() + python() + ['-c', BUSY, path]) as process:
        check(await_file(path, process), 'the task does not run')
        pid = only_child(process.pid)
        thread, = {int(tid) for tid in os.listdir(f'/proc/{pid}/task')} - {pid}
        tasks = {task['name']: task for task in trace_tasks('-p', str(pid))}
        process.kill()
    check(tasks['busy']['state'] == 'running' and tasks['busy']['thread'] == thread, f'{thread}: {tasks["busy"]}')


@test
def refused_by_name():
    """of another Python, and of another program, a line says why there are none"""
    def said(command, shown):
        with Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            if shown:
                process.stdout.readline()
            ended = shstk('trace', '--tasks', '-p', str(process.pid))
            process.kill()
        if re.search(NOT_PERMITTED, ended.stderr):
            raise Skip(ended.stderr.strip())
        check(ended.returncode == 1 and ended.stderr.count('\n') == 1, f'{ended}')
        return ended.stderr

    idle = ['-c', 'print("x", flush=True); input()']
    numbers = version(OWN)
    if numbers < (3, 14):
        check(f'Python {numbers[0]}.{numbers[1]} does not keep who waits for whom: that needs Python 3.14'
              in said(OWN + idle, True), 'another reason')
    reason = said([os.path.join(HERE, 'newer/python3')], False)
    check('Python 3.99 is not known' in reason, reason)
    reason = said([os.path.join(HERE, 'free_threaded/python3')], False)
    check('Python 3.14: a free-threaded build, which is not known' in reason, reason)
    check('its Python has not loaded' in said(python() + idle, True), 'another reason')
    reason = said(['/bin/sh', '-c', 'echo x; read y'], True)
    check('runs no Python' in reason, reason)
    ended = shstk('trace', '--tasks', '--goroutines', '-p', '1')
    check(ended.returncode == 2 and '--tasks' in ended.stderr, f'{ended}')


# Waits in vfork(), in which nothing stops it, until its child, which has made one file, can open another one.
HELD_UP = """import asyncio, os, sys
os.posix_spawn('/bin/true', ['true'], {}, file_actions=[
    (os.POSIX_SPAWN_OPEN, 9, sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600),
    (os.POSIX_SPAWN_OPEN, 9, sys.argv[2], os.O_RDONLY, 0)])"""


@test
def cannot_be_stopped():
    """of a program with a thread that cannot be stopped, a line says that"""
    folder = tempfile.mkdtemp(dir=TMP)
    made, fifo = (os.path.join(folder, name) for name in ('made', 'fifo'))
    os.mkfifo(fifo)
    with Process(python() + ['-c', HELD_UP, made, fifo]) as process:
        check(await_file(made, process), 'the program does not wait')
        ended = shstk('trace', '--tasks', '-p', str(process.pid))
        opened = os.open(fifo, os.O_RDWR)       # so its child goes on, which may have got no further yet
        process.wait(LIMIT)
        os.close(opened)
    if re.search(NOT_PERMITTED, ended.stderr):
        raise Skip(ended.stderr.strip())
    check(ended.returncode == 1 and 'a thread of it cannot be stopped' in ended.stderr, f'{ended}')


def why():
    """Why nothing can be tested, or None."""
    return None if version(OWN) else f'{OWN[-1]} does not run'


if __name__ == '__main__':
    sys.exit(main(why))
