// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rhythm_test.c - tests how often the recorder looks at its rings, and that the rings have room for
 * what comes meanwhile.
 *
 * The whole recorder runs, `shstk record`. The clock, the kernel's rings and the command are
 * replaced when this is linked: time passes only while the recorder sleeps, in steps of a
 * millisecond, in which the command does what the test says. So it does not matter how busy the
 * machine is. Prints KTAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/record/targets/target.h"
#include "tools/shstk.h"

#define MS 1000000ull
#define STACK 8192 /* bytes of a copied stack */
#define BEGIN 1000000000000ull /* time at which recording begins, ns */
#define CHILD 100000000 /* no process has this number */
#define MAX_FDS 4096
#define MAX_NAPS 1024
#define MAX_RING (16u << 20)
#define SHORT 20 /* ms that the recorder sleeps */
#define LONG 100 /* ms that it sleeps if all is calm */
#define CALM 200 /* ms after which all is calm */
#define EARLY 500 /* ms of a beginning, in which nothing is calm */

struct perf_record_head {
	struct perf_event_header head;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time;
};

/**
 * struct machine - a kernel with one CPU that works, and a command
 * @time: time of the clock.
 * @end: time at which the command ends.
 * @tick: does what happens in millisecond @ms after the begin.
 * @fds: descriptors of events that are open. @page, @data, @size: the ring.
 * @written: number of samples written to the ring so far.
 * @lost: number of records that found the ring full.
 * @fork_at: position of the first fork in the ring, if @forked.
 * @fork_seen: time at which its record was read.
 * @naps: how long the recorder slept, and since when.
 * @seen_end: time at which it waited for the command.
 */
struct machine {
	uint64_t time;
	uint64_t end;
	void (*tick)(unsigned int ms);
	bool fds[MAX_FDS];
	struct perf_event_mmap_page *page;
	uint8_t *data;
	size_t size;
	uint64_t written, lost;
	bool forked;
	uint64_t fork_at, fork_seen;
	struct {
		unsigned int at, ms;
	} naps[MAX_NAPS];
	unsigned int nr_naps;
	uint64_t seen_end;
};

static struct machine m;

static unsigned int ms_of(uint64_t time)
{
	return (time - BEGIN) / MS;
}

/* ---- The ring ---- */

static void put(uint64_t at, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		m.data[(at + i) & (m.size - 1)] = ((const uint8_t *)from)[i];
}

static bool write_record(const void *record, size_t size)
{
	uint64_t head = m.page->data_head, tail = m.page->data_tail;

	if (head + size - tail > m.size) {
		m.lost++;
		return false;
	}
	put(head, record, size);
	__atomic_store_n(&m.page->data_head, head + size, __ATOMIC_RELEASE);
	return true;
}

/* Writes a sample of a thread without user-space registers: only its size matters. */
static void sample(void)
{
	struct {
		struct perf_record_head common;
		uint64_t period, nr, abi, size, stack[STACK / 8], used;
	} s = {
		.common = { .head = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(s) },
			    .pid = getpid(),
			    .tid = getpid(),
			    .time = m.time },
		.period = MS,
		.size = STACK,
	};

	m.written += write_record(&s, sizeof(s));
}

struct trailer {
	uint32_t pid, tid;
	uint64_t time, id;
};

static void execute(void)
{
	struct {
		struct perf_event_header head;
		uint32_t pid, tid;
		char comm[16];
		struct trailer trailer;
	} r = {
		.head = { PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, sizeof(r) },
		.pid = getpid(),
		.tid = getpid(),
		.comm = "command",
		.trailer = { getpid(), getpid(), m.time, 0 },
	};

	write_record(&r, sizeof(r));
}

static void begin_or_end(int type, int pid)
{
	struct {
		struct perf_event_header head;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
		struct trailer trailer;
	} r = {
		.head = { type, 0, sizeof(r) },
		.pid = pid,
		.ppid = getpid(),
		.tid = pid,
		.ptid = getpid(),
		.time = m.time,
		.trailer = { getpid(), getpid(), m.time, 0 },
	};

	write_record(&r, sizeof(r));
}

static void begin_child(void)
{
	m.forked = true;
	m.fork_at = m.page->data_head;
	begin_or_end(PERF_RECORD_FORK, CHILD);
}

/* ---- The kernel ---- */

uint64_t __wrap_now_ns(clockid_t clock)
{
	(void)clock;
	return m.time;
}

