// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * adapt_test.c - tests how a recording adapts while it goes on: each change alters one part of it,
 * and alters nothing if it is refused.
 *
 * The rings of perf events are replaced when this is linked, and no record comes: the test sets
 * what the recorder would learn from records. Prints KTAP.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/record/perf/perf_recording_private.h"
#include "tools/shstk.h"

#include "fake_rings.h"

#define MANY 10000000000ull /* samples: more than can be taken in the time that passes here */

/*
 * The options with which rings were opened last, the number of openings, and whether opening fails.
 */
static struct perf_opts opened;
static unsigned int opens;
static bool refuse;

int __wrap_perf_rings_read(struct perf_rings *rings, bool all,
			   int (*fn)(void *, const struct perf_record *), void *arg)
{
	(void)rings, (void)all, (void)fn, (void)arg;
	return 0;
}

int __wrap_perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret,
			   struct reason *why)
{
	(void)why;
	opens++;
	if (refuse)
		return -EMFILE;
	*ret = &fake_rings;
	opened = *opts;
	return 0;
}

/*
 * The walker, which is started and used as often as these say; what walker_ready() returns, and whether
 * it can be used.
 */
static unsigned int starts, begins;
static int readiness;
static bool unusable;

/* How often totals of rings had been read when the walker began last. */
static unsigned int totals_before;

/* Whether the walker can write callchains, and how many entries of one it was told to write. */
static bool writes;
static unsigned int told;

int __wrap_walker_start(struct walker *w, struct reason *why)
{
	(void)w, (void)why;
	starts++;
	return 0;
}

bool __wrap_walker_started(const struct walker *w)
{
	(void)w;
	return starts;
}

int __wrap_walker_ready(struct walker *w, bool wait, struct reason *why)
{
	(void)w, (void)wait, (void)why;
	return readiness;
}

int __wrap_walker_begin(const struct walker *w, struct perf_rings *rings)
{
	(void)w, (void)rings;
	begins++;
	totals_before = fake_totals;
	return unusable ? -EMFILE : 0;
}

bool __wrap_walker_can_write_callchains(unsigned int max)
{
	(void)max;
	return writes;
}

int __wrap_walker_write_callchains(const struct walker *w, unsigned int max)
{
	(void)w;
	told = max;
	return writes ? 0 : -EOPNOTSUPP;
}

int __wrap_walker_set_next(const struct walker *w, int program)
{
	(void)w, (void)program;
	return 0;
}

int __wrap_gomoments_program(const struct gomoments *all)
{
	return all ? 7 : 0;
}

/* ---- A recording ---- */

static const struct perf_event event = {
	.name = "page-faults",
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_PAGE_FAULTS,
};

static struct perf_recording *d;
static struct shstk_symbols *symbols;
static struct shstk_profile *profile;

/*
 * Begins to record this process: with copies of stacks, or else with callchains of shadow stacks.
 */
static void begin(bool copies, uint64_t count)
{
	pid_t pid = getpid();
	const struct perf_record_opts opts = {
		.rings = { .main = &event,
			   .freq = 999,
			   .count = count,
			   .ring_size = 262144,
			   .copy = copies ? PERF_FIRST_COPY : 0,
			   .max_stack = 127,
			   .pids = &pid,
			   .nr_pids = 1,
			   .cgroup = -1,
			   .may_shrink = true },
		.depth = 127,
		.mixed = !copies,
		.chains = !copies,
		.may_coarsen = true,
	};
	struct reason why;

	refuse = false;
	if (shstk_symbols_create(NULL, &symbols) || shstk_profile_create(symbols, &profile) ||
	    perf_recording_create(&opts, symbols, profile, &d, &why)) {
		puts("Bail out! no recorder");
		exit(1);
	}
	opens = 0;
}

static void end(void)
{
	perf_recording_destroy(d);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
}

/* These functions set what the recorder would learn so that one change each is due. */
static void too_many(void)
{
	d->adapt.came = MANY;
	d->adapt.came_since = now_ns(CLOCK_MONOTONIC) - 1000000000;
}

static void too_small(void)
{
	d->convert->learnt.copies = 100;
	d->convert->learnt.too_short = 10;
}

static void too_short_lived(void)
{
	d->convert->learnt.short_lived = 100;
}

