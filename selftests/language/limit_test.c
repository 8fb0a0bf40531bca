// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * limit_test.c - what is read of interpreters draws from the budget, and who takes too much is told
 * of once, by name.
 *
 * This program is the interpreter: it has the symbols, the thread state and the frames of Python
 * 3.11 (tools/language/python/versions.c).
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "selftests/language/no_program.h"
#include "selftests/large_symbols.h"
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"
#include "tools/language/read.h"

#include "kselftest_harness.h"

#define MIB (1ull << 20)
#define LITTLE 100000 /* bytes; enough for some functions, but not for all */

/* ---- The interpreter ---- */

#define FRAMES 1000
#define CODE_SIZE 200
#define KEY 596
#define FIRST_VALUE 0x318
#define STATE_CFRAME 56
#define STATE_THREAD 152

/* A frame; what is not named is not read. */
struct frame {
	uint64_t words[4];
	uint64_t code;
	uint64_t word;
	uint64_t previous;
	uint64_t instruction;
	uint64_t flags;
	uint64_t local;
};

unsigned long Py_Version = 0x030b02f0;
uint8_t _PyRuntime[4096];
uint8_t PyCode_Type[512];

__attribute__((noinline)) int _PyEval_EvalFrameDefault(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

static struct frame frames[FRAMES];
static uint8_t codes[FRAMES][CODE_SIZE];
static struct {
	uint64_t words[6];
	char text[64];
} name = { { 1, 0, 6, 0, 0xe5, 0 }, "forged" };
static uint64_t cframe[3];
static uint8_t state[512], thread_memory[1024];

static void set(uint8_t *object, size_t offset, uint64_t value)
{
	memcpy(object + offset, &value, sizeof(value));
}

/* Makes frames in a row, of as many functions. */
static void make_frames(void)
{
	static const size_t texts[] = { 112, 120, 128, 136 };

	for (unsigned int i = 0; i < FRAMES; i++) {
		set(codes[i], 8, (uintptr_t)PyCode_Type);
		for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++)
			set(codes[i], texts[t], (uintptr_t)&name);
		frames[i].code = (uintptr_t)codes[i];
		frames[i].previous = i + 1 < FRAMES ? (uintptr_t)&frames[i + 1] : 0;
	}
	cframe[1] = (uintptr_t)frames;
	set(state, STATE_CFRAME, (uintptr_t)cframe);
	set(state, STATE_THREAD, (uintptr_t)thread_memory);
	/* The key, at KEY, is 0. */
	set(thread_memory, FIRST_VALUE, (uintptr_t)state);
}

/* ---- What reads it ---- */

static unsigned int reads;

static int read_own(void *arg, uint64_t addr, void *buf, size_t size)
{
	(void)arg;
	reads++;
	memcpy(buf, (const void *)(uintptr_t)addr, size);
	return 0;
}

static struct shstk_symbols *store(uint64_t memory, uint64_t time)
{
	struct shstk_symbols_opts opts = { .memory = memory, .time = time, .no_servers = true };
	struct shstk_symbols *symbols = NULL;

	shstk_symbols_create(&opts, &symbols);
	return symbols;
}

static struct shstk_account *account_of(struct shstk_symbols *symbols)
{
	return shstk_symbols_process_account(symbols, getpid());
}

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Works until the clock of the thread's CPU time, which may be coarse, has moved on. */
static void work(void)
{
	uint64_t since = cpu_time();

	while (cpu_time() == since)
		;
}

/* Uses up all of the store's time: the first piece of work takes it. */
static struct shstk_account *account_without_time(struct shstk_symbols *symbols)
{
	struct shstk_account *account = account_of(symbols);

	shstk_account_begin(account);
	work();
	shstk_account_end(account);
	return account;
}

/*
 * Returns what was refused, enum shstk_excess; 0: nothing was. -1: more than one account was
 * refused something, or one that is not this process's.
 */
static int excess(const struct shstk_symbols *symbols)
{
	unsigned int what, other;
	const char *who = shstk_symbols_excess(symbols, 0, &what);
	char number[32];

	if (!who)
		return 0;
	snprintf(number, sizeof(number), "process %d (", getpid());
	return strncmp(who, number, strlen(number)) || shstk_symbols_excess(symbols, 1, &other) ?
		       -1 :
		       (int)what;
}

