// SPDX-License-Identifier: LGPL-2.1-or-later
/* keep.c - writes a file that keeps every sample, as keep.h describes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <zstd.h>

#include "keep.h"
#include "target.h"

#define LEVEL 3 /* of zstd's compression: its default */

/**
 * struct shstk_keep - the file
 * @profile: the profile whose samples are kept.
 * @path: the file as it was given.
 * @out: where it is written instead, or NULL.
 * @take: gets messages instead, or NULL.
 * @arg: its first argument.
 * @id: with @take: the id of the next message: a random number, counted up.
 * @about: the recording.
 * @samples: samples that wait to be written; NULL before the first one.
 * @size: bytes of a sample.
 * @nr: number of @samples.
 * @lives: number of lives of the profile that were written.
 * @target: the file, once there is a message.
 * @opened: @target is open.
 * @renamed: @target gets its name when it is finished.
 * @written: bytes that were written.
 * @error: negative errno of writing; nothing more is written then.
 */
struct shstk_keep {
	const struct shstk_profile *profile;
	const char *path;
	FILE *out;
	shstk_keep_take take;
	void *arg;
	uint8_t id[SHSTK_OTLP_ID];
	struct shstk_otlp_about about;
	uint8_t *samples;
	size_t size;
	size_t nr;
	size_t lives;
	struct shstk_target target;
	bool opened;
	bool renamed;
	uint64_t written;
	int error;
};

int shstk_keep_create(const struct shstk_profile *profile, const char *path, FILE *out,
		      const struct shstk_otlp_about *about, struct shstk_keep **ret)
{
	struct shstk_keep *keep = calloc(1, sizeof(*keep));

	if (!keep)
		return -ENOMEM;
	keep->profile = profile;
	keep->path = path;
	keep->out = out;
	keep->about = *about;
	*ret = keep;
	return 0;
}

int shstk_keep_create_for(const struct shstk_profile *profile, const struct shstk_otlp_about *about,
			  shstk_keep_take take, void *arg, struct shstk_keep **ret)
{
	int err = shstk_keep_create(profile, NULL, NULL, about, ret);

	if (err)
		return err;
	(*ret)->take = take;
	(*ret)->arg = arg;
	if (getrandom((*ret)->id, SHSTK_OTLP_ID - 4, 0) == SHSTK_OTLP_ID - 4)
		return 0;
	shstk_keep_drop(*ret);
	*ret = NULL;
	return -EIO;
}

void shstk_keep_leave(struct shstk_keep *keep, struct shstk_left *left)
{
	*left = (struct shstk_left){ .hidden = NULL };
	if (keep->opened && keep->target.temp) {
		left->hidden = strdup(keep->target.temp);
		left->name = strdup(keep->target.final);
	}
	if (keep->opened)
		shstk_target_leave(&keep->target);
	keep->opened = false;
	shstk_keep_drop(keep);
}

void shstk_keep_drop(struct shstk_keep *keep)
{
	if (!keep)
		return;
	if (keep->opened)
		shstk_target_discard(&keep->target);
	free(keep->samples);
	free(keep);
}

/* Opens the file, unless it is open. */
static int open_file(struct shstk_keep *keep)
{
	int err;

	if (keep->out)
		return 0;
	err = shstk_target_open(&keep->target, keep->path);
	if (err)
		return err;
	keep->opened = true;
	keep->out = keep->target.out;
	return 0;
}

/*
 * Writes a message that was compressed. The file gets its name with the first one: it can be read
 * while it grows.
 */
static int put(struct shstk_keep *keep, const uint8_t *data, size_t size)
{
	const uint8_t head[4] = { size >> 24, size >> 16, size >> 8, size };
	int err = open_file(keep);

	if (err)
		return err;
	errno = 0;
	fwrite(head, 1, sizeof(head), keep->out);
	fwrite(data, 1, size, keep->out);
	if (fflush(keep->out) || ferror(keep->out))
		return errno ? -errno : -EIO;
	keep->written += sizeof(head) + size;
	return keep->opened && !keep->renamed ? shstk_target_name(&keep->target) : 0;
}

void shstk_keep_rename(struct shstk_keep *keep, const char *path)
{
	int err = keep->opened ? shstk_target_rename(&keep->target, path) : 0;

	keep->path = path;
	keep->renamed = true;
	if (!keep->error)
		keep->error = err;
}

/*
 * Compresses a message, with a checksum by which a reader finds damage. Returns the number of bytes, or
 * 0 when memory runs out.
 */
static size_t compress(const uint8_t *plain, size_t size, uint8_t *packed, size_t max)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t n = 0;

	if (!context)
		return 0;
	if (!ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)))
		n = ZSTD_compress2(context, packed, max, plain, size);
	ZSTD_freeCCtx(context);
	return ZSTD_isError(n) ? 0 : n;
}

