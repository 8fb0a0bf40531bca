// SPDX-License-Identifier: GPL-2.0-or-later
/* walker.c - load and serve the BPF program that walks stacks. See walker.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bpf/walker.h"

#if !__has_include(<bpf/libbpf.h>)
bool walker_possible(void)
{
	return false;
}

struct walker *walker_plan(const struct walker_opts *opts)
{
	(void)opts;
	return NULL;
}

int walker_start(struct walker *w, struct reason *why)
{
	(void)w;
	(void)why;
	return -EOPNOTSUPP;
}

bool walker_started(const struct walker *w)
{
	(void)w;
	return false;
}

bool walker_ended(struct walker *w, pid_t pid)
{
	(void)w;
	(void)pid;
	return false;
}

int walker_ready(struct walker *w, bool wait, struct reason *why)
{
	(void)w;
	(void)wait;
	(void)why;
	return -EOPNOTSUPP;
}

int walker_create(const struct walker_opts *opts, struct walker **ret, struct reason *why)
{
	(void)opts;
	*ret = NULL;
	because(why, "the BPF walk is not part of this build: install libbpf-dev and build again");
	return -EOPNOTSUPP;
}

void walker_destroy(struct walker *w)
{
	(void)w;
}

int walker_begin(const struct walker *w, struct perf_rings *rings)
{
	(void)w;
	(void)rings;
	return -EOPNOTSUPP;
}

const struct bpf_loaded *walker_loaded(const struct walker *w)
{
	(void)w;
	return NULL;
}

int walker_leave(const struct walker *w, int pid)
{
	(void)w;
	(void)pid;
	return -EOPNOTSUPP;
}

int walker_write_callchains(const struct walker *w, unsigned int max)
{
	(void)w;
	(void)max;
	return -EOPNOTSUPP;
}

bool walker_can_write_callchains(unsigned int max)
{
	(void)max;
	return false;
}

int walker_set_next(const struct walker *w, int program)
{
	(void)w;
	(void)program;
	return -EOPNOTSUPP;
}

void walker_cuts(const struct walker *w, void (*fn)(void *arg, const struct walk_cut *cut),
		 void *arg)
{
	(void)w;
	(void)fn;
	(void)arg;
}

bool walker_idle(const struct walker *w)
{
	(void)w;
	return true;
}

int walker_count(const struct walker *w, uint64_t ret[NR_COUNTS])
{
	(void)w;
	(void)ret;
	return -EOPNOTSUPP;
}
#else
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/lend.h"
#include "tools/bpf/libbpf.h"
#include "tools/bpf/load_object.h"
#include "tools/bpf/pass_object.h"
#include "tools/bpf/serve_tables.h"
#include "tools/perf/regs.h"
#include "tools/rules/cache.h"
#include "tools/rules/confine.h"
#include "tools/shstk.h"

#define WHAT "the BPF walk"
#define OBJECT "shstk-walk.bpf.o"
#define LENT_OBJECT "shstk-lend.bpf.o"
#define MIN_DESCRIPTORS 512
#define LENT_BYTES (1u << 30) /* of tables that ordinary users' files have */
/* Bytes of memory of the process that makes these. It holds a table twice, which has up to 512 MiB. */
#define LENT_MEMORY (2ul << 30)

/**
 * struct walker - the program
 * @opts: options of the walk.
 * @loaded: the program, once it came from the server.
 * @served: the maps that the server fills; in the recorder only what it shares with the server.
 * @server: process ID of the server, 0: it was not started.
 * @socket: the server's answer comes from it; negative: it came, or there is no server.
 * @err: why there is no program, or 0.
 * @why: reason of @err.
 */
struct walker {
	struct walker_opts opts;
	struct bpf_loaded loaded;
	struct served served;
	pid_t server;
	int socket;
	int err;
	struct reason why;
};

/*
 * Keeps only the descriptor that the server needs. It must not hold the end of a pipe for whose
 * closing somebody waits, such as a command that is not to begin after all.
 */
static void keep_own(int socket)
{
	const int keep[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null >= 0)
			dup2(null, fd);
	sandbox_close_others(keep, sizeof(keep) / sizeof(*keep));
}

