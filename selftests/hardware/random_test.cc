// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * random_test - a program that does at random what moves both stacks: calls, callbacks,
 * signals in signals, threads, contexts, jumps, exceptions, vfork. At each place it takes
 * its trace from the hardware shadow stack and by software, and the two have to be equal.
 *
 *   random_test CAPTURES SEED [CONTEXTS]
 *
 * ends when so many captures were taken, and CONTEXTS (1000) contexts were made. The
 * first stacks that differ are shown. What was called before shadow stacks were switched
 * on is in no shadow stack: how much that is must be the same for all captures of a thread.
 */
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "shstk.h"

#define MAX 4096
#define DEPTH 40 /* of operations in operations */
#define NOINLINE __attribute__((noinline, noclone))

struct worker {
	uint64_t random;
	int depth, signals;
	int older; /* frames that software alone sees; -1: not known yet */
	bool first; /* thread of the process */
	bool other; /* a handler has frames on the alternate stack */
	sigjmp_buf *jump;
	ucontext_t *back;
	uint64_t hardware[MAX], software[MAX];
	uint8_t marks[2][MAX];
};

static unsigned long captures, contexts, wanted, wanted_contexts, differences, shown;
static __thread struct worker *self;

static void act();

static uint32_t draw(uint32_t n)
{
	self->random = self->random * 6364136223846793005ull + 1442695040888963407ull;
	return (self->random >> 33) % n;
}

static void show(const struct worker *w, int n, int m, const char *why)
{
	if (__atomic_fetch_add(&shown, 1, __ATOMIC_RELAXED) >= 5)
		return;
	printf("# %s: hardware %d, software %d\n", why, n, m);
	for (int i = 0; i < (n > m ? n : m) && i < 60; i++) {
		uint64_t a = i < n ? w->hardware[i] : 0, b = i < m ? w->software[i] : 0;

		printf("#   %2d %lx/%x %lx/%x%s\n", i, (unsigned long)a, w->marks[0][i],
		       (unsigned long)b, w->marks[1][i], a == b ? "" : " *");
	}
	fflush(stdout);
}

