// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * positions_test.c - the lines of functions, which a process chooses, have a bound; what is told of processes that
 * ended is forgotten; and the outermost frame of some interpreters is none.
 *
 * The language is one of this program: all its functions are in one place, and the line of each
 * frame is what was read of the process.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/lend.h"
#include "libshstk/shstk.h"
#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/symbol.h"
#include "selftests/language/no_program.h"
#include "tools/language/languages.h"

#include "kselftest_harness.h"

#define PC 0x1000 /* of the function that runs frames */
#define ID 2 /* number of the only function */
#define FRAMES LANGUAGE_FRAMES /* of a sample */
#define BASE 2 /* flag of a frame that is none of a call */
#define LINES (1u << 22) /* more than all of the memory has room for */
#define MEMORY (257u << 20) /* bytes that the functions and their lines may take */

static bool with_base; /* the outermost frame of the language is none of a call */

static bool may_be(const char *path)
{
	(void)path;
	return true;
}

static int recognise(const struct language_module *module, struct language_found *ret,
		     struct reason *why)
{
	(void)module;
	(void)why;
	ret->run_start = PC;
	ret->run_end = PC + 1;
	ret->counted = true;
	ret->base_frame = with_base;
	return 0;
}

static int recognise_none(const struct language_module *module, struct language_found *ret,
			  struct reason *why)
{
	(void)module;
	(void)ret;
	(void)why;
	return -ENOENT;
}

static int make_function(const void *version, const struct language_code *code, size_t size,
			 struct language_function *ret)
{
	(void)version;
	(void)code;
	(void)size;
	*ret = (struct language_function){ .name = strdup("f"), .file = strdup("") };
	return ret->name && ret->file ? 0 : -ENOMEM;
}

static unsigned int line(const struct language_function *function, int at)
{
	(void)function;
	return at;
}

/* The outermost frame has a flag. */
static unsigned int kind(const void *version, const struct language_frame *frame)
{
	(void)version;
	if (frame->entry->flags == BASE)
		return LANGUAGE_ENTRY;
	return LANGUAGE_SHOWN | (frame->entry->flags ? LANGUAGE_LAST : 0);
}

static bool sound(const void *version, const struct language_frames *frames)
{
	(void)version;
	(void)frames;
	return true;
}

/* No task was given a name but those of with_base. */
static size_t task(const void *version, const uint8_t *name, size_t size, char *buf, size_t max)
{
	(void)version;
	if (size > max || memcmp(name, "name", sizeof("name")))
		return 0;
	memcpy(buf, name, size);
	return size;
}

#define LANGUAGE(name, find, of_task)                                                           \
	{                                                                                       \
		.module = name, .may_be = may_be, .recognise = find, .function = make_function, \
		.line = line, .kind = kind, .sound = sound, .task = of_task                     \
	}

const struct language language_python = LANGUAGE("[python]", recognise, task);
const struct language language_php = LANGUAGE("[php]", recognise_none, NULL);
const struct language language_ruby = LANGUAGE("[ruby]", recognise_none, NULL);
const struct language language_v8 = LANGUAGE("[javascript]", recognise_none, NULL);

/* Returns the number of the interpreter, whose function is told, or 0. */
static int find_interpreter(struct languages *all, struct shstk_symbols *symbols)
{
	const struct language_code code = { .kind = LANGUAGE_CODE, .id = ID, .target = 1 };
	const struct language_module module = {
		.fd = -1,
		.account = shstk_symbols_process_account(symbols, getpid()),
	};
	int ret = languages_find(all, &module);

	languages_take(all, 1, 0, &code, sizeof(code));
	return ret;
}

