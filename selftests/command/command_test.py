#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the command line of `shstk`: what a user meets first.

Options and their help, exit statuses, which file is written in which format and when not, JSON,
completion in bash, and that the manual pages say all that the option tables say. Prints KTAP.
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, HERE, LIMIT, SHSTK, TMP, Skip, check, equal, main, open_terminal, shstk, test)

TARGET = os.path.join(HERE, 'target')
PAGES = 'Documentation'         # tests run in the top folder of the tree
# The characters with Unicode's property Bidi_Control.
BIDI = ('\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e'
        '\u2066\u2067\u2068\u2069')
COMMANDS = ('record', 'top', 'report', 'diff', 'push', 'trace', 'crash', 'unwind', 'run', 'check',
            'events', 'rules', 'broker', 'status')


def path(name):
    """Returns the path of a file in the test's folder, after removing the file."""
    full = os.path.join(TMP, name)
    if os.path.exists(full):
        os.unlink(full)
    return full


def content(name):
    """Returns what a file holds."""
    with open(name, encoding='utf-8') as file:
        return file.read()


def record(*options, job=('burn', '200'), **kwargs):
    """Records the target with the agent, at a rate that gives enough samples."""
    return shstk('record', '--via=agent', '-F', '997', *options, '--', TARGET,
                 *job, **kwargs)


def table():
    """Returns the option tables as {command: [(long, short, argument)]}."""
    rows = {}
    for line in shstk('--completion-table').stdout.splitlines():
        command, *row = line.split(' ')
        rows.setdefault(command, []).append(tuple(row[:3]))
    return rows


# ---- Help, version, wrong options ----

@test
def help_everywhere():
    """help, help COMMAND, and -h, -?, --help of each command print the same"""
    top = shstk('--help').stdout
    for command in COMMANDS:
        check(f'\n  {command} ' in top, f'{command} is not in {top}')
        texts = set()
        for args in ([command, '--help'], [command, '-h'], [command, '-?'],
                     ['help', command], ['--help', command], ['-h', command]):
            run = shstk(*args)
            equal((run.returncode, run.stderr), (0, ''), ' '.join(args))
            texts.add(run.stdout)
        equal(len(texts), 1, f'number of help texts of {command}')
        text = texts.pop()
        check(text.startswith(f'Usage: shstk {command}'), command)
        for line in text.splitlines():
            check(not line.startswith('  ') or line.startswith('  or:') or
                  re.match(r' {2}-\w(, --|  )| {6}--\w| {29}\S', line),
                  f'{command}: out of its column: {line!r}')
    for word in 'help', '-h', '-?':
        run = shstk(word)
        equal((run.returncode, run.stdout), (0, top), word)


@test
def version_everywhere():
    """version, -V and --version, of each command as well"""
    wanted = shstk('--version')
    check(re.fullmatch(r'shstk \d+\.\d+\.\d+\n', wanted.stdout), wanted.stdout)
    for args in ['version'], ['-V'], *([c, o] for c in COMMANDS for o in ('-V', '--version')):
        run = shstk(*args)
        equal((run.returncode, run.stdout), (0, wanted.stdout), ' '.join(args))


@test
def wrong_options_have_one_status():
    """status 2 for wrong options of every command, and nothing is started"""
    mark = path('started')
    cases = [[], ['nosuch'], ['--nosuch'], ['help', 'nosuch']]
    for command in COMMANDS:
        cases += [[command, '--nosuch'], [command, '-Z']]
    cases += [['record'], ['run'], ['trace'], ['check'], ['events', 'x'],
              ['status', 'x'], ['check', '-p', 'x'], ['trace', '-p', '0'],
              ['unwind', 'a', 'b'], ['unwind', '-o', 'x.unknown'],
              ['trace', '-p', '1', '--core', 'x'], ['run', '-p', '-s', 'touch', mark]]
    for option in ('-F0', '--depth=1', '--buffer=100', '--via=nobody', '-enosuch',
                   '--duration=1x', '--format=nosuch', '-ox.unknown', '--heap-show=x',
                   '--top=0', '--off-cpu --wall', '--heap --wall', '-a --cgroup=x',
                   '-p1', '--via=agent --kernel', '--read-limit=0', '--read-limit=x',
                   '--read-limit=1G,0', '--read-limit=1Gx', '--read-limit=99999999999G'):
        cases.append(['record', *option.split(), 'touch', mark])
    for args in cases:
        run = shstk(*args)
        equal(run.returncode, 2, f'status of {args} ({run.stderr})')
        check(run.stderr and not run.stdout, f'{args}: {run.stdout!r}')
    check(not os.path.exists(mark), 'the program was started')


