// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * host.c - a program without a C++ library. Calls plugin() of the library that its argument names.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*plugin)(void);

	if (handle)
		*(void **)&plugin = dlsym(handle, "plugin");
	if (!handle || !plugin) {
		fprintf(stderr, "host: %s\n", dlerror());
		return 2;
	}
	return plugin();
}
