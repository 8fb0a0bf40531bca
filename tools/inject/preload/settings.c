// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * settings.c - reads the settings that `shstk run` writes to the environment.
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

/* Parses the comma-separated list that `shstk run` writes. */
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
			s->say = p; /* the last setting; its text may contain commas */
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

/*
 * The program must not run without a shadow stack if it is the one that `shstk run` was called for,
 * or if strict is set; neither holds with permissive.
 */
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

/*
 * Removes @first from the environment: what this process executes later is treated like its
 * children.
 */
void start_first_done(void)
{
	for (char *p = first_digits; p && *p >= '0' && *p <= '9'; p++)
		*p = '0';
}
