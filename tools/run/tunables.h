/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tunables.h - reads what the environment tells glibc by GLIBC_TUNABLES.
 */
#ifndef TOOLS_RUN_TUNABLES_H
#define TOOLS_RUN_TUNABLES_H

/**
 * tunable_find() - get the value of a tunable
 * @name: its name, such as "glibc.cpu.hwcaps". If it is given more than once, the last one counts.
 * @len: receives the bytes of the value.
 *
 * Return: the value, which is not terminated; "" if it is not given.
 */
const char *tunable_find(const char *name, int *len);

#endif
