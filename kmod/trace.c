// SPDX-License-Identifier: GPL-2.0-only
/*
 * trace.c - creates the trace events that trace.h defines.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
