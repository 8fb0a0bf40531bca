// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * string.c - glibc's string and memory functions, which are assembly selected by the processor,
 * with sizes and alignments that reach their branches.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

static char from[20000], to[20000];

int main(void)
{
	static const size_t sizes[] = {
		0, 1, 7, 15, 31, 33, 65, 127, 129, 257, 600, 2100,
	};
	unsigned long sum = 0;
	size_t n;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (int shift = 0; shift < 26; shift += 13) {
			n = sizes[i];
			memset(from + shift, 'a', n + 40);
			from[shift + n] = 0;
			memcpy(to, from + shift, n + 1);
			memmove(to + 5, to, n + 1);
			memmove(to, to + 5, n + 1);
			sum += strlen(from + shift) + strnlen(to, 50);
			sum += memcmp(to, from + shift, n);
			sum += strcmp(to, from + shift);
			sum += strncmp(to, from + shift, n);
			sum += strcasecmp(to, from + shift);
			sum += (unsigned long)strchr(to, 'z');
			sum += (unsigned long)strrchr(to, 'a') & 1;
			sum += (unsigned long)memchr(to, 'z', n);
			sum += (unsigned long)memrchr(to, 'z', n);
			sum += strspn(to, "abc") + strcspn(to, "z");
			sum += (unsigned long)strstr(to, "ab");
			sum += (unsigned long)rawmemchr(to, 0) & 1;
			strcpy(to + 1, from + shift);
			stpcpy(to, from + shift);
			strncpy(to, from + shift, n);
			if (n < 100)
				strcat(to, from + shift);
		}
	}
	sum += wcslen(L"wide") + wmemcmp(L"abcd", L"abce", 4);
	printf("%lu\n", sum);
	return 0;
}
