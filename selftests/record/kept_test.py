#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the file that keeps all samples (`record -o FILE.shstk`), and what `shstk report` makes of
it. Prints KTAP.

Its messages are taken apart here by a decoder that shares no code with what writes them.
"""

import contextlib
import glob
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import pprof  # noqa: E402
from harness import (  # noqa: E402
    LIMIT, SHSTK, Skip, check, end_with_parent, equal, main, one_line, stack_lines, test)
from recording import STATIC, TARGET, TMP, shstk  # noqa: E402

FORMATS = ['pb.gz', 'pb', 'folded', 'svg', 'html', 'speedscope.json',
           'firefox.json', 'trace.json', 'callgrind', 'perf', 'txt', 'json']
REFUSED = 'perf events: |not permitted|mlock_kb|not supported|this kernel has none'


def place(name):
    return os.path.join(TMP, name)


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def outputs(name):
    return [word for suffix in FORMATS for word in ('-o', place(f'{name}.{suffix}'))]


def record(name, *options, kept=True):
    """Records into all formats at once; returns the path of the file that keeps all."""
    path = place(f'{name}.shstk')
    run = shstk('record', *(['-o', path] if kept else []), *outputs(name), *options)
    if run.returncode == 125 and re.search(REFUSED, run.stderr):
        raise Skip(run.stderr.strip().split('\n')[0])
    check(run.returncode == 0, run.stderr)
    check(not kept or os.path.exists(path), f'nothing was recorded: {run.stderr}')
    return path


def report(*options, status=0):
    run = shstk('report', *options)
    equal(run.returncode, status, f'{options}: {run.stderr}')
    return run


def compare(name, path):
    """Compares what record wrote with what report makes of the file."""
    for suffix in FORMATS:
        again = place(f'again.{suffix}')
        if os.path.exists(again):
            os.unlink(again)    # an empty profile leaves it as it was
        report('-q', '-o', again, path)
        check(content(again) == content(place(f'{name}.{suffix}')),
              f'{suffix} is not what record wrote')


def total(*options):
    """The sum of the folded stacks that report writes, and their number."""
    out = place('total.folded')
    if os.path.exists(out):
        os.unlink(out)
    report('-q', '-o', out, *options)
    if not os.path.exists(out):
        return 0
    with open(out, encoding='utf-8') as file:
        return sum(int(line.rsplit(' ', 1)[1]) for line in file)


def total_so_far(path):
    """The same of one file, which is being written: 0 until it can be read."""
    readable = os.path.exists(path) and not shstk('report', '-q', path).returncode
    return total(path) if readable else 0


# ---- A decoder of the file ----

def messages(data):
    """The messages of a file, unpacked."""
    at = 0
    while at < len(data):
        size = struct.unpack_from('>I', data, at)[0]
        check(at + 4 + size <= len(data), 'the last message is cut off')
        run = subprocess.run(['zstd', '-dc'], input=data[at + 4:at + 4 + size],
                             stdout=subprocess.PIPE, check=True, timeout=LIMIT)
        yield run.stdout
        at += 4 + size


def value_of(data):
    """An AnyValue: text, truth, number or list."""
    for number, value in pprof.fields(data):
        if number == 1:
            return value.decode()
        if number == 2:
            return bool(value)
        if number == 3:
            return value
        if number == 5:
            return [value_of(v) for n, v in pprof.fields(value) if n == 1]
    return None


class Message:
    """Tables and samples of a message of OpenTelemetry's profiles."""

    def __init__(self, data):
        top = pprof.message(data, repeated=(1,))
        tables = pprof.message(top[2], repeated=range(1, 8))
        self.text = [t.decode() for t in tables[5]]
        self.attributes = [self.attribute(a) for a in tables[6]]
        self.locations = [pprof.message(l, repeated=(3,), numbers=(4,)) for l in tables[2]]
        self.stacks = [pprof.message(s, numbers=(1,))[1] for s in tables[7]]
        equal([tables[1][0], tables[2][0], tables[3][0], tables[5][0], tables[6][0],
               tables[7][0]], [b''] * 6, 'the first elements of the tables')
        scope = pprof.message(pprof.message(top[1][0], repeated=(2,))[2][0], repeated=(2,))
        self.scope = {}
        for pair in pprof.message(scope[1], repeated=(3,))[3]:
            pair = dict(pprof.fields(pair))
            self.scope[pair[1].decode()] = value_of(pair[2])
        self.profiles = [pprof.message(p, repeated=(2,)) for p in scope[2]]

    def attribute(self, data):
        a = dict(pprof.fields(data))
        return (self.text[a[1]], value_of(a[2])) if a else None

    def samples(self, profile):
        """Of a Profile: the stack, its attributes, the value and the time of each sample."""
        for data in profile[2]:
            s = pprof.message(data, numbers=(2, 4))
            times = struct.unpack('<Q', s[5])
            equal((len(s[4]), len(times)), (1, 1), 'values and times')
            yield (self.stacks[s.get(1, 0)], dict(self.attributes[i] for i in s[2]), s[4][0],
                   times[0])


