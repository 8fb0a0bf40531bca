// SPDX-License-Identifier: GPL-2.0-only
/*
 * rules_cut.c - counts in which files chains end before the outermost frame, and why.
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
#define CUT_LIFE HZ /* a file counted within this time keeps its slot */

/**
 * struct cut - a file in whose code chains end
 * @id: identifies the file; 0 if the slot is free.
 * @when: jiffies when a chain was last counted.
 * @uid: user for whom the slot was taken.
 * @dev: device number of the file system, as in &struct shstk_rules_cuts.
 * @ino: inode number, as in &struct shstk_rules_cuts.
 * @offset: offset in the file at which the last chain ended.
 * @count: number of chains, by the reason why they ended.
 *
 * The CPU that sets @id owns the slot and writes the other members after @id. The slot belongs to
 * another file as soon as @id changes. For a moment, chains of both files may be counted in it,
 * which does no harm.
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
 * Reads the numbers that identify a file to user space. The inode may be freed just now; then the
 * numbers are arbitrary. Returns false if the inode cannot be read.
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

/* Takes the slot @c for a file, if its id is still @was. Returns whether it was taken. */
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

/* Counts the slots of a user. */
static unsigned int cuts_of(kuid_t uid)
{
	unsigned int nr = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(cuts); i++)
		nr += atomic64_read(&cuts[i].id) && uid_eq(READ_ONCE(cuts[i].uid), uid);
	return nr;
}

/*
 * Returns a slot of a user who has more slots than the user of current, or NULL. It is called when
 * all slots are in use.
 */
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
 * Returns the slot of the file. If the file has none, takes a free slot; otherwise the slot of the
 * file that was not counted for the longest time; or, if that file was counted just now, a slot of
 * a user who has more slots. Returns NULL if no slot can be taken.
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

void rules_recount_cuts(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cuts); i++) {
		kuid_t was = READ_ONCE(cuts[i].uid);

		/*
		 * If the slot was taken for another user meanwhile, that was by the new ranges: the
		 * caller has waited for walks that know the old ones.
		 */
		cmpxchg(&cuts[i].uid.val, __kuid_val(was), __kuid_val(rules_counted_user(was)));
	}
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
		/* If @id has changed, the slot was given to another file meanwhile. */
		smp_rmb();
		if (atomic64_read(&c->id) == id)
			return 0;
	}
	return -ENOENT;
}
