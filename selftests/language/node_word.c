// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * node_word.c - a module for Node.js that is an ArrayBuffer: the first page of the file WORD, mapped.
 *
 * Node.js exports these functions (Node-API), whose binary interface remains. Its headers are in a
 * package of their own.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;

int napi_create_external_arraybuffer(napi_env env, void *data, size_t size,
				     void (*done)(napi_env env, void *data, void *hint), void *hint,
				     napi_value *ret);
napi_value napi_register_module_v1(napi_env env, napi_value exports);

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	const char *path = getenv("WORD");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	napi_value ret;

	if (page == MAP_FAILED ||
	    napi_create_external_arraybuffer(env, page, PAGE, NULL, NULL, &ret))
		return exports;
	return ret;
}
