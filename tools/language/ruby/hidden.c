// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hidden.c - finds what libruby does not export, from 3.3 on: by the code of functions that it exports.
 *
 * Two of these read a member of the thread's execution context, to which a thread-local variable refers
 * (hidden_variable.h); two others read a member of the virtual machine. Only the very code that is expected
 * counts, with the offsets that the version has, and both functions have to say the same.
 *
 * Instructions of Ruby are addresses in the function that runs them. The unwind information tells where that
 * begins and ends.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "libshstk/cfi.h"
#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "libshstk/unaligned.h"
#include "tools/language/hidden_variable.h"
#include "tools/language/ruby/hidden.h"

#define CODE_BYTES 16

/* The beginning of a function: what is left of it, and its address. */
struct code {
	uint8_t bytes[CODE_BYTES];
	size_t at;
	uint64_t addr;
};

static const char *const names[RUBY_HIDDEN] = {
	[RUBY_ERRINFO] = "rb_errinfo",
	[RUBY_THREAD_CURRENT] = "rb_thread_current",
	[RUBY_GC_COUNT] = "rb_gc_count",
	[RUBY_DURING_GC] = "rb_during_gc",
};

void ruby_hidden_take(struct ruby_hidden *h, const char *name, uint64_t value)
{
	for (int i = 0; i < RUBY_HIDDEN; i++)
		if (!strcmp(name, names[i]))
			h->values[i] = value;
}

/* ---- Code ---- */

/* Passes bytes. Returns whether the code has them. */
static bool pass(struct code *c, const void *bytes, size_t size)
{
	const bool ret = c->at + size <= CODE_BYTES && !memcmp(c->bytes + c->at, bytes, size);

	c->at += ret ? size : 0;
	return ret;
}

/* Passes the distance from what follows it. Returns the address to which it leads. */
static uint64_t pass_distance(struct code *c)
{
	c->at += 4;
	return get_relative(c->bytes + c->at - 4, c->addr + c->at);
}

/* Reads the beginning of a function, and passes what may stand there for branches. */
static bool begin(const struct language_module *m, uint64_t addr, struct code *c)
{
	c->addr = addr;
	c->at = 0;
	if (!addr || m->read(m->arg, addr, c->bytes, sizeof(c->bytes)))
		return false;
	pass(c, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	return true;
}

/* Finds the variable that has the thread's execution context, by a function that reads the member at that offset. */
static int context_of(const struct language_module *m, uint64_t addr, uint8_t member,
		      struct context_variable *ret)
{
	const struct hidden_variable_reader reader = { m->read, m->arg, EM_X86_64, addr, member };

	return hidden_variable_find(&reader, ret);
}

/* Returns the address of the variable with that of the virtual machine, of which a function reads a member; or 0. */
static uint64_t machine_of(const struct language_module *m, uint64_t addr)
{
	struct code c;
	uint64_t ret;

	if (!begin(m, addr, &c) || !pass(&c, "\x48\x8d\x05", 3)) /* lea ...(%rip),%rax */
		return 0;
	ret = pass_distance(&c);
	return pass(&c, "\x48\x8b\x00", 3) ? ret : 0;
}

int ruby_hidden_find(const struct language_module *m, const struct ruby_hidden *h,
		     struct context_variable *context, uint64_t *machine)
{
	const int err = context_of(m, h->values[RUBY_ERRINFO], h->errinfo, context);
	struct context_variable other = { 0 };

	*machine = machine_of(m, h->values[RUBY_GC_COUNT]);
	if (!*machine || *machine != machine_of(m, h->values[RUBY_DURING_GC]) ||
	    err != context_of(m, h->values[RUBY_THREAD_CURRENT], h->thread, &other))
		return -ENOENT;
	if (err)
		return err;
	return context->module == other.module && context->offset == other.offset ? 0 : -ENOENT;
}

/* ---- The function that runs instructions ---- */

/* Returns the section with unwind information, or NULL. */
static Elf_Scn *find_section(Elf *elf, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = shstk_elf_next_named(elf, section, ".eh_frame", header)))
		if (header->sh_type != SHT_NOBITS)
			break;
	return section;
}

/* Finds the function that has an address. Both are as the file has them. */
static bool find_function(const struct cfi_section *sec, uint64_t addr, struct fde *ret)
{
	size_t next = 0;
	int is;

	while ((is = cfi_entry(sec, next, ret, &next)) >= 0)
		if (is && addr >= ret->start && addr < ret->end)
			return true;
	return false;
}

/* The same in a section, which is read if the process may have so much memory taken. */
static bool find_in_section(const struct language_module *m, Elf_Scn *section,
			    const GElf_Shdr *header, uint64_t addr, struct fde *ret)
{
	const Elf_Data *data;
	bool found = false;

	if (!shstk_account_take(m->account, header->sh_size))
		return false;
	data = elf_rawdata(section, NULL);
	if (data && data->d_buf) {
		const struct cfi_section sec = {
			.s = { data->d_buf, data->d_size, header->sh_addr },
		};

		found = find_function(&sec, addr, ret);
	}
	shstk_account_give(m->account, header->sh_size);
	return found;
}

int ruby_hidden_run(const struct language_module *m, uint64_t bias, uint64_t addr, uint64_t *start,
		    uint64_t *end)
{
	Elf *elf = shstk_elf_begin(m->fd);
	Elf_Scn *section;
	GElf_Shdr header;
	struct fde found;
	int ret = -ENOENT;

	section = elf ? find_section(elf, &header) : NULL;
	if (section && find_in_section(m, section, &header, addr - bias, &found)) {
		*start = found.start + bias;
		*end = found.end + bias;
		ret = 0;
	}
	elf_end(elf);
	return ret;
}
