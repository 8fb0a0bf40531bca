# SPDX-License-Identifier: GPL-2.0-or-later
"""Building the tests and benchmarks of the Go package go/shstk."""

import os
import shutil
import subprocess

import common

GO = os.path.join(common.TOP, 'go')
PACKAGE = './shstk'
CGO = './shstk/internal/cgotest'
# Earlier releases do not move saved frame pointers with the stack on arm64.
FIRST_ARM64 = (1, 21)


class Toolchain:
    """One release of Go, and where it puts what it makes."""

    def __init__(self, version, root):
        self.version = version
        self.root = root
        self.folder = os.path.join(common.WHERE, f'package-{version}')
        self.env = dict(os.environ, GOROOT=root, GOTOOLCHAIN='local', GOFLAGS='-mod=mod',
                        GO111MODULE='on', GOPROXY='off', GOSUMDB='off', GOWORK='off', GOOS='linux',
                        GOCACHE=os.path.join(common.WHERE, 'cache-' + version),
                        CGO_CFLAGS=f'-O2 -g -I{common.TOP}/libshstk',
                        HOME=os.environ.get('HOME', '/'))

    def compiler(self, arch):
        """Of C."""
        if arch == 'arm64':
            return os.environ.get('ARM64', 'aarch64-linux-gnu-') + 'gcc'
        return os.environ.get('CC', 'gcc').split()[0]

    def go(self, *arguments, arch='amd64', cgo=False):
        env = dict(self.env, GOARCH=arch, CGO_ENABLED='1' if cgo else '0')
        if arch == 'arm64':
            env['CC'] = self.compiler(arch)
        done = subprocess.run([os.path.join(self.root, 'bin', 'go'), *arguments], cwd=GO, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode:
            raise RuntimeError(f'go {" ".join(arguments)}: {done.stdout[-3000:]}')
        return done.stdout

    def build(self, kind):
        """The test program of a kind; its path."""
        arch, race, cgo, package = {
            'native': ('amd64', [], False, PACKAGE),
            'race': ('amd64', ['-race'], True, PACKAGE),
            'cgo': ('amd64', [], True, CGO),
            'arm64': ('arm64', [], False, PACKAGE),
        }[kind]
        if cgo and not shutil.which(self.compiler(arch)):
            raise common.Skip('cgo and the race detector need a C compiler')
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, kind)
        self.go('test', '-c', *race, '-o', path, package, arch=arch, cgo=cgo)
        return path


def arm64_tool(tools):
    """The first release of which the assembly for arm64 is."""
    cached = common.toolchains(only_native=False)
    for version, root in [(t.version, t.root) for t in tools] + cached[::-1]:
        if common.release(version) >= FIRST_ARM64:
            return Toolchain(version, root)
    return None
