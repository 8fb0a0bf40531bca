/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/read_limit.h - what it may take to read files for their names: the option, and what is said.
 */
#ifndef TOOLS_READ_LIMIT_H
#define TOOLS_READ_LIMIT_H

#include <argp.h>
#include <stdint.h>

#include "libshstk/symbol/symbol.h"

/**
 * struct read_limit - what it may take, as struct shstk_symbols_opts has it
 * @memory: bytes; 0: the default.
 * @time: ns of CPU time; 0: the default.
 */
struct read_limit {
	uint64_t memory;
	uint64_t time;
};

/* Key, and row in the options of a command. */
#define READ_LIMIT_OPT 768
#define READ_LIMIT_OPTION                                                                                \
	{                                                                                                \
		"read-limit", READ_LIMIT_OPT, "SIZE[,SECONDS]", 0,                                       \
			"memory (bytes, or with K, M, G) and CPU time that reading files for names may " \
			"take; who takes more is told",                                                  \
			0                                                                                \
	}

/* Take the option's argument. Does not return if it is none. */
void read_limit_parse(const struct argp_state *state, const char *arg, struct read_limit *ret);
/* Put it into the options of a store. */
void read_limit_apply(const struct read_limit *limit, struct shstk_symbols_opts *opts);
/* Say which files took more. */
void read_limit_report(const struct shstk_symbols *symbols);

#endif
