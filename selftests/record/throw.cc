// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * throw.cc - exceptions through many frames and out of a callback of libc, and signal handlers, to
 * compare hardware and software.
 */
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <unistd.h>

static volatile sig_atomic_t caught;

static double cpu_time()
{
	timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

__attribute__((noinline)) static int descend(int n)
{
	std::string text(n % 50, 'x');

	if (!n)
		throw std::runtime_error("bottom");
	return descend(n - 1) + text.size();
}

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	if (x == 7 && y == 7)
		throw std::logic_error("seven");
	return x - y;
}

static void out_of_qsort()
{
	int v[64];

	for (int i = 0; i < 64; i++)
		v[i] = i % 8;
	try {
		qsort(v, 64, sizeof(v[0]), compare);
	} catch (const std::logic_error &) {
		caught = caught + 1;
	}
}

static void on_signal(int)
{
	try {
		descend(5);
	} catch (const std::runtime_error &) {
		caught = caught + 1;
	}
}

int main(int argc, char **argv)
{
	double end = cpu_time() + (argc > 1 ? atof(argv[1]) : 1);

	signal(SIGUSR1, on_signal);
	while (cpu_time() < end) {
		for (int i = 0; i < 20; i++) {
			try {
				descend(40);
			} catch (const std::runtime_error &) {
				caught = caught + 1;
			}
			out_of_qsort();
			kill(getpid(), SIGUSR1);
		}
	}
	return caught ? 0 : 1;
}
