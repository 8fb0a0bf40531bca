// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * main.c - shstk-push, the program that sends what `shstk push` has made (send.h). It is started by
 * that only, so its options are for no one else. Bodies come from standard input, one at a time, or
 * from a spool (spooled.c), or standard input is a debug file (symbols.c).
 */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "tools/push/push.h"
#include "tools/push/send/send.h"
#include "tools/shstk.h"

#define FIRST_WAIT 1000 /* ms before a request is sent again for the first time, at most */

enum {
	OPT_TO = 256,
	OPT_PATH,
	OPT_QUERY,
	OPT_TYPE,
	OPT_ENCODING,
	OPT_PROTOBUF,
	OPT_TOKEN,
	OPT_TENANT,
	OPT_CACERT,
	OPT_CERT,
	OPT_KEY,
	OPT_TIMEOUT,
	OPT_RETRIES,
	OPT_MAX_WAIT,
	OPT_REQUESTS,
	OPT_SPOOL,
	OPT_SPOOL_NAME,
	OPT_MAX_AGE,
	OPT_END_WAIT,
	OPT_PUSH_COUNTS,
	OPT_SYMBOLS,
};

static const struct argp_option options[] = {
	{ "to", OPT_TO, "URL", 0, NULL, 0 },
	{ "path", OPT_PATH, "PATH", 0, NULL, 0 },
	{ "query", OPT_QUERY, "NAME=VALUE", 0, NULL, 0 },
	{ "type", OPT_TYPE, "TYPE", 0, NULL, 0 },
	{ "encoding", OPT_ENCODING, "NAME", 0, NULL, 0 },
	{ "protobuf", OPT_PROTOBUF, NULL, 0, NULL, 0 },
	{ "token-file", OPT_TOKEN, "FILE", 0, NULL, 0 },
	{ "tenant", OPT_TENANT, "ID", 0, NULL, 0 },
	{ "cacert", OPT_CACERT, "FILE", 0, NULL, 0 },
	{ "cert", OPT_CERT, "FILE", 0, NULL, 0 },
	{ "key", OPT_KEY, "FILE", 0, NULL, 0 },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0, NULL, 0 },
	{ "retries", OPT_RETRIES, "N", 0, NULL, 0 },
	{ "max-wait", OPT_MAX_WAIT, "SECONDS", 0, NULL, 0 },
	{ "requests", OPT_REQUESTS, "N", 0, NULL, 0 },
	{ "spool", OPT_SPOOL, "FOLDER", 0, NULL, 0 },
	{ "spool-name", OPT_SPOOL_NAME, "NAME", 0, NULL, 0 },
	{ "max-age", OPT_MAX_AGE, "SECONDS", 0, NULL, 0 },
	{ "end-wait", OPT_END_WAIT, "SECONDS", 0, NULL, 0 },
	{ "push-counts", OPT_PUSH_COUNTS, NULL, 0, NULL, 0 },
	{ "symbols", OPT_SYMBOLS, "BUILD-ID", 0, NULL, 0 },
	{ 0 },
};

/* Returns where the number of an option is, or NULL. */
static unsigned long *number_of(struct send *send, int key)
{
	switch (key) {
	case OPT_TIMEOUT:
		return &send->timeout;
	case OPT_RETRIES:
		return &send->retries;
	case OPT_MAX_WAIT:
		return &send->max_wait;
	case OPT_REQUESTS:
		return &send->requests;
	case OPT_MAX_AGE:
		return &send->max_age;
	case OPT_END_WAIT:
		return &send->end_wait;
	default:
		return NULL;
	}
}

