/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * otlp_process.h - what a program publishes of itself for readers outside, as OpenTelemetry's OTEP
 * 4719 ("Process Context") has it.
 */
#ifndef SHSTK_SYMBOL_OTLP_PROCESS_H
#define SHSTK_SYMBOL_OTLP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#define SHSTK_OTLP_KEYS 256 /* names of attributes, at most: OTEP 4947, "attribute_key_map" */
#define SHSTK_OTLP_PROCESS_MAX 65536 /* bytes of a message that is read */

/**
 * struct shstk_otlp_process - a process context
 * @names: memory of the names, which is smaller than the message.
 * @threads: threads publish contexts in the variable otel_thread_ctx_v1.
 * @nr_keys: number of @keys.
 * @keys: names of the attributes of threads' contexts, by their numbers.
 */
struct shstk_otlp_process {
	char *names;
	bool threads;
	unsigned int nr_keys;
	const char *keys[SHSTK_OTLP_KEYS];
};

/**
 * shstk_otlp_process_read() - read a process context
 * @bytes: the message, which may be anything.
 * @size: its size; a larger one than SHSTK_OTLP_PROCESS_MAX is refused.
 * @ret: receives the context, to be released by shstk_otlp_process_free().
 *
 * Return: 0, -EINVAL or -ENOMEM. Then there is nothing to be released.
 */
int shstk_otlp_process_read(const void *bytes, size_t size, struct shstk_otlp_process *ret);
void shstk_otlp_process_free(struct shstk_otlp_process *process);

#endif /* SHSTK_SYMBOL_OTLP_PROCESS_H */
