#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests that what Parca is sent are messages of Parca's own, without a field that it does not know:
they are read by @parca/client, which Parca's authors generate of its .proto files. Prints KTAP.

The client is npm's package; where it can't be got, or there is no Node.js, all is skipped.
"""

import base64
import json
import os
import re
import shutil
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import Skip, check, equal, main, test  # noqa: E402
from npm import npm_package  # noqa: E402
from received import ENVIRONMENT, need_sender, place, stacks, write  # noqa: E402
from server import Server, answer  # noqa: E402

PACKAGES = (
    ('@parca/client', '0.17.24',
     'sha512-ugQKVdgz0gIwH7X4Od6IgBCzmUlMD94otLf/ijbhiM71stGZgU2h9N42iTn9YfhZcdFMktBDRuOZ2Pt908JUFQ=='),
    ('@protobuf-ts/runtime', '2.11.1',
     'sha512-KuDaT1IfHkugM2pyz+FwiY80ejWrkH1pAtOBOZFuR6SXEFTsnb/jiQWQ1rCIrcKx2BtyxnxW6BWwsVSA/Ie+WQ=='),
    ('@protobuf-ts/runtime-rpc', '2.11.1',
     'sha512-4CqqUmNA+/uMz00+d3CYKgElXO9VrEbucjnBFEjqI4GuDrEQ32MaI3q+9qPBvIGOlL4PmHXrzM32vBPWRhQKWQ=='))
PROFILES = 'profilestore/v1alpha1/profilestore', 'ProfileStoreService'
FILES = 'debuginfo/v1alpha1/debuginfo', 'DebuginfoService'
ID = bytes(range(0xa0, 0xb4))

# Reads messages by the client: lines "FILE SERVICE METHOD I|O JSON". Each is made binary, as Parca
# takes it from other clients, and what that says is printed, behind the path of the method.
READ = r'''
import { readFileSync } from "node:fs";
for (const line of readFileSync(0, "utf8").trimEnd().split("\n")) {
	const [file, service, name, which, ...text] = line.split(" ");
	const client = await import(`@parca/client/dist/parca/${file}.js`);
	const method = client[service].methods.find((one) => one.name === name);
	const message = method[which].fromJsonString(text.join(" "));
	const again = method[which].fromBinary(method[which].toBinary(message));
	console.log(method.options["google.api.http"].post + " " + method[which].toJsonString(again));
}
'''


def copy_packages(to):
    """Lays the packages where Node.js looks for them. Their own imports leave out the ends of names,
    which bundlers find and Node.js does not."""
    for name, version, integrity in PACKAGES:
        shutil.copytree(npm_package(name, version, integrity), os.path.join(to, name))
    client = os.path.join(to, PACKAGES[0][0])
    for folder, _, names in os.walk(client):
        for name in (name for name in names if name.endswith('.js')):
            path = os.path.join(folder, name)
            with open(path, encoding='utf-8') as file:
                text = file.read()
            with open(path, 'w', encoding='utf-8') as file:
                file.write(re.sub(r'(from "\.[^"]*)"', r'\1.js"', text))
    with open(os.path.join(client, 'package.json'), 'w', encoding='utf-8') as file:
        json.dump({'name': PACKAGES[0][0], 'type': 'module'}, file)


def read(*messages):
    """Has messages read: (file, service), method, whether it is the question or the answer (I, O),
    JSON. Returns the path and the content of each."""
    if not shutil.which('node'):
        raise Skip('there is no node')
    if not os.path.exists(place('node_modules')):
        copy_packages(place('node_modules'))
    lines = ''.join(f'{file} {service} {method} {which} {text}\n'
                    for (file, service), method, which, text in messages)
    run = harness.run('node', write('read.mjs', READ.encode()), input=lines)
    equal(run.returncode, 0, run.stderr)
    found = [line.partition(' ') for line in run.stdout.splitlines()]
    equal(len(found), len(messages), run.stdout)
    return [(path, json.loads(text)) for path, _, text in found]


def push(*options):
    need_sender()
    run = harness.shstk('push', '-q', '--timeout=150', *options, env=ENVIRONMENT)
    equal(run.returncode, 0, run.stderr)


def path_of(request):
    return request.line.split(' ')[1]


@test
def profiles():
    """a profile is a WriteRawRequest with its labels and the profile's bytes"""
    path = write('small.folded', b'main;job 5\nmain;other 1\n')
    with Server() as server:
        push(f'--to={server.url}', '--protocol=parca', '--service-name=shop',
             '--attribute=host.name=on"e', path)
    request, = server.requests
    (posted, got), = read((PROFILES, 'WriteRaw', 'I', ' '.join(request.body.decode().split('\n'))))
    equal(path_of(request), '/api' + posted, 'path')
    series, = got.pop('series')
    equal(got, {}, 'what is beside the series')
    equal([(label['name'], label['value']) for label in series['labels']['labels']],
          [('__name__', 'shstk'), ('service_name', 'shop'), ('host_name', 'on"e')], 'labels')
    sample, = series['samples']
    data = base64.b64decode(sample['rawProfile'], validate=True)
    equal(stacks(write('received.pb.gz', data)), stacks(path), 'received')


