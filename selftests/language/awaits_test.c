// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * awaits_test.c - the tasks of Python, read from memory of the test's own that has them as Python 3.14 has, or 3.15,
 * also while they change, and as nobody has them.
 *
 * A task is known by the number in its name. The place of a coroutine is its address.
 */
#include <stdlib.h>

#define MEMORY 0x10000
#define MEMORY_BYTES 0x100000
#include "selftests/language/own_memory.h"

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/symbol.h"
#include "tools/language/python/awaits.h"
#include "tools/language/python/versions.h"

#include "kselftest_harness.h"

#define RUNTIME 0x10000
#define INTERPRETER 0x10100
#define THREAD 0x10200
#define TYPE_BYTES 0x100
#define OBJECT_BYTES 0x100
#define FRAME_AT 0x60 /* in a coroutine */
#define IS_TEXT (1u << 28)
#define IS_LONG (1u << 24)

/* Addresses of types. */
enum {
	COROUTINE = 0x11000,
	GENERATOR = COROUTINE + TYPE_BYTES,
	ASYNC_GENERATOR = GENERATOR + TYPE_BYTES,
	SET = ASYNC_GENERATOR + TYPE_BYTES,
	LONG = SET + TYPE_BYTES,
	TEXT = LONG + TYPE_BYTES,
	TASK = TEXT + TYPE_BYTES,
	FUTURE_WAIT = TASK + TYPE_BYTES,
	WRAPPER = FUTURE_WAIT + TYPE_BYTES,
	FIRST_OBJECT = 0x20000,
};

enum { CREATED = -3, SUSPENDED = -2, AWAITING = -1, EXECUTING = 0 };

static const struct awaits_layout layout_of_test = {
	.minor = 14,
	.asyncio = true,
	.runtime = RUNTIME,
	.coroutine_type = COROUTINE,
	.generator_type = GENERATOR,
	.async_generator_type = ASYNC_GENERATOR,
	.set_type = SET,
	.interpreters = 0x10,
	.interpreter_next = 0x10,
	.interpreter_threads = 0x18,
	.interpreter_tasks = 0x20,
	.thread_prev = 0x10,
	.thread_next = 0x18,
	.thread_id = 0x20,
	.thread_tasks = 0x28,
	.thread_task = 0x38,
	.node_next = 0,
	.node_prev = 8,
	.task_bytes = 0x60,
	.task_name = 0x10,
	.task_awaited_by = 0x18,
	.task_is_task = 0x20,
	.task_by_set = 0x21,
	.task_coroutine = 0x28,
	.task_node = 0x50,
	.set_used = 0x10,
	.set_table = 0x18,
	.set_mask = 0x20,
	.object_type = 8,
	.type_name = 0x18,
	.type_flags = 0x20,
	.generator_frame = FRAME_AT,
	.generator_state = 0x10,
	.frame_bytes = 88,
	.frame_code = 0,
	.frame_instruction = 8,
	.frame_stack = 0x10,
	.awaited_at = 8,
	.long_tag = 0x10,
	.long_digits = 0x18,
	.instructions = 0,
	.code_tags = 3,
};

static int minor = 14; /* of the Python that has the memory */
static uint64_t end; /* of the objects */
static struct shstk_symbols *symbols;

static void put(uint64_t at, uint64_t value)
{
	memcpy(memory + (at - MEMORY), &value, sizeof(value));
}

static void put_byte(uint64_t at, int value)
{
	memory[at - MEMORY] = (uint8_t)value;
}

static uint64_t get(uint64_t at)
{
	uint64_t value;

	memcpy(&value, memory + (at - MEMORY), sizeof(value));
	return value;
}

static uint64_t make(uint64_t type)
{
	const uint64_t at = end;

	end += OBJECT_BYTES;
	put(at + 8, type);
	return at;
}

static void make_type(uint64_t at, uint64_t flags, const char *name)
{
	put(at + 0x18, at + 0x40);
	put(at + 0x20, flags);
	memcpy(memory + (at + 0x40 - MEMORY), name, strlen(name) + 1);
}

static const uint64_t list = THREAD + 0x28;

