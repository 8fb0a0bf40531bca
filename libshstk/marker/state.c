// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * state.c - makes the markers of each thread at its first capture, and takes them back when the
 * thread ends.
 *
 * As with the states of threads (thread.c), there is no lock and no allocator. A thread gives its
 * markers back in a TLS destructor. The markers of a thread that ended without one are found by
 * its struct thread: the thread that has this state now got it from a dead thread.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "marker.h"
#include "meant.h"

__thread struct markers *markers_self __attribute__((tls_model("initial-exec")));

#if HAVE_TRAMPOLINE
#define MOST (TRAMPOLINE_RECORDS / MARKER_CHUNK) /* number of sets of trampolines */

static struct markers *all[MOST];
static unsigned int count;

static pthread_key_t key;
static bool key_valid;

/* Resets markers of which none is on the stack. @chunk stays, and so do the trampolines. */
static void reset(struct markers *m)
{
	m->status = SHSTK_MARKER_ON;
	m->frames_to_pay = -MARKER_ADVANCE;
	m->n = 0;
	m->mark[0] = (struct mark){ .record = UINT64_MAX };
	m->used = 0;
	/* This is the number of no generation, so may_place() forgets all records. */
	m->number = ~0ull;
}

/* Makes @t the owner of @m if @m is free, or was owned by @t. Returns whether @t owns it now. */
static bool take(struct markers *m, struct thread *t)
{
	struct thread *nobody = NULL;

	return load_relaxed(&m->owner) == t ||
	       (!load_relaxed(&m->owner) &&
		__atomic_compare_exchange_n(&m->owner, &nobody, t, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED));
}

/* Takes markers whose thread has ended. Returns NULL if there are none. */
static struct markers *reuse(struct thread *t)
{
	unsigned int i, n = min(load_relaxed(&count), (unsigned int)MOST);

	for (i = 0; i < n; i++) {
		struct markers *m = load_acquire(&all[i]);

		if (m && take(m, t))
			return m;
	}
	return NULL;
}

static struct markers *map_new(struct thread *t)
{
	struct markers *m;
	unsigned int i;

	if (load_relaxed(&count) >= MOST)
		return NULL;
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	i = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	if (i >= MOST) {
		munmap(m, sizeof(*m));
		return NULL;
	}
	m->owner = t;
	store_release(&all[i], m);
	return m;
}

struct markers *markers_get(struct thread *t)
{
	struct markers *m = markers_of(t);
	int saved = errno;

	if (likely(m))
		return m;
	m = reuse(t);
	if (!m)
		m = map_new(t);
	errno = saved;
	if (!m)
		return NULL;
	reset(m);
	store_release(&meant_by, trampoline_meant);
	markers_self = m;
	/* glibc sets keys below 32 without allocating memory; musl sets all keys so. */
	if (key_valid && key < 32)
		pthread_setspecific(key, m);
	return m;
}

/*
 * Gives the markers of an ending thread back; it is the destructor of @key. If the library has
 * already taken the thread's state away, another thread may have that state and these markers: then
 * they are left alone.
 */
static void release(void *arg)
{
	struct markers *m = arg;

	if (markers_of(thread_self) == m) {
		shstk_marker_withdraw();
		store_release(&m->owner, NULL);
	}
	markers_self = NULL;
}

/* Makes the key before thread.c makes its own, because destructors run in the order of keys. */
static __attribute__((constructor(1000))) void state_init(void)
{
	key_valid = !pthread_key_create(&key, release);
}

/* Deletes the key when this object is unloaded, because then no thread may call release(). */
static __attribute__((destructor)) void state_exit(void)
{
	if (key_valid)
		pthread_key_delete(key);
	key_valid = false;
}
#endif
