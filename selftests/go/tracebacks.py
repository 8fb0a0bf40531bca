# SPDX-License-Identifier: GPL-2.0-or-later
"""Building Go programs with go/shstktraceback, and reading the profiles they write."""

import os
import re
import shutil
import subprocess

import common

PATIENCE = 450      # seconds that a command may take at most
LIBRARY = os.path.abspath(common.B)


def go_env(root):
    """Of a Go that builds with the library of this tree and asks no network."""
    return dict(os.environ, GOROOT=root, GOTOOLCHAIN='local', GOFLAGS='-mod=mod -buildvcs=false',
                GOPROXY='off', GOSUMDB='off', GO111MODULE='on', CGO_ENABLED='1',
                GOCACHE=os.path.join(common.WHERE, 'cache-traceback'),
                CGO_CFLAGS=f'-O2 -g -I{common.TOP}/libshstk',
                CGO_LDFLAGS=f'-L{LIBRARY} -Wl,-rpath,{LIBRARY}')


def make_module(folder, *programs):
    """The packages, and folders of selftests/go as programs, as a module of their own."""
    module = os.path.join(folder, 'go')
    shutil.copytree(os.path.join(common.TOP, 'go'), module)
    for name in programs:
        shutil.copytree(os.path.join(common.TOP, 'selftests', 'go', name),
                        os.path.join(module, name))
    return module


def build(root, module, program, tags, out):
    """Builds a program of the module; its path."""
    done = subprocess.run([os.path.join(root, 'bin', 'go'), 'build', '-tags', tags, '-o', out,
                           './' + program], cwd=module, env=go_env(root), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f'{program}: {done.stdout[-2000:]}')
    return out


def traces(root, profile, *programs):
    """A profile's stacks as go tool pprof prints them."""
    out = subprocess.run([os.path.join(root, 'bin', 'go'), 'tool', 'pprof', '-traces', '-unit=ms',
                          *programs, profile], env=go_env(root), stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=True, timeout=PATIENCE).stdout
    return out.split('-----------+')[1:]


def frames_found(root, program, folder, function, depth):
    """Of the program versus: the most frames of a function that a sample has, and the share of
    the time in which samples have as many."""
    profile = os.path.join(folder, 'profile')
    subprocess.run([program, 'profile', profile, function, str(depth)], check=True,
                   timeout=PATIENCE)
    found = {}
    for part in traces(root, profile, program):
        head = re.match(r'-*\n\s*([0-9.]+)ms\s', part)
        if head:
            frames = len(re.findall(rf'\b{function}$', part, re.M))
            found[frames] = found.get(frames, 0) + float(head.group(1))
    most = max(found)
    return most, found[most] / sum(found.values())
