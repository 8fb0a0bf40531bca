#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests a fleet against OpenTelemetry's Collector itself: three machines send what they record all
the time, while all that can fail does so; what the Collector got is what was recorded. Prints KTAP.

The machines are network namespaces with host names of their own. The Collector sends on what it
gets to a server of this script, which sums it up. Each recorder writes its profiles into files,
too, and both are compared, profile by profile. FLEET_SECONDS says how long it lasts.
"""

import ctypes
import glob
import os
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), 'push')]
import harness  # noqa: E402
import pprof  # noqa: E402
from harness import Skip, check, equal, main, test  # noqa: E402
from received import (ENVIRONMENT, certificates, need_sender, place, senders,  # noqa: E402
                      unpacked, walk, write)
from server import Server, answer  # noqa: E402

SECONDS = int(os.environ.get('FLEET_SECONDS', '600'))
EVERY = max(2, SECONDS // 60)
MACHINES = 'one', 'two', 'three'
DISK_KIB = 512              # of the third machine's spool
OWN, LATER = 125, 75        # exit status: a part was lost; it may be sent later
CLONE_NEWNET = 0x40000000
ALLOCATE = os.path.join(harness.BUILD, 'selftests/push/allocate')
TOKEN = 'a-token-of-the-fleet'
PROGRAM = []                # path of the Collector
# Each sender may lose one answer where the Collector ends, two times, where the link is cut, and
# where it is killed itself.
KINDS = 3
MOST_TWICE = 2 * KINDS * len(MACHINES) + KINDS + 1

PLAIN = """
receivers:
  otlp:
    protocols:
      http: {{endpoint: "0.0.0.0:{port}"}}
  otlp/guarded:
    protocols:
      http:
        endpoint: "127.0.0.1:{guarded}"
        tls: {{cert_file: {server}.pem, key_file: {server}.key, client_ca_file: {ca}.pem}}
        auth: {{authenticator: token}}
exporters:
  otlphttp:
    endpoint: {sink}
    compression: none
    timeout: 100s
    sending_queue: {{enabled: false}}
    retry_on_failure: {{enabled: false}}
extensions:
  token: {{token: {token}}}
service:
  extensions: [token]
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    profiles: {{receivers: [otlp, otlp/guarded], exporters: [otlphttp]}}
    metrics: {{receivers: [otlp], exporters: [otlphttp]}}
"""


def until(condition, what, limit=100):
    """Waits until something is true."""
    end = time.monotonic() + limit
    while not condition():
        check(time.monotonic() < end, f'{what}: not within {limit} s')
        time.sleep(0.1)


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as one:
        return one.getsockname()[1]


def ip(*args):
    run = harness.run('ip', *args)
    if run.returncode:
        raise Skip(f'ip {" ".join(args)}: {run.stderr.strip()}')


# ---- The Collector ----

class Collector:
    """OpenTelemetry's Collector, which can be killed and started again."""

    def __init__(self, sink):
        self.child = None
        self.port, self.guarded = free_port(), free_port()
        certificates()
        text = PLAIN.format(port=self.port, guarded=self.guarded, sink=sink.url, token=TOKEN,
                            server=place('server'), ca=place('ca'))
        self.config = write('collector.yaml', text.encode())
        self.log = open(place('collector.log'), 'wb')      # pylint: disable=consider-using-with

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait(harness.LIMIT)

    def start(self):
        self.child = harness.Process(
            [PROGRAM[0], '--feature-gates=service.profilesSupport', f'--config={self.config}'],
            stdout=self.log, stderr=self.log, env=ENVIRONMENT)
        until(self.answers, 'the Collector')

    def answers(self):
        if self.child.poll() is not None:
            with open(self.log.name, encoding='utf-8', errors='replace') as file:
                check(False, f'the Collector has ended: {file.read()[-2000:]}')
        with socket.socket() as one:
            return not one.connect_ex(('127.0.0.1', self.port))

    def end(self, signo=signal.SIGTERM):
        self.child.send_signal(signo)
        self.child.wait(harness.LIMIT)


# ---- What the server got ----

