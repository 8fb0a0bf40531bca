// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * record_perf.c - from the kernel's records to a profile.
 *
 * The kernel tells of every fork, exec, mapping and name, so that addresses are
 * tied to files as they were when the sample was taken. What was there before
 * is read from /proc once recording is on: for given processes at the start,
 * for others when they are first seen.
 *
 * Time off the CPU: a sample at each switch away keeps the thread's stack, the
 * switch back says how long it lasted.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Without this, uthash ends the program when memory runs out. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libshstk/shstk.h"
#include "tools/record_perf.h"
#include "tools/shstk.h"

#define MAX_PROCESSES	(1u << 18)
#define MAX_ENTRIES	4096
#define MAX_TARGETS	65536
#define MAX_ROUNDS	16
#define COMM		16
#define READ_INTERVAL	100000000	/* ns between two looks into /proc */

/**
 * struct process - a process, from fork or exec on
 * @pid: process ID.
 * @proc: its mappings.
 * @sampled: it is in the profile.
 * @read_at: when its maps were read last.
 */
struct process {
	UT_hash_handle hh;
	int pid;
	struct shstk_symproc *proc;
	bool sampled;
	uint64_t read_at;
};

/* A stack as it goes into the profile. */
struct stack {
	unsigned int nr;
	bool cut;
	uint64_t *pcs;
	uint8_t *marks;
};

/**
 * struct task - a living thread
 * @tid: thread ID.
 * @comm: its name.
 * @sampled: it is in the profile.
 * @exited: it ended; what is left of it runs no more code of its own.
 * @left: when it left its CPU, or 0.
 * @process: its process then, and
 * @proc: the program in it then.
 * @stack: where it left; one allocation, or NULL.
 */
struct task {
	UT_hash_handle hh;
	int tid;
	char comm[COMM];
	bool sampled;
	bool exited;
	uint64_t left;
	struct process *process;
	struct shstk_symproc *proc;
	struct stack stack;
};

struct perf_drain {
	struct perf_rings *rings;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	unsigned int max_stack;
	bool kernel;
	bool wide;		/* not only given processes */
	pid_t *pids;
	struct pollfd *ends;	/* of each: readable when it has ended */
	size_t nr_pids;
	struct process *processes;
	struct task *tasks;
	struct drain_counts counts;
	struct perf_counts more;
	uint64_t pcs[MAX_ENTRIES];
	uint8_t marks[MAX_ENTRIES];
};

/* ---- processes and threads ---- */

static struct process *find_process(struct perf_drain *d, int pid)
{
	struct process *p;

	HASH_FIND_INT(d->processes, &pid, p);
	return p;
}

static struct task *find_task(struct perf_drain *d, int tid)
{
	struct task *t;

	HASH_FIND_INT(d->tasks, &tid, t);
	return t;
}

/* Puts the view of @pid where the one of an earlier program or process was. */
static struct process *set_process(struct perf_drain *d, int pid,
				   struct shstk_symproc *proc)
{
	struct process *p = find_process(d, pid);

	if (!p) {
		if (HASH_COUNT(d->processes) >= MAX_PROCESSES)
			return NULL;
		p = calloc(1, sizeof(*p));
		if (!p)
			return NULL;
		p->pid = pid;
		HASH_ADD_INT(d->processes, pid, p);
		if (!p->hh.tbl) {
			free(p);
			return NULL;
		}
	}
	p->proc = proc;
	p->read_at = 0;
	return p;
}

static struct process *new_process(struct perf_drain *d, int pid)
{
	struct shstk_symproc *proc;

	if (shstk_symproc_create(d->symbols, pid, &proc))
		return NULL;
	return set_process(d, pid, proc);
}

static void read_maps(struct process *p)
{
	uint64_t at = now_ns(CLOCK_MONOTONIC);

	if (p->read_at && at - p->read_at < READ_INTERVAL)
		return;
	p->read_at = at;
	shstk_symproc_read_maps(p->proc);
}

/* One that began before recording did. */
static struct process *get_process(struct perf_drain *d, int pid)
{
	struct process *p = find_process(d, pid);

	if (p)
		return p;
	p = new_process(d, pid);
	if (p)
		read_maps(p);
	return p;
}

