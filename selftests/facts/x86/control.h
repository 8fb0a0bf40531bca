/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control.h - what arch_prctl() and map_shadow_stack() answer on x86
 *
 * The same on 6.12 and 7.2. Lists of steps, see ../control_test.c.
 */
#define CALL(op, bits, ans)                           \
	{                                             \
		__NR_arch_prctl, { op, bits }, ans, 0 \
	}
#define ENABLE(bits, ans) CALL(SS_ARCH_ENABLE, bits, ans)
#define DISABLE(bits, ans) CALL(SS_ARCH_DISABLE, bits, ans)
#define LOCK(bits, ans) CALL(SS_ARCH_LOCK, bits, ans)
#define UNLOCK(bits, ans) CALL(SS_ARCH_UNLOCK, bits, ans)
#define STATUS(bits)                                              \
	{                                                         \
		__NR_arch_prctl, { SS_ARCH_STATUS, OUT }, 0, bits \
	}

/* A fact: its name, then its calls, a line each. */
/* clang-format off */
static const struct fact facts[] = {
	/* ---- Status ---- */
	{ "status is 0 when nothing was enabled", { STATUS(0) } },
	{ "status shows the shadow stack and the write permission", {
		ENABLE(SS_ENABLE, 0), STATUS(SS_ENABLE),
		ENABLE(SS_WRITE, 0), STATUS(SS_ENABLE | SS_WRITE) } },
	{ "status to a bad address is EFAULT", {
		CALL(SS_ARCH_STATUS, 8, -EFAULT) } },
	{ "status does not show the lock", {
		LOCK(~0UL, 0), STATUS(0) } },

	/* ---- Enable and disable ---- */
	{ "enabling twice is 0", {
		ENABLE(SS_ENABLE, 0), ENABLE(SS_ENABLE, 0),
		STATUS(SS_ENABLE) } },
	{ "enabling two features in one call is EINVAL", {
		ENABLE(SS_ENABLE | SS_WRITE, -EINVAL), STATUS(0) } },
	{ "enabling nothing is EINVAL", { ENABLE(0, -EINVAL) } },
	{ "enabling an unknown feature is EINVAL", {
		ENABLE(1UL << 2, -EINVAL), ENABLE(1UL << 63, -EINVAL) } },
	{ "the write permission without a shadow stack is EPERM", {
		ENABLE(SS_WRITE, -EPERM), DISABLE(SS_WRITE, -EPERM) } },
	{ "the write permission can be given and taken repeatedly", {
		ENABLE(SS_ENABLE, 0), ENABLE(SS_WRITE, 0), ENABLE(SS_WRITE, 0),
		DISABLE(SS_WRITE, 0), DISABLE(SS_WRITE, 0), STATUS(SS_ENABLE),
		ENABLE(SS_WRITE, 0), STATUS(SS_ENABLE | SS_WRITE) } },
	{ "disabling when off is 0", { DISABLE(SS_ENABLE, 0), STATUS(0) } },
	{ "disabling two features in one call is EINVAL", {
		ENABLE(SS_ENABLE, 0), ENABLE(SS_WRITE, 0),
		DISABLE(SS_ENABLE | SS_WRITE, -EINVAL),
		STATUS(SS_ENABLE | SS_WRITE) } },
	{ "disabling nothing is EINVAL", { DISABLE(0, -EINVAL) } },
	{ "disabling an unknown feature is EINVAL", {
		DISABLE(1UL << 2, -EINVAL) } },
	{ "disabling the shadow stack takes the write permission along", {
		ENABLE(SS_ENABLE, 0), ENABLE(SS_WRITE, 0),
		DISABLE(SS_ENABLE, 0), STATUS(0) } },
	{ "enabling again after disabling is allowed", {
		ENABLE(SS_ENABLE, 0), DISABLE(SS_ENABLE, 0),
		ENABLE(SS_ENABLE, 0), STATUS(SS_ENABLE) } },

	/* ---- Lock and unlock ---- */
	{ "locking the shadow stack while off keeps it off: EPERM", {
		LOCK(SS_ENABLE, 0), ENABLE(SS_ENABLE, -EPERM), STATUS(0) } },
	{ "locking the shadow stack while on keeps it on: EPERM", {
		ENABLE(SS_ENABLE, 0), LOCK(SS_ENABLE, 0),
		DISABLE(SS_ENABLE, -EPERM), STATUS(SS_ENABLE) } },
	{ "a locked feature is EPERM even where nothing would change", {
		ENABLE(SS_ENABLE, 0), LOCK(SS_ENABLE, 0),
		ENABLE(SS_ENABLE, -EPERM) } },
	{ "features are locked one by one", {
		ENABLE(SS_ENABLE, 0), LOCK(SS_ENABLE, 0), ENABLE(SS_WRITE, 0),
		LOCK(SS_WRITE, 0), DISABLE(SS_WRITE, -EPERM),
		STATUS(SS_ENABLE | SS_WRITE) } },
	{ "the lock is tested before the number of features", {
		LOCK(SS_WRITE, 0), ENABLE(SS_ENABLE | SS_WRITE, -EPERM) } },
	{ "any bit can be locked, known or not", {
		LOCK(0, 0), LOCK(~0UL, 0), ENABLE(1UL << 63, -EPERM) } },
	{ "a thread cannot unlock itself", {
		LOCK(SS_ENABLE, 0), UNLOCK(SS_ENABLE, -EPERM),
		ENABLE(SS_ENABLE, -EPERM) } },
	{ "unlock of oneself is taken for enable", {
		UNLOCK(SS_ENABLE, 0), STATUS(SS_ENABLE) } },

	/* ---- Other options ---- */
	{ "options beside 0x5001 to 0x5005 are EINVAL", {
		CALL(0x5000, SS_ENABLE, -EINVAL),
		CALL(0x5006, SS_ENABLE, -EINVAL) } },
	{ "the generic prctl calls are EINVAL", {
		PRCTL(74, OUT, -EINVAL), PRCTL(75, SS_ENABLE, -EINVAL),
		PRCTL(75, 0, -EINVAL), PRCTL(76, 0, -EINVAL) },
	  .unless = "/sys/module/shstk_prctl" },

	/* ---- map_shadow_stack() ---- */
	{ "a shadow stack can be mapped while they are off", {
		MAP(0, 4096, 0, AN_ADDRESS), STATUS(0) } },
	{ "mapping with a token works", {
		MAP(0, 4096, SS_SET_TOKEN, AN_ADDRESS),
		MAP(0, 8, SS_SET_TOKEN, AN_ADDRESS) } },
	{ "mapping with a marker is EINVAL", {
		MAP(0, 4096, 2, -EINVAL), MAP(0, 4096, 3, -EINVAL) } },
	{ "mapping with an unknown flag is EINVAL", {
		MAP(0, 4096, 4, -EINVAL), MAP(0, 4096, 1UL << 31, -EINVAL) } },
	{ "the flags of mapping are 32 bits: higher ones are not seen", {
		MAP(0, 4096, 1UL << 32, AN_ADDRESS) } },
	{ "mapping nothing is EINVAL, with a token ENOSPC", {
		MAP(0, 0, 0, -EINVAL), MAP(0, 0, SS_SET_TOKEN, -ENOSPC) } },
	{ "mapping no room for a token is ENOSPC", {
		MAP(0, 7, SS_SET_TOKEN, -ENOSPC), MAP(0, 7, 0, AN_ADDRESS) } },
	{ "a size off a word boundary is EINVAL only with a token", {
		MAP(0, 4097, SS_SET_TOKEN, -EINVAL),
		MAP(0, 4097, 0, AN_ADDRESS) } },
	{ "mapping below 4 GiB is ERANGE", {
		MAP(4096, 4096, 0, -ERANGE), MAP(1, 4096, 0, -ERANGE),
		MAP(0xfffff000, 4096, 0, -ERANGE) } },
	{ "mapping at 4 GiB works, and there again is EEXIST", {
		MAP(0x100000000, 4096, 0, 0x100000000),
		MAP(0x100000000, 4096, 0, -EEXIST) } },
	{ "mapping off a page boundary is EINVAL", {
		MAP(0x100000008, 4096, 0, -EINVAL) } },
	{ "a size that overflows is EOVERFLOW", {
		MAP(0, ~0UL, 0, -EOVERFLOW),
		MAP(0, -4095UL, 0, -EOVERFLOW) } },
	{ "a size beyond user space is ENOMEM", {
		MAP(0, -4096UL, 0, -ENOMEM), MAP(0, 1UL << 47, 0, -ENOMEM) } },
	{ "flags are tested before size and address", {
		MAP(1, 0, 8, -EINVAL), MAP(1, 0, SS_SET_TOKEN, -ENOSPC) } },
};
/* clang-format on */
