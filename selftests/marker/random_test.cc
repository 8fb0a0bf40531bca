// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * random_test.cc - random programs: calls through frames of every kind, values in
 * every kind of register, throws, longjmps, coroutine switches, signals; and
 * captures, which must be what the program itself knows. Each program is run
 * without the library, with the memo and with markers, and must do the same.
 * Prints KTAP.
 *
 *	random_test [SECONDS [SEED]]
 */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <sys/time.h>
#include <ucontext.h>

extern "C" {
#include "new_keys.h"
#include "truth.h"
#include "awake.h"
#include "shstk_marker.h"
}

enum mode { OFF, MEMO, MARKERS, MODES };

#define MAX_DEPTH 90
#define MAX_TARGETS 64
#define COROUTINES 3
#ifdef __aarch64__
#define BUDGET 1000 /* calls of one program, fewer where it is emulated */
#else
#define BUDGET 4000
#endif

__thread struct truth *truth;

/* One line of execution: the native stack, or the stack of a coroutine. */
struct line {
	ucontext_t uc;
	struct truth truth;
	struct line *resumer;
	jmp_buf *targets[MAX_TARGETS];
	int ntargets, tries, depth, opaque;
	bool live;
	char *stack;
};

/* What a program did; it must be the same in every mode. */
struct deeds {
	unsigned long calls, sum, caught, destroyed, jumps, switches, signals, bad_values, checks;
};

static struct line native, coroutine[COROUTINES];
static struct line *now = &native;
static struct deeds deeds;
static enum mode mode;
static uint64_t seed;
static volatile sig_atomic_t flux; /* nonzero while the truth and the stack differ */
static long budget;

static bool awake; /* whether markers may be placed at any time */
static long captures[MODES], from_marker, ids, handled, wrong;
static uint64_t pcs[8192], handler_pcs[8192];

/*
 * Random numbers for decisions that only some modes take: they leave the program's own sequence
 * alone.
 */
static unsigned int aside()
{
	static unsigned int x = 1;

	return (x = x * 1103515245 + 12345) >> 16 & 0x7fff;
}

static uint32_t rnd()
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 33;
}

#define FLUX(...)                                  \
	do {                                       \
		flux = 1;                          \
		__asm__ volatile("" ::: "memory"); \
		__VA_ARGS__;                       \
		__asm__ volatile("" ::: "memory"); \
		flux = 0;                          \
	} while (0)

static const struct shstk_opts memo_opts = {
	sizeof(memo_opts), SHSTK_USE_MEMO | SHSTK_USE_WALK, 0, 0, nullptr, nullptr,
};

typedef int (*capture_fn)(uint64_t *, unsigned int, const void *, void *);

/* Takes a trace and its identity from one call instruction, and compares them with the truth. */
static noinline void check()
{
	struct shstk_info info = {}, id_info = {};
	uint64_t id = 0;
	int i, n = 0, m = 0;

	deeds.checks++;
	if (mode == OFF)
		return;
	info.size = id_info.size = sizeof(info);
	if (mode == MEMO) {
		n = shstk_capture(pcs, 8192, &memo_opts, &info);
	} else {
		static uint64_t scratch[8192], plain[8192], small[16];
		unsigned int dice = aside();
		int with_id = dice & 1, repeat = dice >> 1 & 3, last = with_id + repeat;
		int room = dice >> 4 & 15;

		struct {
			capture_fn fn;
			uint64_t *pcs;
			void *a, *b;
			int ret, max;
		} call[5] = {
			{ (capture_fn)shstk_marker_capture, pcs, &info, nullptr, 0, 8192 },
			{ (capture_fn)shstk_capture_id, scratch, &id_info, &id, 0, 8192 },
			/* A capture without options takes a faster path where nothing is new. */
			{ (capture_fn)shstk_marker_capture, plain, nullptr, nullptr, 0, 8192 },
			/* The library's own captures also meet the markers. */
			{ (capture_fn)shstk_capture, plain, nullptr, nullptr, 0, 8192 },
			{ (capture_fn)shstk_marker_capture, small, nullptr, nullptr, 0, room },
		}, *c;
		bool first = dice & 8;

		if (awake)
			stay_awake();
		/* A loop, so that there is one call instruction however it is compiled. */
		for (i = 0; i <= last; i++) {
			c = &call[first ? (i < repeat ? i + 2 : i - repeat) :
					  i + (i > with_id ? 1 - with_id : 0)];
			__asm__ volatile("" : "+r"(i), "+r"(c) : : "memory");
			c->ret = c->fn(c->pcs, c->max, c->a, c->b);
		}
		n = call[0].ret;
		m = call[1].ret;
		for (i = 2; i < 2 + repeat; i++) {
			m = n < call[i].max ? n : call[i].max;
			if (call[i].ret == m && !memcmp(call[i].pcs, pcs, m * sizeof(*pcs)))
				continue;
			std::printf("# again: %d entries, not %d\n", call[i].ret, m);
			wrong++;
		}
		m = call[1].ret;
		if (with_id) {
			ids++;
			if (m != n || id != shstk_trace_id(pcs, n)) {
				std::printf("# identity: %d entries, not %d\n", m, n);
				wrong++;
			}
		}
		from_marker += info.source == SHSTK_SOURCE_MARKER;
	}
	captures[mode]++;
	if ((!now->opaque && !truth_equal(pcs, n, 2)) || n < truth->n ||
	    info.end != SHSTK_END_COMPLETE) {
		if (wrong++ < 5)
			std::printf("# %s: %s\n", shstk_source_name(info.source),
				    shstk_end_name(info.end));
	}
}

