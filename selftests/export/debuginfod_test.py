#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names from servers of debug files: Debian's debuginfod, and servers that lie.

All of them listen on the loopback interface only.
"""

import contextlib
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
from cases import (Driver, Elf, build_id, case, equal, main, need, run)  # noqa: E402

SOURCE = '''\
volatile int sink;
static __attribute__((noipa)) void hidden(int x) { sink += x; }
int main(void) { hidden(2); return 0; }
'''
PATIENCE = 450      # seconds, for a server that has to start on a busy machine


def make_program(folder):
    """Builds a stripped program; its symbols and its debug file are elsewhere."""
    source = os.path.join(folder, 'prog.c')
    with open(source, 'w', encoding='ascii') as file:
        file.write(SOURCE)
    whole = os.path.join(folder, 'whole')
    run('gcc', '-O2', '-g', '-Wl,--build-id', '-o', whole, source)
    served = os.path.join(folder, 'served')
    os.mkdir(served)
    run('objcopy', '--only-keep-debug', whole, os.path.join(served, 'prog.debug'))
    elf = Elf(whole)
    elf.path = os.path.join(folder, 'prog')
    shutil.copy(whole, elf.path)
    run('strip', elf.path)
    return elf


@contextlib.contextmanager
def asking(folder, url, timeout=PATIENCE):
    """A driver that asks that server, with a cache of its own."""
    cache = os.path.join(folder, 'cache')
    shutil.rmtree(cache, ignore_errors=True)
    values = {'DEBUGINFOD_URLS': url, 'DEBUGINFOD_CACHE_PATH': cache,
              'DEBUGINFOD_TIMEOUT': str(timeout), 'DEBUGINFOD_RETRY_LIMIT': '1'}
    before = dict(os.environ)
    os.environ.update(values)
    os.environ.pop('http_proxy', None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def hidden_name(variant, elf, loaded=True):
    """Returns the name of the static function, as the library finds it.

    loaded: whether the driver must have loaded libdebuginfod then, which costs time and memory."""
    driver = Driver(variant, '/nonexistent')
    driver.do('proc', 'p', 0)
    elf.map(driver, 'p')
    frame = driver.lookup('p', elf.addr('hidden'))[-1]
    with open(f'/proc/{driver.process.pid}/maps', encoding='utf-8') as maps:
        equal('/libdebuginfod' in maps.read(), loaded, 'libdebuginfod is loaded')
    driver.close()
    return frame.function, os.path.basename(frame.file)


UNNAMED = '[prog+'


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def has_file(port, name):
    """Returns whether the server has the file yet. Raises an error if there is no server."""
    url = f'http://127.0.0.1:{port}/buildid/{name}/debuginfo'
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PATIENCE):
            return True
    except urllib.error.HTTPError:
        return False


@contextlib.contextmanager
def debuginfod(folder, name):
    """Debian's server for a folder, when it has read it: its address."""
    deadline = time.monotonic() + PATIENCE
    while True:
        port = free_port()
        with open(os.path.join(folder, 'log'), 'wb') as log, subprocess.Popen(
                ['debuginfod', '-F', '-p', str(port), '-d', ':memory:',
                 os.path.join(folder, 'served')], stdout=log, stderr=log) as server:
            try:
                while server.poll() is None:
                    with contextlib.suppress(urllib.error.URLError, OSError):
                        if has_file(port, name):
                            yield f'http://127.0.0.1:{port}'
                            return
                    if time.monotonic() > deadline:
                        raise TimeoutError('debuginfod does not serve what it was given')
                    time.sleep(0.2)
            finally:
                server.terminate()
        if time.monotonic() > deadline:     # another program may have taken the port
            raise TimeoutError('debuginfod does not start')


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers as the server's fields say, and counts the requests."""

    def do_GET(self):       # pylint: disable=invalid-name
        self.server.asked += 1
        if self.server.content is None:
            self.server.released.wait()
            return
        self.send_response(200)
        self.send_header('Content-Length', str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *_args):      # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def liar(content):
    """A server that always answers that; never, if it is None."""
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Answer)
    server.content, server.asked, server.released = content, 0, threading.Event()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f'http://127.0.0.1:{server.server_address[1]}', server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@case
def from_debuginfod(variant, folder):
    """a debug file of Debian's debuginfod gives names and lines"""
    need('debuginfod')
    elf = make_program(folder)
    with debuginfod(folder, build_id(elf.path)) as url, asking(folder, url):
        equal(hidden_name(variant, elf), ('hidden', 'prog.c'))


@case
def nobody_is_asked(variant, folder):
    """without DEBUGINFOD_URLS the library is not loaded, and the cache is not made"""
    elf = make_program(folder)
    with asking(folder, ''):
        assert hidden_name(variant, elf, loaded=False)[0].startswith(UNNAMED)
        assert not os.path.exists(os.environ['DEBUGINFOD_CACHE_PATH'])


@case
def wrong_files(variant, folder):
    """what a server sends is not taken if it is another file, or none"""
    elf = make_program(folder)
    with open('/proc/self/exe', 'rb') as file:
        other = file.read()
    for content in other, b'', b'\x7fELF' + b'\xff' * 4096:
        with liar(content) as (url, server), asking(folder, url):
            assert hidden_name(variant, elf)[0].startswith(UNNAMED)
            assert server.asked


@case
def silent_server(variant, folder):
    """a server that never answers costs what DEBUGINFOD_TIMEOUT says"""
    elf = make_program(folder)
    with liar(None) as (url, server), asking(folder, url, timeout=1):
        assert hidden_name(variant, elf)[0].startswith(UNNAMED)
        assert server.asked


if __name__ == '__main__':
    sys.exit(main())
