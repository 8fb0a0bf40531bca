// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * walkers.cc - takes stack traces in every way that a program can, and prints
 * them so that two runs can be compared: addresses as object and offset, stack
 * addresses as distances.
 *
 *	walkers places N	asks N times where each frame and its function are, and nothing else
 */
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#define FN extern "C" __attribute__((noinline))
#define MAX 1024

/* The register that surely was saved. */
#ifdef __x86_64__
#define RETURN_COLUMN 16
#else
#define RETURN_COLUMN 30
#endif

/*
 * libunwind has _Unwind_ functions as well, which must not come before libgcc's:
 * so it is not linked.
 */
static int (*unw_backtrace)(void **array, int size);

static void find_libunwind(void)
{
	void *fn = dlsym(RTLD_DEFAULT, "unw_backtrace"), *handle;

	if (!fn) {
		handle = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
		fn = handle ? dlsym(handle, "unw_backtrace") : nullptr;
	}
	if (!fn) /* it is not installed: one way less */
		fn = (void *)backtrace;
	*(void **)&unw_backtrace = fn;
}

/* Return addresses in registers may be signed, with keys of each process. */
static void *bare(void *p)
{
#ifdef __aarch64__
	register void *x30 __asm__("x30") = p;

	__asm__("hint #7" : "+r"(x30)); /* xpaclri */
	return x30;
#else
	return p;
#endif
}

static void print_address(const void *p)
{
	Dl_info info;

	if (p && dladdr((const char *)p - 1, &info) && info.dli_fname) {
		const char *base = strrchr(info.dli_fname, '/');

		printf(" %s+%zx", base ? base + 1 : info.dli_fname,
		       (size_t)((const char *)p - (const char *)info.dli_fbase));
	} else {
		printf(" %s", p ? "?" : "0");
	}
}

/* The kernel's vdso has no name, and the same offsets in both runs. */
static void print_array(const char *what, void *const *array, int n)
{
	printf("%s %d:", what, n);
	for (int i = 0; i < n; i++)
		print_address(array[i]);
	puts("");
}

struct walk {
	int left;
	bool more;
	uintptr_t cfa;
};

