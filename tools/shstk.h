/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tools/shstk.h - what the commands of `shstk` share.
 *
 * A command is one function with main()'s arguments, a table of options for
 * argp(3), and one row in the table of tools/shstk.c. Help, usage and the
 * completion of shells follow from these tables; a test compares the manual
 * pages with them. A command prints results to stdout, and reports a failure as
 * one line on stderr.
 */
#ifndef TOOLS_SHSTK_H
#define TOOLS_SHSTK_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "libshstk/symbol/bidi.h"

/*
 * Exit statuses. Commands that start a program return that program's status
 * and use the second group for themselves, as env(1) and timeout(1) do. Wrong
 * options end every command alike, before anything is started.
 */
enum exit_status {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* the command could not do its work */
	EXIT_USAGE = 2, /* wrong options or arguments */
	EXIT_OWN = 125, /* failed before or besides the program */
	EXIT_NOEXEC = 126, /* the program could not be executed */
	EXIT_NOENT = 127, /* the program was not found */
	EXIT_SIGNAL = 128, /* plus the number of the signal that ended it */
};

/**
 * struct command - one row of the command table
 * @name: word on the command line.
 * @run: does it; argv[0] is "shstk NAME". Returns the exit status.
 * @argp: its options. What an argument of one is called there ("FILE",
 *	"PID", "auto|agent|perf") is also how it is completed: complete.h.
 * @operand: what its other arguments are, likewise; or NULL.
 * @summary: one line for `shstk --help`.
 */
struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const struct argp *argp;
	const char *operand;
	const char *summary;
};

/* The functions of the commands; their rows are in tools/shstk.c. */
int cmd_broker(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_rules(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_unwind(int argc, char **argv);

extern const struct argp broker_argp;
extern const struct argp check_argp;
extern const struct argp diff_argp;
extern const struct argp events_argp;
extern const struct argp record_argp;
extern const struct argp report_argp;
extern const struct argp rules_argp;
extern const struct argp run_argp;
extern const struct argp status_argp;
extern const struct argp top_argp;
extern const struct argp trace_argp;
extern const struct argp unwind_argp;

/* -h, --help, --usage, -V and --version, which every command has. */
extern const struct argp common_argp;

/**
 * command_parse() - parse options, with those of common_argp
 * @argp: the command's options; parsing stops at the first non-option.
 * @argc: as given to the command.
 * @argv: as given to the command.
 * @input: handed to the parser as state->input.
 *
 * Return: index of the first argument that was not parsed. Does not return
 * for --help, --version and wrong options.
 */
int command_parse(const struct argp *argp, int argc, char **argv, void *input);

/**
 * parse_number() - a number in an option, for argp parsers
 * @state: as the parser got it.
 * @what: what the number is, for the error.
 * @arg: the text.
 * @min: smallest number allowed.
 * @max: largest number allowed.
 *
 * Return: the number. Does not return if the text is not one in that range.
 */
unsigned long parse_number(const struct argp_state *state, const char *what, const char *arg,
			   unsigned long min, unsigned long max);

/*
 * Bytes of the control character that @text begins with, or of the character that changes the
 * direction of writing (its code point is then @bidi, otherwise 0); 0: it is neither.
 */
static inline size_t control_size(const char *text, unsigned int *bidi)
{
	const unsigned char *c = (const unsigned char *)text;
	unsigned int two = (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);

	*bidi = 0;
	if (c[0] < ' ' || c[0] == 0x7f)
		return *c ? 1 : 0;
	/* U+0080 to U+009F: one of these begins sequences as ESC [ does. */
	if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
		return 2;
	if (c[0] == 0xd8 && shstk_is_bidi(two))
		*bidi = two;
	else if (c[0] == 0xe2 && (c[1] & 0xc0) == 0x80 && (c[2] & 0xc0) == 0x80)
		*bidi = 0x2000 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
	if (!shstk_is_bidi(*bidi))
		*bidi = 0;
	return !*bidi ? 0 : *bidi < 0x800 ? 2 : 3;
}

/**
 * printable() - make foreign text fit for a terminal
 * @text: its control characters, and those that change the direction of writing, become
 *	question marks.
 */
static inline void printable(char *text)
{
	unsigned int bidi;

	for (; *text; text++)
		for (size_t n = control_size(text, &bidi); n; n--)
			text[n - 1] = '?';
}

/* Prints foreign text to stdout: control characters as question marks, those that change the
 * direction of writing as \u202e.
 */
void print_printable(const char *text);

/**
 * now_ns() - what a clock says
 * @clock: as for clock_gettime(2).
 *
 * Return: nanoseconds.
 */
uint64_t now_ns(clockid_t clock);

/**
 * complain() - print one line "shstk NAME: ..." to stderr
 * @fmt: as printf(3), without the newline. It is printed as print_printable() does: what
 *	is complained of is often foreign.
 */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * end_output() - was all that was printed to stdout written?
 *
 * Return: EXIT_OK; or EXIT_FAILED, and it was said why.
 */
int end_output(void);

/**
 * find_object() - find a file that belongs to this command
 * @name: file name, such as "libshstk-agent.so".
 * @buf: receives the absolute path.
 * @size: size of @buf in bytes.
 *
 * Looks beside the executable (build tree), then in ../lib/shstk beside it,
 * then where `make install` puts it.
 *
 * Return: 0, or -ENOENT or -ENAMETOOLONG.
 */
int find_object(const char *name, char *buf, size_t size);

#endif
