#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Very many stacks of programs in an interpreter are what these programs say that runs.

    languages_many.py SAMPLES [LANGUAGE...]

Takes SAMPLES stacks with functions of each of these languages, one after the other, however long that
lasts; without any named, of all that are installed and that languages.py judges. It prints a line for each,
and fails if one stack is wrong, or if there are fewer. The environment may choose the Python (PYTHON).
"""
import sys
import tempfile

import languages

FREQUENCY = '4999'
FOR_EVER = str(10 ** 9)     # seconds


def judge(name, samples):
    """Judges stacks of a language and prints what they are. Returns whether all are right."""
    with tempfile.TemporaryDirectory() as folder:
        stacks = languages.JUDGES[name](folder, ('-n', samples, '-f', FREQUENCY, '-w', FOR_EVER))
    if stacks.complaint():
        print(f'{name}: {stacks.complaint()}', flush=True)
        return False
    has_place, read, taken = stacks.numbers()
    counts = stacks.judge.counts
    print(f'{name}: {has_place} stacks, {counts["compared"]} compared with what runs, {counts["wrong"]} wrong; '
          f'{100 * has_place / max(read, 1):.1f} % of {read} that were read are placed, of {taken} samples', flush=True)
    for text in stacks.judge.wrong[:5]:
        print('   ', text[:400], flush=True)
    return not counts['wrong'] and has_place >= int(samples)


def main():
    names = sys.argv[2:] or [name for name in languages.JUDGES if languages.is_installed(name)]
    # Each one is judged, also behind one that fails.
    return 0 if all([judge(name, sys.argv[1]) for name in names]) else 1


if __name__ == '__main__':
    sys.exit(main())
