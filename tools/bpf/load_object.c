// SPDX-License-Identifier: GPL-2.0-or-later
/* load_object.c - load a BPF program. See load_object.h. */
#include <errno.h>
#include <sys/stat.h>

#include "tools/bpf/load_object.h"

#define FIRST_NAMESPACE 0xeffffffcu /* include/linux/proc_ns.h: PROC_PID_INIT_INO */

void bpf_own_namespace(uint64_t *dev, uint64_t *ino)
{
	struct stat st;

	*dev = *ino = 0;
	if (stat("/proc/self/ns/pid", &st) || st.st_ino == FIRST_NAMESPACE)
		return;
	*dev = st.st_dev;
	*ino = st.st_ino;
}

int bpf_loaded_set_next(const struct bpf_loaded *l, int program)
{
	const uint32_t key = 0;

	return bpf_loaded_set(l, "next", &key, &program);
}

#if !__has_include(<bpf/libbpf.h>)
int bpf_loaded_open_sharing(const char *what, const char *file, const char *name,
			    const struct bpf_loaded_shared *shared, unsigned int nr,
			    struct bpf_loaded *ret, struct reason *why)
{
	(void)file;
	(void)name;
	(void)shared;
	(void)nr;
	*ret = (struct bpf_loaded){ .what = what, .program = -1 };
	because(why, "%s is not part of this build: install libbpf-dev and build again", what);
	return -EOPNOTSUPP;
}

bool bpf_loaded_possible(const char *file)
{
	(void)file;
	return false;
}

void bpf_loaded_close(struct bpf_loaded *l)
{
	(void)l;
}

int bpf_loaded_map(const struct bpf_loaded *l, const char *name)
{
	(void)l;
	(void)name;
	return -1;
}

uint32_t bpf_loaded_value_size(const struct bpf_loaded *l, const char *name)
{
	(void)l;
	(void)name;
	return 0;
}

int bpf_loaded_set(const struct bpf_loaded *l, const char *map, const void *key, const void *value)
{
	(void)l;
	(void)map;
	(void)key;
	(void)value;
	errno = EOPNOTSUPP;
	return -EOPNOTSUPP;
}

int bpf_loaded_get(const struct bpf_loaded *l, const char *map, const void *key, void *value)
{
	(void)l;
	(void)map;
	(void)key;
	(void)value;
	return -EOPNOTSUPP;
}

int bpf_loaded_set_in(const struct bpf_loaded *l, int map, const void *key, const void *value)
{
	(void)l;
	(void)map;
	(void)key;
	(void)value;
	return -EOPNOTSUPP;
}

int bpf_loaded_create(const struct bpf_loaded *l, const char *name,
		      const struct bpf_loaded_shape *shape)
{
	(void)l;
	(void)name;
	(void)shape;
	return -EOPNOTSUPP;
}

int bpf_loaded_begin(const struct bpf_loaded *l, struct perf_rings *rings, bool all)
{
	(void)all;
	(void)l;
	(void)rings;
	return -EOPNOTSUPP;
}

int bpf_loaded_connect(const struct bpf_loaded *l, struct perf_rings *rings)
{
	(void)l;
	(void)rings;
	return -EOPNOTSUPP;
}
#else
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bpf/walk.h"
#include "tools/bpf/libbpf.h"
#include "tools/perf/rings.h"
#include "tools/shstk.h"

#define TYPES "/sys/kernel/btf/vmlinux"
#define OLDEST_MAJOR 6
#define OLDEST_MINOR 1
#define LOG_STATS \
	4 /* BPF_LOG_STATS of include/linux/bpf_verifier.h: errors and sums, no instructions */

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
static int check_kernel(const char *what, struct reason *why)
{
	int major = 0, minor = 0;
	struct utsname name;

	if (!uname(&name))
		sscanf(name.release, "%d.%d", &major, &minor);
	if (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR)) {
		because(why, "%s needs Linux %d.%d, and this is %s", what, OLDEST_MAJOR,
			OLDEST_MINOR, name.release);
		return -EOPNOTSUPP;
	}
	if (access(TYPES, R_OK)) {
		because(why, "%s needs the kernel's type information (BTF): %s: %s", what, TYPES,
			strerror(errno));
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Returns the index of a map, or -1. */
static int find_map(const struct bpf_loaded *l, const char *name)
{
	for (unsigned int i = 0; i < l->nr_maps; i++)
		if (!strcmp(l->maps[i].name, name))
			return i;
	return -1;
}

int bpf_loaded_map(const struct bpf_loaded *l, const char *name)
{
	const int at = find_map(l, name);

	return at < 0 ? -1 : l->fds[at];
}

uint32_t bpf_loaded_value_size(const struct bpf_loaded *l, const char *name)
{
	const int at = find_map(l, name);

	return at < 0 ? 0 : l->maps[at].value_size;
}

/*
 * Opens an object file. Returns 0 or a negative errno. The verifier is asked for its error and its sums at
 * once. Else libbpf loads a program that was refused again, with the whole log, in a buffer that is doubled
 * until the log of a million instructions fits.
 */
static int open_object(const struct bpf_loaded *l, const char *file, struct bpf_object **ret,
		       struct reason *why)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_level = LOG_STATS);
	char path[4096];

	if (find_object(file, path, sizeof(path))) {
		because(why,
			"%s is not part of this build: %s is missing; install clang and build again",
			l->what, file);
		return -EOPNOTSUPP;
	}
	*said = '\0';
	l->lib->set_print(listen_to);
	*ret = l->lib->object__open_file(path, &opts);
	if (*ret)
		return 0;
	because(why, "%.199s: %s", path, *said ? said : strerror(errno));
	return -EINVAL;
}

