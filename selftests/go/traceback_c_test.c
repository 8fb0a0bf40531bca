// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * traceback_c_test.c - shstk_go_traceback() and shstk_go_context(), called by C as Go's runtime
 * calls them: the functions in section "gotext" stand for Go.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "libshstk/shstk_go.h"
#include "selftests/place.h"

/* Makes a function that the compiler neither inlines nor merges. */
#ifdef __clang__
#define OWN noinline
#else
#define OWN noipa
#endif
#define GO __attribute__((OWN, section("gotext")))
#define C_FUNCTION(name) __attribute__((OWN, section("in_" #name)))
#define MAX 32

PLACE(callback);
PLACE(middle);
PLACE(below_go);

extern char __start_gotext[], __stop_gotext[];

struct traceback {
	uintptr_t context, sigcontext;
	uintptr_t *buf;
	uintptr_t max;
};

static struct {
	uintptr_t pcs[MAX];
	int n;
} got;

static void ask(uintptr_t context, void *ucontext, uintptr_t max)
{
	struct traceback arg = { context, (uintptr_t)ucontext, got.pcs, max };

	memset(&got, 0xff, sizeof(got));
	shstk_go_traceback(&arg);
	for (got.n = 0; got.n < (int)max && got.pcs[got.n]; got.n++)
		;
}

static uintptr_t context;

/* Stands for _cgo_wait_runtime_init_done(), which has returned when the traceback is taken. */
C_FUNCTION(make_context) static void make_context(void)
{
	struct {
		uintptr_t context;
	} arg = { 0 };

	shstk_go_context(&arg);
	context = arg.context;
}

static void release_context(void)
{
	shstk_go_context(&context);
	context = 0;
}

C_FUNCTION(overwrite) static int overwrite(int n)
{
	volatile char room[512];

	memset((char *)room, 0x55, sizeof(room));
	return room[n];
}

static void (*ask_in_callback)(void);

/* An exported Go function as C sees it, with what is called below it. */
C_FUNCTION(callback) static int callback(void)
{
	make_context();
	overwrite(3);
	ask_in_callback();
	release_context(); /* after the call, so that ask_in_callback() is no tail call */
	return 1;
}

C_FUNCTION(middle) static int middle(int n)
{
	volatile int got_back = n ? middle(n - 1) : callback();

	return got_back + 1;
}

GO static int go_calls(int n)
{
	volatile int got_back = middle(n);

	return got_back + 1;
}

C_FUNCTION(below_go) static int below_go(int n)
{
	volatile int got_back = go_calls(n);

	return got_back + 1;
}

static void ask_by_context(void)
{
	ask(context, NULL, MAX);
}

static void *ask_in_thread(void *unused)
{
	ask_by_context();
	return unused;
}

static void ask_from_elsewhere(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, ask_in_thread, NULL);
	pthread_join(thread, NULL);
}

static void on_signal(int sig, siginfo_t *info, void *ucontext)
{
	(void)sig;
	(void)info;
	ask(0, ucontext, MAX);
}

static void by_signal(void)
{
	raise(SIGUSR1);
}

TEST(a_range_that_is_empty_is_refused)
{
	EXPECT_EQ(shstk_go_set_text(5, 5), -EINVAL);
	EXPECT_EQ(shstk_go_set_text(6, 5), -EINVAL);
}

FIXTURE(go){};

FIXTURE_SETUP(go)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	ASSERT_EQ(shstk_go_set_text((uintptr_t)__start_gotext, (uintptr_t)__stop_gotext), 0);
	sigaction(SIGUSR1, &sa, NULL);
}

FIXTURE_TEARDOWN(go)
{
}

/*
 * Returns whether the addresses are callback(), then middle() @n + 1 times, and nothing of Go or
 * below it.
 */
static bool found_chain(int n)
{
	int i;

	if (got.n != n + 2 || !is_in(callback, got.pcs[0]))
		return false;
	for (i = 1; i < got.n; i++)
		if (!is_in(middle, got.pcs[i]))
			return false;
	return true;
}

