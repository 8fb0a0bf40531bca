/* SPDX-License-Identifier: GPL-2.0-or-later */
/* jvm.h - a heap of code, described as HotSpot describes its own. For jit.c. */
#ifndef SELFTESTS_RECORD_JVM_H
#define SELFTESTS_RECORD_JVM_H

#include <stddef.h>
#include <stdint.h>

/* The heap is these bytes. */
void jvm_open(uint8_t *code, size_t size);

/**
 * jvm_add() - a piece of code
 * @name: HotSpot's own name for it.
 * @method: the name of its method, of class "tests/Made"; or NULL: it is none.
 * @room: bytes for it.
 *
 * Return: where it goes, for jvm_describe(); NULL: the heap is full.
 */
uint8_t *jvm_add(const char *name, const char *method, size_t room);

/* It makes a frame of @words words; @ready bytes of code make it. */
void jvm_describe(uint8_t *code, int words, size_t ready);

#endif
