# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of sending share: what a server received, and certificates."""

import glob
import gzip
import os
import shutil
import socket
import ssl
import struct
import subprocess
import time

import harness
import pprof
from harness import LIMIT, TMP, Skip, check, equal

CURVE = ('-pkeyopt', 'ec_paramgen_curve:P-256')
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.lower().endswith('_proxy')}
HELD = []       # sockets whose ports nobody else gets


def place(name):
    return os.path.join(TMP, name)


def senders(spool):
    """The processes that send from a spool, which is named by its path."""
    found = []
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            with open(path, 'rb') as file:
                words = file.read().split(b'\0')
        except OSError:
            continue
        if words[0].endswith(b'/shstk-push') and f'--spool={spool}'.encode() in words:
            found.append(int(path.split('/')[2]))
    return found


def write(name, data):
    """Writes a file of the test; returns its path."""
    with open(place(name), 'wb') as file:
        file.write(data)
    return place(name)


def need_sender():
    """Skip the test unless what sends was built."""
    if not os.path.exists(os.path.join(harness.BUILD, 'shstk-push')):
        raise Skip('shstk-push was not built: the headers of libcurl are missing')


def stacks(path):
    """The folded stacks of a profile, and their values."""
    out = place('stacks.folded')
    if os.path.exists(out):
        os.unlink(out)
    run = harness.shstk('report', '-q', '-o', out, path)
    equal(run.returncode, 0, run.stderr)
    with open(out, encoding='utf-8') as file:
        return sorted(harness.stack_lines(file.read()))


def unpacked(request):
    """The body of a request, not compressed."""
    encoding = request.headers.get('content-encoding')
    if encoding == 'gzip':
        return gzip.decompress(request.body)
    if encoding == 'zstd':
        return subprocess.run(['zstd', '-dc'], input=request.body, stdout=subprocess.PIPE,
                              check=True, timeout=LIMIT).stdout
    equal(encoding, None, 'encoding')
    return request.body


def kept(requests):
    """A file of the format shstk with what the requests have."""
    return b''.join(struct.pack('>I', len(body)) + body for body in map(unpacked, requests))


def same(requests, path):
    """What the requests have is what the file has."""
    equal(stacks(write('received.shstk', kept(requests))), stacks(path), 'received')


def field(number, value):
    """A field of a message: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    out = b''
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def walk(data, *numbers):
    """The values of the fields that these numbers lead to, in messages inside messages."""
    for number, value in pprof.fields(data):
        if number == numbers[0]:
            if numbers[1:]:
                yield from walk(value, *numbers[1:])
            else:
                yield value


def ids(request):
    """The ids of the profiles of a request."""
    return list(walk(unpacked(request), 1, 2, 2, 7))


def attributes(request):
    """The attributes of the resource that are texts."""
    found = {}
    for pair in walk(unpacked(request), 1, 1, 1):
        for key, value in zip(walk(pair, 1), walk(pair, 2, 1)):
            check(key not in found, f'{key} is there twice')
            found[key] = value
    return found


def mappings(request):
    """The attributes of each file's mappings that are texts: path, then name and value."""
    body, found = unpacked(request), {}
    texts = list(walk(body, 2, 5))
    table = [(next(walk(one, 1), 0), next(walk(one, 2, 1), None)) for one in walk(body, 2, 6)]
    for one in walk(body, 2, 1):
        path = texts[next(walk(one, 4), 0)].decode()
        for i in (n for numbers in walk(one, 5) for n in pprof.packed(numbers)):
            key, value = table[i]
            if value is not None:
                found.setdefault(path, {})[texts[key].decode()] = value.decode()
    return found


def until(condition, what):
    """Waits until something is true."""
    end = time.monotonic() + LIMIT
    while not condition():
        check(time.monotonic() < end, f'{what}: not within {LIMIT} s')
        time.sleep(0.02)


def wake(child, path):
    """When a process has ended, says so to a socket."""
    child.wait()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.sendto(b'END', path)


def nobody_listens():
    """The URL of a port where nobody listens, and nobody else can while this script runs."""
    held = socket.socket()
    held.bind(('127.0.0.1', 0))
    HELD.append(held)
    return f'http://127.0.0.1:{held.getsockname()[1]}'


def openssl(*args):
    run = harness.run('openssl', *args)
    check(run.returncode == 0, run.stderr)


def certificates():
    """Makes an authority, a certificate for the server, and one for the client."""
    if not shutil.which('openssl'):
        raise Skip('there is no openssl')
    for name in ('ca', 'wrong'):
        openssl('req', '-x509', '-newkey', 'ec', *CURVE, '-nodes', '-keyout', f'{name}.key', '-out',
                f'{name}.pem', '-subj', f'/CN={name}', '-days', '3650')
    write('names', b'subjectAltName=IP:127.0.0.1\n')
    for name in ('server', 'client'):
        openssl('req', '-newkey', 'ec', *CURVE, '-nodes', '-keyout', f'{name}.key', '-out',
                f'{name}.csr', '-subj', f'/CN={name}')
        openssl('x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key',
                '-CAcreateserial', '-out', f'{name}.pem', '-days', '3650', '-extfile', 'names')
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place('server.pem'), place('server.key'))
    return context
