// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * embed.c - a program with Python in it, as a server has it: nothing in its name says so.
 *
 *	embed LIBPYTHON ARGUMENT...
 *
 * Does what `python3 ARGUMENT...` does, by the library.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	int (*run)(int argc, char **argv);

	if (!library) {
		fprintf(stderr, "embed: %s\n", argc > 1 ? dlerror() : "no library is named");
		return 1;
	}
	*(void **)&run = dlsym(library, "Py_BytesMain");
	return run ? run(argc - 1, argv + 1) : 1;
}
