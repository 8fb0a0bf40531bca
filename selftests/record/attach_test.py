#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record -p` on real programs: Debian's, static ones, in containers, with hidden
processes.

Nearly all stacks must reach the program's first frame. Prints KTAP.
"""

import contextlib
import glob
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    HERE, NOBODY, SHSTK, TMP, Process, Skip, check, lost_records, main, make_folder,
    need_nobody, run, stack_lines, test, tries)
from perf import perf  # noqa: E402

TARGET = os.path.join(HERE, 'target')
PATIENCE = 450      # seconds after which a program counts as hung
WORK = 0.8          # CPU seconds of each program to be recorded
LONGER = 4, 20, 60  # seconds of a recording, as on a busy machine nothing may run for a while

PYTHON = '''
import hashlib, json, re
def down(n):
    return down(n - 1) + 1 if n else len(json.loads('{"a": [1, 2, 3]}'))
while True:
    down(20), re.sub("a", "b", "banana" * 20), hashlib.sha256(b"x" * 1000).hexdigest()
'''
SQL = ('with recursive c(x) as (select 1 union all select x + 1 from c '
       'where x < 2000000000) select sum(x * x % 7) from c')
NODE = '''
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
for (;;) { fib(20); JSON.parse(JSON.stringify({a: [1, 2], b: "x".repeat(99)})); }
'''
JAVA = '''
import java.util.*;
public class Work {
	interface Shape { double area(); }
	record Circle(double r) implements Shape { public double area() { return Math.PI * r * r; } }
	record Square(double s) implements Shape { public double area() { return s * s; } }
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	static double shapes(int n) {
		List<Shape> all = new ArrayList<>();
		for (int i = 0; i < n; i++) all.add(i % 3 == 0 ? new Circle(i) : new Square(i));
		return all.stream().filter(x -> x.area() > 10).mapToDouble(Shape::area).sum();
	}
	static int text(int n) {
		StringBuilder b = new StringBuilder();
		for (int i = 0; i < n; i++) b.append(String.format("%d:%s;", i, Integer.toHexString(i)));
		return b.toString().split(";").length;
	}
	static int thrown(int depth) {
		if (depth == 0) throw new IllegalStateException();
		return 1 + thrown(depth - 1);
	}
	static int caught(int n) {
		int sum = 0;
		for (int i = 0; i < n; i++)
			try { sum += thrown(i % 20); } catch (IllegalStateException e) { sum++; }
		return sum;
	}
	public static void main(String[] args) {
		for (double sum = 0; sum < 1e300; ) sum += fib(25) + shapes(5000) + text(500) + caught(4);
	}
}
'''
GO = '''
package main
import ("crypto/sha256"; "sort")
var sink int
func down(n int, b []byte, v []int) int {
	if n > 0 { return down(n-1, b, v) + 1 }
	s := sha256.Sum256(b)
	for i := range v { v[i] = int(s[i%32]) * 7919 % 101 }
	sort.Ints(v)
	return v[0]
}
func main() {
	for i := 0; i < 2; i++ {
		go func() { b := make([]byte, 999); v := make([]int, 99); for { sink += down(9, b, v) } }()
	}
	select {}
}
'''
C = '''
#include <stdlib.h>
static volatile int sink;
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static __attribute__((noinline)) void work(void)
{
	int v[500];
	for (int i = 0; i < 500; i++) v[i] = rand();
	qsort(v, 500, sizeof(*v), order);
	sink += v[7];
}
int main(void) { for (;;) work(); }
'''
# The first thread ends; only the second one is left.
C_THREAD = C.replace('int main(void)', 'static void *thread(void *arg)') + '''
#include <pthread.h>
int main(void)
{
	pthread_t id;
	pthread_create(&id, NULL, thread, NULL);
	pthread_exit(NULL);
}
'''


def tool(name):
    """Returns the path of a program, or skips if it is not installed."""
    path = shutil.which(name) or shutil.which(name, path='/usr/sbin:/sbin')
    if not path:
        raise Skip(f'there is no {name}')
    return path


def field(pid, number):
    """Returns a number of /proc/PID/stat, or 0 if the process is gone."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            return int(file.read().rsplit(')', 1)[1].split()[number - 3])
    except (OSError, IndexError):
        return 0


def family(pid):
    """Returns a process and its children."""
    return [pid] + [int(name) for name in os.listdir('/proc')
                    if name.isdigit() and field(name, 4) == pid]


