// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * import_keep.c - reading a file of messages, as keep.h describes it: one message is in memory at a
 * time. What a message says is the matter of import_otlp.c.
 *
 * The last message says where the names of locations are, which are read before the samples. If it
 * is missing, the file is taken as far as it goes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "import_otlp.h"
#include "keep.h"

#define HEAD 4 /* bytes of the length of a message */
#define LEAST 8 /* bytes of the shortest message; less is no message */

static const uint8_t zstd_magic[4] = { 0x28, 0xb5, 0x2f, 0xfd };

/**
 * struct kept_file - a file that is being read
 * @in: the file.
 * @fd: descriptor of the file, or -1.
 * @data: bytes of the file, if @fd is -1.
 * @size: bytes of the file.
 * @last: where the last whole message begins.
 * @end: where it ends.
 * @reader: reads messages.
 */
struct kept_file {
	struct shstk_import *in;
	int fd;
	const uint8_t *data;
	uint64_t size;
	uint64_t last;
	uint64_t end;
	struct shstk_otlp_reader *reader;
};

/* A message in memory. */
struct message_bytes {
	uint8_t *p;
	size_t size;
};

static bool is_packed(const uint8_t *message)
{
	return !memcmp(message, zstd_magic, sizeof(zstd_magic));
}

/* Returns whether a message begins with the tag of a field of ProfilesData. */
static bool is_plain(const uint8_t *message)
{
	return message[0] == 0x0a || message[0] == 0x12;
}

bool shstk_import_is_keep(const uint8_t *data, size_t size)
{
	return size >= SHSTK_IMPORT_KEEP_HEAD && data[0] < SHSTK_KEEP_MOST >> 24 &&
	       (is_packed(data + HEAD) || (!data[0] && is_plain(data + HEAD)));
}

/* Reads @size bytes at @at, which lie within the file. */
static int read_at(struct kept_file *k, uint64_t at, uint8_t *to, size_t size)
{
	ssize_t n = 0;

	if (k->fd < 0) {
		memcpy(to, k->data + at, size);
		return 0;
	}
	for (; size; size -= n, to += n, at += n) {
		n = pread(k->fd, to, size, at);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return shstk_import_fail(k->in, -errno, "%s", strerror(errno));
		else if (!n)
			return shstk_import_fail(k->in, -EIO, "became shorter");
	}
	return 0;
}

/* Finds the length of the message at @at. Returns 1; 0 if there is no whole one; or an error. */
static int find_message(struct kept_file *k, uint64_t at, size_t *size)
{
	uint8_t head[HEAD];
	int err;

	*size = 0;
	if (k->size - at < HEAD)
		return 0;
	err = read_at(k, at, head, sizeof(head));
	if (err)
		return err;
	*size = (size_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3];
	return *size >= LEAST && *size <= SHSTK_KEEP_MOST && *size <= k->size - at - HEAD;
}

/* Finds the last whole message. */
static int find_last(struct kept_file *k)
{
	size_t size;
	int ret = 1;

	while (ret > 0) {
		ret = find_message(k, k->end, &size);
		if (ret > 0) {
			k->last = k->end;
			k->end += HEAD + size;
		}
	}
	if (!ret && !k->end)
		return shstk_import_fail(k->in, -EINVAL, "is cut off");
	return ret;
}

static int take_bytes(struct kept_file *k, struct message_bytes *to, size_t size)
{
	int err = shstk_import_take(k->in, size);

	if (err)
		return err;
	to->p = malloc(size + 1);
	if (!to->p) {
		shstk_account_give(k->in->account, size);
		return shstk_import_no_memory(k->in);
	}
	to->size = size;
	return 0;
}

static void give_bytes(struct kept_file *k, struct message_bytes *b)
{
	shstk_account_give(k->in->account, b->size);
	free(b->p);
	*b = (struct message_bytes){ 0 };
}

static int damaged(struct kept_file *k)
{
	return shstk_import_fail(k->in, -EINVAL, "its zstd data is damaged");
}

