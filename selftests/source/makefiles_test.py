#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What make finds by patterns is sorted by make. Otherwise the locale says in which order it comes, and
what is linked of it differs. Prints KTAP.
"""

import glob
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TOP, check, equal, main, test  # noqa: E402

PATTERN = re.compile(r'\$+\(wildcard [^()]*\*')
SORT = re.compile(r'\$+\(sort $')


def unsorted_lines(text):
    """The lines of a makefile that do not sort what they find by a pattern."""
    return [line for line in text.replace('\\\n', '').splitlines()
            if not line.startswith('#') and
            any(not SORT.search(line[:found.start()]) for found in PATTERN.finditer(line))]


@test
def found():
    """what is not sorted is found, also where it goes on in another line"""
    equal(unsorted_lines('A := $(sort $(wildcard a/*.c)) $(wildcard a/b)\n'
                         '# $(wildcard *)\n'
                         'define x\n$$(sort $$(wildcard *.h))\nendef\n'), [], 'sorted')
    equal(unsorted_lines('A := $(wildcard a/*.c)\nB := $(filter-out %.h,$(wildcard \\\n\tb c/*))\n'
                         'C := $(sort $(wildcard *)) $(wildcard */*)\n'),
          ['A := $(wildcard a/*.c)', 'B := $(filter-out %.h,$(wildcard \tb c/*))',
           'C := $(sort $(wildcard *)) $(wildcard */*)'], 'not sorted')


@test
def what_is_built():
    """the makefiles of what is installed sort what they find"""
    paths = [os.path.join(TOP, 'Makefile')]
    for folder in 'Documentation', 'bpf', 'kmod', 'libshstk', 'packaging', 'tools':
        paths += sorted(glob.glob(os.path.join(TOP, folder, '**', '*.mk'), recursive=True))
    check(len(paths) > 12, paths)
    for path in paths:
        with open(path, encoding='utf-8') as file:
            equal(unsorted_lines(file.read()), [], path)


sys.exit(main())
