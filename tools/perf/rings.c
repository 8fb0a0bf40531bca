// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rings.c - opens events by perf_event_open(2) on every CPU, with a ring for each CPU, and reads
 * the rings in the order of time.
 *
 * Every event samples identifier, thread and time, and then period and callchain or raw data. Every
 * other record ends with thread, time and identifier. So all records have their time at a known
 * place. The records of a thread may lie in the rings of several CPUs. To hand them out in order, a
 * record is held back until the rings were looked at once more: by then all that happened before it
 * has come. Meanwhile it stays in its ring, so that copies of stacks are not copied again.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/language.h"
#include "bpf/walk.h"
#include "tools/perf/borrow.h"
#include "tools/perf/regs.h"
#include "tools/perf/rings.h"
#include "tools/shstk.h"

#define MAX_CPUS PERF_MAX_CPUS
#define MAX_RECORD 65536
#define MAX_RING (16u << 20)
#define MIN_RING (64u << 10) /* smallest size of a ring that may shrink */
#define MEMORY_PART 16 /* all rings that may shrink take at most 1 / MEMORY_PART of the memory */
#define FIRST_ALL (128u << 20) /* bytes of all rings together at first, if they may grow */
#define FIRST_RING (512u << 10) /* but a ring that may grow has at least this size */
#define GROW_PART 4 /* a ring grows if a look finds more than 1 / GROW_PART of it in use */
#define GROWN_PART 8 /* what it had then is at most 1 / GROWN_PART of the larger one */
#define OLD_NS \
	1000000000 /* a ring that was replaced is kept as long, for those who write just now */
#define BODY 32 /* bytes of a sample in front of its body: header, identifier, thread, time */
#define TRAILER 24 /* bytes: thread, time, identifier */
#define AHEAD 512 /* bytes of the next record that are prefetched: all but most of the stack */
#define LINE 64
#define WALKED PERF_WHICH /* the walker's records, of no event that one can ask for */
#define USER_ONLY 2 /* kernel.perf_event_paranoid, from which on users may sample user mode only */
#define OTHER_FILES 128 /* that a recorder has open beside events and its targets */
#define OTHER_WORDS 16 /* words of a sample beside callchain, registers and stack */

/**
 * struct cpu_ring - the ring of a CPU
 * @cpu: number of the CPU.
 * @fd: the event whose ring it is; -1: a BPF program writes to it, and no event.
 * @own: the event counts nothing, and is there for the ring alone: another ring can take its place.
 * @page: the control page that is shared with the kernel, or NULL if there is no ring.
 * @data: the records, behind that page.
 * @size: bytes of @data, a power of two.
 * @head: position up to which the kernel had written at the last look.
 * @tail: position of the first record that was not handed out.
 * @time: time of that record, if there is one.
 * @filled: bytes that were in the ring at the last look.
 * @until: 0; of a ring that another one replaced, CLOCK_MONOTONIC in ns until when it is kept.
 */
struct cpu_ring {
	int cpu;
	int fd;
	bool own;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	size_t size;
	uint64_t head;
	uint64_t tail;
	uint64_t time;
	uint64_t filled;
	uint64_t until;
};

/**
 * struct ring_sizes - how large rings are
 * @first: bytes of a ring at first.
 * @largest: bytes up to which a ring grows that fills.
 *
 * If they are the same, or an event for the ring alone is not permitted, each ring has @largest from
 * the beginning.
 */
struct ring_sizes {
	size_t first;
	size_t largest;
};

/**
 * struct opened - an event that is open
 * @fd: its file descriptor.
 * @cpu: number of the CPU on which it counts.
 * @whose: its target, or -1.
 * @which: enum perf_which, or WALKED.
 */
struct opened {
	int fd;
	int cpu;
	pid_t whose;
	uint8_t which;
};

/* The event whose samples have this identifier. */
struct identity {
	uint64_t id;
	int which;
};

struct perf_rings {
	struct ring_sizes sizes;
	struct cpu_ring *rings; /* the rings into which the events of a CPU write */
	struct cpu_ring *old; /* for each of @rings the one that it replaced, while that is kept */
	struct cpu_ring
		*chains; /* for each of @rings that into which the walker writes, if it has one */
	size_t nr_rings;
	struct cpu_ring **heap; /* rings with a record, the oldest record's first; see sift_down() */
	size_t nr_heap;
	struct opened *events; /* all events that are open */
	size_t nr_events, max_events;
	struct perf_losses closed; /* what events lost that were closed since */
	struct identity *others; /* identifiers of all events but PERF_MAIN, sorted */
	size_t nr_others, max_others;
	bool user_only;
	int broker; /* connection to the broker while it opens events, or -1 */
	bool borrowed; /* the broker opened the events */
	uint32_t lease; /* number of the broker's lease by which stacks are walked, or 0 */
	int token; /* with whose close the lease ends, or -1 */
	int walker; /* BPF program that walks stacks, of perf_rings_walk(); 0: none */
	bool walks_all; /* it runs at the samples of all events, not of PERF_MAIN alone */
	bool tells_count; /* samples say what their event counted */
	uint64_t looked; /* CLOCK_MONOTONIC in ns of the last look into the rings */
	uint64_t before; /* CLOCK_MONOTONIC in ns of the look before */
	uint64_t rate; /* bytes of samples that may come to a ring in a second; 0: no limit */
	uint64_t periods[PERF_WHICH]; /* by event, of all its samples; 0: each tells it */
	_Alignas(8) uint8_t record[MAX_RECORD]; /* a record that goes over the end of a ring */
};

/*
 * Returns the event by its number, or NULL for switches, which are no event that one can ask for.
 */
static const struct perf_event *event_of(const struct perf_opts *opts, int which)
{
	return which == PERF_MAIN    ? opts->main :
	       which == PERF_OFF     ? NULL :
	       which == PERF_WAKINGS ? opts->wakings :
				       opts->more[which - PERF_FIRST_MORE];
}

static bool is_wanted(const struct perf_opts *opts, int which)
{
	return which == PERF_MAIN    ? opts->main != NULL :
	       which == PERF_OFF     ? opts->off :
	       which == PERF_WAKINGS ? opts->wakings != NULL :
				       which - PERF_FIRST_MORE < (int)opts->nr_more;
}

/* Returns whether there is a fixed number of these events from one sample to the next. */
static bool counts(const struct perf_opts *opts, const struct perf_event *event)
{
	return opts->count && !event->clock && (opts->count_all || perf_event_by_kernel(event));
}

/*
 * Sets the period or rate of an event. If the kernel itself counts an event, the kernel would take
 * each event as a sample, whatever the period is, if samples had to tell their period; so these
 * samples do not tell it.
 */
static void set_period(const struct perf_opts *opts, const struct perf_event *event,
		       struct perf_event_attr *attr)
{
	if (event->raw) {
		attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				    PERF_SAMPLE_RAW;
		attr->sample_period = 1;
	} else if (event->clock) {
		attr->sample_period = (1000000000 + opts->freq / 2) / opts->freq;
	} else if (counts(opts, event)) {
		attr->sample_period = opts->count;
		if (perf_event_by_kernel(event))
			attr->sample_type &= ~PERF_SAMPLE_PERIOD;
	} else {
		attr->freq = 1;
		attr->sample_freq = opts->freq;
	}
}

