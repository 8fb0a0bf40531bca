// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stock_test.c - tests whether the callchains are true when Debian's own perf records Debian's own
 * programs, unmodified, on shadow stacks
 *
 *	stock_test witness.so [FILE...] [PROGRAM...]
 *
 * The other files only have to be there. PROGRAMs are python3, bash and sqlite3; all of them if
 * none is named.
 *
 * One recording has two events. Page faults at known addresses come with what libshstk has read in
 * the process just before (witness.c), and these chains have to be equal, word by word. The CPU
 * clock samples the program anywhere. While the program is in its main loop, such a chain is
 * complete if it ends in the outermost frames that the witness saw.
 *
 * With shstk_perf.ko all chains must be equal and complete. Without it the same is counted for what
 * the kernel finds by frame pointers. Debian's programs for x86 have no frame pointers, so not all
 * of that may be right; otherwise they would be no good examples. Those for arm64 have them, and
 * only the caller of a function that calls nothing is lost: see bpf_test.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"
#include "perfdata.h"
#include "witness.h"

#define DATA "/tmp/perf.data"
#define WITNESS "/tmp/witness"
#define LEAST 20

enum { CLOCK, FAULT }; /* events, in the order of perf's arguments */

static const struct program {
	const char *path, *option, *script;
} programs[] = {
	{ "python3", "-ISc",
	  "import posix\n"
	  "def f(n):\n"
	  "    if n: return sum(map(f, [n - 1]))\n"
	  "    posix.umask(0o22)\n"
	  "    return sum(sorted(range(200), key=lambda x: -x))\n"
	  "for i in range(64): f(i % 9)\n" },
	{ "bash", "-c",
	  "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)); else umask; fi; }\n"
	  "for ((i = 0; i < 40; i++)); do f $((i % 6)); done" },
	{ "sqlite3", ":memory:",
	  "with recursive c(x) as (select 1 union all select x + 1 from c where x < 50)"
	  " select datetime('now', x || ' seconds'), (select count(*) from c a, c b where a.x < b.x) from c" },
};

#ifdef __x86_64__
#define FRAME_POINTERS false
#else
#define FRAME_POINTERS true
#endif

static bool hooked;
static char witness[512];

static void child(const struct program *p)
{
	static char arg[4][600];
	int null = open("/dev/null", O_WRONLY);

	dup2(null, 1);
	snprintf(arg[0], sizeof(arg[0]), "LD_PRELOAD=%s", witness);
	snprintf(arg[1], sizeof(arg[1]), "WITNESS=%s", WITNESS);
#ifdef __x86_64__
	/* Debian's C library for x86 does not enable shadow stacks. */
	execlp("perf", "perf", "record", "-q", "-B", "-N", "-o", DATA, "-g", "-d", "-k", "mono",
	       "-e", "cpu-clock/period=1000000/", "-e", "page-faults/period=1/", "--", "env",
	       arg[0], arg[1], "./shstk", "run", "-q", p->path, p->option, p->script, NULL);
#else
	execlp("perf", "perf", "record", "-q", "-B", "-N", "-o", DATA, "-g", "-d", "-k", "mono",
	       "-e", "cpu-clock/period=1000000/", "-e", "page-faults/period=1/", "--", "env",
	       arg[0], arg[1], "GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=3", p->path, p->option,
	       p->script, NULL);
#endif
	perror("perf");
	_exit(127);
}

struct count {
	const struct testimony *truth;
	unsigned int truths;
	unsigned int faults, equal; /* chains at known moments */
	unsigned int ticks, complete; /* samples of the CPU clock, in the main loop */
	const struct testimony *odd; /* the first one that is not equal */
	struct perfdata_sample odd_sample;
};

static bool chain_equal(const struct perfdata_sample *s, const struct testimony *t)
{
	return s->nr == t->nr + 1 && !memcmp(s->ip + 1, t->pc, t->nr * 8);
}

/* Compares the two outermost entries. The words of all testimonies end in the same way. */
static bool chain_complete(const struct perfdata_sample *s, const struct testimony *t)
{
	return s->nr >= 2 && t->nr >= 2 && !memcmp(s->ip + s->nr - 2, t->pc + t->nr - 2, 16);
}

