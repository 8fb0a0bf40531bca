// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bounds_test.c - tests whether the library finds the end of a shadow stack of several pages, in a
 * process without /proc
 *
 * With shstk.ko the library asks the device, and the trace is complete. Without it, only the page
 * of the pointer is certain, so the trace has to say that it was cut.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "kselftest.h"
#include "need.h"
#include "shstk.h"

#define DEPTH 1500
#define MAX 4000

static uint64_t pcs[MAX];

static __attribute__((noinline, noclone)) long recurse(int n)
{
	long r;

	if (n) {
		r = recurse(n - 1);
	} else {
		struct shstk_opts opts = {
			.size = sizeof(opts),
			.sources = SHSTK_USE_HARDWARE,
		};
		struct shstk_info info = { .size = sizeof(info) };

		r = shstk_capture(pcs, MAX, &opts, &info);
		ksft_print_msg("%ld entries, end: %s\n", r, shstk_end_name(info.end));
		if (info.end != SHSTK_END_COMPLETE)
			r = -r;
	}
	asm volatile("" : "+r"(r)); /* The asm prevents a tail call. */
	return r;
}

/* The frame that turns the shadow stack on must not return. */
static void __attribute__((noreturn, noinline)) child(bool device)
{
	long n;

	if (ss_enable(SS_ENABLE))
		_exit(1);
	n = recurse(DEPTH);
	_exit(device ? n < DEPTH || n > DEPTH + 3 : n > 0 || n < -520);
}

int main(void)
{
	bool device = !access("/dev/shstk", F_OK);
	int status;

	need_shadow_stacks();
	ksft_print_header();
	ksft_set_plan(1);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    umount2("/proc", MNT_DETACH))
		ksft_exit_fail_msg("cannot unmount /proc: %s\n", strerror(errno));
	fflush(NULL);
	if (!fork())
		child(device);
	wait(&status);
	ksft_test_result(!status, "without /proc %s\n",
			 device ? "the device says where the shadow stack ends" :
				  "and device the trace is cut, and says so");
	ksft_finished();
}
