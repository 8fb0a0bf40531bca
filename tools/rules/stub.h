/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stub.h - makes rules for the linker's stubs on arm64.
 *
 * On x86-64 linkers describe the entries of a PLT; on arm64 nobody does. The ABI (AAELF64) fixes
 * their code, so it can be recognized.
 */
#ifndef TOOLS_RULES_STUB_H
#define TOOLS_RULES_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct stubs - code in which there may be stubs
 * @code: bytes of the code.
 * @size: number of bytes.
 * @add: receives a rule that is valid from an offset in @code on.
 * @arg: passed to @add.
 */
struct stubs {
	const uint8_t *code;
	size_t size;
	void (*add)(void *arg, size_t offset, uint64_t rule);
	void *arg;
};

/* Finds the stubs in the code, and passes their rules to @s->add. */
void stub_rules_arm64(const struct stubs *s);

#endif
