// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * caught.c - a process whose own handler caught the signal; see crash.h.
 *
 * There is no core file then. The process is stopped by ptrace(2), and what its core file would tell
 * is read from /proc. The thread that received the signal is in its handler by now: its registers
 * come with the message on standard input (libshstk/crash/message.h).
 *
 * Nobody lets the threads go: they go on when this process ends.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/crash/message.h"
#include "tools/crash/crash.h"
#include "tools/proc/stop.h"
#include "tools/proc/tasks.h"
#include "tools/shstk.h"
#include "tools/whole_io.h"

#if defined(__x86_64__)
#define OWN_ARCH SHSTK_ARCH_X86
#elif defined(__aarch64__)
#define OWN_ARCH SHSTK_ARCH_ARM64
#else
#define OWN_ARCH 0 /* registers of another process cannot be read */
#endif

#define MAX_AUXV 4096 /* bytes */
#define HANDLER_CALLS 512 /* entries of a shadow stack that a handler may have */
#define HOLD_MS 4000 /* how long to wait for threads to stop: the process is about to end anyway */
#define MS 1000000ull /* ns */

static int read_message(struct crash_message *m, struct reason *why)
{
	because(why, "standard input has no message of libshstk-crash of this version");
	if (read_whole(STDIN_FILENO, m, sizeof(*m)) != sizeof(*m) ||
	    m->magic != CRASH_MESSAGE_MAGIC || m->regs.size != sizeof(m->regs))
		return -EINVAL;
	return 0;
}

void crash_answer(void)
{
	char answer = CRASH_ANSWER;

	send(STDIN_FILENO, &answer, 1, MSG_NOSIGNAL);
}

/* ---- What /proc tells ---- */

