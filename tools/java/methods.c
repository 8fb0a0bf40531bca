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

#include "tools/java/inlined.h"
#include "tools/java/jit_code.h"
#include "tools/java/method.h"
#include "tools/java/methods.h"

#define WORD 8
#define KEPT 2048 /* methods that are kept, a power of two */
#define PLACES 512 /* places in compiled code that are kept, a power of two */
#define MAX_BYTES (8u << 20) /* of methods, in a process */
#define MAX_LINES (64u << 20) /* bytes of tables of lines, in all processes */
#define SHORT_TABLE 1024 /* bytes of a table of lines that is searched in about a microsecond */
#define FRESH 1000000000 /* ns for which a method is kept */
#define ASK_AGAIN 10000000 /* ns until the interpreter is looked for again */
#define ARGUMENTS 258 /* words that arguments may take, with what aligns them */
#define LOWEST 8 /* words of a frame below its frame pointer that are read */
#define RBX 3 /* DWARF numbers of registers: the method that is entered */
#define R13 13 /* and the present bytecode, while the interpreter runs */

/* Begin of HotSpot's name for the code that takes frames out of the heap, and what is shown for these. */
#define THAWS "StubRoutines (continuation"
#define IN_HEAP "[callers in the heap]"

/* The option with which compiled code tells its methods between calls, too. */
#define TELLS "DebugNonSafepoints"

static const struct language java = { .module = "[Java]" };

/* What is known of an address: a method, or that none is there (@it is NULL). */
struct kept_method {
	uint64_t address;
	uint64_t time;
	struct java_method *it;
};

/*
 * The methods at a place in compiled code. @exact: it is the place of an instruction, not a return
 * address. @thaws: the place is in code that takes the next frames of a
 * virtual thread out of the heap, when the last one on the stack returns.
 */
struct kept_place {
	uint64_t pc;
	uint64_t time;
	bool exact;
	bool thaws;
	unsigned int nr;
	struct java_scope scopes[INLINED_MAX];
};

/**
 * struct java_methods - the methods of a process
 * @start: address of the interpreter.
 * @end: first address behind it; 0: it is not known.
 * @asked: jit_time() when it was looked for last.
 * @told: whether compiled code tells its methods between calls, too; if @told_known.
 * @told_known: this was looked for.
 * @bytes: bytes that the methods take.
 * @kept: the methods, each at a place that its address tells.
 * @places: places in compiled code, in the same way.
 */
struct java_methods {
	uint64_t start;
	uint64_t end;
	uint64_t asked;
	bool told;
	bool told_known;
	size_t bytes;
	struct kept_method kept[KEPT];
	struct kept_place places[PLACES];
};

struct java_methods *java_methods_create(void)
{
	return calloc(1, sizeof(struct java_methods));
}

/* Bytes of all tables of lines that are kept. */
static size_t bytes_of_lines;

static size_t size_of(const struct java_method *method)
{
	return sizeof(*method) + method->lines_size;
}

