// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * walk_test.c - tests the walks of stacks that `shstk broker` lends, as users see them, and as
 * attackers do.
 *
 *   walk_test [SHSTK]
 *
 * It starts the broker and becomes several ordinary users. Prints KTAP.
 */
#include <dirent.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "watch.h"

#include "bpf/lend.h"
#include "bpf/walk.h"

#define ENOUGH 20 /* samples */

static char burner[PATH_MAX], setuid_burner[PATH_MAX];

/* ---- Chains ---- */

static const struct walk_chain *chain_of(const struct perf_event_header *at)
{
	return (const void *)((const uint64_t *)at + BODY);
}

static bool is_whole(const struct walk_chain *c)
{
	return c->end == WALK_WHOLE || c->end == WALK_ZERO;
}

/* ---- Work whose stack is known ---- */

static void *volatile truth[3]; /* the return addresses of innermost(), middle() and outer() */

/*
 * Works until the rings have enough samples or chains, or until @until, which is very late. All that
 * is sampled is sampled in this function.
 */
static __attribute__((noinline)) bool innermost(struct watch *w, int chains, int samples)
{
	const double until = now() + PATIENCE;
	bool ret = false;

	truth[0] = __builtin_return_address(0);
	ioctl(w->event, PERF_EVENT_IOC_ENABLE, 0);
	while (!ret && now() < until) {
		for (volatile int i = 0; i < 1000000; i++)
			;
		ret = count_samples(w->chains) >= chains && count_samples(w->samples) >= samples;
	}
	ioctl(w->event, PERF_EVENT_IOC_DISABLE, 0);
	return ret;
}

static __attribute__((noinline)) bool middle(struct watch *w, int chains, int samples)
{
	bool ret;

	truth[1] = __builtin_return_address(0);
	ret = innermost(w, chains, samples);
	__asm__ volatile("");
	return ret;
}

static __attribute__((noinline)) bool outer(struct watch *w, int chains, int samples)
{
	bool ret;

	truth[2] = __builtin_return_address(0);
	ret = middle(w, chains, samples);
	__asm__ volatile("");
	return ret;
}

/* Works until so many chains and samples have come. Returns false if they do not come. */
static bool work(struct watch *w, int chains, int samples)
{
	bool ret = outer(w, chains, samples);

	if (!ret) {
		printf("# %d chains, %d samples\n", count_samples(w->chains),
		       count_samples(w->samples));
		fflush(stdout);
	}
	return ret;
}

/* Works until there are chains that reached the end: the tables are made meanwhile. */
static bool work_until_whole(struct watch *w, int nr)
{
	const double until = now() + PATIENCE;
	int whole = 0, seen = 0;

	while (whole < nr && now() < until) {
		const struct perf_event_header *at = NULL;

		if (!work(w, seen + 1, 0))
			return false;
		for (seen = whole = 0; (at = next(w->chains, at)); seen++)
			whole += is_whole(chain_of(at));
	}
	return whole >= nr;
}

/* Returns whether the chain has the callers that innermost() had, one after the other. */
static bool is_true(const struct walk_chain *c)
{
	const uint64_t *entry = (const uint64_t *)(c + 1);

	for (uint32_t i = 0; i + 3 <= c->nr; i++)
		if (entry[i] == (uintptr_t)truth[0] && entry[i + 1] == (uintptr_t)truth[1] &&
		    entry[i + 2] == (uintptr_t)truth[2])
			return true;
	return false;
}

/* ---- What is given ---- */

static int is_walked(void *arg)
{
	struct watch w = { 0 };
	const struct perf_event_header *at = NULL;
	int wrong = 0, both = 0;

	(void)arg;
	stay_on_cpu();
	if (!watch(&w, 0) || !work_until_whole(&w, ENOUGH))
		return 1;
	while ((at = next(w.chains, at)))
		wrong += !is_whole(chain_of(at)) || !is_true(chain_of(at)) || chain_of(at)->guesses;
	at = NULL;
	/* A sample that was walked is not taken. */
	for (const struct perf_event_header *s = NULL; (s = next(w.samples, s));)
		while (s->type == PERF_RECORD_SAMPLE && (at = next(w.chains, at)))
			both += ((const uint64_t *)s)[TIME] == ((const uint64_t *)at)[TIME];
	return wrong || both;
}

