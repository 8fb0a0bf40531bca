# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a program, in any language, that keeps in a mapped word which of its functions runs.

Each function's name tells who calls it: n_0_2 is called by n_0, at one line only. functions.txt has a
line for each function: name, number, line of the call, first and last line. A language is an object
with these lists of lines, in which NAME is the function and NUMBER what it keeps in the word:

    HEAD    what comes first                 BEGIN   a function's first lines
    WORK    lists: what functions do         CALL    a call of NAME
    GO_ON   what follows a call              END     a function's last lines
    LOOP    what comes last, and calls n
"""
import os

DEPTH, CHILDREN = 4, 3


def lines_of(templates, name, number):
    return [line.replace('NAME', name).replace('NUMBER', str(number)) for line in templates]


class Writer:
    def __init__(self, language):
        self.language = language
        self.source = list(language.HEAD)
        self.table = {}

    def write(self, name, depth, kind):
        of = self.language
        number = len(self.table) + 1
        self.table[name] = [number, 0, len(self.source) + 1, 0]
        children = [f'{name}_{j}' for j in range(CHILDREN)] if depth < DEPTH else []
        self.source += lines_of(of.BEGIN, name, number)
        self.source += lines_of([' ' + line for line in of.WORK[(kind + depth) % len(of.WORK)]], name,
                                number)
        for child in children:
            self.source += lines_of(of.CALL, child, number)
            self.table[child] = len(self.source)
            self.source += lines_of(of.GO_ON, name, number)
        self.source += lines_of(of.END, name, number)
        self.table[name][3] = len(self.source)
        calls = {child: self.table.pop(child) for child in children}
        for j, child in enumerate(children):
            self.write(child, depth + 1, kind + j)
            self.table[child][1] = calls[child]


def write(language, folder, suffix):
    """Writes functions.SUFFIX and functions.txt to a folder."""
    writer = Writer(language)
    writer.write('n', 0, 0)
    writer.source += language.LOOP
    with open(os.path.join(folder, 'functions.' + suffix), 'w', encoding='utf-8') as out:
        out.write('\n'.join(writer.source) + '\n')
    with open(os.path.join(folder, 'functions.txt'), 'w', encoding='utf-8') as out:
        for name, row in writer.table.items():
            out.write(' '.join(map(str, [name] + row)) + '\n')
