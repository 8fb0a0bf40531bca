/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_share.h - decides which user a place counts for, and who may take a place from whom.
 */
#ifndef USHSTK_RULES_SHARE_H
#define USHSTK_RULES_SHARE_H

#include <linux/cred.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

/*
 * Returns the user for whom current is counted. In a user namespace all subordinate ids count as
 * the user who created it; if namespaces are nested, as the user who created the outermost one. If
 * root created it, as some container managers do, the kernel knows no more than each id: then two
 * ids count as two users.
 *
 * Context: any, including NMI.
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

/* Returns whether a user with @own places may take one from a user with @others places. */
static inline bool rules_may_take(unsigned int own, unsigned int others)
{
	return others > own + 1;
}

#endif /* USHSTK_RULES_SHARE_H */
