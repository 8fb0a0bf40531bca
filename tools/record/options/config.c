// SPDX-License-Identifier: GPL-2.0-or-later
/* config.c - options of `shstk record` that are in a file. See config.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/record/options/config.h"
#include "tools/shstk.h"

#define CONFIG_MOST (64u << 10) /* bytes of a file at most */

/**
 * struct line - a line with an option
 * @where: "FILE:NUMBER".
 * @name: name of the option.
 * @value: its value, or NULL if there is no =.
 */
struct line {
	const char *where;
	char *name;
	char *value;
};

/* Returns the text of a file, with a zero byte behind it. */
static char *read_text(const struct argp_state *state, const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = file ? malloc(CONFIG_MOST + 1) : NULL;
	size_t size;

	if (!text)
		argp_failure(state, EXIT_USAGE, errno, "cannot open '%s'", path);
	size = fread(text, 1, CONFIG_MOST + 1, file);
	if (ferror(file))
		argp_failure(state, EXIT_USAGE, errno, "cannot read '%s'", path);
	fclose(file);
	if (size > CONFIG_MOST)
		argp_failure(state, EXIT_USAGE, 0, "'%s' is larger than %u KiB", path,
			     CONFIG_MOST >> 10);
	text[size] = '\0';
	if (strlen(text) < size)
		argp_failure(state, EXIT_USAGE, 0, "'%s' holds a zero byte", path);
	return text;
}

/* Cuts the blanks off both ends of a text. Returns its beginning. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	for (len = strlen(text); len && strchr(" \t\r", text[len - 1]);)
		text[--len] = '\0';
	return text;
}

/* Takes a line apart. Returns false if there is no option in it. */
static bool split(char *text, struct line *line)
{
	char *equals;

	text = trim(text);
	if (!*text || *text == '#')
		return false;
	equals = strchr(text, '=');
	if (equals)
		*equals = '\0';
	line->name = trim(text);
	line->value = equals ? trim(equals + 1) : NULL;
	return true;
}

static bool is_end(const struct argp_option *o)
{
	return !o->name && !o->key && !o->doc && !o->group;
}

/* Finds an option by its whole name, also in the parsers below. */
static const struct argp_option *find(const struct argp *argp, const char *name)
{
	const struct argp_option *found;

	for (const struct argp_option *o = argp->options; o && !is_end(o); o++)
		if (o->name && !strcmp(o->name, name))
			return o;
	for (const struct argp_child *c = argp->children; c && c->argp; c++) {
		found = find(c->argp, name);
		if (found)
			return found;
	}
	return NULL;
}

/* What belongs on the command line, because it says what becomes of the file. */
static bool is_about_files(const char *name)
{
	return !strcmp(name, "config") || !strcmp(name, "dry-run");
}

/* Ends the process unless there is such an option, and it has a value if it needs one. */
static void check(const struct argp_state *state, const struct argp *argp, const struct line *line)
{
	const struct argp_option *o = find(argp, line->name);
	const char *wrong = NULL;

	if (!o)
		wrong = "is no option of shstk record";
	else if (is_about_files(line->name))
		wrong = "is an option of the command line only";
	else if (!o->arg && line->value)
		wrong = "has no value";
	else if (o->arg && !(o->flags & OPTION_ARG_OPTIONAL) && !line->value)
		wrong = "needs a value";
	if (wrong)
		argp_failure(state, EXIT_USAGE, 0, "%s: '%s' %s", line->where, line->name, wrong);
}

/*
 * Parses the option of a line as if it were on a command line of its own, whose command has the name
 * of the line: this is in the message if the value is wrong.
 */
static void parse(const struct argp_state *state, const struct argp *argp, void *input,
		  const struct line *line)
{
	char *option = NULL;
	int n = line->value ? asprintf(&option, "--%s=%s", line->name, line->value) :
			      asprintf(&option, "--%s", line->name);
	char *argv[] = { (char *)line->where, option, NULL };
	error_t err = n < 0 ? ENOMEM :
			      argp_parse(argp, 2, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, input);

	if (err)
		argp_failure(state, EXIT_USAGE, err, "%s", line->where);
}

void config_read(const struct argp_state *state, const struct argp *argp, void *input,
		 const char *path)
{
	char *next = read_text(state, path), *text, *where;
	struct line line;

	for (unsigned int number = 1; (text = strsep(&next, "\n")); number++) {
		if (!split(text, &line))
			continue;
		if (asprintf(&where, "%s:%u", path, number) < 0)
			argp_failure(state, EXIT_OWN, ENOMEM, "'%s'", path);
		line.where = where;
		check(state, argp, &line);
		parse(state, argp, input, &line);
		free(where);
	}
}
