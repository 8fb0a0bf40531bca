/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout.h - what a program has mapped, as perf events tell of it, and unwinding copies
 * of its stacks: for `shstk unwind`, of files, and for `shstk record`, while it runs.
 *
 * Where the files are found is the caller's (struct layout_files). A process that was
 * forked shares the layout of its parent until one of them maps something new; modules
 * are only read once there is a stack to unwind.
 */
#ifndef TOOLS_CONVERT_LAYOUT_H
#define TOOLS_CONVERT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libshstk/go/goroutine.h"
#include "libshstk/shstk.h"
#include "libshstk/symbol/symbol.h"
#include "tools/elf/image.h"

/**
 * struct layout_map - an executable mapping
 * @start: first address.
 * @end: first address behind it.
 * @offset: offset of @start in the file, in bytes.
 * @path: the file, or what perf calls other memory.
 * @id: build id of the file, size 0 if not told.
 * @dev: device of the file as makedev(3) has it, and
 * @inode: its inode number, where told; else 0.
 */
struct layout_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	char *path;
	struct build_id id;
	uint64_t dev;
	uint64_t inode;
};

/**
 * struct layout_files - where the files of mappings are
 * @arch: enum shstk_arch of the programs.
 * @arg: for the functions.
 * @add: adds the code of a mapping of process @pid to a space. Returns 0, -ENOMEM, or
 *	another negative errno: it is taken as code that no file describes.
 * @read: reads memory of process @pid, all of it or nothing. Returns 0 or a negative errno.
 *	NULL: there is no process any more.
 * @open: opens the file of a mapping. Returns a descriptor or a negative errno. NULL as @read.
 * @name: adds a mapping to those that addresses are named by. Returns 0 or -ENOMEM.
 */
struct layout_files {
	int arch;
	void *arg;
	int (*add)(void *arg, pid_t pid, struct shstk_space *space, const struct layout_map *map);
	int (*name)(void *arg, pid_t pid, struct shstk_symproc *proc, const struct layout_map *map);
	int (*read)(void *arg, pid_t pid, uint64_t addr, void *buf, size_t size);
	int (*open)(void *arg, pid_t pid, const struct layout_map *map);
};

struct layout;

/* Is that mapping of a file that could be opened? No: perf's names for other memory. */
bool layout_is_file(const char *path);

/**
 * layout_create() - begin with nothing mapped, as at exec
 * @files: where files are; must outlive it.
 *
 * Return: the layout, for layout_put(); NULL when memory runs out.
 */
struct layout *layout_create(const struct layout_files *files);

/* The same layout for one process more, which gives it to layout_put(). */
struct layout *layout_share(struct layout *layout);

/* One process less has it. @layout may be NULL. */
void layout_put(struct layout *layout);

/**
 * layout_add() - something was mapped
 * @layout: the layout of process @pid; replaced if other processes share it.
 * @pid: the process.
 * @map: the mapping, copied. What it overlaps is gone.
 *
 * Return: 1; 0: it was there already, or there are too many; -ENOMEM.
 */
int layout_add(struct layout **layout, pid_t pid, const struct layout_map *map);

/* Is the address in one of the mappings? */
bool layout_has(const struct layout *layout, uint64_t addr);

/* Reads memory of process @pid, which has that layout. Returns 0 or a negative errno. */
int layout_read(const struct layout *layout, pid_t pid, uint64_t addr, void *buf, size_t size);

/* Does it make code of a kind that is known (jit.h)? */
bool layout_has_jit(const struct layout *layout);

/* As jit_name(), of addresses of the stack that was unwound last. Returns 0 or -ENOMEM. */
int layout_name_made(const struct layout *layout, struct shstk_symproc *proc, const uint64_t *pcs,
		     size_t nr);

/* enum shstk_arch of the program. */
int layout_arch(const struct layout *layout);

/* Is nothing mapped, as in threads of the kernel? */
bool layout_empty(const struct layout *layout);

/**
 * layout_find() - the mapping of an address
 * @layout: what is mapped.
 * @addr: the address.
 *
 * Return: the mapping, until the layout changes; NULL: none.
 */