# ---- Tests ----

@test
def same_cpu():
    """what report makes of a kept recording is what record wrote, byte for byte"""
    compare('cpu', record('cpu', '-F', '999', '--', TARGET, 'burn', '0.5'))


def check_markers(got, program, number):
    """Checks that each of the processes of a program began and ended once, in that order."""
    threads = got['threads']
    have = {}
    for thread in threads:
        markers = thread['markers']
        have.setdefault(thread['pid'], []).extend(
            (start, thread['stringArray'][name]) for name, start, data in zip(
                markers['name'], markers['startTime'], markers['data']) if data['type'] == 'Process')
    pids = {thread['pid'] for thread in threads if thread['name'] == os.path.basename(program)[:15]}
    equal(len(pids), number, [thread['name'] for thread in threads])
    for pid in pids:
        equal([what for _, what in sorted(have[pid])], ['process began', 'process ended'], have)


def firefox(name):
    with open(place(f'{name}.firefox.json'), encoding='utf-8') as file:
        return json.load(file)


def complete(name):
    """A recording as Firefox shows it, in which nothing was lost."""
    got = firefox(name)
    said = [entry['value'] for entry in got['meta']['extra'][0]['entries']]
    if any('lost' in line for line in said):
        raise Skip(f'the machine is too busy, so records were lost: {said}')
    return got


@test
def lives():
    """by perf events: each process that has samples began and ended once, in that order"""
    record('lives', '--via=perf', '-F', '999', '--', 'sh', '-c',
           f'{TARGET} burn 0.2; {TARGET} burn 0.2; true')
    check_markers(complete('lives'), TARGET, 2)


# A thread that is not the first one executes a program.
EXECUTES = """
import os, sys, threading
threading.Thread(target=lambda: os.execv(sys.argv[1], sys.argv[1:])).start()
"""


@test
def lives_thread():
    """so does one in which another thread than the first executes a program"""
    record('lives-thread', '--via=perf', '-F', '999', '--', 'sh', '-c', '"$0" -c "$1" "$2" burn 0.2; true',
           sys.executable, EXECUTES, TARGET)
    check_markers(complete('lives-thread'), TARGET, 1)


def kept_lives(path):
    """When each process of a kept recording began and ended, in order of their beginnings."""
    have = {}
    for data in messages(content(path)):
        for line in Message(data).scope.get('shstk.lives', []):
            what, pid, at, _ = line.split(' ', 3)
            have.setdefault(pid, []).append((int(at), what))
    for pid, list_ in have.items():
        equal([what for _, what in sorted(list_)], ['began', 'ended'], f'{pid}: {have}')
    return sorted(tuple(sorted(at for at, _ in list_)) for list_ in have.values())


# Works, and is killed.
KILLED = """
import os, time
while time.process_time() < 0.3:
    pass
os.kill(os.getpid(), 9)
"""


def agent_lives(name, *options):
    """Records two programs that end, one after the other, and one that is killed."""
    path = record(name, '--via=agent', '-F', '999', *options, '--', 'sh', '-c',
                  '"$0" burn 0.2; "$0" burn 0.2; "$1" -c "$2"; true', TARGET, sys.executable, KILLED)
    shell, *burns, killed = spans = kept_lives(path)
    equal(len(spans), 4, spans)
    for began, ended in burns:
        check(ended - began >= 1.9e8, f'{spans}: it worked for longer')
        check(shell[0] <= began and ended <= shell[1], f'{spans}: the shell waited for it')
    check(burns[0][1] <= burns[1][0] and burns[1][1] <= killed[0], f'{spans}: one after the other')
    check_markers(firefox(name), TARGET, 2)
    check_markers(firefox(name), sys.executable, 1)


@test
def lives_agent():
    """by the agent, too: programs one after the other, also one that is killed"""
    agent_lives('lives-agent')


@test
def lives_wall():
    """so it is with wall-clock time"""
    agent_lives('lives-wall', '--wall')


@test
def lives_of_chosen_stacks():
    """report keeps them where it takes samples by their functions"""
    path = record('lives-all', '--via=agent', '-F', '999', '--', 'sh', '-c', '"$0" burn 0.2; true',
                  TARGET)
    report('-q', '--focus=.', '-o', place('chosen.shstk'), '-o', place('chosen.firefox.json'), path)
    equal(kept_lives(place('chosen.shstk')), kept_lives(path), 'beginnings and ends')
    check_markers(firefox('chosen'), TARGET, 1)


