// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fail.c - linked with --wrap: the allocation with the number FAIL_AT (from 0) in the driver and
 * the library fails, and so do all after it if FAIL_ALL is set. Allocations inside shared libraries
 * are not touched.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t nr, size_t size);
int __real_vasprintf(char **ret, const char *format, va_list args);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t nr, size_t size);
int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

static long at = -1, count;

/* Tells the caller that there are no more numbers to try. */
static void __attribute__((destructor)) report(void)
{
	if (count <= at)
		fputs("FAIL_AT not reached\n", stderr);
}

static int fails(void)
{
	static int all;

	if (at < 0) {
		at = getenv("FAIL_AT") ? atol(getenv("FAIL_AT")) : 1l << 40;
		all = !!getenv("FAIL_ALL");
	}
	errno = ENOMEM;
	return all ? count++ >= at : count++ == at;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t nr, size_t size)
{
	return fails() ? NULL : __real_reallocarray(old, nr, size);
}

int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
	return fails() ? -1 : __real_vasprintf(ret, format, args);
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = __wrap_vasprintf(ret, format, args);
	va_end(args);
	return len;
}
