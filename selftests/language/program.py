# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that keeps in a mapped word which of its functions runs.

    program.py FILE FOLDER SECONDS

It writes its functions into FOLDER/functions.py and executes them. Each function's name tells who
calls it: n_0_2 is called by n_0, at one line only. FOLDER/functions.txt has a line for each:
name, number, line of the call. At lines that end in "#" the number is about to change.
"""
import functools
import mmap
import os
import re
import sys
import time

FILE, FOLDER, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
DEPTH, CHILDREN = 4, 3
WORK = [
    ['s = 0', 'for j in range(n): s += j * j % 7'],
    ['s = sum(sorted(range(n), key=lambda v: -v * 3 % 11))'],
    ['s = functools.reduce(lambda a, b: a ^ b, range(n))'],
    ['s = sum(q * q for q in range(n))'],
    ['s = len(re.sub("a", lambda m: "bb", "xa" * (n // 4)))'],
    ['s = 0', 'for j in range(n // 8):', ' try: s += j if j % 3 else {}[j]',
     ' except KeyError: s -= 1', 's += len([z for z in range(n)])'],
    ['class C:', ' def __init__(self): self.v = n', ' def __lt__(self, o): return self.v < o.v',
     's = len(sorted([C() for j in range(n // 16)]))'],
    ['def g(k):', ' if k: yield from g(k - 1)', ' yield k', 's = sum(v for v in g(n // 16))'],
]

source = []
table = {}


def write(name, depth, kind):
    table[name] = [len(table) + 1, 0]
    number = table[name][0]
    children = [f'{name}_{j}' for j in range(CHILDREN)] if depth < DEPTH else []
    source.extend([f'def {name}(n): #', f' cur[0] = {number} #'])
    source.extend(' ' + line for line in WORK[(kind + depth) % len(WORK)])
    calls = []
    for child in children:
        source.append(f' {child}(n) #')
        calls.append((child, len(source)))
        source.extend([f' cur[0] = {number} #', ' for j in range(n // 4): s += j'])
    source.append(' return s #')
    for j, (child, line) in enumerate(calls):
        write(child, depth + 1, kind + j)
        table[child][1] = line


write('n', 0, 0)
path = os.path.join(FOLDER, 'functions.py')
with open(path, 'w') as out:
    out.write('\n'.join(source) + '\n')
with open(os.path.join(FOLDER, 'functions.txt'), 'w') as out:
    for name, (number, line) in table.items():
        out.write(f'{name} {number} {line}\n')

fd = os.open(FILE, os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 4096)
cur = memoryview(mmap.mmap(fd, 4096)).cast('Q')
exec(compile('\n'.join(source) + '\n', path, 'exec'))
end = time.process_time() + SECONDS
while time.process_time() < end:
    n(400)
