// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * calltree.c - a profile as a tree of calls, in text, as calltree.h describes.
 *
 * Nothing here recurses over depth: stacks may be deep.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/export.h"
#include "tools/report/calltree.h"
#include "tools/report/screen_name.h"

#define NUMBERS 21 /* columns before the names */
#define MOST_INDENT 36 /* deeper nodes stand in this column, too */

struct tree_view {
	const struct shstk_profile *profile;
	const struct shstk_write_opts *opts;
	const char *unit;
	int64_t whole;
	int64_t least;
	unsigned int width;
};

static int by_total(const void *a, const void *b)
{
	const struct shstk_node *x = *(struct shstk_node *const *)a;
	const struct shstk_node *y = *(struct shstk_node *const *)b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(x->name, y->name);
}

/*
 * Sorts the children whose total is at least @least, the largest first, and drops the others.
 * Returns 0 or -ENOMEM.
 */
static int sort_children(struct shstk_node *node, int64_t least)
{
	struct shstk_node **list, *child;
	size_t nr = 0, n = 0;

	for (child = node->child; child; child = child->next)
		nr += child->total >= least;
	list = calloc(nr + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (child = node->child; child; child = child->next)
		if (child->total >= least)
			list[n++] = child;
	qsort(list, nr, sizeof(*list), by_total);
	node->child = list[0];
	for (n = 0; n < nr; n++)
		list[n]->next = list[n + 1];
	free(list);
	return 0;
}

static void put_node(const struct tree_view *v, const struct shstk_node *node, unsigned int indent)
{
	char value[32], buf[SCREEN_NAME_MAX];
	size_t room = v->width - NUMBERS - indent;

	shstk_format_value(value, sizeof(value), node->total, v->unit);
	printf("%6.2f%% %12s %*s%s\n", v->whole ? 100.0 * node->total / v->whole : 0, value,
	       (int)indent, "",
	       v->opts->full_names ? node->name : screen_name(node->name, room, buf));
}

/*
 * Returns the column of a child. A node that was printed keeps its column in its member "self",
 * which the tree does not show.
 */
static int64_t indent_below(const struct shstk_node *parent)
{
	const int64_t indent = parent->self;

	return parent->parent && indent < MOST_INDENT ? indent + 1 : indent;
}

static int put_tree(const struct tree_view *v, struct shstk_node *root)
{
	struct shstk_node *node = root;
	int err = 0;

	root->self = 0;
	for (; node && !err; node = shstk_tree_next(node)) {
		err = sort_children(node, v->least);
		if (node == root)
			continue;
		node->self = indent_below(node->parent);
		put_node(v, node, node->self);
	}
	return err;
}

int calltree_print(const struct shstk_profile *profile, const struct shstk_write_opts *opts,
		   double share)
{
	const unsigned int type = shstk_shown_type(profile, opts);
	struct tree_view v = { .profile = profile, .opts = opts, .width = screen_width() };
	const int64_t cut = shstk_profile_truncated(profile, type);
	struct shstk_tree tree;
	char total[32];
	int err;

	if (!profile->nr_types)
		return 0;
	err = shstk_tree_build(profile, opts, &tree);
	if (err)
		return err;
	v.unit = profile->types[type].unit;
	v.whole = tree.root->total;
	v.least = v.whole * share / 100;
	if (v.least < 1)
		v.least = 1;
	for (size_t i = 0; i < profile->nr_cautions; i++)
		shstk_put_caution(stdout, profile->cautions[i], screen_limit());
	shstk_format_value(total, sizeof(total), v.whole, v.unit);
	printf("%s, %s in all; ", profile->types[type].type, total);
	if (cut > 0 && v.whole > 0)
		printf("%.2f %% truncated; ", 100.0 * cut / v.whole);
	printf("what has less than %g %% is left out\n", share);
	err = put_tree(&v, tree.root);
	shstk_tree_deinit(&tree);
	return err;
}
