#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bindings/cpp/shstk.hpp: beside the C functions, by the compilers and standards that are here.
Prints KTAP.
"""

import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import BUILD, TMP, TOP, Skip, check, equal, main, run, test  # noqa: E402

CPP = os.path.join(TOP, 'bindings/cpp')
FRAMES = os.path.join(TOP, 'selftests/bindings/frames.cc')
ENVIRONMENT = {**os.environ, 'LD_LIBRARY_PATH': BUILD}


def compile_program(name, compiler, *words):
    """Compile a program without a warning; its path."""
    if not shutil.which(compiler):
        raise Skip(f'no {compiler} here')
    program = os.path.join(TMP, name)
    done = run(compiler, '-Wall', '-Wextra', '-Werror', f'-I{CPP}', f'-I{TOP}/libshstk', '-o',
               program, *words, cwd=TOP)
    equal(done.returncode, 0, f'{compiler}: {done.stdout}{done.stderr}')
    return program


def frames(name, compiler, *words):
    """Build and run frames.cc; what it says of formats."""
    program = compile_program(name, compiler, *words, '-g', FRAMES, f'-L{BUILD}',
                              '-lshstk-symbolize', '-lshstk')
    done = run(program, env=ENVIRONMENT)
    equal(done.returncode, 0, f'{name}: {done.stdout}{done.stderr}')
    return done.stdout.strip()


@test
def gcc_unoptimised():
    """C++11, g++ -O0: every entry is what the C function gives, at every depth"""
    frames('gcc-11', 'g++', '-std=c++11', '-O0')


@test
def gcc_optimised():
    """C++17, g++ -O2 without exceptions: the same"""
    frames('gcc-17', 'g++', '-std=c++17', '-O2', '-fno-exceptions', '-fno-rtti')


@test
def clang():
    """C++20, clang++ -O2: the same"""
    frames('clang-20', 'clang++', '-std=c++20', '-O2')


@test
def formats():
    """std::format() takes traces and frames"""
    said = frames('gcc-20', 'g++', '-std=c++20', '-O1')
    if said == 'no format':
        raise Skip("this C++ library has no std::format: g++ 13 or later has it")
    equal(said, 'format', 'frames.cc')


@test
def needs_no_names():
    """a program without a symbolizer is linked with libshstk only"""
    source = os.path.join(TMP, 'only.cc')
    with open(source, 'w', encoding='ascii') as file:
        file.write('#include <shstk.hpp>\n'
                   'int main() { return shstk::trace<4>::capture().empty(); }\n')
    program = compile_program('only', 'g++', '-std=c++11', '-O0', source, f'-L{BUILD}', '-lshstk')
    done = run(program, env=ENVIRONMENT)
    equal(done.returncode, 0, f'it says {done.stdout}{done.stderr}')


def command_of(path):
    """The command that the comment of an example says."""
    with open(path, encoding='utf-8') as file:
        found = re.search(r'^ \*   c\+\+ (.*)$', file.read(), re.M)
    check(found, f'{path} says no command')
    return found[1]


@test
def example():
    """the example builds as its comment says from what is installed, and prints its functions"""
    if not shutil.which('pkg-config') or not shutil.which('g++'):
        raise Skip('no pkg-config or no g++ here')
    root = os.path.join(TMP, 'root')
    kept = {k: v for k, v in os.environ.items() if 'MAKE' not in k and k != 'MFLAGS'}
    done = run('make', '-s', 'install', f'B={os.path.relpath(BUILD, TOP)}', f'DESTDIR={root}',
               'PREFIX=/usr', cwd=TOP, env=kept)
    equal(done.returncode, 0, f'make install: {done.stderr}')
    shutil.copy(os.path.join(CPP, 'example.cc'), TMP)
    done = run('sh', '-c', 'g++ ' + command_of(os.path.join(CPP, 'example.cc')), env={
        **kept, 'PKG_CONFIG_PATH': f'{root}/usr/lib/pkgconfig', 'PKG_CONFIG_SYSROOT_DIR': root,
        'PKG_CONFIG_ALLOW_SYSTEM_CFLAGS': '1', 'PKG_CONFIG_ALLOW_SYSTEM_LIBS': '1'})
    equal(done.returncode, 0, f'g++: {done.stderr}')
    done = run(os.path.join(TMP, 'example'),
               env={**os.environ, 'LD_LIBRARY_PATH': f'{root}/usr/lib'})
    # Before it may stand the capture, which was inlined there.
    check(re.search(r'^inner\(\)\+0x\w+ \(.*example\.cc:\d+\)\nmain\+0x\w+ \(.*example\.cc:\d+\)\n',
                    done.stdout, re.M), f'it prints {done.stdout}')


if __name__ == '__main__':
    sys.exit(main())
