// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ways_test.c - tests that the same records give the same profile, byte for byte, in two ways:
 * converted while they are recorded, and from the perf.data file that the recorder writes
 * meanwhile.
 *
 * The rings of perf events are replaced when this is linked. The records are made here, for
 * processes that begin, execute, make threads and end. One of them is this process: the recorder
 * looks up its mappings in /proc, and no record tells of them. Samples have no labels: command
 * lines and control groups are read from /proc, and are not in the file. Prints KTAP.
 */
#include <execinfo.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tools/convert/file.h"
#include "tools/convert/recorded_files.h"
#include "tools/record/perf/perf_recording.h"
#include "tools/shstk.h"

#include "fake_rings.h"
#define EXECUTED "executed"
#include "made_records.h"

#define CHILD 100000000 /* no process has this number */
#define OTHER (CHILD + 1) /* no thread of that process has this number */
#define GONE (CHILD + 2) /* a process of whose end no record tells */
#define LATE 150000 /* us after which the recorder looks into /proc again */
#define DEPTH 12 /* number of calls of the stack that is sampled */
#define CUT 192 /* bytes of a copy that is too small for the stack */
#define DEEP 100 /* number of calls of a stack that is deeper than MOST */
#define REPEATED 100 /* samples that follow one another, for several threads */
#define THREADS 4
#define MOST 80 /* frames of a stack, at most, but for deeper ones, whose both ends are kept */

/* Stacks are copied; otherwise samples have callchains only. */
static bool copies;
/* The copies are of a deep stack. */
static bool deep;
/* How many equal samples follow one another. */
static unsigned int repeated = 1;
/* The callchain, and a second mapping of the same code, which no record tells of. */
static void *frames[64];
static int nr_frames;
static uint64_t alias; /* distance from the code to the second mapping */

/* ---- What is recorded ---- */

/* Takes the callchain. The innermost function calls this. */
static void take_frames(void)
{
	nr_frames = backtrace(frames, sizeof(frames) / sizeof(*frames));
}

/* Counts the stacks that are unwound by other threads than the first one. */
static _Atomic unsigned int unwound;

int __real_unwinder_unwind(struct unwinder *u, pid_t pid, const struct stack_copy *copy,
			   struct unwound *ret);

int __wrap_unwinder_unwind(struct unwinder *u, pid_t pid, const struct stack_copy *copy,
			   struct unwound *ret)
{
	unwound++;
	return __real_unwinder_unwind(u, pid, copy, ret);
}

/* Hands out a sample of a thread. @moved: its innermost function is in the second mapping. */
static int one_sample(int pid, int tid, bool moved, size_t size, record_fn fn, void *arg)
{
	const uint64_t by = moved ? alias : 0;

	put(STEP);
	put(nr_frames);
	put(PERF_CONTEXT_USER);
	/* The first entry is take_frames() itself. */
	for (int i = 1; i < nr_frames; i++)
		put((uint64_t)(uintptr_t)frames[i] + (i == 1 ? by : 0));
	if (copies)
		put_copy(size, size < stack_size ? size : stack_size, by);
	the_time += STEP;
	samples++;
	return hand_out(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, pid, tid, fn, arg);
}

/* Hands out such samples. */
static int sample_of(int pid, int tid, bool moved, size_t size, record_fn fn, void *arg)
{
	int ret = 0;

	for (unsigned int i = 0; i < repeated && !ret; i++)
		ret = one_sample(pid, tid, moved, size, fn, arg);
	return ret;
}

/* Gives a thread of CHILD another name. */
static int name_thread(int tid, const char *name, record_fn fn, void *arg)
{
	put_pair(CHILD, tid);
	put_text(name);
	return hand_out(PERF_RECORD_COMM, 0, CHILD, tid, fn, arg);
}

static int begin_thread(int tid, record_fn fn, void *arg)
{
	put_pair(CHILD, CHILD);
	put_pair(tid, CHILD);
	put(the_time);
	return hand_out(PERF_RECORD_FORK, 0, CHILD, CHILD, fn, arg);
}

/*
 * Lets the child make a thread with another name, which executes a program after the first one has
 * ended, and so becomes the first one. That makes a thread, which goes on when the first one ends
 * again, and the child begins once more.
 */
