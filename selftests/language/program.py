# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that keeps in a mapped word which of its functions runs.

    program.py FILE FOLDER SECONDS [WAY]

It writes its functions into FOLDER/functions.py and executes them. Each function's name tells who
calls it: n_0_2 is called by n_0, at one line only. FOLDER/functions.txt has a line for each:
name, number, line of the call. At lines that end in "#" the number is about to change.

WAY tells what the functions are, and who runs them:

    plain           functions that call each other
    tasks           coroutines, in two tasks of asyncio that take turns
    generators      generators that yield from each other
    greenlets       plain ones, each in a greenlet of its own
    subinterpreter  plain ones, in another interpreter of the process
    threads         plain ones, in four threads, of which each has a word of its own
    forks           plain ones, in children that are forked one after the other, each with its own word

The last two need publish_word.c, which tells whose word it is.
"""
import functools
import mmap
import os
import re
import sys
import time

FILE, FOLDER, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
WAY = (sys.argv[4:] or ['plain'])[0]
# How a function begins, where it lets others run, and how it is called.
BEGIN, PAUSE, CALL = {
    'tasks': ('async def', ' await asyncio.sleep(0) #', 'await {}(n)'),
    'generators': ('def', ' yield #', 'yield from {}(n)'),
    'greenlets': ('def', None, 'greenlet.greenlet({}).switch(n)'),
}.get(WAY, ('def', None, '{}(n)'))
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
    source.extend([f'{BEGIN} {name}(n): #', f' cur[0] = {number} #'])
    if PAUSE:
        source.extend([PAUSE, f' cur[0] = {number} #'])
    source.extend(' ' + line for line in WORK[(kind + depth) % len(WORK)])
    calls = []
    for child in children:
        source.append(f' {CALL.format(child)} #')
        calls.append((child, len(source)))
        source.extend([f' cur[0] = {number} #', ' for j in range(n // 4): s += j'])
    source.append(' return #' if WAY == 'generators' else ' return s #')
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
made = compile('\n'.join(source) + '\n', path, 'exec')


def run_plain():
    while time.process_time() < end:
        n(400)


def run_tasks():
    async def repeat():
        while time.process_time() < end:
            await n(400)

    async def both():
        await asyncio.gather(repeat(), repeat())

    asyncio.run(both())


def run_generators():
    while time.process_time() < end:
        for _ in n(400):
            pass


def run_subinterpreter():
    # It has this very mapping of the file: one word is read at one address.
    address = ctypes.addressof(ctypes.c_char.from_buffer(cur))
    interpreters.run_string(interpreters.create(), f'''
import ctypes, functools, re, time
cur = (ctypes.c_uint64 * 1).from_address({address})
with open({path!r}) as file:
    exec(compile(file.read(), {path!r}, 'exec'))
end = time.process_time() + {SECONDS}
while time.process_time() < end:
    n(400)
''')


def own_functions():
    """The outermost function, and all others, with a word of the calling thread's own."""
    word = mmap.mmap(-1, 4096)
    ctypes.CDLL(None).publish_word(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(word))))
    own = {'functools': functools, 're': re, 'cur': memoryview(word).cast('Q')}
    exec(made, own)
    return own['n']


def run_threads():
    def repeat():
        outermost = own_functions()
        outermost(400)
        while time.process_time() < end:
            outermost(400)

    threads = [threading.Thread(target=repeat) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_forks():
    for _ in range(8):
        child = os.fork()
        if not child:
            outermost = own_functions()
            stop = time.process_time() + SECONDS / 8
            while time.process_time() < stop:
                outermost(400)
            os._exit(0)
        os.waitpid(child, 0)


if WAY == 'tasks':
    import asyncio
elif WAY in ('threads', 'forks'):
    import ctypes
    import threading
elif WAY == 'greenlets':
    import greenlet
elif WAY == 'subinterpreter':
    import ctypes
    if sys.version_info < (3, 13):
        import _xxsubinterpreters as interpreters
    else:
        import _interpreters as interpreters
exec(made)
# On a slow machine, all before this takes seconds.
end = time.process_time() + SECONDS
{'tasks': run_tasks, 'generators': run_generators,
 'subinterpreter': run_subinterpreter,
 'threads': run_threads, 'forks': run_forks}.get(WAY, run_plain)()