/* Returns the file of an interpreter that is for a machine, or -1. */
static int make_file(unsigned int machine)
{
	Elf64_Ehdr header = { .e_machine = machine };
	int fd = memfd_create("interpreter", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, &header, sizeof(header)) != sizeof(header)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Places a sample of FRAMES lines from @first on. Returns the number of its entries. */
static unsigned int place(struct languages *all, int number, unsigned int first)
{
	static struct {
		struct language_moment moment;
		struct language_entry entries[FRAMES];
	} record;
	static uint64_t pcs[FRAMES];
	static uint8_t marks[FRAMES];
	const struct language_sample sample = { .number = number, .tid = 1, .pc = PC };
	const uint64_t pc = PC, sp = 0;
	const uint8_t mark = SHSTK_MARK_PC;
	const struct native_stack native = { &pc, &mark, &sp, 1, true, NULL, NULL };

	record.moment = (struct language_moment){
		.kind = LANGUAGE_MOMENT,
		.target = number,
		.nr_frames = FRAMES,
		.pc = PC,
	};
	for (unsigned int i = 0; i < FRAMES; i++)
		record.entries[i] = (struct language_entry){
			.addr = i + 1,
			.id = ID,
			.at = (int)(first + i),
			.flags = i == FRAMES - 1,
		};
	languages_take(all, 1, 0, &record, sizeof(record));
	return languages_place(all, &sample, &native, pcs, marks, FRAMES);
}

TEST(an_interpreter_for_a_machine_of_which_its_language_is_not_known_is_refused)
{
	static const struct {
		unsigned int machine;
		int number;
	} cases[] = { { EM_RISCV, 0 }, { EM_AARCH64, 0 }, { EM_X86_64, 1 } };
	struct shstk_symbols *symbols = NULL;

	ASSERT_EQ(0, shstk_symbols_create(NULL, &symbols));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct languages *all = languages_create(NULL);
		const struct language_module module = {
			.fd = make_file(cases[i].machine),
			.account = shstk_symbols_process_account(symbols, getpid()),
		};

		ASSERT_TRUE(all && module.fd >= 0);
		languages_stopped_only(all);
		EXPECT_EQ(cases[i].number, languages_find(all, &module));
		EXPECT_EQ(!cases[i].number, languages_refused(all) != NULL);
		if (!cases[i].number)
			EXPECT_STREQ("[python] is not known on this kind of machine",
				     languages_refused(all));
		close(module.fd);
		languages_destroy(all);
	}
	shstk_symbols_destroy(symbols);
}

/* A moment with three frames at most, and the name of a task. */
struct small_record {
	struct language_moment moment;
	struct language_entry entries[3 + LANGUAGE_TASK_ENTRIES];
};

/*
 * Places a sample whose frames have these flags. Returns the number of its entries; *@nr_samples becomes how many
 * samples had frames.
 */
static unsigned int place_small(struct languages *all, int number, const uint32_t *flags,
				unsigned int nr, uint64_t *nr_samples)
{
	struct small_record record = { .moment = {
					       .kind = LANGUAGE_MOMENT,
					       .target = number,
					       .nr_frames = nr,
					       .task_size = sizeof("name"),
					       .pc = PC,
				       } };
	const struct language_sample sample = { .number = number, .tid = 1, .pc = PC };
	const uint64_t pc = PC, sp = 0;
	const uint8_t mark = SHSTK_MARK_PC;
	const struct native_stack native = { &pc, &mark, &sp, 1, true, NULL, NULL };
	struct language_counts counts;
	uint64_t pcs[FRAMES];
	uint8_t marks[FRAMES];
	unsigned int ret;

	for (unsigned int i = 0; i < nr; i++)
		record.entries[i] = (struct language_entry){ i + 1, ID, 0, flags[i] };
	memcpy(&record.entries[nr], "name", sizeof("name"));
	languages_take(all, 1, 0, &record, sizeof(record));
	ret = languages_place(all, &sample, &native, pcs, marks, FRAMES);
	languages_count(all, &counts);
	languages_count_anew(all);
	*nr_samples = counts.samples;
	return ret;
}

