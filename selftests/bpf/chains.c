// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chains.c - a perf.data file of samples whose callchain is the BPF walk's, beside a copy of
 * the stack: selftests/offline/judge.c compares the two.
 *
 *	chains [-F RATE] FILE COMMAND [ARGUMENT...]
 *
 * It samples RATE (999) times a second of CPU time. How many chains have the entries of the kernel's own callchain
 * of the same sample is told, too: where shstk_perf.ko is loaded, that is the module's.
 * The command runs a few times: in the first runs the walk meets its files, and the last one begins
 * when these have tables. A short command may end before its files were opened, so they may be asked
 * for again. Ends with 4 if this machine permits no such walk, and with 1 if the kernel's
 * verifier refuses the program, and says why.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/bpf/held_command.h"
#include "selftests/bpf/refusal.h"
#include "tools/bpf/walker.h"
#include "tools/perf/rings.h"
#include "tools/perf/sample.h"
#include "tools/perf/write.h"

#define FREQ 999
#define COPY 32768
#define RING_BYTES 8192 /* of a ring, for each sample in a second */
#define MIN_RING (8u << 20)
#define MAX_CHAIN 512
#define SKIP 4
#define FIRST_RUNS 5 /* at most */
#define PATIENCE 300 /* seconds until the tables are there */
#define PROLOGUE 40 /* bytes of a sample in front of its callchain: header to period */

struct both {
	struct perf_rings *rings;
	struct perf_writer *writer;
	int tid; /* of the chain at hand; 0: there is none */
	uint64_t nr;
	uint64_t entries[WALK_ENTRIES];
	unsigned long paired, alone;
	unsigned long same, shorter, longer, differ; /* than the kernel's own */
};

/* Returns the first entry of the user's part of a chain. */
static uint64_t user_part(const uint64_t *chain, uint64_t nr)
{
	uint64_t i = 0;

	while (i < nr && chain[i] != PERF_CONTEXT_USER)
		i++;
	return i < nr ? i + 1 : nr;
}

#define TOLD 5 /* differences */

/* Counts a difference, and prints what both say from there on, of the first ones. */
static void tell_difference(struct both *b, const struct perf_sample *s, uint64_t i, uint64_t j)
{
	const uint64_t first = user_part(b->entries, b->nr);

	if (b->differ++ >= TOLD)
		return;
	printf("entry %" PRIu64 " at %#" PRIx64 ":", i - first, b->entries[first]);
	for (uint64_t k = i; k < b->nr && k < i + 4; k++)
		printf(" %#" PRIx64, b->entries[k]);
	printf(", the callchain's:");
	for (uint64_t k = j; k < s->nr && k < j + 4; k++)
		printf(" %#" PRIx64, s->chain[k]);
	puts("");
}

/* Compares the chain with that of the sample, as far as both go. */
static void compare(struct both *b, const struct perf_sample *s)
{
	uint64_t i = user_part(b->entries, b->nr), j = user_part(s->chain, s->nr);

	for (; i < b->nr && j < s->nr; i++, j++)
		if (b->entries[i] != s->chain[j]) {
			tell_difference(b, s, i, j);
			return;
		}
	b->same += i == b->nr && j == s->nr;
	b->shorter += j < s->nr;
	b->longer += i < b->nr;
}

/* The sample, with the chain in place of its own. */
static void write_pair(struct both *b, const struct perf_record *r, const struct perf_sample *s)
{
	static _Alignas(8) uint8_t out[1 << 17];
	const uint8_t *raw = r->raw, *rest = (const uint8_t *)(s->chain + s->nr);
	struct perf_event_header head;
	size_t left, chain = b->nr * sizeof(*b->entries);
	struct perf_record copy = *r;

	memcpy(&head, raw, sizeof(head));
	left = raw + head.size - rest;
	memcpy(out, raw, PROLOGUE);
	memcpy(out + PROLOGUE, &b->nr, sizeof(b->nr));
	memcpy(out + PROLOGUE + 8, b->entries, chain);
	memcpy(out + PROLOGUE + 8 + chain, rest, left);
	if (PROLOGUE + 8 + chain + left > UINT16_MAX)
		return;
	head.size = PROLOGUE + 8 + chain + left;
	memcpy(out, &head, sizeof(head));
	copy.raw = out;
	perf_writer_add(b->writer, &copy);
}

static bool is_context(uint64_t entry)
{
	return entry >= PERF_CONTEXT_MAX;
}

