// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * event.c - a thread's CPU clock that signals when a period ends, not in the next tick.
 *
 * The kernel looks at CPU-time timers in its tick only. What runs in phase with that is
 * not seen, or too often. A perf event on the thread's clock has a timer of its own in the
 * kernel, and signals at the end of each period. It is silent while the thread is in
 * the kernel: a signal that came during exec would be pending in the next program, and
 * end it. For that part of the time the POSIX timer remains.
 *
 * The program must not see a descriptor that it did not open: the event is mapped, which
 * keeps it alive, and closed. Children of fork() do not get the mapping.
 *
 * If the queue of real-time signals is full (RLIMIT_SIGPENDING is for all processes of a
 * user) the kernel sends SIGIO in place of the event's signal, which would end the
 * program: see signals_guard_io().
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "agent.h"

#define PAGE 4096 /* the kernel's may be larger: it rounds up */

static long open_clock(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = agent.period,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return sys6(SYS_perf_event_open, (long)&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
}

/* Has the descriptor send the agent's signal to this thread. */
static bool direct(long fd)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = sys0(SYS_gettid) };

	return !sys3(SYS_fcntl, fd, F_SETOWN_EX, &owner) &&
	       !sys3(SYS_fcntl, fd, F_SETSIG, agent.signo) &&
	       !sys3(SYS_fcntl, fd, F_SETFL, O_RDWR | O_ASYNC);
}

/*
 * In the handler of a thread that was sampled once: one that is shorter than that does
 * not pay for the event. The periods are those of the event from now on, and end in
 * between its signals, so that each of these finds one.
 */
void event_open(struct thread *t)
{
	long fd, p;

	if (t->tried || t->tid != sys0(SYS_gettid))
		return;
	/* While another thread sets a handler: at the next sample. */
	if (agent.header->events && !agent.wall && !signals_guard_io())
		return;
	t->tried = true;
	if (!agent.header->events || agent.wall)
		return;
	fd = open_clock();
	if (fd < 0)
		return;
	p = sys6(SYS_mmap, 0, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (p < 0 && p > -4096) {
		sys1(SYS_close, fd);
		return;
	}
	t->event_fd = fd;
	t->event = (void *)p;
	if (direct(fd) && !sys3(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0)) {
		t->start = now(CLOCK_THREAD_CPUTIME_ID);
		t->first = agent.period / 2;
		t->periods = 0;
	} else {
		event_close(t);
	}
	sys1(SYS_close, fd);
}

/* None of its signals may be pending in the next program: this thread may block it. */
void event_end(struct thread *t)
{
	ksigset own = (ksigset)1 << (agent.signo - 1);
	struct timespec none = { 0, 0 };

	if (!t->event)
		return;
	event_close(t);
	/* If the program is not executed after all, a new one is opened. */
	t->tried = false;
	change_own_signal(SIG_BLOCK);
	while (sys4(SYS_rt_sigtimedwait, &own, NULL, &none, sizeof(own)) > 0)
		;
	admit_own_signal();
}

void event_close(struct thread *t)
{
	if (t->event)
		sys2(SYS_munmap, t->event, PAGE);
	t->event = NULL;
}

bool event_sent(const struct thread *t, const siginfo_t *si)
{
	return t && t->event && (si->si_code == POLL_IN || si->si_code == POLL_HUP) &&
	       si->si_fd == t->event_fd;
}
