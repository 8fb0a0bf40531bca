/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * watch.h - a broker that lends, in tests of it: starts it, and has threads of users watched under a
 * lease.
 */
#ifndef SELFTESTS_BROKER_WATCH_H
#define SELFTESTS_BROKER_WATCH_H

#include <libgen.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "client.h"
#include "facts.h"

/* IDs of users that do not exist. */
enum { FIRST = 65100, SECOND, GREEDY, MODEST, SILENT };

#define PAGES 64
#define CAP_BPF_NR 39

static char folder[] = "/tmp/broker-walk-XXXXXX", shstk[PATH_MAX + 32];
static pid_t broker;

/* ---- What a user has ---- */

/**
 * struct watch - a lease with the event of a thread and the output on CPU @cpu
 * @lease: number of the lease.
 * @token: its token.
 * @event: the event of the thread.
 * @output: the output.
 * @samples: the ring of @event.
 * @chains: the ring of @output.
 */
struct watch {
	uint32_t lease;
	int token, event, output;
	struct perf_event_mmap_page *samples, *chains;
};

static int ask_lease(uint32_t flags, uint32_t *number_)
{
	const struct broker_request r = {
		.version = BROKER_VERSION,
		.kind = BROKER_LEASE,
		.flags = flags,
		.max_stack = 64,
	};
	struct broker_reply reply = { 0 };
	int ret = ask_to(&r, &reply);

	*number_ = reply.lease;
	return ret;
}

static int ask_output(uint32_t lease)
{
	const struct broker_request r = {
		.version = BROKER_VERSION,
		.kind = BROKER_OUTPUT,
		.cpu = cpu,
		.lease = lease,
	};

	return ask(&r);
}

/* Asks for the event of a thread by which it is walked under a lease. */
static int ask_walked(pid_t tid, uint32_t flags, uint32_t lease)
{
	const int proof = proof_of(tid);
	struct broker_request r = request_of(tid, proof);
	int ret;

	r.flags = flags;
	r.copy = 0;
	r.lease = lease;
	ret = ask(&r);
	close(proof);
	return ret;
}

