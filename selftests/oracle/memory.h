/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory.h - a program's memory, cached between stops; see memory.c.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef uint64_t u64;

struct memory;
struct memory *memory_create(pid_t pid);
void memory_destroy(struct memory *m);
void memory_flush(struct memory *m);
void memory_written(struct memory *m, u64 addr, size_t len);
int memory_read(void *memory, u64 addr, void *buf, size_t len);

#endif /* MEMORY_H */
