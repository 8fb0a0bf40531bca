// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * places.c - does what waits for walks in the kernel, in a thread of its own. See places.h.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/lend.h"
#include "tools/broker/places.h"

#define NAME "shstk places" /* of the thread */

enum wanted { WANT_NOTHING, WANT_SHOW, WANT_REST };

/**
 * struct place - what is asked for a place
 * @wanted: what is to be done.
 * @shown: the program may have its maps.
 * @result: see places_result().
 * @processes: map to be shown as the one of its processes.
 * @functions: map to be shown as the one of their functions.
 */
struct place {
	enum wanted wanted;
	bool shown;
	int result;
	int processes, functions;
};

/**
 * struct places - the thread and what it is asked for
 * @program: has the maps.
 * @lock: guards @ends and @all. Nobody waits for the kernel who holds it.
 * @changed: @ends or @all has changed.
 * @ends: the thread is to end.
 * @all: the places.
 * @fd: eventfd(2) that counts results.
 * @thread: the thread.
 */
struct places {
	const struct bpf_loaded *program;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ends;
	struct place all[LEASES];
	int fd;
	pthread_t thread;
};

/* ---- What waits ---- */

static int set_map(const struct places *p, const char *array, uint32_t slot, const int *map)
{
	return bpf_loaded_set(p->program, array, &slot, map);
}

static int show(const struct places *p, uint32_t slot, const struct place *it)
{
	const int err = set_map(p, "lent_processes", slot, &it->processes);

	return err ? err : set_map(p, "lent_functions", slot, &it->functions);
}

static void hide(const struct places *p, uint32_t slot)
{
	set_map(p, "lent_processes", slot, NULL);
	set_map(p, "lent_functions", slot, NULL);
}

/*
 * Waits until all walks of before have ended: they are under RCU. Some kernels with CPUs for one task each
 * (nohz_full) do not offer that.
 */
static int await_walks(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) ? -errno : 0;
}

/* ---- The thread ---- */

static void note_result(struct places *p, struct place *it, int result)
{
	it->wanted = WANT_NOTHING;
	it->result = result;
	eventfd_write(p->fd, 1);
}

/* Shows the maps of a place for which that is wanted. Returns whether there was one. */
static bool show_one(struct places *p)
{
	for (uint32_t slot = 0; slot < LEASES; slot++) {
		struct place *it = &p->all[slot];
		const struct place asked = *it;
		int err;

		if (asked.wanted != WANT_SHOW)
			continue;
		it->shown = true;
		pthread_mutex_unlock(&p->lock);
		err = show(p, slot, &asked);
		pthread_mutex_lock(&p->lock);
		if (it->wanted == WANT_SHOW)
			note_result(p, it, err);
		return true;
	}
	return false;
}

/* Hides the maps of a place that is to rest. Returns whether there was one. */
static bool hide_one(struct places *p)
{
	for (uint32_t slot = 0; slot < LEASES; slot++) {
		struct place *it = &p->all[slot];

		if (it->wanted != WANT_REST || !it->shown)
			continue;
		pthread_mutex_unlock(&p->lock);
		hide(p, slot);
		pthread_mutex_lock(&p->lock);
		it->shown = false;
		return true;
	}
	return false;
}

/* Waits for the walks of all places that are to rest, whose maps are hidden. Returns whether there were any. */
static bool rest_all(struct places *p)
{
	bool rests[LEASES], any = false;
	int err;

	for (int i = 0; i < LEASES; i++)
		any |= rests[i] = p->all[i].wanted == WANT_REST;
	if (!any)
		return false;
	pthread_mutex_unlock(&p->lock);
	err = await_walks();
	pthread_mutex_lock(&p->lock);
	for (int i = 0; i < LEASES; i++)
		if (rests[i])
			note_result(p, &p->all[i], err);
	return true;
}

static void *work(void *arg)
{
	struct places *p = arg;

	prctl(PR_SET_NAME, NAME);
	pthread_mutex_lock(&p->lock);
	while (!p->ends)
		if (!show_one(p) && !hide_one(p) && !rest_all(p))
			pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Begins the thread, which gets no signals. Returns whether it could. */
static bool begin_thread(struct places *p)
{
	sigset_t all, before;
	bool ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = !pthread_create(&p->thread, NULL, work, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

/* ---- Who asks ---- */

struct places *places_begin(const struct bpf_loaded *program)
{
	struct places *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->program = program;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->fd >= 0 && begin_thread(p))
		return p;
	if (p->fd >= 0)
		close(p->fd);
	free(p);
	return NULL;
}

void places_end(struct places *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ends = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	close(p->fd);
	free(p);
}

/* Has something done for a place, as @asked says. */
static void ask(struct places *p, uint32_t slot, const struct place *asked)
{
	struct place *it = &p->all[slot];

	pthread_mutex_lock(&p->lock);
	it->wanted = asked->wanted;
	it->result = -EINPROGRESS;
	it->processes = asked->processes;
	it->functions = asked->functions;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

void places_show(struct places *p, uint32_t slot, int processes, int functions)
{
	ask(p, slot,
	    &(struct place){ .wanted = WANT_SHOW, .processes = processes, .functions = functions });
}

void places_rest(struct places *p, uint32_t slot)
{
	ask(p, slot, &(struct place){ .wanted = WANT_REST, .processes = -1, .functions = -1 });
}

int places_result(struct places *p, uint32_t slot)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = p->all[slot].result;
	pthread_mutex_unlock(&p->lock);
	return ret;
}

int places_fd(const struct places *p)
{
	return p ? p->fd : -1;
}

void places_heard(const struct places *p)
{
	eventfd_t count;

	eventfd_read(p->fd, &count);
}
