// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compile_known.c - makes rules for code that has no unwind information but is known: start files,
 * the entry point, an image that describes nothing, clone(), the byte behind a signal return, the end of
 * make_fcontext(), and the linker's stubs.
 */
#include <string.h>

#include <linux/shstk_rules.h>

#include "tools/rules/undescribed.h"
#include "tools/rules/compile_private.h"
#include "tools/rules/crt.h"
#include "tools/rules/stub.h"

/* Longest length that is assumed for an entry function without unwind information. */
#define ENTRY_BYTES 128

/* Size in bytes of the code around the system call of clone(). */
#define CLONE_BYTES 10

static bool crt_described(void *arg, uint64_t start, uint64_t end)
{
	return rows_described(arg, start, end);
}

static void add_found(void *arg, uint64_t at, uint64_t rule)
{
	rows_add(arg, at, rule);
}

void add_start_files(struct rows *rows)
{
	const struct crt crt = { rows->img, crt_described, add_found, rows };

	crt_rules(&crt);
}

/*
 * Returns whether row @i marks an outermost frame, and begins one instruction behind the row
 * before.
 */
static bool ends_behind(const struct rows *rows, size_t i)
{
	return i < rows->n && rows->v[i].rule == SHSTK_RULE_END &&
	       rows->v[i].vaddr - rows->v[i - 1].vaddr <= IMAGE_ENTRY_INSN;
}

/*
 * Makes the entry point the outermost frame. ld.so's entry point may have no unwind information.
 * glibc's unwind information for arm64 says only behind the first instruction that this is the
 * outermost frame.
 */
void add_entry(struct rows *rows)
{
	uint64_t entry = rows->img->entry, end = entry + ENTRY_BYTES;
	size_t i = 0;

	if (!entry || entry < rows->img->lo || end > rows->img->hi)
		return;
	while (i < rows->n && rows->v[i].vaddr <= entry)
		i++;
	if (i && rows->v[i - 1].vaddr == entry && ends_behind(rows, i)) {
		rows->v[i - 1].rule = SHSTK_RULE_END;
		rows_sort(rows);
		return;
	}
	if (i && rows->v[i - 1].rule != SHSTK_RULE_NONE)
		return;
	if (i == rows->n || rows->v[i].vaddr > end)
		rows_add(rows, end, SHSTK_RULE_NONE);
	rows_add(rows, entry, SHSTK_RULE_END);
	rows_sort(rows);
}

void add_undescribed(struct rows *rows)
{
	const struct undescribed search = { rows->img, add_found, rows };

	undescribed_rules(&search);
	rows_sort(rows);
}

/*
 * Returns whether @code is the code of clone() that the C library for x86-64 leaves undescribed:
 * "syscall; test %rax, %rax; jl; je; ret".
 */
static bool is_clone(const uint8_t *code, size_t avail)
{
	static const uint8_t bytes[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0, 0x74, 0, 0xc3 };

	if (!code || avail < CLONE_BYTES)
		return false;
	/* The second byte of each jump is its target, so it is not compared. */
	for (unsigned int i = 0; i < CLONE_BYTES; i++)
		if (code[i] != bytes[i] && i != 6 && i != 8)
			return false;
	return true;
}

/*
 * Adds a clone() rule if row @i says that nothing is known from there on and the code is the C
 * library's clone().
 */
static void find_clone(struct rows *rows, size_t i)
{
	uint64_t at = rows->v[i].vaddr, end = at + CLONE_BYTES;
	uint64_t next = i + 1 < rows->n ? rows->v[i + 1].vaddr : UINT64_MAX;
	const uint8_t *code;
	size_t avail;

	if (rows->v[i].rule != SHSTK_RULE_NONE || next < end)
		return;
	code = elf_image_at(rows->img, at, &avail);
	if (!is_clone(code, avail))
		return;
	rows->v[i].rule = SHSTK_RULE_CLONE;
	if (next > end)
		rows_add(rows, end, SHSTK_RULE_NONE);
}

