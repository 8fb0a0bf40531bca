// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * awaits.c - reads the tasks of a Python program that is stopped. See awaits.h.
 *
 * A thread may have been stopped at any instruction. It changes lists and sets of tasks in several steps, and
 * each of these shows: a list must be the same in both directions, a set must have as many elements as it
 * says, and what is no set must not be one. So what is read is what there was before the change, or behind it.
 * Coroutines change only while their task runs, and of such a task none are read.
 *
 * The memory may hold anything. Each loop is bounded, and the account bounds them together.
 */
#define HASH_NONFATAL_OOM 1
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/unaligned.h"
#include "tools/language/python/awaits.h"
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

#define MAX_INTERPRETERS 4096
#define MAX_THREADS 32768 /* of an interpreter */
#define MAX_TASKS (1u << 20)
#define MAX_FUTURES 65536 /* that lead from a task to those that wait for it */
#define FUTURE_PLACES (2 * MAX_FUTURES)
#define MAX_SET (1u << 20) /* places for elements of a set */
#define SET_PIECE 256 /* places that are read at once */
#define DUMMY_HASH UINT64_MAX /* of a place whose element was taken out */
#define TYPE_NAME 128
#define FRAME_BYTES 128
#define PAGE 4096
#define WRAPPED_AT 16 /* offset of the coroutine in an object that wraps one */
#define TYPE_IS_LONG (1u << 24) /* flags of a type */
#define TYPE_IS_TEXT (1u << 28)
#define TYPE_IS_MADE (1u << 9) /* by a program, not by Python itself */
#define DIGIT_BITS 30

/* What a coroutine does. */
enum coroutine_state {
	COROUTINE_OTHER, /* nothing that is known */
	COROUTINE_CREATED,
	COROUTINE_SUSPENDED,
	COROUTINE_AWAITING, /* suspended, as it waits for an object on its stack */
	COROUTINE_EXECUTING,
	COROUTINE_ENDED,
};

/* A task by its address. */
struct awaits_known {
	UT_hash_handle hh;
	size_t index;
	struct awaits_task it;
};

/* A place of a table by which a future is found; of another task's futures if @task is another number. */
struct awaits_place {
	uint64_t addr;
	size_t task;
};

/**
 * struct awaits_reading - the state of reading
 * @l: where it is kept.
 * @from: the process.
 * @to: what was read.
 * @max: elements for which @to has room.
 * @known: the tasks, by address.
 * @futures: futures that lead from a task to those that wait for it.
 * @nr_futures: number of elements of @futures.
 * @places: finds them.
 * @task: number of the task whose futures these are, from 1 on.
 * @pcs: where the coroutines of a task wait, the outermost first.
 */
struct awaits_reading {
	const struct awaits_layout *l;
	const struct awaits_source *from;
	struct awaits *to;
	size_t max;
	struct awaits_known *known;
	uint64_t futures[MAX_FUTURES];
	size_t nr_futures;
	struct awaits_place places[FUTURE_PLACES];
	size_t task;
	uint64_t pcs[AWAITS_FRAMES];
};

static int read_bytes(const struct awaits_reading *r, uint64_t at, void *buf, size_t size)
{
	const int err = r->from->read(r->from->arg, at, buf, size);

	return !err || err == -ETIMEDOUT ? err : -EFAULT;
}

static int read_word(const struct awaits_reading *r, uint64_t at, uint64_t *ret)
{
	return read_bytes(r, at, ret, sizeof(*ret));
}

/* Returns 0, or -ETIMEDOUT if no time is left. */
static int go_on(const struct awaits_reading *r)
{
	return shstk_account_on(r->from->account) ? 0 : -ETIMEDOUT;
}

static void free_task(struct awaits_task *t)
{
	free(t->name);
	free(t->what);
	free(t->pcs);
	free(t->by);
}

/* ---- The list of tasks ---- */

static struct awaits_known *find_task(const struct awaits_reading *r, uint64_t addr)
{
	struct awaits_known *ret;

	HASH_FIND(hh, r->known, &addr, sizeof(addr), ret);
	return ret;
}

