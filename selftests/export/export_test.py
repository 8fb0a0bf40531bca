#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Profile formats, each read back by a reader that shares no code with the writer:
pprof by `go tool pprof` and by a decoder of the wire format here, folded stacks
by awk, SVG by an XML parser, perf text by rules like those of stack collapsers.
"""

import gzip
import json
import os
import re
import select
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from perf import perf  # noqa: E402
from pprof import Decoded  # noqa: E402
from cases import (BUILD, Driver, Elf, Skip, build_id, case, equal, main, need,  # noqa: E402
                   run, sanitized_case)
from symbol_test import INLINE_C, assemble, compile_c, line_of  # noqa: E402

PERIOD = 1001001
# All characters that change the direction of writing: Unicode's property Bidi_Control.
BIDI = ('\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e'
        '\u2066\u2067\u2068\u2069')
EVIL = ['semi;colon', '<angle>&"quote"', "new\nline", 'white space', 'uml\u00e4ut \u4e2d', 'a]]>b',
        'main.F[struct { A int; B "x" }].f1', BIDI]


def harmless(name):
    """Returns a name as all formats show it."""
    name = name.replace('\n', '?')
    return ''.join(f'\\u{ord(c):04x}' if c in BIDI else c for c in name)


class Profile:
    """A profile with all difficult cases: inlined calls, several threads and processes, code made
    at run time, unknown and truncated stacks, hostile names."""

    def __init__(self, variant, folder, keep=False):
        self.driver = Driver(variant, '/nonexistent')
        do = self.driver.do
        self.elf = Elf(compile_c(folder, flags=['-g', '-Wl,--build-id']))
        self.evil = assemble(folder, ['evil_' + chr(ord('a') + i) + '_' * 30
                                      for i in range(len(EVIL))], 'evil')
        data = open(self.evil.path, 'rb').read()
        self.evil_addr = []
        for i, name in enumerate(EVIL):
            old = 'evil_' + chr(ord('a') + i) + '_' * 30
            self.evil_addr.append(self.evil.addr(old, 1, 0x10000000))
            new = name.encode()
            data = data.replace(old.encode() + b'\0', (new + b'\0' * 99)[:len(old) + 1])
        self.evil.path = f'{folder}/evil;<&> "1"'
        with open(self.evil.path, 'wb') as file:
            file.write(data)
        with open(f'{folder}/perf.map', 'w', encoding='utf-8') as file:
            file.write('500000 100 jit::<lambda>(a; b)\n')
        do('type', 'samples', 'count')
        do('type', 'cpu', 'nanoseconds')
        do('period', 'cpu', 'nanoseconds', PERIOD)
        do('time', 1700000000 * 10**9, 5 * 10**9)
        do('comment', 'prog --option <x> & more')
        if keep:
            do('keep')
        for name, pid in (('p', 111), ('q', 222)):
            do('proc', name, pid)
            do('map', name, '0x500000', '0x501000', 0, '')
            self.evil.map(self.driver, name, 0x10000000)
            do('perfmap', name, f'{folder}/perf.map')
        self.base = {'p': 0x7000_0000_0000, 'q': 0x7100_0000_0000}
        for name, base in self.base.items():
            self.elf.map(self.driver, name, base)
        self.expected = {}
        self.total = 0
        self.count = 0
        self.fill()

    def at(self, proc, symbol, offset=0, mark=''):
        return f'{self.elf.addr(symbol, offset, self.base[proc]):#x}{mark}'

    def add(self, proc, tid, comm, stack, frames, times=1, end=0):
        """Adds a sample. @stack is innermost first; @frames is outermost first, as the frames must
        be shown."""
        for i in range(times):
            self.driver.do('sample', proc, tid, comm, end, (self.count + i) * 10**6,
                           f'1,{PERIOD}', ','.join(stack))
        self.count += times
        self.total += times * PERIOD
        key = (comm, *(['[truncated]'] if end else []), *frames)
        self.expected[key] = self.expected.get(key, 0) + times * PERIOD

    def fill(self):
        inlined = ['outermost', 'middle', 'innermost']
        for proc in 'pq':
            self.add(proc, 111, 'main', [self.at(proc, 'outermost', 4, 'p'),
                                         self.at(proc, 'exported', 6), self.at(proc, 'main', 9)],
                     ['main', 'exported', *inlined], times=7)
        self.add('p', 112, 'worker', [self.at('p', 'hidden', 3, 'p'), self.at('p', 'exported', 6)],
                 ['exported', 'hidden'], times=3)
        self.add('p', 113, 'worker', [self.at('p', 'hidden', 2, 'p'), self.at('p', 'exported', 6)],
                 ['exported', 'hidden'], times=2)
        self.add('q', 222, 'jit;thread', ['0x500010p', self.at('q', 'main', 9)],
                 ['main', 'jit::<lambda>(a; b)'], times=2)
        self.add('q', 222, 'lost', ['0x999999999p'], ['[0x999999999]'], end=1)
        self.add('q', 222, 'empty', [], [])
        recursive = [self.at('p', 'exported', 6, 'p')] + [self.at('p', 'exported', 6)] * 300
        self.add('p', 111, 'deep', recursive, ['exported'] * 301)
        for i, addr in enumerate(self.evil_addr):
            name = harmless(EVIL[i])
            self.add('p', 111, f'<&{i}>\n', [f'{addr:#x}p'], [name], times=2)

    def names(self, change=lambda n: n):
        """Returns the expected stacks, with names as a format shows them."""
        ret = {}
        for stack, value in self.expected.items():
            key = tuple(change(harmless(n)) for n in stack)
            ret[key] = ret.get(key, 0) + value
        return ret

    def write(self, path, form='-', *options):
        self.driver.do('write', path, form, *options)
        return path


# ---- pprof ----

@case
def pprof_decoded(variant, folder):
    """pprof: every field, by a decoder of the wire format"""
    profile = Profile(variant, folder)
    got = Decoded(profile.write(f'{folder}/out.pb.gz'))
    equal(got.strings[0], '')
    equal(len(set(got.strings)), len(got.strings), 'strings twice')
    equal([len(got.mappings), len(got.locations), len(got.functions)], got.counts, 'ids twice')
    assert 0 not in (*got.mappings, *got.locations, *got.functions)
    equal(got.types, [('samples', 'count'), ('cpu', 'nanoseconds')])
    equal(got.period, ('cpu', 'nanoseconds', PERIOD))
    equal((got.time, got.duration), (1700000000 * 10**9, 5 * 10**9))
    equal(got.comments, ['prog --option <x> & more'])
    equal(got.default, 'cpu')
    equal([sum(values[i] for _, values, _ in got.samples) for i in (0, 1)],
          [profile.count, profile.total])
    have = {}
    for ids, values, labels in got.samples:
        equal(values[1], values[0] * PERIOD)
        frames = got.frames(ids)
        key = (labels['thread'], *frames)
        have[key] = have.get(key, 0) + values[1]
    equal(have, profile.names())
    equal({labels['pid'] for _, _, labels in got.samples}, {111, 222})
    equal({labels['tid'] for _, _, labels in got.samples}, {111, 112, 113, 222})
    # Equal stacks of one thread are one sample.
    equal(len(got.samples), len({(tuple(i), tuple(sorted(l.items())))
                                 for i, _, l in got.samples}))
    check_mappings(profile, got)
    check_lines(profile, got)
    profile.driver.close()


def check_mappings(profile, got):
    paths = {got.text(m[5]): got.text(m.get(6, 0)) for m in got.mappings.values()}
    equal(paths, {profile.elf.path: build_id(profile.elf.path),
                  profile.evil.path: build_id(profile.evil.path) or '', '[anon]': ''})
    for loc in got.locations.values():
        if loc.get(2):
            mapping = got.mappings[loc[2]]
            assert mapping[2] <= loc[3] < mapping[3], loc
    offset = profile.elf.segment[0]
    starts = {m[2] for m in got.mappings.values() if got.text(m[5]) == profile.elf.path}
    equal(starts, {b + profile.elf.segment[1] for b in profile.base.values()})
    for mapping in got.mappings.values():
        if got.text(mapping[5]) == profile.elf.path:
            equal(mapping[4], offset)
            equal([mapping.get(i, 0) for i in (7, 8, 9, 10)], [1, 1, 1, 1])


def check_lines(profile, got):
    """Inlined functions are locations of their own with successive IDs: speedscope shows one line
    of a location only, and would leave out all but the outermost of these."""
    addr = int(profile.at('p', 'outermost', 4), 16)
    locs = sorted((x for x in got.locations.values() if x.get(3) == addr), key=lambda x: x[1])
    equal([x[1] - locs[0][1] for x in locs], [0, 1, 2])
    equal({(len(x[4]), x[2]) for x in locs}, {(1, locs[0][2])})
    lines = [x[4][0] for x in locs]
    functions = [got.functions[line[1]] for line in lines]
    equal([got.text(f[2]) for f in functions], ['innermost', 'middle', 'outermost'])
    equal([line[2] for line in lines][1:],
          [line_of(INLINE_C, '\tinnermost(x);'), line_of(INLINE_C, '\tmiddle(x);')])
    equal({os.path.basename(got.text(f[4])) for f in functions}, {'prog.c'})
    equal(functions[2][5], line_of(INLINE_C, 'void outermost'))
    # Return addresses lie inside the call.
    assert int(profile.at('p', 'exported', 6), 16) - 1 in {
        x.get(3) for x in got.locations.values()}


@case
def pprof_labels(variant, folder):
    """pprof: labels of samples, whatever is in them"""
    profile = Profile(variant, folder)
    do = profile.driver.do
    sets = [[('job', 'a;b "c" {d} \u00fc')], [('job', 'other'), ('user', 'x')],
            [('bad\x01key', 'bad\x1bvalue')], [('', ''), ('empty', '')],
            [(f'{n:03}', 'v' * 200) for n in range(100)]]
    count = len(Decoded(profile.write(f'{folder}/out.pb.gz')).samples)
    for labels in sets:
        for reverse in (False, True):   # the labels make the same sample in any order
            for key, value in sorted(labels, reverse=reverse):
                do('label', key or '%', value or '%')
            profile.add('p', 111, 'main', [profile.at('p', 'main', 9, 'p')], ['main'])
    samples = Decoded(profile.write(f'{folder}/out.pb.gz')).samples[count:]
    got = [{k: v for k, v in labels.items() if k not in ('pid', 'tid', 'thread')}
           for _, _, labels in samples]
    equal(got[0], dict(sets[0]))
    equal(got[1], dict(sets[1]))
    equal(got[2], {'bad?key': 'bad?value'})
    equal(got[3], {'%': '%', 'empty': '%'})
    equal([values[0] for _, values, _ in samples[:4]], [2] * 4)
    assert len(samples) == 6 and all(len(labels) == 64 for labels in got[4:]), got[4:]
    profile.driver.close()


@case
def pprof_by_go(variant, folder):
    """pprof: read by go tool pprof"""
    need('go')
    env = {**os.environ, 'HOME': folder, 'GOFLAGS': '-mod=mod', 'PPROF_TMPDIR': folder}
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/out.pb.gz')

    def pprof(*args):
        done = subprocess.run(['go', 'tool', 'pprof', '-symbolize=none', *args, path], env=env,
                              check=True, capture_output=True, text=True)
        return done.stdout

    raw = pprof('-raw')
    assert f'Period: {PERIOD}' in raw
    assert 'cpu/nanoseconds[dflt]' in raw
    assert 'thread:[worker]' in raw and 'tid:[113]' in raw
    assert f'{profile.elf.path} {build_id(profile.elf.path)} [FN][FL][LN][IN]' in raw
    top = pprof('-top', '-unit=ns', '-nodecount=1000', '-nodefraction=0')
    assert f'of {profile.total}ns total' in top, top
    flat = {}
    for line in top.splitlines():
        f = line.split(None, 5)
        if len(f) == 6 and f[1].endswith('%'):
            flat[f[5].replace(' (inline)', '')] = tuple(int(x.removesuffix('ns'))
                                                        for x in (f[0], f[3]))
    equal(flat['innermost'], (14 * PERIOD, 14 * PERIOD))
    equal(flat['outermost'], (0, 14 * PERIOD))
    equal(flat['hidden'][0], 5 * PERIOD)
    # A recursive function counts once in each stack.
    equal(flat['exported'], (PERIOD, 20 * PERIOD))
    equal(flat['[truncated]'], (0, PERIOD))
    traces = pprof('-traces', '-sample_index=samples').replace(' (inline)', '')
    assert re.search(r'innermost\s+middle\s+outermost\s+exported\s+main', traces), traces[:999]
    lines = pprof('-lines', '-top', '-nodecount=1000', '-nodefraction=0')
    assert f'prog.c:{line_of(INLINE_C, "	middle(x);")}' in lines
    profile.driver.close()


# ---- Folded ----

@case
def folded_by_awk(variant, folder):
    """folded: read by awk; separators in names are replaced"""
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/out.folded')
    awk = run('awk', '{ value = $NF; sub(/ [^ ]*$/, ""); n = split($0, f, ";");'
              'line = ""; for (i = 1; i <= n; i++) line = line f[i] "\\t";'
              'print line value; sum += value } END { print sum }', path).splitlines()
    equal(int(awk[-1]), profile.total)
    have = {}
    for line in awk[:-1]:
        *stack, value = line.split('\t')
        assert tuple(stack) not in have, 'a stack twice'
        have[tuple(stack)] = int(value)
    equal(have, profile.names(lambda n: n.replace(';', ':')))
    path = profile.write(f'{folder}/count', 'folded', 'type=1', 'threads')
    lines = open(path, encoding='utf-8').read().splitlines()
    equal(sum(int(line.rsplit(' ', 1)[1]) for line in lines), profile.count)
    equal({line.split(';')[0] for line in lines if 'worker' in line},
          {'worker 111/112', 'worker 111/113'})
    profile.driver.close()


# ---- SVG ----

SVG = '{http://www.w3.org/2000/svg}'


class Box:
    """A frame of a flame graph."""

    def __init__(self, g):
        title = g.find(SVG + 'title').text
        self.name, self.about = title.rsplit('\n', 1)
        rect = g.find(SVG + 'rect')
        self.x, self.y = float(rect.get('x')), float(rect.get('y'))
        self.width = float(rect.get('width'))
        self.start, self.value = int(g.get('data-x')), int(g.get('data-n'))
        self.text = g.find(SVG + 'text').text or ''

    def holds(self, other):
        return (self.start <= other.start and
                other.start + other.value <= self.start + self.value)


def read_svg(path):
    root = ET.parse(path).getroot()
    equal(root.tag, SVG + 'svg')
    frames = [g for g in root.iter(SVG + 'g') if g.get('id') == 'frames'][0]
    return root, [Box(g) for g in frames]


def stacks_of(boxes):
    """Returns the self values of all stacks, computed from the boxes' places alone."""
    rows = sorted({b.y for b in boxes}, key=lambda y: abs(y - boxes[0].y))
    by_row = {y: [b for b in boxes if b.y == y] for y in rows}
    ret = {}

    def walk(box, row, path):
        above = []
        if row + 1 < len(rows):
            above = [b for b in by_row[rows[row + 1]] if box.holds(b)]
        rest = box.value - sum(b.value for b in above)
        assert rest >= 0, 'callees wider than their caller'
        if rest:
            ret[path] = ret.get(path, 0) + rest
        for b in above:
            walk(b, row + 1, path + (b.name,))

    equal(len(by_row[rows[0]]), 1)
    sys.setrecursionlimit(10000)
    walk(boxes[0], 0, ())
    return ret


