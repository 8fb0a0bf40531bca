// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symbols.c - sends a debug file to Parca, which asks for those that it lacks (send.h).
 *
 * Facts are from the repository parca-dev/parca, as of July 2026 (3b5647cd9e2a):
 *
 * - proto/parca/debuginfo/v1alpha1/debuginfo.proto has the steps and their messages. Each step is a
 *   POST to the path that its option google.api.http names: /shouldinitiateupload, /initiateupload,
 *   /upload, /markuploadfinished.
 * - pkg/server/server.go puts these paths below /api (behind --path-prefix) and translates them by
 *   grpc-gateway's usual rules: messages are protobuf's JSON with names such as buildId, 64-bit numbers
 *   may be strings, enumerators are written by name, a member that is missing has its default.
 * - pkg/debuginfo/store.go: a server wants a file once. InitiateUpload needs hash and size; of the hash
 *   it only asks whether it is the same as that of a file which it found useless, and then says
 *   AlreadyExists, which is status 409. The build id is that of the profile, in hexadecimal digits
 *   (pkg/symbolizer/symbolizer.go looks the file up by that of the mapping).
 * - UploadInstructions say how the file is to be sent: by the step Upload, whose messages follow each
 *   other in one body (request_DebuginfoService_Upload_0 in debuginfo.pb.gw.go): one with the ids, then
 *   pieces of the file, none larger than 64 MiB (MaxMsgSize in pkg/debuginfo/client.go). Or by PUT to a
 *   URL that has its own permission in it; the token is not for that server, so it is not sent there.
 * - MarkUploadFinished ends it. A server wants a file again if that is missing for a quarter of an hour.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/push/base64.h"
#include "tools/push/push.h"
#include "tools/push/send/answer.h"
#include "tools/push/send/send.h"
#include "tools/shstk.h"

#define MOST_ANSWER (64u << 10) /* bytes of an answer */
#define MOST_ID 128 /* characters of the id of an upload, with the zero byte */
#define MOST_URL 8192 /* those of a URL */
#define PIECE (768u << 10) /* bytes of the file in a message */
#define SLOWEST (64u << 10) /* bytes in a second that an upload must have */

#define BEFORE_PIECE "{\"chunkData\":\""
#define BEHIND_PIECE "\"}\n"

/**
 * struct upload - how the server wants a file
 * @id: the id of the upload.
 * @strategy: UploadStrategy by its name.
 * @url: where to, if the strategy says so.
 */
struct upload {
	char id[MOST_ID];
	char strategy[64];
	char url[MOST_URL];
};

/* ---- Questions ---- */

/* Sends JSON and reads members of the answer. */
static enum verdict ask(struct connection *c, const char *step, const char *json,
			struct answer_member *members, size_t nr, struct reason *why)
{
	struct request request = {
		.body = (const uint8_t *)json,
		.size = strlen(json),
		.room = MOST_ANSWER,
		.text = malloc(MOST_ANSWER),
	};
	enum verdict verdict = REFUSED;

	because(why, "out of memory");
	if (request.text && connection_step(c, step, why) == EXIT_OK)
		verdict = request_send(c, &request, why);
	if (verdict == TAKEN && answer_read(request.text, request.text_size, members, nr)) {
		because(why, "the server's answer is not what Parca says of debug files");
		verdict = REFUSED;
	}
	free(request.text);
	return verdict;
}

/* Asks whether the server wants the file. */
static enum verdict ask_whether(struct connection *c, bool *wanted, struct reason *why)
{
	struct answer_member should = { .name = "shouldInitiateUpload" };
	enum verdict verdict;
	char json[512];

	snprintf(json, sizeof(json), "{\"buildId\":\"%s\",\"buildIdType\":\"BUILD_ID_TYPE_GNU\"}",
		 c->send->symbols);
	verdict = ask(c, "shouldinitiateupload", json, &should, 1, why);
	*wanted = verdict == TAKEN && should.kind == ANSWER_TRUE;
	if (verdict != TAKEN || *wanted || should.kind == ANSWER_FALSE ||
	    should.kind == ANSWER_ABSENT)
		return verdict;
	because(why, "the server's answer is not what Parca says of debug files");
	return REFUSED;
}

/* Returns whether a text is a string of JSON as it is. Where there is a '?', something else was. */
static bool is_plain(const char *text)
{
	return *text && !strpbrk(text, "\"\\?");
}

