#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record --push`: profiles reach a server while recording goes on, and wait in a folder
while it can't take them. Prints KTAP.

Allocations are recorded, because their number is known and no perf event is needed. The servers are
threads of this script, on the loopback address.
"""

import ctypes
import glob
import hashlib
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import published  # noqa: E402
from harness import LIMIT, Skip, check, equal, main, test  # noqa: E402
from received import (ENVIRONMENT, attributes, certificates, ids, kept, mappings,  # noqa: E402
                      need_sender, nobody_listens, place, same, senders, stacks, unpacked, until,
                      wake, walk, write)
from server import Server, answer, raw, silent  # noqa: E402

OWN = 125       # exit status where a profile was lost
NAMES = iter(range(1000))


class Spool:
    """A spool of its own for each test."""

    def __init__(self):
        need_sender()
        self.path = place(f'spool{next(NAMES)}')

    def requests(self):
        return sorted(glob.glob(os.path.join(self.path, '*', '*.request')))

    def counts(self):
        (path,) = glob.glob(os.path.join(self.path, '*', 'counts'))
        with open(path, encoding='ascii') as file:
            return {name: int(value) for name, value in (line.split() for line in file)}

    def command(self, server, *options, wait=None):
        program = [os.path.join(harness.HERE, 'allocate')] + ([wait] if wait else [])
        url = server if isinstance(server, str) else server.url
        return ['record', '-q', '--heap', f'--push={url}', f'--spool={self.path}', '--timeout=150',
                '--max-wait=1', '--spool-wait=150', *options, '--', *program]

    def record(self, server, *options, status=0):
        """Records the program; returns what was printed."""
        run = harness.shstk(*self.command(server, *options), env=ENVIRONMENT)
        equal(run.returncode, status, f'{options}: {run.stderr}')
        return run.stderr

    def start(self, server, *options, wait):
        """Starts a recording that goes on until there is a file."""
        # pylint: disable-next=consider-using-with
        return subprocess.Popen([harness.SHSTK, *self.command(server, *options, wait=wait)],
                                env=ENVIRONMENT, stderr=subprocess.PIPE, text=True,
                                preexec_fn=harness.end_with_parent)


def finish(child, wait):
    """Ends a recording; returns what it printed."""
    write(wait, b'')
    said = child.communicate(timeout=LIMIT)[1]
    equal(child.returncode, 0, said)
    return said


# ---- What a server receives ----

@test
def sent():
    """a server receives what the file has"""
    spool, path = Spool(), place('run.pb.gz')
    with Server() as server:
        spool.record(server, '-o', path)
    equal(len(server.requests), 1, 'requests')
    same(server.requests, path)
    equal([spool.counts()[name] for name in ('put', 'sent', 'sent_bytes')],
          [1, 1, len(server.requests[0].body)], 'counts')
    equal(spool.requests(), [], 'requests that wait')


@test
def decoded_by_opentelemetry():
    """OpenTelemetry's messages in Python find in a request what pprof has of the recording: each value,
    stack, name, attribute and build id"""
    service = published.module()
    path = place('decoded.pb.gz')
    with Server() as server:
        Spool().record(server, '-o', path)
    messages = [published.Message(published.parse(service.ExportProfilesServiceRequest(),
                                                  unpacked(request))) for request in server.requests]
    decoded = published.compare(messages, path)
    functions = {frame.function for _, frames, _ in messages[0].samples() for frame in frames}
    check({'job', 'main'} <= functions, f'functions: {functions}')
    check(any(decoded.text(mapping.get(6, 0)) for mapping in decoded.mappings.values()), 'no build ids')


@test
def no_file():
    """without -o nothing is written but what is sent"""
    spool, folder = Spool(), place('empty')
    os.mkdir(folder)
    with Server() as server:
        run = harness.shstk(*spool.command(server), env=ENVIRONMENT, cwd=folder)
    equal([run.returncode, os.listdir(folder), len(server.requests)], [0, [], 1], 'files')


def numbers_of(request, name):
    """The numbers that an attribute has in the resources of a request, each once for a resource."""
    return [value for resource in walk(unpacked(request), 1, 1)
            for pair in walk(resource, 1) if list(walk(pair, 1)) == [name]
            for value in walk(pair, 2, 3)]


@test
def resources():
    """each process is a resource: with its number, its service, and Profiles with ids of their own"""
    spool = Spool()
    command = spool.command('URL')
    program = command[-1]
    with Server() as server:
        command[command.index('--push=URL')] = f'--push={server.url}'
        run = harness.shstk(*command[:-1], 'sh', '-c', f'{program}; {program}; :', env=ENVIRONMENT)
    equal(run.returncode, 0, run.stderr)
    (request,) = server.requests
    pids = numbers_of(request, b'process.pid')
    check(len(pids) >= 2, f'processes: {pids}')
    equal(len(set(pids)), len(pids), 'a process is a resource once')
    every = ids(request)
    equal([len(set(every)), len(every) % len(pids)], [len(every), 0], 'ids')
    services = {value for resource in walk(unpacked(request), 1, 1) for pair in walk(resource, 1)
                if list(walk(pair, 1)) == [b'service.name'] for value in walk(pair, 2, 1)}
    equal(services, {b'sh'}, 'services')


@test
def no_names():
    """--no-names sends no functions, but build ids and addresses, by which a reader finds them"""
    spool, path = Spool(), place('names.pb.gz')
    with Server() as server:
        spool.record(server, '-o', path)
        spool.record(server, '--no-names')
    named, bare = (list(walk(unpacked(r), 2, 5)) for r in server.requests)
    check(b'job' in named and b'job' not in bare, 'names')
    check(b'process.executable.build_id.gnu' in bare, 'no build ids')
    same(server.requests[:1], path)
    equal(sum(value for _, value in stacks(write('bare.shstk', kept(server.requests[1:])))),
          sum(value for _, value in stacks(path)), 'sums')
    check(any('job' in stack for stack, _ in stacks(place('bare.shstk'))), 'no names are found')


def hash_of(path):
    """OpenTelemetry's id of a file."""
    with open(path, 'rb') as file:
        data = file.read()
    whole = data[:4096] + data[-4096:] + struct.pack('>Q', len(data))
    return hashlib.sha256(whole).hexdigest()[:32]


