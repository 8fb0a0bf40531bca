// SPDX-License-Identifier: GPL-2.0-or-later
/* request.c - one request by libcurl, and what its answer means, as send.h describes. */
#include <stdlib.h>
#include <string.h>

#include "otlp.pb-c.h"
#include "tools/push/send/send.h"

#define MOST_HEAD (64u << 10) /* bytes of the header lines of an answer at most */
#define MOST_BODY (64u << 10) /* bytes of its body that are read */
#define SHOWN 200 /* characters of it that are shown */
#define MOST_PEACE (365 * 86400) /* seconds that a server may want to have peace at most */

/**
 * struct answer - the answer of a server
 * @head: bytes of header lines.
 * @size: bytes in @body.
 * @body: beginning of its body.
 */
struct answer {
	size_t head;
	size_t size;
	uint8_t body[MOST_BODY];
};

static size_t take_head(char *data, size_t size, size_t nr, void *arg)
{
	struct answer *answer = arg;

	(void)data;
	answer->head += size * nr;
	return answer->head > MOST_HEAD ? 0 : size * nr;
}

/* What does not fit ends the transfer, whose status is known then. */
static size_t take_body(char *data, size_t size, size_t nr, void *arg)
{
	struct answer *answer = arg;
	size_t bytes = size * nr, room = MOST_BODY - answer->size;

	memcpy(answer->body + answer->size, data, bytes < room ? bytes : room);
	answer->size += bytes < room ? bytes : room;
	return bytes <= room ? bytes : 0;
}

/* Makes a server's text safe to be shown: one line of ASCII. */
static void show(char *to, const uint8_t *text, size_t size)
{
	size_t n = 0;

	for (; n < size && n < SHOWN && text[n]; n++)
		to[n] = text[n] >= ' ' && text[n] < 0x7f ? text[n] : '?';
	while (n && (to[n - 1] == '?' || to[n - 1] == ' '))
		n--;
	to[n] = '\0';
}

/* Puts what a server says of a refusal into @to. */
static void show_refusal(char *to, const struct answer *answer, bool protobuf)
{
	Shstk__Otlp__Refusal *refusal = NULL;

	if (protobuf)
		refusal = shstk__otlp__refusal__unpack(NULL, answer->size, answer->body);
	if (refusal && *refusal->message)
		show(to, (const uint8_t *)refusal->message, strlen(refusal->message));
	else
		show(to, answer->body, answer->size);
	if (refusal)
		shstk__otlp__refusal__free_unpacked(refusal, NULL);
}

/* A server that takes a request may still reject some profiles of it. */
static enum verdict judge_taken(const struct answer *answer, bool protobuf, struct reason *why)
{
	Shstk__Otlp__Answer *says = NULL;
	enum verdict ret = TAKEN;
	char text[SHOWN + 1];

	if (protobuf)
		says = shstk__otlp__answer__unpack(NULL, answer->size, answer->body);
	if (says && says->partial_success && says->partial_success->rejected_profiles > 0) {
		show(text, (const uint8_t *)says->partial_success->error_message,
		     strlen(says->partial_success->error_message));
		because(why, "the server rejected %lld profiles%s%s",
			(long long)says->partial_success->rejected_profiles, *text ? ": " : "",
			text);
		ret = TAKEN_PARTLY;
	}
	if (says)
		shstk__otlp__answer__free_unpacked(says, NULL);
	return ret;
}

static const char *meaning(long status)
{
	switch (status) {
	case 301:
	case 302:
	case 303:
	case 307:
	case 308:
		return " (it is elsewhere: give that URL)";
	case 401:
	case 403:
		return " (is the token right?)";
	case 404:
		return " (is the path of the URL right?)";
	case 413:
		return " (the request is too large for it)";
	case 415:
		return " (other --protocol or --compress?)";
	default:
		return "";
	}
}

static enum verdict judge_status(long status, const struct answer *answer, bool protobuf,
				 struct reason *why)
{
	char text[SHOWN + 1];