long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...)
{
	long arg[6];
	va_list ap;
	int fd;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (nr != SYS_perf_event_open)
		return __real_syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd >= 0 && fd < MAX_FDS)
		m.fds[fd] = true;
	return fd;
}

static bool is_event(int fd)
{
	return fd >= 0 && fd < MAX_FDS && m.fds[fd];
}

int __real_close(int fd);
int __wrap_close(int fd)
{
	if (is_event(fd))
		m.fds[fd] = false;
	return __real_close(fd);
}

/* Stands in for mmap(). The first ring is the one of the CPU that works. */
void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *ret;

	if (!is_event(fd))
		return __real_mmap(addr, size, prot, flags, fd, offset);
	ret = __real_mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ret == MAP_FAILED || m.page)
		return ret;
	m.page = ret;
	m.data = (uint8_t *)ret + page;
	m.size = size - page;
	return ret;
}

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	return is_event(fd) ? 0 : __real_ioctl(fd, request, arg);
}

ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size)
{
	uint64_t values[2] = { 0, m.lost };

	if (!is_event(fd) || size != sizeof(values))
		return __real_read(fd, to, size);
	memcpy(to, values, size);
	return size;
}

int __wrap_setpriority(__priority_which_t which, id_t who, int priority)
{
	(void)which, (void)who, (void)priority;
	return 0;
}

/* Stands in for the recorder's sleep: time passes, and the command works until it ends. */
int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	uint64_t until = m.time + timeout->tv_sec * 1000 * MS + timeout->tv_nsec;

	(void)info;
	if (m.forked && !m.fork_seen && m.page->data_tail > m.fork_at)
		m.fork_seen = m.time;
	if (m.nr_naps == MAX_NAPS)
		abort();
	m.naps[m.nr_naps].at = ms_of(m.time);
	m.naps[m.nr_naps++].ms = (until - m.time) / MS;
	while (m.time < until) {
		if (m.time < m.end)
			m.tick(ms_of(m.time));
		m.time += MS;
		if (m.time != m.end)
			continue;
		begin_or_end(PERF_RECORD_EXIT, getpid());
		if (sigismember(set, SIGCHLD))
			return SIGCHLD;
	}
	errno = EAGAIN;
	return -1;
}

/* ---- The command ---- */

int __wrap_target_find(const char *name)
{
	(void)name;
	return 0;
}

int __wrap_target_hold(char *const argv[], const char *agent, const char *env, bool mute,
		       struct target *ret)
{
	(void)argv, (void)agent, (void)env, (void)mute;
	*ret = (struct target){ .pid = getpid() };
	return 0;
}

int __wrap_target_go(char *const argv[], struct target *target)
{
	(void)argv, (void)target;
	execute();
	return 0;
}

pid_t __wrap_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	(void)options;
	if (m.time < m.end)
		return 0;
	m.seen_end = m.time;
	*status = 0;
	memset(usage, 0, sizeof(*usage));
	return pid;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	(void)options;
	*status = 0;
	return pid;
}

/* ---- What the command does ---- */

static void runs(unsigned int ms)
{
	(void)ms;
	sample();
}

static void waits(unsigned int ms)
{
	(void)ms;
}

/* Does nothing for a second, then works for a second. */
static void wakes_up(unsigned int ms)
{
	if (ms >= 1007)
		sample();
}

static void begins_another(unsigned int ms)
{
	if (ms == 1013)
		begin_child();
	if (ms == 1900)
		begin_or_end(PERF_RECORD_EXIT, CHILD);
	sample();
}

/* ---- The tests ---- */

static unsigned int number, failed;

static void verdict(bool good, const char *name)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++number, name);
	failed += !good;
}

/* Records for @ms by a command line that has @argc words. */
static bool record_by(char **argv, int argc, void (*tick)(unsigned int), unsigned int ms)
{
	int status;

	m = (struct machine){ .time = BEGIN, .end = BEGIN + ms * MS, .tick = tick };
	status = cmd_record(argc, argv);
	printf("# %u ms, ring of %zu KiB: %llu samples, %llu lost, %u naps, status %d\n", ms,
	       m.size >> 10, (unsigned long long)m.written, (unsigned long long)m.lost, m.nr_naps,
	       status);
	return !status;
}

