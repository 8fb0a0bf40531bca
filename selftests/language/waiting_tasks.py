# SPDX-License-Identifier: GPL-2.0-or-later
"""waiting_tasks.py FILE - tasks of asyncio that wait for each other in many ways, and say so.

Once all of them wait, it writes into FILE in JSON what Python itself says of each (3.14), by name: where its
coroutines wait, the innermost first, and which tasks wait for it. Then it waits until it is killed.
"""

import asyncio
import json
import os
import sys
import threading
import types

DEPTH = 300     # coroutines of a task
PASSES = 50     # of a loop: in each of them every task that can go on does so


def when_all_wait(passes, call, *args):
    """Calls a function in the running loop once all tasks wait, however long that takes."""
    if passes:
        asyncio.get_running_loop().call_soon(when_all_wait, passes - 1, call, *args)
    else:
        call(*args)


async def leaf():
    await asyncio.sleep(1e6)


async def deep(n):
    await (deep(n - 1) if n else leaf())


async def group(n):
    async with asyncio.TaskGroup() as g:
        for i in range(n):
            g.create_task(leaf(), name=f'of group {n}: {i}')


async def gathered():
    await asyncio.gather(leaf(), asyncio.gather(leaf(), group(2)), group(12))


async def wait_for_it(future):
    await future


async def shielded(task):
    await asyncio.shield(task)


async def with_timeout(task):
    async with asyncio.timeout(1e6):
        await asyncio.wait_for(wait_for_it(task), 1e6)


@types.coroutine
def by_generator():
    yield from asyncio.sleep(1e6).__await__()


async def old_style():
    await by_generator()


async def numbers():
    yield 1
    await asyncio.sleep(1e6)


async def generator():
    async for _ in numbers():
        pass


async def until_set(event):
    async with asyncio.Lock():
        await event.wait()


class Own(asyncio.Task):
    pass


async def in_circle(others, number):
    await others[number]


def in_other_thread(begun):
    def note():
        found.append(asyncio.all_tasks())
        begun.set()

    async def run():
        asyncio.create_task(group(3), name='in another thread')
        when_all_wait(PASSES, note)
        await asyncio.sleep(1e6)
    asyncio.run(run())


found = []      # tasks of other threads


def place_of(frame):
    return [frame.f_code.co_qualname, str(frame.f_lineno)]


def frames_of(task):
    if task.get_name().startswith('circle'):    # which makes Python go on without an end
        return [place_of(task.get_coro().cr_frame)]
    return [place_of(entry.frame) for entry in asyncio.capture_call_graph(task).call_stack]


def names_of(future):
    """The tasks that wait, also by futures that are no tasks."""
    ret = set()
    for by in future._asyncio_awaited_by or ():
        ret |= {by.get_name()} if isinstance(by, asyncio.Task) else names_of(by)
    return ret


def tell(path):
    told = {task.get_name(): (frames_of(task), sorted(names_of(task)))
            for task in asyncio.all_tasks().union(*found)}
    with open(path + '.new', 'w', encoding='utf-8') as file:
        json.dump(told, file)
    os.rename(path + '.new', path)


async def main(path):
    loop = asyncio.get_running_loop()
    begun = threading.Event()
    threading.Thread(target=in_other_thread, args=(begun,), daemon=True).start()
    begun.wait()
    first = asyncio.create_task(leaf(), name='leaf of three')
    tasks = [first]
    tasks += [asyncio.create_task(wait_for_it(first), name=f'wait {i} for it') for i in range(3)]
    tasks += [asyncio.create_task(coroutine, name=name) for coroutine, name in (
        (gathered(), 'Zoë gathers'), (deep(DEPTH), '任務 deep'), (shielded(first), 'shields'),
        (with_timeout(first), 'with a timeout'), (old_style(), 'x' * 100), (generator(), 'generator'),
        (until_set(asyncio.Event()), 'line\nbreak'))]
    tasks += [Own(leaf(), loop=loop, name='own kind'), asyncio.create_task(leaf())]
    tasks += [asyncio.Task(group(1), loop=loop, name='eager', eager_start=True)]
    circle = []
    circle += [asyncio.create_task(in_circle(circle, 1 - i), name=f'circle {i}') for i in range(2)]
    when_all_wait(PASSES, tell, path)
    await asyncio.sleep(1e6)


if __name__ == '__main__':
    asyncio.run(main(sys.argv[1]), debug=False)
