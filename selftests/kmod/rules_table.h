/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rules_table.h - a table of one page about which nothing is known, and the calls for it.
 */
#ifndef RULES_TABLE_H
#define RULES_TABLE_H

#include <errno.h>
#include <linux/shstk_rules.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

struct rules_small {
	struct shstk_rules_header header;
	uint64_t rule;
	uint32_t page[2], row;
} __attribute__((packed));

/* Returns a table of one page, with the single rule that nothing is known. */
static inline struct rules_small rules_small(int device)
{
	struct shstk_rules_info info = { 0 };
	struct rules_small t = {
		.header = {
			.magic = SHSTK_RULES_MAGIC, .version = SHSTK_RULES_VERSION,
			.nr_rules = 1, .nr_pages = 1, .nr_rows = 1,
		},
		.page = { 0, 1 },
	};

	ioctl(device, SHSTK_RULES_INFO, &info);
	t.header.machine = (uint16_t)info.machine;
	return t;
}

/*
 * Loads the table at @table for the file @fd. @st is the status of the file when the table was made;
 * NULL if it is not passed on. Returns 0 or an errno.
 */
static inline int rules_load_at(int device, int fd, const struct stat *st, uintptr_t table)
{
	struct shstk_rules_load arg = {
		.table = table,
		.size = sizeof(struct rules_small),
		.fd = fd,
		.name = "small",
	};

	if (st) {
		arg.change_sec = (uint64_t)st->st_ctim.tv_sec;
		arg.change_nsec = (uint32_t)st->st_ctim.tv_nsec;
	}
	return ioctl(device, SHSTK_RULES_LOAD, &arg) ? errno : 0;
}

/* Loads a small table as rules_load_at() does. */
static inline int rules_load_of(int device, int fd, const struct stat *st)
{
	struct rules_small t = rules_small(device);

	return rules_load_at(device, fd, st, (uintptr_t)&t);
}

/* Loads the table for a file. Returns 0 or an errno. */
static inline int rules_load(int device, int fd)
{
	return rules_load_of(device, fd, NULL);
}

/* Drops the table of a file. Returns 0 or an errno: ENOENT if the file had none. */
static inline int rules_drop(int device, int fd)
{
	struct shstk_rules_drop arg = { .fd = fd };

	return ioctl(device, SHSTK_RULES_DROP, &arg) ? errno : 0;
}

static inline void rules_drop_all(int device)
{
	struct shstk_rules_drop arg = { .flags = SHSTK_RULES_DROP_ALL };

	ioctl(device, SHSTK_RULES_DROP, &arg);
}

/*
 * Says that @nr ids from @first on count as @user; @nr of 0: that each id counts as itself. Returns 0
 * or an errno.
 */
static inline int rules_count_as(int device, uint32_t first, uint32_t nr, uint32_t user)
{
	struct shstk_rules_range range = { first, nr, user };
	struct shstk_rules_users arg = { .ranges = (uintptr_t)&range, .nr = nr ? 1 : 0 };

	return ioctl(device, SHSTK_RULES_USERS, &arg) ? errno : 0;
}

#endif
