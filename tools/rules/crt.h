/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crt.h - makes rules for the code that the compiler's start files put into each program and
 * library, and that has no unwind information: _init, _fini, __do_global_dtors_aux and the
 * functions that they call.
 */
#ifndef TOOLS_RULES_CRT_H
#define TOOLS_RULES_CRT_H

#include "libshstk/elf_image.h"

/**
 * struct crt - the file, and the receiver of its rules
 * @img: the file.
 * @described: returns whether anything is known of the code from @start to @end.
 * @add: receives the rules; each is valid from @at up to the next one.
 * @arg: passed to both functions.
 */
struct crt {
	const struct elf_image *img;
	bool (*described)(void *arg, uint64_t start, uint64_t end);
	void (*add)(void *arg, uint64_t at, uint64_t rule);
	void *arg;
};

/**
 * crt_rules() - find the code of the start files, and what its frames are like
 * @crt: the file and the receiver.
 *
 * The code is found by DT_INIT, DT_FINI and the first entries of the init and fini arrays. It is
 * read instruction by instruction. Only those instructions are known that this code consists of. If
 * there is another one, or if a jump would meet a frame of another size, no rule is made for that
 * function.
 */
void crt_rules(const struct crt *crt);

#endif