static void take_sample(void *arg, const struct perfdata_sample *s)
{
	struct count *c = arg;

	if (s->event == CLOCK) {
		if (s->time < c->truth[0].time || s->time > c->truth[c->truths - 1].time)
			return;
		c->ticks++;
		c->complete += chain_complete(s, c->truth);
		return;
	}
	for (unsigned int i = 0; i < c->truths; i++) {
		if (s->addr != c->truth[i].addr)
			continue;
		c->faults++;
		if (chain_equal(s, &c->truth[i])) {
			c->equal++;
		} else if (!c->odd) {
			c->odd = &c->truth[i];
			c->odd_sample = *s;
		}
		return;
	}
}

static const struct testimony *read_witness(unsigned int *nr)
{
	int fd = open(WITNESS, O_RDONLY | O_CLOEXEC);
	struct testimony *t;
	struct stat st;

	*nr = 0;
	if (fd < 0 || fstat(fd, &st))
		return NULL;
	t = malloc(st.st_size + 1);
	if (t && read(fd, t, st.st_size) == st.st_size)
		*nr = st.st_size / sizeof(*t);
	close(fd);
	return t;
}

static void print_odd(const struct count *c)
{
	const struct perfdata_sample *s = &c->odd_sample;
	const struct testimony *t = c->odd;
	unsigned int at = 0;

	while (at < t->nr && at + 1 < s->nr && s->ip[at + 1] == t->pc[at])
		at++;
	ksft_print_msg("first other chain: %u entries, true %u, equal up to %u: %#lx, true %#lx\n",
		       s->nr, t->nr + 1, at + 1, at + 1 < s->nr ? (long)s->ip[at + 1] : 0L,
		       at < t->nr ? (long)t->pc[at] : 0L);
}

static void run(const struct program *p)
{
	struct count c = { 0 };
	struct perfdata data = { 0 };
	int status, ret;
	pid_t pid;
	bool ok;

	unlink(DATA);
	unlink(WITNESS);
	fflush(NULL);
	pid = fork();
	if (!pid)
		child(p);
	waitpid(pid, &status, 0);
	c.truth = read_witness(&c.truths);
	ret = perfdata_open(&data, DATA);
	if (status || ret || c.truths < LEAST) {
		ksft_test_result_fail("%s: perf ended with %#x, %s, %u testimonies\n", p->path,
				      status, strerror(-ret), c.truths);
		ksft_test_result_fail("%s\n", p->path);
		return;
	}
	ret = perfdata_read(&data, take_sample, &c);
	if (ret <= 0)
		ksft_print_msg("%s: %s: no samples or not understood\n", p->path, DATA);

	ok = ret > 0 && c.faults >= LEAST && c.truth->nr > 2 &&
	     (hooked ? c.equal == c.faults : FRAME_POINTERS || c.equal < c.faults);
	ksft_test_result(ok, "%s: %u of %u chains equal to what libshstk reads in process\n",
			 p->path, c.equal, c.faults);
	if (!ok && c.odd)
		print_odd(&c);
	if (c.ticks)
		ksft_test_result(!hooked || c.complete == c.ticks,
				 "%s: %u of %u chains of the CPU clock are complete\n", p->path,
				 c.complete, c.ticks);
	else
		ksft_test_result_skip("%s: no sample of the CPU clock in its main loop\n", p->path);
	perfdata_close(&data);
	free((void *)c.truth);
}

static bool named(const struct program *p, char **argv)
{
	while (*++argv)
		if (!strcmp(*argv, p->path))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	unsigned int wanted = 0;
	char *at;

	if (argc < 2) {
		fprintf(stderr, "usage: %s witness.so [FILE...] [PROGRAM...]\n", argv[0]);
		return KSFT_FAIL;
	}
	at = realpath(argv[1], witness);
	if (!at || access("/usr/bin/perf", X_OK))
		ksft_exit_skip("no %s here\n", at ? "perf" : argv[1]);
	hooked = !access("/sys/module/shstk_perf", F_OK);
	setenv("PATH", "/usr/bin:/bin", 1);
	setenv("HOME", "/tmp", 1);

	ksft_print_header();
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		wanted += named(&programs[i], argv);
	ksft_set_plan(2 * (wanted ? wanted : ARRAY_SIZE(programs)));
	ksft_print_msg("shstk_perf is %sloaded\n", hooked ? "" : "not ");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (!wanted || named(&programs[i], argv))
			run(&programs[i]);
	ksft_finished();
}
