/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push.h - what the files of `shstk push` share.
 *
 * The command reads a profile and makes the bodies of requests of it, which it puts into a file
 * without a name. Then it starts shstk-push (tools/push/send/) with this file as its standard input,
 * which sends them. So the program that reads foreign files has no network, and the one that talks
 * to servers reads no profiles; and nothing else is linked with libcurl.
 *
 * The file is a sequence of bodies, each preceded by its length as four bytes, the highest first.
 */
#ifndef TOOLS_PUSH_PUSH_H
#define TOOLS_PUSH_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/read_limit.h"

#define PUSH_LATER 75 /* exit status: it may be taken later; EX_TEMPFAIL of sysexits.h */
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
 * @quiet: no summary.
 * @read_limit: limits for reading files.
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
	bool quiet;
	struct read_limit read_limit;
	char **files;
	int nr_files;
};

/**
 * struct push_bodies - the bodies of the requests for one file
 * @out: where they are written.
 * @nr: their number.
 * @start: beginning of the recording, in ns since 1970.
 * @duration: its length, in ns.
 * @service: service.name, which the caller frees.
 */
struct push_bodies {
	FILE *out;
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

/* Sends the bodies. Returns an exit status, after a message if it is a failure. */
int push_send(const struct push *push, const struct push_bodies *bodies);

#endif
