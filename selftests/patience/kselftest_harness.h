/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kselftest_harness.h - the kernel's, found behind this one, with more patience.
 *
 * A test that takes longer is killed. Thirty seconds of wall time, as it is
 * there, may pass on a busy machine; selftests/run ends a program that prints
 * nothing for 1200.
 */
#include_next "kselftest_harness.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 900
