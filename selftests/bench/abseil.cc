/* SPDX-License-Identifier: GPL-2.0-or-later */
/* abseil.cc - abseil's GetStackTrace() for source.c, because it has no C interface. */

#include <cstdint>

#include <absl/debugging/stacktrace.h>

extern "C" int abseil_capture(uint64_t *pcs, int max)
{
	return absl::GetStackTrace(reinterpret_cast<void **>(pcs), max, 0);
}
