/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * place.h - functions of which a test knows the first and the last byte
 *
 * Each is alone in a section of its own. A bound that is only not smaller than the function would
 * take in the beginning of whatever the compiler puts behind it.
 */
#ifndef SELFTESTS_PLACE_H
#define SELFTESTS_PLACE_H

#include <stdint.h>

#define PLACE(name) extern const char __start_in_##name[], __stop_in_##name[]
#define in_(name) __attribute__((noinline, noclone, section("in_" #name)))
#define is_in(name, ip) ((ip) >= (uint64_t)__start_in_##name && (ip) < (uint64_t)__stop_in_##name)

#endif
