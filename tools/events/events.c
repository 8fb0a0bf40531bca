// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk events - prints violations of shadow stacks in all programs as they happen.
 *
 * The kernel module shstk.ko makes a trace event of each. When the event can be read, the program
 * is usually dead already, and its mappings are gone. So the kernel is asked to report mappings
 * too, of every process, from the start. They are kept for as long as the process lives
 * (population.h), and used if it violates its shadow stack.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/symbol/symbol.h"
#include "tools/convert/population.h"
#include "tools/perf/rings.h"
#include "tools/proc/tasks.h"
#include "tools/run/violations.h"
#include "tools/screen_lines.h"
#include "tools/shstk.h"

#define TRACEFS "/sys/kernel/tracing"
#define EVENT TRACEFS "/events/shstk/shstk_violation"
#define RING_SIZE (512u << 10)
#define PERIOD_NS 100000000 /* time between two reads of the ring buffers */

/* The place of a field in the event, from tracefs. */
struct field {
	const char *name;
	unsigned int offset, size;
};

enum { FIELD_COMM, FIELD_TGID, FIELD_PC, FIELD_STACK, FIELD_SHADOW, FIELDS };

struct events {
	int pid;
	unsigned long count, seen;
	uint64_t id;
	struct field fields[FIELDS];
	struct population all;
};