static void set_comm(struct task *t, const char *from, size_t size)
{
	memset(t->comm, 0, sizeof(t->comm));
	memcpy(t->comm, from, strnlen(from, size < COMM ? size : COMM - 1));
	for (char *c = t->comm; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static void read_comm(struct task *t)
{
	char path[64], name[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", t->tid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(name, sizeof(name), file)) {
		name[strcspn(name, "\n")] = '\0';
		set_comm(t, name, strlen(name));
	}
	fclose(file);
}

static struct task *add_task(struct perf_drain *d, int tid)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->tid = tid;
	HASH_ADD_INT(d->tasks, tid, t);
	if (t->hh.tbl)
		return t;
	free(t);
	return NULL;
}

static struct task *get_task(struct perf_drain *d, int tid)
{
	struct task *t = find_task(d, tid);

	if (t)
		return t;
	t = add_task(d, tid);
	if (t)
		read_comm(t);
	return t;
}

static void forget_stack(struct task *t)
{
	free(t->stack.pcs);
	t->stack = (struct stack){ 0 };
	t->left = 0;
}

static void drop_task(struct perf_drain *d, struct task *t)
{
	HASH_DEL(d->tasks, t);
	forget_stack(t);
	free(t);
}

/* ---- samples ---- */

static bool unknown_address(struct shstk_symproc *proc, const struct stack *s)
{
	for (unsigned int i = 0; i < s->nr; i++)
		if (!(s->pcs[i] >> 63) &&
		    shstk_symproc_find(proc, s->pcs[i] - !!i)->kind ==
			    SHSTK_SYMMAP_NONE)
			return true;
	return false;
}

static int add_sample(struct perf_drain *d, struct process *p,
		      struct shstk_symproc *proc, struct task *t,
		      const struct stack *s, uint64_t time, uint64_t value)
{
	int64_t values[2] = { 1, value < INT64_MAX ? (int64_t)value : 0 };
	struct shstk_sample sample = {
		.proc = proc,
		.tid = t->tid,
		.comm = t->comm,
		.pcs = s->pcs,
		.marks = s->marks,
		.nr = s->nr,
		.end = s->cut ? SHSTK_END_CAPACITY :
		       s->nr  ? SHSTK_END_COMPLETE :
				SHSTK_END_READ,
		.time = time,
		.values = values,
	};

	/* A process known only from /proc may have mapped more since. */
	if (proc == p->proc && unknown_address(proc, s))
		read_maps(p);
	if (!t->sampled)
		d->counts.threads++;
	if (!p->sampled)
		d->counts.processes++;
	t->sampled = true;
	p->sampled = true;
	d->counts.samples++;
	d->counts.weight += values[1];
	d->more.cut += s->cut;
	return shstk_profile_add(d->profile, &sample);
}

/*
 * The kernel's part of a chain and the user's part each begin with a program
 * counter; the others are return addresses. False: the record makes no sense.
 */
static bool read_chain(struct perf_drain *d, const uint64_t *chain, uint64_t nr,
		       struct stack *ret)
{
	unsigned int n = 0;
	bool user = false, first = true, wanted = false;

	for (uint64_t i = 0; i < nr; i++) {
		if (chain[i] >= PERF_CONTEXT_MAX) {
			user = chain[i] == PERF_CONTEXT_USER;
			wanted = user || (d->kernel &&
					  chain[i] == PERF_CONTEXT_KERNEL);
			first = true;
			continue;
		}
		if (!wanted)
			continue;
		if (n == MAX_ENTRIES)
			return false;
		d->pcs[n] = chain[i];
		d->marks[n++] = first ? SHSTK_MARK_PC : 0;
		first = false;
	}
	ret->pcs = d->pcs;
	ret->marks = d->marks;
	ret->nr = n;
	ret->cut = n >= d->max_stack;
	return true;
}

/* Keeps the stack at which a thread left its CPU. */
static int keep_stack(struct task *t, struct process *p, const struct stack *s,
		      uint64_t time)
{
	forget_stack(t);
	t->stack.pcs = malloc(s->nr * 9 + 1);
	if (!t->stack.pcs)
		return -ENOMEM;
	t->stack.marks = (uint8_t *)&t->stack.pcs[s->nr];
	memcpy(t->stack.pcs, s->pcs, s->nr * sizeof(*s->pcs));
	memcpy(t->stack.marks, s->marks, s->nr);
	t->stack.nr = s->nr;
	t->stack.cut = s->cut;
	t->process = p;
	t->proc = p->proc;
	t->left = time;
	return 0;
}

static int take_sample(struct perf_drain *d, const struct perf_record *r)
{
	const uint64_t *body = r->body;		/* period, nr, chain */
	struct process *p;
	struct stack stack;
	struct task *t;

	if (r->size < 16 || body[1] > (r->size - 16) / 8 || r->pid <= 0 ||
	    r->tid <= 0)
		return 0;
	if (!read_chain(d, body + 2, body[1], &stack))
		return 0;
	p = get_process(d, r->pid);
	t = get_task(d, r->tid);
	if (!p || !t)
		return -ENOMEM;
	if (r->which == PERF_OFF)
		return t->exited ? 0 : keep_stack(t, p, &stack, r->time);
	return add_sample(d, p, p->proc, t, &stack, r->time, body[0]);
}

static int came_back(struct perf_drain *d, struct task *t, uint64_t time)
{
	int ret = 0;

	if (!t->left)
		return 0;
	if (time > t->left)
		ret = add_sample(d, t->process, t->proc, t, &t->stack, t->left,
				 time - t->left);
	forget_stack(t);
	return ret;
}

static int take_switch(struct perf_drain *d, const struct perf_record *r)
{
	struct task *t = find_task(d, r->tid);

	if (!t || r->misc & PERF_RECORD_MISC_SWITCH_OUT)
		return 0;
	return came_back(d, t, r->time);
}

/* ---- what else happens to processes ---- */

struct mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, offset;
	union {
		struct {
			uint32_t maj, min;
			uint64_t inode, generation;
		};
		struct {
			uint8_t id_size, reserved[3];
			uint8_t id[20];
		};
	};
	uint32_t prot, flags;
	char name[];
};