@test
def failures_keep_their_status():
    """125, 126 and 127 stay what they were, and so does a program's own status"""
    equal(record('-o', '/nonexistent/x.svg').returncode, 125, 'no folder')
    equal(shstk('record', '/').returncode, 126, 'a folder')
    equal(shstk('record', './nosuch').returncode, 127, 'no file')
    equal(shstk('record', '-qo', path('s.svg'), '--', 'sh', '-c', 'exit 9').returncode,
          9, 'the own status')


# ---- What is written ----

@test
def suffixes_choose_formats():
    """each suffix that the manual names gives its format"""
    starts = {'.pb.gz': b'\x1f\x8b', '.pb': b'\x0a', '.folded': b'target;',
              '.collapsed': b'target;', '.svg': b'<?xml', '.perf': b'target ',
              '.txt': b'cpu, ', '.top': b'cpu, ', '.json': b'{"', '.html': b'<!DOCTYPE html>',
              '.htm': b'<!DOCTYPE html>', '.speedscope.json': b'{"$schema"',
              '.firefox.json': b'{\n "meta"', '.trace.json': b'{"displayTimeUnit"',
              '.callgrind': b'# callgrind format\n',
              '.shstk': b'\0'}
    manual = content(f'{PAGES}/shstk-record.1.rst')
    named = set(re.findall(r'``(\.[a-z.]+)``', manual))
    equal(named, set(starts), 'suffixes in record(1)')
    outputs = [arg for s in starts for arg in ('-o', path('out' + s))]
    equal(record('-q', *outputs).returncode, 0, 'status')
    for suffix, start in starts.items():
        with open(os.path.join(TMP, 'out' + suffix), 'rb') as file:
            got = file.read(len(start))
        equal(got, start, suffix)


def append_to(name, number):
    """In the child: makes a descriptor append to a file."""
    fd = os.open(name, os.O_WRONLY | os.O_APPEND)
    os.dup2(fd, number)


@test
def open_files_are_written_to_as_they_are():
    """-o /dev/stdout and the like: behind what the file holds, if it was opened so"""
    log = path('log')
    for name, number in ('/dev/stdout', 1), ('/dev/fd/1', 1), ('/proc/self/fd/1', 1), \
            ('/dev/stderr', 2), ('/dev/fd/95', 95):
        with open(log, 'w', encoding='utf-8') as file:
            file.write('before\n')
        run = shstk('record', '--via=agent', '-F', '997', '-q', '-o', name, '--format=folded',
                    '--', TARGET, 'burn', '200', preexec_fn=lambda n=number: append_to(log, n),
                    close_fds=False)
        equal(run.returncode, 0, f'{name}: {run.stderr}')
        check(re.match('before\n(.*\n)?target;.*main;', content(log), re.S),
              f'{name}: {content(log)[:500]}')


@test
def standard_output_needs_no_format():
    """-o -: a table on a terminal, by the name of a file, else folded"""
    run = record('-q', '-o', '-')
    equal(run.returncode, 0, run.stderr)
    check(re.search(r'^target;.*;burn \d+$', run.stdout, re.M), run.stdout)
    for name, start in ('a.svg', '<?xml'), ('a.txt', 'cpu, '), ('a', 'target;'):
        with open(path(name), 'w', encoding='utf-8') as file:
            equal(record('-q', '-o', '-', stdout=file).returncode, 0, name)
        check(content(os.path.join(TMP, name)).startswith(start), name)
    first, other = open_terminal()
    equal(record('-q', '-o', '-', stdout=other).returncode, 0, 'on a terminal')
    os.close(other)
    check(os.read(first, 100).startswith(b'cpu, '), 'no table on a terminal')
    os.close(first)


