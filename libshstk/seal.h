/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seal.h - captures in a process that forbids itself system calls.
 */
#ifndef SHSTK_SEAL_H
#define SHSTK_SEAL_H

#include <stdint.h>

/**
 * shstk_meet() - what is mapped at an address is known from now on
 * @addr: of a mapping that can be executed.
 */
void shstk_meet(uint64_t addr);

/**
 * shstk_seal() - captures without SHSTK_CHECK_STACK ask the kernel for nothing from now on
 *
 * What is not known by then stays so: a thread that has not captured cannot, code that no
 * capture has met is a guess or the end of the trace, and of a stack that none has met, but
 * for the first thread's, the page is known on which it is. There is no way back.
 */
void shstk_seal(void);

#endif
