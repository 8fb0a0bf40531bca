#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the files for containers (packaging/container/) as far as that goes without a cluster: the
names and kinds of the manifest's fields are Kubernetes', its parts fit together, its options are
options, and it may do what the unit of systemd may. Prints KTAP.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import TOP, check, equal, main, test  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None

MANIFEST = 'packaging/container/daemonset.yaml'
CONTAINERFILE = 'packaging/container/Containerfile'
UNIT = 'tools/record/shstkd-profile.service'

# Fields of Kubernetes' API, version 1.30 or newer, that may be in the manifest, and what they hold.
# A dictionary with the key '*' has any names.
TEXT, YES = str, bool
LABELS = {'*': TEXT}
META = {'name': TEXT, 'namespace': TEXT, 'labels': LABELS}
CONTAINER = {
    'name': TEXT, 'image': TEXT, 'args': [TEXT],
    'env': [{'name': TEXT, 'valueFrom': {'fieldRef': {'fieldPath': TEXT}}}],
    'securityContext': {
        'runAsUser': int, 'readOnlyRootFilesystem': YES, 'allowPrivilegeEscalation': YES,
        'appArmorProfile': {'type': TEXT}, 'seccompProfile': {'type': TEXT},
        'capabilities': {'drop': [TEXT], 'add': [TEXT]}},
    'resources': {'requests': LABELS, 'limits': LABELS},
    'volumeMounts': [{'name': TEXT, 'mountPath': TEXT, 'readOnly': YES}]}
POD = {
    'hostPID': YES, 'automountServiceAccountToken': YES, 'terminationGracePeriodSeconds': int,
    'tolerations': [{'operator': TEXT}], 'containers': [CONTAINER],
    'volumes': [{'name': TEXT, 'configMap': {'name': TEXT}, 'emptyDir': {},
                 'hostPath': {'path': TEXT, 'type': TEXT}}]}
KINDS = {
    ('v1', 'Namespace'): {},
    ('v1', 'ConfigMap'): {'data': LABELS},
    ('apps/v1', 'DaemonSet'): {'spec': {
        'selector': {'matchLabels': LABELS},
        'template': {'metadata': {'labels': LABELS}, 'spec': POD}}}}
WORDS = {'File', 'DirectoryOrCreate', 'Unconfined', 'RuntimeDefault'}


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as file:
        return file.read()


def wrong(value, schema, where):
    """Yields what of a value the schema does not know."""
    if isinstance(schema, list):
        if not isinstance(value, list) or not value:
            yield f'{where}: no list'
            return
        for i, part in enumerate(value):
            yield from wrong(part, schema[0], f'{where}[{i}]')
    elif isinstance(schema, dict):
        if not isinstance(value, dict):
            yield f'{where}: no fields'
            return
        for name, part in value.items():
            if name in schema or '*' in schema:
                yield from wrong(part, schema.get(name, schema.get('*')), f'{where}.{name}')
            else:
                yield f'{where}.{name}: no such field'
    elif type(value) is not schema:         # pylint: disable=unidiomatic-typecheck
        yield f'{where}: {value!r} is no {schema.__name__}'


def objects():
    return list(yaml.safe_load_all(read(MANIFEST)))


def only(kind):
    (found,) = (one for one in objects() if one['kind'] == kind)
    return found


def pod():
    return only('DaemonSet')['spec']['template']['spec']


def setting(name):
    """A line of the unit."""
    return re.search(rf'^{name}=(.*)$', read(UNIT), re.M).group(1)


