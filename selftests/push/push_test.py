#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk push`: what a server receives is the profile, and what a server that misbehaves
does to it. Prints KTAP.

The servers are threads of this script, on the loopback address. What they got is written into a
file, which `shstk report` reads again.
"""

import base64
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import pprof  # noqa: E402
import published  # noqa: E402
from harness import Skip, check, equal, main, test  # noqa: E402
from received import (ENVIRONMENT, attributes, certificates, field, ids,  # noqa: E402
                      need_sender, nobody_listens, place, same, stacks, unpacked, varint, walk, write)
from server import Server, answer, endless, processes, raw, silent  # noqa: E402

OK, FAILED, USAGE, LATER = 0, 1, 2, 75
PATH = 'POST /v1development/profiles HTTP/1.1'
TOKEN = 'a-token-of-the-test-7f3b'


def profile(name='small', lines=3):
    """A file that keeps samples, of so many stacks; returns its path."""
    text = ''.join(f'main;job;step_{i} {i + 1}\n' for i in range(lines))
    plain = write(f'{name}.folded', text.encode())
    run = harness.shstk('report', '-q', '-o', place(f'{name}.shstk'), plain)
    equal(run.returncode, 0, run.stderr)
    return place(f'{name}.shstk')


def push(server, *options, status=OK, env=None):
    """Pushes and returns what was printed."""
    need_sender()
    to = [f'--to={server.url}'] if server else []
    run = harness.shstk('push', '--timeout=150', *to, *options,
                        env={**ENVIRONMENT, **(env or {})})
    wanted = status if isinstance(status, tuple) else (status,)
    check(run.returncode in wanted, f'{options}: status {run.returncode}: {run.stderr}')
    return run.stderr


# ---- What a server receives ----

@test
def otlp():
    """a Collector receives the profile, once, with names and attributes"""
    path = profile()
    with Server() as server:
        said = push(server, '--service-name=shop', '--attribute=host.id=7',
                    '--attribute=host.name=web', path)
    equal([r.line for r in server.requests], [PATH], 'requests')
    equal(server.requests[0].headers['content-type'], 'application/x-protobuf', 'type')
    equal(server.requests[0].headers['content-encoding'], 'gzip', 'encoding')
    same(server.requests, path)
    got = attributes(server.requests[0])
    equal([got[b'service.name'], got[b'host.id'], got[b'host.name']], [b'shop', b'7', b'web'],
          'attributes')
    check('in 1 request' in said, said)
    equal([len(i) for i in ids(server.requests[0])], [16] * len(ids(server.requests[0])), 'ids')


@test
def compressions():
    """--compress=none and --compress=zstd send the same"""
    path = profile()
    with Server() as server:
        push(server, '--compress=none', path)
        push(server, '--compress=none', '-q', place('small.folded'))
        if shutil.which('zstd'):
            push(server, '--compress=zstd', path)
    for request in server.requests:
        same([request], path)


@test
def many_messages():
    """20,000 samples are two requests, whose profiles have ids of their own"""
    path = profile('large', 20000)
    with Server(answer(500)) as server:
        push(server, path)
    first, again, second = server.requests
    equal(again.body, first.body, 'the same request again')
    same([again, second], path)
    every = ids(again) + ids(second)
    equal(len(set(every)), len(every), 'different ids')
    check(every, 'no ids')


@test
def pprof_file():
    """pprof's files are sent to a Collector, too; a path in the URL is kept"""
    profile()
    run = harness.shstk('report', '-q', '-o', place('small.pb.gz'), place('small.folded'))
    equal(run.returncode, 0, run.stderr)
    with Server() as server:
        push(None, f'--to={server.url}/prefix/v1development/profiles', place('small.pb.gz'))
    equal([r.line for r in server.requests], ['POST /prefix/v1development/profiles HTTP/1.1'],
          'line')
    same(server.requests, place('small.pb.gz'))


