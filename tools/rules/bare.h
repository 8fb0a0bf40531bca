/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bare.h - rules for an image that describes nothing: arm64's vdso.
 */
#ifndef TOOLS_RULES_BARE_H
#define TOOLS_RULES_BARE_H

#include "libshstk/elf_image.h"

/**
 * struct bare - who wants to know
 * @img: the image.
 * @add: receives rules, each for what follows @at up to the next one, in order.
 * @arg: passed to it.
 */
struct bare {
	const struct elf_image *img;
	void (*add)(void *arg, uint64_t at, uint64_t rule);
	void *arg;
};

/**
 * bare_rules() - find what signal handlers return to and, in a small image for arm64, the
 * frames of its functions
 * @bare: the image, and who wants to know.
 *
 * From each instruction the code is followed to the nearest return, which says where the
 * stack pointer, the frame pointer and the return address are (libshstk/epilogue.h).
 */
void bare_rules(const struct bare *bare);

#endif
