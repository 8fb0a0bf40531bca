// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chain_test.c - tests with callchains that the kernel cut. The kernel takes a limited number of
 * entries of a sample, and its own functions first. A cut callchain must not be taken for a whole
 * stack.
 *
 * The rings of perf events are replaced by one sample when this is linked. The same callchains are
 * also read as those in a perf.data file. Prints KTAP.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/data_private.h"
#include "tools/record/perf/perf_recording.h"
#include "tools/shstk.h"

#include "fake_rings.h"

#define PID 100000000 /* no process has this number */
#define MAX 20 /* maximum number of entries that the kernel takes */
#define KERNEL 0xffffffff81000000ull
#define USER 0x401000ull

/**
 * struct chain_case - a callchain
 * @name: what the case shows.
 * @kernel: number of entries of the kernel.
 * @user: number of entries of user space; -1: a kernel thread.
 * @cut: the stack has to be shown as [truncated].
 */
static const struct chain_case {
	const char *name;
	int kernel;
	int user;
	bool cut;
} cases[] = {
	{ "fewer entries than there may be: whole", 0, MAX - 1, false },
	{ "as many as there may be: cut", 0, MAX, true },
	{ "room left behind the kernel's part: whole", 7, MAX - 8, false },
	{ "no room left behind the kernel's part: cut", 7, MAX - 7, true },
	{ "room for one entry of user space: cut", MAX - 1, 1, true },
	{ "no room for user space: cut", MAX, 0, true },
	{ "a thread of the kernel: whole", MAX - 1, -1, false },
	{ "a thread of the kernel, with no room left: cut", MAX, -1, true },
};

#define NR_CASES (sizeof(cases) / sizeof(*cases))

static const struct chain_case *current;

typedef int (*record_fn)(void *arg, const struct perf_record *record);

/* Writes the callchain as the kernel would. Returns the number of words. */
static size_t put_chain(uint64_t *to)
{
	size_t n = 1;

	if (current->kernel)
		to[n++] = PERF_CONTEXT_KERNEL;
	for (int i = 0; i < current->kernel; i++)
		to[n++] = KERNEL + 16 * i;
	if (current->user >= 0)
		to[n++] = PERF_CONTEXT_USER;
	for (int i = 0; i < current->user; i++)
		to[n++] = USER + 16 * i;
	to[0] = n - 1;
	return n;
}

/*
 * Stands in for reading the rings: hands out the sample once, whether that is while it is still looked
 * which processes there are, or later.
 */
int __wrap_perf_rings_read(struct perf_rings *rings, bool all, record_fn fn, void *arg)
{
	static const struct chain_case *handed;
	uint64_t body[2 * MAX + 8];
	struct perf_record record = {
		.type = PERF_RECORD_SAMPLE,
		.misc = current->user < 0 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
		.which = PERF_MAIN,
		.pid = PID,
		.tid = PID,
		.time = now_ns(CLOCK_MONOTONIC),
		.body = body,
	};

	(void)rings;
	if (all || handed == current)
		return 0;
	handed = current;
	body[0] = 1;
	record.size = 8 * (1 + put_chain(body + 1));
	return fn(arg, &record);
}

int __wrap_perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret,
			   struct reason *why)
{
	(void)opts, (void)why;
	*ret = &fake_rings;
	return 0;
}

/* Returns true if the stack is right in the profile and in the counters. */
static bool is_right(struct perf_recording *d, struct shstk_profile *profile)
{
	struct perf_counts more;
	struct sample_counts c;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool shown;

	shstk_profile_print(profile, out, "folded", NULL);
	fclose(out);
	perf_recording_count(d, &c, &more);
	shown = strstr(text, "[truncated]");
	printf("# %llu samples, %llu cut: %s", (unsigned long long)c.samples,
	       (unsigned long long)more.stacks.cut, text);
	free(text);
	return c.samples == 1 && shown == current->cut && more.stacks.cut == current->cut;
}

static bool test(void)
{
	struct perf_record_opts opts = {
		.rings = { .max_stack = MAX, .kernel = true },
		.depth = MAX,
		.kernel = true,
	};
	struct shstk_symbols *symbols = NULL;
	struct shstk_profile *profile = NULL;
	struct perf_recording *d = NULL;
	struct reason why;
	bool good = !shstk_symbols_create(NULL, &symbols) &&
		    !shstk_profile_create(symbols, &profile) &&
		    shstk_profile_add_type(profile, "samples", "count") >= 0 &&
		    shstk_profile_add_type(profile, "cpu", "nanoseconds") >= 0 &&
		    !perf_recording_create(&opts, symbols, profile, &d, &why) &&
		    !perf_recording_take(d) && is_right(d, profile);

	perf_recording_destroy(d);
	shstk_profile_destroy(profile);
	shstk_symbols_destroy(symbols);
	return good;
}

/* Returns true if the reader of a perf.data file finds the same. */
static bool test_file(void)
{
	const struct perfdata_event event = { .sample_type = PERF_SAMPLE_CALLCHAIN,
					      .max_chain = MAX };
	struct perf_sample s = { .nr = 0 };
	uint64_t words[2 * MAX + 8];
	struct body body = { (const uint8_t *)words, 8 * put_chain(words), false };
	size_t user = current->user < 0 ? 0 : current->user;
	struct callchain chain;

	if (!perfdata_take_sample(NULL, &event, &body, &s))
		return false;
	chain = perf_sample_user(&s);
	printf("# %zu entries of %zu\n", chain.nr, chain.max);
	return chain.nr == user && (chain.nr >= chain.max) == current->cut;
}

int main(void)
{
	unsigned int failed = 0;

	printf("KTAP version 1\n1..%zu\n", NR_CASES);
	for (size_t i = 0; i < NR_CASES; i++) {
		bool good;

		current = &cases[i];
		good = test() && test_file();
		printf("%sok %zu %s\n", good ? "" : "not ", i + 1, current->name);
		failed += !good;
	}
	return !!failed;
}