def is_label(text, name):
    """Returns whether a text shows parts of the name, with two dots for each part left out."""
    at = 0
    for part in text.split('..'):
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


@case
def svg_by_xml_parser(variant, folder):
    """flame graph: well-formed, complete, self-contained, widths in proportion"""
    profile = Profile(variant, folder)
    root, boxes = read_svg(profile.write(f'{folder}/out.svg', '-', 'title=<t> & "u"'))
    equal((boxes[0].name, boxes[0].value), ('all', profile.total))
    equal(stacks_of(boxes), profile.names())
    for box in boxes:
        want = box.value / profile.total * 1180
        assert abs(box.width - want) < 0.5, (box.name, box.width, want)
        assert abs(box.x - 10 - box.start / profile.total * 1180) < 0.1
        assert box.about.endswith(f'{100 * box.value / profile.total:.2f} %'), box.about
        assert len(box.text) * 7.2 <= box.width, (box.text, box.width)
        assert is_label(box.text, box.name), (box.text, box.name)
    texts = {t.get('id'): t.text for t in root.iter(SVG + 'text') if t.get('id')}
    equal(texts['title'], '<t> & "u"')
    assert 'prog --option <x> & more' in texts['subtitle']
    raw = open(f'{folder}/out.svg', encoding='utf-8').read()
    equal(re.findall(r'https?://[^"\' ]*', raw), ['http://www.w3.org/2000/svg'])
    assert not re.search(r'\b(href|src|import|url)\b\s*[=(]', raw)
    # Callers are below callees, or the other way round with "icicle".
    assert all(b.y < boxes[0].y for b in boxes[1:])
    _, boxes = read_svg(profile.write(f'{folder}/icicle.svg', '-', 'icicle'))
    assert all(b.y > boxes[0].y for b in boxes[1:])
    equal(stacks_of(boxes), profile.names())
    profile.driver.close()


