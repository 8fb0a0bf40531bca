// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * preload.c - reports crashes of a program that knows nothing of it: installs the handlers of
 * libshstk-crash before main(), and gives each thread an alternate stack. Variables say how:
 *
 *   SHSTK_CRASH_ARGS     arguments of `shstk crash`, separated by blanks
 *   SHSTK_CRASH_COMMAND  path of the command shstk
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/shstk_crash.h"

#define MAX_WORDS 32

typedef int create_fn(pthread_t *thread, const pthread_attr_t *attr, void *(*begin)(void *),
		      void *arg);

static create_fn *next_create;

/* Splits text at blanks. @words has MAX_WORDS + 1 elements. */
static void split(char *text, const char **words)
{
	unsigned int n = 0;
	char *rest;

	for (char *word = strtok_r(text, " ", &rest); word && n < MAX_WORDS;
	     word = strtok_r(NULL, " ", &rest))
		words[n++] = word;
	words[n] = NULL;
}

__attribute__((constructor)) static void preload(void)
{
	static const char *words[MAX_WORDS + 1];
	const char *args = secure_getenv("SHSTK_CRASH_ARGS");
	struct shstk_crash_opts opts = { .size = sizeof(opts), .args = words };
	char *copy = args ? strdup(args) : NULL;

	*(void **)&next_create = dlsym(RTLD_NEXT, "pthread_create");
	if (copy)
		split(copy, words);
	opts.command = secure_getenv("SHSTK_CRASH_COMMAND");
	shstk_crash_install(&opts);
}

/* What a new thread is to do. */
struct begin {
	void *(*begin)(void *);
	void *arg;
};

static void *begin_thread(void *arg)
{
	const struct begin b = *(struct begin *)arg;

	free(arg);
	shstk_crash_thread();
	return b.begin(b.arg);
}

__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*begin)(void *), void *arg)
{
	struct begin *b = malloc(sizeof(*b));
	int err;

	if (!next_create) /* A constructor of another library is faster than ours. */
		*(void **)&next_create = dlsym(RTLD_NEXT, "pthread_create");
	if (!next_create)
		return EAGAIN;
	if (!b)
		return next_create(thread, attr, begin, arg);
	*b = (struct begin){ begin, arg };
	err = next_create(thread, attr, begin_thread, b);
	if (err)
		free(b);
	return err;
}
