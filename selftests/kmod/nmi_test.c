// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nmi_test.c - tests callchains taken in NMIs, at any instruction
 *
 *	nmi_test CHAINS TICKS [SHSTK]
 *
 * CHAINS is the number of chains to take; a hundredth of them must be the targets'. TICKS is the
 * time between two NMIs, in units of 0.84 us on x86 and of 1000 cycles on arm64; nmi/source.h has
 * the source of the NMIs. SHSTK is the command, which compiles unwind rules for this program if
 * there are no shadow stacks.
 *
 * Each NMI takes a callchain, on all CPUs and whatever runs. Two targets descend and return without
 * pause, with system calls, floating point and yields on the way. The deepest stack that a target
 * can have is written down first. The callers in every chain must be an outer part of that stack,
 * and must belong to the function that the program counter is in. Other processes fork, execute,
 * exit and switch stacks meanwhile. The runner checks that no NMI there hurts the kernel.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "crowd.h"
#include "kselftest.h"
#include "need.h"
#include "nmi/source.h"
#include "number.h"
#include "sampler.h"
#include "selftests/place.h"

#define TARGETS 2
#define DEPTH 24
#define MAX 64
#define PATIENCE 300 /* seconds without any NMI, then the test gives up */
#define SHOWN 20 /* wrong chains that are printed; then the test ends */
#define PLACE_BITS 16
#define COUNTERS "/sys/module/shstk_perf/chains/"

/* A target is in one of these functions. */
PLACE(compute);
PLACE(call);
PLACE(descend);
PLACE(target);

static struct truth {
	volatile pid_t tid;
	volatile unsigned int nr; /* words, innermost first */
	volatile unsigned int outer; /* the last words: the callers of the target */
	volatile uint64_t word[MAX];
	volatile uint64_t after_compute, after_call; /* return addresses of these functions */
	volatile unsigned long rounds;
} * truth;

static bool shadow; /* true if there are shadow stacks */

in_(compute) static double compute(struct truth *t, double x)
{
	t->after_compute = (uint64_t)__builtin_return_address(0);
	for (int i = 0; i < 8; i++)
		x = x * 1.000001 + 1 / (x + 2);
	asm volatile("" : "+x"(x));
	return x;
}

