#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The HTML page of a profile in a real browser: it is opened, searched, zoomed, made dark, printed
and walked through by keyboard, and what it shows is compared with the tables of `shstk report`.
"""

import atexit
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
SELFTESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [SELFTESTS, os.path.join(SELFTESTS, 'export'), os.path.join(SELFTESTS, 'page')]
from browser import Browser, find_browser  # noqa: E402
from cases import Driver, case, equal, main  # noqa: E402
from export_test import EVIL, PERIOD, Profile, harmless  # noqa: E402
from harness import SHSTK, Skip  # noqa: E402

LIMIT = 450     # seconds until a command counts as hung
STACKS = '''web;main;serve;parse 30
web;main;serve;parse;copy 10
web;main;serve 20
pool 1;main;work;parse 15
pool 2;main;work 25
'''
HELD = []       # the one browser, once it is started
REFUSED = []    # why it does not start


def page_case(function):
    """Marks a function as a case of the page, of which there is one variant."""
    function.variants = ('native',)
    return case(function)


def browser():
    """Returns the browser, which is started at the first call."""
    if not find_browser():
        raise Skip('no chromium-headless-shell or chromium here')
    if not HELD and not REFUSED:
        try:
            HELD.append(Browser())
            atexit.register(HELD[0].close)
        except (OSError, RuntimeError) as error:
            REFUSED.append(f'{find_browser()} does not start here: {error}')
    if REFUSED:
        raise Skip(REFUSED[0])
    HELD[0].complaints.clear()
    HELD[0].requests.clear()
    HELD[0].dark(False)
    HELD[0].size(1280, 800)
    return HELD[0]


def shstk(*args):
    """Runs the command. Returns what it printed."""
    done = subprocess.run([SHSTK, *args], capture_output=True, text=True, timeout=LIMIT,
                          check=False)
    equal(done.returncode, 0, f'{args}: {done.stderr}')
    return done.stdout


def put(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def open_stacks(folder, text=STACKS, *options):
    """Opens a page of folded stacks. Returns the browser."""
    shstk('report', '-q', *options, f'-o{folder}/page.html', put(f'{folder}/in.folded', text))
    page = browser()
    page.open(f'file://{folder}/page.html')
    return page


def silent(page):
    """Checks that the page complained of nothing, and requested nothing but itself."""
    equal(page.complaints, [])
    equal([url for url in page.requests if url.split(':')[0] not in ('file', 'about', 'data')], [])


def boxes(page):
    """Returns what the graph shows, as {name: value}. Boxes with the same name are summed up."""
    ret = {}
    for name, value in page.do('graph.boxes.node.map(n => [profile.frames.name[graph.tree.frame[n]],'
                               ' graph.tree.total[n]])'):
        ret[name] = ret.get(name, 0) + value
    return ret


def text(page, ident):
    return page.do(f'get({json.dumps(ident)}).textContent')


def middle_of(page, name):
    """Returns the place on the screen of the widest box of a function."""
    return page.do('''(name => {
        const all = graph.boxes, area = get("graph").getBoundingClientRect();
        let best = -1;
        for (let b = 0; b < all.node.length; b++)
            if (profile.frames.name[graph.tree.frame[all.node[b]]] === name &&
                (best < 0 || all.w[b] > all.w[best]))
                best = b;
        if (best < 0)
            throw new Error(`no box ${name}`);
        get("graph").scrollTop = rowPlace(graph)(all.row[best]) - 100;
        return [area.left + all.x[best] + all.w[best] / 2,
            area.top + rowPlace(graph)(all.row[best]) - get("graph").scrollTop + ROW / 2];
    })(''' + json.dumps(name) + ')')


# The names of functions in the tree that is shown, by kind.
KINDS = """(() => { const ret = {}, t = shownTree();
    for (let i = 0; i < t.nr; i++)
        (ret[profile.kinds[t.kind[i]]] ||= new Set()).add(profile.frames.name[t.frame[i]]);
    return Object.fromEntries(Object.entries(ret).map(([kind, names]) => [kind, [...names].sort()]));
})()"""


# ---- What the page shows ----

@page_case
def opens(_variant, folder):
    """the page opens without a complaint, asks nobody for anything, and draws every stack"""
    page = open_stacks(folder)
    equal(boxes(page), {'all': 100, 'web': 60, 'pool *': 40, 'main': 100, 'serve': 60, 'parse': 55,
                        'copy': 10, 'work': 40})
    equal(text(page, 'title'), f'{folder}/in.folded')
    assert text(page, 'sum').startswith('samples: 100'), text(page, 'sum')
    colours = page.do('''(() => {
        const c = get("canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        return new Set(new Uint32Array(d.buffer)).size; })()''')
    assert colours > 5, f'{colours} colours are drawn'
    silent(page)


@page_case
def same_as_the_table(variant, folder):
    """each function has the value that the table of `shstk report` has for it"""
    profile = Profile(variant, folder)
    source = profile.write(f'{folder}/in.pb.gz')
    profile.write(f'{folder}/direct.html')
    profile.driver.close()
    shstk('report', '-q', f'-o{folder}/again.html', source)
    table = json.loads(shstk('report', '--json', '--top=100000', source))
    want = {f['function']: (f['self'], f['total']) for f in table['functions']}
    page = browser()
    for name in 'direct', 'again':
        page.open(f'file://{folder}/{name}.html')
        have = page.do('''(() => { const s = sumFunctions(profile, forwardTree(), 0);
            return Array.from(s.frames, f => [profile.frames.name[f], s.self[f], s.total[f]]); })()''')
        have = {f: (own, total) for f, own, total in have}
        assert have.pop('[truncated]')[1] > 0
        equal(have, want, name)
        equal(page.do('forwardTree().total[0]'), table['total'])
    silent(page)


@page_case
def callers(_variant, folder):
    """the graph of callers begins with each function's own value, and its callers stand below"""
    page = open_stacks(folder, STACKS, '--inverted')
    equal(page.do('view.mode'), 'callers')
    have = page.do('''(() => { const t = graph.tree, ret = [];
        for (let i = 1; i < t.nr; i++)
            ret.push(" ".repeat(t.depth[i]) + profile.frames.name[t.frame[i]] + " " + t.total[i]);
        return ret; })()''')
    equal(have, [' copy 10', '  parse 10', '   serve 10', '    main 10', '     web 10', ' parse 45',
                 '  serve 30', '   main 30', '    web 30', '  work 15', '   main 15',
                 '    pool * 15', ' serve 20', '  main 20', '   web 20', ' work 25', '  main 25',
                 '   pool * 25'])
    silent(page)