	if (status < 300)
		return judge_taken(answer, protobuf, why);
	show_refusal(text, answer, protobuf);
	because(why, "the server answered %ld%s%s%s", status, meaning(status), *text ? ": " : "",
		text);
	/* 501 and 505: the server does not know such requests. */
	return status == 429 || (status >= 500 && status != 501 && status != 505) ? LATER : REFUSED;
}

/* Without a status: some errors stay, however often a request is sent. */
static enum verdict judge_error(CURLcode code, const char *text, struct reason *why)
{
	because(why, "%s", *text ? text : curl_easy_strerror(code));
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ENGINE_NOTFOUND:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_WRITE_ERROR:
	case CURLE_URL_MALFORMAT:
	case CURLE_NOT_BUILT_IN:
	case CURLE_BAD_FUNCTION_ARGUMENT:
		return UNUSABLE;
	default:
		return LATER;
	}
}

/* Says where the body comes from: memory, or a function that gives it piece by piece. */
static void set_body(CURL *curl, const struct request *request)
{
	if (request->read) {
		request->seek(request->source, 0, SEEK_SET);
		curl_easy_setopt(curl, CURLOPT_READFUNCTION, request->read);
		curl_easy_setopt(curl, CURLOPT_READDATA, request->source);
		curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, request->seek);
		curl_easy_setopt(curl, CURLOPT_SEEKDATA, request->source);
	}
	if (request->put) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->size);
		return;
	}
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, (const char *)request->body);
}

static CURLcode perform(struct connection *c, const struct request *request, struct answer *answer,
			char *error)
{
	c->exposed = false;
	set_body(c->curl, request);
	curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, take_head);
	curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, answer);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, error);
	return curl_easy_perform(c->curl);
}

/*
 * Gives the caller the text of an answer, which it wants whole. Such requests ask, so it does no harm
 * to send them again.
 */
static enum verdict keep_text(struct request *request, const struct answer *answer, CURLcode code,
			      const char *error, struct reason *why)
{
	if (code == CURLE_WRITE_ERROR || answer->size > request->room) {
		because(why, "the server's answer is too long");
		return REFUSED;
	}
	if (code) {
		because(why, "the server's answer is cut off: %s",
			*error ? error : curl_easy_strerror(code));
		return LATER;
	}
	memcpy(request->text, answer->body, answer->size);
	request->text_size = answer->size;
	return TAKEN;
}

/* Judges a request that was performed. The status line comes after the server has the request. */
static enum verdict judge(struct connection *c, struct request *request,
			  const struct answer *answer, CURLcode code, const char *error,
			  struct reason *why)
{
	enum verdict verdict;
	long status = 0;

	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300 && request->text)
		return keep_text(request, answer, code, error, why);
	if (status >= 200)
		return judge_status(status, answer, c->send->protobuf, why);
	verdict = judge_error(code, error, why);
	if (request->read && code == CURLE_ABORTED_BY_CALLBACK)
		return REFUSED;
	if (!c->exposed)
		return verdict;
	because(why, "a token is sent to other machines only by https://, not by http://");
	return UNUSABLE;
}

enum verdict request_do(struct connection *connection, struct request *request, unsigned long *wait,
			struct reason *why)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	char error[CURL_ERROR_SIZE] = "";
	enum verdict verdict;
	curl_off_t seconds = 0;
	CURLcode code;

	*wait = 0;
	if (!answer) {
		because(why, "out of memory");
		return LATER;
	}
	code = perform(connection, request, answer, error);
	curl_easy_getinfo(connection->curl, CURLINFO_RETRY_AFTER, &seconds);
	*wait = seconds < 0 ? 0 : seconds < MOST_PEACE ? seconds : MOST_PEACE;
	verdict = judge(connection, request, answer, code, error, why);
	free(answer);
	return verdict;
}

enum verdict request_try(struct connection *connection, const uint8_t *body, size_t size,
			 unsigned long *wait, struct reason *why)
{
	struct request request = { .body = body, .size = size };

	return request_do(connection, &request, wait, why);
}
