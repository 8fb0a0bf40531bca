// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * glibc_test.c - shadow stacks that the C library turns on: glibc 2.43 on arm64
 *
 * A dynamic program, marked as made for GCS. It starts itself again with the
 * tunable that turns shadow stacks on and runs its tests so. Its arguments are
 * a program and a library that are not marked.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <ucontext.h>

#include "../facts.h"
#include "kselftest_harness.h"

#define TUNABLE "glibc.cpu.aarch64_gcs="

static const char *plain_program, *plain_library;

/* The shadow stack pointer in main(), which the C library called. */
static unsigned long main_ssp;

/* ---- Programs under each value of the tunable ---- */

struct run {
	char out[256]; /* its first bytes of output, standard error included */
	int status; /* exit status; -1: ended by a signal */
	unsigned long bits; /* the status that the program found, see report() */
	long answer;
};

/*
 * Runs @prog with @arg. @value is that of the tunable that turns shadow stacks on; NULL: not set.
 */
static bool run(struct run *run, const char *value, const char *prog, const char *arg)
{
	char tunable[64];
	int fds[2], status;
	ssize_t got, size = 0;
	pid_t pid;

	memset(run, 0, sizeof(*run));
	fflush(NULL);
	if (pipe(fds))
		return false;
	pid = fork();
	if (!pid) {
		snprintf(tunable, sizeof(tunable), TUNABLE "%s", value ?: "");
		if (value)
			setenv("GLIBC_TUNABLES", tunable, 1);
		else
			unsetenv("GLIBC_TUNABLES");
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execl(prog, prog, arg, plain_library, NULL);
		_exit(126);
	}
	close(fds[1]);
	while (size < (ssize_t)sizeof(run->out) - 1) {
		got = read(fds[0], run->out + size, sizeof(run->out) - 1 - size);
		if (got <= 0)
			break;
		size += got;
	}
	close(fds[0]);
	if (waitpid(pid, &status, 0) != pid)
		return false;
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	sscanf(run->out, "status %lx answer %ld", &run->bits, &run->answer);
	return true;
}

FIXTURE(tunable){};
FIXTURE_SETUP(tunable)
{
}
FIXTURE_TEARDOWN(tunable)
{
}
FIXTURE_VARIANT(tunable)
{
	const char *value;
	unsigned long marked; /* status in a marked program */
	bool locked; /* whether that status is locked */
	int plain_exit; /* exit status of an unmarked program */
	unsigned long plain; /* status in an unmarked program */
	bool load; /* whether an unmarked library can be loaded */
};

FIXTURE_VARIANT_ADD(tunable, unset){ .load = true };
FIXTURE_VARIANT_ADD(tunable, is_0){ .value = "0", .load = true };
FIXTURE_VARIANT_ADD(tunable, is_1){
	.value = "1",
	.marked = SS_ENABLE,
	.locked = true,
	.plain_exit = 127,
};
FIXTURE_VARIANT_ADD(tunable, is_2){ .value = "2", .marked = SS_ENABLE };
FIXTURE_VARIANT_ADD(tunable, is_3){
	.value = "3",
	.marked = SS_ENABLE,
	.locked = true,
	.plain = SS_ENABLE,
	.load = true,
};

TEST_F(tunable, a_marked_program_runs_with_this_status)
{
	struct run r;

	ASSERT_TRUE(run(&r, variant->value, "/proc/self/exe", "--status"));
	EXPECT_EQ(0, r.status);
	EXPECT_EQ(variant->marked, r.bits);
	EXPECT_EQ(variant->locked ? -EBUSY : 0, r.answer);
}

TEST_F(tunable, an_unmarked_program_runs_so)
{
	struct run r;

	ASSERT_TRUE(run(&r, variant->value, plain_program, "--status"));
	EXPECT_EQ(variant->plain_exit, r.status) TH_LOG("%s", r.out);
	EXPECT_EQ(variant->plain, r.bits);
	if (variant->plain_exit)
		EXPECT_NE(NULL, strstr(r.out, "not GCS compatible"));
}

TEST_F(tunable, an_unmarked_library_is_loaded_so)
{
	struct run r;

	ASSERT_TRUE(run(&r, variant->value, "/proc/self/exe", "--load"));
	EXPECT_EQ(variant->load ? 0 : 1, r.status) TH_LOG("%s", r.out);
	if (!variant->load)
		EXPECT_NE(NULL, strstr(r.out, "not GCS compatible"));
}

/* ---- What the library's own control transfers do to the pointer ---- */

