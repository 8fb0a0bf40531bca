#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The folders of the sources stand on one another in one order: none includes a header of a
folder that includes one of its own, directly or by others. Prints KTAP.

A folder may share headers with the folders inside it, in both directions: they are parts of one
subject. So a header at the top of tools/ is for all of tools/.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import TMP, TOP, check, equal, main, test  # noqa: E402

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.M)
SOURCE = ('.c', '.h', '.cc', '.S')


def sources(top, tree):
    """Yields the paths of all sources below a folder."""
    for folder, _, names in os.walk(os.path.join(top, tree)):
        for name in names:
            if name.endswith(SOURCE):
                yield os.path.relpath(os.path.join(folder, name), top)


def holds(outer, inner):
    """Whether a folder is the other one or contains it."""
    return inner == outer or inner.startswith(outer + os.sep)


def uses(top, tree):
    """For each folder: the folders whose headers it includes, each with a line that says where."""
    used = {}
    for path in sorted(sources(top, tree)):
        folder = os.path.dirname(path)
        with open(os.path.join(top, path), encoding='utf-8') as file:
            names = INCLUDE.findall(file.read())
        for name in names:
            beside = os.path.normpath(os.path.join(folder, name))
            found = name if os.path.exists(os.path.join(top, name)) else beside
            other = os.path.dirname(found)
            if (os.path.exists(os.path.join(top, found)) and holds(tree, other)
                    and not holds(folder, other) and not holds(other, folder)):
                used.setdefault(folder, {}).setdefault(other, f'{path} includes {found}')
    return used


def way(used, begin, end):
    """The lines that lead from a folder to another one, or None."""
    queue, seen = [(begin, [])], set()
    while queue:
        folder, lines = queue.pop(0)
        for other, line in used.get(folder, {}).items():
            if other == end:
                return lines + [line]
            if other not in seen:
                seen.add(other)
                queue.append((other, lines + [line]))
    return None


def circles(top, tree):
    """Yields one circle of each folder that is on one."""
    used = uses(top, tree)
    for folder in sorted(used):
        lines = way(used, folder, folder)
        if lines:
            yield f'{folder}: ' + '; '.join(lines)


def no_circle(tree):
    """None is in a tree of this project, which has folders that use others."""
    check(uses(TOP, tree), f'no folder of {tree} uses another: is it read at all?')
    found = list(circles(TOP, tree))
    check(not found, '\n'.join(found))


@test
def found():
    """a circle over three folders is found, and headers shared with a folder inside are none"""
    for path, text in (('t/a/a.c', '#include "t/b/b.h"\n#include "t/top.h"\n'),
                       ('t/b/b.h', '# include "t/c/in/c.h"\n'), ('t/a/a.h', ''),
                       ('t/c/in/c.h', '#include "t/c/c.h"\n#include <t/a/a.h>\n'),
                       ('t/c/c.h', '#include "in/c.h"\n'), ('t/top.h', '#include "t/a/a.h"\n')):
        os.makedirs(os.path.join(TMP, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(TMP, path), 'w', encoding='utf-8') as file:
            file.write(text)
    equal(list(circles(TMP, 't')), [], 'circles before')
    with open(os.path.join(TMP, 't/c/in/d.c'), 'w', encoding='utf-8') as file:
        file.write('#include "t/a/a.h"\n')
    equal(len(list(circles(TMP, 't'))), 3, 'circles')


@test
def tools():
    """no circle of folders in tools/"""
    no_circle('tools')


@test
def library():
    """no circle of folders in libshstk/"""
    no_circle('libshstk')


if __name__ == '__main__':
    sys.exit(main())
