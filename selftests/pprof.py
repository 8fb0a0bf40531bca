# SPDX-License-Identifier: GPL-2.0-or-later
"""A decoder of pprof's format, profile.proto, that shares no code with what writes it."""

import gzip
import re
import struct


def fields(data):
    """Fields of a message: number, value (bytes for those with a length)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        elif kind == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        elif kind == 1:
            yield key >> 3, struct.unpack_from('<Q', data, at)[0]
            at += 8
        else:
            raise ValueError(f'wire type {kind}')


def packed(value):
    """A repeated number: one of them, or many packed."""
    if isinstance(value, int):
        return [value]
    return [n for _, n in fields(b''.join(
        b'\x08' + v for v in re.findall(rb'[\x80-\xff]*[\x00-\x7f]', value, re.S)))]


def message(data, repeated=(), numbers=()):
    ret = {n: [] for n in (*repeated, *numbers)}
    for number, value in fields(data):
        if number in numbers:
            ret[number] += packed(value)
        elif number in repeated:
            ret[number].append(value)
        else:
            ret[number] = value
    return ret


class Decoded:
    """A pprof profile; field numbers as pprof documents them."""

    def __init__(self, path):
        top = message(gzip.open(path).read(), repeated=(1, 2, 3, 4, 5, 6), numbers=(13,))
        self.strings = [s.decode('utf-8', 'strict') for s in top[6]]
        text = self.strings.__getitem__
        self.types = [(text(t[1]), text(t[2])) for t in map(message, top[1])]
        self.mappings = {m[1]: m for m in map(message, top[3])}
        self.functions = {f[1]: f for f in map(message, top[5])}
        self.locations = {}
        for loc in (message(d, repeated=(4,)) for d in top[4]):
            loc[4] = [message(line) for line in loc[4]]
            self.locations[loc[1]] = loc
        self.counts = [len(top[n]) for n in (3, 4, 5)]
        self.samples = []
        for raw in top[2]:
            sample = message(raw, repeated=(3,), numbers=(1, 2))
            labels = {}
            for label in map(message, sample[3]):
                labels[text(label[1])] = text(label[2]) if label.get(2) else label.get(3, 0)
            self.samples.append((sample[1], sample[2], labels))
        self.time, self.duration = top.get(9), top.get(10)
        period = message(top.get(11, b''))
        self.period = (text(period.get(1, 0)), text(period.get(2, 0)), top.get(12, 0))
        self.comments = [text(c) for c in top[13]]
        self.default = text(top.get(14, 0))

    def text(self, number):
        return self.strings[number]

    def frames(self, ids):
        """Names of a sample, outermost first."""
        names = []
        for ident in ids:
            names += [self.text(self.functions[line[1]][2]) for line in self.locations[ident][4]]
        return tuple(reversed(names))
