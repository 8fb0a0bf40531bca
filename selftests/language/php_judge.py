# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges the stacks that truth.c printed of php_program.py."""

import re

from judge import Judge


class PhpJudge(Judge):
    file_name = 'functions.php'

    def __init__(self, folder):
        self.owner = {}
        super().__init__(folder)

    def take_lines(self, name, lines):
        for line in range(lines[0], lines[1] + 1):
            self.owner[line] = name

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