static int put_plain(struct shstk_keep *keep, const uint8_t *plain, size_t size)
{
	size_t max = ZSTD_compressBound(size), n;
	uint8_t *packed;
	int err;

	if (size > SHSTK_KEEP_MOST)
		return -E2BIG;
	packed = malloc(max);
	if (!packed)
		return -ENOMEM;
	n = compress(plain, size, packed, max);
	if (!n)
		err = -ENOMEM;
	else
		err = n > SHSTK_KEEP_MOST ? -E2BIG : put(keep, packed, n);
	free(packed);
	return err;
}

/* Hands a message to the function that takes them. The next one has another id. */
static int hand_over(struct shstk_keep *keep, const uint8_t *plain, size_t size)
{
	for (size_t i = SHSTK_OTLP_ID - 5; i && !++keep->id[i]; i--)
		;
	return size > SHSTK_KEEP_SENT ? -E2BIG : keep->take(keep->arg, plain, size);
}

static int write_message(struct shstk_keep *keep, struct shstk_otlp_message *message);

/* Writes what is too large for one message as two, which may be divided again. */
static int write_halves(struct shstk_keep *keep, struct shstk_otlp_message *first)
{
	struct shstk_otlp_message second = *first;
	int err;

	first->nr /= 2;
	second.samples += first->nr * keep->size;
	second.nr -= first->nr;
	second.nr_lives = 0;
	first->nr_names /= 2;
	second.first_name += first->nr_names;
	second.nr_names -= first->nr_names;
	err = write_message(keep, first);
	return err ? err : write_message(keep, &second);
}

/* Writes one message. Errors of writing are kept. Returns 0 or -ENOMEM. */
static int write_message(struct shstk_keep *keep, struct shstk_otlp_message *message)
{
	uint8_t *plain;
	size_t size;
	int err;

	if (keep->error)
		return 0;
	message->profile = keep->profile;
	message->about = &keep->about;
	if (keep->take) {
		message->named = !keep->about.no_names;
		message->id = keep->id;
	}
	err = shstk_otlp_pack(message, &plain, &size);
	if (err)
		return err;
	err = keep->take ? hand_over(keep, plain, size) : put_plain(keep, plain, size);
	free(plain);
	if (err == -E2BIG && message->nr + message->nr_names > 1)
		return write_halves(keep, message);
	if (err == -ENOMEM)
		return err;
	keep->error = err == -E2BIG ? -EFBIG : err;
	return 0;
}

/* Adds to a message the lives that were not written yet. */
static void add_lives(struct shstk_keep *keep, struct shstk_otlp_message *message)
{
	if (keep->take)
		return;
	message->first_life = keep->lives;
	message->nr_lives = keep->profile->nr_lives - keep->lives;
	keep->lives = keep->profile->nr_lives;
}

int shstk_keep_flush(struct shstk_keep *keep, const char *so_far)
{
	struct shstk_otlp_message message = {
		.samples = keep->samples,
		.nr = keep->nr,
		.so_far = so_far,
	};

	if (!keep->nr)
		return 0;
	add_lives(keep, &message);
	keep->nr = 0;
	return write_message(keep, &message);
}

int shstk_keep_add(struct shstk_keep *keep, const struct shstk_otlp_sample *sample)
{
	if (!keep->samples) {
		keep->size = shstk_otlp_sample_size(keep->profile->nr_types);
		keep->samples = calloc(SHSTK_KEEP_SAMPLES, keep->size);
	}
	if (!keep->samples)
		return -ENOMEM;
	memcpy(keep->samples + keep->nr * keep->size, sample, keep->size);
	keep->nr++;
	return keep->nr < SHSTK_KEEP_SAMPLES ? 0 : shstk_keep_flush(keep, NULL);
}

/* Writes the names of all locations, some in each message. */
static int write_names(struct shstk_keep *keep)
{
	const size_t nr = keep->profile->nr_locations;
	int err = 0;

	for (size_t i = 0; i < nr && !err; i += SHSTK_KEEP_NAMES) {
		struct shstk_otlp_message message = {
			.named = true,
			.first_name = i,
			.nr_names = nr - i < SHSTK_KEEP_NAMES ? nr - i : SHSTK_KEEP_NAMES,
		};

		err = write_message(keep, &message);
	}
	return err;
}

/* Writes the lives that are left, in a message without samples. */
static int write_lives(struct shstk_keep *keep)
{
	struct shstk_otlp_message message = { .nr = 0 };

	add_lives(keep, &message);
	return message.nr_lives ? write_message(keep, &message) : 0;
}

static int write_end(struct shstk_keep *keep)
{
	struct shstk_otlp_message end = { .end = true };
	int err = write_lives(keep);

	end.names_at = keep->written;
	if (!err)
		err = write_names(keep);
	return err ? err : write_message(keep, &end);
}

int shstk_keep_finish(struct shstk_keep *keep, unsigned int type)
{
	int err = shstk_keep_flush(keep, NULL);

	if (type)
		keep->about.type = type;
	/* Messages for a collector have all names, and none is the last one. */
	if (!err && !keep->take)
		err = write_end(keep);
	if (!err)
		err = keep->error;
	if (keep->opened && keep->renamed && shstk_target_name(&keep->target) && !err)
		err = -errno;
	shstk_keep_drop(keep);
	return err;
}