@test
def empty_profile_keeps_an_old_file():
    """a profile without samples replaces nothing, and that is said"""
    old = path('old.folded')
    with open(old, 'w', encoding='utf-8') as file:
        file.write('a;b 1\n')
    # One sample per TiB: this program gets none, whatever the random numbers.
    nothing = 'record', '--heap-sample=1099511627776'
    run = shstk(*nothing, '-o', old, '--', 'true')
    equal(content(old), 'a;b 1\n', 'the old file')
    equal(run.returncode, 0, 'status')
    check(f'nothing was recorded: {old} is left as it was' in run.stderr, run.stderr)
    check('wrote' not in run.stderr, run.stderr)
    new = path('new.folded')
    run = shstk(*nothing, '-o', new, '--', 'true')
    equal((run.returncode, content(new)), (0, ''), 'a new file')
    equal(record('-o', old).returncode, 0, run.stderr)
    check('burn' in content(old), 'was not replaced by a full one')


def kept(run):
    """Returns the file in which the command says that it kept the profile."""
    found = re.search(r'^shstk \w+: the profile is kept in (.*)$', run.stderr, re.M)
    check(found, run.stderr)
    return found[1]


@test
def status_of_a_process_that_has_ended():
    """status says of a process that has ended and was not waited for that it is a zombie"""
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    run = shstk('status', str(pid))
    os.waitpid(pid, 0)
    equal((run.returncode, run.stdout), (1, ''), 'status and output')
    check(f'process {pid}: it is a zombie: it has ended' in run.stderr, run.stderr)


@test
def full_disk_loses_nothing():
    """what cannot be written is kept in $TMPDIR or elsewhere, and said where"""
    spare = tempfile.mkdtemp(dir=TMP)
    for options, start in ((['-o', '/dev/full', '--format=folded'], 'target;'),
                           (['-o', '/dev/full', '--format=svg'], '<?xml')):
        run = record(*options, env={**os.environ, 'TMPDIR': spare})
        equal(run.returncode, 125, 'status')
        check("cannot write '/dev/full': No space left" in run.stderr, run.stderr)
        where = kept(run)
        equal(os.path.dirname(where), spare, 'the folder')
        equal(os.stat(where).st_mode & 0o777, 0o600, 'its rights')
        check('burn' in content(where) and content(where).startswith(start), where)
    # If one folder cannot be used, the next one is.
    run = record('-o', '/dev/full', '--format=folded',
                 env={**os.environ, 'TMPDIR': '/nonexistent'})
    where = kept(run)
    check('burn' in content(where), where)
    os.unlink(where)
    with open('/dev/full', 'w', encoding='utf-8') as full:
        run = record('-o', '-', stdout=full, env={**os.environ, 'TMPDIR': spare})
    equal(run.returncode, 125, 'status')
    check('burn' in content(kept(run)), 'standard output')


@test
def full_file_system_loses_nothing():
    """the same with a small file system, where the old file stays"""
    script = ('mount -t tmpfs -o size=4k none "$1" && echo old >"$1/x.svg" || exit 77\n'
              'shift; "$@"; echo $?; cat "$0/x.svg"')
    room = tempfile.mkdtemp(dir=TMP)
    run = subprocess.run(
        ['unshare', '-rm', 'sh', '-c', script, room, room, SHSTK, 'record',
         '--via=agent', '-F', '997', '-o', f'{room}/x.svg', '--', TARGET, 'burn', '200'],
        capture_output=True, text=True, timeout=LIMIT, check=False,
        env={**os.environ, 'TMPDIR': TMP})
    if run.returncode == 77 or 'unshare:' in run.stderr:
        raise Skip('no small file system can be mounted here')
    equal(run.stdout, '125\nold\n', run.stderr)
    check(content(kept(run)).startswith('<?xml'), 'what is kept')


@test
def table_to_a_full_disk_fails():
    """--top on a standard output that is full is not silent"""
    with open('/dev/full', 'w', encoding='utf-8') as full:
        run = record('-q', '--top', '-o', path('t.folded'), stdout=full)
    equal(run.returncode, 125, 'status')
    check('standard output: No space left' in run.stderr, run.stderr)


# ---- Options that follow from others ----

