// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * leases.c - lends walks of stacks in the kernel. See leases.h.
 *
 * When a lease ends, first its entry in the map is cleared, so that no further walk is made for it, and
 * then its outputs are taken away. A walk that had begun before may still be about to write. So the
 * place of a lease rests until all walks of that time have ended, and only then is it another user's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/walk.h"
#include "tools/bpf/load_object.h"
#include "tools/broker/leases.h"
#include "tools/perf/rings.h"
#include "tools/rules/cache.h"
#include "tools/shstk.h"

#define REST 1000000000 /* ns after which places are made free again, so that waiting is rare */
#define LONG_REST 60000000000 /* ns, where the kernel cannot tell when walks have ended */
#define NICE 0

int leases_begin(struct leases *l, struct reason *why)
{
	const struct walker_opts opts = { .lent = true, .nice = NICE, .cache = CACHE_FOLDER };

	memset(l, 0, sizeof(*l));
	because(why, "it needs libbpf, Linux 6.1 with BTF, and CAP_BPF");
	return walker_possible() ? walker_create(&opts, &l->walker, why) : -EOPNOTSUPP;
}

int leases_program(const struct leases *l)
{
	return l->walker ? walker_loaded(l->walker)->program : 0;
}

/* ---- Maps ---- */

static int set_lease(const struct leases *l, uint32_t slot, const struct walk_lease *lease)
{
	return bpf_loaded_set(walker_loaded(l->walker), "leases", &slot, lease);
}

static int set_output(const struct leases *l, uint32_t slot, uint32_t cpu, const int *event)
{
	const uint32_t at = LEASE_OUTPUT(slot, cpu);

	return bpf_loaded_set(walker_loaded(l->walker), "output", &at, event);
}

/* ---- The end of a lease ---- */

static void take_back(struct leases *l, struct lease *it)
{
	static const struct walk_lease none;
	const uint32_t slot = it - l->all;

	set_lease(l, slot, &none);
	for (uint32_t cpu = 0; cpu < BROKER_MAX_CPUS; cpu++)
		if (it->given[cpu / 64] >> cpu % 64 & 1)
			set_output(l, slot, cpu, NULL);
	close(it->token);
	*it = (struct lease){ .rests = now_ns(CLOCK_MONOTONIC), .uid = it->uid };
}

static bool any_rests(const struct leases *l)
{
	for (int i = 0; i < LEASES; i++)
		if (l->all[i].rests)
			return true;
	return false;
}

/*
 * Makes places free that rest, when no walk of before goes on: these are under RCU, for which the
 * kernel waits here. Some kernels with CPUs for one task each (nohz_full) do not offer that.
 */
static void end_rest(struct leases *l)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);
	bool ended;

	if (!any_rests(l) || now - l->rested < REST)
		return;
	l->rested = now;
	ended = !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	for (int i = 0; i < LEASES; i++)
		if (ended || now - l->all[i].rests > LONG_REST)
			l->all[i].rests = 0;
}

void leases_tidy(struct leases *l)
{
	struct pollfd p[LEASES];

	for (int i = 0; i < LEASES; i++)
		p[i] = (struct pollfd){ .fd = l->all[i].number ? l->all[i].token : -1 };
	/* The pipe of a token that nobody holds any more has no end from which one can read. */
	if (poll(p, LEASES, 0) > 0)
		for (int i = 0; i < LEASES; i++)
			if (p[i].revents & POLLERR)
				take_back(l, &l->all[i]);
	end_rest(l);
}

bool leases_any(const struct leases *l)
{
	for (int i = 0; i < LEASES; i++)
		if (l->all[i].number)
			return true;
	return false;
}

void leases_end(struct leases *l)
{
	for (int i = 0; l->walker && i < LEASES; i++)
		if (l->all[i].number)
			take_back(l, &l->all[i]);
	walker_destroy(l->walker);
	l->walker = NULL;
}

bool leases_lost(struct leases *l, pid_t pid)
{
	if (!l->walker || !walker_ended(l->walker, pid))
		return false;
	leases_end(l);
	return true;
}

/* ---- The beginning of a lease ---- */

/*
 * Returns a free place that the user may have, or NULL. Places that rest count as those of the user who
 * had them: else one who takes leases and gives them back at once would have all places rest.
 */
static struct lease *find_place(struct leases *l, uid_t uid)
{
	unsigned int nr_left = 0, own = 0;
	struct lease *ret = NULL;

	for (int i = 0; i < LEASES; i++) {
		struct lease *it = &l->all[i];

		own += (it->number || it->rests) && it->uid == uid;
		if (it->number || it->rests)
			continue;
		nr_left++;
		ret = it;
	}
	return own < (nr_left + 1) / 2 ? ret : NULL;
}

/* Returns a number for the lease in that place. It is not 0, and no other one of the last 2^26. */
static uint32_t next_number(struct leases *l, uint32_t slot)
{
	l->round++;
	if (l->round * LEASES == 0)
		l->round = 1;
	return l->round * LEASES + slot;
}

/* Gives a lease. Returns the user's end of its pipe, or a negative errno. */
static int give(struct leases *l, uid_t uid, const struct broker_request *r, uint32_t *ret)
{
	struct lease *it = find_place(l, uid);
	struct walk_lease lease = {
		.uid = uid,
		.max = r->max_stack,
		.records = r->flags & BROKER_GUESSES ? WALK_RECORDS_NO_FILE : WALK_RECORDS_NEVER,
		.both = !!(r->flags & BROKER_BOTH),
	};
	int pair[2];

	if (!it)
		return -EDQUOT;
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	lease.number = next_number(l, it - l->all);
	if (set_lease(l, it - l->all, &lease)) {
		close(pair[0]);
		close(pair[1]);
		return -ENOMEM;
	}
	/* The user's end is the one that reads, so that the user cannot fill the pipe. */
	*it = (struct lease){ .number = lease.number, .uid = uid, .token = pair[1] };
	*ret = lease.number;
	return pair[0];
}

/*
 * Opens an event that only tells what the program writes to it. Nothing else is in its records,
 * although it is a CPU's event and not a thread's.
 */
static int open_output(uint32_t cpu)
{
	struct perf_event_attr attr;
	int fd;

	perf_output_attr(&attr);
	fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Gives the output of a CPU, once. Returns its descriptor or a negative errno. */
static int give_output(struct leases *l, uid_t uid, const struct broker_request *r)
{
	struct lease *it = &l->all[LEASE_SLOT(r->lease)];
	int fd, err;

	if (!r->lease || it->number != r->lease || it->uid != uid || r->cpu >= BROKER_MAX_CPUS)
		return -EPERM;
	if (it->given[r->cpu / 64] >> r->cpu % 64 & 1)
		return -EEXIST;
	fd = open_output(r->cpu);
	if (fd < 0)
		return fd;
	err = set_output(l, it - l->all, r->cpu, &fd);
	if (err) {
		close(fd);
		return err;
	}
	it->given[r->cpu / 64] |= 1ull << r->cpu % 64;
	return fd;
}

int leases_answer(struct leases *l, uid_t uid, const struct broker_request *r, uint32_t *ret)
{
	*ret = 0;
	if (!l->walker)
		return -EOPNOTSUPP;
	leases_tidy(l);
	if (r->kind == BROKER_OUTPUT)
		return give_output(l, uid, r);
	return r->kind == BROKER_LEASE ? give(l, uid, r, ret) : -EINVAL;
}
