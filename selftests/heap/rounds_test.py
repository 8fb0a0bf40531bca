#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk record --heap -p` of servers at work, again and again: ROUNDS times (100) probes are
set and removed, and no request fails. Takes minutes: for `make heap-rounds`. Prints KTAP.
"""

import glob
import os
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
from harness import SHSTK, TMP, Process, Skip, check, children_of, main, run, test  # noqa: E402

ROUNDS = int(os.environ.get('ROUNDS') or 100)
SECONDS = 0.2       # length of a recording
PATIENCE = 450      # seconds after which a server has hung
NOBODY = {'user': 65534, 'group': 65534, 'extra_groups': [], 'umask': 0}
NGINX = '''
daemon off; worker_processes 1; error_log {tmp}/error.log; pid {tmp}/nginx.pid; user root;
events {{}}
http {{
	access_log off; gzip on; gzip_types text/plain; client_body_temp_path {tmp}/a;
	proxy_temp_path {tmp}/b; fastcgi_temp_path {tmp}/c; uwsgi_temp_path {tmp}/d;
	scgi_temp_path {tmp}/e;
	server {{ listen 127.0.0.1:{port}; root {tmp}; default_type text/plain; }}
}}
'''


def wait_for(condition, text):
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < end, text)
        time.sleep(0.1)


def rounds(pid):
    """Record a process ROUNDS times; most recordings have allocations, and complete stacks."""
    objects = truncated = 0
    out = os.path.join(TMP, 'out.folded')
    for number in range(ROUNDS):
        done = run(SHSTK, 'record', '--heap', '-p', str(pid), f'--duration={SECONDS}',
                   '--heap-show=alloc_objects', '-o', out)
        check(done.returncode == 0, f'round {number}: status {done.returncode}: {done.stderr}')
        found = re.search(r'(\d+) allocations of', done.stderr)
        check(found, f'round {number}: {done.stderr}')
        objects += int(found.group(1))
        if int(found.group(1)):
            with open(out, encoding='utf-8') as file:
                truncated += sum(int(line.rsplit(' ', 1)[1]) for line in file
                                 if '[truncated]' in line)
    print(f'# {ROUNDS} rounds: {objects} allocations, {truncated} in stacks that are truncated',
          flush=True)
    check(objects, 'no allocations at all')
    check(truncated <= objects / 100, f'{truncated} of {objects} are truncated')


@test
def nginx():
    """Debian's nginx, compressing pages"""
    server = shutil.which('nginx', path='/usr/sbin:/usr/bin')
    if not server:
        raise Skip('there is no nginx')
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        port = sock.getsockname()[1]
    with open(os.path.join(TMP, 'nginx.conf'), 'w', encoding='ascii') as file:
        file.write(NGINX.format(tmp=TMP, port=port))
    with open(os.path.join(TMP, 'page.txt'), 'w', encoding='ascii') as file:
        file.write('\n'.join(f'{i * 7919 % 100003} some words' for i in range(999)))
    request = urllib.request.Request(f'http://127.0.0.1:{port}/page.txt',
                                     headers={'Accept-Encoding': 'gzip'})
    failed, end, served = [], threading.Event(), [0]

    def fetch():
        while not end.is_set():
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    answer.read()
                served[0] += 1
            except OSError as err:
                failed.append(str(err))

    with Process([server, '-c', os.path.join(TMP, 'nginx.conf'), '-p', TMP],
                 stderr=subprocess.DEVNULL) as process:
        client = threading.Thread(target=fetch)
        try:
            wait_for(lambda: not socket.socket().connect_ex(('127.0.0.1', port)), 'no nginx')
            workers = children_of(process.pid)
            client.start()
            rounds(workers[0])
            check(children_of(process.pid) == workers, 'the worker is another one')
        finally:
            end.set()
            client.join()
            process.terminate()
    print(f'# {served[0]} requests, {len(failed)} failed')
    check(served[0] and not failed, f'requests failed: {failed[:3]}')


@test
def postgres():
    """Debian's postgres, under pgbench"""
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin'))
    if not found:
        raise Skip('there is no postgres')
    home = os.path.join(TMP, 'pg')
    os.chmod(TMP, 0o755)
    os.mkdir(home)
    os.chown(home, 65534, 65534)
    who = dict(NOBODY, cwd=home)
    done = run(f'{found[-1]}/initdb', '-D', f'{home}/data', '--no-sync', **who)
    check(done.returncode == 0, done.stderr)
    bench = (f'{found[-1]}/pgbench', '-h', home)
    with Process([f'{found[-1]}/postgres', '-D', f'{home}/data', '-k', home, '-c',
                  'listen_addresses=', '-c', 'fsync=off'], stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL, **who) as process:
        try:
            wait_for(lambda: not run(f'{found[-1]}/pg_isready', '-h', home).returncode,
                     'no postgres')
            done = run(*bench, '-i', '-q', 'postgres', **who)
            check(done.returncode == 0, done.stderr)
            before = children_of(process.pid)
            with Process([*bench, '-n', '-c', '2', '-T', '100000', 'postgres'],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         **who) as client:
                wait_for(lambda: len(set(children_of(process.pid)) - set(before)) >= 2,
                         'no connections')
                backend = sorted(set(children_of(process.pid)) - set(before))[0]
                try:
                    rounds(backend)
                    check(client.poll() is None, 'pgbench has ended')
                    check(backend in children_of(process.pid), 'the backend has ended')
                finally:
                    client.terminate()
                said = client.communicate(timeout=PATIENCE)[0]
            done = run(f'{found[-1]}/psql', '-h', home, '-d', 'postgres', '-Atc',
                       'select count(*) from pgbench_history', **who)
            print(f'# {done.stdout.strip()} transactions')
        finally:
            process.send_signal(signal.SIGINT)
    check('error' not in said.lower() and 'abort' not in said.lower(), said)


if __name__ == '__main__':
    raise SystemExit(main(lambda: 'needs root' if os.getuid() else None))
