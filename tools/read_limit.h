/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_limit.h - the option --read-limit, which limits the resources for reading the symbols of
 * files, and the message about files that exceed the limit.
 */
#ifndef TOOLS_READ_LIMIT_H
#define TOOLS_READ_LIMIT_H

#include <argp.h>
#include <stdint.h>

#include "libshstk/symbol/profile.h"
#include "libshstk/symbol/symbol.h"

struct caution_place;

/**
 * struct read_limit - the limits, for struct shstk_symbols_opts
 * @memory: bytes; 0: the default.
 * @time: CPU time in ns; 0: the default.
 */
struct read_limit {
	uint64_t memory;
	uint64_t time;
};

/* The key of the option, and its row in the option table of a command. */
#define READ_LIMIT_OPT 768
#define READ_LIMIT_OPTION                                                                                                                          \
	{                                                                                                                                          \
		"read-limit", READ_LIMIT_OPT, "SIZE[,SECONDS]", 0,                                                                                 \
			"limit the memory (bytes, or with K, M, G) and CPU time for reading names from files; a file that needs more is reported", \
			0                                                                                                                          \
	}

/* Parses the option's argument. Does not return if it is wrong. */
void read_limit_parse(const struct argp_state *state, const char *arg, struct read_limit *ret);
/* Puts the limits into the options of a struct shstk_symbols. */
void read_limit_apply(const struct read_limit *limit, struct shstk_symbols_opts *opts);
/* Prints which files needed more than the limits, and keeps that in @place if it is not NULL. */
void read_limit_report(const struct shstk_symbols *symbols, const struct caution_place *place);

#endif
