# SPDX-License-Identifier: GPL-2.0-or-later
"""tasks.py WORD SECONDS - runs tasks of asyncio with names, and without, for SECONDS of CPU time.

The first word of the file WORD has the index in NAMES of the name of the task that runs; NONE: a task
without a name given to it; 0: none of these for sure. Each task works in a function that its coroutine
calls, in a coroutine that it waits for, in a generator, and in a coroutine that is driven by hand.
"""

import asyncio
import mmap
import sys
import time

NAMES = ['', 'first', 'Task-', 'Task-7a', 'Aufgabe für Zoë', '任務 third', 'long ' + 'x' * 30,
         'the name was changed', 'eager']
NONE = 100
FOR = .002  # seconds of work at once


def work():
    end = time.process_time() + FOR
    while time.process_time() < end:
        pass


def numbers():
    for _ in range(2):
        work()
        yield 1


def by_hand():
    """Drives a coroutine that is no task."""
    async def inner():
        work()
    try:
        inner().send(None)
    except StopIteration:
        pass


async def awaited(word, number):
    word[0] = number
    work()
    word[0] = 0
    await asyncio.sleep(0)
    word[0] = number
    sum(numbers())
    word[0] = 0


async def run(word, number, until):
    while time.process_time() < until:
        word[0] = number
        work()
        by_hand()
        word[0] = 0
        await awaited(word, number)


async def run_renamed(word, number, until):
    """Has another name at first."""
    asyncio.current_task().set_name('its first name')
    await asyncio.sleep(0)
    asyncio.current_task().set_name(NAMES[number])
    await run(word, number, until)


async def start_eagerly(word, number, until):
    """Begins tasks that run before the one that begins them goes on."""
    async def begin():
        word[0] = number
        work()
        word[0] = 0

    loop = asyncio.get_running_loop()
    while time.process_time() < until:
        await asyncio.Task(begin(), loop=loop, name=NAMES[number], eager_start=True)
        await asyncio.sleep(0)


async def main(word, seconds):
    until = time.process_time() + seconds
    tasks = [asyncio.create_task(run(word, number, until), name=NAMES[number])
             for number in range(1, 7)]
    tasks.append(asyncio.create_task(run_renamed(word, 7, until)))
    tasks.append(asyncio.create_task(run(word, NONE, until)))
    if sys.version_info >= (3, 12):
        tasks.append(asyncio.create_task(start_eagerly(word, 8, until), name='begins others'))
    for task in tasks:
        await task


if __name__ == '__main__':
    with open(sys.argv[1], 'r+b') as file:
        asyncio.run(main(memoryview(mmap.mmap(file.fileno(), 4096)).cast('Q'),
                         float(sys.argv[2])))
