# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading KTAP: what a test program printed and how it ended, as test points.

Used by selftests/run for programs on this machine and by
selftests/guest/run for programs in a guest, so both judge alike.
"""

import collections
import fnmatch
import re
import signal

POINT = re.compile(r'^(\s*)(not )?ok\b[ \t]*(\d+)?[ \t]*(?:-[ \t]+)?(.*)$')
PLAN = re.compile(r'^(\s*)1\.\.(\d+)(?:\s+#\s*SKIP\b\s*(.*))?\s*$', re.I)
DIRECTIVE = re.compile(r'(?:^|\s)#\s*(SKIP|TODO|XFAIL|XPASS)\b:?\s*(.*)$', re.I)
# The older style of the x86 selftests: no KTAP, one line a check.
BRACKET = re.compile(r'^\[(OK|FAIL|SKIP)\]\s*(.*)$')

KSFT_SKIP = 4
WORDS = 10      # lines on each side of a failed point that are kept with it


class Point:
    """One test point: passed, failed or skipped.

    words are what the program printed around it, if it failed; a program may
    say what is wrong before or after the point.
    """

    def __init__(self, status, name, reason=''):
        self.status = status
        self.name = name
        self.reason = reason
        self.words = []
        self.room = WORDS
        self.shown = None   # how many of them were printed

    def line(self, number):
        head = 'not ok' if self.status == 'failed' else 'ok'
        name = self.name.replace('#', '_').strip() or 'unnamed'
        tail = ''
        if self.status == 'skipped':
            tail = ' # SKIP ' + self.reason
        elif self.reason:
            tail = ' # ' + self.reason
        return f'{head} {number} {name}{tail}'


class Parser:
    """Takes a program's output line by line; a level is a nesting depth.

    Tests that are not ours may speak in another style than ktap: "brackets",
    or "exit", where only the exit code counts.
    """

    def __init__(self, program, style='ktap'):
        self.program = program
        self.style = style
        self.points = []
        self.levels = {0: [None, 0, 0]}     # indent: planned, seen, children
        self.bailed = None
        self.last = ''
        self.skip_all = None
        self.recent = collections.deque(maxlen=WORDS)   # since the last point
        self.failed = None      # the last point, if it failed

    def _level(self, indent):
        for deep in [i for i in self.levels if i > indent]:
            self._close(deep)
        return self.levels.setdefault(indent, [None, 0, 0])

    def _close(self, indent):
        planned, seen, _ = self.levels.pop(indent)
        if planned is not None and planned != seen:
            self._add('failed', f'{self.program} subtests',
                      f'planned {planned} tests, ran {seen}')

    def _add(self, status, name, reason=''):
        point = Point(status, name, reason)
        self.failed = None
        if status == 'failed':
            point.words += self.recent
            self.failed = point
        self.points.append(point)
        return point

    def feed(self, line):
        """Return the points this line completes."""
        before = len(self.points)
        self._feed(line)
        if self.points[before:]:
            self.recent.clear()
        elif line.strip():
            self._keep(line.rstrip()[:400])
        return self.points[before:]

    def _keep(self, text):
        self.recent.append(text)
        if self.failed and self.failed.room:
            self.failed.words.append(text)
            self.failed.room -= 1

    def _feed(self, line):
        text = line.rstrip()
        if text.strip():
            self.last = text.strip()
        if text.lstrip().startswith('Bail out!'):
            self.bailed = text.split('!', 1)[1].strip() or 'no reason given'
            return
        if self.style == 'exit':
            return
        if self.style == 'brackets':
            match = BRACKET.match(text.strip())
            if match:
                kind, name = match.groups()
                status = {'OK': 'passed', 'FAIL': 'failed', 'SKIP': 'skipped'}[kind]
                self._add(status, name, 'said by the test' if kind == 'SKIP' else '')
            return
        match = PLAN.match(text)
        if match:
            indent, count, reason = match.groups()
            level = self._level(len(indent.expandtabs()))
            if level[0] is not None and level[0] != int(count):
                self._add('failed', f'{self.program} plan', 'two different plans')
            level[0] = int(count)
            if int(count) == 0 and reason is not None and not indent:
                self.skip_all = reason or 'no reason given'
            return
        match = POINT.match(text)
        if not match:
            return
        indent, negated, number, name = match.groups()
        if number is None and not name:
            return
        width = len(indent.expandtabs())
        had_children = self._children_since(width)
        level = self._level(width)
        level[1] += 1
        status, reason = ('failed' if negated else 'passed'), ''
        found = DIRECTIVE.search(name)
        if found:
            word, reason = found.group(1).upper(), found.group(2)
            name = name[:found.start()].strip() or reason
            if word == 'SKIP':
                status = 'skipped'
                reason = reason or 'no reason given'
            elif word in ('TODO', 'XFAIL'):
                status, reason = 'passed', f'expected failure: {reason}'
        if had_children and status == 'passed':
            return
        self._add(status, name, reason)

    def _children_since(self, width):
        """Do points of deeper levels belong to the point at this width?"""
        return any(i > width and level[1] for i, level in self.levels.items())

    def finish(self, code=None, sig=None, timeout=None, error=None):
        """Return the points that say how the program ended, if not well."""
        before = len(self.points)
        for deep in [i for i in self.levels if i > 0]:
            self._close(deep)
        planned, seen, _ = self.levels[0]
        failed = any(p.status == 'failed' for p in self.points)
        name = self.program
        if error is not None:
            self._add('failed', name, error)
        elif timeout is not None:
            self._add('failed', name, f'hung: no end within {timeout} s')
        elif sig is not None:
            try:
                text = signal.Signals(sig).name
            except ValueError:
                text = '?'
            self._add('failed', name, f'killed by signal {sig} ({text})')
        elif self.bailed is not None and (planned is None or planned != seen):
            self._add('failed', name, f'bailed out: {self.bailed}')
        elif self.skip_all is not None and code in (0, KSFT_SKIP):
            self._add('skipped', name, self.skip_all)
        elif code == KSFT_SKIP and not self.points:
            self._add('skipped', name, self.last.lstrip('# ') or 'no reason given')
        elif planned is not None and planned != seen:
            self._add('failed', name, f'planned {planned} tests, ran {seen}, exit code {code}')
        elif self.style == 'exit':
            if code:
                self._add('failed', name, f'exit code {code}')
            else:
                self._add('passed', name)
        elif not self.points:
            self._add('failed', name, f'printed no test point, exit code {code}')
        elif planned is None and self.style == 'ktap':
            self._add('failed', name, f'printed no plan, exit code {code}')
        elif code not in (0, KSFT_SKIP) and not failed:
            self._add('failed', name, f'exit code {code} although no point failed')
        return self.points[before:]


def totals(points):
    """Counts in the order passed, failed, skipped."""
    return tuple(sum(1 for p in points if p.status == s)
                 for s in ('passed', 'failed', 'skipped'))


class BadList(Exception):
    """A list of known failures that can not be read."""


def read_known(paths):
    """Lines of "WHERE-PATTERN<tab>POINT-PATTERN<tab>WHY"."""
    known = []
    for path in paths:
        with open(path, encoding='utf-8') as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip('\n')
                if not line or line.startswith('#'):
                    continue
                fields = [f for f in line.split('\t') if f]
                if len(fields) != 3:
                    raise BadList(f'{path}:{number}: not three fields separated by tabs')
                known.append(fields)
    return known


class Report:
    """Numbers the points of several steps, prints them and keeps them in a file.

    where is what the first field of known failures is compared with.
    """

    def __init__(self, path, where, known):
        self.file = open(path, 'w', encoding='utf-8')      # pylint: disable=consider-using-with
        self.points = []
        self.where = where
        self.known = [k for k in known if fnmatch.fnmatch(where, k[0])]
        self.note('TAP version 13')

    def note(self, text):
        print(text, flush=True)
        self.file.write(text + '\n')
        self.file.flush()

    def feed(self, step, parser, line):
        """A line of a step: its points, and what is said of those that failed."""
        for point in parser.feed(line):
            self.point(step, point)
        if parser.failed and parser.failed.shown is not None:
            self._tell(step, parser.failed)

    def _tell(self, step, point):
        for text in point.words[point.shown:]:
            self.note(f'# {step}| {text}')
        point.shown = len(point.words)

    def point(self, step, point):
        name = point.name if point.name == step else f'{step}: {point.name}'
        made = Point(point.status, name, point.reason)
        for _, pattern, why in self.known:
            if fnmatch.fnmatch(name, pattern):
                if made.status == 'failed':
                    made = Point('skipped', name, f'known failure: {why}'
                                 + (f' ({point.reason})' if point.reason else ''))
                elif made.status == 'passed':
                    self.note(f'# {name}: listed as a known failure, but passes')
        self.points.append(made)
        if made.status == 'failed':
            point.shown = 0
            self._tell(step, point)
        self.note(made.line(len(self.points)))

    def end(self):
        self.note(f'1..{len(self.points)}')
        self.file.close()
