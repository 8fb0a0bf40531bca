# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a PHP program that keeps in a mapped word which of its functions runs.

    write(FILE, FOLDER): FOLDER/functions.php, which has the first word of FILE mapped.

Each function's name tells who calls it: n_0_2 is called by n_0, at one line only. A closure, a
generator or a method of a class lies in the lines of the function that uses it. Lines that are run in a fiber end in
"// fiber", and those in a fiber that this one makes in "// inner", or "// shared" if it runs them, too.
FOLDER/functions.txt has a line for each function: name, number, line of the call, first and last
line. At lines that end in "#" the number is about to change.
"""
import sys

import written_program

WORK = [
    ['$s = 0;', 'for ($j = 0; $j < $n; $j++)', ' $s += $j * $j % 7;'],
    ['$v = range(1, $n);', 'usort($v, function ($a, $b) {', ' return $b * 3 % 11 - $a * 3 % 11;',
     '});'],
    ['$s = array_sum(array_map(fn($v) => $v * $v, range(1, $n)));'],
    ['$s = 0;', '$g = (function ($k) {', ' while ($k) {', '  yield $k--;', ' }', '})($n);',
     'foreach ($g as $v) $s += $v;'],
    ['$s = strlen(preg_replace_callback("/a/", fn($m) => "bb", str_repeat("xa", $n >> 2)));'],
    ['for ($j = 0; $j < $n >> 3; $j++)', ' try {', '  $s = intdiv($j, $j % 3);',
     ' } catch (DivisionByZeroError $e) {', '  $s = -1;', ' }'],
    ['$c = new class($n) {', ' public function __construct(public $n) {}',
     ' public function __get($name) { return $this->n + strlen($name); }', '};',
     'for ($j = 0; $j < $n >> 2; $j++) $s = $c->missing;'],
    ['$f = new Fiber(function ($k) { // fiber', ' for (; $k; $k--) { // fiber', '  $v = range(1, 16); // fiber',
     '  usort($v, fn($a, $b) => $b - $a); // fiber', '  Fiber::suspend($v[0]); // fiber', ' } // fiber',
     ' $i = new Fiber( // fiber', '  function ($k) { // shared', '   while ($k--) Fiber::suspend($k); // inner', '  }); // fiber',
     ' for ($i->start(8); !$i->isTerminated(); $i->resume()) $s = $k; // fiber', '}); // fiber',
     'for ($f->start($n >> 4); !$f->isTerminated(); $f->resume()) $s = $n;'],
    ['$s = eval("return array_reduce(range(1, $n), fn(\\$a, \\$b) => \\$a ^ \\$b);");'],
]
HEAD = '''<?php
$c = FFI::cdef('void *mmap(void *a, size_t n, int p, int f, int fd, long o); int open(const char *p, int f);');
$map = FFI::cast('unsigned long*', $c->mmap(null, 4096, 3, 1, $c->open($argv[1], 2), 0));'''.split('\n')
BEGIN = ['function NAME($n) { #', ' global $map; #', ' $map[0] = NUMBER; #']
CALL = [' NAME($n); #']
GO_ON = [' $map[0] = NUMBER; #', ' for ($j = 0; $j < $n >> 2; $j++)', '  $s = $j;']
END = [' return; #', '} #']
LOOP = ['while (true)', ' n(400); #']


def write(folder):
    written_program.write(sys.modules[__name__], folder, 'php')
