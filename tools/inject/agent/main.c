// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * main.c - the agent joins a process, follows it through fork, and leaves it.
 *
 * `shstk record` names its memory in the environment (ring.h). Where the agent cannot get that
 * memory (in another container, with dropped privileges, or if the recorder is gone) it stays out
 * of the way, and the program runs as if the agent were not there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent.h"
#include "../common/join.h"
#include "../common/limits.h"
#include "../common/rawcall.h"
#include "../common/sandbox_hook.h"
#include "seal.h"
#include "shstk.h"

struct agent agent;

static bool plausible(const struct rec_header *h, uint64_t cookie, off_t size)
{
	return h->magic == REC_MAGIC && h->version == REC_VERSION && h->cookie == cookie &&
	       h->nr_slots && h->nr_slots <= REC_MAX_SLOTS && h->max_depth >= REC_MIN_DEPTH &&
	       h->max_depth <= REC_MAX_DEPTH && h->ring_size >= rec_min_ring(h->max_depth) &&
	       h->deepest <= rec_deepest(h->ring_size) && !(h->ring_size & (h->ring_size - 1)) &&
	       h->period && h->slots_offset >= sizeof(*h) && h->rings_offset <= (uint64_t)size &&
	       h->slots_offset <= h->rings_offset &&
	       h->nr_slots * sizeof(struct rec_slot) <= h->rings_offset - h->slots_offset &&
	       (uint64_t)h->nr_slots * h->ring_size <= (uint64_t)size - h->rings_offset;
}

/*
 * Returns how many of @nr rings of @size bytes may be mapped: together they take at most an eighth
 * of the limit of the address space.
 */
static uint32_t allowed_rings(uint32_t size, uint32_t nr)
{
	uint64_t most = soft_limit(RLIMIT_AS) / 8 / size;

	return most < nr ? (most ? most : 1) : nr;
}

/*
 * Waits until agent_take() in other threads knows which rings are closed. Returns false if that
 * took too long.
 */
static bool wait_for_takers(void)
{
	for (int i = 0; i < 1000; i++) {
		if (!atomic_load(&agent.takers))
			return true;
		sys0(SYS_sched_yield);
	}
	return false;
}

enum { THERE, CLOSED, GONE };

/*
 * The state of each ring: it may be taken (THERE), it may not be taken (CLOSED), or it is not
 * mapped (GONE).
 */
static _Atomic uint8_t rings[REC_MAX_SLOTS];
static _Atomic bool keeping; /* a thread is in keep_rings() */

bool agent_has_ring(uint32_t i)
{
	return atomic_load(&rings[i]) == THERE;
}

/* Returns how many rings lie on one page, as pages may be larger than a ring. */
static uint32_t rings_of_page(void)
{
	uint32_t size = agent.ring_size;

	return size < 65536 ? 65536 / size : 1;
}

/*
 * Unmaps the @nr rings of a page, from @first on, if all of them are closed and no thread of this
 * process has one. Otherwise they are kept.
 */
static void unmap_page(uint32_t first, uint32_t nr)
{
	uint64_t size = agent.ring_size;
	bool closed = true;

	for (uint32_t i = first; i < first + nr; i++)
		closed &= atomic_load(&rings[i]) == CLOSED && agent.threads[i].pid != agent.pid;
	if (closed)
		sys2(SYS_munmap, agent.rings + first * size, nr * size);
	for (uint32_t i = first; i < first + nr; i++)
		if (atomic_load(&rings[i]) == CLOSED)
			atomic_store(&rings[i], closed ? GONE : THERE);
}

/*
 * Unmaps the rings that no thread of this process has, except for @nr rings from @first on. The
 * program limits its address space, or locks all its memory. The rings are not mapped again: what
 * is unmapped may be the program's from then on. Only one thread does this at a time; a second one
 * returns at once and leaves it to the first.
 */
