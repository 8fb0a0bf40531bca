/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory.h - the memory that `shstk record` shares with what it preloads.
 */
#ifndef TOOLS_RECORD_AGENT_MEMORY_H
#define TOOLS_RECORD_AGENT_MEMORY_H

#include <stdint.h>

#include "tools/inject/protocol.h"

/**
 * struct memory - a memfd of a fixed size
 * @fd: it, or -1.
 * @cookie: random; whoever opens it must know it.
 * @env: value of the variable in the environment that tells where it is.
 */
struct memory {
	int fd;
	uint64_t cookie;
	char env[96];
};

/**
 * memory_create() - make it; it takes no room until it is written
 * @name: as /proc/PID/maps shows it.
 * @size: in bytes. No process that has it can change that.
 * @ret: receives it; give it to memory_destroy(), also after a failure.
 *
 * Return: 0 or a negative errno.
 */
int memory_create(const char *name, uint64_t size, struct memory *ret);

void memory_destroy(struct memory *memory);

/* Bytes of it that were written. */
uint64_t memory_filled(const struct memory *memory);

/*
 * Copies the name of a thread, REC_COMM bytes that may be anything, so that it ends, and has
 * no control characters. @from may be @name.
 */
void memory_name(char name[REC_COMM], const char *from);

#endif
