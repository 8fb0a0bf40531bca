// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * recognise.c - finds out which Ruby a program or library is, and where its frames are found.
 *
 * Programs and libruby of 3.1 export what is needed, also without debug information: the execution context
 * of a thread, which is that of the fiber that it runs, and the function that runs frames. Each time the
 * interpreter is entered, there is one call of that. Those of 3.3 export neither (hidden.h).
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/convert/context_variable.h"
#include "tools/elf/symbols.h"
#include "tools/language/ruby/hidden.h"
#include "tools/language/ruby/names.h"
#include "tools/language/ruby/ruby.h"

#define CONTEXT "ruby_current_ec" /* thread-local */
#define VERSION_BYTES 16 /* of the version that are read */
#define LOOKS 64 /* frames that are looked at for an instruction */

/**
 * struct ruby_symbols - the addresses of symbols; 0: there is none
 * @version: the version, a string.
 * @machine: the address of the virtual machine.
 * @run: the function that runs frames.
 * @run_size: its size.
 * @has_context: there is a thread-local variable with the thread's execution context.
 * @bias: what is added to addresses in the file.
 * @id2str: the function that finds the name that has a number.
 * @hidden: what tells of the rest where it is not exported.
 * @context: where the execution context is, then.
 */
struct ruby_symbols {
	uint64_t version;
	uint64_t machine;
	uint64_t run;
	uint64_t run_size;
	bool has_context;
	uint64_t bias;
	uint64_t id2str;
	struct ruby_hidden hidden;
	struct context_variable context;
};

bool ruby_may_be(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "ruby", 4) || !strncmp(name, "libruby", 7);
}

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct ruby_symbols *f = arg;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF)
		return 0;
	if (!strcmp(name, "ruby_version")) {
		/* A program that has to do with Ruby may have a function of that name. */
		f->version = GELF_ST_TYPE(sym->st_info) == STT_OBJECT ? sym->st_value : 0;
	} else if (!strcmp(name, "ruby_current_vm_ptr")) {
		f->machine = sym->st_value;
	} else if (!strcmp(name, "rb_vm_exec")) {
		f->run = sym->st_value;
		f->run_size = sym->st_size;
	} else if (!strcmp(name, "rb_id2str")) {
		f->id2str = sym->st_value;
	} else if (!strcmp(name, CONTEXT)) {
		f->has_context = GELF_ST_TYPE(sym->st_info) == STT_TLS;
	} else {
		ruby_hidden_take(&f->hidden, name, sym->st_value);
	}
	return 0;
}

/* Finds the symbols. Returns false if it is no Ruby. */
static bool find_symbols(const struct language_module *m, struct ruby_symbols *f)
{
	uint64_t bias = 0, bytes;
	Elf *elf;

	*f = (struct ruby_symbols){ 0 };
	elf = shstk_elf_begin(m->fd);
	if (!elf)
		return false;
	bytes = symbols_bytes(elf);
	if (symbols_bias(elf, m->start, m->offset, &bias) &&
	    shstk_account_take(m->account, bytes)) {
		symbols_walk(elf, take_symbol, f);
		shstk_account_give(m->account, bytes);
	}
	elf_end(elf);
	if (!f->version)
		return false;
	f->version += bias;
	f->machine += f->machine ? bias : 0;
	f->run += f->run ? bias : 0;
	f->id2str += f->id2str ? bias : 0;
	f->bias = bias;
	for (int i = 0; i < RUBY_HIDDEN; i++)
		f->hidden.values[i] += f->hidden.values[i] ? bias : 0;
	return true;
}

static int refuse(struct reason *why, const char *version, const char *what)
{
	because(why, "Ruby %s: %s", version, what);
	return -EINVAL;
}

/* Finds what is not exported. Returns 0, -EAGAIN, or -EINVAL with the reason. */
static int find_hidden(const struct language_module *m, struct ruby_symbols *f,
		       const struct ruby_version *v, struct reason *why)
{
	int err;

	f->run = 0;
	f->hidden.errinfo = v->errinfo;
	f->hidden.thread = v->thread;
	err = ruby_hidden_find(m, &f->hidden, &f->context, &f->machine);
	return err == -ENOENT ? refuse(why, v->name, "it does not say where its frames are") : err;
}

/* Finds the version. Returns 0, -EAGAIN, or -EINVAL with the reason. */
static int find_version(const struct language_module *m, struct ruby_symbols *f,
			const struct ruby_version **ret, struct reason *why)
{
	char version[VERSION_BYTES];

	if (m->read(m->arg, f->version, version, sizeof(version)))
		return -EAGAIN;
	version[strnlen(version, sizeof(version) - 1)] = '\0';
	*ret = ruby_version(version);
	if (!*ret) {
		because(why, "Ruby %s is not known", version);
		return -EINVAL;
	}
	if ((*ret)->hidden)
		return find_hidden(m, f, *ret, why);
	if (!f->machine || !f->run || !f->has_context)
		return refuse(why, version, "it does not export where its frames are");
	return 0;
}

static uint64_t word(const struct language_module *m, uint64_t at)
{
	uint64_t ret;

	return at && !m->read(m->arg, at, &ret, sizeof(ret)) ? ret : 0;
}

