// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf_test.c - tests whether the user callchains of perf are those of the shadow stack
 *
 * Each scenario runs code without frame pointers on a shadow stack, down to a leaf function. The
 * leaf writes down what its shadow stack holds and then works without calling anything, so every
 * sample in it must show exactly that. The parent samples it as a profiler does and compares each
 * chain word by word.
 *
 * With shstk_perf.ko loaded every chain must be equal. Without it, the same program counts what the
 * kernel's own walk finds. It fails if that were complete, because then it would not test anything.
 *
 * The module also gets wrong unwind rules for this program: by these rules every frame is the
 * outermost one. So a chain by rules has one entry, which shows if rules are used although there is
 * a shadow stack.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include <linux/elf-em.h>
#include <linux/shstk_rules.h>

#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "sampler.h"

#define PERIOD_NS 100000
#define SAMPLES (hooked ? 150 : 40) /* few samples are enough to count what is cut */
#define SECONDS 300 /* used up only by a hang */
#define WORDS 256

#define noinline_ __attribute__((noinline, noclone))
#define in_leaf __attribute__((section("leaf_text"), noinline, noclone))

extern char __start_leaf_text[], __stop_leaf_text[];

/* What a thread of the workload says about itself, in shared memory. */
struct truth {
	volatile pid_t tid;
	unsigned int nr;
	bool whole; /* the stack ends behind the last word */
	uint64_t word[WORDS];
};

/* @code: address of the code in which samples are looked at; it has @size bytes. */
struct shared {
	volatile uint64_t code, size;
	volatile int stop;
	volatile int slots;
	struct truth truth[8];
};

static struct shared *shared;
static bool hooked; /* shstk_perf.ko is loaded */

enum work { SPIN, READ_ZERO, YIELD, PING };

struct scenario {
	const char *name;
	void (*enter)(const struct scenario *sc);
	enum work work;
	int depth;
	bool off; /* it runs without a shadow stack */
	bool defer;
};

/* ---- The sampled side ---- */

static unsigned long main_top; /* pointer of the empty shadow stack */
static __thread unsigned long thread_top;
static int pipes[2][2];
static int zero_fd;
static char zeros[1 << 16];

/*
 * Returns whether @word is the mark of a signal frame, which is no address and is left out of
 * chains.
 */
static bool is_signal_mark(uint64_t word, unsigned long addr)
{
#ifdef __x86_64__
	(void)addr;
	return word >> 63;
#else
	return word == (addr & ~0xfffUL);
#endif
}

/*
 * Writes down the shadow stack. It is inlined into the leaf, so that the top of the shadow stack is
 * the leaf's own return address. @end is the address behind the last word to compare.
 */
static inline __attribute__((always_inline)) void note_truth(unsigned long end, bool whole)
{
	int slot = __atomic_fetch_add(&shared->slots, 1, __ATOMIC_SEQ_CST);
	struct truth *t = &shared->truth[slot % 8];
	unsigned long at = ss_pointer();

	ss_sync();
	t->nr = 0;
	for (; at < end && t->nr < WORDS; at += 8) {
		uint64_t word = *(volatile uint64_t *)at;

		if (!is_signal_mark(word, at))
			t->word[t->nr++] = word;
	}
	t->whole = whole;
	t->tid = ss_syscall(__NR_gettid, 0, 0, 0, 0, 0);
}

/* Writes down only the thread, as nothing else is known: chains have one entry. */
static void note_thread(void)
{
	struct truth *t = &shared->truth[0];

	t->nr = 0;
	t->whole = true;
	t->tid = ss_syscall(__NR_gettid, 0, 0, 0, 0, 0);
}

static in_leaf long leaf(const struct scenario *sc, unsigned long end, bool whole, int side)
{
	unsigned long x = 1;
	char byte = 0;

	if (end)
		note_truth(end, whole);
	while (!shared->stop) {
		switch (sc->work) {
		case SPIN:
			for (int i = 0; i < 1000; i++)
				asm volatile("" : "+r"(x));
			break;
		case READ_ZERO:
			ss_syscall(__NR_read, zero_fd, (unsigned long)zeros, sizeof(zeros), 0, 0);
			break;
		case YIELD:
			ss_syscall(__NR_sched_yield, 0, 0, 0, 0, 0);
			break;
		case PING:
			ss_syscall(__NR_write, pipes[side][1], (unsigned long)&byte, 1, 0, 0);
			ss_syscall(__NR_read, pipes[!side][0], (unsigned long)&byte, 1, 0, 0);
			break;
		}
	}
	return x;
}

