// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * thread.c - finds, reuses and releases thread states; see thread.h.
 *
 * It uses no lock and no allocator, because the first capture of a thread may be in a
 * signal handler. A thread gives its state back in a TLS destructor, where one can be
 * set without allocating. States of other dead threads are found by tgkill(2) when a
 * new state is needed.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread.h"
#include "vma.h"

__thread struct thread *thread_self __attribute__((tls_model("initial-exec")));

static struct thread *all; /* the list of all states; it only grows */
static struct thread *probe; /* behind this state the next search for dead owners begins */
static struct thread *vacant; /* at this state the next search for free states begins */
static unsigned int nvacant; /* how many free states there may be */
static unsigned int count; /* number of all states */

static pthread_key_t key;
static bool key_valid;

/* How many states one thread checks for a dead owner. */
#define PROBES 4

static size_t state_bytes(void)
{
	return ALIGN_UP(sizeof(struct thread), 64) + ALIGN_UP(sizeof(struct places), 64) +
	       memo_bytes();
}

static struct thread *map_state(void)
{
	struct thread *t;
	uint8_t *p;

	p = mmap(NULL, state_bytes(), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, state_bytes(), MADV_NOHUGEPAGE);
	t = (struct thread *)p;
	p += ALIGN_UP(sizeof(*t), 64);
	t->places = (struct places *)p;
	memo_init(&t->memo, p + ALIGN_UP(sizeof(*t->places), 64));
	return t;
}

/* Makes thread @tid the owner of @t. Returns false if @old_tid does not own it any more. */
static bool take(struct thread *t, int old_tid, int tid)
{
	return __atomic_compare_exchange_n(&t->tid, &old_tid, tid, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Takes a free state from the part of the list from @from up to @to. */
static struct thread *take_vacant(struct thread *from, const struct thread *to, int tid)
{
	struct thread *t;

	for (t = from; t && t != to; t = t->next) {
		if (!load_relaxed(&t->tid) && take(t, 0, tid)) {
			__atomic_fetch_sub(&nvacant, 1, __ATOMIC_RELAXED);
			store_release(&vacant, t->next);
			return t;
		}
	}
	return NULL;
}

/* Returns a state that nobody owns or whose owner is dead, or NULL if it finds none. */
static struct thread *reuse(int pid, int tid)
{
	struct thread *t = NULL, *from;
	int i;

	if (load_relaxed(&nvacant)) {
		from = load_acquire(&vacant);
		t = take_vacant(from, NULL, tid);
		if (!t)
			t = take_vacant(load_acquire(&all), from, tid);
	}
	if (t)
		return t;
	t = load_acquire(&probe);
	for (i = 0; i < PROBES; i++) {
		int owner;

		t = t ? t->next : NULL;
		if (!t)
			t = load_acquire(&all);
		if (!t)
			break;
		owner = load_relaxed(&t->tid);
		/* An owner with this thread's ID is dead: it had the ID before. */
		if (owner && load_relaxed(&t->pid) == pid &&
		    (owner == tid || (syscall(SYS_tgkill, pid, owner, 0) && errno == ESRCH)) &&
		    take(t, owner, tid))
			break;
		if (i == PROBES - 1) {
			store_release(&probe, t);
			t = NULL;
		}
	}
	return t;
}

static void reset(struct thread *t)
{
	t->native_known = false;
	t->shadow = (struct range){ 0, 0 };
	t->shadow_end = 0;
	memo_clear(&t->memo);
	places_clear(t->places);
	store_relaxed(&t->captures, 0);
	store_relaxed(&t->walks, 0);
	store_relaxed(&t->depth, 0);
	store_relaxed(&t->busy_sp, 0);
	store_relaxed(&t->scratch.n, 0);
}

struct thread *thread_get_slow(void)
{
	struct thread *t, *head;
	uint64_t blocked = ~0ull, old;
	int saved = errno, tid, pid;

	if (vma_sealed())
		return NULL;
	tid = syscall(SYS_gettid);
	pid = getpid();
	/*
	 * Signals are blocked, because no handler may find this thread half registered. It is
	 * done by a system call, because the program may replace the C library's function.
	 */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, &old, sizeof(old));
	t = thread_self;
	if (t)
		goto out;
	t = reuse(pid, tid);
	if (!t) {
		t = map_state();
		if (!t)
			goto out;
		t->tid = tid;
		/* A thread that finds this state may also read the states behind it. */
		head = load_acquire(&all);
		do {
			t->next = head;
		} while (!__atomic_compare_exchange_n(&all, &head, t, true, __ATOMIC_ACQ_REL,
						      __ATOMIC_ACQUIRE));
		__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	}
	store_relaxed(&t->pid, pid);
	reset(t);
	thread_self = t;
	/* glibc sets keys below 32 without allocating memory; musl sets all keys so. */
	if (key_valid && key < 32)
		pthread_setspecific(key, t);
out:
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	errno = saved;
	return t;
}

/* Gives the state of an ending thread back; it is the destructor of @key. */
static void release(void *arg)
{
	struct thread *t = arg;

	if (thread_self != t)
		return;
	thread_self = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store_release(&t->tid, 0);
	store_release(&vacant, t);
	__atomic_fetch_add(&nvacant, 1, __ATOMIC_RELAXED);
}

/*
 * Runs in the child of a fork, where only the forking thread lives on, as the first thread of its
 * process. So the IDs of thread and process are equal, and nothing needs their value: both become
 * -1. They are not asked for, because a seccomp filter may end the process for that.
 */
static void after_fork(void)
{
	unsigned int n = 0;
	struct thread *t;

	for (t = all; t; t = t->next) {
		if (t != thread_self) {
			store_relaxed(&t->depth, 0);
			store_relaxed(&t->tid, 0);
			n++;
		} else {
			store_relaxed(&t->tid, -1);
			store_relaxed(&t->pid, -1);
		}
	}
	store_relaxed(&vacant, all);
	store_relaxed(&nvacant, n);
}

bool thread_any_busy(void)
{
	struct thread *t;

	for (t = load_acquire(&all); t; t = t->next) {
		if (__atomic_load_n(&t->depth, __ATOMIC_SEQ_CST) > (t == thread_self))
			return true;
	}
	return false;
}

void thread_stats(struct shstk_stats *stats)
{
	struct thread *t;

	stats->threads = load_relaxed(&count);
	stats->thread_bytes = state_bytes();
	for (t = load_acquire(&all); t; t = t->next) {
		stats->captures += load_relaxed(&t->captures);
		stats->memo_hits += load_relaxed(&t->captures) - load_relaxed(&t->walks);
	}
}

static __attribute__((constructor)) void thread_init(void)
{
	key_valid = !pthread_key_create(&key, release);
	pthread_atfork(NULL, NULL, after_fork);
}

/* Deletes the key when the library is unloaded, because then no thread may call release(). */
static __attribute__((destructor)) void thread_exit(void)
{
	if (key_valid)
		pthread_key_delete(key);
	key_valid = false;
}
