// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * search.c - find a library where the dynamic linker would find it.
 *
 * The search order is the one of ld.so(8): DT_RPATH of the object and of the objects that loaded it
 * (if the object has no DT_RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH, /etc/ld.so.cache, the default
 * folders. In every folder, the glibc-hwcaps subfolders come first.
 */
#include <ctype.h>
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/elf/objects.h"
#include "tools/elf/search.h"

#ifndef EM_RISCV
#define EM_RISCV 243
#endif

#define MAX_CACHE (64 << 20)

/* Returns the names of the glibc-hwcaps subfolders that this machine uses, the best first. */
static const char *const *hwcaps(unsigned int machine)
{
	static const char *const none[] = { NULL };
#ifdef __x86_64__
	static const char *const levels[] = { "x86-64-v4", "x86-64-v3", "x86-64-v2", NULL };

	if (machine != EM_X86_64)
		return none;
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
	    __builtin_cpu_supports("fma"))
		return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
				       __builtin_cpu_supports("avx512dq") ?
			       levels :
			       levels + 1;
	if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
		return levels + 2;
	return none;
#else
	(void)machine;
	return none;
#endif
}

static int try_folder(struct objects *set, const char *dir, size_t len, const char *name,
		      size_t parent)
{
	char path[PATH_MAX];
	int ret;

	if (!len)
		return 0;
	for (const char *const *cap = hwcaps(set->v[0].machine); *cap; cap++) {
		if (snprintf(path, sizeof(path), "%.*s/glibc-hwcaps/%s/%s", (int)len, dir, *cap,
			     name) >= (int)sizeof(path))
			return 0;
		ret = objects_add_file(set, path, name, parent);
		if (ret)
			return ret;
	}
	if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, name) >= (int)sizeof(path))
		return 0;
	return objects_add_file(set, path, name, parent);
}

/* Returns what $LIB stands for in Debian's ld.so. */
static const char *lib_word(unsigned int machine)
{
	switch (machine) {
	case EM_X86_64:
		return "lib/x86_64-linux-gnu";
	case EM_AARCH64:
		return "lib/aarch64-linux-gnu";
	case EM_RISCV:
		return "lib/riscv64-linux-gnu";
	default:
		return "lib";
	}
}

/* Returns what $PLATFORM stands for in Debian's ld.so. */
static const char *platform_word(unsigned int machine)
{
	return machine == EM_X86_64 ? "x86_64" : machine == EM_AARCH64 ? "aarch64" : "riscv64";
}

/* Returns the length of "$WORD" or "${WORD}" if @s begins with it, else 0. */
static size_t take_word(const char *s, const char *word)
{
	size_t n = strlen(word);

	if (s[0] != '$')
		return 0;
	if (s[1] == '{' && !strncmp(s + 2, word, n) && s[2 + n] == '}')
		return n + 3;
	if (!strncmp(s + 1, word, n) && s[1 + n] != '_' && !isalnum((unsigned char)s[1 + n]))
		return n + 1;
	return 0;
}

/* Expands $ORIGIN, $LIB and $PLATFORM. Returns the length, or 0 if the result is too long. */
static size_t expand(const struct object *o, const char *in, size_t len, char *out, size_t room)
{
	size_t used = 0, skip, n;

	while (len && *in) {
		const char *word = in;

		n = 1;
		if ((skip = take_word(in, "ORIGIN"))) {
			word = o->path;
			n = (size_t)(strrchr(o->path, '/') - o->path);
		} else if ((skip = take_word(in, "LIB"))) {
			word = lib_word(o->machine);
			n = strlen(word);
		} else if ((skip = take_word(in, "PLATFORM"))) {
			word = platform_word(o->machine);
			n = strlen(word);
		} else {
			skip = 1;
		}
		if (skip > len || used + n >= room)
			return 0;
		memcpy(out + used, word, n);
		used += n;
		in += skip;
		len -= skip;
	}
	out[used] = '\0';
	return used;
}

/* Tries the folders of a colon-separated list. $ORIGIN is the folder of the object @origin. */
static int try_list(struct objects *set, const char *list, size_t origin, const char *name,
		    size_t parent)
{
	char dir[PATH_MAX];
	int ret;

	if (!list)
		return 0;
	while (*list) {
		size_t len = strcspn(list, ":;");
		size_t n = expand(&set->v[origin], list, len, dir, sizeof(dir));

		ret = try_folder(set, dir, n, name, parent);
		if (ret)
			return ret;
		list += len;
		list += *list != '\0';
	}
	return 0;
}

/* Tries DT_RPATH of the object @parent, of the object that loaded it, and so on. */
static int try_rpaths(struct objects *set, const char *name, size_t parent)
{
	size_t i = parent;
	int ret;

	if (set->v[parent].runpath)
		return 0;
	for (;;) {
		if (!set->v[i].runpath) {
			ret = try_list(set, set->v[i].rpath, i, name, parent);
			if (ret)
				return ret;
		}
		if (set->v[i].parent == i)
			break;
		i = set->v[i].parent;
	}
	if (i != 0 && !set->v[0].runpath)
		return try_list(set, set->v[0].rpath, 0, name, parent);
	return 0;
}

struct cache_header {
	char magic[20];
	uint32_t nlibs;
	uint32_t len_strings;
	uint32_t unused[5];
};

struct cache_entry {
	int32_t flags;
	uint32_t key;
	uint32_t value;
	uint32_t osversion;
	uint64_t hwcap;
};

static int32_t cache_flags(const struct object *o)
{
	switch (o->machine) {
	case EM_X86_64:
		return o->bits == 64 ? 0x0303 : 0x0803;
	case EM_386:
		return 0x0003;
	case EM_AARCH64:
		return 0x0a03;
	case EM_RISCV:
		return 0x1003;
	default:
		return -1;
	}
}