/* Begins with one thread, which has no task. */
static void begin(void)
{
	memset(memory, 0, sizeof(memory));
	end = FIRST_OBJECT;
	make_type(COROUTINE, 0, "coroutine");
	make_type(SET, 0, "set");
	make_type(LONG, IS_LONG, "int");
	make_type(TEXT, IS_TEXT, "str");
	make_type(TASK, 1 << 9, "Task");
	make_type(FUTURE_WAIT, 0, "_asyncio.FutureIter");
	make_type(WRAPPER, 0, "coroutine_wrapper");
	put(RUNTIME + 0x10, INTERPRETER);
	put(INTERPRETER + 0x18, THREAD);
	put(INTERPRETER + 0x20, INTERPRETER + 0x20);
	put(INTERPRETER + 0x28, INTERPRETER + 0x20);
	put(THREAD + 0x20, 77);
	put(list, list);
	put(list + 8, list);
}

static uint64_t make_number(uint64_t number)
{
	const uint64_t at = make(LONG);

	put(at + 0x10, 1 << 3);
	put(at + 0x18, number);
	return at;
}

static uint64_t make_text(const char *text)
{
	const uint64_t at = make(TEXT);

	put(at + PYTHON_LENGTH, strlen(text));
	put(at + PYTHON_STATE, 0xe5 | 1 << 6);
	memcpy(memory + (at + 40 - MEMORY), text, strlen(text));
	return at;
}

/* Makes a coroutine that waits for the object at @what. */
static uint64_t make_coroutine(int state, uint64_t what)
{
	const uint64_t at = make(COROUTINE);

	put_byte(at + 0x10, state);
	put(at + FRAME_AT, at | 1);
	put(at + FRAME_AT + 0x10, at + 0x28);
	put(at + 0x20, what | 1);
	return at;
}

static uint64_t make_future(void)
{
	return make(TASK);
}

/* Makes a task that waits for a future, without a list. */
static uint64_t make_task(unsigned int number)
{
	const uint64_t at = make_future();

	put_byte(at + 0x20, 1);
	put(at + 0x10, make_number(number));
	put(at + 0x28, make_coroutine(AWAITING, make(FUTURE_WAIT)));
	return at;
}

/* What is stored to add a link at the end of a list, in the order of CPython. */
struct store {
	uint64_t at;
	uint64_t value;
};

#define STORES 4

static void make_stores(uint64_t node, struct store *ret)
{
	const uint64_t last = get(list + 8);

	ret[0] = (struct store){ node + 8, last };
	ret[1] = (struct store){ node, list };
	ret[2] = (struct store){ last, node };
	ret[3] = (struct store){ list + 8, node };
}

static uint64_t add_task(unsigned int number)
{
	const uint64_t at = make_task(number);
	struct store stores[STORES];

	make_stores(at + 0x50, stores);
	for (int i = 0; i < STORES; i++)
		put(stores[i].at, stores[i].value);
	return at;
}

static uint64_t make_set(unsigned int used, uint64_t mask)
{
	const uint64_t at = make(SET);

	put(at + 0x10, used);
	put(at + 0x18, at + 0x40);
	put(at + 0x20, mask);
	return at;
}

static void put_place(uint64_t set, unsigned int i, uint64_t element, uint64_t hash)
{
	put(set + 0x40 + 16 * i, element);
	put(set + 0x40 + 16 * i + 8, hash);
}

static void wait_by(uint64_t task, uint64_t by, bool is_set)
{
	put(task + 0x18, by);
	put_byte(task + 0x21, is_set);
}

static int place_error; /* why no place is known */

static int place_of(void *arg, uint64_t code, int at, uint64_t *ret)
{
	(void)arg;
	*ret = code;
	return at == -(int)code ? place_error : -EFAULT;
}

static struct awaits *all;

static int read_with(uint64_t bytes, uint64_t time)
{
	struct shstk_symbols_opts opts = { .memory = bytes, .time = time, .no_servers = true };
	struct awaits_source from = { .read = read_memory, .place = place_of };
	struct awaits_layout layout = layout_of_test;
	int err;

	layout.minor = minor;
	layout.text = python_version(minor);
	layout.awaited_at = minor == 14 ? 8 : 16;
	if (shstk_symbols_create(&opts, &symbols))
		return -ENOMEM;
	from.account = shstk_symbols_process_account(symbols, 1);
	err = awaits_read(&layout, &from, &all);
	shstk_symbols_destroy(symbols);
	return err;
}

