#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests that no stack ends too early, or is called complete when it is not.

Each program arranges something unusual, prints "ready" and stays in a known chain of calls: outer >
middle > inner. Prints KTAP.
"""

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
from harness import (  # noqa: E402
    BUILD, HERE, LIMIT, SHSTK, TMP, Process, Skip, check, end_with_parent, in_pid_namespace, main, make_folder,
    only_child, shstk, stack_lines, test)

CHAIN = ['inner', 'middle', 'outer', 'main']
TRIES = 100     # of trace
WORK = 0.8      # CPU seconds of a process while it is recorded
LONGER = 1, 5, 25   # times as long as usual, where the recorder has to look at a process in time
SAYS = 'fflush', '_IO_fflush', 'puts', '_IO_puts'


class Target:
    """Runs a program until the end of the block. The block begins when the program is ready."""

    def __init__(self, name, *args, **kwargs):
        self.command = [name if '/' in name else os.path.join(HERE, name), *args]
        self.kwargs = kwargs
        self.process = None

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.process = Process(self.command, stdout=subprocess.PIPE, text=True, **self.kwargs)
        line = self.process.stdout.readline()
        if line.strip() != 'ready':
            self.__exit__()
            raise Skip(line.strip() or f'{self.command[0]} ended')
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def out_of_time(thread):
    """Did a thread not stop in time, or was it held for so long that it was let go?"""
    return thread['error'] or thread['end'] == 'memory not readable'


def says_ready(thread):
    """Is a thread still in the call that told that the program is ready?"""
    return any(frame['function'] in SAYS for frame in thread['frames'])


def threads_of(pid, *options):
    """Returns what trace prints of the threads of a process."""
    for _ in range(TRIES):
        done = shstk('trace', '-p', str(pid), '--json', *options)
        check(done.stdout, f'trace: {done.stderr}')
        threads = json.loads(done.stdout)['threads']
        if not any(out_of_time(thread) or says_ready(thread) for thread in threads):
            break
        time.sleep(0.1)
    return threads


def names_of(thread):
    """Returns the functions of a thread's stack, innermost first."""
    return [frame['function'] for frame in thread['frames']]


def has_chain(names, chain=None):
    """Returns whether these functions are in a stack, each called by the next."""
    chain = chain or CHAIN
    names = list(names)
    return any(names[i:i + len(chain)] == chain for i in range(len(names)))


def check_trace(pid, *options):
    """Checks that the first thread's stack is complete and has the whole chain, without guesses."""
    check_whole(threads_of(pid, *options)[0])


def check_whole(thread):
    check(thread['complete'], f'ends: {thread["end"]}: {names_of(thread)}')
    check(has_chain(names_of(thread)), f'{names_of(thread)}')
    check(not any(frame['guess'] for frame in thread['frames']), 'it was guessed')


def may_leave_core():
    """In a new process: it may leave a core file."""
    end_with_parent()
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def leave_core(pid, folder):
    """Ends a process, which works in the folder. Returns the path of the core file that it left."""
    os.kill(pid, signal.SIGABRT)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    for name in os.listdir(folder):
        if name.startswith('core'):
            return os.path.join(folder, name)
    raise Skip('no core file in the working directory, as core_pattern says')


def stacks_in(path, said):
    """Returns {stack, innermost first: value} of a file, which it removes, of a recorder that said that."""
    if 'not permitted' in said or 'no perf event' in said:
        raise Skip(said.strip().split('\n')[0])
    check(os.path.exists(path), f'record: {said}')
    with open(path, encoding='utf-8') as file:
        lines = stack_lines(file.read())
    os.unlink(path)
    # Where only user mode may be sampled the time in the kernel has no stack.
    return {tuple(reversed(stack.split(';'))): value for stack, value in lines
            if not (os.getuid() and stack.endswith('[kernel]'))}


def stacks_of(*options):
    """Records a command with these options and returns {stack, innermost first: value}."""
    out = os.path.join(TMP, 'out.folded')
    return stacks_in(out, shstk('record', '-F', '499', '-o', out, *options).stderr)


def stacks_of_process(pid, *options, work=WORK):
    """The same of a process, until it has used so many CPU seconds."""
    out, end = os.path.join(TMP, 'out.folded'), time.monotonic() + LIMIT
    with Process([SHSTK, 'record', '-F', '499', '-o', out, '-p', str(pid), '--via=copies', *options],
                 stderr=subprocess.PIPE, text=True) as recorder:
        said = recorder.stderr.readline()
        until = cpu_ticks(pid) + work * os.sysconf('SC_CLK_TCK')
        while recorder.poll() is None and cpu_ticks(pid) < until:
            check(time.monotonic() < end, 'the program gets no CPU time')
            time.sleep(0.02)
        recorder.send_signal(signal.SIGINT)
        said += recorder.communicate()[1]
    return stacks_in(out, said)


def check_record(pid):
    """Checks that all recorded stacks have the whole chain, and that none is truncated."""
    stacks = stacks_of_process(pid)
    check(stacks, 'no samples')
    for stack in stacks:
        check(not any('truncated' in name for name in stack), f'{stack}')
        check(has_chain(stack), f'{stack}')


