/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memo_test.c - checks that the software shadow stack returns what a plain walk returns.
 *
 * A random program calls down and returns through functions with and without frame pointers,
 * through functions with dynamic allocas, and through signal handlers on the same stack and on
 * another one. At random places it captures twice, with and without the memo of the last trace,
 * sometimes with arrays that are too small, and compares. Some captures are those of a hook, which
 * must also tell the right identity. Then, deep down, where nothing is new, single bits of return
 * addresses and of saved frame pointers are changed.
 *
 *	memo_test [SEED [CAPTURES]]
 */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chain.h"
#include "enter.h"
#include "hook.h"
#include "meant.h"
#include "shstk.h"
#include "thread.h"
#include "verify.h"

#define MAX 2048
#define DEEPEST 600

static uint64_t state;
static unsigned int limit = 100000;
static unsigned int depth, deepest = DEEPEST, captures, compared, reused, wrong, wrong_ids;
static bool narrow; /* functions are few, so that the same places are captured at again */

static unsigned int draw(unsigned int below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)(state >> 33) % below;
}

struct trace {
	int n;
	struct shstk_info info;
	uint64_t pcs[MAX];
	uint8_t marks[MAX];
};

static void report(const struct trace *memo, const struct trace *walk)
{
	int i = 0;

	while (i < memo->n && i < walk->n && memo->pcs[i] == walk->pcs[i] &&
	       memo->marks[i] == walk->marks[i])
		i++;
	printf("# capture %u: %d entries (%s, %u reused), walk %d (%s), differ at %d\n", captures,
	       memo->n, shstk_end_name(memo->info.end), memo->info.reused, walk->n,
	       shstk_end_name(walk->info.end), i);
}

static void compare(const struct trace *memo, const struct trace *walk)
{
	compared++;
	if (memo->info.reused)
		reused++;
	if (memo->n == walk->n && memo->info.end == walk->info.end &&
	    memo->info.end_pc == walk->info.end_pc && memo->info.guessed == walk->info.guessed &&
	    memo->n >= 0 && !memcmp(memo->pcs, walk->pcs, (size_t)memo->n * 8) &&
	    !memcmp(memo->marks, walk->marks, (size_t)memo->n))
		return;
	if (wrong++ < 10)
		report(memo, walk);
}

/* Captures from the caller of capture(), which is the hook. */
static void capture_hook(struct shstk_hook hook, struct trace *t, unsigned int max,
			 const struct shstk_opts *opts)
{
	t->n = shstk_hook_capture(&hook, t->pcs, max, opts);
	t->info.end = hook.end;
	t->info.guessed = t->info.reused = 0;
	t->info.end_pc = 0;
	if (t->n >= 0 && hook.id != shstk_trace_id(t->pcs, t->n))
		wrong_ids++;
}

/* Makes both captures by one call in the code, so that not even the first entry differs. */
static __attribute__((noinline)) void capture(const void *ucontext)
{
	static struct trace trace[2];
	struct shstk_opts opts = { .size = sizeof(opts) };
	unsigned int max = draw(narrow ? 16 : 4) ? MAX : 1 + draw(40);
	bool simple = draw(4); /* most callers ask for this */
	bool hook = !ucontext && draw(2);
	/* The last one is the plain walk. "volatile" keeps the compiler from making copies of the loop. */
	volatile int times = draw(4) ? 2 : 3 + (int)draw(4);

	opts.skip = simple || draw(2) ? 0 : draw(5);
	captures++;
	for (int i = 0; i < times; i++) {
		bool walk = i == times - 1;
		struct trace *t = &trace[walk];

		memset(t->marks, 0xff, sizeof(t->marks));
		t->info.size = sizeof(t->info);
		opts.marks = simple ? NULL : t->marks;
		opts.sources = SHSTK_USE_WALK | (walk ? 0 : SHSTK_USE_MEMO);
		if (hook)
			capture_hook(SHSTK_HOOK_HERE, t, max, &opts);
		else if (ucontext)
			t->n = shstk_capture_context(ucontext, t->pcs, max, &opts, &t->info);
		else
			t->n = shstk_capture(t->pcs, max, &opts, &t->info);
	}
	compare(&trace[0], &trace[1]);
}

static void wander(void);

static void handler(int sig, siginfo_t *si, void *ucontext)
{
	(void)sig;
	(void)si;
	if (draw(2))
		capture(ucontext);
	if (draw(2))
		capture(NULL);
	if (draw(4) == 0)
		wander();
}

static void wander_leaf(struct chain *c)
{
	(void)c;
	wander();
}

static void maybe_capture(struct chain *c)
{
	(void)c;
	if (!draw(6))
		capture(NULL);
}

static __attribute__((noinline)) void through_chain(unsigned int n)
{
	struct chain c = {
		.seed = draw(2) || narrow ? draw(4) : draw(1024),
		.leaf = wander_leaf,
		.level = draw(3) ? NULL : maybe_capture,
	};

	switch (draw(narrow ? 2 : 3)) {
	case 0:
		c.fns = chain_fns_fp;
		c.mask = 15;
		break;
	case 1:
		c.fns = chain_fns_nofp;
		c.mask = 15;
		break;
	default:
		c.fns = chain_fns_nofp1024;
		c.mask = 1023;
		break;
	}
	depth += n;
	chain_descend(&c, n);
	depth -= n;
}

/* Makes a frame whose size only the frame pointer knows. */
static __attribute__((noinline)) void through_alloca(unsigned int size)
{
	volatile char *p = alloca(size + 1);

	p[0] = p[size] = 1;
	depth++;
	wander();
	depth--;
	p[0]++;
}

