/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/complete.h - the options of all commands as a table, from which shells
 * complete.
 */
#ifndef TOOLS_COMPLETE_H
#define TOOLS_COMPLETE_H

#include <stdio.h>

#include "tools/shstk.h"

/**
 * complete_print() - print the table
 * @commands: the commands; the last one has no name.
 * @out: receives one line for each option:
 *
 *	COMMAND LONG SHORT ARGUMENT TEXT
 *
 *	with "-" for what there is not; TEXT, the rest of the line, says in a few words what
 *	it is for. Without LONG and SHORT it is about the
 *	command's operands; the command itself is called "shstk". ARGUMENT is a
 *	list "this|that" of all that is possible, or the kind of it: FILE, DIR,
 *	PATH, PID, COMMAND, PROGRAM; all others can't be completed.
 *
 * tools/completion.bash has this table put in by the Makefile; tools/completion.awk makes
 * the completions of zsh and fish from it.
 */
void complete_print(const struct command *commands, FILE *out);

#endif
