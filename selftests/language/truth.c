// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * truth.c - prints the stack of each sample of an interpreter, beside a word that its program wrote.
 *
 *	truth [-b] [-t] [-n SAMPLES] [-r SAMPLES] [-f FREQUENCY] [-w SECONDS] FILE COMMAND [ARGUMENT...]
 *
 * The program keeps in the first word of FILE, which it has mapped, which of its functions runs. The
 * word is read by the BPF program that reads the frames, at the same moment. For each stack with
 * functions there is a line:
 *
 *	WORD	NAME@FILE:LINE	NAME@FILE:LINE	...
 *
 * separated by tabs. The innermost function comes first; a "|" stands for entries of native code. FILE is empty
 * if it is not known. With
 * -t the name of the task that ran is behind the word, or nothing. The last line tells how many samples
 * had frames, how many of these were placed, and how many samples were taken from the first one with
 * frames on. With -b the broker lends what reads them. It waits SECONDS (180) for so many samples. It ends with
 * 4 if this machine
 * permits no such program, or if its kernel refuses the large one that reads JavaScript; with 1 if the
 * kernel's verifier refuses another one; and says why.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/bpf/held_command.h"
#include "selftests/bpf/refusal.h"
#include "tools/convert/population.h"
#include "tools/convert/stacks.h"
#include "tools/language/languages.h"
#include "tools/perf/regs.h"
#include "tools/perf/rings.h"
#include "tools/perf/sample.h"
#include "tools/proc/maps.h"
#include "tools/stack_pointer.h"

#define COPY 32768
#define RING (8u << 20)
#define SKIP 4
#define USAGE \
	"truth [-b] [-t] [-n SAMPLES] [-r SAMPLES] [-f FREQUENCY] [-w SECONDS] FILE COMMAND..."
#define PATIENCE 180 /* seconds of waiting for the samples */

/* Is in the refusal of the program that reads JavaScript, too: some kernels refuse it, as is documented. */
#define LARGE "frames on the native stack"

/**
 * struct truth - what the callback of the rings needs
 * @all: the processes.
 * @stacks: makes stacks.
 * @languages: the languages.
 * @rings: the rings.
 * @file: the file with the word.
 * @pid: the process.
 * @reading: frames are read.
 * @set: number of the interpreter for which the place of the word was told; 0: none.
 * @tasks: names of tasks are printed.
 * @placed: after so many samples with functions it ends, not counting those from before the program
 *	wrote its word first; 0: any number.
 * @read: after so many samples of which frames were read it ends; 0: any number.
 * @patience: seconds of waiting for these.
 * @printed: number of samples that count for @placed so far.
 * @lent: the broker lends what reads frames.
 * @since: samples from the first one with frames on.
 */
struct truth {
	struct population all;
	struct stacks stacks;
	struct languages *languages;
	struct perf_rings *rings;
	const char *file;
	pid_t pid;
	bool reading;
	int set;
	bool tasks;
	uint64_t placed;
	uint64_t read;
	uint64_t patience;
	uint64_t printed;
	bool lent;
	uint64_t since;
};

/* Tells where the word is, once the program has mapped the file. */
static void find_word(struct truth *t, int number)
{
	struct mapping m;
	struct maps maps;

	if (t->set == number || maps_open(t->pid, "maps", &maps))
		return;
	while (maps_next(&maps, &m))
		if (!strcmp(m.path, t->file) && !languages_set_truth(t->languages, number, m.start))
			t->set = number;
	maps_close(&maps);
	if (t->lent && t->set == number)
		languages_set(t->languages, t->pid, number);
}

/* Returns the name of the task that ran, "" if none is known. */
static const char *task_of(const struct languages *all)
{
	static char label[LANGUAGES_LABEL];

	return languages_label(all, label) ? label + strlen(label) + 1 : "";
}

