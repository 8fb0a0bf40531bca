/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_call.h - the functions that the parts of the unwind rules code call in each other: the
 * ioctls of the device, and its listeners. rules.h has the interface for walks.
 */
#ifndef USHSTK_RULES_CALL_H
#define USHSTK_RULES_CALL_H

#include <linux/poll.h>
#include <linux/shstk_rules.h>

struct file;

/*
 * These functions are in rules.c; rules_call_cuts() below is in rules_cut.c, and rules_call_users()
 * in rules_users.c. Each returns 0 or a negative errno; uapi/linux/shstk_rules.h says which.
 */
int rules_call_info(struct shstk_rules_info *arg);
int rules_call_load(const struct shstk_rules_load *arg);
int rules_call_drop(const struct shstk_rules_drop *arg);
int rules_call_list(struct shstk_rules_list *arg);

/* Updates rules_wanted. Must be called when listeners or tables have come or gone. */
void rules_update_wanted(void);

/* The functions below are in rules_miss.c. */
int rules_call_miss(struct file *device, struct shstk_rules_miss __user *user);
__poll_t rules_poll_misses(struct file *device, struct poll_table_struct *wait);
void rules_stop_listening(struct file *device);
void rules_misses_exit(void);

/*
 * Makes the next walk that has no table for the file ask for it, even if a walk asked for it a
 * moment ago.
 */
void rules_forget_miss(const void *key);

int rules_call_cuts(struct shstk_rules_cuts *arg);
/* Counts places that were taken before as those users as whom their ids count now. */
void rules_recount_cuts(void);

int rules_call_users(const struct shstk_rules_users *arg);
void rules_users_exit(void);

#endif /* USHSTK_RULES_CALL_H */