# The parts of a browser that the script uses, so that the script can be run without a browser.
BROWSER_JS = r'''
const fs = require("fs");
const [, , file, ...steps] = process.argv;
const svg = fs.readFileSync(file, "utf-8");
const decode = s => s.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&quot;/g, '"')
	.replace(/&amp;/g, "&");
function element(attrs, children) {
	const classes = new Set();
	return { attrs, style: {}, dataset: {}, textContent: "", listeners: {}, ...children,
		classList: { toggle(c, on) { on ? classes.add(c) : classes.delete(c); },
			contains: c => classes.has(c) },
		getAttribute(n) { return this.attrs[n]; },
		setAttribute(n, v) { this.attrs[n] = String(v); },
		removeAttribute(n) { delete this.attrs[n]; },
		getBoundingClientRect() { return { width: window.innerWidth }; },
		addEventListener(n, f) { this.listeners[n] = f; },
		querySelector(n) { return this[n]; } };
}
const groups = [...svg.matchAll(/<g data-x="(\d+)" data-n="(\d+)"><title>([^<]*)<\/title><rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"[^>]*\/><text[^>]*>([^<]*)</g)]
	.map(m => {
		const g = element({}, { title: element({}), rect: element({ x: m[4], y: m[5], width: m[6] }),
			text: element({}) });
		g.dataset = { x: m[1], n: m[2] };
		g.title.textContent = decode(m[3]);
		g.text.textContent = decode(m[7]);
		return g;
	});
const byId = {};
for (const m of svg.matchAll(/ id="(\w+)"/g))
	byId[m[1]] = element({});
byId.frames.children = groups;
const rootElement = element({});
rootElement.dataset.height = "500";
const listeners = {};
let answer = null;
global.document = { documentElement: rootElement, getElementById: id => byId[id] };
global.window = { innerWidth: 1000, addEventListener(n, f) { listeners[n] = f; } };
global.location = { hash: "" };
global.history = { replaceState(a, b, hash) { location.hash = hash; } };
global.prompt = () => answer;
const script = /<script><!\[CDATA\[([^]*)\]\]><\/script>/.exec(svg)[1];
function load() { (0, eval)(script); }
function report() {
	console.log(JSON.stringify({
		matched: byId.matched.style.display === "none" ? null : byId.matched.textContent,
		hash: location.hash, reset: byId.reset.style.display !== "none",
		details: byId.details.textContent,
		shown: groups.filter(g => g.style.display !== "none").map(g => ({
			name: g.title.textContent.split("\n")[0], x: Number(g.rect.attrs.x),
			width: Number(g.rect.attrs.width), text: g.text.textContent,
			under: g.classList.contains("under"), hit: g.classList.contains("hit") })) }));
}
load();
report();
for (const step of steps) {
	const [what, ...rest] = step.split(":");
	const name = rest.join(":");
	const group = () => groups.find(g => g.title.textContent.split("\n")[0] === name);
	if (what === "search") { answer = name; listeners.keydown({ key: "f", ctrlKey: true, preventDefault() {} }); }
	if (what === "click") group().listeners.click();
	if (what === "over") group().listeners.mouseover();
	if (what === "key") listeners.keydown({ key: name, preventDefault() {} });
	if (what === "press") byId[name].listeners.click();
	if (what === "reload") load();
	if (what === "resize") { window.innerWidth = Number(name); listeners.resize(); }
	report();
}
'''


