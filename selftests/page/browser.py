# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's Chromium without a window, controlled by its DevTools protocol.

The protocol is spoken through a pipe, so that nothing but the browser itself is needed. No wait has
a fixed time: a condition is checked again and again, until it holds or LIMIT is over.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ('chromium-headless-shell', 'chromium')
LIMIT = 450      # seconds until the browser counts as hung: it may be very slow
FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
         '--no-first-run', '--no-default-browser-check', '--disable-extensions',
         '--disable-background-networking', '--disable-component-update', '--disable-sync',
         '--mute-audio', '--force-color-profile=srgb', '--font-render-hinting=none',
         '--hide-scrollbars', '--remote-debugging-pipe')
# The codes and texts of keys, without which the browser itself does not act on them.
KEY_CODES = {'Enter': (13, '\r'), 'Escape': (27, ''), 'Tab': (9, ''), 'Backspace': (8, ''),
             'ArrowUp': (38, ''), 'ArrowDown': (40, ''), 'ArrowLeft': (37, ''),
             'ArrowRight': (39, ''), 'Home': (36, ''), 'End': (35, ''), 'PageDown': (34, ''),
             ' ': (32, ' ')}


def find_browser():
    """Returns the path of a browser, or None."""
    for name in PROGRAMS:
        if shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One browser with one page. Complaints of scripts are in self.complaints."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='shstk-browser-')
        self.complaints = []
        self.requests = []
        self.number = 0
        self.rest = b''
        self.process, self.to, self.back = self.start()
        self.session = None
        try:
            self.attach()
        except (OSError, RuntimeError):
            self.process.kill()
            self.close()
            raise

    def attach(self):
        """Opens the page, of which everything is to be told."""
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target,
                                 flatten=True)['sessionId']
        for domain in 'Page', 'Runtime', 'Log', 'Network':
            self.call(f'{domain}.enable')

    def start(self):
        """Runs the browser, which reads from descriptor 3 and writes to 4."""
        read_ours, write_theirs = os.pipe()
        read_theirs, write_ours = os.pipe()
        # The shell moves these to 3 and 4, so they must have other numbers.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (read_theirs, write_theirs)]
        shell = f'exec 3<&{theirs[0]} 4>&{theirs[1]}; exec "$@"'
        env = dict(os.environ, HOME=self.folder.name, XDG_RUNTIME_DIR=self.folder.name)
        process = subprocess.Popen(   # pylint: disable=consider-using-with
            ['/bin/bash', '-c', shell, 'bash', find_browser(), *FLAGS,
             f'--user-data-dir={self.folder.name}/user'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=theirs, env=env, start_new_session=True)
        for fd in read_theirs, write_theirs, *theirs:
            os.close(fd)
        return process, write_ours, read_ours

    def receive(self, end):
        """Returns the next message, or None at the time @end."""
        while b'\0' not in self.rest:
            if not select.select([self.back], [], [], max(end - time.monotonic(), 0))[0]:
                return None
            part = os.read(self.back, 1 << 20)
            if not part:
                raise RuntimeError(f'the browser ended: {self.process.wait()}')
            self.rest += part
        message, self.rest = self.rest.split(b'\0', 1)
        return json.loads(message)

    def call(self, method, **params):
        """Calls a method of the protocol. Returns its result."""
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self.to, data):]
        end = time.monotonic() + LIMIT
        while True:
            answer = self.receive(end)
            if answer is None:
                raise RuntimeError(f'{method}: no answer in {LIMIT} s')
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]["message"]}')
                return answer['result']
            self.take_event(answer)

    def take_event(self, event):
        """Keeps complaints of scripts, and URLs that the page requests."""
        params = event.get('params', {})
        if event.get('method') == 'Runtime.exceptionThrown':
            self.complaints.append(str(params['exceptionDetails']))
        elif event.get('method') == 'Runtime.consoleAPICalled' and \
                params['type'] in ('error', 'warning', 'assert'):
            self.complaints.append(str(params['args']))
        elif event.get('method') == 'Log.entryAdded' and \
                params['entry']['level'] in ('error', 'warning'):
            self.complaints.append(params['entry']['text'])
        elif event.get('method') == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])

    def do(self, script):
        """Runs a script in the page. Returns the value of its last expression."""
        ret = self.call('Runtime.evaluate', expression=script, returnByValue=True,
                        awaitPromise=True)
        if 'exceptionDetails' in ret:
            raise AssertionError(f'{script}: {ret["exceptionDetails"]}')
        return ret['result'].get('value')

    def wait(self, script):
        """Waits until a script's value is true."""
        end = time.monotonic() + LIMIT
        while not self.do(script):
            if time.monotonic() > end:
                raise AssertionError(f'never true: {script}')
            time.sleep(0.02)

    def open(self, url):
        """Opens a page of a profile, and waits until it is drawn."""
        self.call('Page.navigate', url='about:blank')
        self.call('Page.navigate', url=url)
        self.wait('Boolean(document.body && document.body.dataset.ready)')

    def size(self, width, height, scale=1):
        """Sets the window's size in pixels."""
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)
        self.wait(f'innerWidth === {width}')

    def dark(self, on):
        """Sets whether the page is told that the user prefers dark colours."""
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if on else 'light'}])

    def key(self, key):
        """Presses a key and releases it."""
        code, text = KEY_CODES.get(key) or (ord(key.upper()) if key.isalnum() else 0, key)
        for kind in 'keyDown', 'keyUp':
            self.call('Input.dispatchKeyEvent', type=kind, key=key, windowsVirtualKeyCode=code,
                      text=text if kind == 'keyDown' else '')

    def write(self, text):
        for key in text:
            self.key(key)

    def click(self, x, y):
        self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)
        for kind in 'mousePressed', 'mouseReleased':
            self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='left', clickCount=1)

    def move(self, x, y):
        self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)

    def drag(self, start, end, y):
        """Drags the mouse from one place to another."""
        self.move(start, y)
        for kind, x in (('mousePressed', start), ('mouseMoved', end), ('mouseReleased', end)):
            self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='left', clickCount=1)

    def screenshot(self, path):
        data = self.call('Page.captureScreenshot', format='png')['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call('Browser.close')
        except (RuntimeError, OSError):
            pass
        os.close(self.to)
        os.close(self.back)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder.name, ignore_errors=True)