static void forget(struct java_methods *m, struct kept_method *k)
{
	if (k->it) {
		m->bytes -= size_of(k->it);
		bytes_of_lines -= k->it->lines_size;
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

/* If the tables of lines of all processes take too much memory, the method is kept without its lines. */
static void keep(struct java_methods *m, struct kept_method *k, const struct kept_method *new)
{
	forget(m, k);
	if (new->it && m->bytes + size_of(new->it) > MAX_BYTES)
		forget_all(m);
	*k = *new;
	if (!new->it)
		return;
	if (bytes_of_lines + new->it->lines_size > MAX_LINES)
		java_method_deinit(new->it);
	m->bytes += size_of(new->it);
	bytes_of_lines += new->it->lines_size;
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

/*
 * Returns the line of the bytecode at an offset; 0: none is known. A long table, which another process may
 * have made so that each search takes long, is searched within a look-up.
 */
static unsigned int find_line(struct jit *jit, const struct java_method *method, uint32_t at)
{
	struct jit_look_up look_up;
	unsigned int ret;

	if (method->lines_size <= SHORT_TABLE)
		return java_method_line(method, at);
	if (!jit_begin_look_up(jit, &look_up))
		return 0;
	ret = java_method_line(method, at);
	jit_end_look_up(jit, &look_up);
	return ret;
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
 * known. The innermost one has stored there where it called last; a register has where it is now. What that
 * register had where a signal interrupted an outer one is not known.
 */
static unsigned int line_of(struct jit *jit, const struct java_method *method,
			    const struct java_stack *s, unsigned int i, uint64_t bytecode)
{
	const int64_t at = offset_of(method, i ? bytecode : s->regs->r[R13]);

	if (at < 0 || (i && s->native.marks[i] & SHSTK_MARK_PC))
		return 0;
	return find_line(jit, method, (uint32_t)at);
}

/*
 * Returns the method of a frame of the interpreter, which is below the frame pointer @fp; NULL if there is
 * none. @bytecode receives its word for the present bytecode.
 */
static const struct java_method *method_at(struct java_methods *m, struct jit *jit,
					   const struct java_stack *s, uint64_t fp,
					   uint64_t *bytecode)
{
	const struct java_method *method;
	uint64_t words[LOWEST];

	if (s->read(s->arg, fp - sizeof(words), words, sizeof(words)))
		return NULL;
	*bytecode = words[0];
	method = find_method(m, jit, words[LOWEST - 3]);
	if (!method || !method->cache || words[LOWEST - 6] != method->cache)
		return NULL;
	return (method->code_size ? offset_of(method, words[0]) >= 0 : !words[0]) ? method : NULL;
}

/*
 * Returns the frame pointer of a frame that compiled code has called: an adapter has put arguments between
 * the caller's stack pointer @top and the frame, with the return address @ra once more. 0: it is not found.
 */
static uint64_t find_adapted(const struct java_stack *s, uint64_t sp, uint64_t top, uint64_t ra)
{
	const uint64_t least = sp + LOWEST * WORD;
	uint64_t words[3]; /* the caller's stack pointer, its frame pointer, the return address */

	for (unsigned int i = 1; i <= ARGUMENTS; i++) {
		const uint64_t fp = top - (2 + i) * WORD;

		if (fp < least || s->read(s->arg, fp - WORD, words, sizeof(words)))
			return 0;
		if (words[0] == top && words[2] == ra)
			return fp;
	}
	return 0;
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
	const struct java_method *method;
	uint64_t bytecode, fp;

	*line = 0;
	if (top < sp || top - sp < (2 + LOWEST) * WORD)
		return i ? NULL : entered(m, jit, s);
	method = method_at(m, jit, s, top - 2 * WORD, &bytecode);
	if (!method) {
		fp = find_adapted(s, sp, top, s->native.pcs[i + 1]);
		method = fp ? method_at(m, jit, s, fp, &bytecode) : NULL;
	}
	if (method)
		*line = line_of(jit, method, s, i, bytecode);
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

/* ---- Compiled code ---- */

/* Returns whether a piece of code takes frames out of the heap. */
static bool does_thaw(const struct vmstructs *vm, const struct codeblob *code)
{
	char text[VM_TEXT];

	return !code->method && vm_read_text(vm, code->name, text) &&
	       !strncmp(text, THAWS, strlen(THAWS));
}

/* Finds the methods at a place in a piece of code. */
static unsigned int find_inlined(struct java_methods *m, const struct vmstructs *vm,
				 const struct codeblob *code, struct kept_place *k)
{
	if (!k->exact)
		return java_inlined(vm, code, k->pc, k->scopes);
	if (!m->told_known)
		m->told = vm_was_given(vm, TELLS);
	m->told_known = true;
	return m->told ? java_inlined_between(vm, code, k->pc, k->scopes) : 0;
}

/*
 * Returns what is known of an address in compiled code. @exact: it is of an instruction, not a return
 * address.
 */
static const struct kept_place *find_place(struct java_methods *m, struct jit *jit, uint64_t pc,
					   bool exact)
{
	struct kept_place *k = &m->places[(pc ^ pc >> 10) % PLACES];
	struct jit_look_up look_up;
	struct codeblob code;
	int err;

	if (k->pc == pc && k->exact == exact && k->time && jit_time(jit) - k->time < FRESH)
		return k;
	if (!jit_begin_look_up(jit, &look_up))
		return NULL;
	err = jit_find_code(jit, pc, &code);
	if (!err || err == -ENOENT || k->pc != pc || k->exact != exact) {
		k->pc = pc;
		k->exact = exact;
		k->time = jit_time(jit);
		k->nr = err ? 0 : find_inlined(m, jit_tables(jit), &code, k);
		k->thaws = !err && does_thaw(jit_tables(jit), &code);
	}
	jit_end_look_up(jit, &look_up);
	return k;
}

/* Returns the line of a method at a place in compiled code; 0: none is known, or it may be another one. */
static unsigned int line_at(struct jit *jit, const struct java_method *method,
			    const struct java_scope *scope)
{
	const unsigned int line = find_line(jit, method, scope->at);

	if (scope->or_at == scope->at || find_line(jit, method, scope->or_at) == line)
		return line;
	return 0;
}

/* Adds a method at a place in compiled code. Returns false if it is not known. */
static bool add_scope(struct java_methods *m, struct jit *jit, struct languages *all,
		      const struct java_scope *scope, struct java_entries *to)
{
	const struct java_method *method = find_method(m, jit, scope->method);
	uint64_t pc;

	if (!method || (method->code_size &&
			(scope->at >= method->code_size || scope->or_at >= method->code_size)))
		return false;
	pc = languages_named(all, &java, method->name, method->file, line_at(jit, method, scope));
	return pc && add_entry(to, pc, SHSTK_MARK_PC);
}

/*
 * Adds the methods that compiled code runs at a return address, if all of them are known. Between such
 * places, HotSpot writes down which method an instruction is of only if an option says so.
 */
static bool add_compiled(struct java_methods *m, struct jit *jit, struct languages *all,
			 const struct java_stack *s, unsigned int i, struct java_entries *to)
{
	const uint64_t pc = s->native.pcs[i];
	const unsigned int before = to->nr;
	const struct kept_place *place;

	if (s->native.marks[i] & SHSTK_MARK_SIGNAL || !jit_has_code(jit, pc))
		return false;
	place = find_place(m, jit, pc, s->native.marks[i] & SHSTK_MARK_PC);
	for (unsigned int k = 0; place && k < place->nr; k++) {
		if (add_scope(m, jit, all, &place->scopes[k], to))
			continue;
		to->nr = before;
		return false;
	}
	return to->nr > before;
}

/*
 * Where a virtual thread has callers in the heap, the outermost frame on its stack returns to the code
 * that takes them out. Puts what stands for these callers in place of that code, or behind it, if it
 * runs. Returns false if it is other code.
 */
static bool add_in_heap(struct java_methods *m, struct jit *jit, struct languages *all,
			const struct java_stack *s, unsigned int i, struct java_entries *to)
{
	const uint64_t pc = s->native.pcs[i];
	const bool runs = !i || !jit_has_code(jit, s->native.pcs[i - 1]);
	const struct kept_place *place =
		jit_has_code(jit, pc) ? find_place(m, jit, pc, s->native.marks[i] & SHSTK_MARK_PC) :
					NULL;
	uint64_t callers;

	if (!place || !place->thaws)
		return false;
	callers = languages_named(all, &java, IN_HEAP, "", 0);
	if (!callers || (runs && !add_entry(to, pc, s->native.marks[i])))
		return false;
	languages_count_in_heap(all);
	return add_entry(to, callers, SHSTK_MARK_PC);
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
	unsigned int frames = 0, named = 0;
	bool placed = false;

	ret->nr = 0;
	if (!find_interpreter(methods, jit) || !is_known(jit_tables(jit), all))
		return false;
	for (unsigned int i = 0; i < native->nr; i++) {
		const bool is_frame = native->pcs[i] >= methods->start &&
				      native->pcs[i] < methods->end;
		const uint64_t pc = is_frame ? name_interpreted(methods, jit, all, stack, i) : 0;

		frames += is_frame;
		named += pc != 0;
		placed |= pc != 0;
		if (!is_frame && (add_compiled(methods, jit, all, stack, i, ret) ||
				  add_in_heap(methods, jit, all, stack, i, ret))) {
			placed = true;
			continue;
		}
		if (!add_entry(ret, pc ? pc : native->pcs[i],
			       pc ? SHSTK_MARK_PC : native->marks[i]))
			return false;
	}
	if (frames)
		languages_count_named(all, named == frames);
	return placed;
}