/* Keeps a descriptor of a program or a map beyond the object's end. */
static int keep(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int keep_maps(struct bpf_loaded *l, const struct bpf_object *object)
{
	struct bpf_map *map = NULL;

	while ((map = l->lib->object__next_map(object, map))) {
		struct bpf_loaded_map *to = &l->maps[l->nr_maps];
		int fd;

		if (l->nr_maps == BPF_LOADED_MAPS)
			return -E2BIG;
		fd = keep(l->lib->map__fd(map));
		if (fd < 0)
			return -errno;
		snprintf(to->name, sizeof(to->name), "%s", l->lib->map__name(map));
		to->value_size = l->lib->map__value_size(map);
		l->fds[l->nr_maps++] = fd;
	}
	return 0;
}

/* Keeps the program @name, if it is not NULL, and all maps. Returns 0 or a negative errno. */
static int keep_all(struct bpf_loaded *l, const struct bpf_object *object, const char *name,
		    struct reason *why)
{
	struct bpf_program *program = name ? l->lib->object__find_program_by_name(object, name) :
					     NULL;
	int err = 0;

	if (program)
		l->program = keep(l->lib->program__fd(program));
	if (name && l->program < 0)
		err = program ? -errno : -EINVAL;
	if (!err)
		err = keep_maps(l, object);
	if (err)
		because(why, "%s: %s", l->what, strerror(-err));
	return err;
}

static int load_object(const struct bpf_loaded *l, struct bpf_object *object, struct reason *why)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	int err;

	/* Kernels before 5.11 count the memory of maps as locked, and libbpf checks this limit. */
	setrlimit(RLIMIT_MEMLOCK, &limit);
	err = l->lib->object__load(object);
	if (err == -EPERM) {
		because(why, "%s: not permitted: be root, or have CAP_BPF and CAP_PERFMON",
			l->what);
		return err;
	}
	if (err)
		because(why, "%s: the kernel refuses it: %s", l->what,
			*said ? said : strerror(-err));
	return err;
}

/* Takes maps that exist in place of the object's own. Returns 0 or a negative errno. */
static int share_maps(const struct bpf_loaded *l, const struct bpf_object *object,
		      const struct bpf_loaded_shared *shared, unsigned int nr, struct reason *why)
{
	for (unsigned int i = 0; i < nr; i++) {
		struct bpf_map *map = l->lib->object__find_map_by_name(object, shared[i].name);

		if (map && !l->lib->map__reuse_fd(map, shared[i].fd))
			continue;
		because(why, "%s: map %s: %s", l->what, shared[i].name,
			strerror(map ? errno : ENOENT));
		return map ? -errno : -ENOENT;
	}
	return 0;
}

int bpf_loaded_open_sharing(const char *what, const char *file, const char *name,
			    const struct bpf_loaded_shared *shared, unsigned int nr,
			    struct bpf_loaded *ret, struct reason *why)
{
	struct bpf_object *object;
	int err;

	*ret = (struct bpf_loaded){ .what = what, .program = -1 };
	err = check_kernel(what, why);
	if (err)
		return err;
	ret->lib = libbpf_load();
	if (!ret->lib) {
		because(why, "%s needs libbpf.so.1: install libbpf1", what);
		return -EOPNOTSUPP;
	}
	err = open_object(ret, file, &object, why);
	if (err)
		return err;
	err = share_maps(ret, object, shared, nr, why);
	if (!err)
		err = load_object(ret, object, why);
	if (!err)
		err = keep_all(ret, object, name, why);
	ret->lib->object__close(object);
	return err;
}

bool bpf_has_capability(int number)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &head, data))
		return false;
	return data[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number);
}

/* Returns whether this process may load programs that read memory and run at perf events. */
static bool may_load(void)
{
	return bpf_has_capability(CAP_SYS_ADMIN) ||
	       (bpf_has_capability(CAP_BPF) && bpf_has_capability(CAP_PERFMON));
}

bool bpf_loaded_possible(const char *file)
{
	struct reason unused;
	char path[4096];

	return may_load() && !check_kernel("", &unused) && !find_object(file, path, sizeof(path));
}

void bpf_loaded_close(struct bpf_loaded *l)
{
	for (unsigned int i = 0; i < l->nr_maps; i++)
		close(l->fds[i]);
	l->nr_maps = 0;
	if (l->program >= 0)
		close(l->program);
	l->program = -1;
}