/* Asks how the server wants the file. @taken: it has the file meanwhile. */
static enum verdict ask_how(struct connection *c, uint64_t size, uint32_t hash, struct upload *ret,
			    bool *taken, struct reason *why)
{
	struct answer_member members[] = {
		{ "uploadInstructions", "uploadId", ret->id, sizeof(ret->id), 0 },
		{ "uploadInstructions", "uploadStrategy", ret->strategy, sizeof(ret->strategy), 0 },
		{ "uploadInstructions", "signedUrl", ret->url, sizeof(ret->url), 0 },
	};
	enum verdict verdict;
	long status = 0;
	char json[512];

	*ret = (struct upload){ .url = "" };
	snprintf(json, sizeof(json),
		 "{\"buildId\":\"%s\",\"buildIdType\":\"BUILD_ID_TYPE_GNU\",\"size\":\"%" PRIu64
		 "\",\"hash\":\"crc32-%08" PRIx32 "\"}",
		 c->send->symbols, size, hash);
	verdict = ask(c, "initiateupload", json, members, 3, why);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	*taken = status == 409;
	if (verdict == TAKEN && !is_plain(ret->id)) {
		because(why, "the server's answer has no id of an upload");
		verdict = REFUSED;
	}
	return verdict;
}

static enum verdict say_finished(struct connection *c, const char *id, struct reason *why)
{
	char json[512];

	snprintf(json, sizeof(json), "{\"buildId\":\"%s\",\"uploadId\":\"%s\"}", c->send->symbols,
		 id);
	return ask(c, "markuploadfinished", json, NULL, 0, why);
}

/* ---- The file ---- */

/**
 * struct stream - the body of an upload, made of a file as it is read
 * @fd: the file.
 * @size: its bytes.
 * @at: bytes of it that were read.
 * @json: the file is sent in messages of JSON.
 * @first: the first message, with its line break.
 * @piece: what was read last.
 * @buffer: bytes of the body that come next.
 * @filled: bytes in @buffer.
 * @sent: bytes of @buffer that were given away.
 * @changed: the file has become shorter meanwhile.
 */
struct stream {
	int fd;
	uint64_t size;
	uint64_t at;
	bool json;
	char first[512];
	uint8_t piece[PIECE];
	char buffer[BASE64_SIZE(PIECE) + 64];
	size_t filled;
	size_t sent;
	bool changed;
};

/* Returns the bytes of the body. */
static uint64_t body_size(const struct stream *s)
{
	const uint64_t whole = s->size / PIECE, rest = s->size % PIECE;
	const uint64_t around = strlen(BEFORE_PIECE BEHIND_PIECE);

	if (!s->json)
		return s->size;
	return strlen(s->first) + whole * (BASE64_SIZE(PIECE) + around) +
	       (rest ? BASE64_SIZE(rest) + around : 0);
}

static void begin_again(struct stream *s)
{
	s->at = 0;
	s->sent = 0;
	s->filled = s->json ? strlen(s->first) : 0;
	memcpy(s->buffer, s->first, s->filled);
}

/* Reads the next piece of the file. Returns false at its end, or if there is less than there was. */
static bool read_piece(struct stream *s, size_t *ret)
{
	size_t size = s->size - s->at < PIECE ? s->size - s->at : PIECE, done = 0;
	ssize_t n = 1;

	while (done < size && n > 0) {
		n = pread(s->fd, s->piece + done, size - done, s->at + done);
		done += n > 0 ? n : 0;
	}
	s->changed |= done < size;
	s->at += done;
	*ret = done;
	return size && done == size;
}

/* Fills the buffer. Returns false as read_piece() does. */
static bool fill(struct stream *s)
{
	char *to = s->buffer;
	size_t size;

	if (!read_piece(s, &size))
		return false;
	if (s->json) {
		to = stpcpy(to, BEFORE_PIECE);
		to = base64_put(to, s->piece, size);
		to = stpcpy(to, BEHIND_PIECE);
	} else {
		memcpy(to, s->piece, size);
		to += size;
	}
	s->filled = to - s->buffer;
	s->sent = 0;
	return true;
}

static size_t give(char *to, size_t size, size_t nr, void *arg)
{
	struct stream *s = arg;
	size_t n;

	if (s->sent == s->filled && !fill(s))
		return s->changed ? CURL_READFUNC_ABORT : 0;
	n = s->filled - s->sent;
	if (n > size * nr)
		n = size * nr;
	memcpy(to, s->buffer + s->sent, n);
	s->sent += n;
	return n;
}

