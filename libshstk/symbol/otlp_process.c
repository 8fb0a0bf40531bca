// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * otlp_process.c - reads what a program publishes of itself. See otlp_process.h.
 *
 * The keys and values are those of OTEP 4947 ("Thread Context"), section "Process Context:
 * Thread-Local Reference Data".
 */
#include <errno.h>
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

static void take_keys(const Shstk__Otlp__AnyValue *value, struct shstk_otlp_process *ret)
{
	const Shstk__Otlp__TextList *list;

	if (!value || value->value_case != SHSTK__OTLP__ANY_VALUE__VALUE_ARRAY_VALUE)
		return;
	list = value->array_value;
	ret->nr_keys = list->n_values < SHSTK_OTLP_KEYS ? list->n_values : SHSTK_OTLP_KEYS;
	for (unsigned int i = 0; i < ret->nr_keys; i++)
		ret->keys[i] = list->values[i]->string_value;
}

int shstk_otlp_process_read(const void *bytes, size_t size, struct shstk_otlp_process *ret)
{
	Shstk__Otlp__ProcessContext *from =
		size <= SHSTK_OTLP_PROCESS_MAX ?
			shstk__otlp__process_context__unpack(NULL, size, bytes) :
			NULL;

	if (!from)
		return -EINVAL;
	*ret = (struct shstk_otlp_process){ .message = from };
	for (size_t i = 0; i < from->n_attributes; i++) {
		const Shstk__Otlp__KeyValue *it = from->attributes[i];

		if (!strcmp(it->key, SCHEMA))
			ret->threads = is_known(text_of(it->value));
		else if (!strcmp(it->key, KEYS))
			take_keys(it->value, ret);
	}
	return 0;
}

void shstk_otlp_process_free(struct shstk_otlp_process *process)
{
	shstk__otlp__process_context__free_unpacked(process->message, NULL);
	*process = (struct shstk_otlp_process){ .message = NULL };
}
