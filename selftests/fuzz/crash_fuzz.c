// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash_fuzz.c - the beginning of a core file from a pipe: whatever comes, all that was read is kept
 * as it was, and not more is read than the end of the notes asks for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/crash/crash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int in = memfd_create("pipe", MFD_CLOEXEC);
	struct crash_head head;
	struct reason why;
	uint8_t *kept;

	if (in < 0 || write(in, data, size) != (ssize_t)size || lseek(in, 0, SEEK_SET))
		abort();
	if (crash_read_head(in, &head, &why) && !memchr(why.text, '\0', sizeof(why.text)))
		abort();
	kept = malloc(size + 1);
	if (head.size > size || !kept || pread(head.fd, kept, size + 1, 0) != (ssize_t)head.size ||
	    memcmp(kept, data, head.size) || lseek(in, 0, SEEK_CUR) != (off_t)head.size)
		abort();
	free(kept);
	close(head.fd);
	close(in);
	return 0;
}
