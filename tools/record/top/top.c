// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk top - the hottest functions of what runs, recorded by the same means as `shstk record`.
 *
 * Each table shows one interval. Names that were found are kept for RENEW_NS. Then the symbols are
 * thrown away and begun anew, because names of programs that have ended would pile up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/record/series.h"
#include "tools/record/top/keys.h"
#include "tools/record/top/screen.h"
#include "tools/record/top/top.h"
#include "tools/report/screen_name.h"
#include "tools/shstk.h"

#define RENEW_NS (600 * 1000000000ull) /* how long names of functions are kept */
#define AROUND 3 /* lines of the screen that do not show functions of the table that stays */

static unsigned int lines(const struct top *t)
{
	unsigned int rows, columns;

	if (!t->screen)
		return 0;
	screen_size(&rows, &columns);
	return rows > AROUND + 1 ? rows - AROUND : 1;
}

static int make_table(struct top *t, const struct recording *r)
{
	struct shstk_write_opts opts = { .top = lines(t), .width = screen_limit() };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int ret;

	if (!out)
		return -ENOMEM;
	ret = shstk_profile_print(r->profile, out, "top", &opts);
	fclose(out);
	if (ret || !text) {
		free(text);
		return ret ? ret : -ENOMEM;
	}
	free(t->text);
	t->text = text;
	t->size = size;
	return 0;
}

int top_draw(struct top *t, const struct recording *r)
{
	char line[200];

	if (!t->screen)
		return 0;
	r->backend->describe(r, line, sizeof(line));
	return view_draw(&t->view, t->shot, line);
}

/* Keeps the interval for the screen, unless another one is to stay. */
static int take_shot(struct top *t, const struct recording *r)
{
	struct top_shot *shot;

	if (t->view.paused)
		return 0;
	shot = shot_take(r->profile);
	if (!shot)
		return -ENOMEM;
	shot_drop(t->shot);
	t->shot = shot;
	return 0;
}

static int show(struct top *t, const struct recording *r)
{
	int err;

	if (t->screen) {
		err = take_shot(t, r);
		return err ? err : top_draw(t, r);
	}
	fwrite(t->text, 1, t->size, stdout);
	putchar('\n');
	return fflush(stdout) || ferror(stdout) ? -EPIPE : 0;
}

void top_begin(struct top *t, const struct recording *r)
{
	*t = (struct top){
		.screen = screen_possible(),
		.next = r->began + (uint64_t)(r->opts->delay * 1e9),
		.renewed = r->began,
	};
	if (!t->screen && screen_wanted())
		complain(
			"tables instead of a screen: libncursesw6 is not installed, or the terminal '%s' is not known to it",
			getenv("TERM"));
	if (!t->screen)
		return;
	view_init(&t->view);
	screen_enter();
	top_draw(t, r);
}

enum top_wish top_keys(struct top *t, const struct recording *r)
{
	bool changed = false;
	int key;

	if (!t->screen)
		return TOP_GO_ON;
	while ((key = screen_key()) != KEY_NONE) {
		if (key == KEY_GONE)
			return TOP_GONE;
		if (view_key(&t->view, key))
			changed = true;
		else if (key == 'q')
			return TOP_END;
	}
	if (changed)
		top_draw(t, r);
	return TOP_GO_ON;
}

/*
 * Begins the next interval with an empty profile, and with new symbols if the old ones are old
 * enough.
 */
static int start_anew(struct top *t, struct recording *r, uint64_t at)
{
	if (!r->backend->renew || at - t->renewed < RENEW_NS) {
		shstk_profile_reset(r->profile);
		return 0;
	}
	t->renewed = at;
	return series_renew(r);
}

int top_update(struct top *t, struct recording *r, uint64_t at)
{
	int ret;

	if (at < t->next)
		return 0;
	t->next = at + (uint64_t)(r->opts->delay * 1e9);
	ret = make_table(t, r);
	if (!ret)
		ret = show(t, r);
	return ret ? ret : start_anew(t, r, at);
}

void top_leave(struct top *t)
{
	if (!t->screen)
		return;
	screen_leave();
	if (t->text)
		fwrite(t->text, 1, t->size, stdout);
}

int top_end(struct top *t, struct recording *r)
{
	int ret = 0;

	/* On a terminal the last whole interval is shown already. */
	if ((!t->screen || !t->text) && !shstk_profile_empty(r->profile)) {
		ret = make_table(t, r);
		if (!ret)
			fwrite(t->text, 1, t->size, stdout);
	}
	free(t->text);
	t->text = NULL;
	shot_drop(t->shot);
	if (t->screen)
		view_deinit(&t->view);
	return end_output() ? -EPIPE : ret;
}