static void keep_rings(uint32_t first, uint32_t nr)
{
	uint32_t step = rings_of_page(), all = agent.nr_slots / step * step;
	bool known;

	if (atomic_exchange(&keeping, true))
		return;
	for (uint32_t i = 0; i < all; i++)
		if (i - first >= nr && agent_has_ring(i))
			atomic_store(&rings[i], CLOSED);
	known = wait_for_takers();
	for (uint32_t i = 0; i < all; i += step)
		if (known)
			unmap_page(i, step);
	for (uint32_t i = 0; i < all; i++)
		if (atomic_load(&rings[i]) == CLOSED)
			atomic_store(&rings[i], THERE);
	atomic_store(&keeping, false);
}

/*
 * Ends keep_rings() in the child of a fork that another thread made meanwhile. Nobody knows which of the
 * rings that were closed are still mapped, and the program may have other memory in place of some: the
 * child uses none of them.
 */
static void keep_rings_fork_child(void)
{
	for (uint32_t i = 0; i < agent.nr_slots; i++)
		if (atomic_load(&rings[i]) == CLOSED)
			atomic_store(&rings[i], GONE);
	atomic_store(&keeping, false);
}

void agent_obey_limit(void)
{
	uint32_t nr = allowed_rings(agent.ring_size, agent.nr_slots);

	if (nr < agent.nr_slots)
		keep_rings(0, nr);
}

/*
 * So many rings stay mapped when the program locks its memory: locked rings take up all their size.
 */
#define LOCKED_RINGS 32

void agent_before_lock(void)
{
	struct agent_thread *t = agent_self();

	keep_rings(t ? t->slot - agent.slots : 0, LOCKED_RINGS);
}

