/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_call.h - what the parts of unwind rules have of each other: the calls of the
 * device, and who listens to it. What walks see is in rules.h.
 */
#ifndef USHSTK_RULES_CALL_H
#define USHSTK_RULES_CALL_H

#include <linux/poll.h>
#include <linux/shstk_rules.h>

struct file;

/*
 * rules.c and rules_cut.c. Each returns 0 or a negative errno; uapi/linux/shstk_rules.h says
 * which.
 */
int rules_call_info(struct shstk_rules_info *arg);
int rules_call_load(const struct shstk_rules_load *arg);
int rules_call_drop(const struct shstk_rules_drop *arg);
int rules_call_list(struct shstk_rules_list *arg);

/* Listeners or tables have come or gone: sets rules_wanted. */
void rules_update_wanted(void);

/* rules_miss.c. */
int rules_call_miss(struct file *device, struct shstk_rules_miss __user *user);
__poll_t rules_poll_misses(struct file *device, struct poll_table_struct *wait);
void rules_stop_listening(struct file *device);
void rules_misses_exit(void);

/* The next walk that has no table for the file asks for it, however lately one did. */
void rules_forget_miss(const void *key);

int rules_call_cuts(struct shstk_rules_cuts *arg);

#endif /* USHSTK_RULES_CALL_H */