in_(call) static long call(struct truth *t, long nr)
{
	long r;

	t->after_call = (uint64_t)__builtin_return_address(0);
	r = ss_syscall(nr, 0, 0, 0, 0, 0);
	asm volatile("" : "+r"(r));
	return r;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *arg)
{
	struct truth *t = arg;

	if (t->nr < MAX)
		t->word[t->nr++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/*
 * Writes down what DWARF says, if there are no shadow stacks. Leaves out this function and its
 * caller's address.
 */
static void write_down_frames(struct truth *t)
{
	_Unwind_Backtrace(add_frame, t);
	for (unsigned int i = 2; i < t->nr; i++)
		t->word[i - 2] = t->word[i];
	t->nr -= 2;
	t->outer = t->nr - DEPTH - 1;
}

static __attribute__((noinline, noclone)) void write_down(struct truth *t, unsigned long end)
{
	/* The return address of this function is not in the descent's stack. */
	unsigned long at = ss_pointer() + 8;

	if (shadow)
		for (t->nr = 0; at < end && t->nr < MAX; at += 8)
			t->word[t->nr++] = *(volatile uint64_t *)at;
	else
		write_down_frames(t);
}

in_(descend) static long descend(struct truth *t, int n, unsigned long end)
{
	volatile double x = compute(t, n);
	long r = 0;

	if (n)
		r = descend(t, n - 1, end);
	else if (!t->nr)
		write_down(t, end);
	else if (!t->tid)
		t->tid = call(t, __NR_gettid);
	else
		r = call(t, t->rounds % 4 ? __NR_getppid : __NR_sched_yield);
	asm volatile("" : "+r"(r) : "m"(x));
	return r;
}

in_(target) static void __attribute__((noreturn)) target(struct truth *t)
{
	unsigned long end = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (shadow) {
		if (ss_enable(SS_ENABLE))
			ss_syscall(__NR_exit_group, 1, 0, 0, 0, 0);
		end = ss_pointer();
	}
	for (;;) {
		descend(t, t->nr ? t->rounds % DEPTH : DEPTH, end);
		t->rounds++;
	}
}

/* Makes processes that come and go, if there are no shadow stacks. */
static void __attribute__((noreturn)) restless(char *self)
{
	char *const argv[] = { self, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			close(1);
			close(2);
			execv("/proc/self/exe", argv);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	}
}

/* ---- The sampling side ---- */

struct result {
	unsigned long others; /* chains of other tasks */
	unsigned long right, wrong;
	unsigned long switching; /* not served by the module: hit between two tasks */
	unsigned long entering; /* hit in the code that enters and leaves the kernel */
	unsigned long user, kernel; /* number of chains, by what was hit */
	unsigned long locked; /* chains of the code that no other interrupt can hit */
	unsigned char place[1 << PLACE_BITS]; /* places in the kernel that were hit, by a hash */
};

/*
 * Returns whether these entries may be what the kernel finds by frame pointers. If another address
 * space is there already, the kernel reads another program's memory, at the places of this
 * program's stack. A target keeps no frame pointer, so its functions are not among the entries.
 */
static bool is_kernels(const uint64_t *ip, unsigned int nr)
{
	if (!NMI_FOLLOWS)
		return !nr;
	for (unsigned int i = 0; i < nr; i++)
		if (is_in(compute, ip[i]) || is_in(call, ip[i]) || is_in(descend, ip[i]) ||
		    is_in(target, ip[i]))
			return false;
	return true;
}

/*
 * Returns whether the NMI hit the kernel when the task's address space was not there: another one
 * was there already, or the task's own one not yet. Nobody can read the task's memory then, not
 * even the kernel. The kernel is in __schedule() or, for some instructions, on the kernel stack of
 * the other task; then the kernel's chain does not reach the entry into the kernel. There is no
 * caller then, or on arm64 what the kernel itself finds.
 */
static bool is_switching(const struct sample *s)
{
	const uint64_t *ip;
	unsigned int nr = nmi_hit(s, &ip);

	if (!s->nr || !nr || !is_kernels(s->ip + 1, s->nr - 1))
		return false;
	for (unsigned int i = 0; i < nr; i++)
		if (nmi_in_schedule(ip[i]))
			return true;
	return !nmi_in(NMI_ENTRY, ip[nr - 1]);
}

/*
 * Returns whether the NMI hit the code between user mode and the kernel, maybe before the program's
 * registers were saved.
 */
static bool is_entering(const struct sample *s)
{
	const uint64_t *ip;
	unsigned int nr = nmi_hit(s, &ip);

	for (unsigned int i = 0; i < nr; i++)
		if (!nmi_in(NMI_ENTRY, ip[i]) && !nmi_in(NMI_ENTRY_MORE, ip[i]))
			return false;
	return nr;
}

/* Returns whether these entries are the outermost @nr entries of the deepest stack. */
static bool is_end(const struct truth *t, const uint64_t *ip, unsigned int nr)
{
	if (nr < t->outer || nr > t->nr)
		return false;
	for (unsigned int i = 0; i < nr; i++)
		if (ip[i] != t->word[t->nr - nr + i])
			return false;
	return true;
}

/*
 * Returns whether the first entry is the return address of a helper, and the others are the stack
 * from the helper's caller on.
 */
static bool is_helpers(const struct truth *t, uint64_t after, const uint64_t *ip, unsigned int nr)
{
	return nr > t->outer + 1 && ip[0] == after && is_end(t, ip + 1, nr - 1);
}

static bool callers_right(const struct truth *t, uint64_t pc, const uint64_t *ip, unsigned int nr)
{
	if (is_in(compute, pc))
		return is_helpers(t, t->after_compute, ip, nr);
	if (is_in(call, pc))
		return is_helpers(t, t->after_call, ip, nr);
	if (is_in(descend, pc))
		return nr > t->outer && is_end(t, ip, nr);
	return is_in(target, pc) && nr == t->outer && is_end(t, ip, nr);
}

static bool chain_right(const struct sample *s, const struct truth *t)
{
	return s->nr && callers_right(t, s->ip[0], s->ip + 1, s->nr - 1);
}

/* Checks a chain without a program counter. By unwind rules such a chain is empty. */
static bool rest_right(const struct sample *s, const struct truth *t)
{
	if (!shadow)
		return !s->nr;
	return is_end(t, s->ip, s->nr) || is_helpers(t, t->after_compute, s->ip, s->nr) ||
	       is_helpers(t, t->after_call, s->ip, s->nr);
}

static void print_wrong(const struct sample *s, const struct truth *t)
{
	for (unsigned int i = 0; i < s->nr_all; i++)
		ksft_print_msg("all entries %2u: %lx\n", i, (unsigned long)s->all[i]);
	for (unsigned int i = 0; i < s->nr; i++)
		ksft_print_msg("wrong chain %2u: %lx\n", i, (unsigned long)s->ip[i]);
	for (unsigned int i = 0; i < t->nr; i++)
		ksft_print_msg("deepest stack %2u: %lx%s\n", i, (unsigned long)t->word[i],
			       i + t->outer >= t->nr ? " (outer)" : "");
	ksft_print_msg("after compute: %lx, after call: %lx\n", (unsigned long)t->after_compute,
		       (unsigned long)t->after_call);
}

static void note_place(struct result *res, const struct sample *s)
{
	const uint64_t *ip;

	if (!nmi_hit(s, &ip)) {
		res->user++;
		return;
	}
	res->kernel++;
	res->locked += nmi_in(NMI_SWITCH, *ip);
	res->place[*ip * 0x9e3779b97f4a7c15ULL >> (64 - PLACE_BITS)] = 1;
}

static void take_sample(void *arg, const struct sample *s)
{
	struct result *res = arg;
	const struct truth *t = truth;
	int i;

	note_place(res, s);
	for (i = 0; i < TARGETS; i++, t++)
		if (t->tid && t->tid == s->tid)
			break;
	if (i == TARGETS) {
		res->others++;
	} else if (chain_right(s, t)) {
		res->right++;
	} else if (is_switching(s)) {
		res->switching++;
	} else if (is_entering(s) && rest_right(s, t)) {
		res->entering++;
	} else {
		res->wrong++;
		print_wrong(s, t);
	}
}

/* Collects chains until there are enough, or no NMIs come any more. */
static void collect(struct sampler *sampler, struct result *res, unsigned long chains)
{
	double progress = crowd_now();

	while (res->right + res->others < chains && res->wrong < SHOWN &&
	       crowd_now() < progress + PATIENCE) {
		if (sampler_drain(sampler, take_sample, res))
			progress = crowd_now();
		usleep(1000);
	}
}

/* Prints all counters of the module. Returns the sum of those of chains that it served. */
static unsigned long print_counters(const char *when)
{
	struct dirent *entry;
	unsigned long sum = 0;
	DIR *dir = opendir(COUNTERS);
	char path[300];

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), COUNTERS "%s", entry->d_name);
		ksft_print_msg("%s: %s %ld\n", when, entry->d_name, read_number(path));
		if (!strncmp(entry->d_name, "served", 6))
			sum += read_number(path);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* Loads the rules. Returns whether the chains of this program can be judged. */
static bool load_rules(const char *shstk)
{
	char command[512];

	if (!shstk)
		return false;
	snprintf(command, sizeof(command), "%s rules load -qv /proc/%d/exe", shstk, getpid());
	if (system(command))
		ksft_exit_fail_msg("%s: failed\n", command);
	return true;
}

static pid_t start_target(struct truth *t)
{
	pid_t pid = fork();

	if (!pid)
		target(t);
	while (pid > 0 && !t->tid) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			ksft_exit_fail_msg("a target died\n");
		usleep(1000);
	}
	return pid;
}

