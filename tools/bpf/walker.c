// SPDX-License-Identifier: GPL-2.0-or-later
/* walker.c - load and serve the BPF program that walks stacks. See walker.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bpf/walker.h"

#if !__has_include(<bpf/libbpf.h>)
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

int walker_leave(const struct walker *w, int pid)
{
	(void)w;
	(void)pid;
	return -EOPNOTSUPP;
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
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bpf/libbpf.h"
#include "tools/bpf/serve.h"
#include "tools/rules/cache.h"
#include "tools/shstk.h"

#define OBJECT "shstk-walk.bpf.o"
#define NICE -10
#define TYPES "/sys/kernel/btf/vmlinux"
#define FIRST_NAMESPACE 0xeffffffcu /* include/linux/proc_ns.h: PROC_PID_INIT_INO */
#define OLDEST_MAJOR 6
#define OLDEST_MINOR 1

/**
 * struct walker - the loaded program
 * @lib: functions of libbpf.
 * @object: the object file of the program.
 * @program: descriptor of the program.
 * @output: descriptor of the map of the events that chains are written to.
 * @served: the maps that the server fills.
 * @server: process ID of the server.
 */
struct walker {
	const struct libbpf *lib;
	struct bpf_object *object;
	int program;
	int output;
	struct served served;
	pid_t server;
};

/* The first line that libbpf printed. It says what failed; the verifier's text follows it. */
static char said[256];

static int listen_to(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level != LIBBPF_WARN || *said)
		return 0;
	vsnprintf(said, sizeof(said), format, args);
	said[strcspn(said, "\n")] = '\0';
	return 0;
}

/*
 * Checks the kernel. Since 6.1 it keeps mappings where the program looks for them, and it has to
 * tell its types. Returns 0 or -EOPNOTSUPP.
 */
static int check_kernel(struct reason *why)
{
	int major = 0, minor = 0;
	struct utsname name;

	if (!uname(&name))
		sscanf(name.release, "%d.%d", &major, &minor);
	if (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR)) {
		because(why, "the BPF walk needs Linux %d.%d, and this is %s", OLDEST_MAJOR,
			OLDEST_MINOR, name.release);
		return -EOPNOTSUPP;
	}
	if (access(TYPES, R_OK)) {
		because(why, "the BPF walk needs the kernel's type information (BTF): %s: %s",
			TYPES, strerror(errno));
		return -EOPNOTSUPP;
	}
	return 0;
}

static int find_map(const struct walker *w, const char *name)
{
	struct bpf_map *map = w->lib->object__find_map_by_name(w->object, name);

	return map ? w->lib->map__fd(map) : -1;
}

/*
 * Sets the PID namespace of this process, unless it is the first one, where processes have the
 * numbers that the kernel uses.
 */
static void set_namespace(struct walk_config *c)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == FIRST_NAMESPACE)
		return;
	c->ns_dev = st.st_dev;
	c->ns_ino = st.st_ino;
}

static int open_object(struct walker *w, struct reason *why)
{
	char path[4096];

	if (find_object(OBJECT, path, sizeof(path))) {
		because(why,
			"the BPF walk is not part of this build: %s is missing; install clang and build again",
			OBJECT);
		return -EOPNOTSUPP;
	}
	*said = '\0';
	w->lib->set_print(listen_to);
	w->object = w->lib->object__open_file(path, NULL);
	if (w->object)
		return 0;
	because(why, "%.199s: %s", path, *said ? said : strerror(errno));
	return -EINVAL;
}

static int load_object(struct walker *w, struct reason *why)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct bpf_program *program;
	int err;

	/* Kernels before 5.11 count the memory of maps as locked, and libbpf checks this limit. */
	setrlimit(RLIMIT_MEMLOCK, &limit);
	err = w->lib->object__load(w->object);
	if (err == -EPERM) {
		because(why,
			"the BPF walk: not permitted: be root, or have CAP_BPF and CAP_PERFMON");
		return err;
	}
	if (err) {
		because(why, "the BPF walk: the kernel refuses it: %s",
			*said ? said : strerror(-err));
		return err;
	}
	program = w->lib->object__find_program_by_name(w->object, "walk_sample");
	w->program = program ? w->lib->program__fd(program) : -1;
	w->output = find_map(w, "output");
	w->served.lib = w->lib;
	w->served.tables = find_map(w, "tables");
	w->served.files = find_map(w, "files");
	w->served.asked = find_map(w, "asked");
	w->served.config = find_map(w, "config");
	w->served.next = 1;
	return w->program < 0 ? -EINVAL : 0;
}

