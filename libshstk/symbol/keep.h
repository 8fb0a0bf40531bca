/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * keep.h - a file that keeps every sample, written while samples are added.
 *
 * The file is a sequence of messages of OpenTelemetry's profiles (otlp.h), each preceded by its
 * length as four bytes, the highest first, and compressed by zstd: the form in which the file exporter
 * of OpenTelemetry's Collector writes (format: proto, compression: zstd). What was written is
 * complete up to the last whole message, however the writer ended.
 *
 *   messages with samples     functions have no names yet, but code that is in no file has
 *   messages with names       of all locations, by number: written at the end
 *   the last message          cautions, comments, duration, and where the messages with names begin
 *
 * A reader that finds no last message looks names up in the files that were mapped.
 */
#ifndef SHSTK_KEEP_H
#define SHSTK_KEEP_H

#include "otlp.h"

#define SHSTK_KEEP_SAMPLES 16384 /* samples of a message at most */
#define SHSTK_KEEP_NAMES 4096 /* locations that a message names at most */
#define SHSTK_KEEP_MOST (64u << 20) /* bytes of a message at most, compressed or not */
#define SHSTK_KEEP_SENT (16u << 20) /* the same for a collector, which takes 20 MiB by default */

struct shstk_keep;
struct shstk_left;

/**
 * shstk_keep_create() - begin a file with the samples of a profile
 * @profile: the profile, which has its types when the first sample is added.
 * @path: the file; "-" is standard output. It is made with the first message.
 * @out: where it is written instead of @path, or NULL. It stays the caller's.
 * @about: the recording; its title must outlive the file.
 * @ret: receives the file.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_keep_create(const struct shstk_profile *profile, const char *path, FILE *out,
		      const struct shstk_otlp_about *about, struct shstk_keep **ret);

/**
 * typedef shstk_keep_take - takes a message
 * @arg: as it was given to shstk_keep_create_for().
 * @message: the message, not compressed; it is the caller's.
 * @size: its bytes.
 *
 * Return: 0, or a negative errno that shstk_keep_finish() returns; no more messages come then.
 */
typedef int (*shstk_keep_take)(void *arg, const uint8_t *message, size_t size);

/**
 * shstk_keep_create_for() - hand the samples of a profile to a function, message by message
 * @profile: the same as for shstk_keep_create().
 * @about: the same as for shstk_keep_create(); its attributes must outlive the file, too.
 * @take: gets the messages, of SHSTK_KEEP_SENT bytes at most. Each has all names and ids, so it can
 *	be sent to a collector alone; there are none that only name locations, and none that says that
 *	it is the last one.
 * @arg: first argument of @take.
 * @ret: receives what the other functions take for a file.
 *
 * Return: 0, -ENOMEM, or -EIO: there are no random numbers for ids.
 */
int shstk_keep_create_for(const struct shstk_profile *profile, const struct shstk_otlp_about *about,
			  shstk_keep_take take, void *arg, struct shstk_keep **ret);

/**
 * shstk_keep_add() - keep a sample
 * @keep: the file.
 * @sample: the sample; it is copied.
 *
 * An error of writing is kept for shstk_keep_finish(), and nothing is written any more.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_keep_add(struct shstk_keep *keep, const struct shstk_otlp_sample *sample);

/**
 * shstk_keep_profile() - keep all samples of a profile that is complete
 * @keep: the file.
 * @profile: the profile. Samples whose times it does not have are kept as their sums.
 *
 * Return: as shstk_keep_add().
 */
int shstk_keep_profile(struct shstk_keep *keep, const struct shstk_profile *profile);

/**
 * shstk_keep_flush() - write the samples that wait
 * @keep: the file.
 * @so_far: what was counted so far, for a reader who finds no end; or NULL.
 *
 * Return: 0 or -ENOMEM.
 */
int shstk_keep_flush(struct shstk_keep *keep, const char *so_far);

/**
 * shstk_keep_finish() - write names and the end, and release the file
 * @keep: the file.
 * @type: kind of values that is shown where one is, from 1; 0: as it was.
 *
 * If no sample was added nothing is written, and an old file stays as it was.
 *
 * Return: 0, -ENOMEM or the errno of writing.
 */
int shstk_keep_finish(struct shstk_keep *keep, unsigned int type);

/**
 * shstk_keep_rename() - have the file get another name, in the same folder, when it is finished
 * @keep: the file. A device, a FIFO or standard output keeps its name.
 * @path: the new name, which must live as long as @keep.
 *
 * Until then it has no name that is meant for people. An error is kept for shstk_keep_finish().
 */
void shstk_keep_rename(struct shstk_keep *keep, const char *path);

/**
 * shstk_keep_leave() - release the file, which a child process finishes
 * @keep: the file.
 * @left: receives where the file is if the child does not finish it, as far as memory allows.
 */
void shstk_keep_leave(struct shstk_keep *keep, struct shstk_left *left);

/* Releases the file as it is, without an end; @keep may be NULL. */
void shstk_keep_drop(struct shstk_keep *keep);

#endif /* SHSTK_KEEP_H */
