#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of addresses: each kind of source, and hostile input.

Programs are built here, changed with binutils, and looked up through driver.c; the expected answers
come from nm, readelf and addr2line.
"""

import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from cases import (Driver, Elf, Skip, build_id, case, equal, main,  # noqa: E402
                   need, run)
from perf import kernel_names  # noqa: E402

INLINE_C = '''\
#define INLINE static inline __attribute__((always_inline))
volatile int sink;

INLINE void innermost(int x)
{
	sink += x;
	sink ^= x;
}

INLINE void middle(int x)
{
	innermost(x);
}

__attribute__((noinline)) void outermost(int x)
{
	middle(x);
	sink--;
}

static __attribute__((noinline)) int hidden(int x)
{
	sink += 3;
	return sink * x;
}

__attribute__((noinline)) int exported(int x)
{
	outermost(x);
	return hidden(x) + 1;
}

int main(void)
{
	return exported(2) == 0;
}
'''

CPP = '''\
#include <cstdlib>
namespace space {
template <typename T> struct box {
	T value;
	__attribute__((noinline)) T twist(const T &by) const { return value * by + rand(); }
};
__attribute__((noinline)) int overload(int x) { return x + rand(); }
__attribute__((noinline)) int overload(const char *x) { return *x + rand(); }
}
int main(int argc, char **argv)
{
	auto local = [argc](int x) __attribute__((noinline)) { return x * argc + rand(); };
	return space::box<long>{argc}.twist(3) + space::overload(argc) +
	       space::overload(argv[0]) + local(4) == 0;
}
'''


def compile_source(folder, text=INLINE_C, name='prog', suffix='.c'):
    source = os.path.join(folder, name + suffix)
    with open(source, 'w', encoding='utf-8') as file:
        file.write(text)
    return source


def zstd_sections(path):
    """Packs debug sections as newer binutils do with zstd. Returns how many."""
    packed = 0
    with open(path, 'r+b') as file:
        data = bytearray(file.read())
        at, = struct.unpack_from('<Q', data, 0x28)
        size, number, names_at = struct.unpack_from('<HHH', data, 0x3a)
        headers = [list(struct.unpack_from('<IIQQQQIIQQ', data, at + i * size))
                   for i in range(number)]
        strings = headers[names_at][4]
        for i, header in enumerate(headers):
            name = data[strings + header[0]:].split(b'\0', 1)[0]
            if name not in (b'.debug_info', b'.debug_abbrev', b'.debug_line', b'.debug_str',
                            b'.debug_line_str'):
                continue
            content = bytes(data[header[4]:header[4] + header[5]])
            small = subprocess.run(['zstd', '-q', '-c'], input=content, check=True,
                                   stdout=subprocess.PIPE).stdout
            data += b'\0' * (-len(data) % 8)
            new = struct.pack('<IIQQ', 2, 0, len(content), header[8]) + small
            header[2] |= 0x800
            header[4], header[5] = len(data), len(new)
            struct.pack_into('<IIQQQQIIQQ', data, at + i * size, *header)
            data += new
            packed += 1
        file.seek(0)
        file.write(data)
    return packed


def compile_c(folder, text=INLINE_C, name='prog', flags=(), compiler='gcc', suffix='.c'):
    source = compile_source(folder, text, name, suffix)
    path = os.path.join(folder, name)
    run(compiler, '-O2', *flags, '-o', path, source)
    return path


def line_of(text, needle):
    """Returns the number of the first line with that text."""
    for number, line in enumerate(text.splitlines(), 1):
        if needle in line:
            return number
    raise KeyError(needle)


def names(frames):
    return [f.function for f in frames]


def open_proc(variant, debug_dirs='/nonexistent', option=None, through=()):
    driver = Driver(variant, debug_dirs, option, through)
    driver.do('proc', 'p', 0)
    return driver


def check_inlines(driver, elf, folder):
    frames = driver.lookup('p', elf.addr('outermost', 4))
    equal(names(frames), ['innermost', 'middle', 'outermost'])
    equal([f.inlined for f in frames], [True, True, False])
    equal([f.line for f in frames[1:]],
          [line_of(INLINE_C, '\tinnermost(x);'), line_of(INLINE_C, '\tmiddle(x);')])
    assert frames[0].line in (line_of(INLINE_C, 'sink += x'), line_of(INLINE_C, 'sink ^= x'))
    equal({f.file for f in frames}, {os.path.join(folder, 'prog.c')})
    equal(frames[2].start_line, line_of(INLINE_C, 'void outermost'))
    equal(frames[2].offset, 4)
    equal(frames[2].build_id, build_id(elf.path) or '')


def compiled_inlines(variant, folder, compiler, *flags):
    elf = Elf(compile_c(folder, flags=['-g', *flags], compiler=compiler))
    driver = open_proc(variant)
    elf.map(driver, 'p')
    check_inlines(driver, elf, folder)
    driver.close()
    return elf


@case
def inlined_gcc(variant, folder):
    """inlined calls with lines, gcc, DWARF 5 and 4, compressed and not"""
    for flags in (['-gdwarf-5'], ['-gdwarf-4'], ['-g3'], ['-gz=zlib'], ['-gz=zlib-gnu']):
        compiled_inlines(variant, folder, 'gcc', *flags)


def compile_split(folder, compiler, *flags):
    """Builds a program whose description is in .dwo files, of two units with code in several
    sections."""
    other = os.path.join(folder, 'other.c')
    with open(other, 'w', encoding='ascii') as file:
        file.write('int other(int x)\n{\n\treturn x * 3;\n}\n')
    objects = []
    for source in (compile_source(folder), other):
        objects.append(source + '.o')
        run(compiler, '-O2', '-g', '-gsplit-dwarf', *flags, '-c', '-o', objects[-1], source, cwd=folder)
    path = os.path.join(folder, 'prog')
    run(compiler, '-O2', '-o', path, *objects)
    return path, [f'{o[:-2]}.dwo' for o in objects]


SPLIT_FLAGS = (['-gdwarf-5'], ['-gdwarf-4'], ['-gdwarf-5', '-ffunction-sections'],
               ['-gdwarf-4', '-ffunction-sections'], ['-gdwarf-5', '-gz=zlib'],
               ['-gdwarf-4', '-fdebug-types-section'])


def check_split(variant, folder, path):
    elf = Elf(path)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    check_inlines(driver, elf, folder)
    frame, = driver.lookup('p', elf.addr('other', 2))
    equal((frame.function, frame.line, frame.start_line), ('other', 3, 1))
    equal(driver.do('missing'), ['0'])
    driver.close()


@case
def inlined_split(variant, folder):
    """inlined calls with lines from .dwo files, gcc and clang, DWARF 5 and 4"""
    for compiler in ('gcc', 'clang'):
        need(compiler)
        for flags in SPLIT_FLAGS:
            path, dwo = compile_split(folder, compiler, *flags)
            assert all(os.path.getsize(d) for d in dwo)
            check_split(variant, folder, path)


@case
def split_dwarf_package(variant, folder):
    """the same from a .dwp file, as dwp and llvm-dwp write it"""
    # dwp of binutils 2.40 leaves DWARF 5 out, and llvm-dwp 14 never ends with gcc's files.
    for compiler, version, tool in (('gcc', 4, 'dwp'), ('clang', 4, 'llvm-dwp'),
                                    ('clang', 5, 'llvm-dwp')):
        need(compiler, tool)
        path, dwo = compile_split(folder, compiler, f'-gdwarf-{version}')
        run(tool, '-o', path + '.dwp', *dwo)
        for file in dwo:
            os.unlink(file)
        check_split(variant, folder, path)
        os.unlink(path + '.dwp')


@case
def split_dwarf_moved(variant, folder):
    """.dwo files that were moved together with the program; another's are not taken"""
    for sub in ('first', 'second'):
        os.mkdir(os.path.join(folder, sub))
    source = os.path.join(folder, 'first')
    path, dwo = compile_split(source, 'gcc')
    to = os.path.join(folder, 'second')
    for file in (path, *dwo):
        shutil.move(file, to)
    check_split(variant, source, os.path.join(to, 'prog'))
    # The same names with the description of another program.
    for file in dwo:
        os.unlink(os.path.join(to, os.path.basename(file)))
    _, others = compile_split(source, 'gcc', '-Dsink=drain')
    with open(others[0], 'rb') as file:
        assert file.read()
    elf = Elf(os.path.join(to, 'prog'))
    driver = open_proc(variant)
    elf.map(driver, 'p')
    equal(names(driver.lookup('p', elf.addr('outermost', 4))), ['outermost'])
    equal(driver.do('missing'), ['1', others[0]])
    driver.close()


@case
def split_dwarf_that_blocks(variant, folder):
    """.dwo and .dwp files that are named pipes, folders or missing: the symbol and line remain"""
    path, dwo = compile_split(folder, 'gcc')
    for file in dwo:
        os.unlink(file)
    os.mkfifo(dwo[0])
    os.mkdir(dwo[1])
    os.mkfifo(path + '.dwp')
    elf = Elf(path)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    frame, = driver.lookup('p', elf.addr('outermost', 4))
    equal((frame.function, frame.file), ('outermost', os.path.join(folder, 'prog.c')))
    equal(names(driver.lookup('p', elf.addr('other', 2))), ['other'])
    equal(driver.do('missing'), ['2', dwo[0]])
    driver.close()