def cpu_time(pid):
    """Returns the CPU seconds of a process and its children so far."""
    return sum(field(p, 14) + field(p, 15) for p in family(pid)) / os.sysconf('SC_CLK_TCK')


def wait_for(what, text):
    """Waits until a function returns something true, and returns it."""
    end = time.monotonic() + PATIENCE
    while True:
        got = what()
        if got:
            return got
        check(time.monotonic() < end, text)
        time.sleep(0.05)


@contextlib.contextmanager
def running(*args, **kwargs):
    """A program that works until this ends it."""
    kwargs.setdefault('stdout', subprocess.DEVNULL)
    kwargs.setdefault('stderr', subprocess.DEVNULL)
    kwargs.setdefault('cwd', TMP)
    with Process(args, start_new_session=True, **kwargs) as process:
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def folded(path):
    """Returns [(frames, value)] of a file of folded stacks."""
    with open(path, encoding='utf-8') as file:
        return [(stack.split(';'), value) for stack, value in stack_lines(file.read())]


def attach(pid, start=None):
    """Records a process and its children while they work: (stacks, messages). Again if something found
    no room, as the recorder had to wait for a CPU: it may tell of mapped files.

    The context that start() returns is entered once recording is on.
    """
    for _ in tries():
        stacks, text = attach_once(pid, start)
        if not lost_records(text):
            break
    return stacks, text


def attach_once(pid, start):
    """The same, once."""
    out = os.path.join(TMP, f'out-{pid}.folded')
    targets = [word for p in family(pid) for word in ('-p', str(p))]
    with Process([SHSTK, 'record', '-F', '499', '-o', out, *targets], text=True,
                 stderr=subprocess.PIPE) as recorder:
        first = recorder.stderr.readline()
        while first.endswith(': not recorded\n'):   # one of them has just ended
            first = recorder.stderr.readline()
        before = cpu_time(pid)
        try:
            with start() if start else contextlib.nullcontext():
                if 'by perf events' in first:
                    wait_for(lambda: cpu_time(pid) > before + WORK
                             or recorder.poll() is not None, f'{pid} does not work')
        finally:
            recorder.send_signal(signal.SIGINT)
            text = first + recorder.communicate()[1]
    if re.search('not permitted|this kernel has none', text):
        raise Skip(text.strip())
    return folded(out) if os.path.exists(out) else [], text


def whole(stacks, text, least=0.99):
    """Checks that nearly all of the stacks reach the first frame."""
    total = sum(value for _, value in stacks)
    cut = [(value, frames) for frames, value in stacks if '[truncated]' in frames]
    check(total > WORK * 1e9 / 2, f'{total / 1e9} s recorded: {text}')
    check(sum(value for value, _ in cut) <= (1 - least) * total,
          f'{sum(v for v, _ in cut) / total:.4f} cut off: {text} '
          + '\n'.join(';'.join(frames[:5]) for _, frames in sorted(cut)[-4:]))


@test
def python3():
    """Debian's python3"""
    with running(tool('python3'), '-c', PYTHON) as pid:
        wait_for(lambda: cpu_time(pid) > 0.2, 'python3 does not work')
        whole(*attach(pid))


@test
def sqlite3():
    """Debian's sqlite3"""
    with running(tool('sqlite3'), ':memory:', SQL) as pid:
        whole(*attach(pid))


@test
def node():
    """node, whose generated code keeps frame pointers"""
    with running(tool('node'), '-e', NODE) as pid:
        wait_for(lambda: cpu_time(pid) > 0.5, 'node does not work')
        whole(*attach(pid))


@test
def java():
    """java, by what HotSpot has written down of its code"""
    if platform.machine() != 'x86_64':
        raise Skip('HotSpot is known on x86-64 only')
    source = os.path.join(TMP, 'Work.java')
    with open(source, 'w', encoding='ascii') as file:
        file.write(JAVA)
    result = run(tool('javac'), '-d', TMP, source)
    check(result.returncode == 0, result.stderr)
    with running(tool('java'), '-cp', TMP, 'Work') as pid:
        wait_for(lambda: cpu_time(pid) > 3, 'java does not work')
        stacks, text = attach(pid)
        whole(stacks, text)
        check(any(frames[-3:] == ['Work.fib'] * 3 for frames, _ in stacks),
              f'no Work.fib: {[frames[-3:] for frames, _ in stacks[:9]]}')


def compiled(name, source, *command):
    """Returns the path of a program that is built from a text."""
    path = os.path.join(TMP, name)
    with open(path, 'w', encoding='ascii') as file:
        file.write(source)
    out = path.rsplit('.', 1)[0]
    env = dict(os.environ, CGO_ENABLED='0', GOCACHE=os.path.join(TMP, 'go-cache'))
    done = run(*command, '-o', out, path, env=env)
    check(done.returncode == 0, done.stderr)
    return out


