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
from harness import SHSTK  # noqa: E402
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
           meta['interval'] * 10**6, [s['name'] for s in meta['markerSchema']]),
          (55, 't', 1700000000000, PERIOD, ['Wait', 'Process']))
    equal({key for s in meta['markerSchema'] for field in s['fields'] for key in field},
          {'key', 'label', 'format'})
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


@case
def firefox_waits(variant, folder):
    """Firefox Profiler: a marker for each time off the CPU: why, where, and who ended it"""
    driver = Driver(variant)
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.write('1000 1000 main\n2000 1000 read\n')
    for line in (('type', 'off-cpu', 'nanoseconds'), ('keep',), ('proc', 'p', 7),
                 ('perfmap', 'p', f'{folder}/map'), ('sample', 'p', 7, 'x', 0, 10**9, 5000, '0x1001p'),
                 ('label', 'waker', 'init (1)'),
                 ('sample', 'p', 7, 'x', 0, 10**9 + 20000, 3000, '0x2001p,0x1001p'),
                 ('write', f'{folder}/x.firefox.json', '-')):
        driver.do(*line)
    driver.close()
    got = read_firefox(f'{folder}/x.firefox.json')
    thread, = got['threads']
    check_thread(thread, len(got['meta']['categories']))
    markers = thread['markers']
    equal([thread['stringArray'][name] for name in markers['name']], ['waiting'] * 2)
    equal(markers['data'], [{'type': 'Wait', 'in': 'main'},
                            {'type': 'Wait', 'in': 'read', 'waker': 'init (1)'}])
    equal([(a * 10**6, b * 10**6) for a, b in zip(markers['startTime'], markers['endTime'])],
          [(0, 5000), (20000, 23000)])
    equal((markers['phase'], markers['category']), ([1, 1], [0, 0]))
    assert 'counters' not in got, got['counters']


@case
def firefox_counters(variant, folder):
    """Firefox Profiler: a counter of each process has the changes of its memory in use"""
    driver = Driver(variant)
    for line in (('type', 'inuse_space', 'bytes'), ('keep',), ('proc', 'p', 7), ('proc', 'q', 8)):
        driver.do(*line)
    for proc, time, value, addr in (('q', 2, 7, '0x10'), ('p', 1, 100, '0x10'), ('p', 1, 10, '0x20'),
                                    ('p', 3, -60, '0x10'), ('p', 4, 5, '0x20')):
        driver.do('sample', proc, 7, 'x', 0, 10**9 + time * 1000, value, addr)
    driver.do('life', 7, 10**9 + 2500, 'ended', 'x')
    driver.do('write', f'{folder}/x.firefox.json', '-')
    driver.close()
    got = read_firefox(f'{folder}/x.firefox.json')
    equal([(t['pid'], t['markers']['startTime']) for t in got['threads']],
          [('7', [Decimal('0.0015')]), ('8', [])])
    equal([(c['name'], c['category'], c['pid'], got['threads'][c['mainThreadIndex']]['pid'],
            [int(t * 10**6) for t in c['samples']['time']], c['samples']['count'],
            c['samples']['length']) for c in got['counters']],
          [('inuse_space', 'Memory', '7', '7', [0, 2000, 3000], [110, -60, 5], 3),
           ('inuse_space', 'Memory', '8', '8', [1000], [7], 1)])


@case
def firefox_counters_of_nothing(variant, folder):
    """Firefox Profiler: a process whose memory only became less has no thread, and no counter"""
    driver = Driver(variant)
    for line in (('type', 'inuse_space', 'bytes'), ('keep',), ('proc', 'p', 7), ('proc', 'q', 8),
                 ('sample', 'p', 7, 'x', 0, 10**9, 100, '0x10'),
                 ('sample', 'q', 8, 'x', 0, 10**9, -60, '0x10'),
                 ('write', f'{folder}/x.firefox.json', '-')):
        driver.do(*line)
    driver.close()
    got = read_firefox(f'{folder}/x.firefox.json')
    equal([c['pid'] for c in got['counters']], ['7'])
    equal([t['pid'] for t in got['threads']], ['7'])


