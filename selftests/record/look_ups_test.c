// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * look_ups_test.c - tests how much of the time look-ups in HotSpot's tables may take: they are free
 * for a part of the time, and draw from the process's account beyond that.
 *
 * The tables and the clock are made here: each look-up takes as long as the test says. Prints KTAP.
 */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "libshstk/symbol/budget.h"
#include "tools/java/codecache.h"
#include "tools/java/jit_code.h"
#include "tools/shstk.h"

#include "kselftest_harness.h"

#define MS 1000000ull
#define STACK 64 /* addresses of a sample */

static uint64_t the_time = 1000 * MS;
static uint64_t takes; /* ns for each look-up */
static uint64_t look_ups;
static bool is_busy; /* all that takes time is waiting for a CPU */
static bool is_running; /* it is running */
static uint64_t ran;
static uint64_t waited;
static bool is_found = true; /* the process has tables */
static unsigned int searches;
static struct shstk_symbols *symbols;

uint64_t now_ns(clockid_t clock)
{
	/* What takes time here runs, or waits: for a CPU, or for another thing. */
	return clock == CLOCK_MONOTONIC ? the_time : ran;
}

uint64_t task_waited(void)
{
	return waited;
}

static void pass(uint64_t time)
{
	the_time += time;
	if (is_busy)
		waited += time;
	if (is_running)
		ran += time;
}

/* ---- The tables ---- */

struct codecache *codecache_create(const struct vmstructs *vm)
{
	(void)vm;
	return (struct codecache *)&the_time;
}

void codecache_destroy(struct codecache *cache)
{
	(void)cache;
}

int codecache_find(struct codecache *cache, uint64_t pc, struct codeblob *ret)
{
	(void)cache;
	pass(takes);
	look_ups++;
	*ret = (struct codeblob){ .start = pc & ~0xffull, .end = (pc | 0xff) + 1, .frame = 32 };
	return 0;
}

bool codecache_has(const struct codecache *cache, uint64_t pc)
{
	(void)cache, (void)pc;
	return true;
}

bool codecache_name(const struct codecache *cache, const struct codeblob *blob, char *buf,
		    size_t size)
{
	(void)cache, (void)blob, (void)buf, (void)size;
	return false;
}

bool vm_tables_find(int fd, uint64_t start, uint64_t offset, struct shstk_account *account,
		    struct vm_tables *ret)
{
	(void)fd, (void)start, (void)offset, (void)account, (void)ret;
	pass(takes);
	searches++;
	return is_found;
}

int vmstructs_read(const struct vm_memory *memory, const struct vm_tables *tables,
		   struct vmstructs *ret)
{
	(void)memory, (void)tables, (void)ret;
	return 0;
}

/* ---- The process ---- */

static int read_nothing(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg, (void)addr, (void)buf, (void)size;
	return -EFAULT;
}

static int open_nothing(void *arg, uint64_t *start, uint64_t *offset)
{
	(void)arg;
	*start = *offset = 0;
	return dup(STDIN_FILENO);
}

static struct shstk_account *account_of(void *arg)
{
	(void)arg;
	return shstk_symbols_process_account(symbols, getpid());
}

static const struct jit_process process = { read_nothing, open_nothing, account_of, NULL };

/* Makes a process, whose tables are found. The budget has 0.4 s of CPU time. */
static struct jit *begin(void)
{
	const struct shstk_symbols_opts opts = { .time = 400 * MS, .no_servers = true };
	struct jit *jit = jit_create();

	if (!jit || (!symbols && shstk_symbols_create(&opts, &symbols)))
		return NULL;
	jit_begin(jit, &process);
	return jit;
}

/* Uses up the account's part of the budget. */
static void spend(void)
{
	struct shstk_account *account = account_of(NULL);

	shstk_account_begin(account);
	while (shstk_account_on(account))
		;
	shstk_account_end(account);
}

/*
 * Takes samples every 10 ms until @end, each with @nr addresses that are new, and asks for frames
 * and names of all. Returns the time that the look-ups took.
 */
static uint64_t sample_until(struct jit *jit, uint64_t end, unsigned int nr)
{
	static uint64_t pc = 1 << 20;
	const uint64_t before = look_ups;
	uint64_t next = the_time, pcs[STACK];

	while (the_time < end) {
		jit_begin(jit, &process);
		for (unsigned int i = 0; i < nr; i++) {
			pcs[i] = pc += 256;
			jit_shape(jit, pc, 0, &(struct shstk_frame_shape){ .cfa = 0 });
		}
		jit_name(jit, NULL, pcs, nr);
		next += 10 * MS;
		if (the_time < next)
			the_time = next;
	}
	return (look_ups - before) * takes;
}

