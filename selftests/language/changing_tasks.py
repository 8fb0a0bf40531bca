# SPDX-License-Identifier: GPL-2.0-or-later
"""changing_tasks.py THREADS - makes and ends tasks of asyncio all the time, in several threads.

A task's name tells where it may wait and who may wait for it: "leaf N.I" is in a group of "group N", or
gathered by "gather N". Prints a line once each thread has KEPT tasks, which do not end.
"""

import asyncio
import itertools
import random
import sys
import threading

KEPT = 6        # tasks of each thread that do not end
numbers = itertools.count()


async def inner():
    await asyncio.sleep(random.choice((0, 0, .001)))


async def leaf():
    await inner()
    await inner()


async def group(n):
    async with asyncio.TaskGroup() as g:
        for i in range(random.randrange(1, 12)):
            g.create_task(leaf(), name=f'leaf {n}.{i}')


async def gather(n):
    await asyncio.gather(*(asyncio.create_task(leaf(), name=f'leaf {n}.{i}')
                           for i in range(random.randrange(1, 12))))


async def await_in_turn(n):
    """Each of the tasks is awaited by several others, so sets of these change."""
    first = asyncio.create_task(leaf(), name=f'leaf {n}.0')
    others = [asyncio.create_task(wait_for_it(first), name=f'waiter {n}.{i}') for i in range(12)]
    for task in others:
        await task


async def wait_for_it(task):
    await task


async def again():
    while True:
        n = next(numbers)
        kind = random.choice((group, gather, await_in_turn))
        await asyncio.create_task(kind(n), name=f'{kind.__name__} {n}')


async def main(begun):
    tasks = asyncio.gather(*(again() for _ in range(KEPT - 1)))
    begun.wait()
    await tasks


if __name__ == '__main__':
    all_begun = threading.Barrier(int(sys.argv[1]) + 1)
    for _ in range(int(sys.argv[1])):
        threading.Thread(target=asyncio.run, args=(main(all_begun),), daemon=True).start()
    all_begun.wait()
    print('running', flush=True)
    threading.Event().wait()
