/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* loads.h - tells whether a library was loaded, without taking the loader's lock. */
#ifndef SHSTK_LOADS_H
#define SHSTK_LOADS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * shstk_loads() - get a number that changes whenever a library is loaded
 * @ret: receives the number.
 *
 * Context: async-signal-safe, also in the child of a fork() of a process with threads.
 *
 * Return: true, or false if the loader does not tell without its lock.
 */
bool shstk_loads(uint64_t *ret);

#endif