@page_case
def levels(variant, folder):
    """commands, processes and threads are boxes of their own as chosen; threads merge by name"""
    page = open_stacks(folder)
    page.do('get("thread").value = "each"; get("thread").dispatchEvent(new Event("change"))')
    equal({n for n in boxes(page) if n.startswith('pool')}, {'pool 1', 'pool 2'})
    page.do('get("thread").value = "none"; get("thread").dispatchEvent(new Event("change"))')
    equal(boxes(page)['main'], 100)
    assert 'web' not in boxes(page)
    profile = Profile(variant, folder)
    profile.write(f'{folder}/threads.html')
    profile.driver.close()
    page.open(f'file://{folder}/threads.html')
    for level in 'command', 'process':
        page.do(f'get("{level}").checked || get("{level}").click()')
    page.do('changeLevels({thread: "each"})')
    rows = page.do('''(() => { const t = forwardTree(), ret = {};
        for (let i = 1; i < t.nr; i++)
            (ret[profile.kinds[t.kind[i]]] ||= []).push(profile.frames.name[t.frame[i]]);
        return ret; })()''')
    equal({int(name.split()[-1]) for name in rows['process']}, {111, 222})
    assert {'worker 111/112', 'worker 111/113'} <= set(rows['thread']), rows['thread']
    assert rows['command'], rows
    silent(page)