/*
 * Returns whether a program can run at the event, and gets callchains there that the event's samples do not
 * have. The kernel refuses that where samples are taken by the CPU itself, at an instruction of its own.
 */
static bool may_be_walked(int which, const struct perf_event_attr *attr)
{
	return which != PERF_WAKINGS && attr->type != PERF_TYPE_TRACEPOINT && !attr->precise_ip;
}

void perf_rings_attr(const struct perf_opts *opts, int which, struct perf_event_attr *attr)
{
	const struct perf_event *event = event_of(opts, which);

	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.enable_on_exec = opts->on_exec,
		.inherit = opts->nr_pids > 0,
		.read_format = PERF_FORMAT_LOST,
		.sample_id_all = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = !opts->kernel,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.sample_max_stack = opts->max_stack,
	};
	if (opts->copy) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = perf_regs_wanted();
		attr->sample_stack_user = opts->copy;
	}
	if (opts->vary)
		attr->sample_type |= PERF_SAMPLE_READ;
	if (which == PERF_OFF) {
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
		attr->sample_period = 1;
		attr->context_switch = 1;
		attr->exclude_idle = 1;
	} else {
		attr->type = event->type;
		attr->config = event->config;
		attr->config1 = event->config1;
		attr->config2 = event->config2;
		attr->exclude_kernel = event->no_kernel;
		attr->exclude_user = event->no_user;
		attr->precise_ip = event->precise;
		/* arm64 refuses this for counters, which mostly stand still while a CPU is idle. */
		attr->exclude_idle = attr->type == PERF_TYPE_SOFTWARE;
		set_period(opts, event, attr);
	}
	attr->exclude_callchain_user = opts->no_user && may_be_walked(which, attr);
	/* Any thread may wake others, also before the command executes its program. */
	if (which == PERF_WAKINGS) {
		attr->inherit = 0;
		attr->enable_on_exec = 0;
		attr->disabled = 0;
	}
	/* One event of each target reports what else happens to it. */
	if (which == (opts->main ? PERF_MAIN : PERF_OFF)) {
		attr->mmap = 1;
		attr->mmap2 = 1;
		attr->comm = 1;
		attr->comm_exec = 1;
		attr->task = 1;
	}
}

/*
 * Opens an event. Kernels before 6.0 do not count what was lost, so this is asked for without that
 * too. Users who may not see the kernel get user mode only, except for switches, which are nothing
 * in user mode. Returns a file descriptor or a negative errno.
 */
static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags,
		      bool *user_only)
{
	for (;;) {
		int fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1,
				 flags | PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0)
			return fd;
		if (errno == EINVAL && attr->read_format) {
			attr->read_format = 0;
		} else if (errno == EACCES && !attr->exclude_kernel && !attr->exclude_user &&
			   !attr->context_switch && attr->type != PERF_TYPE_TRACEPOINT) {
			attr->exclude_kernel = 1;
			attr->exclude_callchain_kernel = 1;
			*user_only = true;
		} else {
			return -errno;
		}
	}
}

static int paranoia(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -2;

	if (file) {
		if (fscanf(file, "%d", &level) != 1)
			level = -2;
		fclose(file);
	}
	return level;
}

/*
 * Returns a target that is another user's, so that the paranoia level does not permit it; 0 if
 * there is none.
 */
static pid_t of_another(const struct perf_opts *opts)
{
	char path[32];
	struct stat st;

	for (size_t i = 0; opts->pids && i < opts->nr_pids; i++) {
		snprintf(path, sizeof(path), "/proc/%d", (int)opts->pids[i]);
		if (!stat(path, &st) && st.st_uid != geteuid())
			return opts->pids[i];
	}
	return 0;
}

/*
 * Says why perf events are not permitted. @needed is the highest level of
 * kernel.perf_event_paranoid that would permit them. If the level permits them, something else
 * forbids them. The level is -2 if it cannot be read.
 */
static void explain_forbidden(const struct perf_opts *opts, int needed, struct reason *why)
{
	pid_t other = of_another(opts);
	bool wide = !opts->nr_pids;
	int level = paranoia();

	if (other)
		because(why,
			"perf events: not permitted, as process %d is another user's, or has other rights (whatever kernel.perf_event_paranoid is, here %d): be root, or have CAP_PERFMON and the right to trace the target",
			(int)other, level);
	else if (level == -2 || level > needed)
		because(why,
			"perf events: not permitted (kernel.perf_event_paranoid is %d): be root, have CAP_PERFMON%s, or set it to %d",
			level, wide ? "" : " and the right to trace the target", needed);
	else if (wide)
		because(why,
			"perf events: not permitted (kernel.perf_event_paranoid is %d, which is enough): a filter of system calls forbids them, as in containers",
			level);
	else
		because(why,
			"perf events: not permitted (kernel.perf_event_paranoid is %d, which is enough): be root, or have CAP_PERFMON and the right to trace the target; or is it a filter of system calls, as in containers?",
			level);
}

static void explain(const struct perf_opts *opts, int which, int error, struct reason *why)
{
	const char *name = which == PERF_OFF ? "switches" : event_of(opts, which)->name;
	bool wide = !opts->nr_pids;

	/* The folder is no cgroup, or belongs to a hierarchy of another controller. */
	if (opts->cgroup >= 0 && (error == -EBADF || error == -ENOENT)) {
		because(why,
			"perf events: no event '%s' of that folder: is it a cgroup, of version 2 or of the controller perf_event?",
			name);
		return;
	}
	switch (-error) {
	case EACCES:
	case EPERM:
		if (which == PERF_WAKINGS)
			because(why,
				"--wakers: not permitted: be root, or have CAP_PERFMON, or set kernel.perf_event_paranoid to -1");
		else
			explain_forbidden(opts, wide ? 0 : which == PERF_OFF ? 1 : 2, why);
		break;
	case ENOENT:
	case EOPNOTSUPP:
	case ENODEV:
		because(why, "perf events: no event '%s' on this machine", name);
		break;
	case ENOSYS:
		because(why, "perf events: this kernel has none");
		break;
	case EMFILE:
		because(why,
			"perf events: too many open files for all threads on all CPUs (see ulimit -n)");
		break;
	default:
		because(why, "perf event '%s': %s", name, strerror(-error));
	}
}

/*
 * Reads the CPUs' numbers from lines "cpu0 ..." of /proc/stat, for containers without /sys. Returns
 * how many there are.
 */
static int read_cpus_of_stat(int *cpus)
{
	FILE *file = fopen("/proc/stat", "re");
	char line[256];
	int n = 0;

	while (file && n < MAX_CPUS && fgets(line, sizeof(line), file))
		if (!strncmp(line, "cpu", 3) && line[3] >= '0' && line[3] <= '9')
			cpus[n++] = atoi(line + 3);
	if (file)
		fclose(file);
	return n;
}