# ---- Mappings ----

@test
def executable_data():
    """data made executable, in the page of the file in which the code ends, hide no rules"""
    for name in 'executable_data', 'executable_data_large':
        with Target(name, 'data') as pid:
            check_trace(pid, '--source=unwind')
            check_record(pid)


@test
def protected_code():
    """the last page of the code, with another protection, is taken for the data by nobody"""
    for name in 'executable_data', 'executable_data_large':
        with Target(name, 'code') as pid:
            check_trace(pid, '--source=unwind')
            check_record(pid)


@test
def moved_text():
    """code that a program copied to anonymous memory in its place is still that of its file"""
    for how in 'silent', 'told':
        with Target('moved_text', how, '0') as pid:
            check_trace(pid, '--source=unwind')
            check_record(pid)


@test
def moved_text_in_a_core():
    """... and in a core file"""
    with tempfile.TemporaryDirectory(dir=TMP) as folder:
        with Target('moved_text', 'silent', '0', cwd=folder, preexec_fn=may_leave_core) as pid:
            core = leave_core(pid, folder)
        done = shstk('trace', '--core', core, '--json')
        check(done.returncode == 0, done.stderr)
        check_whole(json.loads(done.stdout)['threads'][0])


@test
def text_moved_meanwhile():
    """... also where that happens while it is recorded"""
    for how in 'silent', 'told':
        for times in LONGER:
            stacks = stacks_of('--via=copies', '--', os.path.join(HERE, 'moved_text'), how,
                               str(1000 * times))
            lost = sum(value for stack, value in stacks.items() if 'truncated' in ''.join(stack))
            whole = sum(value for stack, value in stacks.items() if has_chain(stack))
            if lost * 10 < whole:
                break
        check(lost * 10 < whole, f'{lost} of {whole + lost} lost: {stacks}')


@test
def moved_text_in_a_file():
    """... and in a perf.data file, of which stacks are unwound later"""
    data, out = os.path.join(TMP, 'moved.data'), os.path.join(TMP, 'moved.folded')
    for how in 'silent', 'told':
        with Target('moved_text', how, '0') as pid:
            stacks_of_process(pid, '--perf-data', data)
        done = shstk('unwind', '-o', out, data)
        check(done.returncode == 0, done.stderr)
        with open(out, encoding='utf-8') as file:
            stacks = [stack.split(';')[::-1] for stack, _ in stack_lines(file.read())]
        check(stacks and all(has_chain(stack) for stack in stacks), f'{how}: {stacks} {done.stderr}')
        check(not any('[truncated]' in stack for stack in stacks), f'{how}: {stacks}')


# ---- Files ----

NOBODY = 65534      # an ordinary user that root can become


def copy_for(user, *names):
    """Returns a new folder in which this user has these files of the build."""
    folder = make_folder(None)
    for name in names:
        shutil.copy(os.path.join(BUILD if name == 'shstk' else HERE, name), folder)
    for path in (folder, *(os.path.join(folder, name) for name in names)):
        os.chmod(path, 0o755)
    if user is not None:
        os.chown(folder, user, user)
    return folder


@test
def replaced_files():
    """an ordinary user sees whole stacks of a program whose files were deleted or built anew"""
    user = NOBODY if os.getuid() == 0 else None
    folder = copy_for(user, 'shstk', 'replaced', 'libreplaced.so')
    files = [os.path.join(folder, name) for name in ('replaced', 'libreplaced.so')]
    whole = ['inner', 'middle', 'outer', 'run', 'main']
    try:
        target = Target(files[0], user=user, group=user, extra_groups=[] if user else None)
        target.__enter__()
    except PermissionError as err:
        raise Skip(f'{folder}: {err.strerror}') from err
    try:
        pid = target.process.pid
        for path in files:
            os.unlink(path)
            with open(path, 'wb') as file:
                file.write(b'built anew')
        options = {'user': user, 'group': user, 'extra_groups': [] if user else None,
                   'cwd': folder, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE,
                   'text': True, 'timeout': LIMIT, 'check': False}
        command = os.path.join(folder, 'shstk')
        done = subprocess.run([command, 'trace', '-p', str(pid), '--json', '--source=unwind'],
                              **options)
        if 'no permission' in done.stderr:
            raise Skip(done.stderr.strip())
        check(done.stdout, done.stderr)
        thread = json.loads(done.stdout)['threads'][0]
        check(has_chain(names_of(thread), whole) and thread['complete'], f'{thread["frames"]}')
        done = subprocess.run([command, 'record', '-p', str(pid), '--via=copies', '-o',
                               'out.folded', '--duration=1', '-F', '99'], **options)
        path = os.path.join(folder, 'out.folded')
        if not os.path.exists(path):
            raise Skip(f'trace is right; record: {done.stderr.strip()}')
        with open(path, encoding='utf-8') as file:
            for line, _ in stack_lines(file.read()):
                stack = line.split(';')[::-1]
                # Time in the kernel has no stack where only user mode may be sampled.
                check(stack[0] == '[kernel]' or has_chain(stack, whole), line)
    finally:
        target.__exit__()


