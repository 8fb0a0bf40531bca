// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * thread.c - the sampled threads of this process.
 *
 * Each thread has a POSIX timer on its own clock that signals that very
 * thread, and a slot with a ring in the shared memory. The handler captures
 * the interrupted stack straight into the ring.
 *
 * Threads made by pthread_create() register themselves. Others (clone(2),
 * threads that libc starts for itself) are found by scan_threads() when the
 * recorder asks for it; their timers are then made by another thread.
 *
 * The kernel looks at CPU-time timers in its periodic tick only, so there are
 * at most CONFIG_HZ samples per second; the periods that ran out in between
 * come as the overrun count and are in the sample's weight.
 */
#include <errno.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <fcntl.h>

#include "agent.h"
#include "golabels.h"
#include "shstk.h"

/* The kernel's struct sigevent; libc's member for the thread has no name. */
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

uint64_t now(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A first period of random length, so that short threads count rightly. */
static uint64_t first_period(int tid)
{
	uint64_t x = now(CLOCK_MONOTONIC) ^ (uint64_t)tid << 32;

	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	x ^= x >> 33;
	return 1 + x % agent.header->period;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

static void settle_early(struct thread *t, uint64_t at);

static int arm(struct thread *t)
{
	struct ksigevent ev = {
		.value.sival_ptr = t,
		.signo = agent.signo,
		.notify = SIGEV_THREAD_ID,
		.tid = t->tid,
	};
	/* CPU clock of a thread, as pthread_getcpuclockid() composes it. */
	clockid_t clock = (clockid_t)(~(unsigned int)t->tid << 3 | 6);
	struct itimerspec when = {
		.it_interval = to_timespec(agent.header->period),
	};
	uint64_t at;
	long ret;

	if (agent.wall)
		clock = CLOCK_MONOTONIC;
	t->first = first_period(t->tid);
	at = now(clock);
	if (agent.wall || !t->managed || t->start > at)
		t->start = at;
	settle_early(t, at);
	when.it_value = to_timespec(t->start + t->first + t->periods * agent.header->period - at);
	ret = sys3(SYS_timer_create, clock, &ev, &t->timer);
	if (ret < 0)
		return ret;
	t->armed = true;
	t->stretch = 1;
	atomic_fetch_add(&agent.armed, 1);
	return sys4(SYS_timer_settime, t->timer, 0, &when, NULL);
}

void agent_disarm(struct thread *t)
{
	if (t->armed) {
		sys1(SYS_timer_delete, t->timer);
		atomic_fetch_sub(&agent.armed, 1);
	}
	event_close(t);
	t->armed = false;
}

/* Only the named thread itself can ask for its name this way. */
void take_name(struct thread *t)
{
	char comm[REC_COMM] = "";

	sys2(SYS_prctl, PR_GET_NAME, comm);
	memcpy(t->slot->comm, comm, sizeof(comm));
}

static struct thread *take_slot(int tid, bool managed)
{
	struct rec_header *header = agent.header;
	uint32_t nr = agent.nr_slots;
	uint32_t i = atomic_load(&header->slot_hint) % nr;
	struct rec_slot *slot;
	struct thread *t;

	for (uint32_t tries = 0;; tries++, i = (i + 1) % nr) {
		uint64_t free = REC_FREE;

		if (tries == nr) {
			atomic_fetch_add(&header->no_slot, 1);
			return NULL;
		}
		slot = &agent.slots[i];
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
	*t = (struct thread){ .pid = agent.pid, .tid = tid, .managed = managed };
	t->slot = slot;
	t->ring = agent.rings + (uint64_t)i * header->ring_size;

	atomic_fetch_add(&slot->epoch, 1);
	atomic_store_explicit(&slot->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->lost, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->lost_weight, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->cpu, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->wait_since, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->wait_until, 0, memory_order_relaxed);
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

/* Takes a free slot. Its first record comes from the caller or the thread. */
struct thread *agent_take(int tid, bool managed)
{
	struct thread *t;

	atomic_fetch_add(&agent.takers, 1);
	t = take_slot(tid, managed);
	atomic_fetch_sub(&agent.takers, 1);
	return t;
}

/* The thread was never started, or has nothing to tell. */
void agent_drop(struct thread *t)
{
	t->pid = 0;
	atomic_store_explicit(&t->slot->owner, REC_FREE, memory_order_release);
	atomic_store(&agent.header->slot_hint, t->slot - agent.slots);
}

static void release(struct thread *t)
{
	struct rec_slot *slot = t->slot;

	if (!t->head && !atomic_load_explicit(&slot->taken, memory_order_relaxed)) {
		agent_drop(t);
		return;
	}
	t->pid = 0;
	atomic_store_explicit(&slot->owner, REC_OWNER(agent.pid, REC_DYING), memory_order_release);
}

static void activate(struct thread *t, bool counted)
{
	int ret;

	t->slot->tid = t->tid;
	atomic_store_explicit(&t->slot->owner, REC_OWNER(agent.pid, REC_ACTIVE),
			      memory_order_release);
	if (!counted)
		atomic_fetch_add(&agent.header->threads, 1);
	ret = arm(t);
	/* Another one's thread may have ended just now: then nothing of it is missing. */
	if (ret < 0 && !sys3(SYS_tgkill, agent.pid, t->tid, 0))
		atomic_fetch_add(&agent.header->no_timer, 1);
}

static struct thread *find(int tid)
{
	uint32_t high = atomic_load(&agent.header->slot_high);

	for (uint32_t i = 0; i < high && i < agent.nr_slots; i++)
		if (agent.threads[i].pid == agent.pid && agent.threads[i].tid == tid)
			return &agent.threads[i];
	return NULL;
}

static uint32_t scans;

/*
 * The threads that said last that they end. The kernel still lists them for a
 * while, and they may still run; a scan that meets one does not count it again.
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

/* In the new thread: samples it from now on. */
void agent_begin(struct thread *t)
{
	ksigset old = block_signals();
	int tid = sys0(SYS_gettid);
	struct thread *found = NULL;

	pthread_setspecific(agent.key, t);
	lock();
	/* A scan may have met it before it came here. */
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
	old &= ~((ksigset)1 << (agent.signo - 1));
	restore_signals(old);
}

/* In the ending thread. Its signal stays blocked: a late one may be pending. */
void agent_end_thread(struct thread *t)
{
	if (agent.sandboxed) {
		/* Its timer goes with the process, its slot with the recorder. */
		return;
	}
	agent_settle(t);
	change_own_signal(SIG_BLOCK);
	agent_disarm(t);
	take_name(t);
	note_end(t->tid);
	release(t);
}

/* The process ends, and with it what its threads wait for. */
void agent_end_waits(void)
{
	uint32_t high = atomic_load(&agent.header->slot_high);
	uint64_t at = now(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < high && i < agent.nr_slots; i++)
		if (agent.threads[i].pid == agent.pid)
			atomic_store(&agent.threads[i].slot->wait_until, at);
}

/* The calling thread, or NULL if it did not register itself. */
struct thread *agent_self(void)
{
	struct thread *t = pthread_getspecific(agent.key);

	return t && t->pid == agent.pid ? t : NULL;
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
	struct thread *t = find(tid);

	if (!t) {
		t = agent_take(tid, false);
		if (!t)
			return;
		activate(t, said_its_end(tid));
	}
	t->seen = scans;
}

/* Threads that could not say that they ended. */
static void bury(void)
{
	uint32_t high = atomic_load(&agent.header->slot_high);

	for (uint32_t i = 0; i < high && i < agent.nr_slots; i++) {
		struct thread *t = &agent.threads[i];

		if (t->pid == agent.pid && !t->managed && t->seen != scans) {
			agent_disarm(t);
			release(t);
		}
	}
}

/* Finds threads that did not register. Async-signal-safe. */
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

/*
 * Room for a record of @size bytes, or NULL. A record does not wrap. Once the
 * ring is empty and a quarter of it was used, writing starts at its begin
 * again, so that a ring that is drained in time stays small in memory.
 */
void *ring_reserve(struct thread *t, uint32_t size)
{
	uint32_t ring_size = agent.header->ring_size;
	uint64_t tail = atomic_load_explicit(&t->slot->tail, memory_order_acquire);
	uint64_t used = t->head - tail;
	uint32_t offset = t->head & (ring_size - 1);
	uint32_t rest = ring_size - offset;
	struct rec_record *pad;

	if (used > ring_size)
		return NULL;
	if (rest < size || (!used && offset >= ring_size / 4 && size <= offset)) {
		if (ring_size - used < (uint64_t)rest + size)
			return NULL;
		pad = (struct rec_record *)(t->ring + offset);
		*pad = (struct rec_record){ .size = rest, .type = REC_PAD };
		t->head += rest;
		offset = 0;
	} else if (ring_size - used < size) {
		return NULL;
	}
	return t->ring + offset;
}

void ring_commit(struct thread *t, uint32_t size)
{
	t->head += size;
	atomic_store_explicit(&t->slot->head, t->head, memory_order_release);
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	/* One writer: no need for an atomic addition. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static void fill_sample(struct rec_sample *s, int type, int n, const uint8_t *marks,
			uint64_t periods, const struct shstk_info *info)
{
	uint8_t *to = (uint8_t *)&s->pcs[n];

	if (marks != to)
		memmove(to, marks, n);
	s->labels = 0;
	s->pad = 0;
	s->record.size = rec_sample_size(n, 0);
	s->record.type = type;
	s->record.flags = 0;
	s->time = now(CLOCK_MONOTONIC);
	s->weight = periods * agent.header->period;
	s->nr = n;
	s->end = info->end;
	s->source = info->source;
	s->opens = atomic_load_explicit(&agent.opens, memory_order_relaxed);
	s->late = 0;
}

/* So many bytes of labels lie behind the marks. */
static void set_labels(struct rec_sample *s, uint32_t labels)
{
	s->labels = labels;
	s->record.size = rec_sample_size(s->nr, labels);
}

/* Those of the goroutine; there is room. */
static void add_labels(struct rec_sample *s)
{
	char *to = (char *)&s->pcs[s->nr] + s->nr;

	if (agent.header->labels && !agent.sandboxed)
		set_labels(s, shstk_golabels(s->pcs, s->nr, to, REC_MAX_LABELS));
}

static void put_sample(struct thread *t, uint32_t size)
{
	t->last = t->head + 1;
	ring_commit(t, size);
}

/* Nobody empties the rings any more: it was killed. */
static bool recorder_is_gone(void)
{
	return sys2(SYS_kill, agent.header->recorder, 0) == -ESRCH;
}

/* Counts a sample; room for it, or NULL: it is lost. */
static struct rec_sample *new_sample(struct thread *t, uint64_t periods, uint32_t room)
{
	struct rec_sample *s;

	/* A thread may name itself late. */
	if (!(atomic_load_explicit(&t->slot->taken, memory_order_relaxed) % 16) && !agent.sandboxed)
		take_name(t);
	count(&t->slot->taken, 1);
	t->periods += periods;
	atomic_store_explicit(&t->slot->cpu,
			      t->start + t->first + (t->periods - 1) * agent.header->period,
			      memory_order_relaxed);
	s = ring_reserve(t, room);
	if (!s) {
		count(&t->slot->lost, 1);
		count(&t->slot->lost_weight, periods * agent.header->period);
		if (!agent.sandboxed && recorder_is_gone())
			atomic_store(&agent.header->stop, 1);
	}
	return s;
}

/*
 * A program may have taken the access from a page of its stack. Behind a filter of system
 * calls that is not asked.
 */
static uint32_t check_flag(void)
{
	return agent.sandboxed ? 0 : SHSTK_CHECK_STACK;
}

/*
 * Does software see the same frames, and outside of them others? Of those that were
 * called before shadow stacks were switched on hardware knows nothing.
 */
static bool is_older(const struct rec_sample *hardware, const uint64_t *pcs, int n,
		     const struct shstk_info *info)
{
	return hardware->end == SHSTK_END_COMPLETE && info->end == SHSTK_END_COMPLETE &&
	       n > (int)hardware->nr && !memcmp(pcs, hardware->pcs, hardware->nr * sizeof(pcs[0]));
}

/*
 * Takes the stack again, by software, and compares it with the sample. @other:
 * room for it; if it differs it is moved right behind the sample, and its size
 * returned. Marks are not compared: the hardware knows no guesses.
 */
static uint32_t check_sources(const struct rec_sample *hardware, struct rec_sample *other,
			      const void *context)
{
	uint32_t depth = agent.header->max_depth;
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = {
		.size = sizeof(opts),
		.flags = check_flag(),
		.sources = SHSTK_USE_MEMO | SHSTK_USE_WALK,
		.marks = (uint8_t *)&other->pcs[depth],
	};
	int n;

	if (hardware->source != SHSTK_SOURCE_HARDWARE) {
		atomic_fetch_add(&agent.header->unchecked, 1);
		return 0;
	}
	n = shstk_capture_context(context, other->pcs, depth, &opts, &info);
	if (n == (int)hardware->nr && info.end == hardware->end &&
	    !memcmp(other->pcs, hardware->pcs, n * sizeof(other->pcs[0]))) {
		atomic_fetch_add(&agent.header->same, 1);
		return 0;
	}
	if (is_older(hardware, other->pcs, n, &info)) {
		atomic_fetch_add(&agent.header->later, 1);
		return 0;
	}
	atomic_fetch_add(&agent.header->differ, 1);
	fill_sample(other, REC_OTHER, n < 0 ? 0 : n, opts.marks, 0, &info);
	other->time = info.end_pc;
	n = other->record.size;
	memmove((uint8_t *)hardware + hardware->record.size, other, n);
	return n;
}

static bool is_own(uint64_t pc)
{
	return pc >= (uintptr_t)__ehdr_start && pc < (uintptr_t)etext;
}

/*
 * Leaves out this object's frames: its hooks, which are where a signal comes that a call
 * did not let in. @function: of libc, where the time was spent then, or NULL. Returns the
 * number of entries; @marks goes along.
 */
static int drop_own(uint64_t *pcs, uint8_t *marks, int n, const void *function)
{
	int to = 0;

	if (n && function && is_own(pcs[0])) {
		pcs[0] = (uintptr_t)function;
		marks[0] = SHSTK_MARK_PC;
	}
	for (int i = 0; i < n; i++) {
		if (is_own(pcs[i]))
			continue;
		pcs[to] = pcs[i];
		marks[to++] = marks[i];
	}
	return to;
}

/*
 * What is waited for may outlast the recording, and no signal comes before its end. So the
 * stack is taken at its begin, into the ring, but not committed: a signal that comes late
 * gives it its weight (take_wait()), or the recorder does, if it sees @wait_since.
 */
void agent_open_wait(const void *function)
{
	uint32_t depth = agent.header->max_depth;
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = { .size = sizeof(opts), .flags = check_flag() };
	ksigset old = block_signals();
	struct thread *t = agent_self();
	struct rec_sample *s = t && t->armed ? ring_reserve(t, rec_sample_room(depth)) : NULL;
	int n;

	if (s) {
		/* Where it lies must be known: behind a pad, perhaps. */
		ring_commit(t, 0);
		opts.marks = (uint8_t *)&s->pcs[depth];
		n = shstk_capture(s->pcs, depth, &opts, &info);
		n = drop_own(s->pcs, opts.marks, n < 0 ? 0 : n, function);
		fill_sample(s, REC_SAMPLE, n, opts.marks, 0, &info);
		atomic_store_explicit(&t->open, true, memory_order_relaxed);
		atomic_store_explicit(&t->slot->wait_since, s->time, memory_order_release);
	}
	restore_signals(old | own_signal());
}

static void close_wait(struct thread *t)
{
	atomic_store_explicit(&t->open, false, memory_order_relaxed);
	atomic_store_explicit(&t->slot->wait_since, 0, memory_order_release);
}

void agent_close_wait(void)
{
	struct thread *t = agent_self();

	if (t && atomic_load_explicit(&t->open, memory_order_relaxed))
		close_wait(t);
}

/* The first signal since agent_open_wait(), at the end of what was waited for. */
static void take_wait(struct thread *t, uint64_t periods)
{
	uint32_t offset = t->head & (agent.header->ring_size - 1);
	struct rec_sample *s = (struct rec_sample *)(t->ring + offset);

	close_wait(t);
	count(&t->slot->taken, 1);
	t->periods += periods;
	s->weight = periods * agent.header->period;
	put_sample(t, s->record.size);
}

/* Number of innermost entries that are not the program's but this object's. */
static int own_frames(const uint64_t *pcs, int n)
{
	int own = 0;

	for (int i = 0; i < n; i++)
		if (is_own(pcs[i]))
			own = i + 1;
	return own;
}

static uint64_t time_in_kernel(void)
{
	struct rusage usage = { 0 };

	sys2(SYS_getrusage, RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_stime.tv_sec * 1000000000 +
	       (uint64_t)usage.ru_stime.tv_usec * 1000;
}

/*
 * How many of the periods are not of the stack that is found now. More than run out in
 * a tick are of a thread that ran between ticks, as work does that is in phase with
 * them, or time slices that the kernel's HRTICK ends; or no signal was let in. A thread
 * in a long system call is no such: it is found where it was.
 */
static uint64_t late_periods(struct thread *t, uint64_t periods)
{
	uint64_t before = t->system, late, in_kernel;
	/* An event that was silent is followed by a tick. */
	uint64_t in_time = agent.header->in_time + !!t->event;

	if (agent.wall)
		return 0;
	if (!agent.sandboxed)
		t->system = time_in_kernel();
	if (periods <= in_time)
		return 0;
	late = periods - in_time;
	in_kernel = (t->system - before) / agent.header->period;
	return late > in_kernel ? late - in_kernel : 0;
}

static void sample(struct thread *t, uint64_t periods, const void *context)
{
	uint32_t depth = agent.header->max_depth;
	uint32_t room = rec_sample_room(depth);
	bool check = agent.header->check;
	struct shstk_info info = { .size = sizeof(info) };
	struct shstk_opts opts = { .size = sizeof(opts), .flags = check_flag() };
	uint64_t late = late_periods(t, periods);
	struct rec_sample *s = new_sample(t, periods, check ? 2 * room : room);
	uint32_t other;
	int n;

	if (!s)
		return;
	opts.marks = (uint8_t *)&s->pcs[depth];
	n = shstk_capture_context(context, s->pcs, depth, &opts, &info);
	if (n < 0)
		n = 0;
	if (!check)
		n = drop_own(s->pcs, opts.marks, n, own.waits_in);
	fill_sample(s, REC_SAMPLE, n, opts.marks, periods, &info);
	s->late = late;
	add_labels(s);
	other = check ? check_sources(s, (void *)((uint8_t *)s + room), context) : 0;
	put_sample(t, s->record.size + other);
}

static void take(struct thread *t, uint64_t periods, const void *context)
{
	if (atomic_load_explicit(&t->open, memory_order_relaxed))
		take_wait(t, periods);
	else
		sample(t, periods, context);
}

/* Time since arming that no sample has, in periods. */
static uint64_t unsampled(const struct thread *t)
{
	uint64_t used = now(CLOCK_THREAD_CPUTIME_ID) - t->start;
	uint64_t ran_out = used < t->first ? 0 : 1 + (used - t->first) / agent.header->period;

	return ran_out > t->periods ? ran_out - t->periods : 0;
}

/* The thread's last sample, if its bytes are still in the ring. */
static const struct rec_sample *last_sample(const struct thread *t)
{
	uint32_t ring_size = agent.header->ring_size;

	if (!t->last || t->head - (t->last - 1) > ring_size)
		return NULL;
	return (const struct rec_sample *)(t->ring + ((t->last - 1) & (ring_size - 1)));
}

/* The thread was never sampled: its start routine, or where it is now. */
static int settle_stack(const struct thread *t, struct rec_sample *s, uint8_t *marks,
			struct shstk_info *info)
{
	uint32_t depth = agent.header->max_depth;
	struct shstk_opts opts = { .size = sizeof(opts), .flags = check_flag(), .marks = marks };
	int n = shstk_capture(s->pcs, depth, &opts, info);
	int first = !!t->fn;
	int skip, keep;

	if (n < 0)
		n = 0;
	skip = own_frames(s->pcs, n);
	keep = n - skip;
	if (t->fn) {
		/* libc's two functions below the start routine remain. */
		keep = keep < 2 ? keep : 2;
		skip = n - keep;
	}
	memmove(&s->pcs[first], &s->pcs[skip], keep * sizeof(s->pcs[0]));
	memmove(&marks[first], &marks[skip], keep);
	if (t->fn) {
		s->pcs[0] = (uintptr_t)t->fn;
		marks[0] = SHSTK_MARK_PC;
	}
	return first + keep;
}

static void settle(struct thread *t, uint64_t periods)
{
	const struct rec_sample *last = last_sample(t);
	uint64_t late = late_periods(t, periods);
	struct rec_sample *s = new_sample(t, periods, rec_sample_room(agent.header->max_depth));
	struct shstk_info info = { .size = sizeof(info) };
	uint32_t labels = 0;
	uint8_t *marks;
	int n;

	if (!s)
		return;
	marks = (uint8_t *)&s->pcs[agent.header->max_depth];
	if (last) {
		memmove(s, last, last->record.size);
		n = s->nr;
		labels = s->labels;
		marks = (uint8_t *)&s->pcs[n];
		info.end = s->end;
		info.source = s->source;
	} else {
		n = settle_stack(t, s, marks, &info);
		late = 0;
	}
	fill_sample(s, REC_SAMPLE, n, marks, periods, &info);
	s->late = late;
	set_labels(s, labels);
	put_sample(t, s->record.size);
}

/* Periods of no known stack. */
static void settle_place(struct thread *t, uint64_t periods, enum rec_place place)
{
	struct rec_sample *s = new_sample(t, periods, rec_sample_size(0, 0));
	struct shstk_info info = { .size = sizeof(info) };

	if (!s)
		return;
	fill_sample(s, REC_SAMPLE, 0, (uint8_t *)s->pcs, periods, &info);
	s->record.flags = place;
	ring_commit(t, s->record.size);
}

/*
 * Before its timer: what a thread has used since it was made. For a program that is
 * from exec, or what came before it unseen, to the agent's constructor.
 */
static void settle_early(struct thread *t, uint64_t at)
{
	uint64_t periods = at - t->start < t->first ?
				   0 :
				   1 + (at - t->start - t->first) / agent.header->period;

	if (!periods)
		return;
	if (t->program)
		settle_place(t, periods, REC_PLACE_LOADER);
	else
		settle(t, periods);
}

/*
 * The thread or the process ends: periods that ran out since the tick last
 * looked would be missing, which is all there is of a thread shorter than a
 * tick. They are charged to the stack seen last; if there is none to the
 * thread's start routine. Where a process is when it ends says nothing of
 * what it did: without a sample its time passed between ticks.
 */
void agent_settle(struct thread *t)
{
	uint64_t periods;
	ksigset old;

	if (!t->armed || agent.wall || agent.sandboxed || atomic_load(&agent.header->stop))
		return;
	old = block_signals();
	periods = unsampled(t);
	if (periods && !t->fn && !last_sample(t))
		settle_place(t, periods, REC_PLACE_TICKS);
	else if (periods)
		settle(t, periods);
	restore_signals(old);
}

static struct thread *from_timer(const siginfo_t *si)
{
	uintptr_t at = (uintptr_t)si->si_value.sival_ptr;
	uintptr_t base = (uintptr_t)agent.threads;
	struct thread *t;

	if (si->si_code != SI_TIMER || at < base || (at - base) % sizeof(*t) ||
	    (at - base) / sizeof(*t) >= agent.nr_slots)
		return NULL;
	return (struct thread *)at;
}

static bool from_recorder(const siginfo_t *si)
{
	return si->si_code == SI_QUEUE && agent.header &&
	       (uint64_t)(uintptr_t)si->si_value.sival_ptr == agent.header->cookie;
}

/* Periods that a signal stands for. The clock is not asked where calls are forbidden. */
static uint64_t ran_out(const struct thread *t, const siginfo_t *si)
{
	bool timer = si->si_code == SI_TIMER;
	uint64_t periods;

	if (!t->event)
		return (1 + (uint64_t)(unsigned int)si->si_overrun) * t->stretch;
	if (agent.sandboxed)
		return !timer;
	periods = unsampled(t);
	/* The tick is not to come before the event, but behind one that was silent. */
	return timer && periods < 2 ? 0 : periods;
}

/*
 * By wall-clock time each sample of a thread that waits wakes it up: thousands of them
 * would leave the program no CPU. So many samples a second and no more are taken of those
 * that hardly ran since their last one; each stands for more time then.
 */
#define MOST_OF_WAITING 4000

static void spread(struct thread *t, uint64_t periods)
{
	uint64_t period = agent.header->period, used = t->cpu_seen;
	uint64_t stretch =
		(uint64_t)atomic_load(&agent.armed) * 1000000000 / (period * MOST_OF_WAITING);
	struct itimerspec when;

	if (agent.sandboxed || (stretch <= 1 && t->stretch == 1))
		return;
	t->cpu_seen = now(CLOCK_THREAD_CPUTIME_ID);
	if (stretch < 1 || (t->cpu_seen - used) * 8 > periods * period)
		stretch = 1;
	if (stretch == t->stretch)
		return;
	t->stretch = stretch;
	when.it_value = when.it_interval = to_timespec(stretch * period);
	sys4(SYS_timer_settime, t->timer, 0, &when, NULL);
	if (stretch > atomic_load_explicit(&agent.header->stretch, memory_order_relaxed))
		atomic_store(&agent.header->stretch, stretch);
}

/*
 * Whoever calls handlers himself, as some runtimes do, may not align the stack as the
 * kernel does.
 */
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
static void
on_signal(int signo, siginfo_t *si, void *context)
{
	struct thread *t = from_timer(si);
	uint64_t periods;

	signals_cut(context);
	if (!t && event_sent(agent_self(), si))
		t = agent_self();
	if (t) {
		if (t->pid != agent.pid || !t->armed)
			return;
		if (atomic_load_explicit(&agent.header->stop, memory_order_relaxed)) {
			agent_disarm(t);
			return;
		}
		periods = ran_out(t, si);
		if (periods)
			take(t, periods, context);
		if (agent.wall)
			spread(t, periods);
		if (!agent.sandboxed)
			event_open(t);
		return;
	}
	if (from_recorder(si)) {
		if (!agent.sandboxed)
			scan_threads();
		return;
	}
	signals_chain(signo, si, context);
}

/* Emulators do not have all real-time signals. */
static bool timer_can_send(int signo)
{
	struct ksigevent ev = { .signo = signo,
				.notify = SIGEV_THREAD_ID,
				.tid = sys0(SYS_gettid) };
	int timer;
	long ret = sys3(SYS_timer_create, CLOCK_MONOTONIC, &ev, &timer);

	if (!ret)
		sys1(SYS_timer_delete, timer);
	/* Out of timers is not the signal's fault. */
	return ret != -EINVAL;
}

int handler_install(void)
{
	return signals_take_own(on_signal, timer_can_send);
}