/* Finds the mapping of this program's code. Returns false if there is none. */
static bool find_code(struct language_module *m)
{
	unsigned long start, end, offset, here = (uintptr_t)_PyEval_EvalFrameDefault;
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[4400];

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) != 3)
			continue;
		found = here >= start && here < end;
		m->start = start;
		m->offset = offset;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* Opens this program's file, whose code is mapped. Returns false if that fails. */
static bool open_own(struct language_module *m, struct shstk_account *account)
{
	*m = (struct language_module){ .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
				       .read = read_own,
				       .account = account };
	return m->fd >= 0 && find_code(m);
}

/* Returns the number of this interpreter, which is read with what the account has. */
static int find_own(struct languages *all, struct shstk_account *account)
{
	struct language_module m;
	int ret = open_own(&m, account) ? languages_find(all, &m) : -1;

	close(m.fd);
	return ret;
}

static struct languages *make_languages(void)
{
	struct languages *all = languages_create(NULL);

	languages_stopped_only(all);
	return all;
}

TEST(the_file_of_an_interpreter_draws_memory_from_the_budget)
{
	struct shstk_symbols *enough = store(256 * MIB, 0), *little = store(1024, 0);
	struct languages *all = make_languages();

	EXPECT_EQ(0, find_own(all, account_of(little)));
	EXPECT_EQ(0, find_own(all, account_of(little)));
	EXPECT_EQ(SHSTK_EXCESS_MEMORY, excess(little));
	EXPECT_EQ(1, find_own(all, account_of(enough)));
	EXPECT_EQ(0, excess(enough));
	EXPECT_EQ(0, account_of(enough)->memory);
	languages_destroy(all);
	shstk_symbols_destroy(enough);
	shstk_symbols_destroy(little);
}

TEST(the_file_of_an_interpreter_is_not_read_when_no_time_is_left)
{
	struct shstk_symbols *none = store(0, 1);
	struct languages *all = make_languages();

	reads = 0;
	EXPECT_EQ(0, find_own(all, account_without_time(none)));
	EXPECT_EQ(0, reads);
	EXPECT_EQ(SHSTK_EXCESS_TIME, excess(none));
	languages_destroy(all);
	shstk_symbols_destroy(none);
}

TEST(a_large_file_that_claims_to_be_an_interpreter_is_told_of)
{
	struct shstk_symbols *symbols = store(256 * MIB, 0);
	struct languages *all = make_languages();
	struct language_module m = { .fd = make_large_symbols("python3"),
				     .start = 0x10000000,
				     .read = read_own,
				     .account = account_of(symbols) };

	ASSERT_LE(0, m.fd);
	EXPECT_EQ(0, languages_find(all, &m));
	EXPECT_EQ(SHSTK_EXCESS_MEMORY, excess(symbols));
	close(m.fd);
	languages_destroy(all);
	shstk_symbols_destroy(symbols);
}

/* ---- Files that are none, or of another kind of machine ---- */

TEST(a_program_with_a_function_that_is_named_as_Rubys_version_is_no_Ruby)
{
	struct shstk_symbols *symbols = store(256 * MIB, 0);
	struct language_found found;
	struct language_module m;
	struct reason why;

	/* This program has such a function: it looks versions up. */
	ASSERT_TRUE(open_own(&m, account_of(symbols)));
	ASSERT_TRUE(shstk_account_begin(m.account));
	EXPECT_EQ(-ENOENT, language_ruby.recognise(&m, &found, &why));
	shstk_account_end(m.account);
	close(m.fd);
	shstk_symbols_destroy(symbols);
}

/* Makes a copy of a file, which says that it is of another machine. Returns a descriptor. */
static int copy_for(int from, Elf64_Half machine)
{
	const int to = memfd_create("python3", MFD_CLOEXEC);
	char buf[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, buf, sizeof(buf), at)) > 0 && pwrite(to, buf, n, at) == n)
		at += n;
	if (pwrite(to, &machine, sizeof(machine), offsetof(Elf64_Ehdr, e_machine)) !=
	    sizeof(machine))
		return -1;
	return to;
}