/* The period, the number of entries and PERF_CONTEXT_USER precede it. */
static uint64_t pc_of(const uint64_t *sample)
{
	return sample[BODY + 3];
}

/*
 * Returns whether @pc is that of the sample next to @time, before or after: kernels set the time of a
 * sample before or after the program runs.
 */
static bool is_pc_at(struct perf_event_mmap_page *page, uint64_t time, uint64_t pc)
{
	const struct perf_event_header *at = NULL;
	uint64_t before = 0;

	while ((at = next(page, at))) {
		const uint64_t *word = (const uint64_t *)at;

		if (at->type != PERF_RECORD_SAMPLE)
			continue;
		if (word[TIME] >= time)
			return pc == before || pc == pc_of(word);
		before = pc_of(word);
	}
	return pc == before;
}

/* Has both taken, and compares each chain with the kernel's own sample. */
static int is_same_as_sample(void *arg)
{
	struct watch w = { 0 };
	const struct perf_event_header *at = NULL;
	int wrong = 0, nr = 0;

	(void)arg;
	stay_on_cpu();
	if (!watch(&w, BROKER_BOTH) || !work_until_whole(&w, ENOUGH))
		return 1;
	while ((at = next(w.chains, at))) {
		const uint64_t *entry = (const uint64_t *)(chain_of(at) + 1);

		nr++;
		wrong += !is_pc_at(w.samples, ((const uint64_t *)at)[TIME], entry[1]);
	}
	printf("# %d chains beside samples, %d differ\n", nr, wrong);
	fflush(stdout);
	return wrong || nr < ENOUGH;
}

/* A process that begins later inherits the event, with the lease. */
static int child_is_walked(void *arg)
{
	const double until = now() + PATIENCE;
	struct watch w = { 0 };
	pid_t pid;

	(void)arg;
	stay_on_cpu();
	if (!watch(&w, 0) || ioctl(w.event, PERF_EVENT_IOC_ENABLE, 0))
		return 1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	while (chains_of(w.chains, pid) < ENOUGH && now() < until)
		nap();
	end(pid);
	return chains_of(w.chains, pid) < ENOUGH;
}

/*
 * Has a process walked that executes a program, from then on. Returns how many chains and samples there
 * are of it, or -1. @status receives how it ended.
 */
static int chains_of_program(const char *program, int *status)
{
	struct watch w = { 0 };
	int go[2], nr = -1;
	pid_t pid;
	char c;

	stay_on_cpu();
	w.token = ask_lease(BROKER_BOTH, &w.lease);
	if (w.token < 0 || pipe2(go, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		if (read(go[0], &c, 1) == 1)
			execl(program, program, "burn", NULL);
		_exit(9);
	}
	if (watch_by(&w, ask_walked(pid, BROKER_ON_EXEC, w.lease), ask_output(w.lease)) &&
	    write(go[1], "", 1) == 1)
		nr = 0;
	close(go[1]);
	waitpid(pid, status, 0);
	if (!nr)
		nr = chains_of(w.chains, pid) + chains_of(w.samples, pid);
	unwatch(&w);
	return nr;
}

#define GAINS_NOTHING 4

static int leaves_setuid(void *arg)
{
	int status, plain_status, gained = chains_of_program(setuid_burner, &status);
	const int plain = chains_of_program(burner, &plain_status);

	(void)arg;
	printf("# %d of a plain program, %d of one that gains rights\n", plain, gained);
	fflush(stdout);
	/* The program's status tells whether it is root. */
	if (WEXITSTATUS(status) != 7 || WEXITSTATUS(plain_status))
		return GAINS_NOTHING;
	/* How many samples a program gets depends on how fast the machine is. */
	return plain < 1 || gained;
}

static void test_setuid(void)
{
	const char *fact = "of a set-user-ID program nothing comes";
	const int status = as(FIRST, leaves_setuid, NULL);

	if (status == GAINS_NOTHING)
		skip(fact, "set-user-ID programs gain nothing here");
	else
		verdict(!status, fact);
}

/* Returns the process that makes tables for the broker, or 0. */
static pid_t find_maker(void)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;
	pid_t ret = 0;

	while (all && !ret && (entry = readdir(all))) {
		char path[PATH_MAX], name_[16] = "", state;
		int pid, parent = 0;
		FILE *stat;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		stat = atoi(entry->d_name) ? fopen(path, "r") : NULL;
		if (!stat)
			continue;
		if (fscanf(stat, "%d (%15[^)]) %c %d", &pid, name_, &state, &parent) == 4 &&
		    parent == broker && !strcmp(name_, "shstk tables"))
			ret = pid;
		fclose(stat);
	}
	if (all)
		closedir(all);
	return ret;
}

