// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * packages.c - finds the programs and libraries of this system.
 */
#include <elf.h>
#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/elf/object.h"
#include "tools/rules/packages.h"

/* Returns whether a directory is skipped, because it contains no code that runs on this machine. */
static bool is_left_out(const char *path)
{
	return !strcmp(path, "/usr/lib/debug") || !strcmp(path, "/usr/share") ||
	       !strcmp(path, "/usr/src") || !strcmp(path, "/usr/include");
}

/*
 * Returns whether a file is a program or a library of this machine, which the kernel or ld.so would
 * map.
 */
static bool is_code(int fd)
{
	Elf64_Ehdr h;

	return pread(fd, &h, sizeof(h), 0) == sizeof(h) && !memcmp(h.e_ident, ELFMAG, SELFMAG) &&
	       h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_machine == machine_own() &&
	       (h.e_type == ET_DYN || h.e_type == ET_EXEC);
}

void package_files(void (*use)(void *arg, int fd, const char *path), void *arg)
{
	/* If /bin is a link to /usr/bin, it is not followed. */
	char *const tops[] = { "/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", NULL };
	FTS *fts = fts_open(tops, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *e;

	if (!fts)
		return;
	while ((e = fts_read(fts))) {
		int fd;

		if (e->fts_info == FTS_D && is_left_out(e->fts_path))
			fts_set(fts, e, FTS_SKIP);
		if (e->fts_info != FTS_F)
			continue;
		fd = open(e->fts_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
		if (fd >= 0 && is_code(fd))
			use(arg, fd, e->fts_path);
		else if (fd >= 0)
			close(fd);
	}
	fts_close(fts);
}
