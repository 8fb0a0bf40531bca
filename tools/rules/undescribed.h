/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * undescribed.h - makes rules for an image that has no unwind information, such as the vdso of
 * arm64.
 */
#ifndef TOOLS_RULES_UNDESCRIBED_H
#define TOOLS_RULES_UNDESCRIBED_H

#include "libshstk/elf_image.h"

/**
 * struct undescribed - the image, and the receiver of its rules
 * @img: the image.
 * @add: receives the rules in order; each rule is valid from @at up to the next one.
 * @arg: passed to @add.
 */
struct undescribed {
	const struct elf_image *img;
	void (*add)(void *arg, uint64_t at, uint64_t rule);
	void *arg;
};

/**
 * undescribed_rules() - find the code to which signal handlers return and, in a small image for
 * arm64, the frames of its functions
 * @search: the image and the receiver.
 *
 * From each instruction the code is followed to the nearest return, which shows where the stack
 * pointer, the frame pointer and the return address are (libshstk/epilogue.h).
 */
void undescribed_rules(const struct undescribed *search);

#endif
