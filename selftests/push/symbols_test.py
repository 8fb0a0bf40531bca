#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk push --symbols`: which debug files a server is offered, that it gets those that it wants
byte by byte, and what a server that misbehaves does to it. Prints KTAP.

The server is that of server.py, which answers as Parca does. Programs are ELF files of a header and a
build id, made here; profiles that name them are pprof's.
"""

import base64
import json
import os
import shutil
import struct
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import Skip, check, equal, main, test  # noqa: E402
from received import (ENVIRONMENT, certificates, field, need_sender, nobody_listens,  # noqa: E402
                      place, varint, write)
from server import Server, answer, endless, raw  # noqa: E402

OK, FAILED, USAGE, LATER = 0, 1, 2, 75
STEPS = ['/api/shouldinitiateupload', '/api/initiateupload', '/api/upload',
         '/api/markuploadfinished']
SHOULD, INITIATE, UPLOAD, FINISHED = STEPS
ID = bytes(range(0xa0, 0xb4))


def says(value):
    """Returns a function that answers with JSON."""
    return answer(200, json.dumps(value).encode())


WANTED = says({'shouldInitiateUpload': True, 'reason': 'First time we see this Build ID'})
UNWANTED = says({'shouldInitiateUpload': False, 'reason': 'Debuginfo exists in debuginfod'})


def instructions(strategy='UPLOAD_STRATEGY_GRPC', **more):
    return says({'uploadInstructions': {
        'buildId': ID.hex(), 'uploadId': 'an-upload-7', 'uploadStrategy': strategy,
        'signedUrl': '', 'type': 'DEBUGINFO_TYPE_DEBUGINFO_UNSPECIFIED', **more}})


def parca(**others):
    """What Parca answers by default, by path."""
    paths = {SHOULD: WANTED, INITIATE: instructions(),
             UPLOAD: says({'buildId': ID.hex(), 'size': '1'}), FINISHED: says({})}
    return {**paths, **{'/api/' + step: act for step, act in others.items()}}


def program(name='program', build_id=ID, size=4096):
    """An ELF file of so many bytes with that build id; returns its path."""
    note = struct.pack('<3I', 4, len(build_id), 3) + b'GNU\0' + build_id
    head = struct.pack('<16s2HI3QI6H', b'\x7fELF\2\1\1', 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    head += struct.pack('<2I6Q', 4, 4, 120, 120, 120, len(note), len(note), 4)
    data = head + note
    return write(name, data + bytes(i * 7 % 251 for i in range(size - len(data))))


def profile(*programs, name='profile.pb'):
    """A profile with a sample in each program, (path, build id); returns its path."""
    texts = ['', 'cpu', 'ns']
    body = field(1, field(1, 1) + field(2, 2))
    for i, (path, build_id) in enumerate(programs, 1):
        texts += [path, build_id.hex()]
        body += field(2, field(1, varint(i)) + field(2, varint(i)))
        body += field(3, field(1, i) + field(2, i << 20) + field(3, (i + 1) << 20)
                      + field(5, len(texts) - 2) + field(6, len(texts) - 1))
        body += field(4, field(1, i) + field(2, i) + field(3, (i << 20) + 64))
    return write(name, body + b''.join(field(6, text.encode()) for text in texts))


def push(server, *options, status=OK):
    """Pushes debug files and returns what was printed."""
    need_sender()
    to = [f'--to={server.url}'] if server else []
    run = harness.shstk('push', '--symbols', '--timeout=150', *to, *options, env=ENVIRONMENT)
    wanted = status if isinstance(status, tuple) else (status,)
    check(run.returncode in wanted, f'{options}: status {run.returncode}: {run.stderr}')
    return run.stderr


def paths(server):
    return [request.line.split(' ')[1] for request in server.requests]


def content(path):
    with open(path, 'rb') as file:
        return file.read()


def uploaded(request):
    """What an upload has: the message with the ids, and the bytes of the file."""
    first, *pieces = map(json.loads, request.body.splitlines())
    data = b''.join(base64.b64decode(piece['chunkData'], validate=True) for piece in pieces)
    return first, data


def is_upload(request, path):
    equal(uploaded(request), ({'info': {'buildId': ID.hex(), 'uploadId': 'an-upload-7'}},
                              content(path)), 'upload')


# ---- What a server receives ----

@test
def wanted():
    """a debug file that the server wants arrives byte by byte, with the build id of the profile"""
    path = program()
    with Server(paths=parca()) as server:
        said = push(server, profile((path, ID)), f'--token-file={write("token", b"word")}',
                    '--tenant=team-7')
    equal(paths(server), STEPS, 'requests')
    should, initiate, upload, finished = server.requests
    equal(json.loads(should.body), {'buildId': ID.hex(), 'buildIdType': 'BUILD_ID_TYPE_GNU'},
          'question')
    equal(json.loads(initiate.body),
          {'buildId': ID.hex(), 'buildIdType': 'BUILD_ID_TYPE_GNU', 'size': '4096',
           'hash': f'crc32-{zlib.crc32(content(path)):08x}'}, 'initiate')
    is_upload(upload, path)
    equal(json.loads(finished.body), {'buildId': ID.hex(), 'uploadId': 'an-upload-7'}, 'finished')
    for request in server.requests:
        equal([request.line.split(' ')[0], request.headers['content-type'],
               request.headers['authorization'], request.headers['x-scope-orgid']],
              ['POST', 'application/json', 'Bearer word', 'team-7'], 'head')
    check('1 sent (4 KiB)' in said, said)


@test
def large():
    """a file of several pieces arrives byte by byte, whatever is left for the last one"""
    for size in (768 << 10, (2 << 20) + 1, (768 << 10) + 2):
        path = program('large', size=size)
        with Server(paths=parca()) as server:
            push(server, path)
        equal(paths(server), STEPS, 'requests')
        is_upload(server.requests[2], path)


@test
def by_url():
    """a file for a URL that the server chose goes there by PUT, as it is, without the token"""
    path = program(size=900_000)
    with Server() as store:
        by = instructions('UPLOAD_STRATEGY_SIGNED_URL', signedUrl=f'{store.url}/a%2Fb?sig=x%2By')
        with Server(paths=parca(initiateupload=by)) as server:
            push(server, path, f'--token-file={write("token", b"word")}', '--tenant=team-7')
    equal(paths(server), [SHOULD, INITIATE, FINISHED], 'requests')
    equal([r.line for r in store.requests], ['PUT /a%2Fb?sig=x%2By HTTP/1.1'], 'lines')
    equal(store.requests[0].body == content(path), True, 'the same bytes')
    equal([name for name in ('authorization', 'x-scope-orgid', 'content-type')
           if name in store.requests[0].headers], [], 'header lines')


@test
def unwanted():
    """a file that the server does not want is not sent, and that is no failure"""
    with Server(paths=parca(shouldinitiateupload=UNWANTED)) as server:
        said = push(server, profile((program(), ID)))
    equal(paths(server), [SHOULD], 'requests')
    check('0 sent' in said and ' 1 that the server has' in said, said)


@test
def already_there():
    """a file that the server got from another machine meanwhile is not sent (409)"""
    with Server(paths=parca(initiateupload=answer(409, b'{"code":6,"message":"there"}'))) as server:
        said = push(server, program())
    equal(paths(server), [SHOULD, INITIATE], 'requests')
    check('0 sent' in said and ' 1 that the server has' in said, said)


@test
def each_once():
    """what several profiles and programs name is sent once; all of them are sent"""
    path, other = program(), program('other', ID[::-1])
    with Server(paths=parca()) as server:
        push(server, profile((path, ID), (other, ID[::-1])), profile((path, ID), name='again.pb'),
             path)
    equal(paths(server), STEPS * 2, 'requests')
    equal([json.loads(r.body)['buildId'] for r in server.requests[::4]],
          [ID.hex(), ID[::-1].hex()], 'build ids')


@test
def paths_of_urls():
    """the path of the URL is that of the API, or that to which profiles are sent"""
    path = program()
    for end in ('/prefix/api', '/prefix/api/', '/prefix/api/profiles/writeraw'):
        with Server(paths={'/prefix/api/shouldinitiateupload': UNWANTED}) as server:
            push(None, f'--to={server.url}{end}', path)
        equal(paths(server), ['/prefix/api/shouldinitiateupload'], end)


# ---- Which files ----

@test
def wrong_build_id():
    """a file with another build id than the profile's is neither offered nor sent"""
    with Server(paths=parca()) as server:
        said = push(server, profile((program(), ID[::-1])))
    equal(paths(server), [], 'requests')
    check('1 not on this machine' in said, said)


