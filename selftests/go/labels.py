# SPDX-License-Identifier: GPL-2.0-or-later
"""What labels samples of named.go have to have, whoever took them and wherever."""

LIMIT = 0.9         # share of a goroutine's samples that must have its labels

# Labels of the recorder. "outer" says how the frames behind a copied stack were found: a signal on the
# thread's signal stack has it now and then.
OWN = ('pid', 'tid', 'thread', 'process', 'command', 'cgroup', 'container', 'outer')

# The labels of the goroutines that run these functions.
WANTED = {
    'main.plain': {'job': 'plain'},
    'main.hard': {'job': 'a;b c{d} "e" <f> \u00fc', 'user': 'one two'},
    'main.clock': {'job': 'clock'},
    'main.inherited': {'job': 'inherited'},
    'main.unlabelled': {},
}


def count(profile):
    """For each function of WANTED: samples, those with its labels, others that have some.

    Labels of another goroutine are printed, with the stack."""
    found = {name: [0, 0, 0] for name in WANTED}
    for locations, values, labels in profile.samples:
        name = next((n for n in profile.frames(locations) if n in WANTED), None)
        if not name:
            continue
        own = {k: v for k, v in labels.items() if k not in OWN}
        found[name][0] += values[0]
        found[name][1 if own == WANTED[name] else 2] += values[0]
        if own != WANTED[name] and not own:
            found[name][2] -= values[0]
        elif own != WANTED[name]:
            print(f'# {name} has {own}: {" < ".join(profile.frames(locations))}')
    return found


def check(found, limit=LIMIT):
    for name, (samples, right, wrong) in found.items():
        print(f'# {name}: {right} of {samples} samples have its labels, {wrong} others')
        if wrong:
            return f'{name}: {wrong} of {samples} samples have labels of another goroutine'
        if right < limit * samples:
            return f'{name}: {right} of {samples} samples have its labels'
    return ''
