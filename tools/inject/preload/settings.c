// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * settings.c - what `shstk run` wants, from the environment.
 */
#include <string.h>
#include <sys/syscall.h>

#include "start.h"

struct start_settings start_settings;

static char *first_digits;

static bool take_flag(const char **p, const char *name, size_t len)
{
	if (strncmp(*p, name, len))
		return false;
	*p += len;
	return true;
}

#define TAKE(p, name) take_flag(p, name, sizeof(name) - 1)

/* A comma-separated list, written by `shstk run`. */
static void parse_settings(char *text)
{
	struct start_settings *s = &start_settings;
	const char *p = text;
	size_t n = 0;

	while (*p) {
		if (TAKE(&p, "permissive"))
			s->permissive = true;
		else if (TAKE(&p, "lock"))
			s->lock = true;
		else if (TAKE(&p, "strict"))
			s->strict = true;
		else if (TAKE(&p, "quiet"))
			s->quiet = true;
		else if (TAKE(&p, "first=")) {
			for (first_digits = text + (p - text); *p >= '0' && *p <= '9'; p++)
				s->first = s->first * 10 + (*p - '0');
		} else if (TAKE(&p, "socket=")) {
			for (; *p && *p != ','; p++)
				if (n < sizeof(s->socket) - 1)
					s->socket[n++] = *p;
		} else if (TAKE(&p, "say=")) {
			s->say = p; /* the last one, whatever is in it */
			return;
		}
		while (*p && *p++ != ',')
			;
	}
}

bool start_is_first(void)
{
	return sys0(SYS_getpid) == start_settings.first;
}

/* A program that must not run without: the one `shstk run` was asked for. */
void start_give_up(const char *what, const char *why)
{
	bool end = !start_settings.permissive && (start_is_first() || start_settings.strict);

	if (end || start_is_first())
		start_say(what, why);
	if (end)
		sys1(SYS_exit_group, 125);
}

void start_read_settings(char **envp)
{
	for (; *envp; envp++)
		if (!strncmp(*envp, "SHSTK_START=", 12))
			parse_settings(*envp + 12);
}

/* What this process executes later is a child like all others. */
void start_first_done(void)
{
	for (char *p = first_digits; p && *p >= '0' && *p <= '9'; p++)
		*p = '0';
}
