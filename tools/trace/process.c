// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * process.c - `shstk trace -p`: the stacks of all threads of a running process.
 *
 * The process is stopped as briefly as possible. Everything that takes time (reading maps, finding
 * unwind tables, allocating memory for the copies) is done before; unwinding and naming are done
 * after. While the process is stopped, only the registers are read, and the used parts of each
 * stack and shadow stack are copied: all in one system call if there are no more than IOV_MAX
 * parts. If a thread's shadow stack is on, the other stack is only needed for what a signal
 * interrupted, so little of it is copied.
 *
 * Traces of Go programs lead over several stacks that are not known in advance. They are unwound
 * while the process is stopped.
 *
 * A stack that cannot be unwound from its copy (a signal handler on an alternate stack, more than
 * MAX_COPY in use) is unwound once more, while that one thread is stopped again. Of a deep stack
 * that takes longer than a thread may be held; so all of it is copied first.
 *
 * Threads that do not stop in time must not hold up the others (see stop.h): the others are let go,
 * and each late thread is unwound alone when it stops. A thread that never stops would be stopped
 * by its tracer at any later time, and a tracer cannot detach from a thread before it stops, except
 * by ending. Therefore a thread of its own does all the tracing.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/address_space.h"
#include "libshstk/shstk.h"
#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/symbol.h"
#include "tools/convert/holes.h"
#include "tools/convert/living_files.h"
#include "tools/elf/jit_library.h"
#include "tools/java/jit_code.h"
#include "tools/output.h"
#include "tools/proc/detach.h"
#include "tools/proc/maps.h"
#include "tools/proc/stop.h"
#include "tools/proc/tasks.h"
#include "tools/shstk.h"
#include "tools/trace/goroutines.h"
#include "tools/trace/interpreted.h"
#include "tools/trace/mutex.h"
#include "tools/trace/trace.h"
#include "tools/trace/waiting_tasks.h"

#define MAX_THREADS 32768
#define MAX_COPY (1u << 20) /* bytes of one stack */
#define MAX_WHOLE (16u << 20) /* bytes of one stack of a thread that is stopped alone */
#define MAX_SHADOW (64u << 10) /* bytes of one shadow stack */
#define MS 1000000ull /* ns */
#define TASK_TRIES 20 /* to stop the process while it does not change its tasks */
#define TOUCHED 16384 /* bytes of each copy that are faulted in beforehand */

#if defined(__x86_64__)
#define OWN_ARCH SHSTK_ARCH_X86
#elif defined(__aarch64__)
#define OWN_ARCH SHSTK_ARCH_ARM64
#else
#define OWN_ARCH 0 /* none: nothing can be unwound */
#endif

/* A copy of memory as it was while the process was stopped. */
struct copy {
	uint64_t start;
	uint64_t end;
	uint8_t *data;
};

struct traced_thread {
	struct trace_thread trace;
	bool seized;
	bool stopped;
	int signo; /* signal to be delivered on release */
	struct copy stack;
	struct copy shadow;
	struct copy mutex; /* the mutex that the thread may wait for */
	uint8_t mutex_data[MUTEX_SIZE];
	bool in_time; /* it was stopped with the others */
};

struct map_range {
	uint64_t start;
	uint64_t end;
	bool writable;
};

struct trace {
	const struct trace_opts *opts;
	int pid;
	int number; /* ID of a thread that has not ended; only such a thread has maps */
	bool is_apart; /* the process is in another PID namespace */
	struct traced_thread *threads;
	unsigned int nr;
	struct map_range *ranges;
	unsigned int nr_ranges;
	uint8_t *arena;
	size_t arena_size;
	struct shstk_space *space;
	struct shstk_symbols *symbols;
	struct shstk_symproc *proc;
	struct jit *jit; /* knows code made at run time, or NULL */
	struct interpreted interpreted;
	struct goroutine_source source;
	struct goroutines *goroutines;
	struct waiting_tasks tasks;
	struct mutex_waiter *waiters; /* one for each thread, sorted by own_tid */
	uint64_t pause; /* ns */
	int err; /* result of the thread that traces */
};

static int refuse(const struct trace *t, int err)
{
	char value[16];
	int tracer = task_field(t->pid, t->pid, "TracerPid", value, sizeof(value)) ? atoi(value) :
										     0;

	if ((err != -EPERM && err != -EACCES) || !tracer)
		return trace_refuse(t->pid, "", err);
	complain("process %d is already traced by process %d", t->pid, tracer);
	return EXIT_FAILED;
}