@test
def static_go():
    """a static program of Go"""
    with running(compiled('worker.go', GO, tool('go'), 'build')) as pid:
        whole(*attach(pid))


@test
def static_programs():
    """static programs, of glibc and of musl"""
    for compiler in 'gcc', 'musl-gcc':
        path = compiled(f'work-{compiler}.c', C, tool(compiler), '-O2', '-static')
        with running(path) as pid:
            stacks, text = attach(pid)
            whole(stacks, text)
            check(any('work' in frames and 'main' in frames for frames, _ in stacks), text)


def mappings(pid):
    """Returns the text of /proc/PID/maps."""
    with open(f'/proc/{pid}/maps', encoding='utf-8', errors='replace') as file:
        return file.read()


def sees_deleted_files():
    """Returns whether mapped files that are deleted can be opened."""
    folder = '/proc/self/map_files'
    try:
        with open(f'{folder}/{os.listdir(folder)[0]}', 'rb'):
            return True
    except OSError:
        return False


@test
def first_thread_ended():
    """a program whose first thread has ended, so that /proc/PID shows no mappings"""
    path = compiled('one-left.c', C_THREAD, tool('gcc'), '-O2', '-pthread')
    with running(path) as pid:
        wait_for(lambda: not mappings(pid), 'its first thread does not end')
        for deleted in (False, True) if sees_deleted_files() else (False,):
            if deleted:
                os.unlink(path)
            stacks, text = attach(pid)
            whole(stacks, text)
            check(any(frames[-1] != 'work' and 'work' in frames and 'thread' in frames
                      for frames, _ in stacks), f'{stacks[:3]} {text}')
            done = run(SHSTK, 'trace', '-p', str(pid))
            if 'no permission' in done.stderr and os.getuid():
                continue
            names = re.findall(r'^  #\d+ +(\w+)', done.stdout, re.M)
            check(done.returncode == 0 and 'work' in names and 'thread' in names,
                  f'{done.stderr} {done.stdout}')
            done = run(SHSTK, 'check', '-p', str(pid))
            said = run(SHSTK, 'record', '--heap', '-p', str(pid), '-o', '/dev/null',
                       '--format=folded').stderr
            check('by their names' not in said, said)
            name = path + (' (deleted)' if deleted else '')
            check(done.returncode >= 0 and done.stdout.startswith(f'{name}: '),
                  f'{done.returncode} {done.stderr} {done.stdout}')


@contextlib.contextmanager
def own_port():
    """A port that only a server with SO_REUSEADDR gets meanwhile: no other program, and no client."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(('127.0.0.1', 0))
        yield sock.getsockname()[1]


NGINX = '''
daemon off; worker_processes 1; error_log {tmp}/error.log; pid {tmp}/nginx.pid; user root;
events {{}}
http {{
	access_log off; gzip on; gzip_comp_level 9; gzip_types text/plain;
	client_body_temp_path {tmp}/a; proxy_temp_path {tmp}/b; fastcgi_temp_path {tmp}/c;
	uwsgi_temp_path {tmp}/d; scgi_temp_path {tmp}/e;
	server {{ listen 127.0.0.1:{port}; root {tmp}; default_type text/plain; }}
}}
'''


@test
def nginx():
    """Debian's nginx, serving"""
    server = tool('nginx')
    if os.getuid():
        raise Skip('needs root')
    with own_port() as port:
        serve_with_nginx(server, port)


def serve_with_nginx(server, port):
    with open(os.path.join(TMP, 'nginx.conf'), 'w', encoding='ascii') as file:
        file.write(NGINX.format(tmp=TMP, port=port))
    with open(os.path.join(TMP, 'page.txt'), 'w', encoding='ascii') as file:
        file.write('\n'.join(f'{i * 7919 % 100003} some words' for i in range(9999)))
    request = urllib.request.Request(f'http://127.0.0.1:{port}/page.txt',
                                     headers={'Accept-Encoding': 'gzip'})
    failed, end = [], threading.Event()

    def fetch():
        while not end.is_set():
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    answer.read()
            except OSError as err:
                failed.append(str(err))

    with running(server, '-c', os.path.join(TMP, 'nginx.conf'), '-p', TMP) as pid:
        wait_for(lambda: not socket.socket().connect_ex(('127.0.0.1', port)), 'no nginx')
        client = threading.Thread(target=fetch)
        client.start()
        try:
            result = attach(pid)
        finally:
            end.set()
            client.join()
    check(not failed, f'requests failed: {failed[:3]}')
    whole(*result)


