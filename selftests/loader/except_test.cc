// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * except_test.cc - C++ exceptions: out of callbacks of a C library, over many frames, repeatedly,
 * in threads, and out of a signal handler.
 */
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../tools/inject/preload/ssp.h"

static unsigned int count;
static int destroyed;

static void ok(bool good, const char *what)
{
	printf("%sok %u %s\n", good ? "" : "not ", ++count, what);
	fflush(stdout);
}

struct guard {
	~guard()
	{
		destroyed++;
	}
};

static int compare(const void *a, const void *b)
{
	guard g;

	if (*(const int *)a == 7 || *(const int *)b == 7)
		throw std::runtime_error("seven");
	return *(const int *)a - *(const int *)b;
}

static bool out_of_qsort()
{
	int v[] = { 9, 8, 7, 6, 5, 4, 3, 2, 1 };

	try {
		qsort(v, 9, sizeof(int), compare);
	} catch (const std::runtime_error &e) {
		return !strcmp(e.what(), "seven");
	}
	return false;
}

static __attribute__((noinline)) void dive(int depth)
{
	guard g;

	if (!depth)
		throw depth;
	dive(depth - 1);
	__asm__ volatile("" : : : "memory");
}

static bool deep(int depth)
{
	destroyed = 0;
	try {
		dive(depth);
	} catch (int) {
		return destroyed == depth + 1;
	}
	return false;
}

static __attribute__((noinline)) void again(int depth)
{
	try {
		if (depth)
			again(depth - 1);
		else
			throw std::string("x");
	} catch (std::string &s) {
		s += 'x';
		throw;
	}
}

static bool rethrown()
{
	try {
		again(20);
	} catch (const std::string &s) {
		return s.size() == 22;
	}
	return false;
}

static void *thread(void *arg)
{
	return deep(40) && out_of_qsort() && rethrown() ? arg : nullptr;
}

#ifdef __x86_64__
static void on_fpe(int)
{
	throw 5;
}

static volatile int one = 1, zero, quotient;

static __attribute__((noinline)) void divide()
{
	quotient = one / zero;
}

static bool out_of_handler()
{
	struct sigaction a = {};
	int caught = 0;
	sigset_t set;

	a.sa_handler = on_fpe;
	sigaction(SIGFPE, &a, nullptr);
	for (int i = 0; i < 3; i++)
		try {
			divide();
		} catch (int v) {
			caught += v;
			sigemptyset(&set);
			sigaddset(&set, SIGFPE);
			sigprocmask(SIG_UNBLOCK, &set, nullptr);
		}
	return caught == 15;
}
#endif

int main(int argc, char **argv)
{
	pthread_t t;
	void *ret = nullptr;
	bool good = true;

	printf("TAP version 13\n");
	if (argc == 2 && !strcmp(argv[1], "on"))
		ok(read_ssp() != 0, "shadow stack is on");
	for (int i = 0; i < 50; i++)
		good &= out_of_qsort();
	ok(good, "50 exceptions out of qsort()'s callback");
	ok(deep(1) && deep(300), "over 300 frames with destructors");
	ok(rethrown(), "rethrown in 20 frames");
	pthread_create(&t, nullptr, thread, &count);
	pthread_join(t, &ret);
	ok(ret == &count, "in a thread");
#ifdef __x86_64__
	/* arm64 divides by zero without a signal. */
	ok(out_of_handler(), "out of a signal handler");
#endif
	printf("1..%u\n", count);
	return 0;
}
