/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * versus.c - two builds of libshstk.so in one process. They are timed in one run, in turns, on the
 * same stacks. See the script versus.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "shstk.h"
#include "versus.h"

static struct build {
	int (*capture)(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		       struct shstk_info *info);
} old, new;

static bool load(struct build *b, const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		fprintf(stderr, "bench: %s\n", dlerror());
		return false;
	}
	*(void **)&b->capture = dlsym(lib, "shstk_capture");
	if (b->capture)
		return true;
	fprintf(stderr, "bench: %s is no libshstk\n", path);
	return false;
}

bool versus_load(const char *old_path, const char *new_path)
{
	return load(&old, old_path) && load(&new, new_path);
}

bool versus_loaded(void)
{
	return new.capture;
}

#define WAY(build, way, use)                                               \
	static int build##_##way(uint64_t *pcs, int max)                   \
	{                                                                  \
		static const struct shstk_opts opts = {                    \
			.size = sizeof(opts),                              \
			.sources = (use),                                  \
		};                                                         \
                                                                           \
		return build.capture(pcs, (unsigned int)max, &opts, NULL); \
	}

WAY(old, memo, SHSTK_USE_MEMO | SHSTK_USE_WALK)
WAY(new, memo, SHSTK_USE_MEMO | SHSTK_USE_WALK)
WAY(old, walk, SHSTK_USE_WALK)
WAY(new, walk, SHSTK_USE_WALK)

const struct source versus_sources[VERSUS_SOURCES] = {
	{ "old-memo", ON_ALL, true, true, old_memo, NULL, NULL },
	{ "new-memo", ON_ALL, true, true, new_memo, NULL, NULL },
	{ "old-walk", ON_ALL, true, true, old_walk, NULL, NULL },
	{ "new-walk", ON_ALL, true, true, new_walk, NULL, NULL },
};
