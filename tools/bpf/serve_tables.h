/* SPDX-License-Identifier: GPL-2.0-or-later */
/* serve_tables.h - make tables of unwind rules for the files that the BPF walk meets. */
#ifndef TOOLS_BPF_SERVE_TABLES_H
#define TOOLS_BPF_SERVE_TABLES_H

#include <sys/types.h>

#include "bpf/walk.h"
#include "tools/bpf/libbpf.h"
#include "tools/bpf/tries.h"
#include "tools/bpf/turns.h"
#include "tools/probes/bpf_ring.h"
#include "tools/rules/subordinate.h"

#define SERVE_USERS 256 /* users who are counted apart; all others count as one */
#define SERVE_REFUSED 8 /* files of a user that are remembered as refused */

/**
 * struct served_user - what a user's processes had us do
 * @uid: the user, as ids counted when the place was taken.
 * @id: the id for which it was taken: what was counted here is that of whom @id counts as now.
 * @files: files that are known because a process of the user's asked.
 * @bytes: bytes of the tables of these files.
 * @again: CLOCK_MONOTONIC in ns; until then requests of the user are dropped, since one of the user's
 *	processes made us wait.
 * @stuck: a child that waits in the kernel because of a process of the user's, or 0.
 * @refused: files that were not found where a process of the user's was said to execute them. Others
 *	may ask for them.
 * @refused_until: CLOCK_MONOTONIC in ns; until then the user's requests for @refused are dropped.
 * @next_refused: the next place in @refused.
 * @turns: the user's part of the work that waits.
 */
struct served_user {
	uid_t uid;
	uid_t id;
	unsigned int files;
	uint64_t bytes;
	uint64_t again;
	pid_t stuck;
	struct walk_file refused[SERVE_REFUSED];
	uint64_t refused_until[SERVE_REFUSED];
	unsigned int next_refused;
	struct turns_user turns;
};

/**
 * struct served - the maps of the BPF program that are filled here
 * @lib: functions of libbpf.
 * @tables: map of the tables by slot.
 * @files: map of the slots by file.
 * @config: map of the program's settings.
 * @told: the settings that are now in @config.
 * @asked: map of the ring buffer of files that are asked for.
 * @ring: the ring buffer, mapped.
 * @leaves_go: programs of Go get no table.
 * @cache: folder in which tables are kept (cache_open()), or negative: none are kept.
 * @stop: a descriptor; when it becomes readable, serving ends. -1 if there is none.
 * @next: slot of the next table.
 * @turns: what is still to be done.
 * @tries: files whose table could not be made yet.
 * @subordinate: ids that count as other users.
 * @users: users whose processes asked.
 * @nr_users: number of elements of @users.
 * @known: number of files that are known, of all users and of those that were known before.
 * @most_bytes: most bytes that all tables may have; 0: there is no limit. No user's tables have more
 *	than half as many as are left.
 * @bytes: bytes of all tables.
 * @nr_waiting: number of requests and files that wait, with the one that is worked on, in memory that
 *	the server and its parent share.
 */
struct served {
	const struct libbpf *lib;
	int tables;
	int files;
	int config;
	struct walk_config told;
	int asked;
	struct ring ring;
	bool leaves_go;
	int cache;
	int stop;
	unsigned int next;
	struct turns turns;
	struct tries tries;
	struct subordinate subordinate;
	struct served_user users[SERVE_USERS];
	unsigned int nr_users;
	unsigned int known;
	uint64_t most_bytes;
	uint64_t bytes;
	unsigned int *nr_waiting;
};

/* Tells the program the settings in @told. Returns 0 or a negative errno. */
int serve_config(struct served *s);

/*
 * Returns where a user is counted, and the user's further ids with it. Users whose number is beyond
 * SERVE_USERS share the last place.
 */
struct served_user *serve_user(struct served *s, uid_t id);

/*
 * Returns whether one more file may become known through the user's processes. No user has more files
 * than half as many as are left, so whoever comes later finds room as well.
 */
bool serve_has_room(const struct served *s, const struct served_user *user);

/* Returns whether a table of so many bytes may be made for the user, and counts it if so. */
bool serve_has_bytes(struct served *s, struct served_user *user, uint64_t bytes);

/* Counts a file that became known through the user's processes. */
void serve_charge(struct served *s, struct served_user *user);

/* Takes that back: the file is forgotten. */
void serve_discharge(struct served *s, struct served_user *user);

/* Makes the table of the vDSO, which all processes have. Returns 0 or a negative errno. */
int serve_vdso(struct served *s);

/**
 * serve_asked() - give a table to each file that is asked for, and never return without an error
 * @s: the maps.
 *
 * Return: a negative errno; -ECANCELED if @s->stop became readable.
 */
int serve_asked(struct served *s);

#endif