static struct perf_event_mmap_page *map_ring(int fd)
{
	void *page = mmap(NULL, (PAGES + 1) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* Has this thread watched by the event @event, under a lease that has the output @output. */
static bool watch_by(struct watch *w, int event, int output)
{
	w->event = event;
	w->output = output;
	w->samples = event < 0 ? NULL : map_ring(event);
	w->chains = output < 0 ? NULL : map_ring(output);
	if (w->samples && w->chains)
		return true;
	printf("# lease %d, event %d, output %d, rings %p %p\n", w->token, event, output,
	       (void *)w->samples, (void *)w->chains);
	fflush(stdout);
	return false;
}

static bool watch(struct watch *w, uint32_t flags)
{
	w->token = ask_lease(flags, &w->lease);
	return watch_by(w, ask_walked(getpid(), 0, w->lease), ask_output(w->lease));
}

/* Gives back what is watched, and with it the memory that a user may lock. */
static void __attribute__((unused)) unwatch(const struct watch *w)
{
	const size_t size = (PAGES + 1) * sysconf(_SC_PAGESIZE);

	if (w->samples)
		munmap(w->samples, size);
	if (w->chains)
		munmap(w->chains, size);
	close(w->event);
	close(w->output);
	close(w->token);
}

static void stay_on_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* ---- Records ---- */

/* Returns the record behind @at in a ring that nobody reads, or NULL. */
static const struct perf_event_header *next(struct perf_event_mmap_page *page,
					    const struct perf_event_header *at)
{
	const char *data = (char *)page + sysconf(_SC_PAGESIZE);
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const char *to = at ? (const char *)at + at->size : data;

	return to < data + head && head <= PAGES * (uint64_t)sysconf(_SC_PAGESIZE) ?
		       (const void *)to :
		       NULL;
}

/* The words of a sample: header, identifier, process and thread, time, then what it has. */
enum { PROCESS = 2, TIME, BODY };

static int __attribute__((unused)) count_samples(struct perf_event_mmap_page *page)
{
	const struct perf_event_header *at = NULL;
	int n = 0;

	while ((at = next(page, at)))
		n += at->type == PERF_RECORD_SAMPLE;
	return n;
}

/* Returns how many chains of a process are in the ring. */
static int __attribute__((unused)) chains_of(struct perf_event_mmap_page *page, pid_t pid)
{
	const struct perf_event_header *at = NULL;
	int n = 0;

	while ((at = next(page, at)))
		n += at->type == PERF_RECORD_SAMPLE &&
		     (pid_t)((const uint64_t *)at)[PROCESS] == pid;
	return n;
}

/* Returns a ring that nobody writes to, for work() to look into. */
static __attribute__((unused)) struct perf_event_mmap_page *empty_ring(void)
{
	return mmap(NULL, (PAGES + 1) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* ---- The broker that lends ---- */

/* Limits the rights as shstk-broker.service does (CapabilityBoundingSet=, NoNewPrivileges=). */
static void limit_rights(void)
{
	static const int rights[] = { CAP_BPF_NR,	   CAP_PERFMON_NR, CAP_SYS_ADMIN,
				      CAP_SYS_PTRACE,	   CAP_SETUID,	   CAP_SETGID,
				      CAP_DAC_READ_SEARCH, CAP_KILL };

	keep_rights(rights, sizeof(rights) / sizeof(*rights));
}

static void start(const char *option)
{
	char socket[PATH_MAX + 16], log[PATH_MAX];
	double until = now() + PATIENCE;
	int fd;

	snprintf(name, sizeof(name), "%s/socket", folder);
	snprintf(socket, sizeof(socket), "--socket=%s", name);
	broker = fork();
	if (!broker) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		limit_rights();
		snprintf(log, sizeof(log), "%s/broker.log", folder);
		if (!freopen(log, "a", stderr))
			_exit(98);
		execl(shstk, "shstk", "broker", socket, option, NULL);
		_exit(99);
	}
	while ((fd = dial()) < 0 && now() < until && !waitpid(broker, NULL, WNOHANG))
		nap();
	close(fd);
}

static void remove_folder(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		printf("# %s remains\n", folder);
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* Skips the test if the kernel does not load the walk even for root. Chooses the CPU. */
static void check_requirements(void)
{
	char command[2 * PATH_MAX];
	struct statfs fs;
	cpu_set_t set;

	if (geteuid())
		skip_all("needs root to be several users");
	if (as(FIRST, nothing, NULL))
		skip_all("root has no other users here, as in some containers");
	if (statfs("/proc/self/exe", &fs) || (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC)
		skip_all("an overlay may tell other inode numbers than the kernel");
	snprintf(command, sizeof(command),
		 "%s record --via=bpf -o %s/out.folded -- true >%s/said 2>&1", shstk, folder,
		 folder);
	if (system(command)) {
		snprintf(command, sizeof(command), "sed 's/^/# /' %s/said", folder);
		if (system(command))
			printf("# nothing is said\n");
		fflush(stdout);
		skip_all("the walk in BPF cannot be loaded here");
	}
	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
}

/*
 * Finds the command, which is named by the first argument or else lies where it is built, and makes the
 * folder. Skips the test if nothing can be lent here.
 */
static void prepare(int argc, char **argv)
{
	char own[PATH_MAX];

	snprintf(own, sizeof(own), "%s", argv[0]);
	if (argc > 1)
		snprintf(shstk, sizeof(shstk), "%s", argv[1]);
	else
		snprintf(shstk, sizeof(shstk), "%s/../../shstk", dirname(own));
	puts("KTAP version 1");
	if (!mkdtemp(folder) || chmod(folder, 0755))
		skip_all("no folder can be made in /tmp");
	atexit(remove_folder);
	check_requirements();
}

#endif