/* Reads which CPUs are online, from a text such as "0-3,6". Returns how many, or -ENOMEM. */
static int read_cpus(int **ret)
{
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	int *cpus = calloc(MAX_CPUS, sizeof(*cpus));
	int first, last, n = 0, end = ',';

	while (cpus && file && end == ',' && fscanf(file, "%d", &first) == 1) {
		last = first;
		end = getc(file);
		if (end == '-') {
			if (fscanf(file, "%d", &last) != 1)
				break;
			end = getc(file);
		}
		for (; first <= last && n < MAX_CPUS; first++)
			cpus[n++] = first;
	}
	if (file)
		fclose(file);
	*ret = cpus;
	if (!cpus)
		return -ENOMEM;
	if (!n)
		n = read_cpus_of_stat(cpus);
	if (!n)
		cpus[n++] = 0;
	return n;
}

/* Returns the number of a CPU that is online. */
static int first_cpu(void)
{
	int *cpus, n = read_cpus(&cpus), ret = n > 0 ? cpus[0] : 0;

	if (n > 0)
		free(cpus);
	return ret;
}

static int probe_kernel(const struct perf_opts *opts, bool *user_only, struct reason *why)
{
	bool wide = !opts->nr_pids;
	struct perf_event_attr attr;

	*user_only = false;
	for (int which = 0; which < PERF_WHICH; which++) {
		bool any = wide || which == PERF_WAKINGS;
		int fd;

		if (!is_wanted(opts, which))
			continue;
		perf_rings_attr(opts, which, &attr);
		fd = open_event(&attr, any ? -1 : 0, any ? first_cpu() : -1, 0, user_only);
		if (fd < 0) {
			explain(opts, which, fd, why);
			return fd;
		}
		close(fd);
	}
	return 0;
}

/**
 * struct loan - what the broker lends to rings
 * @broker: connection to it, while it opens events; negative: it does not.
 * @lease: number of the lease by which stacks are walked, or 0.
 * @token: with whose close the lease ends; negative: there is none.
 */
struct loan {
	int broker;
	uint32_t lease;
	int token;
};

static bool is_refusal(int error)
{
	return error == -EACCES || error == -EPERM;
}

/* Adds to the kernel's reason why the broker does not help, if there is a broker. */
static void explain_broker(int error, struct reason *why)
{
	struct reason first = *why;

	if (error != -ENOENT)
		because(why, "%.330s; and %s", first.text, borrow_error(error));
}