static volatile sig_atomic_t ended;

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "print only violations of this process", 0 },
	{ "count", 'n', "N", 0, "end after N violations", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct events *e = state->input;

	switch (key) {
	case 'p':
		e->pid = parse_number(state, "process ID", arg, 1, INT_MAX);
		return 0;
	case 'n':
		e->count = parse_number(state, "count", arg, 1, LONG_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp events_argp = {
	.options = options,
	.parser = parse,
	.doc = "Print violations of shadow stacks in all programs as they happen."
	       "\v"
	       "Needs the kernel module shstk.ko, and root or CAP_PERFMON.",
};

/* ---- Processes and their mappings ---- */

/*
 * Adds the processes that run already, each by its first thread, at whose end it is removed. The
 * kernel reports later processes.
 */
static void read_processes(struct events *e)
{
	DIR *dir = tasks_open(0);
	pid_t pid;

	while (dir && (pid = tasks_next(dir)))
		population_task(&e->all, pid, pid);
	if (dir)
		closedir(dir);
}

/* Handles a record about a process. If there is no memory, names are missing, but no violations. */
static void take_event(struct population *all, const struct perf_record *r)
{
	struct perf_map map;
	struct perf_comm comm;
	struct perf_fork fork;
	struct task *t;

	if (r->type == PERF_RECORD_MMAP2 && perf_record_map(r, &map))
		population_map(all, &map);
	if (r->type == PERF_RECORD_COMM && perf_record_comm(r, &comm))
		population_comm(all, &comm);
	if (r->type == PERF_RECORD_FORK && perf_record_fork(r, &fork))
		population_fork(all, &fork);
	if (r->type == PERF_RECORD_EXIT && perf_record_fork(r, &fork)) {
		t = population_exit(all, &fork);
		if (t)
			population_leave(all, t, false);
	}
}

/* ---- A violation ---- */

static uint64_t read_field(const struct field *f, const char *raw, size_t size)
{
	uint64_t v = 0;

	if (f->size <= sizeof(v) && f->offset <= size && f->size <= size - f->offset)
		memcpy(&v, raw + f->offset, f->size);
	return v;
}

static void name_addresses(struct events *e, int pid, const uint64_t *addr, char (*name)[400])
{
	static const int how[] = {
		SHSTK_SYMADDR_PC,
		SHSTK_SYMADDR_PC,
		SHSTK_SYMADDR_RETURN,
	};
	struct shstk_symproc *proc = NULL;
	struct shstk_symbols *symbols = NULL;
	struct process *p = population_process(&e->all, pid);

	/* The symbols are stored apart, so that everything is freed at the end. */
	if (!shstk_symbols_create(NULL, &symbols) && !shstk_symproc_create(symbols, pid, &proc)) {
		if (p)
			mappings_name(p->mappings, pid, proc);
		if (!p || mappings_empty(p->mappings))
			shstk_symproc_read_maps(proc);
	}
	for (int i = 0; i < 3; i++) {
		if (proc && addr[i])
			report_address(proc, addr[i], how[i], name[i], sizeof(name[i]));
		else
			snprintf(name[i], sizeof(name[i]), "[0x%" PRIx64 "]", addr[i]);
	}
	shstk_symbols_destroy(symbols);
}

static void print_violation(struct events *e, int tid, const char *raw, size_t size)
{
	const struct field *f = e->fields;
	uint64_t addr[3] = {
		read_field(f + FIELD_PC, raw, size),
		read_field(f + FIELD_STACK, raw, size),
		read_field(f + FIELD_SHADOW, raw, size),
	};
	int pid = read_field(f + FIELD_TGID, raw, size);
	char comm[17] = "", when[16], name[3][400];
	time_t now = time(NULL);
	struct tm tm;

	if (e->pid && e->pid != pid)
		return;
	if (f[FIELD_COMM].size <= sizeof(comm) - 1 &&
	    f[FIELD_COMM].offset + f[FIELD_COMM].size <= size)
		memcpy(comm, raw + f[FIELD_COMM].offset, f[FIELD_COMM].size);
	for (char *c = comm; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
			*c = '?';
	name_addresses(e, pid, addr, name);
	strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&now, &tm));
	printf("%s %s, process %d, thread %d: return in %s goes to %s, the shadow stack has %s\n",
	       when, comm, pid, tid, name[0], name[1], name[2]);
	fflush(stdout);
	e->seen++;
}

/* ---- Records ---- */

static int take_record(void *arg, const struct perf_record *r)
{
	struct events *e = arg;
	const uint32_t *word = r->body;

	population_make_room(&e->all);
	take_event(&e->all, r);
	/* a sample has a number of bytes, and then the event */
	if (r->type == PERF_RECORD_SAMPLE && r->size >= 4 && word[0] <= r->size - 4)
		print_violation(e, r->tid, (const char *)(word + 1), word[0]);
	return e->count && e->seen >= e->count;
}

/* ---- Start ---- */

static int read_format(struct events *e)
{
	static const char *const names[] = { "comm", "tgid", "pc", "stack", "shadow" };
	unsigned int found = 0, offset, size;
	char line[256], name[64];
	FILE *in;

	in = fopen(EVENT "/id", "re");
	if (!in)
		return -errno;
	if (fscanf(in, "%" SCNu64, &e->id) != 1)
		e->id = 0;
	fclose(in);
	in = fopen(EVENT "/format", "re");
	if (!in)
		return -errno;
	while (fgets(line, sizeof(line), in)) {
		char *semi = strchr(line, ';'), *word;

		if (!semi || !strstr(line, "field:") ||
		    sscanf(semi, "; offset:%u; size:%u;", &offset, &size) != 2)
			continue;
		*semi = '\0';
		word = strrchr(line, ' ');
		if (!word || sscanf(word, " %63[a-z_]", name) != 1)
			continue;
		for (int i = 0; i < FIELDS; i++) {
			if (strcmp(name, names[i]))
				continue;
			e->fields[i].offset = offset;
			e->fields[i].size = size;
			found++;
		}
	}
	fclose(in);
	return e->id && found == FIELDS ? 0 : -EPROTO;
}

static int open_rings(const struct events *e, struct perf_rings **ret, struct reason *why)
{
	const struct perf_event violation = {
		.name = "shstk:shstk_violation",
		.type = PERF_TYPE_TRACEPOINT,
		.config = e->id,
		.raw = true,
	};
	const struct perf_opts opts = {
		.main = &violation,
		.ring_size = RING_SIZE,
		.cgroup = -1,
	};

	return perf_rings_open(&opts, ret, why);
}

static int refuse(int err)
{
	if (access(TRACEFS "/events", F_OK))
		complain("no trace events in %s: be root, and mount it (mount -t tracefs none %s)",
			 TRACEFS, TRACEFS);
	else if (err == -ENOENT)
		complain("the kernel module shstk is not loaded: modprobe shstk");
	else if (err == -EACCES || err == -EPERM)
		complain("trace events: not permitted: be root");
	else
		complain("cannot read violations: %s", strerror(-err));
	return EXIT_FAILED;
}

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

int cmd_events(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	const struct timespec period = { .tv_nsec = PERIOD_NS };
	struct perf_rings *rings = NULL;
	struct events e = { 0 };
	int next_arg, err;
	struct reason why;
	struct perf_losses lost;
	bool last;

	next_arg = command_parse(&events_argp, argc, argv, &e);
	if (next_arg < argc) {
		complain("unexpected argument '%s'", argv[next_arg]);
		return EXIT_USAGE;
	}
	err = read_format(&e);
	if (err)
		return refuse(err);
	if (open_rings(&e, &rings, &why)) {
		complain("%s", why.text);
		return EXIT_FAILED;
	}
	if (population_init(&e.all, NULL, NULL)) {
		complain("out of memory");
		perf_rings_close(rings);
		return EXIT_FAILED;
	}
	read_processes(&e);
	screen_lines_fit();
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	fprintf(stderr, "shstk events: waiting for violations\n");

	do {
		nanosleep(&period, NULL);
		last = ended;
		err = perf_rings_read(rings, last, take_record, &e);
	} while (!err && !last);
	if (err < 0)
		complain("cannot read violations: %s", strerror(-err));
	if (perf_rings_lost(rings, &lost) && lost.all)
		complain("%" PRIu64 " records were lost: names may be missing", lost.all);
	population_deinit(&e.all);
	perf_rings_close(rings);
	return err < 0 ? EXIT_FAILED : EXIT_OK;
}
