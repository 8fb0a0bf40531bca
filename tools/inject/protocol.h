/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * protocol.h - what `shstk record` and each agent that it preloads agree on: how the
 * agent finds the recorder's memory, and what is alike in it.
 *
 * The recorder makes a sealed memfd (tools/record/agent/memory.c) and names it in the
 * environment of the command. The agent opens it there, and leaves its process alone if
 * that fails (common/join.h). A header at its start has a magic number and a version, of
 * which there are two kinds, and the cookie of the environment, so that a number of a
 * process that is used again leads nowhere:
 *
 *   agent/ring.h   samples in rings
 *   heap/layout.h  counters of allocations
 *
 * The variable, and LD_PRELOAD, are put back when a program executes another one without
 * them (common/env.c).
 */
#ifndef INJECT_PROTOCOL_H
#define INJECT_PROTOCOL_H

/*
 * Environment: "/proc/PID/fd/N COOKIE FILTERS", the cookie in hexadecimal. FILTERS: the number of
 * seccomp filters that the recorder has, or that the program had before it began a sandbox; if it
 * is missing there may be any.
 */
#define REC_ENV "SHSTK_RECORD"

/* Entries of a stack. */
#define REC_MIN_DEPTH 16
#define REC_MAX_DEPTH 4096

/* Bytes of the name of a thread, as in prctl(PR_GET_NAME). */
#define REC_COMM 16

#endif