# ---- Information that is missing or wrong ----

def cpu_ticks(pid):
    """Returns the CPU time that a process has used, in ticks."""
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        return sum(int(n) for n in file.read().rsplit(')', 1)[1].split()[11:13])


def innermost(pid, place):
    """Returns the first thread once it is in the innermost function, where it then stays.

    A function on the way there may look the same. So the thread is let work on for three ticks.
    """
    arrived = 0
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        thread = threads_of(pid, '--source=unwind')[0]
        if place(names_of(thread)[0]):
            now = cpu_ticks(pid)
            arrived = arrived or now
            if now >= arrived + 3:
                return thread
        time.sleep(.05)
    raise AssertionError(f'never in the innermost function: {names_of(thread)}')


@test
def made_code():
    """frames without records, of code made at run time, are not stepped over"""
    with Target('no_info', 'made') as pid:
        thread = innermost(pid, lambda name: name.startswith('['))
        names = names_of(thread)
        made = [name.startswith('[') for name in names]
        check(made[:4] == [True, True, True, False], f'{names}')
        check(has_chain(names, CHAIN[1:]) and thread['complete'], f'{names}')
        check([f['guess'] for f in thread['frames'][:5]] == [False, True, True, True, False],
              f'{thread["frames"]}')
        stacks = stacks_of_process(pid)
        check(stacks, 'no samples')
        for stack in stacks:
            check([name.startswith('[') for name in stack[:4]] == [True, True, True, False],
                  f'{stack}')
            check(has_chain(stack, CHAIN[1:]), f'{stack}')


@test
def helper_of_an_interpreter():
    """a word that is 0, where wrong information says that a return address lies, is no end"""
    with Target('no_info', 'helper') as pid:
        thread = innermost(pid, lambda name: name == 'interpreter')
        check(has_chain(names_of(thread), ['interpreter', 'interpreter', *CHAIN[1:]]),
              f'{names_of(thread)}')
        check(thread['complete'], thread['end'])


@test
def unknown_helper():
    """... and where nothing tells who called, the stack is not called whole"""
    with Target('no_info', 'pointer') as pid:
        thread = innermost(pid, lambda name: name == 'interpreter')
        check(not thread['complete'], f'{names_of(thread)}')


# ---- Deep recursions ----

@test
def deep_recursion():
    """of a deep recursion both ends are shown, and what repeats once, with how often; --depth cuts"""
    with Target('deep', '8000') as pid:
        thread = threads_of(pid, '--source=unwind')[0]
        check(thread['complete'] and len(thread['frames']) < 100, f'{len(thread["frames"])}')
        for name in 'ping', 'pong':
            calls = sum(f['times'] for f in thread['frames'] if f['function'] == name)
            check(calls == 8000, f'{calls} times {name}')
        check({'inner', 'main'} <= set(names_of(thread)), f'{names_of(thread)}')
        text = shstk('trace', '-p', str(pid), '--source=unwind').stdout
        folded = re.search(r'\.\.\.  (\d+) times, innermost first: (\w+) < (\w+)\n', text)
        check(folded and {folded[2], folded[3]} == {'ping', 'pong'} and int(folded[1]) > 7900,
              text)
        last = re.search(r'#(\d+) +_start', text)
        check(last and int(last[1]) > 16000, text)
        for depth in 10, 10000:
            thread = threads_of(pid, '--source=unwind', f'--depth={depth}')[0]
            check(len(thread['frames']) == depth and not thread['complete'], f'depth {depth}')
            check(all(f['times'] == 1 for f in thread['frames']), f'depth {depth}')


@test
def deep_recursion_of_a_large_stack():
    """trace -p shows both ends of a stack that is larger than what is copied of all threads"""
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < 8 << 20:
        raise Skip('the main thread has less than 8 MiB of stack')
    with Target('deep', '80000') as pid:
        thread = threads_of(pid, '--source=unwind')[0]
        check(thread['complete'], f'{thread["end"]}: {names_of(thread)}')
        for name in 'ping', 'pong':
            calls = sum(f['times'] for f in thread['frames'] if f['function'] == name)
            check(calls == 80000, f'{calls} times {name}')
        check({'inner', 'main'} <= set(names_of(thread)), f'{names_of(thread)}')


RECURSION = '[recursion of 2 calls]'
FOLDED = ['inner', 'pong', 'ping', 'pong', RECURSION, 'ping', 'main']


def whole_of(stacks):
    return [stack for stack in stacks if '[truncated]' not in stack]


def check_folded(stacks):
    """Checks that stacks of deep.c have both ends. A few of the first ones have no outer end: they
    are from before the copies were large enough, or the process was looked at."""
    check(whole_of(stacks), f'{stacks}')
    for stack in whole_of(stacks):
        check(has_chain(stack, FOLDED) and stack.count(RECURSION) == 1, f'{stack}')


def stacks_of_deep(pid, *options):
    """Records deep.c until the copies are large enough."""
    for times in LONGER:
        stacks = stacks_of_process(pid, *options, work=WORK * times)
        if whole_of(stacks):
            break
    return stacks


