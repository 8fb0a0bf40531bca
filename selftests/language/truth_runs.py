# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of truth.c, which prints the stacks of a program beside what the program itself says."""

import functools
import os

from harness import HERE, TMP, Skip, check, run, test

SAMPLES = os.environ.get('SAMPLES', '1500')     # that are taken
SKIP = 4        # exit status of truth


def record(*args, **who):
    """Runs truth with these arguments, as that user: how it ended."""
    ended = run(os.path.join(HERE, 'truth'), *args, timeout=None, **who)
    print('#', ended.stderr.strip().replace('\n', '\n# ') or 'no complaints')
    return ended


def lines_of(ended):
    """The lines that truth printed. Skips the test where this machine permits no samples."""
    if ended.returncode == SKIP:
        raise Skip(ended.stdout.strip())
    lines = ended.stdout.splitlines()
    check(ended.returncode == 0 and lines, ' '.join(['no samples are taken:', *lines[-1:]]))
    return lines


class Judged:
    """A program that says which of its functions runs, and the judge of its stacks.

    make_command() makes the program in TMP and returns its command, to which the file is given in
    which the program keeps its word. kind is the class of the judge.
    """

    def __init__(self, make_command, kind):
        self.make_command, self.kind = make_command, kind

    def record(self, word):
        """Records the program, whose word is in that file: how truth ended."""
        return record('-n', SAMPLES, '-f', '1999', word, *self.make_command(word))

    @functools.cached_property
    def recorded(self):
        """The same, once for all tests."""
        word = os.path.join(TMP, 'word')
        with open(word, 'wb') as file:
            file.truncate(4096)
        return self.record(word)

    @functools.cached_property
    def judged(self):
        """Judges the stacks, once for all tests: the judge, and the last line of truth."""
        *stacks, last = lines_of(self.recorded)
        ret = self.kind(TMP)
        for line in stacks:
            ret.take(line)
        for key, value in sorted(ret.counts.items()):
            print(f'# {key}: {value}')
        print('#', last)
        return ret, last


def add_tests(make_command, kind, judged=Judged):
    """Adds the tests of a program; see Judged. Returns what records it."""
    run_of = judged(make_command, kind)

    @test
    def shown():
        """functions of the program are in stacks"""
        check(run_of.judged[0].counts['stacks'] > 0, 'none is')

    @test
    def compared():
        """some are compared with what the program says"""
        check(run_of.judged[0].counts['compared'] > 0, 'none is')

    @test
    def right():
        """none has another function, caller or line than the program"""
        wrong = run_of.judged[0].wrong
        check(not wrong, '\n'.join(text[:400] for text in wrong[:5]))

    @test
    def placed():
        """most frames that are read have their place"""
        has_place, read = (int(w) for w in run_of.judged[1].replace(' of', '').split()[1:3])
        check(has_place > read / 2, f'{has_place} of {read}')

    return run_of
