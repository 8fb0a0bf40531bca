/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - what prctl() and map_shadow_stack() answer on arm64
 *
 * As of 7.2. Lists of steps, see ../control_test.c.
 */
#define TOKEN SS_SET_TOKEN
#define MARKER SS_SET_MARKER
#define ALL (SS_ENABLE | SS_WRITE | SS_PUSH)

/* A fact: its name, then its calls, a line each. */
/* clang-format off */
static const struct fact facts[] = {
	/* ---- Status ---- */
	{ "status is 0 when nothing was enabled", { PR_STATUS(0) } },
	{ "status shows what was set", {
		PR_SET(SS_ENABLE, 0), PR_STATUS(SS_ENABLE),
		PR_SET(SS_ENABLE | SS_WRITE, 0), PR_STATUS(SS_ENABLE | SS_WRITE),
		PR_SET(ALL, 0), PR_STATUS(ALL),
		PR_SET(SS_ENABLE | SS_PUSH, 0), PR_STATUS(SS_ENABLE | SS_PUSH) } },
	{ "status to a bad address is EFAULT", {
		PRCTL(SS_PR_GET, 8, -EFAULT) } },
	{ "status does not show the lock", { PR_LOCK(~0UL, 0), PR_STATUS(0) } },
	{ "arguments that are not used must be 0: EINVAL", {
		PR_EXTRA(SS_PR_GET, OUT, 1, 0, 0),
		PR_EXTRA(SS_PR_GET, OUT, 0, 1, 0),
		PR_EXTRA(SS_PR_GET, OUT, 0, 0, 1),
		PR_EXTRA(SS_PR_SET, SS_ENABLE, 1, 0, 0),
		PR_EXTRA(SS_PR_SET, SS_ENABLE, 0, 1, 0),
		PR_EXTRA(SS_PR_SET, SS_ENABLE, 0, 0, 1),
		PR_EXTRA(SS_PR_LOCK, 0, 1, 0, 0),
		PR_EXTRA(SS_PR_LOCK, 0, 0, 1, 0),
		PR_EXTRA(SS_PR_LOCK, 0, 0, 0, 1), PR_STATUS(0) } },

	/* ---- Enable and disable ---- */
	{ "enabling twice is 0", {
		PR_SET(SS_ENABLE, 0), PR_SET(SS_ENABLE, 0), PR_STATUS(SS_ENABLE) } },
	{ "all features can be enabled in one call", {
		PR_SET(ALL, 0), PR_STATUS(ALL) } },
	{ "an unknown feature is EINVAL", {
		PR_SET(1UL << 3, -EINVAL), PR_SET(SS_ENABLE | 1UL << 63, -EINVAL),
		PR_STATUS(0) } },
	{ "permissions can be set with the shadow stack off", {
		PR_SET(SS_WRITE, 0), PR_STATUS(SS_WRITE),
		PR_SET(SS_PUSH, 0), PR_STATUS(SS_PUSH) } },
	{ "setting 0 when off is 0", { PR_SET(0, 0), PR_STATUS(0) } },
	{ "enabling again after disabling is EINVAL", {
		PR_SET(SS_ENABLE, 0), PR_SET(0, 0), PR_STATUS(0),
		PR_SET(SS_ENABLE, -EINVAL), PR_STATUS(0) } },
	{ "permissions can still be set after disabling", {
		PR_SET(SS_ENABLE, 0), PR_SET(0, 0), PR_SET(SS_WRITE, 0),
		PR_STATUS(SS_WRITE) } },

	/* ---- Lock ---- */
	{ "locking the shadow stack while off keeps it off: EBUSY", {
		PR_LOCK(SS_ENABLE, 0), PR_SET(SS_ENABLE, -EBUSY), PR_STATUS(0) } },
	{ "locking the shadow stack while on keeps it on: EBUSY", {
		PR_SET(SS_ENABLE, 0), PR_LOCK(SS_ENABLE, 0), PR_SET(0, -EBUSY),
		PR_STATUS(SS_ENABLE) } },
	{ "a locked feature may be set to what it is", {
		PR_SET(SS_ENABLE, 0), PR_LOCK(SS_ENABLE, 0), PR_SET(SS_ENABLE, 0) } },
	{ "features are locked one by one", {
		PR_SET(SS_ENABLE, 0), PR_LOCK(SS_ENABLE, 0),
		PR_SET(SS_ENABLE | SS_WRITE, 0), PR_LOCK(SS_WRITE, 0),
		PR_SET(SS_ENABLE, -EBUSY), PR_SET(ALL, 0), PR_STATUS(ALL) } },
	{ "any bit can be locked, known or not", {
		PR_LOCK(0, 0), PR_LOCK(~0UL, 0), PR_SET(SS_WRITE, -EBUSY),
		PR_SET(SS_PUSH, -EBUSY), PR_SET(0, 0) } },
	{ "an unknown feature that is locked is still EINVAL", {
		PR_LOCK(~0UL, 0), PR_SET(1UL << 3, -EINVAL) } },

	/* ---- map_shadow_stack() ---- */
	{ "a shadow stack can be mapped while they are off", {
		MAP(0, 4096, 0, AN_ADDRESS), PR_STATUS(0) } },
	{ "mapping with a token, and with token and marker, works", {
		MAP(0, 4096, TOKEN, AN_ADDRESS),
		MAP(0, 4096, TOKEN | MARKER, AN_ADDRESS),
		MAP(0, 16, TOKEN | MARKER, AN_ADDRESS) } },
	{ "a marker without a token is accepted", {
		MAP(0, 4096, MARKER, AN_ADDRESS) } },
	{ "mapping with an unknown flag is EINVAL", {
		MAP(0, 4096, 4, -EINVAL), MAP(0, 4096, 1UL << 31, -EINVAL) } },
	{ "the flags of mapping are 32 bits: higher ones are not seen", {
		MAP(0, 4096, 1UL << 32, AN_ADDRESS) } },
	{ "mapping nothing is EINVAL", {
		MAP(0, 0, 0, -EINVAL), MAP(0, 0, TOKEN, -EINVAL) } },
	{ "mapping a single word is EINVAL, two are enough", {
		MAP(0, 8, 0, -EINVAL), MAP(0, 8, TOKEN, -EINVAL),
		MAP(0, 16, 0, AN_ADDRESS), MAP(0, 16, TOKEN, AN_ADDRESS) } },
	{ "a size off a word boundary is EINVAL", {
		MAP(0, 4097, 0, -EINVAL), MAP(0, 4100, TOKEN, -EINVAL) } },
	{ "mapping below 4 GiB works, and there again is EEXIST", {
		MAP(0x40000000, 4096, 0, 0x40000000),
		MAP(0x40000000, 4096, 0, -EEXIST) } },
	{ "mapping off a page boundary is EINVAL", {
		MAP(0x40000008, 4096, 0, -EINVAL) } },
	{ "a size that overflows is EOVERFLOW", {
		MAP(0, -8UL, 0, -EOVERFLOW), MAP(0, -4088UL, 0, -EOVERFLOW) } },
	{ "a size beyond user space is ENOMEM", {
		MAP(0, -4096UL, 0, -ENOMEM), MAP(0, 1UL << 48, 0, -ENOMEM) } },
};
/* clang-format on */
