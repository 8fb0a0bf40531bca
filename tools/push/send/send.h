/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * send.h - what the files of shstk-push share, which sends the bodies that `shstk push` has made
 * (tools/push/push.h).
 *
 * Any server is taken for hostile: an answer has a bound in bytes and in time, only its status line
 * decides, and what it says is shown with its control characters replaced.
 */
#ifndef TOOLS_PUSH_SEND_H
#define TOOLS_PUSH_SEND_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/reason.h"

#define SEND_MOST_QUERY 8

/**
 * struct send - how bodies are sent
 * @to: the URL as it was given.
 * @path: path of requests, where @to has none.
 * @step: a step of Parca's API: it takes the place of the end of the URL's path, or is added to the
 *	path; NULL: the path stays.
 * @query: "name=value", added to the URL.
 * @nr_query: number of elements of @query.
 * @type: Content-Type; "": none.
 * @encoding: Content-Encoding, or NULL.
 * @protobuf: answers are messages of otlp.proto.
 * @token_file: file with the token, or NULL.
 * @tenant: value of the header line X-Scope-OrgID, or NULL.
 * @cacert: file with certificates of authorities, or NULL.
 * @cert: file with a certificate for the server, or NULL.
 * @key: file with its key, or NULL.
 * @timeout: seconds that a request may take.
 * @retries: how often one is sent again.
 * @max_wait: seconds between two at most.
 * @requests: number of bodies, for messages.
 * @spool: the folder in which the spool lies whose requests are sent; NULL: bodies come from standard
 *	input.
 * @spool_name: its name in there.
 * @max_age: seconds after which a request in it is dropped.
 * @end_wait: seconds for which it is sent after the recorder has ended.
 * @push_counts: what was counted of the spool is sent, too.
 * @symbols: standard input is a debug file, whose build id this is, in hexadecimal digits; or NULL.
 */
struct send {
	const char *to;
	const char *path;
	const char *step;
	const char *query[SEND_MOST_QUERY];
	unsigned int nr_query;
	const char *type;
	const char *encoding;
	bool protobuf;
	const char *token_file;
	const char *tenant;
	const char *cacert;
	const char *cert;
	const char *key;
	unsigned long timeout;
	unsigned long retries;
	unsigned long max_wait;
	unsigned long requests;
	const char *spool;
	const char *spool_name;
	unsigned long max_age;
	unsigned long end_wait;
	bool push_counts;
	const char *symbols;
};

/**
 * enum verdict - what became of a request
 * @TAKEN: the server took it.
 * @TAKEN_PARTLY: the server took it, but rejected a part for good.
 * @LATER: it may be taken later.
 * @UNUSABLE: no request can be sent in this way: a certificate is wrong, for example.
 * @REFUSED: it will never be taken.
 */
enum verdict {
	TAKEN,
	TAKEN_PARTLY,
	LATER,
	UNUSABLE,
	REFUSED,
};

/**
 * struct connection - what all requests share
 * @send: how bodies are sent.
 * @curl: libcurl's handle.
 * @headers: header lines of each request.
 * @exposed: in the last request a token would have left this machine without encryption; nothing
 *	was sent.
 */
struct connection {
	struct send *send;
	CURL *curl;
	struct curl_slist *headers;
	bool exposed;
};

/* Prepares requests. Returns an exit status, and sets @why if it is a failure. */
int connection_init(struct connection *connection, struct send *send, struct reason *why);
void connection_deinit(struct connection *connection);
/* Does the same again, with the token and certificates that the files have now. */
int connection_renew(struct connection *connection, struct reason *why);
/* Chooses a step of Parca's API for the next requests (&send.step). Returns an exit status. */
int connection_step(struct connection *connection, const char *step, struct reason *why);
/* Sets what the next request adds to the URL: "name=value", each followed by a zero byte. */
int connection_query(struct connection *connection, const char *query, size_t size,
		     struct reason *why);

/**
 * struct request - a request that needs more than request_try()
 * @body: the body, or NULL: @read gives it.
 * @size: bytes of the body.
 * @read: gives the body piece by piece, as CURLOPT_READFUNCTION of libcurl; or NULL. If it gives up,
 *	the request is not sent again.
 * @seek: begins with it again, as CURLOPT_SEEKFUNCTION; set together with @read.
 * @source: argument of both.
 * @put: the request is PUT, not POST.
 * @text: receives the text of an answer with 2xx; one that is cut off means LATER. NULL: the status
 *	line is all that is needed.
 * @room: bytes of @text.
 * @text_size: receives its bytes.
 */
struct request {
	const uint8_t *body;
	size_t size;
	curl_read_callback read;
	curl_seek_callback seek;
	void *source;
	bool put;
	char *text;
	size_t room;
	size_t text_size;
};

/* Sends a request once, as request_try() does. */
enum verdict request_do(struct connection *connection, struct request *request, unsigned long *wait,
			struct reason *why);

/**
 * request_try() - send a body once
 * @connection: what requests share.
 * @body: the body.
 * @size: its bytes.
 * @wait: receives the seconds that the server wants to have peace, a year at most; 0: it does not
 *	say.
 * @why: receives what is wrong, unless the verdict is TAKEN.
 *
 * Return: enum verdict.
 */
enum verdict request_try(struct connection *connection, const uint8_t *body, size_t size,
			 unsigned long *wait, struct reason *why);

/* Prints a message about sending. */
void send_say(const struct send *send, const char *text);
/*
 * Returns how many ms to wait before a request is sent again for the @n-th time, from 0: twice as
 * long each time, and a random part of that, so that many machines don't come back at one moment.
 */
unsigned long send_backoff(const struct send *send, unsigned long n);

/* Sends a request until it is taken or given up, with a wait before each attempt but the first. */
enum verdict request_send(struct connection *connection, struct request *request,
			  struct reason *why);

/* Sends the debug file that is standard input. Returns an exit status. */
int send_symbols(struct connection *connection, struct reason *why);

/* Sends what is in a spool until the recorder has ended. Returns an exit status. */
int send_spooled(struct connection *connection, struct send *send, struct reason *why);

#endif