/* Changes callee-saved registers, among them the frame pointer. */
static __attribute__((noinline)) void through_register(uint64_t value)
{
#if defined(__x86_64__)
	__asm__ volatile("" : : : "rbx", "rbp", "r12");
#elif defined(__aarch64__)
	__asm__ volatile("" : : : "x19", "x20", "x28");
#endif
	depth++;
	if (value & 1)
		capture(NULL);
	wander();
	depth--;
	__asm__ volatile("" : : "r"(value));
}

/*
 * Calls @fn from a frame whose end only a word of the stack tells, by an expression: that word is
 * compared beside the return addresses.
 */
#if defined(__x86_64__)
void through_expression(void (*fn)(void *), void *arg);
__asm__(".pushsection .text\n"
	".globl through_expression\n"
	".type through_expression, @function\n"
	"through_expression:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	sub $40, %rsp\n"
	"	.cfi_adjust_cfa_offset 40\n"
	"	lea 48(%rsp), %rax\n"
	"	mov %rax, 16(%rsp)\n"
	"	.cfi_escape 0x0f, 3, 0x77, 16, 0x06\n" /* the CFA is the word at rsp + 16 */
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	.cfi_def_cfa %rsp, 48\n"
	"	add $40, %rsp\n"
	"	.cfi_adjust_cfa_offset -40\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size through_expression, . - through_expression\n"
	".popsection");
#else
static __attribute__((noinline)) void through_expression(void (*fn)(void *), void *arg)
{
	fn(arg);
	__asm__ volatile("");
}
#endif

static void wander_on(void *arg)
{
	(void)arg;
	wander();
}

static __attribute__((noinline)) void step(void)
{
	switch (draw(9)) {
	case 0:
	case 1:
	case 2:
		through_chain(1 + draw(narrow ? 2 : draw(4) ? 4 : 40));
		break;
	case 3:
		through_alloca(narrow ? 64 * draw(2) : draw(300));
		break;
	case 4:
		through_register(draw(4));
		break;
	case 5:
		if (draw(8))
			break;
		depth++;
		raise(draw(2) ? SIGUSR1 : SIGUSR2);
		depth--;
		break;
	case 6:
		depth++;
		through_expression(wander_on, NULL);
		depth--;
		break;
	default:
		capture(NULL);
		break;
	}
}

static __attribute__((noinline)) void wander(void)
{
	unsigned int steps = draw(5);

	while (steps-- && captures < limit && depth < deepest)
		step();
}

/* Returns the word that entry @at of @t was read from, or NULL. The search begins at @sp. */
static volatile uint64_t *find_word(const struct trace *t, int at, uint64_t *sp)
{
	volatile uint64_t *p = sp;

	for (int i = 1; i <= at; i++) {
		for (; *p != t->pcs[i]; p++)
			if (p - sp > 65536)
				return NULL;
		p++;
	}
	return p - 1;
}

static unsigned int changed, noticed, overlooked;

static bool differ(const struct trace *a, const struct trace *b)
{
	return a->n != b->n || memcmp(a->pcs, b->pcs, (size_t)a->n * 8) ||
	       a->info.end != b->info.end || a->info.end_pc != b->info.end_pc;
}

/*
 * Captures several times, then changes bit @bit of the return address of entry @at, or of the word
 * below it if @below is 1: there code with frame pointers saves them. Often the array has room up to about
 * that entry only: the first one without room tells that there are more.
 */
static __attribute__((noinline)) void change_word(int at, unsigned int bit, unsigned int below)
{
	const unsigned int max = draw(2) ? MAX : (unsigned int)at + draw(3);
	static struct trace whole, last, memo, walk, unchanged;
	struct shstk_opts opts = { .size = sizeof(opts) };
	volatile uint64_t *word = NULL;
	volatile int rounds = 11;
	uint64_t old = 0;

	for (int i = 0; i < rounds; i++) {
		struct trace *t = !i	 ? &whole :
				  i < 8	 ? &last :
				  i == 8 ? &memo :
				  i == 9 ? &walk :
					   &unchanged;

		if (i == 8) {
			word = find_word(&whole, at, __builtin_frame_address(0));
			if (!word)
				return;
			word -= below;
			old = *word;
			*word = old ^ 1ull << bit;
		}
		if (i == 10)
			*word = old;
		opts.sources = SHSTK_USE_WALK | (i < 9 ? SHSTK_USE_MEMO : 0);
		t->info.size = sizeof(t->info);
		t->n = shstk_capture(t->pcs, i ? max : MAX, &opts, &t->info);
	}
	changed++;
	noticed += differ(&walk, &unchanged);
	overlooked += differ(&memo, &walk) || differ(&last, &unchanged);
}

static void change_words(struct chain *c)
{
	int deep = *(const int *)c->arg;

	for (int i = 0; i < 40; i++)
		change_word(4 + (int)draw((unsigned int)deep), draw(47), draw(2));
}

/* Goes through five more functions with frame pointers. */
static void change_words_further(struct chain *c)
{
	struct chain inner = {
		.fns = chain_fns_fp,
		.mask = 15,
		.seed = draw(16),
		.leaf = change_words,
		.arg = c->arg,
	};

	chain_descend(&inner, 5);
}

/* Does the same behind two functions without, so that there are two runs of frame records. */
static void change_words_behind(struct chain *c)
{
	struct chain inner = {
		.fns = chain_fns_nofp,
		.mask = 15,
		.seed = draw(16),
		.leaf = change_words_further,
		.arg = c->arg,
	};

	chain_descend(&inner, 2);
}

static void change_long(void)
{
	static const int deep[] = { 5, 6, 7, 8, 9, 10, 20, 300, 517, 900 };
	static const chain_fn *const fns[] = { chain_fns_nofp, chain_fns_nofp1024, chain_fns_fp,
					       chain_fns_fp };

	for (unsigned int i = 0; i < 40; i++) {
		struct chain c = {
			.fns = fns[i % 4],
			.mask = i % 4 == 1 ? 1023 : 15,
			.seed = draw(1024),
			.leaf = i % 4 == 3 ? change_words_behind : change_words,
			.arg = (void *)(uintptr_t)&deep[i / 4],
		};

		chain_descend(&c, (unsigned int)deep[i / 4]);
	}
	printf("# %u changes, %u of them changed the trace\n", changed, noticed);
}

