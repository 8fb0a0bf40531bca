// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * functions.c - an object of 8 functions of 16 bytes each, which are never called; see replaced.c.
 * SHIFT, a number of bytes, lies before the first one.
 */
#define TEXT(x) #x
#define SKIP(x) ".skip " TEXT(x) "\n"

asm(".text\n"
    ".balign 64\n" SKIP(SHIFT) ".globl functions\n"
			       "functions:\n"
			       ".rept 8\n"
			       ".cfi_startproc\n"
			       ".skip 16\n"
			       ".cfi_endproc\n"
			       ".endr\n"
			       ".skip 64\n");
