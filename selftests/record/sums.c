// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sums.c - programs that know how much they used of something, and where.
 *
 *	sums burn		works until it is killed; prints a line when it has begun
 *	sums cpu SECONDS	works for this much CPU time
 *	sums faults PAGES	touches this many new pages, and prints the number of their page
 *				faults, and of all page faults
 *	sums shares SECONDS	works by turns in in_calls(), in system calls, and in in_user(), and
 *				prints what each used
 *	sums threads SECONDS	works by turns in in_main() and in in_thread(), a thread of 1 ms,
 *				and prints what each used
 *	sums brief MS SECONDS	works for SECONDS in threads that take MS each, of two kinds by turns,
 *				in_long(), in_short() and in_reads(), which makes system calls; prints
 *				what each of them used in threads that began in one_kind() and then in
 *				other_kind()
 *	sums killed MS SECONDS	the same; it is killed then
 *	sums chain		works until it is killed, in threads of 1 ms, each of which begins
 *				the next one and ends; prints a line when it has begun
 *	sums waits		by turns works in never_blocks() and sleeps in waits(), 0.5 s each
 *	sums orphan		has a child that works for 0.5 s, for which nobody waits
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void spin(unsigned long steps)
{
	for (unsigned long i = 0; i < steps; i++)
		__asm__ volatile("" : "+r"(i));
}

static __attribute__((noinline)) void use(double seconds)
{
	double until = cpu_time() + seconds;

	while (cpu_time() < until)
		spin(50000);
}

static int burn(char **args)
{
	(void)args;
	puts("begins");
	fflush(stdout);
	for (;;)
		spin(1000000);
	return 0;
}

static int cpu(char **args)
{
	use(*args ? atof(*args) : 1);
	return 0;
}

static long count_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static __attribute__((noinline)) void touch_pages(volatile char *at, size_t bytes, size_t page)
{
	for (size_t i = 0; i < bytes; i += page)
		at[i] = 1;
}

static int faults(char **args)
{
	size_t page = sysconf(_SC_PAGESIZE), bytes = (*args ? atol(*args) : 1000) * page;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long before, behind;

	if (at == MAP_FAILED)
		return 1;
	madvise(at, bytes, MADV_NOHUGEPAGE);
	before = count_faults();
	touch_pages(at, bytes, page);
	behind = count_faults();
	printf("%ld %ld\n", behind - before, behind);
	return 0;
}

/* Returns a varying number below @most. Turns of equal length might be in step with samples. */
static unsigned long any(unsigned long most)
{
	static unsigned int state = 1;

	state = state * 1103515245 + 12345;
	return (state >> 8) % most;
}

static __attribute__((noinline)) double in_calls(int fd)
{
	static char bytes[1 << 20];
	double begin = cpu_time();

	for (int i = any(40); i >= 0; i--)
		if (read(fd, bytes, sizeof(bytes)) < 0)
			exit(1);
	return cpu_time() - begin;
}

static __attribute__((noinline)) double in_user(void)
{
	double begin = cpu_time();

	spin(any(4000000));
	return cpu_time() - begin;
}

static int shares(char **args)
{
	double end = *args ? atof(*args) : 1, calls = 0, user = 0;
	int fd = open("/dev/zero", O_RDONLY);

	in_calls(fd); /* the first call has new pages */
	while (calls + user < end) {
		calls += in_calls(fd);
		user += in_user();
	}
	printf("%f %f\n", calls, user);
	return 0;
}

#define THREAD 0.001 /* s */

static __attribute__((noinline)) void *in_thread(void *arg)
{
	double begin = cpu_time();

	use(THREAD);
	*(double *)arg += cpu_time() - begin;
	return NULL;
}

static __attribute__((noinline)) double in_main(void)
{
	double begin = cpu_time();

	use(1.4 * THREAD);
	return cpu_time() - begin;
}

static int threads(char **args)
{
	double end = *args ? atof(*args) : 1, inside = 0, outside = 0;
	pthread_t id;

	puts("begins");
	fflush(stdout);
	while (inside + outside < end) {
		if (pthread_create(&id, NULL, in_thread, &inside) || pthread_join(id, NULL))
			return 1;
		outside += in_main();
	}
	printf("%f %f\n", inside, outside);
	return 0;
}

/**
 * struct brief - what threads of one kind do
 * @units: units of work for each function, in the order in which they are called.
 * @used: CPU time of each function, in s.
 */
struct brief {
	unsigned long units[3];
	double used[3];
};

static unsigned long spins_of_unit, reads_of_unit;
static int zeros;

