// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mixed_test.c - tests recordings with callchains of shadow stacks and processes that have none.
 *
 * The rings of perf events, and what /proc and the module say, are replaced when this is linked. A
 * sample has a callchain of three entries and, if stacks are copied, no registers. Prints KTAP.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/record/backend.h"
#include "tools/record/perf_module.h"
#include "tools/record/perf/perf_recording.h"
#include "tools/rules/helper.h"
#include "tools/shstk.h"

#include "fake_rings.h"

/* No processes have these numbers. */
#define WITH 100000000
#define WITHOUT 100000001
#define GONE 100000002
#define LATE 100000003
#define CHILDREN 200000000
#define USER 0x401000ull
#define WHOLE "[0x401020];[0x401010];[0x401000]"
#define CUT "[truncated];[0x401000]"

typedef int (*record_fn)(void *arg, const struct perf_record *record);

/*
 * What is handed out next: @nr samples of process @pid, and before them the forks of as many
 * children as @children says.
 */
static int pid;
static unsigned int nr, children;
/*
 * The options with which rings were opened last, the number of openings, and whether opening fails.
 */
static struct perf_opts opened;
static unsigned int opens;
static bool refuse;
/* Time of the next sample and time between two samples, in ns. */
static uint64_t at, every;
/* The process LATE has switched its shadow stack on. */
static bool on;

int __wrap_shadow_stacks_any(pid_t of)
{
	return of == GONE ? -ENOENT : of == WITH || (of == LATE && on);
}

static int hand_out(record_fn fn, void *arg)
{
	uint64_t body[] = { 1, 4, PERF_CONTEXT_USER, USER, USER + 16, USER + 32, 0, 0 };
	struct perf_record record = {
		.type = PERF_RECORD_SAMPLE,
		.misc = PERF_RECORD_MISC_USER,
		.which = PERF_MAIN,
		.pid = pid,
		.tid = pid,
		.time = at += every,
		.body = body,
		.size = sizeof(body) - (opened.copy ? 0 : 16),
	};

	return fn(arg, &record);
}

/* Hands out the fork of a child. Nothing more is told of it: the record of its end is lost. */
static int hand_out_child(record_fn fn, void *arg)
{
	const uint32_t child = CHILDREN + children, body[] = { child, pid, child, pid, 0, 0 };
	struct perf_record record = {
		.type = PERF_RECORD_FORK,
		.which = PERF_MAIN,
		.pid = pid,
		.tid = pid,
		.time = now_ns(CLOCK_MONOTONIC),
		.body = body,
		.size = sizeof(body),
	};

	return fn(arg, &record);
}

int __wrap_perf_rings_read(struct perf_rings *rings, bool all, record_fn fn, void *arg)
{
	int ret = 0;

	(void)rings;
	for (; !all && children && !ret; children--)
		ret = hand_out_child(fn, arg);
	for (; !all && nr && !ret; nr--)
		ret = hand_out(fn, arg);
	return ret;
}

int __wrap_perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret,
			   struct reason *why)
{
	(void)why;
	if (opens++ && refuse)
		return -EMFILE;
	*ret = &fake_rings;
	opened = *opts;
	return 0;
}

/* ---- The machine ---- */

static bool has_tables, served;

bool __wrap_module_loaded(void)
{
	return true;
}

void __wrap_rules_read_state(struct rules_state *ret)
{
	*ret = (struct rules_state){ .tables = has_tables, .served = served };
}

int __wrap_perf_probe(const struct perf_opts *opts, bool *user_only, struct reason *why)
{
	(void)opts, (void)why;
	*user_only = false;
	return 0;
}

/* ---- The tests ---- */

static struct perf_recording *recording;
static struct shstk_symbols *symbols;
static struct shstk_profile *profile;
static unsigned int number, failed;

static void begin(bool mixed)
{
	struct perf_record_opts opts = {
		.rings = { .max_stack = 127, .freq = 999, .ring_size = 262144, .may_shrink = true },
		.depth = 127,
		.chains = true,
		.mixed = mixed,
	};
	struct reason why;

	opens = 0;
	at = now_ns(CLOCK_MONOTONIC);
	every = 1000000;
	if (shstk_symbols_create(NULL, &symbols) || shstk_profile_create(symbols, &profile) ||
	    shstk_profile_add_type(profile, "samples", "count") < 0 ||
	    shstk_profile_add_type(profile, "cpu", "nanoseconds") < 0 ||
	    perf_recording_create(&opts, symbols, profile, &recording, &why)) {
		puts("Bail out! no recorder");
		exit(1);
	}
}

static void end(void)
{
	perf_recording_destroy(recording);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
}

/*
 * Takes @count samples of a process. Returns false if out of memory. The samples are not older than
 * the rings, which the recorder may have opened again, on a busy machine.
 */
static bool take(int of, unsigned int count)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	at = at > now ? at : now;
	pid = of;
	nr = count;
	return !perf_recording_take(recording);
}

/* Returns how many samples have this stack. */
static long samples(const char *stack)
{
	char *text = NULL, *line, *rest;
	size_t size, length = strlen(stack);
	FILE *out = open_memstream(&text, &size);
	long found = 0;

	shstk_profile_print(profile, out, "folded", NULL);
	fclose(out);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *frames = strchr(line, ';'), *space = strrchr(line, ' ');

		printf("# %s\n", line);
		if (frames && space && (size_t)(space - frames - 1) == length &&
		    !strncmp(frames + 1, stack, length))
			found += atol(space);
	}
	free(text);
	return found;
}

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

