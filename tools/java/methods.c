// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * methods.c - the methods of Java in stacks. See methods.h.
 *
 * A frame of the interpreter, in words from its frame pointer on. It is so in all releases that are
 * known; each frame proves it, as it has the address of its method's cache of constants, too.
 *
 *	 1  return address
 *	 0  the caller's frame pointer
 *	-1  the caller's stack pointer
 *	-3  method
 *	-6  cache of constants
 *	-8  present bytecode, of a frame that has called; 0: the method is native
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/java/jit_code.h"
#include "tools/java/method.h"
#include "tools/java/methods.h"

#define WORD 8
#define KEPT 2048 /* methods that are kept, a power of two */
#define MAX_BYTES (8u << 20) /* of these, in a process */
#define FRESH 1000000000 /* ns for which a method is kept */
#define ASK_AGAIN 10000000 /* ns until the interpreter is looked for again */
#define LOWEST 8 /* words of a frame below its frame pointer that are read */
#define RBX 3 /* DWARF numbers of registers: the method that is entered */
#define R13 13 /* and the present bytecode, while the interpreter runs */

static const struct language java = { .module = "[Java]" };

/* What is known of an address: a method, or that none is there (@it is NULL). */
struct kept_method {
	uint64_t address;
	uint64_t time;
	struct java_method *it;
};

/**
 * struct java_methods - the methods of a process
 * @start: address of the interpreter.
 * @end: first address behind it; 0: it is not known.
 * @asked: jit_time() when it was looked for last.
 * @bytes: bytes that the methods take.
 * @kept: the methods, each at a place that its address tells.
 */
struct java_methods {
	uint64_t start;
	uint64_t end;
	uint64_t asked;
	size_t bytes;
	struct kept_method kept[KEPT];
};

struct java_methods *java_methods_create(void)
{
	return calloc(1, sizeof(struct java_methods));
}

static size_t size_of(const struct java_method *method)
{
	return sizeof(*method) + method->lines_size;
}

static void forget(struct java_methods *m, struct kept_method *k)
{
	if (k->it) {
		m->bytes -= size_of(k->it);
		java_method_deinit(k->it);
		free(k->it);
	}
	*k = (struct kept_method){ 0 };
}

static void forget_all(struct java_methods *m)
{
	for (size_t i = 0; i < KEPT; i++)
		forget(m, &m->kept[i]);
}

void java_methods_destroy(struct java_methods *methods)
{
	if (methods)
		forget_all(methods);
	free(methods);
}

/* ---- What is read of the process ---- */

static bool read_interpreter(const struct vmstructs *vm, struct java_methods *m)
{
	uint64_t queue, start;
	int32_t size;

	if (!vm->places[VM_INTERPRETER].known || !vm->places[VM_QUEUE_START].known ||
	    !vm->places[VM_QUEUE_SIZE].known ||
	    vm_read(vm, vm->places[VM_INTERPRETER].at, &queue, sizeof(queue)) ||
	    vm_read_member(vm, queue, VM_QUEUE_START, &start, sizeof(start)) ||
	    vm_read_member(vm, queue, VM_QUEUE_SIZE, &size, sizeof(size)) || size <= 0)
		return false;
	m->start = start;
	m->end = start + size;
	return true;
}

/* Finds the interpreter. A process that has just begun has none yet. Returns whether it is known. */
static bool find_interpreter(struct java_methods *m, struct jit *jit)
{
	const struct vmstructs *vm = jit_tables(jit);
	struct jit_look_up look_up;

	if (m->end)
		return true;
	if (!vm || (m->asked && jit_time(jit) - m->asked < ASK_AGAIN) ||
	    !jit_begin_look_up(jit, &look_up))
		return false;
	if (!read_interpreter(vm, m))
		m->asked = jit_time(jit);
	jit_end_look_up(jit, &look_up);
	return m->end;
}

