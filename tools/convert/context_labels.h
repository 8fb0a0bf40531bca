/* SPDX-License-Identifier: GPL-2.0-or-later */
/* context_labels.h - make labels of the record that a thread published (OTEP 4947). */
#ifndef TOOLS_CONVERT_CONTEXT_LABELS_H
#define TOOLS_CONVERT_CONTEXT_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/context.h"

#define CONTEXT_LABELS 3072 /* bytes of the labels of a sample, at most */

/**
 * context_labels() - make labels of a record
 * @record: the record.
 * @attributes: its attributes, as many bytes as it says.
 * @keys: names of attributes by their numbers.
 * @nr_keys: number of @keys, SHSTK_OTLP_KEYS at most.
 * @buf: receives keys and values, each followed by a 0; CONTEXT_LABELS bytes.
 *
 * Attributes without a name are left out, and those for which there is no room.
 *
 * Return: bytes in @buf.
 */
size_t context_labels(const struct context_record *record, const uint8_t *attributes,
		      const char *const *keys, unsigned int nr_keys, char *buf);

/* Returns the largest number of an attribute; -1: there is none. */
int context_last_attribute(const struct context_record *record, const uint8_t *attributes);

#endif
