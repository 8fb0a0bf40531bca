/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.h - one ELF file: what it needs, and whether it is marked for shadow stacks.
 *
 * Files are untrusted: libelf reads them, every count and length is bounded, and nothing in them is
 * executed.
 */
#ifndef TOOLS_ELF_OBJECT_H
#define TOOLS_ELF_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct object - one ELF file
 * @path: absolute path inside its root, with symbolic links resolved.
 * @name: the name by which it was asked for (a DT_NEEDED entry, or the path).
 * @parent: index of the object that asked for it; the program has its own index.
 * @machine: e_machine (EM_X86_64, ...).
 * @bits: 32 or 64.
 * @type: e_type (ET_EXEC, ET_DYN).
 * @marked: its property note says that it is ready for shadow stacks.
 * @interp: PT_INTERP, or NULL.
 * @soname: DT_SONAME, or NULL.
 * @rpath: DT_RPATH, or NULL.
 * @runpath: DT_RUNPATH, or NULL.
 * @nodeflib: DF_1_NODEFLIB is set: ld.so uses neither the cache nor the default folders.
 * @pie: DF_1_PIE is set.
 * @needed: DT_NEEDED entries, NULL-terminated.
 * @package: Debian package that owns the file, or NULL; set by objects_find_packages().
 * @privileged: the file is set-user-ID or set-group-ID, or has file capabilities.
 * @gains: if this process executed the file, it would run with other privileges, and the dynamic
 *	linker would therefore ignore the environment.
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
 * object_read() - read an open ELF file
 * @fd: the file; it stays open.
 * @root: folder that stands for "/", or "".
 * @o: receives all but the name. All its bytes must be 0 before. Give it to object_deinit(), also
 *	after a failure.
 *
 * Return: 0 or a negative errno; -ENOEXEC if the file is no program or library.
 */
int object_read(int fd, const char *root, struct object *o);
void object_deinit(struct object *o);

/*
 * Opens the regular file @path inside @root, which symbolic links cannot leave. Returns a
 * descriptor or a negative errno.
 */
int root_open(const char *root, const char *path);

/* Appends @s to a NULL-terminated list of strings and takes @s over. Returns 0 or -ENOMEM. */
int strings_add(char ***list, size_t *n, char *s);
void strings_free(char **list);

/**
 * machine_name() - get the kernel's name of a machine
 * @machine: e_machine (EM_*).
 *
 * Return: "x86", "arm64", "riscv", or "other".
 */
const char *machine_name(unsigned int machine);

/**
 * machine_own() - get the e_machine of the machine that this command is built for
 *
 * Return: EM_*.
 */
unsigned int machine_own(void);

#endif