/* Returns where the text of an option is, or NULL. */
static const char **text_of(struct send *send, int key)
{
	switch (key) {
	case OPT_TO:
		return &send->to;
	case OPT_PATH:
		return &send->path;
	case OPT_TYPE:
		return &send->type;
	case OPT_ENCODING:
		return &send->encoding;
	case OPT_TOKEN:
		return &send->token_file;
	case OPT_TENANT:
		return &send->tenant;
	case OPT_CACERT:
		return &send->cacert;
	case OPT_CERT:
		return &send->cert;
	case OPT_KEY:
		return &send->key;
	case OPT_SPOOL:
		return &send->spool;
	case OPT_SPOOL_NAME:
		return &send->spool_name;
	case OPT_SYMBOLS:
		return &send->symbols;
	default:
		return NULL;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct send *send = state->input;

	if (number_of(send, key))
		*number_of(send, key) = strtoul(arg, NULL, 10);
	else if (text_of(send, key))
		*text_of(send, key) = arg;
	else if (key == OPT_PROTOBUF)
		send->protobuf = true;
	else if (key == OPT_PUSH_COUNTS)
		send->push_counts = true;
	else if (key == OPT_QUERY && send->nr_query < SEND_MOST_QUERY)
		send->query[send->nr_query++] = arg;
	else if (key == ARGP_KEY_END && (!send->to || !send->type))
		argp_failure(state, EXIT_USAGE, 0, "this program is started by shstk push");
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp argp = { .options = options, .parser = parse };

void send_say(const struct send *send, const char *text)
{
	fprintf(stderr, "shstk push: %s: %s\n", send->to, text);
}

/* ---- Sending again ---- */

unsigned long send_backoff(const struct send *send, unsigned long n)
{
	unsigned long most = send->max_wait * 1000, wait = FIRST_WAIT;
	uint32_t random = 0;

	while (n-- && wait < most)
		wait *= 2;
	if (wait > most)
		wait = most;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = time(NULL);
	return wait / 2 + random % (wait / 2 + 1);
}

static void sleep_ms(unsigned long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* Waits before a request is sent again. Returns false if the server wants too much. */
static bool wait_for_turn(const struct send *send, unsigned long n, unsigned long wanted,
			  struct reason *why)
{
	unsigned long ms = send_backoff(send, n);
	size_t len = strlen(why->text);

	if (wanted > send->max_wait) {
		snprintf(why->text + len, sizeof(why->text) - len,
			 "; wants %lu s of peace, more than --max-wait=%lu", wanted,
			 send->max_wait);
		return false;
	}
	sleep_ms(wanted * 1000 > ms ? wanted * 1000 : ms);
	return true;
}

enum verdict request_send(struct connection *c, struct request *request, struct reason *why)
{
	enum verdict verdict = LATER;
	unsigned long wanted;

	for (unsigned long n = 0; n <= c->send->retries; n++) {
		verdict = request_do(c, request, &wanted, why);
		if (verdict != LATER || n == c->send->retries)
			return verdict;
		if (!wait_for_turn(c->send, n, wanted, why))
			return LATER;
	}
	return verdict;
}

static enum verdict send_body(struct connection *c, const uint8_t *body, size_t size,
			      struct reason *why)
{
	struct request request = { .body = body, .size = size };

	return request_send(c, &request, why);
}

/* ---- Bodies ---- */

/* Reads the next body. Returns 1; 0 at the end; or -1 and sets @why. */
static int read_body(uint8_t **body, size_t *size, struct reason *why)
{
	uint8_t head[4];
	size_t n = fread(head, 1, sizeof(head), stdin);

	if (!n && !ferror(stdin))
		return 0;
	*size = (size_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3];
	if (n < sizeof(head) || *size > PUSH_MOST) {
		because(why, "what is to be sent is damaged");
		return -1;
	}
	*body = malloc(*size + 1);
	if (*body && fread(*body, 1, *size, stdin) == *size)
		return 1;
	because(why, *body ? "what is to be sent is cut off" : "out of memory");
	free(*body);
	return -1;
}

/* Returns the exit status for a body that was not taken as a whole, after a message. */
static int give_up(const struct send *send, enum verdict verdict, unsigned long nr,
		   const struct reason *why)
{
	send_say(send, why->text);
	if (nr)
		fprintf(stderr, "shstk push: %lu of %lu requests were taken before\n", nr,
			send->requests);
	return verdict == LATER ? PUSH_LATER : EXIT_FAILED;
}

static int send_all(struct connection *c, struct reason *why)
{
	enum verdict verdict = TAKEN;
	unsigned long nr = 0;
	int ret = EXIT_OK, more = 1;
	uint8_t *body;
	size_t size;

	for (; more; nr++) {
		more = read_body(&body, &size, why);
		if (!more)
			break;
		if (more < 0)
			return give_up(c->send, REFUSED, nr, why);
		verdict = send_body(c, body, size, why);
		free(body);
		if (verdict != TAKEN && verdict != TAKEN_PARTLY)
			return give_up(c->send, verdict, nr, why);
		if (verdict == TAKEN_PARTLY) {
			send_say(c->send, why->text);
			ret = EXIT_FAILED;
		}
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct send send = { 0 };
	struct connection connection;
	struct reason why = { "" };
	int status;

	argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &send);
	/* Who reads messages, or the recorder, may be gone: that is no reason to send nothing. */
	signal(SIGPIPE, SIG_IGN);
	if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
		send_say(&send, "libcurl can't be used");
		return EXIT_FAILED;
	}
	status = connection_init(&connection, &send, &why);
	if (status != EXIT_OK)
		send_say(&send, why.text);
	else if (send.spool)
		status = send_spooled(&connection, &send, &why);
	else if (send.symbols)
		status = send_symbols(&connection, &why);
	else
		status = send_all(&connection, &why);
	connection_deinit(&connection);
	curl_global_cleanup();
	return status;
}