static noinline_ long descend(const struct scenario *sc, int n, unsigned long end, bool whole,
			      int side)
{
	long r;

	if (n)
		r = descend(sc, n - 1, end, whole, side);
	else
		r = leaf(sc, end, whole, side);
	asm volatile("" : "+r"(r)); /* the asm prevents a tail call */
	return r;
}

static void enter_plain(const struct scenario *sc)
{
	descend(sc, sc->depth, main_top, true, 0);
}

/*
 * Runs in a forked child, which continues on a copy of the stack; the kernel has no record of that
 * stack.
 */
static void enter_forked(const struct scenario *sc)
{
	pid_t pid = fork();

	descend(sc, sc->depth, main_top, true, !pid);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* Runs in a vfork child, which uses its parent's shadow stack. */
static void enter_vforked(const struct scenario *sc)
{
	long pid = ss_syscall(__NR_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);

	if (!pid) {
		descend(sc, sc->depth, main_top, true, 0);
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
	}
	waitpid(pid, NULL, 0);
}

static void *thread_main(void *arg)
{
	const struct scenario *sc = arg;

	thread_top = ss_pointer();
	descend(sc, sc->depth, thread_top, false, 0);
	return NULL;
}

static void enter_thread(const struct scenario *sc)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_main, (void *)sc))
		_exit(1);
	pthread_join(thread, NULL);
}

static const struct scenario *handler_scenario;

static void handler(int sig)
{
	(void)sig;
	descend(handler_scenario, 4, main_top, true, 0);
}

static noinline_ long raise_deep(const struct scenario *sc, int n)
{
	long r;

	if (n)
		r = raise_deep(sc, n - 1);
	else
		r = kill(getpid(), SIGUSR1);
	asm volatile("" : "+r"(r));
	return r;
}

static void enter_signal(const struct scenario *sc)
{
	handler_scenario = sc;
	signal(SIGUSR1, handler);
	raise_deep(sc, sc->depth);
}

/* The program made this stack itself and switches to it. */
static struct ss_context back, coroutine;
static unsigned long coroutine_top;
static const struct scenario *coroutine_scenario;

static void coroutine_main(void)
{
	descend(coroutine_scenario, coroutine_scenario->depth, coroutine_top, false, 0);
	_exit(0);
}

static void enter_coroutine(const struct scenario *sc)
{
	static char stack[1 << 16] __attribute__((aligned(64)));
	long base = ss_map(0, 0x4000, SS_SET_TOKEN);

	if (base < 0)
		_exit(1);
	coroutine_scenario = sc;
	coroutine_top = base + 0x4000;
	coroutine.token = coroutine_top - 8;
	coroutine.sp = SS_ENTRY_SP((unsigned long)stack + sizeof(stack));
	coroutine.pc = (unsigned long)coroutine_main;
	ss_swapcontext(&back, &coroutine);
}

/* Runs without a shadow stack. */
static void enter_without(const struct scenario *sc)
{
	note_thread();
	descend(sc, sc->depth, 0, true, 0);
}

#ifdef __x86_64__
/* Loops in two bytes of 32-bit code until it is killed. */
static void enter_compat(const struct scenario *sc)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	(void)sc;
	if (code == MAP_FAILED)
		_exit(1);
	code[0] = 0xeb; /* jmp . */
	code[1] = 0xfe;
	shared->code = (uint64_t)code;
	shared->size = 2;
	note_thread();
	asm volatile("mov %0, %%rsp\n\tpushq $0x23\n\tpushq %1\n\tlretq" ::"r"(code + 2048),
		     "r"(code)
		     : "memory");
}
#endif

