// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * caution.c - prints warnings and remarks about a profile, each text once, and keeps them in the
 * profile. See caution.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/record/caution.h"
#include "tools/shstk.h"

/**
 * struct said - one line that was printed
 * @next: the line that was printed before it, or NULL.
 * @text: the line.
 */
struct said {
	struct said *next;
	char text[];
};

/* Adds @text to the lines that were printed. Returns false if it was printed already. */
static bool note(struct recording *r, const char *text)
{
	struct said *s;

	for (s = r->said; s; s = s->next)
		if (!strcmp(s->text, text))
			return false;
	s = malloc(sizeof(*s) + strlen(text) + 1);
	if (!s)
		return true;
	strcpy(s->text, text);
	s->next = r->said;
	r->said = s;
	return true;
}

static void say(struct recording *r, const char *fmt, va_list ap,
		int (*keep)(struct shstk_profile *profile, const char *text))
{
	char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0) {
		complain("out of memory: a line about missing samples is left out");
		return;
	}
	if (note(r, text))
		complain("%s", text);
	keep(r->profile, text);
	free(text);
}

void caution(struct recording *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(r, fmt, ap, shstk_profile_caution);
	va_end(ap);
}

void remark(struct recording *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(r, fmt, ap, shstk_profile_comment);
	va_end(ap);
}

void cautions_forget(struct recording *r)
{
	while (r->said) {
		struct said *s = r->said;

		r->said = s->next;
		free(s);
	}
}
