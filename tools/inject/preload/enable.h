/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * enable.h - enables shadow stacks on x86. Both start-up objects do this in the frame of
 * __libc_start_main(), which never returns.
 */
#ifndef PRELOAD_ENABLE_H
#define PRELOAD_ENABLE_H

#include "start.h"

#define ARCH_SHSTK_ENABLE 0x5001
#define ARCH_SHSTK_LOCK 0x5003
#define ARCH_SHSTK_SHSTK 1
#define ARCH_SHSTK_WRSS 2

typedef int (*start_fn)(int (*)(int, char **, char **), int, char **, void (*)(void),
			void (*)(void), void (*)(void), void *);

static __attribute__((always_inline)) inline long start_arch_prctl(long op, long arg)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(SYS_arch_prctl), "D"(op), "S"(arg)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Enables the shadow stack. If it returns 0, the caller must not return from its frame any more. */
static __attribute__((always_inline)) inline long start_switch_on(void)
{
	long err = start_arch_prctl(ARCH_SHSTK_ENABLE, ARCH_SHSTK_SHSTK);

	if (!err && start_settings.lock)
		err = start_arch_prctl(ARCH_SHSTK_LOCK, start_settings.permissive ?
								ARCH_SHSTK_SHSTK :
								ARCH_SHSTK_SHSTK | ARCH_SHSTK_WRSS);
	return err;
}

/* Reports the result, and ends a program that must not run without a shadow stack. */
void start_switched(long err) HIDDEN;

#endif
