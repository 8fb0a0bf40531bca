/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - the generic calls that control and map shadow stacks, in one list for all
 * architectures: arm64 implements them natively, on x86 shstk_prctl.ko does
 *
 * ../facts/control_test.c includes this file. The list follows what upstream's arm64 selftests
 * (basic-gcs, libc-gcs, gcs-locking) check about status, locking and mapping. A few macros below
 * express the differences between the hardware.
 */
#include "linux/shstk.h"

#define GET(answer, out)                                                     \
	{                                                                    \
		__NR_prctl, { PR_GET_SHADOW_STACK_STATUS, OUT }, answer, out \
	}
#define SET(bits, answer)                                                   \
	{                                                                   \
		__NR_prctl, { PR_SET_SHADOW_STACK_STATUS, bits }, answer, 0 \
	}
#define LOCK(bits)                                                      \
	{                                                               \
		__NR_prctl, { PR_LOCK_SHADOW_STACK_STATUS, bits }, 0, 0 \
	}
#define GET_EXTRA(a, b, c)                                                              \
	{                                                                               \
		__NR_prctl, { PR_GET_SHADOW_STACK_STATUS, OUT, a, b, c }, -EINVAL, ~0UL \
	}
#define CALL(option, a, b, c, d, answer)                      \
	{                                                     \
		__NR_prctl, { option, a, b, c, d }, answer, 0 \
	}

#define ENABLE PR_SHADOW_STACK_ENABLE
#define WRITE PR_SHADOW_STACK_WRITE
#define PUSH PR_SHADOW_STACK_PUSH
#define TOKEN SHADOW_STACK_SET_TOKEN
#define MARKER SHADOW_STACK_SET_MARKER

#ifdef __x86_64__
#define PUSH_ANSWER (-EINVAL) /* there is no such instruction */
#define WRITE_ALONE (-EINVAL) /* WRSS needs the stack to be on */
#define ENABLE_AGAIN 0
#else
#define PUSH_ANSWER 0
#define WRITE_ALONE 0
#define ENABLE_AGAIN (-EINVAL) /* after it is off, GCS stays off */
#endif