@test
def lives_heap():
    """with allocations each process began and ended once, too"""
    path = record('lives-heap', '--heap', '--', 'sh', '-c', '"$0" -c 0; "$0" -c 0; true',
                  sys.executable)
    equal(len(kept_lives(path)), 3, 'processes')
    check_markers(firefox('lives-heap'), sys.executable, 2)


@test
def same_agent():
    """so it is if the agent samples a command with children"""
    compare('agent', record('agent', '--via=agent', '-F', '999', '--', 'sh', '-c',
                            f'{TARGET} burn 0.2; {TARGET} threads 2 1 0.1; true'))


@test
def same_off_cpu():
    """so it is with time off the CPU"""
    compare('off', record('off', '--off-cpu', '--', 'sh', '-c', 'sleep 0.2; sleep 0.1'))


@test
def same_heap():
    """so it is with allocations, and with the note beside a value"""
    path = record('heap', '--heap', '--', 'ls', '/')
    compare('heap', path)
    check('peak' in report(path).stdout, 'no peak')


# Has memory in use, gives some of it back once the recorder has written that, and so on. Its first
# argument is a pattern of the files that the recorder writes, its second how many there must be before
# it ends.
GROWS = """
import glob, os, sys, time
def written():
    # One may get another name meanwhile.
    while True:
        try:
            return sum(os.path.getsize(path) for path in glob.glob(sys.argv[1]))
        except FileNotFoundError:
            pass
def wait(what):
    end = time.monotonic() + 400
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
def hold():
    return [bytearray(100000 + i) for i in range(100)]
def grown():
    before = written()
    wait(lambda: written() > before)
held = hold()
grown()
del held[20:]
grown()
more = hold()
grown()
wait(lambda: len(glob.glob(sys.argv[1])) >= int(sys.argv[2]))
"""


def grows(pattern, files=1):
    return [sys.executable, '-c', GROWS, pattern, str(files)]


def changes(path, kind):
    """The changes of a value, as [time since the beginning, value], in order of time."""
    return sorted((at - p[3], value - (value >> 63 << 64)) for data in messages(content(path)) for m in [Message(data)]
                  for p in m.profiles if m.text[dict(pprof.fields(p[1]))[1]] == kind
                  for _, _, value, at in m.samples(p))


@test
def heap_grows():
    """allocations are kept as recording goes on: up to each moment their sum is what held then"""
    command = grows(place('grows.shstk'))
    path = record('grows', '--heap', '--heap-show=inuse_space', '--', *command)
    compare('grows', path)
    steps = changes(path, 'inuse_space')
    check(any(value < 0 for _, value in steps), 'nothing was given back')
    times = sorted({at for at, _ in steps})
    check(len(times) > 2, f'all at {times}')
    level = {at: sum(value for when, value in steps if when <= at) for at in times}
    most = max(times, key=lambda at: level[at])
    check(level[most] > 10 ** 7, level)
    equal(total(f'--time=0-{most // 1000 + 1}us', path), level[most], 'what was in use then')
    equal(total(path), level[times[-1]], 'what was in use at the end')
    allocated = changes(path, 'alloc_space')
    check(sum(value for _, value in allocated) > 2 * 10 ** 7, 'allocated in all')
    labels = [labels for _, values, labels in pprof.Decoded(place('grows.pb.gz')).samples]
    equal({text['command'][:20] for text in labels if 'command' in text},
          {' '.join(command)[:20]}, 'commands')