/* Adds a task that is not known yet. */
static int add_task(struct awaits_reading *r, uint64_t addr, struct awaits_known **ret)
{
	struct awaits_task **more;
	struct awaits_known *k;

	if (r->to->nr == MAX_TASKS)
		return -E2BIG;
	more = shstk_account_grow(r->from->account, r->to->tasks, r->to->nr, &r->max,
				  sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->to->tasks = more;
	k = shstk_account_take(r->from->account, sizeof(*k)) ? calloc(1, sizeof(*k)) : NULL;
	if (!k)
		return -ENOMEM;
	k->it.addr = addr;
	k->index = r->to->nr;
	HASH_ADD(hh, r->known, it.addr, sizeof(k->it.addr), k);
	if (!k->hh.tbl) {
		free(k);
		return -ENOMEM;
	}
	r->to->tasks[r->to->nr++] = &k->it;
	*ret = k;
	return go_on(r);
}

/* Finds a task, which may not be in a list: it is not while it runs its first step at once (eager_start). */
static int need_task(struct awaits_reading *r, uint64_t addr, struct awaits_known **ret)
{
	*ret = find_task(r, addr);
	return *ret ? 0 : add_task(r, addr, ret);
}

/* Adds the tasks of the list whose head is at @head. Each of its links leads back, too. */
static int read_list(struct awaits_reading *r, uint64_t head)
{
	const struct awaits_layout *l = r->l;
	uint64_t last = head, node, back;
	struct awaits_known *k;
	int err = read_word(r, head + l->node_next, &node);

	while (!err) {
		err = read_word(r, node + l->node_prev, &back);
		if (!err && back != last)
			err = -EAGAIN;
		if (err || node == head)
			break;
		if (find_task(r, node - l->task_node))
			return -EAGAIN;
		err = add_task(r, node - l->task_node, &k);
		last = node;
		if (!err)
			err = read_word(r, node + l->node_next, &node);
	}
	return err;
}

/* Reads the list of a thread's tasks. Which one it runs is in @state, too. */
static int read_thread(struct awaits_reading *r, uint64_t state)
{
	struct awaits_known *k;
	uint64_t running, tid;
	int err = read_list(r, state + r->l->thread_tasks);

	if (!err)
		err = read_word(r, state + r->l->thread_task, &running);
	if (!err)
		err = read_word(r, state + r->l->thread_id, &tid);
	if (err || !running)
		return err;
	err = need_task(r, running, &k);
	if (!err) {
		k->it.state = AWAITS_RUNNING;
		k->it.tid = (int)tid;
	}
	return err;
}

static int read_threads(struct awaits_reading *r, uint64_t interpreter)
{
	uint64_t state, back, last = 0;
	int err = read_word(r, interpreter + r->l->interpreter_threads, &state);

	for (unsigned int i = 0; !err && state; i++) {
		if (i == MAX_THREADS)
			return -E2BIG;
		err = read_word(r, state + r->l->thread_prev, &back);
		if (!err && back != last)
			err = -EAGAIN;
		if (!err)
			err = read_thread(r, state);
		if (!err)
			err = go_on(r);
		last = state;
		if (!err)
			err = read_word(r, state + r->l->thread_next, &state);
	}
	return err;
}

static int read_lists(struct awaits_reading *r)
{
	uint64_t interpreter;
	int err = read_word(r, r->l->runtime + r->l->interpreters, &interpreter);

	for (unsigned int i = 0; !err && interpreter; i++) {
		if (i == MAX_INTERPRETERS)
			return -E2BIG;
		err = read_threads(r, interpreter);
		if (!err)
			err = read_list(r, interpreter + r->l->interpreter_tasks);
		if (!err)
			err = read_word(r, interpreter + r->l->interpreter_next, &interpreter);
	}
	return err;
}

/* ---- Names ---- */

/* Reads bytes of an object of at most @size bytes, behind which memory may end. Returns how many. */
static size_t read_pieces(const struct awaits_reading *r, uint64_t at, uint8_t *buf, size_t size)
{
	size_t done = 0, part;

	while (done < size) {
		part = PAGE - (at + done) % PAGE;
		part = part < size - done ? part : size - done;
		if (read_bytes(r, at + done, buf + done, part))
			break;
		done += part;
	}
	return done;
}

/* Keeps a copy of a name, which draws from the account. */
static int copy_name(const struct awaits_reading *r, const char *name, char **ret)
{
	if (!shstk_account_take(r->from->account, strlen(name) + 1))
		return -ENOMEM;
	*ret = strdup(name);
	return *ret ? 0 : -ENOMEM;
}

/* Makes the name of a task that was given none: asyncio counts these. */
static int number_name(const struct awaits_reading *r, uint64_t at, char **ret)
{
	uint64_t tag, number = 0;
	uint32_t digits[3];
	char name[32];
	int err = read_word(r, at + r->l->long_tag, &tag);

	if (!err && tag >> 3 > 2)
		err = -EAGAIN;
	if (!err)
		err = read_bytes(r, at + r->l->long_digits, digits, (tag >> 3) * 4);
	if (err)
		return err;
	for (uint64_t i = tag >> 3; i--;)
		number = number << DIGIT_BITS | digits[i];
	snprintf(name, sizeof(name), "Task-%llu", (unsigned long long)number);
	return copy_name(r, name, ret);
}

static int text_name(const struct awaits_reading *r, uint64_t at, char **ret)
{
	uint8_t object[LANGUAGE_SHORT];
	char *text = python_text(r->l->text, object, read_pieces(r, at, object, sizeof(object)));
	/* The copy has no more room than it needs. */
	const int err = text ? copy_name(r, text, ret) : -EAGAIN;

	free(text);
	return err;
}

static int read_type(const struct awaits_reading *r, uint64_t object, uint64_t *type,
		     uint64_t *flags)
{
	int err = read_word(r, object + r->l->object_type, type);

	return err ? err : read_word(r, *type + r->l->type_flags, flags);
}

static int read_name(const struct awaits_reading *r, uint64_t at, struct awaits_task *t)
{
	uint64_t type, flags;
	int err = at ? read_type(r, at, &type, &flags) : -EAGAIN;

	if (err)
		return err;
	if (flags & TYPE_IS_LONG)
		return number_name(r, at, &t->name);
	if (flags & TYPE_IS_TEXT)
		return text_name(r, at, &t->name);
	return copy_name(r, "?", &t->name);
}

static int type_name(const struct awaits_reading *r, uint64_t type, char **ret)
{
	char name[TYPE_NAME] = "";
	uint64_t at;
	int err = read_word(r, type + r->l->type_name, &at);

	if (err)
		return err;
	read_pieces(r, at, (uint8_t *)name, sizeof(name) - 1);
	return *name ? copy_name(r, name, ret) : -EAGAIN;
}

/* ---- Coroutines ---- */

static bool is_coroutine(const struct awaits_layout *l, uint64_t type)
{
	return type == l->coroutine_type || type == l->generator_type ||
	       type == l->async_generator_type;
}

/*
 * Finds the coroutine or generator that the object at *@at is, or that it wraps; of any other one, what its
 * type is called.
 */
static int unwrap(const struct awaits_reading *r, uint64_t *at, char **what)
{
	static const char *const wraps[] = { "async_generator_asend", "async_generator_athrow",
					     "coroutine_wrapper" };
	uint64_t type, flags, inner, inner_type;
	int err = read_word(r, *at + r->l->object_type, &type);

	if (err || is_coroutine(r->l, type))
		return err;
	err = read_type(r, *at, &type, &flags);
	if (!err)
		err = type_name(r, type, what);
	for (size_t i = 0; !err && i < sizeof(wraps) / sizeof(*wraps); i++) {
		if (flags & TYPE_IS_MADE || strcmp(*what, wraps[i]))
			continue;
		err = read_word(r, *at + WRAPPED_AT, &inner);
		if (!err)
			err = read_word(r, inner + r->l->object_type, &inner_type);
		if (err || !is_coroutine(r->l, inner_type))
			return err;
		shstk_account_give(r->from->account, strlen(*what) + 1);
		free(*what);
		*what = NULL;
		*at = inner;
		return 0;
	}
	return err;
}

static uint64_t member(const uint8_t *object, uint32_t offset)
{
	return get64(object + offset);
}

/* Adds the place where a coroutine with that frame waits. Sets *@next to what it waits for. */
static int add_frame(struct awaits_reading *r, size_t nr, uint64_t at, uint64_t *next)
{
	const struct awaits_layout *l = r->l;
	uint8_t frame[FRAME_BYTES];
	uint64_t code, stack;
	int err = nr < AWAITS_FRAMES ? read_bytes(r, at, frame, l->frame_bytes) : -E2BIG;

	if (err)
		return err;
	code = member(frame, l->frame_code) & ~(uint64_t)l->code_tags;
	stack = member(frame, l->frame_stack);
	err = r->from->place(r->from->place_arg, code,
			     (int)(member(frame, l->frame_instruction) - code - l->instructions),
			     &r->pcs[nr]);
	if (err)
		return go_on(r) ? -ETIMEDOUT : err;
	if (!next)
		return 0;
	if (!stack)
		return -EAGAIN;
	err = read_word(r, stack - l->awaited_at, next);
	*next &= ~(uint64_t)l->code_tags;
	return err;
}

/* Keeps the @nr places, the innermost first. */
static int keep_frames(const struct awaits_reading *r, struct awaits_task *t, size_t nr)
{
	if (!shstk_account_take(r->from->account, nr * sizeof(*t->pcs)))
		return -ENOMEM;
	t->pcs = malloc(nr * sizeof(*t->pcs));
	if (!t->pcs)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		t->pcs[i] = r->pcs[nr - 1 - i];
	t->nr_pcs = nr;
	return 0;
}

/* Returns what the state in a coroutine's object means. */
static enum coroutine_state state_of(const struct awaits_layout *l, int state)
{
	/* From -3 on. Which of the last ones is used depends on how the coroutine ended. */
	static const uint8_t of_14[] = {
		COROUTINE_CREATED, COROUTINE_SUSPENDED, COROUTINE_AWAITING, COROUTINE_EXECUTING,
		COROUTINE_ENDED,   COROUTINE_ENDED,	COROUTINE_ENDED,    COROUTINE_ENDED,
	};
	/* From 0 on. A free-threaded build may hold a lock meanwhile. */
	static const uint8_t of_15[] = {
		COROUTINE_CREATED,  COROUTINE_SUSPENDED, COROUTINE_AWAITING,
		COROUTINE_AWAITING, COROUTINE_EXECUTING, COROUTINE_ENDED,
	};
	const bool is_14 = l->minor == 14;
	const unsigned int i = (unsigned int)(is_14 ? state + 3 : state);

	if (i >= (is_14 ? sizeof(of_14) : sizeof(of_15)))
		return COROUTINE_OTHER;
	return is_14 ? of_14[i] : of_15[i];
}

/* Reads the coroutines of a task, the first one of which is at @at. */
static int read_coroutines(struct awaits_reading *r, struct awaits_task *t, uint64_t at)
{
	size_t nr = 0;
	int err;

	t->state = AWAITS_WAITING;
	for (;;) {
		enum coroutine_state state;
		int8_t byte;

		err = unwrap(r, &at, &t->what);
		if (err || t->what)
			break;
		err = read_bytes(r, at + r->l->generator_state, &byte, sizeof(byte));
		if (err)
			break;
		state = state_of(r->l, byte);
		if (state == COROUTINE_EXECUTING || (state == COROUTINE_ENDED && !nr)) {
			t->state = state == COROUTINE_ENDED ? AWAITS_ENDED : AWAITS_RUNNING;
			return 0;
		}
		if (state == COROUTINE_ENDED || state == COROUTINE_OTHER)
			return -EAGAIN;
		err = add_frame(r, nr++, at + r->l->generator_frame,
				state == COROUTINE_AWAITING ? &at : NULL);
		if (state == COROUTINE_CREATED && nr == 1)
			t->state = AWAITS_NEW;
		if (err || state != COROUTINE_AWAITING)
			break;
	}
	return err || !nr ? err : keep_frames(r, t, nr);
}

/* ---- Who waits ---- */

/* Notes a future that leads to those that wait for the task at hand, unless it is known. */
static int add_future(struct awaits_reading *r, uint64_t at)
{
	uint32_t i = (uint32_t)(at * 0x9e3779b97f4a7c15 >> 32) % FUTURE_PLACES;

	for (; r->places[i].task == r->task; i = (i + 1) % FUTURE_PLACES)
		if (r->places[i].addr == at)
			return 0;
	if (r->nr_futures == MAX_FUTURES)
		return -E2BIG;
	r->places[i] = (struct awaits_place){ at, r->task };
	r->futures[r->nr_futures++] = at;
	return 0;
}

/* Notes that the object at @at, a task or a future, waits for the task @t or for a future that leads there. */
static int add_waiter(struct awaits_reading *r, struct awaits_task *t, size_t *max, uint64_t at)
{
	struct awaits_known *k;
	uint64_t type;
	uint8_t is_task;
	size_t *more;
	int err = read_word(r, at + r->l->object_type, &type);

	if (!err && type == r->l->set_type)
		err = -EAGAIN;
	if (!err)
		err = read_bytes(r, at + r->l->task_is_task, &is_task, sizeof(is_task));
	if (err)
		return err;
	if (!is_task)
		return add_future(r, at);
	err = need_task(r, at, &k);
	if (err)
		return err;
	more = shstk_account_grow(r->from->account, t->by, t->nr_by, max, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->by = more;
	t->by[t->nr_by++] = k->index;
	return 0;
}

/* Adds those that wait in the set at @at. */
static int add_set(struct awaits_reading *r, struct awaits_task *t, size_t *max, uint64_t at)
{
	const struct awaits_layout *l = r->l;
	uint64_t type, used, table, mask, places[2 * SET_PIECE];
	int err = read_word(r, at + l->object_type, &type);

	if (!err && type != l->set_type)
		err = -EAGAIN;
	if (!err)
		err = read_word(r, at + l->set_used, &used);
	if (!err)
		err = read_word(r, at + l->set_table, &table);
	if (!err)
		err = read_word(r, at + l->set_mask, &mask);
	if (!err && mask >= MAX_SET)
		err = -E2BIG;
	for (uint64_t i = 0; !err && i <= mask; i += SET_PIECE) {
		const uint64_t nr = mask + 1 - i < SET_PIECE ? mask + 1 - i : SET_PIECE;

		err = read_bytes(r, table + 16 * i, places, 16 * nr);
		for (uint64_t k = 0; !err && k < nr; k++) {
			if (!places[2 * k] || places[2 * k + 1] == DUMMY_HASH)
				continue;
			err = used-- ? add_waiter(r, t, max, places[2 * k]) : -EAGAIN;
		}
		if (!err)
			err = go_on(r);
	}
	return !err && used ? -EAGAIN : err;
}

/* Adds those that wait for the future or task whose bytes up to the last one needed are @head. */
static int add_waiters(struct awaits_reading *r, struct awaits_task *t, size_t *max,
		       const uint8_t *head)
{
	const uint64_t by = member(head, r->l->task_awaited_by);

	if (!by)
		return 0;
	return head[r->l->task_by_set] ? add_set(r, t, max, by) : add_waiter(r, t, max, by);
}

static int by_index(const void *a, const void *b)
{
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts who waits for a task; one that does in several ways is named once. */
static void sort_waiters(struct awaits_task *t)
{
	size_t nr = 0;

	if (t->nr_by)
		qsort(t->by, t->nr_by, sizeof(*t->by), by_index);
	for (size_t i = 0; i < t->nr_by; i++)
		if (!nr || t->by[nr - 1] != t->by[i])
			t->by[nr++] = t->by[i];
	t->nr_by = nr;
}

/* Finds who waits for a task, also by futures that are no tasks, as asyncio.gather() makes them. */
static int read_waiters(struct awaits_reading *r, struct awaits_task *t, const uint8_t *task)
{
	const uint32_t a = r->l->task_awaited_by + 8, b = r->l->task_by_set + 1;
	uint8_t head[AWAITS_TASK_BYTES];
	size_t max = 0;
	int err;

	r->nr_futures = 0;
	r->task++;
	err = add_waiters(r, t, &max, task);
	for (size_t i = 0; !err && i < r->nr_futures; i++) {
		err = read_bytes(r, r->futures[i], head, a > b ? a : b);
		if (!err)
			err = add_waiters(r, t, &max, head);
		if (!err)
			err = go_on(r);
	}
	sort_waiters(t);
	return err;
}

static int read_task(struct awaits_reading *r, struct awaits_task *t)
{
	uint8_t task[AWAITS_TASK_BYTES];
	uint64_t coroutine;
	int err = read_bytes(r, t->addr, task, r->l->task_bytes);

	if (!err && !task[r->l->task_is_task])
		err = -EAGAIN;
	if (!err)
		err = read_name(r, member(task, r->l->task_name), t);
	if (!err)
		err = read_waiters(r, t, task);
	if (err || t->state == AWAITS_RUNNING)
		return err;
	coroutine = member(task, r->l->task_coroutine);
	if (coroutine)
		return read_coroutines(r, t, coroutine);
	t->state = AWAITS_ENDED;
	return 0;
}

static int read_all(struct awaits_reading *r)
{
	int err = read_lists(r);

	/* Those that wait may be further tasks. */
	for (size_t i = 0; !err && i < r->to->nr; i++) {
		err = read_task(r, r->to->tasks[i]);
		if (!err)
			err = go_on(r);
	}
	return err;
}

int awaits_read(const struct awaits_layout *layout, const struct awaits_source *from,
		struct awaits **ret)
{
	struct awaits_reading *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	*ret = NULL;
	if (!r)
		return err;
	r->l = layout;
	r->from = from;
	r->to = calloc(1, sizeof(*r->to));
	if (r->to) {
		err = shstk_account_begin(from->account) ? read_all(r) : -ETIMEDOUT;
		shstk_account_end(from->account);
	}
	HASH_CLEAR(hh, r->known);
	if (err)
		awaits_destroy(r->to);
	else
		*ret = r->to;
	free(r);
	return err;
}

void awaits_destroy(struct awaits *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->nr; i++) {
		free_task(a->tasks[i]);
		free((char *)a->tasks[i] - offsetof(struct awaits_known, it));
	}
	free(a->tasks);
	free(a);
}