/*
 * Extends a signal return by one byte. It is a system call: while the kernel runs it, the program
 * counter is behind it, where the unwind information may have ended.
 */
static void extend_signal_return(struct rows *rows, size_t i)
{
	if (i && rows->v[i].rule == SHSTK_RULE_NONE && rows->v[i - 1].rule == SHSTK_RULE_SIGNAL &&
	    (i + 1 == rows->n || rows->v[i + 1].vaddr > rows->v[i].vaddr + 1))
		rows->v[i].vaddr++;
}

/**
 * struct uncovered_code - code that has no unwind information
 * @rows: receives the rules that are found.
 * @start: address of the code.
 */
struct uncovered_code {
	struct rows *rows;
	uint64_t start;
};

static void add_stub(void *arg, size_t offset, uint64_t rule)
{
	struct uncovered_code *g = arg;

	rows_add(g->rows, g->start + offset, rule);
}

/* Looks for stubs of the linker in a range of code without unwind information. */
static void find_stubs(struct rows *rows, uint64_t start, uint64_t end)
{
	struct uncovered_code gap = { rows, start };
	struct stubs stubs = { .add = add_stub, .arg = &gap };

	start = (start + 3) & ~3ull;
	gap.start = start;
	stubs.code = start < end ? elf_image_at(rows->img, start, &stubs.size) : NULL;
	if (!stubs.code)
		return;
	if (stubs.size > end - start)
		stubs.size = end - start;
	stub_rules_arm64(&stubs);
}

/*
 * Looks in a range of code without unwind information for that to which the outermost function of a stack returns that
 * Boost.Context made (struct machine.context_end). The rule of a return address is that of the byte in front of
 * it, which is the last one of a jump here.
 */
static void find_context_ends(struct rows *rows, uint64_t start, uint64_t end)
{
	const struct machine *m = rows->img->m;
	size_t size;
	const uint8_t *code = elf_image_at(rows->img, start, &size), *at = code;

	if (!code)
		return;
	size = size < end - start ? size : end - start;
	while ((at = memmem(at, code + size - at, m->context_end, m->context_size))) {
		uint64_t vaddr = start + (at - code), behind = vaddr + m->context_size + 4;

		if (machine_ends_context(m, at, code + size - at)) {
			rows_add(rows, vaddr + m->context_at - 1, SHSTK_RULE_END);
			if (behind < end)
				rows_add(rows, behind, SHSTK_RULE_NONE);
		}
		at++;
	}
}

/* Calls @find for each range of code without unwind information: between other code, and in front of it. */
static void each_gap(struct rows *rows,
		     void (*find)(struct rows *rows, uint64_t start, uint64_t end))
{
	const struct elf_image *img = rows->img;
	uint64_t first = rows->n ? rows->v[0].vaddr : 0;
	size_t n = rows->n;

	for (unsigned int i = 0; i < img->nload; i++)
		if (img->load[i].exec && img->load[i].vaddr < first)
			find(rows, img->load[i].vaddr, first);
	for (size_t i = 0; i < n; i++)
		if (rows->v[i].rule == SHSTK_RULE_NONE)
			find(rows, rows->v[i].vaddr, i + 1 < n ? rows->v[i + 1].vaddr : img->hi);
}

void add_known_code(struct rows *rows)
{
	unsigned int arch = rows->img->m->arch;
	size_t n = rows->n;

	for (size_t i = 0; i < n && arch == SHSTK_ARCH_X86; i++) {
		extend_signal_return(rows, i);
		find_clone(rows, i);
	}
	if (arch == SHSTK_ARCH_ARM64)
		each_gap(rows, find_stubs);
	rows_sort(rows);
	if (rows->img->m->context_size)
		each_gap(rows, find_context_ends);
	rows_sort(rows);
}