@case
def damaged_split_dwarf(variant, folder):
    """damaged .dwo and .dwp files: no more than names and inlined calls are lost"""
    need('clang', 'llvm-dwp')
    path, dwo = compile_split(folder, 'clang')
    elf = Elf(path)
    generator = random.Random(4)
    with open(dwo[0], 'rb') as file:
        plain = file.read()
    run('llvm-dwp', '-o', path + '.packed', *dwo)
    with open(path + '.packed', 'rb') as file:
        packed = file.read()
    for good, bad in ((plain, dwo[0]), (packed, path + '.dwp')):
        for _ in range(40):
            damaged = bytearray(good)
            for _ in range(generator.randrange(1, 30)):
                damaged[generator.randrange(64, len(damaged))] = generator.randrange(256)
            with open(bad, 'wb') as file:
                file.write(damaged)
            driver = open_proc(variant)
            elf.map(driver, 'p')
            for addr in ('outermost', 'hidden', 'main', 'other'):
                assert driver.lookup('p', elf.addr(addr, 4))
            driver.close()


@case
def packed_by_zstd(variant, folder):
    """sections packed by zstd, which libdw 0.188 cannot unpack"""
    path = compile_c(folder, flags=['-g'])
    equal(zstd_sections(path), 5)
    elf = Elf(path)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    check_inlines(driver, elf, folder)
    driver.close()


@case
def inlined_clang(variant, folder):
    """inlined calls with lines, clang, which writes no .debug_aranges"""
    need('clang')
    elf = compiled_inlines(variant, folder, 'clang')
    assert '.debug_aranges' not in run('readelf', '-SW', elf.path)


@case
def units_of_two_compilers(variant, folder):
    """a file where .debug_aranges has the one unit, and the other only says so itself"""
    need('clang')
    other = os.path.join(folder, 'other.c')
    with open(other, 'w', encoding='ascii') as file:
        file.write('int other(int x)\n{\n\treturn x * 3;\n}\n')
    run('clang', '-O2', '-g', '-c', '-o', other + '.o', other)
    elf = Elf(compile_c(folder, flags=['-g', other + '.o']))
    assert 'other.c' not in run('readelf', '--debug-dump=aranges', elf.path)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    check_inlines(driver, elf, folder)
    frame, = driver.lookup('p', elf.addr('other', 2))
    equal((frame.function, frame.file, frame.line, frame.start_line), ('other', other, 3, 1))
    driver.close()


@case
def inflated_by_libdw(variant, folder):
    """compressed sections where libdeflate cannot be loaded"""
    libraries = os.path.join(folder, 'libraries')
    os.mkdir(libraries)
    with open(os.path.join(libraries, 'libdeflate.so.0'), 'wb'):
        pass
    os.environ['LD_LIBRARY_PATH'] = libraries
    try:
        compiled_inlines(variant, folder, 'gcc', '-gz=zlib')
    finally:
        del os.environ['LD_LIBRARY_PATH']


@case
def inlined_arm64(variant, folder):
    """inlined calls with lines, of an arm64 program; names without arm64's markers"""
    need('aarch64-linux-gnu-gcc')
    elf = compiled_inlines(variant, folder, 'aarch64-linux-gnu-gcc')
    run('aarch64-linux-gnu-strip', '--strip-debug', elf.path)
    assert '$x' in run('nm', '-a', '--special-syms', elf.path)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    for addr in range(elf.symbols['_start'], elf.symbols['_start'] + 512, 4):
        assert '$' not in driver.lookup('p', elf.BASE + addr)[0].function
    equal(names(driver.lookup('p', elf.addr('hidden', 4))), ['hidden'])
    driver.close()


@case
def agrees_with_addr2line(variant, folder):
    """functions and lines of every address as addr2line -i finds them"""
    elf = Elf(compile_c(folder, CPP, flags=['-gdwarf-4'], compiler='g++', suffix='.cc'))
    driver = open_proc(variant)
    elf.map(driver, 'p')
    start, end = [elf.symbols[s] for s in ('_init', '_fini')]
    addrs = range(start, end)
    answer = run('addr2line', '-afiC', '-e', elf.path, *[hex(a) for a in addrs]).splitlines()
    want, at = {}, None
    for line in answer:
        if line.startswith('0x'):
            at = want.setdefault(int(line, 16), [])
        else:
            at.append(line)
    compared = 0
    for addr in addrs:
        lines = [p.split(' (')[0] for p in want[addr][1::2]]
        if any('?' in p for p in lines):
            continue        # padding, or code without debug information
        have = driver.lookup('p', elf.BASE + addr)
        if not have[0].resolved:
            # Between functions, where addr2line takes the function before.
            assert addr % 16 and addr not in elf.symbols.values()
            continue
        equal([f'{os.path.basename(f.file)}:{f.line}' for f in have],
              [os.path.basename(p) for p in lines], hex(addr))
        equal([f.function.split('(')[0] for f in have],
              [n.split('(')[0] for n in want[addr][0::2]], hex(addr))
        compared += 1
    assert compared > 100, compared
    driver.close()


@case
def return_addresses(variant, folder):
    """a return address means the call before it"""
    elf = Elf(compile_c(folder, flags=['-g']))
    driver = open_proc(variant)
    elf.map(driver, 'p')
    # The first byte of a function is also the return address of a call that never returns, at the
    # end of the function before it.
    first = elf.addr('outermost')
    equal(driver.lookup('p', first, 'pc')[-1].function, 'outermost')
    assert driver.lookup('p', first, 'ret')[-1].function != 'outermost'
    equal(driver.lookup('p', first + 1, 'ret')[-1].function, 'outermost')
    equal(driver.lookup('p', first + 1, 'ret')[-1].offset, 1)
    driver.close()


def split_debug(path, into):
    os.makedirs(os.path.dirname(into), exist_ok=True)
    run('objcopy', '--only-keep-debug', path, into)
    run('strip', '--strip-all', path)


@case
def debug_by_build_id(variant, folder):
    """separate debug file by build id; another's is refused"""
    path = compile_c(folder, flags=['-g', '-Wl,--build-id'])
    symbols = Elf(path).symbols
    ident = build_id(path)
    debug = os.path.join(folder, 'debug')
    split_debug(path, f'{debug}/.build-id/{ident[:2]}/{ident[2:]}.debug')
    elf = Elf(path)
    elf.symbols = symbols
    driver = open_proc(variant, f'/nonexistent:{debug}')
    elf.map(driver, 'p')
    check_inlines(driver, elf, folder)
    driver.close()

    other = compile_c(folder, INLINE_C + 'int more;', 'other', ['-g', '-Wl,--build-id'])
    run('objcopy', '--only-keep-debug', other, f'{debug}/.build-id/{ident[:2]}/{ident[2:]}.debug')
    driver = open_proc(variant, debug)
    elf.map(driver, 'p')
    equal(driver.lookup('p', elf.addr('hidden', 2))[0].resolved, False)
    driver.close()


@case
def debug_by_link(variant, folder):
    """separate debug file by .gnu_debuglink in all three places; a changed one is refused"""
    places = (f'{folder}/prog.dbg', f'{folder}/.debug/prog.dbg',
              f'{folder}/tree{folder}/prog.dbg')
    for place in places:
        path = compile_c(folder, flags=['-g', '-Wl,--build-id=none'])
        symbols = Elf(path).symbols
        split_debug(path, place)
        run('objcopy', f'--add-gnu-debuglink={place}', path)
        elf = Elf(path)
        elf.symbols = symbols
        driver = open_proc(variant, f'{folder}/tree')
        elf.map(driver, 'p')
        check_inlines(driver, elf, folder)
        driver.close()
        with open(place, 'ab') as file:
            file.write(b'x')
        driver = open_proc(variant, f'{folder}/tree')
        elf.map(driver, 'p')
        equal(driver.lookup('p', elf.addr('hidden', 2))[0].resolved, False, place)
        driver.close()
        os.unlink(place)


@case
def debug_shared(variant, folder):
    """debug information that dwz moved to a third file"""
    need('dwz')
    paths = [compile_c(folder, CPP + f'int more{i};', f'prog{i}', ['-gdwarf-4', '-Wl,--build-id'],
                       'g++', '.cc') for i in range(2)]
    before = []
    elf = Elf(paths[0])
    addrs = [elf.BASE + a for a in range(elf.symbols['_start'], elf.symbols['_fini'], 3)]
    driver = open_proc(variant)
    elf.map(driver, 'p')
    before = [repr(driver.lookup('p', a)) for a in addrs]
    driver.close()
    shared = f'{folder}/shared.dwz'
    run('dwz', '-m', shared, '-M', shared, *paths)
    assert '.gnu_debugaltlink' in run('readelf', '-SW', paths[0])
    driver = open_proc(variant)
    elf.map(driver, 'p')
    equal([repr(driver.lookup('p', a)) for a in addrs], before)
    driver.close()
    os.unlink(shared)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    equal(driver.lookup('p', elf.addr('_ZN5space8overloadEi'))[0].function, 'space::overload(int)')
    driver.close()


