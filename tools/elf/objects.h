/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * objects.h - a program and the libraries it loads, as ELF files: what they need, and whether they
 * are marked for shadow stacks.
 *
 * Files are untrusted: libelf reads them, every count and length is bounded, and nothing in them is
 * executed.
 */
#ifndef TOOLS_ELF_OBJECTS_H
#define TOOLS_ELF_OBJECTS_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "tools/elf/object.h"

/**
 * struct objects - a program, its interpreter and its libraries
 * @root: folder that stands for "/", without a final slash ("" for "/").
 * @v: the objects, in the order in which ld.so loads them; the program comes first.
 * @n: number of @v.
 * @missing: names that were not found, each with the object that needs it.
 * @missing_n: number of @missing.
 * @script: path of the script if the program is one (@v[0] is its interpreter then), or NULL.
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
 * objects_load() - read a program and everything it loads
 * @path: the program. For a script, its interpreter is read.
 * @root: folder that stands for "/", or NULL.
 * @ret: receives the objects; give them to objects_deinit().
 *
 * Return: 0, or a negative errno; -ENOEXEC if @path is neither an ELF file nor a script. After a
 * failure there is nothing to release.
 */
int objects_load(const char *path, const char *root, struct objects *ret);

/**
 * objects_add_preloaded() - add libraries that are preloaded into a program
 * @set: filled by objects_load().
 * @list: names or paths, separated by colons or blanks, as in LD_PRELOAD and /etc/ld.so.preload; or
 *	NULL. A library that is missing is skipped, as ld.so does. A static program preloads
 *	nothing.
 *
 * Return: 0, or a negative errno; @set keeps what was added before the failure.
 */
int objects_add_preloaded(struct objects *set, const char *list);

/**
 * objects_error() - describe an error of objects_load()
 * @path: the path given to objects_load(), or NULL if it lies below a root.
 * @err: the negative errno that objects_load() returned.
 *
 * Return: a text to be printed after the program's name.
 */
const char *objects_error(const char *path, int err);

/**
 * objects_load_pid() - read the files that a process has mapped as code
 * @pid: process ID.
 * @ret: receives the objects; give them to objects_deinit().
 *
 * Objects that the process has loaded by dlopen() are among them.
 *
 * Return: 0, or a negative errno.
 */
int objects_load_pid(pid_t pid, struct objects *ret);

/**
 * objects_find_packages() - ask dpkg-query which packages own the objects
 * @set: the objects; sets @package of each where dpkg-query knows it.
 *
 * Return: 0, or a negative errno if dpkg-query could not be run.
 */
int objects_find_packages(struct objects *set);

/* Does that with what dpkg-query -S has said, which is read from @from. */
void objects_take_packages(struct objects *set, FILE *from);

/**
 * objects_deinit() - release a set of objects
 * @set: filled by objects_load() or objects_load_pid().
 */
void objects_deinit(struct objects *set);

/**
 * objects_find() - find an object by the start of its file name
 * @set: the objects.
 * @name: beginning of the file name, or the whole soname, such as "libc.so.6".
 *
 * Return: the object, or NULL.
 */
const struct object *objects_find(const struct objects *set, const char *name);

/**
 * objects_blocker() - find the first object that is not marked for shadow stacks
 * @set: the objects.
 *
 * Return: the object, or NULL if all are marked.
 */
const struct object *objects_blocker(const struct objects *set);

/**
 * objects_push() - make room for one more object at the end
 * @set: the objects. The caller raises @set->n once the object is complete.
 *
 * Return: the object, all bytes 0; or NULL.
 */
struct object *objects_push(struct objects *set);

/**
 * objects_add_file() - add a file, if it is an object of the right kind
 * @set: the objects.
 * @path: path of the file inside the root.
 * @name: the name by which it was asked for.
 * @parent: index of the object that asked for it.
 *
 * Return: 1 if the file is (now) in the set; 0 if it does not exist or is no object for the machine
 * of the program; or a negative errno.
 */
int objects_add_file(struct objects *set, const char *path, const char *name, size_t parent);

/* Does what objects_add_file() does, for an open file, which it closes. */
int objects_add_fd(struct objects *set, int fd, const char *name, size_t parent);

/* Notes that @name, which @parent needs, was not found. Returns 0 or -ENOMEM. */
int objects_add_missing(struct objects *set, const char *name, size_t parent);

#endif