/* The frame that turns the shadow stack on must not return. */
static void __attribute__((noreturn, noinline)) workload(const struct scenario *sc)
{
	if (!sc->off) {
		if (ss_enable(SS_ENABLE))
			_exit(2);
		main_top = ss_pointer();
	}
	sc->enter(sc);
	for (;;)
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

/* ---- The sampling side ---- */

struct result {
	unsigned int hits[2]; /* samples in the leaf, by what was hit: user mode, kernel */
	unsigned int equal[2];
	bool deferred; /* only deferred chains are counted */
	unsigned int extra; /* entries behind the end of a private stack */
	struct sample odd; /* the first sample that differs */
	struct truth *odd_truth;
};

static bool chain_equal(const struct sample *s, const struct truth *t, struct result *res)
{
	if (s->nr < t->nr + 1 || (t->whole && s->nr != t->nr + 1))
		return false;
	for (unsigned int i = 0; i < t->nr; i++)
		if (s->ip[i + 1] != t->word[i])
			return false;
	res->extra += s->nr - 1 - t->nr;
	return true;
}

static void take_sample(void *arg, const struct sample *s)
{
	struct result *res = arg;
	struct truth *t = shared->truth;
	unsigned int i;

	if (!s->nr || s->ip[0] - shared->code >= shared->size || s->deferred != res->deferred)
		return;
	for (i = 0; i < 8; i++, t++)
		if (t->tid && (t->tid == s->tid || s->deferred))
			break;
	if (i == 8)
		return;
	res->hits[s->in_kernel]++;
	if (chain_equal(s, t, res)) {
		res->equal[s->in_kernel]++;
	} else if (!res->odd_truth) {
		res->odd = *s;
		res->odd_truth = t;
	}
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void print_odd(const struct result *res)
{
	const struct sample *s = &res->odd;
	const struct truth *t = res->odd_truth;
	unsigned int at = 0;

	while (at < t->nr && at + 1 < s->nr && s->ip[at + 1] == t->word[at])
		at++;
	ksft_print_msg("first other chain: %u entries, true %u, equal up to %u: %#lx, true %#lx\n",
		       s->nr, t->nr + 1, at + 1, at + 1 < s->nr ? (long)s->ip[at + 1] : 0L,
		       at < t->nr ? (long)t->word[at] : 0L);
}

/* Samples a scenario. Returns 0, or the errno of what could not be done. */
static int sample_scenario(const struct scenario *sc, struct result *res)
{
	struct sampler sampler;
	int go[2], ret, status;
	double end;
	pid_t pid;

	memset(res, 0, sizeof(*res));
	memset(shared, 0, sizeof(*shared));
	shared->code = (uint64_t)__start_leaf_text;
	shared->size = __stop_leaf_text - __start_leaf_text;
	res->deferred = sc->defer;
	if (pipe(go) || pipe(pipes[0]) || pipe(pipes[1]))
		return errno;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		char byte;

		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(0);
		workload(sc);
	}
	ret = sampler_open(&sampler, pid, PERIOD_NS, sc->defer);
	if (!ret && write(go[1], "", 1) != 1)
		ret = -errno;
	close(go[0]);
	close(go[1]);

	end = now() + SECONDS;
	while (!ret && now() < end && res->hits[0] + res->hits[1] < SAMPLES &&
	       !waitpid(pid, &status, WNOHANG)) {
		usleep(5000);
		sampler_drain(&sampler, take_sample, res);
	}
	shared->stop = 1;
	for (int i = 0; i < 2; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	usleep(1000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!ret)
		sampler_close(&sampler);
	return -ret;
}

/*
 * Returns whether the kernel can defer callchains, which needs the architecture's support:
 * unwind_user().
 */
static bool kernel_defers(void)
{
	static char buf[1 << 16];
	int fd = open("/proc/kallsyms", O_RDONLY);
	bool found = false;
	ssize_t n, kept = 0;

	while (fd >= 0 && !found && (n = read(fd, buf + kept, sizeof(buf) - 1 - kept)) > 0) {
		buf[kept + n] = 0;
		found = strstr(buf, " unwind_user\n");
		/* A name may be cut at the end of the buffer, so the last bytes are kept. */
		n += kept;
		kept = n < 32 ? n : 32;
		memmove(buf, buf + n - kept, kept);
	}
	close(fd);
	return found;
}

static void run(const struct scenario *sc)
{
	static struct result res;
	unsigned int hits, equal;
	int err;
	bool ok;

	if (sc->defer && !kernel_defers()) {
		ksft_test_result_skip("%s: no deferred callchains in this kernel\n", sc->name);
		return;
	}
	err = sample_scenario(sc, &res);
	hits = res.hits[0] + res.hits[1];
	equal = res.equal[0] + res.equal[1];
	if (err) {
		ksft_test_result_fail("%s: %s\n", sc->name, strerror(err));
		return;
	}
	ok = hits >= SAMPLES / 2 && (hooked ? equal == hits : equal < hits);
	ksft_test_result(ok, "%s: equal %u of %u user hits, %u of %u kernel hits\n", sc->name,
			 res.equal[0], res.hits[0], res.equal[1], res.hits[1]);
	if (res.extra)
		ksft_print_msg("%s: %u entries behind the end of its stack\n", sc->name, res.extra);
	if (!ok && res.odd_truth)
		print_odd(&res);
}

/* Reads one of the module's counters of chains. */
static long read_counter(const char *name)
{
	char path[96], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/module/shstk_perf/chains/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		ksft_exit_fail_msg("%s: cannot be read\n", path);
	close(fd);
	return atol(text);
}

/*
 * Runs a scenario without a shadow stack. @counter counts the chains of the one who serves them.
 * They have one entry, unless the kernel's own walk serves them.
 */
static void run_without(const struct scenario *sc, const char *counter)
{
	static struct result res;
	long before = read_counter(counter), more;
	unsigned int hits, equal;
	int err = sample_scenario(sc, &res);

	more = read_counter(counter) - before;
	hits = res.hits[0] + res.hits[1];
	equal = res.equal[0] + res.equal[1];
	ksft_test_result(!err && hits >= SAMPLES / 2 && more >= hits &&
				 (equal == hits || strcmp(counter, "served_rules")),
			 "%s: %u hits, %u with one entry, %ld more %s\n", sc->name, hits, equal,
			 more, counter);
}

/* Loads a table by which all frames of this program are outermost ones. Returns 0 or an errno. */
static int load_wrong_table(void)
{
	int device = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC), ret;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct shstk_rules_load arg = { .fd = fd, .name = "perf_test" };
	struct shstk_rules_header *h;
	unsigned int pages;
	struct stat st;
	uint64_t *rule;

	if (device < 0 || fstat(fd, &st))
		return errno;
	pages = (st.st_size >> SHSTK_RULES_PAGE_SHIFT) + 1;
	arg.size = sizeof(*h) + sizeof(*rule) + 4ul * (2 * pages + 1);
	h = calloc(1, arg.size);
	if (!h)
		return ENOMEM;
	*h = (struct shstk_rules_header){
		.magic = SHSTK_RULES_MAGIC,
		.version = SHSTK_RULES_VERSION,
#ifdef __x86_64__
		.machine = EM_X86_64,
#else
		.machine = EM_AARCH64,
#endif
		.nr_rules = 1,
		.nr_pages = pages,
		.nr_rows = pages,
	};
	rule = (uint64_t *)(h + 1);
	*rule = SHSTK_RULE_END;
	/* Each page has one row, at its first byte, with that rule. */
	for (unsigned int i = 0; i <= pages; i++)
		((uint32_t *)(rule + 1))[i] = i;
	arg.table = (uint64_t)h;
	ret = ioctl(device, SHSTK_RULES_LOAD, &arg) ? errno : 0;
	free(h);
	close(fd);
	close(device);
	return ret;
}

static const struct scenario by_rules = {
	"without a shadow stack, by unwind rules", enter_without, SPIN, 8, 1, 0,
};

#ifdef __x86_64__
static const struct scenario compat = {
	"32-bit code, by the kernel's own walk", enter_compat, SPIN, 0, 1, 0,
};
#endif

static const struct scenario scenarios[] = {
	{ "spin, depth 8", enter_plain, SPIN, 8, 0, 0 },
	{ "spin, depth 100", enter_plain, SPIN, 100, 0, 0 },
	{ "system calls, depth 64", enter_plain, READ_ZERO, 64, 0, 0 },
	{ "forked processes that yield to each other", enter_forked, YIELD, 32, 0, 0 },
	{ "forked processes that wait for each other", enter_forked, PING, 32, 0, 0 },
	{ "vfork child", enter_vforked, SPIN, 16, 0, 0 },
	{ "thread", enter_thread, SPIN, 32, 0, 0 },
	{ "signal handler", enter_signal, SPIN, 16, 0, 0 },
	{ "own stack switched to", enter_coroutine, SPIN, 16, 0, 0 },
	{ "own stack switched to, system calls", enter_coroutine, READ_ZERO, 16, 0, 0 },
	{ "deferred to the return to user mode", enter_plain, SPIN, 64, 0, 1 },
	{ "deferred, system calls", enter_plain, READ_ZERO, 64, 0, 1 },
};

int main(void)
{
	int err = 0;

	need_shadow_stacks();
	hooked = !access("/sys/module/shstk_perf", F_OK);
	signal(SIGPIPE, SIG_IGN);
	zero_fd = open("/dev/zero", O_RDONLY);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		ksft_exit_fail_msg("no memory\n");

	ksft_print_header();
	ksft_print_msg("shstk_perf is %sloaded\n", hooked ? "" : "not ");
	if (hooked)
		err = load_wrong_table();
	if (err)
		ksft_exit_fail_msg("unwind rules for this program: %s\n", strerror(err));
#ifdef __x86_64__
	ksft_set_plan(ARRAY_SIZE(scenarios) + 2 * hooked);
#else
	ksft_set_plan(ARRAY_SIZE(scenarios) + hooked);
#endif
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++)
		run(&scenarios[i]);
	if (hooked)
		run_without(&by_rules, "served_rules");
#ifdef __x86_64__
	if (hooked)
		run_without(&compat, "no_shadow_stack");
#endif
	ksft_finished();
}