@case
def minidebuginfo(variant, folder):
    """names packed in .gnu_debugdata"""
    need('xz')
    path = compile_c(folder, flags=['-rdynamic'])
    whole = Elf(path)
    mini = f'{folder}/mini'
    run('objcopy', '-S', '--remove-section=.comment', '--keep-symbol=hidden', path, mini)
    run('xz', mini)
    run('strip', '--strip-all', path)
    run('objcopy', f'--add-section=.gnu_debugdata={mini}.xz', path)
    elf = Elf(path)
    elf.symbols = whole.symbols
    driver = open_proc(variant)
    elf.map(driver, 'p')
    equal(names(driver.lookup('p', elf.addr('hidden', 3))), ['hidden'])
    equal(names(driver.lookup('p', elf.addr('exported', 3))), ['exported'])
    driver.close()
    # Packed symbols that unpack to more than is allowed are left alone.
    with open(mini, 'wb') as file:
        file.truncate(300 << 20)
    run('xz', '-f', mini)
    run('objcopy', f'--update-section=.gnu_debugdata={mini}.xz', path)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    equal(driver.lookup('p', elf.addr('hidden', 3))[0].resolved, False)
    equal(names(driver.lookup('p', elf.addr('exported', 3))), ['exported'])
    driver.close()


@case
def stripped(variant, folder):
    """a stripped file: exported names, else the start of the function"""
    path = compile_c(folder, flags=['-rdynamic'])
    elf = Elf(path)
    run('strip', '--strip-all', path)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    equal(names(driver.lookup('p', elf.addr('exported', 1))), ['exported'])
    want = f'[prog+{elf.symbols["hidden"]:#x}]'
    for offset in range(8):
        frame = driver.lookup('p', elf.addr('hidden', offset))[0]
        equal((frame.function, frame.resolved, frame.offset), (want, False, offset))
    driver.close()
    # Without .eh_frame_hdr the name has the address itself.
    path = compile_c(folder, flags=['-Wl,--no-eh-frame-hdr', '-static'])
    elf = Elf(path)
    run('strip', '--strip-all', path)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    addr = elf.symbols['hidden'] + 3
    equal(names(driver.lookup('p', elf.BASE + addr)), [f'[prog+{addr:#x}]'])
    driver.close()


@case
def cpp_names(variant, folder):
    """C++ names, with and without debug information"""
    for flags in (['-g'], []):
        elf = Elf(compile_c(folder, CPP, flags=flags, compiler='g++', suffix='.cc'))
        driver = open_proc(variant)
        elf.map(driver, 'p')
        for symbol, want in (
                ('_ZN5space8overloadEi', 'space::overload(int)'),
                ('_ZN5space8overloadEPKc', 'space::overload(char const*)'),
                ('_ZNK5space3boxIlE5twistERKl', 'space::box<long>::twist(long const&) const')):
            match = [s for s in elf.symbols if s.startswith(symbol)]
            frame = driver.lookup('p', elf.addr(match[0]))[-1]
            equal(frame.function.split(' [clone')[0], want)
            assert frame.linkage.startswith(symbol)
        lambdas = [s for s in elf.symbols if s.startswith('_ZZ4main')]
        assert 'main::{lambda(int)#1}' in driver.lookup('p', elf.addr(lambdas[0]))[-1].function
        driver.close()


STANDARD_CPP = '''\
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
#define F __attribute__((noinline)) void
using std::string;
struct own : std::allocator<int> {};
struct order { bool operator()(const string &, const string &) const; };
template <typename... T> struct sink { F take(T...) { asm volatile(""); } };
template <typename T> F kept(const T &) { asm volatile(""); }
namespace app { struct vector { F run(std::vector<vector>) { asm volatile(""); } }; }
F f1(const std::vector<string> &) { asm volatile(""); }
F f2(std::map<string, std::vector<int>> &) { asm volatile(""); }
F f3(std::vector<int, own> &) { asm volatile(""); }
F f4(std::map<string, int, order> &) { asm volatile(""); }
F f5(std::unordered_map<int *, std::set<char>> &, std::unique_ptr<string[]>) { asm volatile(""); }
F f6(std::priority_queue<int>, std::priority_queue<int, std::vector<int>, std::greater<int>>)
{
	asm volatile("");
}
F f7(std::wstring, std::ostringstream &, std::basic_string<char16_t>) { asm volatile(""); }
F f8(std::function<void(std::vector<int>, bool (*)(string))>) { asm volatile(""); }
int main()
{
	std::vector<app::vector> v;
	sink<std::vector<std::vector<bool>>, string>().take({}, {});
	kept<std::queue<string>>({});
	app::vector().run(v);
}
'''

STANDARD_NAMES = {
    '_Z2f1': 'f1(std::vector<std::string> const&)',
    '_Z2f2': 'f2(std::map<std::string, std::vector<int> >&)',
    '_Z2f3': 'f3(std::vector<int, own>&)',
    '_Z2f4': 'f4(std::map<std::string, int, order>&)',
    '_Z2f5': 'f5(std::unordered_map<int*, std::set<char> >&, std::unique_ptr<std::string []>)',
    '_Z2f6': 'f6(std::priority_queue<int>, std::priority_queue<int, std::vector<int>, '
             'std::greater<int> >)',
    '_Z2f7': 'f7(std::wstring, std::ostringstream&, std::basic_string<char16_t>)',
    '_Z2f8': 'f8(std::function<void (std::vector<int>, bool (*)(std::string))>)',
    '_ZN4sink': 'sink<std::vector<std::vector<bool> >, std::string>::take('
                'std::vector<std::vector<bool> >, std::string)',
    '_Z4kept': 'void kept<std::queue<std::string> >(std::queue<std::string> const&)',
    '_ZN3app': 'app::vector::run(std::vector<app::vector>)',
}


@case
def standard_library_names(variant, folder):
    """C++ names without the standard library's defaults, and with all on request"""
    elf = Elf(compile_c(folder, STANDARD_CPP, compiler='g++', suffix='.cc'))
    short, full = open_proc(variant), open_proc(variant, option='full-names')
    elf.map(short, 'p')
    elf.map(full, 'p')
    for prefix, want in STANDARD_NAMES.items():
        name = [s for s in elf.symbols if s.startswith(prefix)][0]
        have = short.lookup('p', elf.addr(name))[-1].function
        equal(have.split(' [clone')[0], want)
        equal(full.lookup('p', elf.addr(name))[-1].function, run('c++filt', name).strip())
    short.close()
    full.close()


@case
def names_that_are_not_shortened(variant, folder):
    """A C++ name that only looks like the standard library's"""
    odd = {
        '_Z1fIXgtLi2ELi1EEEvv': 'void f<((2)>(1))>()',
        '_ZN1a3std6vectorIiE1fEv': 'a::std::vector<int>::f()',
        '_ZN6notstd6vectorIiSaIiEE1fEv': 'notstd::vector<int, std::allocator<int> >::f()',
        '_ZlsIcERSt6vectorIT_SaIS1_EES3_c':
            'std::vector<char>& operator<< <char>(std::vector<char>, char)',
    }
    elf = assemble(folder, odd)
    driver = open_proc(variant)
    elf.map(driver, 'p')
    for name, want in odd.items():
        equal(driver.lookup('p', elf.addr(name))[-1].function, want)
    driver.close()


SCOPED_CPP = '''\
#define INLINE __attribute__((always_inline)) inline
volatile int in;
namespace app {
static INLINE int dot(int x) { in += x; return in; }
namespace {
struct hidden { static INLINE int get(int x) { in -= x; return in; } };
}
}
static INLINE int plain(int x) { in ^= x; return in; }
extern "C" {
__attribute__((noinline)) int one(int x) { return app::dot(x); }
__attribute__((noinline)) int two(int x) { return app::hidden::get(x); }
__attribute__((noinline)) int three(int x) { return plain(x); }
}
int main() { return one(1) + two(2) + three(3); }
'''


