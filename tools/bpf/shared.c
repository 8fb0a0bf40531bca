// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shared.c - give tables to all BPF programs that are linked with shstk-stack.bpf.o. They share
 * pinned maps, which stay when this process ends: the next one goes on with them.
 *
 * One process serves at a time. One that a program started for itself (libshstk-bpf) waits meanwhile,
 * and looks now and then whether it is its turn: flock(2) cannot wait for two things at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rules/daemon.h"
#include "tools/shstk.h"

#if !__has_include(<bpf/libbpf.h>)
int rules_serve_bpf(int cache, const struct rules_starter *starter)
{
	static const char why[] =
		"serve --bpf is not part of this build: install libbpf-dev and build again";

	(void)cache;
	complain("%s", why);
	rules_starter_failed(starter, -EOPNOTSUPP, why);
	return EXIT_FAILURE;
}
#else
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/types.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "bpf/shstk_stack.bpf.h"
#include "tools/bpf/load_object.h"
#include "tools/bpf/serve_tables.h"
#include "tools/bpf/starter.h"
#include "tools/perf/rings.h"
#include "tools/rules/notify.h"

#define OBJECT "shstk-stack.bpf.o"
#define FOLDER "/sys/fs/bpf"
#define WHAT "serving BPF programs"
#define TURN_MS 200 /* the time between two looks whether the other process that serves has ended */

/* Opens the folder in which maps are pinned. Returns a descriptor or a negative errno. */
static int open_folder(struct reason *why)
{
	int fd = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = errno;
	struct statfs fs;

	if (fd < 0 && err != ENOENT) {
		because(why, "%s: %s: be root", FOLDER, strerror(err));
		return -err;
	}
	if (fd >= 0 && (fstatfs(fd, &fs) || fs.f_type == (typeof(fs.f_type))BPF_FS_MAGIC))
		return fd;
	if (fd >= 0)
		close(fd);
	because(why, "%s is not there to pin maps: mount -t bpf bpf %s", FOLDER, FOLDER);
	return -ENODEV;
}

/*
 * Makes this process the only one that serves the folder's maps, until it ends. Returns 0 or a negative
 * errno: -EBUSY if another one serves. The lock is the folder's own: who may not read that folder cannot
 * hold it, and in whatever other namespaces a process is, it meets the lock where it meets the maps.
 */
static int be_only_one(struct reason *why)
{
	int fd = open_folder(why), err;

	if (fd < 0)
		return fd;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	err = errno == EWOULDBLOCK ? EBUSY : errno;
	if (err == EBUSY)
		because(why, "BPF programs are served already, by another process");
	else
		because(why, "%s cannot be locked: %s", FOLDER, strerror(err));
	close(fd);
	return -err;
}

/* Returns the first slot that no table has. Slots are given in their order. */
static unsigned int first_free(const struct served *s)
{
	__u32 slot, id;

	for (slot = 1; slot < WALK_SLOTS; slot++)
		if (s->lib->map_lookup_elem(s->tables, &slot, &id))
			break;
	return slot;
}

/*
 * Forgets files that were asked for and have no table: whoever served them may have ended before.
 * Walks ask for them again. Counts the others.
 */
static void forget_asked(struct served *s)
{
	struct walk_file file, next;
	bool more = !s->lib->map_get_next_key(s->files, NULL, &next);
	__u32 slot;

	for (unsigned int i = 0; more && i < WALK_FILES; i++) {
		file = next;
		more = !s->lib->map_get_next_key(s->files, &file, &next);
		if (!s->lib->map_lookup_elem(s->files, &file, &slot) && !slot)
			s->lib->map_delete_elem(s->files, &file);
		else
			s->known++;
	}
}

/* Sets the settings of the programs, which go on with the generation that they have. */
static void settings(struct served *s)
{
	struct walk_config before = { 0 };
	uint64_t ns_dev, ns_ino;
	__u32 zero = 0;

	s->lib->map_lookup_elem(s->config, &zero, &before);
	bpf_own_namespace(&ns_dev, &ns_ino);
	s->told = (struct walk_config){
		.version = WALK_VERSION,
		.max = SHSTK_STACK_MAX,
		.generation = before.generation + 1,
		.page = sysconf(_SC_PAGESIZE),
		.ns_dev = ns_dev,
		.ns_ino = ns_ino,
	};
}

