// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hidden.c - finds what libruby does not export, from 3.3 on: by the code of functions that it exports.
 *
 * Two of these read a member of the thread's execution context, and so begin with the address of what
 * __tls_get_addr() needs for it; two others read a member of the virtual machine. Only the very code that is
 * expected counts, with the offsets that the version has, and both functions have to say the same.
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
#include "tools/language/ruby/hidden.h"

#define CODE_BYTES 48
#define MAX_MODULES 4096 /* as of what was found by a symbol */

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

/* Passes a load of the word at an offset from what rax has to rax. */
static bool pass_member(struct code *c, uint8_t offset)
{
	return pass(c, (const uint8_t[]){ 0x48, 0x8b, 0x40, offset }, 4);
}

/*
 * Returns what a function gives __tls_get_addr() for the execution context, of which it reads the member
 * at that offset first; 0: it does not.
 */
static uint64_t context_of(const struct language_module *m, uint64_t addr, uint8_t member)
{
	struct code c;
	uint64_t ret;

	if (!begin(m, addr, &c) || !pass(&c, "\x48\x83\xec\x08", 4) || /* sub $8,%rsp */
	    !pass(&c, "\x66\x48\x8d\x3d", 4)) /* data16 lea ...(%rip),%rdi */
		return 0;
	ret = pass_distance(&c);
	if (!pass(&c, "\x66\x66\x48\xe8", 4)) /* data16 data16 rex.W call */
		return 0;
	pass_distance(&c);
	return pass(&c, "\x48\x8b\x00", 3) && pass_member(&c, member) ? ret : 0;
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
	const uint64_t index = context_of(m, h->values[RUBY_ERRINFO], h->errinfo);
	struct {
		uint64_t module, offset;
	} words;

	*machine = machine_of(m, h->values[RUBY_GC_COUNT]);
	if (!index || index != context_of(m, h->values[RUBY_THREAD_CURRENT], h->thread) ||
	    !*machine || *machine != machine_of(m, h->values[RUBY_DURING_GC]))
		return -ENOENT;
	if (m->read(m->arg, index, &words, sizeof(words)) || !words.module)
		return -EAGAIN;
	if (words.module > MAX_MODULES)
		return -ENOENT;
	*context = (struct context_variable){ words.module, (int64_t)words.offset, 0 };
	return 0;
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
