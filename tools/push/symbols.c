// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symbols.c - shstk push --symbols: finds the debug files of the programs that profiles name, and has
 * shstk-push send those that the server wants (send/symbols.c).
 *
 * A profile says which files were mapped, by path and build id. What is sent is the separate debug file
 * of that build id on this machine, or else the file at the path. Its build id is read again from the
 * open file that is sent, so a profile can't have another file sent, and each is sent once.
 */
#include <errno.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "libshstk/symbol/debugfile.h"
#include "libshstk/symbol/elf_file.h"
#include "libshstk/symbol/export.h"
#include "libshstk/symbol/root.h"
#include "tools/elf/image.h"
#include "tools/push/push.h"
#include "tools/report/perf_file.h"
#include "tools/shstk.h"

#define DEBUG_DIRS "/usr/lib/debug"

/**
 * struct program - a file whose debug file is to be sent
 * @hh: makes it a member of the hash table, by @id.
 * @id: its build id; bytes behind it are 0.
 * @path: its path.
 */
struct program {
	UT_hash_handle hh;
	struct build_id id;
	char *path;
};

/**
 * struct symbols - what was found and what became of it
 * @push: the options.
 * @programs: the files.
 * @sent: debug files that the server took.
 * @bytes: their bytes.
 * @unwanted: those that the server does not want.
 * @missing: build ids without a file on this machine.
 * @large: files that are too large.
 */
struct symbols {
	const struct push *push;
	struct program *programs;
	size_t sent;
	uint64_t bytes;
	size_t unwanted;
	size_t missing;
	size_t large;
};

/* ---- Which files ---- */

/* Adds a file, unless there is one with that build id. Returns false if out of memory. */
static bool add_program(struct symbols *s, const struct build_id *id, const char *path)
{
	struct program *p, *found;

	HASH_FIND(hh, s->programs, id, sizeof(*id), found);
	if (found)
		return true;
	p = calloc(1, sizeof(*p));
	if (!p)
		return false;
	p->id = *id;
	p->path = strdup(path);
	if (p->path)
		HASH_ADD(hh, s->programs, id, sizeof(p->id), p);
	if (p->path && p->hh.tbl)
		return true;
	free(p->path);
	free(p);
	return false;
}

/* Adds the files that a profile's samples have an address of. */
static bool add_maps(struct symbols *s, struct shstk_profile *profile)
{
	const struct shstk_symmap *map;
	struct build_id id;

	for (size_t i = 0; i < profile->nr_locations; i++) {
		map = profile->locations[i]->map;
		if (!map || map->kind != SHSTK_SYMMAP_FILE)
			continue;
		shstk_symmap_build_id(profile->symbols, map);
		memset(&id, 0, sizeof(id));
		if (!map->build_id || !map->build_id_size || map->build_id_size > sizeof(id.data))
			continue;
		id.size = map->build_id_size;
		memcpy(id.data, map->build_id, id.size);
		if (!add_program(s, &id, map->path))
			return false;
	}
	return true;
}

/* Reads a profile. Returns an exit status, after a message if it is a failure. */
static int add_profile(struct symbols *s, const char *path)
{
	const struct shstk_read_opts how = { 0 };
	struct shstk_symbols_opts opts = { .no_servers = true };
	struct shstk_symbols *symbols = NULL;
	struct shstk_profile *profile = NULL;
	int status = EXIT_FAILED, err;

	read_limit_apply(&s->push->read_limit, &opts);
	err = shstk_symbols_create(&opts, &symbols);
	if (!err)
		err = shstk_profile_create(symbols, &profile);
	if (!err && !report_read(profile, path, &how)) {
		err = add_maps(s, profile) ? 0 : -ENOMEM;
		status = err ? EXIT_FAILED : EXIT_OK;
	}
	if (err)
		complain("cannot read '%s': %s", path, strerror(-err));
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	return status;
}

/* Adds what a file names, or the file itself if it is a program. Returns an exit status. */
static int add_file(struct symbols *s, const char *path)
{
	char magic[SELFMAG] = "", *real;
	struct build_id id = { 0 };
	int fd = regular_open(path), status = EXIT_OK;
	bool is_elf = fd >= 0 && pread(fd, magic, SELFMAG, 0) == SELFMAG &&
		      !memcmp(magic, ELFMAG, SELFMAG);

	if (is_elf)
		build_id_of_file(fd, &id);
	if (fd >= 0)
		close(fd);
	if (!is_elf)
		return add_profile(s, path);
	real = realpath(path, NULL);
	if (!id.size) {
		complain("'%s' has no build id: a server could not find it again", path);
		status = EXIT_FAILED;
	} else if (!add_program(s, &id, real ? real : path)) {
		complain("%s", strerror(ENOMEM));
		status = EXIT_FAILED;
	}
	free(real);
	return status;
}

