// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * golang_fuzz.c - ELF files of which it is asked whether Go made them: in memory, as the process asks
 * that makes tables, and open, as the recorder asks of the program that it starts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/elf/golang.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(enum golang_kind kind)
{
	if (kind != GOLANG_NONE && kind != GOLANG_ALONE && kind != GOLANG_WITH_C)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int fd = memfd_create("program", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	check(golang_kind_of(data, size));
	check(golang_kind(fd));
	close(fd);
	return 0;
}
