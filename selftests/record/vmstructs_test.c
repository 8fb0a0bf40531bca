// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vmstructs_test.c - tests the reader of HotSpot's tables with a process that only claims to be a
 * Java virtual machine.
 *
 * The memory of the process consists of the entries of a table without an end, and a page of texts,
 * behind which nothing can be read.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "tools/java/vmstructs.h"
#include "kselftest_harness.h"

#define PAGE 4096
#define TABLE 0x10000000ull /* only entries of the table follow from here on */
#define TEXTS 0x1000

#define MAX_READS 200000 /* the same as in selftests/fuzz/codecache_fuzz.c */

struct entry {
	uint64_t words[6];
};

static unsigned long reads;
static char texts[PAGE];

/*
 * Returns a word of the table. The names of types are at two addresses by turns, and each entry is
 * of a type that is used.
 */
static uint64_t word_of(uint64_t addr)
{
	const uint64_t type[2] = { TEXTS + PAGE - 17, TEXTS + PAGE - 27 };
	uint64_t at = (addr - TABLE) % sizeof(struct entry),
		 nr = (addr - TABLE) / sizeof(struct entry);

	return at == 0	? type[nr % 2] :
	       at == 8	? TEXTS + PAGE - 7 :
	       at == 16 ? TEXTS + PAGE - 7 :
			  0;
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	reads++;
	if (addr >= TEXTS && addr + size <= TEXTS + PAGE) {
		memcpy(buf, texts + (addr - TEXTS), size);
		return 0;
	}
	if (addr == 8 && size == 8) {
		*(uint64_t *)buf = TABLE;
		return 0;
	}
	if (addr < TABLE || addr % 8 || size % 8)
		return -EFAULT;
	for (size_t i = 0; i < size; i += 8)
		memcpy((char *)buf + i, &(uint64_t){ word_of(addr + i) }, 8);
	return 0;
}

TEST(tables_without_an_end_are_read_by_few_calls)
{
	const struct vm_memory memory = { read_memory, NULL };
	const struct vm_tables tables = { .structs = 8, .types = 8 };
	struct vmstructs vm;

	strcpy(texts + PAGE - 27, "CodeCache");
	strcpy(texts + PAGE - 17, "CodeCache");
	memcpy(texts + PAGE - 7, "_heaps", 7);
	EXPECT_EQ(-ENODATA, vmstructs_read(&memory, &tables, &vm));
	EXPECT_GT(MAX_READS, reads);
	EXPECT_LT(1000, reads);
}

/* The memory of a process with a table of two members, at the address where it is here. */
static struct {
	uint64_t table;
	uint64_t entries[3][6];
	int32_t version;
	char texts[4][32];
} tables;

static int read_tables(void *arg, uint64_t addr, void *buf, size_t size)
{
	const uint64_t start = (uint64_t)&tables;

	(void)arg;
	if (addr < start || addr - start > sizeof(tables) || size > sizeof(tables) - (addr - start))
		return -EFAULT;
	memcpy(buf, (const void *)addr, size);
	return 0;
}

/* Makes a table with HotSpot's version, and with a member of CodeCache. Returns the release of Java. */
static int release(int version, const char *heaps)
{
	const struct vm_memory memory = { read_tables, NULL };
	const struct vm_tables at = { (uint64_t)&tables.table, (uint64_t)&tables.table };
	struct vmstructs vm;

	tables.table = (uint64_t)tables.entries;
	tables.version = version;
	strcpy(tables.texts[0], "CodeCache");
	strcpy(tables.texts[1], heaps);
	strcpy(tables.texts[2], "Abstract_VM_Version");
	strcpy(tables.texts[3], "_vm_major_version");
	for (unsigned int i = 0; i < 2; i++) {
		tables.entries[i][0] = (uint64_t)tables.texts[2 * i];
		tables.entries[i][1] = (uint64_t)tables.texts[2 * i + 1];
		tables.entries[i][3] = 1;
		tables.entries[i][5] = (uint64_t)&tables.version;
	}
	vmstructs_read(&memory, &at, &vm);
	return vm.version;
}

TEST(java_8_is_not_taken_for_java_25)
{
	EXPECT_EQ(8, release(25, "_heap"));
	EXPECT_EQ(25, release(25, "_heaps"));
	EXPECT_EQ(17, release(17, "_heaps"));
}

TEST_HARNESS_MAIN
