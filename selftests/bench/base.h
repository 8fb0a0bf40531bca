/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base.h - calls a function with a frame pointer of zero; see base.c. */
#ifndef BENCH_BASE_H
#define BENCH_BASE_H

/* Calls @fn(@arg) with the frame pointer register set to zero. */
void base_call(void (*fn)(void *arg), void *arg);

#endif