@test
def postgres():
    """Debian's postgres, answering queries in a process made after recording began"""
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin'))
    if not found:
        raise Skip('there is no postgres')
    need_nobody()
    home = os.path.join(TMP, 'pg')
    os.chmod(TMP, 0o755)
    os.mkdir(home)
    sockets = make_folder(None)     # their names are short: the tree may lie deep
    for folder in home, sockets:
        os.chown(folder, 65534, 65534)
    who = dict(NOBODY, cwd=home)
    done = run(f'{found[-1]}/initdb', '-D', f'{home}/data', '--no-sync', **who)
    check(done.returncode == 0, done.stderr)
    query = ('select sum(a * b % 7) from generate_series(1, 9000) a, '
             'generate_series(1, 9000) b')
    with running(f'{found[-1]}/postgres', '-D', f'{home}/data', '-k', sockets, '-c',
                 'listen_addresses=', '-c', 'jit=off', **who) as pid:
        wait_for(lambda: not run(f'{found[-1]}/pg_isready', '-h', sockets).returncode,
                 'no postgres')
        result = attach(pid, lambda: running(f'{found[-1]}/psql', '-h', sockets, '-d', 'postgres',
                                             '-c', query, **who))
    whole(*result)


def make_root():
    """Makes a folder with the target and its libraries, to be the root of a container."""
    root = os.path.join(TMP, 'root')
    libs = re.findall(r'(/\S+)', run('ldd', TARGET).stdout)
    for path in libs + [TARGET]:
        there = root + ('/inside/target' if path == TARGET else path)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.copy(path, there)
    return root


def in_container(*namespaces, **who):
    """Runs the target in namespaces of its own with another root; then its program is deleted."""
    if os.getuid():
        raise Skip('needs root')
    os.chmod(TMP, 0o755)
    unshare = ['unshare', *namespaces, '--mount', '--pid', '--fork', '--kill-child']
    done = run(*unshare, 'true', **who)
    if done.returncode:
        raise Skip(f'no such namespaces: {done.stderr.strip()}')
    root = make_root()
    with running(*unshare, 'chroot', root, '/inside/target', 'forever', **who) as pid:
        inner = wait_for(lambda: [p for p in family(pid)[1:] if os.path.basename(
            os.readlink(f'/proc/{p}/exe')) == 'target'], 'nothing in the container')[0]
        for deleted in False, True:
            if deleted:
                os.unlink(f'{root}/inside/target')
            stacks, text = attach(inner)
            whole(stacks, text)
            good = sum(v for f, v in stacks if 'main' in f and 'do_forever' in f)
            check(good > 0.99 * sum(v for _, v in stacks), f'deleted: {deleted}: {text}')


@test
def container():
    """in another mount and pid namespace, with another root; its program is deleted"""
    in_container()


@test
def container_of_a_user():
    """the same in another user namespace, whose root is an ordinary user outside"""
    need_nobody()
    in_container('--user', '--map-root-user', **NOBODY)


@test
def hidden_processes():
    """an ordinary user, where /proc hides the processes of others"""
    with open('/proc/sys/kernel/perf_event_paranoid', encoding='ascii') as file:
        level = int(file.read())
    if os.getuid() or level > 2:
        raise Skip(f'needs root and kernel.perf_event_paranoid up to 2, which is {level}')
    need_nobody()
    os.chmod(TMP, 0o755)
    out = os.path.join(TMP, 'hidden')
    os.mkdir(out)
    os.chmod(out, 0o777)
    with running(TARGET, 'forever', **NOBODY) as pid:
        # Samples in the loader could be more than a hundredth on a busy machine.
        wait_for(lambda: cpu_time(pid) > 0.05, 'the target does not work')
        hide = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
        for duration in LONGER:
            done = run('unshare', '--mount', 'sh', '-c', hide, 'sh', 'setpriv', '--reuid=65534',
                       '--regid=65534', '--clear-groups', SHSTK, 'record', '-F', '499',
                       f'--duration={duration}', '-o', f'{out}/x.folded', '-p', str(pid))
            if any(word in done.stderr for word in ('mount:', 'unshare:', 'not permitted')):
                raise Skip(done.stderr.strip())
            check(done.returncode == 0, done.stderr)
            stacks = folded(f'{out}/x.folded')
            good = sum(v for f, v in stacks if 'main' in f and 'do_forever' in f)
            # What an ordinary user may not sample has no stack.
            seen = sum(v for f, v in stacks if '[kernel]' not in f)
            if seen > WORK * 1e9 / 2:
                break
    check(good > 0.99 * seen > 0, f'{stacks[:3]} {done.stderr}')