/* ---- Where they are ---- */

/* Returns the descriptor if the file has the build id; otherwise closes it and returns -1. */
static int checked(int fd, const struct build_id *wanted)
{
	struct build_id id = { 0 };

	if (fd < 0)
		return -1;
	build_id_of_file(fd, &id);
	if (id.size == wanted->size && !memcmp(id.data, wanted->data, id.size))
		return fd;
	close(fd);
	return -1;
}

/* Opens the separate debug file of an open file. Returns a descriptor or -1. */
static int open_separate(const struct shstk_debugplace *place, int own, const struct program *p)
{
	Elf *elf = own >= 0 ? shstk_elf_begin(own) : NULL;
	int fd = elf ? shstk_debugfile_open(place, p->path, elf) :
		       shstk_debugfile_by_id(place, p->id.data, p->id.size);

	elf_end(elf);
	return checked(fd, &p->id);
}

/* Opens the file to be sent: the separate one, or the program's own. Returns a descriptor or -1. */
static int open_debug_file(const struct program *p)
{
	const struct shstk_root here = { .fd = -1 };
	const struct shstk_debugplace place = { .root = &here, .dirs = DEBUG_DIRS };
	int own = checked(regular_open(p->path), &p->id);
	int fd = open_separate(&place, own, p);

	if (fd < 0)
		return own;
	if (own >= 0)
		close(own);
	return fd;
}

/* ---- Sending them ---- */

/* Counts what became of a debug file. Returns an exit status. */
static int count(struct symbols *s, const struct program *p, int status, uint64_t size)
{
	switch (status) {
	case EXIT_OK:
		s->sent++;
		s->bytes += size;
		return EXIT_OK;
	case PUSH_UNWANTED:
		s->unwanted++;
		return EXIT_OK;
	default:
		complain("the debug file of '%s' was not sent", p->path);
		return status;
	}
}

/* Sends the debug file of a program, if there is one. Returns an exit status of shstk-push. */
static int send_program(struct symbols *s, const struct program *p)
{
	int fd = open_debug_file(p), status = EXIT_OK;
	char id[129];
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		s->missing++;
	} else if ((uint64_t)st.st_size > s->push->symbols_size) {
		complain("the debug file of '%s' is not sent: %" PRIu64
			 " MiB are more than --symbols-size=%" PRIu64,
			 p->path, (uint64_t)st.st_size >> 20, s->push->symbols_size >> 20);
		s->large++;
	} else {
		status = push_send_symbols(s->push, build_id_text(&p->id, id), fd);
		status = count(s, p, status, st.st_size);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

/* Sends all. After a failure that the next file would have, too, no other one is tried. */
static int send_programs(struct symbols *s)
{
	struct program *p, *next;
	int ret = EXIT_OK, status;

	HASH_ITER(hh, s->programs, p, next)
	{
		status = send_program(s, p);
		if (status != EXIT_OK)
			ret = status == PUSH_USELESS ? EXIT_FAILED : status;
		if (status != EXIT_OK && status != EXIT_FAILED)
			break;
	}
	return ret;
}

static void forget_programs(struct symbols *s)
{
	struct program *p, *next;

	HASH_ITER(hh, s->programs, p, next)
	{
		HASH_DEL(s->programs, p);
		free(p->path);
		free(p);
	}
}

int push_symbols(const struct push *push)
{
	struct symbols s = { .push = push };
	int ret = EXIT_OK, status;

	for (int i = 0; i < push->nr_files; i++)
		if (add_file(&s, push->files[i]) != EXIT_OK)
			ret = EXIT_FAILED;
	status = send_programs(&s);
	if (status != EXIT_OK)
		ret = status;
	if (!push->quiet)
		complain(
			"debug files: %zu sent (%" PRIu64
			" KiB), %zu that the server has or does not want, %zu too large, %zu not on this machine",
			s.sent, s.bytes / 1024, s.unwanted, s.large, s.missing);
	forget_programs(&s);
	return ret;
}
