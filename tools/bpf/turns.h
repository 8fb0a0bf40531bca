/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * turns.h - whose work is done next by the process that makes tables of unwind rules.
 *
 * Work is done one piece after the other: either the files of a process are opened, or a table is made.
 * A piece can take as long as 20 s if a user made a file for that purpose. So it is the turn of the user
 * for whom the least time was spent, and nobody waits longer than for one piece of each other user's and
 * as long as the own ones take. Who had nothing to do for a while has no claim to that time.
 */
#ifndef TOOLS_BPF_TURNS_H
#define TOOLS_BPF_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/walk.h"

#define TURNS_WAITING 2048 /* pieces of work that can wait */

/**
 * struct turns_user - a user's part of the work
 * @spent: time that was spent for the user, ns, with time that the user did not claim.
 * @waiting: number of pieces that wait.
 */
struct turns_user {
	uint64_t spent;
	unsigned int waiting;
};

/* What is to be done, in the order in which it is done for a user. */
enum turns_kind {
	TURNS_OPEN, /* open the files of the process that asked, which may end at any time */
	TURNS_MISSED, /* make the table of a file that a walk met */
	TURNS_AHEAD, /* make the table of another file of such a process */
};

/**
 * struct turn - a piece of work
 * @kind: what is to be done.
 * @asked: what was asked for; of TURNS_AHEAD only the file matters.
 * @fd: the open file; -1 if @kind is TURNS_OPEN.
 * @user: for whom. It is part of a struct that the caller has.
 * @number: it is set when the work is added: a piece that was added later has a higher one.
 */
struct turn {
	enum turns_kind kind;
	struct walk_asked asked;
	int fd;
	struct turns_user *user;
	uint64_t number;
};

/**
 * struct turns - all work that waits
 * @work: the pieces, in no order.
 * @nr: number of pieces.
 * @added: number of pieces that were ever added.
 * @now: time that was spent for the user whose turn it was last. Who waits for nothing is not counted
 *	as having had less.
 */
struct turns {
	struct turn work[TURNS_WAITING];
	unsigned int nr;
	uint64_t added;
	uint64_t now;
};

/*
 * Adds a piece of work. Returns false if there is no room: no user has more pieces that wait than half
 * as many as there is room for.
 */
bool turns_add(struct turns *t, const struct turn *work);

/* Takes out the piece that is to be done next. Returns false if there is none. */
bool turns_take(struct turns *t, struct turn *ret);

/* Counts the time that a piece took, in ns. */
void turns_spend(struct turns_user *user, uint64_t ns);

#endif