@test
def no_files():
    """a pipe, a folder, and what is no program or not there, is never sent; nothing waits for it"""
    fifo = place('fifo')
    if not os.path.exists(fifo):
        os.mkfifo(fifo)
    named = [fifo, harness.TMP, write('text', b'text'), place('no-such-file')]
    with Server(paths=parca()) as server:
        said = push(server, profile(*((path, ID[:-1] + bytes([i]))
                                      for i, path in enumerate(named))))
    equal(paths(server), [], 'requests')
    check(f'{len(named)} not on this machine' in said, said)


@test
def no_build_id():
    """a program without a build id is said"""
    with Server(paths=parca()) as server:
        said = push(server, program(build_id=b''), program('other'), status=FAILED)
    equal(paths(server), STEPS, 'requests')
    check('has no build id' in said, said)


@test
def separate():
    """the separate debug file beside a program is sent in its place"""
    if not shutil.which('gcc') or not shutil.which('objcopy'):
        raise Skip("there is no gcc or no objcopy: Debian's packages gcc and binutils")
    write('main.c', b'int main(void)\n{\n\treturn 0;\n}\n')
    for command in (['gcc', '-g', f'-Wl,--build-id=0x{ID.hex()}', '-o', 'stripped', 'main.c'],
                    ['objcopy', '--only-keep-debug', 'stripped', 'stripped.debug'],
                    ['objcopy', '--strip-all', '--add-gnu-debuglink=stripped.debug', 'stripped']):
        run = harness.run(*command)
        equal(run.returncode, 0, run.stderr)
    with Server(paths=parca()) as server:
        push(server, place('stripped'))
    is_upload(server.requests[2], place('stripped.debug'))