/*
 * In a handler the truth is that of the interrupted code, but for the frames that
 * are just being entered or left.
 */
static void look_around(void *uc)
{
	struct shstk_info info = {};
	int n, i, at;

	info.size = sizeof(info);
	if (mode == OFF)
		return;
	if (handled & 1)
		n = shstk_capture_context(uc, handler_pcs, 8192, nullptr, &info);
	else if (mode == MARKERS && handled & 2)
		n = shstk_marker_capture(handler_pcs, 8192, &info);
	else
		n = shstk_capture(handler_pcs, 8192, nullptr, &info);
	handled++;
	if (flux || truth->n < 4 || now->opaque)
		return;
	if (info.end != SHSTK_END_COMPLETE) {
		if (wrong++ < 5)
			std::printf("# in a handler (mode %d, %s), at %#lx: %s, end %#lx\n", mode,
				    now == &native ? "native" : "coroutine", (long)handler_pcs[0],
				    shstk_end_name(info.end), (long)info.end_pc);
		return;
	}
	for (at = n - 1; at >= 0 && handler_pcs[at] != truth->ra[0]; at--)
		;
	for (i = 0; i < truth->n - 3; i++) {
		if (at - i >= 0 && handler_pcs[at - i] == truth->ra[i])
			continue;
		if (wrong++ < 5)
			std::printf(
				"# in a handler (mode %d, %s): entry %d of %d from outside, at %#lx\n",
				mode, now == &native ? "native" : "coroutine", i, truth->n,
				(long)handler_pcs[0]);
		return;
	}
}

/* Asks for one tick at a time, after so many microseconds. */
static void start_ticks(int us)
{
	struct itimerval it = { { 0, 0 }, { 0, us } };

	setitimer(ITIMER_REAL, &it, nullptr);
}

static volatile sig_atomic_t ticking;

/*
 * The next tick comes later each time that the program has made no call since the last one: on a
 * busy machine, emulated, a handler and its return can take longer than the time to the next tick,
 * so that nothing else would run.
 */
static void on_tick(int, siginfo_t *, void *uc)
{
	static unsigned long seen;
	static int pause = 100;

	look_around(uc);
	if (!ticking)
		return;
	pause = deeds.calls != seen ? 100 : pause < 100000 ? 2 * pause : pause;
	seen = deeds.calls;
	start_ticks(pause + aside() % 200);
}

static void on_raise(int, siginfo_t *, void *uc)
{
	deeds.signals++;
	look_around(uc);
}

/*
 * Notes a frame that is left by return or by an exception; what is left by longjmp() is put back by
 * the function that called setjmp().
 */
struct level {
	struct line *line;
	int at, tries, targets, depth, opaque;