/* The two, with nothing in between; the innermost entry is this function's. */
static NOINLINE void look()
{
	struct worker *w = self;
	struct shstk_info h = {}, s = {};
	struct shstk_opts ho = {}, so = {};
	sigset_t all, old;
	int n, m, older;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	h.size = s.size = sizeof(h);
	ho.size = so.size = sizeof(ho);
	ho.sources = SHSTK_USE_HARDWARE;
	so.sources = SHSTK_USE_WALK;
	ho.skip = so.skip = 1;
	ho.marks = w->marks[0];
	so.marks = w->marks[1];
	n = shstk_capture(w->hardware, MAX, &ho, &h);
	m = shstk_capture(w->software, MAX, &so, &s);
	older = m - n;
	if (w->older < 0)
		w->older = older;
	if (n <= 0 || h.end || s.end || older != w->older || older < 0 || older > w->first ||
	    memcmp(w->hardware, w->software, n * 8)) {
		__atomic_fetch_add(&differences, 1, __ATOMIC_RELAXED);
		printf("# ends: hardware %s, software %s\n",
		       n < 0 ? strerror(-n) : shstk_end_name(h.end), shstk_end_name(s.end));
		show(w, n, m, "not the same");
	}
	__atomic_fetch_add(&captures, 1, __ATOMIC_RELAXED);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static NOINLINE int plain(int n)
{
	int r = n ? plain(n - 1) : (act(), 1);

	__asm__ volatile("" ::: "memory");
	return r + 1;
}

static NOINLINE int with_room(int n)
{
	volatile char *room = (volatile char *)__builtin_alloca(16 + draw(300));

	room[0] = 1;
	act();
	return room[0] + n;
}

static int compare(const void *a, const void *b)
{
	if (!draw(8))
		act();
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void sort()
{
	int v[6] = { 3, 1, 2, 9, 5, 4 };

	qsort(v, 6, sizeof(v[0]), compare);
}

static NOINLINE void raise_exception(int n)
{
	if (n) {
		raise_exception(n - 1);
		__asm__ volatile("" ::: "memory");
		return;
	}
	look();
	throw std::runtime_error("random");
}

static NOINLINE void exceptions()
{
	try {
		raise_exception(draw(10));
	} catch (const std::runtime_error &) {
		look();
	}
}

static NOINLINE void jump_out(int n)
{
	if (n) {
		jump_out(n - 1);
		__asm__ volatile("" ::: "memory");
		return;
	}
	look();
	siglongjmp(*self->jump, 1);
}

static NOINLINE void jumps()
{
	sigjmp_buf buf, *outer = self->jump;
	int depth = self->depth, signals = self->signals;
	bool other = self->other;

	self->jump = &buf;
	if (!sigsetjmp(buf, 1))
		jump_out(draw(10));
	self->jump = outer;
	self->depth = depth;
	self->signals = signals;
	self->other = other;
	look();
}

static void on_signal(int, siginfo_t *, void *)
{
	look();
	act();
}

/*
 * Not more of them in one another than a trace tells apart. From a context that a handler
 * on the alternate stack switched to, another one would begin at that stack's top again,
 * in the first one's frames.
 */
static NOINLINE void signals()
{
	bool other = self->other;

	if (self->signals >= 6)
		return look();
	self->signals++;
	if (other || draw(2)) {
		raise(SIGUSR1);
	} else {
		self->other = true;
		raise(SIGUSR2);
	}
	self->other = other;
	self->signals--;
}

static void in_context()
{
	look();
	act();
	swapcontext(self->back + 1, self->back);
	look();
}

/* Entered twice, and made anew on the same stack. */
static NOINLINE void make_contexts()
{
	const size_t size = 1 << 18;
	ucontext_t c[2], *outer = self->back;
	int older = self->older, rounds = 1 + draw(4);
	void *stack;

	if (outer)
		return look();
	stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		return;
	self->back = c;
	for (int i = 0; i < rounds; i++) {
		self->older = -1;
		getcontext(&c[1]);
		c[1].uc_stack.ss_sp = stack;
		c[1].uc_stack.ss_size = size;
		c[1].uc_link = &c[0];
		makecontext(&c[1], in_context, 0);
		swapcontext(&c[0], &c[1]);
		self->older = older;
		look();
		self->older = -1;
		swapcontext(&c[0], &c[1]);
		self->older = older;
		look();
		__atomic_fetch_add(&contexts, 1, __ATOMIC_RELAXED);
	}
	self->back = outer;
	munmap(stack, size);
}

static NOINLINE void vforks()
{
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	look();
}

static void *thread(void *arg)
{
	struct worker *w = (struct worker *)calloc(1, sizeof(*w));

	w->random = (uintptr_t)arg;
	w->older = -1;
	self = w;
	look();
	for (int i = 0; i < 20; i++)
		act();
	free(w);
	return NULL;
}

static NOINLINE void threads()
{
	pthread_t t;

	if (!self->first ||
	    pthread_create(&t, NULL, thread, (void *)(uintptr_t)(draw(1u << 30) | 1)))
		return;
	act();
	pthread_join(t, NULL);
	look();
}

/* Anything; the deeper, the more likely that it ends here. */
static void act()
{
	if (self->depth >= DEPTH || draw(DEPTH) < (uint32_t)self->depth)
		return look();
	self->depth++;
	switch (draw(40)) {
	case 0 ... 11:
		plain(draw(12));
		break;
	case 12 ... 19:
		with_room(1);
		break;
	case 20 ... 23:
		sort();
		break;
	case 24 ... 27:
		exceptions();
		break;
	case 28 ... 30:
		jumps();
		break;
	case 31 ... 35:
		signals();
		break;
	case 36 ... 37:
		make_contexts();
		break;
	case 38:
		vforks();
		break;
	default:
		threads();
	}
	look();
	self->depth--;
}

int main(int argc, char **argv)
{
	static struct worker first;
	struct sigaction action = {};
	char *room = (char *)malloc(1 << 20);
	stack_t other = {};

	if (argc < 3) {
		fprintf(stderr, "usage: random_test CAPTURES SEED [CONTEXTS]\n");
		return 2;
	}
	wanted = strtoul(argv[1], NULL, 0);
	first.random = strtoul(argv[2], NULL, 0);
	wanted_contexts = argc > 3 ? strtoul(argv[3], NULL, 0) : 1000;
	first.first = true;
	first.older = -1;
	self = &first;
	other.ss_sp = room;
	other.ss_size = 1 << 20;
	sigaltstack(&other, NULL);
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	while (captures < wanted || contexts < wanted_contexts)
		act();
	printf("# seed %s: %lu captures, %lu contexts, %lu differences\n", argv[2], captures,
	       contexts, differences);
	return differences != 0;
}
