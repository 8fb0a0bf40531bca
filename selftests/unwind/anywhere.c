// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * anywhere.c - runs while signals arrive between any two instructions; the oracle sends them.
 * Prologues, epilogues, the PLT and string functions are interrupted.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int count;

static void handler(int sig)
{
	(void)sig;
	count++;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

__attribute__((noinline)) static int depth(int n)
{
	volatile char room[24] = { 0 };

	return n ? depth(n - 1) + room[n] : (int)strtol("12", NULL, 10);
}

int main(void)
{
	char words[8][8] = { "one", "two", "three", "four", "five", "six", "seven", "eight" };
	int sum = 0;

	signal(SIGUSR1, handler);
	for (int i = 0; i < 12; i++) {
		sum += depth(i);
		qsort(words, 8, 8, compare);
		memset(words[i % 8], 'a' + i, 5);
		free(malloc(1000 * i));
	}
	printf("%d %d %s\n", sum, count > 0, words[0]);
	return 0;
}
