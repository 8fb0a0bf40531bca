// SPDX-License-Identifier: GPL-2.0-or-later
/* complete.c - print the options of all commands as a table. See complete.h. */
#include <string.h>

#include "libshstk/symbol/profile.h"
#include "tools/complete.h"
#include "tools/perf/rings.h"
#include "tools/record/heap/heap_values.h"

/* Writes words that are separated by blanks or commas as this|that. */
static void put_list(const char *words, FILE *out)
{
	const char *separator = "";

	while (*(words += strspn(words, ", "))) {
		int n = strcspn(words, ", ");

		fprintf(out, "%s%.*s", separator, n, words);
		separator = "|";
		words += n;
	}
}

static void put_argument(const char *name, FILE *out)
{
	if (!name)
		fputc('-', out);
	else if (!strcmp(name, "EVENT"))
		put_list(perf_event_names(), out);
	else if (!strcmp(name, "WHO"))
		fputs("auto|agent|perf|copies|rules|bpf", out);
	else if (!strcmp(name, "SOURCE"))
		fputs("auto|hardware|unwind", out);
	else if (!strcmp(name, "FORMAT"))
		put_list(shstk_format_list(), out);
	else if (!strcmp(name, "TYPE"))
		put_list(heap_type_names(), out);
	else
		fputs(name, out);
}

/*
 * Writes the beginning of a text: the words up to the first mark or the end of the line, before the
 * text goes into details.
 */
static void put_text(const char *text, FILE *out)
{
	static const char *const ends[] = { ". ", ": ", "; ", " (", "\n" };
	size_t n = text ? strlen(text) : 0;

	for (size_t i = 0; n && i < sizeof(ends) / sizeof(ends[0]); i++) {
		const char *end = strstr(text, ends[i]);

		if (end && (size_t)(end - text) < n)
			n = end - text;
	}
	if (n)
		fprintf(out, " %.*s", (int)n, text);
	fputc('\n', out);
}

static void put_option(const char *command, const struct argp_option *o, FILE *out)
{
	fprintf(out, "%s ", command);
	if (o->name)
		fprintf(out, "--%s ", o->name);
	else
		fputs("- ", out);
	if (o->key > ' ' && o->key < 0x7f)
		fprintf(out, "-%c ", o->key);
	else
		fputs("- ", out);
	/* An argument that may be left out cannot be a word of its own. */
	put_argument(o->flags & OPTION_ARG_OPTIONAL ? NULL : o->arg, out);
	put_text(o->doc, out);
}

static void put_options(const char *command, const struct argp *argp, FILE *out)
{
	for (const struct argp_option *o = argp->options; o && (o->name || o->key); o++)
		if (!(o->flags & OPTION_HIDDEN))
			put_option(command, o, out);
	for (const struct argp_child *c = argp->children; c && c->argp; c++)
		put_options(command, c->argp, out);
}

static void put_names(const struct command *commands, FILE *out)
{
	for (const struct command *c = commands; c->name; c++)
		fprintf(out, "%s%s", c == commands ? "" : "|", c->name);
}

void complete_print(const struct command *commands, FILE *out)
{
	fputs("shstk - - ", out);
	put_names(commands, out);
	fputs("|help|version\nshstk --help -h - say what the commands are\n"
	      "shstk --version -V - print the version\nhelp - - ",
	      out);
	put_names(commands, out);
	fputs(" say what a command does and its options\n"
	      "version - - - print the version\n",
	      out);
	for (const struct command *c = commands; c->name; c++) {
		fprintf(out, "%s - - %s", c->name, c->operand ? c->operand : "-");
		put_text(c->summary, out);
		put_options(c->name, c->argp, out);
		put_options(c->name, &common_argp, out);
	}
}