@test
def several_files():
    """each of several files is sent"""
    with Server() as server:
        push(server, profile(), profile('other', 5))
    equal(len(server.requests), 2, 'requests')
    same(server.requests[:1], place('small.shstk'))
    same(server.requests[1:], place('other.shstk'))


@test
def pyroscope():
    """Pyroscope's Push gets pprof in JSON with labels"""
    path = profile()
    with Server() as server:
        push(server, '--protocol=pyroscope', '--service-name=shop', '--attribute=host.id=7"', path)
        push(None, f'--to={server.url}/push.v1.PusherService/Push', '--service-name=shop',
             '--attribute=host.id=7"', path)
    for request in server.requests:
        equal(request.line, 'POST /push.v1.PusherService/Push HTTP/1.1', 'line')
        equal(request.headers['content-type'], 'application/json', 'type')
        series = json.loads(request.body)['series'][0]
        labels = {label['name']: label['value'] for label in series['labels']}
        equal([labels['service_name'], labels['host_id'], labels['host_name']],
              ['shop', '7"', socket.gethostname()], 'labels')
        check(labels['__name__'], 'no name')
        data = base64.b64decode(series['samples'][0]['rawProfile'], validate=True)
        equal(stacks(write('received.pb.gz', data)), stacks(path), 'received')
    equal(len(server.requests), 2, 'requests')


@test
def ingest():
    """Pyroscope's /ingest gets pprof as it is, with a name in the query"""
    path = profile()
    with Server() as server:
        push(None, f'--to={server.url}/ingest', '--service-name=sh op&', '--attribute=zone=a', path)
    equal(len(server.requests), 1, 'requests')
    target = urllib.parse.urlsplit(server.requests[0].line.split(' ')[1])
    query = urllib.parse.parse_qs(target.query)
    equal(target.path, '/ingest', 'path')
    host = re.sub('[{},=]', '_', socket.gethostname())
    equal([query['name'], query['format']], [[f'sh op&{{host.name={host},zone=a}}'], ['pprof']],
          'query')
    equal(stacks(write('received.pb.gz', server.requests[0].body)), stacks(path), 'received')


@test
def ingest_marks():
    """the characters between the parts of a series of /ingest are in none of its parts"""
    with Server() as server:
        push(None, f'--to={server.url}/ingest', '--service-name=a{b}', '--attribute=zone=x,y=z',
             '--attribute=host.name={}', profile())
    target = urllib.parse.urlsplit(server.requests[0].line.split(' ')[1])
    equal(urllib.parse.parse_qs(target.query)['name'], ['a_b_{zone=x_y_z,host.name=__}'],
          'name')


@test
def tenant():
    """--tenant is the header line X-Scope-OrgID"""
    with Server() as server:
        push(server, '--tenant=team-7', profile())
        push(server, '--tenant=two\r\nX-Other: 1', profile(), status=USAGE)
    equal([r.headers.get('x-scope-orgid') for r in server.requests], ['team-7'], 'tenant')


@test
def wrong_attributes():
    """attributes that are not UTF-8, or have control characters, are wrong options"""
    with Server() as server:
        for text in (b'--attribute=a=\xff', b'--attribute=\xc0\x80=a', b'--service-name=a\n',
                     b'--attribute==a', b'--attribute=a'):
            push(server, text, profile(), status=USAGE)
        push(server, '--service-name=Büro', profile())
    equal([attributes(r)[b'service.name'] for r in server.requests], ['Büro'.encode()], 'names')


@test
def parca():
    """Parca's writeraw gets pprof in JSON with labels"""
    path = profile()
    with Server() as server:
        push(server, '--protocol=parca', '--service-name=shop', path)
    equal([r.line for r in server.requests], ['POST /api/profiles/writeraw HTTP/1.1'], 'lines')
    series = json.loads(server.requests[0].body)['series'][0]
    labels = {label['name']: label['value'] for label in series['labels']['labels']}
    equal([labels['service_name'], labels['host_name']], ['shop', socket.gethostname()], 'labels')
    data = base64.b64decode(series['samples'][0]['rawProfile'], validate=True)
    equal(stacks(write('received.pb.gz', data)), stacks(path), 'received')


