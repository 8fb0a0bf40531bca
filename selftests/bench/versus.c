/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * versus.c - two builds of libshstk.so in one process, to be timed in one run: by
 * turns, on the same stacks. See the script of that name.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "shstk.h"
#include "versus.h"

static struct build {
	int (*capture)(uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
		       struct shstk_info *info);
	int (*set)(unsigned int scope, unsigned int on);
	void (*withdraw)(void);
} old, new;

static bool load(struct build *b, const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		fprintf(stderr, "bench: %s\n", dlerror());
		return false;
	}
	*(void **)&b->capture = dlsym(lib, "shstk_capture");
	*(void **)&b->set = dlsym(lib, "shstk_markers_set");
	*(void **)&b->withdraw = dlsym(lib, "shstk_markers_withdraw");
	if (b->capture && b->set && b->withdraw)
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

void versus_withdraw(void)
{
	if (!versus_loaded())
		return;
	old.withdraw();
	new.withdraw();
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
WAY(old, marker, SHSTK_USE_MARKER | SHSTK_USE_MEMO | SHSTK_USE_WALK)
WAY(new, marker, SHSTK_USE_MARKER | SHSTK_USE_MEMO | SHSTK_USE_WALK)

static const char *load_markers(void)
{
	if (old.set(SHSTK_MARKERS_THREAD, 1) || new.set(SHSTK_MARKERS_THREAD, 1))
		return "markers are not available";
	return NULL;
}

const struct source versus_sources[VERSUS_SOURCES] = {
	{ "old-memo", ON_ALL, true, true, old_memo, NULL, NULL },
	{ "new-memo", ON_ALL, true, true, new_memo, NULL, NULL },
	{ "old-walk", ON_ALL, true, true, old_walk, NULL, NULL },
	{ "new-walk", ON_ALL, true, true, new_walk, NULL, NULL },
	{ "old-marker", ON_ALL, true, true, old_marker, load_markers, NULL },
	{ "new-marker", ON_ALL, true, true, new_marker, load_markers, NULL },
};