def program():
    """An ELF file with a build id; returns its path."""
    note = struct.pack('<3I', 4, len(ID), 3) + b'GNU\0' + ID
    head = struct.pack('<16s2HI3QI6H', b'\x7fELF\2\1\1', 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    head += struct.pack('<2I6Q', 4, 4, 120, 120, 120, len(note), len(note), 4)
    return write('program', (head + note).ljust(4096, b'x'))


@test
def files():
    """what is asked and sent of a debug file are messages of its service, and so are the answers here"""
    answers = {'ShouldInitiateUpload': {'shouldInitiateUpload': True, 'reason': 'new'},
               'InitiateUpload': {'uploadInstructions': {
                   'buildId': ID.hex(), 'uploadId': 'an-upload-7',
                   'uploadStrategy': 'UPLOAD_STRATEGY_GRPC', 'signedUrl': '',
                   'type': 'DEBUGINFO_TYPE_DEBUGINFO_UNSPECIFIED'}},
               'Upload': {'buildId': ID.hex(), 'size': '4096'}, 'MarkUploadFinished': {}}
    read_answers = read(*((FILES, name, 'O', json.dumps(said)) for name, said in answers.items()))
    paths = {'/api' + path: answer(200, json.dumps(said).encode())
             for (path, _), said in zip(read_answers, answers.values())}
    with Server(paths=paths) as server:
        push('--symbols', f'--to={server.url}', program())
    equal([path_of(request) for request in server.requests], list(paths), 'paths')
    # An upload is a stream of messages, one in a line.
    asked = [(FILES, name, 'I', line) for name, request in zip(answers, server.requests)
             for line in request.body.decode().splitlines()]
    should, initiate, *upload, finished = (text for _, text in read(*asked))
    equal(should, {'buildId': ID.hex(), 'buildIdType': 'BUILD_ID_TYPE_GNU'}, 'should')
    equal([initiate[key] for key in ('buildId', 'buildIdType', 'size')],
          [ID.hex(), 'BUILD_ID_TYPE_GNU', '4096'], 'initiate')
    equal(upload.pop(0), {'info': {'buildId': ID.hex(), 'uploadId': 'an-upload-7'}}, 'info')
    data = b''.join(base64.b64decode(piece['chunkData'], validate=True) for piece in upload)
    with open(place('program'), 'rb') as file:
        check(data == file.read(), 'other bytes')
    equal(finished, {'buildId': ID.hex(), 'uploadId': 'an-upload-7'}, 'finished')


if __name__ == '__main__':
    sys.exit(main())
