// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * walk.c - _Unwind_Backtrace(), which calls back for each frame.
 *
 * The callback gets a context that it can only pass to _Unwind_GetIP() and similar functions.
 * Nearly all callbacks ask for the address and nothing else. So the stack is captured first, and
 * each context is a small object of this library, which the functions below recognize by its first
 * words.
 *
 * Some ask for the CFA, too, as Rust's std::backtrace does. Their stacks are walked with the stack
 * pointer of each frame from the second time on. Where a function begins is looked up by its address.
 *
 * A callback that asks for more (a register, the language's data) gets the correct answer: the real
 * unwinder walks up to the same frame, which is still there, and is asked. From then on the real
 * unwinder serves this callback.
 */
#include <stdlib.h>
#include <unwind.h>

#include "drop.h"

#define CHUNK 128 /* frames captured at a time */
#define KNOWN 64 /* callbacks that need more than addresses, in each set of them */

/**
 * struct backtrace_frame - what a callback gets as its context
 * @mark: &frame_mark: no real context begins with it.
 * @self: address of this object: no real context has its own address here.
 * @pc: the frame's address; 0 behind the outermost frame.
 * @sp: stack pointer of the frame, or 0 if it is not known. It is what _Unwind_GetCFA() returns: the
 *	CFA of the frame that this one called.
 * @last_pc: @pc of the frame before this one, or 0.
 * @last_sp: @sp of the frame before this one, or 0.
 * @index: the frame's number; 0 is the caller of _Unwind_Backtrace().
 * @exact: a signal interrupted the frame: @pc is not behind a call.
 * @hook: the caller of _Unwind_Backtrace().
 * @trace: the callback.
 */
struct backtrace_frame {
	const void *mark;
	const struct backtrace_frame *self;
	uint64_t pc, sp;
	uint64_t last_pc, last_sp;
	unsigned int index;
	bool exact;
	const struct shstk_hook *hook;
	_Unwind_Trace_Fn trace;
};

/* What the real unwinder's _Unwind_Find_FDE() stores, as in libgcc's unwind-dw2-fde.h. */
struct bases {
	void *text, *data, *function;
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
	const void *(*Find_FDE)(void *, struct bases *);
	void *(*FindEnclosingFunction)(void *);
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
	RESOLVE(Find_FDE);
	RESOLVE(FindEnclosingFunction);
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

static struct backtrace_frame *frame_of_context(struct _Unwind_Context *context)
{
	struct backtrace_frame *f = (struct backtrace_frame *)context;

	return f->mark == &frame_mark && f->self == f ? f : NULL;
}

/*
 * A set of callbacks, by their hash. A new one replaces another in the same place, which then has to
 * be learned again.
 */
struct callbacks {
	_Unwind_Trace_Fn _Atomic at[KNOWN];
};

static struct callbacks need_sps; /* callbacks that ask for CFAs */
static struct callbacks need_true; /* callbacks that ask for what only the real unwinder can answer */

static _Unwind_Trace_Fn _Atomic *known_slot(struct callbacks *known, _Unwind_Trace_Fn trace)
{
	uint64_t hash = (uintptr_t)trace * 0x9e3779b97f4a7c15ULL;

	return &known->at[hash >> 58];
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
		if (next.GetCFA(context) < q->f->hook->sp)
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

/* Defines a function whose only argument is a context, and the question that it asks. */
#define QUESTION(type, name)                                               \
	static void ask_##name(struct _Unwind_Context *context, void *arg) \
	{                                                                  \
		*(type *)arg = next.name(context);                         \
	}

#define ASK(type, name, own)                                           \
	QUESTION(type, name)                                           \
                                                                       \
	HOOK_API type _Unwind_##name(struct _Unwind_Context *context)  \
	{                                                              \
		struct backtrace_frame *f = frame_of_context(context); \
		type ret = 0;                                          \
                                                                       \
		need_next();                                           \
		if (!f)                                                \
			return next.name(context);                     \
		if (own(f, &ret))                                      \
			return ret;                                    \
		*known_slot(&need_true, f->trace) = f->trace;          \
		ask_true(f, ask_##name, &ret);                         \
		return ret;                                            \
	}

static bool no_answer(struct backtrace_frame *f, void *ret)
{
	(void)f, (void)ret;
	return false;
}

/* Returns an address in the function that @f is in. Behind the outermost frame it is that one. */
static uint64_t pc_inside(const struct backtrace_frame *f)
{
	return f->pc ? f->pc - !f->exact : f->last_pc - 1;
}

/* Finds what libgcc knows of the function that @f is in. */
static bool find_bases(const struct backtrace_frame *f, struct bases *b)
{
	return next.Find_FDE && f->pc | f->last_pc &&
	       next.Find_FDE((void *)(uintptr_t)pc_inside(f), b);
}

/* Defines an answer that is a member of struct bases. */
#define ANSWER(member)                                                       \
	static bool member##_of(struct backtrace_frame *f, _Unwind_Ptr *ret) \
	{                                                                    \
		struct bases b;                                              \
		bool found = find_bases(f, &b);                              \
                                                                             \
		*ret = found ? (uintptr_t)b.member : 0;                      \
		return found;                                                \
	}

ANSWER(text)
ANSWER(data)
ANSWER(function)

/* The usual function is found without libgcc. */
static bool region_of(struct backtrace_frame *f, _Unwind_Ptr *ret)
{
	*ret = f->pc | f->last_pc ? shstk_hook_function(pc_inside(f)) : 0;
	return *ret || function_of(f, ret);
}

ASK(void *, GetLanguageSpecificData, no_answer)
ASK(_Unwind_Ptr, GetRegionStart, region_of)
ASK(_Unwind_Ptr, GetDataRelBase, data_of)
ASK(_Unwind_Ptr, GetTextRelBase, text_of)

/*
 * Code that was registered by __register_frame() and the like is the real unwinder's. As there, @pc
 * is a return address.
 */
HOOK_API void *_Unwind_FindEnclosingFunction(void *pc)
{
	uint64_t start = shstk_hook_function((uintptr_t)pc - 1);

	if (likely(start))
		return (void *)(uintptr_t)start;
	need_next();
	return next.FindEnclosingFunction ? next.FindEnclosingFunction(pc) : NULL;
}

/* ---- CFAs ---- */

QUESTION(_Unwind_Word, GetCFA)

/* Asks the real unwinder, for this frame only. */
static uint64_t true_cfa(const struct backtrace_frame *f)
{
	_Unwind_Word cfa = 0;

	ask_true(f, ask_GetCFA, &cfa);
	return cfa;
}

/*
 * The distance from the stack pointer of an outermost frame to its CFA, which is the same each time:
 * the 48 bits of the frame's address, and 16 bits of the distance.
 */
static uint64_t _Atomic outermost[16];

#define DISTANCE 16 /* bits */

/* Finds the CFA of the outermost frame, which stands behind it. */
static uint64_t outermost_cfa(struct backtrace_frame *f)
{
	uint64_t _Atomic *slot = &outermost[f->last_pc * 0x9e3779b97f4a7c15ULL >> 60];
	uint64_t known = *slot, distance, cfa;

	if (f->last_sp && known >> DISTANCE == f->last_pc)
		return f->last_sp + (known & ((1 << DISTANCE) - 1));
	cfa = true_cfa(f);
	distance = cfa - f->last_sp;
	if (f->last_sp && distance >> DISTANCE == 0 && f->last_pc >> (64 - DISTANCE) == 0)
		*slot = f->last_pc << DISTANCE | distance;
	return cfa;
}

/* Walks to the frame @f, which has been captured without its stack pointer. */
static uint64_t find_cfa(const struct backtrace_frame *f)
{
	struct shstk_hook hook = *f->hook;
	uint64_t pc = 0, sp = 0;
	struct shstk_opts opts = {
		.size = sizeof(opts),
		.sources = SHSTK_USE_WALK,
		.skip = f->index,
		.sps = &sp,
	};

	if (shstk_hook_capture(&hook, &pc, 1, &opts) == 1 && pc == f->pc)
		return sp;
	return true_cfa(f);
}

HOOK_API _Unwind_Word _Unwind_GetCFA(struct _Unwind_Context *context)
{
	struct backtrace_frame *f = frame_of_context(context);

	need_next();
	if (!f)
		return next.GetCFA(context);
	*known_slot(&need_sps, f->trace) = f->trace;
	/* On arm64, libgcc takes the address of the signal frame for that of interrupted code. */
	if (f->exact)
		return true_cfa(f);
	if (!f->sp)
		f->sp = f->pc ? find_cfa(f) : outermost_cfa(f);
	return f->sp;
}

/* ---- Registers ---- */

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
	*known_slot(&need_true, f->trace) = f->trace;
	ask_true(f, ask_register, &q);
	return q.value;
}

/* ---- Frames for the callback ---- */

/**
 * struct chunk - captured frames
 * @pcs: their addresses.
 * @sps: their stack pointers, if @has_sps.
 * @marks: their marks.
 * @has_sps: @sps is filled in.
 */
struct chunk {
	uint64_t pcs[CHUNK];
	uint64_t sps[CHUNK];
	uint8_t marks[CHUNK];
	bool has_sps;
};

/* Makes @f the next frame, and passes it to the callback. */
static inline _Unwind_Reason_Code pass_frame(struct backtrace_frame *f, void *arg, uint64_t pc,
					     uint64_t sp, bool exact)
{
	_Unwind_Reason_Code ret;

	f->pc = pc;
	f->sp = sp;
	f->exact = exact;
	ret = f->trace((struct _Unwind_Context *)f, arg);
	f->last_pc = pc;
	f->last_sp = f->sp;
	f->index++;
	return ret == _URC_NO_REASON ? ret : _URC_FATAL_PHASE1_ERROR;
}

/* Passes @n captured frames to the callback. */
static _Unwind_Reason_Code pass_chunk(struct backtrace_frame *f, void *arg, const struct chunk *c,
				      int n)
{
	_Unwind_Reason_Code ret = _URC_NO_REASON;

	for (int i = 0; i < n && ret == _URC_NO_REASON; i++)
		ret = pass_frame(f, arg, c->pcs[i], c->has_sps ? c->sps[i] : 0,
				 c->marks[i] & SHSTK_MARK_PC);
	return ret;
}

/* Does what serve() does, for any stack and any callback: in chunks, with marks. */
static __attribute__((noinline)) int serve_any(struct backtrace_frame *f, void *arg,
					       struct shstk_hook *hook)
{
	struct shstk_opts opts = { .size = sizeof(opts) };
	_Unwind_Reason_Code ret;
	struct chunk c;
	int n;

	c.has_sps = *known_slot(&need_sps, f->trace) == f->trace;
	opts.marks = c.marks;
	opts.sps = c.sps;
	opts.sources = c.has_sps ? SHSTK_USE_WALK : 0;
	do {
		n = shstk_hook_capture(hook, c.pcs, CHUNK, &opts);
		/* The real function can still be asked: the callback has seen nothing yet. */
		if (unlikely(!is_whole(n, hook->end)) && !f->index)
			return -1;
		if (n <= 0)
			break;
		ret = pass_chunk(f, arg, &c, n);
		if (ret != _URC_NO_REASON)
			return ret;
		opts.skip += n;
	} while (hook->end == SHSTK_END_CAPACITY);
	return _URC_NO_REASON;
}

/*
 * Captures the usual stack by the usual way, and passes it to the callback. Returns what serve()
 * returns, or -1 if serve_any() has to be called.
 */
static __attribute__((noinline)) int serve_usual(struct backtrace_frame *f, void *arg,
						 struct shstk_hook *hook)
{
	_Unwind_Reason_Code ret = _URC_NO_REASON;
	uint64_t pcs[CHUNK];
	int n = shstk_hook_capture(hook, pcs, CHUNK, NULL);

	if (unlikely(n < 0 || hook->end != SHSTK_END_COMPLETE || hook->crossed))
		return -1;
	for (int i = 0; i < n && ret == _URC_NO_REASON; i++)
		ret = pass_frame(f, arg, pcs[i], 0, false);
	return ret;
}

/*
 * Returns what _Unwind_Backtrace() returns, or -1 if the real one has to be called. @ra, @sp and
 * @fp are those of its caller, as in struct shstk_hook.
 */
static __attribute__((noinline)) int serve(_Unwind_Trace_Fn trace, void *arg, uint64_t ra,
					   uint64_t sp, uint64_t fp)
{
	struct shstk_hook hook = { .ra = ra, .sp = sp, .fp = fp };
	struct backtrace_frame f = {
		.mark = &frame_mark, .self = &f, .hook = &hook, .trace = trace
	};
	int ret = -1;

	if (likely(*known_slot(&need_sps, trace) != trace))
		ret = serve_usual(&f, arg, &hook);
	if (unlikely(ret < 0))
		ret = serve_any(&f, arg, &hook);
	if (ret != _URC_NO_REASON)
		return ret;
	/* libgcc also reports a caller of the outermost frame, with address 0. */
	ret = pass_frame(&f, arg, 0, 0, false);
	return ret == _URC_NO_REASON ? _URC_END_OF_STACK : ret;
}

/* The real function is called by a tail call, so that it does not see this frame. */
HOOK_API _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn trace, void *arg)
{
	int ret = -1;

	if (likely(*known_slot(&need_true, trace) != trace))
		ret = serve(trace, arg, SHSTK_HOOK_HERE.ra, SHSTK_HOOK_HERE.sp, SHSTK_HOOK_HERE.fp);
	if (likely(ret >= 0))
		return ret;
	need_next();
	return next.Backtrace(trace, arg);
}