/* Returns the first instruction of a frame's function, 0: it has none, or cannot be read. */
static uint64_t first_instruction(const struct language_module *m, uint64_t frame)
{
	const uint64_t function = word(m, frame + RUBY_FRAME_FUNCTION);

	if (word(m, word(m, frame + RUBY_FRAME_VARIABLES)) & RUBY_FRAME_C ||
	    (word(m, function) & RUBY_FUNCTION_MASK) != RUBY_FUNCTION_TYPE)
		return 0;
	return word(m, word(m, word(m, function + RUBY_FUNCTION_BODY) + RUBY_BODY_CODE));
}

/*
 * Finds the function that runs frames: instructions are addresses in it. Those of all frames from @first to
 * @last have to be. Returns 0, -EAGAIN, or -EINVAL with the reason.
 */
static int find_run(const struct language_module *m, const struct ruby_version *v,
		    struct ruby_symbols *f, uint64_t first, uint64_t last, struct reason *why)
{
	for (int i = 0; i < LOOKS && first <= last; i++, first += v->frame_bytes) {
		const uint64_t at = first_instruction(m, first);
		uint64_t end;

		if (!at)
			continue;
		if (!f->run && !ruby_hidden_run(m, f->bias, at, &f->run, &end))
			f->run_size = end - f->run;
		if (at - f->run >= f->run_size)
			return refuse(why, v->name, "which function runs its frames is not known");
	}
	return f->run ? 0 : -EAGAIN;
}

/*
 * Checks offsets by the frames of the main thread, as soon as it has some: their size, where they end,
 * and the flags of the last one.
 */
static int check_frames(const struct language_module *m, const struct ruby_version *v,
			struct ruby_symbols *f, struct reason *why)
{
	const uint64_t thread = word(m, word(m, f->machine) + v->main_thread);
	const uint64_t context = thread ? word(m, thread + v->thread_context) : 0;
	const uint64_t stack = word(m, context), first = word(m, context + RUBY_CONTEXT_FRAME);
	const uint64_t end = stack + 8 * word(m, context + RUBY_CONTEXT_WORDS);
	uint64_t last, flags;

	if (!stack || !first || first == end)
		return -EAGAIN;
	last = end - v->frame_bytes;
	flags = word(m, last + RUBY_FRAME_VARIABLES);
	if (first > stack && first <= last && !((last - first) % v->frame_bytes) &&
	    (word(m, flags) & RUBY_FRAME_KIND) == RUBY_FRAME_OUTERMOST)
		return v->hidden ? find_run(m, v, f, first, last, why) : 0;
	return refuse(why, v->name, "its threads have other members");
}

static uint32_t bit(uint32_t word)
{
	return 1u << (word - 1);
}

static void set_target(const struct ruby_version *v, struct language_target *t)
{
	t->by_variable = 1;
	t->base_word_at = v->stack_begin;
	t->frames = (struct language_chain){ 1, { RUBY_CONTEXT_FRAME }, 0 };
	t->stack =
		(struct language_stack){ v->frame_bytes, RUBY_CONTEXT_STACK, RUBY_CONTEXT_WORDS };
	t->frame_bytes = v->frame_bytes;
	t->code_at = RUBY_FRAME_FUNCTION;
	t->instruction_at = RUBY_FRAME_INSTRUCTION;
	t->flags_at = RUBY_FRAME_VARIABLES;
	t->flags_behind = 1;
	t->no_function = RUBY_FRAME_C;
	t->kind_bits = RUBY_FRAME_C | RUBY_FRAME_FINISH;
	t->code_mask = UINT64_MAX;
	t->holder = (struct language_holder){ RUBY_FUNCTION_BODY, 0, RUBY_FUNCTION_MASK,
					      RUBY_FUNCTION_TYPE };
	t->texts[RUBY_TEXT_LABEL].word = v->label;
	t->texts[RUBY_TEXT_PATH].word = v->path;
	t->strings = v->string;
	t->lines = (struct language_lines){ 8, v->instructions, RUBY_BODY_COUNT, 0 };
	t->ranks = (struct language_ranks){ v->entries, v->nr_entries, v->table, v->entry_bytes };
	/* Lines are read with each frame, so a function is known by its name and where it begins. */
	t->key_words = bit(v->instructions) | bit(v->path) | bit(v->label) | bit(v->first_line);
}

int ruby_recognise(const struct language_module *m, struct language_found *ret, struct reason *why)
{
	const struct ruby_version *v;
	struct ruby_symbols f;
	int err;

	if (!find_symbols(m, &f))
		return -ENOENT;
	err = find_version(m, &f, &v, why);
	if (!err)
		err = check_frames(m, v, &f, why);
	if (!err)
		err = ruby_names_find(m, v, f.id2str, &ret->target.numbered);
	if (err)
		return err;
	ret->target.variable = f.context;
	err = v->hidden ? 0 : context_variable_find(m, CONTEXT, &ret->target.variable);
	if (err == -EAGAIN)
		return err;
	if (err)
		return refuse(why, v->name, "where threads have their frames is not known");
	ret->version = v;
	ret->run_start = f.run;
	ret->run_end = f.run + f.run_size;
	ret->counted = true;
	set_target(v, &ret->target);
	return 0;
}
