// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tree.c - functions with different frames that call each other; see tree.h.
 */
#include <alloca.h>
#include <string.h>

#include "tree.h"
#include "truth.h"

__thread struct truth *truth;

uint32_t tree_random(struct tree *t)
{
	t->seed = t->seed * 6364136223846793005ull + 1442695040888963407ull;
	return t->seed >> 33;
}

static inline __attribute__((always_inline)) void children(struct tree *t, int level);

#ifdef __clang__
#define FRAMED
#define UNOPTIMISED __attribute__((optnone))
#else
#define FRAMED __attribute__((optimize("no-omit-frame-pointer")))
#define UNOPTIMISED __attribute__((optimize("O0")))
#endif

/* Makes the compiler keep the frame's buffer, although nothing else uses it. */
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

static noinline void small(struct tree *t, int level)
{
	TRUTH_ENTER();
	children(t, level);
	TRUTH_LEAVE();
}

static noinline void large(struct tree *t, int level)
{
	char buf[3000];

	TRUTH_ENTER();
	KEEP(buf);
	children(t, level);
	KEEP(buf);
	TRUTH_LEAVE();
}

static noinline void variable(struct tree *t, int level)
{
	char *buf = alloca(16 + tree_random(t) % 500);

	TRUTH_ENTER();
	KEEP(buf);
	children(t, level);
	KEEP(buf);
	TRUTH_LEAVE();
}

static noinline void aligned(struct tree *t, int level)
{
	char buf[64] __attribute__((aligned(64)));

	TRUTH_ENTER();
	KEEP(buf);
	children(t, level);
	KEEP(buf);
	TRUTH_LEAVE();
}

static noinline FRAMED void framed(struct tree *t, int level)
{
	TRUTH_ENTER();
	children(t, level);
	TRUTH_LEAVE();
}

static noinline UNOPTIMISED void unoptimised(struct tree *t, int level)
{
	TRUTH_ENTER();
	tree_call(t, level - 1);
	t->visit(t->arg);
	TRUTH_LEAVE();
}

static noinline unsigned long many_registers(struct tree *t, int level)
{
	unsigned long a = tree_random(t), b = a * 3, c = b ^ a, d = c + 7, e = d * b, f = e - c;

	TRUTH_ENTER();
	/* All six values live across the calls, in saved registers. */
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	children(t, level);
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	TRUTH_LEAVE();
	return a + b + c + d + e + f;
}

static inline __attribute__((always_inline)) void children(struct tree *t, int level)
{
	int n = 1 + !(tree_random(t) % 4);

	t->visit(t->arg);
	NO_TAIL_CALL();
	while (n-- && level > 0) {
		tree_call(t, level - 1);
		NO_TAIL_CALL();
		if (!(tree_random(t) % 3))
			t->visit(t->arg);
	}
	NO_TAIL_CALL();
}

noinline void tree_call(struct tree *t, int level)
{
	TRUTH_ENTER();
	switch (level < 0 ? 0 : tree_random(t) % 7) {
	case 0:
		small(t, level);
		break;
	case 1:
		large(t, level);
		break;
	case 2:
		variable(t, level);
		break;
	case 3:
		aligned(t, level);
		break;
	case 4:
		framed(t, level);
		break;
	case 5:
		unoptimised(t, level);
		break;
	default:
		many_registers(t, level);
		break;
	}
	NO_TAIL_CALL();
	TRUTH_LEAVE();
}

int noinline truth_recurse(int depth, void (*leaf)(void))
{
	volatile int pad[2];

	TRUTH_ENTER();
	pad[0] = depth;
	if (depth)
		truth_recurse(depth - 1, leaf);
	else
		leaf();
	NO_TAIL_CALL();
	TRUTH_LEAVE();
	return pad[0];
}
