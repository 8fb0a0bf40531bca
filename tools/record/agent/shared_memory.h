/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shared_memory.h - the memory that `shstk record` shares with the objects that it preloads (the
 * agent and the heap agent).
 */
#ifndef TOOLS_RECORD_AGENT_SHARED_MEMORY_H
#define TOOLS_RECORD_AGENT_SHARED_MEMORY_H

#include <stdint.h>

#include "tools/inject/protocol.h"

/**
 * struct shared_memory - a memfd of a fixed size
 * @fd: its file descriptor, or -1.
 * @cookie: a random number that whoever opens the memory must know.
 * @env: value of the environment variable that tells where the memory is.
 */
struct shared_memory {
	int fd;
	uint64_t cookie;
	char env[96];
};

/**
 * shared_memory_create() - make the memory, which takes no room until it is written
 * @name: its name as /proc/PID/maps shows it.
 * @size: its size in bytes. No process can change that.
 * @ret: receives the memory. shared_memory_destroy() must follow, also after a failure.
 *
 * Return: 0 or a negative errno.
 */
int shared_memory_create(const char *name, uint64_t size, struct shared_memory *ret);

void shared_memory_destroy(struct shared_memory *memory);

/* Returns how many bytes of the memory were written. */
uint64_t shared_memory_filled(const struct shared_memory *memory);

/*
 * Copies the name of a thread, REC_COMM bytes that may hold anything, so that it ends with a 0 and
 * has no control characters. @from may be @name.
 */
void shared_memory_name(char name[REC_COMM], const char *from);

#endif
