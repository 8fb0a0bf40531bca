# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges the stacks that truth.c printed of ruby_program.py."""

from judge import OwnerJudge


class RubyJudge(OwnerJudge):
    file_name = 'functions.rb'

    def frames(self, words):
        """As of Python: what is in a function, such as a block, has the function's name before it. Code
        of eval() has the function's own name, and the function follows."""
        inner = None
        for word in words:
            name, _, place = word.partition('@')
            path, _, line = place.rpartition(':')
            if path != self.file or name.endswith(')'):
                continue
            line = int(line)
            if name in self.number:
                if inner:
                    yield inner[0] + ('.eval' if inner[0] == name else ''), inner[1]
                inner = name, line
                continue
            if inner:
                yield inner
            inner = None
            yield f'{self.owner.get(line)}.{name}', line
        if inner:
            yield inner

    def find_fault(self, word, frames):
        """A fiber or a thread has a stack of its own, without the function that made it."""
        if all('.' in name for name, _ in frames):
            self.counts['of fibers and threads'] += 1
            owners = {name.partition('.')[0] for name, _ in frames}
            if len(owners) != 1 or not owners <= set(self.number):
                return 'a function in a function'
            return None if not word or self.number[owners.pop()] == word else 'the function that runs'
        return super().find_fault(word, frames)
