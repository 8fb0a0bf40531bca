#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests `shstk record` of programs that cannot be sampled as others are.

They have another C library, more rights than the recorder, damages, or a root of their own. Prints
KTAP.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import (  # noqa: E402
    BUILD, HERE, LIMIT, NOBODY, Skip, check, main, need_nobody, one_line, test)
from recording import AGENTS, POINTERS, TARGET, TMP, agrees, record, refused, shstk  # noqa: E402

MUSL = os.path.join(HERE, 'target-musl')
# Libraries that are linked into programs, and never preloaded.
LINKED = {os.path.join(BUILD, f'libshstk-{name}.so') for name in ('symbolize', 'go-symbolize', 'crash')}


@test
def another_c_library():
    """programs of musl are sampled, by themselves and as children"""
    for command in [MUSL], ['sh', '-c', f'{MUSL}; exit $?']:
        result = record(*command)
        check(result.status == 4 and result.out == 'hello\n',
              f'{result.status} {result.out} {result.err}')
        agrees(result, 'musl_thread')
        agrees(result, 'musl_child', 'main')


@test
def preloaded_objects_need_what_every_c_library_has():
    """none of them refers to a function that musl lacks"""
    with open(MUSL, 'rb') as file:
        loader = re.search(rb'/[^\0]*/ld-musl-[^\0]*', file.read())[0].decode()

    def symbols(path, *options):
        out = subprocess.run(['nm', '-D', *options, path], capture_output=True,
                             text=True, check=True).stdout
        return [line.split()[-2:] for line in out.splitlines()]

    musl = {name for _, name in symbols(loader, '--defined-only')}
    check('malloc' in musl, 'no symbols of musl')
    for path in set(glob.glob(os.path.join(BUILD, 'libshstk-*.so'))) - LINKED:
        needed = {name.split('@')[0] for kind, name in symbols(path, '--undefined-only')
                  if kind == 'U'}
        check(needed <= musl, f'{path} needs {needed - musl}')


@test
def setuid_target():
    """a set-user-ID program of another user is refused in one line"""
    if os.getuid():
        raise Skip('needs root to make such a file')
    path = os.path.join(TMP, 'setuid')
    shutil.copy(TARGET, path)
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o4755)
    refused(record(path, 'exit', '0'), 125, 'set-user-ID')


@test
def capability_target():
    """a program with file capabilities is refused to an ordinary user by the agent, and perf events end there"""
    need_nobody()
    path = os.path.join(TMP, 'capable')
    shutil.copy(TARGET, path)
    # VFS_CAP_REVISION_2, effective; permitted: CAP_NET_RAW.
    cap = bytes.fromhex('0100000200200000000000000000000000000000')
    try:
        os.setxattr(path, 'security.capability', cap)
    except OSError as err:
        raise Skip(f'no file capabilities in {TMP}: {err.strerror}') from err
    words = '-o', '/dev/null', '--format=folded', '--', path, 'exit', '0'
    refused(shstk('record', '--via=agent', *words, **NOBODY), 125, 'file capabilities')
    run = shstk('record', *words, **NOBODY)
    check('file capabilities' in run.stderr, run.stderr)


@test
def missing_and_unusable_files():
    """missing, not executable, foreign: one line and a shell's status"""
    plain = os.path.join(TMP, 'plain')
    with open(plain, 'w', encoding='ascii') as file:
        file.write('text\n')
    refused(record('/nonexistent/program'), 127, 'not found')
    refused(record('no-such-command-anywhere'), 127, 'not found')
    refused(record(plain), 126, 'not an executable')
    refused(record(TMP), 126, 'not an executable')
    script = os.path.join(TMP, 'script')
    with open(script, 'w', encoding='ascii') as file:
        file.write('#!/nonexistent/interpreter\n')
    os.chmod(script, 0o755)
    refused(record(script), 126, '/nonexistent/interpreter')


@test
def corrupt_programs():
    """truncated and damaged ELF files get one line and no crash"""
    with open(TARGET, 'rb') as file:
        image = file.read()
    path = os.path.join(TMP, 'damaged')
    for size in 5, 40, 64:
        with open(path, 'wb') as file:
            file.write(image[:size])
        os.chmod(path, 0o755)
        refused(record(path), 126, 'not a valid program')
    for at, value in (4, 1), (18, 0x28), (54, 7):
        with open(path, 'wb') as file:
            file.write(image[:at] + bytes([value]) + image[at + 1:])
        os.chmod(path, 0o755)
        run = record(path)
        check(run.status in (125, 126), f'byte {at}: {run.status}')
        one_line(run.err)


@test
def many_variables():
    """20,000 variables are given to a program by a thread with a small stack"""
    for options in AGENTS:
        result = record(POINTERS, 'environment', '20000', options=options)
        check(result.out == '20000 variables\n', f'{options}: {result}')


@test
def after_one_without_memory():
    """a program is followed to the next one, after a call that failed while there was no memory"""
    result = record(TARGET, 'no-room', '0.3', options=['--via=agent'])
    check(result.status == 0, result.err)
    agrees(result, 'after_exec_work')


@test
def without_preload_on_purpose():
    """a program that executes itself again when it finds LD_PRELOAD gets on"""
    script = os.path.join(TMP, 'again')
    for again, put_back in ('unset LD_PRELOAD; exec sh', 0), ('exec env -i sh', 8):
        with open(script, 'w', encoding='ascii') as file:
            file.write(f'echo run; test "$LD_PRELOAD" || exit 7; {again} "$0"\n')
        result = record('sh', script)
        runs = result.out.count('run')
        check(result.status == 7 and runs == put_back + 2, f'{again}: {result}')


@test
def root_folder_of_its_own():
    """where the agent is not to be found the loader does not complain of it"""
    root = os.path.join(TMP, 'root')
    libraries = subprocess.run(['ldd', '/bin/sh'], capture_output=True, text=True, check=True)
    for path in '/bin/sh', *re.findall(r'(/\S+) \(0x', libraries.stdout):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.realpath(path), root + path)
    other = os.path.join(HERE, 'plugin-one.so')
    os.makedirs(root + os.path.dirname(other), exist_ok=True)
    shutil.copy(other, root + other)
    ways = [('chroot', root, '/bin/sh', '-c', 'echo "$LD_PRELOAD"')] + [
        (TARGET, 'root', root, how)
        for how in ('exec', 'execveat', 'number', 'system', 'popen', 'wordexp')]
    for way in ways:
        command = ('unshare', '-r', *way) if os.geteuid() else way
        plain = subprocess.run(command, capture_output=True, text=True, check=False,
                               timeout=LIMIT)
        if plain.returncode:
            raise Skip(f'no root folder of its own: {plain.stderr.strip()}')
        for preload in '', other:
            env = dict(os.environ, LD_PRELOAD=preload)
            for options in AGENTS:
                result = record(*command, options=options, env=env)
                check('ld.so' not in result.err and result.out == preload + '\n',
                      f'{way} {options} {preload}: {result}')


@test
def existing_preload():
    """a program's own LD_PRELOAD is kept"""
    env = dict(os.environ, LD_PRELOAD=os.path.join(HERE, 'plugin-one.so'))
    result = record('sh', '-c', f'grep -c plugin-one /proc/self/maps; '
                    f'{TARGET} burn 0.2', env=env)
    check(int(result.out.split()[0]) > 0, 'not loaded')
    agrees(result, 'burn')


sys.exit(main())
