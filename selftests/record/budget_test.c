// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * budget_test.c - what a recorder reads from the memory of processes draws from the same budget as
 * what it reads from files, and who takes too much is told of once, by name.
 *
 * The process is this one, and a file that claims to be a Java virtual machine's library.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/budget.h"
#include "selftests/large_symbols.h"
#include "tools/java/codecache.h"
#include "tools/java/jit_code.h"
#include "tools/shstk.h"

#include "kselftest_harness.h"

#define MIB (1ull << 20)
#define CODE (4 * MIB) /* bytes of code of the file that is mapped */

/* As tools/time.c has it, without the rest of the command. */
uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Returns how many accounts exceeded their share, and in @name and @what the first of them. */
static size_t excesses(const struct shstk_symbols *symbols, const char **name, unsigned int *what)
{
	unsigned int other;
	size_t nr = 0;

	*name = shstk_symbols_excess(symbols, 0, what);
	while (shstk_symbols_excess(symbols, nr, &other))
		nr++;
	return nr;
}

/* Works until the clock of the thread's CPU time, which may be coarse, has moved on. */
static void work(void)
{
	uint64_t since = now_ns(CLOCK_THREAD_CPUTIME_ID);

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) == since)
		;
}

static struct shstk_symbols *store(uint64_t memory, uint64_t time)
{
	struct shstk_symbols_opts opts = { .memory = memory, .time = time, .no_servers = true };
	struct shstk_symbols *symbols = NULL;

	shstk_symbols_create(&opts, &symbols);
	return symbols;
}

