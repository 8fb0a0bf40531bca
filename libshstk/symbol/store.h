/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store.h - the inside of the store and of the views of processes.
 *
 * A view is a sorted array of disjoint mappings. Mappings that were handed out are
 * never changed or freed: what is cut or unmapped is replaced in the array and goes to
 * a table of former ones (former.c), where addresses that nothing covers now are looked for. Those
 * at its end in which none was found are used again.
 */
#ifndef SHSTK_STORE_H
#define SHSTK_STORE_H

#include "private.h"

struct object_entry;
struct image_entry;
struct lookup;
struct shstk_kernel_asker;
struct shstk_kernel_functions;

/**
 * struct shstk_map - a mapping
 * @pub: first: a map is handed out as this.
 * @dev: device and
 * @inode: inode number that the kernel told, or 0.
 * @object: its file, or NULL.
 * @next: next spare one.
 * @pieces: ranges of former ones that have it.
 * @found: it was handed out.
 */
struct shstk_map {
	struct shstk_symmap pub;
	uint64_t dev;
	uint64_t inode;
	struct shstk_object *object;
	struct shstk_map *next;
	unsigned int pieces;
	bool found;
};

struct shstk_former_range;

/**
 * struct shstk_former - mappings that were
 * @v: ranges of addresses, @nr of them, room for @max.
 * @added: how many mappings were ever added.
 */
struct shstk_former {
	struct shstk_former_range *v;
	size_t nr;
	size_t max;
	uint64_t added;
};

/**
 * struct shstk_symbols - the store
 * @pool: all that lives as long as the store.
 * @opts: its options.
 * @budget: what reading files may cost.
 * @roots: root folders of processes.
 * @objects: open files, by device and inode number.
 * @images: images in memory.
 * @procs: all views.
 * @kernel: the one of the kernel, or NULL.
 * @lookups: addresses that were looked up.
 * @spare: mappings to be used again.
 * @path_bytes: in paths of mappings.
 * @made_bytes: in processes' own perf-map files,
 * @made_files: so many of which are kept open.
 * @former_made: names of code of programs that are not there any more.
 */
struct shstk_symbols {
	struct shstk_pool pool;
	struct shstk_symbols_opts opts;
	struct shstk_budget budget;
	struct shstk_root *roots;
	struct object_entry *objects;
	struct image_entry *images;
	struct shstk_symproc *procs;
	struct shstk_symproc *kernel;
	struct lookup *lookups;
	struct shstk_map *spare;
	size_t path_bytes;
	size_t made_bytes;
	unsigned int made_files;
	struct shstk_former_made *former_made;
};

#define SHSTK_MADE_TAIL 64

/**
 * struct shstk_made - how far a process's own perf-map file was read
 * @wanted: an address of a sample was in no file: it is looked at while the process runs.
 * @tried: it was looked for.
 * @full: it takes more than it may.
 * @open: the file is kept open, so that its end is read if it is removed,
 * @fd: as this.
 * @dev: its device and
 * @ino: inode number, once it was found.
 * @written: when it was written last, ns since 1970.
 * @done: bytes of it that were read.
 * @tail: the last ones of these, @nr_tail of them.
 * @next: time of the sample before which it is not looked at again, ns.
 */
struct shstk_made {
	bool wanted;
	bool tried;
	bool full;
	bool open;
	int fd;
	uint64_t dev;
	uint64_t ino;
	uint64_t written;
	uint64_t done;
	char tail[SHSTK_MADE_TAIL];
	size_t nr_tail;
	uint64_t next;
};

/**
 * struct shstk_symproc - the view of a process
 * @symbols: the store.
 * @next: next view of the store.
 * @parent: process it was forked from, whose generated code it may run.
 * @pid: process ID here, and
 * @ns_pid: as the process sees itself.
 * @uid: its user, or -1.
 * @started: when it started, seconds since 1970, or 0.
 * @root: where its paths start.
 * @maps: its mappings, sorted, disjoint; @nr of them, room for @max.
 * @former: mappings that were.
 * @none: stands for all that is not mapped.
 * @perfmap: names from its own perf-map file.
 * @perfmap_account: what that file takes; opened when it is first read.
 * @made: how far that file was read.
 * @extra: names from files that were given.
 * @functions: those of the kernel, in the view that is of it.
 * @edition: grows when names are added, to tell old lookups.
 * @changes: grows when something is mapped or is no more.
 * @path_bytes: in paths that no other process had.
 */
