// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ahead_test.c - tests that samples that wait come back in their order, each with its own stack,
 * whatever threads unwind them, and that such a thread survives a file that is shortened.
 *
 * What unwinds is replaced: it takes the words of the copy for the entries. What a process has mapped
 * is one number. All is built with ThreadSanitizer, which ends a test in which two threads use the same
 * memory at a time, or the number changes while a thread may read it.
 */
#include "tools/convert/ahead.c"
#include "tools/shortened.c"

#include "kselftest_harness.h"

#define SAMPLES 5000
#define DEPTH 40 /* entries of a stack, at most */
#define WORDS 50 /* words of a copy, at most */
#define TIDS 9 /* threads that are sampled */
#define PAGE 4096

/* All that a thread may use to unwind is its own. */
struct unwinder {
	unsigned int stacks;
};

static struct unwinder unwinders[MAPPINGS_WORKERS];
static unsigned int mapped; /* what the process has mapped */
static const volatile uint8_t *file; /* what the unwinder reads besides, or NULL */

const char *__tsan_default_options(void);

/* The test has a handler of SIGBUS, and what is found is to fail it. */
const char *__tsan_default_options(void)
{
	return "handle_sigbus=0:halt_on_error=1";
}

struct unwinder *mappings_unwinder(struct mappings *mappings, pid_t pid, unsigned int worker,
				   uint64_t pc)
{
	(void)mappings, (void)pid;
	return pc % 7 ? &unwinders[worker] : NULL;
}

int unwinder_unwind(struct unwinder *u, pid_t pid, const struct stack_copy *copy,
		    struct unwound *ret)
{
	const size_t nr = copy->size / sizeof(uint64_t);

	u->stacks += file ? !*file : 1;
	ret->nr = nr < ret->max ? nr : ret->max;
	for (unsigned int i = 0; i < ret->nr; i++) {
		memcpy(&ret->pcs[i], copy->bytes + i * sizeof(uint64_t), sizeof(uint64_t));
		ret->sps[i] = ret->pcs[i] + pid;
		ret->marks[i] = i;
	}
	ret->end = mapped;
	return copy->regs->pc % 11 ? 0 : -EINVAL;
}

/* ---- Samples ---- */

/* The words of all samples: those of sample N begin with N. */
static uint64_t words[SAMPLES + WORDS];

static size_t nr_words(uint64_t n)
{
	return n % (WORDS + 1);
}

static int add(struct ahead *a, struct process *p, uint64_t n)
{
	const struct ahead_sample s = {
		.time = n,
		.process = p,
		.sample = {
			.pid = p->pid,
			.tid = n % TIDS,
			.chain = &words[n],
			.nr = n % 4,
			.regs = { .pc = n },
			.stack = (const uint8_t *)&words[n],
			.stack_size = nr_words(n) * sizeof(*words),
		},
	};

	return ahead_add(a, &s);
}

/* Returns whether @s is sample @n, as it was added. */
static bool is_sample(const struct ahead_sample *s, const struct process *p, uint64_t n)
{
	return s && s->time == n && s->process == p && s->sample.tid == (int)(n % TIDS) &&
	       !memcmp(s->sample.chain, &words[n], n % 4 * sizeof(*words)) &&
	       !memcmp(s->sample.stack, &words[n], nr_words(n) * sizeof(*words));
}

/* Returns whether the stack is that of sample @n, and of what is mapped now. */
static bool is_stack(const struct ahead_sample *s, const struct process *p, uint64_t n)
{
	const struct unwound *u = &s->user;

	if (s->err != (n % 11 ? 0 : -EINVAL) || !(n % 7) || u->end != (int)mapped ||
	    u->nr != (nr_words(n) < DEPTH ? nr_words(n) : DEPTH))
		return false;
	for (unsigned int i = 0; i < u->nr; i++)
		if (u->pcs[i] != n + i || u->sps[i] != n + i + p->pid || u->marks[i] != i)
			return false;
	return true;
}

/* ---- The tests ---- */

FIXTURE(threads)
{
	struct process process;
	struct ahead *ahead;
	uint64_t first;
	unsigned int unwound;
};

FIXTURE_VARIANT(threads)
{
	unsigned int nr;
};

FIXTURE_VARIANT_ADD(threads, one){
	.nr = 1,
};

FIXTURE_VARIANT_ADD(threads, three){
	.nr = 3,
};

FIXTURE_VARIANT_ADD(threads, most){
	.nr = AHEAD_MAX_THREADS,
};

FIXTURE_SETUP(threads)
{
	for (size_t i = 0; i < SAMPLES + WORDS; i++)
		words[i] = i;
	self->process.pid = 1000;
	self->ahead = ahead_create(variant->nr, DEPTH);
	ASSERT_TRUE(self->ahead);
}

FIXTURE_TEARDOWN(threads)
{
	ahead_destroy(self->ahead);
}

/* Takes the sample that waits for longest. Returns whether it is the one that is due. */
static bool take(FIXTURE_DATA(threads) * self)
{
	const struct ahead_sample *s = ahead_first(self->ahead);
	const uint64_t n = self->first++;
	const bool good = is_sample(s, &self->process, n) &&
			  (s->unwound ? is_stack(s, &self->process, n) : !s->err);

	self->unwound += s && s->unwound;
	ahead_drop_first(self->ahead);
	return good;
}

TEST_F(threads, order)
{
	for (uint64_t n = 0; n < SAMPLES; n++) {
		int err;

		while ((err = add(self->ahead, &self->process, n)) == -ENOSPC)
			ASSERT_TRUE(take(self));
		ASSERT_EQ(err, 0);
		/* Now and then another part of what waits is wanted, or the process maps something. */
		for (uint64_t i = 0; n % 500 == 499 && i < n % 900 && self->first <= n; i++)
			ASSERT_TRUE(take(self));
		if (n % 700 != 699)
			continue;
		ahead_drop_stacks(self->ahead);
		mapped++;
	}
	while (self->first < SAMPLES - 100)
		ASSERT_TRUE(take(self));
	ASSERT_GT(self->unwound, 100);
	TH_LOG("%u of %u were unwound by threads", self->unwound, SAMPLES);
	/* The others still wait at the end. */
}

TEST_F(threads, shortened_file)
{
	const struct ahead_sample *s;
	int fd = memfd_create("shortened", 0);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(ftruncate(fd, PAGE), 0);
	file = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(file, MAP_FAILED);
	shortened_survive();
	ASSERT_EQ(ftruncate(fd, 0), 0);
	/* All are of the same thread that is sampled, so that they are handed over. */
	for (uint64_t i = 0; i < 4 * TOGETHER; i++)
		ASSERT_EQ(add(self->ahead, &self->process, i * TIDS), 0);
	while ((s = ahead_first(self->ahead))) {
		self->unwound += s->unwound;
		ahead_drop_first(self->ahead);
	}
	ASSERT_GT(self->unwound, 0);
}

TEST_HARNESS_MAIN
