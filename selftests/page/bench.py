#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures how fast the HTML page of a large profile is, in Chromium without a window: the time
from opening the file to the first picture, and of each action, in milliseconds, as medians of some
runs.

    selftests/page/bench.py [FRAMES [SAMPLES]]
"""

import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from browser import Browser  # noqa: E402

TOP = os.path.dirname(os.path.dirname(HERE))
DRIVER = os.path.join(TOP, os.environ.get('B', 'build'), 'selftests', 'export', 'driver-native')
FUNCTIONS = 8000
SAMPLES = 10 ** 6
TIMED = 1 << 18     # as many have a time of their own in a page
OPENINGS = 3
ROUNDS = 7
FIRST_BAR = 1000    # ms
BAR = 50
ACTIONS = {
    'zoom': 'zoomTo(Math.floor(forwardTree().nr / 3))',
    'reset the zoom': 'changeView({zoom: 0})',
    'search': 'changeView({query: "method_1.*9"}, false)',
    'end the search': 'changeView({query: ""}, false)',
    'callers': 'changeView({mode: "callers"})',
    'table': 'changeView({mode: "table"})',
    'sort the table': 'changeView({sort: view.sort === "self" ? "total" : "self"})',
    'tree': 'changeView({mode: "tree"})',
    'flame graph': 'changeView({mode: "flame"})',
    'colours': 'changeView({colour: view.colour === "kind" ? "module" : "kind"})',
    'threads': 'changeLevels({thread: view.thread === "each" ? "merged" : "each"})',
    'a range of time': 'changeRange(view.to ? 0 : 1e9, view.to ? 0 : 2e9)',
    'an arrow key': 'moveChoice("ArrowUp")',
}


def make_stacks(frames):
    """Returns stacks, as lists of numbers of functions, outermost first, with so many frames in
    all."""
    random.seed(5)
    stacks = [(i,) for i in range(16)]
    while len(stacks) < frames:
        below = random.choice(stacks[-2000:] if random.random() < 0.7 else stacks)
        if len(below) < 90:
            stacks.append((*below, random.randrange(FUNCTIONS)))
    return stacks


def write_page(folder, frames, samples):
    """Writes a page of so many samples with these stacks, of 16 threads, by the driver of
    selftests/export. A perf-map names the functions."""
    with open(f'{folder}/perf.map', 'w', encoding='ascii') as file:
        for i in range(FUNCTIONS):
            print(f'{(i + 1) << 12:x} 1000 project::module{i % 40}::Class{i % 300}<int, '
                  f'std::vector<long>>::method_{i}(int)', file=file)
    stacks = [(stack[0], ','.join(f'{(i + 1) << 12 | 1:#x}p' for i in reversed(stack)))
              for stack in make_stacks(frames)]
    with subprocess.Popen([DRIVER, '/nonexistent'], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.DEVNULL) as driver:
        out = driver.stdin
        out.write(f'type\tcpu\tnanoseconds\nkeep\t{TIMED}\nproc\tp\t7\n'
                  f'perfmap\tp\t{folder}/perf.map\n')
        for i in range(samples):
            thread, stack = stacks[i] if i < len(stacks) else random.choice(stacks)
            out.write(f'sample\tp\t{100 + thread}\tlto cgu.{thread}\t0\t{i * 10000}\t10000\t'
                      f'{stack}\n')
        out.write(f'write\t{folder}/page.html\t-\n')
        out.close()


def measure(browser, action):
    """Returns the median time until the effect of an action is drawn, with layout."""
    return browser.do('''(() => {
        const times = [];
        for (let i = 0; i < %d; i++) {
            // As if it had not been seen before.
            for (const what of ["hits", "legend", "missing", "sums"])
                delete made[what];
            const start = performance.now();
            %s;
            document.body.offsetHeight;
            times.push(performance.now() - start);
        }
        return times.sort((a, b) => a - b)[Math.floor(times.length / 2)]; })()'''
                      % (ROUNDS, action))


def main():
    frames = int(sys.argv[1]) if sys.argv[1:] else 50000
    samples = int(sys.argv[2]) if sys.argv[2:] else SAMPLES
    with tempfile.TemporaryDirectory(prefix='shstk-page-') as folder:
        write_page(folder, frames, samples)
        browser = Browser()
        browser.size(1280, 800)
        opened = []
        for _ in range(OPENINGS):
            browser.open(f'file://{folder}/page.html')
            opened.append(browser.do('performance.getEntriesByName("drawn")[0].startTime'))
        results = {'first picture': sorted(opened)[OPENINGS // 2]}
        nodes = browser.do('forwardTree().nr')
        browser.do('backwardTree().nr')     # made when the browser is idle
        for name, action in ACTIONS.items():
            results[name] = measure(browser, action)
        browser.close()
        size = os.path.getsize(f'{folder}/page.html') / 1e6
        print(f'{nodes} frames, {samples} samples, {size:.2f} MB')
    late = 0
    for name, time in results.items():
        bar = FIRST_BAR if name == 'first picture' else BAR
        late += time > bar
        print(f'{name:16} {time:8.1f} ms{"  above " + str(bar) if time > bar else ""}')
    return 3 if late else 0


if __name__ == '__main__':
    sys.exit(main())
