// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * private.c - functions of libc for preloaded objects alone.
 *
 * A call of such a function by name would reach the program's own, if the program defines it. A
 * program built with a sanitizer does, and its functions work only after its own constructors,
 * before which an agent is called, and not in every signal handler. The functions defined here are
 * hidden, so the linker binds this object's calls to them. Hot paths use only those that the
 * compiler makes inline. dl_iterate_phdr(), which needs libc, is taken from the next object after
 * this one; as this one is preloaded, that is never the program.
 *
 * No loop here may become a call of the very function that it is in, as compilers make of loops
 * that they recognize: so each loop has a statement that they cannot see through. Code that two
 * functions share is in a function whose name compilers do not know.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#pragma GCC visibility push(hidden)

/* Names in parentheses are also macros in glibc 2.43 and later. */

/* A statement in a loop that keeps the compiler from replacing the loop by a call. */
static inline void stay_a_loop(void)
{
	__asm__ volatile("" ::: "memory");
}

/*
 * Copies upwards. Each word is read before it is written, so a copy to a lower address may overlap.
 */
static void copy_upwards(uint8_t *d, const uint8_t *s, size_t n)
{
	for (; n >= 8; n -= 8, d += 8, s += 8) {
		uint64_t word;

		__builtin_memcpy(&word, s, 8);
		__builtin_memcpy(d, &word, 8);
		stay_a_loop();
	}
	for (; n; n--, stay_a_loop())
		*d++ = *s++;
}

static void copy_downwards(uint8_t *d, const uint8_t *s, size_t n)
{
	for (; n; stay_a_loop()) {
		n--;
		d[n] = s[n];
	}
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	copy_upwards(to, from, n);
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	if ((uintptr_t)to - (uintptr_t)from >= n)
		copy_upwards(to, from, n);
	else
		copy_downwards(to, from, n);
	return to;
}

void *memset(void *to, int c, size_t n)
{
	const uint64_t word = 0x0101010101010101ull * (uint8_t)c;
	uint8_t *d = to;

	for (; n >= 8; n -= 8, d += 8) {
		__builtin_memcpy(d, &word, 8);
		stay_a_loop();
	}
	for (; n; n--, stay_a_loop())
		*d++ = (uint8_t)c;
	return to;
}

static int compare(const uint8_t *a, const uint8_t *b, size_t n, bool texts)
{
	for (; n; n--, a++, b++, stay_a_loop())
		if (*a != *b || (texts && !*a))
			return *a - *b;
	return 0;
}

int memcmp(const void *a, const void *b, size_t n)
{
	return compare(a, b, n, false);
}

int strncmp(const char *a, const char *b, size_t n)
{
	return compare((const void *)a, (const void *)b, n, true);
}

int strcmp(const char *a, const char *b)
{
	return compare((const void *)a, (const void *)b, SIZE_MAX, true);
}

void *(memchr)(const void *in, int c, size_t n)
{
	const uint8_t *p = in;

	for (; n; n--, p++, stay_a_loop())
		if (*p == (uint8_t)c)
			return (void *)(uintptr_t)p;
	return NULL;
}

static const uint8_t *find(const uint8_t *in, size_t n, const uint8_t *what, size_t size)
{
	for (; n >= size; n--, in++, stay_a_loop())
		if (!compare(in, what, size, false))
			return in;
	return NULL;
}

void *memmem(const void *in, size_t n, const void *what, size_t size)
{
	return (void *)(uintptr_t)find(in, n, what, size);
}

static size_t length(const char *s, size_t most)
{
	size_t n = 0;

	for (; n < most && s[n]; n++)
		stay_a_loop();
	return n;
}

size_t strnlen(const char *s, size_t most)
{
	return length(s, most);
}

size_t strlen(const char *s)
{
	return length(s, SIZE_MAX);
}

char *(strstr)(const char *in, const char *what)
{
	return (char *)(uintptr_t)find((const void *)in, length(in, SIZE_MAX), (const void *)what,
				       length(what, SIZE_MAX));
}

char *(strchr)(const char *s, int c)
{
	for (; *s != (char)c; s++, stay_a_loop())
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

static bool is_one_of(char c, const char *set)
{
	for (; *set; set++)
		if (c == *set)
			return true;
	return false;
}

size_t strcspn(const char *s, const char *reject)
{
	size_t n = 0;

	while (s[n] && !is_one_of(s[n], reject))
		n++;
	return n;
}

static char *copy_text(char *to, const char *from)
{
	size_t n = length(from, SIZE_MAX);

	copy_upwards((uint8_t *)to, (const uint8_t *)from, n + 1);
	return to + n;
}

char *stpcpy(char *restrict to, const char *restrict from)
{
	return copy_text(to, from);
}

char *strcpy(char *restrict to, const char *restrict from)
{
	copy_text(to, from);
	return to;
}

char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
	size_t used = length(from, n);

	copy_upwards((uint8_t *)to, (const uint8_t *)from, used);
	memset(to + used, 0, n - used);
	return to;
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	static __typeof__(&dl_iterate_phdr) next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	return next ? next(callback, arg) : 0;
}