static void lacks_shadow(void)
{
	d->convert->learnt.no_shadow_longest = 1000000000;
}

/* Makes the changes that are due. Returns how often rings were opened for them. */
static unsigned int change(void)
{
	opens = 0;
	return adapt(d) ? 1000 : opens;
}

/* ---- The tests ---- */

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

static void test_size(void)
{
	bool good;

	begin(true, 0);
	verdict(!change(), "where nothing is due rings stay");
	too_small();
	good = change() == 1 && opened.copy == 32768 && opened.ring_size == 4 * 262144 && !change();
	too_small();
	good = good && change() == 1 && opened.copy == 65528;
	too_small();
	verdict(good && !change(), "copies grow twice, with their rings, and no further");
	end();
}

/* Between the opening of rings and the beginning of walks there nobody writes callchains beside samples. */
static void test_callchains(void)
{
	bool good;

	begin(true, 0);
	d->opts.no_user = true;
	too_small();
	good = change() == 1 && opened.no_user;
	d->convert->counts.compat = 1;
	too_small();
	verdict(good && change() == 1 && !opened.no_user,
		"rings that replace others have the kernel's callchain where there is 32-bit code");
	end();
}

static void test_first_copy(void)
{
	struct perf_opts opts = { .freq = 512, .ring_size = 262144, .may_shrink = true };
	bool good = perf_first_copy(&opts) == 32768;

	opts.freq = 513;
	verdict(good && perf_first_copy(&opts) == PERF_FIRST_COPY,
		"32 KiB are copied at first where the largest ring holds a second of them");
	opts.freq = 8;
	opts.may_shrink = false;
	good = perf_first_copy(&opts) == 32768;
	opts.freq = 9;
	verdict(good && perf_first_copy(&opts) == PERF_FIRST_COPY,
		"a ring whose size was given must hold a second of them, too");
	opts.freq = 8;
	opts.off = true;
	good = perf_first_copy(&opts) == PERF_FIRST_COPY;
	opts.off = false;
	opts.count = 1;
	verdict(good && perf_first_copy(&opts) == PERF_FIRST_COPY,
		"samples that no time bounds begin with small copies");
}

static void test_scope(void)
{
	struct process *p;
	bool good;

	begin(true, 0);
	p = population_process(&d->convert->all, getpid());
	too_short_lived();
	good = change() == 1 && !opened.nr_pids && d->scope.kind == SCOPE_OURS && p && p->ours;
	too_short_lived();
	verdict(good && !change(), "events become the CPUs', once, and who is known is marked");
	end();
}

static void test_copies(void)
{
	begin(false, 0);
	lacks_shadow();
	verdict(change() == 1 && opened.copy == PERF_FIRST_COPY && !change() &&
			d->convert->stacks.source == STACK_SHADOW_OR_COPIES,
		"stacks are copied once there is a process without a shadow stack");
	end();
}

/* Each change is refused once, but copies still grow. */
static void test_refused(void)
{
	struct sample_counts counts;
	struct perf_counts more;
	bool good;

	begin(true, 1);
	too_many();
	refuse = true;
	good = change() == 1;
	too_many();
	good = good && !change();
	perf_recording_count(d, &counts, &more);
	verdict(good && more.count == 1, "a period that is refused is not that of the samples");
	refuse = false;
	too_small();
	verdict(change() == 1 && opened.copy == 32768 && opened.count == 1,
		"and copies grow after it");
	end();

	begin(true, 0);
	too_short_lived();
	refuse = true;
	good = change() == 1 && d->scope.kind == SCOPE_GIVEN && !change();
	refuse = false;
	too_small();
	verdict(good && change() == 1 && opened.copy == 32768 && opened.nr_pids,
		"events of CPUs are asked for once; after that copies grow, of the same threads");
	end();

	begin(false, 0);
	lacks_shadow();
	refuse = true;
	verdict(change() == 1 && !change() && d->convert->stacks.source == STACK_SHADOW &&
			!d->opts.copy,
		"where copies are refused stacks are made of what they were");
	end();
}

/* Begins a recording with copies and a sample, that may walk and began so many ns ago. */
static void begin_later(uint64_t ago)
{
	static char walker;

	begin(true, 0);
	d->later = (struct walker *)&walker;
	d->began = now_ns(CLOCK_MONOTONIC) - ago;
	d->convert->counts.samples = 1;
	starts = begins = 0;
	readiness = 0;
	told = 0;
	unusable = writes = false;
}

