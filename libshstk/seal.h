/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seal.h - prepares captures in a process that will forbid itself system calls.
 */
#ifndef SHSTK_SEAL_H
#define SHSTK_SEAL_H

#include <stdint.h>

/**
 * shstk_meet() - look up the module that is mapped at an address
 * @addr: an address in an executable mapping.
 *
 * Captures then know the module without a system call.
 */
void shstk_meet(uint64_t addr);

/**
 * shstk_seal() - make captures without SHSTK_CHECK_STACK work without system calls from now on
 *
 * What is not known by then stays unknown. A thread that has not captured before can't capture.
 * Code that no capture has met is guessed, or ends the trace. Of a stack that no capture has met,
 * only the page of the stack pointer is known, except for the first thread's stack. The call
 * can't be undone.
 */
void shstk_seal(void);

#endif