static pid_t start_restless(char *self)
{
	pid_t pid = fork();

	if (!pid)
		restless(self);
	return pid;
}

enum { MOST = 8 };

/*
 * Starts all processes. Must be called before any NMI comes, because what the targets do at first
 * is in no truth.
 */
static int start_all(char *self, pid_t *pid)
{
	static const enum crowd_kind kinds[] = { CROWD_EXEC, CROWD_SIGNALS, CROWD_SWITCH };
	int n = 0;

	fflush(stdout);
	for (int i = 0; i < TARGETS; i++)
		pid[n++] = start_target(&truth[i]);
	for (int i = 0; shadow && i < 3; i++)
		pid[n++] = crowd_start(kinds[i], i);
	for (int i = 0; !shadow && i < 2; i++)
		pid[n++] = start_restless(self);
	return n;
}

static void print_result(const struct result *res, unsigned long chains)
{
	unsigned long places = 0;

	for (int i = 0; i < 1 << PLACE_BITS; i++)
		places += res->place[i];
	ksft_print_msg("chains of other tasks: %lu; of the targets, between two tasks: %lu, on "
		       "the way into the kernel or out of it: %lu\n",
		       res->others, res->switching, res->entering);
	ksft_test_result(res->user && places > 20 && (res->locked || !NMI_PROVE),
			 "NMIs hit user mode %lu times, the kernel %lu times, at %lu places; "
			 "where no other interrupt can be, %lu times\n",
			 res->user, res->kernel, places, res->locked);
	ksft_test_result(res->right + res->others >= chains, "%lu chains were taken in NMIs\n",
			 res->right + res->others);
}

