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

#define LONG_REST 60000000000 /* ns, where the kernel cannot tell when walks have ended */
#define NICE 0

int leases_begin(struct leases *l, struct reason *why)
{
	const struct walker_opts opts = { .lent = true, .nice = NICE, .cache = CACHE_FOLDER };
	int err;

	memset(l, 0, sizeof(*l));
	for (int i = 0; i < LEASES; i++)
		l->all[i].processes = l->all[i].functions = -1;
	because(why, "it needs libbpf, Linux 6.1 with BTF, and CAP_BPF");
	err = walker_possible() ? walker_create(&opts, &l->walker, why) : -EOPNOTSUPP;
	if (err)
		return err;
	l->places = places_begin(walker_loaded(l->walker));
	if (l->places)
		return 0;
	because(why, "no thread can be created");
	leases_end(l);
	return -EAGAIN;
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

/* Frees the maps that a lease had, when no walk uses them any more. */
static void free_maps(struct lease *it)
{
	if (it->processes >= 0)
		close(it->processes);
	if (it->functions >= 0)
		close(it->functions);
	it->processes = it->functions = -1;
}

static void make_free(struct lease *it)
{
	free_maps(it);
	it->rests = 0;
}

static void take_back(struct leases *l, struct lease *it)
{
	static const struct walk_lease none;
	const uint32_t slot = it - l->all;

	set_lease(l, slot, &none);
	for (uint32_t cpu = 0; cpu < BROKER_MAX_CPUS; cpu++)
		if (it->given[cpu / 64] >> cpu % 64 & 1)
			set_output(l, slot, cpu, NULL);
	places_rest(l->places, slot);
	close(it->token);
	*it = (struct lease){
		.rests = now_ns(CLOCK_MONOTONIC),
		.uid = it->uid,
		.processes = it->processes,
		.functions = it->functions,
	};
}

/* Returns whether no walk of before goes on in a place, or none has for long where the kernel cannot tell. */
static bool has_rested(const struct leases *l, uint32_t slot)
{
	const int result = places_result(l->places, slot);

	return !result ||
	       (result != -EINPROGRESS && now_ns(CLOCK_MONOTONIC) - l->all[slot].rests > LONG_REST);
}

/* Makes places free that have rested. */
static void end_rest(struct leases *l)
{
	for (int i = 0; i < LEASES; i++)
		if (l->all[i].rests && has_rested(l, i))
			make_free(&l->all[i]);
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
	for (int i = 0; l->places && i < LEASES; i++)
		if (l->all[i].number)
			take_back(l, &l->all[i]);
	places_end(l->places);
	l->places = NULL;
	for (int i = 0; l->walker && i < LEASES; i++)
		make_free(&l->all[i]);
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
static struct lease *find_place(struct leases *l, const struct subordinate *ids, uid_t uid)
{
	const uid_t user = subordinate_user(ids, uid);
	unsigned int nr_left = 0, own = 0;
	struct lease *ret = NULL;

	for (int i = 0; i < LEASES; i++) {
		struct lease *it = &l->all[i];

		if (it->number || it->rests) {
			own += subordinate_user(ids, it->uid) == user;
			continue;
		}
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
static int give(struct leases *l, const struct subordinate *ids, uid_t uid,
		const struct broker_request *r, uint32_t *ret)
{
	struct lease *it = find_place(l, ids, uid);
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
	*it = (struct lease){
		.number = lease.number,
		.uid = uid,
		.token = pair[1],
		.processes = -1,
		.functions = -1,
	};
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

/* Returns the user's lease with that number, or NULL. */
static struct lease *find_lease(struct leases *l, uid_t uid, uint32_t number)
{
	struct lease *it = &l->all[LEASE_SLOT(number)];

	return number && it->number == number && it->uid == uid ? it : NULL;
}

/* Gives the output of a CPU, once. Returns its descriptor or a negative errno. */
static int give_output(struct leases *l, uid_t uid, const struct broker_request *r)
{
	struct lease *it = find_lease(l, uid, r->lease);
	int fd, err;

	if (!it || r->cpu >= BROKER_MAX_CPUS)
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

/* ---- Interpreters ---- */

/* Makes the maps of a lease. Returns 0 or a negative errno. */
static int make_maps(const struct leases *l, struct lease *it)
{
	static const struct bpf_loaded_shape processes = { sizeof(__u32),
							   sizeof(struct lent_process),
							   LENT_PROCESSES };
	static const struct bpf_loaded_shape functions = { sizeof(struct language_identity),
							   sizeof(__u64), LENT_FUNCTIONS };
	const struct bpf_loaded *program = walker_loaded(l->walker);
	int ret;

	it->processes = bpf_loaded_create(program, "lent_processes", &processes);
	if (it->processes < 0)
		return it->processes;
	it->functions = bpf_loaded_create(program, "lent_functions", &functions);
	if (it->functions >= 0)
		return 0;
	ret = it->functions;
	free_maps(it);
	return ret;
}

/*
 * Makes the maps of a lease, if there are none yet, and has them shown to the program. Returns 0 when they
 * are, -EINPROGRESS before that, or another negative errno.
 */
static int show_maps(const struct leases *l, struct lease *it)
{
	const bool is_new = it->functions < 0;
	const int err = is_new ? make_maps(l, it) : places_result(l->places, it - l->all);

	if (err && (is_new || err == -EINPROGRESS))
		return err;
	if (!is_new && !err)
		return 0;
	/* What has failed is tried again for the next request. */
	places_show(l->places, it - l->all, it->processes, it->functions);
	return is_new ? -EINPROGRESS : err;
}

/*
 * Returns whether the frames of an interpreter as that of the process are read: those in the heap by the program
 * itself, if it has the memory for that, the others only if the kernel has taken the program for them.
 */
static bool reads_frames(const struct bpf_loaded *program, const struct lent_process *process)
{
	const __u32 reader = process->target.native ? LENT_NATIVE : LENT_HEAP;
	__u32 id;

	if (reader == LENT_HEAP && bpf_loaded_map(program, "language_walks") >= 0)
		return true;
	return !bpf_loaded_get(program, LENT_READERS, &reader, &id);
}

/* Takes note of what was told of a process. Returns 0 or a negative errno, as leases_answer(). */
static int read_process(struct leases *l, uid_t uid, const struct broker_process *r)
{
	struct lease *it = find_lease(l, uid, r->request.lease);
	const struct bpf_loaded *program = walker_loaded(l->walker);
	const bool any = r->process.number || r->process.contexts.nr;
	const struct lent_process *told = any ? &r->process : NULL;
	const __u32 pid = r->request.tid;
	int err;

	if (!it)
		return -EPERM;
	if (bpf_loaded_map(program, "lent_processes") < 0)
		return -EOPNOTSUPP;
	if (r->layout != LANGUAGE_LAYOUT)
		return -EPROTO;
	if (r->reserved || r->process.reserved || r->process.contexts.reserved)
		return -EINVAL;
	if (r->process.number && !reads_frames(program, &r->process))
		return -EOPNOTSUPP;
	err = show_maps(l, it);
	if (err)
		return err;
	err = bpf_loaded_set_in(program, it->processes, &pid, told);
	return err == -ENOENT ? 0 : err;
}

int leases_answer(struct leases *l, const struct subordinate *ids, uid_t uid,
		  const union broker_packet *packet, struct broker_reply *ret)
{
	const struct broker_request *r = &packet->request;
	int err;

	if (!l->walker)
		return -EOPNOTSUPP;
	leases_tidy(l);
	if (r->kind == BROKER_OUTPUT)
		return give_output(l, uid, r);
	if (r->kind == BROKER_LEASE)
		return give(l, ids, uid, r, &ret->lease);
	if (r->kind != BROKER_PROCESS)
		return -EINVAL;
	err = read_process(l, uid, &packet->process);
	ret->flags |= err ? 0 : BROKER_DONE;
	return err;
}