static bool memory_is_bounded(void)
{
	struct rlimit limit;
	const pid_t maker = find_maker();

	return maker && !prlimit(maker, RLIMIT_AS, NULL, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

static void test_given(void)
{
	verdict(!as(FIRST, is_walked, NULL),
		"a user's process is walked to its end, with all callers, instead of being sampled");
	verdict(!as(FIRST, is_same_as_sample, NULL), "a chain begins where its sample does");
	verdict(!as(FIRST, child_is_walked, NULL), "what the process starts is walked, too");
	verdict(memory_is_bounded(), "the process that makes tables has a bound for its memory");
}

/* ---- Wrong requests ---- */

static int wrong_fields(void *arg)
{
	uint32_t lease = 0;
	const int token = ask_lease(0, &lease);
	const struct broker_request of_lease = { .version = BROKER_VERSION,
						 .kind = BROKER_LEASE,
						 .max_stack = 64 },
				    of_output = { .version = BROKER_VERSION,
						  .kind = BROKER_OUTPUT,
						  .cpu = cpu,
						  .lease = lease };
	const struct {
		const struct broker_request *good;
		size_t at;
		uint32_t value;
		int error;
	} cases[] = {
		{ &of_lease, offsetof(struct broker_request, flags), BROKER_ON_EXEC, EINVAL },
		{ &of_lease, offsetof(struct broker_request, flags), 32, EINVAL },
		{ &of_lease, offsetof(struct broker_request, tid), 1, EINVAL },
		{ &of_lease, offsetof(struct broker_request, proof), 1, EINVAL },
		{ &of_lease, offsetof(struct broker_request, cpu), 1, EINVAL },
		{ &of_lease, offsetof(struct broker_request, freq), 1, EINVAL },
		{ &of_lease, offsetof(struct broker_request, copy), 8, EINVAL },
		{ &of_lease, offsetof(struct broker_request, lease), lease, EINVAL },
		{ &of_lease, offsetof(struct broker_request, max_stack), 0, EINVAL },
		{ &of_lease, offsetof(struct broker_request, max_stack), 65536, EINVAL },
		{ &of_output, offsetof(struct broker_request, flags), BROKER_BOTH, EINVAL },
		{ &of_output, offsetof(struct broker_request, tid), 1, EINVAL },
		{ &of_output, offsetof(struct broker_request, max_stack), 1, EINVAL },
		{ &of_output, offsetof(struct broker_request, cpu), BROKER_MAX_CPUS, EINVAL },
		{ &of_output, offsetof(struct broker_request, lease), 0, EINVAL },
		{ &of_output, offsetof(struct broker_request, lease), lease + LEASES, EPERM },
		{ &of_output, offsetof(struct broker_request, lease), lease ^ 1, EPERM },
	};
	int wrong = token < 0;

	(void)arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct broker_request bad = *cases[i].good;
		int got;

		memcpy((char *)&bad + cases[i].at, &cases[i].value, sizeof(uint32_t));
		got = ask(&bad);
		if (got != -cases[i].error) {
			printf("# case %zu: %d\n", i, got);
			wrong++;
		}
	}
	wrong += ask(&of_output) < 0 || ask(&of_output) != -EEXIST;
	return wrong;
}

static void test_wrong(void)
{
	verdict(!as(FIRST, wrong_fields, NULL),
		"each field of requests for leases and outputs has its bounds");
}

/* ---- Another user's lease ---- */

static int output_of_another(void *arg)
{
	return ask_output(*(uint32_t *)arg) != -EPERM;
}

/* Has this process, of another user than the lease at @arg, sampled under that lease. */
static int is_sampled_only(void *arg)
{
	struct watch *w = arg;

	stay_on_cpu();
	w->event = ask_walked(getpid(), 0, w->lease);
	w->samples = w->event < 0 ? NULL : map_ring(w->event);
	return !w->samples || !work(w, 0, ENOUGH);
}

static int has_lease(void *arg)
{
	struct watch *w = arg;
	struct watch own = { 0 };

	/* The event is opened to find out whether the lease works at all. */
	stay_on_cpu();
	if (!watch(&own, BROKER_BOTH) || !work(&own, 1, 0))
		return 1;
	*w = own;
	/* The output is closed with this process, if nobody else has it. */
	return 0;
}

#define FAILED 100

/*
 * FIRST makes a lease in a process of its own, and tells the test its number. It keeps the lease until
 * it is told to end, and says then how many chains came meanwhile.
 */
static int keeps_lease(void *arg)
{
	int *way = arg; /* to tell the lease, to hear that all is done */
	struct watch w = { 0 };
	int before, came;
	char c;

	if (has_lease(&w))
		return FAILED;
	before = count_samples(w.chains);
	if (write(way[0], &w.lease, sizeof(w.lease)) != sizeof(w.lease) || read(way[1], &c, 1) != 1)
		return FAILED;
	came = count_samples(w.chains) - before;
	return came < FAILED ? came : FAILED - 1;
}

/* Makes a process of FIRST that has a lease. Returns its number, 0: it has none. */
static pid_t make_keeper(int *tell, uint32_t *lease)
{
	int told[2], go[2], way[2];
	pid_t pid;

	*lease = 0;
	if (pipe2(told, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return 0;
	way[0] = told[1], way[1] = go[0];
	pid = fork();
	if (!pid) {
		become(FIRST);
		alarm(PATIENCE);
		_exit(keeps_lease(way));
	}
	close(told[1]);
	close(go[0]);
	if (read(told[0], lease, sizeof(*lease)) != sizeof(*lease))
		*lease = 0;
	close(told[0]);
	*tell = go[1];
	return pid;
}

/* Returns how many chains have come to the keeper of the lease since; -1: it failed. */
static int end_keeper(pid_t pid, int tell)
{
	bool told = write(tell, "", 1) == 1;
	int status;

	waitpid(pid, &status, 0);
	close(tell);
	return told && WIFEXITED(status) && WEXITSTATUS(status) < FAILED ? WEXITSTATUS(status) : -1;
}

/* ---- Identities ---- */

/* Returns the number of the BPF program whose descriptor the broker has, or 0. */
static uint32_t number_of_program(void)
{
	uint32_t ret = 0;

	for (int fd = 0; fd < 256 && !ret; fd++) {
		char path[64], line[256];
		FILE *info;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)broker, fd);
		info = fopen(path, "r");
		while (info && !ret && fgets(line, sizeof(line), info))
			if (sscanf(line, "prog_id: %u", &ret) != 1)
				ret = 0;
		if (info)
			fclose(info);
	}
	return ret;
}

/* Returns a descriptor of the broker's program, which only root can have, or -1. */
static int find_program(void)
{
	union bpf_attr attr = { .prog_id = number_of_program() };

	return syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr.prog_id));
}

