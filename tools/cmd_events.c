// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk events - violations of shadow stacks in all programs, as they happen.
 *
 * The kernel module shstk.ko makes a trace event of each. When it can be read,
 * the program is usually dead already and its mappings with it. So the kernel
 * is asked to report mappings too, of every process, from the start: these are
 * kept for as long as the process lives, and used if it violates.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "libshstk/symbol/symbol.h"
#include "tools/report.h"
#include "tools/shstk.h"

#define TRACEFS		"/sys/kernel/tracing"
#define EVENT		TRACEFS "/events/shstk/shstk_violation"
#define RING_PAGES	128
#define MAX_MAPS	4096	/* executable mappings of one process */
#define MAX_RECORD	65536

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

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

/* A record, copied: rings of several CPUs are put in order by time. */
struct record {
	uint64_t time;
	size_t number;
	struct perf_event_header *head;
};

struct events {
	int pid;
	unsigned long count, seen;
	uint64_t id;
	struct field fields[FIELDS];
	struct ring *rings;
	struct pollfd *polls;
	unsigned int nr_rings;
	struct process *processes;
	struct record *records;
	size_t nr_records, room;
	uint64_t lost;
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

static const struct argp argp = {
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

static void add_map(struct process *p, uint64_t start, uint64_t end,
		    uint64_t offset, const char *path)
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
	char path[64], *line = NULL;
	uint64_t start, end, offset;
	struct process *p;
	size_t room = 0;
	ssize_t n;
	FILE *in;
	int at;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	in = fopen(path, "re");
	if (!in)
		return;
	p = get_process(e, pid);
	while ((n = getline(&line, &room, in)) > 0) {
		line[n - 1] = '\0';
		at = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*2c%*1[x]%*1c %" SCNx64
			   " %*s %*s %n", &start, &end, &offset, &at) >= 3 && at)
			add_map(p, start, end, offset, line + at);
	}
	free(line);
	fclose(in);
}

/* Those that run already; from here on the kernel tells. */
static void read_processes(struct events *e)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)*entry->d_name))
			read_maps(e, atoi(entry->d_name));
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
		add_map(to, from->maps[i].start, from->maps[i].end,
			from->maps[i].offset, from->maps[i].path);
}

/* --- a violation --- */

static uint64_t read_field(const struct field *f, const char *raw, size_t size)
{
	uint64_t v = 0;

	if (f->size <= sizeof(v) && f->offset <= size &&
	    f->size <= size - f->offset)
		memcpy(&v, raw + f->offset, f->size);
	return v;
}

static void name_addresses(struct events *e, int pid, const uint64_t *addr,
			   char (*name)[400])
{
	static const int how[] = {
		SHSTK_SYMADDR_PC, SHSTK_SYMADDR_PC, SHSTK_SYMADDR_RETURN,
	};
	struct shstk_symproc *proc = NULL;
	struct shstk_symbols *symbols = NULL;
	struct process *p;

	HASH_FIND_INT(e->processes, &pid, p);
	/* A store of its own: what it holds goes with it. */
	if (!shstk_symbols_create(NULL, &symbols) &&
	    !shstk_symproc_create(symbols, pid, &proc)) {
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
			report_address(proc, addr[i], how[i], name[i],
				       sizeof(name[i]));
		else
			snprintf(name[i], sizeof(name[i]), "[0x%" PRIx64 "]",
				 addr[i]);
	}
	shstk_symbols_destroy(symbols);
}

static void print_violation(struct events *e, int tid, const char *raw,
			    size_t size)
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

static void take_record(struct events *e, const struct perf_event_header *h)
{
	const uint32_t *word = (const void *)(h + 1);
	size_t size = h->size - sizeof(*h);

	switch (h->type) {
	case PERF_RECORD_MMAP2:
		/* pid, tid, addr, len, pgoff, 24 bytes, prot, flags, name */
		if (size > 72) {
			const uint64_t *v = (const void *)(word + 2);
			const char *name = (const char *)(word + 16);

			if (memchr(name, 0, size - 64))
				add_map(get_process(e, word[0]), v[0],
					v[0] + v[1], v[2], name);
		}
		break;
	case PERF_RECORD_COMM:
		if (size >= 8 && (h->misc & PERF_RECORD_MISC_COMM_EXEC)) {
			struct process *p = get_process(e, word[0]);

			if (p)
				forget_maps(p);
		}
		break;
	case PERF_RECORD_FORK:
		if (size >= 16)
			fork_process(e, word[0], word[1]);
		break;
	case PERF_RECORD_EXIT:
		if (size >= 16 && word[0] == word[2])
			end_process(e, word[0]);
		break;
	case PERF_RECORD_LOST:
		if (size >= 16)
			e->lost += *(const uint64_t *)(word + 2);
		break;
	case PERF_RECORD_SAMPLE:
		/* pid, tid, time, bytes, the event */
		if (size >= 20 && word[4] <= size - 20)
			print_violation(e, word[1], (const char *)(word + 5),
					word[4]);
		break;
	}
}

