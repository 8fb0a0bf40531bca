// SPDX-License-Identifier: GPL-2.0-only
/*
 * shstk_hold.c - holds the kobjects of shstk_perf.ko's folders in /sys, for tests
 *
 * From loading to unloading it has a reference to the kobject of each folder that shstk_perf.ko
 * made, as any code of the kernel may have. CONFIG_DEBUG_KOBJECT_RELEASE does something like it: it
 * releases kobjects seconds after their last reference has gone.
 */
#include <linux/kernfs.h>
#include <linux/kobject.h>
#include <linux/module.h>

#define NR_FOLDERS 2

static struct kobject *held[NR_FOLDERS];

/* Returns the kobject of a folder of @parent, with a reference to it, or NULL. */
static struct kobject *get_folder(struct kobject *parent, const char *name)
{
	struct kernfs_node *node = kernfs_find_and_get(parent->sd, name);
	struct kobject *ret;

	if (!node)
		return NULL;
	ret = kobject_get(node->priv);
	kernfs_put(node);
	return ret;
}

static void put_folders(void)
{
	int i;

	for (i = 0; i < NR_FOLDERS; i++)
		kobject_put(held[i]);
}

static int __init hold_init(void)
{
	static const char *const name[NR_FOLDERS] = { "chains", "rules" };
	struct kobject *module;
	int i, ret = 0;

	module = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, "shstk_perf");
	if (!module)
		return -ENOENT;
	for (i = 0; i < NR_FOLDERS; i++) {
		held[i] = get_folder(module, name[i]);
		if (!held[i])
			ret = -ENOENT;
	}
	kobject_put(module);
	if (ret)
		put_folders();
	return ret;
}

static void __exit hold_exit(void)
{
	put_folders();
}

module_init(hold_init);
module_exit(hold_exit);

MODULE_DESCRIPTION("Holds kobjects of shstk_perf, for tests");
MODULE_LICENSE("GPL");