def read_folded(path):
    """Returns {stack, innermost first: value} of a file."""
    with open(path, encoding='utf-8') as file:
        return {tuple(reversed(stack.split(';'))): value
                for stack, value in stack_lines(file.read())}


@test
def recorded_recursion():
    """a recording of 5000 calls has both ends of the stacks, and what repeats once; --depth cuts"""
    with Target('deep', '2500') as pid:
        check_folded(stacks_of_deep(pid))
        stacks = stacks_of_process(pid, '--depth=1024')
        check(stacks and all('[truncated]' in stack for stack in stacks), f'{stacks}')
        check(not any(RECURSION in stack for stack in stacks), f'{stacks}')


@test
def recursion_recorded_by_the_agent():
    """stacks of the agent have both ends, too, by CPU time and wall-clock time; --depth cuts"""
    out, deep = os.path.join(TMP, 'agent.folded'), os.path.join(HERE, 'deep')
    for options, folded in ([], True), (['--wall'], True), (['--depth=1024'], False):
        # A ring that has room for all: stacks would be cut if the recorder had no time to read it.
        done = shstk('record', '--via=agent', '-F', '99', '--buffer=16384', '-o', out, *options, '--',
                     deep, '2500', '1000')
        check(done.returncode == 0, f'{options}: {done.stderr}')
        stacks = {stack: value for stack, value in read_folded(out).items() if 'inner' in stack}
        check(stacks and ('deeper than 1024 frames' in done.stderr) == folded,
              f'{options}: {done.stderr}')
        whole = sum(value for stack, value in stacks.items()
                    if has_chain(stack, FOLDED) and stack.count(RECURSION) == 1)
        cut = sum(value for stack, value in stacks.items() if '[truncated]' in stack)
        check(whole + cut == sum(stacks.values()), f'{options}: {stacks}')
        check(whole > 4 * cut if folded else not whole, f'{options}: {whole} whole, {cut} cut')


@test
def recorded_recursion_in_files():
    """a perf.data file of a deep recursion, and the file that keeps all, give the same stacks"""
    data, kept, pb, again, text = [os.path.join(TMP, name) for name in (
        'deep.data', 'deep.shstk', 'deep.pb', 'again.pb', 'unwound.folded')]
    with Target('deep', '1500') as pid:
        check_folded(stacks_of_deep(pid, '-o', kept, '-o', pb, '--perf-data=' + data))
    shstk('report', '-q', '-o', again, kept)
    with open(pb, 'rb') as one, open(again, 'rb') as other:
        check(one.read() == other.read(), 'the kept file gives another profile')
    done = shstk('unwind', '-o', text, data)
    check_folded(read_folded(text))
    check('deeper than 1024 frames' in done.stderr, done.stderr)


# ---- Other stacks ----

@test
def other_stack():
    """a handler on a stack of its own, and what it interrupted, which is read from the process"""
    with Target('other_stack', '0') as pid:
        check_trace(pid, '--source=unwind')
    out = os.path.join(TMP, 'out.folded')
    for times in LONGER:
        done = shstk('record', '-F', '499', '--via=copies', '-o', out, '--',
                     os.path.join(HERE, 'other_stack'), str(2000 * times))
        stacks = stacks_in(out, done.stderr)
        check('continue beyond' not in done.stderr, done.stderr)
        whole = sum(value for stack, value in stacks.items() if has_chain(stack))
        cut = sum(value for stack, value in stacks.items() if '[truncated]' in stack)
        # Some of the first ones are from before the process was looked at.
        if whole > 4 * cut:
            break
    check(whole > 4 * cut, f'{whole} whole, {cut} cut: {done.stderr}')
    said = re.search(r'(\d+) of \d+ stacks continue elsewhere', done.stderr)
    check(not said or cut, f'{cut} are cut: {done.stderr}')


def check_stacks(name, chain, *options):
    """Records a program for some time: nearly all of its stacks have the chain, and their end."""
    out = os.path.join(TMP, 'out.folded')
    for times in LONGER:
        done = shstk('record', '-F', '499', *options, '-o', out, '--', os.path.join(HERE, name),
                     str(2000 * times))
        whole = rest = 0
        for stack, value in stacks_in(out, done.stderr).items():
            frames = [f for f in stack if f != '__morestack']
            good = '[truncated]' not in frames and has_chain(frames, chain)
            whole, rest = (whole + value, rest) if good else (whole, rest + value)
        check(done.returncode == 0, done.stderr)
        # The rest is from before the process was looked at, and from its beginning.
        if whole > 4 * rest:
            break
    check(whole > 4 * rest, f'{whole} whole, {rest} not: {done.stderr}')


@test
def split_stack():
    """code whose stack is in many pieces (-fsplit-stack): by trace, by copies, and by the agent"""
    chain = ['inner', 'middle'] + 21 * ['deeper'] + ['outer', 'main']
    with Target('split_stack', '0') as pid:
        thread = threads_of(pid, '--source=unwind')[0]
        names = [name for name in names_of(thread) if name != '__morestack']
        check(has_chain(names, chain) and thread['complete'], f'{names}')
    check_stacks('split_stack', chain, '--via=copies')
    check_stacks('split_stack', chain, '--via=agent')


