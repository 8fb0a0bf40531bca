# SPDX-License-Identifier: GPL-2.0-or-later
"""What stacks of load.go have to look like, whoever took them and wherever."""

import collections
import re

LIMIT = 0.995

# Names with which stacks of goroutines begin: the runtime's own, and the program's.
STARTS = ('main.', 'runtime.', 'runtime/', 'os/signal.', '_cgoexp_')
ENDS = ('runtime.goexit', 'runtime.mstart', 'runtime.mcall', 'runtime.morestack',
        'runtime.rt0_go', 'runtime.clone', 'clone', 'clone3', '_start')
# Entries of a profile that stand for time without a sample.
NOTES = ('[between ticks]', '[exec, loader]', '[exit]', '[not sampled]')
# Entries of samples without a stack: the reason is in its place.
NO_STACK = ('[kernel]', '[small stack]')

JOBS = {'deep': 'main.deep', 'fib': 'main.fib', 'sort': 'main.sorting', 'clock': 'main.clock',
        'grow': 'main.growing', 'alloc': 'main.allocating'}


# Stacks of threads ------------------------------------------------------------

def stack_is_wrong(names):
    """Why a complete stack cannot be, or None."""
    if names[-1] not in ENDS:
        return 'ends in ' + names[-1]
    if names[-1] == 'runtime.goexit' and not (len(names) > 1 and names[-2].startswith(STARTS)):
        return 'goroutine begins in ' + ' '.join(names[-2:])
    if names.count('main.deep') > 201 or names.count('main.grow') > 201:
        return 'recursion is deeper than it is'
    for name, caller in zip(names, names[1:]):
        if name == 'runtime.systemstack' and caller == 'runtime.systemstack':
            return 'two stack switches in a row'
        if name == 'runtime.cgocall' and not caller.startswith(('main._Cfunc', 'runtime', 'C.',
                                                                 '_cgo', 'main')):
            return f'{caller} calls C'
        # Up to Go 1.15 a function of cgo lies between the two.
        if name == 'runtime.cgocallback' and caller != 'crosscall2' and \
                not caller.startswith('_cgoexp_'):
            return f'{caller} calls cgocallback'
    return None


class Tally:
    """Stacks, and what is wrong with some."""

    def __init__(self):
        self.stacks = 0
        self.seen = collections.Counter()
        self.bad = []

    def add(self, thread):
        frames = thread['frames']
        names = [f['function'] for f in frames]
        wrong = None
        self.stacks += 1
        self.seen.update(set(names))
        if any(f['guess'] for f in frames):
            wrong = 'a frame is guessed'
        elif not thread['complete']:
            wrong = thread['end'] or thread['error']
        else:
            wrong = stack_is_wrong(names)
        if wrong:
            self.bad.append(f'{wrong}: {" ".join(names[:4])} ... {" ".join(names[-5:])}')

    def verdict(self, wanted):
        """What is wrong with all of them, in words."""
        good = 1 - len(self.bad) / max(self.stacks, 1)
        print(f'# {self.stacks} stacks, {100 * good:.2f} % complete and right')
        for line in self.bad[:5]:
            print('# ' + line)
        missing = [name for name in wanted if not self.seen[name]]
        if good < LIMIT:
            return f'{len(self.bad)} of {self.stacks} stacks are not'
        if missing:
            return f'never seen: {" ".join(missing)}'
        return ''


# Goroutines -------------------------------------------------------------------

def groups_of(text_as_json):
    """[(goroutine, its functions)], one for each group that is printed."""
    return [(g, [f['function'] for f in g['frames']]) for g in text_as_json['goroutines']]