@test
def heap_show_implies_heap():
    """--heap-show alone records allocations"""
    run = shstk('record', '--heap-show=alloc_space', '-o', '-', '--', TARGET, 'allocate')
    equal(run.returncode, 0, run.stderr)
    check(re.search(r';hold \d{7}$', run.stdout, re.M), run.stdout)


@test
def durations_have_units():
    """--duration=300ms, 0.005m and 0.3 stop after that time"""
    def recorded(text):
        run = record(f'--duration={text}', '-o', path('d.folded'), job=('burn', '1500'))
        equal(run.returncode, 0, run.stderr)
        return sum(int(line.rsplit(' ', 1)[1]) for line in
                   content(os.path.join(TMP, 'd.folded')).splitlines()) / 1e9

    for text in '300ms', '0.005m', '0.3':
        # It is longer if the recorder has to wait for a CPU.
        check(any(recorded(text) < 1.2 for _ in range(5)), f'{text}: each time it is longer')
    for text in '0', '-1', '1x', 'm', '1e99', 'nan', '1 s':
        run = record(f'--duration={text}')
        equal(run.returncode, 2, f'status of {text}')
        check(f"duration '{text}' is not a time" in run.stderr, run.stderr)


@test
def files_that_take_too_much_to_read_are_named():
    """with --read-limit: which files, once each, and what lets them take more"""
    for run, said in ((record('--read-limit=1'), 1), (record('--read-limit=1G,100'), 0)):
        equal(run.returncode, 0, run.stderr)
        equal(run.stderr.count(f'{TARGET} takes too much memory to read'), said, run.stderr)
        equal('--read-limit=SIZE,SECONDS' in run.stderr, bool(said), run.stderr)


@test
def sums_of_peaks_are_called_so():
    """--heap: what is a sum of the peaks of several processes says so"""
    out = [path('peak' + s) for s in ('.txt', '.svg', '.json')]
    run = shstk('record', '--heap', *(f'-o{o}' for o in out), '--', TARGET, 'allocate')
    equal(run.returncode, 0, run.stderr)
    words = 'sum of the peaks of 2 processes'
    for name in out:
        check(words in content(name), f'{name}: {content(name)[:2000]}')
    check('largest peak of a process 1' in run.stderr, run.stderr)
    run = shstk('record', '--heap', '-o', '-', '--format=top', '--', TARGET, 'burn', '1')
    check('peak_space, ' in run.stdout and words not in run.stdout, run.stdout)


# ---- Trace ----

class Waiting:
    """Runs the target, which waits with two threads."""

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.run = subprocess.Popen([TARGET, 'wait'], stdout=subprocess.PIPE, text=True)
        equal(self.run.stdout.readline(), 'ready\n', 'the target')
        self.pid = str(self.run.pid)
        return self

    def stop(self):
        """Stops the target, as Ctrl-Z does."""
        self.run.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.run.pid, os.WSTOPPED)

    def __exit__(self, *exc):
        self.run.kill()
        self.run.wait()
        self.run.stdout.close()


@test
def stopped_threads_are_called_stopped():
    """trace: threads that a signal stopped are not called traced"""
    with Waiting() as target:
        target.stop()
        run = shstk('trace', '-p', target.pid)
        equal(run.returncode, 0, run.stderr)
        equal(re.findall(r'^thread \d+ \(target\), (.*), by', run.stdout, re.M),
              ['stopped', 'stopped'], 'states')


@test
def kernel_threads_are_called_so():
    """trace -p of a thread of the kernel does not blame a permission"""
    for stat in glob.glob('/proc/[0-9]*/stat'):
        try:
            text = content(stat)
        except OSError:
            continue
        if int(text.rsplit(')', 1)[1].split()[6]) & 0x200000:   # PF_KTHREAD
            break
    else:
        raise Skip('no threads of the kernel are seen here')
    for options in [], ['--no-stop']:
        run = shstk('trace', '-p', text.split()[0], *options)
        equal(run.returncode, 1, run.stderr)
        check('is a thread of the kernel' in run.stderr, run.stderr)
        check('ptrace_scope' not in run.stderr, run.stderr)


# ---- JSON ----

def as_json(*args, status=0):
    """Returns what the command prints, which must be valid JSON."""
    run = shstk(*args)
    equal(run.returncode, status, run.stderr)
    return json.loads(run.stdout)


