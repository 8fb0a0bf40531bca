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
 * Returns the user as whom the user @uid counts: another one if @uid is a further id of that user,
 * as far as SHSTK_RULES_USERS told. It is in rules_users.c.
 *
 * Context: any, including NMI.
 */
kuid_t rules_counted_user(kuid_t uid);

/*
 * Returns the user for whom current is counted. In a user namespace all ids count as the user who
 * created it. If root created it, as some container managers do, all count as the id that is root
 * in it. Where that is nobody, or root itself, as in a namespace with the ids of the machine, each
 * id counts by itself. If namespaces are nested, the outermost one counts. A user's further ids
 * count as the user in any case: who has them may well use them outside of a namespace.
 *
 * Context: any, including NMI.
 */
static inline kuid_t rules_user(void)
{
	struct user_namespace *ns = current_user_ns();
	kuid_t user;

	if (ns == &init_user_ns)
		return rules_counted_user(current_uid());
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	user = ns->owner;
	if (uid_eq(user, GLOBAL_ROOT_UID))
		user = make_kuid(ns, 0);
	if (!uid_valid(user) || uid_eq(user, GLOBAL_ROOT_UID))
		user = current_uid();
	return rules_counted_user(user);
}

/* Returns whether a user with @own places may take one from a user with @others places. */
static inline bool rules_may_take(unsigned int own, unsigned int others)
{
	return others > own + 1;
}

#endif /* USHSTK_RULES_SHARE_H */
