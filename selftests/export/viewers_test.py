#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Formats of other people's viewers, each read back by a reader that shares no code with the
writer: the Firefox Profiler's JSON by its published types, callgrind's by the grammar in valgrind's
manual and by callgrind_annotate.
"""

import json
import os
import re
import sys
from decimal import Decimal

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from cases import Driver, case, equal, main, need, run  # noqa: E402
from export_test import PERIOD, Profile  # noqa: E402
from symbol_test import INLINE_C, line_of  # noqa: E402

# ---- The Firefox Profiler ----

COLUMNS = {
    'samples': {'stack', 'time', 'weight'},
    'markers': {'data', 'name', 'startTime', 'endTime', 'phase', 'category'},
    'stackTable': {'frame', 'prefix'},
    'frameTable': {'address', 'inlineDepth', 'category', 'subcategory', 'func', 'nativeSymbol',
                   'innerWindowID', 'line', 'column'},
    'funcTable': {'name', 'isJS', 'relevantForJS', 'resource', 'fileName', 'lineNumber',
                  'columnNumber'},
    'resourceTable': {'name', 'lib', 'host', 'type'},
    'nativeSymbols': {'libIndex', 'address', 'name', 'functionSize'},
}
COLORS = {'transparent', 'purple', 'green', 'orange', 'yellow', 'lightblue', 'blue', 'brown',
          'magenta', 'red', 'lightred', 'darkgrey', 'grey'}


def read_firefox(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file, parse_float=Decimal)


def refers(column, size, none=()):
    """Checks that all numbers of a column are rows of a table, or a value for none."""
    bad = [v for v in column if v not in none and not 0 <= v < size]
    equal(bad, [], 'numbers of no row')


def check_thread(thread, categories):
    """Checks a thread's tables: columns, their lengths, what they refer to."""
    for table, columns in COLUMNS.items():
        lists = {n: c for n, c in thread[table].items() if isinstance(c, list)}
        equal(set(lists) - {'threadCPUDelta'}, columns, table)
        equal({n: len(c) for n, c in lists.items()}, {n: thread[table]['length'] for n in lists})
    strings, stacks, frames, funcs, resources = (len(thread['stringArray']), *(
        thread[t]['length'] for t in ('stackTable', 'frameTable', 'funcTable', 'resourceTable')))
    refers(thread['samples']['stack'], stacks, [None])
    for i, prefix in enumerate(thread['stackTable']['prefix']):
        refers([prefix], i, [None])
    refers(thread['stackTable']['frame'], frames)
    refers(thread['frameTable']['func'], funcs)
    refers(thread['frameTable']['category'], categories)
    refers(thread['funcTable']['name'], strings)
    refers(thread['funcTable']['fileName'], strings, [None])
    refers(thread['funcTable']['resource'], resources, [-1])
    refers(thread['resourceTable']['name'], strings)
    equal(len(set(thread['stringArray'])), strings, 'strings twice')
    equal(thread['samples']['time'], sorted(thread['samples']['time']), 'order of time')


def frames_of(thread, stack):
    """Returns the rows of the frame table of a stack, outermost first."""
    rows = []
    while stack is not None:
        rows.insert(0, thread['stackTable']['frame'][stack])
        stack = thread['stackTable']['prefix'][stack]
    return rows


def name_of(thread, frame):
    return thread['stringArray'][thread['funcTable']['name'][thread['frameTable']['func'][frame]]]


def check_meta(meta):
    equal((meta['preprocessedProfileVersion'], meta['product'], meta['startTime'],
           meta['interval'] * 10**6, meta['markerSchema']),
          (55, 't', 1700000000000, PERIOD, []))
    equal([(e['label'], e['value']) for e in meta['extra'][0]['entries']],
          [('Caution', 'lost 7'), ('Comment', 'prog --option <x> & more')])
    colors = [c['color'] for c in meta['categories']]
    assert 'grey' in colors and set(colors) <= COLORS, colors
    assert all(c['subcategories'] == ['Other'] for c in meta['categories']), meta['categories']