/* Makes a process that does nothing, as one that is about to become a command. */
static pid_t make_child(void)
{
	pid_t parent = getpid(), child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

/* Checks that the broker opens all wanted events of a thread. Returns 0 or a negative errno. */
static int probe_thread(const struct perf_opts *opts, int broker, pid_t tid, bool *user_only)
{
	int proof = borrow_proof(tid), ret = proof < 0 ? proof : 0;

	for (int which = 0; which < PERF_WHICH && ret >= 0; which++) {
		if (!is_wanted(opts, which))
			continue;
		ret = borrow_event(broker, opts, which, tid, proof, first_cpu(), 0, user_only);
		if (ret >= 0)
			close(ret);
	}
	if (proof >= 0)
		close(proof);
	return ret < 0 ? ret : 0;
}

/*
 * Checks that the broker opens all wanted events of a child of this process. Returns 0 or a
 * negative errno.
 */
static int probe_broker(const struct perf_opts *opts, bool *user_only)
{
	int broker = borrow_begin(), ret;
	pid_t child;

	if (broker < 0)
		return broker;
	child = make_child();
	ret = child > 0 ? probe_thread(opts, broker, child, user_only) : -EAGAIN;
	close(broker);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return ret;
}

int perf_probe(const struct perf_opts *opts, bool *user_only, struct reason *why)
{
	int ret = probe_kernel(opts, user_only, why), lent;

	if (!is_refusal(ret) || !borrow_possible(opts))
		return ret;
	*user_only = false;
	lent = probe_broker(opts, user_only);
	if (lent)
		explain_broker(lent, why);
	return lent ? ret : 0;
}

/* Makes room for one more event. Returns whether there is memory. */
static bool more_events(struct perf_rings *r)
{
	size_t max = r->max_events ? 2 * r->max_events : 64;
	struct opened *events = reallocarray(r->events, max, sizeof(*events));

	if (!events)
		return false;
	r->events = events;
	r->max_events = max;
	return true;
}

/* Keeps an event, or closes it. Returns 0 or -ENOMEM. */
static int keep_event(struct perf_rings *r, const struct opened *event)
{
	if (r->nr_events == r->max_events && !more_events(r)) {
		close(event->fd);
		return -ENOMEM;
	}
	r->events[r->nr_events++] = *event;
	return 0;
}

static int add_identity(struct perf_rings *r, uint64_t id, int which)
{
	const size_t max = r->max_others ? 2 * r->max_others : 64;
	struct identity *more;

	if (r->nr_others == r->max_others) {
		more = reallocarray(r->others, max, sizeof(*more));
		if (!more)
			return -ENOMEM;
		r->others = more;
		r->max_others = max;
	}
	r->others[r->nr_others++] = (struct identity){ id, which };
	return 0;
}

static int keep_identity(struct perf_rings *r, int fd, int which)
{
	uint64_t id;

	return ioctl(fd, PERF_EVENT_IOC_ID, &id) ? -errno : add_identity(r, id, which);
}

/* Makes a ring of the event. Returns 0 or a negative errno: -ENOBUFS if it may not be as large. */
static int map_ring(struct cpu_ring *ring, int fd, size_t size)
{
	void *page =
		mmap(NULL, sysconf(_SC_PAGESIZE) + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	ring->page = page;
	ring->data = (uint8_t *)page + sysconf(_SC_PAGESIZE);
	ring->size = size;
	ring->fd = fd;
	return 0;
}

static void unmap_ring(struct cpu_ring *ring)
{
	if (!ring->page)
		return;
	munmap(ring->page, ring->data + ring->size - (const uint8_t *)ring->page);
	if (ring->own)
		close(ring->fd);
	ring->page = NULL;
}

/*
 * Makes a ring of an event that is there for the ring alone: it counts nothing, of the calling thread,
 * so that everybody may open it who may open any. Events of the CPU, of whatever threads, can write
 * to it, as they have the same clock. Returns 0 or a negative errno.
 */
static int open_own_ring(struct cpu_ring *ring, size_t size)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_id_all = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	bool unused;
	int fd = open_event(&attr, 0, ring->cpu, 0, &unused), ret;

	if (fd < 0)
		return fd;
	ret = map_ring(ring, fd, size);
	ring->own = !ret;
	if (ret)
		close(fd);
	return ret;
}

/*
 * Connects an event to the ring of its CPU. If rings may grow, the ring has an event of its own, and
 * all others write to it. Else the first event on a CPU gets the ring.
 */
static int connect_ring(struct perf_rings *r, struct cpu_ring *ring, int fd)
{
	int ret;

	if (!ring->page && r->sizes.first < r->sizes.largest) {
		ret = open_own_ring(ring, r->sizes.first);
		if (ret == -ENOBUFS)
			return ret;
	}
	if (!ring->page)
		return map_ring(ring, fd, r->sizes.largest);
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ? -errno : 0;
}

void perf_output_attr(struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_RAW,
		.sample_period = 1,
		.read_format = PERF_FORMAT_LOST,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

/*
 * Has what is written to the event @fd, or is a negative errno, come into the ring. Returns @fd, which
 * is kept, or a negative errno.
 */
static int keep_walked(struct perf_rings *r, struct cpu_ring *ring, int fd)
{
	const struct opened event = { fd, ring->cpu, -1, WALKED };
	int ret = fd < 0 ? fd : keep_event(r, &event);

	if (!ret)
		ret = connect_ring(r, ring, fd);
	if (!ret)
		ret = keep_identity(r, fd, WALKED);
	return ret ? ret : fd;
}

/*
 * Opens an event by which the walker's records of a CPU come into that CPU's ring. Returns its file
 * descriptor or a negative errno.
 */
static int open_walked(struct perf_rings *r, struct cpu_ring *ring)
{
	struct perf_event_attr attr;
	bool user_only;

	perf_output_attr(&attr);
	return keep_walked(r, ring, open_event(&attr, -1, ring->cpu, 0, &user_only));
}

/* Has the records of the walks that are lent come into the rings; where that fails stacks are copied. */
static void take_outputs(struct perf_rings *r)
{
	for (size_t i = 0; i < r->nr_rings && r->lease; i++)
		if (r->rings[i].page)
			keep_walked(r, &r->rings[i],
				    borrow_output(r->broker, r->lease, r->rings[i].cpu));
}

/*
 * Opens an event, or has the broker open it. @proof: from borrow_proof(), for the broker. Returns a
 * file descriptor or a negative errno.
 */
static int open_or_borrow(struct perf_rings *r, const struct perf_opts *opts, int cpu, int which,
			  pid_t pid, int proof)
{
	struct perf_event_attr attr;
	bool cgroup = opts->cgroup >= 0;

	if (r->broker >= 0)
		return borrow_event(r->broker, opts, which, pid, proof, cpu, r->lease,
				    &r->user_only);
	perf_rings_attr(opts, which, &attr);
	return open_event(&attr, cgroup ? opts->cgroup : pid, cpu,
			  cgroup ? PERF_FLAG_PID_CGROUP : 0, &r->user_only);
}

static int add_event(struct perf_rings *r, const struct perf_opts *opts, struct cpu_ring *ring,
		     int which, pid_t pid, int proof, struct reason *why)
{
	int fd = open_or_borrow(r, opts, ring->cpu, which, pid, proof), ret;
	const struct opened event = { fd, ring->cpu, pid, which };

	if (fd < 0) {
		explain(opts, which, fd, why);
		return fd;
	}
	ret = keep_event(r, &event);
	if (ret)
		return ret;
	/* If this fails, samples are as complete as without the program. */
	if (opts->program)
		ioctl(fd, PERF_EVENT_IOC_SET_BPF, opts->program);
	ret = connect_ring(r, ring, fd);
	if (ret == -ENOBUFS)
		because(why,
			"perf rings of %zu KiB for each CPU are more than kernel.perf_event_mlock_kb permits: use a smaller --buffer",
			r->sizes.first / 1024);
	else if (ret)
		because(why, "perf ring: %s", strerror(-ret));
	if (!ret && which != PERF_MAIN)
		ret = keep_identity(r, fd, which);
	return ret;
}

/* Opens all events of one target. Returns 0 or a negative errno: -ESRCH if the target is gone. */
static int add_events(struct perf_rings *r, const struct perf_opts *opts, pid_t pid, int proof,
		      struct reason *why)
{
	for (size_t i = 0; i < r->nr_rings; i++) {
		for (int which = 0; which < PERF_WHICH; which++) {
			int ret;

			if (!is_wanted(opts, which) || which == PERF_WAKINGS)
				continue;
			ret = add_event(r, opts, &r->rings[i], which, pid, proof, why);
			/* This CPU was switched off just now. */
			if (ret == -ENODEV && i)
				break;
			if (ret)
				return ret;
		}
	}
	return 0;
}

/*
 * Opens the events of wake-ups by all threads, on each CPU whose ring is in use. Returns 0 or a
 * negative errno.
 */
static int add_wakings(struct perf_rings *r, const struct perf_opts *opts, struct reason *why)
{
	int ret = 0;

	for (size_t i = 0; !ret && opts->wakings && i < r->nr_rings; i++)
		if (r->rings[i].page)
			ret = add_event(r, opts, &r->rings[i], PERF_WAKINGS, -1, -1, why);
	return ret;
}

static int add_target(struct perf_rings *r, const struct perf_opts *opts, pid_t pid,
		      struct reason *why)
{
	int proof = -1, ret;

	if (r->broker >= 0) {
		proof = borrow_proof(pid);
		if (proof < 0)
			return proof;
	}
	ret = add_events(r, opts, pid, proof, why);
	if (proof >= 0)
		close(proof);
	return ret;
}

void perf_more_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct identity *)a)->id, y = ((const struct identity *)b)->id;

	return x < y ? -1 : x > y;
}

static int open_targets(struct perf_rings *r, const struct perf_opts *opts, struct reason *why)
{
	size_t found = 0;
	int *cpus, n, ret;

	n = read_cpus(&cpus);
	if (n < 0)
		return n;
	r->rings = calloc(n, sizeof(*r->rings));
	r->old = calloc(n, sizeof(*r->old));
	r->chains = calloc(n, sizeof(*r->chains));
	r->heap = calloc(3 * n, sizeof(*r->heap));
	for (int i = 0; r->rings && i < n; i++)
		r->rings[i] = (struct cpu_ring){ .cpu = cpus[i], .fd = -1 };
	free(cpus);
	if (!r->rings || !r->old || !r->chains || !r->heap)
		return -ENOMEM;
	r->nr_rings = n;
	perf_more_files();
	if (!opts->nr_pids)
		return add_target(r, opts, -1, why);
	for (size_t i = 0; i < opts->nr_pids; i++) {
		ret = add_target(r, opts, opts->pids[i], why);
		if (ret && ret != -ESRCH)
			return ret;
		found += !ret;
	}
	return found ? 0 : -ESRCH;
}

static void sort_identities(struct perf_rings *r)
{
	if (r->nr_others)
		qsort(r->others, r->nr_others, sizeof(*r->others), by_id);
}

/* Adds to @r the identifiers of @other that it does not know yet. */
static int learn_identities(struct perf_rings *r, const struct perf_rings *other)
{
	const size_t known = r->nr_others;
	int ret = 0;

	for (size_t i = 0; i < other->nr_others && !ret; i++)
		if (!known ||
		    !bsearch(&other->others[i], r->others, known, sizeof(*r->others), by_id))
			ret = add_identity(r, other->others[i].id, other->others[i].which);
	sort_identities(r);
	return ret;
}

