#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages walked through from the outside: walk.js by playwright-core, which knows what users see and
what screen readers say. page_test.py looks at what the page's scripts know, too."""

import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
SELFTESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [SELFTESTS, os.path.join(SELFTESTS, 'export'), os.path.join(SELFTESTS, 'page')]
from browser import Browser, find_browser  # noqa: E402
from cases import Driver, Skip, case, equal, main  # noqa: E402
from npm import npm_package  # noqa: E402

PLAYWRIGHT = ('playwright-core', '1.64.1', 'sha512-BC4s8y6SEVA6Q1rSxZTto8hI1KUI3xXlHGZgvGqP4IqPdI/'
              'a6FX9H29IDNz7vKo9l21b6LfYosScPL6M3xxyDQ==')
LIMIT = 450     # seconds until the walk counts as hung: the machine may be very slow
WALK = os.path.join(SELFTESTS, 'page', 'walk.js')
MS = 10**6


def write_page(folder, name, types, values):
    """Writes a page of a process's 30 samples, one each 10 ms; 60 % of them are in parse()."""
    driver = Driver('native')
    with open(f'{folder}/map', 'w', encoding='ascii') as file:
        file.write('1000 1000 main\n2000 1000 parse\n3000 1000 write\n')
    for line in (*(('type', *each) for each in types), ('keep',), ('proc', 'p', 7),
                 ('map', 'p', '0x1000', '0x5000', 0, ''), ('perfmap', 'p', f'{folder}/map')):
        driver.do(*line)
    for i in range(30):
        driver.do('sample', 'p', 7, 'worker', 0, 10**9 + i * 10 * MS, values,
                  ('0x2001p' if i % 5 < 3 else '0x3001p') + ',0x1001')
    driver.do('write', f'{folder}/{name}.html', '-')
    driver.close()
    return f'{folder}/{name}.html'


def need_browser():
    """Skips the test unless the browser starts here."""
    if not find_browser():
        raise Skip('no chromium-headless-shell or chromium here')
    try:
        Browser().close()
    except (OSError, RuntimeError) as error:
        raise Skip(f'{find_browser()} does not start here: {error}') from error


def walks(_variant, folder):
    """by playwright: searched, zoomed, a range selected, at three sizes, light and dark, by keys alone"""
    if not shutil.which('node'):
        raise Skip('no node here')
    need_browser()
    package = npm_package(*PLAYWRIGHT)
    pages = [write_page(folder, 'cpu', (('samples', 'count'), ('cpu', 'nanoseconds')), f'1,{10 * MS}'),
             write_page(folder, 'off', (('off-cpu', 'nanoseconds'),), f'{5 * MS}'),
             write_page(folder, 'heap', (('alloc_space', 'bytes'), ('inuse_space', 'bytes')), '900,60')]
    done = subprocess.run(['node', WALK, package, find_browser(), folder, *pages], timeout=LIMIT,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, 'HOME': folder})
    equal((done.returncode, done.stdout), (0, ''), done.stderr)
    pictures = [name for name in os.listdir(folder) if name.endswith('.png')]
    equal(len(pictures), len(pages) * 6)


walks.variants = ('native',)
case(walks)

if __name__ == '__main__':
    sys.exit(main())
