// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * context.c - a shadow stack for every context of makecontext() and of Boost.Context's
 * make_fcontext().
 *
 * Nothing tells when a context is no longer used, so a shadow stack lives as long as its ordinary
 * stack can: it is unmapped when a new context is made on memory that overlaps the old one's stack,
 * and is used again once the context's function has returned. So there are never more of them than
 * there were disjoint context stacks at one time.
 *
 * The table consists of chunks of entries that are never freed, so that lookups need no lock (they
 * happen in longjmp(), also in signal handlers). Changes are made under one lock with all signals
 * blocked. A lookup may find an entry that is being changed; that is an entry of a context that no
 * thread runs on.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "start.h"

#ifndef SYS_map_shadow_stack
#define SYS_map_shadow_stack 453
#endif
#ifndef SHADOW_STACK_SET_TOKEN /* glibc defines it from 2.41 on */
#define SHADOW_STACK_SET_TOKEN 1
#endif

/**
 * struct shadow - a shadow stack made here
 * @lo: start of the ordinary stack that it belongs to; 0: the entry is free.
 * @hi: end of that stack.
 * @base: start of the shadow stack.
 * @end: end of the shadow stack.
 * @finished: the context's function has returned.
 */
struct shadow {
	uint64_t lo;
	uint64_t hi;
	uint64_t base;
	uint64_t end;
	bool finished;
};

#define CHUNK_ENTRIES 101

struct shadow_chunk {
	struct shadow_chunk *next;
	struct shadow v[CHUNK_ENTRIES];
};

static struct shadow_chunk *chunks;
static long lock_owner; /* process that holds the lock, or 0 */