# What happens to processes: 8 has no sample, 9 begins before the first sample, at 10**9 ns.
LIVES = ((7, 5, 'began', 'sh'), (8, 6, 'began', 'nobody'), (7, 2500, 'ended', 'make'),
         (8, 7, 'ended', 'nobody'), (9, -1000, 'began', 'cc'))


def live(driver):
    """Adds LIVES, and samples of threads of 7 and 9. Times are in us since the first sample."""
    for line in (('type', 'off-cpu', 'nanoseconds'), ('keep',), ('proc', 'p', 7), ('proc', 'q', 9)):
        driver.do(*line)
    for proc, tid, time in ('p', 71, 0), ('p', 7, 100), ('q', 91, 200):
        driver.do('sample', proc, tid, 'x', 0, 10**9 + time * 1000, 5000, '0x10')
    for pid, time, what, name in LIVES:
        driver.do('life', pid, 10**9 + time * 1000, what, name)


@case
def firefox_lives(variant, folder):
    """Firefox Profiler: markers of the beginning and the end of each process that has samples"""
    driver = Driver(variant)
    live(driver)
    driver.do('write', f'{folder}/x.firefox.json', '-')
    driver.do('write', f'{folder}/x.shstk', '-')
    # What is read from a file that keeps all is the same.
    run(SHSTK, 'report', '-q', f'-o{folder}/again.firefox.json', f'{folder}/x.shstk')
    run(SHSTK, 'report', '-q', f'-o{folder}/copy.shstk', f'{folder}/x.shstk')
    run(SHSTK, 'report', '-q', f'-o{folder}/copied.firefox.json', f'{folder}/copy.shstk')
    for path in 'x', 'again', 'copied':
        got = read_firefox(f'{folder}/{path}.firefox.json')
        have = {}
        for thread in got['threads']:
            check_thread(thread, len(got['meta']['categories']))
            markers = thread['markers']
            have[int(thread['tid'])] = [
                (thread['stringArray'][name], data['process'], start * 1000, end, phase)
                for name, data, start, end, phase in zip(
                    *(markers[c] for c in ('name', 'data', 'startTime', 'endTime', 'phase')))
                if data['type'] == 'Process']
        equal(have, {7: [('process began', 'sh (7)', 5, None, 0),
                         ('process ended', 'make (7)', 2500, None, 0)],
                     71: [], 91: [('process began', 'cc (9)', 0, None, 0)]})
        equal({(t['pid'], t['processStartupTime'] * 1000, t['processShutdownTime'])
               for t in got['threads']}, {('7', 5, Decimal('2.5')), ('9', 0, None)})
    driver.close()


# ---- Chrome's trace format ----

def read_trace(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file, parse_float=Decimal)


def check_slices(events):
    """Checks that slices of each thread are nested and in order of time, and that none begins when
    another one of its name ends: viewers may let it begin first. Returns the names in each thread's
    order, with their begin and end, as {(pid, tid): [(depth, name, begin, end)]}."""
    open_slices, done = {}, {}
    ends = {(e['pid'], e['tid'], e['name'], e['ts']) for e in events if e['ph'] == 'E'}
    equal([e for e in events if e['ph'] == 'B' and
           (e['pid'], e['tid'], e['name'], e['ts']) in ends], [], 'one of a name ends, one begins')
    for event in events:
        key = event['pid'], event['tid']
        stack = open_slices.setdefault(key, [])
        if event['ph'] == 'B':
            equal([s for s in stack if s[1] > event['ts']], [], 'a slice begins before its caller')
            stack.append((event['name'], event['ts']))
        elif event['ph'] == 'E':
            name, begin = stack.pop()
            equal(event['name'], name, 'what ends')
            assert event['ts'] > begin, (name, begin, event)
            done.setdefault(key, []).append((len(stack), name, begin, event['ts']))
    equal({key: stack for key, stack in open_slices.items() if stack}, {}, 'slices without an end')
    return done