@test
def no_samples():
    """a profile without samples is no request"""
    types = b'\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x03cpu\x32\x02ns'
    with Server() as server:
        said = push(server, write('empty.pb', types))
    equal(server.requests, [], 'requests')
    check('no samples' in said, said)


@test
def damaged():
    """of a damaged file nothing is sent, and the files behind it are"""
    path = profile()
    with Server() as server:
        push(server, write('damaged.pb.gz', b'\x1f\x8b damaged'), path, status=FAILED)
    equal(len(server.requests), 1, 'requests')
    same(server.requests, path)


@test
def long_names():
    """a name of ten million letters is shortened; the rest of the profile arrives as it is"""
    path = write('long.folded', b'main;' + b'x' * 10_000_000 + b' 5\nmain;short 1\n')
    with Server() as server:
        push(server, path)
    equal(len(server.requests), 1, 'requests')
    same(server.requests, path)
    equal([value for _, value in stacks(path)], [1, 5], 'values')
    longest = max(walk(unpacked(server.requests[0]), 2, 5), key=len)
    check(longest.startswith(b'x' * 1000) and len(longest) < 100_000, f'{len(longest)} bytes')


# ---- Attributes ----

CONTAINER = '0123456789abcdef' * 4
POD = '1a2b3c4d-0000-4111-8222-abcdefabcdef'
# Processes: labels of their samples, and the attributes that their resource gets of them.
PROCESSES = (
    ({'process': 'nginx', 'cgroup': '/system.slice/nginx-one.service'},
     {'service.name': 'nginx-one', 'process.executable.name': 'nginx'}),
    ({'process': 'java', 'container': CONTAINER, 'cgroup':
      f'/kubepods.slice/kubepods-pod{POD.replace("-", "_")}.slice/cri-containerd-{CONTAINER}.scope'},
     {'service.name': 'java', 'process.executable.name': 'java', 'container.id': CONTAINER,
      'k8s.pod.uid': POD}),
    ({'process': 'web', 'container': CONTAINER,
      'cgroup': f'/system.slice/shop.service/libpod-payload-{CONTAINER}'},
     {'service.name': 'shop', 'process.executable.name': 'web', 'container.id': CONTAINER}),
    ({'process': 'sh', 'cgroup': '/machine.slice/machine-our\\x2dshop.scope/payload/init.scope'},
     {'service.name': 'our-shop', 'process.executable.name': 'sh'}),
    ({'thread': 'worker'}, {'service.name': 'worker', 'process.executable.name': 'worker'}))


def labelled():
    """A file of pprof's with a sample of each of PROCESSES; returns its path."""
    texts = ['', 'samples', 'count', 'work', 'pid']

    def text(of):
        if of not in texts:
            texts.append(of)
        return texts.index(of)

    body = field(1, field(1, 1) + field(2, 2)) + field(5, field(1, 1) + field(2, 3))
    body += field(4, field(1, 1) + field(3, 64) + field(4, field(1, 1)))
    for pid, (labels, _) in enumerate(PROCESSES, 101):
        pairs = b''.join(field(3, field(1, text(name)) + field(2, text(value)))
                         for name, value in labels.items())
        body += field(2, field(1, b'\1') + field(2, b'\1') + pairs +
                      field(3, field(1, 4) + field(3, pid)))
    return write('processes.pb', body + b''.join(field(6, one.encode()) for one in texts))


def resources(request):
    """The attributes of each resource."""
    found = []
    for resource in walk(unpacked(request), 1, 1):
        pairs = [(next(walk(pair, 1)).decode(), next(v for v in pprof.fields(next(walk(pair, 2)))))
                 for pair in walk(resource, 1)]
        equal(len(dict(pairs)), len(pairs), 'names')
        found.append({name: value.decode() if isinstance(value, bytes) else value
                      for name, (_, value) in pairs})
    return found


