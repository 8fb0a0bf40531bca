/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * complete.h - the options of all commands as a table, from which the completions of shells are
 * made.
 */
#ifndef TOOLS_COMPLETE_H
#define TOOLS_COMPLETE_H

#include <stdio.h>

#include "tools/shstk.h"

/**
 * complete_print() - print the table
 * @commands: the commands; the last entry has no name.
 * @out: receives one line for each option:
 *
 *	COMMAND LONG SHORT ARGUMENT TEXT
 *
 * LONG, SHORT and ARGUMENT are "-" if the option has none. TEXT is the rest of the line and says in
 * a few words what the option is for. A line without LONG and SHORT is about the operands of a
 * command. COMMAND is "shstk" in lines about the command line before the name of a command.
 * ARGUMENT is a list "this|that" of all possible words, or a kind of argument: FILE, DIR, PATH,
 * PID, COMMAND, PROGRAM; arguments of other kinds cannot be completed.
 *
 * The Makefile puts this table into tools/completion.bash. tools/completion.awk makes the
 * completions of zsh and fish from it.
 */
void complete_print(const struct command *commands, FILE *out);

#endif