@test
def split_stack_without_alternate_stack():
    """code whose stack is in many pieces lives under the agent, and its time has a name"""
    command = [os.path.join(HERE, 'split_stack'), '500', 'bare']
    plain = subprocess.run(command, capture_output=True, check=False, text=True, timeout=LIMIT)
    if plain.stdout != 'ready\n':
        raise Skip(plain.stdout.strip())
    check(plain.returncode == 0, f'{plain}')
    out = os.path.join(TMP, 'out.folded')
    for options in ['--via=agent', '--wall'], ['--heap'], ['--via=agent']:
        done = shstk('record', '-F', '999', *options, '-o', out, '--', *command)
        check(done.returncode == 0, f'{options}: {done.returncode} {done.stderr}')
    with open(out, encoding='utf-8') as file:
        times = [('[small stack]' in stack, value) for stack, value in stack_lines(file.read())]
    held = sum(value for small, value in times if small)
    check(held > 0.5 * sum(value for _, value in times), f'{times} {done.stderr}')


def check_coroutine(name):
    """The stacks of a coroutine are whole: by trace, by copies, and by the agent."""
    chain = ['inner', 'middle', 'outer', 'body']
    with Target(name, '0') as pid:
        for _ in range(TRIES):
            thread = threads_of(pid, '--source=unwind')[0]
            # Or it is just between the coroutine and main().
            if has_chain(names_of(thread), chain):
                break
        check(has_chain(names_of(thread), chain) and thread['complete'], f'{thread}')
    check_stacks(name, chain, '--via=copies')
    check_stacks(name, chain, '--via=agent')


@test
def coroutine():
    """code in a coroutine: by trace, by copies, and by the agent"""
    check_coroutine('coroutine')


@test
def bare_coroutine():
    """code in a coroutine as Boost.Context and PHP make it: by trace, by copies, and by the agent"""
    if platform.machine() != 'x86_64':
        raise Skip('written for x86-64 only')
    check_coroutine('coroutine_bare')


def check_lines_of_calls(thread):
    """Checks that the callers of these functions are at the lines of the calls, not behind them."""
    for called, frame in zip(thread['frames'], thread['frames'][1:]):
        if (called['function'] or '').startswith('run_') and frame['line']:
            with open(frame['file'], encoding='utf-8') as source:
                line = source.readlines()[frame['line'] - 1]
            check('run_' in line, f'{frame}')


@test
def lower_stack():
    """code on stacks that lie above those of its callers, as OCaml 5 has them: all callers"""
    chain = ['innermost', 'run_by_register', 'inner', 'run_on', 'middle', 'run_on', 'between', 'run_by_word',
             'outer', 'run_by_link', 'outermost', 'run_on', 'main']
    with Target('lower_stack') as pid:
        thread = threads_of(pid, '--source=unwind')[0]
        check(has_chain(names_of(thread), chain) and thread['complete'], f'{thread}')
        check(not any(frame['guess'] for frame in thread['frames']), 'it was guessed')
        check_lines_of_calls(thread)


def check_ends_at_lower_stack(stacks, said):
    """Checks that stacks of the innermost function end where the lower stack begins, which is counted."""
    cut = [stack for stack in stacks if 'innermost' in stack]
    check(cut, f'{stacks} {said}')
    for stack in cut:
        ends = stack[stack.index('innermost') + 1:]
        check(ends[:2] == ('run_by_register', '[truncated]') and len(ends) == 3, f'{stack} {said}')
    check(re.search(r'[1-9]\d* (of \d+ )?stacks continue elsewhere', said), said)


@test
def copies_end_at_a_lower_stack():
    """where stacks are copied, callers on a stack that lies lower are missing, which is marked and counted"""
    if os.uname().machine != 'x86_64':
        raise Skip('its stacks are written for x86-64 only')
    out, data = os.path.join(TMP, 'lower.folded'), os.path.join(TMP, 'lower.data')
    done = shstk('record', '-F', '499', '--via=copies', '-o', out, '--perf-data=' + data, '--',
                 os.path.join(HERE, 'lower_stack'), '1')
    check_ends_at_lower_stack(stacks_in(out, done.stderr), done.stderr)
    done = shstk('unwind', '-o', out, data)
    check_ends_at_lower_stack(stacks_in(out, done.stderr), done.stderr)


@test
def stacks_in_a_circle():
    """stacks whose callers lead round in a circle: such a stack ends, and is not called complete"""
    with Target('lower_stack', 'circle') as pid:
        thread = threads_of(pid, '--source=unwind')[0]
        names = names_of(thread)
        chain = ['middle', 'run_on', 'between', 'run_by_word', 'outer', 'run_by_link', 'outermost', 'run_on', 'middle']
        check(has_chain(names, chain), f'{names}')
        check(not thread['complete'] and len(names) < 64, f'ends: {thread["end"]}: {names}')


# ---- Probes ----