def machine_id():
    try:
        with open('/etc/machine-id', encoding='ascii') as file:
            found = file.read().strip()
    except OSError:
        return {}
    return {'host.id': found} if re.fullmatch('[0-9a-f]{32}', found) else {}


@test
def attributes_of_resources():
    """a resource has attributes of the machine, the process, its service, container, pod; no others"""
    with Server() as server:
        push(server, labelled())
    host = os.uname()
    ours = {'host.name': host.nodename, 'host.arch': host.machine, 'os.type': 'linux',
            'os.version': host.release, **machine_id()}
    wanted = {pid: {**ours, 'process.pid': pid, **has} for pid, (_, has) in enumerate(PROCESSES, 101)}
    request, = server.requests
    equal({one.get('process.pid'): one for one in resources(request)}, wanted, 'resources')
    with Server() as server:
        push(server, '--service-name=mine', '--attribute=host.id=7', '--attribute=k8s.pod.uid=x',
             labelled())
    request, = server.requests
    for one in resources(request):
        equal([one[name] for name in ('service.name', 'host.id', 'k8s.pod.uid')],
              ['mine', '7', 'x'], 'those of the options')


@test
def attributes_of_samples():
    """samples have thread.name, and frames profile.frame.type"""
    with Server() as server:
        push(server, labelled())
    body = unpacked(server.requests[0])
    texts = [text.decode() for text in walk(body, 2, 5)]
    table = [(texts[next(walk(one, 1), 0)], next(walk(one, 2, 1), b'').decode())
             for one in walk(body, 2, 6)]

    def named(message, number):
        return dict(table[i] for numbers in walk(message, number) for i in pprof.packed(numbers))

    threads = [named(sample, 2).get('thread.name') for sample in walk(body, 1, 2, 2, 2)]
    equal(sorted(filter(None, threads)), ['worker'], 'threads')
    kinds = [named(one, 4).get('profile.frame.type') for one in walk(body, 2, 2)]
    equal([kind for kind in kinds if kind], ['native'], 'frames')


# ---- Decoders of others ----

# What opentelemetry-proto 1.10 says of the messages that are written here: numbers of the fields.
PUBLISHED = {
    'Resource': {'attributes': 1},
    'Scope': {'name': 1, 'version': 2, 'attributes': 3},
    'KeyValue': {'key': 1, 'value': 2},
    'AnyValue': {'string_value': 1, 'bool_value': 2, 'int_value': 3, 'array_value': 5},
    'ProfilesData': {'resource_profiles': 1, 'dictionary': 2},
    'ResourceProfiles': {'resource': 1, 'scope_profiles': 2},
    'ScopeProfiles': {'scope': 1, 'profiles': 2},
    'Dictionary': {'mapping_table': 1, 'location_table': 2, 'function_table': 3, 'link_table': 4,
                   'string_table': 5, 'attribute_table': 6, 'stack_table': 7},
    'ValueType': {'type_strindex': 1, 'unit_strindex': 2},
    'Profile': {'sample_type': 1, 'samples': 2, 'time_unix_nano': 3, 'duration_nano': 4,
                'period_type': 5, 'period': 6, 'profile_id': 7, 'attribute_indices': 11},
    'Sample': {'stack_index': 1, 'attribute_indices': 2, 'link_index': 3, 'values': 4,
               'timestamps_unix_nano': 5},
    'Link': {'trace_id': 1, 'span_id': 2},
    'Mapping': {'memory_start': 1, 'memory_limit': 2, 'file_offset': 3, 'filename_strindex': 4,
                'attribute_indices': 5},
    'Stack': {'location_indices': 1},
    'Location': {'mapping_index': 1, 'address': 2, 'lines': 3, 'attribute_indices': 4},
    'Line': {'function_index': 1, 'line': 2, 'column': 3},
    'Function': {'name_strindex': 1, 'system_name_strindex': 2, 'filename_strindex': 3,
                 'start_line': 4},
    'MetricsData': {'resource_metrics': 1},
    'ResourceMetrics': {'resource': 1, 'scope_metrics': 2},
    'ScopeMetrics': {'scope': 1, 'metrics': 2},
    'Metric': {'name': 1, 'description': 2, 'unit': 3, 'gauge': 5, 'sum': 7},
    'Sum': {'data_points': 1, 'aggregation_temporality': 2, 'is_monotonic': 3},
    'NumberDataPoint': {'start_time_unix_nano': 2, 'time_unix_nano': 3, 'as_double': 4,
                        'as_int': 6, 'attributes': 7},
    'KeyValueAndUnit': {'key_strindex': 1, 'value': 2, 'unit_strindex': 3},
}
PUBLISHED['ProcessContext'] = {'resource': 1, 'attributes': 2}      # OTEP 4719
PROTO = os.path.join(harness.TOP, 'libshstk/symbol/otlp.proto')