static void print(const struct truth *t, const uint64_t *pcs, unsigned int nr)
{
	bool native = false;

	printf("%llu", (unsigned long long)languages_truth(t->languages));
	if (t->tasks)
		printf("\t%s", task_of(t->languages));
	for (unsigned int i = 0; i < nr; i++) {
		struct shstk_symframe f;
		const char *module;

		if (!languages_function(t->languages, pcs[i], &f, &module)) {
			if (!native)
				printf("\t|");
			native = true;
			continue;
		}
		native = false;
		printf("\t%s@%s:%u", f.function, f.file ? f.file : "", f.line);
	}
	putchar('\n');
}

/* Tells the program which interpreter a process has, if that has changed. Returns its number. */
static int know_interpreter(struct truth *t, struct process *p)
{
	const int number = mappings_language(p->mappings, p->pid, t->languages);

	if (number != p->language)
		languages_set(t->languages, p->pid, number);
	p->language = number;
	return number;
}

/* Takes a stack that was walked in the kernel, as long as it is not known that there is an interpreter. */
static int take_walked(struct truth *t, const struct perf_record *r)
{
	struct task *task = r->pid > 0 ? population_task(&t->all, r->pid, r->tid) : NULL;

	if (task)
		know_interpreter(t, task->process);
	return 0;
}

/* Counts a sample, once frames have been read. */
static void count_since(struct truth *t)
{
	struct language_counts counts;

	languages_count(t->languages, &counts);
	t->since += counts.samples > 0;
}

static void place(struct truth *t, struct task *task, const struct perf_sample *s,
		  const struct stack *stack)
{
	static uint64_t pcs[STACKS_MAX];
	static uint8_t marks[STACKS_MAX];
	const struct native_stack native = {
		.pcs = stack->pcs + stack->copied,
		.marks = stack->marks + stack->copied,
		.sps = t->stacks.sps,
		.nr = stack->nr_copied,
		.function = process_function,
		.arg = task->process,
	};
	const int number = know_interpreter(t, task->process);
	const struct language_sample of = {
		.number = number,
		.tid = s->tid,
		.time = s->time,
		.pc = s->regs.pc,
		.sp = stack_pointer(perf_regs_arch(), &s->regs),
	};
	unsigned int nr;

	if (!number)
		return;
	find_word(t, number);
	nr = languages_place(t->languages, &of, &native, pcs, marks, STACKS_MAX);
	count_since(t);
	if (!nr || !t->set)
		return;
	print(t, pcs, nr);
	t->printed += languages_truth(t->languages) != 0;
}

static int take_sample(struct truth *t, const struct perf_record *r)
{
	struct perf_sample s;
	struct stack stack;
	struct task *task;

	if (r->pid <= 0 || !perf_sample_parse(r, true, 0, &s) || s.abi != 2)
		return 0;
	task = population_task(&t->all, s.pid, s.tid);
	if (!task)
		return -ENOMEM;
	if (!stacks_make(&t->stacks, &t->all, task, &s, NULL, NULL, &stack) && stack.nr_copied)
		place(t, task, &s, &stack);
	return 0;
}

static int take(void *arg, const struct perf_record *r)
{
	struct truth *t = arg;
	struct perf_map map;
	struct perf_comm comm;
	struct perf_fork fork;

	t->all.time = r->time;
	if (r->language)
		return languages_take(t->languages, r->tid, r->time, r->body, r->size);
	if (r->type == PERF_RECORD_LOST)
		languages_lost(t->languages);
	if (r->type == PERF_RECORD_SAMPLE)
		return r->walked ? take_walked(t, r) : take_sample(t, r);
	if (r->type == PERF_RECORD_MMAP2 && perf_record_map(r, &map))
		return population_map(&t->all, &map);
	if (r->type == PERF_RECORD_COMM && perf_record_comm(r, &comm))
		return population_comm(&t->all, &comm);
	if (r->type == PERF_RECORD_FORK && perf_record_fork(r, &fork))
		return population_fork(&t->all, &fork);
	return 0;
}

