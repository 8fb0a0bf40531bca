/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * resolve.h - finds addresses of kernel functions that are not exported.
 *
 * On x86 the kernel removes the ENDBR instruction from functions that it never calls indirectly, so
 * an address found here must not be called through a pointer: with IBT that is fatal. Bind the
 * address to a static call, which patches a direct call instruction.
 */
#ifndef USHSTK_RESOLVE_H
#define USHSTK_RESOLVE_H

#include <linux/kprobes.h>
#include <linux/static_call.h>

/**
 * ushstk_resolve_text() - find a function of the kernel
 * @symbol: name of the function.
 *
 * Context: process context, sleeps.
 *
 * Return: the address behind the function's ENDBR instruction, or NULL.
 */
static inline void *ushstk_resolve_text(const char *symbol)
{
	/* The probe is disabled: the function is only looked up, nothing is patched. */
	struct kprobe kp = {
		.symbol_name = symbol,
		.flags = KPROBE_FLAG_DISABLED,
	};

	if (register_kprobe(&kp))
		return NULL;
	unregister_kprobe(&kp);
	return kp.addr;
}

#endif /* USHSTK_RESOLVE_H */
