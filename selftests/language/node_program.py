# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a JavaScript program that keeps in a mapped word which of its functions runs.

    write(FOLDER): FOLDER/functions.js, which has the word of node_word.c.

Each function's name tells who calls it: n_0_2 is called by n_0, at one line only. A function that
n_0 has for itself, as a closure, is in_n_0. FOLDER/functions.txt has a line for each function: name,
number, line of the call, first and last line. At lines that end in "#" the number is about to change.
"""
import os

DEPTH, CHILDREN = 4, 3
WORK = [
    ['for (let j = 0; j < n; j++)', ' s += j * j % 7;'],
    ['const in_ME = (a, b) => {', ' return b * 3 % 11 - a * 3 % 11;', '};',
     's = Array.from({ length: n >> 2 }, (_, j) => j).sort(in_ME)[0];'],
    ['s = Array(n >> 1).fill(3).map(function in_ME(v) {', '  return v * v;', ' })',
     ' .reduce(function in_ME(a, b) { return a + b; }, 0);'],
    ['function* in_ME(k) {', ' while (k)', '  yield k--;', '}', 'for (const v of in_ME(n >> 2))',
     ' s += v;'],
    ['s = "xa".repeat(n >> 3).replace(/a/g, function in_ME() {', ' return "bb";', '}).length;'],
    ['for (let j = 0; j < n >> 4; j++)', ' try {', '  if (j % 3 == 0)', '   throw j;', '  s = j;',
     ' } catch (e) {', '  s = -e;', ' }'],
    ['const c = new Proxy({}, { get: function in_ME(t, k) {', ' return k.length + n;', '} });',
     'for (let j = 0; j < n >> 4; j++)', ' s += c.missing;'],
    ['s = eval("(function in_ME(a) {\\n let x = a;\\n while (a--) x ^= a;\\n return x; })")(n);'],
    ['const all = [];', 'for (let j = 0; j < n; j++)', ' all.push({ j, s: j % 5 ? j : "" + j });',
     's = all.length;'],
]
HEAD = ['const map = new Uint32Array(require(process.argv[2]));']


class Writer:
    def __init__(self):
        self.source = list(HEAD)
        self.table = {}

    def write(self, name, depth, kind):
        number = len(self.table) + 1
        self.table[name] = [number, 0, len(self.source) + 1, 0]
        children = [f'{name}_{j}' for j in range(CHILDREN)] if depth < DEPTH else []
        self.source += [f'function {name}(n) {{ //#', f' map[0] = {number}; //#', ' let s = 0; //#']
        self.source += [' ' + line.replace('ME', name) for line in WORK[(kind + depth) % len(WORK)]]
        for child in children:
            self.source.append(f' {child}(n); //#')
            self.table[child] = len(self.source)
            self.source += [f' map[0] = {number}; //#', ' for (let j = 0; j < n >> 2; j++)', '  s = j;']
        self.source += [' return s; //#', '} //#']
        self.table[name][3] = len(self.source)
        calls = {child: self.table.pop(child) for child in children}
        for j, child in enumerate(children):
            self.write(child, depth + 1, kind + j)
            self.table[child][1] = calls[child]


def write(folder):
    writer = Writer()
    writer.write('n', 0, 0)
    writer.source += ['while (true)', ' n(400); //#']
    with open(os.path.join(folder, 'functions.js'), 'w') as out:
        out.write('\n'.join(writer.source) + '\n')
    with open(os.path.join(folder, 'functions.txt'), 'w') as out:
        for name, row in writer.table.items():
            out.write(' '.join(map(str, [name] + row)) + '\n')
