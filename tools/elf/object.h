/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.h - one ELF file: what it needs, and whether it is marked for shadow stacks.
 *
 * Files are foreign bytes: they are read by libelf, every count and length is
 * bounded, and nothing of them is executed.
 */
#ifndef TOOLS_ELF_OBJECT_H
#define TOOLS_ELF_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

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
 * object_read() - read an open file
 * @fd: the file; stays open.
 * @root: folder that stands for "/", or "".
 * @o: receives it, but for its name; all bytes 0 before. Give it to object_deinit(),
 *	also after a failure.
 *
 * Return: 0 or a negative errno; -ENOEXEC: it is no program or library.
 */
int object_read(int fd, const char *root, struct object *o);
void object_deinit(struct object *o);

/*
 * Opens @path inside @root; symbolic links can't leave it. Returns a descriptor, or a
 * negative errno. It is a regular file.
 */
int root_open(const char *root, const char *path);

/* Appends to a NULL-terminated list of strings; takes @s over. Returns 0 or -ENOMEM. */
int strings_add(char ***list, size_t *n, char *s);
void strings_free(char **list);

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

#endif
