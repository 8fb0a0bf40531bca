// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * export_folded.c - folded stacks: a line per distinct stack, outermost frame first, frames
 * separated by semicolons, then a blank and the value.
 *
 * A caution is a stack with the value 0: readers of the format know no other lines. A difference
 * has two values, the one before and the one after, as difffolded.pl of FlameGraph writes them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"

/* Writes a name, with ":" for each ";": the format has no escape for its separator. */
static void put_name(FILE *out, const char *name)
{
	const char *stop;

	while (*(stop = strchrnul(name, ';'))) {
		fwrite_unlocked(name, 1, stop - name, out);
		putc_unlocked(':', out);
		name = stop + 1;
	}
	fwrite_unlocked(name, 1, stop - name, out);
}

static void put_stack(FILE *out, const struct shstk_node *leaf, const struct shstk_node **path,
		      unsigned int max, bool diff)
{
	const struct shstk_node *node;
	unsigned int nr = 0;

	for (node = leaf; node->parent && nr < max; node = node->parent)
		path[nr++] = node;
	while (nr--) {
		put_name(out, path[nr]->name);
		putc_unlocked(nr ? ';' : ' ', out);
	}
	if (diff)
		fprintf(out, "%lld ", (long long)leaf->self_before);
	fprintf(out, "%lld\n", (long long)leaf->self);
}

static int write_folded(const struct shstk_profile *profile, FILE *out,
			const struct shstk_write_opts *opts)
{
	const struct shstk_node **path, *node;
	struct shstk_tree tree;
	int err;

	err = shstk_tree_build(profile, opts, &tree);
	if (err)
		return err;
	for (size_t i = 0; i < profile->nr_cautions; i++) {
		fputs("[caution] ", out);
		put_name(out, profile->cautions[i]);
		fputs(" 0\n", out);
	}
	path = calloc(tree.depth + 1, sizeof(*path));
	for (node = tree.root; path && node; node = shstk_tree_next(node))
		if (node->self || node->self_before)
			put_stack(out, node, path, tree.depth, opts->base);
	err = path ? 0 : -ENOMEM;
	free(path);
	shstk_tree_deinit(&tree);
	return err;
}

const struct shstk_format shstk_format_folded = {
	.name = "folded",
	.suffixes = ".folded .collapsed",
	.write = write_folded,
};