#if VERIFY_PACKED
/*
 * Returns 0 if a difference at word @at is reported exactly if it is one of the @n compared words,
 * and all addresses are right; else the number of mistakes.
 */
static unsigned int is_wrong(uint64_t differs, int at, int n, const uint64_t *stack,
			     const uint16_t *place, const uint64_t *out)
{
	unsigned int bad = !differs != (at >= n);

	for (int i = 0; i < n; i++)
		bad += out[i] != stack[place[i]];
	return bad;
}

/*
 * Returns 0 if @last is the last of @n words that differs, where that is word @at, and all addresses
 * behind it are right; else the number of mistakes.
 */
static unsigned int last_is_wrong(int last, int at, int n, const uint64_t *raw, const uint64_t *out)
{
	unsigned int bad = last != (at < n ? at : -1);

	for (int i = last + 1; i < n; i++)
		bad += out[i] != raw[i];
	return bad;
}

/*
 * Compares random words with remembered ones, of which one differs in one bit. Returns the number
 * of mistakes.
 */
static VERIFY_WIDE unsigned int packed_overlooks(void)
{
	static uint64_t stack[65536], out[512], raw[512];
	static uint32_t low[512];
	static uint16_t place[512];
	static int32_t slot[512];
	const uint8_t *base = (const uint8_t *)stack;
	uint32_t high = draw(65536);
	unsigned int bad = 0, bit;

	for (int i = 0; i < 512; i++) {
		place[i] = (uint16_t)(i * 127 + (int)draw(127));
		slot[i] = 8 * place[i];
		low[verify_packed_at(i)] = draw(1u << 31) * 2 + draw(2);
		raw[i] = (uint64_t)high << 32 | low[verify_packed_at(i)];
		stack[place[i]] = raw[i];
	}
	for (unsigned int round = 0; round < 4096; round++) {
		int n = 8 * (int)(1 + draw(64)), at = (int)draw(512);
		uint64_t differs;

		bit = draw(64);
		stack[place[at]] ^= 1ull << bit;
		differs = verify_packed(stack, place, low, high, out, n, round & 1);
		bad += is_wrong(differs, at, n, stack, place, out);
		n = 8 + (int)draw(1 + draw(505));
		differs = verify_wide((uint8_t *)stack, slot, raw, out, n, round & 1);
		bad += is_wrong(differs, at, n, stack, place, out);
		n = (int)draw(513);
		bad += last_is_wrong(verify_last_differs(base, slot, raw, out, n), at, n, raw, out);
		bad += last_is_wrong(verify_last_differs_inline(base, slot, raw, out, n), at, n,
				     raw, out);
		stack[place[at]] ^= 1ull << bit;
	}
	return bad;
}

/* Random frames with and without frame records, and what is remembered of them. */
struct remembered {
	uint64_t stack[65536], out[512], raw[512];
	int32_t slot[512];
	uint16_t place[512];
	struct frame_half low[512];
	struct frame_records records;
};

/* Makes 8 to @n frames; some neighbouring ones have records. */
static void remember(struct remembered *m, int n)
{
	struct frame_records *r = &m->records;
	int many = 8 + (int)draw((unsigned int)n - 7);

	r->from = (int)draw((unsigned int)(n - many) + 1);
	r->end = r->from + many;
	r->high = (struct frame_half){ draw(65536), draw(65536) };
	for (int i = 0; i < n; i++) {
		int at = 1 + i * 127 + (int)draw(126);

		m->slot[i] = 8 * at;
		m->stack[at] = m->raw[i] = (uint64_t)r->high.ra << 32 | draw(1u << 31) << 1;
		if (i < r->from || i >= r->end)
			continue;
		if (i == r->from)
			r->base = m->stack + at - 1;
		m->place[i - r->from] = (uint16_t)(m->stack + at - 1 - r->base);
		m->low[i - r->from] = (struct frame_half){ draw(1u << 31), (uint32_t)m->raw[i] };
		m->stack[at - 1] = (uint64_t)r->high.fp << 32 | m->low[i - r->from].fp;
	}
	r->place = m->place;
	r->low = m->low;
}

/*
 * Compares frames of which one word differs in one bit: a return address or the word below it, which
 * only counts if it is that of a record. Returns the number of mistakes.
 */
static VERIFY_WIDE unsigned int records_overlook(void)
{
	static struct remembered m;
	unsigned int bad = 0;

	for (unsigned int round = 0; round < 4096; round++) {
		int n = 8 + (int)draw(505), at = (int)draw((unsigned int)n);
		bool below = draw(2), counts;
		uint64_t *word, same, differs;

		remember(&m, n);
		counts = !below || (at >= m.records.from && at < m.records.end);
		word = &m.stack[m.slot[at] / 8 - below];
		same = verify_records((uint8_t *)m.stack, m.slot, m.raw, m.out, n, &m.records,
				      round & 1);
		bad += same != 0 || memcmp(m.out, m.raw, (size_t)n * 8);
		*word ^= 1ull << draw(64);
		differs = verify_records((uint8_t *)m.stack, m.slot, m.raw, m.out, n, &m.records,
					 round & 1);
		bad += !differs == counts;
	}
	return bad;
}

static bool can_pack(void)
{
	return verify_is_wide();
}
#else
static unsigned int records_overlook(void)
{
	return 0;
}

static unsigned int packed_overlooks(void)
{
	return 0;
}

static bool can_pack(void)
{
	return false;
}
#endif

/*
 * The following captures find what they need in the memo, without a walk, although their arrays have no
 * room for the trace. Each walk is begun by scratch_call().
 */

int __real_scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg);
int __wrap_scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg);

