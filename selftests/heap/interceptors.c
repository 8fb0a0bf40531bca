// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * interceptors.c - a program with functions of libc of its own that work only after its
 * constructor, as those of sanitizers do: a call before that ends it.
 */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *p);

static int ready;

__attribute__((constructor)) static void get_ready(void)
{
	ready = 1;
}

static void need(void)
{
	if (!ready)
		__builtin_trap();
}

void *malloc(size_t size)
{
	need();
	return __libc_malloc(size);
}

void free(void *p)
{
	need();
	__libc_free(p);
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	need();
	for (size_t i = 0; i < n; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	need();
	for (size_t i = 0; i < n; i++) {
		size_t at = to < from ? i : n - 1 - i;

		((volatile char *)to)[at] = ((const char *)from)[at];
	}
	return to;
}

void *memset(void *to, int c, size_t n)
{
	need();
	for (size_t i = 0; i < n; i++)
		((volatile char *)to)[i] = (char)c;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	need();
	for (size_t i = 0; i < n; i++)
		if (p[i] != q[i])
			return p[i] - q[i];
	return 0;
}

void *memchr(const void *in, int c, size_t n)
{
	const unsigned char *p = in;

	need();
	for (size_t i = 0; i < n; i++)
		if (p[i] == (unsigned char)c)
			return (void *)(uintptr_t)&p[i];
	return NULL;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	need();
	while (s[n])
		n++;
	return n;
}

size_t strnlen(const char *s, size_t most)
{
	size_t n = 0;

	need();
	while (n < most && s[n])
		n++;
	return n;
}

char *strcpy(char *restrict to, const char *restrict from)
{
	memcpy(to, from, strlen(from) + 1);
	return to;
}

char *stpcpy(char *restrict to, const char *restrict from)
{
	strcpy(to, from);
	return to + strlen(to);
}

char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
	need();
	for (size_t i = 0; i < n; i++) {
		((volatile char *)to)[i] = *from;
		from += !!*from;
	}
	return to;
}

int strncmp(const char *a, const char *b, size_t n)
{
	need();
	for (; n; n--, a++, b++)
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	return 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

char *strchr(const char *s, int c)
{
	need();
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

size_t strcspn(const char *s, const char *reject)
{
	size_t n = 0;

	while (s[n] && !strchr(reject, s[n]))
		n++;
	return n;
}

char *strstr(const char *in, const char *what)
{
	size_t n = strlen(what);

	for (; *in; in++)
		if (!strncmp(in, what, n))
			return (char *)(uintptr_t)in;
	return *what ? NULL : (char *)(uintptr_t)in;
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	static __typeof__(&dl_iterate_phdr) next;

	need();
	*(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	return next(callback, arg);
}

int main(void)
{
	char *p = malloc(100), *q = realloc(p, 1000);

	memset(q, 7, 1000);
	free(q);
	return 0;
}