/**
 * struct identity - a process with an event under a lease, which root opened
 * @real: its real user.
 * @effective: its effective user.
 * @saved: its saved user.
 * @lease: number of the lease.
 * @program: the program.
 */
struct identity {
	uid_t real, effective, saved;
	uint32_t lease;
	int program;
};

/* Works under a lease as somebody else. The events of root do not end meanwhile. */
static int works_as(const struct identity *it)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.config1 = it->lease,
		.sample_period = 1000000,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.exclude_kernel = 1,
		.disabled = 1,
	};
	struct watch w = { .chains = empty_ring() };

	stay_on_cpu();
	w.event = syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	w.samples = w.event < 0 ? NULL : map_ring(w.event);
	if (!w.samples || ioctl(w.event, PERF_EVENT_IOC_SET_BPF, it->program) ||
	    setresuid(it->real, it->effective, it->saved))
		return 1;
	/* The lease is one of those by which samples are taken in any case. */
	return !work(&w, 0, ENOUGH);
}

static bool works(const struct identity *it)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(PATIENCE);
		_exit(works_as(it));
	}
	waitpid(pid, &status, 0);
	return !status;
}

/* Returns how many chains come to FIRST of processes with one of these identities; -1: it failed. */
static int chains_by(const uid_t (*who)[3], size_t nr)
{
	struct identity it = { .program = find_program() };
	bool all = it.program >= 0;
	int tell = -1, came;
	pid_t keeper = make_keeper(&tell, &it.lease);

	for (size_t i = 0; i < nr; i++) {
		it.real = who[i][0], it.effective = who[i][1], it.saved = who[i][2];
		all &= works(&it);
	}
	close(it.program);
	came = end_keeper(keeper, tell);
	return all && it.lease ? came : -1;
}

