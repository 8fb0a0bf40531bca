/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record.h - what the commands share that record.
 */
#ifndef TOOLS_RECORD_RECORD_H
#define TOOLS_RECORD_RECORD_H

#include "tools/record/options.h"

/* Parses @argv by @argp, whose input is @opts, and records. Returns the exit status. */
int record_main(const struct argp *argp, int argc, char **argv, struct record_opts *opts);

#endif