static void lock(uint64_t *mask)
{
	uint64_t all = ~0ull;
	long own = sys0(SYS_getpid), seen = 0;

	sys4(SYS_rt_sigprocmask, SIG_SETMASK, &all, mask, 8);
	while (!__atomic_compare_exchange_n(&lock_owner, &seen, own, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		/* A thread of the parent held the lock at fork(): this process takes it over. */
		if (seen == own)
			seen = 0;
		sys0(SYS_sched_yield);
	}
}

static void unlock(const uint64_t *mask)
{
	__atomic_store_n(&lock_owner, 0, __ATOMIC_RELEASE);
	sys4(SYS_rt_sigprocmask, SIG_SETMASK, mask, 0, 8);
}

static struct shadow *find_shadow(uint64_t ssp)
{
	struct shadow_chunk *c = __atomic_load_n(&chunks, __ATOMIC_ACQUIRE);

	for (; c; c = c->next)
		for (size_t i = 0; i < CHUNK_ENTRIES; i++) {
			struct shadow *s = &c->v[i];

			if (ssp >= __atomic_load_n(&s->base, __ATOMIC_RELAXED) &&
			    ssp <= __atomic_load_n(&s->end, __ATOMIC_RELAXED) && s->lo)
				return s;
		}
	return NULL;
}

bool start_bounds(uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	const struct shadow *s = find_shadow(addr);
	struct map_line line;

	if (s) {
		*lo = s->base;
		*hi = s->end;
		return true;
	}
	if (!start_map_find(addr, &line))
		return false;
	*lo = line.start;
	*hi = line.end;
	return true;
}

/* Returns the highest restore token in [lo, below), or 0. */
static uint64_t find_token(uint64_t lo, uint64_t below)
{
	for (uint64_t a = below & ~7ull; a >= lo + 8;) {
		a -= 8;
		if (load_word(a) == ((a + 8) | 1))
			return a;
	}
	return 0;
}

static struct shadow *free_entry(void)
{
	struct shadow_chunk *c;
	long p;

	for (c = chunks; c; c = c->next)
		for (size_t i = 0; i < CHUNK_ENTRIES; i++)
			if (!c->v[i].lo)
				return &c->v[i];
	p = sys6(SYS_mmap, 0, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0);
	if (p < 0 && p > -4096)
		return NULL;
	c = (struct shadow_chunk *)p;
	c->next = chunks;
	__atomic_store_n(&chunks, c, __ATOMIC_RELEASE);
	return &c->v[0];
}

static void drop(struct shadow *s)
{
	uint64_t base = s->base, size = s->end - s->base;

	__atomic_store_n(&s->base, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->end, 0, __ATOMIC_RELAXED);
	s->finished = false;
	__atomic_store_n(&s->lo, 0, __ATOMIC_RELEASE);
	sys2(SYS_munmap, base, size);
}

/*
 * Drops the shadow stacks of contexts whose stack overlaps [lo, hi), where a new context is made:
 * those contexts are dead. Returns a finished shadow stack of @size bytes to use again, with its
 * *@token, or NULL.
 */
static struct shadow *sweep(uint64_t lo, uint64_t hi, uint64_t size, uint64_t *token)
{
	struct shadow *reuse = NULL, *own = find_shadow(read_ssp());
	uint64_t at;

	for (struct shadow_chunk *c = chunks; c; c = c->next)
		for (size_t i = 0; i < CHUNK_ENTRIES; i++) {
			struct shadow *s = &c->v[i];
			bool overlap = s->lo && s->lo < hi && lo < s->hi;

			if (!s->lo || s == own)
				continue;
			/* The context has left it for good once a token lies near its top. */
			at = s->finished && s->end - s->base >= 4096 ?
				     find_token(s->end - 512, s->end) :
				     0;
			if (at && !reuse && s->end - s->base == size) {
				reuse = s;
				*token = at;
			} else if (overlap && (at || !s->finished)) {
				drop(s);
			}
		}
	return reuse;
}

/*
 * Returns the SSP that a new context on [lo, hi) starts with, or 0 if there is no memory. Its token
 * lies right below.
 */
static uint64_t shadow_for(uint64_t lo, uint64_t hi)
{
	/* Frames are 16-byte aligned, so half the stack's size holds all return addresses. */
	uint64_t size = ((hi - lo) / 2 + 4096 + 4095) & ~4095ull;
	uint64_t mask, token = 0;
	struct shadow *s;
	long base;

	lock(&mask);
	s = sweep(lo, hi, size, &token);
	if (!s) {
		s = free_entry();
		base = s ? sys3(SYS_map_shadow_stack, 0, size, SHADOW_STACK_SET_TOKEN) : -ENOMEM;
		if (base < 0 && base > -4096) {
			unlock(&mask);
			return 0;
		}
		s->base = (uint64_t)base;
		s->end = s->base + size;
		token = s->end - 8;
	}
	s->finished = false;
	s->hi = hi;
	__atomic_store_n(&s->lo, lo, __ATOMIC_RELEASE);
	unlock(&mask);
	return token + 8;
}

void start_context_finished(void)
{
	struct shadow *s = find_shadow(read_ssp());

	if (s)
		s->finished = true;
}

/*
 * Returns how to reach @target, the SSP that the destination saved for itself. A stack that was
 * left by a switch has a token somewhere below that: two words below if the very call that saved
 * @target left the stack, one word below if nothing ever ran on it.
 */
struct pivot start_pivot(uint64_t target)
{
	uint64_t ssp = read_ssp(), lo, hi;
	const struct shadow *from, *to;
	struct pivot p = { 0, target };

	if (!ssp || !target)
		return (struct pivot){ 0, 0 };
	from = find_shadow(ssp);
	to = find_shadow(target);
	if (from == to && target >= ssp && (from || target - ssp < 16384))
		return p;
	if (load_word(target - 8) == (target | 1))
		p.token = target - 8;
	else if (load_word(target - 16) == ((target - 8) | 1))
		p.token = target - 16;
	else if (start_bounds(target - 8, &lo, &hi) && !(ssp >= lo && ssp <= hi))
		p.token = find_token(lo, target);
	return p;
}

/*
 * Returns the SSP that a signal interrupted, from the kernel's own word on this shadow stack, or 0.
 */
static uint64_t interrupted_ssp(void)
{
	uint64_t ssp = read_ssp(), lo, hi, word;

	if (!ssp || !start_bounds(ssp, &lo, &hi))
		return 0;
	for (uint64_t a = ssp; a < hi && a - ssp < 65536; a += 8) {
		word = load_word(a);
		if (word >> 63)
			return word & ~(1ull << 63);
	}
	return 0;
}

struct pivot start_context_pivot(const void *ucontext)
{
	const uint64_t *spare = (const void *)((const char *)ucontext + UC_SPARE);

	if (spare[0] == UC_MAGIC && (spare[1] ^ UC_MAGIC) == spare[2])
		return start_pivot(spare[1]);
	/* This is the context of a signal handler. */
	return (struct pivot){ 0, interrupted_ssp() };
}

static void store(void *ucontext, unsigned int offset, uint64_t value)
{
	*(uint64_t *)((char *)ucontext + offset) = value;
}

EXPORT void makecontext(ucontext_t *uc, void (*func)(void), int argc, ...)
{
	static const unsigned int regs[] = { UC_RDI, UC_RSI, UC_RDX, UC_RCX, UC_R8, UC_R9 };
	uint64_t lo = (uintptr_t)uc->uc_stack.ss_sp;
	uint64_t hi = lo + uc->uc_stack.ss_size, ssp = 0, *sp;
	int extra = argc > 6 ? argc - 6 : 0;
	va_list ap;

	sp = (uint64_t *)((hi - (uint64_t)extra * 8) & ~15ull);
	va_start(ap, argc);
	for (int i = 0; i < argc; i++) {
		uint64_t v = va_arg(ap, uint64_t);

		if (i < 6)
			store(uc, regs[i], v);
		else
			sp[i - 6] = v;
	}
	va_end(ap);
	if (read_ssp()) {
		ssp = shadow_for(lo, hi);
		if (!ssp)
			start_say("no memory for the shadow stack of a context", "");
	}
	store(uc, UC_RSP, (uintptr_t)sp);
	store(uc, UC_RIP, (uintptr_t)start_context_entry);
	store(uc, UC_R12, (uintptr_t)func);
	store(uc, UC_RBX, (uintptr_t)uc->uc_link);
	store(uc, UC_RBP, 0);
	store(uc, UC_SPARE, UC_MAGIC);
	store(uc, UC_SPARE + 8, ssp);
	store(uc, UC_SPARE + 16, ssp ^ UC_MAGIC);
}

/* @sp is the upper end of the stack. */
EXPORT void *make_fcontext(void *sp, size_t size, void (*func)(void))
{
	uint64_t top = (uintptr_t)sp & ~15ull, ssp = 0;
	uint64_t *frame = (uint64_t *)(top - FC_SIZE - 16);
	uint32_t fpu[2];

	if (read_ssp()) {
		ssp = shadow_for((uintptr_t)sp - size, (uintptr_t)sp);
		if (!ssp)
			start_say("no memory for the shadow stack of a context", "");
		ssp |= FC_FRESH;
	} else {
		ssp = FC_FRESH;
	}
	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(fpu[0]), "=m"(fpu[1]));
	frame[0] = fpu[0] | (uint64_t)(fpu[1] & 0xffff) << 32;
	frame[FC_SSP / 8] = ssp;
	for (size_t i = 2; i < FC_SIZE / 8; i++)
		frame[i] = 0;
	frame[0x30 / 8] = (uintptr_t)func;
	frame[FC_SIZE / 8] = (uintptr_t)start_fcontext_entry;
	return frame;
}