/* A program that reads frames for ordinary users, to be called by the one that is lent. */
struct reader {
	__u32 place;
	const char *object;
	const char *program;
};

/* Loads such a program. Kernels may refuse it, and not each machine has it; the other one lends the rest then. */
static void load_reader(const struct bpf_loaded *lent, const struct reader *reader)
{
	static const char *const names[] = {
		"leases", "pauses",	    "lent_processes",	"lent_functions", "config",
		"output", "language_walks", "language_repeats", "language_deeps", "language_codes",
	};
	const size_t nr = sizeof(names) / sizeof(*names);
	struct bpf_loaded_shared shared[sizeof(names) / sizeof(*names)];
	struct bpf_loaded loaded;
	struct reason unused;
	size_t nr_shared = 0;

	/* The memory for frames is that program's own where the other one reads none. */
	for (size_t i = 0; i < nr; i++) {
		const int map = bpf_loaded_map(lent, names[i]);

		if (map >= 0)
			shared[nr_shared++] = (struct bpf_loaded_shared){ names[i], map };
	}
	if (!bpf_loaded_open_sharing(WHAT, reader->object, reader->program, shared, nr_shared,
				     &loaded, &unused))
		bpf_loaded_set(lent, LENT_READERS, &reader->place, &loaded.program);
	bpf_loaded_close(&loaded);
}

static void load_readers(const struct bpf_loaded *lent)
{
	static const struct reader readers[] = {
		{ LENT_HEAP, "shstk-lend_language.bpf.o", "walk_lent_language" },
		{ LENT_NATIVE, "shstk-lend_native.bpf.o", "walk_lent_native" },
	};

	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
		load_reader(lent, &readers[i]);
}

/* Loads the program and what it needs at first. Returns 0 or a negative errno. */
static int load(struct walker *w, const struct walker_opts *opts, struct reason *why)
{
	uint64_t ns_dev, ns_ino;
	int err = bpf_loaded_open(WHAT, opts->lent ? LENT_OBJECT : OBJECT,
				  opts->lent ? "walk_lent" : "walk_sample", &w->loaded, why);

	if (err)
		return err;
	if (opts->lent)
		load_readers(&w->loaded);
	w->served.lib = w->loaded.lib;
	w->served.tables = bpf_loaded_map(&w->loaded, "tables");
	w->served.files = bpf_loaded_map(&w->loaded, "files");
	w->served.asked = bpf_loaded_map(&w->loaded, "asked");
	w->served.config = bpf_loaded_map(&w->loaded, "config");
	w->served.next = 1;
	/* The recorder needs copies of Go's stacks, which lead to goroutines and their labels. */
	w->served.leaves_go = true;
	w->served.stop = -1;
	w->served.most_bytes = opts->lent ? LENT_BYTES : 0;
	w->served.cache = opts->cache ? cache_open(opts->cache) : -1;
	w->served.told = (struct walk_config){
		.max = opts->max,
		.kernel = opts->kernel,
		.both = opts->both,
		.records = opts->records,
		.page = sysconf(_SC_PAGESIZE),
	};
	bpf_own_namespace(&ns_dev, &ns_ino);
	w->served.told.ns_dev = ns_dev;
	w->served.told.ns_ino = ns_ino;
	/* If this fails, chains end in the vDSO. */
	serve_vdso(&w->served);
	err = serve_config(&w->served);
	if (!err)
		err = ring_map(w->served.asked, WALK_ASKED, &w->served.ring);
	if (err)
		because(why, WHAT ": %s", strerror(-err));
	return err;
}

/*
 * Bounds what this process may take: it looks at files that ordinary users made, before another one
 * makes their tables. The others that it starts have bounds of their own.
 */
static void bound_memory(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur <= LENT_MEMORY)
		return;
	limit.rlim_cur = LENT_MEMORY;
	setrlimit(RLIMIT_AS, &limit);
}

/* Runs the server: like helper.c of tools/rules, it prints nothing and ends with its parent. */
static _Noreturn void be_server(struct walker *w, pid_t parent, int socket)
{
	struct reason why;
	sigset_t none;
	int err;

	keep_own(socket);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "shstk tables");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	if (getppid() != parent)
		_exit(1);
	err = load(w, &w->opts, &why);
	if (bpf_loaded_send(socket, &w->loaded, err, &why) || err)
		_exit(1);
	close(socket);
	/* A file that waits for its table is open. */
	perf_more_files();
	if (w->opts.lent)
		bound_memory();
	serve_asked(&w->served);
	_exit(1);
}