@case
def svg_script(variant, folder):
    """flame graph: the script searches, sums matches, zooms and restores, under node"""
    need('node')
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/out.svg')
    with open(f'{folder}/browser.js', 'w', encoding='utf-8') as file:
        file.write(BROWSER_JS)

    def play(*steps):
        return [json.loads(line) for line in
                run('node', f'{folder}/browser.js', path, *steps).splitlines()]

    total = profile.total // PERIOD
    first, middle, hidden, broken, case_off, case_on, gone = play(
        'search:^(middle|innermost)$', 'search:hidden|exported', 'search:(', 'search:HIDDEN',
        'press:case', 'press:search')
    equal(first['matched'], None)
    equal(first['reset'], False)
    assert abs(first['shown'][0]['width'] - 980) < 1
    # A match on top of another one counts once.
    equal(middle['matched'], f'Matched: {100 * 14 / total:.2f} %')
    equal({f['name'] for f in middle['shown'] if f['hit']}, {'middle', 'innermost'})
    equal(hidden['matched'], f'Matched: {100 * 20 / total:.2f} %')
    assert 'Invalid' in broken['matched'], broken['matched']
    equal(case_off['matched'], 'Matched: 0.00 %')
    equal(case_on['matched'], f'Matched: {100 * 5 / total:.2f} %')
    equal(gone['matched'], None)

    zoomed, over, searched, back = play('click:worker', 'over:hidden', 'search:hidden',
                                        'key:Escape')[1:]
    equal(zoomed['reset'], True)
    frames = {f['name']: f for f in zoomed['shown']}
    equal(set(frames), {'all', 'worker', 'exported', 'hidden'})
    for name in frames:
        assert abs(frames[name]['width'] - 980) < 1, frames
        equal(frames[name]['under'], name == 'all')
        equal(frames[name]['text'], name)
    assert over['details'].startswith('hidden (5.005 ms, '), over['details']
    equal(searched['matched'], 'Matched: 100.00 %')
    equal((back['matched'], back['reset'], back['hash']), (None, False, '#'))
    equal(len(back['shown']), len(first['shown']))

    # A view comes back from its address, and fits another window.
    reloaded, resized = play('click:worker', 'search:hidden', 'reload', 'resize:2020')[3:]
    equal(reloaded['matched'], 'Matched: 100.00 %')
    equal({f['name'] for f in reloaded['shown']}, set(frames))
    assert abs(resized['shown'][0]['width'] - 2000) < 1
    profile.driver.close()


