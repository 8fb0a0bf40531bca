// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * data_bytes.c - reads bytes of a perf.data file at any position, or in order through a window. See
 * data_private.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/perf/data_private.h"

int perfdata_fail(struct perfdata_file *f, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->why->text, sizeof(f->why->text), fmt, ap);
	va_end(ap);
	return err;
}

bool perfdata_read_at(const struct perfdata_file *f, uint64_t offset, void *buf, size_t len)
{
	uint8_t *to = buf;

	if (offset > f->size || len > f->size - offset)
		return false;
	while (len) {
		ssize_t n = pread(f->fd, to, len, offset);

		if (n <= 0)
			return false;
		to += n;
		offset += n;
		len -= n;
	}
	return true;
}

bool perfdata_read_next(struct perfdata_file *f, uint64_t offset, void *buf, size_t len)
{
	if (offset < f->window_at || offset + len > f->window_at + f->window_size) {
		size_t want = f->size - offset < PERFDATA_WINDOW ? f->size - offset :
								   PERFDATA_WINDOW;

		if (offset > f->size || len > want || !perfdata_read_at(f, offset, f->window, want))
			return false;
		f->window_at = offset;
		f->window_size = want;
	}
	memcpy(buf, f->window + (offset - f->window_at), len);
	return true;
}