/*
 * Sets the priority of the server. While it is waited for it is not lower than that of this process,
 * whose rings nobody reads meanwhile. This may not be permitted.
 */
static void set_priority(const struct walker *w, bool awaited)
{
	const int own = awaited ? getpriority(PRIO_PROCESS, 0) : w->opts.nice;

	setpriority(PRIO_PROCESS, w->server, own < w->opts.nice ? own : w->opts.nice);
}

/* Starts the server. @ret receives the socket from which its answer comes. */
static int start_server(struct walker *w, int *ret)
{
	const pid_t parent = getpid();
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fflush(NULL);
	w->server = fork();
	if (!w->server)
		be_server(w, parent, pair[1]);
	err = w->server < 0 ? -errno : 0;
	close(pair[1]);
	if (!err) {
		*ret = pair[0];
		set_priority(w, false);
		return 0;
	}
	close(pair[0]);
	w->server = 0;
	return err;
}

/* Tables are made by processes that give root up (sandbox_enter()). That takes these rights. */
static bool may_make_tables(void)
{
	return geteuid() || (bpf_has_capability(CAP_SETUID) && bpf_has_capability(CAP_SETGID));
}

/*
 * Programs and maps take some 40 descriptors, beside the rings and half of what is permitted, which
 * is for files (tools/convert/living_files.c). The soft limit is raised when rings are opened.
 */
static bool has_descriptors(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max >= MIN_DESCRIPTORS;
}

bool walker_possible(void)
{
	return may_make_tables() && has_descriptors() && bpf_loaded_possible(OBJECT);
}

struct walker *walker_plan(const struct walker_opts *opts)
{
	struct walker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->opts = *opts;
	w->loaded.program = -1;
	w->served.cache = -1;
	w->socket = -1;
	return w;
}

/* Notes that the program cannot be loaded. Returns @err. */
static int fail(struct walker *w, int err, struct reason *why)
{
	if (!w->err)
		w->why = *why;
	w->err = err;
	return err;
}