# ---- perf script ----

def collapse(text):
    """Returns the stacks of perf script's text, read as stack collapsers do."""
    ret, times, stack, head = {}, [], [], None
    for line in text.splitlines():
        if not line:
            if head:
                key = (head, *reversed(stack))
                ret[key] = ret.get(key, 0) + period
            head, stack = None, []
        elif head is None:
            found = re.match(r'(.+?)\s+(\d+)/(\d+)\s+(\d+\.\d{6}):\s+(\d+) (\S+): $', line)
            assert found, line
            head, period = found[1], int(found[5])
            times.append(float(found[4]))
            equal(found[6], 'cpu')
        else:
            found = re.match(r'\t\s*([0-9a-f]+) (.*) \((.*)\)$', line)
            assert found, line
            stack.append(re.sub(r'\+0x[0-9a-f]+$', '', found[2]))
    assert head is None, 'no empty line at the end'
    return ret, times


@case
def perf_text(variant, folder):
    """perf script text: all stacks with their values, with and without times"""
    for keep in (False, True):
        profile = Profile(variant, folder, keep)
        text = open(profile.write(f'{folder}/out.perf'), encoding='utf-8').read()
        have, times = collapse(text)
        want = {}
        for stack, value in profile.names().items():
            key = tuple(n for n in stack if n != '[truncated]')
            want[key] = want.get(key, 0) + value
        equal(have, want)
        if keep:
            equal(len(times), profile.count)
            equal(times, sorted(times))
            equal(times[3], 0.003)
        assert re.search(r'\t +[0-9a-f]+ innermost \(inlined\)\n\t +[0-9a-f]+ middle \(inlined\)\n'
                         rf'\t +[0-9a-f]+ outermost\+0x4 \({re.escape(profile.elf.path)}\)\n', text)
        profile.driver.close()


@case
def perf_text_like_perf(variant, folder):
    """perf script text: the same words as perf itself prints for the same addresses"""
    need('perf')
    path = compile_c(folder, INLINE_C.replace('int main(void)\n{', 'int main(void)\n{\n\tfor '
                                              '(int i = 0; i < 200000000; i++)\n\t\toutermost(i);'),
                     flags=['-g'])
    done = perf('record', '-q', '-e', 'cpu-clock:u', '-F', '99', '--call-graph', 'dwarf', '-o',
                f'{folder}/data', path)
    if done.returncode:
        raise Skip('perf cannot record here')
    done = perf('script', '-i', f'{folder}/data', '-F',
                'comm,pid,tid,time,period,event,ip,sym,symoff,dso')
    equal(done.returncode, 0, done.stderr)
    theirs = done.stdout
    # Find an address in the program and its lines.
    found = re.findall(r'(?m)^\S+ +\d+/\d+ +\d+\.\d+: +\d+ \S+ \n((?:\t +[0-9a-f]+ .* '
                       r'\((?:inlined|\S*/prog)\)\n)+)', theirs)
    assert found, theirs[:2000]
    elf = Elf(path)
    driver = Driver(variant)
    driver.do('proc', 'p', 5)
    elf.map(driver, 'p', 0)
    driver.do('type', 'cpu', 'count')
    inlined = 0
    for lines in sorted(set(found)):
        # Addresses are those in the file, which is mapped at 0 above.
        first = lines.split()[0]
        group = [line.split(None, 1)[1] for line in lines.splitlines()
                 if line.split()[0] == first]
        driver.do('sample', 'p', 5, 'x', 0, 0, 1, f'0x{first}p')
        # perf also prints the offset of an inlined function; shstk does not.
        want = [re.sub(r'\+0x[0-9a-f]+ \(inlined', ' (inlined', g) for g in group]
        assert want in records(driver, folder), want
        inlined += len(group) > 1
    assert inlined
    driver.close()


def records(driver, folder):
    """Returns the lines of all records, without the addresses."""
    driver.do('write', f'{folder}/now', 'perf')
    text = open(f'{folder}/now', encoding='utf-8').read()
    return [[line.split(None, 1)[1] for line in record.splitlines()[1:]]
            for record in text.split('\n\n') if record]


@case
def top_table(variant, folder):
    """top: self and total per function, recursion counted once"""
    profile = Profile(variant, folder)
    lines = open(profile.write(f'{folder}/out.top', '-', 'top=1000', 'type=1'),
                 encoding='utf-8').read().splitlines()
    cut = sum(value for stack, value in profile.expected.items() if '[truncated]' in stack)
    equal(lines[0], f'samples, {profile.count} in all; {100 * cut / profile.total:.2f} % truncated')
    rows = {}
    for line in lines[2:]:
        own, _, total, _, name = line.split(None, 4)
        rows[name] = (int(own), int(total))
    equal(rows['innermost'], (14, 14))
    equal(rows['exported'], (1, 20))
    equal(rows['main'], (0, 16))
    equal([r[0] for r in rows.values()], sorted((r[0] for r in rows.values()), reverse=True))
    lines = open(profile.write(f'{folder}/out', 'top', 'top=3'), encoding='utf-8').readlines()
    equal(len(lines), 5)
    profile.driver.close()


