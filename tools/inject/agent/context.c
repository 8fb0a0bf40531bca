// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * context.c - the trace context that the sampled thread publishes, as labels of its sample.
 *
 * OpenTelemetry's OTEP 4947 says how: the thread-local variable otel_thread_ctx_v1 is the address of
 * a record, or 0, and the record counts if a byte of it is 1. The handler interrupts the thread, so
 * the record is as the thread left it.
 *
 * Only the variable of the program and of what is loaded with it is read: in each thread it lies at
 * the same distance from this object's own variables. Nothing is trusted, as anything can have that
 * name: all is read by peek().
 */
#include <string.h>

#include "../common/peek.h"
#include "agent.h"
#include "bpf/context.h"
#include "libshstk/rtld.h"

#define VARIABLE "otel_thread_ctx_v1"

/* Distance of the variable from this object's variable in bytes; 0: there is none. */
static uintptr_t distance;

void context_find(void)
{
	void *variable = rtld_thread_variable(VARIABLE);

	if (variable)
		distance = (uintptr_t)variable - (uintptr_t)&local;
}

static bool is_zero(const uint8_t *id, size_t size)
{
	while (size && !id[size - 1])
		size--;
	return !size;
}

/* Writes a label whose value is an id in hexadecimal digits. Returns where the next one goes. */
static char *put_id(char *to, const char *key, const uint8_t *id, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	const size_t key_size = strlen(key) + 1;

	memcpy(to, key, key_size);
	to += key_size;
	for (size_t i = 0; i < size; i++) {
		*to++ = digits[id[i] >> 4];
		*to++ = digits[id[i] & 15];
	}
	*to++ = '\0';
	return to;
}

uint32_t context_labels(char *to)
{
	struct context_record record;
	const void *at = NULL;
	char *end;

	if (!distance || !peek(&at, (char *)&local + distance, sizeof(at)) || !at ||
	    !peek(&record, at, sizeof(record)) || record.valid != CONTEXT_VALID ||
	    is_zero(record.trace_id, sizeof(record.trace_id)) ||
	    is_zero(record.span_id, sizeof(record.span_id)))
		return 0;
	end = put_id(to, "trace_id", record.trace_id, sizeof(record.trace_id));
	end = put_id(end, "span_id", record.span_id, sizeof(record.span_id));
	return (uint32_t)(end - to);
}