@case
def plt_stubs(variant, folder):
    """stubs of functions of other files are called as objdump calls them, stripped too"""
    text = ('#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v)\n'
            '{\n\tputs(v[0]);\n\tprintf("%d", atoi(v[0]));\n\treturn getenv("x") == v[c];\n}\n')
    compared = 0
    for compiler, objdump, flags in (
            ('gcc', 'objdump', ['-fcf-protection=none', '-Wl,-z,lazy']),
            ('gcc', 'objdump', ['-fcf-protection', '-Wl,-z,ibtplt', '-Wl,-z,lazy']),
            ('gcc', 'objdump', ['-Wl,-z,now']),
            ('gcc', 'objdump', ['-no-pie']),
            ('aarch64-linux-gnu-gcc', 'aarch64-linux-gnu-objdump', []),
            ('aarch64-linux-gnu-gcc', 'aarch64-linux-gnu-objdump',
             ['-mbranch-protection=standard'])):
        if not shutil.which(compiler) or not shutil.which(objdump):
            continue
        path = compile_c(folder, text, flags=['-w', *flags], compiler=compiler)
        stubs = {}
        lines = run(objdump, '-d', path).splitlines()
        for line, begin in zip(lines, lines[1:]):
            words = line.split()
            if len(words) == 2 and words[1].endswith('@plt>:'):
                stubs[int(words[0], 16)] = words[1][1:-2]
                # binutils 2.44 takes stubs of arm64 that begin with bti for shorter ones.
                if re.search(r'\t(add|br|ldr|nop)\b', begin):
                    stubs = {}
                    break
        elf = Elf(path)
        run('aarch64-linux-gnu-strip' if 'aarch64' in compiler else 'strip', path)
        driver = open_proc(variant)
        elf.map(driver, 'p')
        for addr, name in stubs.items():
            frame, = driver.lookup('p', elf.BASE + addr + 4)
            equal((frame.function, frame.offset), (name, 4), (flags, hex(addr)))
        compared += {'puts@plt', 'getenv@plt'} <= set(stubs.values())
        driver.close()
    assert compared >= 4, compared


LABELS = [
    # name, room, expected label
    ('std::_Rb_tree_iterator<std::pair<std::string const, Foo<int> > > std::map<std::string, '
     'Foo<int>, std::less<std::string>, Alloc<std::pair<std::string const, Foo<int> > > >'
     '::find(std::string const&)', 70,
     'std::map<std::string, Foo<..>, std::less<..>, Alloc<..>>::find'),
    ('std::pair<K, V> std::map<Key<A>, Value<B> >::find(Key<A> const&) const', 40,
     'std::map<Key<A>, Value<B>>::find'),
    ('std::pair<K, V> std::map<Key<A>, Value<B> >::find(Key<A> const&) const', 30,
     'std::map<..>::find'),
    ('std::pair<K, V> std::map<Key<A>, Value<B> >::find(Key<A> const&) const', 15,
     '..map<..>::find'),
    ('<alloc::vec::Vec<T> as alloc::vec::spec_from_iter::SpecFromIter<T,I>>::from_iter', 50,
     '<Vec<..> as SpecFromIter<..>>::from_iter'),
    ('core::ptr::drop_in_place<alloc::vec::Vec<alloc::string::String>>', 50,
     'core::ptr::drop_in_place<alloc::vec::Vec<..>>'),
    ('std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)', 30,
     'std::operator<< <..>'),
    ('Foo::operator->() const [clone .constprop.0] [clone .cold]', 30, 'Foo::operator->'),
    ('void* operator new(unsigned long, std::align_val_t)', 20, 'operator new'),
    ('app::Widget<int>::operator std::string() const', 40,
     'app::Widget<int>::operator std::string'),
    ('app::run(int, char**)::{lambda(std::vector<int> const&)#1}::operator()(std::vector<int> '
     'const&) const', 40, 'app::run::{lambda#1}::operator()'),
    ('(anonymous namespace)::frobnicate(std::map<int, int>&)', 50,
     '(anonymous namespace)::frobnicate'),
    ('decltype(auto) function<int>(int, long, char const*)', 30, 'function<int>'),
    ('std::function<void (int, std::vector<int>)>::operator()(int, std::vector<int>) const', 45,
     'std::function<void (..)>::operator()'),
    ('core::iter::adapters::map::map_fold::{{closure}}', 30, '..map::map_fold::{{closure}}'),
    ('a_c_function_with_a_name_that_is_long', 20, 'a_c_function_with_a_name_that_is_long'),
    ('[libfoo.so.1.2.3.4.5.6+0x123456789abc]', 20, '[libfoo.so.1.2.3.4.5.6+0x123456789abc]'),
    ('short(int)', 20, 'short(int)'),
]


@case
def labels(variant, _folder):
    """long names are cut to what tells: C++ and Rust; what cannot be cut stays"""
    driver = open_proc(variant)
    for name, room, label in LABELS:
        equal(driver.do('shown', room, name), [label], (name, room))
    generator = random.Random(3)
    for _ in range(3000):
        name = ''.join(generator.choice('<>(){}[]:: &,ab-operator') for _ in range(60))
        text, = driver.do('shown', generator.randrange(60), name)
        assert len(text) <= 2 * len(name), (name, text)
    driver.close()


@case
def inlined_scopes(variant, folder):
    """Static C++ functions that were inlined have their namespaces and classes"""
    for compiler in 'g++', 'clang++':
        elf = Elf(compile_c(folder, SCOPED_CPP, flags=['-g'], compiler=compiler, suffix='.cc'))
        driver = open_proc(variant)
        elf.map(driver, 'p')
        found = [driver.lookup('p', elf.addr(name, 4))[0].function.removesuffix('(int)')
                 for name in ('one', 'two', 'three')]
        equal(found, ['app::dot', 'app::(anonymous namespace)::hidden::get', 'plain'])
        driver.close()


def assemble(folder, functions, name='prog'):
    """Builds a program with functions of the given names, each 16 bytes long."""
    text = '\t.text\n'
    for function in functions:
        text += (f'\t.p2align 4\n\t.globl "{function}"\n\t.type "{function}", @function\n'
                 f'"{function}":\n\t.fill 16, 1, 0x90\n\t.size "{function}", 16\n')
    text += '\t.globl main\nmain:\n\tret\n\t.section .note.GNU-stack,"",@progbits\n'
    return Elf(compile_c(folder, text, name, ['-no-pie'], suffix='.s'))


def check_symbols(variant, elf, want):
    """Checks the name of each symbol of a program."""
    driver = open_proc(variant)
    elf.map(driver, 'p')
    for symbol, name in want.items():
        equal(names(driver.lookup('p', elf.addr(symbol, 1))), [name])
    driver.close()


@case
def rust_names(variant, folder):
    """Rust names of both schemes"""
    want = {
        '_ZN4core3fmt5write17h0123456789abcdefE': 'core::fmt::write',
        '_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h'
        '0011223344556677E': '<alloc::string::String as core::fmt::Display>::fmt',
        '_RNvCs1234_7mycrate3foo': 'mycrate::foo',
        '_RINvNtC3std3mem8align_ofjE.llvm.123456': 'std::mem::align_of::<usize>',
        '_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3new': '<std::path::PathBuf>::new',
    }
    check_symbols(variant, assemble(folder, want), want)


@case
def haskell_names(variant, folder):
    """names of Haskell, in files with symbols of GHC's runtime only"""
    want = {
        'base_GHCziBase_map_info': 'GHC.Base.map',
        'Main_zdwouter_info': 'Main.$wouter',
        'stg_ap_v_info': 'stg_ap_v_info',
        'get_user_info': 'get_user_info',
    }
    other = {'Main_outer_info': 'Main_outer_info', 'stg_info': 'stg_info'}
    for module, functions in ('haskell', want), ('c', other):
        check_symbols(variant, assemble(folder, functions, module), functions)


@case
def hostile_names(variant, folder):
    """names that are bombs, endless, broken or no text cost little and do no harm"""
    # Each argument is a template with the argument before it, twice.
    def back(i):
        return 'S' + (('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ'[i - 1]) if i else '') + '_'

    bomb = '_Z1f1aIiiE' + ''.join(f'S_I{back(i)}{back(i)}E' for i in range(1, 36))
    rust = '_RNvC' + 'NvC' * 2000 + '1a1b'
    pairs = '_RMC0' + 'TTTTTTTTTTTTTTTTTTTTTTTT' + 'hhE' + 'B5_E' * 24
    evil = ['x' * 40000, bomb, rust, pairs, '_Z' + 'N' * 3000, '_Z1fM1fM1fM1fv',
            '_R' + 'B_' * 500, 'colon;semi', '<&>', 'white space', '_ZZ', '_R', '_Z']
    elf = assemble(folder, evil)
    data = open(elf.path, 'rb').read()
    with open(elf.path, 'wb') as file:
        file.write(data.replace(b'colon;semi', b'co\n\x1b\xff\xc0;s\t\x7f'))
    driver = open_proc(variant)
    elf.map(driver, 'p')
    for name in evil:
        function = driver.lookup('p', elf.addr(name, 1))[0].function
        assert function and len(function.encode()) <= 16384 + 8
        assert all(ord(c) >= 0x20 and ord(c) != 0x7f for c in function)
    equal(driver.lookup('p', elf.addr(bomb, 1))[0].function, bomb)
    equal(driver.lookup('p', elf.addr('colon;semi', 1))[0].function, 'co??\ufffd\ufffd;s??')
    equal(driver.lookup('p', elf.addr('x' * 40000, 1))[0].function[-3:], '...')
    assert driver.cpu() < 20
    driver.close()