	__attribute__((always_inline)) explicit level(void *ra)
		: line(now)
		, at(truth->n)
		, tries(now->tries)
		, targets(now->ntargets)
		, depth(now->depth)
		, opaque(now->opaque)
	{
		truth->ra[at] = truth_strip(ra);
		__asm__ volatile("" ::: "memory");
		truth->n = at + 1;
		now->depth++;
	}
	__attribute__((always_inline)) ~level()
	{
		deeds.destroyed++;
		truth->n = at;
		line->tries = tries;
		line->ntargets = targets;
		line->depth = depth;
		line->opaque = opaque;
	}
};

#define ENTER() level l(__builtin_return_address(0))
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

static void act();

static noinline unsigned int small(unsigned int x)
{
	ENTER();
	act();
	return x * 3;
}

static noinline double floating(unsigned int x)
{
	ENTER();
	act();
	return x * 1.25;
}

static noinline long double extended(unsigned int x)
{
	ENTER();
	act();
	return x * 1.0L / 3;
}

struct pair {
	double a, b;
};

static noinline struct pair two_floats(unsigned int x)
{
	ENTER();
	act();
	return { x * 2.0, x * 3.0 };
}

static noinline unsigned __int128 wide(unsigned int x)
{
	ENTER();
	act();
	return (unsigned __int128)x << 64 | ~x;
}

struct large {
	unsigned int v[20];
};

static noinline struct large in_memory(unsigned int x)
{
	struct large ret;

	ENTER();
	for (unsigned int i = 0; i < 20; i++)
		ret.v[i] = x + i;
	act();
	return ret;
}

static noinline unsigned int variable(unsigned int x)
{
	ENTER();
	char *buf = (char *)alloca(16 + x % 700);

	KEEP(buf);
	act();
	buf = (char *)alloca(16 + x % 50);
	KEEP(buf);
	act();
	return x + 7;
}

static noinline unsigned int aligned(unsigned int x)
{
	ENTER();
	char buf[64] __attribute__((aligned(64)));

	KEEP(buf);
	act();
	KEEP(buf);
	return x + 1;
}

static unsigned int (*volatile tail_target)(unsigned int) = small;

/* Makes a tail call: its frame goes away, and its return address is reused. */
static noinline unsigned int tail(unsigned int x)
{
	return tail_target(x);
}

static noinline int compare(const void *a, const void *b)
{
	ENTER();
	act();
	return *(const int *)a - *(const int *)b;
}

/* Calls through libc, whose frames the truth does not know. */
static noinline unsigned int through_libc(unsigned int x)
{
	int v[2] = { (int)(x & 1023), 2000 };

	ENTER();
	now->opaque++;
	qsort(v, 2, sizeof(v[0]), compare);
	return v[0] < v[1] ? v[0] : v[1];
}

static noinline unsigned int catching(unsigned int x)
{
	unsigned int ret = x;
	ENTER();

	now->tries++;
	try {
		act();
	} catch (const std::runtime_error &) {
		flux = 0;
		deeds.caught++;
		now->tries--;
		now->depth = l.depth + 1;
		check();
		if (now->tries && rnd() % 3 == 0) {
			flux = 1;
			throw;
		}
		check();
	} catch (int v) {
		flux = 0;
		deeds.caught++;
		deeds.sum += v;
		now->depth = l.depth + 1;
		check();
	}
	check();
	return ret;
}

static noinline unsigned int jumping(unsigned int x)
{
	int n = truth->n, targets = now->ntargets, tries = now->tries, depth = now->depth,
	    opaque = now->opaque;
	jmp_buf target;

	/* This frame has no destructor, so longjmp() and exceptions may both pass it. */
	FLUX(truth->ra[truth->n] = truth_strip(__builtin_return_address(0)); truth->n++;
	     now->depth++);
	if (targets < MAX_TARGETS) {
		if (!setjmp(target)) {
			now->targets[now->ntargets++] = &target;
			/* Nothing throws inside, as this frame has no destructor that would follow. */
			now->tries = 0;
			act();
		} else {
			FLUX(truth->n = n + 1; now->depth = depth + 1; now->opaque = opaque);
			deeds.jumps++;
			check();
		}
	}
	now->ntargets = targets;
	now->tries = tries;
	check();
	NO_TAIL_CALL();
	FLUX(truth->n = n; now->depth = depth);
	return x ^ 5;
}

static void run_coroutine();