static int begin(const struct bpf_loaded *l, struct served *s, unsigned int *nr_waiting)
{
	const struct walk_file vdso = { 0 };
	__u32 slot = 0;
	int err;

	s->lib = l->lib;
	s->tables = bpf_loaded_map(l, "shstk_tables");
	s->files = bpf_loaded_map(l, "shstk_files");
	s->asked = bpf_loaded_map(l, "shstk_asked");
	s->config = bpf_loaded_map(l, "shstk_config");
	s->nr_waiting = nr_waiting;
	err = ring_map(s->asked, WALK_ASKED, &s->ring);
	if (err)
		return err;
	s->next = first_free(s);
	forget_asked(s);
	settings(s);
	/* Without it chains end in the vDSO. */
	if (s->lib->map_lookup_elem(s->files, &vdso, &slot) || !slot)
		serve_vdso(s);
	return serve_config(s);
}

/* Returns the version of whoever has served the maps, or 0. */
static __u32 version_of_maps(const struct bpf_loaded *l)
{
	struct walk_config config = { 0 };
	const __u32 zero = 0;

	return bpf_loaded_get(l, "shstk_config", &zero, &config) ? 0 : config.version;
}

/*
 * Loads the programs' maps: those that are pinned, or new ones. Those of another version have other sizes, or
 * tell it. Returns 0 or a negative errno.
 */
static int load(struct bpf_loaded *ret, struct reason *why)
{
	int err = bpf_loaded_open(WHAT, OBJECT, NULL, ret, why);
	const __u32 version = err ? 0 : version_of_maps(ret);

	if (err ? !strstr(why->text, "parameter mismatch") : !version || version == WALK_VERSION)
		return err;
	because(why, "the maps %s/shstk_* are of another version of shstk: remove them", FOLDER);
	return -EPROTO;
}

/* Sets @ret to whether the process that serves has told the programs their settings. */
static int look_at_maps(bool *ret, struct reason *why)
{
	struct bpf_loaded loaded;
	int err = load(&loaded, why);

	*ret = !err && version_of_maps(&loaded);
	bpf_loaded_close(&loaded);
	return err;
}

/*
 * Waits until no other process serves. The starter is served from the first moment on. Returns 0 or a
 * negative errno: -ECANCELED if the starter ended.
 */
static int await_turn(const struct rules_starter *starter, int stop, struct reason *why)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	bool told = false, served;
	int err;

	while ((err = be_only_one(why)) == -EBUSY && stop >= 0) {
		if (!told) {
			err = look_at_maps(&served, why);
			if (err)
				return err;
			if (served)
				starter_tell(starter, "READY=1");
			told = served;
		}
		if (poll(&p, 1, TURN_MS) > 0)
			return -ECANCELED;
	}
	return err;
}

/* Serves until the starter ends. Returns a negative errno. */
static int serve(struct served *s, const struct rules_starter *starter, struct reason *why)
{
	unsigned int nr_waiting = 0;
	struct bpf_loaded loaded;
	int err = await_turn(starter, s->stop, why);

	if (err)
		return err;
	err = load(&loaded, why);
	if (!err) {
		err = begin(&loaded, s, &nr_waiting);
		because(why, "%s: %s", WHAT, strerror(-err));
	}
	if (!err) {
		complain("%s by the maps %s/shstk_*", WHAT, FOLDER);
		notify_state("READY=1\n");
		starter_tell(starter, "READY=1");
		err = serve_asked(s);
		because(why, "%s: %s", WHAT, strerror(-err));
	}
	bpf_loaded_close(&loaded);
	return err;
}

int rules_serve_bpf(int cache, const struct rules_starter *starter)
{
	struct served *s = calloc(1, sizeof(*s));
	struct reason why;
	int err;

	if (!s)
		return EXIT_FAILURE;
	s->cache = cache;
	/* A file that waits for its table is open. */
	perf_more_files();
	err = starter_watch(starter, &s->stop, &why);
	if (!err)
		err = serve(s, starter, &why);
	if (err == -ECANCELED)
		return EXIT_SUCCESS;
	complain("%s", why.text);
	rules_starter_failed(starter, err, why.text);
	return EXIT_FAILURE;
}
#endif
