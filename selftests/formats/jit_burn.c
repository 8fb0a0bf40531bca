// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jit_burn.c - works for a while below code made at run time, whose unwind
 * information it registers with the C++ runtime; names it in a perf-map.
 *
 * usage: jit_burn plain|fp|swap
 *
 * Prints the perf-map's name; it is left there. swap: the code gets another name while it runs, as
 * if other code were at its place now, and the perf-map is removed at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "jit.h"

extern void __register_frame(void *eh_frame);
extern void __deregister_frame(void *eh_frame);

static volatile unsigned long sink;

static __attribute__((noinline, noclone)) int burn(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 2;

	while (clock() < end) {
		for (int i = 0; i < 100000; i++)
			sink += i;
	}
	return 1;
}

/* Works twice below the same code, which has one name first and another one then. */
static __attribute__((noinline)) int swap(int (*code)(int (*)(void)), size_t size)
{
	static const char *const names[] = { "first_at_the_place", "second_at_the_place" };
	char path[64];
	FILE *map;
	int r = 1;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	for (int i = 0; i < 2 && r == 1; i++) {
		map = fopen(path, "a");
		if (!map)
			return 1;
		fprintf(map, "%lx %zx %s\n", (unsigned long)code, size, names[i]);
		fclose(map);
		r = code(burn);
	}
	unlink(path);
	return r != 1;
}

int main(int argc, char **argv)
{
	static uint8_t section[256];
	int plain = argc > 1 && !strcmp(argv[1], "plain");
	size_t size = plain ? sizeof(jit_plain) : sizeof(jit_fp);
	volatile int r;
	int (*code)(int (*)(void));
	char path[64];
	FILE *map;

	code = plain ? jit_make(jit_plain, size, 0) : jit_make(jit_fp, size, 0);
	if (!code)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "swap"))
		return swap(code, size);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (map) {
		fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)code, size);
		fclose(map);
		puts(path);
	}
	if (plain) {
		jit_frames(section, code, size, jit_plain_cfi, sizeof(jit_plain_cfi));
		__register_frame(section);
	}
	r = code(burn);
	if (plain)
		__deregister_frame(section);
	return r != 1;
}
