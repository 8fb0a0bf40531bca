// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * recognise.c - finds out which Python a program or library is, and where its frames are found.
 *
 * Programs and libpython export what is needed, also without debug information. The thread state of
 * a thread is found as PyGILState_GetThisThreadState() finds it: _PyRuntime has the key of a value
 * that each thread has. From 3.15 on, that function reads a thread-local variable without a symbol, so its code
 * tells where that is. That is right in all versions, whether or not the thread has the GIL.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/elf/symbols.h"
#include "tools/language/hidden_variable.h"
#include "tools/language/python/python.h"
#include "tools/language/python/versions.h"

/**
 * struct python_symbols - what a file has
 * @version: address of Py_Version; the others are addresses of symbols, too; 0: there is none.
 * @state_reader: the function that returns a thread's state.
 * @tasks: there is what tells of tasks.
 * @machine: e_machine of the file.
 * @thread: 0, or why it is not known how far threads lie below their thread pointers, a negative errno.
 * @thread_below: how far they do.
 */
struct python_symbols {
	uint64_t version;
	uint64_t runtime;
	uint64_t code_type;
	uint64_t coroutine_type;
	uint64_t text_type;
	uint64_t run;
	uint64_t run_size;
	uint64_t state_reader;
	bool tasks;
	GElf_Half machine;
	int thread;
	uint64_t thread_below;
};

bool python_may_be(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	/*
	 * A program that has the interpreter in it may have any name, but then it has no library.
	 */
	return !strncmp(name, "python3", 7) || !strncmp(name, "libpython3", 10);
}

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct python_symbols *f = arg;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF)
		return 0;
	if (!strcmp(name, "Py_Version"))
		f->version = sym->st_value;
	else if (!strcmp(name, "_PyRuntime"))
		f->runtime = sym->st_value;
	else if (!strcmp(name, "PyCode_Type"))
		f->code_type = sym->st_value;
	else if (!strcmp(name, "PyCoro_Type"))
		f->coroutine_type = sym->st_value;
	else if (!strcmp(name, "PyUnicode_Type"))
		f->text_type = sym->st_value;
	else if (!strcmp(name, PYTHON_STATE_READER))
		f->state_reader = sym->st_value;
	else if (!strcmp(name, "_PyEval_EvalFrameDefault")) {
		f->run = sym->st_value;
		f->run_size = sym->st_size;
	}
	return 0;
}

/* Finds out what differs between machines. */
static void find_machine(const struct language_module *m, Elf *elf, uint64_t bias,
			 struct python_symbols *ret)
{
	GElf_Ehdr header;

	if (gelf_getehdr(elf, &header))
		ret->machine = header.e_machine;
	if (ret->machine == EM_AARCH64)
		ret->thread = python_find_thread(m, elf, bias, &ret->thread_below);
}

static bool find_symbols(const struct language_module *m, struct python_symbols *ret)
{
	uint64_t bias = 0, bytes;
	Elf *elf;

	*ret = (struct python_symbols){ 0 };
	elf = shstk_elf_begin(m->fd);
	if (!elf)
		return false;
	bytes = symbols_bytes(elf);
	if (symbols_bias(elf, m->start, m->offset, &bias) &&
	    shstk_account_take(m->account, bytes)) {
		symbols_walk(elf, take_symbol, ret);
		if (ret->version && ret->runtime)
			find_machine(m, elf, bias, ret);
		shstk_account_give(m->account, bytes);
	}
	elf_end(elf);
	if (!ret->version || !ret->runtime || !ret->code_type || !ret->run)
		return false;
	ret->version += bias;
	ret->runtime += bias;
	ret->code_type += bias;
	/* Tasks are named only where both are there. */
	if (ret->coroutine_type && ret->text_type) {
		ret->coroutine_type += bias;
		ret->text_type += bias;
		ret->tasks = true;
	}
	ret->run += bias;
	ret->state_reader += ret->state_reader ? bias : 0;
	return true;
}

/* Compares with the interpreter's own table. Returns 0, or a negative errno with the reason. */
static int check_offsets(const struct language_module *m, const struct python_version *v,
			 uint64_t runtime, struct reason *why)
{
	const struct python_check *c;
	uint64_t words[PYTHON_WORDS];
	int err;

	if (!v->checks[0].word)
		return 0;
	err = m->read(m->arg, runtime, words, sizeof(words));
	if (err)
		return -EAGAIN;
	if (memcmp(words, PYTHON_COOKIE, 8)) {
		because(why, "Python 3.%d: its table _Py_DebugOffsets does not begin with \"%s\"",
			v->minor, PYTHON_COOKIE);
		return -EINVAL;
	}
	if (words[2]) {
		because(why, "Python 3.%d: a free-threaded build, which is not known", v->minor);
		return -EINVAL;
	}
	c = python_differs(v, words);
	if (!c)
		return 0;
	because(why, "Python 3.%d: %s in its table _Py_DebugOffsets is %llu, not %u", v->minor,
		c->name, (unsigned long long)words[c->word], c->value);
	return -EINVAL;
}

/* Returns the index of the word at @offset of a code object. */
static uint32_t word_at(uint32_t offset)
{
	return (offset - PYTHON_TYPE) / 8;
}

/*
 * All words from the type to the line table stay as they are while the code object exists, but for
 * the counter of warm-ups that 3.11 has beside the flags. 3.11 has no number that tells code
 * objects apart, so what the name and the line table are is looked at, too.
 */