int perf_rings_meet(struct perf_rings *a, struct perf_rings *b)
{
	const int ret = learn_identities(a, b);

	return ret ? ret : learn_identities(b, a);
}

bool perf_rings_fit(const struct perf_opts *opts, size_t others)
{
	struct rlimit limit;
	uint64_t events = 0;

	for (int which = 0; which < PERF_WHICH; which++)
		events += is_wanted(opts, which);
	perf_more_files();
	/* While rings are replaced, both sets are open. */
	return getrlimit(RLIMIT_NOFILE, &limit) ||
	       2 * events * opts->nr_pids * sysconf(_SC_NPROCESSORS_ONLN) + OTHER_FILES + others <=
		       limit.rlim_cur;
}

static int open_all(struct perf_rings *r, const struct perf_opts *opts, struct reason *why)
{
	int ret = open_targets(r, opts, why);

	return ret ? ret : add_wakings(r, opts, why);
}

static void each_event(struct perf_rings *r, unsigned long request)
{
	for (size_t i = 0; i < r->nr_events; i++)
		ioctl(r->events[i].fd, request, 0);
}

/*
 * Returns how many bytes of samples may come to a ring in a second, 0 if there is no limit. A CPU
 * runs one thread at a time. Switches and raw events have no rate.
 */
static uint64_t rate_of(const struct perf_opts *opts)
{
	uint64_t words = opts->max_stack + PERF_MAX_REGS + OTHER_WORDS;

	if (opts->off || opts->main->raw || opts->count)
		return 0;
	return opts->freq * (opts->copy + 8 * words) * (1 + opts->nr_more);
}

static int open_rings(const struct perf_opts *opts, const struct ring_sizes *sizes,
		      const struct loan *loan, struct perf_rings **ret, struct reason *why)
{
	struct perf_rings *r = calloc(1, sizeof(*r));
	int error;

	because(why, "perf events: %s", strerror(ENOMEM));
	if (!r)
		return -ENOMEM;
	r->sizes = *sizes;
	r->rate = rate_of(opts);
	r->tells_count = opts->vary;
	for (int which = 0; which < PERF_WHICH; which++) {
		const struct perf_event *event = is_wanted(opts, which) ? event_of(opts, which) :
									  NULL;

		if (event && opts->count && perf_event_by_kernel(event))
			r->periods[which] = opts->count;
	}
	r->broker = loan->broker;
	r->borrowed = loan->broker >= 0;
	r->lease = loan->lease;
	r->token = -1;
	error = open_all(r, opts, why);
	if (!error)
		take_outputs(r);
	r->broker = -1;
	if (error) {
		perf_rings_close(r);
		return error;
	}
	sort_identities(r);
	if (!opts->on_exec)
		each_event(r, PERF_EVENT_IOC_ENABLE);
	*ret = r;
	return 0;
}

size_t perf_ring_size(size_t size, size_t want)
{
	while (size < MAX_RING && size < want)
		size *= 2;
	return size;
}

/*
 * Returns the size of a ring that keeps all rings below a part of the memory, on machines with many
 * CPUs.
 */
static size_t bounded_ring(size_t ring)
{
	uint64_t pages = sysconf(_SC_PHYS_PAGES), cpus = sysconf(_SC_NPROCESSORS_ONLN);

	while (ring > MIN_RING && ring * cpus > pages * sysconf(_SC_PAGESIZE) / MEMORY_PART)
		ring /= 2;
	return ring;
}

/*
 * Returns how large rings are. On machines with many CPUs, most of which are idle at most times, they
 * are small at first. Of events without a rate as many may come at once as a ring can have.
 */
static struct ring_sizes choose_sizes(const struct perf_opts *opts)
{
	const uint64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct ring_sizes ret = { opts->ring_size, opts->ring_size };

	if (!opts->may_shrink)
		return ret;
	ret.first = ret.largest = bounded_ring(opts->ring_size);
	while (rate_of(opts) && ret.first > FIRST_RING && ret.first * cpus > FIRST_ALL)
		ret.first /= 2;
	return ret;
}

/*
 * Opens the events and rings, with smaller rings if the kernel does not permit the size. The rings
 * get the token of @loan.
 */
static int open_with(const struct perf_opts *opts, const struct loan *loan, struct perf_rings **ret,
		     struct reason *why)
{
	struct ring_sizes sizes = choose_sizes(opts);
	int error;

	for (;;) {
		error = open_rings(opts, &sizes, loan, ret, why);
		if (!error)
			(*ret)->token = loan->token;
		if (error != -ENOBUFS || !opts->may_shrink || sizes.first <= MIN_RING)
			return error;
		sizes.first /= 2;
		sizes.largest /= 2;
	}
}

/*
 * Connects to the broker, and asks for a lease if stacks are to be walked. Returns whether there is a
 * broker; @ret says what it lends.
 */
static bool begin_loan(const struct perf_opts *opts, struct loan *ret)
{
	*ret = (struct loan){ .broker = borrow_begin(), .token = -1 };
	if (ret->broker >= 0 && opts->walk.max)
		ret->token = borrow_lease(ret->broker, &opts->walk, &ret->lease);
	return ret->broker >= 0;
}

/* Ends the connection, and the lease if there are no rings that have it, as @failed tells. */
static void end_loan(const struct loan *loan, bool failed)
{
	close(loan->broker);
	if (failed && loan->token >= 0)
		close(loan->token);
}

/* Opens rings whose stacks are walked by what the broker lends. Returns whether that was possible. */
static bool open_lent(const struct perf_opts *opts, struct perf_rings **ret)
{
	struct reason unused;
	struct loan loan;
	int error;

	if (!begin_loan(opts, &loan))
		return false;
	error = loan.lease ? open_with(opts, &loan, ret, &unused) : -EOPNOTSUPP;
	end_loan(&loan, error);
	return !error;
}

/* Returns whether the broker is asked first, as it may lend walks. */
static bool wants_lent(const struct perf_opts *opts)
{
	return opts->walk.max && borrow_possible(opts) && paranoia() >= USER_ONLY;
}

bool perf_rings_may_be_lent(const struct perf_opts *opts)
{
	const int broker = wants_lent(opts) ? borrow_begin() : -1;

	if (broker >= 0)
		close(broker);
	return broker >= 0;
}

int perf_rings_open(const struct perf_opts *opts, struct perf_rings **ret, struct reason *why)
{
	const struct loan none = { .broker = -1, .token = -1 };
	struct reason unused;
	struct loan loan;
	int error, lent;

	if (wants_lent(opts) && open_lent(opts, ret))
		return 0;
	error = open_with(opts, &none, ret, why);
	if (!is_refusal(error) || !borrow_possible(opts) || !begin_loan(opts, &loan))
		return error;
	lent = open_with(opts, &loan, ret, &unused);
	end_loan(&loan, lent);
	if (lent)
		explain_broker(lent, why);
	return lent ? error : 0;
}