@test
def file_ids():
    """mappings have OpenTelemetry's id of their file, also those of a profile that was kept"""
    try:
        ctypes.CDLL('libcrypto.so.3')
    except OSError as err:
        raise Skip(f'ids need libcrypto: {err}') from err
    spool, path = Spool(), place('ids.shstk')
    small = place('small')
    shutil.copy(os.path.join(harness.HERE, 'allocate'), small)
    with Server() as server:
        command = [small if word.endswith('/allocate') else word
                   for word in spool.command(server, '-o', path)]
        run = harness.shstk(*command, env=ENVIRONMENT)
        equal(run.returncode, 0, run.stderr)
        os.rename(small, place('moved'))
        run = harness.shstk('push', f'--to={server.url}', '--timeout=150', path, env=ENVIRONMENT)
        equal(run.returncode, 0, run.stderr)
    name = 'process.executable.build_id.htlhash'
    for request in server.requests:
        ids_of = {key: value[name] for key, value in mappings(request).items() if name in value}
        equal(ids_of.pop(small), hash_of(place('moved')), 'id of the program')
        check(ids_of, 'other files have no ids')
        for key, value in ids_of.items():
            equal(value, hash_of(key), key)
    equal(len(server.requests), 2, 'requests')


@test
def other_protocols():
    """pprof goes to Pyroscope and Parca, each request with its own query"""
    spool = Spool()
    with Server() as server:
        spool.record(server, '--protocol=parca')
        spool.record(server, '--protocol=pyroscope')
        spool.record(f'{server.url}/ingest', '--service-name=shop')
    lines = [r.line.split(' ')[1].split('?')[0] for r in server.requests]
    equal(lines, ['/api/profiles/writeraw', '/push.v1.PusherService/Push', '/ingest'], 'paths')
    check('name=shop' in server.requests[2].line, server.requests[2].line)


@test
def series():
    """with --every, requests come while recording goes on, and each has ids of its own"""
    spool, wait = Spool(), place('wait1')
    with Server() as server:
        child = spool.start(server, '--every=200ms', wait=wait)
        until(lambda: len(server.requests) >= 3, 'three requests')
        finish(child, wait)
    every = [i for r in server.requests for i in ids(r)]
    equal(len(set(every)), len(every), 'different ids')
    equal(spool.counts()['put'], len(server.requests), 'requests')