/* Returns the whole /etc/ld.so.cache, which is read once per root. */
static const char *cache_bytes(const char *root, size_t *size)
{
	static char *bytes;
	static char *of;
	static size_t len;
	struct stat st;
	ssize_t n;
	int fd;

	if (of && !strcmp(of, root)) {
		*size = len;
		return bytes;
	}
	free(of);
	free(bytes);
	bytes = NULL;
	len = 0;
	of = strdup(root);
	fd = root_open(root, "/etc/ld.so.cache");
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0 && st.st_size <= MAX_CACHE) {
		bytes = malloc((size_t)st.st_size + 1);
		n = bytes ? read(fd, bytes, (size_t)st.st_size) : 0;
		len = n > 0 ? (size_t)n : 0;
		if (bytes)
			bytes[len] = '\0';
	}
	if (fd >= 0)
		close(fd);
	*size = len;
	return bytes;
}

static int try_cache(struct objects *set, const char *name, size_t parent)
{
	static const char magic[] = "glibc-ld.so.cache1.1";
	int32_t flags = cache_flags(&set->v[0]);
	struct cache_header head;
	struct cache_entry entry;
	const char *bytes, *base;
	size_t size, count;
	int ret;

	bytes = cache_bytes(set->root, &size);
	if (!bytes || size < sizeof(head))
		return 0;
	base = memcmp(bytes, magic, 20) ? memmem(bytes, size, magic, 20) : bytes;
	if (!base)
		return 0;
	size -= (size_t)(base - bytes);
	if (size < sizeof(head))
		return 0;
	memcpy(&head, base, sizeof(head));
	count = (size - sizeof(head)) / sizeof(entry);
	if (head.nlibs < count)
		count = head.nlibs;
	for (size_t i = 0; i < count; i++) {
		memcpy(&entry, base + sizeof(head) + i * sizeof(entry), sizeof(entry));
		/* Skip entries of glibc-hwcaps subfolders: try_folder() finds these itself. */
		if (entry.flags != flags || entry.hwcap || entry.key >= size ||
		    entry.value >= size || strcmp(base + entry.key, name))
			continue;
		ret = try_folder(
			set, base + entry.value,
			(size_t)(strrchr(base + entry.value, '/') ?
					 strrchr(base + entry.value, '/') - (base + entry.value) :
					 0),
			name, parent);
		if (!ret)
			ret = objects_add_file(set, base + entry.value, name, parent);
		if (ret)
			return ret;
	}
	return 0;
}

static int try_defaults(struct objects *set, const char *name, size_t parent)
{
	const char *lib = lib_word(set->v[0].machine);
	char dir[PATH_MAX];
	const char *const dirs[] = { "/%s", "/usr/%s", "/lib64", "/usr/lib64", "/lib", "/usr/lib" };
	int ret;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		if (i < 2)
			snprintf(dir, sizeof(dir), i ? "/usr/%s" : "/%s", lib);
		else
			snprintf(dir, sizeof(dir), "%s", dirs[i]);
		ret = try_folder(set, dir, strlen(dir), name, parent);
		if (ret)
			return ret;
	}
	return 0;
}

static bool is_musl(const struct objects *set)
{
	return set->v[0].interp && strstr(set->v[0].interp, "/ld-musl-");
}

/*
 * Returns true if @name is the dynamic linker, which is loaded before any search. The dynamic
 * linker of musl is its libc, too.
 */
static bool is_linker(const struct objects *set, const char *name)
{
	const char *interp = set->v[0].interp;

	if (!interp)
		return false;
	if (is_musl(set) && !strncmp(name, "libc.", 5))
		return true;
	return !strcmp(strrchr(interp, '/') ? strrchr(interp, '/') + 1 : interp, name);
}

/*
 * Tries the folders of musl's dynamic linker. It has no cache, and reads its folders from
 * /etc/ld-musl-ARCH.path.
 */
static int try_musl(struct objects *set, const char *name, size_t parent)
{
	static const char fallback[] = "/lib:/usr/local/lib:/usr/lib";
	char path[PATH_MAX], list[8192];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/etc/ld-musl-%s.path", platform_word(set->v[0].machine));
	fd = root_open(set->root, path);
	if (fd >= 0) {
		n = read(fd, list, sizeof(list) - 1);
		close(fd);
	}
	if (n < 0)
		return try_list(set, fallback, 0, name, parent);
	list[n] = '\0';
	for (char *p = list; *p; p++)
		if (*p == '\n')
			*p = ':';
	return try_list(set, list, 0, name, parent);
}

int search_library(struct objects *set, const char *name, size_t parent)
{
	const char *env = *set->root ? NULL : getenv("LD_LIBRARY_PATH");
	int ret;

	for (size_t i = 0; i < set->n; i++)
		if (!strcmp(set->v[i].name, name) ||
		    (set->v[i].soname && !strcmp(set->v[i].soname, name)))
			return 1;
	if (is_linker(set, name))
		return 1; /* load_linker() adds it at the end */
	if (strchr(name, '/'))
		return objects_add_file(set, name, name, parent);
	ret = try_rpaths(set, name, parent);
	if (!ret && !set->v[0].privileged)
		ret = try_list(set, env, 0, name, parent);
	if (!ret)
		ret = try_list(set, set->v[parent].runpath, parent, name, parent);
	if (!ret && is_musl(set))
		return try_musl(set, name, parent);
	if (!ret && !set->v[parent].nodeflib)
		ret = try_cache(set, name, parent);
	if (!ret && !set->v[parent].nodeflib)
		ret = try_defaults(set, name, parent);
	return ret;
}
