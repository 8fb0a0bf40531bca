#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that forges an interpreter's memory: reading it ends, and nothing is made up."""

import os
import resource
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import HERE, TMP, check, main, test    # noqa: E402
from truth_runs import lines_of, record    # noqa: E402

MEMORY = 512 << 10      # KiB that no recorder may take
SAMPLES = '200'         # of which frames are read


def judge(*kind, may_show=False, program='python3-forged'):
    """Records a program whose frames are forged in that way (forged.c, forged_ruby.c, forged_node.c): that ends,
    takes little memory, and shows no function unless one may be shown. Returns the stacks with functions."""
    *stacks, last = lines_of(record('-f', '999', '-r', SAMPLES, os.path.join(TMP, 'word'),
                                    os.path.join(HERE, program), *kind))
    print('#', last)
    words = last.split()
    check(len(words) == 7, 'samples are not taken to the end')
    check(int(words[3]) > 0, 'no frames are read')
    check(may_show or words[1] == '0', 'a function is shown')
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(most < MEMORY, f'the recorder took {most} KiB of memory')
    return stacks


@test
def cycle():
    """a list of frames that leads to itself"""
    judge('cycle')


@test
def marks():
    """a list of entries that leads to itself"""
    judge('marks')


@test
def deep():
    """more frames than are read"""
    judge('deep')


@test
def lengths():
    """texts that are longer than memory"""
    judge('lengths', may_show=True)


@test
def edge():
    """a frame at the end of memory"""
    judge('edge')


@test
def kernel():
    """a frame in the kernel"""
    judge('kernel')


@test
def ruby_deep():
    """more frames of Ruby than are read"""
    judge('deep', may_show=True, program='ruby-forged')


@test
def ruby_endless():
    """frames of Ruby up to the end of all addresses"""
    judge('endless', program='ruby-forged')


@test
def ruby_lengths():
    """names in Ruby that are longer than memory"""
    judge('lengths', may_show=True, program='ruby-forged')


@test
def ruby_kernel():
    """names and a function of Ruby in the kernel"""
    judge('kernel', program='ruby-forged')


@test
def ruby_unflagged():
    """a frame of Ruby whose flags are in the kernel"""
    judge('unflagged', program='ruby-forged')


@test
def ruby_lines():
    """lines of Ruby that are nowhere, and more than memory has room for"""
    judge('lines', may_show=True, program='ruby-forged')


@test
def ruby_named():
    """a function in C has its name, the names of others are in the kernel, nowhere, or longer than memory"""
    word = os.path.join(TMP, 'word')
    with open(word, 'wb') as file:
        file.truncate(4096)
    stacks = judge('named', word, may_show=True, program='ruby-forged')
    # The tables are read, so those of the others were, too.
    wrong = [stack for stack in stacks if [text for text in stack.split('\t')[1:] if text != '|'][:1] != ['in_c@:0']]
    check(stacks and not wrong, f'{len(wrong)} of {len(stacks)} stacks: {wrong[:3]}')


@test
def javascript():
    """frames, objects and machine code of JavaScript that lead to themselves, to the kernel or nowhere, or are huge"""
    # The program is each of these in turn, as loading the program that reads them takes its time.
    judge(program='forged/node')


@test
def javascript_12():
    """the same as V8 12.4 has them"""
    judge(program='forged-12/node')


@test
def javascript_13():
    """the same as V8 13.6 has them"""
    judge(program='forged-13/node')


@test
def task():
    """a task whose name is longer than memory"""
    judge('task', may_show=True)


if __name__ == '__main__':
    sys.exit(main())