def sums_of(request):
    """What the profiles of a request have, in groups: host, time of the profile with its length,
    kind of values, id; each is a table of sums for process, service, function. Profiles of allocations
    all begin at one time."""
    body, found = unpacked(request), {}
    texts = [text.decode() for text in walk(body, 2, 5)]
    functions = [texts[next(walk(one, 1), 0)] for one in walk(body, 2, 3)]
    lines = [next(walk(one, 3, 1), 0) for one in walk(body, 2, 2)]
    leaves = [next((pprof.packed(n)[0] for n in walk(one, 1)), 0) for one in walk(body, 2, 7)]
    for resource in walk(body, 1):
        said = {}
        for pair in walk(resource, 1, 1):
            for value in walk(pair, 2):
                said[next(walk(pair, 1)).decode()] = next(iter(v for _, v in pprof.fields(value)))
        who = said.get('process.pid', 0), said['service.name'].decode()
        for one in walk(resource, 2, 2):
            key = (said['host.name'].decode(), (next(walk(one, 3)), next(walk(one, 4))),
                   texts[next(walk(one, 1, 1))], next(walk(one, 7)))
            check(key not in found, f'an id is there twice in one request: {key}')
            table = found.setdefault(key, {})
            for sample in walk(one, 2):
                name = functions[lines[leaves[next(walk(sample, 1), 0)]]]
                value = sum(n for values in walk(sample, 4) for n in pprof.packed(values))
                table[*who, name] = table.get((*who, name), 0) + value
    return found


def sums_of_all(requests):
    """The same of all requests, and how many came twice: those whose answer was lost."""
    found, twice = {}, 0
    for request in requests:
        new = sums_of(request)
        again = [key for key in new if key in found]
        check(again in ([], list(new)), f'ids that other requests have: {again}')
        for key in again:
            equal(new[key], found[key], f'another profile with the same id {key}')
        twice += bool(again)
        found.update(new)
    return found, twice


def service_of(labels):
    """The service of a sample by its labels, as shstk-push(1) says; None: its process is not known."""
    units = [part for part in labels.get('cgroup', '').split('/')
             if part.endswith('.service') and not part.startswith('user@')]
    if units and 'container' not in labels:
        return units[-1].removesuffix('.service').partition('@')[0]
    return labels.get('process')


def recorded(path, command):
    """What a file has: for each kind of values a table of sums for process, service, function; and
    the processes of which only threads are known, with the names of these. command: the one that was
    recorded, which is the service then, or None."""
    profile = pprof.Decoded(path)
    tables, vague = [{} for _ in profile.types], {}
    for ids, values, labels in profile.samples:
        names, pid = profile.frames(ids), labels.get('pid', 0)
        service = command or service_of(labels)
        if service is None:
            vague.setdefault(pid, set()).add(labels.get('thread', 'unknown_service'))
        for table, value in zip(tables, values):
            key = pid, service, names[-1] if names else ''
            if value:
                table[key] = table.get(key, 0) + value
    kinds = (kind for kind, _ in profile.types)
    return (profile.time, profile.duration), dict(zip(kinds, tables)), vague


def summed(table, vague):
    """The sums of a table. Those of processes of which only threads are known have no service."""
    sums = {}
    for (pid, service, name), value in table.items():
        key = pid, None if pid in vague else service, name
        if value:
            sums[key] = sums.get(key, 0) + value
    return sums


# ---- Machines ----