TEST(an_outermost_frame_that_is_no_call_is_left_out)
{
	struct languages *all = languages_create(NULL);
	struct shstk_symbols *symbols = NULL;
	char label[LANGUAGES_LABEL];
	uint64_t nr_samples;
	int number;

	ASSERT_EQ(0, shstk_symbols_create(NULL, &symbols));
	with_base = true;
	languages_stopped_only(all);
	number = find_interpreter(all, symbols);
	with_base = false;
	ASSERT_LT(0, number);
	EXPECT_EQ(2, place_small(all, number, (const uint32_t[]){ 0, 1, BASE }, 3, &nr_samples));
	EXPECT_EQ(1, nr_samples);
	EXPECT_EQ(sizeof("task") + sizeof("name"), languages_label(all, label));
	EXPECT_STREQ("name", label + sizeof("task"));
	/* The thread runs no function. */
	EXPECT_EQ(0, place_small(all, number, (const uint32_t[]){ BASE }, 1, &nr_samples));
	EXPECT_EQ(0, nr_samples);
	/* The list does not end as it has to. */
	EXPECT_EQ(0, place_small(all, number, (const uint32_t[]){ 0, 1 }, 2, &nr_samples));
	EXPECT_EQ(1, nr_samples);
	EXPECT_EQ(0, place_small(all, number, (const uint32_t[]){ 1 }, 1, &nr_samples));
	EXPECT_EQ(1, nr_samples);
	EXPECT_EQ(0, place_small(all, number, NULL, 0, &nr_samples));
	EXPECT_EQ(0, nr_samples);
	languages_destroy(all);
	shstk_symbols_destroy(symbols);
}

TEST(where_the_walk_reads_no_frames_another_program_is_asked_for)
{
	static const struct bpf_loaded walk = { .what = "the walk" };
	struct languages *all = languages_create(&walk);
	struct shstk_symbols *symbols = NULL;

	ASSERT_NE(NULL, all);
	ASSERT_EQ(0, shstk_symbols_create(NULL, &symbols));
	EXPECT_EQ(0, find_interpreter(all, symbols));
	ASSERT_NE(NULL, languages_refused(all));
	EXPECT_STREQ("there is none", languages_refused(all));
	languages_destroy(all);
	shstk_symbols_destroy(symbols);
}

TEST(lines_have_a_bound_behind_which_known_ones_are_shown)
{
	struct languages *all = languages_create(NULL);
	struct shstk_symbols *symbols = NULL;
	unsigned int first = 1;
	int number;

	ASSERT_EQ(0, shstk_symbols_create(NULL, &symbols));
	ASSERT_NE(NULL, all);
	languages_stopped_only(all);
	number = find_interpreter(all, symbols);
	ASSERT_EQ(1, number);
	ASSERT_EQ(FRAMES, place(all, number, first));
	EXPECT_EQ(NULL, languages_refused(all));
	while (first < LINES && place(all, number, first))
		first += FRAMES;
	EXPECT_GT(LINES, first);
	EXPECT_GT(MEMORY, languages_bytes(all));
	ASSERT_NE(NULL, languages_refused(all));
	TH_LOG("%u lines: %s", first, languages_refused(all));
	EXPECT_EQ(0, place(all, number, first + FRAMES));
	EXPECT_EQ(FRAMES, place(all, number, 1));
	languages_destroy(all);
	shstk_symbols_destroy(symbols);
}

#define LEFT_OUT 976 /* frames in the middle of a deep stack */
#define ALL (FRAMES + LEFT_OUT)
#define PERIOD 3

/* Places a deep stack whose lines repeat, or do not in its middle. Returns the number of entries. */
static unsigned int place_deep(struct languages *all, int number, bool repeats, unsigned int fold,
			       uint64_t pcs[ALL])
{
	static struct {
		struct language_moment moment;
		struct language_entry entries[FRAMES];
	} record;
	static uint8_t marks[ALL];
	const struct language_sample sample = { .number = number, .tid = 1, .pc = PC, .fold = fold };
	const uint64_t pc = PC, sp = 0;
	const uint8_t mark = SHSTK_MARK_PC;
	const struct native_stack native = { &pc, &mark, &sp, 1, true, NULL, NULL };

	record.moment = (struct language_moment){
		.kind = LANGUAGE_MOMENT,
		.target = number,
		.nr_frames = FRAMES,
		.left_out = LEFT_OUT,
		/* As a group of three repeats, so does one of six. */
		.repeats = repeats ? 1 << (PERIOD - 1) | 1 << (2 * PERIOD - 1) : 0,
		.pc = PC,
	};
	for (unsigned int i = 0; i < FRAMES; i++) {
		const unsigned int at = i < LANGUAGE_INNER ? i : i + LEFT_OUT;

		record.entries[i] = (struct language_entry){
			.addr = i + 1,
			.id = ID,
			.at = at == ALL - 1 ? 100 : (int)(1 + at % PERIOD),
			.flags = at == ALL - 1,
		};
	}
	languages_take(all, 1, 0, &record, sizeof(record));
	return languages_place(all, &sample, &native, pcs, marks, ALL);
}