static unsigned int walks;

int __wrap_scratch_call(size_t size, int (*fn)(void *mem, void *arg), void *arg)
{
	walks++;
	return __real_scratch_call(size, fn, arg);
}

/* Captures with an array of @max entries one call further down, and then from here, @n times. */
static __attribute__((noinline)) void capture_small(unsigned int max, int n, unsigned int down)
{
	uint64_t pcs[64];
	struct shstk_opts opts = { .size = sizeof(opts),
				   .sources = SHSTK_USE_MEMO | SHSTK_USE_WALK };

	for (volatile int i = 0; i < n; i++) {
		if (down)
			capture_small(max, 1, down - 1);
		if (shstk_capture(pcs, max, &opts, NULL) != (int)max)
			wrong++;
	}
}

/* Counts the walks of captures with small arrays, again at one place and at three by turns. */
static void small_arrays(struct chain *c)
{
	static const unsigned int sizes[] = { 2, 3, 5, 8, 16, 32, 64 };
	unsigned int *walked = c->arg;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		/* With 2 entries there is none behind two new frames. */
		for (unsigned int down = 0; down < (sizes[i] > 5 ? 3 : 1); down++) {
			/* The memo may wait for up to 31 captures first. Both calls are the same one. */
			for (volatile int pass = 0; pass < 2; pass++) {
				walks = 0;
				capture_small(sizes[i], 40, down);
			}
			*walked += walks;
		}
	}
}

/* Returns how many captures walked. */
static unsigned int small_arrays_walk(void)
{
	unsigned int walked = 0;
	struct chain c = { .mask = 15, .leaf = small_arrays, .arg = &walked };

	c.fns = chain_fns_nofp;
	chain_descend(&c, 100);
	c.fns = chain_fns_fp;
	chain_descend(&c, 100);
	printf("# %u captures with small arrays walked\n", walked);
	return walked;
}

/*
 * The same for captures behind a frame whose step reads more than the slot: first, what the next ones
 * have in common with; then from other functions and other depths.
 */
static void capture_behind(struct chain *c)
{
	static struct trace memo, walk;
	struct shstk_opts opts = { .size = sizeof(opts),
				   .sources = SHSTK_USE_MEMO | SHSTK_USE_WALK };

	(void)c;
	/* The same call makes both captures. */
	for (volatile int i = 0; i < 2; i++) {
		const unsigned int before = walks;
		struct trace *t = i ? &walk : &memo;

		opts.sources = SHSTK_USE_WALK | (i ? 0 : SHSTK_USE_MEMO);
		t->info.size = sizeof(t->info);
		t->n = shstk_capture(t->pcs, MAX, &opts, &t->info);
		if (i)
			walks = before; /* this one is to walk */
	}
	wrong += differ(&memo, &walk) || memo.info.guessed != walk.info.guessed;
}

static void capture_behind_often(void *walked)
{
	struct chain c = { .fns = chain_fns_fp, .mask = 15, .leaf = capture_behind };

	for (volatile int i = 0; i < 200; i++) {
		/* The memo may wait for up to 31 captures first. */
		if (i == 100)
			walks = 0;
		c.seed = draw(16);
		c.fns = draw(2) ? chain_fns_fp : chain_fns_nofp;
		chain_descend(&c, 1 + draw(4));
	}
	*(unsigned int *)walked = walks;
}

static void behind_expression(struct chain *c)
{
	through_expression(capture_behind_often, c->arg);
}

/* Returns how many captures behind such a frame walked. */
static unsigned int captures_behind_walk(void)
{
	unsigned int walked = 0;
	struct chain c = {
		.fns = chain_fns_nofp, .mask = 15, .leaf = behind_expression, .arg = &walked
	};

	chain_descend(&c, 100);
	printf("# %u captures behind an expression walked\n", walked);
	return walked;
}

/* The deepest part of a trace that is captured by turns with others. */
struct turn {
	int at; /* entry whose word is changed before the capture; 0: none */
	unsigned int bit; /* the bit of that word */
	unsigned int below; /* 1: the word below that one is changed */
};

static unsigned int turns_wrong, turns_noticed, turns_reused;

/* Captures by a plain walk, then with the memo, then by a plain walk again. A word changes between. */
static void capture_turn(struct chain *c)
{
	static struct trace whole, memo, walk;
	const struct turn *turn = c->arg;
	struct shstk_opts opts = { .size = sizeof(opts) };
	volatile uint64_t *word = NULL;
	uint64_t old = 0;

	for (volatile int i = 0; i < 3; i++) {
		struct trace *t = !i ? &whole : i == 1 ? &memo : &walk;
		const unsigned int before = walks;

		word = i == 1 && turn->at ?
			       find_word(&whole, turn->at, __builtin_frame_address(0)) :
			       word;
		if (i == 1 && word) {
			word -= turn->below;
			old = *word;
			*word = old ^ 1ull << turn->bit;
		}
		opts.sources = SHSTK_USE_WALK | (i == 1 ? SHSTK_USE_MEMO : 0);
		t->info.size = sizeof(t->info);
		t->n = shstk_capture(t->pcs, MAX, &opts, &t->info);
		if (i != 1)
			walks = before;
	}
	if (word)
		*word = old;
	turns_wrong += differ(&memo, &walk);
	turns_noticed += differ(&whole, &walk);
	turns_reused += memo.n > 1 && (int)memo.info.reused == memo.n - 1;
}

/* Captures at four places by turns, none of which is near another one. Word @turn->at changes at the end. */
static __attribute__((noinline)) void take_turns(const struct turn *turn, int rounds)
{
	static const struct turn plain;
	struct chain c = { .mask = 15, .leaf = capture_turn };

	for (volatile int i = 0; i < rounds; i++) {
		const bool last = i == rounds - 1;

		c.seed = (unsigned int)i % 2;
		c.fns = i % 4 < 2 ? chain_fns_fp : chain_fns_nofp;
		c.arg = (void *)(uintptr_t)(last ? turn : &plain);
		chain_descend(&c, 20);
	}
}