@test
def heap_killed():
    """what is known of allocations is in the file when the recorder is killed"""
    path, least = place('heap-killed.shstk'), 15 * 10 ** 5
    with subprocess.Popen([SHSTK, 'record', '-q', '--heap', '--heap-show=inuse_space', '-o', path,
                           '--', *grows(path, 2)], cwd=TMP, stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, start_new_session=True,
                          preexec_fn=end_with_parent) as process:
        # From then on the program holds 2 MB at least.
        until(lambda: total_so_far(path) > least, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        os.killpg(process.pid, signal.SIGKILL)
    text = report(path).stdout
    check(re.search(r'its end is missing.*recorded so far: [0-9.]+ MiB in use', text), text)
    check(total(path) > least, text)


def record_parts(name, *options):
    """Records one profile after another, until the recorder is killed. Returns its unfinished file."""
    path = place(f'{name}.shstk')
    with subprocess.Popen([SHSTK, 'record', '-q', '--every=1500ms', '-o', path, '-o',
                           place(f'{name}.pb.gz'), *options], cwd=TMP, stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, start_new_session=True,
                          preexec_fn=end_with_parent) as process:
        until(lambda: len(glob.glob(place(f'{name}-*.pb.gz'))) > 2, process)
        wait_for(path, 1, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        os.killpg(process.pid, signal.SIGKILL)
    return path


def check_parts(name, path):
    """Checks the unfinished file, and the finished ones."""
    check('its end is missing' in report(path).stdout, 'no caution')
    check(total(path), 'nothing was kept')
    # What wrote the last one may have been killed.
    for whole in sorted(glob.glob(place(f'{name}-*.pb.gz')))[:2]:
        kept = whole.replace('.pb.gz', '.shstk')
        report('-q', '-o', place('again.pb.gz'), kept)
        check(content(place('again.pb.gz')) == content(whole), f'{kept} is another')
        check('its end is missing' not in report(kept).stdout, f'{kept} has no end')


@test
def snapshots():
    """each snapshot of --every is kept while it is made; what a killed recorder had stays"""
    pattern = place('snapshots*.shstk')
    check_parts('snapshots', record_parts('snapshots', '--heap', '--', *grows(pattern, 99)))


@test
def links():
    """--every refuses a symbolic link to a file, which only the first part could follow"""
    for target in 'real.shstk', 'none.shstk':
        with open(place('real.shstk'), 'wb'):
            pass
        link = place(f'link-{target}')
        os.symlink(place(target), link)
        run = shstk('record', '--every=1s', '-o', link, '--', 'true')
        equal(run.returncode, 2, run.stderr)
        check('is a symbolic link' in run.stderr, run.stderr)


def writers(pid):
    """The processes by which a recorder writes: they are its program, in groups of their own."""
    found = []
    for path in glob.glob(f'/proc/{pid}/task/*/children'):
        try:
            with open(path, encoding='ascii') as file:
                children = [int(word) for word in file.read().split()]
            found += [child for child in children if os.getpgid(child) == child and
                      os.path.samefile(f'/proc/{child}/exe', SHSTK)]
        except OSError:
            pass    # one of them has ended
    return found


@test
def writer_killed():
    """--every: a part whose writer is killed has its name, and its samples can be read"""
    run = subprocess.Popen([SHSTK, 'record', '--every=0.2', '-F', '99', '-o', place('rescue.shstk'),
                            '-o', place('rescue.html'), '--', TARGET, 'burn', str(LIMIT)],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, preexec_fn=end_with_parent)
    begin = time.monotonic()
    rescued, sums = [], []
    os.set_blocking(run.stderr.fileno(), False)
    said = ''
    try:
        # A part in which the program did not run has no samples.
        while not any(sums) and run.poll() is None and \
                time.monotonic() < begin + (LIMIT if rescued else 20):
            for pid in writers(run.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            said += (run.stderr.read() or b'').decode()
            rescued = re.findall(r'lacks its end: .*; (\S+) has its samples', said)
            sums += [total(path) for path in rescued[len(sums):]]
            time.sleep(0.001)
    finally:
        run.send_signal(signal.SIGINT)
        run.wait(LIMIT)
        run.stderr.close()
    if not rescued:
        raise Skip(f'no writer was met: {said[-300:]}')
    check(any(sums), f'no samples in {rescued}')


@test
def parts():
    """so is each profile of samples"""
    record('first', '--every=1', '-F', '99', '--', 'true', kept=False)     # or it is skipped
    check_parts('parts', record_parts('parts', '-F', '999', '--', 'sh', '-c', 'while :; do :; done'))


@test
def same_copy():
    """a kept recording that report writes again is the same in all formats, from a pipe, too"""
    path = record('one', '--via=agent', '-F', '999', '--', TARGET, 'burn', '0.3')
    report('-q', '-o', place('copy.shstk'), path)
    compare('one', place('copy.shstk'))
    with open(path, 'rb') as file:
        run = subprocess.run(['sh', '-c', f'cat | {SHSTK} report -q -o {place("p.pb")} -'],
                             stdin=file, check=False, timeout=LIMIT)
    equal(run.returncode, 0, 'from a pipe')
    check(content(place('p.pb')) == content(place('one.pb')), 'from a pipe it differs')


def busy(path):
    """A shell that works until the recorder has written some of its samples: while it lives."""
    return ['sh', '-c', f'i=0; while [ $i -lt 50000 ] || [ ! -e {path} ]; do i=$((i + 1)); done']


@test
def otlp():
    """the file is of OpenTelemetry's messages with times, processes, commands and threads"""
    command = busy(place('otlp.shstk'))
    path = record('otlp', '--via=agent', '-F', '999', '--', *command)
    read = [Message(data) for data in messages(content(path))]
    sums = {}
    for m in read:
        equal(len({len(p[2]) for p in m.profiles}), 1, 'Profiles of different length')
        for p in m.profiles:
            kind = m.text[dict(pprof.fields(p[1]))[1]]
            for stack, attributes, value, at in m.samples(p):
                sums[kind] = sums.get(kind, 0) + value
                check(attributes['process.pid'] and attributes['thread.id'], 'no process')
                equal(attributes['process.command_line'], ' '.join(command), 'command')
                check(at >= p[3], 'a sample before the beginning')
                check(all(stack), 'a stack has no location')
    decoded = pprof.Decoded(place('otlp.pb.gz'))
    equal(sums, {kind: sum(values[i] for _, values, _ in decoded.samples)
                 for i, (kind, _) in enumerate(decoded.types)}, 'sums')
    check(not any('shstk.end' in m.scope for m in read[:-1]), 'an early end')
    equal(read[-1].scope['shstk.end'], True, 'the end')
    comments = read[-1].scope['shstk.comments']
    check(f"command: {' '.join(command)}" in comments, comments)
    check(any('__libc_start_main' in name for m in read for name in m.text), 'no names')


@test
def times():
    """--time takes the samples of a range; ranges that follow each other hold them all"""
    path = record('times', '--via=agent', '-F', '999', '--', TARGET, 'burn', '0.5')
    since = [(at - p[3], value) for data in messages(content(path)) for m in [Message(data)]
             for p in m.profiles[-1:] for _, _, value, at in m.samples(p)]
    middle = sorted(at for at, _ in since)[len(since) // 2] // 1000
    before = sum(value for at, value in since if at < middle * 1000)
    check(before, 'no sample is before the middle one')
    equal(total(f'--time=-{middle}us', path), before, 'the first half')
    equal(total(f'--time={middle / 1e6}s-', path), total(path) - before, 'the second half')
    equal(total('--time=1h-', path), 0, 'after the end')
    line = one_line(report('--time=1-2', place('times.pb.gz'), status=1).stderr)
    check('no times' in line, line)
    for bad in '2-1', '1', 'x-2', '1-2x', '1y-2', '':
        equal(shstk('report', f'--time={bad}', path).returncode, 2, bad)


@test
def guesses():
    """stacks with guessed entries: the last line and all outputs say how much is in them"""
    path = place('guessed.shstk')
    run = shstk('record', '-o', path, *outputs('guessed'), '--via=agent', '-F', '999', '--',
                'sh', '-c', f'for i in 1 2 3 4 5 6; do {TARGET} undescribed 20; done; '
                f'{TARGET} burn 0.3')
    equal(run.returncode, 0, 'status')
    last = re.search('; ([0-9.]+) % in stacks with a guessed entry; recorder: ', run.stderr)
    check(last, run.stderr)
    stacks = stack_lines(content(place('guessed.folded')).decode())
    guessed = sum(value for stack, value in stacks if ';undescribed;' in stack)
    share = 100 * guessed / sum(value for _, value in stacks)
    check(0 < share < 100 and abs(float(last[1]) - share) < 10, f'{share} %: {run.stderr}')
    words = f'{last[1]} % of this is in stacks with a guessed entry'
    kept = [Message(data) for data in messages(content(path))][-1].scope['shstk.cautions']
    check(words in kept, f'{kept}')
    for options in [], ['--tree']:
        check(f'caution: {words}\n' in report(*options, path).stdout, f'{options}')
    compare('guessed', path)


@test
def labels():
    """pprof's labels say which process, command and control group it is; --by and --cgroup too"""
    command = busy(place('labels.shstk'))
    path = record('labels', '--via=agent', '-F', '999', '--', *command)
    with open('/proc/self/cgroup', encoding='utf-8') as file:
        groups = re.findall('^(?:0:|[0-9]+:name=systemd):(/.*)$', file.read(), re.M)
    for _, _, got in pprof.Decoded(place('labels.pb.gz')).samples:
        equal((got['process'], got['command']), ('sh', ' '.join(command)), 'process and command')
        check(not groups or got['cgroup'] in groups, f'{got} is not in {groups}')
    tree = report('--tree', '--by=process,language', path).stdout.split('\n')
    # Cautions, as of lost samples, stand before the tree.
    head = next(i for i, line in enumerate(tree) if line.startswith('cpu, '))
    check(tree[head + 1].endswith(' process: sh'), tree)
    check(any(line.endswith('  native') for line in tree), tree)
    if groups:
        equal(total(f'--cgroup=^{re.escape(groups[0])}$', path), total(path), '--cgroup')
    equal(total('--cgroup=no such group', path), 0, 'another group')


@test
def main_mapping():
    """the first mapping of pprof's is the command's program, also if a child's lies below it"""
    path = record('main', '--via=copies', '-F', '999', '--', 'sh', '-c',
                  f'{STATIC} burn 0.2; ' + busy(place('main.shstk'))[2])
    for profile in place('main.pb.gz'), place('again.pb.gz'):
        report('-q', '-o', place('again.pb.gz'), path)
        decoded = pprof.Decoded(profile)
        names = [os.path.basename(decoded.text(decoded.mappings[i][5]))
                 for i in sorted(decoded.mappings)]
        check('target-static' in names, names)
        equal(names[0], os.path.basename(os.path.realpath(shutil.which('sh'))), 'the first')


@test
def cpus():
    """--by=cpu: the samples of each CPU"""
    path = record('cpus', '--via=copies', '-F', '999', '--', TARGET, 'burn', '0.2')
    read = [Message(data) for data in messages(content(path))]
    sums = {}
    for m in read:
        for _, attributes, value, _ in m.samples(m.profiles[-1]):
            cpu = f"cpu: {attributes['cpu.logical_number']}"
            sums[cpu] = sums.get(cpu, 0) + value
    report('-q', '--by=cpu', '-o', place('cpus.folded'), path)
    got = {}
    for stack, value in stack_lines(content(place('cpus.folded')).decode()):
        cpu = stack.split(';')[0]
        got[cpu] = got.get(cpu, 0) + value
    equal(got, sums, 'sums')


@test
def python():
    """functions of Python, which have no address, are the same in what report writes"""
    path = record('python', '-F', '999', '--', sys.executable, '-c', 'sum(i for i in range(9**6))')
    compare('python', path)


@test
def perf_data():
    """report reads a file of perf's as shstk unwind does, with times"""
    record('perf', '--via=copies', '-F', '999', f"--perf-data={place('perf.data')}", '--',
           TARGET, 'burn', '0.3', kept=False)
    run = shstk('unwind', '-q', '-o', place('unwound.pb'), place('perf.data'))
    equal(run.returncode, 0, run.stderr)
    report('-q', '-o', place('again.pb'), place('perf.data'))
    check(content(place('again.pb')) == content(place('unwound.pb')), 'it differs')
    whole = total(place('perf.data'))
    equal(total('--time=-1h', place('perf.data')), whole, 'within an hour')
    check(0 < total('--time=0-1ms', place('perf.data')) < whole, 'in the first millisecond')
    with open(place('bad.data'), 'wb') as file:
        file.write(content(place('perf.data'))[:100])
    check('bad.data' in report(place('bad.data'), status=1).stderr, 'no reason')


def until(condition, process):
    """Waits until something is true, while a process lives."""
    end = time.monotonic() + LIMIT
    while not condition():
        check(process.poll() is None, 'the recorder ended')
        check(time.monotonic() < end, 'it does not come true')
        time.sleep(0.05)


def wait_for(path, size, process):
    """Waits until a file has grown, while a process lives."""
    until(lambda: os.path.exists(path) and os.path.getsize(path) >= size, process)


@test
def no_samples():
    """a recording without samples is a file, too, which says so as the other formats do"""
    # A period of a second begins at any moment, so one of some hundred runs has a sample; more of them
    # where a start takes long. What was sampled is printed.
    for _ in range(20):
        path = record('none', '--via=agent', '-F', '1', '--', 'true')
        if not total(path):
            break
        print('# ' + report('-q', '--format=folded', '-o', '-', path).stdout.replace('\n', '\n# '))
    equal([Message(data).scope.get('shstk.end') for data in messages(content(path))][-1], True,
          'the end')
    compare('none', path)
    equal(total(path), 0, 'the sum')


@test
def killed():
    """a recorder that is killed leaves all that it had written, and report says so"""
    path = place('killed.shstk')
    with subprocess.Popen([SHSTK, 'record', '-q', '--via=agent', '-F', '999', '-o', path, '--',
                           TARGET, 'forever'], cwd=TMP, stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, start_new_session=True,
                          preexec_fn=end_with_parent) as process:
        wait_for(path, 1, process)
        first = os.path.getsize(path)
        live = report('--top', path).stdout
        check('its end is missing' in live, live)
        wait_for(path, first + 1, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        # The command goes on by itself.
        os.killpg(process.pid, signal.SIGKILL)
    text = report(path).stdout
    check(re.search(r'its end is missing.*recorded so far: \d+ samples, \d+ lost', text), text)
    check('forever' in text, text)
    before = total(path)
    with open(path, 'ab') as file:
        file.write(struct.pack('>I', 1000) + b'half a message')
    equal(total(path), before, 'with half a message more')


@test
def cut():
    """a file that is cut off anywhere is read up to there, or refused with one line"""
    path = record('cut', '--via=agent', '-F', '999', '--', TARGET, 'burn', '0.3')
    data, last, whole = content(path), 0, total(path)
    for size in sorted({len(data) * i // 25 for i in range(25)} | {0, 3, 4, 7, 8}):
        part = place('part.shstk')
        with open(part, 'wb') as file:
            file.write(data[:size])
        run = shstk('report', '-q', '-o', place('part.folded'), part)
        check(run.returncode in (0, 1), f'{size} bytes: {run.stderr}')
        if run.returncode:
            check('part.shstk' in one_line(run.stderr), run.stderr)
            continue
        got = total(part)
        check(last <= got <= whole, f'{size} bytes: {got} of {whole} after {last}')
        last = got
    check(last, 'no part could be read')


def made(name, stacks):
    """A file that report makes of folded stacks, without a recording."""
    with open(place(f'{name}.folded'), 'w', encoding='utf-8') as file:
        file.writelines(f'main;{stack} {value}\n' for stack, value in stacks)
    report('-q', '-o', place(f'{name}.shstk'), place(f'{name}.folded'))
    return place(f'{name}.shstk')


@test
def together():
    """files that were put together are refused: the sums of a part are not taken for all"""
    one = made('first', [(f'f{i}', i + 1) for i in range(300)])
    two = made('second', [(f'f{i};g', 7) for i in range(200)])
    equal(total(one, two), 300 * 301 // 2 + 200 * 7, 'both')
    for pair in (one, one), (one, two), (two, one):
        with open(place('both.shstk'), 'wb') as file:
            file.write(b''.join(content(part) for part in pair))
        line = one_line(report('-q', place('both.shstk'), status=1).stderr)
        check('both.shstk' in line and 'contradicts itself' in line, line)


@test
def damaged():
    """a bit that changed is found, wherever it is: the file is refused, or its end is missing"""
    path = made('sound', [(f'f{i % 50};g{i % 30};h{i}', i + 1) for i in range(1000)])
    data, sound = content(path), total(path)
    for i in range(60):
        hurt = bytearray(data)
        hurt[len(data) * i // 60] ^= 1 << i % 8
        with open(place('hurt.shstk'), 'wb') as file:
            file.write(hurt)
        run = shstk('report', '-o', place('hurt.folded'), '-o', place('hurt.txt'),
                    place('hurt.shstk'))
        if run.returncode:
            check('hurt.shstk' in one_line(run.stderr), f'bit {i}: {run.stderr}')
        elif b'its end is missing' not in content(place('hurt.txt')):
            equal(total(place('hurt.folded')), sound, f'bit {i}')


@test
def large():
    """what is too large for a message is in several"""
    name = 'x' * 15900
    path = made('large', [(f'{i}{name}', i + 1) for i in range(4300)])
    os.unlink(place('large.folded'))
    report('-q', '-o', place('large.txt'), path)
    equal(total(path), 4300 * 4301 // 2, 'the sum')
    check(b'caution' not in content(place('large.txt')), 'a caution')


@test
def full():
    """a disk that is full is told with the file's name; what was written can be read"""
    folded = place('full.folded')
    with open(folded, 'w', encoding='utf-8') as file:
        file.writelines(f'main;f{i % 200};g{i // 200} 1\n' for i in range(20000))
    run = shstk('report', '-q', '--format=shstk', '-o', '/dev/full', folded,
                env={**os.environ, 'TMPDIR': TMP})
    equal(run.returncode, 1, run.stderr)
    first, second = run.stderr.strip().split('\n')
    check("cannot write '/dev/full': No space left on device" in first, first)
    equal(total(second.split(' kept in ')[1]), 20000, 'what is kept elsewhere')
    whole = made('whole', [(f'f{i % 200};g{i // 200}', 1) for i in range(20000)])
    size = struct.unpack('>I', content(whole)[:4])[0]
    run = shstk('report', '-q', '-o', place('part.shstk'), folded, preexec_fn=lambda: (
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, size + 1000))))
    equal(run.returncode, 1, run.stderr)
    check("part.shstk': File too large" in run.stderr, run.stderr)
    report('-o', place('part.txt'), place('part.shstk'))
    check(b'its end is missing' in content(place('part.txt')), 'no caution')
    equal(total(place('part.shstk')), 16384, 'samples of the first message')


def field(number, value):
    """A field of a message: a number, or bytes."""
    if isinstance(value, int):
        check(value < 128, 'a number of more than one byte')
        return bytes([number << 3, value])
    check(len(value) < 1 << 14, 'too long')
    return bytes([number << 3 | 2, len(value) & 127 | 128, len(value) >> 7]) + value


@test
def apart():
    """what is of two processes is not taken for one sample, though all else is the same"""
    text = [b'', b'cpu', b'ns', b'wall', b'process.pid', b'work']
    tables = [field(2, b''), field(2, field(3, field(1, 1))), field(3, b''),
              field(3, field(1, 5)), field(7, b''), field(7, field(1, b'\1')), field(6, b''),
              *(field(6, field(1, 4) + field(2, field(3, pid))) for pid in (1, 2)),
              *(field(5, word) for word in text)]
    profiles = [field(2, field(1, field(1, kind) + field(2, 2)) +
                      field(2, field(1, 1) + field(2, bytes([who])) + field(4, bytes([value]))))
                for kind, who, value in ((1, 1, 3), (3, 2, 5))]
    data = field(1, field(2, b''.join(profiles))) + field(2, b''.join(tables))
    with open(place('apart.shstk'), 'wb') as file:
        file.write(struct.pack('>I', len(data)) + data)
    report('-q', '-o', place('apart.pb.gz'), place('apart.shstk'))
    got = {labels['pid']: tuple(values)
           for _, values, labels in pprof.Decoded(place('apart.pb.gz')).samples}
    equal(got, {1: (3, 0), 2: (0, 5)}, 'values by process')


TRACES = [bytes(range(n, n + 16)) for n in (1, 0xab)]
SPANS = [bytes(range(n, n + 8)) for n in (0x51, 0xc1)]


def traced(links):
    """A file with a sample of one stack for each number of a link; returns its path."""
    text = [b'', b'cpu', b'ns', b'work']
    tables = [field(2, b''), field(2, field(3, field(1, 1))), field(3, b''),
              field(3, field(1, 3)), field(7, b''), field(7, field(1, b'\1')), field(6, b''),
              field(4, field(1, bytes(16)) + field(2, bytes(8))),
              *(field(4, field(1, trace) + field(2, span)) for trace, span in zip(TRACES, SPANS)),
              *(field(5, word) for word in text)]
    samples = (field(2, field(1, 1) + (field(3, link) if link else b'') +
                     field(4, bytes([value]))) for value, link in enumerate(links, 1))
    data = field(1, field(2, field(2, field(1, field(1, 1) + field(2, 2)) + b''.join(samples))))
    data += field(2, b''.join(tables))
    path = place('traced.shstk')
    with open(path, 'wb') as file:
        file.write(struct.pack('>I', len(data)) + data)
    return path


@test
def spans():
    """a span of a trace is a link there and two labels elsewhere; --trace takes its samples"""
    path = traced([0, 1, 2, 1])
    report('-q', '-o', place('spans.pb.gz'), '-o', place('again.shstk'), path)
    got = {tuple(labels.get(k) for k in ('trace_id', 'span_id')): sum(values)
           for _, values, labels in pprof.Decoded(place('spans.pb.gz')).samples}
    wanted = {(t.hex(), s.hex()): v for t, s, v in zip(TRACES, SPANS, (2 + 4, 3))}
    equal(got, {(None, None): 1, **wanted}, 'labels')
    read = [pprof.message(pprof.message(data)[2], repeated=(4, 5))
            for data in messages(content(place('again.shstk')))]
    links = [dict(pprof.fields(link)) for m in read for link in m[4]]
    equal({(link[1], link[2]) for link in links},
          {(bytes(16), bytes(8)), *zip(TRACES, SPANS)}, 'links')
    check(not any(b'trace_id' in m[5] for m in read), 'the label is there, too')
    for again in path, place('again.shstk'), place('spans.pb.gz'):
        equal(total(f'--trace={TRACES[0].hex()}', again), 6, again)
        equal(total(f'--trace={TRACES[1].hex().upper()}', again), 3, again)
        equal(total(f'--trace={bytes(15).hex()}01', again), 0, again)
    for wrong in '1', 33 * 'a', 31 * 'a' + 'g':
        run = shstk('report', f'--trace={wrong}', path)
        equal(run.returncode, 2, run.stderr)
        check('32 hexadecimal digits' in one_line(run.stderr), run.stderr)
    for command in ('report', traced([0])), ('diff', traced([0]), traced([0])):
        run = shstk(command[0], f'--trace={TRACES[0].hex()}', *command[1:])
        equal(run.returncode, 1, run.stderr)
        check('no sample has a trace id' in one_line(run.stderr), run.stderr)
    run = shstk('report', traced([3]))
    equal(run.returncode, 1, run.stderr)
    check('a link that is not there' in one_line(run.stderr), run.stderr)


@test
def options():
    """one such file can be written at a time; a diff reads two"""
    run = shstk('record', '-o', place('a.shstk'), '-o', place('b.shstk'), 'true')
    equal(run.returncode, 2, run.stderr)
    check('more than one' in one_line(run.stderr), run.stderr)
    path = record('diff', '--via=agent', '-F', '999', '--', TARGET, 'burn', '0.2')
    run = shstk('diff', path, path)
    equal(run.returncode, 0, run.stderr)


if __name__ == '__main__':
    sys.exit(main())