def check_goroutines(groups):
    """What must be there, whatever runs at the moment."""
    for g, names in groups:
        if not g['complete'] or any(f['guess'] for f in g['frames']):
            return f'goroutine {g["ids"]} is not complete: {g["end"]}: {names[-4:]}'
        if g['state'] != 'running' and not names[-1].startswith('runtime.goexit'):
            return f'goroutine {g["ids"]} does not end in goexit: {names[-4:]}'
    three = [g for g, names in groups if 'main.park.func3' in names]
    if len(three) != 1 or len(three[0]['ids']) != 3 or three[0]['reason'] != 'chan receive':
        return f'three goroutines that receive are not one group: {three}'
    if three[0]['made_by']['function'] != 'main.park':
        return f'made by {three[0]["made_by"]}'
    ids = [i for g, _ in groups for i in g['ids']]
    if 1 not in ids or len(ids) != len(set(ids)):
        return f'numbers: {sorted(ids)}'
    return check_labels(groups)


def check_labels(groups):
    """A program that works has each of its jobs, with the label and the functions of it."""
    for job, function in JOBS.items():
        found = [names for g, names in groups if g['labels'].get('job') == job]
        # A job starts goroutines, which inherit its labels.
        if not any('main.main.func' in ' '.join(names) for names in found):
            return f'no goroutine has the label job={job}: {found}'
        at = [names for names in found if function in names]
        if not at and job in ('deep', 'fib', 'sort'):
            print(f'# job {job} is between two calls of {function}')
    return ''


def own_dump(text):
    """What Go prints of its goroutines: number: (what for, functions)."""
    found = {}
    for head in re.finditer(r'^goroutine (\d+)[^[\n]* \[([^\],]*)[^\]]*\]:\n', text, re.M):
        names = []
        for line in text[head.end():].split('\n\n')[0].splitlines():
            if line.startswith('created by '):
                names.append('by ' + line[11:].split(' in goroutine')[0])
            elif line and line[0] not in '\t ':
                names.append(re.sub(r'\((?:[^()]|\([^()]*\))*\)$', '', line))
        found[int(head.group(1))] = head.group(2), names
    return found


def compare_dump(groups, theirs):
    """Goroutines that wait in both: equal, function by function."""
    equal = 0
    for g, names in groups:
        mine = list(names)
        if g['made_by']:
            mine.append('by ' + g['made_by']['function'])
        for i in g['ids']:
            # These goroutines never run again.
            if not mine[-1].startswith('by main.park'):
                continue
            if i not in theirs:
                return f'goroutine {i} is not in the dump of Go, which has {sorted(theirs)}'
            # Go leaves out its own functions.
            reason, functions = theirs[i]
            mine = [n for n in mine if not n.startswith('runtime.')]
            if reason.split(' (scan')[0] != g['reason'] or functions != mine:
                return f'goroutine {i}: {g["reason"]} {mine}; by Go {reason} {functions}'
            equal += 1
    print(f'# {equal} goroutines as Go prints them')
    return '' if equal == 5 else f'{equal} goroutines of five can be compared'


# Profiles ---------------------------------------------------------------------

def read_folded(text):
    """Stacks, outermost function first and without the program, with values."""
    stacks = {}
    for line in text.splitlines():
        stack, value = line.rsplit(' ', 1)
        stacks[tuple(stack.split(';')[1:])] = int(value)
    return stacks


def check_roots(stacks, limit, before=0):
    """What is wrong if less of the time than that, of all that has a stack, comes from a root.

    before: ns that may be spent before there is one, by the loader above all.
    """
    roots = collections.Counter()
    for names, value in stacks.items():
        roots[names[0] if names else 'nothing'] += value
    none = sum(roots.pop(note, 0) for note in NOTES)
    reasons = {reason: roots.pop(reason, 0) for reason in NO_STACK}
    total = sum(roots.values())
    rooted = sum(n for name, n in roots.items() if name in ENDS)
    good = rooted / max(total, 1)
    print(f'# {100 * good:.2f} % of the CPU time from where goroutines and threads begin; '
          f'{total / 1e9:.3f} s, and {none / 1e9:.3f} s without a sample, {reasons} ns without a '
          'stack')
    if total - rooted > (1 - limit) * total + before:
        return ', '.join(f'{name}: {100 * n / total:.2f} %' for name, n in roots.most_common(8))
    if not total:
        return 'nothing has a stack'
    if sum(reasons.values()) > total:
        return f'more samples have no stack than have one: {reasons}'
    return ''