static const char *own_name(void)
{
	static char name[80];
	char comm[32] = "";
	FILE *file = fopen("/proc/self/comm", "re");

	if (file && fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = '\0';
	if (file)
		fclose(file);
	snprintf(name, sizeof(name), "process %d (%s)", getpid(), comm);
	return name;
}

/* ---- Files that can only be read from the process's memory ---- */

/* Maps a library of CODE bytes whose file is gone. Returns its address, or MAP_FAILED. */
static void *map_lost(void)
{
	char path[] = "/tmp/budget-XXXXXX";
	int fd = mkstemp(path);
	Elf64_Ehdr eh = {
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	Elf64_Phdr ph = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = CODE, .p_memsz = CODE
	};
	void *at = MAP_FAILED;

	memcpy(eh.e_ident, "\177ELF\2\1\1", 7);
	if (fd >= 0 && !ftruncate(fd, CODE) && write(fd, &eh, sizeof(eh)) == sizeof(eh) &&
	    write(fd, &ph, sizeof(ph)) == sizeof(ph))
		at = mmap(NULL, CODE, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	unlink(path);
	return at;
}

static int open_lost(struct shstk_symbols *symbols, const void *at)
{
	int fd = shstk_remote_open(symbols, getpid(), (uintptr_t)at);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST(a_file_made_of_a_process_s_memory_draws_from_the_budget)
{
	void *at = map_lost();
	struct shstk_symbols *enough = store(256 * MIB, 0), *little = store(40 * MIB, 0);
	unsigned int what;
	const char *name;

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(0, open_lost(enough, at));
	EXPECT_EQ(0, excesses(enough, &name, &what));
	/* A process gets half of a twelfth of the memory. */
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(-EFBIG, open_lost(little, at));
	EXPECT_EQ(1, excesses(little, &name, &what));
	EXPECT_STREQ(own_name(), name);
	EXPECT_EQ(SHSTK_EXCESS_MEMORY, what);
	shstk_symbols_destroy(enough);
	shstk_symbols_destroy(little);
	munmap(at, CODE);
}

TEST(files_of_all_processes_together_have_a_bound)
{
	void *at = map_lost();
	struct shstk_symbols *symbols = store(256 * MIB, 0);
	unsigned int what;
	const char *name;
	int made = 0;

	ASSERT_NE(MAP_FAILED, at);
	while (made < 100 && !open_lost(symbols, at))
		made++;
	/* 21 MiB for all: the half of what is left is less than a file's 4 MiB after four files. */
	EXPECT_EQ(4, made);
	EXPECT_EQ(1, excesses(symbols, &name, &what));
	EXPECT_EQ(SHSTK_EXCESS_MEMORY, what);
	shstk_symbols_destroy(symbols);
	munmap(at, CODE);
}

TEST(its_time_comes_from_the_budget_too)
{
	void *at = map_lost();
	struct shstk_symbols *symbols = store(0, 1);
	unsigned int what;
	const char *name;

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-EFBIG, open_lost(symbols, at));
	EXPECT_EQ(-EFBIG, open_lost(symbols, at));
	EXPECT_EQ(1, excesses(symbols, &name, &what));
	EXPECT_STREQ(own_name(), name);
	EXPECT_EQ(SHSTK_EXCESS_TIME, what);
	shstk_symbols_destroy(symbols);
	munmap(at, CODE);
}

/* ---- A library with the name of Java's ---- */

static struct shstk_symbols *java_symbols;
static unsigned int opened;

static int read_nothing(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	(void)addr;
	(void)buf;
	(void)size;
	return -EFAULT;
}

static struct shstk_account *java_account(void *arg)
{
	(void)arg;
	return shstk_symbols_process_account(java_symbols, getpid());
}

/* A file with too many symbols. */
static int open_large(void *arg, uint64_t *start, uint64_t *offset)
{
	int fd = make_large_symbols("libjvm.so");

	(void)arg;
	opened++;
	*start = 0x10000000;
	*offset = 0;
	return fd < 0 ? -EIO : fd;
}

TEST(the_symbols_of_java_s_library_draw_from_the_budget)
{
	const struct jit_process process = { read_nothing, open_large, java_account, NULL };
	struct shstk_space *space;
	unsigned int what;
	struct jit *jit;
	const char *name;

	java_symbols = store(256 * MIB, 0);
	ASSERT_EQ(0, shstk_space_create(SHSTK_ARCH_X86, &space));
	EXPECT_EQ(0, jit_attach(space, &process, &jit));
	EXPECT_EQ(NULL, jit);
	EXPECT_EQ(1, opened);
	EXPECT_EQ(1, excesses(java_symbols, &name, &what));
	EXPECT_STREQ(own_name(), name);
	EXPECT_EQ(SHSTK_EXCESS_MEMORY, what);
	shstk_symbols_destroy(java_symbols);
	shstk_space_destroy(space);
}

TEST(java_s_library_is_not_opened_when_no_time_is_left)
{
	const struct jit_process process = { read_nothing, open_large, java_account, NULL };
	struct shstk_account *account;
	struct shstk_space *space;
	unsigned int what;
	struct jit *jit;
	const char *name;

	java_symbols = store(0, 1);
	/* The first piece of work takes all of it. */
	account = shstk_symbols_process_account(java_symbols, getpid());
	shstk_account_begin(account);
	work();
	shstk_account_end(account);
	ASSERT_EQ(0, shstk_space_create(SHSTK_ARCH_X86, &space));
	EXPECT_EQ(0, jit_attach(space, &process, &jit));
	EXPECT_EQ(NULL, jit);
	EXPECT_EQ(0, opened);
	EXPECT_EQ(1, excesses(java_symbols, &name, &what));
	EXPECT_EQ(SHSTK_EXCESS_TIME, what);
	shstk_symbols_destroy(java_symbols);
	shstk_space_destroy(space);
}

/* ---- Look-ups in Java's tables are made for samples, so each takes few reads ---- */

#define MOST_READS 128

static unsigned int reads;

/* Memory in which each byte is @arg, but lists and ranges are as long as they may be. */
static int read_hostile(void *arg, uint64_t addr, void *buf, size_t size)
{
	const uint8_t *fill = arg;

	reads++;
	memset(buf, *fill, size);
	/* The members lie at the addresses that are the numbers of enum vm_member, from 4096 on. */
	if (size == 8 && addr >= 1ull << 40)
		memcpy(buf, &(uint64_t){ addr & 8 ? ~0ull >> 8 : 0 }, 8);
	return 0;
}

TEST(a_look_up_in_java_s_tables_takes_few_reads)
{
	for (unsigned int fill = 0; fill < 256; fill++) {
		uint8_t byte = fill;
		struct vmstructs vm = { .memory = { read_hostile, &byte }, .block_size = 16 };
		struct codecache *cache;
		struct codeblob blob;

		for (int m = 0; m < VM_NR; m++)
			vm.places[m].known = true;
		vm.places[VM_HEAP_MEMORY].at = vm.places[VM_HEAP_MAP].at = 1ull << 40;
		vm.places[VM_SPACE_HIGH].at = 8;
		cache = codecache_create(&vm);
		ASSERT_NE(NULL, cache);
		for (uint64_t pc = 1; pc && pc < 1ull << 56; pc <<= 3) {
			reads = 0;
			codecache_find(cache, pc, &blob);
			EXPECT_GT(MOST_READS, reads);
		}
		codecache_destroy(cache);
	}
}

TEST_HARNESS_MAIN
