/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vdso.h - is the running kernel's vDSO marked for shadow stacks?
 */
#ifndef TOOLS_CHECK_VDSO_H
#define TOOLS_CHECK_VDSO_H

enum vdso_mark {
	VDSO_NONE, /* there is none, or its mark does not matter on this machine */
	VDSO_MARKED,
	VDSO_UNMARKED,
};

/*
 * x86: a C library that looks at all that is mapped when a program begins switches nothing on if
 * the vDSO is without the mark, whatever the program is. Linux gave it the mark years after
 * shadow stacks.
 */
enum vdso_mark vdso_mark(void);

#endif