@test
def published_numbers():
    """the fields of otlp.proto have the numbers that OpenTelemetry published"""
    with open(PROTO, encoding='utf-8') as file:
        text = file.read()
    for name, wanted in PUBLISHED.items():
        body = re.search(rf'^message {name} {{\n(.*?)^}}', text, re.M | re.S).group(1)
        found = {field: int(number)
                 for field, number in re.findall(r'(\w+) = (\d+);', body)}
        check(found, f'{name} has no fields')
        equal({field: wanted.get(field) for field in found}, found, name)


@test
def decoded_by_protoc():
    """otlp: protoc finds no field that the messages don't have, and the values of the profile"""
    if not shutil.which('protoc'):
        raise Skip("there is no protoc: Debian's package protobuf-compiler")
    with Server() as server:
        push(server, '--attribute=host.id=7', profile())
    done = subprocess.run(['protoc', '--decode=shstk.otlp.ProfilesData',
                           f'--proto_path={os.path.dirname(PROTO)}', PROTO],
                          input=unpacked(server.requests[0]), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=harness.LIMIT)
    equal((done.returncode, done.stderr), (0, b''), 'protoc')
    text = done.stdout.decode()
    equal(re.findall(r'^\s*\d+[:{ ].*', text, re.M), [], 'fields that are not known')
    values = [int(n) for n in re.findall(r'^ *values: (\d+)$', text, re.M)]
    equal(sorted(values), sorted([1, 2, 3]), 'values')
    for name in 'main', 'job', 'step_0', 'step_2', 'host.id':
        check(f'"{name}"' in text, f'{name} is not there')


TRACE, SPAN = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'


def spans():
    """Files of pprof's and their stacks: a program with inlined functions, a library without names, spans
    of traces, numbers beyond 32 bits. Returns the path."""
    texts = ['', 'samples', 'count', 'cpu', 'nanoseconds', '/usr/bin/shop', 'ab12' * 10, '/lib/café.so',
             'cd34' * 10, 'serve', '_Z5servev', 'shop.cc', 'parse', 'pid', 'tid', 'thread', 'worker',
             'trace_id', TRACE, 'span_id', SPAN, 'http.route', '/cart']
    number = texts.index
    types = ('samples', 'count'), ('cpu', 'nanoseconds')
    body = b''.join(field(1, field(1, number(kind)) + field(2, number(unit))) for kind, unit in types)
    for i, (start, path, build_id) in enumerate(((1 << 22, '/usr/bin/shop', 'ab12' * 10),
                                                 (0x7f0000000000, '/lib/café.so', 'cd34' * 10)), 1):
        body += field(3, field(1, i) + field(2, start) + field(3, start + 65536) + field(4, 4096 * i) +
                      field(5, number(path)) + field(6, number(build_id)))
    # Two functions at one address: the first is inlined into the second.
    for ident, mapping, address, lines in ((1, 1, (1 << 22) + 100, ((2, 7), (1, 21))),
                                           (2, 1, (1 << 22) + 900, ((1, 25),)),
                                           (3, 2, 0x7f0000000123, ())):
        body += field(4, field(1, ident) + field(2, mapping) + field(3, address) +
                      b''.join(field(4, field(1, function) + field(2, line)) for function, line in lines))
    for ident, name, linkage, line in (1, 'serve', '_Z5servev', 20), (2, 'parse', 'parse', 5):
        body += field(5, field(1, ident) + field(2, number(name)) + field(3, number(linkage)) +
                      field(4, number('shop.cc')) + field(5, line))
    span = (('trace_id', TRACE), ('span_id', SPAN))
    for stack, values, pid, labels in ((b'\1\2', (3, 30 << 40), 41, span), (b'\3\2', (1, 1), 41, ()),
                                       (b'\2', (2, 7), 42, (*span, ('http.route', '/cart')))):
        body += field(2, field(1, stack) + field(2, b''.join(map(varint, values))) + b''.join(
            field(3, field(1, number(key)) + field(2, number(text)))
            for key, text in (('thread', 'worker'), *labels)) + b''.join(
                field(3, field(1, number(key)) + field(3, of)) for key, of in (('pid', pid), ('tid', 1000))))
    body += field(9, 1_800_000_000_000_000_007) + field(10, 5_000_000_001)
    body += field(11, field(1, 3) + field(2, 4)) + field(12, 10_000_000)
    return write('spans.pb', body + b''.join(field(6, text.encode()) for text in texts))