TEST(look_ups_take_no_more_than_a_part_of_the_time_when_the_account_is_empty)
{
	struct jit *jit = begin();
	uint64_t took, most;
	unsigned int what;

	ASSERT_NE(NULL, jit);
	spend();
	takes = MS / 10;
	took = sample_until(jit, the_time + 100000 * MS, STACK);
	most = 250 * MS + 100000 * MS / 16;
	EXPECT_LE(took, most + 20 * MS);
	/* It goes on until the end. */
	EXPECT_GE(took, most - 20 * MS);
	EXPECT_NE(NULL, shstk_symbols_excess(symbols, 0, &what));
	EXPECT_EQ(SHSTK_EXCESS_TIME, what);
}

TEST(processes_together_take_no_more_than_a_quarter)
{
	uint64_t took = 0, until;
	struct jit *jits[20];

	takes = MS / 10;
	for (int i = 0; i < 20; i++) {
		jits[i] = begin();
		ASSERT_NE(NULL, jits[i]);
	}
	spend();
	until = the_time + 100000 * MS;
	for (int i = 0; the_time < until; i++)
		took += sample_until(jits[i % 20], the_time + 10 * MS, STACK);
	EXPECT_LE(took, 250 * MS + 100000 * MS / 4 + 20 * MS);
	EXPECT_GE(took, 100000 * MS / 5);
}

TEST(waiting_for_a_cpu_is_no_look_up)
{
	struct jit *jit = begin();
	uint64_t all, took;

	ASSERT_NE(NULL, jit);
	spend();
	takes = 10 * MS;
	is_busy = true;
	all = 100000 * MS;
	took = sample_until(jit, the_time + all, STACK);
	is_busy = false;
	/* All of the time: nothing was refused. */
	EXPECT_GE(took, all - 20 * MS);
}

TEST(what_a_look_up_runs_counts_however_long_was_waited_before)
{
	struct jit *jit = begin();
	uint64_t took = 0, most;

	ASSERT_NE(NULL, jit);
	spend();
	takes = 2 * MS;
	is_running = true;
	for (int i = 0; i < 10000; i++) {
		/* Between samples the thread waits for a CPU most of the time. */
		waited += 8 * MS;
		took += sample_until(jit, the_time + 10 * MS, 1);
	}
	is_running = false;
	most = 250 * MS + 100000 * MS / 16;
	EXPECT_LE(took, most + 20 * MS);
	EXPECT_GE(took, most - 20 * MS);
}

TEST(all_rest_after_a_long_search_in_vain)
{
	struct jit *jit, *other;

	is_found = false;
	takes = 10000 * MS;
	jit = begin();
	ASSERT_EQ(1, searches);
	/* For four times as long. */
	other = jit_create();
	the_time += 39000 * MS;
	jit_begin(other, &process);
	EXPECT_EQ(1, searches);
	the_time += 2000 * MS;
	jit_begin(other, &process);
	EXPECT_EQ(2, searches);
	jit_destroy(jit);
	jit_destroy(other);
}

TEST(none_rests_because_the_search_waited_for_a_cpu)
{
	struct jit *jit, *other;

	is_found = false;
	is_busy = true;
	takes = 10000 * MS;
	jit = begin();
	ASSERT_EQ(1, searches);
	other = jit_create();
	the_time += MS;
	jit_begin(other, &process);
	EXPECT_EQ(2, searches);
	jit_destroy(jit);
	jit_destroy(other);
}

TEST(what_is_beyond_that_part_draws_from_the_account)
{
	struct jit *jit = begin();
	unsigned int what;

	ASSERT_NE(NULL, jit);
	takes = 10 * MS;
	/* By the CPU's clock, these 640 take about a millisecond. */
	EXPECT_EQ(5 * 2 * STACK * takes,
		  sample_until(jit, the_time + 5 * 2 * STACK * takes, STACK));
	EXPECT_EQ(NULL, shstk_symbols_excess(symbols, 0, &what));
}

TEST(an_honest_process_is_looked_up_for_as_long_as_it_is_sampled)
{
	struct jit *jit = begin();
	const unsigned int nr = 20;

	ASSERT_NE(NULL, jit);
	spend();
	takes = 5000;
	/* An hour. */
	EXPECT_EQ(360000 * 2 * nr * takes, sample_until(jit, the_time + 3600000 * MS, nr));
}

TEST_HARNESS_MAIN
