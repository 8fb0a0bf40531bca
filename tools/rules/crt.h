/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crt.h - rules for the code that the compiler's start files put into each program and
 * library, and that nothing describes: _init, _fini, __do_global_dtors_aux and what these
 * call.
 */
#ifndef TOOLS_RULES_CRT_H
#define TOOLS_RULES_CRT_H

#include "libshstk/elf_image.h"

/**
 * struct crt - who wants to know
 * @img: the file.
 * @described: is something known of the code from @start to @end?
 * @add: receives rules, each for what follows @at up to the next one.
 * @arg: passed to both.
 */
struct crt {
	const struct elf_image *img;
	bool (*described)(void *arg, uint64_t start, uint64_t end);
	void (*add)(void *arg, uint64_t at, uint64_t rule);
	void *arg;
};

/**
 * crt_rules() - find that code, and what its frames are like
 * @crt: the file, and who wants to know.
 *
 * It is found by DT_INIT, DT_FINI and the first entries of the arrays of these. It is
 * read instruction by instruction, of which only those are known that such code consists
 * of; where another one comes, or a jump would meet a frame of another size, nothing is
 * said of that function.
 */
void crt_rules(const struct crt *crt);

#endif