static void test_without(void)
{
	begin(true);
	every = 10000000;
	verdict(take(WITHOUT, 5) && opens == 1 && samples(CUT) == 5 && !samples(WHOLE),
		"of a process without a shadow stack the innermost entry is shown alone");
	verdict(take(WITHOUT, 1) && opens == 2 && opened.copy == PERF_FIRST_COPY &&
			opened.ring_size >= 999 * PERF_FIRST_COPY,
		"after 50 ms stacks are copied, in rings for a second");
	verdict(take(WITHOUT, 5) && opens == 2 && samples(CUT) == 6 && !samples(WHOLE),
		"then it has no callchain");
	verdict(take(WITH, 5) && samples(WHOLE) == 5, "but one with a shadow stack has");
	end();
}

/* The dynamic loader takes its time until shadow stacks are on, whatever the rate of samples. */
static void test_late(void)
{
	begin(true);
	on = false;
	every = 100000;
	verdict(take(LATE, 150) && opens == 1 && samples(CUT) == 150,
		"a process may have many samples before it switches its shadow stack on");
	on = true;
	every = 2000000;
	verdict(take(LATE, 20) && opens == 1 && samples(CUT) == 150 && samples(WHOLE) == 20,
		"and none is cut after that");
	end();
}

/* The recorder is behind: the process runs another program than that of the samples. */
static void test_behind(void)
{
	begin(true);
	on = true;
	fake_executes = LATE;
	verdict(take(LATE, 20) && samples(CUT) == 20 && !samples(WHOLE),
		"a shadow stack of the next program is none of this one");
	fake_executes = 0;
	every = 2000000;
	verdict(take(LATE, 20) && opens == 1 && samples(CUT) == 20 && samples(WHOLE) == 20,
		"once that program's samples come, it is");
	end();
}

static void test_others(void)
{
	begin(true);
	verdict(take(WITH, 1000) && opens == 1 && samples(WHOLE) == 1000,
		"with shadow stacks nothing is copied");
	end();
	begin(true);
	verdict(take(GONE, 1000) && opens == 1 && samples(WHOLE) == 1000,
		"nor of processes that cannot be asked any more");
	end();
	begin(false);
	verdict(take(WITHOUT, 1000) && opens == 1 && samples(WHOLE) == 1000,
		"nor where that is not wanted");
	end();
}

static void test_refused(void)
{
	refuse = true;
	begin(true);
	verdict(take(WITHOUT, 60) && take(WITHOUT, 8) && opens == 2 && samples(CUT) == 68,
		"where copies are refused they are asked for once, and stacks are shown as cut");
	end();
}

static void test_many(void)
{
	bool good = true;

	refuse = false;
	begin(true);
	for (int i = 0; i < 199; i++)
		good = good && take(LATE + 1 + i, 1) && opens == 1;
	verdict(good && take(LATE + 200, 1) && opens == 2,
		"many short processes have stacks copied");
	end();
}

static void test_children(void)
{
	begin(true);
	children = 1100000;
	verdict(take(WITH, 1) && take(GONE, 5) && samples(WHOLE) == 6,
		"processes without number whose end was lost do not end the recording");
	end();
}

/*
 * Returns true if the options choose @via, and if @mixed says whether stacks may be copied later.
 */
static bool chooses(struct record_opts o, enum via via, bool mixed)
{
	const struct backend *backend;

	o.freq = 199;
	o.depth = 127;
	o.targets.nr_pids = 1;
	sampler_choose(&o, &backend);
	return backend == &backend_perf && o.via == via && o.mixed == mixed;
}

static void test_choice(void)
{
	struct record_opts with = { .targets.pids = (pid_t[]){ WITH } },
			   without = { .targets.pids = (pid_t[]){ WITHOUT } };
	struct record_opts wall = { .targets.pids = (pid_t[]){ WITH }, .wall = true };
	struct record_opts data = { .targets.pids = (pid_t[]){ WITH }, .perf_data = "perf.data" };
	struct record_opts told = { .targets.pids = (pid_t[]){ WITH }, .via = VIA_PERF };

	verdict(chooses(with, VIA_PERF, true), "shadow stacks, and copies of what has none");
	verdict(chooses(without, VIA_COPIES, false), "copies from the start");
	verdict(chooses(wall, VIA_PERF, true), "so with --wall");
	verdict(chooses(data, VIA_PERF, false) && chooses(told, VIA_PERF, false),
		"no copies with --perf-data and --via=perf");
	has_tables = true;
	verdict(chooses(with, VIA_PERF, true),
		"tables that somebody left are no rules for what has no shadow stack");
	served = true;
	verdict(chooses(with, VIA_PERF, false) && chooses(without, VIA_RULES, false),
		"nor where a daemon loads rules");
}

int main(void)
{
	puts("KTAP version 1\n1..20");
	test_choice();
	test_without();
	test_late();
	test_behind();
	test_others();
	test_refused();
	test_many();
	test_children();
	return !!failed;
}
