/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * loads.h - has anything been loaded? Without the loader's lock.
 */
#ifndef SHSTK_LOADS_H
#define SHSTK_LOADS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * shstk_loads() - a number that differs once a library was loaded
 * @ret: the number.
 *
 * Async-signal-safe, in the child of a fork() of a process with threads too.
 *
 * Return: false: the loader does not tell without its lock.
 */
bool shstk_loads(uint64_t *ret);

#endif