@test
def many_processes():
    """-a, with 200 processes at work"""
    if os.getuid():
        raise Skip('needs root')
    # No other process on this machine has this name.
    program = os.path.join(TMP, f'crowd-{os.getpid()}')
    shutil.copy(TARGET, program)
    # One session: the scheduler may share the CPU among sessions, whatever the processes' nice
    # values, and each of 200 sessions would get as much as the recorder.
    crowd = f'for i in $(seq 200); do nice -n 19 {program} forever & done; wait'
    with running('sh', '-c', crowd):
        out = os.path.join(TMP, 'all.folded')
        for duration in LONGER:
            done = run(SHSTK, 'record', '-a', '-F', '499', f'--duration={duration}', '-o', out)
            if 'not permitted' in done.stderr:
                raise Skip(done.stderr.strip())
            check(done.returncode == 0, done.stderr)
            ours = [(frames, value) for frames, value in folded(out)
                    if frames[0] == os.path.basename(program)]
            total = sum(value for _, value in ours)
            taken, lost = map(int, re.search(r'(\d+) samples?, (\d+) lost', done.stderr).groups())
            if total > 0.2e9 and not lost:
                break
    cut = [(value, ';'.join(frames)) for frames, value in ours if '[truncated]' in frames]
    # What is lost tells of mappings, too.
    most = 0.01 + lost / max(taken + lost, 1)
    check(total > 0.2e9 and sum(value for value, _ in cut) <= most * total,
          f'of {total} ns, {cut} are cut off: {done.stderr}')


@test
def many_threads():
    """a process of 5000 threads: all of them"""
    crowd, out = os.path.join(HERE, 'crowd'), os.path.join(TMP, 'crowd.folded')
    with open('/proc/sys/kernel/threads-max', encoding='ascii') as file:
        most = int(file.read())
    with Process([crowd, '5000', '500'], stdin=subprocess.PIPE, text=True,
                 stdout=subprocess.PIPE) as target:
        if os.getuid() or most < 20000 or target.stdout.readline() != 'ready\n':
            target.kill()
            raise Skip('needs root, and that many threads')
        with Process([SHSTK, 'record', '-F', '10000', '-o', out, '-p', str(target.pid)],
                     stderr=subprocess.PIPE, text=True) as recorder:
            text = recorder.stderr.readline()
            if 'by perf events' in text:
                target.stdin.write('x')
                target.stdin.flush()
                target.stdout.readline()
            recorder.send_signal(signal.SIGINT)
            text += recorder.communicate()[1]
        target.kill()
    if 'not permitted' in text:
        raise Skip(text.strip())
    found = re.search(r' (\d+) lost, (\d+) threads, 1 process', text)
    check(found, text)
    # A ring is full if it may not be larger, or if the recorder has to wait for a CPU. A thread is not
    # known if all that tells of it was lost.
    lost, threads = int(found[1]), int(found[2])
    # By events of the CPUs a thread may come and go between two samples.
    check('of the CPUs, as there are too many' in text or threads + lost >= 5000, text)
    stacks = folded(out)
    inside = [(f, v) for f, v in stacks if 'one_of_many' in f]
    good = sum(v for f, v in inside if {'start_thread', 'thread'} <= set(f))
    check(good > 0.9 * sum(v for _, v in inside) > 0, f'{stacks[:5]} {text}')


@test
def other_recordings():
    """-a, while perf records too: it gets no flags that it did not ask for"""
    if os.getuid():
        raise Skip('needs root')
    out = os.path.join(TMP, 'others.folded')
    with Process([SHSTK, 'record', '-a', '-F', '19', '-o', out],
                 stderr=subprocess.PIPE, text=True) as ours:
        first = ours.stderr.readline()
        try:
            if 'not permitted' in first:
                raise Skip(first.strip())
            # perf 6.1 destroyed its own stack by these environments, each time.
            done = perf('record', '-g', '-o', os.path.join(TMP, 'others.data'),
                        'sh', '-c', 'ls /; ls /tmp >/dev/null')
            check(done.returncode == 0, f'perf: {done.returncode} {done.stderr}')
        finally:
            ours.send_signal(signal.SIGINT)
            ours.communicate()


sys.exit(main())
