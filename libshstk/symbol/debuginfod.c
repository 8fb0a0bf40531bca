// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * debuginfod.c - debug files from a server.
 *
 * Whoever sets DEBUGINFOD_URLS wants programs that look for debug information to ask these servers.
 * libdebuginfod of elfutils does that, with a cache and with the limits of
 * debuginfod-client-config(7). It brings libcurl and many more libraries with it. So it is loaded
 * only when DEBUGINFOD_URLS is set, and where it is not installed no server is asked.
 */
#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "debuginfod.h"

struct debuginfod_library {
	typeof(debuginfod_begin) *begin;
	typeof(debuginfod_find_debuginfo) *find;
	typeof(debuginfod_end) *end;
};

/*
 * Loads libdebuginfod. It stays loaded, because libcurl cannot be initialised twice in one program.
 */
static bool load(struct debuginfod_library *lib)
{
	void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!handle)
		return false;
	lib->begin = (typeof(lib->begin))dlsym(handle, "debuginfod_begin");
	lib->find = (typeof(lib->find))dlsym(handle, "debuginfod_find_debuginfo");
	lib->end = (typeof(lib->end))dlsym(handle, "debuginfod_end");
	dlclose(handle);
	return lib->begin && lib->find && lib->end;
}

int shstk_debuginfod_open(const void *build_id, size_t size)
{
	const char *urls = secure_getenv(DEBUGINFOD_URLS_ENV_VAR);
	debuginfod_client *client;
	struct debuginfod_library lib;
	int fd;

	if (!urls || !*urls || !load(&lib))
		return -ENOENT;
	client = lib.begin();
	if (!client)
		return -ENOMEM;
	fd = lib.find(client, build_id, size, NULL);
	lib.end(client);
	return fd;
}
