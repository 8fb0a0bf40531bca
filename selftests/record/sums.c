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
	{ "orphan", orphan },	    { "chain", chain },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(argv[1], programs[i].name))
			return programs[i].run(argv + 2);
	fprintf(stderr, "sums: which program?\n");
	return 2;
}
