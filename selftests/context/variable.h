/* SPDX-License-Identifier: GPL-2.0-or-later */
/* variable.h - what publish.c needs of variable.c. */
#ifndef SELFTESTS_CONTEXT_VARIABLE_H
#define SELFTESTS_CONTEXT_VARIABLE_H

/* Makes a record the context of this thread; NULL: there is none. */
void context_set(void *record);

#endif
