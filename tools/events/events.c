// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk events - violations of shadow stacks in all programs, as they happen.
 *
 * The kernel module shstk.ko makes a trace event of each. When it can be read,
 * the program is usually dead already and its mappings with it. So the kernel
 * is asked to report mappings too, of every process, from the start: these are
 * kept for as long as the process lives, and used if it violates.
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
#include <uthash.h>

#include "libshstk/symbol/symbol.h"
#include "tools/perf/rings.h"
#include "tools/proc/maps.h"
#include "tools/proc/tasks.h"
#include "tools/run/report.h"
#include "tools/shstk.h"

#define TRACEFS "/sys/kernel/tracing"
#define EVENT TRACEFS "/events/shstk/shstk_violation"
#define RING_SIZE (512u << 10)
#define PERIOD_NS 100000000 /* between looks at the rings */
#define MAX_MAPS 4096 /* executable mappings of one process */

struct map {
	uint64_t start, end, offset;
	char *path;
};

struct process {
	int pid;
	struct map *maps;
	unsigned int nr;
	UT_hash_handle hh;
};

/* Where a field is in the event; from tracefs. */
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
	struct process *processes;
};

static volatile sig_atomic_t ended;

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "only those of this process", 0 },
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

/* --- processes and their mappings --- */

static struct process *get_process(struct events *e, int pid)
{
	struct process *p;

	HASH_FIND_INT(e->processes, &pid, p);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD_INT(e->processes, pid, p);
	return p;
}

static void forget_maps(struct process *p)
{
	while (p->nr)
		free(p->maps[--p->nr].path);
}

static void end_process(struct events *e, int pid)
{
	struct process *p;

	HASH_FIND_INT(e->processes, &pid, p);
	if (!p)
		return;
	HASH_DEL(e->processes, p);
	forget_maps(p);
	free(p->maps);
	free(p);
}

static void add_map(struct process *p, uint64_t start, uint64_t end, uint64_t offset,
		    const char *path)
{
	struct map *v;

	if (!p || p->nr == MAX_MAPS || (*path != '/' && strcmp(path, "[vdso]")) ||
	    !strncmp(path, "//", 2))
		return;
	v = reallocarray(p->maps, p->nr + 1, sizeof(*v));
	if (!v)
		return;
	p->maps = v;
	v[p->nr].path = strdup(path);
	if (!v[p->nr].path)
		return;
	v[p->nr].start = start;
	v[p->nr].end = end;
	v[p->nr++].offset = offset;
}

static void read_maps(struct events *e, int pid)
{
	struct mapping m;
	struct process *p;
	struct maps maps;

	if (maps_open(pid, "maps", &maps))
		return;
	p = get_process(e, pid);
	while (maps_next(&maps, &m))
		if (m.exec)
			add_map(p, m.start, m.end, m.offset, m.path);
	maps_close(&maps);
}

/* Those that run already; from here on the kernel tells. */
static void read_processes(struct events *e)
{
	DIR *dir = tasks_open(0);
	pid_t pid;

	while (dir && (pid = tasks_next(dir)))
		read_maps(e, pid);
	if (dir)
		closedir(dir);
}

static void fork_process(struct events *e, int pid, int parent)
{
	struct process *from, *to;

	if (pid == parent)
		return;
	end_process(e, pid);
	HASH_FIND_INT(e->processes, &parent, from);
	to = from ? get_process(e, pid) : NULL;
	for (unsigned int i = 0; to && i < from->nr; i++)
		add_map(to, from->maps[i].start, from->maps[i].end, from->maps[i].offset,
			from->maps[i].path);
}

/* --- a violation --- */

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
	struct process *p;

	HASH_FIND_INT(e->processes, &pid, p);
	/* A store of its own: what it holds goes with it. */
	if (!shstk_symbols_create(NULL, &symbols) && !shstk_symproc_create(symbols, pid, &proc)) {
		for (unsigned int i = 0; p && i < p->nr; i++) {
			struct shstk_symmap_info info = {
				.start = p->maps[i].start,
				.end = p->maps[i].end,
				.offset = p->maps[i].offset,
				.path = p->maps[i].path,
			};

			shstk_symproc_add(proc, &info);
		}
		if (!p || !p->nr)
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

/* --- records --- */

static int take_record(void *arg, const struct perf_record *r)
{
	struct events *e = arg;
	const uint32_t *word = r->body;

	switch (r->type) {
	case PERF_RECORD_MMAP2:
		/* pid, tid, addr, len, pgoff, 24 bytes, prot, flags, name */
		if (r->size > 64) {
			const uint64_t *v = (const void *)(word + 2);
			const char *name = (const char *)(word + 16);

			if (memchr(name, 0, r->size - 64))
				add_map(get_process(e, word[0]), v[0], v[0] + v[1], v[2], name);
		}
		break;
	case PERF_RECORD_COMM:
		if (r->size >= 8 && (r->misc & PERF_RECORD_MISC_COMM_EXEC)) {
			struct process *p = get_process(e, word[0]);

			if (p)
				forget_maps(p);
		}
		break;
	case PERF_RECORD_FORK:
		if (r->size >= 16)
			fork_process(e, word[0], word[1]);
		break;
	case PERF_RECORD_EXIT:
		if (r->size >= 16 && word[0] == word[2])
			end_process(e, word[0]);
		break;
	case PERF_RECORD_SAMPLE:
		/* bytes, the event */
		if (r->size >= 4 && word[0] <= r->size - 4)
			print_violation(e, r->tid, (const char *)(word + 1), word[0]);
		break;
	}
	return e->count && e->seen >= e->count;
}

/* --- start --- */

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

static int open_rings(const struct events *e, struct perf_rings **ret, char *err, size_t size)
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

	return perf_rings_open(&opts, ret, err, size);
}

static int refuse(int err)
{
	if (access(TRACEFS "/events", F_OK))
		complain(
			"no trace events in %s: root has to mount it (mount -t tracefs none %s), or may not be left out",
			TRACEFS, TRACEFS);
	else if (err == -ENOENT)
		complain("the kernel module shstk is not loaded: modprobe shstk");
	else if (err == -EACCES || err == -EPERM)
		complain("no permission for trace events: run as root");
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
	struct process *p, *next;
	struct events e = { 0 };
	int next_arg, err;
	char text[256];
	uint64_t lost;
	bool last;

	next_arg = command_parse(&events_argp, argc, argv, &e);
	if (next_arg < argc) {
		complain("'%s': there is nothing to name here", argv[next_arg]);
		return EXIT_USAGE;
	}
	err = read_format(&e);
	if (err)
		return refuse(err);
	if (open_rings(&e, &rings, text, sizeof(text))) {
		complain("%s", text);
		return EXIT_FAILED;
	}
	read_processes(&e);
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
	if (perf_rings_lost(rings, &lost) && lost)
		complain("%" PRIu64 " records were lost: names may be missing", lost);
	HASH_ITER(hh, e.processes, p, next)
	end_process(&e, p->pid);
	perf_rings_close(rings);
	return err < 0 ? EXIT_FAILED : EXIT_OK;
}
