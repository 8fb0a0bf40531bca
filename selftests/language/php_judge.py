# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges the stacks that truth.c printed of php_program.py."""

import re

from judge import OwnerJudge


class PhpJudge(OwnerJudge):
    file_name = 'functions.php'

    def frames(self, words):
        """As of Python: what is in a function, such as a closure, has the function's name before it."""
        for word in words:
            name, _, place = word.partition('@')
            path, _, line = place.rpartition(':')
            made = re.match(r'(.*)\((\d+)\) : eval\(\)', path)
            if not made and path != self.file:
                continue
            line = int(made.group(2) if made else line)
            if name in self.number:
                yield name, line
            elif line in self.owner:
                yield f'{self.owner[line]}.{name}', line

    def mark_of(self, name, line):
        """What the line of a frame says of the stack that it is in."""
        mark = self.lines[line].rpartition('// ')[2]
        return mark if '.' in name and mark in ('fiber', 'inner', 'shared') else ''

    def find_fault(self, word, frames):
        """A fiber has a stack of its own, without the function that made it."""
        marks = {self.mark_of(name, line) for name, line in frames} - {'shared'}
        if len(marks) > 1:
            return 'a stack in a stack'
        if marks != {''}:
            return self.find_fault_alone(word, frames)
        return super().find_fault(word, frames)
