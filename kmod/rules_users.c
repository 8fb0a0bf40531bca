// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_users.c - the ids that count as another user when users share places and room.
 *
 * A user may have further ids (/etc/subuid), and run programs and own files by each of them. The
 * kernel does not know whose they are; the daemon does, and tells it.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "rules_call.h"
#include "rules_share.h"

/**
 * struct id_ranges - the ids that were told
 * @rcu: the list is freed after a grace period.
 * @nr: number of ranges.
 * @range: the ranges, in ascending order; no id is in two of them.
 */
struct id_ranges {
	struct rcu_head rcu;
	unsigned int nr;
	struct shstk_rules_range range[];
};

static struct id_ranges __rcu *ranges;
static DEFINE_MUTEX(ranges_lock);

/* Returns the last of the ranges that begins at @id or below it, or NULL. */
static const struct shstk_rules_range *range_below(const struct id_ranges *list, u32 id)
{
	unsigned int low = 0, high = list->nr;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (list->range[middle].first <= id)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &list->range[low - 1] : NULL;
}

kuid_t rules_counted_user(kuid_t uid)
{
	const struct shstk_rules_range *r = NULL;
	const struct id_ranges *list;
	u32 id = __kuid_val(uid);

	rcu_read_lock();
	list = rcu_dereference(ranges);
	if (list)
		r = range_below(list, id);
	if (r && id - r->first < r->nr)
		uid = KUIDT_INIT(r->user);
	rcu_read_unlock();
	return uid;
}

/* Replaces the ranges; @list may be NULL. */
static void replace_ranges(struct id_ranges *list)
{
	struct id_ranges *old;

	mutex_lock(&ranges_lock);
	old = rcu_replace_pointer(ranges, list, lockdep_is_held(&ranges_lock));
	mutex_unlock(&ranges_lock);
	if (old)
		kvfree_rcu(old, rcu);
}

/*
 * Returns whether the ranges are in order, and neither root nor what is no id is in one of them, or
 * is a user as whom ids count: the files of root have no share that ends.
 */
static bool are_valid(const struct id_ranges *list)
{
	u64 end = 1;
	unsigned int i;

	for (i = 0; i < list->nr; i++) {
		const struct shstk_rules_range *r = &list->range[i];

		if (r->first < end || !r->nr || !r->user || r->user == U32_MAX)
			return false;
		end = (u64)r->first + r->nr;
		if (end > U32_MAX)
			return false;
	}
	return true;
}

static int copy_ranges(struct id_ranges *list, const struct shstk_rules_users *arg)
{
	list->nr = arg->nr;
	if (copy_from_user(list->range, u64_to_user_ptr(arg->ranges),
			   array_size(arg->nr, sizeof(*list->range))))
		return -EFAULT;
	return are_valid(list) ? 0 : -EINVAL;
}

int rules_call_users(const struct shstk_rules_users *arg)
{
	struct id_ranges *list;
	int ret;

	if (arg->reserved || arg->nr > SHSTK_RULES_MAX_RANGES)
		return -EINVAL;
	if (!arg->nr) {
		replace_ranges(NULL);
		return 0;
	}
	list = kvmalloc(struct_size(list, range, arg->nr), GFP_KERNEL_ACCOUNT);
	if (!list)
		return -ENOMEM;
	ret = copy_ranges(list, arg);
	if (ret) {
		kvfree(list);
		return ret;
	}
	replace_ranges(list);
	/*
	 * Such places may be kept for long. Files that were missed are told of, or go, soon. A walk
	 * that takes a place for a user by the ranges of before is an RCU section, so it has noted
	 * the user when these are waited for.
	 */
	synchronize_rcu();
	rules_recount_cuts();
	return 0;
}

/* The hooks are removed and the device is closed, so nobody asks any more. */
void rules_users_exit(void)
{
	replace_ranges(NULL);
}
