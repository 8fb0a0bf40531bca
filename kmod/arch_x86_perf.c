// SPDX-License-Identifier: GPL-2.0-only
/*
 * arch_x86_perf.c - arch_x86.c compiled a second time, for shstk_perf.ko, because Kbuild allows
 * each object file in one module only.
 */
#include "arch_x86.c"