/* The text at the end of a record, if it ends within it. */
static bool text_ends(const char *text, const struct perf_record *r)
{
	const char *end = (const char *)r->body + r->size;

	return text < end && memchr(text, '\0', end - text);
}

static int take_mmap(struct perf_drain *d, const struct perf_record *r)
{
	const struct mmap2 *m = r->body;
	struct shstk_symmap_info info;
	struct process *p;

	if (r->size < sizeof(*m) || !text_ends(m->name, r) ||
	    (int)m->pid <= 0 || !(m->prot & PROT_EXEC) ||
	    (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER ||
	    m->addr + m->len <= m->addr)
		return 0;
	p = get_process(d, m->pid);
	if (!p)
		return -ENOMEM;
	info = (struct shstk_symmap_info){
		.start = m->addr,
		.end = m->addr + m->len,
		.offset = m->offset,
		.path = strncmp(m->name, "//", 2) ? m->name : "",
	};
	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		if (m->id_size <= sizeof(m->id)) {
			info.build_id = m->id;
			info.build_id_size = m->id_size;
		}
	} else {
		info.dev = makedev(m->maj, m->min);
		info.inode = m->inode;
	}
	return shstk_symproc_add(p->proc, &info) == -ENOMEM ? -ENOMEM : 0;
}

static int take_comm(struct perf_drain *d, const struct perf_record *r)
{
	const struct {
		uint32_t pid, tid;
		char name[];
	} *c = r->body;
	struct task *t;

	if (r->size < sizeof(*c) || !text_ends(c->name, r) ||
	    (int)c->pid <= 0 || (int)c->tid <= 0)
		return 0;
	/* Another program: its mappings follow. */
	if (r->misc & PERF_RECORD_MISC_COMM_EXEC && !new_process(d, c->pid))
		return -ENOMEM;
	t = find_task(d, c->tid);
	if (!t)
		t = add_task(d, c->tid);
	if (!t)
		return -ENOMEM;
	set_comm(t, c->name, strlen(c->name));
	return 0;
}