@test
def record_prints_its_table_as_json():
    """record --top --json: the table, and -o x.json the same; -j implies --top"""
    for options in ['--top', '--json'], ['-j'], ['--top=1', '-j']:
        run = record('-q', *options, '-o', path('j.folded'), '-o', path('j.json'))
        equal(run.returncode, 0, run.stderr)
        got = json.loads(run.stdout)
        equal((got['type'], got['unit'], got['note']), ('cpu', 'nanoseconds', None), 'head')
        first = got['functions'][0]
        equal(first['function'], 'burn', 'the hottest')
        check(0 < first['self'] <= first['total'] <= got['total'], f'{got}')
        stacks = content(os.path.join(TMP, 'j.folded')).splitlines()
        equal(sum(int(line.rsplit(' ', 1)[1]) for line in stacks), got['total'], 'total')
        with open(os.path.join(TMP, 'j.json'), encoding='utf-8') as file:
            equal(json.load(file), got, '-o j.json')
        if '--top=1' in options:
            equal(len(got['functions']), 1, 'functions')


@test
def trace_prints_json():
    """trace --json: the threads and frames of the text"""
    with Waiting() as target:
        for options in ['-j'], ['--json', '--source=unwind', '--depth=2']:
            got = as_json('trace', '-p', target.pid, *options)
            equal((got['pid'], got['name']), (int(target.pid), 'target'), 'head')
            check(0 < got['stopped_ms'] < 1e6, f'{got["stopped_ms"]} ms')
            equal([t['name'] for t in got['threads']], ['target'] * 2, 'threads')
        for thread, function in zip(as_json('trace', '-jp', target.pid)['threads'],
                                    ('wait_forever', 'sleeper')):
            frames = {f['function']: f for f in thread['frames']}
            check(function in frames, f'{function} is not in {frames}')
            frame = frames[function]
            check(frame['file'].endswith('target.c') and frame['line'] > 1, f'{frame}')
            check(re.fullmatch('0x[0-9a-f]+', frame['address']), frame['address'])
            check(thread['complete'] and thread['error'] is None, f'{thread}')
        target.stop()
        got = as_json('trace', '-j', '-p', target.pid)
        equal([t['state'] for t in got['threads']], ['stopped'] * 2, 'states')


@test
def status_prints_json():
    """status --json: of the machine, and of processes"""
    text = shstk('status').stdout
    got = as_json('status', '--json')
    for key in 'arch', 'kernel', 'option', 'glibc', 'next':
        check(got[key] and got[key] in text, f'{key}: {got[key]!r} is not in {text}')
    equal(got['call'] is None, 'fails:' in text, 'call')
    with Waiting() as target:
        got = as_json('status', '-j', target.pid, target.pid)
        equal([p['pid'] for p in got], [int(target.pid)] * 2, 'processes')
        equal(sorted(str(t['tid']) for t in got[0]['threads']),
              sorted(os.listdir(f'/proc/{target.pid}/task')), 'threads')
        for thread in got[0]['threads']:
            equal(set(thread), {'tid', 'enabled', 'locked', 'error', 'pointer', 'size',
                                'entries'}, 'keys')
    equal(as_json('status', '-j', '4194303', status=1), [], 'no such process')


@test
def json_is_valid_whatever_names_are():
    """names with quotes, control characters and bytes that are no UTF-8"""
    names = (b'a"b\\c', b'a\tb\x01', b'\xff\xc3(', 'ä€𝄞'.encode(), b'\xed\xa0\x80', BIDI.encode())
    wanted = ('a"b\\c', 'a\tb\x01', '\ufffd\ufffd(', 'ä€𝄞', '\ufffd' * 3, BIDI)
    for name, text in zip(names, wanted):
        full = os.path.join(os.fsencode(TMP), name)
        shutil.copy(TARGET, full)       # not run: $TMPDIR may be mounted noexec
        run = subprocess.run([SHSTK, 'check', '-nj', '-r', '/', full], capture_output=True,
                             timeout=LIMIT, check=False)
        got = json.loads(run.stdout.decode())       # strict
        equal(os.path.basename(got[0]['program']), text, 'name')
        check(not set(run.stdout.decode()) & set(BIDI), f'{run.stdout}')


