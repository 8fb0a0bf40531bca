// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * spooled.c - sends what waits in a spool (tools/push/spool.h), until the recorder has ended.
 *
 * Standard input is a socket. A byte in it means that there is something new; its end means that the
 * recorder and whoever wrote for it have ended. From then on, requests are sent until one fails or a
 * time is over; what is left is sent by the next recording.
 *
 * A request that a server took is removed at once. If this process is killed between the answer and
 * that, or if an answer is lost, the request is sent again by the next one, with the same ids.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/push/push.h"
#include "tools/push/send/counts.h"
#include "tools/push/send/send.h"
#include "tools/shstk.h"

#define LOOK_MS 1000 /* between two attempts to be the process that sends */
#define COUNTS_MS 60000 /* between two requests with what was counted */
#define SAY_MS 600000 /* between two messages that a server still does not take requests */

/**
 * struct sending - the state
 * @c: what requests share.
 * @send: how they are sent; @c has it, too.
 * @spool: the spool.
 * @lock: descriptor of the lock; negative: another process sends.
 * @failures: attempts in a row after which a request may be taken later.
 * @not_before: when the next one may be made, ms of CLOCK_MONOTONIC.
 * @peace: the server wants none before this, ms of CLOCK_MONOTONIC.
 * @said: when it was said that the server does not take requests; 0: it does.
 * @end: when to end; 0: the recorder goes on.
 * @over: nothing can be sent any more.
 * @counting: how what was counted is sent.
 * @counts_at: when to send it, ms of CLOCK_MONOTONIC.
 * @old: requests that were dropped because they were too old, and not said.
 */
struct sending {
	struct connection *c;
	struct send *send;
	struct spool spool;
	int lock;
	unsigned long failures;
	uint64_t not_before;
	uint64_t peace;
	uint64_t said;
	uint64_t end;
	bool over;
	struct counting counting;
	uint64_t counts_at;
	uint64_t old;
};

static uint64_t now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns by when to end, now that the recorder has ended. */
static uint64_t end_time(const struct sending *s)
{
	return now_ms(CLOCK_MONOTONIC) + s->send->end_wait * 1000;
}

/* Reads the socket. At its end there is a time by which to end. */
static void look_at_input(struct sending *s)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char bytes[256];
	ssize_t n;

	while (!s->end && poll(&input, 1, 0) > 0) {
		n = read(STDIN_FILENO, bytes, sizeof(bytes));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			s->end = end_time(s);
	}
}

/* libcurl calls this some times in a second. Anything but 0 ends the request. */
static int look_at_end(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct sending *s = arg;

	(void)a, (void)b, (void)c, (void)d;
	look_at_input(s);
	return s->end && now_ms(CLOCK_MONOTONIC) > s->end;
}

/* Has a request end when it is time to end. */
static void watch_input(struct sending *s, CURL *curl)
{
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_at_end);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, s);
}

static void count(const struct sending *s, enum spool_count which, uint64_t n)
{
	struct reason why;
	int err = spool_add(&s->spool, which, n);

	if (!err)
		return;
	because(&why, "cannot count in '%s': %s", s->spool.path, strerror(-err));
	send_say(s->send, why.text);
}

/* Takes a request from the spool. One that stayed there would be sent twice. */
static void drop(struct sending *s, const char *name, enum spool_count which)
{
	struct reason why;
	int err = spool_remove(&s->spool, name);

	if (!err) {
		count(s, which, 1);
		return;
	}
	because(&why, "cannot remove '%s/%s', nothing more is sent: %s", s->spool.path, name,
		strerror(-err));
	send_say(s->send, why.text);
	s->over = true;
}

static void say_dropped(const struct sending *s, const char *what, const struct reason *why)
{
	struct reason text;

	because(&text, "%s: %.400s", what, why->text);
	send_say(s->send, text.text);
}

