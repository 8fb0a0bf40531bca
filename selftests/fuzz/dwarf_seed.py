#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs for dwarf_fuzz to start from: of two compilers, DWARF 3 to 5, with inlined calls; and
some of Debian's own debug files, where libc6-dbg is installed.

usage: dwarf_seed.py PREFIX     writes PREFIX-NAME
"""

import glob
import os
import struct
import subprocess
import sys

SIZE_MAX = 64 << 10
DEBIAN = 12     # number of Debian's files

C = '''\
volatile int sink;

static inline __attribute__((always_inline)) void innermost(int x)
{
	for (int i = 0; i < x; i++)
		sink += i;
}

static inline __attribute__((always_inline)) int middle(int x)
{
	innermost(x);
	return x < 5 ? sink : x;
}

__attribute__((noinline)) int outermost(int x)
{
	{ int y = middle(x); sink ^= y; }
	return middle(x + 1);
}

void _start(void)
{
	for (;;)
		outermost(sink);
}
'''

CPP = '''\
namespace outer { namespace {
volatile int sink;
struct box {
	int v;
	__attribute__((always_inline)) inline int get() const { return v ^ sink; }
};
template <typename T> __attribute__((noinline)) T twice(const T &x)
{
	auto f = [&x](int y) __attribute__((always_inline)) { return x.get() + y; };
	sink = f(1);
	return T{ f(2) };
}
} }
extern "C" void _start()
{
	for (;;)
		outer::sink = outer::twice(outer::box{ outer::sink }).get();
}
'''

KINDS = {
    'gcc5': ('gcc', C, '-gdwarf-5'),
    'gcc4': ('gcc', C, '-gdwarf-4'),
    'gcc3': ('gcc', C, '-gdwarf-3', '-gstrict-dwarf'),
    'gcc64': ('gcc', C, '-gdwarf-5', '-gdwarf64'),
    'types': ('g++', CPP, '-gdwarf-4', '-fdebug-types-section'),
    'cpp5': ('g++', CPP, '-gdwarf-5'),
    'packed': ('g++', CPP, '-gdwarf-5', '-gz'),
    'clang5': ('clang', C, '-gdwarf-5'),
    'clang4': ('clang++', CPP, '-gdwarf-4'),
}


def compile_kind(path, compiler, text, *flags):
    language = 'c++' if '++' in compiler else 'c'
    subprocess.run([compiler, '-O2', '-nostdlib', '-static', '-fno-stack-protector', *flags,
                    '-Wl,--build-id=none', '-x', language, '-o', path, '-'],
                   input=text.encode(), check=True)


def give_code_an_offset(path):
    """Gives the code segment of a debug file, which has no code, a place in the file. Nothing is
    read there."""
    with open(path, 'r+b') as file:
        data = bytearray(file.read())
        phoff, = struct.unpack_from('<Q', data, 32)
        size, nr = struct.unpack_from('<HH', data, 54)
        for i in range(nr):
            at = phoff + i * size
            kind, flags, _, vaddr, _, _, memsz = struct.unpack_from('<IIQQQQQ', data, at)
            if kind == 1 and flags & 1:
                struct.pack_into('<Q', data, at + 8, vaddr)
                struct.pack_into('<Q', data, at + 32, memsz)
        file.seek(0)
        file.write(data)


def take_debian(prefix):
    files = sorted(glob.glob('/usr/lib/debug/.build-id/*/*.debug'), key=os.path.getsize)
    taken = 0
    for file in files[::max(1, len(files) // 40)]:
        path = f'{prefix}-debian{taken}'
        done = subprocess.run(['objcopy', '--decompress-debug-sections',
                               '--remove-section=.gnu_debugaltlink', file, path],
                              capture_output=True, check=False)
        if done.returncode or os.path.getsize(path) > SIZE_MAX:
            if os.path.exists(path):
                os.unlink(path)
            continue
        give_code_an_offset(path)
        taken += 1
        if taken == DEBIAN:
            break


def main():
    prefix = sys.argv[1]
    for name, kind in KINDS.items():
        compile_kind(f'{prefix}-{name}', *kind)
    take_debian(prefix)
    return 0


if __name__ == '__main__':
    sys.exit(main())
