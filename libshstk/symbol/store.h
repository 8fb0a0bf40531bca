/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store.h - the inside of the symbol store and of the views of processes.
 *
 * A view is a sorted array of disjoint mappings. Mappings that were handed out are never changed or
 * freed. A mapping that is cut or unmapped is replaced in the array and goes to a table of former
 * mappings (former_mappings.c), where addresses are looked for that no mapping covers now. Mappings
 * that end without ever having been handed out are used again.
 */
#ifndef SHSTK_STORE_H
#define SHSTK_STORE_H

#include "budget.h"
#include "object_names.h"
#include "perfmap.h"
#include "pool.h"
#include "root.h"
#include "symbol.h"

struct object_entry;
struct image_entry;
struct lookup;
struct process_account;
struct shstk_kernel_asker;
struct shstk_labels;
struct shstk_kernel_functions;
struct shstk_function;

/**
 * struct shstk_map - a mapping
 * @pub: the public part; it is the first member because a map is handed out as a pointer to it.
 * @dev: device of the file that the kernel told, or 0.
 * @inode: inode number of the file that the kernel told, or 0.
 * @object: the file, or NULL.
 * @next: next mapping in the list of spare ones.
 * @pieces: number of ranges in the table of former mappings that refer to it.
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

struct shstk_former_mapping;

/**
 * struct shstk_former_mappings - mappings that are no more
 * @v: ranges of addresses with the mapping that each had last.
 * @nr: number of ranges.
 * @max: number of ranges that @v has room for.
 * @added: number of mappings that were ever added.
 */
struct shstk_former_mappings {
	struct shstk_former_mapping *v;
	size_t nr;
	size_t max;
	uint64_t added;
};

/**
 * struct shstk_symbols - the symbol store
 * @pool: memory that lives as long as the store.
 * @opts: options of the store.
 * @budget: bounds on what reading files may cost.
 * @roots: root folders of processes.
 * @objects: open files, by device and inode number.
 * @images: ELF images in memory.
 * @procs: views of all processes.
 * @kernel: the view of the kernel, or NULL.
 * @lookups: results of address lookups.
 * @spare: mappings to be used again.
 * @path_bytes: bytes in the paths of mappings.
 * @perfmap_bytes: bytes of memory that the processes' own perf-map files take.
 * @perfmap_files: number of perf-map files that are kept open.
 * @former_perfmaps: names of generated code of programs that are no more.
 * @find_function: tells what entries of stacks stand for that are no code, or NULL.
 * @find_arg: its first argument.
 * @functions: what it told.
 * @process_accounts: accounts of what is read from processes' memory, by process ID.
 * @remote_bytes: bytes that files made of processes' memory take.
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
	size_t perfmap_bytes;
	unsigned int perfmap_files;
	struct shstk_former_perfmap *former_perfmaps;
	shstk_function_fn find_function;
	void *find_arg;
	struct shstk_function *functions;
	struct process_account *process_accounts;
	uint64_t remote_bytes;
};

#define SHSTK_PERFMAP_TAIL 64

/**
 * struct shstk_perfmap_file - how far a process's own perf-map file was read
 * @wanted: no file had an address of a sample: the file is looked at while the process runs.
 * @tried: the file was looked for.
 * @full: the file takes more memory than it may.
 * @open: the file is kept open as @fd, so that its end can be read even if it is removed.
 * @fd: descriptor of the file, if @open.
 * @dev: device of the file, once it was found.
 * @ino: inode number of the file, once it was found.
 * @written: time of the last write to the file, in ns since 1970.
 * @done: bytes of the file that were read.
 * @tail: the last bytes that were read.
 * @nr_tail: number of bytes in @tail.
 * @next: time of the sample before which the file is not looked at again, in ns.
 */
struct shstk_perfmap_file {
	bool wanted;
	bool tried;
	bool full;
	bool open;
	int fd;
	uint64_t dev;
	uint64_t ino;
	uint64_t written;
	uint64_t done;
	char tail[SHSTK_PERFMAP_TAIL];
	size_t nr_tail;
	uint64_t next;
};

/**
 * struct shstk_symproc - the view of a process
 * @symbols: the store.
 * @next: next view of the store.
 * @parent: view of the process it was forked from, whose generated code it may run.
 * @pid: process ID in the PID namespace of this program.
 * @ns_pid: process ID in the process's own PID namespace.
 * @uid: user ID, or -1.
 * @started: start time of the process, in seconds since 1970, or 0.
 * @root: root folder where its paths start.
 * @maps: its mappings, sorted and disjoint.
 * @nr: number of mappings.
 * @max: number of mappings that @maps has room for.
 * @former_mappings: mappings that are no more.
 * @none: mapping that stands for all addresses that are not mapped.
 * @perfmap: names from its own perf-map file.
 * @perfmap_account: memory that this file takes; opened when the file is first read.
 * @perfmap_file: how far this file was read.
 * @extra: names from files that the caller gave.
 * @functions: the functions of the kernel, in the view of the kernel.
 * @edition: grows when names are added, so that old lookups are recognised.
 * @changes: grows when something is mapped or unmapped.
 * @path_bytes: bytes in paths that no other process had.
 * @labels: labels of all its samples, as &struct shstk_sample has them, or NULL.
 * @labels_size: bytes in @labels.
 * @labels_serial: serial number of the profile that @profile_labels belongs to.
 * @profile_labels: the same in that profile, for samples without labels of their own.
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
	struct shstk_former_mappings former_mappings;
	struct shstk_map none;
	struct shstk_perfmap *perfmap;
	struct shstk_account perfmap_account;
	struct shstk_perfmap_file perfmap_file;
	struct shstk_perfmap *extra;
	struct shstk_kernel_functions *functions;
	uint64_t edition;
	uint64_t changes;
	size_t path_bytes;
	const char *labels;
	size_t labels_size;
	uint64_t labels_serial;
	const struct shstk_labels *profile_labels;
};

/*
 * Functions of mapping.c. shstk_map_create() makes a mapping and finds its file; shstk_map_copy()
 * copies a part of a mapping, or a mapping for another process. Both return NULL when memory runs
 * out.
 */