def check_frames(profile, got):
    """Checks category, depth, module and lines of some frames."""
    have = {}
    for thread in got['threads']:
        table, funcs = thread['frameTable'], thread['funcTable']
        for i, func in enumerate(table['func']):
            module = funcs['resource'][func]
            if module >= 0:
                module = thread['stringArray'][thread['resourceTable']['name'][module]]
            have.setdefault(name_of(thread, i), set()).add(
                (got['meta']['categories'][table['category'][i]]['name'], table['inlineDepth'][i],
                 module, table['line'][i], funcs['lineNumber'][func]))
    module = os.path.basename(profile.elf.path)
    equal(have['outermost'], {('Native', 0, module, line_of(INLINE_C, '\tmiddle(x);'),
                               line_of(INLINE_C, 'void outermost('))})
    equal(have['middle'], {('Inlined', 1, module, line_of(INLINE_C, '\tinnermost(x);'),
                            line_of(INLINE_C, 'void middle('))})
    equal({f[:3] for f in have['innermost']}, {('Inlined', 2, module)})
    equal({f[0] for f in have['jit::<lambda>(a; b)']}, {'Made at run time'})
    equal({f[0] for f in have['[0x999999999]']}, {'Without name'})
    equal(have['[truncated]'], {('Other', 0, -1, None, None)})


@case
def firefox(variant, folder):
    """Firefox Profiler: threads with all their tables, the stacks and sums of all other formats"""
    profile = Profile(variant, folder, keep=True)
    profile.driver.do('caution', 'lost 7')
    got = read_firefox(profile.write(f'{folder}/x.firefox.json', '-', 'title=t'))
    check_meta(got['meta'])
    have, tids, mains = {}, [], []
    for thread in got['threads']:
        check_thread(thread, len(got['meta']['categories']))
        samples = thread['samples']
        equal(samples['weightType'], 'tracing-ms')
        equal(samples['threadCPUDelta'], [w * 10**6 for w in samples['weight']])
        tids.append(thread['tid'])
        mains += [thread['pid']] if thread['isMainThread'] else []
        for stack, weight in zip(samples['stack'], samples['weight']):
            key = (thread['name'], *(name_of(thread, f) for f in frames_of(thread, stack)))
            have[key] = have.get(key, 0) + weight * 10**6
    equal(have, profile.names())
    equal(len(set(tids)), len(tids), 'thread IDs twice')
    equal(sorted(mains), ['111', '222'])
    equal({t['processName'] for t in got['threads'] if t['name'] == 'worker'}, {'main'})
    check_frames(profile, got)
    profile.driver.close()


@case
def firefox_values(variant, folder):
    """Firefox Profiler: samples in order of time, bytes and counts as they are"""
    driver = Driver(variant)
    for line in (('type', 'growth', 'bytes'), ('type', 'samples', 'count'), ('keep',),
                 ('proc', 'p', 7)):
        driver.do(*line)
    for time, addr in ((3, '0x30'), (1, '0x10'), (2, '0x20'), (4, '0x10')):
        driver.do('sample', 'p', 7, 'x', 0, time * 10**9, f'{time << 20},{time}', addr)
    for number, kind, unit in (1, 'bytes', 1 << 20), (2, 'samples', 1):
        driver.do('write', f'{folder}/x.firefox.json', '-', f'type={number}')
        got = read_firefox(f'{folder}/x.firefox.json')
        check_thread(got['threads'][0], len(got['meta']['categories']))
        samples = got['threads'][0]['samples']
        equal([name_of(got['threads'][0], frames_of(got['threads'][0], s)[0])
               for s in samples['stack']], ['[0x10]', '[0x20]', '[0x30]', '[0x10]'])
        equal((samples['weightType'], samples['weight']),
              (kind, [unit * n for n in (1, 2, 3, 4)]))
        equal(samples['time'], [0, 1000, 2000, 3000])
        assert 'threadCPUDelta' not in samples
    driver.close()


if __name__ == '__main__':
    sys.exit(main())
