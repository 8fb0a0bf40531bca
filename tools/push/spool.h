/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spool.h - a folder with requests that wait to be sent.
 *
 *   recorder's child  -> spool_put() ->  FOLDER/TIME-ID.request  -> shstk-push -> server
 *                                        FOLDER/counts
 *
 * A request is a file. It gets its name when it is complete, and loses it when a server has taken it
 * or when it is given up. Each of them ends in exactly one of the counts: sent, or one of those that
 * are dropped. The recorder only writes files, so it never waits for a server.
 *
 * The bound in bytes is kept by who puts: what does not fit is dropped, as in queues of OpenTelemetry's
 * Collector, so a request that is being sent is never taken away. The bound in age is kept by who
 * sends. One process sends at a time, and one puts at a time: each has a lock (flock) which ends with
 * the process.
 *
 * The folder belongs to the user, and nobody else may open it. All files in it are opened by their
 * names in the open folder, never through symbolic links.
 */
#ifndef TOOLS_PUSH_SPOOL_H
#define TOOLS_PUSH_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tools/reason.h"

#define SPOOL_NAME 64 /* bytes of the name of a request at most */
#define SPOOL_NAMES 64 /* requests that are found at once at most */
#define SPOOL_HEAD (64u << 10) /* bytes of a request's head at most */

/**
 * enum spool_count - what is counted of a spool, since it was made
 * @SPOOL_PUT: requests that were put into it.
 * @SPOOL_SENT: requests that a server took.
 * @SPOOL_SENT_BYTES: bytes of their bodies.
 * @SPOOL_RETRIES: attempts that were not the last one of a request.
 * @SPOOL_REJECTED: requests of which a server rejected a part.
 * @SPOOL_FULL: requests that were dropped because the spool or the disk was full.
 * @SPOOL_OLD: those that were dropped because they had become too old.
 * @SPOOL_REFUSED: those that a server refused.
 * @SPOOL_DAMAGED: files that are no whole requests.
 * @SPOOL_COUNTS: number of counts.
 */
enum spool_count {
	SPOOL_PUT,
	SPOOL_SENT,
	SPOOL_SENT_BYTES,
	SPOOL_RETRIES,
	SPOOL_REJECTED,
	SPOOL_FULL,
	SPOOL_OLD,
	SPOOL_REFUSED,
	SPOOL_DAMAGED,
	SPOOL_COUNTS,
};

/* Names of the counts, as they are in the file "counts" and in metrics. */
extern const char *const spool_count_names[SPOOL_COUNTS];

/**
 * struct spool - an open spool
 * @dir: the folder.
 * @path: its path, to be freed.
 */
struct spool {
	int dir;
	char *path;
};

/**
 * struct spool_request - a request
 * @query: "name=value", each followed by a zero byte, that the URL gets.
 * @query_size: bytes of @query.
 * @body: the body; after spool_take() to be freed together with @query.
 * @size: its bytes.
 */
struct spool_request {
	char *query;
	size_t query_size;
	uint8_t *body;
	size_t size;
};

/* What waits in a spool. */
struct spool_waiting {
	size_t nr;
	uint64_t bytes;
};

/*
 * Returns the folder in which spools lie by default, which the caller frees, or NULL if out of memory
 * or if there is no home.
 */
char *spool_default(void);

/**
 * spool_open() - open a spool, which is made if there is none
 * @spool: the spool; spool_close() must be called if this succeeds.
 * @base: the folder in which it lies.
 * @name: its name, a file name.
 * @why: receives the reason of a failure.
 *
 * Return: 0 or a negative errno.
 */
int spool_open(struct spool *spool, const char *base, const char *name, struct reason *why);
void spool_close(struct spool *spool);

/**
 * spool_put() - put a request into a spool
 * @spool: the spool.
 * @request: the request.
 * @most: how many bytes may wait in the spool.
 *
 * Return: 0; -ENOSPC: the spool or the disk is full, which was counted; or another negative errno.
 */
int spool_put(const struct spool *spool, const struct spool_request *request, uint64_t most);

/* Adds to a count. Returns 0 or a negative errno. */
int spool_add(const struct spool *spool, enum spool_count count, uint64_t n);
/* Reads all counts, as they were at one moment; those that can't be read are 0. */
void spool_counts(const struct spool *spool, uint64_t counts[SPOOL_COUNTS]);

/* Lets this process be the only one that sends. Returns a descriptor; or -EAGAIN: another one is. */
int spool_lock(const struct spool *spool);

/**
 * struct spool_names - the names of the oldest requests of a spool
 * @name: the names, the oldest first.
 * @nr: their number.
 */
struct spool_names {
	char name[SPOOL_NAMES][SPOOL_NAME];
	size_t nr;
};

/* Finds the oldest requests. */
void spool_oldest(const struct spool *spool, struct spool_names *ret);
/* Returns the time of a request in ns since 1970, by its name. */
uint64_t spool_time(const char *name);
/* Sums up what waits. */
struct spool_waiting spool_waiting(const struct spool *spool);

/**
 * struct spool_seen - what was found in a spool, so that it need not be read again; begins as zeros
 * @waiting: what waits.
 * @changed: when the folder was changed the last time before that.
 * @settled: that was long enough before it was read.
 */
struct spool_seen {
	struct spool_waiting waiting;
	struct timespec changed;
	bool settled;
};

/* Sums up what waits, for who asks often: the folder is read only if it has changed. */
struct spool_waiting spool_waiting_again(const struct spool *spool, struct spool_seen *seen);

/**
 * spool_take() - read a request, which stays in the spool
 * @spool: the spool.
 * @name: its name, as spool_oldest() says.
 * @ret: receives the request.
 *
 * Return: 0; -EBADMSG: the file is no whole request; or another negative errno.
 */
int spool_take(const struct spool *spool, const char *name, struct spool_request *ret);

/* Removes a request. Returns 0 or a negative errno. */
int spool_remove(const struct spool *spool, const char *name);
/* Removes what those that put left when they were killed, after an hour. */
void spool_tidy(const struct spool *spool);

#endif
