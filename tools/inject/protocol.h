/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * protocol.h - what `shstk record` and each preloaded agent agree on: how the agent finds the
 * recorder's memory, and what all kinds of that memory have in common.
 *
 * The recorder makes a sealed memfd (tools/record/agent/shared_memory.c) and names it in the
 * environment of the command. The agent opens it there, and leaves its process alone if that fails
 * (common/join.h). The memory begins with a header, which has a magic number, a version and the
 * cookie that is also in the environment. The cookie protects against a process ID that is in use
 * again. There are two kinds of memory:
 *
 *   agent/ring.h   samples in rings
 *   heap/region.h  counters of allocations
 *
 * When a program executes another one without the variable or without LD_PRELOAD, the agent puts
 * them back (common/env.c).
 */
#ifndef INJECT_PROTOCOL_H
#define INJECT_PROTOCOL_H

/*
 * The environment variable. Its value is "/proc/PID/fd/N COOKIE FILTERS [PUT_BACK]", with the
 * cookie in hexadecimal. FILTERS is the number of seccomp filters that the recorder has, or that
 * the program had before it began a sandbox. If FILTERS is missing, the number is not known.
 * PUT_BACK counts how often the variables were put back (common/env.c).
 */
#define REC_ENV "SHSTK_RECORD"

/* The least and the greatest number of entries that a stack may have. */
#define REC_MIN_DEPTH 16
#define REC_MAX_DEPTH 4096

/* The size of a thread's name in bytes, as in prctl(PR_GET_NAME). */
#define REC_COMM 16

#endif