static noinline unsigned int switching(unsigned int x)
{
	ENTER();
	struct line *c = &coroutine[x % COROUTINES];

	if (now != &native) { /* return to the line that resumed this one */
		struct line *me = now;

		deeds.switches++;
		flux = 1;
		now = me->resumer;
		truth = &now->truth;
		swapcontext(&me->uc, &now->uc);
		flux = 0;
	} else {
		struct line *me = now;

		if (!c->live) {
			getcontext(&c->uc);
			c->uc.uc_stack.ss_sp = c->stack;
			c->uc.uc_stack.ss_size = 512 << 10;
			c->uc.uc_link = nullptr;
			c->truth.n = c->ntargets = c->tries = c->depth = 0;
			c->opaque = 0;
			c->live = true;
			makecontext(&c->uc, run_coroutine, 0);
		}
		c->resumer = me;
		deeds.switches++;
		flux = 1;
		now = c;
		truth = &c->truth;
		swapcontext(&me->uc, &c->uc);
		flux = 0;
	}
	check();
	return x - 1;
}

static void run_coroutine()
{
	flux = 0;
	for (;;) {
		now->tries = 1;
		try {
			act();
		} catch (...) {
			flux = 0;
			deeds.caught++;
		}
		now->truth.n = now->ntargets = now->depth = 0;
		now->opaque = 0;
		struct line *me = now;

		flux = 1;
		now = me->resumer;
		truth = &now->truth;
		swapcontext(&me->uc, &now->uc);
		flux = 0;
	}
}

static noinline void call_one()
{
	unsigned int x = rnd() % 100000;

	deeds.calls++;
	ENTER();
	switch (rnd() % 13) {
	case 0:
		deeds.bad_values += floating(x) != x * 1.25;
		break;
	case 1:
		deeds.bad_values += extended(x) != x * 1.0L / 3;
		break;
	case 2: {
		struct pair p = two_floats(x);

		deeds.bad_values += p.a != x * 2.0 || p.b != x * 3.0;
		break;
	}
	case 3:
		deeds.bad_values += wide(x) != ((unsigned __int128)x << 64 | ~x);
		break;
	case 4: {
		struct large v = in_memory(x);

		for (unsigned int i = 0; i < 20; i++)
			deeds.bad_values += v.v[i] != x + i;
		break;
	}
	case 5:
		deeds.bad_values += variable(x) != x + 7;
		break;
	case 6:
		deeds.bad_values += aligned(x) != x + 1;
		break;
	case 7:
		deeds.bad_values += tail(x) != x * 3;
		break;
	case 8:
		deeds.bad_values += catching(x) != x;
		break;
	case 9:
		deeds.bad_values += jumping(x) != (x ^ 5);
		break;
	case 10:
		deeds.bad_values += switching(x) != x - 1;
		break;
	case 11:
		deeds.bad_values += through_libc(x) != (x & 1023);
		break;
	default:
		deeds.bad_values += small(x) != x * 3;
		break;
	}
	deeds.sum += x;
	NO_TAIL_CALL();
}

/* Makes the random calls that every function of the program makes. */
static inline __attribute__((always_inline)) void some_calls()
{
	unsigned int r = rnd() % 64;

	if (r & 1)
		check();
	if (budget-- > 0 && now->depth < MAX_DEPTH) {
		call_one();
		if (r & 2)
			check();
		if ((r & 12) == 12)
			call_one();
	}
	if (r & 16)
		check();
	if (r == 63 && now->tries) {
		/*
		 * An unwinder that is about to go to a landing pad has written
		 * over its own frame: no rule describes that.
		 */
		flux = 1;
		if (rnd() & 1)
			throw std::runtime_error("random");
		throw 5;
	}
	if (r == 62 && now->ntargets) {
		jmp_buf *to = now->targets[rnd() % now->ntargets];

		/* A coroutine that is left while a marker is on its stack is never resumed. */
		if (aside() % 16)
			shstk_marker_withdraw();
		flux = 1;
		longjmp(*to, 1);
	}
	if (r == 61)
		raise(SIGUSR1);
}

static noinline void act()
{
	ENTER();
	some_calls();
	NO_TAIL_CALL();
}

