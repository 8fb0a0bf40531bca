# SPDX-License-Identifier: GPL-2.0-or-later
"""Work for `make demo` to profile: python3's own library, busy on one CPU."""

import ast
import difflib
import fractions
import glob
import json
import os
import re
import sys
import time
import zlib

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


def sources():
    """Yields the texts of the standard library's modules."""
    folder = os.path.dirname(os.__file__)
    for path in sorted(glob.glob(folder + '/*.py')):
        with open(path, encoding='utf-8', errors='replace') as file:
            yield file.read()


def parse(text):
    """Parses and compiles a module."""
    compile(ast.parse(text), 'module', 'exec')


def words(text):
    """Counts words by a regular expression, sorts them, and converts them to JSON and back."""
    count = {}
    for word in re.findall(r'[A-Za-z_][A-Za-z_0-9]*', text):
        count[word] = count.get(word, 0) + 1
    return json.loads(json.dumps(sorted(count.items())))


def compare(one, other):
    """Compares the first lines of two modules."""
    matcher = difflib.SequenceMatcher(None, one.split('\n')[:60],
                                      other.split('\n')[:60])
    return matcher.ratio()


def harmonic(terms):
    """Sums fractions exactly."""
    return sum((fractions.Fraction(1, n) for n in range(1, terms)),
               fractions.Fraction(0))


def main():
    """Repeats all kinds of work until the time is used up."""
    end = time.process_time() + SECONDS
    texts = list(sources())
    last = texts[-1]
    while True:
        for text in texts:
            parse(text)
            words(text)
            compare(text, last)
            zlib.compress(text.encode(), 9)
            harmonic(200)
            last = text
            if time.process_time() > end:
                return


main()