static void *map_bytes(int fd, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Returns the bytes of the header @h and @nr rings. */
static uint64_t bytes_of(const struct rec_header *h, uint32_t nr)
{
	return h->rings_offset + (uint64_t)nr * h->ring_size;
}

/*
 * Maps the header with as many rings as the limit of the address space allows, and stores their
 * number in *@nr. Returns NULL if not even one ring can be mapped.
 */
static struct rec_header *map_allowed(int fd, const struct rec_header *h, uint32_t *nr)
{
	for (*nr = allowed_rings(h->ring_size, h->nr_slots); *nr; *nr /= 2) {
		void *p = map_bytes(fd, bytes_of(h, *nr));

		if (p)
			return p;
	}
	return NULL;
}

/*
 * Reads the header once: any program that is recorded may change it from then on. Returns false if
 * it is not a plausible header.
 */
static bool read_header(int fd, uint64_t cookie, struct rec_header *h)
{
	off_t size = sys3(SYS_lseek, fd, 0, SEEK_END);

	return size >= (off_t)sizeof(*h) &&
	       sys4(SYS_pread64, fd, h, offsetof(struct rec_header, stop), 0) ==
		       (long)offsetof(struct rec_header, stop) &&
	       plausible(h, cookie, size);
}

static struct agent_thread *map_threads(uint32_t nr)
{
	struct agent_thread *threads = mmap(NULL, nr * sizeof(*threads), PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (threads == MAP_FAILED)
		return NULL;
	/*
	 * In a child that the agent does not follow, the kernel clears this memory, so that the
	 * child has none of these threads: the rings are its parent's.
	 */
	madvise(threads, nr * sizeof(*threads), MADV_WIPEONFORK);
	return threads;
}

/* Returns the ns between two of the kernel's ticks, or 0. */
static uint64_t tick_length(void)
{
	struct timespec tick = { 0 };

	sys2(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, &tick);
	return to_ns(tick);
}

static int map_memory(int fd, uint64_t cookie)
{
	static struct rec_header geometry;
	struct rec_header *h;
	uint32_t nr;

	if (!read_header(fd, cookie, &geometry))
		return -EINVAL;
	h = map_allowed(fd, &geometry, &nr);
	if (!h)
		return -ENOMEM;
	madvise(h, bytes_of(&geometry, nr), MADV_DONTDUMP);
	agent.threads = map_threads(nr);
	if (!agent.threads) {
		munmap(h, bytes_of(&geometry, nr));
		return -ENOMEM;
	}
	agent.nr_slots = nr;
	agent.ring_size = geometry.ring_size;
	agent.max_depth = geometry.max_depth;
	agent.deepest = geometry.deepest;
	agent.period = geometry.period;
	agent.tick = tick_length();
	agent.wall = geometry.clock == REC_CLOCK_WALL;
	agent.slots = (void *)((uint8_t *)h + geometry.slots_offset);
	agent.rings = (uint8_t *)h + geometry.rings_offset;
	agent.header = h;
	return 0;
}

/*
 * Marks the slots of this process's last image as dying: exec ended all its other threads, and
 * nobody told the recorder. Returns how much of this thread's CPU time is in samples of that image,
 * in ns.
 */
static uint64_t bury_last_image(void)
{
	uint64_t accounted = 0;
	uint32_t high = atomic_load(&agent.header->slot_high);

	for (uint32_t i = 0; i < high && i < agent.nr_slots; i++) {
		_Atomic uint64_t *owner = &agent.slots[i].owner;
		uint64_t active = REC_OWNER(agent.pid, REC_ACTIVE);
		uint64_t taken = REC_OWNER(agent.pid, REC_TAKEN);
		uint64_t is = atomic_load(owner);

		/* Most slots are of other processes: they are not written to. */
		if (is != active && is != taken)
			continue;
		if (is == active && agent.slots[i].tid == (uint32_t)agent.pid)
			accounted = atomic_load(&agent.slots[i].cpu);
		if (!atomic_compare_exchange_strong(owner, &active,
						    REC_OWNER(agent.pid, REC_DYING)))
			atomic_compare_exchange_strong(owner, &taken, REC_FREE);
	}
	return accounted;
}

/*
 * Makes the calling thread the first one of a new instance, which was forked from instance @parent
 * (0: none). Returns the thread, or NULL if there is no slot.
 */
static struct agent_thread *start_instance(uint32_t parent)
{
	struct rec_start *start;
	struct agent_thread *t;

	agent.parent = parent;
	agent.parent_slot = agent.start_slot;
	agent.instance = atomic_fetch_add(&agent.header->instances, 1) + 1;
	t = agent_take(sys0(SYS_gettid), true);
	if (!t)
		return NULL;
	agent.start_slot = t->slot->start_slot = t->slot - agent.slots;
	take_name(t);
	start = ring_reserve(t, sizeof(*start));
	*start = (struct rec_start){
		.record = { .size = sizeof(*start), .type = REC_START },
		.pid = agent.pid,
		.parent = parent,
		.parent_pid = sys0(SYS_getppid),
		.time = now(CLOCK_MONOTONIC),
	};
	ring_commit(t, sizeof(*start));
	return t;
}

/*
 * Returns whether the system calls may be made that are made for a program that is executed, which gets no more than
 * its state.
 */
static bool may_hand_on(void)
{
	return env_may_call() || (agent.filtered && agent.permits_hand_on && !local.child_filtered);
}

/* Returns whether the program has the agent's signal blocked. */
static bool has_it_blocked(void)
{
	return local.blocked || signals_masked();
}

/* Returns whether the agent's signal is blocked, where handlers may not have unblocked it (signals.c). */
static bool is_blocked_in_sandbox(void)
{
	ksigset mask = 0;

	return in_sandbox() && !sys4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask)) &&
	       mask & agent_sigset();
}

/*
 * Leaves the child of a fork alone from now on. It has no timers, so nobody holds the signal back there, and what
 * it ignores is ignored by the kernel: no hook tells what it hands on.
 */
static void stay_out_of_child(void)
{
	agent.on = false;
	if (!may_hand_on())
		return;
	signals_hand_on(true);
	if ((is_held() || is_blocked_in_sandbox()) && !has_it_blocked())
		change_agent_signal(SIG_UNBLOCK);
}