@page_case
def warns(variant, folder):
    """cautions, the command, the time and truncated stacks stand in the header of every view"""
    profile = Profile(variant, folder)
    profile.driver.do('caution', 'lost 7 records <b>; 1 of 2 s')
    profile.write(f'{folder}/out.html')
    profile.driver.close()
    page = browser()
    page.open(f'file://{folder}/out.html')
    for mode in 'flame', 'icicle', 'callers', 'table', 'tree':
        page.do(f'changeView({{mode: "{mode}"}})')
        for width, height in ((320, 568), (360, 740), (1280, 800), (3840, 2160)):
            page.size(width, height)
            equal(page.do('document.documentElement.scrollWidth <= innerWidth'), True,
                  f'{mode} at {width} is too wide')
            place = page.do('(r => [r.top, r.bottom, r.width])(document.querySelector('
                            '"#cautions li").getBoundingClientRect())')
            assert 0 <= place[0] < place[1] <= height and place[2] > 100, (mode, width, place)
            assert page.do('document.querySelector("main").clientHeight') >= 100, (mode, width)
    equal(text(page, 'cautions'), 'lost 7 records <b>; 1 of 2 s')
    assert 'prog --option <x> & more' in text(page, 'about'), text(page, 'about')
    assert '2023' in text(page, 'about') and '5.000 s' in text(page, 'about'), text(page, 'about')
    assert 'truncated stacks' in text(page, 'sum'), text(page, 'sum')
    silent(page)


# ---- What is done with the page ----

@page_case
def searches(_variant, folder):
    """/ searches as one writes: names, boxes and share; regular expressions; what is none is told"""
    page = open_stacks(folder)
    page.key('/')
    equal(page.do('document.activeElement.id'), 'search')
    page.write('^par')
    page.wait('get("matched").textContent.includes("name")')
    equal(text(page, 'matched'), '1 name, 2 boxes, 55.00 %')
    page.key('Enter')
    equal(page.do('profile.frames.name[chosen.frame]'), 'parse')
    page.write('(')
    page.wait('get("search").getAttribute("aria-invalid") === "true"')
    page.key('Escape')
    equal(page.do('[get("search").value, get("matched").textContent, document.activeElement.id]'),
          ['', '', 'graph'])
    page.do('changeView({query: "SERVE"})')
    assert text(page, 'matched').startswith('0 names'), text(page, 'matched')
    page.do('get("case").click()')
    assert text(page, 'matched').startswith('1 name, 1 box, 60.00 %'), text(page, 'matched')
    silent(page)


@page_case
def zooms(_variant, folder):
    """a click zooms, Back returns, and the address opens the same view again"""
    page = open_stacks(folder)
    page.click(*middle_of(page, 'serve'))
    page.wait('view.zoom > 0')
    assert 'shown: 60 (60.00 %)' in text(page, 'sum'), text(page, 'sum')
    equal(boxes(page), {'all': 100, 'web': 60, 'main': 60, 'serve': 60, 'parse': 40, 'copy': 10})
    page.do('changeView({mode: "icicle", query: "copy"})')
    before = page.do('location.href'), boxes(page)
    page.do('history.back()')
    page.wait('view.mode === "flame" && view.zoom > 0')
    page.do('history.back()')
    page.wait('view.zoom === 0')
    page.open(before[0])
    equal([page.do('[view.mode, view.query]'), boxes(page)], [['icicle', 'copy'], before[1]])
    page.do('location.hash = "#v=nothing&z=999999&t=77&h=x&k=y&s=z"')
    page.wait('view.mode === "flame"')
    equal(boxes(page)['all'], 100)
    silent(page)


