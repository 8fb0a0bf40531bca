// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * embed.c - a program with Python in it, as a server has it: nothing in its name says so.
 *
 *	embed [-w] LIBPYTHON ARGUMENT...
 *
 * Does what `python3 ARGUMENT...` does, by the library. With -w it says "ready" first, and loads the library
 * after a line.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int (*run)(int argc, char **argv);
	void *library;
	char c;

	if (argc > 1 && !strcmp(argv[1], "-w")) {
		argc--;
		argv++;
		if (puts("ready") < 0 || fflush(stdout) || read(STDIN_FILENO, &c, 1) != 1)
			return 1;
	}
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;

	if (!library) {
		fprintf(stderr, "embed: %s\n", argc > 1 ? dlerror() : "no library is named");
		return 1;
	}
	*(void **)&run = dlsym(library, "Py_BytesMain");
	return run ? run(argc - 1, argv + 1) : 1;
}
