# SPDX-License-Identifier: GPL-2.0-or-later
"""A server on this machine that takes requests, counts them, and answers as a test says."""

import contextlib
import os
import socket
import ssl
import threading
import time

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
LIMIT = 450     # seconds that a connection may be silent
HELD = []       # sockets at the ports of servers that have ended: no other server gets the same URL


class Request:
    """A request: its line, header lines by their names in small letters, its body, its time."""

    def __init__(self, head, body):
        line, *rest = head.decode('latin-1').split('\r\n')
        self.line = line
        self.headers = {name.lower(): value.strip()
                        for name, _, value in (text.partition(':') for text in rest)}
        self.body = body
        self.time = time.monotonic()


def hold(place):
    """Keeps an address from everybody else, unless somebody has it already."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with contextlib.suppress(OSError):
        held.bind(place)
    HELD.append(held)


def answer(status, body=b'', *headers):
    """Returns a function that answers with a status."""
    lines = [f'HTTP/1.1 {status} Text', f'Content-Length: {len(body)}', *headers, '', '']
    return lambda conn: conn.sendall('\r\n'.join(lines).encode() + body)


def raw(data):
    """Returns a function that sends bytes and closes the connection."""
    def send(conn):
        conn.sendall(data)
        conn.close()
    return send


def silent(conn):
    """Sends nothing, until the other side goes away."""
    while conn.recv(65536):
        pass


def endless(begin, again, seen):
    """Returns a function that sends without end; seen gets "stopped" when the client goes."""
    def send(conn):
        try:
            conn.sendall(begin)
            for _ in range((256 << 20) // len(again)):
                conn.sendall(again)
        except OSError:
            seen.append('stopped')
        conn.close()
    return send


class Server:
    """Listens on the loopback address. The answers are used up one by one; then paths has one for a
    path, or it says 200."""

    def __init__(self, *answers, context=None, paths=None):
        self.answers, self.paths = list(answers), paths or {}
        self.requests = []
        self.context = context
        self.lock = threading.Lock()
        self.threads = []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self.listener.getsockname()[1]}'
        self.url = f'http{"s" if context else ""}://{self.address}'

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        place = self.listener.getsockname()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        hold(place)
        for thread in self.threads:
            thread.join(LIMIT)

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self.talk, args=(conn,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def talk(self, conn):
        conn.settimeout(LIMIT)
        try:
            if self.context:
                conn = self.context.wrap_socket(conn, server_side=True)
            while self.take(conn):
                pass
        except (OSError, ssl.SSLError):
            pass
        conn.close()

    def take(self, conn):
        """Takes one request. False: there is none any more."""
        data = b''
        while b'\r\n\r\n' not in data:
            more = conn.recv(65536)
            if not more:
                return False
            data += more
        head, _, body = data.partition(b'\r\n\r\n')
        request = Request(head, body)
        size = int(request.headers.get('content-length', 0))
        while len(request.body) < size:
            more = conn.recv(65536)
            if not more:
                return False
            request.body += more
        with self.lock:
            self.requests.append(request)
            act = self.answers.pop(0) if self.answers else \
                self.paths.get(request.line.split(' ')[1])
        if act:
            act(conn)
        else:
            conn.sendall(OK)
        return conn.fileno() >= 0


def processes():
    """The command lines of all processes."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                found.append(file.read())
        except OSError:
            pass
    return found