TEST(main_has_the_end_word_a_few_entries_further_out)
{
	int entries = 0;

	while (entries < 16 && peek(main_ssp + entries * WORD))
		entries++;
	TH_LOG("%d entries", entries);
	EXPECT_LT(0, entries);
	EXPECT_GT(16, entries);

	struct mapping map;

	ASSERT_TRUE(find_mapping(main_ssp, &map));
	EXPECT_EQ(map.end - WORD, main_ssp + entries * WORD);
}

static jmp_buf env;

static int noinline jump_out(int depth, bool jump)
{
	if (depth)
		return jump_out(depth - 1, jump) + 1;
	if (jump)
		longjmp(env, 1);
	return 0;
}

TEST(longjmp_puts_the_pointer_back)
{
	volatile unsigned long before = ss_pointer();

	if (!setjmp(env))
		jump_out(20, true);
	EXPECT_EQ(before, ss_pointer());
}

static sigjmp_buf sigenv;

static void on_signal(int sig)
{
	(void)sig;
	siglongjmp(sigenv, 1);
}

TEST(siglongjmp_out_of_a_handler_puts_the_pointer_back)
{
	volatile unsigned long before = ss_pointer();

	signal(SIGUSR1, on_signal);
	if (!sigsetjmp(sigenv, 1))
		raise(SIGUSR1);
	EXPECT_EQ(before, ss_pointer());
}

/* ---- ucontext ---- */

#define CONTEXT_STACK (64UL << 10)

static ucontext_t main_context, other_context;
static unsigned long context_ssp;
static struct mapping context_map;
static int turns;

static void other_main(void)
{
	context_ssp = ss_pointer();
	find_mapping(context_ssp, &context_map);
	for (turns = 1; turns < 3; turns++)
		swapcontext(&other_context, &main_context);
}

static void make_context(void)
{
	static char stack[CONTEXT_STACK] __attribute__((aligned(16)));

	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	other_context.uc_link = &main_context;
	makecontext(&other_context, other_main, 0);
}

TEST(makecontext_makes_a_shadow_stack_of_its_own)
{
	struct mapping own;

	make_context();
	swapcontext(&main_context, &other_context);
	ASSERT_TRUE(find_mapping(ss_pointer(), &own));
	EXPECT_TRUE(context_map.shadow);
	EXPECT_NE(own.start, context_map.start);
	TH_LOG("%lu KiB for a stack of %lu KiB", (context_map.end - context_map.start) / 1024,
	       CONTEXT_STACK / 1024);
	EXPECT_LE(CONTEXT_STACK / 2, context_map.end - context_map.start);
}

TEST(swapcontext_goes_back_and_forth_with_the_pointer)
{
	unsigned long before = ss_pointer();

	make_context();
	for (int i = 1; i < 3; i++) {
		swapcontext(&main_context, &other_context);
		EXPECT_EQ(i, turns);
		EXPECT_EQ(before, ss_pointer());
	}
	/* When other_main() returns, uc_link brings us back here. */
	swapcontext(&main_context, &other_context);
	EXPECT_EQ(3, turns);
	EXPECT_EQ(before, ss_pointer());
}

TEST(above_a_contexts_entries_there_are_zeros_to_the_end)
{
	unsigned long addr;

	make_context();
	swapcontext(&main_context, &other_context);
	/* The one entry returns to the library, which ends the context. */
	EXPECT_NE(0, peek(context_ssp));
	addr = context_ssp + WORD;
	EXPECT_GT(context_map.end, addr);
	for (; addr < context_map.end; addr += WORD)
		EXPECT_EQ(0, peek(addr));
}

/* ---- Threads ---- */

struct thread {
	unsigned long ssp;
	struct mapping map;
	int entries; /* up to the end word */
	size_t stack; /* bytes of stack that were asked for */
};

static void *measure_thread(void *arg)
{
	struct thread *t = arg;

	t->ssp = ss_pointer();
	find_mapping(t->ssp, &t->map);
	while (t->entries < 16 && peek(t->ssp + t->entries * WORD))
		t->entries++;
	return NULL;
}

static void *leave(void *arg)
{
	measure_thread(arg);
	pthread_exit(NULL);
}

static void *wait_for_cancel(void *arg)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	measure_thread(arg);
	pthread_setcancelstate(state, NULL);
	for (;;)
		pause();
	return NULL;
}

FIXTURE(pthread)
{
	struct thread t;
};
FIXTURE_SETUP(pthread)
{
}
FIXTURE_TEARDOWN(pthread)
{
}
FIXTURE_VARIANT(pthread)
{
	void *(*fn)(void *);
	bool cancel;
};
FIXTURE_VARIANT_ADD(pthread, that_returns){ .fn = measure_thread };
FIXTURE_VARIANT_ADD(pthread, that_calls_pthread_exit){ .fn = leave };
FIXTURE_VARIANT_ADD(pthread, that_is_cancelled){
	.fn = wait_for_cancel,
	.cancel = true,
};