/* Attaches the agent to the child of a fork, in its only thread. */
void agent_fork_child(void)
{
	uint32_t parent = agent.instance;
	struct agent_thread *t;

	if (in_sandbox()) {
		atomic_fetch_add(&agent.header->sandboxed, 1);
		stay_out_of_child();
		return;
	}
	atomic_store(&agent.lock, 0);
	atomic_store(&agent.takers, 0);
	atomic_store(&agent.armed, 0);
	atomic_store(&agent.handlers, 0);
	keep_rings_fork_child();
	ended_fork_child();
	frames_fork_child();
	signals_fork_child();
	held_fork_child();
	agent.pid = sys0(SYS_getpid);
	local.has_knock = false; /* timers stay with the parent */
	if (atomic_load(&agent.header->stop) || foreign_pid(agent.pid)) {
		atomic_fetch_add(&agent.header->foreign, 1);
		stay_out_of_child();
		return;
	}
	t = start_instance(parent);
	if (t)
		agent_begin(t);
	else
		pthread_setspecific(agent.key, NULL);
}

/*
 * Leaves the process, in exit() or _exit(). This is the last chance to report what was loaded late.
 * From here on libc and the kernel end the process, which is not the program's time.
 */
void agent_leave(void)
{
	struct agent_thread *t = agent_self();

	maps_send_if_changed();
	if (agent.wall)
		agent_end_waits();
	if (t) {
		agent_settle(t, true);
		children_end(t);
		change_agent_signal(SIG_BLOCK);
		agent_disarm(t);
	}
}

/* Counts a program whose agent will stay out because it starts behind a filter (common/join.h). */
static void count_sandboxed_program(void)
{
	if (agent.on && (agent.filtered || local.child_filtered))
		atomic_fetch_add(&agent.header->sandboxed, 1);
}

bool env_may_call(void)
{
	if (agent.filtered || local.child_filtered)
		return false;
	return !agent.sandboxed || env_unfiltered();
}

/*
 * What was done for a program that is executed, as a sum, which env_call_returned() undoes: signals_hand_on() was
 * called, the agent's signal was blocked, and was admitted then, and the thread's timer was stopped.
 */
enum { HANDED_ON = 1, BLOCKED = 2, ADMITTED = 4, STOPPED = 8 };

/*
 * Accounts for the time of @t until now and ends what may send it the agent's signal, but for its timer: none may
 * be pending in the next program.
 */
static void end_signals(struct agent_thread *t)
{
	agent_settle(t, true);
	event_end(t);
	wait_forget_knock();
}

/*
 * Gives the agent's signal the state that the next program is to have it in: ignored and blocked as it is for this
 * program. Where it is held back (hold_back.c), this program does not have it blocked, and so it is admitted for a
 * while, in which none can come.
 *
 * @t is the thread whose timer stands still meanwhile. It is NULL in a child of vfork(), which has no timers and
 * no pending signals, and in the parent of a child that is created, unless the signal is to be admitted there.
 */
static int hand_on_signals(struct agent_thread *t)
{
	bool blocked = has_it_blocked();
	int done = HANDED_ON;

	signals_hand_on(true);
	if (!blocked && !is_held() && !is_blocked_in_sandbox() && !(t && t->event && in_sandbox()))
		return done;
	change_agent_signal(SIG_BLOCK);
	done |= BLOCKED;
	if (t && t->armed) {
		held_stop(t);
		done |= STOPPED;
	}
	if (blocked)
		return done;
	change_agent_signal(SIG_UNBLOCK);
	return done | ADMITTED;
}

/* Returns the calling thread, or NULL in a child of vfork(), where it is the parent's. */
static struct agent_thread *own_thread(void)
{
	return agent.pid == (int)sys0(SYS_getpid) ? agent_self() : NULL;
}

/*
 * Returns whether another hook is among the callers of the one that calls this. That is so in a handler of the
 * program that runs during the call of the other one.
 */
static bool is_during_another(void)
{
	uint64_t pcs[NEAR_CALLERS];
	int n = shstk_capture(pcs, NEAR_CALLERS, NULL, NULL), i = 0;

	while (i < n && is_agent_code(pcs[i]))
		i++;
	while (i < n && !is_agent_code(pcs[i]))
		i++;
	return i < n;
}

void mend_handed_on(void)
{
	struct agent_thread *t;

	if (!agent.on || !may_hand_on() || agent.pid != (int)sys0(SYS_getpid) ||
	    is_during_another())
		return;
	while (local.hand_on_depth)
		signals_hand_on(false);
	change_agent_signal(SIG_BLOCK);
	t = agent_self();
	if (t && t->armed && t->pauses) {
		t->pauses = 1;
		settle_stopped(t, agent_go_on(t));
	}
	admit_agent_signal();
}