@test
def off_cpu():
    """--off-cpu: where threads wait is sent, as the file has it"""
    spool, path = Spool(), place('waits.pb.gz')
    with Server() as server:
        run = harness.shstk('record', '-q', '--off-cpu', f'--push={server.url}', '-o', path,
                            f'--spool={spool.path}', '--spool-wait=150', '--timeout=150', '--',
                            'sleep', '0.3', env=ENVIRONMENT)
    if run.returncode == OWN and not server.requests:
        raise Skip(f'waiting can not be recorded here: {run.stderr.strip()}')
    equal(run.returncode, 0, run.stderr)
    same(server.requests, path)
    waited = sum(value for _, value in stacks(path))
    check(waited >= 250_000_000, f'{waited} ns')


# ---- Servers that misbehave ----

@test
def nobody_there():
    """where nobody listens, the recording is as it would be, and what waits is sent by the next one"""
    spool, path = Spool(), place('first.pb.gz')
    said = spool.record(nobody_listens(), '-o', path)
    check('1 requests' in said and 'wait in' in said, said)
    equal(len(spool.requests()), 1, 'requests that wait')
    equal(spool.counts()['sent'], 0, 'sent')


@test
def restarted():
    """a request that a server had no time for is sent by the next recording, with the same bytes"""
    spool, path = Spool(), place('again.pb.gz')
    with Server(*[answer(503)] * 99) as server:
        spool.record(server, '-o', path)
        equal(len(spool.requests()), 1, 'requests that wait')
        server.answers.clear()
        spool.record(server)
    first, second = server.requests[-2:]
    equal({r.body for r in server.requests[:-1]}, {first.body}, 'the same request again')
    check(first.body != second.body, 'the same request twice')
    same([first], path)
    equal([spool.counts()[name] for name in ('put', 'sent', 'retries')],
          [2, 2, len(server.requests) - 2], 'counts')


@test
def retried():
    """after 500 and a connection that ends early, a request is sent again while recording goes on"""
    spool, wait = Spool(), place('wait2')
    with Server(answer(500), raw(b''), raw(b'HTTP/1.1 2')) as server:
        child = spool.start(server, '--every=200ms', wait=wait)
        until(lambda: spool.requests() == [] and len(server.requests) > 4, 'requests')
        said = finish(child, wait)
    equal(len({r.body for r in server.requests[:4]}), 1, 'the same request')
    check('answered 500' in said and 'takes requests again' in said, said)
    equal(spool.counts()['put'], len({r.body for r in server.requests}), 'requests')


@test
def too_many_requests():
    """429 with Retry-After: nothing is sent before, not even at the end"""
    spool, wait = Spool(), place('wait3')
    with Server(answer(429, b'', 'Retry-After: 3')) as server:
        child = spool.start(server, '--every=200ms', wait=wait)
        until(lambda: len(server.requests) >= 2, 'requests')
        finish(child, wait)
    first, second = (r.time for r in server.requests[:2])
    check(second - first >= 3, f'came again after {second - first} s')
    # The last one is the largest number of 64 bits: in ms it would be none any more.
    for seconds in '3000', '9223372036854775807':
        with Server(answer(429, b'', f'Retry-After: {seconds}')) as server:
            spool.record(server)
        equal(len(server.requests), 1, 'requests')


@test
def refused():
    """400 and 401 are given up, said and counted"""
    spool = Spool()
    with Server(answer(400, b'no'), answer(401), answer(401)) as server:
        said = spool.record(server)
        check('dropped: the server answered 400: no' in said, said)
        said = spool.record(server)
        check('dropped: the server answered 401' in said, said)
    equal(len(server.requests), 3, 'requests')
    equal([spool.counts()[name] for name in ('sent', 'dropped_refused')], [0, 2], 'counts')
    equal(spool.requests(), [], 'requests that wait')


@test
def nobody_reads():
    """where nobody reads messages any more, a request that is refused is dropped all the same"""
    spool = Spool()
    reader, writer = os.pipe()
    os.close(reader)
    with Server(answer(400)) as server:
        done = subprocess.run([harness.SHSTK, *spool.command(server)], env=ENVIRONMENT,
                              stderr=writer, check=False, timeout=LIMIT)
    os.close(writer)
    equal([done.returncode, len(server.requests)], [0, 1], 'requests')
    equal([spool.counts()['dropped_refused'], spool.requests()], [1, []], 'dropped')


