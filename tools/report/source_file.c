// SPDX-License-Identifier: GPL-2.0-or-later
/* source_file.c - lines of a source file, as source_file.h describes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "tools/report/source_file.h"

#define MOST_BYTES (64u << 20) /* of a file */
#define KEPT_LINE 8192 /* bytes of a line that are kept */

/**
 * struct source_file - a source file that is read
 * @fd: its descriptor.
 * @changed: time of its last change, in ns since 1970.
 * @number: number of the line in @line, from 1; 0: none was read yet.
 * @len: number of bytes in @line.
 * @line: beginning of the line that was read last.
 * @done: number of bytes that were read from @fd.
 * @at: index of the next byte in @buf.
 * @nr: number of bytes in @buf.
 * @buf: bytes that were read from @fd.
 */
struct source_file {
	int fd;
	int64_t changed;
	uint64_t number;
	size_t len;
	char line[KEPT_LINE];
	size_t done;
	size_t at;
	size_t nr;
	char buf[65536];
};

/* Opens the file in a folder by the longest end of its path. Returns a descriptor or -errno. */
static int open_in(const char *dir, const char *path)
{
	int fd = -ENOENT;

	for (const char *end = path; end && fd < 0; end = strchr(end, '/')) {
		end += strspn(end, "/");
		if (!*end)
			break;
		fd = regular_open_in(dir, end);
	}
	return fd;
}

struct source_file *source_file_open(const char *path, const char *dir, struct reason *why)
{
	int fd = dir ? open_in(dir, path) : -ENOENT;
	struct source_file *file;
	struct stat st;

	if (fd < 0)
		fd = regular_open(path);
	if (fd < 0) {
		because(why, "%s", fd == -EINVAL ? "it is not a regular file" : strerror(-fd));
		return NULL;
	}
	file = calloc(1, sizeof(*file));
	if (!file || fstat(fd, &st)) {
		because(why, "%s", strerror(errno));
		free(file);
		close(fd);
		return NULL;
	}
	file->fd = fd;
	file->changed = st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec;
	return file;
}

void source_file_close(struct source_file *file)
{
	if (!file)
		return;
	close(file->fd);
	free(file);
}

int64_t source_file_changed(const struct source_file *file)
{
	return file->changed;
}

/* Returns the next byte of the file, or -1 at its end or at the limit. */
static int next_byte(struct source_file *file)
{
	ssize_t n;

	if (file->at == file->nr) {
		n = file->done < MOST_BYTES ? read(file->fd, file->buf, sizeof(file->buf)) : 0;
		if (n <= 0)
			return -1;
		file->done += n;
		file->nr = n;
		file->at = 0;
	}
	return (unsigned char)file->buf[file->at++];
}

static bool next_line(struct source_file *file)
{
	int c = next_byte(file);

	if (c < 0)
		return false;
	file->len = 0;
	for (; c >= 0 && c != '\n'; c = next_byte(file))
		if (file->len < sizeof(file->line))
			file->line[file->len++] = (char)c;
	if (c == '\n' && file->len && file->line[file->len - 1] == '\r')
		file->len--;
	file->number++;
	return true;
}

bool source_file_line(struct source_file *file, uint64_t number, const char **ret, size_t *len)
{
	while (file->number < number)
		if (!next_line(file))
			return false;
	*ret = file->line;
	*len = file->len;
	return file->number == number;
}