struct shstk_map *shstk_map_create(struct shstk_symproc *proc,
				   const struct shstk_symmap_info *info);
struct shstk_map *shstk_map_copy(struct shstk_symproc *proc, const struct shstk_map *map,
				 uint64_t start, uint64_t end);
/* Releases a mapping that is not in use any more. */
void shstk_map_put(struct shstk_map *map);
/* Returns the length of a path in bytes without the kernel's " (deleted)". */
size_t shstk_map_path_length(const char *path);
void shstk_objects_destroy(struct shstk_symbols *symbols);

/*
 * Remembers a mapping that is not in use any more (former_mappings.c). If memory runs out, it is
 * forgotten.
 */
void shstk_former_mappings_add(struct shstk_former_mappings *former, struct shstk_map *map);
/* Returns the last mapping that had @addr, or NULL. */
struct shstk_map *shstk_former_mappings_find(const struct shstk_former_mappings *former,
					     uint64_t addr);
void shstk_former_mappings_clear(struct shstk_former_mappings *former);

/* Returns the mapping of all addresses of the kernel (kernel.c); NULL when memory runs out. */
const struct shstk_symmap *shstk_kernel_map(struct shstk_symbols *symbols);
/* Returns the function of the kernel at an address, or NULL; valid until the next call. */
const struct shstk_perfmap_entry *shstk_kernel_find(struct shstk_kernel_functions *functions,
						    uint64_t addr);
void shstk_kernel_destroy(struct shstk_kernel_functions *functions);

/*
 * Makes an asker, by which the kernel is asked for a function (kernel_ask.c). Returns NULL if it
 * cannot be asked.
 */
struct shstk_kernel_asker *shstk_kernel_asker_create(void);
void shstk_kernel_asker_destroy(struct shstk_kernel_asker *asker);
/*
 * Asks for the function at an address; the name is valid until the next call. Returns false if the
 * kernel names none.
 */
bool shstk_kernel_ask(struct shstk_kernel_asker *asker, uint64_t addr,
		      struct shstk_perfmap_entry *ret);

/* Releases a view that is not in the store's list any more (process.c). */
void shstk_symproc_destroy(struct shstk_symproc *proc);

/* Returns the newest perf-map entry for an address, or NULL (generated.c). */
const struct shstk_perfmap_entry *shstk_symproc_generated(struct shstk_symproc *proc,
							  uint64_t addr);
/*
 * Returns the perf-map entry for an address at the time that shstk_generated_follow() was last
 * told, or NULL. The entry stays.
 */
const struct shstk_perfmap_entry *shstk_symproc_generated_now(struct shstk_symproc *proc,
							      uint64_t addr);
/*
 * Reads the new part of the perf-map file of a process that has a sample at @time, in ns of
 * CLOCK_MONOTONIC.
 */
void shstk_generated_follow(struct shstk_symproc *proc, uint64_t time);
/* Forgets the names of generated code of a process that has executed another program. */
void shstk_generated_forget(struct shstk_symproc *proc);
/* Reads what is left in the perf-map file of a process that has ended, and closes the file. */
void shstk_generated_end(struct shstk_symproc *proc);
/* Release what generated.c holds for a view, and for a store. */
void shstk_generated_deinit(struct shstk_symproc *proc);
void shstk_former_perfmaps_destroy(struct shstk_symbols *symbols);

/*
 * Returns what an entry of a stack stands for that is no code (functions.c), NULL if it is an
 * address.
 */
const struct shstk_symbol *shstk_symbols_function(struct shstk_symbols *symbols, uint64_t pc);
void shstk_functions_clear(struct shstk_symbols *symbols);

/* Returns the symbol of the function @generated, in which an address of @map lay (symbol.c). */
const struct shstk_symbol *shstk_symbols_generated(struct shstk_symbols *symbols,
						   const struct shstk_symmap *map, uint64_t pc,
						   int how,
						   const struct shstk_perfmap_entry *generated);

/* Returns the store's pool, for strings that live as long as the store does. */
struct shstk_pool *shstk_symbols_pool(struct shstk_symbols *symbols);

#endif /* SHSTK_STORE_H */
