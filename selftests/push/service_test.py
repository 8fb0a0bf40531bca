#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests what the service shstkd-profile needs of `shstk record`: options in a file, SIGHUP by which
they are read again, and the page of figures for Prometheus. Prints KTAP.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import pprof  # noqa: E402
from harness import TOP, Skip, check, equal, main, test  # noqa: E402
from received import (ENVIRONMENT, attributes, need_sender, nobody_listens, place,  # noqa: E402
                      unpacked, until, wake, walk, write)
from server import Server  # noqa: E402

OK, FAILED, USAGE, OWN = 0, 1, 2, 125
EXAMPLE = os.path.join(TOP, 'tools/record/profile.conf')


class Service:
    """A recording of a process that is busy, started as systemd starts a service."""

    def __init__(self, config):
        need_sender()
        self.config, self.log = config, place('log')
        path = os.path.join(harness.make_folder('/tmp'), 'notify')     # short enough
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.listener.bind(path)
        # pylint: disable-next=consider-using-with
        self.busy = subprocess.Popen([sys.executable, '-c', 'while True: pass'],
                                     preexec_fn=harness.end_with_parent)
        with open(self.log, 'wb') as log:
            # pylint: disable-next=consider-using-with
            self.child = subprocess.Popen(
                [harness.SHSTK, 'record', f'--config={config}', '-p', str(self.busy.pid)],
                stderr=log, env={**ENVIRONMENT, 'NOTIFY_SOCKET': path},
                preexec_fn=harness.end_with_parent)
        self.told, self.heard, self.ready = [], 0, False
        for target, args in (wake, (self.child, path)), (self.listen, ()):
            threading.Thread(target=target, args=args, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.child, self.busy:
            child.kill()
            child.wait()

    def listen(self):
        """Takes all messages at once, because the service waits when too many were not taken."""
        while 'END' not in self.told:
            self.told.append(self.listener.recv(4096).decode())
        self.listener.close()

    def has_said(self, begin):
        """Whether a message that was not looked at yet begins so. Looks at those before, too."""
        while self.heard < len(self.told):
            text = self.told[self.heard]
            self.heard += 1
            self.ready |= text.startswith('READY=1')
            if text.startswith(begin):
                return True
            if text == 'END' and not self.ready:
                raise Skip(f'nothing can be recorded here: {self.said()}')
            check(text != 'END', f'it has ended: {self.said()}')
        return False

    def hear(self, begin):
        """Waits until the service says a text that begins so."""
        until(lambda: self.has_said(begin), begin)

    def said(self):
        """What the service printed so far."""
        with open(self.log, encoding='utf-8') as file:
            return file.read().strip()

    def hang_up(self):
        self.child.send_signal(signal.SIGHUP)

    def end(self):
        self.child.terminate()
        self.hear('END')
        equal(self.child.wait(), 0, self.said())


def config_of(server, *more, zone='one'):
    """Writes a file with options; returns its path."""
    lines = ['# A comment.', '', f'push = {server.url}', f'spool={place("service")}',
             '  spool-wait =  150 ', 'every = 300ms', f'attribute = zone={zone}', 'quiet', *more]
    return write('profile.conf', '\n'.join(lines).encode())


def dry_run(text, *words):
    """Checks options in a file; returns the status and what was printed."""
    path = write('dry.conf', text)
    run = harness.shstk('record', '--dry-run', f'--config={path}', *words, env=ENVIRONMENT)
    equal(run.stdout, '', 'standard output')
    return run.returncode, run.stderr


# ---- Options in a file ----

@test
def options_in_a_file():
    """--config: blanks and comments are passed over, values go to the end of the line"""
    need_sender()
    out = place('from file.pb.gz')
    text = f'# heap\n\n \t\n\theap \r\noutput={out}  \n  top = 3\nquiet'
    conf = write('heap.conf', text.encode())
    run = harness.shstk('record', f'--config={conf}', '--',
                        os.path.join(harness.HERE, 'allocate'), env=ENVIRONMENT)
    equal(run.returncode, 0, run.stderr)
    check(os.path.getsize(out) > 0 and 'job' in run.stdout, run.stdout)


@test
def errors_have_lines():
    """--config: what is wrong is said with the line, and nothing is started"""
    for text, said in (
            (b'all\nevery = often', "dry.conf:2: duration 'often'"),
            (b'all\n\n#\nfreq = 99999', "dry.conf:4: frequency '99999'"),
            (b'pusch = x', "dry.conf:1: 'pusch' is no option"),
            (b'pus = x', "dry.conf:1: 'pus' is no option"),
            (b'--all', "dry.conf:1: '--all' is no option"),
            (b'= 3', "dry.conf:1: '' is no option"),
            (b'all = yes', "dry.conf:1: 'all' has no value"),
            (b'push', "dry.conf:1: 'push' needs a value"),
            (b'config = /etc/passwd', "dry.conf:1: 'config' is an option of the command line"),
            (b'help', "dry.conf:1: 'help' is no option"),
            (b'attribute = a', "dry.conf:1: attribute 'a' is not NAME=VALUE"),
            (b'a\0ll', 'zero byte'),
            (b'#' * (65 << 10), 'larger than 64 KiB'),
            (b'cacert = x', 'need --push=URL'),
            (b'push = http://127.0.0.1\nkey = x', '--key needs --cert')):
        status, err = dry_run(text, '--', 'touch', place('touched'))
        equal(status, USAGE, f'{text[:40]}: {err}')
        check(said in err, f'{text[:40]}: {err}')
    run = harness.shstk('record', '--config=/no/such/file', 'true')
    equal(run.returncode, USAGE, run.stderr)
    check("'/no/such/file'" in run.stderr, run.stderr)


@test
def dry_run_checks():
    """--dry-run: no error is status 0 and silence; a file that can't be read is one"""
    touch = ('--', 'touch', place('touched'))
    equal(dry_run(b'push = http://127.0.0.1:1\nkey = /dev/null\ncert = /dev/null', *touch),
          (OK, ''), 'good')
    status, err = dry_run(b'push = http://127.0.0.1:1\ntoken-file = /no/such/file', *touch)
    equal(status, FAILED, err)
    check("'/no/such/file'" in err, err)
    check(not os.path.exists(place('touched')), 'the command was started')


@test
def example():
    """what is installed as profile.conf has no error, and each option in its comments is one"""
    with open(EXAMPLE, encoding='utf-8') as file:
        lines = file.read().split('\n')
    run = harness.shstk('record', '--dry-run', f'--config={EXAMPLE}', env=ENVIRONMENT)
    equal((run.returncode, run.stderr), (OK, ''), 'the example')
    comments = [line[1:] for line in lines if re.match(r'#[a-z]', line)]
    check(len(comments) >= 10, f'{comments}')
    for line in comments:
        _, err = dry_run(line.encode(), 'true')
        check('dry.conf:1' not in err, f'{line}: {err}')


# ---- SIGHUP ----

def zones(server):
    return {attributes(request)[b'zone'] for request in server.requests}


def has_error_said(service, server, line, said):
    """Gives the service a file with an error: that is said, and the recording goes on."""
    config_of(server, line, zone='wrong')
    service.hang_up()
    until(lambda: said in service.said(), said)


@test
def reload():
    """SIGHUP: options are read again, an error in them changes nothing, and no request is lost"""
    with Server() as server, Service(config_of(server)) as service:
        service.hear('READY=1')
        until(lambda: server.requests, 'a request')
        has_error_said(service, server, 'every = often', 'profile.conf:9: duration')
        has_error_said(service, server, 'nothing', "profile.conf:9: 'nothing' is no option")
        has_error_said(service, server, 'token-file = /no/such', "'/no/such'")
        equal(service.said().count('recording goes on as before'), 3, service.said())
        before = len(server.requests)
        until(lambda: len(server.requests) > before + 1, 'requests of the old recording')
        equal(zones(server), {b'one'}, 'options')
        config_of(server, zone='two')
        service.hang_up()
        service.hear('RELOADING=1')
        service.hear('READY=1')
        until(lambda: b'two' in zones(server), 'requests of the new recording')
        equal([service.child.poll(), zones(server)], [None, {b'one', b'two'}], 'options')
        service.end()
    (folder,) = os.listdir(place('service'))
    with open(place(f'service/{folder}/counts'), encoding='ascii') as file:
        counts = {name: int(n) for name, n in (line.split() for line in file)}
    bodies = [request.body for request in server.requests]
    equal([len(set(bodies)), counts['put'], counts['sent']], [len(bodies)] * 3, 'requests')
    names = os.listdir(place(f'service/{folder}'))
    equal([name for name in names if 'request' in name], [], 'requests that wait')


# ---- The page of figures ----

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
SAMPLE = re.compile(rf'({NAME})(\{{{NAME}="[^"\\\n]*"\}})? ([0-9.e+]+)')


def figures(path):
    """Reads a page in Prometheus' text format; returns {name or name{label}: value}."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    check(text.endswith('\n'), 'the last line has no end')
    types, helps, values = {}, set(), {}
    for line in text[:-1].split('\n'):
        if line.startswith('# HELP '):
            name, explained = line.split(' ', 3)[2:]
            check(name not in helps and explained, line)
            helps.add(name)
        elif line.startswith('# TYPE '):
            name, kind = line.split(' ')[2:]
            check(name in helps and name not in types, line)
            types[name] = kind
        else:
            name, label, value = SAMPLE.fullmatch(line).groups()
            check(f'{name}{label}' not in values and name == list(types)[-1], line)
            values[name + (label or '')] = float(value)
    for name, kind in types.items():
        check(name.startswith('shstk_'), name)
        equal(name.endswith('_total'), kind == 'counter', f'{name} is a {kind}')
        check(kind in ('counter', 'gauge'), f'{name} is a {kind}')
    equal(set(types), helps, 'names')
    equal({name.split('{')[0] for name in values}, helps, 'values')
    return values


DROPPED = [f'shstk_push_requests_dropped_total{{reason="{reason}"}}'
           for reason in ('full', 'old', 'refused', 'damaged')]
SENDING = ['shstk_push_requests_put_total', 'shstk_push_requests_sent_total',
           'shstk_push_sent_bytes_total', 'shstk_push_requests_waiting', 'shstk_push_spool_bytes']


def record_heap(url, page, *options):
    """Records a program that allocates."""
    need_sender()
    return harness.shstk('record', '-q', '--heap', f'--push={url}', f'--spool={page}.spool',
                         '--spool-wait=150', '--timeout=150', f'--metrics={page}', *options, '--',
                         os.path.join(harness.HERE, 'allocate'), env=ENVIRONMENT)


@test
def page_of_allocations():
    """--metrics: what was recorded, sent, and waits; others may read it, whatever the umask"""
    page, out = place('heap.prom'), place('figures.pb.gz')
    old = os.umask(0o077)
    try:
        with Server() as server:
            run = record_heap(server.url, page, '-o', out)
    finally:
        os.umask(old)
    equal(run.returncode, 0, run.stderr)
    got = figures(page)
    profile = pprof.Decoded(out)
    which = [kind for kind, _ in profile.types].index('alloc_objects')
    equal(got['shstk_record_allocations_total'],
          sum(values[which] for _, values, _ in profile.samples), 'allocations')
    equal([got[name] for name in SENDING], [1, 1, len(server.requests[0].body), 0, 0], 'sending')
    equal([got[name] for name in DROPPED], [0] * 4, 'dropped')
    check(got['shstk_record_cpu_seconds_total'] > 0, 'no CPU time')
    equal(os.stat(page).st_mode & 0o777, 0o644, 'mode')
    equal([name for name in os.listdir(harness.TMP) if name.endswith('.new')], [], 'files left')


@test
def page_of_what_waits():
    """--metrics: requests that wait, and those that were refused"""
    page = place('waits.prom')
    run = record_heap(nobody_listens(), page)
    equal(run.returncode, 0, run.stderr)
    got = figures(page)
    equal([got[name] for name in SENDING[:4]], [1, 0, 0, 1], 'sending')
    check(got['shstk_push_spool_bytes'] > 100, got)


@test
def page_that_cannot_be():
    """--metrics: a file that can't be written is said before the command is started"""
    for page in '/no/such/folder/x.prom', place('folder.prom'):
        os.makedirs(place('folder.prom'), exist_ok=True)
        run = harness.shstk('record', '-q', '--heap', '-o', place('none.pb.gz'),
                            f'--metrics={page}', '--', 'touch', place('touched'))
        equal(run.returncode, OWN, run.stderr)
        check(f"'{page}'" in run.stderr and '--metrics' in run.stderr, run.stderr)
    check(not os.path.exists(place('touched')), 'the command was started')


def samples_of(requests):
    """How many samples requests have."""
    total = 0
    for body in map(unpacked, requests):
        texts = list(walk(body, 2, 5))
        for one in walk(body, 1, 2, 2):
            (kind,) = walk(one, 1, 1)
            if texts[kind] == b'samples':
                total += sum(n for values in walk(one, 2, 4) for n in pprof.packed(values))
    return total


@test
def page_of_samples():
    """--metrics: samples of all profiles that were sent are summed up, while recording goes on"""
    page = place('samples.prom')
    with Server() as server, Service(config_of(server, f'metrics = {page}')) as service:
        service.hear('READY=1')
        until(lambda: len(server.requests) > 2, 'requests')
        until(lambda: figures(page)['shstk_record_samples_total'] > 0, 'samples')
        check(figures(page)['shstk_record_cpu_seconds_total'] > 0, 'no CPU time')
        service.end()
    got = figures(page)
    equal(got['shstk_record_samples_total'], samples_of(server.requests), 'samples')
    check(got['shstk_record_samples_truncated_total'] <= got['shstk_record_samples_total'], got)
    check(got['shstk_record_samples_lost_total'] >= 0, got)


if __name__ == '__main__':
    sys.exit(main())
