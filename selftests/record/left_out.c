// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * left_out.c - stands in for libprotobuf-c and libiberty in the arm64 command. It packs messages as
 * the format of pprof needs; everything else fails, so C++ names stay mangled.
 */
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>
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

ProtobufCMessage *protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor,
					    ProtobufCAllocator *allocator, size_t size,
					    const uint8_t *data)
{
	(void)descriptor;
	(void)allocator;
	(void)size;
	(void)data;
	return NULL;
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