struct shstk_symproc {
	struct shstk_symbols *symbols;
	struct shstk_symproc *next;
	struct shstk_symproc *parent;
	int pid;
	int ns_pid;
	uid_t uid;
	int64_t started;
	struct shstk_root *root;
	struct shstk_map **maps;
	size_t nr;
	size_t max;
	struct shstk_former former;
	struct shstk_map none;
	struct shstk_perfmap *perfmap;
	struct shstk_account perfmap_account;
	struct shstk_made made;
	struct shstk_perfmap *extra;
	struct shstk_kernel_functions *functions;
	uint64_t edition;
	uint64_t changes;
	size_t path_bytes;
};

/* mapping.c: a new mapping with its file; a part of one, or for another process.
 * NULL when memory runs out.
 */
struct shstk_map *shstk_map_create(struct shstk_symproc *proc,
				   const struct shstk_symmap_info *info);
struct shstk_map *shstk_map_copy(struct shstk_symproc *proc, const struct shstk_map *map,
				 uint64_t start, uint64_t end);
/* It is not in use any more. */
void shstk_map_put(struct shstk_map *map);
/* Bytes of a path without the kernel's " (deleted)". */
size_t shstk_map_path_length(const char *path);
void shstk_objects_destroy(struct shstk_symbols *symbols);

/* former.c: a mapping that is in use no more. If memory runs out, it is not remembered. */
void shstk_former_add(struct shstk_former *former, struct shstk_map *map);
/* The last one that had @addr, or NULL. */
struct shstk_map *shstk_former_find(const struct shstk_former *former, uint64_t addr);
void shstk_former_clear(struct shstk_former *former);

/* kernel.c: where all addresses of the kernel lie; NULL when memory runs out. */
const struct shstk_symmap *shstk_kernel_map(struct shstk_symbols *symbols);
/* The function at an address, or NULL; until the next call. */
const struct shstk_perfmap_entry *shstk_kernel_find(struct shstk_kernel_functions *functions,
						    uint64_t addr);
void shstk_kernel_destroy(struct shstk_kernel_functions *functions);

/* kernel_ask.c: what asks the kernel for a function; NULL: it cannot be asked. */
struct shstk_kernel_asker *shstk_kernel_asker_create(void);
void shstk_kernel_asker_destroy(struct shstk_kernel_asker *asker);
/* The function at an address; the name until the next call. False: it names none. */
bool shstk_kernel_ask(struct shstk_kernel_asker *asker, uint64_t addr,
		      struct shstk_perfmap_entry *ret);

/* process.c */
void shstk_symproc_destroy(struct shstk_symproc *proc);

/* made.c: the newest perf-map entry for an address, or NULL. */
const struct shstk_perfmap_entry *shstk_symproc_made(struct shstk_symproc *proc, uint64_t addr);
/* That at the time of the sample of which shstk_made_follow() was told. It stays. */
const struct shstk_perfmap_entry *shstk_symproc_made_now(struct shstk_symproc *proc, uint64_t addr);
/* A sample of the process has that time, in ns of CLOCK_MONOTONIC: reads what there is to read. */
void shstk_made_follow(struct shstk_symproc *proc, uint64_t time);
/* The process is another program now. */
void shstk_made_forget(struct shstk_symproc *proc);
/* It has ended: what is left in its file is read, which is closed. */
void shstk_made_end(struct shstk_symproc *proc);
/* Of a view that goes, and of a store. */
void shstk_made_deinit(struct shstk_symproc *proc);
void shstk_former_made_destroy(struct shstk_symbols *symbols);

/* symbol.c: the function @made, which an address of @map was in. */
const struct shstk_symbol *shstk_symbols_made(struct shstk_symbols *symbols,
					      const struct shstk_symmap *map, uint64_t pc, int how,
					      const struct shstk_perfmap_entry *made);

#endif /* SHSTK_STORE_H */