@test
def too_large():
    """a file larger than --symbols-size is not sent, which is said; one of that size is"""
    exact, larger = program('exact', ID, 1 << 20), program('larger', ID[::-1], (1 << 20) + 1)
    with Server(paths=parca()) as server:
        said = push(server, '--symbols-size=1', larger, exact)
    equal(paths(server), STEPS, 'requests')
    check('--symbols-size=1' in said and '1 too large' in said and '1 sent' in said, said)


# ---- Servers that misbehave ----

@test
def errors_that_pass():
    """after 429 and 500 each request is sent again, as a whole"""
    path = program(size=900_000)
    with Server(answer(429, b'', 'Retry-After: 1'), WANTED, answer(500), instructions(),
                answer(503), answer(200), answer(502), paths=parca()) as server:
        push(server, path)
    equal(paths(server), [step for step in STEPS for _ in range(2)], 'requests')
    is_upload(server.requests[4], path)
    is_upload(server.requests[5], path)
    check(server.requests[1].time - server.requests[0].time >= 1, 'came again too early')


@test
def errors_that_stay():
    """500 again and again ends with status 75, and files behind it are not tried"""
    for step in STEPS:
        with Server(paths={**parca(), step: answer(500)}) as server:
            said = push(server, '--retries=1', program(), program('other', ID[::-1]), status=LATER)
        check(paths(server)[-2:] == [step] * 2 and paths(server).count(SHOULD) in (1, 2), said)
        check('answered 500' in said and '0 sent' in said, said)


@test
def refused_file():
    """what a server refuses of one file is said, and the next one is tried"""
    refusal = answer(400, b'{"code":3,"message":"upload size exceeds maximum allowed size"}')
    with Server(paths=parca(initiateupload=refusal)) as server:
        said = push(server, program(), program('other', ID[::-1]), status=FAILED)
    equal(paths(server), [SHOULD, INITIATE] * 2, 'requests')
    check('exceeds maximum allowed size' in said, said)


@test
def no_such_api():
    """a server that does not know the question is asked once"""
    for status in (404, 401, 501):
        with Server(paths=parca(shouldinitiateupload=answer(status))) as server:
            said = push(server, program(), program('other', ID[::-1]), status=FAILED)
        equal(paths(server), [SHOULD], 'requests')
        check(f'answered {status}' in said, said)


GARBAGE = [b'', b'{', b'[]', b'true', b'{"shouldInitiateUpload":true', b'{"shouldInitiateUpload":1}',
           b'{"shouldInitiateUpload":true,"shouldInitiateUpload":true}', b'\x00\xff' * 100,
           b'{"a":' * 1000, b'[' * 60000, b'{"shouldInitiateUpload":true}x',
           b'{"shouldInitiateUpload":true,"reason":"\\u12"}', b'x' * 100_000]


@test
def garbage():
    """an answer that is not Parca's is a failure; nothing is sent"""
    for text in GARBAGE:
        with Server(answer(200, text)) as server:
            push(server, program(), status=FAILED)
        equal(paths(server), [SHOULD], text[:40])


