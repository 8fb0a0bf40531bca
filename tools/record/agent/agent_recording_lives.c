// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * agent_recording_lives.c - tells the profile when processes began and ended, by what their agents
 * say of it (tools/inject/agent/ring.h) and by which processes are gone.
 *
 * The rings are emptied one after another. So of a process that was forked and has executed a
 * program since, the later record may be taken first. Hence a beginning is told at the end of a pass
 * over the rings that began after it: no older record can come then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/proc/tasks.h"
#include "tools/record/agent/agent_recording_private.h"
#include "tools/shstk.h"

static struct process_life *find_life(struct agent_recording *d, int pid)
{
	struct process_life *life;

	HASH_FIND_INT(d->lives, &pid, life);
	return life;
}

/* There are no more of them than images, whose number is bounded. */
static struct process_life *add_life(struct agent_recording *d, int pid, uint64_t began)
{
	struct process_life *life = calloc(1, sizeof(*life));

	if (!life)
		return NULL;
	life->pid = pid;
	life->began = began;
	HASH_ADD_INT(d->lives, pid, life);
	if (life->hh.tbl)
		return life;
	free(life);
	return NULL;
}

static void forget_life(struct agent_recording *d, struct process_life *life)
{
	HASH_DEL(d->lives, life);
	free(life);
}

void agent_recording_forget_lives(struct agent_recording *d)
{
	struct process_life *life, *next;

	HASH_ITER(hh, d->lives, life, next)
	forget_life(d, life);
}

/* Returns a time that an agent says, or now if it cannot be. */
static uint64_t possible_time(const struct agent_recording *d, uint64_t time)
{
	const uint64_t now = now_ns(CLOCK_MONOTONIC);

	return time < d->started || time > now ? now : time;
}

static int tell(struct agent_recording *d, const struct shstk_life *life)
{
	return shstk_profile_live(d->profile, life);
}

static int tell_beginning(struct agent_recording *d, struct process_life *life)
{
	const struct shstk_life began = {
		.time = life->began,
		.comm = life->first,
		.pid = life->pid,
	};

	if (life->told)
		return 0;
	life->told = true;
	return tell(d, &began);
}

/* Tells that the process ended, and forgets it. */
static int tell_end(struct agent_recording *d, struct process_life *life)
{
	const struct shstk_life ended = {
		.time = life->left ? life->left : life->gone,
		.comm = life->comm,
		.pid = life->pid,
		.ended = true,
	};
	int err = tell_beginning(d, life);

	if (!err)
		err = tell(d, &ended);
	forget_life(d, life);
	return err;
}

int agent_recording_began(struct agent_recording *d, const struct rec_start *start,
			  const char name[REC_COMM])
{
	const uint64_t time = possible_time(d, start->time);
	struct process_life *life = find_life(d, (int)start->pid);

	/* Another process has the number of one that was not seen to be gone. */
	if (life && time > life->began && (start->parent || life->left)) {
		life->gone = time;
		if (tell_end(d, life))
			return -ENOMEM;
		life = NULL;
	}
	if (!life)
		life = add_life(d, (int)start->pid, time);
	if (!life)
		return -ENOMEM;
	if (time <= life->began && !life->told) {
		life->began = time;
		memcpy(life->first, name, REC_COMM);
	}
	if (time >= life->latest) {
		life->latest = time;
		memcpy(life->comm, name, REC_COMM);
	}
	d->untold = true;
	return 0;
}

void agent_recording_left(struct agent_recording *d, int pid, uint64_t time,
			  const char name[REC_COMM])
{
	struct process_life *life = find_life(d, pid);

	time = possible_time(d, time);
	if (!life || time < life->began)
		return;
	if (time > life->left)
		life->left = time;
	if (name)
		memcpy(life->comm, name, REC_COMM);
}

void agent_recording_see_gone(struct agent_recording *d)
{
	for (struct process_life *life = d->lives; life; life = life->hh.next) {
		if (life->gone || !process_gone(life->pid))
			continue;
		life->gone = now_ns(CLOCK_MONOTONIC);
		d->untold = true;
	}
}

int agent_recording_tell_lives(struct agent_recording *d, uint64_t before)
{
	const bool last = before == UINT64_MAX;
	struct process_life *life, *next;
	int err = 0;

	if (!d->untold && !last)
		return 0;
	d->untold = false;
	HASH_ITER(hh, d->lives, life, next)
	{
		if (err)
			break;
		if (life->gone || (last && life->left))
			err = tell_end(d, life);
		else if (life->began < before)
			err = tell_beginning(d, life);
		else
			d->untold = true;
	}
	return err;
}