def check_stepped(stacks, names, chain):
    """Checks that most stacks begin with one of these names, called through this chain."""
    whole = sum(stacks.values())
    good = sum(value for frames, value in stacks.items()
               if any(has_chain(frames[:len(chain) + 1], [name, *chain]) for name in names))
    # In the first sample nobody knows the page yet.
    lost = sum(value for frames, value in stacks.items() if '[truncated]' in frames)
    check(good > 0.5 * whole and lost < 0.05 * whole, f'{good}, {lost} of {whole}: {stacks}')


@test
def stepped_instruction():
    """an instruction with a probe of another tool, which the kernel steps elsewhere, has its place"""
    chain = ['call_multiply', 'begin_multiply', 'step', 'main']
    with Target('probed', 'stepped') as pid:
        stacks = stacks_of_process(pid)
    check_stepped(stacks, ['multiply'], chain)


def stepped(mode, chain, live, file):
    """Checks what is said of an instruction that is stepped while the process lives, and of a file
    of the same samples later."""
    data, out = os.path.join(TMP, 'stepped.data'), os.path.join(TMP, 'stepped.folded')
    with Target('probed', mode) as pid:
        stacks = stacks_of_process(pid, f'--perf-data={data}')
    check_stepped(stacks, live, chain)
    done = shstk('unwind', '-o', out, data)
    check(done.returncode == 0, done.stderr)
    with open(out, encoding='utf-8') as text:
        later = {tuple(reversed(stack.split(';'))): value
                 for stack, value in stack_lines(text.read())}
    check_stepped(later, file, chain)


@test
def stepped_entry():
    """... the first instruction of a function, also in a file of samples, whose process is gone"""
    stepped('entry', ['call_times_three', 'begin_times', 'step', 'main'],
            ['times_three'], ['times_three'])


@test
def stepped_behind_a_stub():
    """... of a function that is called through the linker's stub; the file does not say which"""
    stepped('stub', ['call_times_five', 'begin_times', 'step', 'main'],
            ['times_five'], ['times_five', '[uprobes]'])


@test
def stepped_unknown():
    """... and where nobody can tell which function it is, all its callers"""
    either = ['times_five', '[uprobes]']
    stepped('pointer', ['call_pointer', 'begin_times', 'step', 'main'], either, either)


@test
def probed_return():
    """where another tool probes the return of a function its caller is found, and all above it"""
    with Target('probed', 'outer') as pid:
        whole = ['inner', 'middle', 'outer', 'start', 'main']
        thread = threads_of(pid, '--source=unwind')[0]
        check(has_chain(names_of(thread), whole) and thread['complete'], f'{names_of(thread)}')
        check([f['function'] for f in thread['frames'] if f['guess']] == ['start'],
              f'{thread["frames"]}')
        for stack in stacks_of_process(pid):
            check(has_chain(stack, whole), f'{stack}')


@test
def probed_return_of_an_unknown():
    """... and where that was called through a pointer, all above it, and that it is missing"""
    with Target('probed', 'middle') as pid:
        whole = ['inner', 'middle', '[uprobes]', 'start', 'main']
        thread = threads_of(pid, '--source=unwind')[0]
        check(has_chain(names_of(thread), whole) and thread['complete'], f'{names_of(thread)}')
        for stack in stacks_of_process(pid):
            check(has_chain(stack, whole), f'{stack}')


# ---- Threads ----

@test
def no_stop():
    """trace -p goes on without a thread that cannot stop, says what that does, and lets all go"""
    with Target('no_stop') as pid:
        for _ in range(TRIES):      # until the machine lets the other one stop
            done = shstk('trace', '-p', str(pid), '--json')
            first, other = json.loads(done.stdout)['threads']
            if not out_of_time(other):
                break
        check(done.returncode == 1, f'status {done.returncode}')
        check(first['error'] == 'did not stop' and 'disk sleep' in first['held_up'], f'{first}')
        check(other['complete'] and has_chain(names_of(other), ['inner', 'middle', 'outer']),
              f'{other}')
        for tid in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{tid}/status', encoding='utf-8') as file:
                check('\nTracerPid:\t0\n' in file.read(), f'thread {tid} is still traced')


def wait_for(look, text):
    """Waits until look() returns something true, and returns it."""
    end = time.monotonic() + LIMIT
    while True:
        found = look()
        if found:
            return found
        check(time.monotonic() < end, text)
        time.sleep(0.1)


def text_of(pid, *options):
    """Returns what trace prints of a process, as paragraphs."""
    done = shstk('trace', '-p', str(pid), '--source=unwind', *options)
    check(done.stdout, done.stderr)
    return done.stdout.split('\n\n')