static void test_others(void)
{
	static const uid_t own[1][3] = { { FIRST, FIRST, FIRST } };
	static const uid_t others[][3] = { { SECOND, SECOND, SECOND }, { FIRST, FIRST, 0 },
					   { FIRST, 0, FIRST },	       { 0, FIRST, FIRST },
					   { FIRST, SECOND, FIRST },   { 0, 0, 0 } };
	struct watch w = { .chains = empty_ring() };
	bool sampled, refused;
	int tell = -1, came = 0;
	pid_t keeper = make_keeper(&tell, &w.lease);

	refused = w.lease && !as(SECOND, output_of_another, &w.lease);
	sampled = w.lease && !as(SECOND, is_sampled_only, &w);
	verdict(refused, "the output of another's lease is refused");
	verdict(sampled, "who has events under another's lease gets samples of these");
	verdict(!end_keeper(keeper, tell), "and the other nothing");
	verdict(!chains_by(others, sizeof(others) / sizeof(*others)),
		"of who has another identity, beside the user's too, nothing comes to the user");
	/* On a CPU that was taken away in the middle of a walk, none is made for a while. */
	for (int i = 0; i < 20 && !came; i++)
		came = chains_by(own, 1);
	verdict(came > 0, "while the user's own chains come");
}

/* ---- Walks that go on when their lease ends ---- */

/* Returns a descriptor of a map of the program, which only root can have, or -1. */
static int find_map(int program, const char *wanted)
{
	uint32_t numbers[32] = { 0 };
	struct bpf_prog_info info = { .nr_map_ids = 32, .map_ids = (uintptr_t)numbers };
	union bpf_attr of_program = {
		.info = { .bpf_fd = program, .info_len = sizeof(info), .info = (uintptr_t)&info }
	};

	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &of_program, sizeof(of_program.info)))
		return -1;
	for (uint32_t i = 0; i < info.nr_map_ids && i < 32; i++) {
		union bpf_attr by_number = { .map_id = numbers[i] };
		int fd = syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, &by_number,
				 sizeof(by_number.map_id));
		struct bpf_map_info map = { 0 };
		union bpf_attr of_map = {
			.info = { .bpf_fd = fd, .info_len = sizeof(map), .info = (uintptr_t)&map }
		};

		if (!syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &of_map, sizeof(of_map.info)) &&
		    !strcmp(map.name, wanted))
			return fd;
		close(fd);
	}
	return -1;
}

/* A kernel takes all that follows for 0. */
#define ENTRY_SIZE (offsetof(union bpf_attr, flags) + sizeof(uint64_t))

static bool set_entry(int map, uint32_t at, const void *value)
{
	union bpf_attr attr = {
		.map_fd = map, .key = (uintptr_t)&at, .value = (uintptr_t)value, .flags = BPF_ANY
	};

	return !syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, ENTRY_SIZE);
}

static bool get_entry(int map, uint32_t at, void *ret)
{
	union bpf_attr attr = { .map_fd = map, .key = (uintptr_t)&at, .value = (uintptr_t)ret };

	return !syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, ENTRY_SIZE);
}