static int read_all(void)
{
	return read_with(0, 0);
}

static bool is_named(size_t i, const char *name)
{
	return !strcmp(all->tasks[i]->name, name);
}

TEST(tasks_of_a_thread_and_who_waits_for_whom)
{
	uint64_t first, second, future;

	begin();
	first = add_task(1);
	second = add_task(2);
	add_task(3);
	wait_by(second, first, false);
	future = make_future();
	wait_by(future, second, false);
	wait_by(get(list + 8) - 0x50, future, false);
	ASSERT_EQ(0, read_all());
	ASSERT_EQ(3, all->nr);
	EXPECT_TRUE(is_named(0, "Task-1"));
	EXPECT_EQ(AWAITS_WAITING, all->tasks[0]->state);
	EXPECT_EQ(0, strcmp("_asyncio.FutureIter", all->tasks[0]->what));
	EXPECT_EQ(0, all->tasks[0]->nr_by);
	ASSERT_EQ(1, all->tasks[1]->nr_by);
	EXPECT_EQ(0, all->tasks[1]->by[0]);
	ASSERT_EQ(1, all->tasks[2]->nr_by);
	EXPECT_EQ(1, all->tasks[2]->by[0]);
	awaits_destroy(all);
}

TEST(coroutines_that_wait_for_each_other_the_innermost_first)
{
	uint64_t task, inner, wrapper, outer;

	begin();
	task = add_task(1);
	inner = make_coroutine(SUSPENDED, 0);
	wrapper = make(WRAPPER);
	put(wrapper + 16, inner);
	outer = make_coroutine(AWAITING, wrapper);
	put(task + 0x28, outer);
	ASSERT_EQ(0, read_all());
	ASSERT_EQ(2, all->tasks[0]->nr_pcs);
	EXPECT_EQ(inner, all->tasks[0]->pcs[0]);
	EXPECT_EQ(outer, all->tasks[0]->pcs[1]);
	EXPECT_EQ(NULL, all->tasks[0]->what);
	awaits_destroy(all);
}

TEST(what_tasks_do)
{
	uint64_t running, fresh, ended, made, other;

	begin();
	running = add_task(1);
	put(THREAD + 0x38, running);
	fresh = add_task(2);
	put(fresh + 0x28, make_coroutine(CREATED, 0));
	ended = add_task(3);
	put(ended + 0x28, 0);
	other = add_task(4);
	put(other + 0x28, make_coroutine(EXECUTING, 0));
	ASSERT_EQ(0, read_all());
	EXPECT_EQ(AWAITS_RUNNING, all->tasks[0]->state);
	EXPECT_EQ(77, all->tasks[0]->tid);
	EXPECT_EQ(0, all->tasks[0]->nr_pcs);
	EXPECT_EQ(AWAITS_NEW, all->tasks[1]->state);
	EXPECT_EQ(1, all->tasks[1]->nr_pcs);
	EXPECT_EQ(AWAITS_ENDED, all->tasks[2]->state);
	EXPECT_EQ(AWAITS_RUNNING, all->tasks[3]->state);
	EXPECT_EQ(0, all->tasks[3]->tid);
	awaits_destroy(all);

	/* A task that is in no list yet. */
	made = make_task(9);
	put(THREAD + 0x38, made);
	ASSERT_EQ(0, read_all());
	ASSERT_EQ(5, all->nr);
	EXPECT_TRUE(is_named(4, "Task-9"));
	EXPECT_EQ(AWAITS_RUNNING, all->tasks[4]->state);
	awaits_destroy(all);
}