static int child(record_fn fn, void *arg)
{
	int ret = begin_or_end(PERF_RECORD_FORK, CHILD, getpid(), fn, arg);

	ret = ret ? ret : sample_of(CHILD, CHILD, false, sizeof(stack), fn, arg);
	ret = ret ? ret : begin_thread(OTHER, fn, arg);
	ret = ret ? ret : sample_of(CHILD, OTHER, false, sizeof(stack), fn, arg);
	ret = ret ? ret : name_thread(OTHER, "other", fn, arg);
	ret = ret ? ret : sample_of(CHILD, OTHER, false, sizeof(stack), fn, arg);
	ret = ret ? ret : sample_of(CHILD, OTHER, false, CUT, fn, arg);
	ret = ret ? ret : begin_or_end(PERF_RECORD_EXIT, CHILD, CHILD, fn, arg);
	ret = ret ? ret : execute(CHILD, fn, arg);
	ret = ret ? ret : sample_of(CHILD, CHILD, false, sizeof(stack), fn, arg);
	ret = ret ? ret : sample_of(CHILD, CHILD, false, CUT, fn, arg);
	ret = ret ? ret : begin_thread(OTHER, fn, arg);
	ret = ret ? ret : begin_or_end(PERF_RECORD_EXIT, CHILD, CHILD, fn, arg);
	return ret ? ret : sample_of(CHILD, OTHER, false, sizeof(stack), fn, arg);
}

/*
 * Lets another child end, of which no record tells; its number becomes that of a thread of a process of
 * which is known only that this thread makes a child.
 */
static int number_again(record_fn fn, void *arg)
{
	int ret = begin_or_end(PERF_RECORD_FORK, GONE, getpid(), fn, arg);

	ret = ret ? ret : sample_of(GONE, GONE, false, sizeof(stack), fn, arg);
	if (ret)
		return ret;
	put_pair(GONE + 1, GONE + 2);
	put_pair(GONE + 1, GONE);
	put(the_time);
	return hand_out(PERF_RECORD_FORK, 0, GONE + 2, GONE, fn, arg);
}

int __wrap_perf_rings_read(struct perf_rings *rings, bool all, record_fn fn, void *arg)
{
	const int pid = getpid();
	int ret;

	(void)rings;
	if (all)
		return 0;
	ret = sample_of(pid, pid, false, sizeof(stack), fn, arg);
	ret = ret ? ret : sample_of(pid, pid, true, sizeof(stack), fn, arg);
	for (int i = 0; i < 3 && !ret; i++)
		ret = child(fn, arg);
	ret = ret ? ret : number_again(fn, arg);
	return ret ? ret : sample_of(pid, pid, false, CUT, fn, arg);
}

int __wrap_perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret,
			   struct reason *why)
{
	(void)opts, (void)why;
	*ret = &fake_rings;
	return 0;
}

/* ---- Two profiles ---- */

/**
 * struct result - a profile
 * @symbols: its symbols.
 * @profile: the profile.
 * @bytes: the profile in the format of pprof, not compressed.
 * @size: number of @bytes.
 */
struct result {
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	char *bytes;
	size_t size;
};

static int begin(struct result *m)
{
	int ret = shstk_symbols_create(NULL, &m->symbols);

	if (!ret)
		ret = shstk_profile_create(m->symbols, &m->profile);
	if (!ret)
		ret = shstk_profile_add_type(m->profile, "samples", "count");
	return ret < 0 ? ret : shstk_profile_add_type(m->profile, "cpu", "nanoseconds");
}

static int end(struct result *m)
{
	FILE *out = open_memstream(&m->bytes, &m->size);
	int ret = shstk_profile_print(m->profile, out, "pb", NULL);

	return fclose(out) ? -1 : ret;
}

static void drop(struct result *m)
{
	shstk_profile_destroy(m->profile);
	shstk_symbols_destroy(m->symbols);
	free(m->bytes);
}

/* Maps the code of this program a second time. */
static bool map_again(void)
{
	const uint64_t pc = (uintptr_t)innermost;
	struct mapping m;
	struct maps maps;
	void *at = MAP_FAILED;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (maps_open(getpid(), "maps", &maps))
		return false;
	while (maps_next(&maps, &m)) {
		if (pc < m.start || pc >= m.end)
			continue;
		at = mmap(NULL, m.end - m.start, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, m.offset);
		alias = (uintptr_t)at - m.start;
	}
	maps_close(&maps);
	close(fd);
	return at != MAP_FAILED;
}

/* Records, and writes a perf.data file. */
static int record(const char *path, struct result *m)
{
	static const struct perf_event clock = {
		.name = "cpu-clock",
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.clock = true,
	};
	pid_t pid = getpid();
	struct perf_record_opts opts = {
		.rings = { .main = &clock,
			   .freq = 1000,
			   .copy = copies ? sizeof(stack) : 0,
			   .pids = &pid,
			   .nr_pids = 1,
			   .max_stack = 127,
			   .cgroup = -1 },
		.depth = MOST,
		.fold = true,
		.perf_data = path,
		.keep_times = 1000,
	};
	struct perf_recording *d = NULL;
	struct reason why = { .text = "" };
	int ret = begin(m);

	if (ret >= 0)
		ret = perf_recording_create(&opts, m->symbols, m->profile, &d, &why);
	/* The recorder has not seen what this process maps from now on. */
	if (!ret && !map_again())
		ret = -1;
	usleep(LATE);
	if (!ret)
		ret = perf_recording_take(d);
	if (!ret)
		ret = perf_recording_stop(d);
	if (!ret)
		ret = end(m);
	perf_recording_destroy(d);
	if (ret)
		printf("# recording: %d %s\n", ret, why.text);
	return ret;
}

