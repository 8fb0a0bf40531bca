// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * forge.c - writes nonsense into all tables of unwind rules that lie in pinned maps.
 *
 *	forge SEED
 *
 * The head of each table stays as it is in one half of the seeds, so that walks look further into it.
 */
#include <bpf/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/walk.h"

#define TABLES "/sys/fs/bpf/shstk_tables"
#define HEAD 8 /* words of struct shstk_rules_header */

static uint64_t state;

static uint32_t next_word(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Overwrites a table. Rows and pages that are small numbers lead to others within the table. */
static int forge(uint32_t id, int keep)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = bpf_map_get_fd_by_id(id);
	size_t room;
	uint32_t *words;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return -1;
	room = (size_t)info.max_entries * info.value_size;
	words = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (words == MAP_FAILED)
		return -1;
	for (size_t i = keep ? HEAD : 0; i < room / sizeof(*words); i++)
		words[i] = next_word() >> (next_word() & 24);
	munmap(words, room);
	return 0;
}

int main(int argc, char **argv)
{
	int tables = bpf_obj_get(TABLES), nr = 0;
	unsigned long seed = argc == 2 ? strtoul(argv[1], NULL, 10) : 1;

	if (tables < 0) {
		perror(TABLES);
		return 1;
	}
	state = 88172645463325252 + seed;
	for (uint32_t slot = 1, id; slot < WALK_SLOTS; slot++) {
		if (bpf_map_lookup_elem(tables, &slot, &id))
			break;
		if (forge(id, seed % 2)) {
			perror("a table");
			return 1;
		}
		nr++;
	}
	printf("%d tables\n", nr);
	return !nr;
}