static int read_ranges(struct trace *t)
{
	struct mapping m;
	struct maps maps;
	int err = maps_open(t->number, "maps", &maps);

	if (err)
		return err;
	while (maps_next(&maps, &m)) {
		struct map_range *grown;

		if (!(t->nr_ranges & (t->nr_ranges - 1))) {
			grown = realloc(t->ranges,
					(t->nr_ranges ? t->nr_ranges * 2 : 1) * sizeof(*grown));
			if (!grown)
				break;
			t->ranges = grown;
		}
		t->ranges[t->nr_ranges++] = (struct map_range){
			.start = m.start,
			.end = m.end,
			.writable = m.write,
		};
	}
	maps_close(&maps);
	return t->nr_ranges ? 0 : -EPERM;
}

static const struct map_range *find_range(const struct trace *t, uint64_t addr)
{
	unsigned int low = 0, high = t->nr_ranges;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (addr >= t->ranges[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->nr_ranges && addr >= t->ranges[low].start ? &t->ranges[low] : NULL;
}

static struct traced_thread *find_thread(struct trace *t, int tid)
{
	for (unsigned int i = 0; i < t->nr; i++)
		if (t->threads[i].trace.tid == tid)
			return &t->threads[i];
	return NULL;
}

static bool is_zombie(int pid, int tid)
{
	struct task_stat stat;

	return !task_stat(pid, tid, &stat) && stat.state == 'Z';
}

/*
 * Seizes the threads that are not seized yet; this does not stop them. Returns their number, or a
 * negative errno.
 */
static int seize_new(struct trace *t)
{
	DIR *dir = tasks_open(t->pid);
	int found = 0, err = 0;
	pid_t tid;

	if (!dir)
		return -errno;
	while (t->nr < MAX_THREADS && (tid = tasks_next(dir))) {
		struct traced_thread *thread = &t->threads[t->nr];

		if (find_thread(t, tid))
			continue;
		/*
		 * Describe the thread before it is seized: the state of a stopped thread becomes
		 * "traced".
		 */
		trace_describe(t->pid, tid, &thread->trace);
		if (ptrace(PTRACE_SEIZE, tid, 0, 0)) {
			int why = -errno;

			/* A thread that ends meanwhile is no failure. */
			if (why != -ESRCH && !err && !is_zombie(t->pid, tid))
				err = why;
			continue;
		}
		thread->trace.tid = tid;
		thread->trace.own_tid = t->is_apart ? task_own_id(t->pid, tid) : tid;
		thread->seized = true;
		t->nr++;
		found++;
	}
	closedir(dir);
	return err ? err : found;
}

static int seize_all(struct trace *t)
{
	int found;

	/* New threads may appear as long as none is stopped. */
	for (int tries = 0; tries < 10; tries++) {
		found = seize_new(t);
		if (found <= 0)
			break;
	}
	if (found < 0)
		return found;
	return t->nr ? 0 : -ESRCH;
}

static int prepare_copies(struct trace *t)
{
	const size_t each = MAX_COPY + MAX_SHADOW;

	t->arena_size = t->nr * each;
	t->arena = mmap(NULL, t->arena_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->arena == MAP_FAILED) {
		t->arena = NULL;
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < t->nr; i++) {
		struct traced_thread *thread = &t->threads[i];

		thread->stack.data = t->arena + i * each;
		thread->shadow.data = thread->stack.data + MAX_COPY;
		memset(thread->stack.data, 0, TOUCHED);
	}
	return 0;
}

/* Waits for a thread to stop. Returns false if it neither stopped nor ended until @until. */
static bool wait_stop(struct traced_thread *thread, uint64_t until)
{
	int status;

	if (!stop_wait(thread->trace.tid, until, &status))
		return false;
	if (!WIFSTOPPED(status)) {
		thread->seized = false; /* it ended */
		return true;
	}
	thread->stopped = true;
	/* A stop without an event is the delivery of a signal: deliver the signal later. */
	if (!(status >> 16))
		thread->signo = WSTOPSIG(status);
	return true;
}

static int take_registers(struct traced_thread *thread)
{
	return trace_registers(thread->trace.tid, &thread->trace.regs, &thread->stack.start,
			       &thread->trace.call);
}

static void set_copy_end(struct copy *copy, uint64_t end, uint64_t max)
{
	copy->end = end - copy->start > max ? copy->start + max : end;
}

static void plan_stack(const struct trace *t, struct traced_thread *thread)
{
	bool little = thread->trace.shadow_on && !t->opts->compare;
	struct copy *copy = &thread->stack;
	const struct map_range *range = find_range(t, copy->start + TRACE_RED_ZONE);

	copy->end = copy->start;
	if (!range)
		return;
	if (copy->start < range->start)
		copy->start = range->start;
	set_copy_end(copy, range->end, little ? TOUCHED : MAX_COPY);
}

static void plan_mutex(const struct trace *t, struct traced_thread *thread)
{
	struct copy *copy = &thread->mutex;
	int pid = t->number;

	if (!mutex_word(OWN_ARCH, &thread->trace, shstk_read_process, &pid, &copy->start))
		return;
	copy->data = thread->mutex_data;
	copy->end = copy->start + MUTEX_SIZE;
}

/* Gets the shadow stack of a thread. The maps that were read before tell where it ends. */
static void plan_shadow(const struct trace *t, struct traced_thread *thread)
{
	struct shstk_shadow *s = &thread->trace.shadow;
	const struct map_range *range;

	*s = (struct shstk_shadow){ .size = sizeof(*s) };
	if (t->opts->source == TRACE_UNWIND || shstk_shadow_pointer(thread->trace.tid, s))
		return;
	range = find_range(t, s->ssp);
	if (range) {
		s->end = range->end;
	} else if (find_range(t, s->ssp - 8)) {
		s->end = s->ssp; /* x86: the shadow stack is empty */
	} else if (shstk_shadow_get(thread->trace.tid, s) || !s->end) {
		return;
	}
	thread->trace.shadow_on = true;
	thread->shadow.start = s->ssp;
	set_copy_end(&thread->shadow, s->end, MAX_SHADOW);
}

/*
 * Copies everything that was planned, by one call for up to IOV_MAX copies. If a call is cut short,
 * each of its copies is made by a call of its own.
 */
static void copy_memory(struct trace *t)
{
	struct iovec local[IOV_MAX], remote[IOV_MAX];
	struct copy *which[IOV_MAX];

	for (unsigned int i = 0; i < 3 * t->nr;) {
		unsigned int n = 0;
		size_t want = 0;
		ssize_t got;

		for (; i < 3 * t->nr && n < IOV_MAX; i++) {
			struct traced_thread *thread = &t->threads[i / 3];
			struct copy *const copies[] = { &thread->stack, &thread->shadow,
							&thread->mutex };
			struct copy *copy = copies[i % 3];
			size_t size = copy->end - copy->start;

			if (!thread->trace.sampled || !size)
				continue;
			local[n] = (struct iovec){ copy->data, size };
			remote[n] = (struct iovec){ (void *)copy->start, size };
			which[n++] = copy;
			want += size;
		}
		got = n ? process_vm_readv(t->number, local, n, remote, n, 0) : 0;
		if (got == (ssize_t)want)
			continue;
		for (unsigned int k = 0; k < n; k++) {
			got = process_vm_readv(t->number, &local[k], 1, &remote[k], 1, 0);
			which[k]->end = which[k]->start + (got > 0 ? got : 0);
		}
	}
}

/* Lets a thread go. This is only possible if it has stopped. */
static void release(struct traced_thread *thread)
{
	if (thread->stopped)
		detach(thread->trace.tid, thread->signo);
	thread->seized &= !thread->stopped;
	thread->stopped = false;
	thread->signo = 0;
}

/*
 * Reads memory of the process for a thread: from the thread's copies if possible, other memory only
 * while the process is stopped or if the memory is not writable.
 */
struct thread_reader {
	const struct trace *t;
	const struct traced_thread *thread;
	bool copied;
	bool stopped;
	uint64_t until; /* the time after which nothing is read, because a thread is held; or 0 */
	struct copy whole; /* of the stack of a thread that was stopped alone; empty: none */
	bool elsewhere; /* memory was read that the process can change, and that is not in @whole */
};

static bool read_copy(const struct copy *copy, uint64_t addr, void *buf, size_t len)
{
	if (addr < copy->start || addr > copy->end || len > copy->end - addr)
		return false;
	memcpy(buf, copy->data + (addr - copy->start), len);
	return true;
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct thread_reader *r = arg;
	const struct map_range *range;
	int pid = r->t->number;

	if (r->copied && (read_copy(&r->thread->stack, addr, buf, len) ||
			  read_copy(&r->thread->shadow, addr, buf, len) ||
			  read_copy(&r->thread->mutex, addr, buf, len)))
		return 0;
	if (r->until && now_ns(CLOCK_MONOTONIC) > r->until)
		return -ETIMEDOUT;
	if (r->whole.data && read_copy(&r->whole, addr, buf, len))
		return 0;
	/* While the process runs, only memory that it cannot write is still unchanged. */
	range = find_range(r->t, addr);
	if (!r->stopped && (!range || range->writable))
		return -EFAULT;
	r->elsewhere |= !range || range->writable;
	return shstk_read_process(&pid, addr, buf, len);
}

/* Returns true if the stack that is shown ends, or has a gap, because memory was not copied. */
static bool cut_short(const struct trace_opts *o, const struct trace_thread *t)
{
	bool end = t->unwound.taken && t->unwound.nr >= 0 && t->unwound.info.end == SHSTK_END_READ;

	if (!t->hardware.taken || o->compare)
		return end;
	return (end && trace_has_gap(&t->hardware)) ||
	       (t->hardware.nr < 2 && t->hardware.info.end == SHSTK_END_READ);
}

/*
 * Copies what is in use of the stack of a thread that is stopped, up to MAX_WHOLE bytes, to new
 * memory. What cannot be copied is read later, word by word.
 */
static void copy_whole(const struct trace *t, const struct traced_thread *thread, struct copy *copy)
{
	const struct map_range *range = find_range(t, thread->stack.start + TRACE_RED_ZONE);
	struct iovec local, remote;
	ssize_t got;

	if (!range)
		return;
	copy->data = mmap(NULL, MAX_WHOLE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy->data == MAP_FAILED) {
		copy->data = NULL;
		return;
	}
	copy->start = thread->stack.start;
	if (copy->start < range->start)
		copy->start = range->start;
	set_copy_end(copy, range->end, MAX_WHOLE);
	local = (struct iovec){ copy->data, copy->end - copy->start };
	remote = (struct iovec){ (void *)copy->start, copy->end - copy->start };
	got = process_vm_readv(t->number, &local, 1, &remote, 1, 0);
	copy->end = copy->start + (got > 0 ? got : 0);
}

/*
 * Unwinds a thread that is stopped, lets it go, and unwinds it once more from the copy of its stack
 * if it could not be held for as long as that took.
 */
static void take_one(struct trace *t, struct traced_thread *thread)
{
	struct thread_reader reader = { .t = t, .thread = thread, .stopped = true };
	bool taken = thread->stopped && !take_registers(thread);

	if (taken) {
		reader.until = now_ns(CLOCK_MONOTONIC) + STOP_HOLD_MS * MS;
		if (thread->trace.shadow_on || !thread->trace.sampled)
			plan_shadow(t, thread);
		thread->trace.sampled = true;
		interpreted_stop(&t->interpreted);
		interpreted_read(&t->interpreted, &thread->trace);
		copy_whole(t, thread, &reader.whole);
		trace_take(t->opts, t->space, &thread->trace, read_memory, &reader);
	}
	release(thread);
	if (!taken)
		return;
	if (reader.whole.data && !reader.elsewhere && !thread->trace.shadow_on &&
	    cut_short(t->opts, &thread->trace)) {
		reader.stopped = false;
		reader.until = 0;
		trace_take(t->opts, t->space, &thread->trace, read_memory, &reader);
	}
	interpreted_place(&t->interpreted, t->opts, t->space, &thread->trace, read_memory, &reader);
	if (reader.whole.data)
		munmap(reader.whole.data, MAX_WHOLE);
}

/* Stops a thread again, unwinds it once more and lets it go. */
static void take_stopped(struct trace *t, struct traced_thread *thread)
{
	uint64_t at;

	if (ptrace(PTRACE_SEIZE, thread->trace.tid, 0, 0))
		return;
	thread->seized = true;
	at = now_ns(CLOCK_MONOTONIC);
	ptrace(PTRACE_INTERRUPT, thread->trace.tid, 0, 0);
	if (wait_stop(thread, at + STOP_LATE_MS * MS))
		take_one(t, thread);
	t->pause += now_ns(CLOCK_MONOTONIC) - at;
}

/*
 * Returns true if a thread was told to stop and has not stopped. Sets @ret if it is worth waiting
 * for such a thread any longer.
 */
static bool is_late(const struct trace *t, const struct traced_thread *thread, uint64_t waited,
		    bool *ret)
{
	if (!thread->seized || thread->stopped)
		return false;
	*ret |= waited <
		(stop_is_stuck(t->pid, thread->trace.tid) ? STOP_STUCK_MS : STOP_LATE_MS) * MS;
	return true;
}

/*
 * Unwinds each thread that did not stop in time as soon as it stops. No other thread is held
 * meanwhile.
 */
static void take_late(struct trace *t)
{
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	bool wait = true;

	while (wait) {
		uint64_t waited = now_ns(CLOCK_MONOTONIC) - began;

		wait = false;
		for (unsigned int i = 0; i < t->nr; i++) {
			struct traced_thread *thread = &t->threads[i];
			bool more = false;

			if (is_late(t, thread, waited, &more) && wait_stop(thread, 0))
				take_one(t, thread);
			else
				wait |= more;
		}
		if (wait)
			stop_pause(began + STOP_LATE_MS * MS);
	}
	for (unsigned int i = 0; i < t->nr; i++) {
		struct trace_thread *trace = &t->threads[i].trace;

		if (t->threads[i].seized)
			stop_describe(t->pid, trace->tid, trace->held_up, sizeof(trace->held_up));
	}
}

/* Unwinds all threads from their copies. @stopped says that the process does not run. */
static int take_copied(struct trace *t, bool stopped)
{
	for (unsigned int i = 0; i < t->nr; i++) {
		struct traced_thread *thread = &t->threads[i];
		struct thread_reader reader = {
			.t = t,
			.thread = thread,
			.copied = true,
			.stopped = stopped,
		};

		if (!thread->trace.sampled)
			continue;
		if (trace_take(t->opts, t->space, &thread->trace, read_memory, &reader))
			return -ENOMEM;
		interpreted_place(&t->interpreted, t->opts, t->space, &thread->trace, read_memory,
				  &reader);
	}
	return 0;
}

static void take_cut_short(struct trace *t)
{
	for (unsigned int i = 0; i < t->nr; i++)
		if (t->threads[i].trace.sampled && cut_short(t->opts, &t->threads[i].trace))
			take_stopped(t, &t->threads[i]);
}

/* Reads any memory of the process. The process is stopped, or changes do no harm. */
static int read_live(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct trace *t = arg;
	int pid = t->number;

	return shstk_read_process(&pid, addr, buf, len);
}

static const struct shstk_regs *thread_regs(void *arg, int tid)
{
	const struct traced_thread *thread = find_thread(arg, tid);

	return thread && thread->trace.sampled ? &thread->trace.regs : NULL;
}

/* Does what wait_stop() does, for as long as the other threads may be held. */
static bool wait_in_time(const struct trace *t, struct traced_thread *thread, uint64_t began)
{
	return wait_stop(thread, began + STOP_STUCK_MS * MS) ||
	       (!stop_is_stuck(t->pid, thread->trace.tid) &&
		wait_stop(thread, began + STOP_HOLD_MS * MS));
}

/* Tells all threads to stop, and takes the registers of those that stop in time. */
static void stop_all(struct trace *t)
{
	uint64_t began = now_ns(CLOCK_MONOTONIC);

	for (unsigned int i = 0; i < t->nr; i++)
		ptrace(PTRACE_INTERRUPT, t->threads[i].trace.tid, 0, 0);
	for (unsigned int i = 0; i < t->nr; i++) {
		struct traced_thread *thread = &t->threads[i];

		if (!wait_in_time(t, thread, began) || !thread->stopped)
			continue;
		thread->trace.sampled = !take_registers(thread);
		if (thread->trace.sampled) {
			thread->in_time = true;
			plan_shadow(t, thread);
			plan_stack(t, thread);
			plan_mutex(t, thread);
		}
	}
}

/* Returns whether the process has no thread that was not stopped: one may have begun meanwhile. */
static bool all_stopped(struct trace *t)
{
	DIR *dir = tasks_open(t->pid);
	bool ret = dir != NULL;
	pid_t tid;

	while (ret && (tid = tasks_next(dir))) {
		const struct traced_thread *thread = find_thread(t, tid);

		ret = thread ? thread->stopped || !thread->seized : is_zombie(t->pid, tid);
	}
	if (dir)
		closedir(dir);
	return ret;
}

/* Returns the ID of the thread whose own one is that; 0: there is none. */
static int find_own(const struct trace *t, int own_tid)
{
	for (unsigned int i = 0; i < t->nr; i++)
		if (t->threads[i].trace.own_tid == own_tid)
			return t->threads[i].trace.tid;
	return 0;
}

/* Takes the tasks. The process's memory has its own IDs of the threads that run them. */
static int take_tasks(struct trace *t)
{
	int err;

	interpreted_hold(&t->interpreted);
	err = all_stopped(t) ? waiting_tasks_take(&t->tasks, &t->interpreted) : -EBUSY;
	for (size_t i = 0; !err && t->is_apart && i < t->tasks.all->nr; i++) {
		struct awaits_task *task = t->tasks.all->tasks[i];

		task->tid = task->tid ? find_own(t, task->tid) : 0;
	}
	return err;
}

/* Takes what is read while all threads stand still. */
static int take_still(struct trace *t)
{
	if (t->goroutines)
		return goroutines_take(t->goroutines);
	if (t->opts->tasks)
		return take_tasks(t);
	return shstk_space_has_go(t->space) ? take_copied(t, true) : 0;
}

/*
 * Stops, copies and releases. Only during this function the process does not run, except for single
 * threads later.
 */
static int stop_and_copy(struct trace *t)
{
	const bool still = t->goroutines || t->opts->tasks || shstk_space_has_go(t->space);
	uint64_t at = now_ns(CLOCK_MONOTONIC);
	int err;

	stop_all(t);
	copy_memory(t);
	interpreted_stop(&t->interpreted);
	for (unsigned int i = 0; i < t->nr && !t->opts->tasks; i++)
		interpreted_read(&t->interpreted, &t->threads[i].trace);
	err = take_still(t);
	for (unsigned int i = 0; i < t->nr; i++)
		release(&t->threads[i]);
	t->pause = now_ns(CLOCK_MONOTONIC) - at;
	return err || still ? err : take_copied(t, false);
}

/* Does everything that only a tracer can do. */
static int take_all(struct trace *t)
{
	int err = seize_all(t);

	if (!err)
		err = prepare_copies(t);
	if (!err)
		err = stop_and_copy(t);
	if (err)
		return err;
	if (t->opts->tasks)
		return 0;
	take_late(t);
	take_cut_short(t);
	return 0;
}

static void *tracer(void *arg)
{
	struct trace *t = arg;

	t->err = take_all(t);
	return NULL;
}

/* Runs take_all() in a thread of its own: when that thread ends, it traces nobody any more. */
static int take_by_tracer(struct trace *t)
{
	pthread_t thread;
	int err;

	stop_prepare();
	err = pthread_create(&thread, NULL, tracer, t);
	if (err)
		return -err;
	pthread_join(thread, NULL);
	return t->err;
}

static int find_goroutines(struct trace *t)
{
	int err;

	if (!t->opts->goroutines)
		return 0;
	t->source = (struct goroutine_source){ t->opts, t->space, read_live, t, thread_regs };
	err = goroutines_find(&t->source, &t->goroutines);
	if (err == -ENOENT)
		complain("process %d has no runtime of Go that is known", t->pid);
	return err;
}

/* Finds where the process keeps its tasks. Returns 0, or -ENOENT after a message. */
static int find_tasks(struct trace *t)
{
	struct reason why;
	struct mapping m;
	struct maps maps;

	if (!t->opts->tasks)
		return 0;
	if (maps_open(t->number, "maps", &maps))
		return -EPERM;
	while (maps_next(&maps, &m)) {
		const struct mappings_map map = live_map(&m);
		struct language_module module = {
			.start = m.start,
			.offset = m.offset,
			.read = read_live,
			.arg = t,
			.account = shstk_symbols_process_account(t->symbols, t->number),
		};

		if (!m.exec || !waiting_tasks_may_be(m.path))
			continue;
		module.fd = live_open(t->symbols, t->number, &map);
		if (module.fd >= 0)
			waiting_tasks_look(&t->tasks, m.path, &module);
		close(module.fd);
	}
	maps_close(&maps);
	if (waiting_tasks_known(&t->tasks, &t->interpreted, &why))
		return 0;
	complain("process %d: %s", t->pid, why.text);
	return -ENOENT;
}

static bool print_threads(const struct trace *t)
{
	struct trace_thread **list = calloc(t->nr + 1, sizeof(*list));
	struct json *json = t->opts->json;
	bool ok;

	if (!list) {
		complain("out of memory");
		return false;
	}
	for (unsigned int i = 0; i < t->nr; i++)
		list[i] = &t->threads[i].trace;
	if (json)
		shstk_json_open(json, "threads", '[');
	ok = trace_print(t->opts, t->proc, list, t->nr);
	if (json)
		shstk_json_close(json);
	free(list);
	return ok;
}

static int find_mutexes(struct trace *t)
{
	t->waiters = calloc(t->nr + 1, sizeof(*t->waiters));
	if (!t->waiters)
		return -ENOMEM;
	for (unsigned int i = 0; i < t->nr; i++) {
		struct traced_thread *thread = &t->threads[i];
		struct thread_reader reader = { .t = t, .thread = thread, .copied = true };
		struct mutex_waiter *w = &t->waiters[i];

		w->tid = thread->trace.tid;
		w->own_tid = thread->trace.own_tid;
		w->stopped = thread->in_time;
		if (thread->in_time)
			mutex_find(OWN_ARCH, t->proc, &thread->trace, read_memory, &reader, w);
	}
	mutex_resolve(t->waiters, t->nr);
	for (unsigned int i = 0; i < t->nr; i++)
		t->threads[i].trace.waiter =
			mutex_waiter(t->waiters, t->nr, t->threads[i].trace.own_tid);
	return 0;
}

/* Prints the result. Returns false if it is not what was asked for. */
static bool print_all(const struct trace *t)
{
	struct json *json = t->opts->json;
	struct task_stat stat;
	const char *comm = task_stat(t->pid, t->pid, &stat) ? "?" : stat.name;
	bool ok;

	if (json) {
		shstk_json_open(json, NULL, '{');
		shstk_json_int(json, "pid", t->pid);
		shstk_json_string(json, "name", comm);
		shstk_json_real(json, "stopped_ms", t->pause / 1e6);
	} else {
		printf("process %d (%s), %u %s, ", t->pid, comm, t->nr,
		       t->nr == 1 ? "thread" : "threads");
		if (t->goroutines)
			printf("%zu goroutines, ", goroutines_count(t->goroutines));
		if (t->tasks.all)
			printf("%zu %s, ", t->tasks.all->nr,
			       t->tasks.all->nr == 1 ? "task" : "tasks");
		printf("stopped for %.3f ms\n", t->pause / 1e6);
	}
	ok = t->goroutines ? goroutines_print(t->goroutines, t->proc) :
	     t->tasks.all  ? waiting_tasks_print(&t->tasks, t->opts, t->proc) :
			     print_threads(t);
	trace_put_missing(t->opts, t->symbols);
	if (json)
		shstk_json_close(json);
	return ok;
}

/*
 * Opens the library that makes code at run time, and tells where the process has mapped it. Returns
 * a descriptor, or a negative errno.
 */
static int open_jit(void *arg, uint64_t *start, uint64_t *offset)
{
	const struct trace *t = arg;
	struct mapping m;
	struct maps maps;
	int ret = maps_open(t->number, "maps", &maps);

	if (ret)
		return ret;
	ret = -ENOENT;
	while (ret == -ENOENT && maps_next(&maps, &m)) {
		struct mappings_map map = live_map(&m);

		if (!m.exec || !jit_is_known(m.path))
			continue;
		*start = m.start;
		*offset = m.offset;
		ret = live_open(t->symbols, t->number, &map);
	}
	maps_close(&maps);
	return ret;
}

static struct shstk_account *jit_account(void *arg)
{
	const struct trace *t = arg;

	return shstk_symbols_process_account(t->symbols, t->number);
}

/* Finds HotSpot's tables. This takes time, so it is done while the process runs. */
static int find_jit(struct trace *t)
{
	const struct jit_process process = { read_live, open_jit, jit_account, t };

	return OWN_ARCH == SHSTK_ARCH_X86 ? jit_attach(t->space, &process, &t->jit) : 0;
}

static int name_made(const struct trace *t)
{
	int ret = 0;

	for (unsigned int i = 0; i < t->nr && t->jit && !ret; i++)
		ret = trace_name_made(t->jit, t->proc, &t->threads[i].trace);
	return ret;
}

/*
 * Adds a file whose code libshstk did not find. @hole says that the file's names were not found
 * either.
 */
static int add_missing(struct trace *t, const struct mapping *m, bool hole)
{
	const struct mappings_map map = live_map(m);
	struct shstk_symmap_info info = {
		.start = map.start,
		.end = map.end,
		.offset = map.offset,
		.path = map.path,
		.dev = map.dev,
		.inode = map.inode,
	};
	int fd = live_open(t->symbols, t->number, &map), err;
	char path[64];

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = shstk_space_add_file(t->space, path, map.start, map.end, map.offset);
	close(fd);
	if (!err && hole)
		err = shstk_symproc_add(t->proc, &info);
	return err == -ENOMEM ? err : 0;
}

/*
 * Adds the code of files that is no longer mapped from the file, and files that cannot be opened by
 * name.
 */
static int add_rest(struct trace *t)
{
	struct holes holes;
	struct mapping m;
	struct maps maps;
	int err = maps_open(t->number, "maps", &maps);

	if (err)
		return err;
	holes_begin(&holes, t->symbols, t->number);
	while (!err && maps_next(&maps, &m)) {
		bool hole = holes_look(&holes, &m);

		if (m.exec && (hole || (mappings_is_file(m.path) &&
					!shstk_space_has_file(t->space, m.start))))
			err = add_missing(t, &m, hole);
	}
	holes_end(&holes);
	maps_close(&maps);
	return err;
}

static int prepare(struct trace *t)
{
	struct shstk_symbols_opts names = { .full_names = t->opts->full_names };
	int err = read_ranges(t);

	read_limit_apply(&t->opts->read_limit, &names);
	if (!err)
		err = shstk_space_create(OWN_ARCH, &t->space);
	if (!err) {
		shstk_space_set_debug(t->space, shstk_debug_find, NULL);
		shstk_space_set_generated(t->space, read_live, t);
		err = shstk_space_add_pid(t->space, t->number);
	}
	if (err >= 0)
		err = shstk_symbols_create(&names, &t->symbols);
	if (!err)
		err = find_jit(t);
	if (!err)
		err = shstk_symproc_create(t->symbols, t->pid, &t->proc);
	if (!err)
		err = shstk_symproc_read_maps(t->proc);
	if (err >= 0)
		err = add_rest(t);
	if (err >= 0)
		err = interpreted_find(&t->interpreted, t->number, t->symbols);
	if (!err)
		err = interpreted_add_java(&t->interpreted, t->jit, t->symbols);
	if (err < 0)
		return err;
	t->threads = calloc(MAX_THREADS, sizeof(*t->threads));
	return t->threads ? 0 : -ENOMEM;
}

static void cleanup(struct trace *t)
{
	for (unsigned int i = 0; i < t->nr; i++)
		trace_deinit(&t->threads[i].trace);
	goroutines_destroy(t->goroutines);
	waiting_tasks_deinit(&t->tasks);
	interpreted_deinit(&t->interpreted);
	free(t->threads);
	free(t->waiters);
	free(t->ranges);
	if (t->arena)
		munmap(t->arena, t->arena_size);
	shstk_symbols_destroy(t->symbols);
	shstk_space_destroy(t->space);
	jit_destroy(t->jit);
}

/*
 * Says why the process could not be traced, unless that was said. Returns false if another try may do, which
 * @last excludes.
 */
static bool say_why(const struct trace *t, int err, bool last)
{
	const bool again = t->opts->tasks && (err == -EAGAIN || err == -EBUSY || err == -EFAULT);
	char whose[32];

	if (again && !last)
		return false;
	if (again || (t->opts->tasks && (err == -E2BIG || err == -ETIMEDOUT))) {
		snprintf(whose, sizeof(whose), "process %d", t->pid);
		waiting_tasks_complain(whose, err);
	} else if (err != -ENOENT || (!t->opts->goroutines && !t->opts->tasks)) {
		refuse(t, err);
	}
	return true;
}

/* Traces the process. Returns an exit status, or a negative number: another try may do, unless this is the @last. */
static int try_process(const struct trace_opts *opts, bool last)
{
	struct trace t = { .opts = opts, .pid = opts->pid };
	int status = EXIT_FAILED;
	int err;

	t.number = tasks_living(t.pid);
	t.is_apart = task_own_id(t.pid, t.number) != 0;
	t.interpreted.arch = OWN_ARCH;
	t.interpreted.read = read_live;
	t.interpreted.arg = &t;
	err = prepare(&t);
	if (!err)
		err = find_goroutines(&t);
	if (!err)
		err = find_tasks(&t);
	if (!err)
		err = take_by_tracer(&t);
	if (!err)
		err = name_made(&t);
	if (!err)
		err = find_mutexes(&t);
	if (err && !say_why(&t, err, last))
		status = -1;
	else if (!err && print_all(&t))
		status = EXIT_OK;
	else if (!err)
		complain("process %d: not every stack could be taken as asked, see above", t.pid);
	cleanup(&t);
	return status;
}

int trace_process(const struct trace_opts *opts)
{
	int status = -1;

	if (!OWN_ARCH) {
		complain("this CPU is not supported: only x86-64 and arm64 are");
		return EXIT_FAILED;
	}
	if (trace_check(opts->pid))
		return EXIT_FAILED;
	for (int i = 1; status < 0; i++)
		status = try_process(opts, i == TASK_TRIES);
	return status;
}