def counts_in(request):
    """The values of a request with metrics, by their names and reasons."""
    found = {}
    for metric in walk(unpacked(request), 1, 2, 2):
        for point in walk(metric, 7, 1):
            reason = b''.join(walk(point, 7, 2, 1)).decode()
            (found[next(walk(metric, 1)).decode(), reason],) = walk(point, 6)
    return found


@test
def counts_are_sent():
    """--push-counts: what was put, sent and dropped are metrics"""
    spool = Spool()
    with Server(paths={'/v1development/profiles': answer(400)}) as server:
        spool.record(server, '--push-counts')
        server.paths.clear()
        spool.record(server, '--push-counts', '--compress=gzip')
    lines = [r.line.split(' ')[1] for r in server.requests]
    equal(lines.count('/v1development/profiles'), 2, 'profiles')
    figures = [r for r in server.requests if r.line.startswith('POST /v1/metrics ')]
    equal(len(figures) + 2, len(lines), 'metrics')
    last = counts_in(figures[-1])
    counts = spool.counts()
    equal({name: last['shstk.push.' + name, ''] for name in
           ('put', 'sent', 'sent_bytes', 'retries', 'rejected')},
          {name: counts[name] for name in ('put', 'sent', 'sent_bytes', 'retries', 'rejected')},
          'metrics')
    equal({reason: last['shstk.push.dropped', reason] for reason in
           ('full', 'old', 'refused', 'damaged')},
          {'full': 0, 'old': 0, 'refused': 1, 'damaged': 0}, 'dropped')
    got = attributes(figures[-1])
    equal([got[b'service.name'], got[b'host.name']], [b'shstk', socket.gethostname().encode()],
          'attributes')
    equal(figures[-1].headers.get('content-encoding'), None, 'encoding')


@test
def counts_decoded_by_opentelemetry():
    """--push-counts: OpenTelemetry's messages in Python find each count, a sum since the spool was made"""
    service = published.module(published.METRICS)
    spool = Spool()
    with Server() as server:
        spool.record(server, '--push-counts')
    last = [r for r in server.requests if r.line.startswith('POST /v1/metrics ')][-1]
    message = published.parse(service.ExportMetricsServiceRequest(), unpacked(last))
    metrics = [metric for resource in message.resource_metrics for scope in resource.scope_metrics
               for metric in scope.metrics]
    found = {}
    for metric in metrics:
        equal([metric.WhichOneof('data'), metric.sum.is_monotonic, metric.sum.aggregation_temporality],
              ['sum', True, 2], metric.name)     # 2: cumulative
        for one in metric.sum.data_points:
            check(0 < one.start_time_unix_nano <= one.time_unix_nano, f'times of {metric.name}')
            found[(metric.name, *(pair.value.string_value for pair in one.attributes))] = one.as_int
    counts = spool.counts()
    wanted = {('shstk.push.dropped', name[8:]) if name.startswith('dropped_') else ('shstk.push.' + name,): value
              for name, value in counts.items() if name != 'sum'}
    equal(found, wanted, 'counts')
    equal(counts['sent'], 1, 'sent')


@test
def counts_not_wanted():
    """--push-counts: a server that takes no metrics is asked once, and gets profiles"""
    spool = Spool()
    with Server(paths={'/v1/metrics': answer(404)}) as server:
        said = spool.record(server, '--push-counts')
    lines = sorted(r.line.split(' ')[1] for r in server.requests)
    equal(lines, ['/v1/metrics', '/v1development/profiles'], 'requests')
    check('counts are not sent any more' in said, said)


@test
def new_token():
    """after 401 the token is read again: a new one is used without a restart"""
    token = write('token', b'old')

    def renew(conn):
        write('token', b'new')
        answer(401)(conn)

    spool = Spool()
    with Server(renew) as server:
        spool.record(server, f'--token-file={token}')
    equal([r.headers.get('authorization') for r in server.requests], ['Bearer old', 'Bearer new'],
          'tokens')
    equal(spool.counts()['sent'], 1, 'sent')