@test
def equal_stacks():
    """threads with equal stacks are shown once with their numbers, or one by one; all in JSON"""
    head = re.compile(r'5 threads (\d+(?:, \d+){4}) \(worker\), sleeping, by unwinding:\n')
    with Target('mutexes', 'equal') as pid:
        def look():
            parts = text_of(pid)
            found = [head.match(part)[1] for part in parts if head.match(part)]
            return found and 'other_sleeper' in str(parts) and (parts, found[0].split(', '))

        parts, numbers = wait_for(look, 'no five threads in one')
        check(len(parts) == 4 and sum('other_sleeper' in part for part in parts) == 1, f'{parts}')
        check(numbers == sorted(numbers, key=int), f'{numbers}')
        check(set(numbers) < set(os.listdir(f'/proc/{pid}/task')), f'{numbers}')
        each = text_of(pid, '--each-thread')
        check(len(each) == 8 and all(part.startswith('thread ') for part in each[1:]), f'{each}')
        alike = [str(thread['tid']) for thread in threads_of(pid, '--source=unwind')
                 if 'sleeper' in names_of(thread)]
        check(sorted(alike) == sorted(numbers), f'{alike}')


def is_named(thread):
    """Returns whether the names in a stack tell that the thread locks a mutex."""
    return any('pthread_mutex' in name or 'pthread_rwlock' in name for name in names_of(thread))


def is_lost(thread):
    """Returns whether the kernel refused a mutex to the thread, and it is not known which."""
    waits = thread['waits_for'] or {}
    return waits.get('refused') and not waits['mutex']


def waiters(pid, function, number):
    """Returns all threads of a program, and those that sleep in a function, once there are as many.

    This waits until all threads stop in time; those that run may not do so on a busy machine.
    """
    def look():
        threads = threads_of(pid, '--source=unwind')
        found = [thread for thread in threads
                 if function in names_of(thread) and thread['state'] == 'sleeping' and
                 (not is_named(thread) or is_lost(thread) or
                  (thread['waits_for'] or {}).get('certain'))]
        return len(found) == number and (threads, found)

    return wait_for(look, f'no {number} threads sleep in {function}')


def owner_of(thread):
    """Returns the owner of the mutex that a thread waits for.

    If the C library's names are not known, checks that nothing is said, and skips.
    """
    waits = thread['waits_for']
    if not is_named(thread):
        check(not waits, f'{thread}')
        raise Skip('pthread_mutex_lock() has no name here')
    check(waits and waits['certain'] or is_lost(thread), f'{thread}')
    if not waits['owner']:
        raise Skip('no frame of the C library points to the mutex that the kernel refused')
    return waits['owner']


def deadlocked(pid, kind):
    """Returns the threads of a program in a deadlock, once all of them wait."""
    if kind == 'rwlock':
        return waiters(pid, 'lock', 2)[1] + waiters(pid, 'lock_to_read', 1)[1]
    return waiters(pid, 'lock', 3)[1]


def check_deadlock(threads):
    """Checks that two threads wait for each other, and a third one for one of them."""
    owners = {thread['tid']: owner_of(thread) for thread in threads}
    members = {tid for tid, owner in owners.items() if owners[owner] == tid}
    check(len(members) == 2 and set(owners.values()) == members, f'{owners}')
    for thread in threads:
        check(thread['waits_for']['deadlock'] == (thread['tid'] in members), f'{thread}')
    return members


def three_owners(pid):
    """Returns what trace prints, once it names three owners."""
    text = '\n\n'.join(text_of(pid))
    return text.count(' has\n') == 3 and text


@test
def deadlock():
    """a thread that waits for a mutex names its owner, and a cycle of owners is a deadlock"""
    for kind in 'plain', 'recursive', 'checked', 'adaptive':
        with Target('mutexes', 'deadlock', kind) as pid:
            members = check_deadlock(deadlocked(pid, kind))
            text = wait_for(lambda: three_owners(pid), 'no three owners are named')
            for one, two in list(members), list(members)[::-1]:
                check(f'  deadlock: {one} waits for {two}, {two} for {one}\n' in text, text)
            check(text.count('deadlock: ') == 2, text)


@test
def deadlock_in_a_container():
    """so it is in a PID namespace, in which threads have other numbers than outside"""
    command = [*in_pid_namespace(), os.path.join(HERE, 'mutexes')]
    for kind in 'plain', 'inherit':
        with Target(command[0], *command[1:], 'deadlock', kind) as pid:
            pid = only_child(pid)
            members = check_deadlock(deadlocked(pid, kind))
            check(members < set(int(tid) for tid in os.listdir(f'/proc/{pid}/task')), f'{members}')


@test
def deadlock_of_one():
    """a thread that locks a mutex twice waits for itself"""
    for kind in 'plain', 'shared', 'robust', 'inherit', 'inherit+robust':
        with Target('mutexes', 'self', kind) as pid:
            thread, = waiters(pid, 'twice', 1)[1]
            check(owner_of(thread) == thread['tid'] and thread['waits_for']['deadlock'],
                  f'{kind} {thread}')


@test
def deadlock_of_other_mutexes():
    """the same of mutexes that are robust, shared by processes, or inherit priorities"""
    for kind in 'robust', 'shared', 'robust+shared', 'inherit', 'inherit+robust', 'inherit+shared':
        with Target('mutexes', 'deadlock', kind) as pid:
            found = deadlocked(pid, kind)
            check_deadlock(found)
            # Who is refused is whose look along the owners found the circle closed: usually the
            # last one alone, all of them if they came at the same moment.
            refused = sum(thread['waits_for']['refused'] for thread in found)
            check(('inherit' in kind) == bool(refused), f'{kind} {found}')