int walker_start(struct walker *w, struct reason *why)
{
	int err = 0;
	void *page;

	*why = w->why;
	if (w->server || w->err)
		return w->err;
	page = mmap(NULL, sizeof(*w->served.nr_waiting), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		err = -errno;
	else
		w->served.nr_waiting = page;
	if (!err)
		err = start_server(w, &w->socket);
	if (!err)
		return 0;
	because(why, WHAT ": %s", strerror(-err));
	return fail(w, err, why);
}

bool walker_started(const struct walker *w)
{
	return w->server || w->err;
}

bool walker_ended(struct walker *w, pid_t pid)
{
	const bool ret = pid > 0 && w->server == pid;

	if (ret)
		w->server = 0;
	return ret;
}

int walker_ready(struct walker *w, bool wait, struct reason *why)
{
	int err;

	*why = w->why;
	if (w->socket < 0)
		return w->err ? w->err : 1;
	if (wait)
		set_priority(w, true);
	err = bpf_loaded_receive(w->socket, wait, WHAT, &w->loaded, why);
	if (wait)
		set_priority(w, false);
	if (err == -EAGAIN && !wait)
		return 0;
	close(w->socket);
	w->socket = -1;
	if (!err) {
		err = ring_map(bpf_loaded_map(&w->loaded, "asked"), WALK_ASKED, &w->served.ring);
		because(why, WHAT ": %s", strerror(-err));
	}
	return err ? fail(w, err, why) : 1;
}

int walker_create(const struct walker_opts *opts, struct walker **ret, struct reason *why)
{
	struct walker *w = walker_plan(opts);
	int err;

	*ret = NULL;
	because(why, WHAT ": %s", strerror(ENOMEM));
	if (!w)
		return -ENOMEM;
	err = walker_start(w, why);
	if (!err)
		err = walker_ready(w, true, why);
	if (err < 0) {
		walker_destroy(w);
		return err;
	}
	*ret = w;
	return 0;
}

void walker_destroy(struct walker *w)
{
	if (!w)
		return;
	if (w->server > 0) {
		kill(w->server, SIGKILL);
		while (waitpid(w->server, NULL, 0) < 0 && errno == EINTR)
			;
	}
	ring_unmap(&w->served.ring);
	if (w->served.nr_waiting)
		munmap(w->served.nr_waiting, sizeof(*w->served.nr_waiting));
	if (w->socket >= 0)
		close(w->socket);
	bpf_loaded_close(&w->loaded);
	free(w);
}

int walker_begin(const struct walker *w, struct perf_rings *rings)
{
	return bpf_loaded_begin(&w->loaded, rings, true);
}

const struct bpf_loaded *walker_loaded(const struct walker *w)
{
	return &w->loaded;
}

/* Tells the program that there is something for it to do, @value is how much of it. */
static int use(const struct walker *w, __u32 what, __u32 value)
{
	return bpf_loaded_set(&w->loaded, "uses", &what, &value);
}

int walker_leave(const struct walker *w, int pid)
{
	const __u32 key = pid, value = 1;
	const int err = bpf_loaded_set(&w->loaded, "left", &key, &value);

	return err ? err : use(w, WALK_USES_LEFT, 1);
}

bool walker_can_write_callchains(unsigned int max)
{
	/* On arm64 32-bit code has frame records of several kinds, which the program does not know. */
	return perf_regs_arch() == SHSTK_ARCH_X86 && max <= WALK_CALLCHAIN;
}

int walker_write_callchains(const struct walker *w, unsigned int max)
{
	if (!walker_can_write_callchains(max))
		return -EOPNOTSUPP;
	return use(w, WALK_USES_CALLCHAINS, max);
}

int walker_set_next(const struct walker *w, int program)
{
	return bpf_loaded_set_next(&w->loaded, program);
}

void walker_cuts(const struct walker *w, void (*fn)(void *arg, const struct walk_cut *cut),
		 void *arg)
{
	const struct libbpf *lib = w->loaded.lib;
	int map = bpf_loaded_map(&w->loaded, "cuts");
	struct walk_file file, *before = NULL;
	struct walk_cut cut;

	/* Nothing is removed from the map, so its keys have an end. */
	for (unsigned int i = 0; i < WALK_CUTS && !lib->map_get_next_key(map, before, &file); i++) {
		if (!lib->map_lookup_elem(map, &file, &cut)) {
			cut.name[sizeof(cut.name) - 1] = '\0';
			fn(arg, &cut);
		}
		before = &file;
	}
}

bool walker_idle(const struct walker *w)
{
	const struct ring *ring = &w->served.ring;

	/* In this order: a request that has left the ring buffer is already counted as waiting. */
	return __atomic_load_n(ring->consumed, __ATOMIC_ACQUIRE) ==
		       __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(w->served.nr_waiting, __ATOMIC_ACQUIRE);
}

/* Returns the number of possible CPUs. Per-CPU maps have a value for each. */
static unsigned int possible_cpus(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	unsigned int last = 0, nr = 0;

	/* The file is like "0-3,6": the last number counts. */
	while (file && fscanf(file, "%u%*[-,]", &last) == 1)
		nr = last + 1;
	if (file)
		fclose(file);
	return nr;
}

int walker_count(const struct walker *w, uint64_t ret[NR_COUNTS])
{
	const struct libbpf *lib = w->loaded.lib;
	int map = bpf_loaded_map(&w->loaded, "walks");
	unsigned int cpus = possible_cpus();
	size_t words = ((size_t)bpf_loaded_value_size(&w->loaded, "walks") + 7) / 8;
	uint64_t *values = calloc(cpus ? cpus * words : 1, sizeof(*values));
	__u32 zero = 0;
	int err = 0;

	memset(ret, 0, NR_COUNTS * sizeof(*ret));
	if (!values || map < 0)
		err = -ENOMEM;
	else if (lib->map_lookup_elem(map, &zero, values))
		err = -errno;
	for (size_t cpu = 0; !err && cpu < cpus; cpu++)
		for (size_t i = 0; i < NR_COUNTS; i++)
			ret[i] += values[cpu * words + i];
	free(values);
	return err;
}
#endif