@test
def never_answers():
    """a server that never answers: the recording ends soon after its time, and the request waits"""
    spool = Spool()
    with Server(*[silent] * 99) as server:
        spool.record(server, '--timeout=1', '--spool-wait=3')
    equal(len(spool.requests()), 1, 'requests that wait')


@test
def garbage():
    """a server that does not speak HTTP: the request waits"""
    spool = Spool()
    with Server(*[raw(b'\x00\xff garbage\n' * 1000)] * 99) as server:
        spool.record(server)
    equal([spool.counts()['sent'], len(spool.requests())], [0, 1], 'requests')


@test
def wrong_authority():
    """a certificate that is not trusted: the request waits until the right authority is given"""
    context = certificates()
    spool = Spool()
    with Server(context=context) as server:
        spool.record(server, f'--cacert={place("wrong.pem")}')
        equal([len(server.requests), len(spool.requests())], [0, 1], 'requests')
        spool.record(server, f'--cacert={place("ca.pem")}')
    equal([len(server.requests), len(spool.requests())], [2, 0], 'requests')


@test
def wrong_options():
    """a wrong URL, and a token that can't be read, are found before the command is started"""
    spool = Spool()
    for options in (['ftp://127.0.0.1/'], ['http://127.0.0.1:1', '--token-file=/no-such-file']):
        command = spool.command(*options)
        run = harness.shstk(*command[:command.index('--') + 1], 'touch', place('started'),
                            env=ENVIRONMENT)
        equal(run.returncode, 2, run.stderr)
    check(not os.path.exists(place('started')), 'the command was started')


@test
def client_certificate():
    """a server that wants a certificate gets requests with --cert and --key, and none without"""
    context, spool = certificates(), Spool()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(place('ca.pem'))
    with Server(context=context) as server:
        spool.record(server, f'--cacert={place("ca.pem")}')
        equal([len(server.requests), len(spool.requests())], [0, 1], 'requests')
        spool.record(server, f'--cacert={place("ca.pem")}', f'--cert={place("client.pem")}',
                     f'--key={place("client.key")}')
    equal([len(server.requests), len(spool.requests())], [1, 1], 'requests')


# ---- The folder ----

@test
def full():
    """what does not fit into the spool is dropped, said and counted; what waits stays"""
    spool, url = Spool(), nobody_listens()
    spool.record(url)
    (first,) = spool.requests()
    name = f'{time.time_ns():016x}-0.request'
    with open(os.path.join(os.path.dirname(first), name), 'wb') as file:
        file.truncate(1 << 20)
    said = spool.record(url, '--spool-size=1', status=OWN)
    check('dropped' in said and '--spool-size' in said, said)
    equal([spool.counts()[name] for name in ('put', 'dropped_full')], [1, 1], 'counts')
    check(os.path.exists(first), 'the first one is gone')


@test
def full_disk():
    """a full disk drops what does not fit, counts it, and leaves nothing half written"""
    if os.getuid():
        raise Skip('needs root to mount a small file system')
    spool = Spool()
    os.mkdir(spool.path)
    disk = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o size=16k,mode=700 none "$0" && "$@" '
            '2>&1; r=$?; head -c 9999 "$0"/*/counts; ls -A "$0"/*; exit $r', spool.path]
    run = harness.run(*disk, 'true')
    if run.returncode:
        raise Skip(f'no file system can be mounted: {run.stderr.strip()}')
    fill = ['sh', '-c', '"$@"; dd if=/dev/zero of="$0/fill" 2>/dev/null; "$@"', spool.path]
    run = harness.run(*disk, *fill, harness.SHSTK, *spool.command(nobody_listens()),
                      env=ENVIRONMENT)
    equal(run.returncode, OWN, run.stdout)
    check(f'dropped_full {1:020}' in run.stdout, run.stdout)
    equal(sum(line.endswith('.request') for line in run.stdout.split('\n')), 1, run.stdout)
    check('.new-' not in run.stdout, run.stdout)