static int unpack(struct kept_file *k, const struct message_bytes *packed,
		  struct message_bytes *ret)
{
	unsigned long long size = ZSTD_getFrameContentSize(packed->p, packed->size);
	int err;

	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR)
		return damaged(k);
	if (size > SHSTK_KEEP_MOST)
		return shstk_import_fail(k->in, -E2BIG, "has a message of more than %u MiB",
					 SHSTK_KEEP_MOST >> 20);
	err = take_bytes(k, ret, size);
	if (err)
		return err;
	if (ZSTD_decompress(ret->p, size, packed->p, packed->size) == size)
		return 0;
	give_bytes(k, ret);
	return damaged(k);
}

/* Unpacks a message, unless it is not compressed. */
static int unwrap(struct kept_file *k, const struct message_bytes *message,
		  struct message_bytes *ret)
{
	if (is_packed(message->p))
		return unpack(k, message, ret);
	return is_plain(message->p) ?
		       0 :
		       shstk_import_fail(k->in, -EINVAL, "has a message that begins as none does");
}

/*
 * Reads the message at @at, and sets @next to where it ends. Returns 1, 0 at the end, or an error.
 */
static int read_message(struct kept_file *k, uint64_t at, enum shstk_otlp_part part, uint64_t *next)
{
	struct message_bytes packed = { 0 }, plain = { 0 };
	size_t size;
	int err = find_message(k, at, &size);

	if (err <= 0)
		return err;
	*next = at + HEAD + size;
	err = take_bytes(k, &packed, size);
	if (!err)
		err = read_at(k, at + HEAD, packed.p, size);
	if (!err)
		err = unwrap(k, &packed, &plain);
	if (!err)
		err = shstk_otlp_read(k->reader, plain.p ? plain.p : packed.p,
				      plain.p ? plain.size : packed.size, part);
	give_bytes(k, &plain);
	give_bytes(k, &packed);
	return err ? err : 1;
}

static int misplaced(struct kept_file *k)
{
	return shstk_import_fail(
		k->in, -EINVAL,
		"contradicts itself: its names are not where it says, as in files that were put together: give each by itself");
}

/*
 * Reads the messages from @from to @to. If none ends at @to the file has lost some, or is several
 * that were put together: then sums would be wrong.
 */
static int read_messages(struct kept_file *k, uint64_t from, uint64_t to, enum shstk_otlp_part part)
{
	int ret = 1;

	while (from < to && ret > 0)
		ret = read_message(k, from, part, &from);
	if (ret < 0)
		return ret;
	return from == to ? 0 : misplaced(k);
}

/* Says that the end is missing, or that something follows it. */
static int caution(struct kept_file *k)
{
	const char *so_far = shstk_otlp_so_far(k->reader);
	char *text = NULL;
	int err = 0;

	if (shstk_otlp_has_end(k->reader) && k->end == k->size)
		return 0;
	if (asprintf(&text, "%s: %s%s%s", k->in->path,
		     shstk_otlp_has_end(k->reader) ?
			     "what follows its end is no message" :
			     "its end is missing: recording was broken off, or goes on",
		     so_far ? "; recorded so far: " : "", so_far ? so_far : "") < 0)
		return shstk_import_no_memory(k->in);
	if (shstk_profile_caution(k->in->profile, text))
		err = shstk_import_no_memory(k->in);
	free(text);
	return err;
}

static int read_file(struct kept_file *k)
{
	uint64_t names, next;
	int err = find_last(k);

	if (err >= 0)
		err = read_message(k, k->last, SHSTK_OTLP_PART_END, &next);
	if (err < 0)
		return err;
	names = shstk_otlp_names_at(k->reader);
	if (!names)
		names = k->last;
	err = read_messages(k, names, k->last, SHSTK_OTLP_PART_NAMES);
	if (!err)
		err = read_messages(k, 0, shstk_otlp_has_end(k->reader) ? names : k->end,
				    SHSTK_OTLP_PART_SAMPLES);
	if (!err)
		err = shstk_otlp_finish(k->reader);
	return err ? err : caution(k);
}

int shstk_import_keep(struct shstk_import *in, int fd, const uint8_t *data, uint64_t size)
{
	struct kept_file k = { .in = in, .fd = fd, .data = data, .size = size };
	int err;

	k.reader = shstk_otlp_reader_create(in);
	if (!k.reader)
		return shstk_import_no_memory(in);
	err = read_file(&k);
	shstk_otlp_reader_destroy(k.reader);
	return err;
}
