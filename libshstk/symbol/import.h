/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * import.h - reading profiles: what the readers of formats share.
 *
 * A reader gets all bytes of a file, which may be hostile. It makes entries of stacks by
 * shstk_import_name() and hands each sample to shstk_import_sample(). Both functions take from the
 * file's account what the profile will need for the entry or the sample.
 */
#ifndef SHSTK_IMPORT_H
#define SHSTK_IMPORT_H

#include "budget.h"
#include "export.h"

/* What is said of a file whose format is none of those that are read. */
#define SHSTK_IMPORT_UNKNOWN                                                               \
	"is not a profile that can be read here: neither pprof's nor OpenTelemetry's (in " \
	"protobuf), nor a .shstk or perf.data file, nor folded stacks"

/*
 * About the number of bytes that the output formats with trees and tables take for a frame that no
 * other stack shares.
 */
#define SHSTK_IMPORT_FRAME 128

/**
 * struct shstk_import - a file that is being read
 * @profile: the profile that receives the samples.
 * @opts: options of the caller.
 * @path: name of the file, as it is shown to the user.
 * @account: account that pays for the memory.
 * @source: number of the file in the profile, from 1.
 * @why: text that says what is wrong with the file; set by the function that returns an error.
 * @why_size: bytes in @why.
 * @last: entries of the sample before, outermost first.
 * @nr_last: number of entries in @last.
 * @max_last: number of entries that @last has room for.
 */
struct shstk_import {
	struct shstk_profile *profile;
	const struct shstk_read_opts *opts;
	const char *path;
	struct shstk_account *account;
	unsigned int source;
	char *why;
	size_t why_size;
	uint32_t *last;
	size_t nr_last;
	size_t max_last;
};

/* Puts the reason of a failure into @in->why. Returns @code. */
int shstk_import_fail(struct shstk_import *in, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Takes @bytes of memory for what is read. Returns 0, or -E2BIG and sets @in->why. */
int shstk_import_take(struct shstk_import *in, uint64_t bytes);
/* Does what shstk_profile_name() does, and takes the memory for it from the account. */
int shstk_import_name(struct shstk_import *in, const struct shstk_named *named, uint32_t *ret);
/*
 * Adds a sample of process @pid, which is -1 if it is not known. The caller's @values may be
 * changed.
 */
int shstk_import_sample(struct shstk_import *in, struct shstk_sample *sample, int pid,
			int64_t *values);
/* Notes that a process began or ended, unless it is filtered out as its samples are. */
int shstk_import_life(struct shstk_import *in, const struct shstk_life *life);
/*
 * Declares the @i-th value type of the file. It must equal the one that the profile has already, if
 * there is one.
 */
int shstk_import_type(struct shstk_import *in, unsigned int i, const char *type, const char *unit);
/* Declares that the file has @nr value types. */
int shstk_import_types_end(struct shstk_import *in, unsigned int nr);
/* Returns the enum shstk_note of a frame's name. */
int shstk_import_note(const char *name);

/* Takes the memory for the names of an entry. Returns 0, or -E2BIG and sets @in->why. */
int shstk_import_take_named(struct shstk_import *in, const struct shstk_named *named);
/* Returns -ENOMEM and sets @in->why. */
int shstk_import_no_memory(struct shstk_import *in);

/*
 * Read all samples of a file; the readers are in import_pprof.c, import_folded.c and import_keep.c.
 * They return 0, or a negative errno and set @in->why.
 */
int shstk_import_pprof(struct shstk_import *in, const uint8_t *data, size_t size);
int shstk_import_folded(struct shstk_import *in, const char *text, size_t size);
/* @fd: the file, which is regular; or -1: @data are its bytes. */
int shstk_import_keep(struct shstk_import *in, int fd, const uint8_t *data, uint64_t size);

/* Bytes of a file that tell whether it is one of keep.h. */
#define SHSTK_IMPORT_KEEP_HEAD 8
bool shstk_import_is_keep(const uint8_t *data, size_t size);

#endif /* SHSTK_IMPORT_H */