@case
def negative_values(variant, folder):
    """values below 0, of what became less: summed by name, shown where they can be"""
    driver = Driver(variant)
    driver.do('type', 'growth', 'bytes')
    driver.do('proc', 'p', 1)
    names = 'main grew shrank moved'.split()
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.writelines(f'{0x1000 * (i + 1):x} 100 {name}\n' for i, name in enumerate(names))
    driver.do('map', 'p', '0x1000', '0x9000', 0, '')
    driver.do('perfmap', 'p', f'{folder}/map')
    # The last function has as much less in one line as it has more in another.
    for pc, value in (('0x2010', 70), ('0x3010', -20), ('0x4010', 5), ('0x4020', -5)):
        driver.do('sample', 'p', 1, 'x', 0, 0, value, f'{pc}p,0x1010')
    for suffix in ('folded', 'top', 'svg', 'perf'):
        driver.do('write', f'{folder}/out.{suffix}', '-')
    text = {s: open(f'{folder}/out.{s}', encoding='utf-8').read() for s in ('folded', 'top', 'perf')}
    equal(text['folded'], 'x;main;grew 70\n')
    rows = [line.split() for line in text['top'].splitlines()]
    equal(rows[0], 'growth, 50 B in all'.split())
    equal(rows[2:], [['70', 'B', '70.00', '70', 'B', '70.00', 'grew'],
                     ['0', 'B', '0.00', '50', 'B', '50.00', 'main'],
                     ['0', 'B', '0.00', '0', 'B', '0.00', 'moved'],
                     ['-20', 'B', '-20.00', '-20', 'B', '-20.00', 'shrank']])
    equal(re.findall(r': +(-?\d+) growth', text['perf']), ['70', '5'])
    shown = [g.find(SVG + 'title').text.splitlines()
             for g in ET.parse(f'{folder}/out.svg').iter(SVG + 'g') if g.get('data-x')]
    equal(shown, [['all', '70 B, 100.00 %'], ['x', '70 B, 100.00 %'],
                  ['main', '70 B, 100.00 %'], ['grew', '70 B, 100.00 %']])
    driver.close()


@case
def other_mappings_at_the_same_addresses(variant, folder):
    """equal addresses in a row: names of what was mapped at each moment"""
    driver = Driver(variant)
    driver.do('type', 'samples', 'count')
    for name in 'pq':
        driver.do('proc', name, 1)
    programs = [assemble(folder, [f'{name}_outer', f'{name}_inner'], name)
                for name in ('first', 'second')]
    outer, inner = (programs[0].addr(f'first_{which}', 8) for which in ('outer', 'inner'))

    def sample(proc, *stack):
        driver.do('sample', proc, 1, 'x', 0, 0, 1, ','.join(f'{pc:#x}' for pc in stack))

    for program in programs:
        program.map(driver, 'p')
        sample('p', inner, outer)
        sample('p', inner, outer)
    programs[0].map(driver, 'q')
    sample('q', inner, outer)
    sample('q', outer, inner, outer)
    driver.do('unmap', 'q', hex(0), hex((1 << 64) - 1))
    sample('q', outer)
    driver.do('write', f'{folder}/out.folded', '-')
    equal(sorted(open(f'{folder}/out.folded', encoding='utf-8').read().splitlines()),
          [f'x;[{outer:#x}] 1',
           'x;first_outer;first_inner 3', 'x;first_outer;first_inner;first_outer 1',
           'x;second_outer;second_inner 2'])
    driver.close()


# ---- Files ----

@case
def cautions_everywhere(variant, folder):
    """what is missing is said in every format, once, and frames make room for it"""
    profile = Profile(variant, folder)
    lines = ['lost 7 records; 1 of 2 s', 'a <b> & c']
    for line in lines + lines[:1]:
        profile.driver.do('caution', line)
    decoded = Decoded(profile.write(f'{folder}/out.pb.gz'))
    equal(decoded.comments[:2], ['caution: ' + line for line in lines])
    head = open(profile.write(f'{folder}/out.txt'), encoding='utf-8').read().splitlines()
    equal(head[:2], ['caution: ' + line for line in lines])
    head = open(profile.write(f'{folder}/out.perf'), encoding='utf-8').read().splitlines()
    equal(head[:2], ['# caution: ' + line for line in lines])
    equal(json.load(open(profile.write(f'{folder}/out.json'), encoding='utf-8'))['cautions'],
          lines)
    stacks = open(profile.write(f'{folder}/out.folded'), encoding='utf-8').read().splitlines()
    equal(stacks[:2], ['[caution] lost 7 records: 1 of 2 s 0', '[caution] a <b> & c 0'])
    check_rows(profile, lines, folder)


def check_rows(profile, lines, folder):
    """Checks that cautions are above all frames, and below all other texts of the heading but the
    details."""
    root, boxes = read_svg(profile.write(f'{folder}/out.svg', '-', 'icicle'))
    texts = [t for t in root.iter(SVG + 'text') if t.get('class') == 'caution']
    equal([t.text for t in texts], lines)
    rows = [int(t.get('y')) for t in texts]
    details = [int(t.get('y')) for t in root.iter(SVG + 'text') if t.get('id') == 'details']
    assert 40 < rows[0] < rows[1] < details[0] < min(b.y for b in boxes), (rows, details)


