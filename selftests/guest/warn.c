// SPDX-License-Identifier: GPL-2.0-only
/*
 * warn.c - a module whose loading makes the kernel warn: the runner has to notice.
 */
#include <linux/module.h>

static int __init warn_init(void)
{
	WARN(1, "a warning on purpose\n");
	return 0;
}
module_init(warn_init);

static void __exit warn_exit(void)
{
}
module_exit(warn_exit);

MODULE_DESCRIPTION("Warns when loaded, to test the test runner");
MODULE_LICENSE("GPL");
