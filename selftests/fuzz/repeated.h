/* SPDX-License-Identifier: GPL-2.0-or-later */
/* repeated.h - a memory in which the bytes of an input stand again and again. */
#ifndef SELFTESTS_FUZZ_REPEATED_H
#define SELFTESTS_FUZZ_REPEATED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copies @size bytes at address @addr of a memory that consists of @bytes, @nr of them, over and over. */
static inline void copy_repeated(const uint8_t *bytes, size_t nr, uint64_t addr, void *buf,
				 size_t size)
{
	for (size_t done = 0, n; done < size; done += n) {
		const size_t at = (addr + done) % nr;

		n = nr - at < size - done ? nr - at : size - done;
		memcpy((uint8_t *)buf + done, bytes + at, n);
	}
}

#endif
