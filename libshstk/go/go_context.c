// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * go_context.c - Go code in a C program: keeps where Go's code lies, and where C's stack
 * continues when C calls Go. See shstk_go.h. None of this runs in a signal handler.
 *
 * Sources: golang/go, src/runtime/traceback.go (SetCgoTraceback), src/runtime/cgo/
 * gcc_libinit.c (who calls the context function).
 */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>

#include "enter.h"
#include "frame.h"
#include "go_context.h"
#include "modmap.h"
#include "shstk_go.h"
#include "thread.h"

struct context_arg {
	uintptr_t context;
};

/* The unused contexts of this thread; they are freed when it ends. */
static __thread struct go_context *spare;
static pthread_key_t spare_key;
static pthread_once_t spare_once = PTHREAD_ONCE_INIT;

static void free_spare(void *unused)
{
	struct go_context *c;

	(void)unused;
	while ((c = spare)) {
		spare = c->next;
		free(c);
	}
}

static void make_spare_key(void)
{
	pthread_key_create(&spare_key, free_spare);
}

/* Allocates a context, and makes sure that the thread frees its contexts when it ends. */
static __attribute__((noinline)) struct go_context *new_context(void)
{
	pthread_once(&spare_once, make_spare_key);
	pthread_setspecific(spare_key, &spare_key);
	return calloc(1, sizeof(struct go_context));
}

static inline struct go_context *take_context(void)
{
	struct go_context *c = spare;

	if (unlikely(!c))
		return new_context();
	spare = c->next;
	return c;
}

/* Returns the rule at @pc from the module itself. */
static __attribute__((noinline)) uint64_t new_rule(uint64_t pc, bool exact)
{
	struct thread *t = thread_get();
	uint64_t rule;
	bool outermost;

	if (!t)
		return RULE_NONE;
	outermost = enter(t, (uintptr_t)__builtin_frame_address(0));
	rule = modmap_rule(pc, exact);
	leave(t, outermost);
	return rule;
}

/* Returns the rule at return address @pc, which is nearly always in the cache. */
static inline uint64_t rule_at(uint64_t pc)
{
	uint64_t rule = rulecache_get(pc, rulecache_gen(), load_relaxed(&rulecache.mask));

	return likely(rule != RULE_NONE) ? rule : new_rule(pc, false);
}

/*
 * Steps out of the frame at return address @pc with registers @sp and @fp, and stores the
 * frame behind it in @c. The frame belongs to a caller of this function, so it is on the
 * stack and nothing has to be checked. If the rule is not ordinary, @c->ra becomes 0.
 */
static inline no_sanitize void leave_frame(struct go_context *c, uint64_t pc, uint64_t sp,
					   uint64_t fp)
{
	uint64_t rule = rule_at(pc);
	struct frame_exit x;

	c->ra = 0;
	if (unlikely(!frame_is_ordinary(rule) || !frame_leave(rule, sp, fp, &x)))
		return;
	c->ra = frame_word(0, x.ra);
	c->sp = x.cfa;
	c->fp = rule & RULE_FP_SAVED ? frame_word(0, x.fp) : fp;
}

/* Looks up each executable segment of a module, so that no signal handler has to do it. */
static int warm_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			new_rule(info->dlpi_addr + p->p_vaddr, true);
	}
	return 0;
}

/*
 * The bounds of Go's code, 0 until shstk_go_set_text() was called, and the value of modmap_loads()
 * when the modules were looked up last.
 */
static struct {
	uint64_t lo, hi, loads;
} text;

static void warm_modules(void)
{
	store_relaxed(&text.loads, modmap_loads());
	dl_iterate_phdr(warm_module, NULL);
}

static inline bool is_warm(void)
{
	return load_relaxed(&text.loads) == modmap_loads();
}

/* Looks up libraries that were loaded meanwhile, so that no sample has to do it. */
static __attribute__((noinline)) void warm_again(void)
{
	if (load_relaxed(&text.hi))
		warm_modules();
}

/*
 * The caller is a function of the runtime that returns before Go runs
 * (_cgo_wait_runtime_init_done()), so the frame of its caller is kept.
 */
SHSTK_API __attribute__((noinline)) void shstk_go_context(void *arg)
{
	struct context_arg *a = arg;
	struct go_context *c = (struct go_context *)a->context;

	if (c) {
		c->next = spare;
		spare = c;
		return;
	}
	c = take_context();
	if (unlikely(!c))
		return;
	if (unlikely(!is_warm()))
		warm_again();
	leave_frame(c, native_strip((uintptr_t)__builtin_return_address(0)),
		    (uintptr_t)__builtin_dwarf_cfa(), native_caller_fp(__builtin_frame_address(0)));
	a->context = (uintptr_t)c;
}

SHSTK_API int shstk_go_set_text(uintptr_t lo, uintptr_t hi)
{
	bool same = lo == load_relaxed(&text.lo) && hi == load_relaxed(&text.hi);
	int err;

	if (lo >= hi)
		return -EINVAL;
	if (same && is_warm())
		return 0;
	err = shstk_thread_init();
	if (err)
		return err;
	/* modmap_set_end() drops all rules that were found, so it is not called needlessly. */
	if (!same)
		modmap_set_end(lo, hi);
	store_relaxed(&text.lo, lo);
	store_relaxed(&text.hi, hi);
	warm_modules();
	return 0;
}
