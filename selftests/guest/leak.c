// SPDX-License-Identifier: GPL-2.0-only
/*
 * leak.c - a module that loses memory: a debug kernel has to say so, and the runner to notice.
 */
#include <linux/module.h>
#include <linux/slab.h>

#define PIECES 100 /* many pieces, as some words look like pointers to some of them */

static void *lost;

static int __init leak_init(void)
{
	int i;

	for (i = 0; i < PIECES; i++)
		WRITE_ONCE(lost, kzalloc(512, GFP_KERNEL));
	WRITE_ONCE(lost, NULL);
	return 0;
}
module_init(leak_init);

static void __exit leak_exit(void)
{
}
module_exit(leak_exit);

MODULE_DESCRIPTION("Loses memory when loaded, to test the test runner");
MODULE_LICENSE("GPL");