@test
def decoded_by_opentelemetry():
    """otlp: OpenTelemetry's messages in Python find the samples, stacks, names, attributes, links and
    build ids of pprof"""
    service = published.module()
    published.need_version(service, PUBLISHED)
    path, again = spans(), place('spans.pb.gz')
    run = harness.shstk('report', '-q', '-o', again, path)
    equal(run.returncode, 0, run.stderr)
    with Server() as server:
        push(server, '--service-name=shop', '--attribute=host.id=7', path)
    message = published.Message(published.parse(service.ExportProfilesServiceRequest(),
                                                unpacked(server.requests[0])))
    decoded = published.compare([message], again)
    equal(message.times(), {(decoded.time, decoded.duration, decoded.period[2], *decoded.period[:2])},
          'begin, duration and period')
    links = {(link.trace_id.hex(), link.span_id.hex()) for link in message.tables.link_table[1:]}
    equal(links, {(TRACE, SPAN)}, 'links')
    found = [(of['service.name'], of['host.id'], of['process.pid']) for of, _ in message.profiles()]
    equal(sorted(found), [('shop', '7', pid) for pid in (41, 41, 42, 42)], 'resources')
    every = [profile.profile_id for _, profile in message.profiles()]
    equal([len(set(every)), {len(one) for one in every}], [len(every), {16}], 'ids')


@test
def decoded_by_go():
    """pprof: go tool pprof reads what /ingest and Push get, with the values of the profile"""
    if not shutil.which('go'):
        raise Skip("there is no go: Debian's package golang-go")
    with Server() as server:
        push(None, f'--to={server.url}/ingest', profile())
        push(server, '--protocol=pyroscope', profile())
    first, second = server.requests
    series = json.loads(second.body)['series'][0]
    for data in first.body, base64.b64decode(series['samples'][0]['rawProfile'], validate=True):
        run = harness.run('go', 'tool', 'pprof', '-raw', '-symbolize=none',
                          write('go.pb.gz', data),
                          env={**ENVIRONMENT, 'HOME': harness.TMP, 'PPROF_TMPDIR': harness.TMP})
        if run.returncode and 'no such tool' in run.stderr:
            raise Skip(f'there is no pprof in this go: {run.stderr.strip()}')
        equal(run.returncode, 0, run.stderr)
        samples = run.stdout.split('Samples:\n')[1].split('Locations\n')[0]
        values = [int(n) for n in re.findall(r'^ *(\d+)[ \d]*:', samples, re.M)]
        equal(sorted(values), [1, 2, 3], run.stdout)
        check('step_2' in run.stdout, run.stdout)


# ---- Servers that misbehave ----

