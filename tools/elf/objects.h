/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/elf/objects.h - a program and the libraries it loads, as ELF files: what
 * they need, and whether they are marked for shadow stacks.
 *
 * Files are foreign bytes: they are read by libelf, every count and length is
 * bounded, and nothing of them is executed.
 */
#ifndef TOOLS_ELF_OBJECTS_H
#define TOOLS_ELF_OBJECTS_H

#include <stddef.h>
#include <sys/types.h>

#include "tools/elf/object.h"

/**
 * struct objects - a program, its interpreter and its libraries
 * @root: folder that stands for "/", without a final slash ("" for "/").
 * @v: the objects in the order ld.so loads them; the program is the first.
 * @n: number of @v.
 * @missing: names that no search found, with who asked for them.
 * @missing_n: number of @missing.
 * @script: if the program is a script: its path (@v[0] is the interpreter).
 */
struct objects {
	char *root;
	struct object *v;
	size_t n;
	char **missing;
	size_t missing_n;
	char *script;
};

/**
 * objects_load() - read a program and all it loads
 * @path: the program; a script stands for its interpreter.
 * @root: folder that stands for "/", or NULL.
 * @ret: receives the objects; give them to objects_deinit().
 *
 * Return: 0, or a negative errno; -ENOEXEC if @path is neither an ELF file nor
 * a script. Nothing is to be released then.
 */
int objects_load(const char *path, const char *root, struct objects *ret);

/**
 * objects_add_preloaded() - add what is loaded into a program beside what it needs
 * @set: filled by objects_load().
 * @list: names or paths between colons or blanks, as LD_PRELOAD and
 *	/etc/ld.so.preload have them, or NULL. What is not there is passed over, as
 *	the dynamic linker does; so is all of it for a static program.
 *
 * Return: 0, or a negative errno; @set stays as far as it came.
 */
int objects_add_preloaded(struct objects *set, const char *list);

/**
 * objects_error() - what to say of an error of objects_load()
 * @path: as it was given, or NULL if that is below a root.
 * @err: what it returned.
 *
 * Return: a text that goes behind the program's name.
 */
const char *objects_error(const char *path, int err);

/**
 * objects_load_pid() - read what a process has mapped as code
 * @pid: process ID; dlopen()ed objects are among them.
 * @ret: receives the objects; give them to objects_deinit().
 *
 * Return: 0, or a negative errno.
 */
int objects_load_pid(pid_t pid, struct objects *ret);

/**
 * objects_find_packages() - ask dpkg-query who owns the objects
 * @set: @package of each object is filled where known.
 *
 * Return: 0, or a negative errno if dpkg-query could not be run.
 */
int objects_find_packages(struct objects *set);

/**
 * objects_deinit() - release
 * @set: filled by objects_load() or objects_load_pid().
 */
void objects_deinit(struct objects *set);

/**
 * objects_find() - find an object by the start of its file name
 * @set: the objects.
 * @name: such as "libc.so.6".
 *
 * Return: the object, or NULL.
 */
const struct object *objects_find(const struct objects *set, const char *name);

/**
 * objects_blocker() - first object that is not marked
 * @set: the objects.
 *
 * Return: the object, or NULL if all are marked.
 */
const struct object *objects_blocker(const struct objects *set);

/**
 * objects_push() - room for one more, at the end
 * @set: the objects; @set->n is raised by the caller, once the object is complete.
 *
 * Return: the object, empty; or NULL.
 */
struct object *objects_push(struct objects *set);

/**
 * objects_add_file() - try one file
 * @set: the objects.
 * @path: the file, in the root.
 * @name: that it was asked for by.
 * @parent: index of who asked for it.
 *
 * Return: 1 if it is (now) in the set, 0 if it is not there or is for another
 * machine, or a negative errno.
 */
int objects_add_file(struct objects *set, const char *path, const char *name, size_t parent);

/* The same of an open file, which is closed. */
int objects_add_fd(struct objects *set, int fd, const char *name, size_t parent);

/* Notes that @name was not found, which @parent needs. Returns 0 or -ENOMEM. */
int objects_add_missing(struct objects *set, const char *name, size_t parent);

#endif
