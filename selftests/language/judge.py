# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges the stacks that truth.c printed of program.py or php_program.py: what is wrong with each."""

import collections
import os

RUNS = 'the function that runs'     # a fault
MOST_SHOWN = 100    # wrong stacks that are kept


class Judge:
    file_name = 'functions.py'
    whole = True    # stacks have the outermost function
    lacks_lines = False     # a line may be 0, as it is not known

    def __init__(self, folder):
        self.file = os.path.join(folder, self.file_name)
        with open(self.file) as source:
            self.lines = [''] + source.read().split('\n')
        self.number, self.call = {}, {}
        with open(os.path.join(folder, 'functions.txt')) as table:
            for name, number, line, *lines in (row.split() for row in table):
                self.number[name] = int(number)
                self.call[name] = int(line)
                self.take_lines(name, [int(word) for word in lines])
        self.counts = collections.Counter()
        self.wrong = []     # the first ones

    def take_lines(self, name, lines):
        """Takes what else the table says of a function."""

    def frames(self, words):
        """(name, line) of the functions of the program, the innermost first."""
        for word in words:
            name, _, place = word.partition('@')
            path, _, line = place.rpartition(':')
            # The module itself, which makes the functions, is none of them.
            if path == self.file and not name.startswith('<'):
                yield name, int(line)

    def find_fault(self, word, frames):
        """What is wrong with a stack, or None."""
        nodes = [(name, line) for name, line in frames if '.' not in name]
        inner = [name for name, line in frames if '.' in name]
        if not nodes or (self.whole and nodes[-1][0] != 'n'):
            return 'the outermost function'
        if frames[:len(inner)] != [f for f in frames if '.' in f[0]]:
            return 'the order'
        if any(not name.startswith(nodes[0][0] + '.') for name in inner):
            return 'a function in a function'
        for (callee, _), (caller, line) in zip(nodes, nodes[1:]):
            if callee.rpartition('_')[0] != caller:
                return 'a caller'
            if line != self.call[callee] and (line or not self.lacks_lines):
                return 'the line of a call'
        name, line = nodes[0]
        if not 0 <= line < len(self.lines):
            return 'the line of the innermost function'
        if not word:
            # The program has not written it yet, or the recorder did not know yet where it is.
            self.counts['without a word'] += 1
            return None
        # Some instructions are of no line.
        if not inner and (not line or self.lines[line].endswith('#')):
            self.counts['at a change'] += 1
            return None
        self.counts['compared'] += 1
        return None if self.number[name] == word else RUNS

    def note(self, fault, text):
        """Takes down what is wrong, and the stack."""
        self.counts['wrong'] += 1
        self.counts['wrong: ' + fault] += 1
        if len(self.wrong) < MOST_SHOWN:
            self.wrong.append(text)

    def take(self, text):
        """Takes a line of truth.c."""
        words = text.split('\t')
        frames = list(self.frames(words[1:]))
        if not frames:
            self.counts['outside'] += 1
            return
        self.counts['stacks'] += 1
        fault = self.find_fault(int(words[0]), frames)
        if fault:
            self.note(fault, fault + ': ' + text)


class PartJudge(Judge):
    """The frames of a greenlet end where it began, as those of sys._getframe() do."""
    whole = False


class OwnerJudge(Judge):
    """Also knows which function each line is of."""

    def __init__(self, folder):
        self.owner = {}
        super().__init__(folder)

    def take_lines(self, name, lines):
        for line in range(lines[0], lines[1] + 1):
            self.owner[line] = name

    def find_fault_alone(self, word, frames):
        """What is wrong with a stack of nothing but what lies in one function; None: nothing."""
        self.counts['of fibers and threads'] += 1
        owners = {name.partition('.')[0] for name, _ in frames}
        if len(owners) != 1 or not owners <= set(self.number):
            return 'a function in a function'
        return None if not word or self.number[owners.pop()] == word else RUNS
