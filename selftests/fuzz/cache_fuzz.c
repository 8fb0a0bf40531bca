// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cache_fuzz.c - files of the cache of unwind rules: whatever a file contains, either it is
 * refused, or no look-up in its table leaves the table.
 *
 * The first byte says what is repaired in the rest, so that not all inputs end at the checksum: the
 * build id and the size, and the checksum.
 */
#include <sys/mman.h>

#include "tools/rules/cache.c"

/* Replaces a function whose file needs much else, as build_id_text() below. */
unsigned int machine_own(void)
{
	return EM_X86_64;
}

char *build_id_text(const struct build_id *unused, char buf[129])
{
	(void)unused;
	buf[0] = '\0';
	return buf;
}

enum { FIX_HEADER = 1, FIX_SUM = 2 };

/* Replaces the check of a file's owner: files are made here, in memory. */
bool trust_owner(const struct stat *unused)
{
	(void)unused;
	return true;
}

static const struct build_id id = { .size = 20, .data = "twenty bytes, not 19" };

static void repair(uint8_t *data, size_t size, unsigned int what)
{
	struct cached c;

	if (size < sizeof(c))
		return;
	memcpy(&c, data, sizeof(c));
	if (what & FIX_HEADER) {
		memcpy(c.magic, CACHE_MAGIC, sizeof(c.magic));
		c.version = CACHE_VERSION;
		c.id_size = id.size;
		memcpy(c.id, id.data, id.size);
		c.size = size - sizeof(c);
	}
	if (what & FIX_SUM)
		c.sum = checksum(data + sizeof(c), size - sizeof(c));
	memcpy(data, &c, sizeof(c));
}

static void look_up(const struct compiled_table *t)
{
	struct ushstk_rules_view v;

	if (ushstk_rules_check(t->header, t->size, machine_own(), &v))
		abort();
	for (uint64_t off = v.base; off < v.base + 64 * 4096; off += 61)
		if (!(ushstk_rule_kind(ushstk_rule_at(&v, off)) <= SHSTK_RULE_WORD))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct compiled_table table;
	uint8_t *copy;
	int fd;

	if (!size)
		return 0;
	fd = memfd_create("cache", MFD_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0644))
		abort();
	copy = malloc(size);
	memcpy(copy, data + 1, size - 1);
	repair(copy, size - 1, *data);
	if (write(fd, copy, size - 1) != (ssize_t)size - 1 || lseek(fd, 0, SEEK_SET))
		abort();
	free(copy);
	if (!read_cached(fd, &id, &table)) {
		look_up(&table);
		free(table.header);
	}
	close(fd);
	return 0;
}