static int go_back(void *arg, curl_off_t offset, int origin)
{
	if (offset || origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	begin_again(arg);
	return CURL_SEEKFUNC_OK;
}

/* Computes what tells one file from another of the same build id. Returns false if it can't be read. */
static bool hash_file(struct stream *s, uint32_t *ret)
{
	uLong crc = crc32(0, NULL, 0);
	size_t size;

	s->at = 0;
	while (read_piece(s, &size))
		crc = crc32(crc, s->piece, size);
	*ret = crc;
	return !s->changed;
}

/* Sends the file. A large one has more time than other requests. */
static enum verdict send_file(struct connection *c, struct stream *s, bool put, struct reason *why)
{
	struct request request = {
		.size = body_size(s),
		.read = give,
		.seek = go_back,
		.source = s,
		.put = put,
	};
	const uint64_t ms = (c->send->timeout + request.size / SLOWEST) * 1000;
	enum verdict verdict;

	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)ms);
	verdict = request_send(c, &request, why);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)c->send->timeout * 1000);
	if (s->changed)
		because(why, "the file was changed while it was sent");
	return verdict;
}

/* Sends the file by the step Upload. */
static enum verdict send_messages(struct connection *c, struct stream *s,
				  const struct upload *upload, struct reason *why)
{
	s->json = true;
	snprintf(s->first, sizeof(s->first),
		 "{\"info\":{\"buildId\":\"%s\",\"uploadId\":\"%s\"}}\n", c->send->symbols,
		 upload->id);
	if (connection_step(c, "upload", why) != EXIT_OK)
		return REFUSED;
	return send_file(c, s, false, why);
}

/*
 * Sends the file to a URL that the server chose. It gets neither token nor certificate, and the file
 * is encrypted if all that goes to the server is.
 */
static enum verdict send_to_url(struct connection *c, struct stream *s, const struct upload *upload,
				struct reason *why)
{
	struct send send = {
		.to = upload->url,
		.type = "",
		.cacert = c->send->cacert,
		.timeout = c->send->timeout,
		.retries = c->send->retries,
		.max_wait = c->send->max_wait,
	};
	struct connection there;
	enum verdict verdict = REFUSED;

	s->json = false;
	if (strncasecmp(c->send->to, "http://", 7) && strncasecmp(upload->url, "https://", 8)) {
		because(why, "the server wants the file at a URL that is not https://");
		return REFUSED;
	}
	if (connection_init(&there, &send, why) == EXIT_OK)
		verdict = send_file(&there, s, true, why);
	else
		because(why, "the server wants the file at what is no URL for it");
	connection_deinit(&there);
	return verdict;
}

static enum verdict send_as_told(struct connection *c, struct stream *s,
				 const struct upload *upload, struct reason *why)
{
	if (!strcmp(upload->strategy, "UPLOAD_STRATEGY_GRPC"))
		return send_messages(c, s, upload, why);
	if (!strcmp(upload->strategy, "UPLOAD_STRATEGY_SIGNED_URL"))
		return send_to_url(c, s, upload, why);
	because(why, "the server allows no upload of the file");
	return REFUSED;
}

/* ---- All of it ---- */

/* Sends a file that the server wants. Returns an exit status. */
static int send_wanted(struct connection *c, struct stream *s, struct reason *why)
{
	struct upload *upload = malloc(sizeof(*upload));
	enum verdict verdict = REFUSED;
	bool taken = false;
	uint32_t hash;

	because(why, "out of memory");
	if (upload && !hash_file(s, &hash))
		because(why, "the file can't be read");
	else if (upload)
		verdict = ask_how(c, s->size, hash, upload, &taken, why);
	if (!taken && verdict == TAKEN)
		verdict = send_as_told(c, s, upload, why);
	if (!taken && verdict == TAKEN)
		verdict = say_finished(c, upload->id, why);
	free(upload);
	if (taken)
		return PUSH_UNWANTED;
	return verdict == TAKEN ? EXIT_OK : verdict == LATER ? PUSH_LATER : EXIT_FAILED;
}

int send_symbols(struct connection *c, struct reason *why)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct stat st;
	bool wanted = false;
	int status = EXIT_FAILED;

	because(why, s ? "the file can't be read" : "out of memory");
	if (s && !fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		s->fd = STDIN_FILENO;
		s->size = st.st_size;
		switch (ask_whether(c, &wanted, why)) {
		case TAKEN:
			status = wanted ? send_wanted(c, s, why) : PUSH_UNWANTED;
			break;
		case LATER:
			status = PUSH_LATER;
			break;
		default:
			status = PUSH_USELESS;
		}
	}
	if (status != EXIT_OK && status != PUSH_UNWANTED)
		send_say(c->send, why->text);
	free(s);
	return status;
}
