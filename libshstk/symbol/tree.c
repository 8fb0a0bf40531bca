// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * tree.c - all stacks as one tree, outermost frame at the root.
 *
 * Nodes are found by (parent, name) in one table. Stacks may be deep, so nothing here recurses over
 * depth.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "language.h"

#define NODE_KEY_SIZE (offsetof(struct shstk_node, kind) - offsetof(struct shstk_node, parent))

/*
 * Returns the child of @parent with that name, which is made if there is none. NULL when memory
 * runs out, or @parent or @name is NULL.
 */
static struct shstk_node *get_child(struct shstk_tree *tree, struct shstk_node *parent,
				    const char *name, int kind)
{
	struct shstk_node key = { .parent = parent, .name = name };
	struct shstk_node *node;

	if (!parent || !name)
		return NULL;
	HASH_FIND(hh, tree->table, &key.parent, NODE_KEY_SIZE, node);
	if (node)
		return node;
	node = shstk_pool_alloc(&tree->pool, sizeof(*node));
	if (!node)
		return NULL;
	node->parent = parent;
	node->name = name;
	node->kind = kind;
	HASH_ADD(hh, tree->table, parent, NODE_KEY_SIZE, node);
	if (!node->hh.tbl)
		return NULL;
	node->next = parent->child;
	parent->child = node;
	return node;
}

static const char *thread_name(const struct shstk_profile *profile,
			       const struct shstk_record *record,
			       const struct shstk_write_opts *opts)
{
	const char *comm = *record->comm ? record->comm : "[no name]";
	const char *ret;
	char *text;
	int len;

	if (!opts->per_thread)
		return shstk_pool_text(profile->text, comm, strlen(comm));
	len = asprintf(&text, "%s %d/%d", comm, shstk_symproc_pid(record->proc), record->tid);
	if (len < 0)
		return NULL;
	ret = shstk_pool_text(profile->text, text, len);
	free(text);
	return ret;
}

/* Returns the value of a label; NULL if the sample has no label with that key. */
static const char *label_of(const struct shstk_record *record, const char *key, size_t len)
{
	const struct shstk_labels *labels = record->labels;

	for (size_t i = 0; labels && i < labels->nr; i += 2)
		if (strlen(labels->text[i]) == len && !memcmp(labels->text[i], key, len))
			return labels->text[i + 1];
	return NULL;
}

/* Returns the language of the innermost function. */
static const char *language_of(const struct shstk_profile *profile,
			       const struct shstk_record *record)
{
	const struct shstk_location *location;

	if (!record->nr)
		return "(no language)";
	location = profile->locations[record->locations[0]];
	return shstk_language_name(
		shstk_language_of(location, shstk_location_symbol(profile, location)->frames));
}

/*
 * Returns the name of a sample's group by one word of &shstk_write_opts.by. NULL when memory runs
 * out.
 */
static const char *group_name(const struct shstk_profile *profile,
			      const struct shstk_record *record, const char *word, size_t len)
{
	const char *label, *ret;
	char *text;
	int n;

	if (len == 4 && !memcmp(word, "comm", len))
		return thread_name(profile, record, &(struct shstk_write_opts){ 0 });
	if (len == 6 && !memcmp(word, "thread", len))
		return thread_name(profile, record,
				   &(struct shstk_write_opts){ .per_thread = true });
	if (len == 3 && !memcmp(word, "pid", len)) {
		n = asprintf(&text, "pid %d", shstk_symproc_pid(record->proc));
	} else if (len == 3 && !memcmp(word, "tid", len)) {
		n = asprintf(&text, "tid %d", record->tid);
	} else if (len == 8 && !memcmp(word, "language", len)) {
		n = asprintf(&text, "%s", language_of(profile, record));
	} else {
		label = label_of(record, word, len);
		n = label ? asprintf(&text, "%.*s: %s", (int)len, word, label) :
			    asprintf(&text, "(no %.*s)", (int)len, word);
	}
	if (n < 0)
		return NULL;
	ret = shstk_pool_text(profile->text, text, n);
	free(text);
	return ret;
}

/*
 * Returns the node of a sample's innermost group, by the words of &shstk_write_opts.by. NULL when
 * memory runs out.
 */
static struct shstk_node *add_groups(const struct shstk_profile *profile, struct shstk_tree *tree,
				     struct shstk_node *node, const struct shstk_record *record,
				     const char *by)
{
	while (*by && node) {
		size_t len = strcspn(by, ",");

		node = get_child(tree, node, group_name(profile, record, by, len),
				 SHSTK_NODE_THREAD);
		by += len + (by[len] == ',');
	}
	return node;
}

