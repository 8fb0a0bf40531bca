/* SPDX-License-Identifier: GPL-2.0-or-later */
/* traced.h - makes a child that its parent traces and that the agent samples all the same. */
#ifndef SELFTESTS_RECORD_TRACED_H
#define SELFTESTS_RECORD_TRACED_H

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Asks to be traced without the C library: the agent leaves processes alone that ask by it. */
static inline void be_traced(void)
{
	long ret;

#ifdef __x86_64__
	register long nothing __asm__("r10") = 0;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"((long)SYS_ptrace), "D"((long)PTRACE_TRACEME), "S"(0L), "d"(0L),
			   "r"(nothing)
			 : "rcx", "r11", "memory");
#else
	ret = ptrace(PTRACE_TRACEME, 0, NULL, NULL);
#endif
	if (ret)
		_exit(1);
}

#endif
