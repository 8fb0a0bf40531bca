#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The Go package go/shstk: its own tests, built and run by this machine's Go.

On amd64, with the race detector, with cgo, and on arm64 by user-mode emulation; its
benchmarks, each once; go vet and gofmt. Prints KTAP; 4: there is no Go here.

usage: package_test [--suites | --build]

--suites: by all releases that selftests/go/toolchains fetched, too, and ten million traces.
--build: only builds what is run, so that a later run finds it.
"""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common  # pylint: disable=wrong-import-position
from package import CGO, FIRST_ARM64, GO, PACKAGE, Toolchain, arm64_tool  # pylint: disable=wrong-import-position

SUITES = '--suites' in sys.argv
MANY = 'TestTracesOfManyGoroutinesAreTheRuntimes'


def run(command):
    """What it says if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.stdout[-3000:] or f'exit code {done.returncode}' if done.returncode else ''


def tests(tool, kind, *arguments):
    """A whole test program."""
    prefix = common.emulator() if kind == 'arm64' else []
    return run(prefix + [tool.build(kind), '-test.v', *arguments])


def one_test(tool, kind, name, traces):
    more = [f'-traces={traces}'] if name == MANY else []
    return run([tool.build(kind), '-test.v', '-test.timeout=60m', f'-test.run=^{name}$', *more])


def benchmarks(tool):
    """Each of them once; one that is missing is a failure."""
    path = tool.build('native')
    done = subprocess.run([path, '-test.run=^$', '-test.bench=.', '-test.benchtime=1x',
                           '-rounds=1'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    for name in 'BenchmarkCallers/fixed/32/shstk', 'BenchmarkRatio/osc/512':
        if name not in done.stdout:
            return f'no {name}:\n{done.stdout[-3000:]}'
    return f'exit code {done.returncode}' if done.returncode else ''


def vet(tool, arch, cgo):
    """What cgo is needed for is left out without it, and the rest is whole then."""
    if cgo and not shutil.which(tool.compiler(arch)):
        raise common.Skip(f'no {tool.compiler(arch)}')
    return tool.go('vet', './...', arch=arch, cgo=cgo)


def gofmt(tool):
    done = subprocess.run([os.path.join(tool.root, 'bin', 'gofmt'), '-l', '.'], cwd=GO,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout or (f'exit code {done.returncode}' if done.returncode else '')


def words(name):
    """TestAnyName as words."""
    text = re.sub(r'(?<=.)([A-Z])', lambda m: ' ' + m.group(1).lower(), name[4:])
    return re.sub(r'(runtime|walk)s', r"\1's", text)


def names(kind):
    """The names of the tests in the sources: what is to be run is known before it is built."""
    folder = os.path.join(GO, CGO if kind == 'cgo' else PACKAGE)
    found = []
    for source in sorted(os.listdir(folder)):
        if source.endswith('_test.go') and source != 'system_test.go':
            with open(os.path.join(folder, source), encoding='utf-8') as file:
                found += re.findall(r'^func (Test\w+)\(', file.read(), re.M)
    return found


def on_arm64(tool):
    if not tool:
        raise common.Skip('no Go of 1.21 or later, before which this is runtime.Callers on '
                          'arm64: make check-go fetches some')
    return tests(tool, 'arm64', '-traces=5000', '-goroutines=50')


def cases(tools):
    yield 'sources are formatted', gofmt, (tools[0],)
    for tool in tools:
        head = 'go ' + tool.version
        for arch in 'amd64', 'arm64':
            for cgo in False, True:
                yield f'{head}: go vet has nothing to say, {arch}, {"with" if cgo else "no"} C', \
                    vet, (tool, arch, cgo)
        traces = 10 ** 7 if SUITES and tool in (tools[0], tools[-1]) else 10 ** 5
        for kind in 'native', 'cgo':
            for name in names(kind):
                yield f'{head}: {words(name)}', one_test, (tool, kind, name, traces)
        if common.release(tool.version) < (1, 23):
            yield f'{head}: traces on the system stack are the runtimes', one_test, \
                (tool, 'native', 'TestTracesOnTheSystemStackAreTheRuntimes', 0)
        yield f'{head}: the race detector is content', tests, (tool, 'race', '-traces=20000')
        yield f'{head}: benchmarks run', benchmarks, (tool,)
    for tool in [t for t in tools if common.release(t.version) >= FIRST_ARM64] if SUITES \
            else [arm64_tool(tools)]:
        yield f'arm64{", go " + tool.version if tool else ""}: all of it', on_arm64, (tool,)


def build(tools):
    """Whatever can not be built is said by the test."""
    arm64 = arm64_tool(tools)
    for tool, kind in [(t, k) for t in tools for k in ('native', 'cgo', 'race')] + \
            ([(arm64, 'arm64')] if arm64 else []):
        try:
            tool.build(kind)
        except (RuntimeError, common.Skip) as why:
            print(f'package_test: {kind}: {why}', file=sys.stderr)


def main():
    tools = [Toolchain(*found) for found in common.toolchains(only_native=not SUITES)]
    # Older releases know neither workspaces nor what the package needs.
    tools = [t for t in tools if common.release(t.version) >= (1, 19)]
    if '--build' in sys.argv:
        build(tools)
        return 0
    return common.main(cases(tools) if tools else [])


if __name__ == '__main__':
    sys.exit(main())