static __attribute__((noinline)) void in_long(unsigned long units)
{
	spin(units * spins_of_unit);
	__asm__ volatile("");
}

static __attribute__((noinline)) void in_short(unsigned long units)
{
	spin(units * spins_of_unit);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void in_reads(unsigned long units)
{
	char bytes[2048];

	for (unsigned long i = 0; i < units * reads_of_unit; i++)
		if (read(zeros, bytes, sizeof(bytes)) < 0)
			exit(1);
	__asm__ volatile("");
}

static void do_brief(struct brief *b)
{
	void (*const work[])(unsigned long) = { in_long, in_short, in_reads };
	double at = cpu_time(), end;

	for (int i = 0; i < 3; i++) {
		work[i](b->units[i]);
		end = cpu_time();
		b->used[i] += end - at;
		at = end;
	}
}

static __attribute__((noinline)) void *one_kind(void *arg)
{
	do_brief(arg);
	return NULL;
}

static __attribute__((noinline)) void *other_kind(void *arg)
{
	do_brief(arg);
	return arg;
}

#define UNITS 100 /* of a thread, about */

/* Returns how often @work must be done to take a unit of a thread of @ms. */
static unsigned long steps_of_unit(void (*work)(unsigned long), unsigned long *steps, double ms)
{
	double at, least = 1;

	*steps = 100;
	for (int i = 0; i < 5; i++) {
		at = cpu_time();
		work(10);
		at = cpu_time() - at;
		least = at < least ? at : least;
	}
	return (unsigned long)(1000 * ms / 1000 / UNITS / least) + 1;
}

static int brief(char **args)
{
	double ms = args[0] ? atof(args[0]) : 1, end = args[0] && args[1] ? atof(args[1]) : 1;
	struct brief kinds[2] = { { .units = { 50, 30, 20 } }, { .units = { 20, 25, 55 } } };
	double used = 0;
	pthread_t id;

	zeros = open("/dev/zero", O_RDONLY);
	spins_of_unit = steps_of_unit(in_long, &spins_of_unit, ms);
	reads_of_unit = steps_of_unit(in_reads, &reads_of_unit, ms);
	for (unsigned int i = 0; used < end; i++) {
		struct brief *b = &kinds[i % 2];
		double before = b->used[0] + b->used[1] + b->used[2];

		if (pthread_create(&id, NULL, i % 2 ? other_kind : one_kind, b) ||
		    pthread_join(id, NULL))
			return 1;
		used += b->used[0] + b->used[1] + b->used[2] - before;
	}
	for (int i = 0; i < 6; i++)
		printf("%f%c", kinds[i / 3].used[i % 3], i < 5 ? ' ' : '\n');
	return 0;
}

static int killed(char **args)
{
	if (brief(args))
		return 1;
	fflush(stdout);
	return kill(getpid(), SIGKILL);
}

#define LINK 0.001 /* s */

static void *in_link(void *arg)
{
	pthread_attr_t attr;
	pthread_t id;

	use(LINK);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while (pthread_create(&id, &attr, in_link, arg))
		usleep(1000);
	pthread_attr_destroy(&attr);
	return NULL;
}

static int chain(char **args)
{
	(void)args;
	in_link(NULL);
	puts("begins");
	fflush(stdout);
	for (;;)
		pause();
	return 0;
}

static __attribute__((noinline)) void never_blocks(void)
{
	use(0.05);
}

static __attribute__((noinline)) void waits(void)
{
	struct timespec pause = { .tv_nsec = 50000000 };

	nanosleep(&pause, NULL);
	__asm__ volatile("");
}

static int wait_and_work(char **args)
{
	(void)args;
	for (int i = 0; i < 10; i++) {
		never_blocks();
		waits();
	}
	return 0;
}

static int orphan(char **args)
{
	int ends[2];
	char byte;

	(void)args;
	/* A child whose end is ignored counts in no sum of its parent. */
	signal(SIGCHLD, SIG_IGN);
	if (pipe(ends))
		return 1;
	if (!fork()) {
		use(0.5);
		_exit(0);
	}
	close(ends[1]);
	return read(ends[0], &byte, 1) ? 1 : 0;
}

static const struct {
	const char *name;
	int (*run)(char **args);
} programs[] = {
	{ "waits", wait_and_work }, { "burn", burn },	  { "cpu", cpu },
	{ "faults", faults },	    { "shares", shares }, { "threads", threads },
	{ "orphan", orphan },	    { "chain", chain },	  { "brief", brief },
	{ "killed", killed },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(argv[1], programs[i].name))
			return programs[i].run(argv + 2);
	fprintf(stderr, "sums: which program?\n");
	return 2;
}