static int kind_of(const struct shstk_location *location, const struct shstk_symbol *symbol,
		   const struct shstk_symframe *frame)
{
	if (location->guessed)
		return SHSTK_NODE_GUESSED;
	if (frame->inlined)
		return SHSTK_NODE_INLINED;
	if (!symbol->resolved)
		return SHSTK_NODE_UNKNOWN;
	if (symbol->map->kind == SHSTK_SYMMAP_ANON || symbol->map->kind == SHSTK_SYMMAP_NONE)
		return SHSTK_NODE_MADE;
	if (symbol->map->kind == SHSTK_SYMMAP_LANGUAGE)
		return SHSTK_NODE_LANGUAGE;
	return SHSTK_NODE_CODE;
}

static struct shstk_node *add_location(const struct shstk_profile *profile, struct shstk_tree *tree,
				       struct shstk_node *node,
				       const struct shstk_location *location, bool inverted)
{
	const struct shstk_symbol *symbol;
	const struct shstk_symframe *frame;
	unsigned int i;

	symbol = shstk_location_symbol(profile, location);
	for (i = 0; i < symbol->nr && node; i++) {
		frame = symbol->frames + (inverted ? i : symbol->nr - 1 - i);
		node = get_child(tree, node, frame->function, kind_of(location, symbol, frame));
	}
	return node;
}

/* Returns the @n-th entry of a stack, counted from the root of the tree. */
static uint32_t entry_of(const struct shstk_record *record, uint64_t n, bool inverted)
{
	return record->locations[inverted ? n : record->nr - 1 - n];
}

/*
 * Follows the entries that a stack shares with the stack before. Returns the node that they lead
 * to.
 */
static struct shstk_node *follow_path(struct shstk_tree *tree, struct shstk_node *top,
				      const struct shstk_record *record, bool inverted)
{
	struct shstk_node *node = top;
	size_t n = 0;

	while (tree->top == top && n < tree->nr_path && n < record->nr &&
	       tree->path[n].location == entry_of(record, n, inverted))
		node = tree->path[n++].node;
	tree->top = top;
	tree->nr_path = n;
	return node;
}

static bool keep_step(struct shstk_tree *tree, uint32_t location, struct shstk_node *node)
{
	struct shstk_tree_step *path;

	path = shstk_grow(tree->path, tree->nr_path, &tree->max_path, sizeof(*path));
	if (!path)
		return false;
	tree->path = path;
	tree->path[tree->nr_path++] = (struct shstk_tree_step){ location, node };
	return true;
}

/* Adds the stack of a record below @top. Returns its last node, or NULL when memory runs out. */
static struct shstk_node *add_stack(const struct shstk_profile *profile, struct shstk_tree *tree,
				    const struct shstk_record *record, struct shstk_node *top,
				    bool inverted)
{
	struct shstk_node *node = follow_path(tree, top, record, inverted);
	uint64_t i = tree->nr_path;
	uint32_t location;

	for (; i < record->nr && node; i++) {
		location = entry_of(record, i, inverted);
		node = add_location(profile, tree, node, profile->locations[location], inverted);
		if (!keep_step(tree, location, node))
			return NULL;
	}
	return node;
}

/*
 * Returns whether a thread is shown. Profiles of other programs need not say which thread it was.
 */
static bool has_thread(const struct shstk_record *record)
{
	return *record->comm || shstk_symproc_pid(record->proc) >= 0 || record->tid >= 0 ||
	       (!record->nr && !record->note);
}

/* Adds the value of a stack that ends at a node. Returns the node's depth. */
static unsigned int count_value(struct shstk_node *node, int64_t value)
{
	unsigned int depth = 0;

	node->self = shstk_add(node->self, value);
	for (; node; node = node->parent, depth++)
		node->total = shstk_add(node->total, value);
	return depth - 1;
}

/* Does what count_value() does, for the profile that this one is compared with. */
static unsigned int count_before(struct shstk_node *node, int64_t value)
{
	unsigned int depth = 0;

	node->self_before = shstk_add(node->self_before, value);
	for (; node; node = node->parent, depth++)
		node->total_before = shstk_add(node->total_before, value);
	return depth - 1;
}

