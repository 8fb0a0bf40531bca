// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * record_rate.c - measures how many samples a second of CPU time the recorder takes from its rings.
 *
 *   record_rate FILE RINGS PROCESSES BYTES THREADS [chains]
 *
 * FILE is a perf.data with copies of stacks. Its records are written to RINGS rings, which are memory
 * of this program, as the kernel would: samples of PROCESSES processes that all do what the recorded
 * ones did, again and again, as many as a CPU of each ring has at RATE Hz. The recorder
 * (tools/record/perf) empties the rings after every LOOK, and only that is measured. BYTES is the size
 * of each copy of a stack; with "chains" samples have the callchain that the recorder finds in the copy,
 * as when the kernel walks stacks, and no copy. What the kernel does, names and the output are not part
 * of it, and the processes do not live, so that nothing more can be read of them.
 *
 * Prints samples, CPU seconds, those of the thread that empties the rings, the mean number of frames, and
 * bytes of memory that came in the meantime.
 */
#include "tools/perf/rings.c"

#include <sys/sysmacros.h>

#include "tools/perf/data.h"
#include "tools/record/perf/perf_recording.h"

#define RATE 999
#define LOOK 10 /* samples of a ring between two looks into the rings: 10 ms */
#define ROUNDS_MIN 4
#define SECONDS 2 /* CPU time to measure */
#define FIRST_PID 100000000 /* no process has this number */
#define PIDS 1000000 /* distance of the numbers of one process and of the next that does the same */
#define MOST_RINGS 1024
#define MOST_SAMPLES 1500 /* samples of the file that are used, from its middle on */
#define WORDS_MAX 8191 /* words of a record */
#define COPY_MAX 65024 /* bytes of a copy: what the kernel copies at most, less than its record */
#define CHAIN_MAX 1024

/* A record as it is kept: samples without numbers and time, which differ each time it is written. */
struct kept {
	uint32_t pid, tid;
	uint64_t *words; /* header first */
};

/**
 * struct feed - what is written to the rings
 * @others: records of what processes do, in the order of time.
 * @samples: the samples.
 * @nr_others: number of @others.
 * @nr_samples: number of @samples.
 * @copy: bytes of a copy; 0: samples have callchains.
 * @rings: the rings.
 * @processes: how many processes do the same.
 * @threads: how many threads the recorder has.
 * @time: time of the next record, ns.
 * @next: number of the next sample.
 */
struct feed {
	struct kept *others, *samples;
	size_t nr_others, nr_samples;
	size_t copy;
	struct perf_rings *rings;
	unsigned int processes;
	unsigned int threads;
	uint64_t time;
	size_t next;
};

static struct feed feed;

/* ---- Stand-ins for the kernel's rings ---- */

static bool opened;

int __wrap_perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret,
			   struct reason *why)
{
	(void)opts;
	/* The recorder may want other rings later. */
	because(why, "there are no other rings");
	if (opened)
		return -EPERM;
	opened = true;
	*ret = feed.rings;
	return 0;
}

void __wrap_perf_rings_close(struct perf_rings *rings)
{
	(void)rings;
}

bool __wrap_perf_rings_lost(const struct perf_rings *rings, struct perf_losses *ret)
{
	(void)rings;
	*ret = (struct perf_losses){ 0 };
	return true;
}

static void die(const char *what)
{
	fprintf(stderr, "record_rate: %s\n", what);
	exit(1);
}

static void *need(void *memory)
{
	if (!memory)
		die("out of memory");
	return memory;
}

static void make_rings(struct feed *f, unsigned int nr)
{
	struct perf_rings *r = need(calloc(1, sizeof(*r)));
	size_t size = 4096;

	while (size < 2 * LOOK * (f->copy + 8 * CHAIN_MAX))
		size *= 2;
	r->nr_rings = nr;
	r->broker = -1;
	r->rings = need(calloc(nr, sizeof(*r->rings)));
	r->old = need(calloc(nr, sizeof(*r->old)));
	r->chains = need(calloc(nr, sizeof(*r->chains)));
	r->heap = need(calloc(nr, sizeof(*r->heap)));
	for (unsigned int i = 0; i < nr; i++)
		r->rings[i] = (struct cpu_ring){
			.cpu = i,
			.fd = -1,
			.page = need(calloc(1, sizeof(*r->rings[i].page))),
			.data = need(aligned_alloc(4096, size)),
			.size = size,
		};
	f->rings = r;
}

