// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * shadow_remote.c - shadow stacks of other threads and processes: finds them by the
 * register sets of ptrace, and reads them through the caller's function.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "machine.h"

/* From the kernel's include/uapi/linux/elf.h; headers of C libraries may be older. */
#define NT_X86_SHSTK_ 0x204
#define NT_ARM_GCS_ 0x410
#define NT_RISCV_USER_CFI_ 0x903

/* Number of words that are read at a time. */
#define BATCH 8

static int get_regset(int tid, int note, void *buf, size_t size)
{
	struct iovec iov = { buf, size };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)note, &iov))
		return -errno;
	return iov.iov_len == size ? 0 : -ENODATA;
}

#if defined(__x86_64__)
static int get_pointers(int tid, struct shstk_shadow *s)
{
	struct user_regs_struct regs;
	int err;

	err = get_regset(tid, NT_PRSTATUS, &regs, sizeof(regs));
	if (err)
		return err;
	s->arch = SHSTK_ARCH_X86;
	s->pc = regs.rip;
	/* ENODEV: it is off (fpu/regset.c ssp_active()); EINVAL: the kernel is older. */
	if (get_regset(tid, NT_X86_SHSTK_, &s->ssp, sizeof(s->ssp)))
		return errno == ESRCH ? -ESRCH : -ENODATA;
	return 0;
}
#elif defined(__aarch64__)
static int get_pointers(int tid, struct shstk_shadow *s)
{
	struct {
		uint64_t enabled, locked, gcspr;
	} gcs;
	struct user_regs_struct regs;
	int err;

	err = get_regset(tid, NT_PRSTATUS, &regs, sizeof(regs));
	if (err)
		return err;
	s->arch = SHSTK_ARCH_ARM64;
	s->pc = regs.pc;
	if (get_regset(tid, NT_ARM_GCS_, &gcs, sizeof(gcs)) || !(gcs.enabled & 1))
		return errno == ESRCH ? -ESRCH : -ENODATA;
	s->ssp = gcs.gcspr;
	return 0;
}
#elif defined(__riscv)
static int get_pointers(int tid, struct shstk_shadow *s)
{
	struct {
		uint64_t state, ssp;
	} cfi;
	uint64_t regs[32]; /* pc, x1 to x31 */
	int err;

	err = get_regset(tid, NT_PRSTATUS, regs, sizeof(regs));
	if (err)
		return err;
	s->arch = SHSTK_ARCH_RISCV;
	s->pc = regs[0];
	/* Bit 3: shadow stacks are on. */
	if (get_regset(tid, NT_RISCV_USER_CFI_, &cfi, sizeof(cfi)) || !(cfi.state & 8))
		return errno == ESRCH ? -ESRCH : -ENODATA;
	s->ssp = cfi.ssp;
	return 0;
}
#else
static int get_pointers(int tid, struct shstk_shadow *s)
{
	(void)tid;
	(void)s;
	return -ENODATA;
}
#endif

/*
 * Returns the end of the mapping that contains @addr or ends at it, or 0 if there is none.
 * @addr is the end of the mapping if the shadow stack is empty: on x86 before the first
 * call, on riscv as long as no function has pushed.
 */
static uint64_t mapping_end(int tid, uint64_t addr)
{
	unsigned long long start, end;
	char line[PATH_MAX + 128];
	uint64_t ret = 0;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/maps", tid);
	f = fopen(line, "re");
	if (!f)
		return 0;
	while (!ret && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &start, &end) == 2 && addr >= start && addr <= end)
			ret = end;
	}
	fclose(f);
	return ret;
}

SHSTK_API int shstk_shadow_pointer(int tid, struct shstk_shadow *ret)
{
	struct shstk_shadow s = { .size = sizeof(s) };
	int saved = errno;
	int err;

	if (!ret || ret->size < sizeof(*ret))
		return -EINVAL;
	errno = 0;
	err = get_pointers(tid, &s);
	if (!err)
		*ret = s;
	errno = saved;
	return err;
}

