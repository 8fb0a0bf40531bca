// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * context_labels.c - makes labels of the record that a thread published. See context_labels.h.
 *
 * Attributes are packed as OTEP 4947 says ("Thread-Local Context Record"): the number of the name, the
 * length of the text, the text. What cannot be whole ends them, and of two with the same number the
 * last one counts.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libshstk/symbol/otlp_process.h"
#include "tools/convert/context_labels.h"
#include "tools/shstk.h"

/* The labels that are made. */
struct labels {
	char *at;
	size_t size;
};

/* Adds a label. One for which there is no room is left out. */
static void add_label(struct labels *to, const char *key, const char *value, size_t size)
{
	const size_t key_size = strlen(key) + 1;
	char *at = to->at + to->size;

	if (key_size == 1 || key_size + size + 1 > CONTEXT_LABELS - to->size)
		return;
	memcpy(at, key, key_size);
	memcpy(at + key_size, value, size);
	at[key_size + size] = '\0';
	printable(at);
	printable(at + key_size);
	to->size += key_size + strlen(at + key_size) + 1;
}

static void add_id(struct labels *to, const char *key, const uint8_t *id, size_t size)
{
	char text[2 * sizeof(((struct context_record *)0)->trace_id) + 1];

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	add_label(to, key, text, 2 * size);
}

static bool is_zero(const uint8_t *id, size_t size)
{
	while (size && !id[size - 1])
		size--;
	return !size;
}

/*
 * Finds where the attribute with each number is: the last one counts. Returns the largest number that
 * there is, or -1.
 */
static int find_attributes(const struct context_record *record, const uint8_t *from,
			   const uint8_t *places[SHSTK_OTLP_KEYS])
{
	int most = -1;

	for (size_t i = 0; i + 2 <= record->size; i += 2 + from[i + 1]) {
		if (from[i + 1] > record->size - i - 2)
			break;
		places[from[i]] = from + i;
		if (from[i] > most)
			most = from[i];
	}
	return most;
}

size_t context_labels(const struct context_record *record, const uint8_t *attributes,
		      const char *const *keys, unsigned int nr_keys, char *buf)
{
	const uint8_t *places[SHSTK_OTLP_KEYS] = { NULL };
	struct labels to = { buf, 0 };

	if (!is_zero(record->trace_id, sizeof(record->trace_id)) &&
	    !is_zero(record->span_id, sizeof(record->span_id))) {
		add_id(&to, "trace_id", record->trace_id, sizeof(record->trace_id));
		add_id(&to, "span_id", record->span_id, sizeof(record->span_id));
	}
	find_attributes(record, attributes, places);
	for (unsigned int i = 0; i < nr_keys; i++)
		if (places[i])
			add_label(&to, keys[i], (const char *)places[i] + 2, places[i][1]);
	return to.size;
}

int context_last_attribute(const struct context_record *record, const uint8_t *attributes)
{
	const uint8_t *places[SHSTK_OTLP_KEYS] = { NULL };

	return find_attributes(record, attributes, places);
}
