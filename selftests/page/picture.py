#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A picture of a page (`shstk record -o x.html`) as Chromium draws it at a size.

    selftests/page/picture.py PAGE.html[#VIEW] WIDTHxHEIGHT OUT.png [--dark] [--no-machine]

With --no-machine it does not show on which machine and when the profile was recorded.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    path, _, view = sys.argv[1].partition('#')
    browser = Browser()
    try:
        browser.size(*map(int, sys.argv[2].split('x')))
        browser.dark('--dark' in sys.argv)
        browser.open(f'file://{os.path.abspath(path)}#{view}')
        if '--no-machine' in sys.argv:
            browser.do('profile.about.comments = profile.about.comments.filter('
                       'line => !line.startsWith("machine: ")); profile.about.start = 0; showHeader();'
                       'drawAll()')
        browser.screenshot(sys.argv[3])
    finally:
        browser.close()


if __name__ == '__main__':
    main()