/* Reads the method at an address. Returns 0, -ENOENT if there is none, or another negative errno. */
static int read_method(const struct vmstructs *vm, uint64_t address, struct java_method **ret)
{
	int err;

	*ret = malloc(sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	err = java_method_read(vm, address, *ret);
	if (!err)
		return 0;
	free(*ret);
	*ret = NULL;
	return err;
}

static void keep(struct java_methods *m, struct kept_method *k, const struct kept_method *new)
{
	forget(m, k);
	if (new->it && m->bytes + size_of(new->it) > MAX_BYTES)
		forget_all(m);
	*k = *new;
	if (new->it)
		m->bytes += size_of(new->it);
}

/*
 * Returns the method at an address, or NULL if there is none. It is read anew after a while, as another
 * one may lie there then. What was read before counts as long as the process cannot be read: it may have
 * ended.
 */
static const struct java_method *find_method(struct java_methods *m, struct jit *jit,
					     uint64_t address)
{
	struct kept_method *k = &m->kept[(address >> 3 ^ address >> 14) % KEPT];
	struct kept_method new = { .address = address, .time = jit_time(jit) };
	struct jit_look_up look_up;
	int err;

	if (k->time && k->address == address && new.time - k->time < FRESH)
		return k->it;
	if (!jit_begin_look_up(jit, &look_up))
		return k->address == address ? k->it : NULL;
	err = read_method(jit_tables(jit), address, &new.it);
	jit_end_look_up(jit, &look_up);
	if (!err || err == -ENOENT || err == -EFAULT || k->address != address)
		keep(m, k, &new);
	return k->it;
}

/* ---- Frames of the interpreter ---- */

/* Finds the method of a frame that is being made: it is in a register. */
static const struct java_method *entered(struct java_methods *m, struct jit *jit,
					 const struct java_stack *s)
{
	return find_method(m, jit, s->regs->r[RBX]);
}

/* Returns the offset of the bytecode at an address in a method, or -1 if it is not there. */
static int64_t offset_of(const struct java_method *method, uint64_t bytecode)
{
	return bytecode >= method->code && bytecode - method->code < method->code_size ?
		       (int64_t)(bytecode - method->code) :
		       -1;
}

/*
 * Returns the line at which a frame is, whose word for the present bytecode is @bytecode; 0: none is
 * known. The innermost one has stored there where it called last; a register has where it is now.
 */
static unsigned int line_of(const struct java_method *method, const struct java_stack *s,
			    unsigned int i, uint64_t bytecode)
{
	const int64_t at = offset_of(method, i ? bytecode : s->regs->r[R13]);

	return at < 0 ? 0 : java_method_line(method, (uint32_t)at);
}

/*
 * Finds the method of a frame of the interpreter, and its line. The caller's stack pointer tells where
 * the frame is. Returns NULL if it is not known for sure.
 */
static const struct java_method *interpreted(struct java_methods *m, struct jit *jit,
					     const struct java_stack *s, unsigned int i,
					     unsigned int *line)
{
	const uint64_t sp = s->native.sps[i], top = s->native.sps[i + 1];
	const uint64_t fp = top - 2 * WORD;
	uint64_t words[LOWEST];
	const struct java_method *method;

	*line = 0;
	if (top < sp || top - sp < (2 + LOWEST) * WORD)
		return i ? NULL : entered(m, jit, s);
	if (s->read(s->arg, fp - sizeof(words), words, sizeof(words)))
		return NULL;
	method = find_method(m, jit, words[LOWEST - 3]);
	if (!method || !method->cache || words[LOWEST - 6] != method->cache)
		return NULL;
	if (method->code_size ? offset_of(method, words[0]) < 0 : words[0] != 0)
		return NULL;
	*line = line_of(method, s, i, words[0]);
	return method;
}

static bool add_entry(struct java_entries *to, uint64_t pc, uint8_t mark)
{
	if (to->nr == LANGUAGES_MOST)
		return false;
	to->pcs[to->nr] = pc;
	to->marks[to->nr++] = mark;
	return true;
}

/* Returns the address that stands for what a frame of the interpreter runs; 0: it is not known. */
static uint64_t name_interpreted(struct java_methods *m, struct jit *jit, struct languages *all,
				 const struct java_stack *s, unsigned int i)
{
	const struct java_method *method = NULL;
	unsigned int line;

	if (i + 1 < s->native.nr)
		method = interpreted(m, jit, s, i, &line);
	return method ? languages_named(all, &java, method->name, method->file, line) : 0;
}

/* Returns whether the methods of the release are known. Says so if they are not. */
static bool is_known(const struct vmstructs *vm, struct languages *all)
{
	struct reason why;

	if (vm->version >= JAVA_FIRST && vm->version <= JAVA_LAST)
		return true;
	because(&why, "Java %d is not known, only %d to %d are", vm->version, JAVA_FIRST,
		JAVA_LAST);
	languages_refuse(all, &why);
	return false;
}

bool java_place(struct java_methods *methods, struct jit *jit, struct languages *all,
		const struct java_stack *stack, struct java_entries *ret)
{
	const struct native_stack *native = &stack->native;
	unsigned int frames = 0, placed = 0;

	ret->nr = 0;
	if (!find_interpreter(methods, jit) || !is_known(jit_tables(jit), all))
		return false;
	for (unsigned int i = 0; i < native->nr; i++) {
		const bool is_frame = native->pcs[i] >= methods->start &&
				      native->pcs[i] < methods->end;
		const uint64_t pc = is_frame ? name_interpreted(methods, jit, all, stack, i) : 0;

		frames += is_frame;
		placed += pc != 0;
		if (!add_entry(ret, pc ? pc : native->pcs[i],
			       pc ? SHSTK_MARK_PC : native->marks[i]))
			return false;
	}
	if (frames)
		languages_count_named(all, placed == frames);
	return placed;
}
