# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what was sent with the messages that OpenTelemetry publishes, of Debian's package
python3-opentelemetry-proto, which shares no code and no .proto file with what writes them, and
compares it with pprof of the same profile."""

import collections
import importlib
import os
import sys

import parts
import pprof
from harness import Skip, check, equal

SERVICES = 'opentelemetry.proto.collector.'
PROFILES = SERVICES + 'profiles.v1development.profiles_service_pb2'
METRICS = SERVICES + 'metrics.v1.metrics_service_pb2'
# Labels that have other names as attributes.
LABELS = {'process.pid': 'pid', 'thread.id': 'tid', 'thread.name': 'thread', 'container.id': 'container',
          'process.command_line': 'command', 'process.executable.name': 'process'}
# What pprof has no place for: samples that differ only by it are one there.
NOT_IN_PPROF = {'cpu.logical_number'}

Frame = collections.namedtuple('Frame', 'address file start limit offset build_id '
                               'function linkage source first_line line')


def module(name=PROFILES):
    """A module of the package, which is fetched unless it is in the cache."""
    part = parts.fetched('otlp')
    # The package's own code reads messages, in Python: what is compiled is for one version of it.
    os.environ['PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION'] = 'python'
    folder = os.path.join(part, 'usr/lib/python3/dist-packages')
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def need_version(service, numbers):
    """Skip the test where the package has the messages of a later version, with other numbers."""
    found = service.opentelemetry_dot_proto_dot_profiles_dot_v1development_dot_profiles__pb2
    for name, message in found.DESCRIPTOR.message_types_by_name.items():
        wanted = numbers.get({'ProfilesDictionary': 'Dictionary'}.get(name, name), {})
        for field, number in wanted.items():
            if field in message.fields_by_name and message.fields_by_name[field].number != number:
                raise Skip(f"{name}.{field} has another number in Debian's package by now")


def parse(message, data):
    """Reads a message, in which no field is unknown, and returns it."""
    equal(message.MergeFromString(data), len(data), 'bytes that were read')
    size = message.ByteSize()
    message.DiscardUnknownFields()
    equal(message.ByteSize(), size, 'bytes without fields that are unknown')
    return message


def value_of(value):
    """What a value holds, whose kind must be one that is known."""
    kind = value.WhichOneof('value')
    check(kind in ('string_value', 'int_value', 'bool_value', 'array_value'), f'a value of the kind {kind}')
    return getattr(value, kind)


def is_nothing(element):
    """Whether an element of a table has nothing but zeros, as the first one of each must."""
    members = [element] if isinstance(element, str) else [value for _, value in element.ListFields()]
    return not any(value.strip(b'\0') if isinstance(value, bytes) else value for value in members)


class Message:
    """A message and its tables, whose numbers are those of elements that exist."""

    def __init__(self, message):
        self.message = message
        self.tables = message.dictionary
        self.texts = self.tables.string_table
        for field in self.tables.DESCRIPTOR.fields:
            check(is_nothing(getattr(self.tables, field.name)[0]), f'{field.name} begins with something')

    def attributes(self, numbers):
        """Names and values of attributes, none of which is there twice."""
        pairs = [(self.texts[self.tables.attribute_table[i].key_strindex],
                  value_of(self.tables.attribute_table[i].value)) for i in numbers]
        check(all(numbers), 'an attribute is none')
        equal(len(dict(pairs)), len(pairs), f'names of {pairs}')
        return dict(pairs)

    def place(self, location):
        """The members of a frame that tell where its code is."""
        if not location.mapping_index:
            return location.address, '', 0, 0, 0, ''
        mapping = self.tables.mapping_table[location.mapping_index]
        build_id = self.attributes(mapping.attribute_indices).get('process.executable.build_id.gnu', '')
        return (location.address, self.texts[mapping.filename_strindex], mapping.memory_start,
                mapping.memory_limit, mapping.file_offset, build_id)

    def frames(self, number):
        """The frames of a stack, innermost first."""
        found = []
        for i in self.tables.stack_table[number].location_indices:
            check(i, 'a location is none')
            location = self.tables.location_table[i]
            for line in location.lines:
                function = self.tables.function_table[line.function_index]
                found.append(Frame(*self.place(location), self.texts[function.name_strindex],
                                   self.texts[function.system_name_strindex],
                                   self.texts[function.filename_strindex], function.start_line,
                                   line.line))
        return tuple(found)

    def labels(self, sample):
        """The labels that a sample's attributes and its link tell."""
        found = {LABELS.get(name, name): value
                 for name, value in self.attributes(sample.attribute_indices).items()
                 if name not in NOT_IN_PPROF}
        if sample.link_index:
            link = self.tables.link_table[sample.link_index]
            equal([len(link.trace_id), len(link.span_id)], [16, 8], 'sizes of ids')
            check(not {'trace_id', 'span_id'} & found.keys(), 'ids are told twice')
            found |= {'trace_id': link.trace_id.hex(), 'span_id': link.span_id.hex()}
        return found

    def profiles(self):
        """Each Profile, with the attributes of its resource."""
        for resource in self.message.resource_profiles:
            of = {pair.key: value_of(pair.value) for pair in resource.resource.attributes}
            equal(len(of), len(resource.resource.attributes), 'attributes of a resource')
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    yield of, profile

    def samples(self):
        """{(type, frames, labels): sum of the values}"""
        sums = collections.Counter()
        for of, profile in self.profiles():
            kind = tuple(self.texts[i] for i in (profile.sample_type.type_strindex,
                                                 profile.sample_type.unit_strindex))
            for sample in profile.samples:
                labels = self.labels(sample)
                equal(of.get('process.pid'), labels.get('pid'), 'process of the resource')
                value, = sample.values
                sums[kind, self.frames(sample.stack_index), tuple(sorted(labels.items()))] += value
        return +sums

    def times(self):
        """Begin, duration and period of the Profiles."""
        return {(profile.time_unix_nano, profile.duration_nano, profile.period,
                 self.texts[profile.period_type.type_strindex],
                 self.texts[profile.period_type.unit_strindex]) for _, profile in self.profiles()}


def pprof_frames(decoded, ids):
    """The frames of a stack of pprof, innermost first."""
    for location in (decoded.locations[i] for i in ids):
        mapping = decoded.mappings.get(location.get(2), {})
        for line in location[4]:
            function = decoded.functions[line[1]]
            yield Frame(location.get(3, 0), decoded.text(mapping.get(5, 0)), mapping.get(2, 0),
                        mapping.get(3, 0), mapping.get(4, 0), decoded.text(mapping.get(6, 0)),
                        decoded.text(function.get(2, 0)), decoded.text(function.get(3, 0)),
                        decoded.text(function.get(4, 0)), function.get(5, 0), line.get(2, 0))


def pprof_samples(decoded):
    """The same as Message.samples() of a profile of pprof."""
    sums = collections.Counter()
    for ids, values, labels in decoded.samples:
        frames = tuple(pprof_frames(decoded, ids))
        for kind, value in zip(decoded.types, values):
            sums[kind, frames, tuple(sorted(labels.items()))] += value
    return +sums


def compare(messages, path):
    """Messages have the samples of a file of pprof, each value the same. Returns what the file has."""
    decoded = pprof.Decoded(path)
    sums = sum((message.samples() for message in messages), collections.Counter())
    wanted = pprof_samples(decoded)
    check(wanted, 'there is nothing to compare')
    for where, more in ('pprof', sums - wanted), ('the requests', wanted - sums):
        check(not more, f'{len(more)} samples are not in {where}, the first: {next(iter(more.items()), None)}')
    return decoded