TEST_F(go, a_context_leads_to_the_c_functions_below_a_callback)
{
	ask_in_callback = ask_by_context;
	for (int n = 0; n < 25; n++) {
		below_go(n);
		EXPECT_TRUE(found_chain(n)) TH_LOG("%d: %d addresses", n, got.n);
	}
}

TEST_F(go, another_thread_may_ask)
{
	ask_in_callback = ask_from_elsewhere;
	below_go(7);
	EXPECT_TRUE(found_chain(7)) TH_LOG("%d addresses", got.n);
}

TEST_F(go, a_signal_in_c_is_traced_up_to_go)
{
	int i, callbacks = 0;

	ask_in_callback = by_signal;
	below_go(3);
	for (i = 0; i < got.n; i++) {
		callbacks += is_in(callback, got.pcs[i]);
		EXPECT_FALSE(is_in(below_go, got.pcs[i]));
		EXPECT_FALSE(got.pcs[i] >= (uintptr_t)__start_gotext &&
			     got.pcs[i] < (uintptr_t)__stop_gotext);
	}
	EXPECT_EQ(callbacks, 1);
	ASSERT_GT(got.n, 4);
	EXPECT_TRUE(is_in(middle, got.pcs[got.n - 1]));
}

TEST_F(go, no_more_than_was_asked_for)
{
	uintptr_t all[4] = { 1, 2, 3, 4 };
	struct traceback arg = { 0, 0, all, 2 };

	shstk_go_traceback(&arg);
	EXPECT_NE(all[1], 2);
	EXPECT_EQ(all[2], 3);
	arg.max = 0;
	shstk_go_traceback(&arg);
	EXPECT_EQ(all[2], 3);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

#define THREADS 32

/* Each is a thread's first sample, and all of these threads live at once. */
static struct {
	pthread_barrier_t all;
	pthread_mutex_t one;
	double seconds[THREADS];
	int frames[THREADS];
} firsts = { .one = PTHREAD_MUTEX_INITIALIZER };

static int thread_number;
static double first_seconds;

static void on_first_signal(int sig, siginfo_t *info, void *ucontext)
{
	double start = seconds();

	on_signal(sig, info, ucontext);
	first_seconds = seconds() - start;
}

static void *take_first(void *unused)
{
	pthread_mutex_lock(&firsts.one);
	below_go(7);
	firsts.seconds[thread_number] = first_seconds;
	firsts.frames[thread_number++] = got.n;
	pthread_mutex_unlock(&firsts.one);
	pthread_barrier_wait(&firsts.all);
	return unused;
}

TEST_F(go, the_first_sample_of_a_thread_is_as_whole_as_others)
{
	struct sigaction sa = { .sa_sigaction = on_first_signal, .sa_flags = SA_SIGINFO };
	pthread_t threads[THREADS];
	double worst = 0, sum = 0;
	int i;

	sigaction(SIGUSR1, &sa, NULL);
	pthread_barrier_init(&firsts.all, NULL, THREADS);
	ask_in_callback = by_signal;
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, take_first, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < THREADS; i++) {
		EXPECT_EQ(firsts.frames[i], firsts.frames[0]);
		worst = firsts.seconds[i] > worst ? firsts.seconds[i] : worst;
		sum += firsts.seconds[i];
	}
	EXPECT_GT(firsts.frames[0], 8);
	TH_LOG("first samples of %d threads: %.1f us of CPU time, at most %.1f us", THREADS,
	       sum / THREADS * 1e6, worst * 1e6);
}

C_FUNCTION(many_contexts) static void many_contexts(int n)
{
	while (n--) {
		make_context();
		release_context();
	}
}

TEST_F(go, contexts_are_used_again)
{
	uintptr_t first;
	double start;

	make_context();
	first = context;
	release_context();
	make_context();
	EXPECT_EQ(context, first);
	release_context();
	start = seconds();
	many_contexts(1000000);
	TH_LOG("%.1f ns for a context and its release", (seconds() - start) * 1e3);
}

