// SPDX-License-Identifier: GPL-2.0-only
/*
 * native.bpf.c - as language.bpf.c, and reads frames that lie on the native stack, too (native.h).
 *
 * It is a program of its own because it is large: where the kernel's verifier refuses it, as that of
 * Linux 6.1 does, the other one still reads the frames of interpreters. It runs behind the one that walks
 * stacks, or that one, if there is one.
 */
#define LANGUAGE_NATIVE
#include "language.bpf.c"