static void change_turns(struct chain *c)
{
	static const struct turn plain;
	unsigned int *walked = c->arg;

	/* The memo may wait for up to 31 captures first. Both calls are the same one. */
	for (volatile int pass = 0; pass < 2; pass++) {
		walks = 0;
		take_turns(&plain, 120);
	}
	*walked = walks;
	for (int i = 0; i < 200; i++) {
		const struct turn turn = { 23 + (int)draw(18), draw(47), draw(2) };

		take_turns(&turn, 24 + (int)draw(4));
	}
}

/* Returns how many captures by turns walked. */
static unsigned int turns_walk(void)
{
	unsigned int walked = 0;
	struct chain c = { .fns = chain_fns_fp, .mask = 15, .leaf = change_turns, .arg = &walked };

	chain_descend(&c, 20);
	printf("# %u captures by turns walked; %u of 200 changes changed the trace\n", walked,
	       turns_noticed);
	return walked;
}

/*
 * Four callers with equal frames, and what calls them at three levels: 64 ways to one place. It is a place that
 * branches.
 */
#define WAYS 64

static void go_one_of_four(struct chain *c, unsigned int way, unsigned int level);

#define ONE_OF_FOUR(name)                                                             \
	static __attribute__((noinline)) void name(struct chain *c, unsigned int way, \
						   unsigned int level)                \
	{                                                                             \
		go_one_of_four(c, way, level + 1);                                    \
		__asm__ volatile("");                                                 \
	}

ONE_OF_FOUR(go_first)
ONE_OF_FOUR(go_second)
ONE_OF_FOUR(go_third)
ONE_OF_FOUR(go_fourth)

static __attribute__((noinline)) void go_one_of_four(struct chain *c, unsigned int way,
						     unsigned int level)
{
	static void (*const ways[])(struct chain *, unsigned int,
				    unsigned int) = { go_first, go_second, go_third, go_fourth };

	if (level == 3)
		c->leaf(c);
	else
		ways[way >> 2 * level & 3](c, way, level);
	__asm__ volatile("");
}

/*
 * Captures at the end of ways by chance, all of them often. If @changes, a word changes in every eighth capture: one of
 * the ways or of the chain in front of them, whose words are all on the stack, behind what capture_turn() has there.
 */
static __attribute__((noinline)) void go_all_ways(struct chain *c, bool changes)
{
	for (volatile unsigned int i = 0; i < 20 * WAYS; i++) {
		struct turn turn = { 0 };

		if (changes && i % 8 == 7)
			turn = (struct turn){ 3 + (int)draw(18), draw(47), draw(2) };
		c->arg = &turn;
		go_one_of_four(c, draw(WAYS), 0);
	}
}

static void change_ways(struct chain *c)
{
	struct chain leaf = { .leaf = capture_turn };
	bool *ret = c->arg;

	turns_wrong = turns_noticed = 0;
	for (volatile int pass = 0; pass < 2; pass++) {
		turns_reused = 0;
		go_all_ways(&leaf, false);
	}
	printf("# of %u captures at a place that branches %u reused all frames\n", 20 * WAYS,
	       turns_reused);
	*ret = turns_reused > 20 * WAYS / 2;
	for (volatile int pass = 0; pass < 4; pass++)
		go_all_ways(&leaf, true);
	printf("# %u changes changed the trace there, %u were overlooked\n", turns_noticed,
	       turns_wrong);
	*ret = *ret && !turns_wrong && turns_noticed > 50;
}

/* Returns whether a place that branches and serves gives way to one that is seen now and then. */
static bool branch_gives_way(void)
{
	struct place x = { .pc = 1, .sp = 8, .guessed = PLACE_BRANCHES };
	const uint32_t own = places_hash(x.pc, x.sp);

	if (place_seen(&x, own + 1))
		return true;
	place_served(&x, own);
	return place_seen(&x, own + 1);
}

/* Returns whether a place that is reached in many ways has their traces, and no change is overlooked there. */
static bool branches_serve(void)
{
	bool ret = false;
	struct chain c = { .fns = chain_fns_nofp, .mask = 15, .leaf = change_ways, .arg = &ret };

	chain_descend(&c, 20);
	return ret;
}

void __real_place_keep(struct places *p, struct place *x, const struct call *c,
		       const struct memo_side *s, int j, uint64_t id, uint64_t state);
void __wrap_place_keep(struct places *p, struct place *x, const struct call *c,
		       const struct memo_side *s, int j, uint64_t id, uint64_t state);

static unsigned int keeps;
static jmp_buf further_out;
static bool leaves; /* the next capture whose trace a place is to keep is left */

void __wrap_place_keep(struct places *p, struct place *x, const struct call *c,
		       const struct memo_side *s, int j, uint64_t id, uint64_t state)
{
	keeps++;
	if (leaves) {
		leaves = false;
		longjmp(further_out, 1);
	}
	__real_place_keep(p, x, c, s, j, id, state);
}

/* What a trace depends on beside return addresses. */
struct beside {
	bool word; /* a word that the step out of the first frame reads; else the frame pointer */
	bool differs;
	int n; /* entries where nothing differs */
	unsigned int wrong, noticed;
};

/* Captures from the caller with the memo and by a plain walk, after what it depends on is changed. */
static __attribute__((noinline)) void capture_beside(void *arg)
{
	static struct trace memo, walk;
	struct shstk_opts opts = { .size = sizeof(opts) };
	struct shstk_hook hook = SHSTK_HOOK_HERE;
	volatile uint64_t *word = (volatile uint64_t *)(uintptr_t)(hook.sp + 16);
	struct beside *b = arg;
	const uint64_t change = b->differs ? 64 : 0;

	if (b->word)
		*word += change;
	else
		hook.fp += change;
	opts.sources = SHSTK_USE_WALK | SHSTK_USE_MEMO;
	capture_hook(hook, &memo, MAX, &opts);
	opts.sources = SHSTK_USE_WALK;
	capture_hook(hook, &walk, MAX, &opts);
	if (b->word)
		*word -= change;
	b->wrong += differ(&memo, &walk);
	if (!b->differs)
		b->n = walk.n;
	b->noticed += walk.n != b->n;
}