@test
def fields():
    """the manifest has only fields that Kubernetes has there, of the right kinds"""
    found = []
    for one in objects():
        schema = KINDS.get((one.get('apiVersion'), one.get('kind')))
        check(schema is not None, f'{one.get("apiVersion")} {one.get("kind")}')
        found += wrong(one, {'apiVersion': TEXT, 'kind': TEXT, 'metadata': META, **schema},
                       one['kind'])
    equal(found, [], 'fields')
    mistaken = only('DaemonSet')
    mistaken['spec']['template']['spec'].update(hostPid=True, hostPID='yes')
    equal(len(list(wrong(mistaken['spec'], KINDS['apps/v1', 'DaemonSet']['spec'], 'spec'))), 2,
          'mistakes that are found')


@test
def parts():
    """selectors, volumes, mounts and namespaces are those of the other parts"""
    spec = only('DaemonSet')['spec']
    equal(spec['selector']['matchLabels'], spec['template']['metadata']['labels'], 'labels')
    (container,) = pod()['containers']
    volumes = {volume['name']: volume for volume in pod()['volumes']}
    equal(sorted(volumes), sorted(mount['name'] for mount in container['volumeMounts']), 'volumes')
    equal(volumes['config']['configMap']['name'], only('ConfigMap')['metadata']['name'], 'config')
    equal({len(volume) for volume in volumes.values()}, {2}, 'sources of volumes')
    words = {volume['hostPath']['type'] for volume in volumes.values() if 'hostPath' in volume}
    words |= {container['securityContext'][name]['type']
              for name in ('appArmorProfile', 'seccompProfile')}
    check(words <= WORDS, f'{words}')
    equal({one['metadata'].get('namespace') for one in objects() if one['kind'] != 'Namespace'},
          {only('Namespace')['metadata']['name']}, 'namespaces')
    check(pod()['hostPID'] is True, 'processes of the node are not seen')


@test
def options():
    """its arguments and its configuration are options of shstk record"""
    (text,) = only('ConfigMap')['data'].values()
    (name,) = only('ConfigMap')['data']
    (container,) = pod()['containers']
    (mount,) = (m for m in container['volumeMounts'] if m['name'] == 'config')
    path = os.path.join(harness.TMP, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    words = [word.replace(f'{mount["mountPath"]}/{name}', path) for word in container['args']]
    check(f'--config={path}' in words, f'{words}')
    run = harness.shstk(words[0], '--dry-run', *words[1:])
    equal((run.returncode, run.stderr), (0, ''), 'options')
    known = {variable['name'] for variable in container['env']}
    equal(set(re.findall(r'\$\((\w+)\)', ' '.join(words))), known, 'variables')


@test
def rights():
    """it has the capabilities and the memory that the unit of systemd gives, and no more"""
    (container,) = pod()['containers']
    context = container['securityContext']
    equal(context['capabilities']['drop'], ['ALL'], 'dropped')
    equal({f'CAP_{name}' for name in context['capabilities']['add']},
          set(setting('CapabilityBoundingSet').split()), 'capabilities')
    equal(context['allowPrivilegeEscalation'], setting('NoNewPrivileges') != 'yes', 'privileges')
    equal(container['resources']['limits']['memory'], f'{setting("MemoryMax")}i', 'memory')


@test
def image():
    """the image is built with all packages that building needs, and has what is installed"""
    text = read(CONTAINERFILE)
    first, second = text.split('\nFROM ')[1:]
    asked = set(re.findall(r'[\w.+-]+', first))
    for line in read('.ci/packages').split('\n'):
        if re.search(r'\s(build|build,\S+)$', line) and not line.startswith('#'):
            names = line.split()[0].split('|')
            check(asked & set(names), f'{names} is not installed')
    out = re.search(r'DESTDIR=(\S+)', first).group(1)
    copied = re.findall(rf'^COPY --from=build {out}(\S+)', second, re.M)
    equal(copied, ['/usr/bin/shstk', '/usr/lib/shstk', '/etc/shstk'], 'files')
    check('ENTRYPOINT ["/usr/bin/shstk"]' in second, 'nothing is started')


if __name__ == '__main__':
    sys.exit(main(lambda: None if yaml else "no yaml: Debian's package python3-yaml"))