@case
def speedscope(variant, folder):
    """speedscope: a profile for each thread, its samples in order of time, inlined functions apart"""
    profile = Profile(variant, folder, keep=True)
    profile.driver.do('caution', 'lost 7')
    with open(profile.write(f'{folder}/x.speedscope.json', '-', 'title=t'), encoding='utf-8') as f:
        got = json.load(f)
    equal(got['name'], 't; caution: lost 7')
    names = [frame['name'] for frame in got['shared']['frames']]
    have, threads = {}, []
    for thread in got['profiles']:
        equal(thread['endValue'], sum(thread['weights']), thread['name'])
        equal(len(thread['samples']), len(thread['weights']), thread['name'])
        threads.append(thread['name'])
        for stack, weight in zip(thread['samples'], thread['weights']):
            key = (thread['name'].rsplit(' ', 1)[0], *(names[i] for i in stack))
            have[key] = have.get(key, 0) + weight
    equal(have, profile.names())
    equal(len(set(threads)), len(threads), 'threads twice')
    assert {'worker 111/112', 'worker 111/113', 'main 111/111', 'main 222/111'} <= set(threads), threads
    lines = {(f['name'], f.get('line')) for f in got['shared']['frames'] if 'file' in f}
    assert ('innermost', line_of(INLINE_C, 'innermost(')) in lines, lines
    # Samples come in the order of their times, not in that of adding them.
    driver = Driver(variant)
    for line in (('type', 'samples', 'count'), ('keep',), ('proc', 'p', 7)):
        driver.do(*line)
    for time, addr in ((3, '0x30'), (1, '0x10'), (2, '0x20'), (4, '0x10')):
        driver.do('sample', 'p', 7, 'x', 0, time * 10**9, 1, addr)
    driver.do('write', f'{folder}/y.speedscope.json', '-')
    driver.close()
    with open(f'{folder}/y.speedscope.json', encoding='utf-8') as f:
        got = json.load(f)
    names = [frame['name'] for frame in got['shared']['frames']]
    equal([[names[i] for i in s] for s in got['profiles'][0]['samples']],
          [['[0x10]'], ['[0x20]'], ['[0x30]'], ['[0x10]']])
    profile.driver.close()


@case
def empty_profile(variant, folder):
    """a profile without samples is written in every format"""
    driver = Driver(variant)
    driver.do('type', 'cpu', 'nanoseconds')
    driver.do('comment', 'long ' * 1000)
    driver.do('comment', 'no room')
    for suffix in ('pb.gz', 'folded', 'svg', 'html', 'speedscope', 'firefox.json', 'trace.json',
                   'callgrind', 'perf', 'top'):
        driver.do('write', f'{folder}/out.{suffix}', '-')
    equal(json.load(open(f'{folder}/out.firefox.json', encoding='utf-8'))['threads'], [])
    texts = [t.text for t in ET.parse(f'{folder}/out.svg').iter(SVG + 'text')
             if t.get('id') == 'subtitle']
    equal(texts, ['cpu: 0 ns; ' + 'long ' * 28 + '..'])
    gzip.open(f'{folder}/out.pb.gz').read()
    equal([os.path.getsize(f'{folder}/out.{s}') for s in ('folded', 'perf')], [0, 0])
    driver.close()


@case
def format_choice(variant, folder):
    """the format comes from the suffix or by name; others are named in the error"""
    profile = Profile(variant, folder)
    starts = {'pprof': b'\x1f\x8b', 'svg': b'<?xml', 'folded': b'', 'perf': b'main', 'top': b'cpu',
              'json': b'{', 'html': b'<!DOCTYPE html>',
              'speedscope': b'{"$schema"', 'firefox': b'{\n "meta"', 'trace': b'{"displayTimeUnit"',
              'callgrind': b'# callgrind format\n'}
    for name, form in (('a.pb.gz', 'pprof'), ('a.pprof', 'pprof'), ('a.folded', 'folded'),
                       ('a.collapsed', 'folded'), ('a.svg', 'svg'), ('a.perf', 'perf'),
                       ('a.txt', 'top'), ('a.top', 'top'),
                       ('a.json', 'json'), ('a.html', 'html'), ('a.htm', 'html'),
                       ('a.speedscope.json', 'speedscope'), ('a.firefox.json', 'firefox'),
                       ('a.trace.json', 'trace'),
                       ('a.callgrind', 'callgrind')):
        data = open(profile.write(f'{folder}/{name}'), 'rb').read()
        assert data.startswith(starts[form]), name
    data = open(profile.write(f'{folder}/x.svg', 'pprof'), 'rb').read()
    assert data.startswith(b'\x1f\x8b')
    for name in ('out', 'out.gz', '.svg.', 'out.unknown'):
        equal(profile.driver.ask('write', f'{folder}/{name}', '-')[1],
              f"cannot tell a format from the name '{folder}/{name}' "
              '(.shstk, .pb.gz, .pb, .folded, .svg, .html, .speedscope.json, '
              '.firefox.json, .trace.json, .callgrind, .perf, .txt, .json)')
        assert not os.path.exists(f'{folder}/{name}')
    equal(profile.driver.ask('write', f'{folder}/out', 'jpeg')[1],
          "unknown format 'jpeg' (there are: pprof, pb, folded, svg, html, "
          "speedscope, firefox, trace, callgrind, perf, top, json, shstk)")
    profile.driver.close()


@case
def unwritable(variant, folder):
    """what cannot be written is one line with the path, and leaves nothing behind"""
    profile = Profile(variant, folder)
    os.mkdir(f'{folder}/dir')
    os.mkdir(f'{folder}/dir/sub.svg')
    open(f'{folder}/dir/file', 'w', encoding='utf-8').close()
    for command in ('write', 'check'):
        for path, why in ((f'{folder}/none/out.svg', 'No such file or directory'),
                          (f'{folder}/dir/sub.svg', 'Is a directory'),
                          (f'{folder}/dir/file/out.svg', 'Not a directory'),
                          ('/proc/out.svg', 'No such file or directory')):
            equal(profile.driver.ask(command, path, 'svg')[1], f"cannot write '{path}': {why}")
    equal(profile.driver.ask('write', '/dev/full', 'svg')[1],
          "cannot write '/dev/full': No space left on device")
    equal(sorted(os.listdir(f'{folder}/dir')), ['file', 'sub.svg'])
    os.chmod(f'{folder}/dir', 0o555)
    # A user who may pass over permissions, root or not, can write there.
    if not os.access(f'{folder}/dir', os.W_OK, effective_ids=True):
        path = f'{folder}/dir/out.svg'
        equal(profile.driver.ask('check', path, '-')[1],
              f"cannot write '{path}': Permission denied")
    os.chmod(f'{folder}/dir', 0o755)
    profile.driver.close()


