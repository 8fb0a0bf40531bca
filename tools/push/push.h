/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push.h - what the files of `shstk push` share.
 *
 * The command reads a profile and makes the bodies of requests of it, which it puts into a file
 * without a name. Then it starts shstk-push (tools/push/send/) with this file as its standard input,
 * which sends them. So the program that reads foreign files has no network, and the one that talks
 * to servers reads no profiles; and nothing else is linked with libcurl.
 *
 * The file is a sequence of bodies, each preceded by its length as four bytes, the highest first. With
 * --symbols, standard input is a debug file itself, and shstk-push is started for each (symbols.c).
 *
 * `shstk record --push` puts bodies into a spool instead (spool.h), in the child processes that write
 * profiles, and shstk-push runs beside the recorder and sends them from there (pusher.c). The recorder
 * and shstk-push share a pair of sockets, whose end tells shstk-push that no more bodies come.
 */
#ifndef TOOLS_PUSH_PUSH_H
#define TOOLS_PUSH_PUSH_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/utsname.h>

#include "libshstk/symbol/profile.h"
#include "tools/push/spool.h"
#include "tools/read_limit.h"

#define PUSH_HOST "host.name" /* the attribute for the machine */

#define PUSH_LATER 75 /* exit status: it may be taken later; EX_TEMPFAIL of sysexits.h */
#define PUSH_UNWANTED \
	3 /* exit status of shstk-push: the server has the debug file, or lacks none */
#define PUSH_USELESS 4 /* exit status of shstk-push: the server does not take debug files */
#define PUSH_MOST (80u << 20) /* bytes of a body at most */

/**
 * enum push_protocol - how a profile is sent
 * @PUSH_AUTO: as the path of the URL says, by default PUSH_OTLP.
 * @PUSH_OTLP: messages of OpenTelemetry's profiles.
 * @PUSH_PYROSCOPE: pprof in JSON, Pyroscope's push.v1.PusherService/Push.
 * @PUSH_INGEST: pprof as it is, Pyroscope's /ingest.
 * @PUSH_PARCA: pprof in JSON, Parca's /profiles/writeraw.
 */
enum push_protocol {
	PUSH_AUTO,
	PUSH_OTLP,
	PUSH_PYROSCOPE,
	PUSH_INGEST,
	PUSH_PARCA,
};

/**
 * enum push_packing - how the body of a request of PUSH_OTLP is compressed
 * @PUSH_GZIP: gzip, which all servers take.
 * @PUSH_ZSTD: zstd.
 * @PUSH_PLAIN: not at all.
 */
enum push_packing {
	PUSH_GZIP,
	PUSH_ZSTD,
	PUSH_PLAIN,
};

/**
 * struct push - what is to be sent, and where to
 * @to: the URL.
 * @protocol: enum push_protocol.
 * @packing: enum push_packing.
 * @attributes: names and values, one after another, all of which are freed.
 * @nr_attributes: number of elements of @attributes, twice that of attributes.
 * @token_file: file with the token, or NULL.
 * @tenant: whose data it is, for a server with several tenants, or NULL.
 * @cacert: file with certificates of authorities, or NULL.
 * @cert: file with the client's certificate, or NULL.
 * @key: file with its key, or NULL.
 * @timeout: seconds that a request may take.
 * @retries: how often one is sent again.
 * @max_wait: seconds between two at most.
 * @no_names: functions in files have no names.
 * @type: kind of values that is shown where one is, from 1; 0: the last one.
 * @given: one of these options was given: those of push_way_argp or push_spool_argp.
 * @quiet: no summary.
 * @read_limit: limits for reading files.
 * @spool: folder for spools, or NULL: spool_default().
 * @spool_size: bytes that may wait in a spool.
 * @spool_age: seconds that they may wait.
 * @spool_wait: seconds for which they are sent after the recording.
 * @counts: what was counted of the spool is sent, too (otlp).
 * @symbols: the debug files of what @files name are sent, not @files.
 * @symbols_size: bytes of a debug file at most.
 * @files: the files.
 * @nr_files: number of @files.
 */