/* After a failure that may pass: when to try again. */
static void put_off(struct sending *s, unsigned long wanted, const struct reason *why)
{
	const uint64_t now = now_ms(CLOCK_MONOTONIC), ms = send_backoff(s->send, s->failures);
	const struct spool_waiting waiting = spool_waiting(&s->spool);
	struct reason text;

	s->failures++;
	s->peace = now + wanted * 1000;
	s->not_before = now + (wanted * 1000 > ms ? wanted * 1000 : ms);
	count(s, SPOOL_RETRIES, 1);
	if (s->said && now - s->said < SAY_MS)
		return;
	s->said = now;
	because(&text, "%.300s; %zu requests wait in '%.150s'", why->text, waiting.nr,
		s->spool.path);
	send_say(s->send, text.text);
}

static void taken(struct sending *s, const char *name, size_t size)
{
	drop(s, name, SPOOL_SENT);
	count(s, SPOOL_SENT_BYTES, size);
	s->failures = 0;
	s->not_before = 0;
	if (s->said)
		send_say(s->send, "the server takes requests again");
	s->said = 0;
}

/*
 * Sends a request once; after "who are you?" once more, with the token and certificates that the
 * files have now.
 */
static enum verdict try(struct sending *s, const struct spool_request *request,
			unsigned long *wanted, struct reason *why)
{
	enum verdict verdict = LATER;
	long status = 0;

	*wanted = 0;
	for (int i = 0; i < 2; i++) {
		if (i && connection_renew(s->c, why) != EXIT_OK)
			return REFUSED;
		if (connection_query(s->c, request->query, request->query_size, why) != EXIT_OK)
			return REFUSED;
		watch_input(s, s->c->curl);
		verdict = request_try(s->c, request->body, request->size, wanted, why);
		curl_easy_getinfo(s->c->curl, CURLINFO_RESPONSE_CODE, &status);
		if (verdict != REFUSED || status != 401)
			break;
	}
	return verdict;
}

static void send_request(struct sending *s, const char *name, const struct spool_request *request)
{
	struct reason why = { "" };
	unsigned long wanted;

	switch (try(s, request, &wanted, &why)) {
	case TAKEN_PARTLY:
		say_dropped(s, "a part is lost", &why);
		count(s, SPOOL_REJECTED, 1);
		taken(s, name, request->size);
		break;
	case TAKEN:
		taken(s, name, request->size);
		break;
	case REFUSED:
		say_dropped(s, "a request is dropped", &why);
		drop(s, name, SPOOL_REFUSED);
		break;
	case LATER:
	case UNUSABLE:
		put_off(s, wanted, &why);
		break;
	}
}

/* Sends a request, or drops it. */
static void deal_with(struct sending *s, const char *name)
{
	const uint64_t now = now_ms(CLOCK_REALTIME), time = spool_time(name);
	struct spool_request request;
	struct reason why;
	int err;

	if (now > time / 1000000 && now - time / 1000000 > s->send->max_age * 1000) {
		drop(s, name, SPOOL_OLD);
		s->old++;
		return;
	}
	err = spool_take(&s->spool, name, &request);
	if (!err) {
		send_request(s, name, &request);
		free(request.query);
		return;
	}
	because(&why, "'%.200s/%s': %s", s->spool.path, name,
		err == -EBADMSG ? "no whole request" : strerror(-err));
	if (err == -EBADMSG) {
		say_dropped(s, "a request is dropped", &why);
		drop(s, name, SPOOL_DAMAGED);
	} else if (err != -ENOENT) {
		put_off(s, 0, &why);
	}
}

static void say_old(struct sending *s)
{
	struct reason why;

	if (!s->old)
		return;
	because(&why, "%" PRIu64 " requests were dropped: they waited longer than %lu s", s->old,
		s->send->max_age);
	send_say(s->send, why.text);
	s->old = 0;
}

/* Returns whether a request may be sent now. After the end nothing is waited for. */
static bool may_send(const struct sending *s)
{
	const uint64_t now = now_ms(CLOCK_MONOTONIC);

	return !s->over && now >= s->not_before && (!s->end || now < s->end);
}