@test
def too_old():
    """what waited too long is dropped, said and counted"""
    spool = Spool()
    spool.record(nobody_listens())
    (path,) = spool.requests()
    with Server() as server:
        first = os.path.basename(glob.glob(os.path.join(spool.path, '*'))[0])
        spool.record(server)
        (other,) = (name for name in os.listdir(spool.path) if name != first)
        os.rename(path, os.path.join(spool.path, other, '00000000000f4240-0.request'))
        said = spool.record(server, '--spool-age=3600')
    equal(len(server.requests), 2, 'requests')
    check('waited longer than 3600 s' in said, said)
    counts = glob.glob(os.path.join(spool.path, other, 'counts'))[0]
    with open(counts, encoding='ascii') as file:
        check(f'dropped_old {1:020}' in file.read(), 'not counted')


@test
def in_order():
    """hundreds of requests that wait are sent once each, the oldest first"""
    spool, number, now = Spool(), 300, time.time_ns()
    bodies = [b'body %d' % i for i in range(number)]
    names = [f'{now - (number - i) * 10 ** 9:016x}-0.request' for i in range(number)]
    with Server() as server:
        spool.record(server)
        (folder,) = glob.glob(os.path.join(spool.path, '*'))
        # The order in which a folder is read is that of no name.
        for i in sorted(range(number), key=lambda i: zlib.crc32(bodies[i])):
            with open(os.path.join(folder, names[i]), 'wb') as file:
                file.write(b'shstk-request 1 %08x %08x %08x\n' %
                           (0, len(bodies[i]), zlib.crc32(bodies[i])) + bodies[i])
        spool.record(server)
    equal([r.body for r in server.requests[1:-1]], bodies, 'requests')
    equal([spool.counts()['sent'], spool.requests()], [number + 2, []], 'sent')


@test
def damaged():
    """files that are no whole requests are dropped, counted, and never sent"""
    spool = Spool()
    with Server(*[answer(503)] * 99) as server:
        spool.record(server)
        server.answers.clear()
        before = len(server.requests)
        (path,) = spool.requests()
        with open(path, 'rb') as file:
            whole = file.read()
        folder = os.path.dirname(path)
        changed = bytearray(whole)
        changed[-1] ^= 1
        now = f'{time.time_ns():016x}'
        os.symlink(path, os.path.join(folder, f'{now}-4.request'))
        os.mkdir(os.path.join(folder, f'{now}-5.request'))
        for i, data in enumerate((b'', whole[:-1], whole + b'x', bytes(changed))):
            with open(os.path.join(folder, f'{now}-{i}.request'), 'wb') as file:
                file.write(data)
        spool.record(server)
    equal(len(server.requests) - before, 2, 'requests')
    equal([spool.counts()[name] for name in ('sent', 'dropped_damaged')], [2, 6], 'counts')


@test
def stays():
    """a request that can't be removed ends the sending of this recording, which is said once"""
    spool, wait = Spool(), place('wait7')
    with Server() as server:
        spool.record(server)
        (folder,) = glob.glob(os.path.join(spool.path, '*'))
        os.makedirs(os.path.join(folder, f'{time.time_ns():016x}-0.request', 'file'))
        child = spool.start(server, '--every=200ms', wait=wait)
        # What sends was started before the first request is put.
        until(lambda: len(spool.requests()) >= 2, 'a request that waits')
        until(lambda: not senders(spool.path), 'the end of what sends')
        before = len(spool.requests())
        until(lambda: len(spool.requests()) >= before + 3, 'more requests')
        said = finish(child, wait)
    equal([said.count('cannot remove'), said.count('profiles are not sent')], [1, 1], said)
    equal(len(server.requests), 1, 'requests')


@test
def private():
    """a folder that others may open, or that is a symbolic link, is refused; nothing is started"""
    spool = Spool()
    for mode in (0o755, 0o770, 0o707):
        os.mkdir(spool.path)
        os.chmod(spool.path, mode)
        said = spool.record('http://127.0.0.1:1', status=OWN)
        check('not only yours' in said and spool.path in said, said)
        shutil.rmtree(spool.path)
    os.mkdir(place('elsewhere'), 0o700)
    os.symlink(place('elsewhere'), spool.path)
    spool.record('http://127.0.0.1:1', status=OWN)
    equal(os.listdir(place('elsewhere')), [], 'files')


@test
def modes():
    """folders and files of a spool are for their user only, whatever the umask"""
    spool = Spool()
    run = harness.run('sh', '-c', 'umask 0; exec "$@"', 'sh', harness.SHSTK,
                      *spool.command(nobody_listens()), env=ENVIRONMENT)
    equal(run.returncode, 0, run.stderr)
    for folder, _, names in os.walk(spool.path):
        for path in [folder] + [os.path.join(folder, name) for name in names]:
            equal(os.stat(path).st_mode & 0o077, 0, path)


