// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * left_out.c - stands in for libprotobuf-c and libiberty in the arm64 command. It packs messages as
 * the format of pprof needs, and unpacks texts and messages, as programs publish them of themselves;
 * everything else fails, so C++ names stay mangled.
 */
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FAILS(type, name)       \
	type name(void);        \
	type name(void)         \
	{                       \
		return (type)0; \
	}

const char protobuf_c_empty_string[] = "";

FAILS(int, cplus_demangle_v3_callback)
FAILS(int, rust_demangle_callback)

size_t protobuf_c_message_pack(const ProtobufCMessage *message, uint8_t *out)
{
	(void)message;
	(void)out;
	return 0;
}

void protobuf_c_message_free_unpacked(ProtobufCMessage *message, ProtobufCAllocator *allocator)
{
	(void)message;
	(void)allocator;
}

/* Where packed bytes go: to @buffer, or if that is NULL they are only counted. */
struct sink {
	ProtobufCBuffer *buffer;
	size_t size;
};

enum { VARINT = 0, BYTES = 2 };

static void put(struct sink *s, const void *data, size_t size)
{
	if (s->buffer)
		s->buffer->append(s->buffer, size, data);
	s->size += size;
}

static void put_number(struct sink *s, uint64_t v)
{
	uint8_t byte;

	for (; v >= 128; v >>= 7) {
		byte = (v & 127) | 128;
		put(s, &byte, 1);
	}
	byte = v;
	put(s, &byte, 1);
}

static void put_message(struct sink *s, const ProtobufCMessage *message);

static void put_value(struct sink *s, const ProtobufCFieldDescriptor *f, const void *at)
{
	const ProtobufCMessage *message;
	const char *text;
	uint64_t number;
	int flag;

	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		memcpy(&message, at, sizeof(message));
		put_number(s, f->id << 3 | BYTES);
		put_number(s, protobuf_c_message_get_packed_size(message));
		put_message(s, message);
		break;
	case PROTOBUF_C_TYPE_STRING:
		memcpy(&text, at, sizeof(text));
		put_number(s, f->id << 3 | BYTES);
		put_number(s, strlen(text));
		put(s, text, strlen(text));
		break;
	case PROTOBUF_C_TYPE_BOOL:
		memcpy(&flag, at, sizeof(flag));
		put_number(s, f->id << 3 | VARINT);
		put_number(s, flag);
		break;
	default:
		memcpy(&number, at, sizeof(number));
		put_number(s, f->id << 3 | VARINT);
		put_number(s, number);
	}
}

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
	return f->type == PROTOBUF_C_TYPE_BOOL ? sizeof(protobuf_c_boolean) : 8;
}

/* Writes a field. Numbers that are zero and messages that do not exist are left out. */
static void put_field(struct sink *s, const ProtobufCFieldDescriptor *f, const uint8_t *message)
{
	static const uint8_t zero[8];
	const uint8_t *at = message + f->offset;
	size_t n;

	if (f->label != PROTOBUF_C_LABEL_REPEATED) {
		if (memcmp(at, zero, size_of(f)))
			put_value(s, f, at);
		return;
	}
	memcpy(&n, message + f->quantifier_offset, sizeof(n));
	memcpy(&at, message + f->offset, sizeof(at));
	for (; n--; at += size_of(f))
		put_value(s, f, at);
}

static void put_message(struct sink *s, const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *d = message->descriptor;

	for (unsigned int i = 0; i < d->n_fields; i++)
		put_field(s, &d->fields[i], (const uint8_t *)message);
}

size_t protobuf_c_message_get_packed_size(const ProtobufCMessage *message)
{
	struct sink s = { .buffer = NULL };

	put_message(&s, message);
	return s.size;
}

size_t protobuf_c_message_pack_to_buffer(const ProtobufCMessage *message, ProtobufCBuffer *buffer)
{
	struct sink s = { .buffer = buffer };

	put_message(&s, message);
	return s.size;
}

/* The bytes of a message that are not read yet. */
struct source {
	const uint8_t *at;
	const uint8_t *end;
};

static uint64_t take_number(struct source *s)
{
	uint64_t ret = 0;

	for (int shift = 0; s->at < s->end && shift < 64; shift += 7) {
		ret |= (uint64_t)(*s->at & 127) << shift;
		if (*s->at++ < 128)
			break;
	}
	return ret;
}

/* Puts a text or a message where its field is, behind others if there may be several. */
static void keep(const ProtobufCFieldDescriptor *f, uint8_t *message, void *value)
{
	void **to = (void **)(message + f->offset), **more;
	size_t *nr = (size_t *)(message + f->quantifier_offset);

	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		*(uint32_t *)(message + f->quantifier_offset) = f->id;
	if (f->label != PROTOBUF_C_LABEL_REPEATED) {
		*to = value;
		return;
	}
	more = realloc(*to, (*nr + 1) * sizeof(*more));
	if (!more)
		abort();
	more[(*nr)++] = value;
	*to = more;
}

/* Takes a field that has a length. Fields that are not known are passed over. */
static void take_bytes(const ProtobufCMessageDescriptor *d, unsigned int id, uint8_t *message,
		       const uint8_t *data, size_t size)
{
	const ProtobufCFieldDescriptor *f = d->fields;

	while (f < d->fields + d->n_fields && f->id != id)
		f++;
	if (f == d->fields + d->n_fields)
		return;
	if (f->type == PROTOBUF_C_TYPE_STRING)
		keep(f, message, strndup((const char *)data, size));
	else if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		keep(f, message, protobuf_c_message_unpack(f->descriptor, NULL, size, data));
}

/* Nothing of it is freed: little is unpacked here. */
ProtobufCMessage *protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor,
					    ProtobufCAllocator *allocator, size_t size,
					    const uint8_t *data)
{
	struct source s = { data, data + size };
	void *message = calloc(1, descriptor->sizeof_message);

	(void)allocator;
	if (!message)
		abort();
	descriptor->message_init(message);
	while (s.at < s.end) {
		uint64_t key = take_number(&s), value = take_number(&s);

		if ((key & 7) == VARINT)
			continue;
		if ((key & 7) != BYTES || value > (size_t)(s.end - s.at))
			return NULL;
		take_bytes(descriptor, key >> 3, message, s.at, value);
		s.at += value;
	}
	return message;
}