/* Returns the line that an entry stands for. */
static unsigned int line_at(struct languages *all, uint64_t pc)
{
	struct shstk_symframe frame;
	const char *module;

	return languages_function(all, pc, &frame, &module) ? frame.line : 0;
}

TEST(deep_stacks_have_both_ends)
{
	struct languages *all = languages_create(NULL);
	struct shstk_symbols *symbols = NULL;
	static uint64_t pcs[ALL];
	int number;

	ASSERT_EQ(0, shstk_symbols_create(NULL, &symbols));
	ASSERT_NE(NULL, all);
	languages_stopped_only(all);
	number = find_interpreter(all, symbols);

	/* The frames in the middle are what repeats. */
	ASSERT_EQ(ALL, place_deep(all, number, true, 0, pcs));
	EXPECT_FALSE(languages_folded(all));
	for (unsigned int i = 0; i < ALL - 1; i++)
		ASSERT_EQ(1 + i % PERIOD, line_at(all, pcs[i]));
	EXPECT_EQ(100, line_at(all, pcs[ALL - 1]));

	/* So they are shortened as other stacks are: 2000 entries are 666 times three, one, and the last. */
	ASSERT_EQ(PERIOD + 1 + (ALL - 1) % PERIOD + 1, place_deep(all, number, true, 1024, pcs));
	EXPECT_TRUE(languages_folded(all));
	EXPECT_EQ(SHSTK_FUNCTION_LEFT_OUT + PERIOD, pcs[PERIOD]);
	EXPECT_EQ(1, line_at(all, pcs[PERIOD + 1]));

	/* If they do not repeat, an entry stands for them. */
	ASSERT_EQ(FRAMES + 1, place_deep(all, number, false, 0, pcs));
	EXPECT_TRUE(languages_folded(all));
	EXPECT_EQ(SHSTK_FUNCTION_LEFT_OUT, pcs[LANGUAGE_INNER]);
	EXPECT_EQ(1 + (LANGUAGE_INNER + LEFT_OUT) % PERIOD, line_at(all, pcs[LANGUAGE_INNER + 1]));

	/* Stacks that fit are what they were. */
	EXPECT_EQ(FRAMES, place(all, number, 1));
	EXPECT_FALSE(languages_folded(all));
	languages_destroy(all);
	shstk_symbols_destroy(symbols);
}

TEST(deep_stacks_that_no_reader_writes_are_not_taken)
{
	static const struct language_moment wrong[] = {
		{ .nr_frames = FRAMES, .left_out = LANGUAGE_DEEPEST - FRAMES + 1 },
		{ .nr_frames = FRAMES, .left_out = UINT32_MAX },
		{ .nr_frames = FRAMES - 1, .left_out = 1 },
		{ .nr_frames = 0, .left_out = 1, .repeats = UINT32_MAX },
	};
	static struct {
		struct language_moment moment;
		struct language_entry entries[FRAMES];
	} record;
	struct languages *all = languages_create(NULL);
	const struct language_sample sample = { .number = 1, .tid = 1 };
	const struct native_stack native = { .nr = 0 };
	struct language_counts counts;

	ASSERT_NE(NULL, all);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		record.moment = wrong[i];
		record.moment.kind = LANGUAGE_MOMENT;
		record.moment.target = 1;
		languages_take(all, 1, 0, &record, sizeof(record));
		EXPECT_EQ(0, languages_place(all, &sample, &native, NULL, NULL, 0));
	}
	languages_count(all, &counts);
	EXPECT_EQ(0, counts.samples);
	languages_destroy(all);
}