int bpf_loaded_set(const struct bpf_loaded *l, const char *map, const void *key, const void *value)
{
	return bpf_loaded_set_in(l, bpf_loaded_map(l, map), key, value);
}

int bpf_loaded_set_in(const struct bpf_loaded *l, int map, const void *key, const void *value)
{
	const int err = value ? l->lib->map_update_elem(map, key, value, BPF_ANY) :
				l->lib->map_delete_elem(map, key);

	return err ? -errno : 0;
}

int bpf_loaded_get(const struct bpf_loaded *l, const char *map, const void *key, void *value)
{
	return l->lib->map_lookup_elem(bpf_loaded_map(l, map), key, value) ? -errno : 0;
}

int bpf_loaded_create(const struct bpf_loaded *l, const char *name,
		      const struct bpf_loaded_shape *shape)
{
	int fd = l->lib->map_create(BPF_MAP_TYPE_LRU_HASH, name, shape->key_size, shape->value_size,
				    shape->entries, NULL);

	return fd < 0 ? -errno : fd;
}

/* Makes records of @cpu be written to the event @fd. Returns 0 or a negative errno. */
static int connect_cpu(const void *arg, int cpu, int fd)
{
	const struct bpf_loaded *l = arg;
	__u32 index = cpu;

	return l->lib->map_update_elem(bpf_loaded_map(l, "output"), &index, &fd, BPF_ANY) ? -errno :
											    0;
}

#define PLACED_AT_ONCE 64 /* rings: each has a descriptor until it is in its place */

/* Rings of a walker's own that are not in their places yet: the CPUs', and the descriptors of their maps. */
struct unplaced {
	__u32 cpus[PLACED_AT_ONCE];
	int fds[PLACED_AT_ONCE];
	__u32 nr;
};

/* Where a walker writes: its maps, and the rings. */
struct connected {
	const struct bpf_loaded *l;
	struct perf_rings *rings;
	struct unplaced *unplaced;
};

/* Makes a ring of a CPU that is read with the others. Returns the descriptor of its map, or -1. */
static int make_chains(const struct connected *c, int cpu)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const int fd = c->l->lib->map_create(BPF_MAP_TYPE_ARRAY, "shstk_ring", sizeof(__u32),
					     sizeof(struct walk_ring), 1, &opts);

	if (fd >= 0 && !perf_rings_chains(c->rings, cpu, fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Puts the rings into their places, all by one call: the kernel waits at the end of each until no program uses what
 * was there before, which takes it milliseconds (from Linux 6.8 on; older ones wait for each place).
 */
static void place_chains(const struct connected *c)
{
	const struct libbpf *lib = c->l->lib;
	const int rings = bpf_loaded_map(c->l, "rings");
	struct unplaced *u = c->unplaced;
	__u32 nr = u->nr;
	const bool failed = nr && lib->map_update_batch(rings, u->cpus, u->fds, &nr, NULL);

	for (__u32 i = 0; i < u->nr; i++) {
		if (failed)
			lib->map_delete_elem(rings, &u->cpus[i]);
		close(u->fds[i]);
	}
	u->nr = 0;
}

/*
 * Gives the walker a ring of its own on a CPU. Without one it writes to the event, too, and has to where the
 * recorder does not know processes by the kernel's own numbers. It does not keep the ring of other events,
 * which nobody reads when these are closed.
 */
static void add_chains(const struct connected *c, int cpu)
{
	const int rings = bpf_loaded_map(c->l, "rings");
	struct unplaced *u = c->unplaced;
	__u32 index = cpu;
	int fd;

	if (rings < 0 || cpu >= WALK_RINGS)
		return;
	fd = make_chains(c, cpu);
	if (fd < 0) {
		c->l->lib->map_delete_elem(rings, &index);
		return;
	}
	u->cpus[u->nr] = index;
	u->fds[u->nr++] = fd;
	if (u->nr == PLACED_AT_ONCE)
		place_chains(c);
}

/* The same for a walker, which may have a ring of its own. */
static int connect_walker(const void *arg, int cpu, int fd)
{
	const struct connected *c = arg;
	const int err = connect_cpu(c->l, cpu, fd);

	if (!err)
		add_chains(c, cpu);
	return err;
}

int bpf_loaded_begin(const struct bpf_loaded *l, struct perf_rings *rings, bool all)
{
	struct unplaced unplaced = { .nr = 0 };
	const struct connected c = { l, rings, &unplaced };
	const int err = perf_rings_connect(rings, connect_walker, &c);

	place_chains(&c);
	if (!err)
		perf_rings_walk(rings, l->program, all);
	return err;
}

int bpf_loaded_connect(const struct bpf_loaded *l, struct perf_rings *rings)
{
	return perf_rings_connect(rings, connect_cpu, l);
}
#endif

int bpf_loaded_open(const char *what, const char *file, const char *name, struct bpf_loaded *ret,
		    struct reason *why)
{
	return bpf_loaded_open_sharing(what, file, name, NULL, 0, ret, why);
}