/* Makes a frame that only its frame pointer describes, at one of two places. */
static __attribute__((noinline)) void at_one_of_two(unsigned int size, struct beside *b)
{
	volatile char *p = alloca(size + 1);

	p[0] = p[size] = 1;
	if (b->word)
		through_expression(capture_beside, b);
	else
		capture_beside(b);
	p[0]++;
}

static void change_beside(struct chain *c)
{
	struct beside *b = c->arg;

	for (volatile unsigned int i = 0; i < 200; i++) {
		b->differs = i > 100 && i % 8 == 0;
		at_one_of_two(i % 2 * 64, b);
	}
}

/* Returns the number of mistakes where a word or the frame pointer is another one at a place. */
static unsigned int overlook_beside(bool word)
{
	struct beside b = { .word = word };
	struct chain c = { .fns = chain_fns_nofp, .mask = 15, .leaf = change_beside, .arg = &b };

	chain_descend(&c, 50);
	printf("# %u mistakes where %s differs and %u traces with it\n", b.wrong,
	       word ? "a word" : "the frame pointer", b.noticed);
	return b.wrong + !b.noticed;
}

static void wander_often(struct chain *c)
{
	(void)c;
	while (captures < limit)
		wander();
}

/*
 * Captures as often again, now in few functions that are not far from each other, below the same ones.
 * Returns how many traces places were to keep.
 */
static unsigned int wander_narrowly(void)
{
	struct chain c = { .fns = chain_fns_nofp, .mask = 15, .leaf = wander_often };

	keeps = 0;
	limit += captures;
	depth = 0;
	deepest = 6;
	narrow = true;
	chain_descend(&c, 40);
	printf("# %u captures in few functions, of which places were to keep %u\n", limit, keeps);
	return keeps;
}

static void capture_once(struct chain *c)
{
	const struct shstk_opts opts = { .size = sizeof(opts),
					 .sources = SHSTK_USE_MEMO | SHSTK_USE_WALK };
	static uint64_t pcs[MAX];

	(void)c;
	wrong += shstk_capture(pcs, MAX, &opts, NULL) < 1;
}

/* Captures at 40 places by turns, 60 times. Notes how many of the last 800 traces places were to keep. */
static void capture_at_many(struct chain *c)
{
	struct chain d = { .fns = chain_fns_nofp, .mask = 15, .leaf = capture_once };

	for (volatile unsigned int i = 0; i < 40 * 60; i++) {
		if (i == 40 * 40)
			keeps = 0;
		chain_descend(&d, 1 + i % 40);
	}
	*(unsigned int *)c->arg = keeps;
}

void __real_memo_clear(struct memo *m);
void __wrap_memo_clear(struct memo *m);

static unsigned int cleared, unowned;

/* A signal handler that captures while the memo is cleared must find that another capture has it. */
void __wrap_memo_clear(struct memo *m)
{
	cleared++;
	unowned += thread_self && enter_is_outermost(thread_self);
	__real_memo_clear(m);
}

static void leave_a_capture(struct chain *c)
{
	unsigned int unused = 0;
	struct chain d = { .arg = &unused };

	(void)c;
	leaves = true;
	capture_at_many(&d);
}

/* Leaves a capture by longjmp(), and captures from further out. Returns whether the memo was had by nobody then. */
static bool leave_memo_alone(void)
{
	struct chain c = { .fns = chain_fns_nofp, .mask = 15, .leaf = leave_a_capture };

	if (!setjmp(further_out))
		chain_descend(&c, 20);
	cleared = unowned = 0;
	capture_once(NULL);
	printf("# %s is left; then the memo is cleared %u times, %u times as nobody's\n",
	       leaves ? "no capture" : "a capture", cleared, unowned);
	return leaves || !cleared || unowned;
}

/* What served captures in a row, or by turns. */
struct row {
	unsigned int captures;
	unsigned int by_place; /* of these were served by a place */
	unsigned int untold; /* of these did not tell the hook their identity */
};

static void capture_in_row(struct chain *c)
{
	const struct shstk_opts opts = { .size = sizeof(opts),
					 .sources = SHSTK_USE_MEMO | SHSTK_USE_WALK };
	struct shstk_hook hook = SHSTK_HOOK_HERE;
	struct row *r = c->arg;
	static uint64_t pcs[MAX];
	int n;

	hook.id = 0;
	n = shstk_hook_capture(&hook, pcs, MAX, &opts);
	r->untold += n < 1 || hook.id != shstk_trace_id(pcs, n);
	r->captures++;
	r->by_place += thread_self->places->when + 1 == thread_self->captures;
}

/*
 * Captures at three places by turns, TURNS times, then at each of them alone. Both calls of a place are the same one.
 * What was captured before may have left the memo alone for 31 captures, in which no trace is kept.
 */
#define TURNS 300
static void capture_rows(struct chain *c)
{
	struct chain d = { .fns = chain_fns_nofp, .mask = 15, .leaf = capture_in_row };
	struct row *r = c->arg;

	for (volatile unsigned int i = 0; i < TURNS + 3 * 60; i++) {
		const unsigned int row = i < TURNS ? 0 : 1 + (i - TURNS) / 60;

		d.arg = &r[row];
		chain_descend(&d, 10 + 10 * (row ? row - 1 : i % 3));
	}
}

