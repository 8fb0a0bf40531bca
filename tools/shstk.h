/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shstk.h - what the commands of `shstk` share.
 *
 * A command is a function with main()'s arguments, a table of options for argp(3), and a row in the
 * table in tools/shstk.c. Help, usage and the completions of shells follow from these tables; a
 * test compares the manual pages with them. A command prints results to stdout and reports a
 * failure as one line on stderr.
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
 * Exit statuses. Commands that start a program return the status of the program, and use the second
 * group for their own failures, as env(1) and timeout(1) do. Wrong options end every command with
 * the same status, before anything is started.
 */
enum exit_status {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* the command could not do its work */
	EXIT_USAGE = 2, /* wrong options or arguments */
	EXIT_OWN = 125, /* failed before or besides the program */
	EXIT_NOEXEC = 126, /* the program could not be executed */
	EXIT_NOENT = 127, /* the program was not found */
	EXIT_SIGNAL = 128, /* plus the number of the signal that ended the program */
};

/**
 * struct command - one row of the command table
 * @name: word on the command line.
 * @run: does the work; argv[0] is "shstk NAME". Returns the exit status.
 * @argp: options. The name of an option's argument ("FILE", "PID", "auto|agent|perf") also tells
 *	how it is completed, see complete.h.
 * @operand: kind of the other arguments, with names as in @argp; or NULL.
 * @summary: one line for `shstk --help`.
 */
struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const struct argp *argp;
	const char *operand;
	const char *summary;
};

/* The functions of the commands. Their rows are in tools/shstk.c. */
int cmd_broker(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_crash(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_push(int argc, char **argv);
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
extern const struct argp crash_argp;
extern const struct argp diff_argp;
extern const struct argp events_argp;
extern const struct argp push_argp;
extern const struct argp record_argp;
extern const struct argp report_argp;
extern const struct argp rules_argp;
extern const struct argp run_argp;
extern const struct argp status_argp;
extern const struct argp top_argp;
extern const struct argp trace_argp;
extern const struct argp unwind_argp;

/* The options that every command has: -h, --help, --usage, -V and --version. */
extern const struct argp common_argp;

/**
 * command_parse() - parse the options of a command and those of common_argp
 * @argp: the command's options; parsing stops at the first non-option.
 * @argc: as given to the command.
 * @argv: as given to the command.
 * @input: passed to the parser as state->input.
 *
 * Return: index of the first argument that was not parsed. Does not return for --help, --version
 * and wrong options.
 */
int command_parse(const struct argp *argp, int argc, char **argv, void *input);

/**
 * parse_number() - parse a number in an option, for argp parsers
 * @state: as the parser got it.
 * @what: what the number is, for the error message.
 * @arg: the text.
 * @min: smallest number allowed.
 * @max: largest number allowed.
 *
 * Return: the number. Does not return if the text is no number in this range.
 */
unsigned long parse_number(const struct argp_state *state, const char *what, const char *arg,
			   unsigned long min, unsigned long max);

/*
 * Returns the number of bytes of the control character that @text begins with, or of the character
 * that changes the direction of writing. Sets @bidi to the code point in the second case, otherwise
 * to 0. Returns 0 if @text begins with neither.
 */
static inline size_t control_size(const char *text, unsigned int *bidi)
{
	const unsigned char *c = (const unsigned char *)text;
	unsigned int two = (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);

	*bidi = 0;
	if (c[0] < ' ' || c[0] == 0x7f)
		return *c ? 1 : 0;
	/* U+0080 to U+009F: one of these characters begins escape sequences, as ESC [ does. */
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
 * printable() - make foreign text safe for a terminal
 * @text: the text. Its control characters, and the characters that change the direction of writing,
 *	become question marks.
 */
static inline void printable(char *text)
{
	unsigned int bidi;

	for (; *text; text++)
		for (size_t n = control_size(text, &bidi); n; n--)
			text[n - 1] = '?';
}

/*
 * Prints foreign text to stdout: control characters as question marks, characters that change the
 * direction of writing as \u202e.
 */
void print_printable(const char *text);

/**
 * now_ns() - read a clock
 * @clock: as for clock_gettime(2).
 *
 * Return: nanoseconds.
 */
uint64_t now_ns(clockid_t clock);

/**
 * complain() - print one line "shstk NAME: ..." to stderr
 * @fmt: format as for printf(3), without the newline. The text is printed as by print_printable(),
 *	because it often contains foreign text.
 */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * end_output() - find out whether everything printed to stdout was written
 *
 * Return: EXIT_OK; or EXIT_FAILED, after a message with the reason.
 */
int end_output(void);

/**
 * find_object() - find a file that belongs to this command
 * @name: file name, such as "libshstk-agent.so".
 * @buf: receives the absolute path.
 * @size: bytes of @buf.
 *
 * Looks in the folder of the executable (build tree), then in ../lib/shstk beside that, then where
 * `make install` puts the file.
 *
 * Return: 0, or -ENOENT or -ENAMETOOLONG.
 */
int find_object(const char *name, char *buf, size_t size);

#endif