uint64_t perf_rings_memory(const struct perf_rings *r)
{
	uint64_t ret = 0;

	for (size_t i = 0; i < r->nr_rings; i++)
		ret += (r->rings[i].page ? r->rings[i].size : 0) +
		       (r->old[i].page ? r->old[i].size : 0) +
		       (r->chains[i].page ? r->chains[i].size : 0);
	return ret;
}

/* Has the walker run at the event, if it is one that the walker can run at. */
static void walk_event(const struct perf_rings *r, const struct opened *event)
{
	if (event->which == PERF_MAIN || (r->walks_all && event->which < PERF_WHICH))
		ioctl(event->fd, PERF_EVENT_IOC_SET_BPF, r->walker);
}

/* Returns the number of a CPU's ring, or -1. */
static ssize_t find_cpu(const struct perf_rings *r, int cpu)
{
	for (size_t i = 0; i < r->nr_rings; i++)
		if (r->rings[i].cpu == cpu)
			return i;
	return -1;
}

/* Records of no event, whose identifier is 0, are a walker's. Each of its rings says so. */
static int know_walker(struct perf_rings *r)
{
	for (size_t i = 0; i < r->nr_others; i++)
		if (!r->others[i].id)
			return 0;
	return add_identity(r, 0, WALKED);
}

int perf_rings_chains(struct perf_rings *r, int cpu, int fd)
{
	const ssize_t at = find_cpu(r, cpu);
	struct walk_ring *ring;

	_Static_assert(offsetof(struct walk_ring, head) ==
				       offsetof(struct perf_event_mmap_page, data_head) &&
			       offsetof(struct walk_ring, tail) ==
				       offsetof(struct perf_event_mmap_page, data_tail),
		       "it is read as perf's own rings");
	if (at < 0 || r->chains[at].page)
		return -EINVAL;
	if (know_walker(r))
		return -ENOMEM;
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	/* As with perf's own rings: a process that the recorder forks has no part in what it reads. */
	if (madvise(ring, sizeof(*ring), MADV_DONTFORK)) {
		const int err = -errno;

		munmap(ring, sizeof(*ring));
		return err;
	}
	r->chains[at] = (struct cpu_ring){
		.cpu = cpu,
		.fd = -1,
		.page = (void *)ring,
		.data = (const uint8_t *)ring->word,
		.size = sizeof(ring->word),
	};
	return 0;
}

int perf_rings_connect(struct perf_rings *r, int (*connect)(const void *arg, int cpu, int fd),
		       const void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < r->nr_rings && !ret; i++) {
		int fd = r->rings[i].page ? open_walked(r, &r->rings[i]) : 0;

		if (fd > 0)
			ret = connect(arg, r->rings[i].cpu, fd);
		else
			ret = fd;
	}
	sort_identities(r);
	return ret;
}

void perf_rings_walk(struct perf_rings *r, int program, bool all)
{
	r->walker = program;
	r->walks_all = all;
	for (size_t i = 0; i < r->nr_events; i++)
		walk_event(r, &r->events[i]);
}

int perf_rings_read_process(const struct perf_rings *r, int pid, const struct lent_process *process)
{
	const int broker = r->lease ? borrow_begin() : -EOPNOTSUPP;
	int ret;

	if (broker < 0)
		return broker;
	ret = borrow_process(broker, r->lease, pid, process);
	close(broker);
	return ret;
}

void perf_rings_vary(const struct perf_rings *r, uint64_t period)
{
	for (size_t i = 0; i < r->nr_events; i++)
		if (r->events[i].which == PERF_MAIN)
			ioctl(r->events[i].fd, PERF_EVENT_IOC_PERIOD, &period);
}

/* ---- Later targets ---- */

/* Returns whether a ring is that of the event. */
static bool has_ring(const struct perf_rings *r, int fd)
{
	for (size_t i = 0; i < r->nr_rings; i++)
		if (r->rings[i].page && r->rings[i].fd == fd)
			return true;
	return false;
}

/* Adds to @ret what the event lost. Returns false if the kernel does not tell. */
static bool add_lost(const struct opened *event, struct perf_losses *ret)
{
	uint64_t values[2]; /* what the event counted, and what was lost */

	if (read(event->fd, values, sizeof(values)) != sizeof(values))
		return false;
	perf_losses_add(ret, event->cpu, values[1]);
	return true;
}

/* Closes the target's events from number @first on. */
static void close_events(struct perf_rings *r, size_t first, pid_t tid)
{
	for (size_t i = r->nr_events; i-- > first;) {
		const struct opened *event = &r->events[i];

		if (event->whose != tid || has_ring(r, event->fd))
			continue;
		add_lost(event, &r->closed);
		close(event->fd);
		r->events[i] = r->events[--r->nr_events];
	}
}

int perf_rings_add(struct perf_rings *r, const struct perf_opts *opts, pid_t tid)
{
	const size_t first = r->nr_events;
	const bool user_only = r->user_only;
	struct reason unused;
	int ret;

	r->broker = r->borrowed ? borrow_begin() : -1;
	if (r->borrowed && r->broker < 0)
		return r->broker;
	ret = add_target(r, opts, tid, &unused);
	if (r->broker >= 0)
		close(r->broker);
	r->broker = -1;
	sort_identities(r);
	if (ret) {
		close_events(r, first, tid);
		r->user_only = user_only;
	}
	for (size_t i = first; i < r->nr_events; i++) {
		if (r->walker)
			walk_event(r, &r->events[i]);
		ioctl(r->events[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	return ret;
}

void perf_rings_drop(struct perf_rings *r, pid_t tid)
{
	close_events(r, 0, tid);
}

void perf_rings_close(struct perf_rings *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nr_rings; i++) {
		unmap_ring(&r->rings[i]);
		unmap_ring(&r->old[i]);
		unmap_ring(&r->chains[i]);
	}
	for (size_t i = 0; i < r->nr_events; i++)
		close(r->events[i].fd);
	if (r->token >= 0)
		close(r->token);
	free(r->rings);
	free(r->old);
	free(r->chains);
	free(r->heap);
	free(r->events);
	free(r->others);
	free(r);
}

bool perf_rings_user_only(const struct perf_rings *r)
{
	return r->user_only;
}

bool perf_rings_borrowed(const struct perf_rings *r)
{
	return r->borrowed;
}

bool perf_rings_lent(const struct perf_rings *r)
{
	return r->lease;
}

void perf_losses_add(struct perf_losses *l, int cpu, uint64_t nr)
{
	l->all += nr;
	if (cpu >= 0 && cpu < PERF_MAX_CPUS)
		l->of[cpu] += nr;
}

bool perf_rings_lost(const struct perf_rings *r, struct perf_losses *ret)
{
	*ret = r->closed;
	for (size_t i = 0; i < r->nr_events; i++)
		if (!add_lost(&r->events[i], ret))
			return false;
	return true;
}

bool perf_rings_total(const struct perf_rings *r, int which, uint64_t *ret)
{
	uint64_t values[2];

	*ret = 0;
	for (size_t i = 0; i < r->nr_events; i++) {
		if (r->events[i].which != which)
			continue;
		if (read(r->events[i].fd, values, sizeof(values)) < (ssize_t)sizeof(*values))
			return false;
		*ret += values[0];
	}
	return true;
}

int perf_total_open(const struct perf_opts *opts, bool user_only)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = opts->main->type,
		.config = opts->main->config,
		.config1 = opts->main->config1,
		.config2 = opts->main->config2,
		.exclude_user = opts->main->no_user,
		.disabled = 1,
		.enable_on_exec = 1,
		.inherit = 1,
		.exclude_hv = 1,
		.exclude_kernel = user_only || opts->main->no_kernel,
	};

	return open_event(&attr, *opts->pids, -1, 0, &user_only);
}

