// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vdso.c - reads whether the running kernel's vDSO is marked for shadow stacks. It is read like
 * other objects, from a file in memory.
 */
#include <elf.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/check/vdso.h"
#include "tools/elf/object.h"

#define VDSO_MAX (1u << 20)

/*
 * Returns the size of the vDSO. The kernel maps the whole file, and its section headers come last.
 */
static size_t vdso_size(const Elf64_Ehdr *vdso)
{
	return vdso->e_shoff + (size_t)vdso->e_shnum * vdso->e_shentsize;
}

static enum vdso_mark read_mark(int fd)
{
	struct object object = { .path = NULL };
	enum vdso_mark mark = VDSO_NONE;

	if (!object_read(fd, "", &object))
		mark = object.marked ? VDSO_MARKED : VDSO_UNMARKED;
	object_deinit(&object);
	return mark;
}

enum vdso_mark vdso_mark(void)
{
	const Elf64_Ehdr *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	enum vdso_mark mark = VDSO_NONE;
	size_t size;
	int fd;

	if (machine_own() != EM_X86_64 || !vdso)
		return VDSO_NONE;
	size = vdso_size(vdso);
	fd = size && size <= VDSO_MAX ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	if (fd >= 0 && write(fd, vdso, size) == (ssize_t)size)
		mark = read_mark(fd);
	if (fd >= 0)
		close(fd);
	return mark;
}