@case
def trace(variant, folder):
    """Chrome's trace format: all functions of all threads as nested slices, cautions, names"""
    profile = Profile(variant, folder, keep=True)
    profile.driver.do('caution', 'lost 7')
    got = read_trace(profile.write(f'{folder}/x.trace.json', '-', 'title=t'))
    equal(got['otherData'], {'title': 't', 'cautions': ['lost 7'],
                             'comments': ['prog --option <x> & more']})
    equal({e['ph'] for e in got['traceEvents']}, {'B', 'E', 'M'})
    slices = check_slices(got['traceEvents'])
    equal({name for done in slices.values() for _, name, _, _ in done},
          {name for stack in profile.names() for name in stack[1:]})
    names = {(e['name'], e['pid'], e['tid']): e['args']['name'] for e in got['traceEvents']
             if e['ph'] == 'M'}
    equal({key[1:] for key in names if key[0] == 'thread_name'}, set(slices))
    equal(names['process_name', 111, 111], 'main')
    profile.driver.close()


@case
def trace_times(variant, folder):
    """Chrome's trace format: functions last while samples follow each other; waits say why and where"""
    driver = Driver(variant)
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.write('1000 1000 main\n2000 1000 read\n3000 1000 work\n')
    for line in (('type', 'wall', 'nanoseconds'), ('period', 'wall', 'nanoseconds', 1000), ('keep',),
                 ('proc', 'p', 7), ('perfmap', 'p', f'{folder}/map')):
        driver.do(*line)
    work, wait = '0x3001p,0x1001p', '0x2001p,0x1001p'
    for time, value, stack, *labels in (
            (1000, 1000, work), (2000, 1000, work), (2500, 4000, wait, ('state', 'waiting'),
                                                    ('waker', 'init (1)')), (7500, 1000, work),
            (90000, 1000, work)):
        for key, text in labels:
            driver.do('label', key, text)
        driver.do('sample', 'p', 8, 'thread', 0, 10**9 + time, value, stack)
    driver.do('write', f'{folder}/x.trace.json', '-')
    driver.close()
    events = read_trace(f'{folder}/x.trace.json')['traceEvents']
    # Times are in us since the first sample began.
    equal(sorted(check_slices(events)[7, 8]),
          [(0, 'main', Decimal(b), Decimal(e)) for b, e in (('0', '7.5'), ('89', '90'))] +
          [(1, 'read', Decimal('2.5'), Decimal('6.5')), (1, 'work', Decimal('0'), Decimal('2')),
           (1, 'work', Decimal('6.5'), Decimal('7.5')), (1, 'work', Decimal('89'), Decimal('90'))])
    equal([(e['name'], e['ts'], e['dur'], e['args']) for e in events if e['ph'] == 'X'],
          [('waiting', Decimal('2.5'), Decimal('4'), {'in': 'read', 'waker': 'init (1)'})])


@case
def trace_tracks(variant, folder):
    """Chrome's trace format: threads with the same ID, or without one, are tracks of their own"""
    driver = Driver(variant)
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.write('1000 1000 main\n2000 1000 work\n')
    for line in (('type', 'cpu', 'nanoseconds'), ('proc', 'p', 7), ('proc', 'q', -1),
                 ('perfmap', 'p', f'{folder}/map'), ('perfmap', 'q', f'{folder}/map')):
        driver.do(*line)
    want = {}
    for i, (proc, tid) in enumerate((('p', 8), ('p', 8), ('p', -1), ('p', -1), ('p', 9), ('q', -1),
                                     ('q', -1), ('q', 8))):
        length = Decimal(i + 1)
        driver.do('sample', proc, tid, f'thread {i}', 0, 0, f'{length * 1000}', '0x2001p,0x1001p')
        want[7 if proc == 'p' else 0, f'thread {i}'] = [
            (0, 'main', 0, length), (1, 'work', 0, length)]
    driver.do('write', f'{folder}/x.trace.json', '-')
    driver.close()
    events = read_trace(f'{folder}/x.trace.json')['traceEvents']
    slices = check_slices(events)
    names = [(e['pid'], e['tid'], e['args']['name']) for e in events if e.get('name') == 'thread_name']
    equal({(pid, name): sorted(slices[pid, tid]) for pid, tid, name in names}, want)
    equal({tid for pid, tid, _ in names if pid == 7 and tid < 1 << 22}, {0, 8, 9}, 'IDs of their own')


