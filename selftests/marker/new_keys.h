/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * new_keys.h - other keys for signatures of return addresses.
 *
 * On arm64, a return address whose signature is zero, or the same with both keys, can't have a marker:
 * one in 64 places of a program, other ones with other keys. A test that needs a marker in a certain
 * place, such as the frame that is marked first, makes new keys there.
 */
#ifndef SELFTESTS_MARKER_NEW_KEYS_H
#define SELFTESTS_MARKER_NEW_KEYS_H

/*
 * Makes new keys. Nobody may return who has signed with the old ones: the function that calls this,
 * main(), ends the program by exit().
 */
static inline __attribute__((always_inline)) void make_new_keys()
{
#ifdef __aarch64__
	register long call __asm__("x8") = 167; /* prctl */
	register long ret __asm__("x0") = 54; /* PR_PAC_RESET_KEYS */
	register long x1 __asm__("x1") = 0;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;

	__asm__ volatile("svc #0"
			 : "+r"(ret)
			 : "r"(call), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
#endif
}

#endif