const struct layout_map *layout_find(const struct layout *layout, uint64_t addr);

/**
 * layout_name() - hand all mappings to those that addresses are named by
 * @layout: the layout of process @pid.
 * @pid: the process.
 * @proc: receives them.
 *
 * Return: 0 or -ENOMEM.
 */
int layout_name(const struct layout *layout, pid_t pid, struct shstk_symproc *proc);

/* Does the process run code of Go, as far as its stacks were unwound? */
bool layout_has_go(const struct layout *layout);

/* Of a frame of it. */
enum shstk_gokind layout_go_kind(const struct layout *layout, uint64_t pc);

/* Has the function at @pc, of Go, made a frame there? */
bool layout_go_has_frame(const struct layout *layout, uint64_t pc);

/**
 * struct memory_piece - what lay in memory
 * @addr: there.
 * @bytes: the bytes.
 * @size: so many.
 */
struct memory_piece {
	uint64_t addr;
	const uint8_t *bytes;
	size_t size;
};

/**
 * struct memory_pieces - what lay in memory at the same moment
 * @pieces: the pieces.
 * @nr: so many.
 */
struct memory_pieces {
	const struct memory_piece *pieces;
	size_t nr;
};

/**
 * struct stack_copy - registers and a piece of the stack
 * @regs: the registers.
 * @bytes: what lay from the stack pointer on.
 * @size: so many bytes.
 * @more: other memory at the same moment,
 * @nr_more: so many pieces.
 */
struct stack_copy {
	const struct shstk_regs *regs;
	const uint8_t *bytes;
	size_t size;
	const struct memory_piece *more;
	size_t nr_more;
};

/**
 * struct unwound - a stack
 * @pcs: its entries, innermost first, and
 * @marks: SHSTK_MARK_* of each; room for @max of each.
 * @sps: the stack pointer of each, as many; or NULL.
 * @max: see @marks.
 * @nr: number of entries.
 * @end: enum shstk_end; SHSTK_END_READ: it goes on where nothing was copied: behind the copy,
 * @elsewhere: or on another stack, as that of what a signal handler on a stack of its own
 *	interrupted, of who resumed a coroutine, or one of a runtime's,
 * @missed: at this address.
 */
struct unwound {
	uint64_t *pcs;
	uint8_t *marks;
	uint64_t *sps;
	unsigned int max;
	unsigned int nr;
	int end;
	bool elsewhere;
	uint64_t missed;
};

/* What is said of stacks that go on elsewhere, behind their number. */
#define UNWOUND_ELSEWHERE \
	"go on on another stack, which was not copied (what a signal handler on a stack of its own interrupted, a coroutine, a runtime's own stack): shown as [truncated]"

/* Does it go on behind the copy, so that a larger one had more of it? */
static inline bool unwound_too_short(const struct unwound *u)
{
	return u->end == SHSTK_END_READ && !u->elsewhere;
}

/* Where the copy begins. */
uint64_t layout_sp(const struct layout *layout, const struct stack_copy *copy);

/**
 * layout_unwind() - unwind a copy of a stack
 * @layout: what the process had mapped then.
 * @pid: the process.
 * @copy: registers and stack.
 * @ret: receives the stack.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int layout_unwind(struct layout *layout, pid_t pid, const struct stack_copy *copy,
		  struct unwound *ret);

#define LAYOUT_OUTERMOST 3 /* entries: those of the C library around main() */

/* Remembers how a complete stack of the program ends. */
void layout_keep_outermost(struct layout *layout, const struct unwound *stack);

/**
 * layout_find_outermost() - how stacks end that have an entry
 * @layout: what is mapped.
 * @pc: the entry, one of the outermost ones.
 * @ret: receives what followed it when a stack was seen to its end.
 *
 * Return: number of entries, 0 if @pc is the last one; -1: it was not seen there.
 */
int layout_find_outermost(const struct layout *layout, uint64_t pc, const uint64_t **ret);

#endif
