/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mappings.h - what a program has mapped, as perf events tell, and unwinding of copies of its
 * stacks: for `shstk unwind` with files, and for `shstk record` while the program runs.
 *
 * The caller says where files are found (struct mappings_files). A forked process shares the
 * mappings of its parent until one of them maps something new. Modules are read only once there is
 * a stack to unwind.
 */
#ifndef TOOLS_CONVERT_MAPPINGS_H
#define TOOLS_CONVERT_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libshstk/go/goroutine.h"
#include "libshstk/shstk.h"
#include "libshstk/symbol/symbol.h"
#include "tools/elf/image.h"

/**
 * struct mappings_map - an executable mapping
 * @start: first address.
 * @end: first address behind the mapping.
 * @offset: offset of @start in the file, in bytes.
 * @path: the file, or perf's name of other memory.
 * @id: build id of the file, of size 0 if it is not known.
 * @dev: device of the file as makedev(3) makes it, 0 if it is not known.
 * @inode: inode number of the file, 0 if it is not known.
 */
struct mappings_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	char *path;
	struct build_id id;
	uint64_t dev;
	uint64_t inode;
};

struct file_rules;

/**
 * struct mappings_files - where the files of mappings are found
 * @arch: enum shstk_arch of the programs.
 * @arg: passed to the functions.
 * @add: adds the code of a mapping of process @pid to a space. Returns 0, -ENOMEM, or another
 *	negative errno: then the mapping counts as code that no file describes.
 * @name: adds a mapping to those by which addresses are named. Returns 0 or -ENOMEM.
 * @read: reads memory of process @pid, all of it or nothing. Returns 0 or a negative errno. NULL:
 *	the processes no longer exist.
 * @open: opens the file of a mapping. Returns a file descriptor or a negative errno. NULL: files are
 *	not read.
 * @rules: rules for unwinding that all processes share; NULL: each has its own.
 * @account: returns the account from which reading a process's memory draws, or NULL without
 *	memory. NULL: the processes no longer exist.
 */
struct mappings_files {
	int arch;
	void *arg;
	int (*add)(void *arg, pid_t pid, struct shstk_space *space, const struct mappings_map *map);
	int (*name)(void *arg, pid_t pid, struct shstk_symproc *proc,
		    const struct mappings_map *map);
	int (*read)(void *arg, pid_t pid, uint64_t addr, void *buf, size_t size);
	int (*open)(void *arg, pid_t pid, const struct mappings_map *map);
	struct file_rules *rules;
	struct shstk_account *(*account)(void *arg, pid_t pid);
};

struct mappings;

/*
 * Returns whether a mapping with that path is of a file that could be opened. Other paths are
 * perf's names of other memory.
 */
bool mappings_is_file(const char *path);

/**
 * mappings_create() - make the mappings of a process that has none, as at an exec
 * @files: where files are found. It must outlive the mappings.
 *
 * Return: the mappings, to be released by mappings_put(), or NULL if there is no memory.
 */
struct mappings *mappings_create(const struct mappings_files *files);

/* Returns the same mappings for one more process, which releases them by mappings_put(). */
struct mappings *mappings_share(struct mappings *mappings);

/* Releases a process's reference to its mappings. @mappings may be NULL. */
void mappings_put(struct mappings *mappings);

/**
 * mappings_add() - add a mapping
 * @mappings: the mappings of process @pid. They are replaced if other processes share them.
 * @pid: the process.
 * @map: the mapping, which is copied. What it overlaps is removed.
 *
 * Return: 1; 0 if the mapping exists already or there are too many; -ENOMEM.
 */
int mappings_add(struct mappings **mappings, pid_t pid, const struct mappings_map *map);

/* Returns whether the address is in a mapping. */
bool mappings_has(const struct mappings *mappings, uint64_t addr);

/* Reads memory of process @pid, which has these mappings. Returns 0 or a negative errno. */
int mappings_read(const struct mappings *mappings, pid_t pid, uint64_t addr, void *buf,
		  size_t size);

/*
 * Returns whether a library is mapped that makes code at run time in a known way
 * (tools/java/jit_code.h).
 */
bool mappings_has_jit(const struct mappings *mappings);

/*
 * Names code made at run time as jit_name() does, at addresses of the stack that was unwound last.
 * Returns 0 or -ENOMEM.
 */
int mappings_name_generated(const struct mappings *mappings, struct shstk_symproc *proc,
			    const uint64_t *pcs, size_t nr);

/* Returns the enum shstk_arch of the program. */
int mappings_arch(const struct mappings *mappings);

/* Returns whether nothing is mapped, as in threads of the kernel. */
bool mappings_empty(const struct mappings *mappings);

/**
 * mappings_find() - find the mapping of an address
 * @mappings: what is mapped.
 * @addr: the address.
 *
 * Return: the mapping, which is valid until the mappings change, or NULL.
 */
const struct mappings_map *mappings_find(const struct mappings *mappings, uint64_t addr);

/**
 * mappings_name() - hand all mappings to those by which addresses are named
 * @mappings: the mappings of process @pid.
 * @pid: the process.
 * @proc: receives the mappings.
 *
 * Return: 0 or -ENOMEM.
 */
int mappings_name(const struct mappings *mappings, pid_t pid, struct shstk_symproc *proc);

/* Returns the address at which the function at @pc begins, 0: it is not known. */
uint64_t mappings_function(struct mappings *mappings, pid_t pid, uint64_t pc);

/* Returns whether the process runs code of Go, as far as its stacks were unwound. */
bool mappings_has_go(const struct mappings *mappings);

/* Returns what the frame of the function at @pc says of the frames outside it. */
enum shstk_gokind mappings_go_kind(const struct mappings *mappings, uint64_t pc);

