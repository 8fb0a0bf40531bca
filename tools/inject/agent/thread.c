// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * thread.c - the sampled threads of this process.
 *
 * Each thread has a POSIX timer on its own clock, which signals that very thread, and a slot with a
 * ring in the shared memory.
 *
 * Threads made by pthread_create() register themselves. Others (made by clone(2), or started by
 * libc for itself) are found by scan_threads() when the recorder asks for it; another thread then
 * makes their timers.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agent.h"

/*
 * The kernel's struct sigevent. It is defined here because libc's member for the thread has no
 * name.
 */
struct ksigevent {
	union sigval value;
	int signo;
	int notify;
	int tid;
	int pad[11];
};

struct linux_dirent64 {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

static void lock(void)
{
	int free = 0;

	while (!atomic_compare_exchange_weak_explicit(&agent.lock, &free, 1, memory_order_acquire,
						      memory_order_relaxed)) {
		free = 0;
		sys0(SYS_sched_yield);
	}
}

static bool trylock(void)
{
	int free = 0;

	return atomic_compare_exchange_strong_explicit(&agent.lock, &free, 1, memory_order_acquire,
						       memory_order_relaxed);
}

static void unlock(void)
{
	atomic_store_explicit(&agent.lock, 0, memory_order_release);
}

/*
 * Returns a random length for a first period, so that the time of short threads is right on
 * average.
 */
static uint64_t first_period(int tid)
{
	uint64_t x = now(CLOCK_MONOTONIC) ^ (uint64_t)tid << 32;

	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	x ^= x >> 33;
	return 1 + x % agent.period;
}

long timer_make(clockid_t clock, int signo, int tid, void *value, int *timer)
{
	struct ksigevent ev = {
		.value.sival_ptr = value,
		.signo = signo,
		.notify = SIGEV_THREAD_ID,
		.tid = tid,
	};

	return sys3(SYS_timer_create, clock, &ev, timer);
}

uint64_t agent_interval(const struct agent_thread *t)
{
	return by_tick(t) && agent.tick < agent.period ? agent.tick : t->stretch * agent.period;
}

/* Makes the thread's timer signal after @rest ns, and then at each interval. */
static long set_timer(const struct agent_thread *t, uint64_t rest)
{
	struct itimerspec when = {
		.it_value = to_timespec(rest),
		.it_interval = to_timespec(agent_interval(t)),
	};

	return sys4(SYS_timer_settime, t->timer, 0, &when, NULL);
}

static int arm(struct agent_thread *t)
{
	/* The CPU clock of a thread, composed as pthread_getcpuclockid() does. */
	clockid_t clock = (clockid_t)(~(unsigned int)t->tid << 3 | 6);
	uint64_t at;
	long ret;

	if (agent.traced)
		return 0;
	if (agent.wall)
		clock = CLOCK_MONOTONIC;
	t->first = first_period(t->tid);
	at = now(clock);
	if (agent.wall || !t->managed || t->start > at)
		t->start = at;
	settle_early(t, at);
	ret = timer_make(clock, agent.signo, t->tid, t, &t->timer);
	if (ret < 0)
		return ret;
	t->armed = true;
	t->stretch = 1;
	t->rest_until = 0;
	t->put_off = 0;
	atomic_fetch_add(&agent.armed, 1);
	t->calls = (struct calls){ .since = at, .last = at };
	return set_timer(t, t->start + t->first + t->periods * agent.period - at);
}

void agent_ask(struct agent_thread *t)
{
	t->asks = true;
	t->calls.since = t->calls.last = now(CLOCK_THREAD_CPUTIME_ID);
	set_timer(t, 1);
}

void agent_pause(struct agent_thread *t)
{
	const struct itimerspec never = { .it_value = { 0 } };
	struct itimerspec was = { .it_value = { 0 } };

	if (t->pauses++)
		return;
	sys4(SYS_timer_settime, t->timer, 0, &never, &was);
	t->paused_until = now(agent_clock()) + (to_ns(was.it_value) ?: agent_interval(t));
}

uint64_t agent_go_on(struct agent_thread *t)
{
	uint64_t interval = agent_interval(t), until = t->paused_until, at = now(agent_clock()),
		 late;

	if (!t->pauses || --t->pauses)
		return 0;
	t->paused_until = 0;
	if (at < until) {
		set_timer(t, until - at);
		return 0;
	}
	late = at - until;
	set_timer(t, interval - late % interval);
	return (1 + late / interval) * t->stretch;
}

/*
 * Replaces the thread's timer by one that sends @signo and expires at the same time, or that stands still,
 * too. If no other timer can be made, the old one goes on.
 */
void agent_retime(struct agent_thread *t, int signo)
{
	clockid_t clock = (clockid_t)(~(unsigned int)t->tid << 3 | 6);
	struct itimerspec when;
	int timer, old = t->timer;

	event_close(t);
	t->tried = false;
	if (timer_make(agent.wall ? CLOCK_MONOTONIC : clock, signo, t->tid, t, &timer) < 0)
		return;
	sys2(SYS_timer_gettime, old, &when);
	if (!when.it_value.tv_sec && !when.it_value.tv_nsec)
		when.it_value.tv_nsec = 1;
	t->timer = timer;
	t->slot->signo = signo;
	sys1(SYS_timer_delete, old);
	if (!t->pauses)
		sys4(SYS_timer_settime, timer, 0, &when, NULL);
}

void agent_disarm(struct agent_thread *t)
{
	if (t->armed) {
		sys1(SYS_timer_delete, t->timer);
		atomic_fetch_sub(&agent.armed, 1);
	}
	event_close(t);
	t->armed = false;
}

static struct agent_thread *take_slot(int tid, bool managed)
{
	struct rec_header *header = agent.header;
	uint32_t nr = agent.nr_slots;
	uint32_t i = atomic_load(&header->slot_hint) % nr;
	struct rec_slot *slot;
	struct agent_thread *t;

