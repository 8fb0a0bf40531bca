#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""speedscope, in Debian's Chromium: what it shows of a profile in each format that it reads.

speedscope itself is npm's package; where it can't be got this is skipped.
"""

import base64
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(sys.path[0], 'page'))
from browser import Browser, find_browser  # noqa: E402
from cases import Driver, Elf, Skip, case, equal, main  # noqa: E402
from npm import npm_package  # noqa: E402
from symbol_test import compile_c  # noqa: E402

PERIOD = 10**6
SPEEDSCOPE = ('speedscope', '1.25.0', 'sha512-cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXV'
              'OQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag==')
# By whom speedscope gets a file: its command writes a script that calls this function.
LOAD = 'speedscope.loadFileFromBase64({}, {})'
# The rows of the table of functions: the cells' texts.
ROWS = """[...document.querySelectorAll('table tr')].map(row =>
    [...row.querySelectorAll('td')].map(cell => cell.textContent)).filter(row => row.length >= 3)"""


def speedscope(browser, path):
    """Returns {name: (itself %, with callees %)} of all functions, as speedscope shows them."""
    with open(path, 'rb') as file:
        data = base64.b64encode(file.read()).decode()
    browser.call('Page.navigate', url='about:blank')
    page = os.path.join(npm_package(*SPEEDSCOPE), 'dist', 'release', 'index.html')
    browser.call('Page.navigate', url=f'file://{page}#localProfilePath=nothing')
    browser.wait('Boolean(window.speedscope && speedscope.loadFileFromBase64)')
    browser.do(LOAD.format(json.dumps(os.path.basename(path)), json.dumps(data)))
    browser.wait('document.body.textContent.includes("Sandwich")')
    browser.key('3')        # the view with the table
    browser.wait(f'{ROWS}.length > 0')
    ret = {}
    for total, own, name in (row[:3] for row in browser.do(ROWS)):
        ret[name] = tuple(0 if '(<0.01%)' in text else
                          float(re.search(r'\(([\d.]+)%\)', text)[1]) for text in (own, total))
    return ret


def make_profile(variant, folder):
    """A profile of one thread: most of its time is in a function that was inlined twice."""
    driver = Driver(variant)
    elf = Elf(compile_c(folder, flags=['-g', '-Wl,--build-id']))
    for line in (('type', 'samples', 'count'), ('type', 'cpu', 'nanoseconds'),
                 ('period', 'cpu', 'nanoseconds', PERIOD), ('time', 10**18, 10**9),
                 ('keep',), ('proc', 'p', 7)):
        driver.do(*line)
    elf.map(driver, 'p')
    main_ = f'{elf.addr("main", 9):#x}'
    stacks = ([f'{elf.addr("outermost", 4):#x}p', f'{elf.addr("exported", 6):#x}', main_],
              [f'{elf.addr("hidden", 3):#x}p', f'{elf.addr("exported", 6):#x}', main_])
    for i in range(20):
        driver.do('sample', 'p', 7, 'prog', 0, 10**9 + i * PERIOD, f'1,{PERIOD}',
                  ','.join(stacks[i % 4 == 0]))
    return driver


def shares(stacks):
    """Returns {name: (itself %, with callees %)} of stacks, each of which has an equal part."""
    ret = {}
    for stack in stacks:
        for name in set(stack):
            own, total = ret.get(name, (0, 0))
            ret[name] = own + (name == stack[-1]), total + 1
    return {name: tuple(100 * part / len(stacks) for part in parts) for name, parts in ret.items()}


def start_browser():
    """Returns a browser for speedscope."""
    if not find_browser():
        raise Skip('no Chromium here')
    npm_package(*SPEEDSCOPE)
    try:
        return Browser()
    except (OSError, RuntimeError) as error:
        raise Skip(f'{find_browser()} does not start here: {error}') from error


@case
def same_time(variant, folder):
    """speedscope: in Chrome's format functions of one name end and begin at one time, next to waits"""
    browser = start_browser()
    driver = Driver(variant)
    names = 'main', 'a', 'b', 'x'
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.writelines(f'{i + 1}000 1000 {name}\n' for i, name in enumerate(names))
    for line in (('type', 'wall', 'nanoseconds'), ('period', 'wall', 'nanoseconds', PERIOD), ('keep',),
                 ('proc', 'p', 7), ('perfmap', 'p', f'{folder}/map')):
        driver.do(*line)
    stacks = [s.split() for s in (
        'main a x', 'main x', 'main b x', 'x', 'main a a x', 'main a x', 'a x', 'a a', 'main b a x',
        'main a b x', 'b', 'b', 'main', 'main a x', 'main a x', 'x a b main', 'main a')]
    waits = 13, 14
    for i, stack in enumerate(stacks):
        if i in waits:
            driver.do('label', 'state', 'waiting')
        pcs = [f'{names.index(name) + 1}001p' for name in reversed(stack)]
        driver.do('sample', 'p', 7, 'prog', 0, 10**9 + (i + (i not in waits)) * PERIOD, PERIOD,
                  ','.join(f'0x{pc}' for pc in pcs))
    driver.do('write', f'{folder}/x.trace.json', '-')
    driver.close()
    want = shares([stack + ['waiting'] if i in waits else stack for i, stack in enumerate(stacks)])
    try:
        have = {name.split()[0]: parts
                for name, parts in speedscope(browser, f'{folder}/x.trace.json').items()}
        equal(set(have), set(want))
        equal({n: p for n, p in have.items()
               if any(abs(a - b) > 0.5 for a, b in zip(p, want[n]))}, {}, f'wanted {want}')
        equal([text for text in browser.complaints if 'Tried to end' in text or 'still open' in text],
              [], 'what speedscope says about slices')
    finally:
        browser.close()


@case
def all_formats(variant, folder):
    """speedscope: pprof, its own format, Chrome's, folded stacks and perf's text: the same shares"""
    browser = start_browser()
    driver = make_profile(variant, folder)
    want = {'main': (0, 100), 'exported': (0, 100), 'outermost': (0, 75), 'middle': (0, 75),
            'innermost': (75, 75), 'hidden': (25, 25)}
    try:
        for suffix in 'pb.gz', 'pb', 'speedscope.json', 'trace.json', 'folded', 'perf':
            driver.do('write', f'{folder}/x.{suffix}', '-')
            have = {name.split('+')[0]: parts
                    for name, parts in speedscope(browser, f'{folder}/x.{suffix}').items()}
            # Folded stacks begin with the thread's name.
            have.pop('prog', None)
            # In perf's text the weight of a sample is the time until the next one, if there is any.
            slack = 3 if suffix == 'perf' else 0
            equal(set(have), set(want), suffix)
            bad = {n: p for n, p in have.items()
                   if any(abs(a - b) > slack for a, b in zip(p, want[n]))}
            equal(bad, {}, suffix)
            equal(max(have, key=have.get), 'innermost', suffix)
    finally:
        browser.close()
    driver.close()


if __name__ == '__main__':
    sys.exit(main())
