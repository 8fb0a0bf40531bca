/* SPDX-License-Identifier: GPL-2.0-or-later */
/* jvm.h - a heap of code that is described as HotSpot describes its own; for jit.c. */
#ifndef SELFTESTS_RECORD_JVM_H
#define SELFTESTS_RECORD_JVM_H

#include <stddef.h>
#include <stdint.h>

/* Makes these bytes the heap. */
void jvm_open(uint8_t *code, size_t size);

/**
 * jvm_add() - add a piece of code
 * @name: HotSpot's own name for it.
 * @method: name of its method, in class "tests/Made"; NULL if it is no method.
 * @room: bytes for it.
 *
 * Return: the place for the code, also for jvm_describe(); NULL if the heap is full.
 */
uint8_t *jvm_add(const char *name, const char *method, size_t room);

/* Says that the code makes a frame of @words words, in its first @ready bytes. */
void jvm_describe(uint8_t *code, int words, size_t ready);

#endif