	for (uint32_t tries = 0;; tries++, i = (i + 1) % nr) {
		uint64_t free = REC_FREE;

		if (tries == nr) {
			atomic_fetch_add(&header->no_slot, 1);
			return NULL;
		}
		slot = &agent.slots[i];
		if (!agent_has_ring(i))
			continue;
		if (!atomic_load_explicit(&slot->owner, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&slot->owner, &free,
						   REC_OWNER(agent.pid, REC_TAKEN)))
			break;
	}
	atomic_store(&header->slot_hint, i + 1);
	for (uint32_t high = atomic_load(&header->slot_high); high <= i;)
		if (atomic_compare_exchange_weak(&header->slot_high, &high, i + 1))
			break;

	t = &agent.threads[i];
	*t = (struct agent_thread){ .pid = agent.pid, .tid = tid, .managed = managed };
	t->slot = slot;
	t->ring = agent.rings + (uint64_t)i * agent.ring_size;

	atomic_fetch_add(&slot->epoch, 1);
	atomic_store_explicit(&slot->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->lost, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->lost_weight, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->cpu, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->wait_since, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->wait_until, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->kernel_rest, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->ticks_rest, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->head, 0, memory_order_release);
	slot->tid = tid;
	slot->signo = agent.signo;
	slot->instance = agent.instance;
	slot->parent = agent.parent;
	slot->start_slot = agent.start_slot;
	slot->parent_slot = agent.parent_slot;
	memset(slot->comm, 0, sizeof(slot->comm));
	return t;
}

/*
 * Takes a free slot for thread @tid. Its first record comes from the caller or the thread. Returns
 * NULL if there is none.
 */
struct agent_thread *agent_take(int tid, bool managed)
{
	struct agent_thread *t;

	atomic_fetch_add(&agent.takers, 1);
	t = take_slot(tid, managed);
	atomic_fetch_sub(&agent.takers, 1);
	return t;
}

/* Frees the slot of a thread that was never started, or that has no records. */
void agent_drop(struct agent_thread *t)
{
	t->pid = 0;
	atomic_store_explicit(&t->slot->owner, REC_FREE, memory_order_release);
	atomic_store(&agent.header->slot_hint, t->slot - agent.slots);
}

static void release(struct agent_thread *t)
{
	struct rec_slot *slot = t->slot;

	if (!t->head && !atomic_load_explicit(&slot->taken, memory_order_relaxed)) {
		agent_drop(t);
		return;
	}
	t->pid = 0;
	atomic_store_explicit(&slot->owner, REC_OWNER(agent.pid, REC_DYING), memory_order_release);
}

static void activate(struct agent_thread *t, bool counted)
{
	int ret;

	t->slot->tid = t->tid;
	atomic_store_explicit(&t->slot->owner, REC_OWNER(agent.pid, REC_ACTIVE),
			      memory_order_release);
	if (!counted)
		atomic_fetch_add(&agent.header->threads, 1);
	ret = arm(t);
	/* @t may be another thread that has just ended: then nothing is lost. */
	if (ret < 0 && !sys3(SYS_tgkill, agent.pid, t->tid, 0))
		atomic_fetch_add(&agent.header->no_timer, 1);
}

static struct agent_thread *find(int tid)
{
	uint32_t high = atomic_load(&agent.header->slot_high);