void perf_rings_stop(struct perf_rings *r)
{
	each_event(r, PERF_EVENT_IOC_DISABLE);
}

/* ---- Records ---- */

static uint64_t word(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/*
 * Returns where a byte of the ring lies. Records are aligned to 8 bytes, so no word goes over the
 * end.
 */
static const uint8_t *place(const struct cpu_ring *ring, uint64_t at)
{
	return ring->data + (at & (ring->size - 1));
}

static struct perf_event_header header_at(const struct cpu_ring *ring, uint64_t at)
{
	struct perf_event_header h;

	memcpy(&h, place(ring, at), sizeof(h));
	return h;
}

/* Moves the ring's tail to the next record that tells its time. Returns false if there is none. */
static bool find_next(struct cpu_ring *ring)
{
	while (ring->head - ring->tail >= sizeof(struct perf_event_header) &&
	       ring->head - ring->tail <= ring->size) {
		struct perf_event_header h = header_at(ring, ring->tail);

		if (h.size < sizeof(h) || h.size % 8 || h.size > ring->head - ring->tail)
			break;
		if (h.type && h.size >= sizeof(h) + TRAILER) {
			bool sample = h.type == PERF_RECORD_SAMPLE;

			ring->time = word(place(ring, ring->tail + (sample ? 24 : h.size - 16)));
			return true;
		}
		ring->tail += h.size;
	}
	/* Everything is read, or the rest is invalid. */
	ring->tail = ring->head;
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	return false;
}

/*
 * Returns whether the next record of @a precedes that of @b. At the same time, the ring of the
 * first CPU comes first, and the one that was replaced before the one that replaced it. The walker's own
 * comes last: what belongs to a chain is written before it.
 */
static bool is_before(const struct cpu_ring *a, const struct cpu_ring *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu;
	return a->until != b->until ? a->until > b->until : a->fd > b->fd;
}

/*
 * Puts a ring into the heap, at entry @at or below it. Entries 2 * n + 1 and 2 * n + 2 never
 * precede entry n. There may be hundreds of CPUs with a ring each, and the next record is looked
 * for each time.
 */
static void sift_down(struct perf_rings *r, size_t at, struct cpu_ring *ring)
{
	size_t next;

	while ((next = 2 * at + 1) < r->nr_heap) {
		if (next + 1 < r->nr_heap && is_before(r->heap[next + 1], r->heap[next]))
			next++;
		if (!is_before(r->heap[next], ring))
			break;
		r->heap[at] = r->heap[next];
		at = next;
	}
	r->heap[at] = ring;
}

/* Looks what is in the ring now, and adds it to the heap's entries if there is a record. */
static void look_into(struct perf_rings *r, struct cpu_ring *ring)
{
	/* Pairs with the kernel's barrier before it moves data_head. */
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	ring->filled = ring->head - ring->tail;
	if (find_next(ring))
		r->heap[r->nr_heap++] = ring;
}

/* Looks what is in the rings now, and makes the heap. */
static void look(struct perf_rings *r)
{
	r->nr_heap = 0;
	for (size_t i = 0; i < r->nr_rings; i++) {
		if (r->old[i].page)
			look_into(r, &r->old[i]);
		if (r->rings[i].page)
			look_into(r, &r->rings[i]);
		if (r->chains[i].page)
			look_into(r, &r->chains[i]);
	}
	for (size_t i = r->nr_heap / 2; i--;)
		sift_down(r, i, r->heap[i]);
}

/* Moves the first ring of the heap past its record of @size bytes. */
static void advance(struct perf_rings *r, size_t size)
{
	struct cpu_ring *ring = r->heap[0];

	ring->tail += size;
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	if (!find_next(ring))
		ring = r->heap[--r->nr_heap];
	if (r->nr_heap)
		sift_down(r, 0, ring);
}

static int which_of(const struct perf_rings *r, uint64_t id)
{
	const struct identity key = { .id = id }, *found = NULL;

	if (r->nr_others)
		found = bsearch(&key, r->others, r->nr_others, sizeof(key), by_id);
	return found ? found->which : PERF_MAIN;
}

/*
 * Tells what a walker wrote: the word behind the size of its record says it. A chain tells the event
 * whose sample it stands for.
 */
static void read_walker_word(const struct perf_rings *r, const uint8_t *at, size_t size,
			     struct perf_record *ret)
{
	const uint8_t *body = at + BODY;
	uint32_t kind = 0;

	if (size >= BODY + 2 * sizeof(kind))
		memcpy(&kind, body + sizeof(kind), sizeof(kind));
	ret->which = PERF_MAIN;
	ret->language = kind >= LANGUAGE_MOMENT;
	ret->walked = !ret->language;
	if (ret->walked && size >= BODY + sizeof(struct walk_chain))
		ret->which = which_of(r, word(body + offsetof(struct walk_chain, id)));
	if (ret->which == WALKED)
		ret->which = PERF_MAIN;
}

static void parse(const struct perf_rings *r, const uint8_t *at, struct perf_record *ret)
{
	const struct perf_event_header *head = (const void *)at;
	const uint8_t *end = at + head->size;
	uint32_t ids[2];

	ret->type = head->type;
	ret->misc = head->misc;
	ret->raw = at;
	ret->period = 0;
	ret->walked = ret->language = false;
	ret->tells_count = r->tells_count;
	if (head->type == PERF_RECORD_SAMPLE) {
		memcpy(ids, at + 16, sizeof(ids));
		ret->time = word(at + 24);
		ret->which = which_of(r, word(at + 8));
		if (ret->which == WALKED)
			read_walker_word(r, at, head->size, ret);
		ret->period = r->periods[ret->which];
		ret->body = at + BODY;
		ret->size = end - at - BODY;
	} else {
		memcpy(ids, end - TRAILER, sizeof(ids));
		ret->time = word(end - 16);
		ret->which = PERF_MAIN;
		ret->body = at + sizeof(*head);
		ret->size = end - TRAILER - (const uint8_t *)ret->body;
	}
	ret->pid = ids[0];
	ret->tid = ids[1];
}

/* Returns the next record of a ring in one piece. */
static const uint8_t *record_at(struct perf_rings *r, const struct cpu_ring *ring)
{
	const uint8_t *at = place(ring, ring->tail);
	size_t first = ring->data + ring->size - at;
	size_t size = header_at(ring, ring->tail).size;

	if (size <= first)
		return at;
	memcpy(r->record, at, first);
	memcpy(r->record + first, ring->data, size - first);
	return r->record;
}

/* Prefetches the next record, which another CPU wrote, while the record before it is handled. */
static void fetch_ahead(const struct cpu_ring *ring, uint64_t at)
{
	for (unsigned int i = 0; i < AHEAD; i += LINE)
		__builtin_prefetch(place(ring, at + i));
}

/* ---- Rings that grow ---- */

/*
 * Puts a larger ring in the place of one that has an event of its own. The events go on without a gap:
 * each record comes into the old ring or into the new one. Whoever writes to the old one at this
 * moment may end that later, so it is kept for a while. If an event refuses, it stays for good.
 * Returns 0 or a negative errno.
 */
static int replace_ring(struct perf_rings *r, size_t at, size_t size)
{
	struct cpu_ring *ring = &r->rings[at], next = { .cpu = ring->cpu };
	int ret = open_own_ring(&next, size);

	if (ret)
		return ret;
	ring->until = r->looked + OLD_NS;
	for (size_t i = 0; i < r->nr_events; i++)
		if (r->events[i].cpu == ring->cpu &&
		    ioctl(r->events[i].fd, PERF_EVENT_IOC_SET_OUTPUT, next.fd))
			ring->until = UINT64_MAX;
	r->old[at] = *ring;
	*ring = next;
	return 0;
}

/* Returns how large a ring that was filled as far as this one is to be. */
static size_t grown(const struct perf_rings *r, const struct cpu_ring *ring)
{
	size_t size = ring->size;

	while (size < r->sizes.largest && ring->filled > size / GROWN_PART)
		size *= 2;
	return size;
}

/*
 * Replaces the rings that fill by larger ones, and closes what was replaced earlier. If no larger one
 * can be had, it is not tried again.
 */
static void grow(struct perf_rings *r)
{
	for (size_t i = 0; i < r->nr_rings; i++) {
		struct cpu_ring *ring = &r->rings[i], *old = &r->old[i];

		if (old->page && old->head == old->tail && r->looked >= old->until)
			unmap_ring(old);
		if (ring->page && ring->own && !old->page && ring->size < r->sizes.largest &&
		    ring->filled > ring->size / GROW_PART && replace_ring(r, i, grown(r, ring)))
			r->sizes.largest = r->sizes.first;
	}
}

int perf_rings_read(struct perf_rings *r, bool all,
		    int (*fn)(void *arg, const struct perf_record *record), void *arg)
{
	uint64_t limit = all ? UINT64_MAX : r->looked;
	struct perf_record record;
	int ret = 0;

	r->before = r->looked;
	r->looked = now_ns(CLOCK_MONOTONIC);
	look(r);
	while (!ret && r->nr_heap && r->heap[0]->time <= limit) {
		const struct cpu_ring *ring = r->heap[0];
		const uint8_t *at = record_at(r, ring);
		size_t size = ((const struct perf_event_header *)at)->size;

		fetch_ahead(ring, ring->tail + size);
		parse(r, at, &record);
		record.cpu = ring->cpu;
		ret = fn(arg, &record);
		advance(r, size);
	}
	if (!all)
		grow(r);
	return ret;
}

bool perf_rings_last(const struct perf_rings *r, uint64_t ns)
{
	uint64_t passed = r->looked - r->before;

	if (!r->before || !passed || !r->rate)
		return false;
	for (size_t i = 0; i < r->nr_rings; i++) {
		const struct cpu_ring *ring = &r->rings[i], *chains = &r->chains[i];

		if (ring->page && (r->rate * ns / 1000000000 >= ring->size / 2 ||
				   ring->filled * ns / passed >= ring->size / 4))
			return false;
		if (chains->page && chains->filled * ns / passed >= chains->size / 4)
			return false;
	}
	return true;
}

/* A record that is looked for: of @type with the bits @misc, with @id at byte @at of its body, after @since. */
struct sought {
	uint32_t type;
	uint16_t misc;
	size_t at;
	pid_t id;
	uint64_t since;
};

static bool is_sought(const struct cpu_ring *ring, uint64_t at, const struct perf_event_header *h,
		      const struct sought *s)
{
	return h->type == s->type && (h->misc & s->misc) == s->misc &&
	       h->size >= sizeof(*h) + 16 + TRAILER &&
	       (pid_t)word(place(ring, at + sizeof(*h) + s->at)) == s->id &&
	       word(place(ring, at + h->size - 16)) > s->since;
}

/* Returns whether the ring has such a record that was not handed out yet. */
static bool has_record(const struct cpu_ring *ring, const struct sought *s)
{
	const uint64_t head =
		ring->page ? __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) : ring->tail;
	struct perf_event_header h;

	for (uint64_t at = ring->tail; head - at >= sizeof(h); at += h.size) {
		h = header_at(ring, at);
		if (h.size < sizeof(h) || h.size % 8 || h.size > head - at)
			break;
		if (is_sought(ring, at, &h, s))
			return true;
	}
	return false;
}