struct fork {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

static int take_fork(struct perf_drain *d, const struct perf_record *r)
{
	const struct fork *f = r->body;
	struct task *t, *parent;
	struct shstk_symproc *proc;
	struct process *p;

	if (r->size < sizeof(*f) || (int)f->pid <= 0 || (int)f->tid <= 0)
		return 0;
	t = find_task(d, f->tid);
	if (t)
		drop_task(d, t);
	t = add_task(d, f->tid);
	if (!t)
		return -ENOMEM;
	parent = get_task(d, f->ptid);
	if (parent)
		memcpy(t->comm, parent->comm, sizeof(t->comm));
	if (f->pid == f->ppid)
		return 0;
	p = get_process(d, f->ppid);
	if (!p || shstk_symproc_fork(p->proc, f->pid, &proc))
		return -ENOMEM;
	p = set_process(d, f->pid, proc);
	if (p)
		p->sampled = false;
	return p ? 0 : -ENOMEM;
}

static int take_exit(struct perf_drain *d, const struct perf_record *r)
{
	const struct fork *f = r->body;
	struct task *t;

	if (r->size < sizeof(*f))
		return 0;
	t = find_task(d, f->tid);
	if (!t)
		return 0;
	/* A CPU's own events still see it leave, until it is reaped. */
	forget_stack(t);
	t->exited = true;
	if (!d->wide)
		drop_task(d, t);
	return 0;
}

static int take_record(void *arg, const struct perf_record *r)
{
	struct perf_drain *d = arg;
	const uint64_t *body = r->body;

	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(d, r);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return take_switch(d, r);
	case PERF_RECORD_MMAP2:
		return take_mmap(d, r);
	case PERF_RECORD_COMM:
		return take_comm(d, r);
	case PERF_RECORD_FORK:
		return take_fork(d, r);
	case PERF_RECORD_EXIT:
		return take_exit(d, r);
	case PERF_RECORD_LOST:
		if (r->size >= 16)
			d->counts.lost += body[1];
		return 0;
	case PERF_RECORD_LOST_SAMPLES:
		if (r->size >= 8)
			d->counts.lost += body[0];
		return 0;
	case PERF_RECORD_THROTTLE:
		d->more.throttled++;
		return 0;
	default:
		return 0;
	}
}

/* ---- begin and end ---- */

/* Adds the numbered entries of a folder of /proc that are not there yet. */
static int add_numbers(const char *path, pid_t **list, size_t *nr)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	pid_t *more;
	size_t i;

	if (!dir)
		return -errno;
	while ((e = readdir(dir)) && *nr < MAX_TARGETS) {
		pid_t number = atoi(e->d_name);

		for (i = 0; i < *nr && (*list)[i] != number; i++)
			;
		if (number <= 0 || i < *nr)
			continue;
		more = reallocarray(*list, *nr + 1, sizeof(*more));
		if (!more) {
			closedir(dir);
			return -ENOMEM;
		}
		*list = more;
		more[(*nr)++] = number;
	}
	closedir(dir);
	return 0;
}

/* The threads of all processes, until no new ones turn up. */
static int list_threads(const pid_t *pids, size_t nr_pids, pid_t **ret,
			size_t *nr)
{
	char path[64];
	size_t before;
	int round = 0;

	do {
		before = *nr;
		for (size_t i = 0; i < nr_pids; i++) {
			snprintf(path, sizeof(path), "/proc/%d/task", pids[i]);
			if (add_numbers(path, ret, nr) == -ENOMEM)
				return -ENOMEM;
		}
	} while (*nr != before && ++round < MAX_ROUNDS);
	return *nr ? 0 : -ESRCH;
}

/* What is there already. Only what recording does not see begin. */
static int look_around(struct perf_drain *d, const pid_t *threads, size_t nr)
{
	pid_t *all = NULL;
	size_t nr_all = 0;

	for (size_t i = 0; i < nr; i++)
		if (!get_task(d, threads[i]))
			return -ENOMEM;
	for (size_t i = 0; i < d->nr_pids; i++)
		if (!get_process(d, d->pids[i]))
			return -ENOMEM;
	if (d->wide) {
		add_numbers("/proc", &all, &nr_all);
		for (size_t i = 0; i < nr_all; i++) {
			get_task(d, all[i]);
			get_process(d, all[i]);
		}
		free(all);
	}
	return 0;
}