static struct deeds run_program(uint64_t number, enum mode how)
{
	mode = how;
	seed = number;
	budget = BUDGET;
	deeds = {};
	now = &native;
	truth = &native.truth;
	truth->n = native.depth = native.ntargets = native.opaque = 0;
	native.tries = 1;
	for (auto &c : coroutine)
		c.live = false;
	shstk_marker_withdraw();
	if (how == MARKERS)
		/*
		 * the program before may have left so many markers behind that the thread stopped
		 * placing them
		 */
		shstk_marker_restart();
	flux = 0;
	while (budget > 0) {
		try {
			act();
		} catch (...) {
			flux = 0;
			deeds.caught++;
		}
		truth->n = native.depth = native.ntargets = native.opaque = 0;
		native.tries = 1;
	}
	return deeds;
}

static void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = {};

	sa.sa_sigaction = fn;
	sa.sa_flags = SA_SIGINFO | SA_RESTART | flags;
	sigaddset(&sa.sa_mask, SIGALRM); /* only one signal at a time is handled */
	sigaddset(&sa.sa_mask, SIGUSR1);
	sigaction(sig, &sa, nullptr);
}

static double seconds()
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Returns whether markers were met, which are placed only in code with frame pointers. */
static bool met()
{
#ifdef WITHOUT_RECORDS
	return !from_marker;
#else
	return from_marker > 0;
#endif
}

/*
 * On a busy machine few programs run within the time. Ticks take markers back:
 * where all is slow, few are left to be met.
 */
static bool everything(const struct deeds *all)
{
	return all->caught && all->jumps && all->switches && all->signals && ids && met();
}

static int points;

static void point(bool ok, const char *name)
{
	std::printf("%sok %d %s\n", ok ? "" : "not ", ++points, name);
}

int main(int argc, char **argv)
{
	double limit = argc > 1 ? std::atof(argv[1]) : 3, start = seconds();
	uint64_t number = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1;
	struct deeds all = {};
	stack_t ss = {};
	long programs = 0, unlike = 0;

	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	std::printf("TAP version 13\n1..5\n");
	ss.ss_size = 256 << 10;
	ss.ss_sp = std::malloc(ss.ss_size);
	sigaltstack(&ss, nullptr);
	for (auto &c : coroutine)
		c.stack = (char *)std::malloc(512 << 10);
	do {
		struct deeds d[MODES];

		handle(SIGALRM, on_tick, programs & 1 ? SA_ONSTACK : 0);
		handle(SIGUSR1, on_raise, programs & 2 ? SA_ONSTACK : 0);
		awake = programs % 3 != 1;
		ticking = 1;
		start_ticks(200);
		for (int m = 0; m < MODES; m++) {
			uint64_t picks = number + programs;

			d[m] = run_program(picks, (enum mode)m);
		}
		ticking = 0;
		for (int m = 1; m < MODES; m++) {
			if (!memcmp(&d[m], &d[0], sizeof(d[0])))
				continue;
			unlike++;
			std::printf("# program %ld: mode %d did something else\n",
				    (long)(number + programs), m);
		}
		all.calls += d[0].calls;
		all.caught += d[0].caught;
		all.destroyed += d[0].destroyed;
		all.jumps += d[0].jumps;
		all.switches += d[0].switches;
		all.signals += d[0].signals;
		all.bad_values += d[0].bad_values + d[1].bad_values + d[2].bad_values;
		programs++;
#ifndef WITHOUT_RECORDS
		if (!from_marker)
			make_new_keys();
#endif
	} while (!wrong && (seconds() - start < limit || (programs < 1000 && !everything(&all))));
	std::printf(
		"# %ld programs, %lu calls, %lu caught, %lu destroyed, %lu jumps, %lu switches, %lu signals raised, %ld handled\n",
		programs, all.calls, all.caught, all.destroyed, all.jumps, all.switches,
		all.signals, handled);
	std::printf(
		"# %ld captures with the memo, %ld with markers, of which %ld by a marker; %ld identities; status: %s\n",
		captures[MEMO], captures[MARKERS], from_marker, ids,
		shstk_marker_name(shstk_marker_status()));
	point(!wrong, "every trace is what the program knows");
	point(!unlike, "every program does the same in every mode");
	point(!all.bad_values, "every value comes back");
	point(everything(&all), "everything happened");
	point(met(), "markers were met, on code without frame pointers none");
	std::exit(wrong || unlike || all.bad_values || !met());
}
