// SPDX-License-Identifier: GPL-2.0-or-later
/* vdso.c - calls into the vDSO, and a system call instead of one of them. */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	struct timespec ts;
	struct timeval tv;
	long sum = 0;
	static const clockid_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC,       CLOCK_MONOTONIC_RAW,
		CLOCK_BOOTTIME, CLOCK_REALTIME_COARSE, CLOCK_THREAD_CPUTIME_ID,
	};

	for (unsigned int i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		clock_gettime(clocks[i], &ts);
		clock_getres(clocks[i], &ts);
		sum += ts.tv_nsec;
	}
	gettimeofday(&tv, NULL);
	sum += time(NULL) + tv.tv_usec;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
	printf("%d\n", sum != 0);
	return 0;
}
