// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shared.c - give tables to all BPF programs that are linked with shstk-stack.bpf.o. They share
 * pinned maps, which stay when this process ends: the next one goes on with them.
 */
#include <errno.h>
#include <string.h>

#include "tools/rules/daemon.h"
#include "tools/shstk.h"

#if !__has_include(<bpf/libbpf.h>)
int rules_serve_bpf(int cache)
{
	(void)cache;
	complain("serve --bpf is not part of this build: install libbpf-dev and build again");
	return EXIT_FAILURE;
}
#else
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "bpf/shstk_stack.bpf.h"
#include "tools/bpf/load_object.h"
#include "tools/bpf/serve_tables.h"
#include "tools/perf/rings.h"
#include "tools/rules/notify.h"

#define OBJECT "shstk-stack.bpf.o"
#define FOLDER "/sys/fs/bpf"

/* Opens the folder in which maps are pinned. Returns a descriptor, or -1 and sets errno. */
static int open_folder(void)
{
	int fd = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0 || (!fstatfs(fd, &fs) && fs.f_type == (typeof(fs.f_type))BPF_FS_MAGIC))
		return fd;
	close(fd);
	errno = ENOENT;
	return -1;
}

/*
 * Makes this process the only one that serves the folder's maps, until it ends. Returns false, with
 * a message, if it cannot be. The lock is the folder's own: who may not read that folder cannot hold
 * it, and in whatever other namespaces a process is, it meets the lock where it meets the maps.
 */
static bool be_only_one(void)
{
	int fd = open_folder();

	if (fd < 0) {
		if (errno == ENOENT)
			complain("%s is not there to pin maps: mount -t bpf bpf %s", FOLDER,
				 FOLDER);
		else
			complain("%s: %s: be root", FOLDER, strerror(errno));
		return false;
	}
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return true;
	if (errno == EWOULDBLOCK)
		complain("BPF programs are served already, by another process");
	else
		complain("%s cannot be locked: %s", FOLDER, strerror(errno));
	close(fd);
	return false;
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

int rules_serve_bpf(int cache)
{
	struct served *s = calloc(1, sizeof(*s));
	unsigned int nr_waiting = 0;
	struct bpf_loaded loaded;
	struct reason why;
	int err;

	if (!s)
		return EXIT_FAILURE;
	s->cache = cache;
	/* A file that waits for its table is open. */
	perf_more_files();
	if (!be_only_one())
		return EXIT_FAILURE;
	if (bpf_loaded_open("serving BPF programs", OBJECT, NULL, &loaded, &why)) {
		complain("%s", why.text);
		return EXIT_FAILURE;
	}
	err = begin(&loaded, s, &nr_waiting);
	if (!err) {
		complain("serving BPF programs by the maps %s/shstk_*", FOLDER);
		notify_state("READY=1\n");
		err = serve_asked(s);
	}
	complain("serving BPF programs: %s", strerror(-err));
	bpf_loaded_close(&loaded);
	return EXIT_FAILURE;
}
#endif
