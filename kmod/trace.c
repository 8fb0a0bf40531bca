// SPDX-License-Identifier: GPL-2.0-only
/*
 * trace.c - makes the trace events of trace.h.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