static uint64_t room(const struct cpu_ring *ring)
{
	return ring->size - (ring->page->data_head - ring->page->data_tail);
}

/* Writes a record to a ring, with the process's number moved by @by, at the feed's time. */
static void write_record(struct feed *f, const struct kept *k, unsigned int at, uint32_t by)
{
	struct cpu_ring *ring = &f->rings->rings[at];
	const struct perf_event_header head = *(const struct perf_event_header *)k->words;
	const bool sample = head.type == PERF_RECORD_SAMPLE;
	const size_t nr = head.size / 8, last = nr - 1;
	const uint64_t who = (k->pid + by) | (uint64_t)(k->tid + by) << 32;
	uint64_t start = ring->page->data_head;

	if (head.size > room(ring))
		die("a ring is full");
	k->words[sample ? 2 : last - 2] = who;
	k->words[sample ? 3 : last - 1] = f->time;
	for (size_t done = 0; done < head.size;) {
		size_t to = (start + done) & (ring->size - 1);
		size_t n = ring->size - to;

		n = n < head.size - done ? n : head.size - done;
		memcpy((uint8_t *)ring->data + to, (const uint8_t *)k->words + done, n);
		done += n;
	}
	__atomic_store_n(&ring->page->data_head, start + head.size, __ATOMIC_RELEASE);
	f->time++;
}

/* ---- Records of the file ---- */

/* A record that is being made. */
static struct {
	uint64_t words[WORDS_MAX + 1];
	size_t nr;
} making;

static void begin_record(bool sample)
{
	making.nr = sample ? 4 : 1;
}

static void put(uint64_t value)
{
	if (making.nr <= WORDS_MAX)
		making.words[making.nr++] = value;
}

static void put_bytes(const void *bytes, size_t size)
{
	size_t words = (size + 7) / 8;

	if (making.nr + words > WORDS_MAX)
		return;
	making.words[making.nr + words - !!words] = 0;
	memcpy(making.words + making.nr, bytes, size);
	making.nr += words;
}

/* Keeps the record that was made, in @list. */
static void keep(struct kept **list, size_t *nr, uint32_t type, uint16_t misc, int pid, int tid)
{
	struct perf_event_header head = { .type = type, .misc = misc };
	struct kept *more = need(reallocarray(*list, *nr + 1, sizeof(**list)));

	*list = more;
	if (type != PERF_RECORD_SAMPLE)
		for (int i = 0; i < 3; i++)
			put(0);
	head.size = making.nr * 8;
	memcpy(making.words, &head, sizeof(head));
	more[*nr] = (struct kept){ FIRST_PID + pid, FIRST_PID + tid, need(malloc(making.nr * 8)) };
	memcpy(more[*nr].words, making.words, making.nr * 8);
	++*nr;
}

static void put_pair(uint32_t a, uint32_t b)
{
	put(a | (uint64_t)b << 32);
}