@case
def preempted(variant, folder):
    """Firefox Profiler, Chrome: a thread that others kept from running is preempted, not waiting"""
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.write('1000 1000 main\n')
    for kind, labels in ('preempted', ()), ('wall', (('state', 'preempted'),)):
        driver = Driver(variant)
        for line in (('type', kind, 'nanoseconds'), ('keep',), ('proc', 'p', 7),
                     ('perfmap', 'p', f'{folder}/map'),
                     *(('label', *pair) for pair in labels),
                     ('sample', 'p', 7, 'x', 0, 10**9, 4000, '0x1001p'),
                     ('write', f'{folder}/x.firefox.json', '-'),
                     ('write', f'{folder}/x.trace.json', '-')):
            driver.do(*line)
        driver.close()
        thread, = read_firefox(f'{folder}/x.firefox.json')['threads']
        markers = thread['markers']
        equal([(thread['stringArray'][name], data, start * 10**6, end * 10**6) for
               name, data, start, end in zip(*(markers[c] for c in (
                   'name', 'data', 'startTime', 'endTime')))],
              [('preempted', {'type': 'Wait', 'in': 'main'}, 0, 4000)], kind)
        events = read_trace(f'{folder}/x.trace.json')['traceEvents']
        equal([(e['name'], e['cat'], e['ts'], e['dur'], e['args']) for e in events
               if e['ph'] == 'X'], [('preempted', 'off-cpu', 0, 4, {'in': 'main'})], kind)


@case
def trace_lives(variant, folder):
    """Chrome's trace format: an instant for the beginning and the end of each process with samples"""
    driver = Driver(variant)
    live(driver)
    driver.do('write', f'{folder}/x.trace.json', '-')
    driver.close()
    events = read_trace(f'{folder}/x.trace.json')['traceEvents']
    equal([(e['pid'], e['tid'], e['s'], e['name'], e['ts'], e['args']) for e in events
           if e['ph'] == 'i'],
          [(7, 7, 'p', 'process began', 5, {'process': 'sh'}),
           (7, 7, 'p', 'process ended', 2500, {'process': 'make'}),
           (9, 9, 'p', 'process began', 0, {'process': 'cc'})])


@case
def trace_counters(variant, folder):
    """Chrome's trace format: the memory in use of each process over time"""
    driver = Driver(variant)
    for line in (('type', 'inuse_space', 'bytes'), ('keep',), ('proc', 'p', 7), ('proc', 'q', 8)):
        driver.do(*line)
    for proc, time, value, addr in (('p', 1, 100, '0x10'), ('p', 1, 10, '0x20'), ('q', 2, 7, '0x10'),
                                    ('p', 3, -60, '0x10'), ('p', 4, 5, '0x20')):
        driver.do('sample', proc, 7, 'x', 0, 10**9 + time * 1000, value, addr)
    driver.do('life', 7, 10**9 + 3000, 'ended', 'x')
    driver.do('write', f'{folder}/x.trace.json', '-')
    driver.close()
    events = [e for e in read_trace(f'{folder}/x.trace.json')['traceEvents'] if e['ph'] != 'M']
    equal([(e['ph'], e['name'], e['pid'], int(e['ts']), e['args'].get('bytes')) for e in events],
          [('C', 'inuse_space', 7, 0, 110), ('C', 'inuse_space', 7, 2, 50),
           ('C', 'inuse_space', 7, 3, 55), ('C', 'inuse_space', 8, 1, 7),
           ('i', 'process ended', 7, 2, None)])


# ---- Callgrind ----

