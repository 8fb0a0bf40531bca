/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * needs.h - what a kernel is configured with that the modules are for. dkms.conf passes over those
 * that are not, by the same list; what is not in it the modules do without.
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