static int take_map(void *arg, const struct perf_map *m)
{
	struct feed *f = arg;

	begin_record(false);
	put_pair(FIRST_PID + m->pid, FIRST_PID + m->pid);
	put(m->start);
	put(m->end - m->start);
	put(m->offset);
	put_pair(major(m->dev), minor(m->dev));
	put(m->inode);
	put(0);
	put_pair(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	put_bytes(m->path, strlen(m->path) + 1);
	keep(&f->others, &f->nr_others, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, m->pid, m->pid);
	return 0;
}

static int take_comm(void *arg, const struct perf_comm *c)
{
	struct feed *f = arg;

	begin_record(false);
	put_pair(FIRST_PID + c->pid, FIRST_PID + c->tid);
	put_bytes(c->comm, strlen(c->comm) + 1);
	keep(&f->others, &f->nr_others, PERF_RECORD_COMM, c->exec ? PERF_RECORD_MISC_COMM_EXEC : 0,
	     c->pid, c->tid);
	return 0;
}

static int take_fork(void *arg, const struct perf_fork *fork)
{
	struct feed *f = arg;

	begin_record(false);
	put_pair(FIRST_PID + fork->pid, FIRST_PID + fork->parent);
	put_pair(FIRST_PID + fork->tid, FIRST_PID + fork->from);
	put(0);
	keep(&f->others, &f->nr_others, PERF_RECORD_FORK, 0, fork->parent, fork->from);
	return 0;
}

/* Writes the registers in the order of the kernel. */
static void put_regs(const struct shstk_regs *regs)
{
#ifdef __aarch64__
	for (int i = 0; i < 32; i++)
		put(regs->r[i]);
	put(regs->pc);
#else
	static const int order[] = { 0, 3, 2, 1, 4, 5, 6, 7, -1, 8, 9, 10, 11, 12, 13, 14, 15 };

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		put(order[i] < 0 ? regs->pc : regs->r[order[i]]);
#endif
}

static int take_copy(void *arg, const struct perfdata_event *event, const struct perf_sample *s)
{
	struct feed *f = arg;
	size_t used = s->stack_size < f->copy ? s->stack_size & ~7ul : f->copy;
	static const uint64_t zeros[WORDS_MAX];

	(void)event;
	if (s->abi != PERF_SAMPLE_REGS_ABI_64 || s->pid <= 0 || s->tid <= 0)
		return 0;
	begin_record(true);
	put(1000000000 / RATE);
	put(0);
	put(s->abi);
	put_regs(&s->regs);
	put(f->copy);
	put_bytes(s->stack, used);
	put_bytes(zeros, f->copy - used);
	put(used);
	keep(&f->samples, &f->nr_samples, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, s->pid,
	     s->tid);
	return 0;
}

static void take_lost(void *arg, uint64_t nr)
{
	(void)arg;
	(void)nr;
}

static void read_file(struct feed *f, const char *path)
{
	static const struct perfdata_handler handler = {
		.sample = take_copy,
		.map = take_map,
		.comm = take_comm,
		.fork = take_fork,
		.lost = take_lost,
	};
	struct perfdata *pd;
	struct reason why;

	if (perfdata_open(path, &pd, &why))
		die(why.text);
	if (perfdata_read(pd, &handler, f))
		die("cannot read the file");
	perfdata_close(pd);
	if (!f->nr_samples)
		die("the file has no copies of stacks");
	if (f->nr_samples > MOST_SAMPLES) {
		f->samples += (f->nr_samples - MOST_SAMPLES) / 2;
		f->nr_samples = MOST_SAMPLES;
	}
}

/* ---- Callchains of copies ---- */

/* The stack that was added to the profile last. */
static struct {
	uint64_t pcs[CHAIN_MAX];
	unsigned int nr;
	uint64_t frames;
} last;

int __real_shstk_profile_add(struct shstk_profile *profile, const struct shstk_sample *sample);

int __wrap_shstk_profile_add(struct shstk_profile *profile, const struct shstk_sample *sample)
{
	last.nr = sample->nr < CHAIN_MAX ? sample->nr : CHAIN_MAX;
	last.frames += sample->nr;
	if (sample->pcs)
		memcpy(last.pcs, sample->pcs, last.nr * sizeof(*last.pcs));
	return __real_shstk_profile_add(profile, sample);
}

/* Gives a sample the callchain that was found in it, instead of the copy. */
static void make_chain(struct kept *k)
{
	struct perf_event_header head = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 0 };

	begin_record(true);
	put(1000000000 / RATE);
	put(1 + last.nr);
	put(PERF_CONTEXT_USER);
	put_bytes(last.pcs, last.nr * sizeof(*last.pcs));
	head.size = making.nr * 8;
	memcpy(making.words, &head, sizeof(head));
	free(k->words);
	k->words = need(malloc(making.nr * 8));
	memcpy(k->words, making.words, making.nr * 8);
}

/* ---- Recording ---- */

struct recording {
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct perf_recording *d;
};

static void begin_recording(struct recording *r, size_t copy, unsigned int threads)
{
	static const struct perf_event clock = {
		.name = "cpu-clock",
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.clock = true,
	};
	const struct perf_record_opts opts = {
		.rings = { .main = &clock,
			   .freq = RATE,
			   .copy = copy,
			   .max_stack = CHAIN_MAX,
			   .cgroup = -1 },
		.depth = CHAIN_MAX,
		.fold = true,
		.nr_threads = threads,
	};
	struct reason why;

	opened = false;
	if (shstk_symbols_create(NULL, &r->symbols) ||
	    shstk_profile_create(r->symbols, &r->profile) ||
	    shstk_profile_add_type(r->profile, "samples", "count") < 0 ||
	    shstk_profile_add_type(r->profile, "cpu", "nanoseconds") < 0)
		die("out of memory");
	if (perf_recording_create(&opts, r->symbols, r->profile, &r->d, &why))
		die(why.text);
}

