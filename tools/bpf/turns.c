// SPDX-License-Identifier: GPL-2.0-or-later
/* turns.c - whose work is done next. See turns.h. */
#include "tools/bpf/turns.h"

bool turns_add(struct turns *t, const struct turn *work)
{
	struct turns_user *user = work->user;

	if (user->waiting >= (TURNS_WAITING - t->nr + 1) / 2)
		return false;
	if (!user->waiting++ && user->spent < t->now)
		user->spent = t->now;
	t->work[t->nr] = *work;
	t->work[t->nr++].number = t->added++;
	return true;
}

/* Returns whether @a comes before @b. */
static bool precedes(const struct turn *a, const struct turn *b)
{
	if (a->user != b->user && a->user->spent != b->user->spent)
		return a->user->spent < b->user->spent;
	if (a->user == b->user && a->kind != b->kind)
		return a->kind < b->kind;
	return a->number < b->number;
}

bool turns_take(struct turns *t, struct turn *ret)
{
	struct turn *next = t->work;

	if (!t->nr)
		return false;
	for (unsigned int i = 1; i < t->nr; i++)
		if (precedes(&t->work[i], next))
			next = &t->work[i];
	*ret = *next;
	*next = t->work[--t->nr];
	ret->user->waiting--;
	if (ret->user->spent > t->now)
		t->now = ret->user->spent;
	return true;
}

void turns_spend(struct turns_user *user, uint64_t ns)
{
	user->spent += ns;
}