/* Returns whether a trace that is captured again and again goes from its place to the memo, and soon. */
static bool rows_go_to_memo(void)
{
	struct row r[4] = { 0 };
	struct chain c = { .fns = chain_fns_nofp, .mask = 15, .leaf = capture_rows, .arg = r };
	unsigned int most = 0, untold = 0;

	chain_descend(&c, 20);
	for (int i = 0; i < 4; i++) {
		untold += r[i].untold;
		printf("# %u of %u captures %s were served by a place\n", r[i].by_place,
		       r[i].captures, i ? "in a row" : "by turns");
		most = i && r[i].by_place > most ? r[i].by_place : most;
	}
	return !untold && r[0].by_place > 10 && most > PLACE_ROW / 2 &&
	       most <= PLACE_ROW + PLACE_LEFT;
}

/* Does that @n frames deep, where there is no room for so many traces, or for even one. */
static unsigned int keep_in_vain(unsigned int n)
{
	unsigned int kept = 0;
	struct chain c = {
		.fns = chain_fns_nofp, .mask = 15, .leaf = capture_at_many, .arg = &kept
	};

	chain_descend(&c, n);
	printf("# %u of 800 captures %u frames deep are kept\n", kept, n);
	return kept;
}

/* Returns how many places have a trace that would be compared by a capture there. */
static unsigned int places_serve(void)
{
	const struct places *p = thread_self->places;
	unsigned int n = 0;

	for (int i = 0; i < PLACES; i++) {
		const struct place *x = &p->place[i];
		const struct call c = { .ra = x->pc, .sp = x->sp, .fp = x->fp, .max = MAX };

		n += x->sp && !place_branches(x) && place_serves(p, x, &c, p->hi);
	}
	return n;
}

/* Lets all generations of the rules go by, up to the one that has the number of the present one. */
static void pass_all_generations(void)
{
	const uint64_t gen = rulecache_gen();

	do
		rulecache_flush();
	while (rulecache_gen() != gen);
}

/* What is counted about traces that outlive generations. */
struct outlive {
	bool unload; /* something is unloaded in the last generation, too */
	unsigned int outlived;
};

/* Captures three times at one place. Before the third time all generations go by. */
static void capture_before_and_after(struct chain *c)
{
	static struct trace t[3];
	const struct shstk_opts opts = { .size = sizeof(opts),
					 .sources = SHSTK_USE_WALK | SHSTK_USE_MEMO };
	const uint64_t *counter = modmap_watch.counter[0];
	struct outlive *o = c->arg;
	uint64_t loaded = *counter;

	modmap_watch.counter[0] = &loaded;
	for (volatile int i = 0; i < 3; i++) {
		if (i == 2)
			pass_all_generations();
		if (i == 2 && o->unload)
			loaded--;
		t[i].info.size = sizeof(t[i].info);
		t[i].n = shstk_capture(t[i].pcs, MAX, &opts, &t[i].info);
	}
	printf("# %u of %d frames reused before all generations of rules, %u after\n",
	       t[1].info.reused, t[1].n, t[2].info.reused);
	o->outlived += !t[1].info.reused || t[2].info.reused || differ(&t[1], &t[2]);
	modmap_watch.counter[0] = counter;
}

/* Returns whether a rule that is put late, when its generation is over, is found when that comes again. */
static bool late_rule_outlives(void)
{
	const uint64_t pc = 4096 * 4096, rule = RULE_GUESS;
	uint64_t last, found;

	do {
		last = rulecache_gen();
		rulecache_flush();
	} while (rulecache_gen());
	rulecache_put(pc, last, rule);
	do
		rulecache_flush();
	while (rulecache_gen() != last);
	found = rulecache_get(pc, last, load_relaxed(&rulecache.mask));
	printf("# a rule that was put late is %s\n", found == RULE_NONE ? "gone" : "still there");
	return found != RULE_NONE;
}

/* Returns how many traces still serve after the generations of the rules began again. */
static unsigned int outlive_generations(void)
{
	const unsigned int before = places_serve();
	struct outlive o = { .unload = false };
	struct chain c = {
		.fns = chain_fns_nofp, .mask = 15, .leaf = capture_before_and_after, .arg = &o
	};

	pass_all_generations();
	printf("# %u places have traces before all generations of rules, %u after\n", before,
	       places_serve());
	o.outlived += before ? places_serve() : 1;
	chain_descend(&c, 20);
	o.unload = true;
	chain_descend(&c, 20);
	return o.outlived + late_rule_outlives();
}

static char stand_in;
static uint64_t stands_for;

static uint64_t mean(uint64_t pc, struct regs *regs)
{
	(void)regs;
	return pc == (uintptr_t)&stand_in ? stands_for : pc;
}

/*
 * Captures again and again from where the return address stands for another one, now for the true
 * one and now for this function. Returns how many traces do not begin with the address that was meant.
 */
static __attribute__((noinline)) unsigned int capture_meant(void)
{
	const struct shstk_opts opts = { .size = sizeof(opts),
					 .sources = SHSTK_USE_MEMO | SHSTK_USE_WALK };
	static uint64_t pcs[MAX];
	unsigned int bad = 0;

	meant_by = mean;
	for (int i = 0; i < 40; i++) {
		struct shstk_hook hook = SHSTK_HOOK_HERE;

		stands_for = i / 8 % 2 ? (uintptr_t)capture_meant + 4 : hook.ra;
		hook.ra = (uintptr_t)&stand_in;
		bad += shstk_hook_capture(&hook, pcs, MAX, &opts) < 1 || pcs[0] != stands_for;
	}
	meant_by = NULL;
	return bad;
}

/*
 * The following programs are like servers that answer one request after the other: neighbouring
 * traces have most frames in common, and traces a little apart have none.
 */

static unsigned int taken, frames;

static void count_reused(struct chain *c)
{
	static uint64_t pcs[MAX];
	struct shstk_info info = { .size = sizeof(info) };

	(void)c;
	frames += (unsigned int)shstk_capture(pcs, MAX, NULL, &info);
	taken += info.reused;
}