@test
def names_do_not_reach_the_terminal():
    """names with control characters, those of two bytes too, in what is said of them"""
    for name in b'/none\x1b[2J', b'/none\xc2\x9b2J', b'/none\x7f':
        run = subprocess.run([SHSTK, 'check', name], capture_output=True, timeout=LIMIT,
                             check=False)
        equal(run.stderr.count(b'/none?'), 1, f'{name} in {run.stderr}')
        check(not re.search(rb'[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]', run.stderr),
              f'{name}: {run.stderr}')
    full = os.path.join(os.fsencode(TMP), b'a\x1b[31m')
    shutil.copy(TARGET, full)
    run = subprocess.run([SHSTK, 'check', '-na', full], capture_output=True, timeout=LIMIT,
                         check=False)
    check(b'/a?[31m' in run.stdout and b'\x1b' not in run.stdout, f'{run.stdout}')
    equal(shstk('check', '/none©').stderr.count('/none©'), 1, 'what is no control character')


@test
def directions_of_writing_are_shown_as_escapes():
    """names with characters that change it, in messages and tables, are seen to have them"""
    escaped = ''.join(f'\\u{ord(c):04x}' for c in BIDI)
    equal(shstk('check', f'/none{BIDI}x').stderr.count(f'/none{escaped}x'), 1, 'message')
    full = os.path.join(TMP, f'a{BIDI}b')
    shutil.copy(TARGET, full)
    run = shstk('check', '-na', full)
    check(f'/a{escaped}b' in run.stdout and not set(run.stdout) & set(BIDI), f'{run.stdout}')
    equal(shstk('check', '/none\u202f\u05d0\u0627').stderr.count('/none\u202f\u05d0\u0627'), 1,
          'what is written from right to left')


# ---- Completion, manual pages, make help ----

def complete(line, cwd=None):
    """Returns what bash offers for a command line whose last word is being typed."""
    script = (f'. {BUILD}/completion.bash\n'
              'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shstk\n'
              'for word in "${COMPREPLY[@]}"; do printf "%s\\n" "$word"; done')
    words = [w for part in re.split(r'(=)| ', line) for w in [part]
             if w is not None and (w or not part)]
    run = subprocess.run(['bash', '--norc', '-c', script, 'bash', *words], text=True,
                         capture_output=True, timeout=LIMIT, check=False, cwd=cwd)
    equal(run.stderr, '', line)
    return run.stdout.split('\n')[:-1]


@test
def bash_completes_commands_and_options():
    """completion: commands, every option of every command, words after options"""
    equal(set(complete('shstk ')), {*COMMANDS, 'help', 'version'}, 'commands')
    equal(complete('shstk st'), ['status'], 'st')
    equal(set(complete('shstk help ')), set(COMMANDS), 'help')
    for command in COMMANDS:
        wanted = {o for row in table()[command] for o in row[:2]} - {'-'}
        check(len(wanted) > 4, f'{command}: {wanted}')
        equal(set(complete(f'shstk {command} -')), wanted, command)
    equal(complete('shstk record --via ag'), ['agent'], '--via ag')
    equal(complete('shstk record --via=p'), ['perf'], '--via=p')
    equal(set(complete('shstk record --via=')), {'auto', 'agent', 'perf', 'copies', 'rules', 'bpf'},
          '--via=')
    check('cycles' in complete('shstk record -q -e '), '-e')
    equal(complete('shstk record --heap-show peak_s'), ['peak_space'], '--heap-show')
    equal(complete('shstk record --freq 99 --wal'), ['--wall'], 'behind a number')
    equal(complete('shstk record --top=5 --wal'), ['--wall'], 'behind --top=5')
    check(str(os.getpid()) in complete('shstk trace -p '), 'process IDs')
    check(str(os.getpid()) in complete('shstk status '), 'process IDs')
    equal(complete('shstk trace --depth '), [], 'a number')