/* All but samples end in pid, tid, time; samples start with them. */
static uint64_t record_time(const struct perf_event_header *h)
{
	const char *at = (const char *)h;
	uint64_t time = 0;

	if (h->size >= sizeof(*h) + 16)
		memcpy(&time, h->type == PERF_RECORD_SAMPLE ?
		       at + sizeof(*h) + 8 : at + h->size - 8, sizeof(time));
	return time;
}

static void keep_record(struct events *e, const char *data, uint64_t size,
			uint64_t at, unsigned int bytes)
{
	struct perf_event_header *h = malloc(bytes);
	struct record *v;

	if (e->nr_records == e->room) {
		v = reallocarray(e->records, e->room + 1024, sizeof(*v));
		if (!v) {
			free(h);
			return;
		}
		e->records = v;
		e->room += 1024;
	}
	if (!h)
		return;
	for (unsigned int i = 0; i < bytes; i++)
		((char *)h)[i] = data[(at + i) % size];
	v = &e->records[e->nr_records];
	v->head = h;
	v->time = record_time(h);
	v->number = e->nr_records++;
}

static void read_ring(struct events *e, const struct ring *ring)
{
	uint64_t page = sysconf(_SC_PAGESIZE), size = RING_PAGES * page;
	const char *data = (const char *)ring->page + page;
	/* Pairs with the kernel's barrier before it moves data_head. */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		/* Records are aligned to 8 bytes: a header is in one piece. */
		const struct perf_event_header *h =
			(const void *)(data + tail % size);

		if (h->size < sizeof(*h))
			break;
		keep_record(e, data, size, tail, h->size);
		tail += h->size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static void read_rings(struct events *e)
{
	for (unsigned int i = 0; i < e->nr_rings; i++)
		read_ring(e, &e->rings[i]);
	if (e->nr_records)
		qsort(e->records, e->nr_records, sizeof(*e->records), by_time);
	for (size_t i = 0; i < e->nr_records; i++) {
		if (!e->count || e->seen < e->count)
			take_record(e, e->records[i].head);
		free(e->records[i].head);
	}
	e->nr_records = 0;
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

static int open_rings(struct events *e)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = e->id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.wakeup_events = 1,
	};
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t size = (RING_PAGES + 1) * sysconf(_SC_PAGESIZE);

	e->rings = calloc(cpus, sizeof(*e->rings));
	e->polls = calloc(cpus, sizeof(*e->polls));
	if (!e->rings || !e->polls)
		return -ENOMEM;
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct ring *r = &e->rings[e->nr_rings];

		r->fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
				PERF_FLAG_FD_CLOEXEC);
		if (r->fd < 0 && errno == ENODEV)
			continue;	/* this CPU is off */
		if (r->fd < 0)
			return -errno;
		r->page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			       r->fd, 0);
		if (r->page == MAP_FAILED)
			return -errno;
		e->polls[e->nr_rings].fd = r->fd;
		e->polls[e->nr_rings++].events = POLLIN;
	}
	return e->nr_rings ? 0 : -ENODEV;
}

static int refuse(int err)
{
	if (access(TRACEFS "/events", F_OK))
		complain("no trace events in %s: root has to mount it (mount -t tracefs none %s), or may not be left out",
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
	struct process *p, *next;
	struct events e = { 0 };
	int next_arg, err;

	next_arg = command_parse(&argp, argc, argv, EXIT_USAGE, &e);
	if (next_arg < argc) {
		complain("'%s': there is nothing to name here", argv[next_arg]);
		return EXIT_USAGE;
	}
	err = read_format(&e);
	if (!err)
		err = open_rings(&e);
	if (err)
		return refuse(err);
	read_processes(&e);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	fprintf(stderr, "shstk events: waiting for violations\n");

	while (!ended && (!e.count || e.seen < e.count)) {
		/* What comes before a violation is not worth waking up for. */
		if (poll(e.polls, e.nr_rings, 1000) < 0 && errno != EINTR)
			break;
		read_rings(&e);
	}
	if (e.lost)
		complain("%" PRIu64 " records were lost: names may be missing",
			 e.lost);
	HASH_ITER(hh, e.processes, p, next)
		end_process(&e, p->pid);
	free(e.records);
	free(e.rings);
	free(e.polls);
	return EXIT_OK;
}