/* Returns whether the Go function at @pc has made its frame there. */
bool mappings_go_has_frame(const struct mappings *mappings, uint64_t pc);

struct languages;

/* Returns the file of an interpreter, or of Java's machine, that is mapped, or NULL; by its name only. */
const char *mappings_interpreter(const struct mappings *mappings);

/*
 * Returns the number of the interpreter that process @pid has mapped, as languages_find() gives it;
 * 0: none. The process is asked at the first call after a change. Until it has an answer, it is asked
 * again, each time after twice as many calls.
 */
int mappings_language(struct mappings *mappings, pid_t pid, struct languages *languages);

/**
 * struct memory_piece - what lay at an address in memory
 * @addr: the address.
 * @bytes: the bytes.
 * @size: number of bytes.
 */
struct memory_piece {
	uint64_t addr;
	const uint8_t *bytes;
	size_t size;
};

/**
 * struct memory_pieces - what lay at several addresses at the same moment
 * @pieces: the pieces.
 * @nr: number of pieces.
 */
struct memory_pieces {
	const struct memory_piece *pieces;
	size_t nr;
};

/**
 * struct stack_copy - registers and a copy of a part of the stack
 * @regs: the registers.
 * @bytes: what lay from the stack pointer on.
 * @size: number of bytes.
 * @more: other memory at the same moment.
 * @nr_more: number of pieces in @more.
 */
struct stack_copy {
	const struct shstk_regs *regs;
	const uint8_t *bytes;
	size_t size;
	const struct memory_piece *more;
	size_t nr_more;
};

/**
 * struct unwound - a stack that was unwound
 * @pcs: its entries, innermost first; room for @max.
 * @marks: SHSTK_MARK_* of each entry; room for @max.
 * @sps: the stack pointer of each entry, room for @max; or NULL.
 * @max: number of entries for which there is room.
 * @nr: number of entries.
 * @end: enum shstk_end. SHSTK_END_READ: the stack goes on where nothing was copied.
 * @elsewhere: with SHSTK_END_READ: it continues on another stack, not behind the copy. That may be
 *	the stack that was interrupted by a signal handler on a stack of its own, that of the code
 *	that resumed a coroutine, or a runtime's stack. Or the copy ends at a page of a large array
 *	that was never used, and the stack continues behind that.
 * @missed: with SHSTK_END_READ: the address that was not copied.
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

/* What is said of stacks that go on elsewhere, to be printed behind their number. */
#define UNWOUND_ELSEWHERE \
	"continue elsewhere, which was not copied: behind pages of the stack that were never used, or on another stack (of a coroutine, of a runtime, or the one that a signal handler on its own stack interrupted): shown as [truncated]"

/*
 * Returns whether the stack goes on behind the copy, so that a larger copy would have more of it.
 */
static inline bool unwound_too_short(const struct unwound *u)
{
	return u->end == SHSTK_END_READ && !u->elsewhere;
}

/* Returns the stack pointer, at which the copy begins. */
uint64_t mappings_sp(const struct mappings *mappings, const struct stack_copy *copy);

/**
 * mappings_unwind() - unwind a copy of a stack
 * @mappings: what the process had mapped at that time.
 * @pid: the process.
 * @copy: registers and stack.
 * @ret: receives the stack.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int mappings_unwind(struct mappings *mappings, pid_t pid, const struct stack_copy *copy,
		    struct unwound *ret);

struct java_entries;
struct native_stack;

/**
 * mappings_place_methods() - put the methods that Java's machine runs into a stack
 * @mappings: what the process had mapped, whose stack was unwound last.
 * @all: has the functions.
 * @native: the stack as it was unwound.
 * @copy: what it was unwound from.
 * @ret: receives the new stack.
 *
 * Return: true if there is a method in the stack; otherwise it stays as it is.
 */
bool mappings_place_methods(struct mappings *mappings, struct languages *all,
			    const struct native_stack *native, const struct stack_copy *copy,
			    struct java_entries *ret);

#define MAPPINGS_WORKERS 32 /* threads beside the one that changes the mappings */

struct unwinder;

/**
 * mappings_unwinder() - get what another thread unwinds with
 * @mappings: the mappings of process @pid.
 * @pid: the process.
 * @worker: number of the thread, below MAPPINGS_WORKERS.
 * @pc: the program counter of a sample.
 *
 * Each thread has modules of its own, which are read here. The other thread may use them until the
 * mappings change or are released.
 *
 * Return: the unwinder, or NULL if such a stack can only be unwound by mappings_unwind(): its process
 * runs code of Go, or makes code at run time in a known way, or an instruction is stepped outside of
 * its function; or there is no memory.
 */
struct unwinder *mappings_unwinder(struct mappings *mappings, pid_t pid, unsigned int worker,
				   uint64_t pc);

/* Does what mappings_unwind() does, in the thread to which @u belongs. */
int unwinder_unwind(struct unwinder *u, pid_t pid, const struct stack_copy *copy,
		    struct unwound *ret);

#define MAPPINGS_OUTERMOST 3 /* entries: those of the C library around main() */

/* Remembers the outermost entries of a complete stack of the program. */
void mappings_keep_outermost(struct mappings *mappings, const struct unwound *stack);

/**
 * mappings_find_outermost() - find how a stack ends that has a certain entry
 * @mappings: what is mapped.
 * @pc: the entry, one of the outermost ones.
 * @ret: receives the entries that followed it when a stack was seen to its end.
 *
 * Return: the number of these entries, 0 if @pc is the last one; -1 if @pc was not seen near an
 * end.
 */
int mappings_find_outermost(const struct mappings *mappings, uint64_t pc, const uint64_t **ret);

#endif