/*
 * Tells the recorder the path of the next program. What was used until now is not its time. In a sandbox no more is
 * done than is needed for the next program, and nothing behind a filter of system calls that does not permit that.
 */
int env_before_exec(const char *path)
{
	struct agent_thread *t;

	count_sandboxed_program();
	if (!agent.on || !may_hand_on()) {
		local.child_filtered = false;
		return 0;
	}
	if (unlikely(local.hand_on_depth))
		mend_handed_on();
	if (!in_sandbox())
		children_exec(sys0(SYS_getpid), false, path);
	t = own_thread();
	if (t && !in_sandbox())
		end_signals(t);
	return hand_on_signals(t);
}

int env_before_spawn(void)
{
	struct agent_thread *t;

	if (!agent.on || !may_hand_on())
		return 0;
	if (unlikely(local.hand_on_depth))
		mend_handed_on();
	t = is_held() && !has_it_blocked() ? own_thread() : NULL;
	if (t && !in_sandbox())
		end_signals(t);
	return hand_on_signals(t);
}

void env_call_returned(int done)
{
	struct agent_thread *t;
	uint64_t periods;

	if (!(done & HANDED_ON) || !agent.on || !may_hand_on())
		return;
	signals_hand_on(false);
	if (!(done & BLOCKED))
		return;
	change_agent_signal(SIG_BLOCK);
	t = own_thread();
	periods = done & STOPPED && t && t->armed ? agent_go_on(t) : 0;
	if (done & ADMITTED)
		settle_stopped(t, periods);
	admit_agent_signal();
}

void env_after_spawn(int pid, const char *path)
{
	count_sandboxed_program();
	if (agent.on && !in_sandbox())
		children_exec(pid, true, path);
}

static void on_thread_end(void *arg)
{
	struct agent_thread *t = arg;

	if (t->pid != agent.pid)
		return;
	/* It may have been cancelled in system(). */
	for (int i = local.hand_on_depth; i > 0 && may_hand_on(); i--)
		signals_hand_on(false);
	/* This destructor runs as the last one, so that the work of the others is sampled too. */
	if (++t->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(agent.key, t);
		return;
	}
	agent_end_thread(t);
}

__attribute__((constructor)) static void agent_start(void)
{
	const char *env = getenv(REC_ENV);
	struct agent_thread *t;
	uint64_t cookie, accounted;
	int fd, tracer;

	hooks_resolve();
	limits_resolve();
	signals_resolve();
	wait_resolve();
	held_resolve();
	relatives_resolve();
	rawcall_resolve();
	env_resolve();
	sandbox_resolve();
	children_resolve();
	if (!env)
		return;
	context_find();
	frames_find();
	fd = open_memory(env, &cookie, &tracer);
	if (fd < 0) {
		if (fd == -EPERM)
			shstk_seal();
		return;
	}
	agent.pid = sys0(SYS_getpid);
	if (tracer || foreign_pid(agent.pid) || map_memory(fd, cookie)) {
		sys1(SYS_close, fd);
		return;
	}
	sys1(SYS_close, fd);
	if (atomic_load(&agent.header->stop))
		return;
	accounted = bury_last_image();
	if (pthread_key_create(&agent.key, on_thread_end) || handler_install() ||
	    pthread_atfork(NULL, NULL, agent_fork_child))
		return;
	t = start_instance(0);
	if (!t)
		return;
	t->program = true;
	t->start = accounted;
	local.stack_end = getauxval(AT_RANDOM);
	env_remember(env);
	agent.tsc_faults = sandbox_tsc_faults();
	local.signo = agent.signo;
	agent.on = true;
	signals_adopt();
	maps_send(t);
	agent_begin(t);
	if (atomic_load(&early_threads))
		scan_threads();
}

__attribute__((destructor)) static void agent_end(void)
{
	if (agent.on && !in_sandbox() && agent.pid == (int)sys0(SYS_getpid))
		agent_leave();
}