@test
def errors_that_pass():
    """after 500 twice and 200 the request was sent three times, with the same ids"""
    path = profile()
    with Server(answer(500), answer(503)) as server:
        push(server, path)
    equal(len(server.requests), 3, 'requests')
    equal(len({r.body for r in server.requests}), 1, 'bodies')
    same(server.requests[2:], path)


@test
def errors_that_stay():
    """500 again and again ends with status 75, and files behind it are not tried"""
    with Server(*[answer(500)] * 9) as server:
        said = push(server, '--retries=1', profile(), place('small.folded'), status=LATER)
    equal(len(server.requests), 2, 'requests')
    check('answered 500' in said and "small.folded' was not sent" in said, said)


@test
def too_many_requests():
    """429 with Retry-After: the client comes again, not before"""
    with Server(answer(429, b'', 'Retry-After: 3')) as server:
        push(server, profile())
    equal(len(server.requests), 2, 'requests')
    first, second = (r.time for r in server.requests)
    check(second - first >= 3, f'came again after {second - first} s')


@test
def long_peace():
    """Retry-After beyond --max-wait: the client gives up instead of waiting"""
    # Newer versions of libcurl report six hours at most.
    with Server(answer(429, b'', 'Retry-After: 7200')) as server:
        said = push(server, profile(), status=LATER)
    equal(len(server.requests), 1, 'requests')
    check('7200' in said and '--max-wait' in said, said)


def final(act):
    """Pushes to a server that answers so, which fails and is not tried again; returns what was
    printed."""
    with Server(act) as server:
        said = push(server, profile(), status=FAILED)
    equal(len(server.requests), 1, 'requests')
    return said


@test
def refused():
    """400 is not tried again; what the server says is shown, without its control characters"""
    said = final(answer(400, b'wrong\x1b[31m profile'))
    check('answered 400: wrong?[31m profile' in said, said)


@test
def unknown_to_server():
    """501, a request that the server does not know, is not tried again"""
    final(answer(501))


@test
def refused_in_protobuf():
    """what a Collector says of a refusal is shown"""
    said = final(answer(400, b'\x08\x03\x12\x09bad table'))
    check('answered 400: bad table' in said, said)


@test
def partly():
    """profiles that a Collector rejects are said; nothing is sent again"""
    said = final(answer(200, b'\x0a\x0b\x08\x02\x12\x07too old'))
    check('rejected 2 profiles: too old' in said, said)


@test
def redirected():
    """a redirection is not followed"""
    with Server() as other, Server(answer(307, b'', f'Location: {other.url}/')) as server:
        said = push(server, f'--token-file={write("token", TOKEN.encode())}', profile(),
                    status=FAILED)
    equal([len(server.requests), len(other.requests)], [1, 0], 'requests')
    check('307' in said, said)


@test
def never_answers():
    """a server that never answers costs --timeout each time, and the end is status 75"""
    with Server(silent, silent, silent) as server:
        said = push(server, '--timeout=1', '--retries=1', profile(), status=LATER)
    check(len(server.requests) <= 2, 'more than two requests')
    check('time' in said.lower(), said)


@test
def nobody_there():
    """a port where nobody listens: status 75"""
    push(None, f'--to={nobody_listens()}', '--retries=1', profile(), status=LATER)


@test
def closes_before():
    """a server that closes before it answers gets the same request again"""
    with Server(raw(b''), raw(b'HTTP/1.1 2')) as server:
        push(server, profile())
    check(len(server.requests) >= 2, 'not sent again')
    equal(len({r.body for r in server.requests}), 1, 'bodies')