/* Captures with other innermost functions each time. */
static void requests(struct chain *c)
{
	struct chain inner = {
		.fns = chain_fns_nofp1024,
		.mask = 1023,
		.leaf = count_reused,
	};
	unsigned int n = *(unsigned int *)c->arg;

	while (n--) {
		inner.seed = draw(1024);
		chain_descend(&inner, 3 + draw(4));
	}
}

/* Makes requests from another place each time, so that nothing is where it was. */
static __attribute__((noinline)) void elsewhere(unsigned int depth, unsigned int n)
{
	struct chain c = {
		.fns = chain_fns_nofp1024,
		.mask = 1023,
		.seed = draw(1024),
		.leaf = requests,
		.arg = &n,
	};
	volatile char *p = alloca(16 + draw(4000));

	p[0] = 0;
	chain_descend(&c, depth);
	p[0]++;
}

/* Returns true if the memo is used again when it pays, after a time when it did not. */
static bool pays_again(void)
{
	int i;

	for (i = 0; i < 300; i++)
		elsewhere(60, 1);
	taken = frames = 0;
	for (i = 0; i < 200; i++)
		elsewhere(60, 8);
	printf("# %u of %u frames reused\n", taken, frames);
	return taken > frames / 2;
}

int main(int argc, char **argv)
{
	unsigned int bad_packed, bad_records, walked, behind, outlived, meant, beside;
	bool pays, rows, turned, overlooked_turns, in_vain, kept, branched, alone;
	static char other_stack[1 << 20];
	struct sigaction sa = { .sa_sigaction = handler };
	stack_t ss = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);

	if (argc > 2)
		limit = (unsigned int)strtoul(argv[2], NULL, 0);
	sa.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGUSR1, &sa, NULL);
	sa.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &sa, NULL);
	sigaltstack(&ss, NULL);
	printf("TAP version 13\n1..19\n# seed %llu\n", (unsigned long long)seed);
	state = seed * 0x9e3779b97f4a7c15ull | 1;
	while (captures < limit)
		wander();
	printf("# %u captures compared, %u of them reused frames\n", compared, reused);
	printf("%s 1 every trace equals the plain walk\n", wrong ? "not ok" : "ok");
	/* If most traces are short, only one in 32 captures tries the memo. */
	printf("%s 2 many traces reused frames of the last one\n",
	       reused > compared / 100 ? "ok" : "not ok");
	printf("%s 3 hooks are told the identity of every trace\n", wrong_ids ? "not ok" : "ok");
	change_long();
	printf("%s 4 no changed return address or frame pointer is overlooked\n",
	       overlooked || noticed < 100 ? "not ok" : "ok");
	bad_packed = can_pack() ? packed_overlooks() : 0;
	printf("%s 5 words of a repeated trace are compared bit by bit%s\n",
	       bad_packed ? "not ok" : "ok", can_pack() ? "" : " # SKIP no AVX2");
	pays = pays_again();
	printf("%s 6 a memo that pays again after a while is used again\n", pays ? "ok" : "not ok");
	bad_records = can_pack() ? records_overlook() : 0;
	printf("%s 7 frame records of a repeated trace are compared bit by bit%s\n",
	       bad_records ? "not ok" : "ok", can_pack() ? "" : " # SKIP no AVX2");
	walked = small_arrays_walk();
	printf("%s 8 captures with small arrays use the memo as well\n",
	       walked || wrong ? "not ok" : "ok");
	/* A few walk because the cache of rules has pushed a rule out. */
	behind = captures_behind_walk() > 30;
	printf("%s 9 captures behind a frame that an expression describes use the memo as well\n",
	       behind || wrong ? "not ok" : "ok");
	/* Places that lie in the same element push each other out. */
	turned = turns_walk() > 60;
	printf("%s 10 captures by turns at places far from each other do not walk\n",
	       turned ? "not ok" : "ok");
	overlooked_turns = turns_wrong || turns_noticed < 50;
	printf("%s 11 no change of what they have in common is overlooked\n",
	       overlooked_turns ? "not ok" : "ok");
	in_vain = keep_in_vain(100) > 400;
	in_vain |= keep_in_vain(300) > 400;
	printf("%s 12 traces for which there is no room are seldom kept\n",
	       in_vain ? "not ok" : "ok");
	outlived = outlive_generations();
	printf("%s 13 no trace and no rule outlives the generations of rules\n",
	       outlived ? "not ok" : "ok");
	meant = capture_meant();
	printf("%s 14 return addresses that stand for others are kept by no place\n",
	       meant ? "not ok" : "ok");
	beside = overlook_beside(false);
#if defined(__x86_64__)
	beside += overlook_beside(true);
#endif
	printf("%s 15 words and frame pointers at places are compared as well\n",
	       beside ? "not ok" : "ok");
	kept = wander_narrowly() > limit / 100;
	printf("%s 16 traces at places that are captured at again equal the plain walk\n",
	       wrong || wrong_ids || !kept ? "not ok" : "ok");
	branched = branches_serve() && !branch_gives_way();
	printf("%s 17 a place that is reached in many ways has the traces of all\n",
	       branched ? "ok" : "not ok");
	alone = leave_memo_alone();
	printf("%s 18 what a capture left by longjmp() is forgotten by one that has the state\n",
	       alone ? "not ok" : "ok");
	rows = rows_go_to_memo();
	printf("%s 19 a trace that is captured again and again is left to the memo\n",
	       rows ? "ok" : "not ok");
	return wrong || wrong_ids || !kept || !branched || !rows || alone || beside || walked ||
	       behind || turned || overlooked_turns || in_vain || outlived || meant ||
	       reused <= compared / 100 || overlooked || noticed < 100 || bad_packed ||
	       bad_records || !pays;
}