/* Opens what /proc tells of the process, whose first thread may have ended. */
static int open_of(const struct core *core, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", tasks_living(core->pid), file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void read_auxv(struct core *core)
{
	uint64_t words[MAX_AUXV / 8];
	int fd = open_of(core, "auxv");
	ssize_t got = fd < 0 ? 0 : read_whole(fd, words, sizeof(words));

	for (ssize_t i = 0; i + 1 < got / 8; i += 2) {
		if (words[i] == AT_ENTRY)
			core->entry = words[i + 1];
		else if (words[i] == AT_SYSINFO_EHDR)
			core->vdso = words[i + 1];
	}
	if (fd >= 0)
		close(fd);
}

/* ---- Threads ---- */

static bool has_thread(const struct core *core, int tid)
{
	for (size_t i = 0; i < core->nr_threads; i++)
		if (core->threads[i].tid == tid)
			return true;
	return false;
}

static int add_thread(struct core *core, int tid)
{
	const int own_tid = task_own_id(core->pid, tid);
	size_t nr = core->nr_threads;

	/* The array grows by powers of two. */
	if (!(nr & (nr - 1))) {
		struct core_thread *grown =
			realloc(core->threads, (nr ? nr * 2 : 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		core->threads = grown;
	}
	core->threads[core->nr_threads++] = (struct core_thread){
		.tid = tid,
		.own_tid = own_tid ? own_tid : tid,
	};
	return 0;
}

/*
 * Seizes threads that are not seized yet. One that has ended is refused, as the first one may be.
 * Returns their number or a negative errno.
 */
static int seize_new(struct core *core)
{
	DIR *dir = tasks_open(core->pid);
	int found = 0, err = 0, refused = 0, tid;

	if (!dir)
		return -errno;
	while (!err && core->nr_threads < CORE_MAX_THREADS && (tid = tasks_next(dir))) {
		if (has_thread(core, tid))
			continue;
		if (!ptrace(PTRACE_SEIZE, tid, 0, 0)) {
			err = add_thread(core, tid);
			found++;
		} else if (errno != ESRCH) {
			refused = -errno;
		}
	}
	closedir(dir);
	if (!core->nr_threads && !err)
		err = refused;
	return err ? err : found;
}

/* Sets where the shadow stack of a thread is. */
static void read_shadow(const struct core *core, struct core_thread *t)
{
	const struct core_segment *s;

	t->shadow = (struct shstk_shadow){ .size = sizeof(t->shadow) };
	if (shstk_shadow_pointer(t->tid, &t->shadow))
		return;
	s = core_segment(core, t->shadow.ssp);
	if (!s)
		return;
	t->shadow.end = s->end;
	t->shadow_on = true;
}

/* Takes the registers of all threads that stop in time, and leaves the others out. */
static void stop_all(struct core *core)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + HOLD_MS * MS;
	size_t kept = 0;

	for (size_t i = 0; i < core->nr_threads; i++)
		ptrace(PTRACE_INTERRUPT, core->threads[i].tid, 0, 0);
	for (size_t i = 0; i < core->nr_threads; i++) {
		struct core_thread *t = &core->threads[i];
		uint64_t used;
		int status;

		if (!stop_wait(t->tid, until, &status)) {
			char what[160];

			stop_describe(core->pid, t->tid, what, sizeof(what));
			complain("thread %d has no stack, because it does not stop: it is %s",
				 t->tid, what);
		} else if (WIFSTOPPED(status) &&
			   !trace_registers(t->tid, &t->regs, &used, &t->call)) {
			core->threads[kept++] = *t;
		}
	}
	core->nr_threads = kept;
}

/*
 * Tells whether the word @v at @addr of a shadow stack is what the kernel puts there when it delivers
 * a signal: on x86 the shadow stack pointer with bit 63 set (arch/x86/kernel/shstk.c), on arm64 a cap
 * that is not valid for a switch (arch/arm64/kernel/signal.c).
 */
static bool is_signal_token(uint64_t v, uint64_t addr)
{
	if (OWN_ARCH == SHSTK_ARCH_X86)
		return v == ((addr + 8) | 1ull << 63);
	return v == (addr & ~0xfffull);
}

/* Moves the shadow stack of the thread that is in its handler to what the signal interrupted. */
static void leave_handler(const struct core *core, struct core_thread *t)
{
	uint64_t at = t->shadow.ssp, v;

	for (unsigned int i = 0; t->shadow_on && i < HANDLER_CALLS; i++, at += 8) {
		if (core_read(core, at, &v, sizeof(v)))
			break;
		if (!is_signal_token(v, at))
			continue;
		t->shadow.ssp = at + 8;
		t->shadow.pc = t->regs.pc;
		return;
	}
	t->shadow_on = false;
}

/* Puts the thread that received the signal first, as it was then. */
static int put_crashed_first(struct core *core, const struct crash_message *m)
{
	struct core_thread crashed;

	for (size_t i = 0; i < core->nr_threads; i++) {
		if (core->threads[i].tid != m->tid)
			continue;
		crashed = core->threads[i];
		memmove(core->threads + 1, core->threads, i * sizeof(crashed));
		crashed.signo = m->signo;
		crashed.call = -1;
		crashed.regs.pc = m->regs.pc;
		crashed.regs.known = m->regs.known;
		memcpy(crashed.regs.r, m->regs.r, sizeof(crashed.regs.r));
		leave_handler(core, &crashed);
		core->threads[0] = crashed;
		return 0;
	}
	return -ESRCH;
}

/* ---- All of it ---- */

static int seize_all(struct core *core)
{
	int found = 1;

	/* New threads may appear as long as none is stopped. */
	for (int tries = 0; tries < 10 && found > 0; tries++)
		found = seize_new(core);
	if (found < 0)
		return found;
	return core->nr_threads ? 0 : -ESRCH;
}

static int take(struct core *core, const struct crash_message *m)
{
	struct task_stat stat;
	int err;

	if (!OWN_ARCH)
		return -EOPNOTSUPP;
	if (!task_stat(core->pid, 0, &stat))
		snprintf(core->comm, sizeof(core->comm), "%.16s", stat.name);
	stop_prepare();
	err = seize_all(core);
	if (err)
		return err;
	core->memory = open_of(core, "mem");
	if (core->memory < 0)
		return -errno;
	stop_all(core);
	err = crash_read_maps(core);
	if (err)
		return err;
	read_auxv(core);
	for (size_t i = 0; i < core->nr_threads; i++)
		read_shadow(core, &core->threads[i]);
	return put_crashed_first(core, m);
}

int crash_caught(int pid, struct core **ret, struct reason *why)
{
	struct core *core = calloc(1, sizeof(*core));
	struct crash_message m;
	int err;

	if (!core) {
		because(why, "out of memory");
		return -ENOMEM;
	}
	core->path = "of the process";
	core->fd = core->memory = -1;
	core->pid = core->living = pid;
	core->arch = OWN_ARCH;
	err = read_message(&m, why);
	if (!err) {
		core->signal = (struct core_signal){ m.signo, m.code, m.addr, m.sender };
		err = take(core, &m);
		because(why, "the stacks of process %d cannot be read: %s", pid, strerror(-err));
	}
	if (err) {
		if (core->memory >= 0)
			close(core->memory);
		core_close(core);
		return err;
	}
	*ret = core;
	return 0;
}