@test
def two_servers():
    """what waits for one server is never sent to another one, nor with another token"""
    spool = Spool()
    spool.record(nobody_listens())
    with Server() as server:
        spool.record(server)
        spool.record(server, f'--token-file={write("token2", b"word")}')
        spool.record(server, '--tenant=other')
    equal([len(server.requests), len(spool.requests())], [3, 1], 'requests')


# ---- Processes that end ----

@test
def sender_killed():
    """what sends is killed: it is started again, and nothing is lost"""
    spool, wait = Spool(), place('wait4')
    with Server(silent) as server:
        child = spool.start(server, '--every=200ms', wait=wait)
        until(lambda: server.requests, 'a request')
        (pid,) = senders(spool.path)
        os.kill(pid, signal.SIGKILL)
        until(lambda: len(server.requests) >= 3, 'requests')
        said = finish(child, wait)
    check('ended by signal 9' in said, said)
    equal(server.requests[1].body, server.requests[0].body, 'the same request again')
    bodies = [r.body for r in server.requests[1:]]
    equal([len(set(bodies)), spool.counts()['sent']], [len(bodies), len(bodies)], 'requests')


@test
def recorder_killed():
    """the recorder is killed: what sends ends when it has sent all"""
    spool, wait = Spool(), place('wait5')
    with Server() as server:
        child = spool.start(server, '--every=200ms', wait=wait)
        until(lambda: server.requests, 'a request')
        child.kill()
        write(wait, b'')
        child.communicate(timeout=LIMIT)
        until(lambda: not senders(spool.path), 'the end of what sends')
    equal(spool.requests(), [], 'requests that wait')
    bodies = [r.body for r in server.requests]
    equal([len(set(bodies)), spool.counts()['sent']], [len(bodies), len(bodies)], 'requests')


@test
def two_recordings():
    """two recordings share a spool: each request is sent once"""
    spool, wait = Spool(), place('wait6')
    with Server() as server:
        children = [spool.start(server, '--every=200ms', wait=wait) for _ in range(2)]
        until(lambda: len(server.requests) >= 6, 'requests')
        for child in children:
            finish(child, wait)
        spool.record(server)
    bodies = [r.body for r in server.requests]
    equal([len(set(bodies)), spool.counts()['put']], [len(bodies), len(bodies)], 'requests')
    equal(spool.requests(), [], 'requests that wait')


@test
def service():
    """systemd is told when a recording of what runs already begins, how it goes, and when it ends"""
    need_sender()
    place_of_socket = os.path.join(harness.make_folder('/tmp'), 'notify')    # short enough
    told = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener, Server() as server, \
            subprocess.Popen([sys.executable, '-c', 'while True: pass'],
                             preexec_fn=harness.end_with_parent) as busy:
        listener.bind(place_of_socket)
        listener.settimeout(LIMIT)
        # pylint: disable-next=consider-using-with
        child = subprocess.Popen(
            [harness.SHSTK, 'record', '-q', f'--push={server.url}', f'--spool={place("service")}',
             '--spool-wait=150', '--every=500ms', '-p', str(busy.pid)], stderr=subprocess.PIPE,
            text=True, env={**ENVIRONMENT, 'NOTIFY_SOCKET': place_of_socket},
            preexec_fn=harness.end_with_parent)
        threading.Thread(target=wake, args=(child, place_of_socket), daemon=True).start()
        while 'END' not in told and not any('requests wait' in text for text in told):
            told.append(listener.recv(4096).decode())
        if 'END' not in told:
            child.terminate()
            while 'END' not in told:
                told.append(listener.recv(4096).decode())
        said = child.communicate(timeout=LIMIT)[1]
        busy.kill()
    if len(told) == 1:
        raise Skip(f'nothing can be recorded here: {said.strip()}')
    equal(child.returncode, 0, said)
    check(told[0].startswith('READY=1\n'), told)
    check(any(text.startswith('WATCHDOG=1\nSTATUS=') for text in told), told)
    equal(told[-2], 'STOPPING=1', 'the last message')


if __name__ == '__main__':
    sys.exit(main())
