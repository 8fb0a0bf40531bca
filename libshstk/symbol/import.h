/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * import.h - reading profiles: what the readers of formats share.
 *
 * A reader gets all bytes of a file, which nobody vouches for, makes entries of stacks by
 * shstk_import_name() and hands each sample to shstk_import_sample(). Both take from the file's
 * account what the profile is going to need for it.
 */
#ifndef SHSTK_IMPORT_H
#define SHSTK_IMPORT_H

#include "budget.h"
#include "export.h"

/* What all formats of trees and tables take for a frame that no other stack shares, about. */
#define SHSTK_IMPORT_FRAME 128

/**
 * struct shstk_import - a file that is being read
 * @profile: where it goes.
 * @opts: how.
 * @path: as it is told.
 * @account: what it may take.
 * @source: number of the file in the profile, from 1.
 * @why: what is wrong with it; set by who returns an error.
 * @why_size: bytes in @why.
 * @last: entries of the sample before, outermost first.
 * @nr_last: so many.
 * @max_last: room for so many.
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

/* Say what is wrong. Returns @code. */
int shstk_import_fail(struct shstk_import *in, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Take memory for what is read. Returns 0, or -E2BIG and it was said. */
int shstk_import_take(struct shstk_import *in, uint64_t bytes);
/* As shstk_profile_name(), with what it takes. */
int shstk_import_name(struct shstk_import *in, const struct shstk_named *named, uint32_t *ret);
/* Add a sample of process @pid, or -1: it is not known. @values may be changed. */
int shstk_import_sample(struct shstk_import *in, struct shstk_sample *sample, int pid,
			int64_t *values);
/* A value type of the file, the @i-th. It must be that of what the profile has already. */
int shstk_import_type(struct shstk_import *in, unsigned int i, const char *type, const char *unit);
/* The file has so many types. */
int shstk_import_types_end(struct shstk_import *in, unsigned int nr);
/* enum shstk_note of a frame's name. */
int shstk_import_note(const char *name);

/* import_pprof.c, import_folded.c: the readers. Return 0 or a negative errno, and said why. */
int shstk_import_pprof(struct shstk_import *in, const uint8_t *data, size_t size);
int shstk_import_folded(struct shstk_import *in, const char *text, size_t size);

#endif /* SHSTK_IMPORT_H */