struct push {
	const char *to;
	enum push_protocol protocol;
	enum push_packing packing;
	char **attributes;
	size_t nr_attributes;
	const char *token_file;
	const char *tenant;
	const char *cacert;
	const char *cert;
	const char *key;
	unsigned int timeout;
	unsigned int retries;
	unsigned int max_wait;
	bool no_names;
	unsigned int type;
	bool given;
	bool quiet;
	struct read_limit read_limit;
	const char *spool;
	uint64_t spool_size;
	unsigned long spool_age;
	unsigned long spool_wait;
	bool counts;
	bool symbols;
	uint64_t symbols_size;
	char **files;
	int nr_files;
};

/**
 * struct push_bodies - the bodies of the requests for one profile
 * @out: file to which they are written, or NULL.
 * @spool: the spool into which they are put, or NULL.
 * @nr: their number.
 * @start: beginning of the recording, in ns since 1970.
 * @duration: its length, in ns.
 * @service: service.name, which the caller frees.
 */
struct push_bodies {
	FILE *out;
	const struct spool *spool;
	size_t nr;
	int64_t start;
	int64_t duration;
	char *service;
};

/*
 * Reads a file and writes the bodies of its requests. Returns an exit status, after a message if it
 * is a failure.
 */
int push_make_bodies(const struct push *push, const char *path, struct push_bodies *bodies);

/* The same of a profile in memory, whose title is @title unless an option says another service. */
int push_make_bodies_of(const struct push *push, struct shstk_profile *profile, const char *title,
			struct push_bodies *bodies);

/*
 * Returns what is added to the URL of requests: "name=value", each followed by a zero byte, which the
 * caller frees; NULL if out of memory.
 */
char *push_query(const struct push *push, const struct push_bodies *bodies, size_t *size);

/* Sends the bodies. Returns an exit status, after a message if it is a failure. */
int push_send(const struct push *push, const struct push_bodies *bodies);

/*
 * Sends an open debug file, if the server wants it. Returns an exit status of shstk-push, after a
 * message if it is a failure.
 */
int push_send_symbols(const struct push *push, const char *build_id, int fd);

/* Sends the debug files of what files name, as symbols.c describes. Returns an exit status. */
int push_symbols(const struct push *push);

/*
 * Starts the program that sends what is in a spool, with @fd as its standard input. Returns its
 * process ID; or -1, after a message.
 */
pid_t push_start_spooled(const struct push *push, const char *base, const char *name, int fd);

/* Sets the defaults of the options, and releases what they hold. */
void push_init(struct push *push);
void push_deinit(struct push *push);
/* Returns whether the files that options name can be read, or false after a message. */
bool push_files_readable(const struct push *push);
/* Chooses the protocol, if there is a URL. */
void push_choose_protocol(struct push *push);

/*
 * Returns the name of this machine for the label host.name of pprof's servers, which is in @machine; or
 * NULL if an attribute gives another one.
 */
const char *push_host(const struct push *push, struct utsname *machine);

/* Parsers of options, whose input is a struct push: how profiles are sent, and the spool. */
extern const struct argp push_way_argp;
extern const struct argp push_spool_argp;

/**
 * struct pusher - sends the profiles of a recording
 * @push: how.
 * @base: the folder in which the spool lies, to be freed.
 * @name: name of the spool in it, to be freed.
 * @spool: the spool.
 * @seen: what was found in it the last time.
 * @wake: the recorder's end of the pair of sockets, or -1.
 * @pid: the program that sends, 0: it does not run.
 * @useless: its exit status, if it can't send and is not started again.
 */
struct pusher {
	const struct push *push;
	char *base;
	char *name;
	struct spool spool;
	struct spool_seen seen;
	int wake;
	pid_t pid;
	int useless;
};

/* Opens the spool and starts to send. Returns an exit status. pusher_forget() is called in any case. */
int pusher_begin(struct pusher *pusher, const struct push *push);
/* Starts the program again, if it has ended. */
void pusher_watch(struct pusher *pusher);
/*
 * Puts a profile into the spool, also in a child process. Returns false, after a message, if a part of
 * it is lost.
 */
bool pusher_put(const struct pusher *pusher, struct shstk_profile *profile, const char *title);
/* Waits until what waits was sent, for some seconds at most. Does nothing if there was no pusher_begin(). */
void pusher_end(struct pusher *pusher);
/* Closes the spool. */
void pusher_forget(struct pusher *pusher);

#endif
