#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How much stack the BPF programs take: the kernel gives 512 bytes to all functions that call each other.

Prints KTAP. What a function takes is up to the compiler, and another one may take more, so some of it
has to be left. Nor may too many of them call each other.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))
from depth import deepest, longest, total  # noqa: E402
from harness import BUILD, check, main, test  # noqa: E402

STACK = 512
FUNCTIONS = 8           # that may call each other, of the kernel
LEFT = 60
# Each function takes full units of the stack. They became smaller between Linux 6.1 and 6.12.
UNIT, NEWER_UNIT = 32, 16
# Linux 6.1 may refuse these: the others do without them.
NEWER = ['shstk-lend_native.bpf.o', 'shstk-native.bpf.o']


def objects():
    return sorted(name for name in os.listdir(BUILD)
                  if name.startswith('shstk-') and name.endswith('.bpf.o'))


def look_at(name):
    way = deepest(os.path.join(BUILD, name), NEWER_UNIT if name in NEWER else UNIT)
    print(f'# {name}: {total(way)} bytes:', ', '.join(f'{function} {taken}' for function, taken in way))
    check(total(way) <= STACK - LEFT,
          f'{name} takes {total(way)} bytes of stack, of {STACK}, of which {LEFT} have to be left')


@test
def all_leave_stack():
    """each program leaves some of the kernel's stack"""
    for name in objects():
        look_at(name)


@test
def all_calls_are_few():
    """no program has more functions call each other than kernels take"""
    for name in objects():
        way = longest(os.path.join(BUILD, name))
        check(len(way) <= FUNCTIONS,
              f'{name} has {len(way)} functions that call each other, and kernels take {FUNCTIONS}: '
              + ', '.join(way))


if __name__ == '__main__':
    sys.exit(main(lambda: None if objects() else 'no BPF program was built: there is no clang'))