/*
 * Judges the result. A chain that the module did not serve would be wrong, or right by accident.
 * Only the kernel addresses in a chain itself excuse it: see is_switching() and is_entering(). So
 * the number of excused chains tells where NMIs hit, which depends on the emulator and on what else
 * its machine does. A module that fails only at these places is not noticed; one that fails
 * elsewhere gives wrong chains. The test requires that most chains are not excused only to notice
 * if it has become blind.
 */
static void judge(const struct result *res, unsigned long chains, unsigned long served)
{
	ksft_test_result(!res->wrong && res->right >= chains / 100 && served >= res->right &&
				 res->right > 2 * (res->switching + res->entering),
			 "chains taken in NMIs are right: %lu, wrong: %lu\n", res->right,
			 res->wrong);
}

int main(int argc, char **argv)
{
	static struct result res;
	struct sampler sampler;
	pid_t pid[MOST];
	unsigned long chains, served;
	bool judged;
	int n;

	crowd_main(argc, argv);
	if (argc < 3) {
		fprintf(stderr, "usage: %s CHAINS TICKS [SHSTK]\n", argv[0]);
		return KSFT_FAIL;
	}
	ksft_print_header();
	chains = strtoul(argv[1], NULL, 0);
	nmi_find_code();
	shadow = ss_map(0, getpagesize(), 0) != -EOPNOTSUPP;
	judged = shadow || load_rules(argv[3]);
	truth = mmap(NULL, TARGETS * sizeof(*truth), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (truth == MAP_FAILED || nmi_open(&sampler, argv[2]))
		ksft_exit_fail_msg("cannot sample NMIs: %s\n", strerror(errno));
	crowd_init();
	ksft_set_plan(3);
	n = start_all(argv[0], pid);
	served = print_counters("before");
	nmi_start(&sampler, argv[2]);
	collect(&sampler, &res, chains);
	nmi_stop(&sampler);
	for (int i = 0; i < TARGETS; i++)
		if (waitpid(pid[i], NULL, WNOHANG))
			ksft_exit_fail_msg("a target died after %lu rounds\n", truth[i].rounds);
		else
			ksft_print_msg("target %d, thread %d: %lu rounds\n", i, truth[i].tid,
				       truth[i].rounds);
	while (n--)
		crowd_stop(pid[n]);
	served = print_counters("after") - served;
	print_result(&res, chains);
	if (judged)
		judge(&res, chains, served);
	else
		ksft_test_result_skip("no shadow stacks and no rules to compare with\n");
	ksft_finished();
}