static void set_identity(const struct python_version *v, struct language_target *t)
{
	const uint32_t last = word_at(PYTHON_LINETABLE);

	t->key_words = ((1u << last) - 1);
	if (v->minor > 11)
		return;
	t->key_words &= ~(1u << (word_at(48) - 1));
	t->behind[t->nr_behind++] =
		(struct language_behind){ word_at(PYTHON_QUALNAME), PYTHON_HASH };
	t->behind[t->nr_behind++] = (struct language_behind){ last, PYTHON_LENGTH };
	t->behind[t->nr_behind++] = (struct language_behind){ last, PYTHON_BYTES };
}

/*
 * A task is run by a function of asyncio.Handle, whose variable "self" has what is called: a method of
 * the task. So it is in the event loop of asyncio itself.
 */
static void set_task(const struct python_version *v, const struct python_symbols *f,
		     const struct language_text *text, struct language_task *t)
{
	*t = (struct language_task){
		.kind = 8 * (v->owner & 3),
		.in_object = PYTHON_OWNER_GENERATOR,
		.object = v->generator_frame,
		.type_at = PYTHON_TYPE,
		.type = f->coroutine_type,
		.first = v->locals,
		.callback = PYTHON_CALLBACK,
		.holders = { PYTHON_STEP_TASK, PYTHON_METHOD_SELF },
		.coroutine = v->task_coroutine,
		.name = v->task_coroutine + 8,
		.name_type = f->text_type,
		.text = *text,
		.waits = { v->waits[0], v->waits[1] },
	};
}

/* Returns the address of the key of threads' states; 0: there is none. */
static uint64_t key_of(const struct python_version *v, const struct python_symbols *f)
{
	if (!v->key)
		return 0;
	return f->runtime + v->key + (f->machine == EM_AARCH64 ? v->key_arm64 : 0);
}

static void set_target(const struct python_version *v, const struct python_symbols *f,
		       struct language_target *t)
{
	const struct language_text text = {
		.length_at = PYTHON_LENGTH,
		.head = v->wide,
		.unit = 4,
	};

	*t = (struct language_target){
		.key_at = key_of(v, f),
		.by_variable = !v->key,
		.thread_below = f->thread_below,
		.slot = f->machine == EM_AARCH64 ? PYTHON_FIRST_VALUE_ARM64 : PYTHON_FIRST_VALUE,
		.thread_at = v->state_thread,
		.base_word_at = v->state_top,
		.frames = { 1, { v->state_frames }, v->previous },
		.frame_bytes = v->frame_bytes,
		.code_at = v->code,
		.instruction_at = v->instruction,
		.flags_at = v->owner & ~3u,
		.kind_bits = python_kind_bits(v),
		.code_mask = ~(uint64_t)v->code_tags,
		.code_from = PYTHON_TYPE,
		.type_mask = UINT64_MAX,
		.type = f->code_type,
		.instructions = v->instructions,
		.texts = { text,
			   text,
			   { word_at(PYTHON_LINETABLE), 0, PYTHON_LENGTH, PYTHON_BYTES, 1 } },
	};
	t->texts[PYTHON_TEXT_NAME].word = word_at(PYTHON_QUALNAME);
	t->texts[PYTHON_TEXT_FILE].word = word_at(PYTHON_FILENAME);
	if (v->cframes) {
		t->frames.steps[1] = v->cframe_frame;
		t->frames.nr_steps = 2;
	}
	if (v->entry) {
		t->marks = (struct language_chain){ 1, { v->state_frames }, v->cframe_previous };
		t->mark_at = v->cframe_frame;
	}
	set_identity(v, t);
	if (f->tasks)
		set_task(v, f, &text, &t->task);
}

/* Finds the variable with threads' states, if there is no key. Returns 0, -EAGAIN, or -EINVAL with the reason. */
static int find_variable(const struct language_module *m, const struct python_version *v,
			 const struct python_symbols *f, struct context_variable *ret,
			 struct reason *why)
{
	const struct hidden_variable_reader reader = { m->read, m->arg, f->machine, f->state_reader,
						       HIDDEN_VARIABLE_RESULT };
	const int err = v->key ? 0 : hidden_variable_find(&reader, ret);

	if (err != -ENOENT)
		return err;
	because(why, "Python 3.%d: the code of its " PYTHON_STATE_READER "() is not known",
		v->minor);
	return -EINVAL;
}

int python_recognise(const struct language_module *m, struct language_found *ret,
		     struct reason *why)
{
	struct context_variable variable = { 0 };
	const struct python_version *v;
	uint8_t code[PYTHON_BEGINNING];
	unsigned long version;
	struct python_symbols f;
	int err;

	if (!find_symbols(m, &f))
		return -ENOENT;
	if (m->read(m->arg, f.version, &version, sizeof(version)))
		return -EAGAIN;
	v = version >> 24 == 3 ? python_version(version >> 16 & 255) : NULL;
	if (!v) {
		because(why, "Python %lu.%lu is not known", version >> 24, version >> 16 & 255);
		return -EINVAL;
	}
	if (f.machine == EM_AARCH64 && !v->arm64) {
		because(why, "Python 3.%d on arm64 is not known", v->minor);
		return -EINVAL;
	}
	if (f.thread)
		return f.thread;
	err = check_offsets(m, v, f.runtime, why);
	if (!err)
		err = find_variable(m, v, &f, &variable, why);
	if (err)
		return err;
	*ret = (struct language_found){
		.version = v,
		.base_frame = v->base_frame,
		.run_start = f.run,
		.run_end = f.run + f.run_size,
	};
	/* If it cannot be read, all of it may be in the middle of a change. */
	if (m->read(m->arg, f.run, code, sizeof(code)))
		memset(code, 0, sizeof(code));
	python_find_unsure(v, f.machine, code, ret);
	set_target(v, &f, &ret->target);
	ret->target.variable = variable;
	return 0;
}
