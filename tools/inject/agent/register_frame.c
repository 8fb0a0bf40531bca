// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * register_frame.c - hooks of __register_frame() and __deregister_frame(). With these a JIT tells
 * the C++ runtime how to unwind its code; the agent listens.
 */
#include <dlfcn.h>

#include "agent.h"

HOOK_API void __register_frame(void *eh_frame);
HOOK_API void __deregister_frame(void *eh_frame);

/* Returns the C++ runtime's function. The runtime may be loaded where only its own users see it. */
static void *runtime(const char *name)
{
	void *fn = next_symbol(name);
	void *lib;

	if (fn)
		return fn;
	lib = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
	return lib ? dlsym(lib, name) : NULL;
}

HOOK_API void __register_frame(void *eh_frame)
{
	void (*next_fn)(void *) = runtime(__func__);

	if (next_fn)
		next_fn(eh_frame);
	shstk_register_frame(eh_frame);
}

HOOK_API void __deregister_frame(void *eh_frame)
{
	void (*next_fn)(void *) = runtime(__func__);

	shstk_deregister_frame(eh_frame);
	if (next_fn)
		next_fn(eh_frame);
}
