// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * local_test.c - a C program without an unwinder loads C++ code, which brings one
 * that nobody else can see: exceptions still pass markers. Prints KTAP.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "shstk_marker.h"

static int met;

static void capture(void)
{
	struct shstk_info info = { .size = sizeof(info) };
	uint64_t pcs[200];

	for (volatile int i = 0; i < 3; i++) {
		shstk_marker_capture(pcs, 200, &info);
		met += info.source == SHSTK_SOURCE_MARKER;
	}
}

int main(int argc, char **argv)
{
	int (*throwing)(void (*fn)(void), int depth), bad = 0;
	char path[500];
	void *lib;

	(void)argc;
	snprintf(path, sizeof(path), "%s_plugin.so", argv[0]);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	printf("TAP version 13\n1..1\n");
	if (!lib) {
		printf("not ok 1 %s\n", dlerror());
		return 1;
	}
	throwing = dlsym(lib, "throwing");
	if (dlsym(RTLD_DEFAULT, "_Unwind_Resume"))
		printf("# there is an unwinder for all to see\n");
	for (int i = 0; i < 100; i++)
		bad += throwing(capture, i % 30) != i % 30;
	printf("# %d markers met, %d bad\n", met, bad);
	printf("%sok 1 exceptions by an unwinder of a plugin's own pass markers\n",
	       bad || !met ? "not " : "");
	return bad || !met;
}
