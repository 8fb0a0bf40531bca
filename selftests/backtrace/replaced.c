// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * replaced.c - asks for the functions of an object, and again when another object lies in its place.
 *
 *	replaced ONE TWO	two objects made of functions.c
 *
 * Prints how often the second one was where the first one had been, and how many answers were wrong.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

enum { FUNCTIONS = 8, SIZE = 16, ROUNDS = 20 };

static void *open_object(const char *path, uintptr_t *functions)
{
	void *object = dlopen(path, RTLD_NOW);

	*functions = object ? (uintptr_t)dlsym(object, "functions") : 0;
	if (!*functions) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return object;
}

/* Asks for each address behind an instruction of one byte. Returns the number of wrong answers. */
static int ask(uintptr_t functions)
{
	int wrong = 0;

	for (uintptr_t at = 1; at <= FUNCTIONS * SIZE; at++) {
		uintptr_t start = functions + (at - 1) / SIZE * SIZE;

		wrong += (uintptr_t)_Unwind_FindEnclosingFunction((void *)(functions + at)) !=
			 start;
	}
	/* Nothing is known of what lies in front of the first one and behind the last one. */
	wrong += !!_Unwind_FindEnclosingFunction((void *)functions);
	wrong += !!_Unwind_FindEnclosingFunction((void *)(functions + FUNCTIONS * SIZE + 1));
	return wrong;
}

int main(int argc, char **argv)
{
	int replaced = 0, wrong = 0;

	if (argc != 3)
		return 2;
	for (int i = 0; i < ROUNDS; i++) {
		uintptr_t one, two;
		void *object = open_object(argv[1], &one);

		wrong += ask(one);
		dlclose(object);
		object = open_object(argv[2], &two);
		replaced += two - one < SIZE;
		wrong += ask(two);
		dlclose(object);
	}
	printf("%d replaced, %d wrong\n", replaced, wrong);
	return 0;
}