@case
def aliases(variant, folder):
    """of several names for an address the one a program calls is shown"""
    text = '''
    static __attribute__((noinline, used)) int __impl_local(int x) { return x * 3; }
    extern int plain(int) __attribute__((alias("__impl_local")));
    extern int __dunder(int) __attribute__((alias("__impl_local"), weak));
    int main(int c, char **v) { return __impl_local(c); }
    '''
    for flags in ([], ['-g']):
        elf = Elf(compile_c(folder, text, flags=flags))
        driver = open_proc(variant)
        elf.map(driver, 'p')
        equal(names(driver.lookup('p', elf.addr('plain', 1))), ['plain'], str(flags))
        driver.close()


@case
def perf_map(variant, folder):
    """perf-map: later lines win where ranges overlap, names are the rest of the line"""
    path = f'{folder}/map'
    with open(path, 'w', encoding='utf-8') as file:
        file.write('1000 100 first\n'
                   '0x2000 0x40 Class::method(int, a b)  \r\n'
                   '1040 20 second\n'
                   '1000 10 third\n'
                   '2FC0 80 across\n'
                   '3000 40 half written')
    driver = open_proc(variant)
    driver.do('map', 'p', '0x1000', '0x4000', 0, '')
    equal(driver.do('perfmap', 'p', path), ['5'])
    for addr, name, offset in ((0x1000, 'third', 0), (0x100f, 'third', 15), (0x1010, 'first', 16),
                               (0x103f, 'first', 63), (0x1040, 'second', 0),
                               (0x105f, 'second', 31), (0x1060, 'first', 0x60),
                               (0x10ff, 'first', 0xff),
                               (0x2001, 'Class::method(int, a b)', 1), (0x2fc0, 'across', 0),
                               (0x3010, 'across', 0x50)):
        frame = driver.lookup('p', addr)[0]
        equal((frame.function, frame.offset, frame.resolved), (name, offset, True), hex(addr))
    for addr in (0x1100, 0xfff, 0x2040, 0x3040):
        equal(driver.lookup('p', addr)[0].function, f'[{addr:#x}]')
    # An address outside of every known mapping is looked for in the perf-map, too.
    with open(path, 'w', encoding='utf-8') as file:
        file.write('900000 10 far away\n')
    driver.do('perfmap', 'p', path)
    equal(driver.lookup('p', 0x900001)[0].function, 'far away')
    driver.close()


@case
def perf_map_overlaps(variant, folder):
    """perf-map with many random overlaps agrees with painting line by line"""
    rand = random.Random(7)
    paint = [None] * 4096
    path = f'{folder}/map'
    with open(path, 'w', encoding='utf-8') as file:
        for i in range(1500):
            start = rand.randrange(4000)
            size = rand.choice((1, 5, 16, 96, 700))
            size = min(size, 4096 - start)
            paint[start:start + size] = [f'f{i}'] * size
            file.write(f'{start + 0x10000:x} {size:x} f{i}\n')
    driver = open_proc(variant)
    driver.do('perfmap', 'p', path)
    for i, name in enumerate(paint):
        equal(driver.lookup('p', 0x10000 + i)[0].function, name or f'[{0x10000 + i:#x}]', hex(i))
    driver.close()


@case
def perf_map_garbage(variant, folder):
    """perf-map full of garbage"""
    rand = random.Random(3)
    path = f'{folder}/map'
    junk = [b'', b'\n', b'zzz\n', b'10 \n', b'10 20\n', b'10 20 \n', b' 10\t20\tok\n', b'-1 5 x\n',
            b'fffffffffffffffff 1 too long\n', b'ffffffffffffffff 10 wraps\n', b'0 0 empty\n',
            b'1000 efffffffffffffff most of memory\n', b'\0\0\0 \xff\n', b'a' * 100000 + b'\n',
            b'50 10 ' + b'n' * 100000 + b'\n', b'60 10 \x1b[31m\xff\xfe\x00\n']
    junk += [bytes(rand.randrange(256) for _ in range(rand.randrange(60))) + b'\n'
             for _ in range(500)]
    with open(path, 'wb') as file:
        file.write(b''.join(junk))
    driver = open_proc(variant)
    driver.do('perfmap', 'p', path)
    equal(driver.lookup('p', 0x11)[0].function, 'ok')
    assert len(driver.lookup('p', 0x55)[0].function) <= 4096
    equal(driver.lookup('p', 0x61)[0].function, '?[31m\ufffd\ufffd?')
    equal(driver.lookup('p', 0x123456)[0].function, 'most of memory')
    driver.close()
    for bad in (folder, f'{folder}/none'):
        driver = open_proc(variant)
        assert driver.ask('perfmap', 'p', bad)[1]
        driver.close()


