/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * map_file.h - a whole file in memory, to be read.
 */
#ifndef SELFTESTS_MAP_FILE_H
#define SELFTESTS_MAP_FILE_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file's bytes, for good; NULL: see errno. */
static inline void *map_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *data = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st)) {
		*size = st.st_size;
		data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	return data == MAP_FAILED ? NULL : data;
}

#endif