TEST(an_interpreter_of_another_kind_of_machine_is_refused_for_that)
{
	const unsigned long version = Py_Version;
	struct shstk_symbols *symbols = store(256 * MIB, 0);
	struct languages *all = make_languages();
	struct language_module m;
	int own;

	ASSERT_TRUE(open_own(&m, account_of(symbols)));
	own = m.fd;
	m.fd = copy_for(own, EM_RISCV);
	ASSERT_LE(0, m.fd);
	/* Its version is not known either, but on no such machine one is. */
	Py_Version = 0x036302f0;
	EXPECT_EQ(0, languages_find(all, &m));
	ASSERT_NE(NULL, languages_refused(all));
	EXPECT_EQ(0,
		  strcmp("[python] is not known on this kind of machine", languages_refused(all)));
	Py_Version = version;
	close(own);
	close(m.fd);
	languages_destroy(all);
	shstk_symbols_destroy(symbols);
}

/* ---- Threads that are stopped ---- */

/* Reads the frames of the thread, of all its functions. Returns what languages_bytes() returns. */
static size_t read_frames(struct shstk_account *account)
{
	struct shstk_symbols *enough = store(256 * MIB, 0);
	struct languages *all = make_languages();
	const struct language_thread thread = { .read = read_own,
						.account = account,
						.stop = 1,
						.tid = 1,
						.pointer = (uintptr_t)thread_memory };
	size_t ret = SIZE_MAX;

	make_frames();
	if (find_own(all, account_of(enough)) == 1) {
		reads = 0;
		language_read(all, 1, &thread);
		ret = languages_bytes(all);
	}
	languages_destroy(all);
	shstk_symbols_destroy(enough);
	return ret;
}

TEST(functions_of_a_stopped_thread_draw_memory_from_the_budget)
{
	struct shstk_symbols *enough = store(256 * MIB, 0), *little = store(LITTLE, 0);
	size_t whole = read_frames(account_of(enough)), part = read_frames(account_of(little));

	/* Each of them takes more than a hundred bytes. */
	EXPECT_LT(FRAMES * 100, whole);
	EXPECT_EQ(0, excess(enough));
	EXPECT_EQ(whole, account_of(enough)->memory);
	EXPECT_LT(0, part);
	EXPECT_GT(LITTLE, part);
	EXPECT_EQ(SHSTK_EXCESS_MEMORY, excess(little));
	shstk_symbols_destroy(enough);
	shstk_symbols_destroy(little);
}

TEST(a_stopped_thread_is_not_read_when_no_time_is_left)
{
	struct shstk_symbols *none = store(0, 1);

	EXPECT_EQ(0, read_frames(account_without_time(none)));
	EXPECT_EQ(0, reads);
	EXPECT_EQ(SHSTK_EXCESS_TIME, excess(none));
	shstk_symbols_destroy(none);
}

/* ---- Look-ups of lines, of which a sample makes one for each frame ---- */

#define LOOKUPS 1000
#define SLACK 1000000 /* ns */

/* Fills in a function whose table of lines is as long as it may be: a new line for each 2 bytes. */
static void make_long(struct language_code *code)
{
	memcpy(code->shorts[0], &name, sizeof(name));
	memcpy(code->shorts[1], &name, sizeof(name));
	code->got[0] = code->got[1] = sizeof(name);
	code->got[2] = LANGUAGE_LONG - 1;
	for (size_t i = PYTHON_BYTES; i + 1 < LANGUAGE_LONG; i += 2) {
		code->table[i] = 0x80 | 13 << 3; /* one instruction, a signed change of the line */
		code->table[i + 1] = 2; /* 1 */
	}
}

TEST(a_line_is_found_without_a_walk_of_all_lines)
{
	static struct language_code code;
	struct language_function f;
	uint64_t begin, took;
	int last = (LANGUAGE_LONG - 1 - PYTHON_BYTES) / 2 - 1;

	make_long(&code);
	begin = cpu_time();
	ASSERT_EQ(0, python_function(python_version(11), &code, sizeof(code), &f));
	took = cpu_time() - begin;
	for (int i = 0; i <= last; i++)
		ASSERT_EQ(i + 1, (int)python_line(&f, 2 * i));
	EXPECT_EQ(0, python_line(&f, -2));
	EXPECT_EQ(0, python_line(&f, 4 * last + 100));
	begin = cpu_time();
	for (int i = 0; i < LOOKUPS; i++)
		python_line(&f, 2 * last);
	/* Taking the function apart is one walk. */
	EXPECT_GT(LOOKUPS / 4 * took + SLACK, cpu_time() - begin);
	free(f.name);
	free(f.file);
	free(f.lines);
}

TEST_HARNESS_MAIN
