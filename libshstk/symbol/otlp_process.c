// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * otlp_process.c - reads what a program publishes of itself. See otlp_process.h.
 *
 * The keys and values are those of OTEP 4947 ("Thread Context"), section "Process Context:
 * Thread-Local Reference Data".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "otlp.pb-c.h"
#include "otlp_process.h"

#define SCHEMA "threadlocal.schema_version"
#define KEYS "threadlocal.attribute_key_map"

static const char *text_of(const Shstk__Otlp__AnyValue *value)
{
	return value && value->value_case == SHSTK__OTLP__ANY_VALUE__VALUE_STRING_VALUE ?
		       value->string_value :
		       "";
}

/*
 * Returns whether contexts are published in a thread-local variable: the name of the first drafts,
 * and that of the document since it was merged. Go and Node.js have other names.
 */
static bool is_known(const char *schema)
{
	return !strcmp(schema, "tls_v1") || !strcmp(schema, "tlsdesc_v1_dev");
}

static const Shstk__Otlp__TextList *list_of(const Shstk__Otlp__AnyValue *value)
{
	return value && value->value_case == SHSTK__OTLP__ANY_VALUE__VALUE_ARRAY_VALUE ?
		       value->array_value :
		       NULL;
}

/*
 * Copies the names of attributes. The message itself is not kept: what a program made of 64 KiB can
 * take many times as much when it is unpacked. Returns 0 or -ENOMEM.
 */
static int take_keys(const Shstk__Otlp__TextList *list, struct shstk_otlp_process *ret)
{
	const unsigned int nr = list->n_values < SHSTK_OTLP_KEYS ? list->n_values : SHSTK_OTLP_KEYS;
	size_t size = 1;
	char *at;

	for (unsigned int i = 0; i < nr; i++)
		size += strlen(list->values[i]->string_value) + 1;
	at = malloc(size);
	if (!at)
		return -ENOMEM;
	free(ret->names);
	ret->names = at;
	ret->nr_keys = nr;
	for (unsigned int i = 0; i < nr; i++) {
		ret->keys[i] = at;
		at = stpcpy(at, list->values[i]->string_value) + 1;
	}
	return 0;
}

static int take_attribute(const Shstk__Otlp__KeyValue *it, struct shstk_otlp_process *ret)
{
	const Shstk__Otlp__TextList *list = list_of(it->value);

	if (!strcmp(it->key, SCHEMA))
		ret->threads = is_known(text_of(it->value));
	return !strcmp(it->key, KEYS) && list ? take_keys(list, ret) : 0;
}

int shstk_otlp_process_read(const void *bytes, size_t size, struct shstk_otlp_process *ret)
{
	Shstk__Otlp__ProcessContext *from =
		size <= SHSTK_OTLP_PROCESS_MAX ?
			shstk__otlp__process_context__unpack(NULL, size, bytes) :
			NULL;
	int err = 0;

	if (!from)
		return -EINVAL;
	*ret = (struct shstk_otlp_process){ .names = NULL };
	for (size_t i = 0; !err && i < from->n_attributes; i++)
		err = take_attribute(from->attributes[i], ret);
	shstk__otlp__process_context__free_unpacked(from, NULL);
	if (err)
		shstk_otlp_process_free(ret);
	return err;
}

void shstk_otlp_process_free(struct shstk_otlp_process *process)
{
	free(process->names);
	*process = (struct shstk_otlp_process){ .names = NULL };
}
