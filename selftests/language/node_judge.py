# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges the stacks that truth.c printed of node_program.py."""

from judge import RUNS, Judge

CODE = '(machine code)'     # the function that follows, or one that is inlined in it


class NodeJudge(Judge):
    file_name = 'functions.js'
    lacks_lines = True      # in code of the first compiler

    def __init__(self, folder):
        super().__init__(folder)
        self.name = {number: name for name, number in self.number.items()}

    def frames(self, words):
        """As of Python: in_n_0 is a function in n_0."""
        for word in words:
            name, _, place = word.partition('@')
            line = int(place.rpartition(':')[2] or 0)
            if name in self.number:
                self.counts['lines' if line else 'no line'] += 1
                yield name, line
            elif name.startswith('in_'):
                yield name[3:] + '.in', line
            elif name == CODE:
                yield name, line

    def find_fault(self, word, frames):
        # The code of what is outside of the program.
        while frames and frames[-1][0] == CODE:
            frames.pop()
        if CODE in (name for name, _ in frames):
            return self.find_fault_around_code(word, frames)
        fault = super().find_fault(word, frames)
        if word and frames and '.' not in frames[0][0] and self.may_change(frames[0][1], fault):
            return self.find_near_fault(word, frames[0][0])
        return fault

    def may_change(self, line, fault):
        """Whether the number may be about to change without the line telling so: it is not known, or V8 has
        moved an instruction of the line behind over the store of the number."""
        if not line:
            return fault in (None, RUNS)
        return fault == RUNS and self.lines[self.executed_before(line)].endswith('#')

    def executed_before(self, line):
        """The line that is executed before another one: lines of a generator between both are not."""
        before = line - 1
        if self.lines[before] == ' }':
            while not self.lines[before].startswith(' function* in_'):
                before -= 1
            before -= 1
        return before

    def find_near_fault(self, word, name):
        """What is wrong with the innermost function, where the line does not tell whether the word is
        about to change: it may be that of who calls the function, or of whom it has called."""
        self.counts['without a line'] += 1
        runs = self.name[word]
        near = name, name.rpartition('_')[0]
        return None if runs in near or runs.rpartition('_')[0] == name else RUNS

    def find_fault_around_code(self, word, frames):
        """What is wrong with a stack in which it is not known which of some functions runs: what is
        called there is called by a function below the one that is known."""
        inner, outer = None, 'n'
        for name, line in frames[::-1]:
            node = name.partition('.')[0]
            if name == CODE:
                inner = None
                continue
            if (node + '_').startswith(outer + '_') is False:
                return 'a caller'
            if inner and '.' not in name and name.rpartition('_')[0] != inner[0]:
                return 'a caller'
            if inner and '.' not in name and inner[1] not in (0, self.call[name]):
                return 'the line of a call'
            inner, outer = (name, line), node
        if not word or frames[0][0] != CODE:
            return None
        self.counts['in machine code'] += 1
        runs = self.name[word]
        # A function that has just begun did not write its number yet.
        return None if (runs + '_').startswith(outer + '_') or runs == outer.rpartition('_')[0] else \
            RUNS
