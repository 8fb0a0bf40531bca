/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reload.h - a recording of what runs already, whose options are in a file (--config), is begun anew
 * on SIGHUP.
 *
 * First a child process checks the options, as they are now. If there is an error, it says so, and the
 * recording goes on as it was. Otherwise the recording ends as always, so that nothing is lost, and the
 * process executes its own program again, with the same command line.
 */
#ifndef TOOLS_RECORD_RELOAD_H
#define TOOLS_RECORD_RELOAD_H

#include "tools/record/backend.h"

/* Returns whether SIGHUP asks for the options to be read again. */
bool reload_possible(const struct recording *r);

/* Returns whether the options have no error now; or false after a message. */
bool reload_check(const struct recording *r);

/* Executes the program anew. Returns an exit status if that is not possible, after a message. */
int reload(const struct recording *r);

#endif
