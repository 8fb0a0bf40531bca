/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/needed.h - a program and the libraries it loads, as ELF files: what
 * they need, and whether they are marked for shadow stacks.
 *
 * Files are foreign bytes: they are read by libelf, every count and length is
 * bounded, and nothing of them is executed.
 */
#ifndef TOOLS_NEEDED_H
#define TOOLS_NEEDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct object - one ELF file
 * @path: absolute path in its root, symbolic links resolved.
 * @name: the name it was asked for by (a DT_NEEDED entry, or the path).
 * @parent: index of the object that asked for it; itself for the program.
 * @machine: e_machine (EM_X86_64, ...).
 * @bits: 32 or 64.
 * @type: e_type (ET_EXEC, ET_DYN).
 * @marked: its property note says that it is ready for shadow stacks.
 * @interp: PT_INTERP, or NULL.
 * @soname: DT_SONAME, or NULL.
 * @rpath: DT_RPATH, or NULL.
 * @runpath: DT_RUNPATH, or NULL.
 * @nodeflib: DF_1_NODEFLIB is set: the cache and default folders don't count.
 * @pie: DF_1_PIE is set.
 * @needed: DT_NEEDED entries, NULL-terminated.
 * @package: Debian package that owns the file, or NULL; see
 *	objects_find_packages().
 * @privileged: set-user-ID, set-group-ID or file capabilities.
 * @gains: executed by this process it would run with other privileges, so the
 *	environment would tell its dynamic linker nothing.
 */
struct object {
	char *path;
	char *name;
	size_t parent;
	unsigned int machine;
	unsigned int bits;
	unsigned int type;
	bool marked;
	bool nodeflib;
	bool pie;
	bool privileged;
	bool gains;
	char *interp;
	char *soname;
	char *rpath;
	char *runpath;
	char **needed;
	char *package;
};

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
 * machine_name() - the kernel's word for an e_machine
 * @machine: EM_*.
 *
 * Return: "x86", "arm64", "riscv", or "other".
 */
const char *machine_name(unsigned int machine);

/**
 * machine_own() - e_machine of this command
 *
 * Return: EM_*.
 */
unsigned int machine_own(void);

/**
 * find_program() - find a program as execvp(3) does
 * @name: name or path.
 * @ret: receives the path; free it.
 *
 * Return: 0, -ENOENT, -EACCES or -ENOMEM.
 */
int find_program(const char *name, char **ret);

/* What to say of @err of find_program(): a name without / is only looked for in PATH. */
const char *find_program_error(const char *name, int err);

#endif