@test
def deadlock_of_rwlocks():
    """the same of read-write locks, whose writers wait for each other, and a reader for one"""
    with Target('mutexes', 'deadlock', 'rwlock') as pid:
        found = deadlocked(pid, 'rwlock')
        check_deadlock(found)
        check(all(thread['waits_for']['kind'] == 'read-write lock' for thread in found), f'{found}')


@test
def no_deadlock():
    """a cycle of threads that give up after some time is no deadlock"""
    with Target('mutexes', 'timed', 'plain') as pid:
        found = waiters(pid, 'lock', 2)[1]
        # A call that was interrupted continues as another call, restart_syscall(2).
        for threads in found, waiters(pid, 'lock', 2)[1]:
            check([owner_of(thread) for thread in threads] ==
                  [thread['tid'] for thread in reversed(threads)], f'{threads}')
            check(all(thread['waits_for']['timed'] and not thread['waits_for']['deadlock']
                      for thread in threads), f'{threads}')


@test
def running_owner():
    """the owner of a mutex is named while it runs, and is not said to wait"""
    for kind in ('plain', 'inherit', 'inherit+robust', 'inherit+recursive', 'inherit+checked',
                 'shared', 'rwlock'):
        with Target('mutexes', 'owner', kind) as pid:
            threads, found = waiters(pid, 'lock_to_read', 1)
            check(owner_of(found[0]) == pid, f'{found}')
            check(not found[0]['waits_for']['deadlock'], f'{found}')
            check([thread['waits_for'] for thread in threads if thread['tid'] == pid] == [None],
                  f'{threads}')


@test
def mutex_of_a_condition():
    """a thread that comes back from pthread_cond_wait() waits for the mutex"""
    def look():
        return [thread for thread in threads_of(pid, '--source=unwind') if thread['waits_for']]

    for kind in 'plain', 'inherit', 'inherit+robust', 'shared':
        with Target('mutexes', 'condition', kind) as pid:
            thread, = wait_for(look, 'no thread waits for a mutex')
            check(thread['waits_for']['owner'] == pid, f'{kind} {thread}')


@test
def condition_on_a_stack():
    """a thread that waits for a condition on its own stack waits for no mutex"""
    for kind in 'plain', 'inherit':
        with Target('mutexes', 'local', kind) as pid:
            threads, _ = waiters(pid, 'waiter_for_local_condition', 1)
            check(not any(thread['waits_for'] for thread in threads), f'{kind} {threads}')


@test
def owner_that_has_given_up():
    """a mutex that was refused, and that nobody has any more, is no deadlock"""
    def look():
        threads = threads_of(pid, '--source=unwind')
        found = [thread for thread in threads if {'refused', 'lock'} <= set(names_of(thread)) and
                 thread['state'] == 'sleeping' and (thread['waits_for'] or {}).get('refused', True)]
        given_up = [thread for thread in threads if 'after_that' in names_of(thread)]
        return found if found and given_up else None

    with Target('mutexes', 'given-up', 'inherit') as pid:
        thread, = wait_for(look, 'no thread is refused a mutex')
        waits = thread['waits_for']
        check(not waits or (not waits['mutex'] and not waits['deadlock']),
              f'{thread}')


@test
def no_mutex():
    """a word that looks like a mutex is none if no function of mutexes waits at it"""
    with Target('mutexes', 'futex') as pid:
        threads, _ = waiters(pid, 'waiter_at_a_word', 1)
        check(not any(thread['waits_for'] for thread in threads), f'{threads}')
        check('mutex 0x' not in str(text_of(pid)), 'a mutex is named')


def check_same(found, path):
    """Checks that a core file tells the same as the process did."""
    done = shstk('trace', '--core', path, '--json')
    check(done.returncode == 0, done.stderr)
    alive = {thread['tid']: thread['waits_for'] for thread in found}
    dead = {thread['tid']: thread['waits_for'] for thread in json.loads(done.stdout)['threads']
            if thread['waits_for']}
    check_deadlock(found)
    check(dead == alive, f'{dead} {alive}')


@test
def deadlock_in_a_core():
    """the same deadlock in a core file"""
    for kind in 'plain', 'inherit', 'rwlock':
        with tempfile.TemporaryDirectory(dir=TMP) as folder:
            with Target('mutexes', 'deadlock', kind, cwd=folder,
                        preexec_fn=may_leave_core) as pid:
                found = deadlocked(pid, kind)
                check_same(found, leave_core(pid, folder))


@test
def deadlock_in_a_core_of_gdb():
    """and in one without code, as gdb writes it"""
    if not shutil.which('gcore'):
        raise Skip('gdb is not installed')
    path = os.path.join(TMP, 'gcore')
    with Target('mutexes', 'deadlock', 'plain') as pid:
        found = waiters(pid, 'lock', 3)[1]
        done = subprocess.run(['gcore', '-o', path, str(pid)], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=LIMIT, check=False)
    if not os.path.exists(f'{path}.{pid}'):
        raise Skip(f'gcore: {done.stdout.strip()}')
    check_same(found, f'{path}.{pid}')


sys.exit(main())
