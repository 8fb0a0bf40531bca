// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * walk.c - _Unwind_Backtrace(), which calls back for each frame.
 *
 * The callback gets a context that it can only pass to _Unwind_GetIP() and similar functions.
 * Nearly all callbacks ask for the address and nothing else. So the stack is captured first, and
 * each context is a small object of this library, which the functions below recognize by its first
 * words.
 *
 * A callback that asks for more (the CFA, a register, the language's data) gets the correct answer:
 * the real unwinder walks up to the same frame, which is still there, and is asked. From then on
 * the real unwinder serves this callback.
 */
#include <stdlib.h>
#include <unwind.h>

#include "drop.h"

#define CHUNK 128 /* frames captured at a time */
#define KNOWN 64 /* callbacks that need more than addresses */

/**
 * struct backtrace_frame - what a callback gets as its context
 * @mark: &frame_mark: no real context begins with it.
 * @self: address of this object: no real context has its own address here.
 * @pc: the frame's address.
 * @index: the frame's number; 0 is the caller of _Unwind_Backtrace().
 * @exact: a signal interrupted the frame: @pc is not behind a call.
 * @outer: stack pointer in the caller of _Unwind_Backtrace().
 * @trace: the callback.
 */
struct backtrace_frame {
	const void *mark;
	const struct backtrace_frame *self;
	uint64_t pc;
	unsigned int index;
	bool exact;
	uint64_t outer;
	_Unwind_Trace_Fn trace;
};

static const char frame_mark;

static struct {
	_Unwind_Reason_Code (*Backtrace)(_Unwind_Trace_Fn, void *);
	_Unwind_Ptr (*GetIP)(struct _Unwind_Context *);
	_Unwind_Ptr (*GetIPInfo)(struct _Unwind_Context *, int *);
	_Unwind_Word (*GetCFA)(struct _Unwind_Context *);
	_Unwind_Word (*GetGR)(struct _Unwind_Context *, int);
	void *(*GetLanguageSpecificData)(struct _Unwind_Context *);
	_Unwind_Ptr (*GetRegionStart)(struct _Unwind_Context *);
	_Unwind_Ptr (*GetDataRelBase)(struct _Unwind_Context *);
	_Unwind_Ptr (*GetTextRelBase)(struct _Unwind_Context *);
} next;

static void *library;

static void *find(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	return fn || !library ? fn : dlsym(library, name);
}

#define RESOLVE(name) (*(void **)&next.name = find("_Unwind_" #name))

__attribute__((constructor)) static void resolve(void)
{
	RESOLVE(GetIP);
	RESOLVE(GetIPInfo);
	RESOLVE(GetCFA);
	RESOLVE(GetGR);
	RESOLVE(GetLanguageSpecificData);
	RESOLVE(GetRegionStart);
	RESOLVE(GetDataRelBase);
	RESOLVE(GetTextRelBase);
	RESOLVE(Backtrace);
}

/*
 * Looks the functions up late: other constructors may unwind before this library's has run, and
 * libgcc may be loaded late, by a library that keeps it private.
 */
static __attribute__((noinline, cold)) void resolve_late(void)
{
	library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NODELETE);
	resolve();
	if (!next.Backtrace)
		abort();
}

static void need_next(void)
{
	if (unlikely(!next.Backtrace))
		resolve_late();
}

static const struct backtrace_frame *frame_of_context(struct _Unwind_Context *context)
{
	const struct backtrace_frame *f = (const struct backtrace_frame *)context;

	return f->mark == &frame_mark && f->self == f ? f : NULL;
}

/*
 * Callbacks that need more than addresses, by their hash; a new one replaces another in the same
 * place.
 */
static _Unwind_Trace_Fn _Atomic known[KNOWN];

static _Unwind_Trace_Fn _Atomic *known_slot(_Unwind_Trace_Fn trace)
{
	uint64_t hash = (uintptr_t)trace * 0x9e3779b97f4a7c15ULL;

	return &known[hash >> 58];
}

/**
 * struct question - a question to the real context
 * @f: the frame that it is about; NULL once it is answered.
 * @counting: the caller of _Unwind_Backtrace() was reached.
 * @index: number of the next frame, once @counting.
 * @ask: asks the context.
 * @arg: argument of @ask.
 */
struct question {
	const struct backtrace_frame *f;
	bool counting;
	unsigned int index;
	void (*ask)(struct _Unwind_Context *context, void *arg);
	void *arg;
};

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *arg)
{
	struct question *q = arg;

	/* Frames of the callback and of this library come first. */
	if (!q->counting) {
		if (next.GetCFA(context) < q->f->outer)
			return _URC_NO_REASON;
		q->counting = true;
	}
	if (q->index++ < q->f->index)
		return _URC_NO_REASON;
	if (next.GetIP(context) == q->f->pc) {
		q->ask(context, q->arg);
		q->f = NULL;
	}
	return _URC_END_OF_STACK;
}

/* Asks the real context of the same frame. Returns false if the frame is not found. */
static bool ask_true(const struct backtrace_frame *f,
		     void (*ask)(struct _Unwind_Context *context, void *arg), void *arg)
{
	struct question q = { .f = f, .ask = ask, .arg = arg };

	need_next();
	*known_slot(f->trace) = f->trace;
	next.Backtrace(look, &q);
	return !q.f;
}

