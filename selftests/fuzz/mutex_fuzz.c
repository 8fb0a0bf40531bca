// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mutex_fuzz.c - any threads, and any bytes as the memory in which the mutexes are that these seem to wait
 * for. Finding them ends, and what is said of owners and of cycles fits together.
 *
 * Input: a byte that is the kind of machine, another one that is the number of threads, for each of them a
 * struct fields, and the memory, which is found again and again up to address 2^16.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selftests/fuzz/repeated.h"
#include "tools/trace/mutex.h"

#define END 65536
#define MOST 16 /* threads */
#define REGISTERS 32

/**
 * struct fields - a thread
 * @tid: its ID, in the process's own PID namespace, too.
 * @call: its system call.
 * @pc: its program counter.
 * @registers: its other ones, with their signs.
 * @names: functions of its frames; see names[].
 * @marks: marks of these.
 */
struct fields {
	uint8_t tid;
	uint8_t call;
	uint16_t pc;
	int16_t registers[REGISTERS];
	uint8_t names[MUTEX_FRAMES];
	uint8_t marks[MUTEX_FRAMES];
};

struct input {
	const uint8_t *memory;
	size_t size;
};

static const char *const names[] = {
	"__lll_lock_wait",	     "___pthread_mutex_lock",
	"__GI___pthread_mutex_lock", "pthread_cond_wait",
	"pthread_mutex_cond_lock",   "__pthread_rwlock_rdlock",
	"pthread_mutex_timedlock",   "main",
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const struct shstk_symbol *__wrap_shstk_symproc_lookup(struct shstk_symproc *proc, uint64_t pc,
						       int how);

/* Drops what is printed. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return freopen("/dev/null", "we", stdout) ? 0 : -1;
}

const struct trace_stack *trace_shown(const struct trace_thread *thread)
{
	return &thread->unwound;
}

/* Names a frame: its address is the number of the name, and the highest bit is that of another module. */
const struct shstk_symbol *__wrap_shstk_symproc_lookup(struct shstk_symproc *proc, uint64_t pc,
						       int how)
{
	static struct shstk_symframe frame;
	static struct shstk_symmap map;
	static struct shstk_symbol ret = { .map = &map, .nr = 1, .frames = &frame };

	(void)proc;
	(void)how;
	map.name = pc & 128 ? "program" : "libc.so.6";
	frame.function = names[pc % (sizeof(names) / sizeof(*names))];
	return &ret;
}

static int read_input(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct input *in = arg;

	if (addr > END || size > END - addr)
		return -EFAULT;
	copy_repeated(in->memory, in->size, addr, buf, size);
	return 0;
}

/* Finds the mutex that a thread waits for. */
static void find(int arch, const struct fields *f, struct input *in, struct mutex_waiter *ret)
{
	uint64_t pcs[MUTEX_FRAMES];
	uint8_t marks[MUTEX_FRAMES];
	struct trace_thread t = {
		.tid = f->tid,
		.own_tid = f->tid,
		.sampled = true,
		.regs = { .size = sizeof(t.regs), .known = UINT32_MAX, .pc = f->pc },
		.call = f->call,
		.unwound = { .taken = true, .nr = MUTEX_FRAMES, .pcs = pcs, .marks = marks },
	};

	for (int i = 0; i < REGISTERS; i++)
		t.regs.r[i] = (uint64_t)(int64_t)f->registers[i];
	for (int i = 0; i < MUTEX_FRAMES; i++) {
		pcs[i] = f->names[i];
		marks[i] = f->marks[i];
	}
	*ret = (struct mutex_waiter){ .tid = f->tid, .own_tid = f->tid, .stopped = true };
	mutex_find(arch, NULL, &t, read_input, in, ret);
}

static void judge(const struct mutex_waiter *w, size_t nr)
{
	const struct mutex_waiter *at = w;

	if (!w->waits) {
		if (w->next || w->cycle)
			abort();
		return;
	}
	if (w->cycle > nr || (w->next && (!w->owner || w->foreign || w->timed)))
		abort();
	for (size_t i = 0; i < w->cycle; i++) {
		at = at->next;
		if (!at || at->cycle != w->cycle || at->certain != w->certain)
			abort();
	}
	if (w->cycle && at != w)
		abort();
}

static void show(const struct mutex_waiter *list, size_t nr)
{
	struct json json = { .out = stdout };

	for (size_t i = 0; i < nr; i++) {
		judge(&list[i], nr);
		mutex_print(&list[i]);
		mutex_put(&json, &list[i]);
		mutex_compare(&list[i], &list[(i + 1) % nr]);
	}
	rewind(stdout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mutex_waiter list[MOST];
	struct fields f;
	struct input in;
	size_t nr;
	int arch;

	if (size < 2)
		return 0;
	arch = data[0] % 5;
	nr = data[1] % MOST + 1;
	if (size <= 2 + nr * sizeof(f))
		return 0;
	data += 2;
	in = (struct input){ data + nr * sizeof(f), size - 2 - nr * sizeof(f) };
	for (size_t i = 0; i < nr; i++, data += sizeof(f)) {
		memcpy(&f, data, sizeof(f));
		find(arch, &f, &in, &list[i]);
	}
	mutex_resolve(list, nr);
	show(list, nr);
	return 0;
}
