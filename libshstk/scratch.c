// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * scratch.c - memory for large variables outside of the program's stack; see scratch.h.
 */
#include "scratch.h"
#include "thread.h"

/*
 * Tells whether a function that used the memory, with the stack address @user, is gone, because
 * the caller at @sp is further up the same stack.
 */
static bool is_left(const struct thread *t, uint64_t user, uint64_t sp)
{
	return user < sp && range_has(&t->native, user) && range_has(&t->native, sp);
}

/*
 * Takes @size bytes for a function at @sp. Returns the number of the use, or -1 if there is no
 * room. A signal may come between any two of the stores, and its handler may use the same memory
 * and give it back. A handler leaves a use that it finds complete as it was. So both stores are
 * repeated until both values are there at the same time.
 */
static int take(struct thread *t, uint64_t sp, size_t size)
{
	struct scratch *s = &t->scratch;
	uint32_t n = load_relaxed(&s->n), start;

	while (n && t->native_known && is_left(t, s->use[n - 1].sp, sp))
		n--;
	start = n ? s->use[n - 1].end : 0;
	if (n == SCRATCH_DEPTH || size > SCRATCH_BYTES - start)
		return -1;
	do {
		store_relaxed(&s->use[n].sp, sp);
		store_relaxed(&s->use[n].end, start + (uint32_t)ALIGN_UP(size, 16));
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		store_relaxed(&s->n, n + 1);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (load_relaxed(&s->use[n].sp) != sp || load_relaxed(&s->n) != n + 1);
	return (int)n;
}

static __attribute__((noinline)) int on_stack(size_t size, int (*fn)(void *mem, void *arg),
					      void *arg)
{
	uint64_t mem[(size + 15) / 16 * 2];

	return fn(mem, arg);
}

__attribute__((noinline)) int scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg)
{
	struct thread *t = thread_self;
	struct scratch *s;
	int i = -1, ret;

	if (t)
		i = take(t, (uintptr_t)__builtin_frame_address(0), size);
	if (i < 0)
		return on_stack(size, fn, arg);
	s = &t->scratch;
	ret = fn((uint8_t *)s->mem + (i ? s->use[i - 1].end : 0), arg);
	/* Uses that began after this one are over too. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_relaxed(&s->n, (uint32_t)i);
	return ret;
}