/* The folder is read once for many requests: thousands may wait when a server comes back. */
static void send_all_waiting(struct sending *s)
{
	struct spool_names oldest = { .nr = 0 };

	while (may_send(s)) {
		spool_oldest(&s->spool, &oldest);
		if (!oldest.nr)
			break;
		for (size_t i = 0; i < oldest.nr && may_send(s); i++) {
			deal_with(s, oldest.name[i]);
			look_at_input(s);
		}
	}
	say_old(s);
}

/*
 * Sends what was counted, if it is time. The first time is soon, so that a server has a value from before
 * anything is lost; the last one is when all was sent.
 */
static void send_counts(struct sending *s)
{
	const uint64_t now = now_ms(CLOCK_MONOTONIC);
	long most = s->send->timeout * 1000;

	if (s->lock < 0 || (!s->end && now < s->counts_at) || (s->end && now >= s->end))
		return;
	if (s->end && s->end - now < (uint64_t)most)
		most = s->end - now;
	if (s->counting.on)
		watch_input(s, s->counting.connection.curl);
	counting_send(&s->counting, &s->spool, s->lock, most);
	s->counts_at = now + COUNTS_MS;
}

/* Returns how many ms to wait for a byte or a time to send requests; -1: for ever. */
static int wait_for_requests(const struct sending *s)
{
	const uint64_t now = now_ms(CLOCK_MONOTONIC);

	if (s->lock < 0)
		return LOOK_MS;
	/* If nothing is put off, all that waited was dealt with. */
	if (now >= s->not_before)
		return s->failures && spool_waiting(&s->spool).nr ? 0 : -1;
	return s->not_before - now > 3600000 ? 3600000 : (int)(s->not_before - now);
}

/* Returns how many ms to wait for a byte or a time to send something; -1: for ever. */
static int how_long(const struct sending *s)
{
	const uint64_t now = now_ms(CLOCK_MONOTONIC);
	const int ms = wait_for_requests(s), left = s->counts_at > now ? s->counts_at - now : 0;

	return s->counting.on && s->lock >= 0 && (ms < 0 || left < ms) ? left : ms;
}

/* Becomes the process that sends, if no other one is. */
static void get_lock(struct sending *s)
{
	if (s->lock >= 0)
		return;
	s->lock = spool_lock(&s->spool);
	if (s->lock >= 0)
		spool_tidy(&s->spool);
}

static int finish(struct sending *s)
{
	const struct spool_waiting waiting = spool_waiting(&s->spool);
	struct reason why;

	if (!waiting.nr || s->lock < 0)
		return EXIT_OK;
	because(&why, "%zu requests, %" PRIu64 " KiB, wait in '%.200s' for the next recording",
		waiting.nr, waiting.bytes / 1024, s->spool.path);
	send_say(s->send, why.text);
	/* Where a request can't be removed, the next process would only send it again. */
	return s->over ? EXIT_FAILED : PUSH_LATER;
}

int send_spooled(struct connection *c, struct send *send, struct reason *why)
{
	struct sending s = { .c = c, .send = send, .lock = -1 };
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int status;

	if (spool_open(&s.spool, send->spool, send->spool_name, why)) {
		send_say(send, why->text);
		return EXIT_FAILED;
	}
	signal(SIGXFSZ, SIG_IGN);
	counting_init(&s.counting, send);
	/* The recorder waits for this. */
	if (write(STDIN_FILENO, "", 1) != 1)
		s.end = end_time(&s);
	while (!s.end && !s.over) {
		get_lock(&s);
		if (s.lock >= 0)
			send_all_waiting(&s);
		send_counts(&s);
		if (!s.end && !s.over)
			poll(&input, 1, how_long(&s));
		look_at_input(&s);
	}
	get_lock(&s);
	s.not_before = s.peace;
	if (s.lock >= 0)
		send_all_waiting(&s);
	send_counts(&s);
	status = finish(&s);
	counting_deinit(&s.counting);
	spool_close(&s.spool);
	return status;
}
