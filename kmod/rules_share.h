/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_share.h - whose the place is that is shared among users.
 */
#ifndef USHSTK_RULES_SHARE_H
#define USHSTK_RULES_SHARE_H

#include <linux/cred.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

/*
 * The user that current is counted as. In a user namespace all subordinate ids are those of
 * the user who made it, or the outermost of those that it lies in. Where root made that, as
 * some container managers do, the kernel knows no more than each id: two of these are two users.
 *
 * Context: any, NMI as well.
 */
static inline kuid_t rules_user(void)
{
	const struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return current_uid();
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ? current_uid() : ns->owner;
}

/* Whether a user with so many places may take one from another with so many. */
static inline bool rules_may_take(unsigned int own, unsigned int others)
{
	return others > own + 1;
}

#endif /* USHSTK_RULES_SHARE_H */
