// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * patch.c - glibc's own uses of setjmp().
 *
 * ld.so leaves a failed dlopen() or dlsym() by its private copy of longjmp(), and libc leaves a
 * cancelled thread by another copy. Neither is called by a symbol that could be interposed. In
 * every glibc without shadow stack support both copies have been the same few instructions. This
 * code looks for them and compares them instruction by instruction. Only if all of them match, they
 * are replaced by a jump to this object's functions, which fill the same jmp_buf. Otherwise nothing
 * is changed.
 */
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "start.h"

/* Elements of a pattern that are not a byte: an instruction with more than one encoding. */
#define ANY 0x100 /* any byte */
#define GUARD 0x200 /* xor with the pointer guard, | rex | reg */
#define GUARD_OP(rex, reg) (GUARD | (rex) << 10 | (reg))

/* The bytes of the patterns, an instruction after the other. */
/* clang-format off */
static const unsigned int sigsetjmp_code[] = {
	0x48, 0x89, 0x1f, 0x48, 0x89, 0xe8, GUARD_OP(0x48, 0),
	0x48, 0xc1, 0xc0, 0x11, 0x48, 0x89, 0x47, 0x08,
	0x4c, 0x89, 0x67, 0x10, 0x4c, 0x89, 0x6f, 0x18,
	0x4c, 0x89, 0x77, 0x20, 0x4c, 0x89, 0x7f, 0x28,
	0x48, 0x8d, 0x54, 0x24, 0x08, GUARD_OP(0x48, 2),
	0x48, 0xc1, 0xc2, 0x11, 0x48, 0x89, 0x57, 0x30,
	0x48, 0x8b, 0x04, 0x24, GUARD_OP(0x48, 0),
	0x48, 0xc1, 0xc0, 0x11, 0x48, 0x89, 0x47, 0x38,
};
/* clang-format on */

/* clang-format off */
static const unsigned int longjmp_code[] = {
	0x4c, 0x8b, 0x47, 0x30, 0x4c, 0x8b, 0x4f, 0x08,
	0x48, 0x8b, 0x57, 0x38, 0x49, 0xc1, 0xc8, 0x11, GUARD_OP(0x4c, 0),
	0x49, 0xc1, 0xc9, 0x11, GUARD_OP(0x4c, 1),
	0x48, 0xc1, 0xca, 0x11, GUARD_OP(0x48, 2),
	0x48, 0x8b, 0x1f, 0x4c, 0x8b, 0x67, 0x10, 0x4c, 0x8b, 0x6f, 0x18,
	0x4c, 0x8b, 0x77, 0x20, 0x4c, 0x8b, 0x7f, 0x28, 0x89, 0xf0,
	0x4c, 0x89, 0xc4, 0x4c, 0x89, 0xcd, 0xff, 0xe2,
};
/* clang-format on */

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/*
 * Matches "xor guard, reg" with %fs:0x30 or with ld.so's copy relative to rip. Returns the bytes
 * matched, or 0.
 */
static size_t match_guard(const unsigned char *p, size_t room, unsigned int op)
{
	unsigned char rex = (op >> 10) & 0xff, reg = op & 7;

	if (room >= 9 && p[0] == 0x64 && p[1] == rex && p[2] == 0x33 && p[3] == (0x04 | reg << 3) &&
	    p[4] == 0x25 && p[5] == 0x30 && !p[6] && !p[7] && !p[8])
		return 9;
	if (room >= 7 && p[0] == rex && p[1] == 0x33 && p[2] == (0x05 | reg << 3))
		return 7;
	return 0;
}

/*
 * Matches a pattern. Returns the bytes matched, or 0. Single nops are probe points and are skipped.
 */
static size_t match(const unsigned char *p, size_t room, const unsigned int *code, size_t count)
{
	size_t at = 0, n;

	for (size_t i = 0; i < count; i++) {
		while (at < room && p[at] == 0x90)
			at++;
		if (code[i] & GUARD) {
			n = match_guard(p + at, room - at, code[i]);
			if (!n)
				return 0;
			at += n;
		} else if (at >= room || p[at] != code[i]) {
			return 0;
		} else {
			at++;
		}
	}
	return at;
}

struct code_range {
	unsigned char *start;
	size_t size;
};

struct libc_search {
	uint64_t libc_addr; /* an address in libc */
	uint64_t ld_base; /* load address of ld.so */
	struct code_range libc;
	struct code_range ld;
};

static int find_texts(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct libc_search *s = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		struct code_range t;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		t.start = (unsigned char *)(info->dlpi_addr + ph->p_vaddr);
		t.size = ph->p_memsz;
		if (info->dlpi_addr == s->ld_base)
			s->ld = t;
		else if (s->libc_addr - (uint64_t)(uintptr_t)t.start < t.size)
			s->libc = t;
	}
	return 0;
}

static bool write_jump(unsigned char *at, void (*to)(void))
{
	uintptr_t page = (uintptr_t)at & ~4095ul;
	size_t size = ((uintptr_t)at + 14 - page + 4095) & ~4095ul;
	uint64_t target = (uintptr_t)to;

	if (sys3(SYS_mprotect, page, size, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	/* jmp *0(%rip), followed by the address */
	memcpy(at, "\xff\x25\0\0\0", 6);
	memcpy(at + 6, &target, 8);
	sys3(SYS_mprotect, page, size, PROT_READ | PROT_EXEC);
	return true;
}

/* Patches every copy, at most four. Returns the number of copies, or 0 on failure. */
static unsigned int patch_all(const struct code_range *t, const unsigned int *code, size_t count,
			      void (*to)(void))
{
	unsigned int n = 0;

	/* Functions in assembly begin at multiples of 16. */
	for (size_t i = 0; i + 64 < t->size && n < 4; i += 16) {
		if (t->start[i] != code[0] || t->start[i + 1] != code[1] ||
		    !match(t->start + i, t->size - i, code, count))
			continue;
		if (!write_jump(t->start + i, to))
			return 0;
		n++;
	}
	return n;
}

static bool patch_text(const struct code_range *t)
{
	return t->size &&
	       patch_all(t, sigsetjmp_code, COUNT(sigsetjmp_code),
			 (void (*)(void))start_sigsetjmp) &&
	       patch_all(t, longjmp_code, COUNT(longjmp_code), (void (*)(void))start_longjmp);
}

const char *start_patch(void)
{
	struct libc_search s = {
		.libc_addr = (uintptr_t)start_real_longjmp,
		.ld_base = getauxval(AT_BASE),
	};

	dl_iterate_phdr(find_texts, &s);
	if (!patch_text(&s.ld))
		return "the longjmp() inside ld.so";
	if (!patch_text(&s.libc))
		return "the longjmp() inside libc";
	start_jumps_patched = true;
	return NULL;
}
