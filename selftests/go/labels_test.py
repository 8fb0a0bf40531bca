#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`shstk record` of Go programs: samples have the labels of their goroutines, and names of
Go's functions are whole in every format.

Prints KTAP; 4: there is no Go here.

usage: labels_test [--suites]

--suites: by all releases that selftests/go/toolchains fetched, too.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# pylint: disable=wrong-import-position
import common       # noqa: E402
import labels       # noqa: E402
from pprof import Decoded   # noqa: E402

SAMPLES = 40        # samples of each goroutine, at least
SECONDS = 2         # length of the first recording; it grows
FORMATS = ('pb.gz', 'folded', 'svg', 'perf', 'top', 'json')

# Names with type arguments. Up to Go 1.20 the table has "[...]" instead of them; only the symbols
# have them, with the number of the type parameter in front of each.
GENERIC = ('main.fold[go.shape.struct { A int "json:\\"a;b\\""; B string "yaml:\\"<c>\\"" }]',
           'main.fold[go.shape.map[string]main.pair]')


def record(path, via, seconds, folder):
    outputs = [arg for form in FORMATS for arg in ('-o', os.path.join(folder, 'out.' + form))]
    with subprocess.Popen([common.SHSTK, 'record', '--via=' + via, '--freq=499', *outputs, '--',
                           path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:
        common.wait_ready(child, path)
        time.sleep(seconds)
        text = child.communicate(timeout=common.PATIENCE)[1]
    if child.returncode:
        raise RuntimeError(f'record: {child.returncode}: {text[-500:]}')
    return Decoded(os.path.join(folder, 'out.pb.gz'))


def names_in(folder, form, wanted):
    """All names of functions that a file of this format shows; of a table, those wanted."""
    path = os.path.join(folder, 'out.' + form)
    if form == 'pb.gz':
        profile = Decoded(path)
        return {profile.text(f[2]) for f in profile.functions.values()}
    with open(path, encoding='utf-8') as f:
        text = f.read()
    if form == 'folded':
        return {n for line in text.splitlines() for n in line.rsplit(' ', 1)[0].split(';')}
    if form == 'svg':
        # The first line of a box is the whole name; figures follow in the next line.
        return {(e.text or '').split('\n')[0]
                for e in xml.etree.ElementTree.fromstring(text).iter()
                if e.tag.endswith('title')}
    if form == 'perf':
        return set(re.findall(r'(?m)^\t *[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \([^()]*\)$', text))
    if form == 'json':
        found = set()

        def walk(node):
            if isinstance(node, dict):
                found.update(v for v in node.values() if isinstance(v, str))
                node = list(node.values())
            if isinstance(node, list):
                for item in node:
                    walk(item)
        walk(json.loads(text))
        return found
    return {name for line in text.splitlines() for name in wanted if line.endswith(name)}


def generic_names(version, variant):
    if common.release(version) >= (1, 21):
        return GENERIC
    if variant.startswith('stripped'):
        return ('main.fold[...]',)
    return tuple(name[:-1] + '_0]' for name in GENERIC)


def check_names(folder, wanted):
    for form in FORMATS:
        names = names_in(folder, form, wanted)
        for name in wanted:
            # The separator of folded stacks cannot be in a name.
            name = name.replace(';', ':') if form == 'folded' else name
            if not any(n == name or n.startswith(name + '.') for n in names):
                near = sorted(n for n in names if 'fold' in n)
                return f'{form}: {name} is not there: {near[:5]}'
    return ''


def check(version, root, variant, via):
    path = common.build(version, root, 'named.go', variant)
    seconds = SECONDS
    while True:
        with tempfile.TemporaryDirectory(dir=common.WHERE) as folder:
            found = labels.count(record(path, via, seconds, folder))
            if min(n[0] for n in found.values()) >= SAMPLES or seconds > 60:
                wrong = labels.check(found)
                if not wrong and common.release(version) >= (1, 18):
                    wrong = check_names(folder, generic_names(version, variant))
                return wrong
        seconds *= 2


def cases(suites):
    for version, root in common.toolchains(not suites):
        for variant, via in (('static', 'copies'), ('stripped-cgo', 'agent')):
            yield (f'{version} {variant}: labels and names, by {via}', check,
                   (version, root, variant, via))


if __name__ == '__main__':
    sys.exit(common.main(cases(sys.argv[1:] == ['--suites'])))