class Callgrind:
    """A file in callgrind's format. A function is (source file, name).
    own: values by function and line; calls: by caller, callee, and line."""

    CALLED = {'cob': 'ob', 'cfi': 'fl', 'cfn': 'fn'}

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            head, body = re.fullmatch(r'(.*?\nevents:[^\n]*\n)(.*)', file.read(), re.S).groups()
        equal(head.split('\n')[:2], ['# callgrind format', 'version: 1'])
        self.head = [tuple(line.split(': ', 1)) for line in head.splitlines()[1:]]
        self.events = self.head[-1][1].split()
        self.texts, self.at, self.sums = {'ob': {}, 'fl': {}, 'fn': {}}, {}, {}
        self.own, self.calls, self.objects, self.numbers = {}, {}, {}, {}
        lines = iter(body.splitlines())
        for line in lines:
            self.take(line, lines)

    def take(self, line, lines):
        name = re.fullmatch(r'(ob|fl|fn|cob|cfi|cfn)=\((\d+)\)(?: (.*))?', line)
        if name:
            self.take_name(*name.groups())
        elif line.startswith('calls='):
            count, start = re.fullmatch(r'calls=(\d+) (\d+)', line).groups()
            callee = self.at['cfi'], self.at['cfn']
            number, values = self.cost(next(lines))
            key = (self.at['fl'], self.at['fn']), callee, number
            assert int(count) and key not in self.calls, (line, key)
            self.calls[key] = values
            self.numbers[key] = int(count), int(start)
        elif re.match(r'(summary|totals):', line):
            word, *values = line.split()
            self.sums[word] = [int(v) for v in values]
        elif line:
            number, values = self.cost(line)
            key = (self.at['fl'], self.at['fn']), number
            assert key not in self.own, key
            self.own[key] = values

    def take_name(self, what, number, name):
        table = self.texts[self.CALLED.get(what, what)]
        assert (name is None) == (number in table), (what, number, name)
        if name is not None:
            table[number] = name
        self.at[what] = table[number]
        if what == 'fn':
            self.objects[self.at['fl'], self.at['fn']] = self.at['ob']

    def cost(self, line):
        assert re.fullmatch(r'\d+( \d+)*', line), line
        number, *values = (int(w) for w in line.split())
        equal(len(values), len(self.events), line)
        return number, values

    def sum_own(self, event):
        ret = {}
        for (function, _), values in self.own.items():
            ret[function] = ret.get(function, 0) + values[event]
        return ret

    def sum_all(self, event):
        """Values of functions with what they call."""
        ret = self.sum_own(event)
        for (caller, _, _), values in self.calls.items():
            ret[caller] = ret.get(caller, 0) + values[event]
        return ret


def by_name(sums):
    """Sums by name, those of threads apart; without what is 0."""
    ret = {}
    for (file, name), value in sums.items():
        key = file == '[thread]', name
        ret[key] = ret.get(key, 0) + value
    return {k: v for k, v in ret.items() if v}


def expected_sums(profile):
    """Returns what each function must have itself, and with what it calls."""
    own, both = {}, {}
    for stack, value in profile.names().items():
        functions = [(i == 0, name) for i, name in enumerate(stack)]
        own[functions[-1]] = own.get(functions[-1], 0) + value
        for function in set(functions):
            both[function] = both.get(function, 0) + value
    return own, both


@case
def callgrind(variant, folder):
    """callgrind: sums of functions and calls are those of the stacks, in each value"""
    profile = Profile(variant, folder)
    profile.driver.do('caution', 'lost 7')
    got = Callgrind(profile.write(f'{folder}/x.callgrind', '-', 'title=t'))
    equal(got.events, ['cpu', 'samples'])
    equal([line for line in got.head if line[0] in ('cmd', 'desc', 'event')],
          [('cmd', 't'), ('desc', 'Caution: lost 7'), ('desc', 'Comment: prog --option <x> & more'),
           ('event', 'cpu : cpu (nanoseconds)'), ('event', 'samples : samples (count)')])
    equal(got.sums, {w: [profile.total, profile.count] for w in ('summary:', 'totals:')})
    own, both = expected_sums(profile)
    for event, unit in (0, 1), (1, PERIOD):
        equal({k: v * unit for k, v in by_name(got.sum_own(event)).items()}, own, 'own')
        equal({k: v * unit for k, v in by_name(got.sum_all(event)).items()}, both, 'with calls')
    check_calls(profile, got)
    profile.driver.close()