@case
def full_disk(variant, folder):
    """when the disk is full the old file is still there, and no part of the new one"""
    if os.geteuid():
        raise Skip('needs root')
    profile = Profile(variant, folder)
    disk = f'{folder}/disk'
    os.mkdir(disk)
    mount = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8k', 'none', disk],
                           capture_output=True, check=False)
    if mount.returncode:
        raise Skip('no mounting here')
    try:
        with open(f'{disk}/out.svg', 'w', encoding='utf-8') as file:
            file.write('old')
        equal(profile.driver.ask('write', f'{disk}/out.svg', '-')[1],
              f"cannot write '{disk}/out.svg': No space left on device")
        equal(os.listdir(disk), ['out.svg'])
        equal(open(f'{disk}/out.svg', encoding='utf-8').read(), 'old')
    finally:
        run('umount', disk)
    profile.driver.close()


@case
def replaced_file(variant, folder):
    """an old file is replaced with its rights kept, a link is followed, a device written"""
    profile = Profile(variant, folder)
    os.umask(0o022)
    path = profile.write(f'{folder}/new.folded')
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o644)
    text = open(path, encoding='utf-8').read()
    with open(f'{folder}/target', 'w', encoding='utf-8') as file:
        file.write('old')
    os.chmod(f'{folder}/target', 0o600)
    os.symlink('target', f'{folder}/link')
    profile.write(f'{folder}/link', 'folded')
    assert os.path.islink(f'{folder}/link')
    equal(open(f'{folder}/target', encoding='utf-8').read(), text)
    equal(stat.S_IMODE(os.stat(f'{folder}/target').st_mode), 0o600)
    profile.write('/dev/null', 'folded')
    assert stat.S_ISCHR(os.stat('/dev/null').st_mode)
    before = sorted(os.listdir(folder))
    profile.driver.do('check', f'{folder}/checked.svg', '-')
    profile.driver.do('check', f'{folder}/target', 'svg')
    equal(sorted(os.listdir(folder)), before)
    equal(open(f'{folder}/target', encoding='utf-8').read(), text)
    profile.driver.close()


@case
def fifo(variant, folder):
    """a FIFO is written to who reads it; to check it is not to open it; nobody is waited for"""
    profile = Profile(variant, folder)
    text = open(profile.write(f'{folder}/file.folded'), encoding='utf-8').read()
    path = f'{folder}/fifo.folded'
    os.mkfifo(path)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding='utf-8') as reader:
        profile.driver.do('check', path, '-')
        closed = select.poll()
        closed.register(reader, select.POLLIN)
        equal(closed.poll(0), [])
        profile.write(path)
        equal(reader.read(), text)
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    equal(profile.driver.ask('write', path, '-')[1],
          f"cannot write '{path}': No such device or address")
    profile.driver.close()


@sanitized_case
def out_of_memory(variant, folder):
    """any allocation may fail: an error or less knowledge, never a crash or a leak"""
    profile = Profile(variant, folder)
    path = profile.evil.path.encode().hex('%')
    profile.driver.close()
    lines = ['proc\tp\t1', 'type\tsamples\tcount', 'type\tcpu\tnanoseconds',
             'period\tcpu\tnanoseconds\t7', 'comment\tone', 'keep',
             f'perfmap\tp\t{folder}/perf.map',
             f'map\tp\t0x10401000\t0x10402000\t0x1000\t%{path}',
             f'map\tp\t{profile.base["p"] + profile.elf.segment[1]:#x}\t0x7fff00000000\t'
             f'{profile.elf.segment[0]:#x}\t{profile.elf.path}',
             'label\tjob\tone', 'label\tuser\ttwo',
             f'sample\tp\t5\tcomm\t1\t5\t1,7\t{profile.at("p", "outermost", 4, "p")},'
             f'{profile.at("p", "main", 9)},{profile.evil_addr[0]:#x},0x500010,0x900001',
             'fork\tq\tp\t2', 'unmap\tq\t0x10401200\t0x10401800',
             *(f'write\t{folder}/out\t{form}' for form in ('pprof', 'folded', 'svg', 'html', 'speedscope',
                                                           'firefox', 'trace', 'callgrind', 'perf', 'top',
                                                           'shstk'))]
    script = '\n'.join(lines) + '\n'
    driver = os.path.join(BUILD, 'driver-fail')
    for env in ({}, {'FAIL_ALL': '1'}):
        failed = 0
        for at in range(1000):
            if os.path.exists(f'{folder}/out'):
                os.unlink(f'{folder}/out')
            done = subprocess.run([driver, '/nonexistent'], input=script, capture_output=True,
                                  text=True, env={**os.environ, **env, 'FAIL_AT': str(at)},
                                  timeout=200, check=False)
            # The driver ends with 2 where it cannot go on without what it has just requested.
            assert done.returncode in (0, 2), (at, env, done.returncode, done.stderr[-3000:])
            failed += 'error' in done.stdout
            assert not [n for n in os.listdir(folder) if n.endswith('.tmp')], at
            if 'FAIL_AT not reached' in done.stderr:
                break
        assert 20 < failed <= at < 999, (failed, at)


if __name__ == '__main__':
    sys.exit(main())