static _Unwind_Reason_Code addresses(struct _Unwind_Context *context, void *arg)
{
	struct walk *w = (struct walk *)arg;
	int before = -1;
	void *ip = (void *)_Unwind_GetIPInfo(context, &before);

	if ((void *)_Unwind_GetIP(context) != ip)
		printf(" GetIP differs");
	print_address(ip);
	if (before)
		printf("(%d)", before);
	return --w->left ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* Asks where the frame and its function are, as Rust's std::backtrace does. */
static _Unwind_Reason_Code places(struct _Unwind_Context *context, void *arg)
{
	struct walk *w = (struct walk *)arg;
	uintptr_t cfa = _Unwind_GetCFA(context);
	int before = 0;
	void *region = (void *)_Unwind_GetRegionStart(context);
	void *ip = (void *)_Unwind_GetIPInfo(context, &before);

	addresses(context, arg);
	printf("[");
	print_address(region);
	printf(" text %zx data %zx", (size_t)_Unwind_GetTextRelBase(context),
	       (size_t)_Unwind_GetDataRelBase(context));
	if (ip && !before && _Unwind_FindEnclosingFunction(ip) != region)
		printf(" FindEnclosingFunction differs");
	/* Another stack lies anywhere; signal frames are aligned. */
	if (!w->cfa || before)
		w->cfa = cfa;
	if (cfa - w->cfa < 1 << 20)
		printf(" cfa +%zx]", (size_t)(cfa - w->cfa));
	else
		printf(" cfa elsewhere]");
	w->cfa = cfa;
	return w->left ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static _Unwind_Reason_Code places_again(struct _Unwind_Context *context, void *arg)
{
	return places(context, arg);
}

/* Asks for all there is; as a callback of its own it is not known at first. */
static _Unwind_Reason_Code everything(struct _Unwind_Context *context, void *arg)
{
	struct walk *w = (struct walk *)arg;
	uintptr_t cfa = _Unwind_GetCFA(context);
	char *data = (char *)_Unwind_GetLanguageSpecificData(context);
	void *ra = (void *)_Unwind_GetGR(context, RETURN_COLUMN);

	places(context, arg);
	printf(" data %s", data ? "yes" : "no");
	if (bare(ra) != (void *)_Unwind_GetIP(context))
		printf(" other register");
	w->cfa = cfa;
	return w->left ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static _Unwind_Reason_Code everything_again(struct _Unwind_Context *context, void *arg)
{
	return everything(context, arg);
}

static void walk(const char *what, _Unwind_Trace_Fn trace, int left)
{
	struct walk w = { left, false, 0 };
	int ret;

	printf("%s:", what);
	ret = _Unwind_Backtrace(trace, &w);
	printf(" = %d\n", ret);
}

FN void take(void)
{
	static const int sizes[] = { MAX, 0, -1, 1, 2, 3, 5 };
	void *array[MAX];

	for (int size : sizes) {
		memset(array, 0, sizeof(array));
		print_array("backtrace", array, backtrace(array, size));
		print_array("unw_backtrace", array, unw_backtrace(array, size));
	}
	walk("addresses", addresses, -1);
	walk("one address", addresses, 1);
	walk("three addresses", addresses, 3);
	walk("places", places, -1);
	walk("places, known", places, -1);
	walk("two of places, known", places, 2);
	walk("four of places", places_again, 4);
	walk("everything", everything, -1);
	walk("everything, known", everything, -1);
	walk("four of everything", everything_again, 4);
}

FN int recursion(int n)
{
	int ret = 0;

	if (n)
		ret = recursion(n - 1) + 1;
	else
		take();
	return ret;
}

static volatile sig_atomic_t handled;

FN void on_signal(int)
{
	take();
	handled = 1;
}

/* Interrupted where it waits: the same instruction each time. */
FN void interrupted(void)
{
	raise(SIGUSR1);
}

/* Interrupted by its own fault. */
static volatile char *volatile page;
FN void on_fault(int, siginfo_t *, void *)
{
	take();
	fflush(stdout);
	_exit(0);
}
FN void fault(void)
{
	page = nullptr;
	*page = 1;
}

static void *in_thread(void *)
{
	recursion(3);
	return nullptr;
}

struct counter {
	int *n;
	~counter()
	{
		++*n;
	}
};

FN void thrower(int n, int *destroyed)
{
	struct counter c = { destroyed };

	if (n)
		thrower(n - 1, destroyed);
	else
		throw std::runtime_error("thrown");
}

static void exceptions(void)
{
	int destroyed = 0, caught = 0;

	for (int i = 0; i < 10; i++) {
		try {
			thrower(i, &destroyed);
		} catch (const std::exception &e) {
			caught += !strcmp(e.what(), "thrown");
		}
	}
	printf("caught %d, destroyed %d\n", caught, destroyed);
}

static void *cancelled(void *arg)
{
	struct counter c = { (int *)arg };

	pthread_exit(nullptr);
}

__attribute__((constructor)) static void construct(void)
{
	find_libunwind();
	puts("constructor");
	take();
}

static int only_places(int n)
{
	while (n-- > 0)
		walk("places", places, -1);
	return 0;
}

int main(int argc, char **argv)
{
	static char alternate[65536];
	stack_t stack = {};
	struct sigaction action = {};
	pthread_t t;
	int ended = 0;

	if (argc == 3 && !strcmp(argv[1], "places"))
		return only_places(atoi(argv[2]));
	puts("main");
	take();
	puts("recursion");
	recursion(10);
	puts("deep");
	recursion(300);
	puts("thread");
	pthread_create(&t, nullptr, in_thread, nullptr);
	pthread_join(t, nullptr);
	exceptions();
	pthread_create(&t, nullptr, cancelled, &ended);
	pthread_join(t, nullptr);
	printf("thread destroyed %d\n", ended);
	puts("signal");
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, nullptr);
	interrupted();
	puts("fault on another stack");
	stack.ss_sp = alternate;
	stack.ss_size = sizeof(alternate);
	sigaltstack(&stack, nullptr);
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(SIGSEGV, &action, nullptr);
	fault();
	return handled ? 1 : 2;
}
