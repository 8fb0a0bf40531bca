/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stub.h - rules for the linker's stubs on arm64.
 *
 * On x86-64 linkers describe the entries of a PLT; on arm64 nobody does. Their code is
 * given by the ABI (AAELF64), so it is recognized.
 */
#ifndef TOOLS_RULES_STUB_H
#define TOOLS_RULES_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct stubs - code in which there may be stubs
 * @code: its bytes.
 * @size: number of bytes.
 * @add: told that from an offset in @code on a rule holds.
 * @arg: for @add.
 */
struct stubs {
	const uint8_t *code;
	size_t size;
	void (*add)(void *arg, size_t offset, uint64_t rule);
	void *arg;
};

void stub_rules_arm64(const struct stubs *s);

#endif
