/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vdso.h - reads whether the running kernel's vDSO is marked for shadow stacks.
 */
#ifndef TOOLS_CHECK_VDSO_H
#define TOOLS_CHECK_VDSO_H

enum vdso_mark {
	VDSO_NONE, /* there is none, or its mark does not matter on this machine */
	VDSO_MARKED,
	VDSO_UNMARKED,
};

/*
 * Returns the mark of the vDSO. On x86, a C library that looks at everything that is mapped when a
 * program starts does not enable shadow stacks if the vDSO is not marked, whatever the program is.
 * Linux marks the vDSO only since some years after it got shadow stacks.
 */
enum vdso_mark vdso_mark(void);

#endif