HOOK_API _Unwind_Ptr _Unwind_GetIP(struct _Unwind_Context *context)
{
	const struct backtrace_frame *f = frame_of_context(context);

	if (f)
		return f->pc;
	need_next();
	return next.GetIP(context);
}

HOOK_API _Unwind_Ptr _Unwind_GetIPInfo(struct _Unwind_Context *context, int *exact)
{
	const struct backtrace_frame *f = frame_of_context(context);

	if (f) {
		*exact = f->exact;
		return f->pc;
	}
	need_next();
	return next.GetIPInfo(context, exact);
}

/* Defines a function whose only argument is a context. */
#define ASK(type, name)                                                      \
	static void ask_##name(struct _Unwind_Context *context, void *arg)   \
	{                                                                    \
		*(type *)arg = next.name(context);                           \
	}                                                                    \
                                                                             \
	HOOK_API type _Unwind_##name(struct _Unwind_Context *context)        \
	{                                                                    \
		const struct backtrace_frame *f = frame_of_context(context); \
		type ret = 0;                                                \
                                                                             \
		need_next();                                                 \
		if (!f)                                                      \
			return next.name(context);                           \
		ask_true(f, ask_##name, &ret);                               \
		return ret;                                                  \
	}

ASK(_Unwind_Word, GetCFA)
ASK(void *, GetLanguageSpecificData)
ASK(_Unwind_Ptr, GetRegionStart)
ASK(_Unwind_Ptr, GetDataRelBase)
ASK(_Unwind_Ptr, GetTextRelBase)

struct register_question {
	int number;
	_Unwind_Word value;
};

static void ask_register(struct _Unwind_Context *context, void *arg)
{
	struct register_question *q = arg;

	q->value = next.GetGR(context, q->number);
}

HOOK_API _Unwind_Word _Unwind_GetGR(struct _Unwind_Context *context, int number)
{
	const struct backtrace_frame *f = frame_of_context(context);
	struct register_question q = { .number = number };

	need_next();
	if (!f)
		return next.GetGR(context, number);
	ask_true(f, ask_register, &q);
	return q.value;
}

/* Passes captured frames to the callback. @marks may be NULL. */
static _Unwind_Reason_Code tell(struct backtrace_frame *f, void *arg, const uint64_t *pcs,
				const uint8_t *marks, int n)
{
	for (int i = 0; i < n; i++, f->index++) {
		f->pc = pcs[i];
		f->exact = marks && marks[i] & SHSTK_MARK_PC;
		if (f->trace((struct _Unwind_Context *)f, arg) != _URC_NO_REASON)
			return _URC_FATAL_PHASE1_ERROR;
	}
	return _URC_NO_REASON;
}

/* Does what serve() does, for any stack: in chunks and with marks. */
static __attribute__((noinline)) int serve_any(struct backtrace_frame *f, void *arg,
					       struct shstk_hook *hook)
{
	struct shstk_opts opts = { .size = sizeof(opts) };
	_Unwind_Reason_Code ret;
	uint8_t marks[CHUNK];
	uint64_t pcs[CHUNK];
	int n;

	opts.marks = marks;
	do {
		n = shstk_hook_capture(hook, pcs, CHUNK, &opts);
		/* The real function can still be asked: the callback has seen nothing yet. */
		if (unlikely(!is_whole(n, hook->end)) && !f->index)
			return -1;
		if (n <= 0)
			break;
		ret = tell(f, arg, pcs, marks, n);
		if (ret != _URC_NO_REASON)
			return ret;
		opts.skip += n;
	} while (hook->end == SHSTK_END_CAPACITY);
	return _URC_NO_REASON;
}

/*
 * Returns what _Unwind_Backtrace() returns, or -1 if the real one has to be called. @ra, @sp and
 * @fp are those of its caller, as in struct shstk_hook.
 */
static __attribute__((noinline)) int serve(_Unwind_Trace_Fn trace, void *arg, uint64_t ra,
					   uint64_t sp, uint64_t fp)
{
	struct shstk_hook hook = { .ra = ra, .sp = sp, .fp = fp };
	struct backtrace_frame f = { .mark = &frame_mark, .self = &f, .outer = sp, .trace = trace };
	uint64_t pcs[CHUNK];
	int n = shstk_hook_capture(&hook, pcs, CHUNK, NULL), ret;

	if (likely(n >= 0 && hook.end == SHSTK_END_COMPLETE && !hook.crossed))
		ret = tell(&f, arg, pcs, NULL, n);
	else
		ret = serve_any(&f, arg, &hook);
	if (ret != _URC_NO_REASON)
		return ret;
	/* libgcc also reports a caller of the outermost frame, with address 0. */
	ret = tell(&f, arg, &(uint64_t){ 0 }, NULL, 1);
	return ret == _URC_NO_REASON ? _URC_END_OF_STACK : ret;
}

/* The real function is called by a tail call, so that it does not see this frame. */
HOOK_API _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn trace, void *arg)
{
	int ret = -1;

	if (likely(*known_slot(trace) != trace))
		ret = serve(trace, arg, SHSTK_HOOK_HERE.ra, SHSTK_HOOK_HERE.sp, SHSTK_HOOK_HERE.fp);
	if (likely(ret >= 0))
		return ret;
	need_next();
	return next.Backtrace(trace, arg);
}
