/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * needs.h - the kernel configuration that the modules require. dkms.conf has the same list and
 * skips kernels that do not match it. Options that are not in this list are optional.
 */
#ifndef USHSTK_NEEDS_H
#define USHSTK_NEEDS_H

#include <linux/build_bug.h>
#include <linux/kconfig.h>

static_assert(IS_ENABLED(CONFIG_CGROUPS));
static_assert(IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_ARGS));
static_assert(IS_ENABLED(CONFIG_FSNOTIFY));
static_assert(IS_ENABLED(CONFIG_KPROBES));
static_assert(IS_ENABLED(CONFIG_PERF_EVENTS));
static_assert(IS_ENABLED(CONFIG_PER_VMA_LOCK));

#endif /* USHSTK_NEEDS_H */
