// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * gstreamer_cost.c - what a stack costs that GStreamer's leaks tracer takes for an object. Prints the CPU
 * time of one, 30 calls deep, in nanoseconds. The argument is the number of rounds.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "deep.h"

/* GStreamer's function with its flags, of which none are set, and what releases its text. */
static char *(*get_trace)(int flags);
static void (*release)(void *text);

/* Takes so many traces as the number at @arg says. */
static void take(void *arg)
{
	for (long i = *(long *)arg; i > 0; i--)
		release(get_trace(0));
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	void *library = dlopen("libgstreamer-1.0.so.0", RTLD_NOW);
	long rounds = argc > 1 ? atol(argv[1]) : 1000, one = 1;
	uint64_t begin;

	if (!library)
		return 4;
	*(void **)&get_trace = dlsym(library, "gst_debug_get_stack_trace");
	*(void **)&release = dlsym(library, "g_free");
	if (!get_trace || !release)
		return 4;
	deep(30, take, &one);
	begin = cpu_time();
	deep(30, take, &rounds);
	printf("gstreamer %.1f ns\n", (double)(cpu_time() - begin) / rounds);
	return 0;
}
