/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * message.h - what a crash handler tells `shstk crash --caught`, which it starts.
 *
 * One message is sent by a socket that is the command's standard input. When the report is written,
 * the command answers with CRASH_ANSWER. If it ends without an answer, there is no report.
 */
#ifndef LIBSHSTK_CRASH_MESSAGE_H
#define LIBSHSTK_CRASH_MESSAGE_H

#include <stdint.h>

#include "libshstk/shstk.h"

#define CRASH_MESSAGE_MAGIC 0x31746867756163ull /* "caught1" */
#define CRASH_ANSWER 'r'

/**
 * struct crash_message - a signal that a thread received, and its registers at that moment
 * @magic: CRASH_MESSAGE_MAGIC; another layout has another one.
 * @tid: the thread, in the process's own PID namespace.
 * @signo: number of the signal.
 * @code: si_code, which tells where the signal came from.
 * @sender: process that sent it; valid if @code is not positive.
 * @addr: address of a fault; valid if @code is positive.
 * @regs: the registers. @regs.size is set, too.
 */
struct crash_message {
	uint64_t magic;
	int32_t tid;
	int32_t signo;
	int32_t code;
	int32_t sender;
	uint64_t addr;
	struct shstk_regs regs;
};

#endif
