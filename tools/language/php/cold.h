/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cold.h - the part of a function that the compiler put elsewhere, as it is executed rarely. */
#ifndef TOOLS_LANGUAGE_PHP_COLD_H
#define TOOLS_LANGUAGE_PHP_COLD_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#define PHP_COLD_BYTES (17u << 20) /* memory that is taken at most */

/**
 * php_cold_part() - find the other part of a function
 * @elf: the file.
 * @start: value of the function's symbol.
 * @size: its size.
 * @cold_start: receives the address of the other part, as @start is one.
 * @cold_end: receives the first address behind it.
 *
 * No symbol tells where it is. It is what conditional jumps of the function lead to, and it has an
 * entry of its own in .eh_frame.
 *
 * Return: false if there is none.
 */
bool php_cold_part(Elf *elf, uint64_t start, uint64_t size, uint64_t *cold_start,
		   uint64_t *cold_end);

#endif
