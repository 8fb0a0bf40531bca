// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bounds_test.c - processes that have too much for tools/language/ and tools/trace/interpreted.c.
 *
 * This program has the symbols of Python 3.11, so its own file is one of the interpreter.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/symbol.h"
#include "tools/language/languages.h"
#include "tools/language/read.h"
#include "tools/proc/maps.h"
#include "tools/trace/interpreted.h"
#include "tools/trace/waiting_tasks.h"

#include "kselftest_harness.h"

#define PAGE 4096
#define BASE 0x10000 /* what all words of the forged process are */
#define STATE_THREAD 152 /* offset in the thread state of 3.11, tools/language/python/versions.c */
#define SLOW_MS 1 /* time that reading memory takes at least */
#define HOLD_MS 200 /* time for which threads may be held: STOP_HOLD_MS */

unsigned long Py_Version = 0x030b02f0;
uint8_t _PyRuntime[PAGE];
uint8_t PyCode_Type[512];
int _PyEval_EvalFrameDefault(void);

int _PyEval_EvalFrameDefault(void)
{
	return 0;
}

static int read_version(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	(void)addr;
	if (size != sizeof(Py_Version))
		return -EFAULT;
	memcpy(buf, &Py_Version, size);
	return 0;
}

/* Reads a process with lists that lead to themselves, and counts how often. */
static int read_slowly(void *arg, uint64_t addr, void *buf, size_t size)
{
	const uint64_t word = addr == BASE + STATE_THREAD ? (uintptr_t)pthread_self() : BASE;
	unsigned int *reads = arg;

	++*reads;
	usleep(SLOW_MS * 1000);
	memset(buf, 0, size);
	for (size_t i = 0; i + sizeof(word) <= size; i += sizeof(word))
		memcpy((uint8_t *)buf + i, &word, sizeof(word));
	return 0;
}

/* Returns an account that has enough for all tests, or NULL. */
static struct shstk_account *get_account(void)
{
	static struct shstk_symbols *symbols;

	if (!symbols)
		shstk_symbols_create(NULL, &symbols);
	return symbols ? shstk_symbols_process_account(symbols, getpid()) : NULL;
}

/* Opens this program as a file that a process has mapped. Returns false if it cannot be found. */
static bool open_module(struct language_module *ret)
{
	struct mapping m;
	struct maps maps;
	bool found = false;

	*ret = (struct language_module){ .fd = -1, .read = read_version, .account = get_account() };
	if (maps_open(getpid(), "maps", &maps))
		return false;
	while (!found && maps_next(&maps, &m)) {
		found = m.exec && m.start <= (uintptr_t)read_version &&
			(uintptr_t)read_version < m.end;
		ret->start = m.start;
		ret->offset = m.offset;
	}
	maps_close(&maps);
	ret->fd = found ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : -1;
	return ret->fd >= 0 && ret->account;
}

TEST(more_interpreters_than_can_be_known_are_said)
{
	struct languages *all = languages_create(NULL);
	struct language_module module;

	ASSERT_TRUE(all && open_module(&module));
	languages_stopped_only(all);
	for (int i = 1; i < LANGUAGE_TARGETS; i++, module.start += PAGE)
		ASSERT_EQ(i, languages_find(all, &module));
	EXPECT_EQ(NULL, languages_refused(all));
	EXPECT_EQ(0, languages_find(all, &module));
	ASSERT_NE(NULL, languages_refused(all));
	TH_LOG("%s", languages_refused(all));
	module.start -= PAGE;
	EXPECT_EQ(LANGUAGE_TARGETS - 1, languages_find(all, &module));
	close(module.fd);
	languages_destroy(all);
}

/* Has a sample come after its frames, and a loss between the two if there is one. */
static uint64_t count_samples(struct languages *all, int number, bool lost)
{
	const struct language_moment moment = {
		.kind = LANGUAGE_MOMENT,
		.target = number,
		.pc = 1,
		.sp = 2,
	};
	const struct language_sample sample = { .number = number, .tid = 1, .pc = 1, .sp = 2 };
	const struct native_stack native = { .nr = 0 };
	struct language_counts counts;
	uint64_t pc;
	uint8_t mark;

	languages_take(all, 1, 0, &moment, sizeof(moment));
	if (lost)
		languages_lost(all);
	languages_place(all, &sample, &native, &pc, &mark, 1);
	languages_count(all, &counts);
	return counts.samples;
}