SHSTK_API int shstk_shadow_get(int tid, struct shstk_shadow *ret)
{
	int saved = errno;
	int err = shstk_shadow_pointer(tid, ret);

	if (err)
		return err;
	ret->end = mapping_end(tid, ret->ssp);
	errno = saved;
	return 0;
}

struct shadow_reading {
	const struct machine *m;
	uint64_t *pcs;
	uint8_t *marks;
	unsigned int max, n, skip;
	bool gap;
};

static bool put(struct shadow_reading *r, uint64_t pc, uint8_t mark)
{
	if (r->skip) {
		r->skip--;
		return true;
	}
	if (r->n == r->max)
		return false;
	if (r->marks)
		r->marks[r->n] = mark;
	r->pcs[r->n++] = pc;
	return true;
}

/* take() returns this if the trace has not ended; it is no value of enum shstk_end. */
#define GO_ON (-1)

/*
 * Handles the word @v at @addr. Returns GO_ON, or how the trace ends: SHSTK_END_CAPACITY or
 * SHSTK_END_COMPLETE.
 */
static int take(struct shadow_reading *r, uint64_t v, uint64_t addr)
{
	uint8_t mark = r->gap ? SHSTK_MARK_GAP : 0;

	switch (r->m->shadow_entry(v, addr)) {
	case SHADOW_RETURN_ADDRESS:
		r->gap = false;
		return put(r, v, mark) ? GO_ON : SHSTK_END_CAPACITY;
	case SHADOW_SIGNAL:
		/* If calls push, the entry in front of the token is the signal trampoline. */
		if (r->m->calls_push && r->marks && r->n)
			r->marks[r->n - 1] |= SHSTK_MARK_SIGNAL;
		r->gap = true;
		return GO_ON;
	case SHADOW_FOREIGN:
		r->gap = true;
		return GO_ON;
	case SHADOW_END:
		return SHSTK_END_COMPLETE;
	case SHADOW_TOKEN:
		break;
	}
	return GO_ON;
}

static int read_all(struct shadow_reading *r, const struct shstk_shadow *s, shstk_read_fn read,
		    void *arg)
{
	uint64_t end = s->end ? s->end : UINT64_MAX - 7;
	uint64_t word[BATCH], addr = s->ssp;

	while (addr < end) {
		uint64_t page = (addr | 4095) + 1;
		unsigned int i, n = min((min(page, end) - addr) / 8, (uint64_t)BATCH);

		/* If a batch can't be read, read words one by one up to the last readable one. */
		if (read(arg, addr, word, n * 8)) {
			n = 1;
			if (read(arg, addr, word, 8))
				return s->end ? SHSTK_END_READ : SHSTK_END_BOUNDS;
		}
		for (i = 0; i < n; i++, addr += 8) {
			int end = take(r, word[i], addr);

			if (end != GO_ON)
				return end;
		}
	}
	return SHSTK_END_COMPLETE;
}

SHSTK_API int shstk_unwind_shadow(const struct shstk_shadow *shadow, shstk_read_fn read, void *arg,
				  uint64_t *pcs, unsigned int max, const struct shstk_opts *opts,
				  struct shstk_info *info)
{
	struct shstk_opts o;
	struct shadow_reading r;
	int end;

	if (!shadow || shadow->size < sizeof(*shadow) || shadow->ssp & 7 || shadow->end & 7 ||
	    !machine_by_arch(shadow->arch) || !read || (!pcs && max) || max > INT_MAX ||
	    (info && info->size < 8) || !get_opts(&o, opts, SHSTK_USE_HARDWARE))
		return -EINVAL;
	r = (struct shadow_reading){
		machine_by_arch(shadow->arch), pcs, o.marks, max, 0, o.skip, false
	};
	r.gap = !r.m->calls_push;
	end = SHSTK_END_CAPACITY;
	if (put(&r, shadow->pc, SHSTK_MARK_PC))
		end = read_all(&r, shadow, read, arg);
	if (info)
		put_info(info, (struct shstk_info){
				       .source = r.n ? SHSTK_SOURCE_HARDWARE : SHSTK_SOURCE_NONE,
				       .end = end,
				       .end_pc = r.n ? pcs[r.n - 1] : 0,
			       });
	return r.n;
}
