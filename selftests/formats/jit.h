/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit.h - a few instructions made at run time that call a function, with and
 * without a frame pointer, and the .eh_frame for those without.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __x86_64__
/* push %rbx; sub $32, %rsp; call *%rdi; add $32, %rsp; pop %rbx; ret */
static const uint8_t jit_plain[] = {
	0x53, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3,
};

static const uint8_t jit_plain_cfi[] = {
	0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0e, 48, 0x46, 0x0e, 16, 0x41, 0x0e, 8,
};

/* sub $72, %rsp; call *%rdi; add $72, %rsp; ret */
static const uint8_t jit_other[] = {
	0x48, 0x83, 0xec, 0x48, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x48, 0xc3,
};

static const uint8_t jit_other_cfi[] = { 0x44, 0x0e, 80, 0x46, 0x0e, 8 };

/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const uint8_t jit_fp[] = {
	0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3,
};

/* A CIE of version 1 without augmentation: CFA = rsp + 8, return address at CFA - 8. */
static const uint8_t jit_cie[] = {
	0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0,
};
#else
/* sub sp, sp, #48; str x30, [sp, #32]; blr x0; ldr x30, [sp, #32];
 * add sp, sp, #48; ret
 */
static const uint32_t jit_plain[] = {
	0xd100c3ff, 0xf90013fe, 0xd63f0000, 0xf94013fe, 0x9100c3ff, 0xd65f03c0,
};

static const uint8_t jit_plain_cfi[] = { 0x44, 0x0e, 48, 0x44, 0x9e, 2, 0x48, 0xde, 0x44, 0x0e, 0 };

/* stp x19, x30, [sp, #-16]!; blr x0; ldp x19, x30, [sp], #16; ret */
static const uint32_t jit_other[] = {
	0xa9bf7bf3,
	0xd63f0000,
	0xa8c17bf3,
	0xd65f03c0,
};

static const uint8_t jit_other_cfi[] = {
	0x44, 0x0e, 16, 0x93, 2, 0x9e, 1, 0x48, 0x0e, 0, 0xd3, 0xde
};

/* stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #16; ret */
static const uint32_t jit_fp[] = {
	0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0,
};

static const uint8_t jit_cie[] = {
	0, 0, 0, 0, 1, 0, 1, 0x78, 30, 0x0c, 31, 0, 0, 0, 0, 0,
};
#endif

/* Makes anonymous memory with this code, executable and never written again. */
static inline void *jit_make(const void *code, size_t size, size_t at)
{
	size_t room = 65536;
	char *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	memcpy(p + at, code, size);
	__builtin___clear_cache(p, p + room);
	if (mprotect(p, room, PROT_READ | PROT_EXEC))
		return NULL;
	return p + at;
}

/* Writes a section for code at @code: a CIE, an FDE, the terminator. Returns its size in bytes. */
static inline size_t jit_frames(uint8_t *to, const void *code, uint64_t size, const void *cfi,
				size_t cfi_size)
{
	uint64_t start = (uintptr_t)code;
	uint32_t len = sizeof(jit_cie), back;
	uint8_t *p = to;

	memcpy(p, &len, 4);
	memcpy(p + 4, jit_cie, sizeof(jit_cie));
	p += 4 + len;
	len = (4 + 16 + cfi_size + 3) & ~3u;
	memset(p, 0, len + 8);
	memcpy(p, &len, 4);
	back = p + 4 - to;
	memcpy(p + 4, &back, 4);
	memcpy(p + 8, &start, 8);
	memcpy(p + 16, &size, 8);
	memcpy(p + 24, cfi, cfi_size);
	p += 4 + len;
	memset(p, 0, 4);
	return p + 4 - to;
}