/* Reads until there are enough samples, or the command ends. */
static void read_all(struct truth *t)
{
	struct language_counts counts;
	int status, ended = 0;

	for (uint64_t i = 0; i < t->patience * 100 && !ended; i++) {
		usleep(10000);
		ended = waitpid(t->pid, &status, WNOHANG);
		if (perf_rings_read(t->rings, ended, take, t))
			die("records", "cannot be taken");
		if (!t->reading && languages_wanted(t->languages)) {
			t->reading = true;
			if (languages_begin(t->languages, t->rings))
				die("events", "the program does not run there");
		}
		languages_count(t->languages, &counts);
		if (languages_refused(t->languages) || (t->placed && t->printed >= t->placed) ||
		    (t->read && counts.samples >= t->read))
			break;
	}
	if (ended)
		return;
	kill(t->pid, SIGKILL);
	waitpid(t->pid, &status, 0);
	perf_rings_read(t->rings, true, take, t);
}

/*
 * Has the first thread keep its events. Threads that it creates get copies of them, and the kernel may
 * swap the events of two such threads when it switches between them, as both have the same. But the
 * program runs at the first thread's only if that had created the others before the program came. An
 * event that is not copied makes them different. It remains open to the end.
 */
static void keep_events(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};

	if (syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC) < 0)
		die("events", strerror(errno));
}

/* A languages_tell_fn. */
static int tell(void *arg, int pid, const struct lent_process *process)
{
	const struct truth *t = arg;

	return perf_rings_read_process(t->rings, pid, process);
}

/* Has the broker's program read frames. */
static void lend(struct truth *t)
{
	if (!perf_rings_lent(t->rings))
		die("broker", "it lends nothing");
	languages_lend(t->languages, tell, t);
}

static void run(struct truth *t, struct perf_opts *opts, char **command)
{
	struct language_counts counts;
	struct reason why;
	const char *refused;
	int go;

	t->pid = hold_command(command, &go);
	opts->pids = &t->pid;
	opts->nr_pids = 1;
	opts->on_exec = true;
	if (perf_rings_open(opts, &t->rings, &why)) {
		printf("%s\n", why.text);
		exit(SKIP);
	}
	/* What is lent runs at all events from the beginning. */
	if (t->lent)
		lend(t);
	else
		keep_events(t->pid);
	release_command(go);
	read_all(t);
	refused = languages_refused(t->languages);
	languages_count(t->languages, &counts);
	if (refused) {
		printf("%s\n", refused);
		exit(strstr(refused, LARGE) ? SKIP : status_without_program(refused));
	}
	printf("# %llu of %llu placed, %llu samples\n", (unsigned long long)counts.placed,
	       (unsigned long long)counts.samples, (unsigned long long)t->since);
}

int main(int argc, char **argv)
{
	struct truth *t = calloc(1, sizeof(*t));
	struct shstk_symbols *symbols;
	struct perf_opts opts = {
		.main = perf_event_find("cpu-clock"),
		.freq = 999,
		.max_stack = 1,
		.copy = COPY,
		.ring_size = RING,
		.may_shrink = true,
		.cgroup = -1,
	};
	int option;

	if (t)
		t->patience = PATIENCE;
	while (t && (option = getopt(argc, argv, "+btn:r:f:w:")) >= 0) {
		if (option == 'n')
			t->placed = strtoull(optarg, NULL, 10);
		else if (option == 't')
			t->tasks = true;
		else if (option == 'b')
			t->lent = opts.borrow = true;
		else if (option == 'r')
			t->read = strtoull(optarg, NULL, 10);
		else if (option == 'f')
			opts.freq = strtoul(optarg, NULL, 10);
		else if (option == 'w')
			t->patience = strtoull(optarg, NULL, 10);
		else
			die("usage", USAGE);
	}
	if (!t || argc - optind < 2)
		die("usage", USAGE);
	opts.walk.max = t->lent ? COPY / 64 : 0;
	t->file = argv[optind];
	t->languages = languages_create(NULL);
	if (!t->languages || shstk_symbols_create(NULL, &symbols) ||
	    population_init(&t->all, symbols, NULL))
		die("memory", strerror(ENOMEM));
	t->stacks.source = STACK_COPIES;
	t->stacks.depth = 2048;
	run(t, &opts, argv + optind + 1);
	perf_rings_close(t->rings);
	population_deinit(&t->all);
	shstk_symbols_destroy(symbols);
	languages_destroy(t->languages);
	free(t);
	return 0;
}