@page_case
def keyboard(variant, folder):
    """all of it is reached by keys: Tab comes to each control, arrows walk, Enter and Escape zoom"""
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/controls.html')
    profile.driver.close()
    page = browser()
    page.open(f'file://{path}')
    reached = set()
    for _ in range(30):
        page.key('Tab')
        reached.add(page.do('document.activeElement.id'))
        if page.do('document.activeElement.id'):
            assert page.do('getComputedStyle(document.activeElement).outlineStyle') != 'none', \
                f'{page.do("document.activeElement.id")}: focus is not seen'
    assert {'view-flame', 'view-icicle', 'view-callers', 'view-table', 'view-tree', 'search', 'case',
            'type', 'colour', 'command', 'process', 'thread', 'help-button', 'graph'} <= reached, \
        reached
    page = open_stacks(folder)
    page.do('get("graph").focus()')
    for key in ('ArrowDown', 'ArrowUp', 'ArrowRight', 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowUp'):
        page.key(key)
    equal(page.do('profile.frames.name[chosen.frame]'), 'serve')
    assert '60 (60.00 %)' in text(page, 'spoken') and 'serve' in text(page, 'spoken')
    page.key('Enter')
    page.wait('view.zoom > 0')
    page.key('Escape')
    page.wait('view.zoom === 0')
    page.key('?')
    page.wait('get("help").open')
    page.key('Escape')
    page.wait('!get("help").open')
    silent(page)


@page_case
def lists(_variant, folder):
    """the table is sorted by its heads and the tree opened by keys; both name what is chosen"""
    page = open_stacks(folder)
    page.key('4')
    page.wait('view.mode === "table"')
    names = 'list.rows.map(f => profile.frames.name[f])'
    equal(page.do(names), ['parse', 'work', 'serve', 'copy', 'main'])
    page.do('changeView({sort: "total"})')
    equal(page.do(names), ['main', 'serve', 'parse', 'work', 'copy'])
    equal(page.do('document.querySelectorAll("[aria-sort=descending]").length'), 1)
    for _ in range(3):
        page.key('ArrowDown')
    equal([text(page, 'panel-name'), page.do('get("list").getAttribute("aria-activedescendant")')],
          ['parse', 'row2'])
    page.key('Enter')
    page.wait('view.mode === "callers"')
    equal(page.do('profile.frames.name[graph.tree.frame[graph.zoom]]'), 'parse')
    page.key('5')
    page.wait('view.mode === "tree"')
    rows = 'list.rows.map(i => profile.frames.name[forwardTree().frame[i]])'
    equal(page.do(rows), ['all', 'pool *', 'web', 'main', 'serve', 'parse', 'copy'])
    page.key('Home')
    page.key('ArrowLeft')
    equal(page.do(rows), ['all'])
    page.key('ArrowRight')
    equal(page.do(rows)[:3], ['all', 'pool *', 'web'])
    equal(page.do('get("list").getAttribute("role")'), 'treegrid')
    silent(page)


@page_case
def any_order(variant, folder):
    """each view follows each other one with something chosen; profiles of nothing are shown, too"""
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/full.html')
    profile.driver.close()
    modes = 'flame', 'icicle', 'callers', 'table', 'tree'
    paths = [path]
    for name, stacks in (('zero', 'a;b 0\n'), ('negative', 'a;b -5\n'), ('thread', 'a 5\n')):
        shstk('report', '-q', f'-o{folder}/{name}.html', put(f'{folder}/{name}.folded', stacks))
        paths.append(f'{folder}/{name}.html')
    page = browser()
    for path in paths:
        page.open(f'file://{path}')
        for first in modes:
            for second in modes:
                page.do(f'changeView({{mode: "{first}"}})')
                page.do('(isGraph() ? get("graph") : get("list")).focus()')
                page.do('if (isGraph()) { const t = shownTree(); choose(t.nr - 1, t.frame[t.nr - 1]); }'
                        ' else chooseRow(list, list.rows.length - 1)')
                page.do(f'changeView({{mode: "{second}"}})')
        for key in ('ArrowDown', 'ArrowRight', 'Home', 'End', 'Enter', 'Escape', 'Escape'):
            page.key(key)
        equal(page.do('get("sum").textContent') != '', True)
        silent(page)


SHOWN = 'Math.round(forwardTree().total[0])'


@page_case
def timeline(variant, folder):
    """a range of time, by keys or the pointer, is what all views show; the address keeps it"""
    profile = Profile(variant, folder, keep=True)
    path = profile.write(f'{folder}/times.html')
    count, total = profile.count, profile.total
    profile.driver.close()
    page = browser()
    page.open(f'file://{path}')
    equal(page.do('[profile.moments.time.length, profile.moments.slot, get("times").hidden]'),
          [count, 0, False])
    equal(page.do('heat.cells.reduce((a, b) => a + b)'), total, 'in the map of heat')
    # There is a sample each millisecond: the range has the fourth to the ninth.
    page.do('changeRange(3e6, 9e6)')
    equal(page.do(SHOWN), 6 * PERIOD)
    assert 'from 0.003 s to 0.009 s' in text(page, 'sum'), text(page, 'sum')
    url = page.do('location.href')
    for mode in 'callers', 'table', 'tree', 'icicle':
        page.do(f'changeView({{mode: "{mode}"}})')
        equal(page.do('shownTree().total[0]'), 6 * PERIOD, mode)
    page.do('get("heat-area").focus()')
    page.key('Escape')
    page.wait(f'{SHOWN} === {total}')
    page.key('ArrowRight')
    page.wait(f'{SHOWN} < {total} && view.from === 0')
    first = page.do('view.to')
    page.key('ArrowRight')
    page.wait(f'Math.abs(view.from - {first}) < 2')
    page.key('Escape')
    area = page.do('(r => [r.left, r.top, r.width])(get("heat-canvas").getBoundingClientRect())')
    page.drag(area[0] + area[2] / 4, area[0] + area[2] / 2, area[1] + 5)
    page.wait('view.to > view.from')
    ends = page.do('[view.from / profile.moments.end, view.to / profile.moments.end]')
    assert abs(ends[0] - 0.25) < 0.02 and abs(ends[1] - 0.5) < 0.02, ends
    page.do('get("heat").value = "offset"; get("heat").dispatchEvent(new Event("change"))')
    equal(page.do('[heat.names.length, Math.round(heat.cells.reduce((a, b) => a + b))]'),
          [25, total])
    page.open(url)
    equal(page.do(SHOWN), 6 * PERIOD, 'by the address')
    silent(page)


@page_case
def lives(_variant, folder):
    """the timeline by thread shows when processes began and ended, also behind the last sample"""
    driver = Driver('native')
    for line in (('type', 'cpu', 'nanoseconds'), ('keep',), ('proc', 'p', 7), ('proc', 'q', 8),
                 ('sample', 'p', 7, 'x', 0, 10**9, 1000, '0x10'),
                 ('sample', 'q', 8, 'y', 0, 10**9 + 2 * 10**6, 900, '0x10'),
                 ('life', 8, 10**9 + 10**6, 'began', 'y'), ('life', 8, 10**9 + 4 * 10**6, 'ended', 'y'),
                 ('life', 9, 10**9, 'began', 'nobody'), ('write', f'{folder}/page.html', '-')):
        driver.do(*line)
    driver.close()
    page = browser()
    page.open(f'file://{folder}/page.html')
    equal(page.do('[heat.names.map(name => name.split(" ")[0]), heat.marks, profile.moments.end]'),
          [['x', 'y'], [{'row': 1, 'time': 10**6, 'ended': 0}, {'row': 1, 'time': 4 * 10**6, 'ended': 1}],
           4 * 10**6])
    # The bracket of the beginning is drawn in the text's colour where nothing else is.
    dark = page.do("""(() => { const c = get("heat-canvas"), ratio = c.width / heat.width;
        const x = heat.marks[0].time * heat.scale;
        const d = c.getContext("2d").getImageData((x - 1) * ratio, 17 * ratio, 3 * ratio, 1).data;
        return Math.min(...d.filter((_, i) => i % 4 === 0 && d[i + 3] > 100)); })()""")
    assert dark < 90, dark
    page.do('get("heat").value = "offset"; get("heat").dispatchEvent(new Event("change"))')
    equal(page.do('heat.marks'), [])
    silent(page)


@page_case
def waits(_variant, folder):
    """waits last from their sample on: the timeline tells them from time on the CPU and by thread, a
    range has their part in it; they stand by wait, waker and state"""
    driver = Driver('native')
    for line in (('type', 'samples', 'count'), ('type', 'wall', 'nanoseconds'), ('keep',),
                 ('proc', 'p', 7), ('perfmap', 'p', put(f'{folder}/map',
                                                       '1000 1000 main\n2000 1000 read\n'
                                                       '3000 1000 work\n'))):
        driver.do(*line)
    work, wait = '0x3001p,0x1001p', '0x2001p,0x1001p'
    waker = ('label', 'waker', 'init (1)')
    for tid, time, value, stack, *labels in (
            (7, 0, 1, work), (7, 1, 4, wait, ('label', 'state', 'waiting'), waker), (7, 5, 1, work),
            (8, 2, 2, work, ('label', 'state', 'preempted')), (8, 9, 1, work)):
        for label in labels:
            driver.do(*label)
        driver.do('sample', 'p', tid, 'thread', 0, (time + 10) * 10**9, f'1,{value * 10**9}', stack)
    driver.do('write', f'{folder}/page.html', '-')
    driver.close()
    page = browser()
    page.open(f'file://{folder}/page.html')
    equal(page.do('heat.parts.map(Math.round)'), [3 * 10**9, 4 * 10**9, 2 * 10**9])
    shown = text(page, 'states')
    assert 'waiting 44.44 %' in shown and 'preempted 22.22 %' in shown, shown
    page.do('changeRange(3e9, 4e9)')
    equal({name: boxes(page)[name] for name in ('read', 'work')}, {'read': 1e9, 'work': 1e9})
    page.do('changeRange(0, 0)')
    for by, names in (('wait', {'read': 4e9, 'work': 5e9}), ('waker', {'waker: init (1)': 4e9}),
                      ('state', {'state: waiting': 4e9, 'state: preempted': 2e9})):
        page.do(f'get("by").value = "{by}"; get("by").dispatchEvent(new Event("change"))')
        first = page.do('Object.fromEntries(graph.boxes.node.filter(n => graph.tree.depth[n] === 1 && '
                        'graph.tree.kind[n] === 4).map(n => [profile.frames.name[graph.tree.frame[n]],'
                        ' graph.tree.total[n]]))')
        equal(first, names, by)
    silent(page)


@page_case
def levels_of_memory(_variant, folder):
    """memory in use is drawn over time; a range shows how much more it became"""
    driver = Driver('native')
    for line in (('type', 'inuse_space', 'bytes'), ('keep',), ('proc', 'p', 7),
                 ('perfmap', 'p', put(f'{folder}/map', '1000 1000 grow\n2000 1000 shrink\n'))):
        driver.do(*line)
    for time, value, at in ((0, 100, '0x1001p'), (0, 50, '0x2001p'), (1, 100, '0x1001p'),
                            (2, -40, '0x2001p'), (3, 1, '0x1001p')):
        driver.do('sample', 'p', 7, 'x', 0, (time + 10) * 10**9, value, at)
    for suffix in 'html', 'speedscope.json', 'perf':
        driver.do('write', f'{folder}/page.{suffix}', '-')
    driver.close()
    page = browser()
    page.open(f'file://{folder}/page.html')
    equal(page.do('[heat.by, heat.most, heat.cells[0], heat.cells[heat.columns - 1]]'),
          ['level', 250, 150, 211])
    equal(boxes(page), {'all': 211, 'x': 211, 'grow': 201, 'shrink': 10})
    page.do('changeRange(500e6, 2500e6)')
    equal(boxes(page)['grow'], 100)
    assert 'shrink' not in boxes(page), boxes(page)
    assert 'more at 2.500 s than at 0.500 s' in text(page, 'sum'), text(page, 'sum')
    page.do('changeRange(0, 1500e6)')
    equal(boxes(page)['all'], 250)
    assert ' at 1.500 s' in text(page, 'sum'), text(page, 'sum')
    # Formats that show samples one by one have the sums.
    with open(f'{folder}/page.speedscope.json', encoding='utf-8') as file:
        equal(sum(json.load(file)['profiles'][0]['weights']), 211)
    with open(f'{folder}/page.perf', encoding='utf-8') as file:
        equal(file.read().count('inuse_space'), 2)
    silent(page)


@page_case
def many_times(variant, folder):
    """more samples than may have a time each: times are less exact, and no value is lost"""
    profile = Profile(variant, folder)
    driver, stack = profile.driver, profile.at('p', 'exported', 6)
    profile.driver.do('keep', 400)
    for i in range(1000):
        driver.do('sample', 'p', 111, 'main', 0, 10**9 + i * 10**6, f'1,{PERIOD}', stack)
    path = profile.write(f'{folder}/many.html')
    driver.close()
    page = browser()
    page.open(f'file://{path}')
    equal(page.do('profile.moments.values.map(v => v.reduce((a, b) => a + b))'),
          [1000, 1000 * PERIOD])
    nr, slot = page.do('[profile.moments.time.length, profile.moments.slot]')
    assert 100 <= nr <= 400 and slot in (4 * 10**6, 8 * 10**6), (nr, slot)
    silent(page)


CONTRAST = '''(() => {
    const light = text => {
        const c = document.createElement("canvas").getContext("2d");
        c.fillStyle = text;
        c.fillRect(0, 0, 1, 1);
        const [r, g, b] = Array.from(c.getImageData(0, 0, 1, 1).data, v => {
            v /= 255;
            return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const against = (a, b) => {
        const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
        return (x + 0.05) / (y + 0.05); };
    const t = theme(), style = getComputedStyle(document.documentElement);
    const css = name => style.getPropertyValue(name).trim();
    const pairs = [[t.text, css("--back")], [css("--quiet"), css("--raised")],
        [css("--caution"), css("--caution-back")], [t.hitText, t.hit]];
    for (const kind of profile.kinds)
        for (const shade of [0, 12])
            pairs.push([t.text, kindColour(kind, shade, isDark())]);
    for (let hue = 0; hue < 360; hue += 30)
        pairs.push([t.text, hsl(hue, 60, 0, isDark())]);
    for (const other of [0, 1, 3, 8, 100])
        pairs.push([t.text, growthColour(3, other, isDark())]);
    return pairs.map(([a, b]) => [against(a, b), a, b]).sort((m, n) => m[0] - n[0])[0]; })()'''


@page_case
def light_and_dark(_variant, folder):
    """light or dark as the browser is set; text can be read on every colour (contrast 4.5)"""
    page = open_stacks(folder)
    backs = []
    for dark in False, True:
        page.dark(dark)
        page.wait(f'isDark() === {str(dark).lower()}')
        backs.append(page.do('getComputedStyle(document.body).backgroundColor'))
        least = page.do(CONTRAST)
        assert least[0] >= 4.5, f'dark {dark}: {least}'
    equal(backs, ['rgb(255, 255, 255)', 'rgb(21, 23, 27)'])
    silent(page)


@page_case
def guessed(variant, folder):
    """guessed functions have a colour and a share of their own: in the page, SVG, and Firefox's format"""
    driver = Driver(variant)
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.writelines(f'{i + 1}000 1000 {name}\n' for i, name in enumerate(
            ('main', 'known', 'doubtful')))
    for line in (('type', 'samples', 'count'), ('proc', 'p', 7), ('keep',),
                 ('map', 'p', '0x1000', '0x5000', 0, ''), ('perfmap', 'p', f'{folder}/map')):
        driver.do(*line)
    # The last function of the second stack is guessed, and so is the caller of the third.
    for value, stack in ((6, '0x2001p,0x1001'), (3, '0x3001g,0x1001'), (1, '0x2001p,0x3001g,0x1001')):
        driver.do('sample', 'p', 7, 'x', 0, 10**9, value, stack)
    for suffix in 'html', 'svg', 'firefox.json', 'shstk':
        driver.do('write', f'{folder}/x.{suffix}', '-')
    driver.close()
    shstk('report', '-q', f'-o{folder}/again.html', f'{folder}/x.shstk')
    page = browser()
    for name in 'x', 'again':
        page.open(f'file://{folder}/{name}.html')
        kinds = page.do(KINDS)
        equal((kinds['guessed'], kinds['made']), (['doubtful'], ['known', 'main']), name)
        legend = text(page, 'legend')
        assert 'guessed 30' in legend, legend
        equal(page.do('kindColour("guessed", 6, false) !== kindColour("unknown", 6, false)'), True)
        silent(page)
    with open(f'{folder}/x.svg', encoding='utf-8') as file:
        colours = dict(re.findall(r'<title>(\w+)[^<]*</title>\s*<rect[^>]*fill="#?(\w+)"', file.read()))
    assert colours['doubtful'] != colours['known'], colours
    with open(f'{folder}/x.firefox.json', encoding='utf-8') as file:
        got = json.load(file)
    thread, = got['threads']
    have = {thread['stringArray'][thread['funcTable']['name'][func]]:
            got['meta']['categories'][category]['name'] for func, category in zip(
                thread['frameTable']['func'], thread['frameTable']['category'])}
    equal(have, {'main': 'Made at run time', 'known': 'Made at run time', 'doubtful': 'Guessed'})


@page_case
def names_that_harm(variant, folder):
    """names that look like HTML or scripts are shown as they are, also when they are clicked"""
    names = ['<img src=x onerror=harm()>', '</script><script>harm()</script>', '"\'><svg onload=harm()>',
             'javascript:harm()', '${harm()}', '&lt&#60<b>', '-' * 3000]
    stacks = ''.join(f'{name};{name};end 5\n' for name in names)
    page = open_stacks(folder, stacks, f'-o{folder}/other.html')
    page.do('window.harmed = 0; window.harm = () => harmed++')
    elements = page.do('document.querySelectorAll("*").length')
    for name in names:
        page.do('changeView({zoom: 0})')
        page.move(*middle_of(page, name))
        page.click(*middle_of(page, name))
        page.wait('view.zoom > 0')
        equal(text(page, 'panel-name'), name)
    for mode in 'table', 'tree', 'callers':
        page.do(f'changeView({{mode: "{mode}", zoom: 0}})')
    equal(page.do('document.querySelectorAll("img, svg, body script[src]").length'), 0)
    equal(page.do('harmed'), 0)
    assert page.do('document.querySelectorAll("*").length') < elements + 600
    profile = Profile(variant, folder)
    path = profile.write(f'{folder}/evil.html', '-', 'title=</title><script>harm()</script>')
    profile.driver.close()
    page.open(f'file://{path}')
    shown = set(page.do('profile.frames.name'))
    equal([n for n in EVIL if harmless(n) not in shown], [])
    equal(text(page, 'title'), '</title><script>harm()</script>')
    silent(page)


@page_case
def differences(_variant, folder):
    """the page of a difference has both sides: what grew is red, what shrank blue"""
    before = put(f'{folder}/before.folded', 'p;main;a 50\np;main;b 30\np;main;same 20\n')
    after = put(f'{folder}/after.folded', 'p;main;a 80\np;main;c 10\np;main;same 20\n')
    shstk('diff', f'-o{folder}/page.html', before, after)
    page = browser()
    page.open(f'file://{folder}/page.html')
    equal(boxes(page), {'all': 110, 'p': 110, 'main': 110, 'a': 80, 'c': 10, 'same': 20})
    equal(text(page, 'sum'), 'after: 110 (samples); before: 100')
    hues = """(() => { const ret = {}, t = graph.tree;
        for (let i = 1; i < t.nr; i++)
            ret[profile.frames.name[t.frame[i]]] = graph.palette(i).match(/hsl\\((\\d+) (\\d+)/)
                .slice(1).map(Number);
        return ret; })()"""
    have = page.do(hues)
    assert have['a'][0] == have['c'][0] < 30 and have['c'][1] > have['a'][1] > 0, have
    equal(have['same'][1], 0, 'no colour')
    page.do('changeType(0)')
    equal(boxes(page), {'all': 100, 'p': 100, 'main': 100, 'a': 50, 'b': 30, 'same': 20})
    have = page.do(hues)
    assert have['b'][0] > 200 and have['b'][1] > 60, have
    assert have['a'][0] < 30 and have['a'][1] > 0, have
    page.do('changeView({mode: "table", sort: "growth"})')
    equal(page.do('list.rows.slice(0, 3).map(f => [profile.frames.name[f], ...list.cells(f)])'
                  '.map(c => [c[0], c[5]])'), [['a', '+30'], ['b', '-30'], ['c', '+10']])
    shstk('diff', '--normalize', f'-o{folder}/page.html', before, after)
    page.open(f'file://{folder}/page.html')
    equal(boxes(page)['all'], 100)
    silent(page)


@page_case
def on_paper(_variant, folder):
    """printed it shows header and graph in full, in light colours, and no controls"""
    deep = ';'.join(f'level{i}' for i in range(200))
    page = open_stacks(folder, f'prog;{deep} 5\n')
    page.dark(True)
    page.call('Emulation.setEmulatedMedia', media='print')
    page.wait('matchMedia("print").matches && get("canvas").clientHeight >= 202 * ROW')
    equal(page.do('[getComputedStyle(get("tools")).display, isDark()]'), ['none', False])
    page.call('Emulation.setEmulatedMedia', media='')
    page.wait('get("canvas").clientHeight < 800')
    silent(page)


@page_case
def deep_stacks(_variant, folder):
    """stacks of 3000 frames are drawn, walked and inverted; the root is in sight at first"""
    deep = ';'.join(f'f{i % 7}' for i in range(3000))
    page = open_stacks(folder, f'prog;{deep} 5\nprog;main 1\n')
    equal(page.do('forwardTree().depths'), 3002)
    assert page.do('get("graph").scrollTop > 10000')
    page.do('get("graph").focus()')
    for _ in range(4):
        page.key('ArrowUp')
    equal(page.do('tree = forwardTree(), tree.depth[chosen.node]'), 3)
    page.do('changeView({mode: "callers"})')
    equal(page.do('graph.tree.depths'), 3002)
    silent(page)


if __name__ == '__main__':
    sys.exit(main())
