# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges the stacks that truth.c printed of ruby_program.py."""

import os

from judge import OwnerJudge


# Enumerator#next makes a Proc by a method of RubyVM::FrozenCore, of which TracePoint does not tell.
UNTOLD = {('proc', 'next'): ('next',)}


def parts_of(stack):
    """(Ruby function inside, functions in C, Ruby function outside, its line) of each place in a stack
    where functions in C may lie, from (label, file:line, whether it is in C)."""
    inner, between = '', []
    for label, place, is_c in stack + [('', ':0', False)]:
        if is_c:
            between.append(label)
            continue
        yield inner, tuple(between), label, int(place.rpartition(':')[2])
        inner, between = label, []


def is_among(some, all_of_them):
    """Whether these are among those, in the same order."""
    rest = iter(all_of_them)
    return all(name in rest for name in some)


class Calls:
    """What Ruby itself told of functions in C (ruby_program.py)."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            stacks = [[word.rpartition('@') for word in line.rstrip('\n').split('\t')] for line in file]
        self.names = {label for stack in stacks for label, _, place in stack if not place}
        self.told = {}
        for stack in stacks:
            for inner, between, outer, line in parts_of(self.marked(stack)):
                self.told.setdefault((inner, outer, line), set()).add(between)

    def marked(self, stack):
        """The same with whether it is in C: then Ruby says that it is where its caller is."""
        places = [place for _, _, place in stack] + ['']
        return [(label, place, not place or (label in self.names and places[i + 1] in ('', place)))
                for i, (label, _, place) in enumerate(stack)]

    def count_missing(self, part):
        """How many functions in C are missing at a place, None: other ones are there."""
        inner, between, outer, line = part
        between = UNTOLD.get(between, between)
        told = self.told.get((inner, outer, line), ())
        return min((len(of) - len(between) for of in told if is_among(between, of)), default=None)


class RubyJudge(OwnerJudge):
    file_name = 'functions.rb'
    calls = None

    def take(self, text):
        """Also compares functions in C with what Ruby told of all calls."""
        super().take(text)
        if text.startswith('0\t'):
            return
        if not self.calls:
            self.calls = Calls(os.path.join(os.path.dirname(self.file), 'calls.txt'))
        stack = []
        for word in text.split('\t')[1:]:
            name, at, place = word.rpartition('@')
            if at:
                stack.append((name.removesuffix(' (functions.rb)'), place, place == ':0'))
        for part in parts_of(stack):
            missing = self.calls.count_missing(part)
            self.counts['functions in C'] += len(part[1])
            # Inside of the innermost Ruby function there need not be one.
            if part[0] and missing:
                self.counts['functions in C that are not shown'] += missing
            if part[1] and missing is None:
                self.note('a function in C', f'a function in C: {part}: {text}')

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
            return self.find_fault_alone(word, frames)
        return super().find_fault(word, frames)