static int add_record(const struct shstk_profile *profile, struct shstk_tree *tree,
		      const struct shstk_record *record, int64_t value, bool before,
		      const struct shstk_write_opts *opts)
{
	struct shstk_node *node = tree->root;
	unsigned int depth;

	if (opts->by)
		node = add_groups(profile, tree, node, record, opts->by);
	else if (has_thread(record))
		node = get_child(tree, node, thread_name(profile, record, opts), SHSTK_NODE_THREAD);
	if (record->note) {
		const char *name = shstk_note_name(record->note);

		node = get_child(tree, node, shstk_pool_text(profile->text, name, strlen(name)),
				 SHSTK_NODE_NOTE);
	}
	if (node)
		node = add_stack(profile, tree, record, node, opts->inverted);
	if (!node)
		return -ENOMEM;
	depth = before ? count_before(node, value) : count_value(node, value);
	if (depth > tree->depth)
		tree->depth = depth;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct shstk_node *x = *(struct shstk_node *const *)a;
	const struct shstk_node *y = *(struct shstk_node *const *)b;

	return strcmp(x->name, y->name);
}

static bool is_shown(const struct shstk_node *node)
{
	return node->total > 0 || node->total_before > 0;
}

/*
 * Sorts the children that have something to show by name, and drops the others. Returns 0 or
 * -ENOMEM.
 */
static int sort_children(struct shstk_node *node)
{
	struct shstk_node **list, *child;
	size_t nr = 0, i;

	for (child = node->child; child; child = child->next)
		nr += is_shown(child);
	list = calloc(nr + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (i = 0, child = node->child; child; child = child->next)
		if (is_shown(child))
			list[i++] = child;
	qsort(list, nr, sizeof(*list), by_name);
	node->child = list[0];
	for (i = 0; i < nr; i++)
		list[i]->next = list[i + 1];
	free(list);
	return 0;
}

/* Leaves out stacks with a negative sum: a width or a count below 0 cannot be shown. */
static void leave_out_negative(struct shstk_tree *tree)
{
	struct shstk_node *node, *up;
	unsigned int depth;

	tree->depth = 0;
	for (node = tree->root; node; node = shstk_tree_next(node))
		node->total = 0;
	for (node = tree->root; node; node = shstk_tree_next(node)) {
		if (node->self < 0)
			node->self = 0;
		if (!node->self && !node->self_before)
			continue;
		for (up = node, depth = 0; up; up = up->parent, depth++)
			up->total = shstk_add(up->total, node->self);
		if (depth - 1 > tree->depth)
			tree->depth = depth - 1;
	}
}

/* Adds all stacks of a profile. @negative is set if a value is below 0. Returns 0 or -ENOMEM. */
static int add_records(const struct shstk_profile *profile, struct shstk_tree *tree, bool before,
		       const struct shstk_write_opts *opts, bool *negative)
{
	unsigned int type = shstk_shown_type(profile, opts);
	int err = 0;

	/* The path of the stack before is of another profile, which has other locations. */
	tree->top = NULL;
	tree->nr_path = 0;
	for (size_t i = 0; i < profile->nr_records && !err; i++) {
		int64_t value = profile->records[i]->values[type];

		*negative |= value < 0;
		if (value)
			err = add_record(profile, tree, profile->records[i], value, before, opts);
	}
	return err;
}

int shstk_tree_build(const struct shstk_profile *profile, const struct shstk_write_opts *opts,
		     struct shstk_tree *tree)
{
	struct shstk_node *node;
	bool negative = false;
	int err = 0;

	memset(tree, 0, sizeof(*tree));
	shstk_pool_init(&tree->pool);
	tree->root = shstk_pool_alloc(&tree->pool, sizeof(*tree->root));
	if (!tree->root)
		return -ENOMEM;
	tree->root->name = "all";
	tree->root->kind = SHSTK_NODE_ROOT;
	err = add_records(profile, tree, false, opts, &negative);
	if (opts->base && !err)
		err = add_records(opts->base, tree, true, opts, &negative);
	/* This needs the sums of all stacks with the same names. */
	if (negative && !err)
		leave_out_negative(tree);
	for (node = tree->root; node && !err; node = shstk_tree_next(node))
		err = sort_children(node);
	if (err)
		shstk_tree_deinit(tree);
	return err;
}

void shstk_tree_deinit(struct shstk_tree *tree)
{
	HASH_CLEAR(hh, tree->table);
	shstk_pool_deinit(&tree->pool);
	free(tree->path);
	tree->root = NULL;
	tree->path = NULL;
}

struct shstk_node *shstk_tree_next(const struct shstk_node *node)
{
	if (node->child)
		return node->child;
	while (node && !node->next)
		node = node->parent;
	return node ? node->next : NULL;
}