class Machine:
    """A network namespace with a host name, which records all that this machine does."""

    def __init__(self, number, name, port):
        self.number, self.name = number, name
        self.folder = place(name)
        os.mkdir(self.folder)
        self.url = f'http://10.213.{number}.1:{port}'
        self.recorders, self.before, self.logs = {}, {}, []
        disk = f'mount -t tmpfs -o size={DISK_KIB}k,mode=700 none {self.folder}/spool.cpu; '
        os.mkdir(f'{self.folder}/spool.cpu', 0o700)
        self.holder = harness.Process(
            ['unshare', '-n', '-u', '-m', 'sh', '-c',
             f'hostname {name}; {disk if name == "three" else ""} ip link set lo up; echo; '
             'read -r end'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.connect()
        self.services, self.service = set(), self.start_service()
        for kind, options in (('cpu', ['-a', '-F', '20']), ('waits', ['-a', '--off-cpu'])):
            self.start(kind, *options)
            time.sleep(1)
            if self.recorders[kind].poll() is not None:
                raise Skip(f'{kind} can not be recorded here: {self.said()}')
        self.start('heap', '--heap', '--', 'sh', '-c',
                   f'while [ ! -e {self.folder}/stop ]; do {ALLOCATE}; sleep 1; done')

    def connect(self):
        net, link = f'10.213.{self.number}', f'fleet{self.number}'
        ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns',
           str(self.holder.pid))
        ip('addr', 'add', f'{net}.1/24', 'dev', link)
        ip('link', 'set', link, 'up')
        self.inside('ip', 'addr', 'add', f'{net}.2/24', 'dev', 'eth0')
        self.inside('ip', 'link', 'set', 'eth0', 'up')

    def enter(self):
        return ['nsenter', '-t', str(self.holder.pid), '-n', '-u', '-m']

    def inside(self, *args):
        run = harness.run(*self.enter(), *args)
        equal(run.returncode, 0, f'{args}: {run.stderr}')
        return run.stdout

    def start_service(self):
        """Starts a process in the control group of a service that the machine is named after. Returns
        it, or None where there are no such groups."""
        group = f'{self.folder}/groups/shop-{self.name}.service'
        os.mkdir(f'{self.folder}/groups')
        child = harness.Process(
            [*self.enter(), 'sh', '-c',
             f'mount -t cgroup2 none {self.folder}/groups && mkdir -p {group} && '
             f'echo $$ >{group}/cgroup.procs && echo && '
             f'while [ ! -e {self.folder}/stop ]; do sleep 0.1; done'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return child if child.stdout.readline() else None

    def start(self, kind, *options):
        log = f'{self.folder}/{kind}.log'
        with open(log, 'ab') as out:
            child = harness.Process(
                [*self.enter(), harness.SHSTK, 'record', f'--every={EVERY}s', '--timeout=100',
                 f'--push={self.url}', f'--spool={self.folder}/spool.{kind}', '--max-wait=2',
                 '--spool-wait=150', '-o', f'{self.folder}/{kind}.pb.gz', *options],
                stdout=out, stderr=out, env=ENVIRONMENT)
        self.recorders[kind], self.before[kind] = child, len(self.files(kind))
        self.logs.append(log)

    def files(self, kind):
        """The profiles that a recorder has written."""
        return glob.glob(f'{self.folder}/{kind}-*.pb.gz')

    def said(self):
        return ''.join(open(log, encoding='utf-8', errors='replace').read()    # noqa: SIM115
                       for log in sorted(set(self.logs)))

    def cut(self, down):
        ip('link', 'set', f'fleet{self.number}', 'down' if down else 'up')

    def dropped(self):
        """Requests that the spools had no room for."""
        text = self.inside('sh', '-c', f'cat {self.folder}/spool.*/*/counts')
        counts = [line.split() for line in text.splitlines()]
        for name, value in counts:
            if name.startswith('dropped_') and name != 'dropped_full':
                equal(int(value), 0, name)
        return sum(int(value) for name, value in counts if name == 'dropped_full')

    def stop(self):
        """Asks all recordings to end, once they have begun."""
        for kind in self.recorders:
            until(lambda kind=kind: len(self.files(kind)) > self.before[kind],
                  f'{self.name}: a profile of {kind}', 400)
        write(f'{self.name}/stop', b'')
        for kind, child in self.recorders.items():
            if kind != 'heap':      # this one ends with its command
                child.terminate()

    def waiting(self, kind):
        return self.inside('sh', '-c', f'ls {self.folder}/spool.{kind}/*/ | grep request || :')

    def send_rest(self, kind):
        """What waits at the end of a recording is sent by the next one with the same options."""
        for _ in range(20):
            if not self.waiting(kind):
                return
            harness.run(*self.enter(), harness.SHSTK, 'record', '-q', '--heap', '--timeout=100',
                        f'--push={self.url}', f'--spool={self.folder}/spool.{kind}',
                        '--max-wait=2', '--spool-wait=100', '--', ALLOCATE, env=ENVIRONMENT)
        check(False, f'requests wait on {self.name}: {self.waiting(kind)}{self.said()[-2000:]}')

    def end(self):
        """Waits for the end of all recordings; then all that waits is sent."""
        for kind, child in self.recorders.items():
            status = child.wait(harness.LIMIT)
            allowed = (0, OWN) if self.name == 'three' else (0,)
            check(status in allowed, f'{self.name}: {kind}: status {status}: {self.said()[-2000:]}')
        for kind in self.recorders:
            self.send_rest(kind)

    def close(self):
        if self.service:
            self.service.wait(harness.LIMIT)
            self.inside('rmdir', f'{self.folder}/groups/shop-{self.name}.service')
        self.holder.communicate(b'\n')


def check_table(machine, what, got, table, vague):
    """The sums that were received are those of the file, for process, service and function."""
    for pid, service, _ in got:
        known = {one for other, one, _ in table if other == pid}
        check(service and (pid not in vague or service in vague[pid] | known),
              f'{what}: process {pid} has the service {service}')
    equal(summed(got, vague), summed(table, vague), what)
    machine.services.update(service for _, service, _ in got)


def compare(machine, found):
    """All that the machine recorded was received, but for what its spool had no room for."""
    missing = nr = 0
    kinds = set()
    for path in sorted(glob.glob(f'{machine.folder}/*.pb.gz')):
        command = 'sh' if os.path.basename(path).startswith('heap') else None
        when, tables, vague = recorded(path, command)
        if not any(tables.values()):
            continue
        merged = {}
        for (host, at, kind, _), table in found.items():
            if (host, at) == (machine.name, when):
                for who, value in table.items():
                    merged.setdefault(kind, {})[who] = merged.get(kind, {}).get(who, 0) + value
        if not merged:
            missing += 1
            continue
        for kind, table in tables.items():
            check_table(machine, f'{path}: {kind}', merged.get(kind, {}), table, vague)
        nr += 1
        kinds.update(tables)
    check({'cpu', 'off-cpu', 'alloc_space'} <= kinds, f'{machine.name}: only {kinds}')
    check(not machine.service or f'shop-{machine.name}' in machine.services,
          f'{machine.name}: its service is not among {sorted(machine.services)}')
    return nr, missing


# ---- What fails ----

def troubles(collector, machines):
    """What happens, and when: parts of the time."""
    one, two, three = machines
    fill = f'dd if=/dev/zero of={three.folder}/spool.cpu/fill 2>/dev/null; :'

    def kill_sender():
        for pid in senders(f'{one.folder}/spool.cpu'):
            os.kill(pid, signal.SIGKILL)

    def kill_recorder():
        two.recorders['cpu'].kill()
        two.recorders['cpu'].wait()
        two.start('cpu', '-a', '-F', '20')

    return [(0.1, lambda: collector.end(signal.SIGKILL)), (0.17, collector.start),
            (0.25, lambda: one.cut(True)), (0.35, lambda: one.cut(False)),
            (0.4, collector.end),
            (0.41, lambda: three.inside('sh', '-c', fill)),
            (0.55, lambda: three.inside('rm', f'{three.folder}/spool.cpu/fill')),
            (0.56, collector.start),
            (0.65, kill_sender), (0.75, kill_recorder)]


@test
def fleet():
    """three machines; a Collector, a link, a disk and processes that fail: nothing is lost"""
    signal.setitimer(signal.ITIMER_REAL, 6 * SECONDS + 1000, 20)
    with Server() as sink, Collector(sink) as collector:
        machines = [Machine(n, name, collector.port) for n, name in enumerate(MACHINES)]
        begin = time.monotonic()
        for part, trouble in troubles(collector, machines):
            time.sleep(max(0, begin + part * SECONDS - time.monotonic()))
            trouble()
        time.sleep(max(0, begin + SECONDS - time.monotonic()))
        for machine in machines:
            machine.stop()
        for machine in machines:
            machine.end()
        dropped = [machine.dropped() for machine in machines]
    found, twice = sums_of_all(sink.requests)
    print(f'# {len(sink.requests)} requests, {len(found)} profiles, {twice} requests twice')
    for machine, lost in zip(machines, dropped):
        nr, missing = compare(machine, found)
        print(f'# {machine.name}: {nr} files received, {lost} dropped')
        print(f'# {machine.name}: {len(machine.services)} services')
        equal(missing, lost, f'{machine.name}: missing and dropped')
        machine.close()
    equal(dropped[:2], [0, 0], 'dropped')
    check(dropped[2], 'the full disk dropped nothing')
    check(twice <= MOST_TWICE, f'{twice} requests came twice')


# ---- Who is let in ----

def push(collector, *options, guarded=True):
    """Sends a profile; returns the status and what was printed."""
    port = f'https://127.0.0.1:{collector.guarded}' if guarded else \
        f'http://127.0.0.1:{collector.port}'
    path = write('small.folded', b'main;job 5\nmain;' + b'x' * 10_000_000 + b' 1\n')
    run = harness.shstk('push', f'--to={port}', '--retries=1', '--timeout=100', *options, path,
                        env=ENVIRONMENT)
    return run.returncode, run.stderr


@test
def guarded():
    """TLS, certificates of both sides, tokens, names of 10 MB, a Collector that can't send on"""
    with Server() as sink, Collector(sink) as collector:
        ca, wrong = (f'--cacert={place(name)}.pem' for name in ('ca', 'wrong'))
        mine = f'--cert={place("client.pem")}', f'--key={place("client.key")}'
        right = f'--token-file={write("right", TOKEN.encode())}'
        other = f'--token-file={write("other", b"another-token")}'
        for options, said in (((wrong, *mine, right), 'certificate'), ((ca, right), ''),
                              ((ca, *mine), '401'), ((ca, *mine, other), '401')):
            status, text = push(collector, *options)
            check(status in (1, LATER) and said in text, f'{options}: {status}: {text}')
        equal(sink.requests, [], 'requests')
        equal(push(collector, ca, *mine, right)[0], 0, 'with all that is needed')
        equal(len(sink.requests), 1, 'requests')
        body = unpacked(sink.requests[0])
        values = sorted(n for sample in walk(body, 1, 2, 2, 2, 4) for n in pprof.packed(sample))
        equal(values, [1, 5], 'values')
        sink.answers[:] = [answer(503)] * 9
        status, text = push(collector, guarded=False)
        check(status == LATER, f'{status}: {text}')


@test
def counts():
    """the Collector takes what was counted as metrics, and sends it on"""
    with Server() as sink, Collector(sink) as collector:
        run = harness.shstk('record', '-q', '--heap', f'--push=http://127.0.0.1:{collector.port}',
                            f'--spool={place("spool")}', '--timeout=100', '--spool-wait=100',
                            '--push-counts', '--', ALLOCATE, env=ENVIRONMENT)
        equal(run.returncode, 0, run.stderr)
        figures = [r for r in sink.requests if r.line.startswith('POST /v1/metrics ')]
        found = {next(walk(metric, 1)): list(walk(metric, 7, 1, 6))
                 for metric in walk(unpacked(figures[-1]), 1, 2, 2)}
        equal([found[b'shstk.push.put'], found[b'shstk.push.sent']], [[1], [1]], 'metrics')
        equal(found[b'shstk.push.dropped'], [0] * 4, 'dropped')


def why():
    """Why nothing can be tested here, or None."""
    if os.getuid():
        return 'needs root to make network namespaces'
    try:
        need_sender()
    except Skip as skip:
        return str(skip)
    # It is built before the network is left.
    run = harness.run(os.path.join(HERE, 'collector'), timeout=7200)
    if run.returncode:
        return run.stderr.strip()
    PROGRAM.append(run.stdout.strip())
    if harness.LIBC.unshare(ctypes.c_int(CLONE_NEWNET)):
        return 'no network namespace can be made'
    run = harness.run('ip', 'link', 'set', 'lo', 'up')
    return run.stderr.strip() if run.returncode else None


if __name__ == '__main__':
    sys.exit(main(why))