/* In 3.15 states have other numbers, and a word lies behind what a coroutine waits for. */
TEST(what_tasks_of_a_newer_version_do)
{
	static const struct {
		int state; /* of the coroutine of the outer one */
		enum awaits_state is;
		int err;
	} cases[] = {
		{ 0, AWAITS_NEW, 0 },	{ 1, AWAITS_WAITING, 0 }, { 4, AWAITS_RUNNING, 0 },
		{ 5, AWAITS_ENDED, 0 }, { 6, 0, -EAGAIN },	  { -1, 0, -EAGAIN },
		{ -3, 0, -EAGAIN },
	};
	uint64_t task, inner, outer;

	minor = 15;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin();
		put(add_task(1) + 0x28, make_coroutine(cases[i].state, 0));
		ASSERT_EQ(cases[i].err, read_all());
		if (cases[i].err)
			continue;
		EXPECT_EQ(cases[i].is, all->tasks[0]->state);
		awaits_destroy(all);
	}
	begin();
	task = add_task(1);
	inner = make_coroutine(1, 0);
	outer = make_coroutine(2, 0);
	put(outer + 0x18, inner | 1);
	put(task + 0x28, outer);
	ASSERT_EQ(0, read_all());
	ASSERT_EQ(2, all->tasks[0]->nr_pcs);
	EXPECT_EQ(inner, all->tasks[0]->pcs[0]);
	EXPECT_EQ(outer, all->tasks[0]->pcs[1]);
	awaits_destroy(all);
	minor = 14;
}

TEST(names)
{
	uint64_t large;

	begin();
	put(add_task(1) + 0x10, make_text("a name"));
	large = make_number(5);
	put(large + 0x10, 2 << 3);
	put(large + 0x18, 5 | 1ull << 32);
	put(add_task(2) + 0x10, large);
	put(add_task(3) + 0x10, make(SET));
	ASSERT_EQ(0, read_all());
	EXPECT_TRUE(is_named(0, "a name"));
	EXPECT_TRUE(is_named(1, "Task-1073741829"));
	EXPECT_TRUE(is_named(2, "?"));
	awaits_destroy(all);
	put(large + 0x10, 1ull << 60);
	EXPECT_EQ(-EAGAIN, read_all());
	EXPECT_EQ(NULL, all);
}

TEST(a_set_of_those_that_wait)
{
	uint64_t task, set, first, second;

	begin();
	first = add_task(1);
	second = add_task(2);
	task = add_task(3);
	set = make_set(2, 7);
	put_place(set, 1, second, 11);
	put_place(set, 3, SET, UINT64_MAX); /* was taken out */
	put_place(set, 6, first, 12);
	wait_by(task, set, true);
	ASSERT_EQ(0, read_all());
	ASSERT_EQ(2, all->tasks[2]->nr_by);
	EXPECT_EQ(0, all->tasks[2]->by[0]);
	EXPECT_EQ(1, all->tasks[2]->by[1]);
	awaits_destroy(all);

	/* While an element is added or taken out, the number is another one. */
	put_place(set, 4, first, 13);
	EXPECT_EQ(-EAGAIN, read_all());
	put_place(set, 4, 0, 0);
	put_place(set, 6, 0, 0);
	EXPECT_EQ(-EAGAIN, read_all());
	/* A set takes the place of the only one that waits, and then that is noted; or the other way round. */
	put_place(set, 6, first, 12);
	wait_by(task, set, false);
	EXPECT_EQ(-EAGAIN, read_all());
	wait_by(task, first, true);
	EXPECT_EQ(-EAGAIN, read_all());
}

/* As asyncio.shield() and gather() make them for each who calls them. */
TEST(many_futures_lead_to_the_same_task)
{
	const unsigned int nr = 5000;
	uint64_t task, by, set, future;

	begin();
	by = add_task(1);
	task = add_task(2);
	set = make_set(nr, 8191);
	end = set + 0x40 + 16 * 8192;
	for (unsigned int i = 0; i < nr; i++) {
		future = end;
		end += 0x30;
		put(future + 8, TASK);
		wait_by(future, by, false);
		put_place(set, i, future, 1);
	}
	wait_by(task, set, true);
	ASSERT_EQ(0, read_all());
	ASSERT_EQ(1, all->tasks[1]->nr_by);
	EXPECT_EQ(0, all->tasks[1]->by[0]);
	awaits_destroy(all);
	wait_by(future, set, true);
	EXPECT_EQ(0, read_all());
	awaits_destroy(all);
}

