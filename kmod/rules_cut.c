// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_cut.c - in which files chains end before the outermost frame, and why.
 */
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/kdev_t.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "rules.h"
#include "rules_call.h"
#include "rules_share.h"

#define CUT_BITS 6
#define CUT_TRIES 8
#define CUT_LIFE HZ /* no other file takes the place of one that was counted just now */

/**
 * struct cut - where chains end
 * @id: of the file, not 0.
 * @when: jiffies when one was counted last.
 * @uid: the user for whom the slot was taken.
 * @dev: of the file, as in &struct shstk_rules_cuts.
 * @ino: likewise.
 * @offset: likewise.
 * @count: chains, by why they ended.
 *
 * The numbers of a slot are its owner's, who writes them after @id. It is another's when
 * @id is; what is counted for both meanwhile, for a moment, is no harm.
 */
struct cut {
	atomic64_t id;
	unsigned long when;
	kuid_t uid;
	u64 dev, ino, offset;
	atomic64_t count[RULES_CUTS];
};

static struct cut cuts[1 << CUT_BITS];

/*
 * What identifies a file to user space. The inode may be going just now: then these are
 * any numbers.
 */
static bool read_inode(const void *key, u64 *dev, u64 *ino)
{
	typeof_member(struct inode, i_ino) number;
	const struct inode *inode = key;
	const struct super_block *sb;
	dev_t s_dev;

	*dev = 0;
	*ino = key == rules_vdso_key;
	if (!key || key == rules_vdso_key)
		return true;
	if (get_kernel_nofault(number, &inode->i_ino) ||
	    get_kernel_nofault(sb, (const struct super_block **)&inode->i_sb) ||
	    get_kernel_nofault(s_dev, &sb->s_dev))
		return false;
	*dev = (u64)MAJOR(s_dev) << 20 | MINOR(s_dev);
	*ino = number;
	return true;
}

static bool take_cut(struct cut *c, u64 was, u64 id, u64 dev, u64 ino)
{
	int i;

	if (atomic64_cmpxchg(&c->id, was, id) != was)
		return false;
	WRITE_ONCE(c->uid, rules_user());
	WRITE_ONCE(c->dev, dev);
	WRITE_ONCE(c->ino, ino);
	for (i = 0; i < RULES_CUTS; i++)
		atomic64_set(&c->count[i], 0);
	return true;
}

static unsigned int cuts_of(kuid_t uid)
{
	unsigned int nr = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(cuts); i++)
		nr += atomic64_read(&cuts[i].id) && uid_eq(READ_ONCE(cuts[i].uid), uid);
	return nr;
}

/* One of a user who has more than current's: all are in use. */
static struct cut *others_cut(unsigned int first)
{
	unsigned int own = cuts_of(rules_user()), i;

	for (i = 0; i < CUT_TRIES; i++) {
		struct cut *c = &cuts[(first + i) % ARRAY_SIZE(cuts)];

		if (rules_may_take(own, cuts_of(READ_ONCE(c->uid))))
			return c;
	}
	return NULL;
}

/*
 * Its slot; or a free one; or that of the file that was not counted for longest; or, if it was
 * just now, one of a user who has more of them.
 */
static struct cut *cut_of(u64 dev, u64 ino)
{
	u64 id = (hash_64(dev, 64) ^ hash_64(ino + 1, 64)) | 1;
	unsigned int first = hash_64(id, CUT_BITS), i;
	struct cut *oldest = NULL;

	for (i = 0; i < ARRAY_SIZE(cuts); i++) {
		struct cut *c = &cuts[(first + i) % ARRAY_SIZE(cuts)];
		u64 was = atomic64_read(&c->id);

		if (was == id || (!was && take_cut(c, 0, id, dev, ino)))
			return c;
		if (!oldest || time_before(READ_ONCE(c->when), READ_ONCE(oldest->when)))
			oldest = c;
	}
	if (time_before(jiffies, READ_ONCE(oldest->when) + CUT_LIFE))
		oldest = others_cut(first + jiffies);
	if (!oldest || !take_cut(oldest, atomic64_read(&oldest->id), id, dev, ino))
		return NULL;
	return oldest;
}

void rules_cut(const void *key, u64 offset, enum rules_cut_why why)
{
	struct cut *c;
	u64 dev, ino;

	if (!read_inode(key, &dev, &ino))
		return;
	c = cut_of(dev, ino);
	if (!c)
		return;
	WRITE_ONCE(c->when, jiffies);
	WRITE_ONCE(c->offset, offset);
	atomic64_inc(&c->count[why]);
}

int rules_call_cuts(struct shstk_rules_cuts *arg)
{
	u32 i = arg->index;

	if (arg->reserved)
		return -EINVAL;
	for (; i < ARRAY_SIZE(cuts); i++) {
		const struct cut *c = &cuts[array_index_nospec(i, ARRAY_SIZE(cuts))];
		u64 id = atomic64_read(&c->id);

		if (!id)
			continue;
		arg->index = i + 1;
		arg->dev = READ_ONCE(c->dev);
		arg->ino = READ_ONCE(c->ino);
		arg->offset = READ_ONCE(c->offset);
		arg->no_table = atomic64_read(&c->count[RULES_CUT_TABLE]);
		arg->no_rule = atomic64_read(&c->count[RULES_CUT_RULE]);
		arg->no_kind = atomic64_read(&c->count[RULES_CUT_KIND]);
		/* Else it came to be another file's meanwhile. */
		smp_rmb();
		if (atomic64_read(&c->id) == id)
			return 0;
	}
	return -ENOENT;
}
