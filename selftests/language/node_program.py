# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a JavaScript program that keeps in a mapped word which of its functions runs.

    write(FOLDER): FOLDER/functions.js, which has the word of node_word.c.

Each function's name tells who calls it: n_0_2 is called by n_0, at one line only. A function that
n_0 has for itself, as a closure, is in_n_0. FOLDER/functions.txt has a line for each function: name,
number, line of the call, first and last line. At lines that end in "#" the number is about to change.
"""
import functools
import os
import sys

from harness import run
import written_program

NODE = os.environ.get('NODE', '/usr/bin/node')
KNOWN = '10.2.', '11.3.', '12.4.', '13.6.'    # versions of V8 that are known

WORK = [
    ['for (let j = 0; j < n; j++)', ' s += j * j % 7;'],
    ['const in_NAME = (a, b) => {', ' return b * 3 % 11 - a * 3 % 11;', '};',
     's = Array.from({ length: n >> 2 }, (_, j) => j).sort(in_NAME)[0];'],
    ['s = Array(n >> 1).fill(3).map(function in_NAME(v) {', '  return v * v;', ' })',
     ' .reduce(function in_NAME(a, b) { return a + b; }, 0);'],
    ['function* in_NAME(k) {', ' while (k)', '  yield k--;', '}', 'for (const v of in_NAME(n >> 2))',
     ' s += v;'],
    ['s = "xa".repeat(n >> 3).replace(/a/g, function in_NAME() {', ' return "bb";', '}).length;'],
    ['for (let j = 0; j < n >> 4; j++)', ' try {', '  if (j % 3 == 0)', '   throw j;', '  s = j;',
     ' } catch (e) {', '  s = -e;', ' }'],
    ['const c = new Proxy({}, { get: function in_NAME(t, k) {', ' return k.length + n;', '} });',
     'for (let j = 0; j < n >> 4; j++)', ' s += c.missing;'],
    ['s = eval("(function in_NAME(a) {\\n let x = a;\\n while (a--) x ^= a;\\n return x; })")(n);'],
    ['const all = [];', 'for (let j = 0; j < n; j++)', ' all.push({ j, s: j % 5 ? j : "" + j });',
     's = all.length;'],
]
HEAD = ['const map = new Uint32Array(require(process.argv[2]));']
BEGIN = ['function NAME(n) { //#', ' map[0] = NUMBER; //#', ' let s = 0; //#']
CALL = [' NAME(n); //#']
GO_ON = [' map[0] = NUMBER; //#', ' for (let j = 0; j < n >> 2; j++)', '  s = j;']
END = [' return s; //#', '} //#']
LOOP = ['while (true)', ' n(400); //#']


def write(folder):
    written_program.write(sys.modules[__name__], folder, 'js')


def command(folder, here):
    """What makes the program in @folder, and its command for a file with a word. @here has the module."""
    def make(word):
        write(folder)
        os.environ['WORD'] = word
        return *NODE.split(), os.path.join(folder, 'functions.js'), os.path.join(here, 'word.node')
    return make


@functools.lru_cache(maxsize=None)
def why_not():
    """Why nothing can be tested, or None."""
    if not os.path.exists(NODE.split()[0]):
        return NODE + ' is not installed'
    version = run(*NODE.split(), '-p', 'process.versions.v8').stdout.strip()
    return None if version.startswith(KNOWN) else f'V8 {version or "of this program"} is not known'
