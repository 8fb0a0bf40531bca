# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the programs that try examples/hooks/, by the commands in the hooks' own comments."""

import functools
import os
import re
import shutil

from harness import BUILD, TMP, TOP, Skip, check, run

HOOKS = os.path.join(TOP, 'examples', 'hooks')
SOURCE = os.path.join(TOP, 'selftests', 'examples', 'hooks')
# The header that each hook needs, and Debian's package of it.
NEEDS = {'jemalloc.c': ('jemalloc/jemalloc.h', 'libjemalloc-dev'),
         'abseil.cc': ('absl/debugging/stacktrace.h', 'libabsl-dev'),
         'boost.hpp': ('boost/stacktrace.hpp', 'libboost-stacktrace-dev'),
         # folly is no Debian package: the test's program calls the hook as folly does.
         'folly.cc': ('unwind.h', 'g++')}


def environment():
    """pkg-config finds the library of the build tree, and programs find it, too."""
    with open(os.path.join(TOP, 'packaging', 'libshstk.pc.in'), encoding='utf-8') as file:
        text = file.read()
    for name, value in (('PREFIX', TOP), ('LIBDIR', BUILD), ('VERSION', '0'),
                        ('INCLUDEDIR', os.path.join(TOP, 'libshstk'))):
        text = text.replace(f'@{name}@', value)
    with open(os.path.join(TMP, 'libshstk.pc'), 'w', encoding='utf-8') as file:
        file.write(text)
    return dict(os.environ, PKG_CONFIG_PATH=TMP, LD_LIBRARY_PATH=BUILD)


ENVIRONMENT = environment()


def is_there(header):
    """Whether the compiler finds a header."""
    return run('g++', '-E', '-xc++', '-', input=f'#include <{header}>\n').returncode == 0


def command_of(hook):
    """The command that the comment of a hook says, as one line."""
    with open(os.path.join(HOOKS, hook), encoding='utf-8') as file:
        found = re.search(r'^ \*   (c(?:c|\+\+) (?:.*\\\n)*.*)$', file.read(), re.M)
    check(found, f'{hook} says no command')
    return re.sub(r'\\\n \*', ' ', found[1])


@functools.lru_cache(maxsize=None)
def hooked(hook, program, flags='-fomit-frame-pointer'):
    """Path of a program of this folder, built by the command of a hook's comment; by default without
    frame pointers; at a fixed address, so that addresses can be compared."""
    header, package = NEEDS[hook]
    for tool in 'gcc', 'g++', 'pkg-config':
        if not shutil.which(tool):
            raise Skip(f'no {tool}')
    if not is_there(header):
        raise Skip(f"no <{header}>: Debian's package {package}")
    out, source = os.path.join(TMP, os.path.splitext(program)[0]), os.path.join(SOURCE, program)
    flags = f'-Wall -Wextra -no-pie -I{HOOKS} {flags}'
    places = {'cc': f'gcc {flags}', 'c++': f'g++ {flags}', 'PROGRAM': out, 'PROGRAM.c': source,
              'PROGRAM.cc': source, hook: os.path.join(HOOKS, hook)}
    command = ' '.join(places.get(word, word) for word in command_of(hook).split())
    done = run('sh', '-ec', command, env=ENVIRONMENT)
    check(done.returncode == 0 and not done.stderr, f'{command}\n{done.stderr}')
    return out


def output(*args, **env):
    """What a program prints; it must end well."""
    done = run(*args, env=dict(ENVIRONMENT, **env))
    check(done.returncode == 0, f'{args}: status {done.returncode}: {done.stderr}')
    return done.stdout