static void end_recording(struct recording *r)
{
	perf_recording_destroy(r->d);
	shstk_profile_destroy(r->profile);
	shstk_symbols_destroy(r->symbols);
}

static double cpu_seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* CPU seconds that the recorder took, and those of its thread that empties the rings. */
struct spent {
	double all, emptying;
};

/* Has the recorder take what is in the rings. Adds to @spent what that took. */
static void take_all(struct recording *r, struct spent *spent)
{
	const double all = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
	const double emptying = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);

	if (perf_recording_take(r->d))
		die("out of memory");
	spent->emptying += cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - emptying;
	spent->all += cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - all;
}

/* Tells the recorder what the processes do, and has it take that. */
static void begin_processes(struct feed *f, struct recording *r)
{
	struct spent unused = { 0 };

	for (unsigned int n = 0; n < f->processes; n++)
		for (size_t i = 0; i < f->nr_others; i++) {
			struct kept *k = &f->others[i];
			const struct perf_event_header *h = (const void *)k->words;
			/* Numbers of processes and threads in the body. */
			size_t nr = h->type == PERF_RECORD_FORK ? 2 : 1;
			uint64_t body[2] = { k->words[1], k->words[2] };

			for (size_t w = 0; w < nr; w++)
				k->words[1 + w] += (uint64_t)n * PIDS << 32 | n * PIDS;
			write_record(f, k, 0, n * PIDS);
			memcpy(k->words + 1, body, nr * sizeof(*body));
			take_all(r, &unused);
		}
}

/* Writes LOOK samples to each ring, in turn. */
static void write_samples(struct feed *f)
{
	for (size_t i = 0; i < LOOK * f->rings->nr_rings; i++, f->next++)
		write_record(f, &f->samples[f->next / f->processes % f->nr_samples],
			     i % f->rings->nr_rings, f->next % f->processes * PIDS);
}

/* Replaces each copy by the callchain in it. */
static void make_chains(struct feed *f)
{
	struct spent unused = { 0 };
	struct recording r;

	begin_recording(&r, f->copy, 1);
	begin_processes(f, &r);
	for (size_t i = 0; i < f->nr_samples; i++) {
		last.nr = 0;
		write_record(f, &f->samples[i], 0, 0);
		take_all(&r, &unused);
		make_chain(&f->samples[i]);
	}
	end_recording(&r);
	f->copy = 0;
}

static long memory(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "RssAnon: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

static void measure(struct feed *f)
{
	const uint64_t of_round = LOOK * f->rings->nr_rings;
	uint64_t samples = 0;
	struct spent spent = { 0 };
	struct recording r;
	long before;

	begin_recording(&r, f->copy, f->threads);
	begin_processes(f, &r);
	/* The first pass fills what the recorder keeps, rules and stacks above all. */
	for (size_t done = 0; done < f->nr_samples * f->processes; done += of_round) {
		write_samples(f);
		take_all(&r, &spent);
	}
	spent = (struct spent){ 0 };
	last.frames = 0;
	before = memory();
	while (spent.all < SECONDS || samples < ROUNDS_MIN * of_round) {
		write_samples(f);
		take_all(&r, &spent);
		samples += of_round;
	}
	printf("%llu %.3f %.3f %.1f %ld\n", (unsigned long long)samples, spent.all, spent.emptying,
	       (double)last.frames / samples, (memory() - before) * 1024);
	end_recording(&r);
}

int main(int argc, char **argv)
{
	if (argc < 6)
		die("usage: record_rate FILE RINGS PROCESSES BYTES THREADS [chains]");
	feed.processes = atoi(argv[3]);
	feed.copy = atoi(argv[4]) & ~7;
	feed.threads = atoi(argv[5]);
	if (feed.copy > COPY_MAX)
		feed.copy = COPY_MAX;
	feed.time = 1000000000;
	if (atoi(argv[2]) < 1 || atoi(argv[2]) > MOST_RINGS || !feed.processes)
		die("RINGS or PROCESSES is out of range");
	read_file(&feed, argv[1]);
	make_rings(&feed, atoi(argv[2]));
	if (argc > 6)
		make_chains(&feed);
	measure(&feed);
	return 0;
}