def check_calls(profile, got):
    """Checks that calls are at their lines, go to functions that have costs, and call no caller."""
    source = next(file for file, name in got.objects if name == 'outermost')
    equal(os.path.basename(source), 'prog.c')
    outer, middle = (source, 'outermost'), (source, 'middle')
    key = outer, middle, line_of(INLINE_C, '\tmiddle(x);')
    equal(got.calls[key], [14 * PERIOD, 14])
    equal(got.numbers[key], (14, line_of(INLINE_C, 'void middle(')))
    equal({c for c in got.calls if c[0] == outer}, {key})
    equal(got.objects[outer], os.path.basename(profile.elf.path))
    assert all(caller != callee for caller, callee, _ in got.calls)
    assert {callee for _, callee, _ in got.calls} <= set(got.objects)
    assert ('[thread]', 'worker') in got.objects, got.objects


# A value as callgrind_annotate prints it; versions from 3.16 on have the share behind it.
COST = r'([\d,.]+)(?: \( *[\d.]+%\))?'


@case
def callgrind_annotate(variant, folder):
    """callgrind: callgrind_annotate reads the same sums"""
    need('callgrind_annotate')
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/x.callgrind')
    got = Callgrind(path)
    for option, sums in ('no', got.sum_own(0)), ('yes', got.sum_all(0)):
        text = run('callgrind_annotate', '--auto=no', '--threshold=100', f'--inclusive={option}',
                   path, cwd='/', env={**os.environ, 'LC_ALL': 'C'}, encoding='utf-8')
        total = re.search(r'(?m)^ *([\d,]+)\b.* PROGRAM TOTALS$', text)
        equal(number(total[1]), profile.total)
        rows = text.split('file:function\n', 1)[1].split('\n', 1)[1].split('\n\n')[0]
        have = {}
        for line in rows.splitlines():
            value, name = re.fullmatch(rf' *{COST} +{COST} +(.*)', line).group(1, 3)
            have[name] = number(value)
        want = {f'{f[0]}:{f[1]} [{got.objects[f]}]': v for f, v in sums.items()}
        equal({k: v for k, v in have.items() if v}, {k: v for k, v in want.items() if v})
    profile.driver.close()


def number(text):
    """A number as callgrind_annotate prints it: with commas; a dot is none."""
    return 0 if text == '.' else int(text.replace(',', ''))


@case
def callgrind_recursion(variant, folder):
    """callgrind: a stack counts once for each call, however often the call is in it"""
    driver = Driver(variant)
    driver.do('type', 'a-b', 'count')
    driver.do('type', 'ab', 'count')
    driver.do('type', 'value3', 'count')
    driver.do('type', '%', 'count')
    driver.do('proc', 'p', 1)
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.writelines(f'{0x1000 * (i + 1):x} 100 {name}\n'
                        for i, name in enumerate(['even', 'odd', '(7)']))
    driver.do('map', 'p', '0x1000', '0x9000', 0, '')
    driver.do('perfmap', 'p', f'{folder}/map')
    stack = ','.join(['0x2010p'] + ['0x1010', '0x2010'] * 5 + ['0x1010'])
    driver.do('sample', 'p', 1, 'x', 0, 0, '3,0,1,0', stack)
    driver.do('sample', 'p', 1, 'x', 0, 0, '5,0,0,0', '0x3010p,0x2010')
    driver.do('write', f'{folder}/x.callgrind', '-', 'type=1')
    driver.close()
    got = Callgrind(f'{folder}/x.callgrind')
    equal(got.events, ['ab', 'value1', 'value2', 'value3'])
    equal({(a[1], b[1]): v[0] for (a, b, _), v in got.calls.items()},
          {('x', 'even'): 3, ('even', 'odd'): 3, ('odd', 'even'): 3, ('x', 'odd'): 5,
           ('odd', '(7)'): 5})
    equal({f[1]: v[0] for (f, _), v in got.own.items()}, {'odd': 3, '(7)': 5})


if __name__ == '__main__':
    sys.exit(main())
