// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * awaits_fuzz.c - any bytes as the memory of a Python that has tasks of asyncio: no read leaves what the account
 * has, and what is told of tasks fits together. The memory comes again and again up to address 2^16, so lists
 * of any shape are there. awaits_seed.py writes one that has some tasks.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "selftests/fuzz/repeated.h"
#include "tools/language/python/awaits.h"
#include "tools/language/python/versions.h"

#define END 65536
#define MEMORY (64ull << 20) /* bytes that reading may take */
#define TIME 1000000000ull /* ns */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Types have small addresses: they are compared, but only those of names are read. */
static const struct awaits_layout layout_of_fuzz = {
	.minor = 14,
	.asyncio = true,
	.coroutine_type = 1,
	.generator_type = 2,
	.async_generator_type = 3,
	.set_type = 4,
	.interpreters = 0,
	.interpreter_next = 8,
	.interpreter_threads = 16,
	.interpreter_tasks = 24,
	.thread_prev = 0,
	.thread_next = 8,
	.thread_id = 16,
	.thread_tasks = 24,
	.thread_task = 40,
	.node_next = 0,
	.node_prev = 8,
	.task_bytes = 56,
	.task_name = 0,
	.object_type = 8,
	.task_awaited_by = 16,
	.task_is_task = 24,
	.task_by_set = 25,
	.task_coroutine = 32,
	.task_node = 40,
	.set_used = 16,
	.set_table = 24,
	.set_mask = 32,
	.type_name = 16,
	.type_flags = 24,
	.generator_frame = 24,
	.generator_state = 16,
	.frame_bytes = 24,
	.frame_code = 0,
	.frame_instruction = 8,
	.frame_stack = 16,
	.awaited_at = 8,
	.long_tag = 16,
	.long_digits = 24,
	.code_tags = 3,
};

struct input {
	const uint8_t *data;
	size_t size;
};

static int read_input(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct input *in = arg;

	if (addr > END || size > END - addr)
		return -EFAULT;
	copy_repeated(in->data, in->size, addr, buf, size);
	return 0;
}

/* Of some functions no place is known. */
static int place(void *arg, uint64_t code, int at, uint64_t *ret)
{
	(void)arg;
	if (code % 8 == 7)
		return -EFAULT;
	*ret = code ^ (unsigned int)at;
	return 0;
}

/* Each task that waits is one of them, and is named once. */
static void judge(const struct awaits *a)
{
	for (size_t i = 0; i < a->nr; i++) {
		const struct awaits_task *t = a->tasks[i];

		if (!t->name || (t->state == AWAITS_RUNNING && t->nr_pcs) ||
		    t->nr_pcs > AWAITS_FRAMES)
			abort();
		for (size_t k = 0; k < t->nr_by; k++)
			if (t->by[k] >= a->nr || (k && t->by[k - 1] >= t->by[k]))
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct awaits_layout layout = layout_of_fuzz;
	struct input in = { data, size };
	struct shstk_account account;
	struct shstk_budget budget;
	const struct awaits_source from = {
		.read = read_input, .arg = &in, .place = place, .account = &account
	};
	struct awaits *all;

	if (!size)
		return 0;
	layout.text = python_version(14);
	shstk_budget_init(&budget, MEMORY, TIME);
	shstk_account_open(&account, &budget, "memory");
	if (!awaits_read(&layout, &from, &all))
		judge(all);
	else if (all)
		abort();
	awaits_destroy(all);
	shstk_account_close(&account);
	return 0;
}