#define LONG 2000000000ull /* ns: more than the second after which stacks are walked */

static void test_walk(void)
{
	bool good;

	begin_later(0);
	d->began += 1000 * LONG; /* so that the second is not over, however slow the machine is */
	verdict(!change() && !starts && !d->walker, "nothing is loaded in the first second");
	end();

	begin_later(LONG);
	d->convert->counts.samples = 0;
	verdict(!change() && !starts, "nor without a sample");
	end();

	begin_later(LONG);
	good = !change() && starts && !d->walker && !begins;
	readiness = 1;
	verdict(good && !change() && d->walker && begins == 1 && !change() && begins == 1,
		"after that stacks are walked once it is loaded, in the same rings");
	too_small();
	verdict(change() == 1 && begins == 2, "and in rings that take their place");
	end();

	begin_later(LONG);
	readiness = -EPERM;
	good = !change() && !d->walker;
	readiness = 1;
	verdict(good && !change() && !d->walker && !begins,
		"a walker that is refused is not asked again");
	end();

	begin_later(LONG);
	readiness = 1;
	unusable = true;
	verdict(!change() && !d->walker && begins == 1 && !change() && begins == 1,
		"nor is one that cannot use the rings");
	end();
}

/* The walker can write callchains. */
static void begin_writing(void)
{
	begin_later(LONG);
	writes = true;
	readiness = 1;
}

static void test_walk_without_callchains(void)
{
	bool good;

	begin_writing();
	readiness = 0;
	good = !change() && !d->walker;
	readiness = 1;
	good = good && change() == 1 && opened.no_user && told == opened.max_stack && begins == 1;
	verdict(good && !change() && begins == 1,
		"where it writes callchains it begins in new rings, which ask the kernel for none");
	too_small();
	verdict(change() == 1 && opened.no_user && begins == 2, "and so do later ones");
	end();

	begin_writing();
	fake_totals = 0;
	verdict(change() == 1 && fake_totals && totals_before == fake_totals,
		"what the old ones counted is read before it begins, which may take long");
	end();

	begin_writing();
	unusable = true;
	good = change() == 1 && begins == 1 && !d->walker;
	too_small();
	verdict(good && change() == 1 && !opened.no_user && begins == 1,
		"where it cannot begin in them stacks are copied, and later ones have the kernel's callchains");
	end();

	begin_writing();
	d->convert->counts.compat = 1;
	verdict(!change() && begins == 1 && d->walker, "where there is 32-bit code the rings stay");
	end();

	begin_writing();
	d->chains = true;
	verdict(!change() && begins == 1 && d->walker, "and where callchains are of shadow stacks");
	end();

	begin_writing();
	refuse = true;
	good = change() == 1 && begins == 1 && d->walker && !told;
	refuse = false;
	too_small();
	verdict(good && change() == 1 && !opened.no_user && begins == 2,
		"they also stay, with the kernel's callchain, where no others can be opened");
	end();
}

/* A stand-in for the program that copies goroutines' stacks runs at the events already. */
static void test_walk_behind(void)
{
	static char moments;

	begin_later(LONG);
	readiness = 1;
	d->moments = (struct gomoments *)&moments;
	refuse = true;
	verdict(change() == 1 && !d->walker && !begins && !change() && !d->walker,
		"where another program runs and events cannot be opened anew, it stays alone");
	d->moments = NULL;
	end();

	begin_later(LONG);
	readiness = 1;
	d->opts.program = 7;
	d->moments = (struct gomoments *)&moments;
	verdict(change() == 1 && d->walker && begins == 1 && !opened.program && !change(),
		"else it runs behind the walker, in new rings");
	d->moments = NULL;
	end();
}

static void test_period(void)
{
	begin(true, 1);
	too_many();
	verdict(change() == 1 && opened.count > 1 && d->opts.count == opened.count,
		"of too many samples one of many is taken");
	end();
}

int main(void)
{
	puts("KTAP version 1\n1..28");
	test_size();
	test_callchains();
	test_first_copy();
	test_scope();
	test_copies();
	test_refused();
	test_period();
	test_walk();
	test_walk_without_callchains();
	test_walk_behind();
	return !!failed;
}