TEST(a_task_that_was_given_no_name_has_no_label)
{
	static struct {
		struct language_moment moment;
		struct language_entry name[LANGUAGE_TASK_ENTRIES];
	} record;
	const struct language_sample sample = { .number = 1, .tid = 1, .pc = PC };
	const struct native_stack native = { .nr = 0 };
	struct languages *all = languages_create(NULL);
	struct shstk_symbols *symbols = NULL;
	char buf[LANGUAGES_LABEL + 1];

	ASSERT_EQ(0, shstk_symbols_create(NULL, &symbols));
	ASSERT_NE(NULL, all);
	languages_stopped_only(all);
	ASSERT_EQ(1, find_interpreter(all, symbols));
	record.moment = (struct language_moment){
		.kind = LANGUAGE_MOMENT, .target = 1, .task_size = 8, .pc = PC
	};
	languages_take(all, 1, 0, &record, sizeof(record));
	languages_place(all, &sample, &native, NULL, NULL, 0);
	/* What the buffer had before is no text. */
	memset(buf, '\n', LANGUAGES_LABEL);
	buf[LANGUAGES_LABEL] = '\0';
	EXPECT_EQ(0, languages_label(all, buf));
	EXPECT_EQ(LANGUAGES_LABEL - strlen("task") - 1, strspn(buf + sizeof("task"), "\n"));
	languages_destroy(all);
	shstk_symbols_destroy(symbols);
}

#define TOLD 3 /* processes with an interpreter */

/* A languages_tell_fn: counts how often each of the first processes is told. */
static int count_told(void *arg, int pid, const struct lent_process *process)
{
	unsigned int *told = arg;

	told[pid] += process->number == 1;
	return 0;
}

TEST(what_was_told_of_processes_that_ended_is_not_told_again)
{
	static const struct language_found found;
	unsigned int told[TOLD + 1] = { 0 };
	struct languages *all = languages_create(NULL);

	ASSERT_NE(NULL, all);
	languages_lend(all, count_told, told);
	ASSERT_EQ(1, languages_add(all, &language_python, &found));
	for (int pid = 1; pid <= TOLD; pid++)
		languages_set(all, pid, 1);
	languages_set_context(all, 1, NULL);
	languages_ended(all, 1);
	languages_set(all, 2, 0);
	languages_tell_again(all);
	EXPECT_EQ(1, told[1]);
	EXPECT_EQ(1, told[2]);
	EXPECT_EQ(2, told[3]);
	languages_destroy(all);
}

/* A languages_tell_fn: returns what the test wants. */
static int refuse(void *arg, int pid, const struct lent_process *process)
{
	const int *err = arg;

	(void)pid;
	(void)process;
	return *err;
}

TEST(contexts_that_are_read_after_all_leave_no_complaint)
{
	static const struct context_process process = { .nr = 1 };
	struct languages *all = languages_create(NULL);
	int err = -EBUSY;

	ASSERT_NE(NULL, all);
	languages_lend(all, refuse, &err);
	languages_set_context(all, 1, &process);
	languages_set_context(all, 2, &process);
	EXPECT_NE(NULL, languages_contexts_refused(all));
	languages_ended(all, 2);
	err = 0;
	languages_tell_again(all);
	/* One that ended before has none. */
	EXPECT_NE(NULL, languages_contexts_refused(all));
	languages_destroy(all);

	all = languages_create(NULL);
	ASSERT_NE(NULL, all);
	err = -EBUSY;
	languages_lend(all, refuse, &err);
	languages_set_context(all, 1, &process);
	EXPECT_NE(NULL, languages_contexts_refused(all));
	err = 0;
	languages_tell_again(all);
	EXPECT_EQ(NULL, languages_contexts_refused(all));
	languages_destroy(all);
}

TEST_HARNESS_MAIN
