/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ushstk.h - the functions that the parts of shstk.ko call in each other.
 */
#ifndef USHSTK_H
#define USHSTK_H

#include <linux/sched.h>
#include <linux/types.h>
#include <linux/shstk.h>

struct attribute_group;

/* remote.c: reads other tasks */
int ushstk_remote_init(void);
bool ushstk_ptrace_check(void);
int ushstk_status(struct shstk_ioc_status *arg);
int ushstk_map(struct shstk_ioc_map *arg);
int ushstk_trace(struct shstk_ioc_trace *arg);

/* kfunc.c: BPF */
int ushstk_kfunc_init(void);
bool ushstk_kfunc_there(void);
int bpf_shstk_get_user_stack(void *buf, u32 buf__sz, u64 flags);

/* violation.c: counts control-protection faults */
int ushstk_violation_init(void);
void ushstk_violation_exit(void);
extern const struct attribute_group *ushstk_violation_groups[];

#endif /* USHSTK_H */
