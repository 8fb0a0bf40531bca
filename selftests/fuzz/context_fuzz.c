// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * context_fuzz.c - any bytes as what a program publishes: its process context (OTEP 4719) and a
 * thread's context (OTEP 4947). Labels are pairs of strings that fit into their buffer.
 *
 * The first byte of an input says how many bytes of the rest are the thread's record; the others are
 * the process's message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/otlp_process.h"
#include "tools/convert/context_labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const char *labels, size_t size)
{
	unsigned int nr = 0;

	if (size > CONTEXT_LABELS || (size && labels[size - 1]))
		abort();
	for (const char *at = labels; at < labels + size; at += strlen(at) + 1)
		nr++;
	if (nr % 2)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shstk_otlp_process process = { .names = NULL };
	struct context_record record;
	size_t of_record = size ? *data : 0;
	uint8_t *attributes;
	char *labels;

	if (size < 1 + of_record || of_record < sizeof(record))
		return 0;
	memcpy(&record, data + 1, sizeof(record));
	record.size = of_record - sizeof(record);
	attributes = malloc(record.size + 1);
	labels = malloc(CONTEXT_LABELS);
	if (!attributes || !labels)
		abort();
	memcpy(attributes, data + 1 + sizeof(record), record.size);
	/* Without a message there are no names. */
	if (shstk_otlp_process_read(data + 1 + of_record, size - 1 - of_record, &process))
		process.nr_keys = 0;
	judge(labels, context_labels(&record, attributes, process.keys, process.nr_keys, labels));
	shstk_otlp_process_free(&process);
	free(attributes);
	free(labels);
	return 0;
}