TEST(a_list_is_read_as_before_a_change_or_behind_it_or_not_at_all)
{
	for (unsigned int done = 0; done < 1u << STORES; done++) {
		struct store stores[STORES];
		int err;

		begin();
		add_task(1);
		make_stores(make_task(2) + 0x50, stores);
		for (int i = 0; i < STORES; i++)
			if (done >> i & 1)
				put(stores[i].at, stores[i].value);
		err = read_all();
		if (done == (1u << STORES) - 1) {
			ASSERT_EQ(0, err);
			EXPECT_EQ(2, all->nr);
		} else if (!err) {
			/* What leads to the new one was not stored. */
			EXPECT_EQ(0, done & 12);
			EXPECT_EQ(1, all->nr);
		} else {
			EXPECT_TRUE(err == -EAGAIN || err == -EFAULT);
		}
		if (!err)
			awaits_destroy(all);
	}
}

TEST(why_a_function_is_not_known_is_told)
{
	static const int errors[] = { -ENOMEM, -EFAULT, -EAGAIN };
	const size_t nr = sizeof(errors) / sizeof(*errors);

	begin();
	put(add_task(1) + 0x28, make_coroutine(SUSPENDED, 0));
	ASSERT_EQ(0, read_all());
	awaits_destroy(all);
	for (size_t i = 0; i < nr; i++) {
		place_error = errors[i];
		EXPECT_EQ(errors[i], read_all());
	}
	place_error = 0;
}

TEST(circles_end)
{
	uint64_t task, second, future, coroutine;

	/* Of tasks that wait for each other, and of futures. */
	begin();
	task = add_task(1);
	second = add_task(2);
	wait_by(task, second, false);
	future = make_future();
	wait_by(second, future, false);
	wait_by(future, future, false);
	ASSERT_EQ(0, read_all());
	EXPECT_EQ(1, all->tasks[0]->nr_by);
	EXPECT_EQ(0, all->tasks[1]->nr_by);
	awaits_destroy(all);
	wait_by(second, task, false);
	ASSERT_EQ(0, read_all());
	EXPECT_EQ(1, all->tasks[1]->nr_by);
	awaits_destroy(all);

	/* Of coroutines. */
	coroutine = make_coroutine(AWAITING, 0);
	put(coroutine + 0x20, coroutine);
	put(task + 0x28, coroutine);
	EXPECT_EQ(-E2BIG, read_all());

	/* Of a list's links, of threads and of interpreters. */
	begin();
	task = add_task(1);
	put(add_task(2) + 0x50, task + 0x50);
	EXPECT_EQ(-EAGAIN, read_all());
	begin();
	put(THREAD + 0x18, THREAD);
	EXPECT_EQ(-EAGAIN, read_all());
	begin();
	put(INTERPRETER + 0x10, INTERPRETER);
	EXPECT_EQ(-E2BIG, read_all());
}

TEST(lengths_are_bounded)
{
	uint64_t task, set;

	begin();
	task = add_task(1);
	set = make_set(1, 1ull << 60);
	wait_by(task, set, true);
	EXPECT_EQ(-E2BIG, read_all());
	put(set + 0x20, (1u << 20) - 1); /* behind it there is no memory */
	EXPECT_EQ(-EFAULT, read_all());
}

TEST(reading_draws_from_the_account)
{
	begin();
	for (int i = 0; i < 500; i++)
		add_task(i);
	EXPECT_EQ(-ENOMEM, read_with(10000, 0));
	EXPECT_EQ(NULL, all);
	EXPECT_EQ(-ETIMEDOUT, read_with(0, 1));
	ASSERT_EQ(0, read_all());
	EXPECT_EQ(500, all->nr);
	awaits_destroy(all);
}

TEST(so_do_names)
{
	uint64_t tasks[500], text;
	char name[401];

	begin();
	for (int i = 0; i < 500; i++)
		tasks[i] = add_task(i);
	ASSERT_EQ(0, read_with(250000, 0));
	awaits_destroy(all);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	text = make_text(name);
	for (int i = 0; i < 500; i++)
		put(tasks[i] + 0x10, text);
	EXPECT_EQ(-ENOMEM, read_with(250000, 0));
	ASSERT_EQ(0, read_all());
	EXPECT_TRUE(is_named(499, name));
	awaits_destroy(all);
}

TEST_HARNESS_MAIN