	for (uint32_t i = 0; i < high && i < agent.nr_slots; i++)
		if (agent.threads[i].pid == agent.pid && agent.threads[i].tid == tid)
			return &agent.threads[i];
	return NULL;
}

static uint32_t scans;

/*
 * The threads that last called agent_end_thread(). The kernel still lists them for a while, and
 * they may still run; a scan that finds one of them does not count it again.
 */
#define ENDED 256
static _Atomic int ended[ENDED];
static _Atomic uint32_t nr_ended;

static void note_end(int tid)
{
	uint32_t i = atomic_fetch_add(&nr_ended, 1) % ENDED;

	atomic_store(&ended[i], tid);
}

static bool said_its_end(int tid)
{
	for (int i = 0; i < ENDED; i++)
		if (atomic_load_explicit(&ended[i], memory_order_relaxed) == tid)
			return true;
	return false;
}

/* Begins to sample the calling thread, which is new. */
void agent_begin(struct agent_thread *t)
{
	ksigset old;
	int tid = sys0(SYS_gettid);
	struct agent_thread *found = NULL;

	move_follow();
	old = block_signals();

	pthread_setspecific(agent.key, t);
	lock();
	/* A scan may have found this thread before it came here. */
	if (scans)
		found = find(tid);
	if (found == t)
		found = NULL;
	if (found) {
		agent_disarm(found);
		release(found);
	}
	t->tid = tid;
	activate(t, found);
	unlock();
	/* A program may begin with any mask. */
	if (t->program)
		local.blocked = old & agent_sigset();
	old = is_held() ? old | agent_sigset() : old & ~agent_sigset();
	restore_signals(old);
	/*
	 * Signals are unblocked here, as the event's signal must not wait until the program's code
	 * runs.
	 */
	event_begin(t);
	if (t->armed && by_tick(t))
		agent_ask(t);
}

/* Stops sampling the calling thread, which ends. Its signal stays blocked: one may be pending. */
void agent_end_thread(struct agent_thread *t)
{
	if (agent.sandboxed) {
		/* The timer ends with the process, and the recorder frees the slot. */
		return;
	}
	env_free();
	/* Other threads may have no timer: then this one is taken to be the last. */
	agent_settle(t, atomic_load(&agent.armed) <= 1);
	change_agent_signal(SIG_BLOCK);
	wait_forget_knock();
	agent_disarm(t);
	take_name(t);
	note_end(t->tid);
	release(t);
}

/* Notes in all threads that the process ends, and with it the calls that they wait in. */
void agent_end_waits(void)
{
	uint32_t high = atomic_load(&agent.header->slot_high);
	uint64_t at = now(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < high && i < agent.nr_slots; i++)
		if (agent.threads[i].pid == agent.pid)
			atomic_store(&agent.threads[i].slot->wait_until, at);
}

static int parse_tid(const char *name)
{
	int tid = 0;

	for (; *name >= '0' && *name <= '9' && tid < INT_MAX / 10 - 1; name++)
		tid = tid * 10 + (*name - '0');
	return *name ? 0 : tid;
}

static void meet(int tid)
{
	struct agent_thread *t = find(tid);

	if (!t) {
		t = agent_take(tid, false);
		if (!t)
			return;
		activate(t, said_its_end(tid));
	}
	t->seen = scans;
}

/* Releases threads that ended but could not say so. */
static void bury(void)
{
	uint32_t high = atomic_load(&agent.header->slot_high);

	for (uint32_t i = 0; i < high && i < agent.nr_slots; i++) {
		struct agent_thread *t = &agent.threads[i];

		if (t->pid == agent.pid && !t->managed && t->seen != scans) {
			agent_disarm(t);
			release(t);
		}
	}
}

/* Finds threads that did not register themselves. Async-signal-safe. */
void scan_threads(void)
{
	_Alignas(8) char buf[2048];
	ksigset old = block_signals();
	bool complete = false;
	long fd, n, pos;

	if (!trylock())
		goto restore;
	fd = sys4(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		goto unlock;
	scans++;
	while ((n = sys3(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		struct linux_dirent64 *d;

		for (pos = 0; pos < n; pos += d->reclen) {
			int tid;

			d = (struct linux_dirent64 *)(buf + pos);
			tid = parse_tid(d->name);
			if (tid)
				meet(tid);
		}
	}
	complete = !n;
	sys1(SYS_close, fd);
	if (complete)
		bury();
unlock:
	unlock();
restore:
	restore_signals(old);
}