static int take(void *arg, const struct perf_record *r)
{
	struct both *b = arg;
	struct perf_sample s;

	if (r->type != PERF_RECORD_SAMPLE) {
		if (b->writer)
			perf_writer_add(b->writer, r);
		return 0;
	}
	if (!perf_sample_parse(r, true, 0, &s))
		die("a record", "makes no sense");
	if (r->walked) {
		b->tid = r->tid;
		b->nr = s.nr;
		for (uint64_t i = 0; i < s.nr && i < WALK_ENTRIES; i++)
			b->entries[i] = is_context(s.chain[i]) ? s.chain[i] :
								 s.chain[i] & ~WALK_MARKS;
		return 0;
	}
	if (b->writer && s.abi == 2 && b->tid == r->tid) {
		compare(b, &s);
		write_pair(b, r, &s);
	}
	b->paired += b->tid == r->tid;
	b->alone += b->tid != r->tid;
	b->tid = 0;
	return 0;
}

/* One run of the command, which is recorded to its end. */
static void run(struct both *b, const struct walker *w, struct perf_opts *opts, const char *path,
		char **command)
{
	int go, ret = 0, status;
	pid_t pid = hold_command(command, &go);
	struct reason why;

	opts->pids = &pid;
	opts->nr_pids = 1;
	opts->on_exec = true;
	b->paired = b->alone = 0;
	if (perf_rings_open(opts, &b->rings, &why)) {
		printf("%s\n", why.text);
		exit(SKIP);
	}
	if (walker_begin(w, b->rings))
		die("events", "no chains come from them");
	if (path && perf_writer_create(path, opts, &b->writer))
		die(path, strerror(errno));
	release_command(go);
	while (!ret) {
		usleep(10000);
		ret = waitpid(pid, &status, WNOHANG);
		perf_rings_read(b->rings, ret, take, b);
	}
	if (ret != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		die(*command, "did not do its work");
	perf_rings_close(b->rings);
	if (perf_writer_close(b->writer))
		die(path, "was not written");
}

static void await_tables(const struct walker *w)
{
	for (int i = 0; i < PATIENCE * 100 && !walker_idle(w); i++)
		usleep(10000);
	if (!walker_idle(w))
		die("tables", "are not made");
}

/* One run, and the tables of its files. Returns whether a walk ended because there was no table. */
static bool meets_new_files(struct both *b, const struct walker *w, struct perf_opts *opts,
			    char **command)
{
	uint64_t before[NR_COUNTS], after[NR_COUNTS];
	int err = walker_count(w, before);

	run(b, w, opts, NULL, command);
	await_tables(w);
	if (err || walker_count(w, after))
		die("counts", "are not told");
	return after[WALK_NO_TABLE] != before[WALK_NO_TABLE];
}

/* What became of the walks since @before. */
static void tell(const struct walker *w, const struct both *b, const uint64_t *before)
{
	static const char *const names[NR_COUNTS] = {
		"whole",	"zero",	   "room",	   "no code",	    "no table",
		"no rule",	"no kind", "no memory",	   "bad CFA",	    "refused",
		"frame record", "signal",  "return probe", "not asked for", "not sent",
	};
	uint64_t counts[NR_COUNTS];

	if (walker_count(w, counts))
		die("counts", "are not told");
	printf("%lu samples with a chain, %lu without\n", b->paired, b->alone);
	printf("as the callchain: %lu same, %lu shorter, %lu longer, %lu differ\n", b->same,
	       b->shorter, b->longer, b->differ);
	for (int i = 0; i < NR_COUNTS; i++)
		printf("%s: %llu\n", names[i], (unsigned long long)(counts[i] - before[i]));
}

int main(int argc, char **argv)
{
	const struct walker_opts how = { .max = MAX_CHAIN, .both = true };
	struct both *b = calloc(1, sizeof(*b));
	struct perf_opts opts = {
		.main = perf_event_find("cpu-clock"),
		.freq = FREQ,
		.max_stack = 127,
		.copy = COPY,
		.cgroup = -1,
	};
	uint64_t before[NR_COUNTS];
	struct walker *w;
	struct reason why;

	if (argc > 3 && !strcmp(argv[1], "-F")) {
		opts.freq = (unsigned int)atoi(argv[2]);
		argc -= 2;
		argv += 2;
	}
	if (argc < 3 || !b || !opts.freq)
		die("usage", "chains [-F RATE] FILE COMMAND [ARGUMENT...]");
	opts.ring_size = perf_ring_size(MIN_RING, (size_t)opts.freq * RING_BYTES);
	if (walker_create(&how, &w, &why)) {
		printf("%s\n", why.text);
		return status_without_program(why.text);
	}
	for (int i = 0; i < FIRST_RUNS && meets_new_files(b, w, &opts, argv + 2); i++)
		;
	if (walker_count(w, before))
		die("counts", "are not told");
	run(b, w, &opts, argv[1], argv + 2);
	tell(w, b, before);
	walker_destroy(w);
	free(b);
	return 0;
}