/* Opens an output as the broker does. Its records have what records of outputs have. */
static int open_output(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_RAW,
		.sample_period = 1,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static volatile bool forever = true;

/*
 * Calls itself until the stack is nearly as deep as a chain can be, and works there forever. Only whole
 * chains are written when the lease, with what it asks for, has ended.
 */
static __attribute__((noinline)) int deep(int more)
{
	if (more)
		return deep(more - 1) + 1;
	while (forever)
		;
	return 0;
}

#define DEEPER 40
#define PERIOD 200000 /* ns between samples */

/* Has a lease, tells its number by @arg, and is walked all the time, more often if that is permitted. */
static int is_walked_on(void *arg)
{
	struct watch w = { 0 };
	uint64_t period = PERIOD;
	int *way = arg;

	if (has_lease(&w))
		return 1;
	ioctl(w.event, PERF_EVENT_IOC_PERIOD, &period);
	if (ioctl(w.event, PERF_EVENT_IOC_ENABLE, 0) ||
	    write(way[1], &w.lease, sizeof(w.lease)) != sizeof(w.lease))
		return 1;
	return deep(DEEPER);
}

#define ENDS_SECONDS 1.5

/*
 * Ends a lease again and again, while walks go on for it, by its entry in the map. Returns how many chains
 * come to the place of number 0, which a lease that has ended has; -1: it failed.
 */
static int ends_again_and_again(uint32_t lease, int leases, int output)
{
	static const struct walk_lease none;
	const double until = now() + ENDS_SECONDS;
	struct walk_lease is = { 0 };
	const int event = open_output();
	struct perf_event_mmap_page *ring = event < 0 ? NULL : map_ring(event);
	bool good = ring && LEASE_SLOT(lease) && set_entry(output, LEASE_OUTPUT(0, cpu), &event) &&
		    get_entry(leases, LEASE_SLOT(lease), &is) && is.number == lease;
	int ends = 0;

	for (; good && now() < until && !count_samples(ring); ends++)
		good = set_entry(leases, LEASE_SLOT(lease), &none) &&
		       set_entry(leases, LEASE_SLOT(lease), &is);
	printf("# the lease ended %d times\n", ends);
	fflush(stdout);
	return good ? count_samples(ring) : -1;
}

static void test_end_of_walks(void)
{
	const int program = find_program();
	const int leases = find_map(program, "leases"), output = find_map(program, "output");
	uint32_t lease = 0;
	int way[2], came = -1;
	pid_t pid;

	if (pipe2(way, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid) {
		become(FIRST);
		alarm(PATIENCE);
		_exit(is_walked_on(way));
	}
	close(way[1]);
	if (read(way[0], &lease, sizeof(lease)) == sizeof(lease))
		came = ends_again_and_again(lease, leases, output);
	end(pid);
	close(way[0]);
	close(program);
	close(leases);
	close(output);
	verdict(!came, "a chain whose lease ended during the walk goes to nobody else");
}

/* ---- The end of a lease ---- */

/*
 * Works until walks are not lent any more: only samples come. One sample alone may have come instead of a chain
 * because its walk was not whole.
 */
static int is_sampled_after(struct watch *w)
{
	const double until = now() + PATIENCE;
	int chains;

	do {
		chains = count_samples(w->chains);
		if (!work(w, 0, count_samples(w->samples) + ENOUGH))
			return 1;
	} while (count_samples(w->chains) != chains && now() < until);
	return count_samples(w->chains) != chains;
}

static int ends_with_token(void *arg)
{
	struct watch w = { 0 };

	(void)arg;
	stay_on_cpu();
	if (!watch(&w, 0) || !work_until_whole(&w, 1) || close(w.token))
		return 1;
	return is_sampled_after(&w) || ask_output(w.lease) != -EPERM;
}

/* A lease lasts as long as any process has its token. */
static int lasts_with_copy(void *arg)
{
	struct watch w = { 0 };
	pid_t holder;
	int ret;

	(void)arg;
	stay_on_cpu();
	if (!watch(&w, 0))
		return 1;
	holder = idle();
	close(w.token);
	/* Longer than the broker takes to see that nobody has it. */
	for (int i = 0; i < 300; i++)
		nap();
	ret = !work_until_whole(&w, 1);
	end(holder);
	return ret || is_sampled_after(&w);
}

/* The token can be neither filled nor opened again to be filled. */
static int token_is_empty(void *arg)
{
	uint32_t lease;
	const int token = ask_lease(0, &lease);
	char path[64];

	(void)arg;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", token);
	return token < 0 || write(token, "", 1) >= 0 || open(path, O_WRONLY | O_NONBLOCK) >= 0;
}

static void test_end(void)
{
	verdict(!as(FIRST, ends_with_token, NULL),
		"a lease ends with its token, and samples are taken from then on");
	verdict(!as(FIRST, lasts_with_copy, NULL), "it lasts as long as somebody has the token");
	verdict(!as(FIRST, token_is_empty, NULL), "into which nobody can write");
}

/* ---- Many leases ---- */

static int takes_all(void *arg)
{
	int *way = arg;
	uint32_t lease;
	int n = 0, last;
	char c;

	while ((last = ask_lease(0, &lease)) >= 0 && n < LEASES)
		n++;
	printf("# %d leases of one user\n", n);
	fflush(stdout);
	if (write(way[0], "", 1) != 1 || read(way[1], &c, 1) != 1)
		return 1;
	return last != -EDQUOT || n < 2 || n > LEASES / 2;
}

static int gets_lease(void *arg)
{
	const double until = now() + PATIENCE;
	uint32_t lease;
	int got;

	(void)arg;
	/* Places of leases that have ended are free after a while. */
	while ((got = ask_lease(0, &lease)) == -EDQUOT && now() < until)
		nap();
	return got < 0;
}

static int gets_lease_at_once(void *arg)
{
	uint32_t lease;

	(void)arg;
	return ask_lease(0, &lease) < 0;
}

/* Asks for a lease on a connection, which is made anew where the broker has ended it. */
static int ask_lease_on(int *connection, uint32_t *number_)
{
	const struct broker_request r = { .version = BROKER_VERSION,
					  .kind = BROKER_LEASE,
					  .max_stack = 64 };
	struct broker_reply reply;
	int ret;

	for (;;) {
		reply = (struct broker_reply){ 0 };
		send(*connection, &r, sizeof(r), MSG_NOSIGNAL);
		ret = answer_to(*connection, &reply);
		*number_ = reply.lease;
		if (ret != -EBUSY && ret != -EPIPE)
			return ret;
		nap();
		close(*connection);
		*connection = dial();
	}
}

/* Takes leases and gives them back, as fast as possible. */
static int takes_and_gives_back(void *arg)
{
	int given = 0, twice = 0, connection = dial();
	uint32_t before = 0, lease;

	(void)arg;
	for (int i = 0; i < 3 * LEASES; i++) {
		int token = ask_lease_on(&connection, &lease);

		given += token >= 0;
		twice += token >= 0 && lease == before;
		before = token >= 0 ? lease : before;
		close(token);
	}
	printf("# %d of %d leases were given\n", given, 3 * LEASES);
	fflush(stdout);
	return !given || twice;
}

/* Asks again and again and reads no answer. */
static int does_not_read(void *arg)
{
	const struct broker_request r = { .version = BROKER_VERSION,
					  .kind = BROKER_LEASE,
					  .max_stack = 64 };
	int fd = dial(), n = 0;

	(void)arg;
	while (n < 100000 && send(fd, &r, sizeof(r), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		n++;
	close(fd);
	return gets_lease(NULL);
}

static void test_many(void)
{
	int told[2], go[2], way[2], status = 1;
	bool other;
	pid_t pid;
	char c;

	if (pipe2(told, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return;
	way[0] = told[1], way[1] = go[0];
	pid = fork();
	if (!pid) {
		become(GREEDY);
		alarm(PATIENCE);
		_exit(takes_all(way));
	}
	close(told[1]);
	other = read(told[0], &c, 1) == 1 && !as(MODEST, gets_lease_at_once, NULL);
	if (write(go[1], "", 1) == 1)
		waitpid(pid, &status, 0);
	verdict(!status, "a user has no more than half as many leases as are left");
	verdict(other, "so another user has one at once");
	verdict(!as(GREEDY, gets_lease, NULL), "and the first one again, when these have ended");
	verdict(!as(GREEDY, takes_and_gives_back, NULL) && !as(MODEST, gets_lease_at_once, NULL),
		"after three times as many as there are, given back, another user has one at once");
	verdict(!as(SILENT, does_not_read, NULL), "who does not read the answers keeps no lease");
}

/* ---- The broker ---- */

/* ---- The process that makes tables ---- */

/* Returns whether the broker's messages, so far, have the text. */
static bool has_said(const char *text)
{
	char path[PATH_MAX], line[1024];
	bool ret = false;
	FILE *said;

	snprintf(path, sizeof(path), "%s/broker.log", folder);
	said = fopen(path, "r");
	while (said && !ret && fgets(line, sizeof(line), said))
		ret = strstr(line, text);
	if (said)
		fclose(said);
	return ret;
}

/* Kills the process that makes tables. Returns the seconds until there is another one; 0: none came. */
static double kill_maker(void)
{
	const pid_t maker = find_maker();
	const double begin = now();
	pid_t next_;

	if (!maker)
		return 0;
	kill(maker, SIGKILL);
	do {
		nap();
		next_ = find_maker();
	} while ((!next_ || next_ == maker) && now() < begin + PATIENCE);
	return next_ && next_ != maker ? now() - begin : 0;
}

static void test_maker(void)
{
	const bool first = kill_maker() >= 1 && has_said("it is begun again in 1 s");
	/* The program is loaded before the broker answers again. */
	const bool walked = first && !as(FIRST, gets_lease, NULL) && !as(FIRST, is_walked, NULL);

	verdict(first, "the process that makes tables is begun again, which the broker says");
	verdict(walked, "a user's process is walked as before");
	verdict(kill_maker() >= 2 && has_said("it is begun again in 2 s"),
		"the next time it takes longer");
}

static int outlives_broker(void *arg)
{
	int *way = arg;
	struct watch w = { 0 };
	char c;

	stay_on_cpu();
	if (!watch(&w, 0) || !work_until_whole(&w, 1))
		return 1;
	if (write(way[0], "", 1) != 1 || read(way[1], &c, 1) != 1)
		return 2;
	return is_sampled_after(&w);
}

/* Kills the broker while a user has a lease. */
static void test_kill(void)
{
	int told[2], go[2], way[2], status = 1;
	pid_t pid;
	char c;

	if (pipe2(told, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return;
	way[0] = told[1], way[1] = go[0];
	pid = fork();
	if (!pid) {
		become(FIRST);
		alarm(PATIENCE);
		_exit(outlives_broker(way));
	}
	close(told[1]);
	if (read(told[0], &c, 1) == 1) {
		end(broker);
		if (write(go[1], "", 1) != 1)
			printf("# the user has ended\n");
	}
	waitpid(pid, &status, 0);
	verdict(!status, "without the broker samples are taken");
}

static int has_no_lease(void *arg)
{
	uint32_t lease;

	(void)arg;
	return ask_lease(0, &lease) != -EOPNOTSUPP || ask_walked(getpid(), 0, 1) != -EOPNOTSUPP ||
	       ask_for(getpid()) < 0;
}

static void test_switched_off(void)
{
	int status;

	start("--no-walk");
	verdict(!as(FIRST, has_no_lease, NULL), "with --no-walk events are lent, and no walks");
	kill(broker, SIGTERM);
	waitpid(broker, &status, 0);
}

/* ---- Start and end ---- */

/* Works for half a second of CPU time. Returns a number that tells whether this is root. */
static int burn(void)
{
	const clock_t until = clock() + CLOCKS_PER_SEC / 2;

	while (clock() < until)
		for (volatile int i = 0; i < 100000; i++)
			;
	return geteuid() ? 0 : 7;
} /* Copies this program. @path receives the copy's name. */
static void copy_self(char *path, const char *as_name, mode_t mode)
{
	char bytes[65536];
	int in = open("/proc/self/exe", O_RDONLY), out;
	ssize_t n;

	snprintf(path, PATH_MAX, "%s/%s", folder, as_name);
	out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, n) != n)
			break;
	close(in);
	fchmod(out, mode);
	close(out);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "burn"))
		return burn();
	prepare(argc, argv);
	puts("1..25");
	copy_self(burner, "burner", 0755);
	copy_self(setuid_burner, "setuid", 04755);
	start(NULL);
	test_given();
	test_setuid();
	test_wrong();
	test_others();
	test_end_of_walks();
	test_end();
	test_many();
	test_maker();
	test_kill();
	test_switched_off();
	return !!failed;
}
