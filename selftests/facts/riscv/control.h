/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - what prctl() and map_shadow_stack() answer on riscv
 *
 * As of 7.2. Lists of steps, see ../control_test.c.
 */
#define TOKEN SS_SET_TOKEN

/* A fact: its name, then its calls, a line each. */
/* clang-format off */
static const struct fact facts[] = {
	/* ---- Status ---- */
	{ "status is 0 when nothing was enabled", { PR_STATUS(0) } },
	{ "status shows the shadow stack", {
		PR_SET(SS_ENABLE, 0), PR_STATUS(SS_ENABLE) } },
	{ "status to a bad address is EFAULT", {
		PRCTL(SS_PR_GET, 8, -EFAULT) } },
	{ "status does not show the lock", {
		PR_SET(SS_ENABLE, 0), PR_LOCK(0, 0), PR_STATUS(SS_ENABLE) } },
	{ "arguments that are not used must be 0: EINVAL", {
		PR_EXTRA(SS_PR_GET, OUT, 1, 0, 0),
		PR_EXTRA(SS_PR_SET, SS_ENABLE, 0, 1, 0),
		PR_EXTRA(SS_PR_LOCK, 0, 0, 0, 1), PR_STATUS(0) } },

	/* ---- Enable and disable ---- */
	{ "enabling twice is 0", {
		PR_SET(SS_ENABLE, 0), PR_SET(SS_ENABLE, 0), PR_STATUS(SS_ENABLE) } },
	{ "an unknown feature is EINVAL", { PR_SET(1UL << 3, -EINVAL) } },
	{ "there are no write and push permissions to set: EINVAL", {
		PR_SET(SS_ENABLE | 1UL << 1, -EINVAL),
		PR_SET(SS_ENABLE | 1UL << 2, -EINVAL), PR_STATUS(0) } },
	{ "setting 0 when off is 0", { PR_SET(0, 0), PR_STATUS(0) } },
	{ "enabling again after disabling is allowed", {
		PR_SET(SS_ENABLE, 0), PR_SET(0, 0), PR_STATUS(0), PR_SET(SS_ENABLE, 0),
		PR_STATUS(SS_ENABLE) } },

	/* ---- Lock ---- */
	{ "locking while off is EINVAL", {
		PR_LOCK(0, -EINVAL), PR_SET(SS_ENABLE, 0) } },
	{ "locking with an argument is EINVAL", {
		PR_SET(SS_ENABLE, 0), PR_LOCK(SS_ENABLE, -EINVAL), PR_SET(0, 0) } },
	{ "locking while on keeps it on: EINVAL", {
		PR_SET(SS_ENABLE, 0), PR_LOCK(0, 0), PR_SET(0, -EINVAL),
		PR_STATUS(SS_ENABLE) } },
	{ "when locked, even a call that changes nothing is EINVAL", {
		PR_SET(SS_ENABLE, 0), PR_LOCK(0, 0), PR_SET(SS_ENABLE, -EINVAL) } },

	/* ---- map_shadow_stack() ---- */
	{ "a shadow stack can be mapped while they are off", {
		MAP(0, 4096, 0, AN_ADDRESS), PR_STATUS(0) } },
	{ "mapping with a token works", {
		MAP(0, 4096, TOKEN, AN_ADDRESS), MAP(0, 8, TOKEN, AN_ADDRESS) } },
	{ "mapping with a marker is EINVAL", {
		MAP(0, 4096, 2, -EINVAL), MAP(0, 4096, 3, -EINVAL) } },
	{ "mapping with an unknown flag is EINVAL", {
		MAP(0, 4096, 4, -EINVAL), MAP(0, 4096, 1UL << 31, -EINVAL) } },
	{ "mapping nothing is EINVAL, with a token ENOSPC", {
		MAP(0, 0, 0, -EINVAL), MAP(0, 0, TOKEN, -ENOSPC) } },
	{ "mapping no room for a token is ENOSPC", {
		MAP(0, 7, TOKEN, -ENOSPC), MAP(0, 7, 0, AN_ADDRESS) } },
	{ "a size off a word boundary is EINVAL only with a token", {
		MAP(0, 4097, TOKEN, -EINVAL), MAP(0, 4097, 0, AN_ADDRESS) } },
	{ "mapping below 4 GiB works, and there again is EEXIST", {
		MAP(0x40000000, 4096, 0, 0x40000000),
		MAP(0x40000000, 4096, 0, -EEXIST) } },
	{ "mapping off a page boundary is EINVAL", {
		MAP(0x40000008, 4096, 0, -EINVAL) } },
	{ "a size that overflows is EOVERFLOW", {
		MAP(0, ~0UL, 0, -EOVERFLOW), MAP(0, -4095UL, 0, -EOVERFLOW) } },
};
/* clang-format on */