/* Records the command for @ms, with a ring of @kib and one more option. */
static bool record(void (*tick)(unsigned int), unsigned int ms, unsigned int kib,
		   const char *option)
{
	char buffer[32];
	char *argv[] = { "record", "-q",	   "-F999", "--via=copies", "-orhythm.txt",
			 buffer,   (char *)option, "--",    "command",	    NULL };

	snprintf(buffer, sizeof(buffer), "--buffer=%u", kib);
	return record_by(argv, 9, tick, ms);
}

/* Records the machine for two seconds, as the last option says. */
static bool record_machine(const char *option)
{
	char *argv[] = { "record",	 "-q", "-F999",		"--via=copies",
			 "-orhythm.txt", "-a", "--buffer=8192", "--duration=2",
			 (char *)option, NULL };

	return record_by(argv, 9, waits, 5000);
}

/*
 * Returns true if each nap that began between @from and @to was of @ms, and there is at least one.
 */
static bool naps_are(unsigned int ms, unsigned int from, unsigned int to)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < m.nr_naps; i++) {
		if (m.naps[i].at < from || m.naps[i].at >= to)
			continue;
		nr++;
		if (m.naps[i].ms == ms)
			continue;
		printf("# %u ms at %u\n", m.naps[i].ms, m.naps[i].at);
		return false;
	}
	return nr;
}

static void test_calm(void)
{
	verdict(record(runs, 2050, 8192, "--depth=64") && naps_are(SHORT, 0, EARLY) &&
			naps_are(LONG, EARLY + 2 * SHORT, 2050) && !m.lost,
		"where nothing begins for 200 ms, after 500 ms, rings are read every 100 ms");
	verdict(m.seen_end == m.end, "the end of the command ends the sleep");
}

static void test_begin(void)
{
	bool good = record(begins_another, 2000, 8192, "--depth=64");

	verdict(good && m.fork_seen && m.fork_seen <= BEGIN + (1013 + LONG + SHORT) * MS,
		"a process that begins is read of at the second look, which comes at once");
	verdict(good && naps_are(LONG, 500, 1013) && naps_are(SHORT, 1013 + 1, 1013 + CALM) &&
			naps_are(LONG, 1013 + CALM + 2 * SHORT, 2000),
		"and for 200 ms from then on rings are read every 20 ms");
}

/* Tests the rings from an ordinary user's size on, 512 KiB. */
static void test_small_rings(void (*tick)(unsigned int), const char *name)
{
	bool good = true;

	for (unsigned int kib = 512; kib <= MAX_RING >> 10; kib *= 2)
		good = record(tick, 2000, kib, "--depth=64") && !m.lost && m.written && good;
	verdict(good, name);
}

static void test_filling(void)
{
	verdict(record(runs, 2000, 2048, "--depth=64") && naps_are(SHORT, 0, 2000),
		"a ring that fills soon is read every 20 ms");
	verdict(record(waits, 2000, 2048, "--depth=64") && naps_are(LONG, EARLY + 2 * SHORT, 2000),
		"the same one every 100 ms while the command waits");
}

static void test_end(void)
{
	verdict(record(waits, 3000, 8192, "--duration=1") && naps_are(SHORT, 0, 3000) &&
			m.time <= BEGIN + (1000 + SHORT) * MS,
		"with --duration the end is not later than 20 ms");
	verdict(record(waits, 1001, 8192, "--every=0.25") && naps_are(SHORT, 0, 1001),
		"with --every rings are read every 20 ms");
}

static void test_machine(void)
{
	verdict(record_machine("--depth=64") && naps_are(LONG, EARLY + 2 * SHORT, 1880) &&
			m.time <= BEGIN + (2000 + SHORT) * MS,
		"of a whole machine rings are read every 100 ms, and the end is not later than 20 ms");
	verdict(record_machine("--every=0.05") && naps_are(SHORT, 0, 1880),
		"where the next profile is near, they are read every 20 ms");
}

/* Removes the test's own folder, to which profiles were written. */
static void remove_folder(const char *folder)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	if (chdir("/") || system(command))
		printf("# %s is left\n", folder);
}

int main(void)
{
	char folder[] = "/tmp/rhythm.XXXXXX";

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("KTAP version 1\n1..12");
	if (!mkdtemp(folder) || chdir(folder)) {
		puts("Bail out! no folder");
		return 1;
	}
	test_calm();
	test_begin();
	test_small_rings(runs, "no ring is full while the command works all the time");
	test_small_rings(wakes_up, "nor when it begins to work while the recorder sleeps");
	test_filling();
	test_end();
	test_machine();
	remove_folder(folder);
	return !!failed;
}