TEST_F(pthread, has_a_shadow_stack_with_an_end_word)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *res = "";

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 20);
	ASSERT_EQ(0, pthread_create(&thread, &attr, variant->fn, &self->t));
	if (variant->cancel)
		EXPECT_EQ(0, pthread_cancel(thread));
	EXPECT_EQ(0, pthread_join(thread, &res));
	EXPECT_EQ(variant->cancel ? PTHREAD_CANCELED : NULL, res);
	EXPECT_TRUE(self->t.map.shadow);
	EXPECT_EQ(self->t.map.end - WORD, self->t.ssp + self->t.entries * WORD);
	/* The library asks for its guard as well, and the kernel takes half of the sum. */
	TH_LOG("%lu KiB for a stack of 1024 KiB, %d entries",
	       (self->t.map.end - self->t.map.start) / 1024, self->t.entries);
	EXPECT_LE(512UL << 10, self->t.map.end - self->t.map.start);
}

/* ---- Shadow stacks turned on late, without the library's knowledge ---- */

static jmp_buf early;

static void noinline jump_early(void)
{
	longjmp(early, 1);
}

/*
 * longjmp() in a process that turned shadow stacks on late: it needs a frame that does not return.
 */
static int late_longjmp(void)
{
	if (setjmp(early))
		_exit(1);
	if (ss_enable(SS_ENABLE))
		_exit(2);
	jump_early();
	_exit(3);
}

static void on_segv(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	(void)uc;
	/* The handler calls write() and _exit() only. */
	_exit(info->si_code == SEGV_MAPERR && info->si_addr == (void *)-8UL ? 44 : 45);
}

static void *late_thread(void *arg)
{
	if (ss_enable(SS_ENABLE))
		_exit(2);
	pthread_exit(arg);
}

static int late_exit(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, late_thread, NULL);
	pthread_join(thread, NULL);
	_exit(1);
}

TEST(longjmp_to_a_buffer_filled_before_enabling_faults_at_minus_8)
{
	struct run r;

	ASSERT_TRUE(run(&r, NULL, "/proc/self/exe", "--late-longjmp"));
	EXPECT_EQ(44, r.status);
}

TEST(pthread_exit_in_a_thread_that_enabled_late_faults_at_minus_8)
{
	struct run r;

	ASSERT_TRUE(run(&r, NULL, "/proc/self/exe", "--late-exit"));
	EXPECT_EQ(44, r.status);
}

/* ---- What the program does when the test starts it again ---- */

static int report(void)
{
	unsigned long bits = 0;
	long answer;

	if (ss_status(&bits))
		return 99;
	/* A harmless change: it is undone before any return. */
	answer = ss_syscall(__NR_prctl, SS_PR_SET, bits ^ SS_PUSH, 0, 0, 0);
	if (!answer)
		ss_syscall(__NR_prctl, SS_PR_SET, bits, 0, 0, 0);
	printf("status %lx answer %ld\n", bits, answer);
	return 0;
}

static int load(const char *library)
{
	void *lib = dlopen(library, RTLD_NOW);

	if (lib)
		return 0;
	printf("%s\n", dlerror());
	return 1;
}

static int role(const char *name, const char *library)
{
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };

	if (!strcmp(name, "--status"))
		return report();
	if (!strcmp(name, "--load"))
		return load(library);
	sigaction(SIGSEGV, &sa, NULL);
	if (!strcmp(name, "--late-longjmp"))
		return late_longjmp();
	if (!strcmp(name, "--late-exit"))
		return late_exit();
	fprintf(stderr, "%s: not a role of this program\n", name);
	return 98;
}

int main(int argc, char **argv)
{
	if (argc == 3 && argv[1][0] == '-')
		return role(argv[1], argv[2]);
	if (argc != 3) {
		printf("TAP version 13\n1..0 # SKIP needs an unmarked program and library\n");
		return KSFT_SKIP;
	}
	main_ssp = ss_pointer();
	if (!main_ssp) {
		if (getenv("GLIBC_TUNABLES")) {
			printf("TAP version 13\n1..0 # SKIP this C library or machine has no shadow stacks\n");
			return KSFT_SKIP;
		}
		setenv("GLIBC_TUNABLES", TUNABLE "1", 1);
		execv("/proc/self/exe", argv);
		return KSFT_FAIL;
	}
	plain_program = argv[1];
	plain_library = argv[2];
	return test_harness_run(1, argv);
}