/* Converts the perf.data file, in so many threads. */
static int convert(const char *path, unsigned int threads, struct result *m)
{
	struct convert_opts opts = {
		.kernel = KERNEL_NEVER,
		.depth = MOST,
		.fold = true,
		.keep_times = 1000,
		.threads = threads,
	};
	struct convert_file file = { .first = 0 };
	struct past past = { .images.root = -1 };
	struct reason why = { .text = "" };
	int ret = begin(m);

	if (ret >= 0)
		ret = perfdata_open(path, &file.pd, &why);
	if (!ret)
		ret = past_init(&past, file.pd, NULL);
	if (!ret) {
		file.event = &file.pd->events[0];
		opts.source = convert_file_source(file.event);
		file.convert = converter_create(&opts, m->symbols, m->profile, &past.files);
		ret = convert_file(&file);
	}
	if (!ret)
		ret = end(m);
	converter_destroy(file.convert);
	past_deinit(&past);
	perfdata_close(file.pd);
	if (ret)
		printf("# converting: %d %s\n", ret, why.text);
	return ret;
}

/* ---- The tests ---- */

static unsigned int number, failed;

static void verdict(bool good, const char *what)
{
	printf("%sok %u %s: %s\n", good ? "" : "not ", ++number,
	       deep   ? "deep stacks" :
	       copies ? "copies" :
			"callchains",
	       what);
	failed += !good;
}

static char *folded(const struct result *m)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	shstk_profile_print(m->profile, out, "folded", NULL);
	fclose(out);
	return text;
}

static unsigned int count(const char *text, const char *word)
{
	unsigned int n = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		n++;
	}
	return n;
}

/* Returns true if everything that was sampled is in the profile, with its names. */
static bool is_named(const char *text)
{
	return count(text, "\nexecuted;") + !strncmp(text, "executed;", 9) &&
	       strstr(text, "other;") && count(text, ";innermost ") >= 3 && !strstr(text, "[0x") &&
	       !strstr(text, "ways_test+");
}

/* Returns true if both ends of a deep stack are there, and what it repeats is there once. */
static bool is_folded(const char *text)
{
	return strstr(text, ";main;[recursion of 1 call];call;call;innermost ");
}

static void test(const char *path)
{
	struct result live = { .size = 0 }, file = { .size = 0 };
	bool made = !record(path, &live) && !convert(path, 1, &file);
	char *a = made ? folded(&live) : NULL, *b = made ? folded(&file) : NULL;

	verdict(made && a && is_named(a), "what is recorded has names");
	verdict(made && live.size == file.size && live.size &&
			!memcmp(live.bytes, file.bytes, live.size),
		"live and from the file it is the same profile, byte for byte");
	if (deep)
		verdict(made && a && is_folded(a), "both ends, and what repeats once");
	if (made && failed)
		printf("# live:\n%s# file:\n%s", a, b);
	free(a);
	free(b);
	drop(&live);
	drop(&file);
}

/* Compares the profiles that one thread makes of a file, and several. */
static void test_threads(const char *path)
{
	struct result live = { .size = 0 }, one = { .size = 0 }, more = { .size = 0 };
	bool made, same;

	repeated = REPEATED;
	made = !record(path, &live) && !convert(path, 1, &one);
	unwound = 0;
	made = made && !convert(path, THREADS, &more);
	same = made && one.size == more.size && !memcmp(one.bytes, more.bytes, one.size);
	verdict(same, "of one thread and of several it is the same profile, byte for byte");
	printf("# %u stacks were unwound by other threads\n", unwound);
	verdict(unwound > REPEATED, "several threads unwind");
	drop(&live);
	drop(&one);
	drop(&more);
}

int main(int argc, char **argv)
{
	char path[4096];

	(void)argc;
	snprintf(path, sizeof(path), "%s.data", argv[0]);
	puts("KTAP version 1\n1..9");
	the_time = now_ns(CLOCK_MONOTONIC);
	there_too = take_frames;
	call(DEPTH);
	for (int i = 0; i < 2; i++) {
		copies = !i;
		test(path);
	}
	copies = true;
	test_threads(path);
	repeated = 1;
	deep = true;
	call(DEEP);
	test(path);
	unlink(path);
	return !!failed;
}