def bad_instructions(store):
    """Instructions that are not to be followed."""
    url = 'UPLOAD_STRATEGY_SIGNED_URL'
    return [says({}), says({'uploadInstructions': {}}), says({'uploadInstructions': [1]}),
            instructions('UPLOAD_STRATEGY_UNSPECIFIED'), instructions(1), instructions('x' * 1000),
            instructions(uploadId='a"b'), instructions(uploadId='a\nb'), instructions(uploadId=''),
            instructions(uploadId='x' * 500), instructions(url),
            instructions(url, signedUrl='file:///etc/passwd'),
            instructions(url, signedUrl=f'ftp://{store.address}/'),
            instructions(url, signedUrl=f'http://user:word@{store.address}/'),
            instructions(url, signedUrl=f'{store.url}/' + 'x' * 10_000)]


@test
def hostile_instructions():
    """instructions without an id, for an unknown way, or to what is no http URL, are refused"""
    path = program()
    with Server() as store:
        for act in bad_instructions(store):
            with Server(paths=parca(initiateupload=act)) as server:
                push(server, path, status=FAILED)
            equal(paths(server), [SHOULD, INITIATE], 'requests')
    equal(store.requests, [], 'requests')


@test
def redirected():
    """a redirection is not followed, neither of the server nor of the URL that it chose"""
    with Server() as other:
        away = answer(307, b'', f'Location: {other.url}/')
        with Server(away) as store:
            by = instructions('UPLOAD_STRATEGY_SIGNED_URL', signedUrl=store.url)
            with Server(paths=parca(initiateupload=by)) as server:
                push(server, program(), status=FAILED)
        equal(paths(server), [SHOULD, INITIATE], 'requests')
        with Server(away) as server:
            push(server, program(), status=FAILED)
    equal(other.requests, [], 'requests')


@test
def encrypted():
    """https: the server's files go to https:// only, and to servers with the right authority"""
    context = certificates()
    url, path = 'UPLOAD_STRATEGY_SIGNED_URL', program()
    with Server() as plain, Server(context=context) as store:
        for there, status in ((plain, FAILED), (store, OK)):
            by = instructions(url, signedUrl=there.url)
            with Server(context=context, paths=parca(initiateupload=by)) as server:
                push(server, f'--cacert={place("ca.pem")}', path, status=status)
            equal(paths(server)[:2], [SHOULD, INITIATE], 'requests')
    equal([plain.requests, [r.body == content(path) for r in store.requests]], [[], [True]],
          'requests')
    with Server(context=context, paths=parca()) as server:
        push(server, f'--cacert={place("wrong.pem")}', path, status=FAILED)
    equal(server.requests, [], 'requests')


@test
def closes_within():
    """a server that closes before or within its answer is asked again"""
    path = program()
    cut = raw(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"shouldInitiateUpload":true')
    with Server(raw(b''), cut, WANTED, cut, paths=parca()) as server:
        push(server, path)
    check(paths(server).count(SHOULD) >= 3 and paths(server).count(INITIATE) >= 2, paths(server))
    equal(paths(server)[-2:], [UPLOAD, FINISHED], 'requests')
    is_upload(server.requests[-2], path)


@test
def closes_after_upload():
    """an upload without an answer is sent again, as a whole"""
    path = program(size=900_000)
    with Server(WANTED, instructions(), raw(b''), paths=parca()) as server:
        push(server, path)
    uploads = [r for r in server.requests if r.line.split(' ')[1] == UPLOAD]
    check(len(uploads) >= 2, paths(server))
    for request in uploads:
        is_upload(request, path)


@test
def huge_answer():
    """an answer of hundreds of MB is not read to its end"""
    seen = []
    head = f'HTTP/1.1 200 OK\r\nContent-Length: {256 << 20}\r\n\r\n'.encode()
    with Server(endless(head, b' ' * 65536, seen)) as server:
        push(server, program(), status=FAILED)
    equal([seen, paths(server)], [['stopped'], [SHOULD]], 'the server')


@test
def nobody_there():
    """a port where nobody listens: status 75"""
    push(None, f'--to={nobody_listens()}', '--retries=0', program(), status=LATER)


@test
def wrong_options():
    """other protocols than Parca's, and a damaged profile"""
    with Server(paths=parca()) as server:
        push(server, '--protocol=otlp', program(), status=USAGE)
        push(server, '--symbols-size=0', program(), status=USAGE)
        push(server, write('damaged.pb.gz', b'\x1f\x8b damaged'), status=FAILED)
    equal(server.requests, [], 'requests')


if __name__ == '__main__':
    sys.exit(main())
