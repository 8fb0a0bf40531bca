// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maps.c - reads /proc/PID/maps and smaps line by line, or asks the kernel for executable mappings. See
 * maps.h and proc_pid_maps(5).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libshstk/symbol/hex.h"
#include "tools/proc/maps.h"

/* The kernel's struct procmap_query and its ioctl, which the headers of older kernels lack. */
struct map_query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t start;
	uint64_t end;
	uint64_t permissions;
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode;
	uint32_t major;
	uint32_t minor;
	uint32_t path_size;
	uint32_t id_size;
	uint64_t path;
	uint64_t id;
};

#define MAP_QUERY _IOWR('f', 17, struct map_query)
#define QUERY_WRITE 0x02
#define QUERY_EXEC 0x04
#define QUERY_NEXT 0x10 /* if there is none at the address, the first one behind it */

int maps_open(pid_t pid, const char *file, struct maps *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	ret->in = fopen(path, "re");
	ret->line = NULL;
	ret->room = 0;
	ret->asked = 0;
	if (!ret->in)
		return -errno;
	setvbuf(ret->in, ret->buffer, _IOFBF, sizeof(ret->buffer));
	return 0;
}

static bool read_line(struct maps *maps)
{
	ssize_t n = getline(&maps->line, &maps->room, maps->in);

	if (n <= 0)
		return false;
	if (maps->line[n - 1] == '\n')
		maps->line[n - 1] = '\0';
	return true;
}

/*
 * Takes a hexadecimal number that @after follows, and moves @at behind that. When recording begins, the
 * lines of all processes are read: with sscanf() each took 5,600 instructions, of 1,050 now.
 */
static bool take_number(const char **at, char after, uint64_t *ret)
{
	const char *p = *at;
	int digit;

	for (*ret = 0; (digit = shstk_hex_digit(*p)) >= 0; p++)
		*ret = *ret << 4 | digit;
	if (p == *at || *p != after)
		return false;
	*at = p + 1;
	return true;
}

/* Takes the four letters of the access permissions. */
static bool take_permissions(const char **at, struct mapping *ret)
{
	const char *p = *at;

	if (strcspn(p, " ") != 4 || !p[4])
		return false;
	ret->write = p[1] == 'w';
	ret->exec = p[2] == 'x';
	*at = p + 5;
	return true;
}

static bool parse(const char *line, struct mapping *ret)
{
	uint64_t major, minor;
	char *end;

	if (!take_number(&line, '-', &ret->start) || !take_number(&line, ' ', &ret->end) ||
	    !take_permissions(&line, ret) || !take_number(&line, ' ', &ret->offset) ||
	    !take_number(&line, ':', &major) || !take_number(&line, ' ', &minor))
		return false;
	ret->inode = strtoull(line, &end, 10);
	if (end == line || (*end && *end != ' '))
		return false;
	ret->dev = makedev(major, minor);
	ret->path = end + strspn(end, " ");
	return true;
}

bool maps_next(struct maps *maps, struct mapping *ret)
{
	while (read_line(maps))
		if (parse(maps->line, ret))
			return true;
	return false;
}

int maps_next_code(struct maps *maps, struct mapping *ret)
{
	struct map_query q = {
		.size = sizeof(q),
		.flags = QUERY_EXEC | QUERY_NEXT,
		.addr = maps->asked,
		.path_size = sizeof(maps->buffer),
		.path = (uintptr_t)maps->buffer,
	};

	maps->buffer[0] = '\0';
	if (ioctl(fileno(maps->in), MAP_QUERY, &q))
		return errno == ENOENT ? 0 : -errno;
	/* In a line it is escaped. */
	if (q.end <= maps->asked || strchr(maps->buffer, '\n'))
		return -EILSEQ;
	maps->asked = q.end;
	*ret = (struct mapping){
		.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.dev = makedev(q.major, q.minor),
		.inode = q.inode,
		.write = q.permissions & QUERY_WRITE,
		.exec = true,
		.path = maps->buffer,
	};
	return 1;
}

bool maps_next_named(struct maps *maps, const char *text, struct mapping *ret)
{
	while (read_line(maps))
		if (strstr(maps->line, text) && parse(maps->line, ret))
			return true;
	return false;
}

/* Returns whether a line such as "VmFlags: rd ex mr" has the flag. */
static bool has_flag(const char *line, const char *flag)
{
	static const char start[] = "VmFlags:";

	if (strncmp(line, start, sizeof(start) - 1))
		return false;
	for (line += sizeof(start) - 1; *line; line += strcspn(line, " ")) {
		line += strspn(line, " ");
		if (!strncmp(line, flag, 2) && (!line[2] || line[2] == ' '))
			return true;
	}
	return false;
}

bool maps_next_flagged(struct maps *maps, const char *flag, struct mapping *ret)
{
	struct mapping now;
	bool known = false;

	while (read_line(maps)) {
		if (parse(maps->line, &now)) {
			known = true;
		} else if (known && has_flag(maps->line, flag)) {
			*ret = now;
			ret->path = "";
			return true;
		}
	}
	return false;
}

int maps_close(struct maps *maps)
{
	int err = ferror(maps->in) ? -EIO : 0;

	free(maps->line);
	fclose(maps->in);
	return err;
}

uint64_t maps_vdso_size(void)
{
	uint64_t size = 0, vdso = getauxval(AT_SYSINFO_EHDR);
	struct mapping m;
	struct maps maps;

	if (maps_open(getpid(), "maps", &maps))
		return 0;
	while (!size && maps_next(&maps, &m))
		if (m.start == vdso)
			size = m.end - m.start;
	maps_close(&maps);
	return size;
}