static int begin(struct perf_drain *d, const struct perf_record_opts *opts,
		 char *err, size_t size)
{
	struct perf_opts rings = opts->rings;
	pid_t *threads = NULL;
	size_t nr = 0;
	int ret = 0;

	if (rings.nr_pids && !rings.on_exec) {
		ret = list_threads(rings.pids, rings.nr_pids, &threads, &nr);
		rings.pids = threads;
		rings.nr_pids = nr;
	}
	if (!ret)
		ret = perf_rings_open(&rings, &d->rings, err, size);
	if (ret == -ESRCH)
		snprintf(err, size, "process %d: %s", *opts->rings.pids,
			 strerror(ESRCH));
	if (!ret)
		ret = look_around(d, threads, nr);
	free(threads);
	return ret;
}

static int keep_pids(struct perf_drain *d, const pid_t *pids, size_t nr)
{
	d->pids = calloc(nr + 1, sizeof(*d->pids));
	d->ends = calloc(nr + 1, sizeof(*d->ends));
	if (!d->pids || !d->ends)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		d->pids[i] = pids[i];
		d->ends[i].fd = syscall(SYS_pidfd_open, pids[i], 0);
		d->ends[i].events = POLLIN;
	}
	d->nr_pids = nr;
	return 0;
}

int perf_drain_create(const struct perf_record_opts *opts,
		      struct shstk_symbols *symbols,
		      struct shstk_profile *profile, struct perf_drain **ret,
		      char *err, size_t size)
{
	struct perf_drain *d = calloc(1, sizeof(*d));
	size_t nr = opts->rings.nr_pids;
	int error;

	snprintf(err, size, "cannot set up recording: %s", strerror(ENOMEM));
	if (!d)
		return -ENOMEM;
	d->symbols = symbols;
	d->profile = profile;
	d->max_stack = opts->rings.max_stack;
	d->kernel = opts->rings.kernel;
	d->wide = !nr;
	if (opts->keep_times)
		shstk_profile_keep_times(profile);
	error = keep_pids(d, opts->rings.pids, nr);
	if (!error)
		error = begin(d, opts, err, size);
	if (error) {
		perf_drain_destroy(d);
		return error;
	}
	*ret = d;
	return 0;
}

void perf_drain_destroy(struct perf_drain *d)
{
	struct process *p, *next_p;
	struct task *t, *next_t;

	if (!d)
		return;
	perf_rings_close(d->rings);
	HASH_ITER(hh, d->tasks, t, next_t)
		drop_task(d, t);
	HASH_ITER(hh, d->processes, p, next_p) {
		HASH_DEL(d->processes, p);
		free(p);
	}
	for (size_t i = 0; i < d->nr_pids; i++)
		if (d->ends[i].fd >= 0)
			close(d->ends[i].fd);
	free(d->pids);
	free(d->ends);
	free(d);
}

int perf_drain_take(struct perf_drain *d)
{
	return perf_rings_read(d->rings, false, take_record, d);
}

int perf_drain_stop(struct perf_drain *d)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC);
	struct task *t, *next;
	int ret;

	perf_rings_stop(d->rings);
	ret = perf_rings_read(d->rings, true, take_record, d);
	/* Those that are away still have been so until now. */
	HASH_ITER(hh, d->tasks, t, next)
		if (!ret)
			ret = came_back(d, t, end);
	return ret;
}

unsigned int perf_drain_alive(const struct perf_drain *d)
{
	unsigned int alive = 0;

	poll(d->ends, d->nr_pids, 0);
	/* A thread's number has no descriptor. */
	for (size_t i = 0; i < d->nr_pids; i++)
		alive += d->ends[i].fd >= 0 ? !d->ends[i].revents :
			 !kill(d->pids[i], 0) || errno == EPERM;
	return alive;
}

bool perf_drain_user_only(const struct perf_drain *d)
{
	return perf_rings_user_only(d->rings);
}

void perf_drain_count(const struct perf_drain *d, struct drain_counts *ret,
		      struct perf_counts *more)
{
	uint64_t lost;

	*ret = d->counts;
	/* Records that tell it come only once there is room again. */
	if (perf_rings_lost(d->rings, &lost))
		ret->lost = lost;
	if (more)
		*more = d->more;
}