/* ---- Costs, in instructions: a measure that other work on the machine does not change ---- */

/*
 * Returns how many instructions @fn executes up to its return, counted by a parent that steps a
 * child of this process. The system calls around it count, too: some 100 instructions. Returns -1
 * if the child did not end well.
 */
static long count_instructions(void (*prepare)(void), void (*fn)(void))
{
	long n = 0;
	int status;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		if (prepare)
			prepare();
		kill(getpid(), SIGSTOP);
		fn();
		kill(getpid(), SIGSTOP);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -1;
	do {
		n++;
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid ||
		    !WIFSTOPPED(status))
			return -1;
	} while (WSTOPSIG(status) == SIGTRAP);
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	return n;
}

static int (*plugin_call)(void (*fn)(void));

static void ask_here(void)
{
	ask(0, NULL, MAX);
}

/* Prepares what a thread's first sample looks up. */
static void load_plugin(void)
{
	ask_here();
	*(void **)&plugin_call = dlsym(dlopen(PLUGIN, RTLD_NOW), "plugin_call");
}

/* Asks below a function of a library that was loaded just now. */
static void ask_in_plugin(void)
{
	plugin_call(ask_here);
}

static void load_and_call_go(void)
{
	load_plugin();
	make_context();
	release_context();
}

static void load_and_tell(void)
{
	load_plugin();
	shstk_go_set_text((uintptr_t)__start_gotext, (uintptr_t)__stop_gotext);
}

static void one_context(void)
{
	many_contexts(1);
}

static void more_contexts(void)
{
	many_contexts(101);
}

/*
 * The limits are those of optimized code. Without optimization the trace in the plugin is also the one that meets a
 * ninth address in a chunk of this program's rules and compiles it (table.c): 500,000 instructions.
 */
#ifdef __OPTIMIZE__
#define NEEDS_OPTIMIZED_CODE() ((void)0)
#else
#define NEEDS_OPTIMIZED_CODE() SKIP(return, "compiled without optimization")
#endif

/*
 * 100 us at one instruction per ns, which is slow; and twice the need of a context, which takes 5
 * to 7 ns of 30.
 */
#define SAMPLE_LIMIT 100000
#define CONTEXT_LIMIT 240

TEST_F(go, a_first_sample_takes_100000_instructions_at_most)
{
	long n;

	NEEDS_OPTIMIZED_CODE();
	n = count_instructions(NULL, ask_here);

	TH_LOG("%ld instructions", n);
	EXPECT_GT(n, 0);
	EXPECT_LT(n, SAMPLE_LIMIT);
}

TEST_F(go, libraries_that_are_loaded_are_looked_up_by_a_call_of_go)
{
	long cold, warm;

	NEEDS_OPTIMIZED_CODE();
	cold = count_instructions(load_plugin, ask_in_plugin);
	warm = count_instructions(load_and_call_go, ask_in_plugin);

	TH_LOG("%ld instructions, %ld once C called Go", cold, warm);
	EXPECT_GT(warm, 0);
	EXPECT_LT(warm + 2000, cold);
	EXPECT_LT(warm, SAMPLE_LIMIT);
}

TEST_F(go, or_when_the_range_is_said_again)
{
	long cold, warm;

	NEEDS_OPTIMIZED_CODE();
	cold = count_instructions(load_plugin, ask_in_plugin);
	warm = count_instructions(load_and_tell, ask_in_plugin);

	TH_LOG("%ld instructions, %ld once it was said again", cold, warm);
	EXPECT_GT(warm, 0);
	EXPECT_LT(warm + 2000, cold);
}

TEST_F(go, a_context_takes_few_instructions)
{
	long one, more;

	NEEDS_OPTIMIZED_CODE();
	one = count_instructions(one_context, one_context);
	more = count_instructions(one_context, more_contexts);

	TH_LOG("%.1f instructions for a context and its release", (more - one) / 100.0);
	EXPECT_GT(one, 0);
	EXPECT_LT(more - one, 100 * CONTEXT_LIMIT);
}

TEST_HARNESS_MAIN