@test
def closes_within():
    """a server that says 200 and closes within its answer has the request: nothing comes twice"""
    with Server(raw(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc')) as server:
        push(server, profile())
    equal(len(server.requests), 1, 'requests')


@test
def garbage():
    """a server that does not speak HTTP is given up"""
    final(raw(b'\x00\xff\x80 garbage\n' * 1000))


@test
def huge_answer():
    """an answer of hundreds of MB is not read; 200 was said, nothing comes twice"""
    seen = []
    size = 256 << 20
    head = f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode()
    with Server(endless(head, b'x' * 65536, seen)) as server:
        push(server, profile())
    equal(seen, ['stopped'], 'the server')
    equal(len(server.requests), 1, 'requests')


@test
def endless_head():
    """header lines without end are not read to the end"""
    seen = []
    with Server(endless(b'HTTP/1.1 500 Error\r\n', b'A: b\r\n' * 1000, seen)) as server:
        push(server, '--retries=0', profile(), status=LATER)
    equal(seen, ['stopped'], 'the server')
    with Server(endless(b'', b'HTTP/1.1 100 Continue\r\n\r\n' * 1000, seen)) as server:
        push(server, '--retries=0', profile(), status=FAILED)
    equal(seen, ['stopped', 'stopped'], 'the server')


# ---- Tokens, certificates, proxies ----

@test
def token():
    """the token of a file is sent, and is on no command line"""
    lines = []

    def look(conn):
        lines.extend(processes())
        answer(200)(conn)

    with Server(look) as server:
        push(server, f'--token-file={write("token", TOKEN.encode() + bytes([10]))}', profile())
    equal([r.headers.get('authorization') for r in server.requests], [f'Bearer {TOKEN}'], 'token')
    check(any(b'shstk-push' in line for line in lines), 'the program was not seen')
    check(not any(TOKEN.encode() in line for line in lines), 'the token is on a command line')


@test
def token_without_encryption():
    """a token goes by http:// to no other machine and to no proxy"""
    path = write('token', TOKEN.encode())
    with Server() as proxy:
        said = push(None, '--to=http://192.0.2.1/', f'--token-file={path}', profile(),
                    status=FAILED, env={'http_proxy': proxy.url})
    equal(proxy.requests, [], 'requests')
    check('https' in said, said)


@test
def wrong_tokens():
    """a file that holds no token is a wrong option"""
    with Server() as server:
        for text in (b'', b'two words', b'line\r\nX-Other: 1', b'x' * 9000):
            push(server, f'--token-file={write("token", text)}', profile(), status=USAGE)
        push(server, f'--token-file={place("no-such-file")}', profile(), status=USAGE)
    equal(server.requests, [], 'requests')


@test
def proxy():
    """the proxy of the environment is used"""
    with Server() as server:
        push(None, '--to=http://192.0.2.1:4318', profile(), env={'http_proxy': server.url})
    equal([r.line for r in server.requests],
          ['POST http://192.0.2.1:4318/v1development/profiles HTTP/1.1'], 'lines')


@test
def wrong_urls():
    """URLs with a password and those of other protocols are wrong options"""
    path = profile()
    for url in ('http://user:word@127.0.0.1:1/', 'ftp://127.0.0.1:1/', 'file:///etc/passwd', 'x',
                ''):
        push(None, f'--to={url}', path, status=USAGE)


@test
def encrypted():
    """https: only with the right authority; the client shows its certificate"""
    context = certificates()
    path = profile()
    with Server(context=context) as server:
        push(server, path, status=FAILED)
        push(server, f'--cacert={place("wrong.pem")}', path, status=FAILED)
        equal(server.requests, [], 'requests')
        push(server, f'--cacert={place("ca.pem")}', path)
        equal(len(server.requests), 1, 'requests')
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(place('ca.pem'))
    with Server(context=context) as server:
        push(server, f'--cacert={place("ca.pem")}', f'--cert={place("client.pem")}',
             f'--key={place("client.key")}', path)
        equal(len(server.requests), 1, 'requests')
    same(server.requests, path)


@test
def without_certificate():
    """a server that wants a certificate gets nothing without one"""
    context = certificates()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(place('ca.pem'))
    with Server(context=context) as server:
        push(server, f'--cacert={place("ca.pem")}', '--retries=0', profile(),
             status=(FAILED, LATER))
    equal(server.requests, [], 'requests')


if __name__ == '__main__':
    sys.exit(main())