TEST(frames_from_before_a_loss_are_of_no_sample)
{
	struct languages *all = languages_create(NULL);
	struct language_module module;
	int number;

	ASSERT_TRUE(all && open_module(&module));
	languages_stopped_only(all);
	number = languages_find(all, &module);
	close(module.fd);
	ASSERT_EQ(1, number);
	EXPECT_EQ(1, count_samples(all, number, false));
	EXPECT_EQ(1, count_samples(all, number, true));
	EXPECT_EQ(2, count_samples(all, number, false));
	languages_destroy(all);
}

/* Starts a process that stops and is traced by this one. Returns its ID, or -1. */
static pid_t start_traced(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (!ptrace(PTRACE_TRACEME, 0, 0, 0))
			raise(SIGSTOP);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) ? pid : -1;
}

/* Makes this program the only interpreter that @i knows. Returns whether it is known. */
static bool know_module(struct interpreted *i)
{
	struct language_module module;

	if (!open_module(&module))
		return false;
	i->all = languages_create(NULL);
	if (i->all) {
		languages_stopped_only(i->all);
		i->number = languages_find(i->all, &module);
	}
	close(module.fd);
	return i->all && i->number == 1;
}

TEST(threads_are_held_for_a_time_only)
{
	struct trace_thread thread = { .sampled = true };
	unsigned int reads = 0;
	struct interpreted i = { .read = read_slowly, .arg = &reads, .account = get_account() };

	ASSERT_TRUE(know_module(&i));
	thread.tid = start_traced();
	if (thread.tid < 0)
		SKIP(return, "processes may not be traced here");
	/* On a busy machine the time may be over before anything is read. */
	for (int tries = 0; tries < 1000 && !reads; tries++) {
		interpreted_stop(&i);
		for (int n = 0; n < 3; n++)
			interpreted_read(&i, &thread);
	}
	TH_LOG("%u reads", reads);
	EXPECT_GE(HOLD_MS / SLOW_MS + 1, reads);
	kill(thread.tid, SIGKILL);
	waitpid(thread.tid, NULL, 0);
	interpreted_deinit(&i);
	if (!reads)
		SKIP(return, "the thread pointer of a traced process cannot be read here");
}

/* Reads a page of pointers to its own beginning. Then there is no time left. */
static int read_last(void *arg, uint64_t addr, void *buf, size_t size)
{
	static const uint64_t word = BASE;
	struct interpreted *i = arg;

	(void)addr;
	for (size_t at = 0; at + sizeof(word) <= size; at += sizeof(word))
		memcpy((uint8_t *)buf + at, &word, sizeof(word));
	i->until = 1;
	return 0;
}

TEST(tasks_are_read_for_a_time_only_from_what_is_kept_too)
{
	struct interpreted i = { .read = read_last, .arg = &i, .account = get_account() };
	struct waiting_tasks tasks = { .layout.runtime = BASE };

	ASSERT_TRUE(know_module(&i));
	EXPECT_EQ(-ETIMEDOUT, waiting_tasks_take(&tasks, &i));
	waiting_tasks_deinit(&tasks);
	interpreted_deinit(&i);
}

/* Reads nothing, and returns the error at @arg. */
static int read_nothing(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)addr;
	(void)buf;
	(void)size;
	return *(const int *)arg;
}

TEST(a_function_for_which_no_time_is_left_is_told_from_one_that_cannot_be_read)
{
	int err = -ETIMEDOUT;
	const struct language_thread thread = { .read = read_nothing, .arg = &err, .stop = 1 };
	struct languages *all = languages_create(NULL);
	struct language_reading *reading;
	struct language_module module;
	uint64_t place;

	ASSERT_TRUE(all && open_module(&module));
	languages_stopped_only(all);
	ASSERT_EQ(1, languages_find(all, &module));
	close(module.fd);
	reading = language_reading_create(all, 1, &thread);
	ASSERT_NE(NULL, reading);
	EXPECT_EQ(-ETIMEDOUT, language_reading_place(reading, BASE, 0, &place));
	err = -EIO;
	EXPECT_EQ(-EFAULT, language_reading_place(reading, BASE, 0, &place));
	EXPECT_EQ(-EAGAIN, language_reading_place(reading, 0, 0, &place));
	language_reading_destroy(reading);
	languages_destroy(all);
}

TEST_HARNESS_MAIN