class Child:
    """A process that the test looks at."""

    def __init__(self, *args, **more):
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, **more)
        self.pid = self.process.pid

    def line(self):
        return self.process.stdout.readline().strip()

    def go(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@case
def perf_map_of_process(variant, folder):
    """perf-map of a living process: found, read anew, inherited by a child; not another user's"""
    child = Child('sleep', '100')
    path = f'/tmp/perf-{child.pid}.map'
    try:
        with open(path, 'w', encoding='utf-8') as file:
            file.write('500000 100 jitted\n')
        driver = Driver(variant)
        driver.do('proc', 'p', child.pid)
        driver.do('live', 'p')
        equal(driver.lookup('p', 0x500010)[0].function, 'jitted')
        equal(driver.lookup('p', 0x500110)[0].function, '[0x500110]')
        with open(path, 'a', encoding='utf-8') as file:
            file.write('500100 100 later\n500000 20 replaced\n')
        driver.do('perfmap', 'p')
        equal(driver.lookup('p', 0x500110)[0].function, 'later')
        equal(driver.lookup('p', 0x500010)[0].function, 'replaced')
        driver.do('fork', 'q', 'p', 0)
        equal(driver.lookup('q', 0x500110)[0].function, 'later')
        driver.close()

        def refused(why):
            driver = Driver(variant)
            driver.do('proc', 'p', child.pid)
            equal(driver.lookup('p', 0x500010)[0].function, '[0x500010]', why)
            driver.close()

        shutil.copy(path, f'{folder}/elsewhere')
        os.unlink(path)
        os.symlink(f'{folder}/elsewhere', path)
        refused('a link')
        os.unlink(path)
        os.mkfifo(path)
        refused('a pipe')
        os.unlink(path)
        shutil.copy(f'{folder}/elsewhere', path)
        os.utime(path, (time.time() - 300,) * 2)
        refused("a former process's")
        os.utime(path)
        driver = Driver(variant)
        driver.do('proc', 'p', child.pid)
        equal(driver.lookup('p', 0x500010)[0].function, 'replaced')
        driver.close()
        if os.geteuid() == 0:
            os.chown(path, 12345, 12345)
            refused("another user's")
    finally:
        child.end()
        if os.path.lexists(path):
            os.unlink(path)


class MadeCode:
    """Samples of a process with code made at run time, and the file in which it names its code."""
    FIRST, SECOND = 0x500010, 0x600010
    MS = 10**6

    def __init__(self, variant):
        self.child = Child('sleep', '1000')
        self.path = f'/tmp/perf-{self.child.pid}.map'
        self.driver = Driver(variant)
        self.driver.do('proc', 'p', self.child.pid)
        self.driver.do('type', 'samples', 'count')
        self.time = time.monotonic_ns()

    def write(self, lines, how='a'):
        """Writes to the file, later after the last sample than the resolution of file times."""
        time.sleep(0.1)
        with open(self.path, how, encoding='utf-8') as file:
            file.write(lines)

    def before(self):
        """Adds a sample of a time before the last write."""
        self.time += 20 * self.MS
        self.sample()

    def now(self):
        self.time = time.monotonic_ns()
        self.sample()

    def sample(self, addr=None):
        self.driver.do('sample', 'p', 1, 'x', 0, self.time, 1, hex(addr or self.FIRST) + 'p')

    def functions(self, folder):
        self.driver.do('write', f'{folder}/out', 'folded')
        with open(f'{folder}/out', encoding='utf-8') as file:
            lines = [line.rsplit(' ', 1) for line in file]
        return {stack.split(';')[1]: int(value) for stack, value in lines}

    def end(self):
        self.driver.close()
        self.child.end()
        if os.path.lexists(self.path):
            os.unlink(self.path)


@case
def perf_map_by_time(variant, folder):
    """perf-map: an address has the name of the code that was there at the time of the sample"""
    code = MadeCode(variant)
    try:
        code.write('500000 100 one\n')
        code.now()
        code.write('500000 100 two\n')
        code.before()
        code.now()
        code.now()
        code.write('600000 100 fresh\n600000 100 fresher\n')
        code.before()
        code.sample(code.SECOND)
        code.write('500000 100 three\n')
        code.now()
        equal(code.functions(folder), {'one': 2, 'two': 3, 'fresh': 1, 'three': 1})
    finally:
        code.end()


@case
def perf_map_that_goes(variant, folder):
    """perf-map that is removed while samples come: its names stay, also those written last"""
    code = MadeCode(variant)
    try:
        code.write('500000 100 one\n')
        code.now()
        with open(code.path, 'a', encoding='utf-8') as file:
            time.sleep(0.1)
            file.write('500000 100 two\n')
            os.unlink(code.path)
        code.now()
        # The next look finds that nothing more was written to the removed file; the look after that
        # finds the new file.
        code.write('500000 100 three\n')
        for _ in range(3):
            time.sleep(0.05)
            code.now()
        code.child.end()
        os.unlink(code.path)
        got = code.functions(folder)
        equal((got['one'], got['three'] > 0, sum(got.values())), (1, True, 5))
        assert got['two'] > 0, f'{got}'
    finally:
        code.end()


@case
def perf_map_written_anew(variant, folder):
    """perf-map that is written anew from its beginning: what is the same is taken once"""
    lines = ''.join(f'{0x700000 + 256 * i:x} 100 f{i}\n' for i in range(50))
    code = MadeCode(variant)
    try:
        code.write('500000 100 one\n' + lines)
        code.now()
        code.write('500000 100 two\n' + lines, how='w')
        code.now()
        equal(code.driver.do('perfmap', 'p'), ['52'])
        code.write('500000 100 three\n', how='w')
        code.now()
        equal(code.driver.do('perfmap', 'p'), ['53'])
        equal(code.functions(folder), {'one': 1, 'two': 1, 'three': 1})
    finally:
        code.end()


@case
def large_perf_maps(variant, _folder):
    """perf-maps of many processes: bounded memory for all of them, and each has some"""
    if variant != 'native':
        raise Skip('sanitizers need more memory than what they look at')
    child = Child('sleep', '1000')
    path = f'/tmp/perf-{child.pid}.map'
    driver = Driver(variant)
    try:
        with open(path, 'w', encoding='utf-8') as file:
            file.write('1000 10 first\n')
            for _ in range(100):
                file.write('2000 10 x\n' * 30000)
        sizes = []
        for i in range(5):
            driver.do('proc', f'p{i}', child.pid)
            sizes.append(int(driver.do('perfmap', f'p{i}')[0]))
            equal(driver.lookup(f'p{i}', 0x1001)[0].function, 'first')
        assert sum(sizes) < 3000000 and min(sizes) > 1000, f'{sizes}'
        for i in range(5, 45):
            driver.do('proc', f'p{i}', child.pid)
            sizes.append(int(driver.do('perfmap', f'p{i}')[0]))
        assert sum(sizes) < 3000000, f'{sizes}'
        # The memory that a file took is given back when it is read anew.
        again = [int(driver.do('perfmap', 'p0')[0]) for i in range(10)]
        assert min(again) > 100000, f'{again} {sizes}'
        equal(set(driver.do('excess')), {f'1\t{path}'})
    finally:
        child.end()
        os.unlink(path)
    driver.close()


SWAP_C = '''\
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		void *lib = dlopen(argv[i], RTLD_NOW);

		printf("%lx\\n", (long)dlsym(lib, "entry"));
		fflush(stdout);
		getchar();
		dlclose(lib);
	}
	return argc > 9;
}
'''


@case
def reused_range(variant, folder):
    """addresses of a closed library keep its names after another took their place"""
    libs = []
    for name in ('one', 'two'):
        text = (f'int {name}_inner(int x) {{ return x; }} '
                f'int entry(int x) {{ return {name}_inner(x); }}')
        libs.append(compile_c(folder, text, f'lib{name}.so', ['-shared', '-fPIC']))
    swap = compile_c(folder, SWAP_C, 'swap')
    child = Child(swap, *libs)
    driver = Driver(variant)
    driver.do('proc', 'p', child.pid)
    driver.do('type', 'samples', 'count')
    addrs = []
    try:
        for lib in libs:
            elf = Elf(lib)
            name = os.path.basename(lib)[3:6]
            entry = int(child.line(), 16)
            addrs.append(entry + elf.symbols[f'{name}_inner'] - elf.symbols['entry'])
            driver.do('live', 'p')
            equal(driver.do('find', 'p', hex(entry))[0].split('\t')[2:],
                  ['file', os.path.basename(lib)])
            driver.do('sample', 'p', 1, 'swap', 0, 0, 1, f'{addrs[-1]:#x}p')
            child.go()
        child.process.wait()
    finally:
        child.end()
    if addrs[0] != addrs[1]:
        raise Skip('the loader did not use the range again')
    driver.do('write', f'{folder}/out', 'folded')
    equal(open(f'{folder}/out', encoding='utf-8').read(), 'swap;one_inner 1\nswap;two_inner 1\n')
    driver.close()


@case
def mmap_events(variant, folder):
    """mappings added and removed one by one: newest wins, parts are cut"""
    driver = open_proc(variant)

    def where(addr):
        return driver.do('find', 'p', hex(addr))[0].split('\t')

    driver.do('map', 'p', '0x10000', '0x20000', 0, '/a')
    driver.do('map', 'p', '0x14000', '0x16000', 0, '/b')
    equal([where(a)[3] for a in (0x13fff, 0x14000, 0x15fff, 0x16000)], ['a', 'b', 'b', 'a'])
    equal(where(0x16000)[:2], ['16000', '20000'])
    driver.do('unmap', 'p', '0x12000', '0x15000')
    equal([where(a)[3] for a in (0x11fff, 0x15000)], ['a', 'b'])
    # The mapping that was there last is still found until something else is mapped there.
    equal([where(a)[3] for a in (0x12000, 0x14000)], ['a', 'b'])
    driver.do('map', 'p', '0x12000', '0x13000', 0, '')
    equal(where(0x12000)[2:], ['anon', '[anon]'])
    equal(where(0x30000)[2:], ['none', '[unknown]'])
    driver.do('fork', 'child', 'p', 0)
    driver.do('unmap', 'child', 0, '0xffffffffffffffff')
    equal(driver.do('find', 'child', '0x15000')[0].split('\t')[2], 'none')
    equal(where(0x15000)[3], 'b')
    assert driver.ask('map', 'p', '0x2000', '0x2000', 0, '/c')[1]
    assert driver.ask('map', 'p', '0x3000', '0x2000', 0, '/c')[1]
    # Compares many mappings in random order with a plain list.
    rand = random.Random(5)
    paint = {}
    for i in range(600):
        start = rand.randrange(1000)
        end = start + rand.randrange(1, 30)
        driver.do('map', 'p', hex((start + 0x1000) << 12), hex((end + 0x1000) << 12), 0, f'/f{i}')
        for page in range(start, end):
            paint[page] = f'f{i}'
    for page, name in paint.items():
        equal(where((page + 0x1000) << 12)[3], name)
    driver.close()


def resident(driver):
    """Returns the memory that a driver has, in MiB."""
    with open(f'/proc/{driver.process.pid}/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') >> 20


@case
def mapped_over_and_over(variant, folder):
    """what is mapped over and over takes memory only where addresses were found in it"""
    if variant != 'native':
        raise Skip('sanitizers need more memory than what they look at')
    maps = f'{folder}/maps'
    driver = open_proc(variant)
    driver.do('type', 'samples', 'count')
    driver.do('map', 'p', '0x1000', '0x2000', 0, '/bin/first')
    driver.do('sample', 'p', 1, 'x', 0, 0, 1, '0x1010p')
    before = resident(driver)
    for turn in range(120):
        with open(maps, 'w', encoding='utf-8') as file:
            file.writelines(f'{(i + 1) << 13:08x}-{((i + 1) << 13) + 4096:08x} r-xp 00000000 '
                            f'08:01 {turn + 1}  /l{i & 7}\n' for i in range(10000))
        equal(driver.do('maps', 'p', maps), ['10000'])
    grown = resident(driver) - before
    assert grown < 40, f'{grown} MiB'
    equal(driver.do('find', 'p', '0x4010')[0].split('\t')[3], 'l1')
    for i in range(300):
        path = f'/{i}{"/long" * 790}'
        driver.do('map', 'p', '0x8000000', '0x8001000', 0, path)
    equal(driver.do('find', 'p', '0x8000010')[0].split('\t')[2:], ['anon', '[anon]'])
    driver.do('write', f'{folder}/out', 'perf')
    with open(f'{folder}/out', encoding='utf-8') as file:
        equal(file.read().count('[first+0x10]'), 1)
    driver.close()


@case
def maps_text(variant, folder):
    """a maps text with odd names, garbage, and cut at every byte"""
    # The last line has no end: the text was cut in it.
    text = (b'00400000-00401000 r-xp 00000000 08:01 11  /bin/with space  and end \n'
            b'00500000-00501000 r--p 00000000 08:01 11  /bin/not executable\n'
            b'00600000-00601000 r-xp 00002000 08:01 12  /bin/br\\012eak\n'
            b'00700000-00701000 rwxp 00000000 00:00 0\n'
            b'garbage\n\n\xff\xff\xff\n700000-6fffff r-xp 0 0:0 0\n'
            b'g00000-900000 r-xp 0 0:0 0 /x\n'
            b'00800000-00801000 r-xp 00000000 08:01 13  /tmp/gone (deleted)\n'
            b'00900000-00901000 r-xp 00000000 00:01 14  /memfd:jit cache (deleted)\n'
            b'00950000-00960000 r-xp 00000000 00:01 15  ' + b'/very' * 2000 + b'\n'
            b'7fff00000000-7fff00001000 r-xp 00000000 00:00 0  [stack]\n'
            b'00400800-00401800 r-xp 00000000 08:01 11  /overlaps\n'
            b'00a00000-00a01000 r-xp 00000000 08:01 11  /cut in the mi')
    path = f'{folder}/maps'

    def load(data):
        with open(path, 'wb') as file:
            file.write(data)
        return int(driver.do('maps', 'p', path)[0])

    driver = open_proc(variant)
    equal(load(text), 7)
    for addr, kind, name in ((0x400000, 'file', 'with space  and end '),
                             (0x600000, 'file', 'br?eak'), (0x700000, 'anon', '[anon]'),
                             (0x800000, 'file', 'gone'), (0x900000, 'anon', 'memfd:jit cache'),
                             (0x7fff00000000, 'anon', '[stack]'), (0x401000, 'none', '[unknown]'),
                             (0x500000, 'none', '[unknown]'), (0xa00000, 'none', '[unknown]')):
        equal(driver.do('find', 'p', hex(addr))[0].split('\t')[2:], [kind, name], hex(addr))
    equal(driver.lookup('p', 0x600123)[0].function, '[br?eak+0x2123]')
    for cut in list(range(0, 700)) + list(range(700, len(text), 97)):
        assert 0 <= load(text[:cut]) <= 7
    driver.close()


@case
def maps_keep_identity(variant, folder):
    """a mapping that is still there is the same mapping after an update"""
    maps = f'{folder}/maps'

    def load(*lines):
        with open(maps, 'w', encoding='utf-8') as file:
            file.writelines(line + '\n' for line in lines)
        driver.do('maps', 'p', maps)

    one = '00400000-00401000 r-xp 00000000 08:01 11  /bin/one'
    driver = open_proc(variant)
    driver.do('type', 'samples', 'count')
    for lines in ([one], [one + ' (deleted)', '00500000-00501000 r-xp 00000000 08:01 12  /bin/two'],
                  [one]):
        load(*lines)
        driver.do('sample', 'p', 1, 'x', 0, 0, 1, '0x400010p,0x500010p')
    driver.do('write', f'{folder}/out', 'perf')
    text = open(f'{folder}/out', encoding='utf-8').read()
    # Two records: one before /bin/two was mapped, and one since; its address keeps its name.
    equal(text.count(' samples: '), 2)
    equal(text.count('[two+0x10]'), 1)
    driver.close()


@case
def wrong_build_id(variant, folder):
    """a file with another build id than was mapped is not used"""
    elf = Elf(compile_c(folder, flags=['-Wl,--build-id']))
    ident = build_id(elf.path)
    for given, want in ((ident, 'hidden'), ('00' * 20, None), (ident[:-2], None)):
        driver = open_proc(variant)
        elf.map(driver, 'p', build_id=[given])
        frame = driver.lookup('p', elf.addr('hidden', 1))[0]
        equal(frame.function if frame.resolved else None, want, given)
        equal(frame.build_id, given)
        driver.close()


@case
def truncated_elf(variant, folder):
    """an ELF file cut anywhere gives an answer"""
    elf = Elf(compile_c(folder, flags=['-g']))
    data = open(elf.path, 'rb').read()
    os.makedirs(f'{folder}/cut')
    cuts = sorted({0, 1, 4, 16, 63, 64, 65, 100, *range(120, len(data), len(data) // 60)})
    driver = open_proc(variant)
    for i, cut in enumerate(cuts):
        path = f'{folder}/cut/{i}'
        with open(path, 'wb') as file:
            file.write(data[:cut])
        base = 0x10000000 * (i + 1)
        elf.map(driver, 'p', base, path)
        for symbol in ('outermost', 'hidden', 'main'):
            assert driver.lookup('p', elf.addr(symbol, 2, base))[-1].function
    driver.close()


@case
def damaged_elf(variant, folder):
    """ELF files with flipped bytes cost bounded time and do no harm"""
    elf = Elf(compile_c(folder, flags=['-g']))
    data = open(elf.path, 'rb').read()
    sections = [(int(f[0], 16), int(f[1], 16)) for f in (
        line.split(']', 1)[1].split()[3:5] for line in run('readelf', '-SW', elf.path).splitlines()
        if '] .debug' in line or '] .symtab' in line or '] .strtab' in line
        or '] .eh_frame' in line or '] .note' in line)]
    assert len(sections) > 6
    rand = random.Random(11)
    os.makedirs(f'{folder}/bad')
    used = 0
    for batch in range(6):
        driver = open_proc(variant)
        for i in range(40):
            bad = bytearray(data)
            for _ in range(rand.choice((1, 3, 30))):
                where = rand.choice(sections + [(0, 64), (64, 600), (len(data) - 2000, 2000)])
                bad[where[0] + rand.randrange(where[1])] = rand.randrange(256)
            path = f'{folder}/bad/{batch}-{i}'
            with open(path, 'wb') as file:
                file.write(bad)
            base = 0x10000000 * (i + 1)
            elf.map(driver, 'p', base, path)
            for symbol in ('outermost', 'hidden', 'main', '_start'):
                for offset in (0, 3, 7):
                    assert driver.lookup('p', elf.addr(symbol, offset, base))[-1].function
        used += driver.cpu()
        driver.close()
    assert used < 120


@case
def packed_debug_bomb(variant, folder):
    """compressed sections that claim to be huge are left alone"""
    elf = Elf(compile_c(folder, flags=['-g', '-gz=zlib']))
    where = [int(line.split(']', 1)[1].split()[3], 16) for line in
             run('readelf', '-SW', elf.path).splitlines() if '] .debug_line ' in line
             or '] .debug_info' in line][0]
    data = bytearray(open(elf.path, 'rb').read())
    equal(struct.unpack_from('<I', data, where)[0], 1)      # ELFCOMPRESS_ZLIB
    for size in (1 << 40, (1 << 64) - 1, 1):
        struct.pack_into('<Q', data, where + 8, size)
        path = f'{folder}/bomb{size}'
        with open(path, 'wb') as file:
            file.write(data)
        driver = open_proc(variant)
        elf.map(driver, 'p', path=path)
        frames = driver.lookup('p', elf.addr('hidden', 2))
        equal([(f.function, f.line) for f in frames], [('hidden', 0)])
        driver.close()


@case
def loops_in_debug_info(variant, folder):
    """sibling references that loop end, they do not hang"""
    elf = Elf(compile_c(folder, CPP, flags=['-gdwarf-4'], compiler='g++', suffix='.cc'))
    info = [line.split(']', 1)[1].split()[3:5] for line in
            run('readelf', '-SW', elf.path).splitlines() if '] .debug_info' in line][0]
    offset, size = int(info[0], 16), int(info[1], 16)
    data = bytearray(open(elf.path, 'rb').read())
    # References within a unit have four bytes: each value that could refer to a sibling is changed
    # to refer to the first entry.
    for where in range(offset + 12, offset + size - 4):
        value = struct.unpack_from('<I', data, where)[0]
        here = where - offset
        if here < value < here + 2000:
            struct.pack_into('<I', data, where, 11)
    with open(f'{folder}/loop', 'wb') as file:
        file.write(data)
    driver = open_proc(variant)
    elf.map(driver, 'p', path=f'{folder}/loop')
    for addr in range(elf.symbols['_start'], elf.symbols['_fini'], 16):
        assert driver.lookup('p', elf.BASE + addr)[0].function
    assert driver.cpu() < 30
    driver.close()


@case
def no_file_at_all(variant, folder):
    """a mapped pipe, folder, missing or empty file names only the place"""
    os.mkfifo(f'{folder}/pipe')
    open(f'{folder}/empty', 'wb').close()
    driver = open_proc(variant)
    for i, name in enumerate((f'{folder}/pipe', folder, f'{folder}/none', f'{folder}/empty')):
        driver.do('map', 'p', hex(0x100000 * (i + 1)), hex(0x100000 * (i + 1) + 4096), 4096, name)
        equal(driver.lookup('p', 0x100000 * (i + 1) + 5)[0].function,
              f'[{os.path.basename(name)}+0x1005]')
    driver.close()


@case
def vdso(variant, folder):
    """the vdso of a living and of a dead process"""
    child = Child(sys.executable, '-c', 'print("ready", flush=True)\ninput()')
    try:
        child.line()    # it has executed its program
        maps = open(f'/proc/{child.pid}/maps', encoding='utf-8').read()
        line = [m for m in maps.splitlines() if m.endswith('[vdso]')]
        if not line:
            raise Skip('this kernel has no vdso')
        start, end = [int(x, 16) for x in line[0].split()[0].split('-')]
        with open(f'/proc/{child.pid}/mem', 'rb') as mem, open(f'{folder}/vdso', 'wb') as out:
            mem.seek(start)
            out.write(mem.read(end - start))
        symbols = {f[2].split('@')[0]: int(f[0], 16) for f in (
            x.split() for x in run('nm', '-D', f'{folder}/vdso').splitlines()) if len(f) == 3}
        name = [n for n in symbols if 'clock_gettime' in n and n.startswith('__')][0]
        driver = Driver(variant)
        driver.do('proc', 'p', child.pid)
        driver.do('live', 'p')
    finally:
        child.end()
    shown = driver.lookup('p', start + symbols[name] + 1)[0]
    assert shown.function in symbols and symbols[shown.function] == symbols[name], shown.function
    with open(f'{folder}/maps', 'w', encoding='utf-8') as file:
        file.write(maps)
    driver.do('proc', 'dead', child.pid)
    driver.do('maps', 'dead', f'{folder}/maps')
    equal(driver.lookup('dead', start + symbols[name] + 1)[0].function, shown.function)
    equal(driver.lookup('dead', start + 1)[0].function, '[vdso+0x1]')
    driver.close()


def kernel_functions():
    """Returns {address: name} of some functions, with each address's first name, in no order."""
    ret = {}
    with open('/proc/kallsyms', encoding='ascii') as file:
        for line in file:
            address, kind, name = line.split()[:3]
            if kind in 'tTwW' and int(address, 16) >> 63:
                ret.setdefault(int(address, 16), name)
    ret = list(ret.items())
    return dict(random.Random(1).sample(ret, min(len(ret), 2000)))


@case
def functions_of_the_kernel(variant, _folder):
    """the kernel's functions by its answers, and by its list where it may not be asked"""
    if not kernel_names():
        raise Skip('the kernel hides its addresses')
    if os.geteuid():
        raise Skip('needs root')
    functions = kernel_functions()
    for through in (), ('setpriv', '--bounding-set=-bpf,-sys_admin'):
        driver = open_proc(variant, option='kernel', through=through)
        wrong = {hex(address): (name, found) for address, name in functions.items()
                 if (found := driver.lookup('p', address)[0].function) != name}
        # A BPF program or a module may be gone by now.
        assert len(wrong) < 20, (through, wrong)
        folder = f'/proc/{driver.process.pid}/fd'
        asked = 'anon_inode:bpf-prog' in [os.readlink(f'{folder}/{fd}') for fd in
                                          os.listdir(folder)]
        driver.close()
        if not through and not asked:
            raise Skip('the kernel cannot be asked here')
        equal(asked, not through)


WAIT_C = '''\
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int landmark(int x) { return x + getpid(); }
int main(void)
{
	printf("%lx %d\\n", (long)landmark, landmark(1));
	fflush(stdout);
	return getchar();
}
'''


@case
def other_root(variant, folder):
    """files below another root, also after the process's death"""
    if os.geteuid():
        raise Skip('needs root')
    root = f'{folder}/root'
    os.makedirs(f'{root}/bin')
    os.makedirs(f'{root}/tmp')
    shutil.move(compile_c(folder, WAIT_C, 'real', ['-static']), f'{root}/bin/real')
    # An absolute link must be followed inside that root; in the root of this process it leads
    # nowhere.
    os.symlink('/bin/real', f'{root}/bin/link')
    child = Child('chroot', root, '/bin/link')
    try:
        addr = int(child.line().split()[0], 16)
        with open(f'{root}/tmp/perf-{child.pid}.map', 'w', encoding='utf-8') as file:
            file.write('100 10 made in a container\n')
        maps = open(f'/proc/{child.pid}/maps', encoding='utf-8').read()
        maps = maps.replace('/bin/real', '/bin/link').replace(root, '')
        with open(f'{folder}/maps', 'w', encoding='utf-8') as file:
            file.write(maps)
        driver = Driver(variant)
        driver.do('proc', 'p', child.pid)
    finally:
        child.end()
    driver.do('maps', 'p', f'{folder}/maps')
    equal(driver.lookup('p', addr + 1)[0].function, 'landmark')
    equal(driver.lookup('p', 0x105)[0].function, 'made in a container')
    driver.close()


def put_debug(path, source, owner):
    """Makes a debug file of that source, with the build id of the test's program."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    made = compile_c(os.path.dirname(path), source, 'made', ['-static', '-g', WAIT_ID])
    run('objcopy', '--only-keep-debug', made, path)
    os.chown(path, owner, owner)


WAIT_ID = '-Wl,--build-id=0x' + 'ab' * 20


@case
def debug_in_another_root(variant, folder):
    """debug files below another root: after ours, and only if their owner could change the file"""
    if os.geteuid():
        raise Skip('needs root')
    root, debug, name = f'{folder}/root', f'{folder}/debug', f'.build-id/ab/{"ab" * 19}.debug'
    prog, there, here = f'{root}/bin/real', f'{root}{debug}/{name}', f'{debug}/{name}'
    false = WAIT_C.replace('landmark', 'nonsense')
    os.makedirs(f'{root}/bin')
    shutil.move(compile_c(folder, WAIT_C, 'real', ['-static', WAIT_ID]), prog)
    run('strip', '--strip-all', prog)
    child = Child('chroot', root, '/bin/real')
    try:
        addr = int(child.line().split()[0], 16)

        def named(owner, of_debug):
            os.chown(prog, owner, owner)
            put_debug(there, false, of_debug)
            driver = Driver(variant, debug)
            driver.do('proc', 'p', child.pid)
            driver.do('live', 'p')
            frame = driver.lookup('p', addr + 1)[0]
            driver.close()
            return frame.resolved and frame.function

        equal(named(0, 12345), False, "another user's")
        equal(named(12346, 12345), False, "another user's")
        equal(named(12345, 12345), 'nonsense', 'that of who has the file')
        equal(named(12345, 0), 'nonsense', "root's")
        put_debug(here, WAIT_C, 0)
        equal(named(12345, 12345), 'landmark', 'that which is here')
    finally:
        child.end()


@case
def debug_file_of_an_image(variant, folder):
    """an image in memory, as a process can write its vdso, that wants more from a file"""
    path = compile_c(folder, flags=['-g', '-Wl,--build-id'])
    with open(f'{folder}/link', 'wb') as file:
        file.write(b'/nonexistent/file\0' + bytes(20))
    run('objcopy', f'--add-section=.gnu_debugaltlink={folder}/link', path)
    elf, driver = Elf(path), open_proc(variant)
    driver.do('image', 'p', '0x10000000', '0x10100000', path)
    frame = driver.lookup('p', 0x10000000 + elf.symbols['hidden'])[0]
    equal((frame.function, frame.resolved), ('hidden', True))
    driver.close()


@case
def deleted_file(variant, folder):
    """a program whose file was deleted or replaced while it runs"""
    path = compile_c(folder, WAIT_C)
    child = Child(path)
    try:
        addr = int(child.line().split()[0], 16)
        os.unlink(path)
        compile_c(folder, 'int main(void) { return 0; }')
        driver = Driver(variant)
        driver.do('proc', 'p', child.pid)
        driver.do('live', 'p')
        frame = driver.lookup('p', addr + 1)[0]
        equal(frame.module, 'prog')
        if os.geteuid() == 0:
            equal(frame.function, 'landmark')
        else:
            equal(frame.resolved, False)
        driver.close()
    finally:
        child.end()


@case
def python_itself(variant, _folder):
    """Debian's python3 resolves to its C functions"""
    path = '/usr/bin/python3'
    if not os.path.exists(path):
        raise Skip('no /usr/bin/python3 here')
    child = Child(path, '-c', 'import sys\nprint(1, flush=True)\nsys.stdin.read()')
    try:
        child.line()
        maps = [m.split() for m in open(f'/proc/{child.pid}/maps', encoding='utf-8')]
        real = os.path.realpath(path)
        start = min(int(m[0].split('-')[0], 16) - int(m[2], 16)
                    for m in maps if m[-1] == real)
        fixed = 'EXEC' in run('readelf', '-hW', real)
        driver = Driver(variant)
        driver.do('proc', 'p', child.pid)
        driver.do('live', 'p')
        functions = [line.split() for line in run('nm', '-D', '--defined-only', real).splitlines()]
        checked = 0
        for value, kind, name in functions:
            if kind not in 'Tt' or not name.startswith('PyObject_'):
                continue
            addr = int(value, 16) + (0 if fixed else start)
            frame = driver.lookup('p', addr + 1)[-1]
            equal(frame.offset, 1)
            same = [n for v, _, n in functions if v == value]
            assert frame.function in same, (frame.function, name)
            checked += 1
        assert checked > 20, checked
        driver.close()
    finally:
        child.end()


@case
def split_dwarf(variant, folder):
    """debug information in .dwo files: names and lines, nothing foreign is opened"""
    source = INLINE_C
    elf = Elf(compile_c(folder, source, flags=['-g', '-gsplit-dwarf']))
    for name in os.listdir(folder):
        if name.endswith('.dwo'):
            os.unlink(f'{folder}/{name}')
            os.mkfifo(f'{folder}/{name}')     # opening it would hang
    driver = open_proc(variant)
    elf.map(driver, 'p')
    frame = driver.lookup('p', elf.addr('hidden', 2))[0]
    equal(frame.function, 'hidden')
    equal(os.path.basename(frame.file), 'prog.c')
    assert frame.line in range(line_of(source, 'int hidden'), line_of(source, 'int hidden') + 5)
    driver.close()


if __name__ == '__main__':
    sys.exit(main())