/* Runs the server: like helper.c of tools/rules, it prints nothing and ends with its parent. */
static void be_server(struct walker *w, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDERR_FILENO);
	prctl(PR_SET_NAME, "shstk tables");
	/* While files wait for their tables, stacks are copied. This may not be permitted. */
	setpriority(PRIO_PROCESS, 0, NICE);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	if (getppid() != parent)
		_exit(1);
	serve_asked(&w->served);
	_exit(1);
}

/* Sets up the memory that the server and its parent share. Returns 0 or a negative errno. */
static int share(struct served *s)
{
	void *page = mmap(NULL, sizeof(*s->nr_waiting), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	s->nr_waiting = page;
	return ring_map(s->asked, WALK_ASKED, &s->ring);
}

static int start_server(struct walker *w)
{
	pid_t parent = getpid();

	fflush(NULL);
	w->server = fork();
	if (!w->server)
		be_server(w, parent);
	return w->server < 0 ? -errno : 0;
}

static int load(struct walker *w, const struct walker_opts *opts, struct reason *why)
{
	int err = check_kernel(why);

	if (err)
		return err;
	w->lib = libbpf_load();
	if (!w->lib) {
		because(why, "the BPF walk needs libbpf.so.1: install libbpf1");
		return -EOPNOTSUPP;
	}
	err = open_object(w, why);
	if (!err)
		err = load_object(w, why);
	if (err)
		return err;
	w->served.cache = opts->cache ? cache_open(opts->cache) : -1;
	w->served.told = (struct walk_config){
		.max = opts->max,
		.kernel = opts->kernel,
		.both = opts->both,
		.records = opts->records,
	};
	set_namespace(&w->served.told);
	/* If this fails, chains end in the vDSO. */
	serve_vdso(&w->served);
	err = serve_config(&w->served);
	if (!err)
		err = share(&w->served);
	if (!err)
		err = start_server(w);
	if (err)
		because(why, "the BPF walk: %s", strerror(-err));
	return err;
}

int walker_create(const struct walker_opts *opts, struct walker **ret, struct reason *why)
{
	struct walker *w = calloc(1, sizeof(*w));
	int err;

	*ret = NULL;
	because(why, "the BPF walk: %s", strerror(ENOMEM));
	if (!w)
		return -ENOMEM;
	w->served.cache = -1;
	err = load(w, opts, why);
	if (err) {
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
	if (w->served.cache >= 0)
		close(w->served.cache);
	if (w->object)
		w->lib->object__close(w->object);
	free(w);
}

/* Makes chains of @cpu be written to the event @fd. Returns 0 or a negative errno. */
static int connect_cpu(const void *arg, int cpu, int fd)
{
	const struct walker *w = arg;
	__u32 index = cpu;

	return w->lib->map_update_elem(w->output, &index, &fd, BPF_ANY) ? -errno : 0;
}

int walker_begin(const struct walker *w, struct perf_rings *rings)
{
	return perf_rings_walk(rings, w->program, connect_cpu, w);
}

int walker_leave(const struct walker *w, int pid)
{
	__u32 key = pid, value = 1;

	return w->lib->map_update_elem(find_map(w, "left"), &key, &value, BPF_ANY) ? -errno : 0;
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
	struct bpf_map *map = w->lib->object__find_map_by_name(w->object, "walks");
	unsigned int cpus = possible_cpus();
	size_t words = map ? (w->lib->map__value_size(map) + 7) / 8 : 0;
	uint64_t *values = calloc(cpus ? cpus * words : 1, sizeof(*values));
	__u32 zero = 0;
	int err = 0;

	memset(ret, 0, NR_COUNTS * sizeof(*ret));
	if (!values || !map)
		err = -ENOMEM;
	else if (w->lib->map_lookup_elem(w->lib->map__fd(map), &zero, values))
		err = -errno;
	for (size_t cpu = 0; !err && cpu < cpus; cpu++)
		for (size_t i = 0; i < NR_COUNTS; i++)
			ret[i] += values[cpu * words + i];
	free(values);
	return err;
}
#endif