/* Each fact has a name and then its calls, one per line. */
/* clang-format off */
static const struct fact facts[] = {
	{ "status is 0 before anything is enabled", {
		GET(0, 0),
	} },
	{ "status is written to the given address only", {
		CALL(PR_GET_SHADOW_STACK_STATUS, 8, 0, 0, 0, -EFAULT),
		CALL(PR_GET_SHADOW_STACK_STATUS, 0, 0, 0, 0, -EFAULT),
	} },
	{ "get refuses a third argument", {
		GET_EXTRA(1, 0, 0),
	} },
	{ "get refuses a fourth argument", {
		GET_EXTRA(0, 1, 0),
	} },
	{ "get refuses a fifth argument", {
		GET_EXTRA(0, 0, 1),
	} },
	{ "set refuses a third argument", {
		CALL(PR_SET_SHADOW_STACK_STATUS, ENABLE, 1, 0, 0, -EINVAL),
		GET(0, 0),
	} },
	{ "set refuses a fourth argument", {
		CALL(PR_SET_SHADOW_STACK_STATUS, ENABLE, 0, 1, 0, -EINVAL),
		GET(0, 0),
	} },
	{ "set refuses a fifth argument", {
		CALL(PR_SET_SHADOW_STACK_STATUS, ENABLE, 0, 0, 1, -EINVAL),
		GET(0, 0),
	} },
	{ "lock refuses a third argument", {
		CALL(PR_LOCK_SHADOW_STACK_STATUS, ENABLE, 1, 0, 0, -EINVAL),
		SET(ENABLE, 0),
	} },
	{ "lock refuses a fifth argument", {
		CALL(PR_LOCK_SHADOW_STACK_STATUS, ENABLE, 0, 0, 1, -EINVAL),
		SET(ENABLE, 0),
	} },
	{ "set refuses unknown bits", {
		SET(1UL << 3, -EINVAL),
		SET(1UL << 63, -EINVAL),
		SET(ENABLE | 1UL << 31, -EINVAL),
		SET(~0UL, -EINVAL),
		GET(0, 0),
	} },
	{ "setting 0 while off changes nothing", {
		SET(0, 0),
		GET(0, 0),
		SET(ENABLE, 0),
		GET(0, ENABLE),
	} },
	{ "enable", {
		SET(ENABLE, 0),
		GET(0, ENABLE),
	} },
	{ "enable twice is one", {
		SET(ENABLE, 0),
		SET(ENABLE, 0),
		GET(0, ENABLE),
	} },
	{ "enable with writing", {
		SET(ENABLE | WRITE, 0),
		GET(0, ENABLE | WRITE),
	} },
	{ "writing can be added and taken away", {
		SET(ENABLE, 0),
		SET(ENABLE | WRITE, 0),
		GET(0, ENABLE | WRITE),
		SET(ENABLE, 0),
		GET(0, ENABLE),
	} },
	{ "writing without a stack, as the architecture has it", {
		SET(WRITE, WRITE_ALONE),
		GET(0, WRITE_ALONE ? 0 : WRITE),
	} },
	{ "pushing, as the architecture has it", {
		SET(ENABLE | PUSH, PUSH_ANSWER),
		GET(0, PUSH_ANSWER ? 0 : ENABLE | PUSH),
	} },
	{ "disable", {
		SET(ENABLE, 0),
		SET(0, 0),
		GET(0, 0),
	} },
	{ "disable takes writing away", {
		SET(ENABLE | WRITE, 0),
		SET(0, 0),
		GET(0, 0),
	} },
	{ "enable after disable, as the architecture has it", {
		SET(ENABLE, 0),
		SET(0, 0),
		SET(ENABLE, ENABLE_AGAIN),
		GET(0, ENABLE_AGAIN ? 0 : ENABLE),
	} },
	{ "a locked stack cannot be disabled", {
		SET(ENABLE, 0),
		LOCK(ENABLE),
		SET(0, -EBUSY),
		GET(0, ENABLE),
	} },
	{ "a locked off stack cannot be enabled", {
		LOCK(ENABLE),
		SET(ENABLE, -EBUSY),
		GET(0, 0),
	} },
	{ "setting the same status while locked is no change", {
		SET(ENABLE | WRITE, 0),
		LOCK(~0UL),
		SET(ENABLE | WRITE, 0),
		GET(0, ENABLE | WRITE),
	} },
	{ "a lock leaves other bits alone", {
		SET(ENABLE, 0),
		LOCK(ENABLE),
		SET(ENABLE | WRITE, 0),
		SET(ENABLE, 0),
		SET(0, -EBUSY),
		GET(0, ENABLE),
	} },
	{ "locked writing cannot be added", {
		SET(ENABLE, 0),
		LOCK(WRITE),
		SET(ENABLE | WRITE, -EBUSY),
		GET(0, ENABLE),
	} },
	{ "locked writing cannot be taken away, alone or with the stack", {
		SET(ENABLE | WRITE, 0),
		LOCK(WRITE),
		SET(ENABLE, -EBUSY),
		SET(0, -EBUSY),
		GET(0, ENABLE | WRITE),
	} },
	{ "locks add up", {
		SET(ENABLE, 0),
		LOCK(ENABLE),
		LOCK(WRITE),
		LOCK(0),
		SET(ENABLE | WRITE, -EBUSY),
		SET(0, -EBUSY),
		GET(0, ENABLE),
	} },
	{ "unknown bits can be locked", {
		LOCK(1UL << 40),
		SET(ENABLE, 0),
		GET(0, ENABLE),
	} },
	{ "unknown bits are refused before locks are looked at", {
		SET(ENABLE, 0),
		LOCK(~0UL),
		SET(1UL << 5, -EINVAL),
		GET(0, ENABLE),
	} },
	{ "other prctls answer as ever", {
		CALL(15 /* PR_SET_NAME */, 8, 0, 0, 0, -EFAULT),
		CALL(73, 0, 0, 0, 0, -EINVAL),
		CALL(0x7fff0000, 0, 0, 0, 0, -EINVAL),
	} },
	{ "map a stack: plain, with token, with marker, with both", {
		MAP(0, 0x4000, 0, AN_ADDRESS),
		MAP(0, 0x4000, TOKEN, AN_ADDRESS),
		MAP(0, 0x4000, MARKER, AN_ADDRESS),
		MAP(0, 0x4000, TOKEN | MARKER, AN_ADDRESS),
	} },
	{ "map refuses unknown flags", {
		MAP(0, 0x4000, 1UL << 2, -EINVAL),
		MAP(0, 0x4000, MARKER | 1UL << 2, -EINVAL),
		MAP(0, 0x4000, TOKEN | MARKER | 1UL << 31, -EINVAL),
	} },
	{ "map with marker refuses odd sizes", {
		MAP(0, 8, TOKEN | MARKER, -EINVAL),
		MAP(0, 0x1001, TOKEN | MARKER, -EINVAL),
		MAP(0, 0x1004, MARKER, -EINVAL),
		MAP(0, 0, TOKEN | MARKER, -EINVAL),
	} },
	{ "map with marker refuses sizes that overflow", {
		MAP(0, -8UL, TOKEN | MARKER, -EOVERFLOW),
		MAP(0, -0xff8UL, TOKEN | MARKER, -EOVERFLOW),
	} },
	{ "map with marker refuses an address within a page", {
		MAP(0x7000000008UL, 0x1000, TOKEN | MARKER, -EINVAL),
	} },
	{ "map with marker at a given address", {
		MAP(0x7000000000UL, 0x1000, TOKEN | MARKER, AN_ADDRESS),
		MAP(0x7000000000UL, 0x1000, TOKEN | MARKER, -EEXIST),
	} },
};
/* clang-format on */