static bool any_has_record(const struct perf_rings *r, const struct sought *s)
{
	for (size_t i = 0; i < r->nr_rings; i++)
		if (has_record(&r->rings[i], s) || has_record(&r->old[i], s))
			return true;
	return false;
}

bool perf_rings_began(const struct perf_rings *r, pid_t tid)
{
	/* Process and its parent, then thread and its creator, 4 bytes each. */
	const struct sought fork = { .type = PERF_RECORD_FORK, .at = 8, .id = tid };

	return any_has_record(r, &fork);
}

bool perf_rings_executes(const struct perf_rings *r, pid_t pid, uint64_t since)
{
	const struct sought comm = {
		.type = PERF_RECORD_COMM,
		.misc = PERF_RECORD_MISC_COMM_EXEC,
		.id = pid,
		.since = since,
	};

	return any_has_record(r, &comm);
}

static bool is_news(uint32_t type)
{
	return type == PERF_RECORD_FORK || type == PERF_RECORD_COMM || type == PERF_RECORD_MMAP2;
}

static bool has_news(const struct cpu_ring *ring)
{
	struct perf_event_header h;

	/* The tail of a ring with invalid content is its head: find_next() has set it. */
	for (uint64_t at = ring->tail; ring->page && ring->head - at >= sizeof(h); at += h.size) {
		h = header_at(ring, at);
		if (is_news(h.type))
			return true;
		if (h.size < sizeof(h) || h.size > ring->head - at)
			break;
	}
	return false;
}

bool perf_rings_news(const struct perf_rings *r)
{
	for (size_t i = 0; i < r->nr_rings; i++)
		if (has_news(&r->rings[i]) || has_news(&r->old[i]))
			return true;
	return false;
}