@test
def bash_completes_files_and_commands():
    """completion: files after -o, folders, the command and its files"""
    folder = tempfile.mkdtemp(dir=TMP)
    os.mkdir(f'{folder}/xdir')
    with open(f'{folder}/xfile', 'w', encoding='utf-8'):
        pass
    equal(set(complete('shstk record -o x', folder)), {'xdir', 'xfile'}, '-o')
    equal(set(complete('shstk unwind x', folder)), {'xdir', 'xfile'}, 'unwind')
    equal(complete('shstk check -r x', folder), ['xdir'], '-r')
    check('bash' in complete('shstk record --wall bas'), 'a command')
    check('bash' in complete('shstk run -- bas'), 'behind --')
    equal(set(complete('shstk record -- cat x', folder)), {'xdir', 'xfile'}, 'its file')
    equal(complete('shstk record cat --wa', folder), [], 'an option of the command')


@test
def manual_pages_name_every_option():
    """each manual page has the options of its command's table, and no others"""
    for command in COMMANDS:
        text = content(f'{PAGES}/shstk-{command}.1.rst')
        part = re.search(r'^OPTIONS\n=+\n(.*?)(?=^[A-Z ]+\n===|\Z)', text, re.S | re.M)
        common = {'--help', '-h', '--usage', '--version', '-V'}
        wanted = {o for row in table()[command] for o in row[:2]} - {'-'} - common
        heads = re.findall(r'^(?:\*\*)?-\S.*(?=\n    )', part[1] if part else '', re.M)
        got = {o for head in heads
               for o in re.findall(r'(?<![\w-])--?[a-zA-Z][a-z-]*', head)}
        equal(got, wanted, f'options in shstk-{command}(1)')
    text = content(f'{PAGES}/shstk.1.rst')
    for word in ('-h, --help', '--usage', '-V, --version', *COMMANDS):
        check(word in text, f'{word} is not in shstk(1)')


@test
def manual_pages_have_examples():
    """every manual page has EXAMPLES, and their options exist"""
    pages = glob.glob(f'{PAGES}/*.[1-8].rst')
    check(len(pages) > 8, f'{pages}')
    for page in pages:
        part = re.search(r'^EXAMPLES\n========\n(.*?)(?=^[A-Z ]+\n===|\Z)',
                         content(page), re.S | re.M)
        check(part, f'{page} has no EXAMPLES')
        for command, rest in re.findall(r'^    .*?\bshstk (\w+)(.*)$', part[1], re.M):
            check(command in (*COMMANDS, 'help'), f'{page}: {command}')
            rest = re.split(r' -- |[|>]', rest)[0]
            known = {o for row in table()[command] for o in row[:2]}
            for option in re.findall(r'(?<= )(--[a-z-]+|-[a-zA-Z])', rest):
                check(option in known, f'{page}: {command} {option}')


def make_says(target):
    """Returns what make prints for a target that only prints."""
    return subprocess.run(['make', '-s', '--no-print-directory', target], text=True,
                          capture_output=True, timeout=LIMIT, check=True,
                          env={k: v for k, v in os.environ.items()
                               if not k.startswith('MAKE')}).stdout


@test
def make_help_is_short():
    """make help: the five targets that people need and the way to the others, on one screen"""
    out = make_says('help')
    equal(re.findall(r'^make +?(?:(\S+) +| {3,})\S', out, re.M),
          ['', 'demo', 'check', 'install', 'module', 'help-all'], 'targets')
    check(len(out.splitlines()) < 24, f'lines: {out}')


@test
def make_help_all_is_whole():
    """make help-all: the whole text of every target, each target once"""
    files = ['Makefile', *glob.glob('*/build.mk'), *glob.glob('*/*/build.mk')]
    out = make_says('help-all')
    lines = ' '.join(out.split())
    targets = re.findall(r'^make(?: (\S+))?', out, re.M)
    equal(len(targets), len(set(targets)), 'number of targets')
    for name in files:
        for target, text in re.findall(r'^#   make (?:  |(\S+)) +(\S.*(?:\n#       +\S.*)*)',
                                       content(name), re.M):
            check(target in targets, f'make {target} is missing')
            if name != 'Makefile' and f'#   make {target} ' in content('Makefile'):
                continue        # said there
            text = ' '.join(text.replace('\n#', ' ').split())
            check(text in lines, f'make {target}: {text!r} is cut')


sys.exit(main())
