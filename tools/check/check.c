// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk check - tells whether a program and every library that it loads are marked for shadow
 * stacks, which objects block it, and which packages own these objects.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "libshstk/symbol/json.h"
#include "tools/check/survey.h"
#include "tools/check/vdso.h"
#include "tools/elf/objects.h"
#include "tools/proc/path.h"
#include "tools/screen_lines.h"
#include "tools/shstk.h"

struct options {
	const char *root;
	pid_t pid;
	bool json;
	bool all;
	bool packages;
	bool survey;
};

enum { OPT_PACKAGES = 256 };

static const struct argp_option option_table[] = {
	{ "all", 'a', NULL, 0, "list marked objects too", 0 },
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ "pid", 'p', "PID", 0, "check a running process, with what it loaded by dlopen()", 0 },
	{ "root", 'r', "DIR", 0, "check a system whose root folder is DIR", 0 },
	{ "no-packages", 'n', NULL, 0, "do not ask dpkg which packages own the objects", 0 },
	{ "packages", OPT_PACKAGES, NULL, 0,
	  "check all programs of the system, and count how many of them each object keeps from shadow stacks",
	  0 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	char *end;
	long pid;

	switch (key) {
	case 'a':
		o->all = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'n':
		o->packages = false;
		return 0;
	case OPT_PACKAGES:
		o->survey = true;
		return 0;
	case 'p':
		pid = strtol(arg, &end, 10);
		if (*end || end == arg || pid < 1 || pid > 0x7fffffff)
			argp_error(state, "'%s' is not a process ID", arg);
		o->pid = (pid_t)pid;
		return 0;
	case 'r':
		o->root = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char *mark_word(const struct object *o)
{
	switch (o->machine) {
	case EM_X86_64:
		return "SHSTK";
	case EM_AARCH64:
		return "GCS";
	case EM_RISCV:
		return "CFI_SS";
	default:
		return "shadow-stack";
	}
}

static size_t count_unmarked(const struct objects *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++)
		n += !set->v[i].marked;
	return n;
}

static void put_object(struct json *json, const struct objects *set, size_t i)
{
	const struct object *o = &set->v[i];

	shstk_json_open(json, NULL, '{');
	shstk_json_string(json, "path", o->path);
	shstk_json_bool(json, "marked", o->marked);
	shstk_json_string(json, "package", o->package);
	shstk_json_string(json, "needed_by", i ? set->v[o->parent].path : NULL);
	shstk_json_close(json);
}

/*
 * Writes the vDSO's mark: null for another machine than this one, or where the mark does not
 * matter.
 */
static void put_vdso(struct json *json, const struct objects *set)
{
	enum vdso_mark mark = *set->root || set->v[0].machine != machine_own() ? VDSO_NONE :
										 vdso_mark();

	if (mark == VDSO_NONE)
		shstk_json_string(json, "vdso_marked", NULL);
	else
		shstk_json_bool(json, "vdso_marked", mark == VDSO_MARKED);
}

/* Prints a line after all programs if the running kernel's vDSO blocks them. */
static void print_vdso(const struct options *o)
{
	struct utsname system;

	if (o->root || o->json || vdso_mark() != VDSO_UNMARKED || uname(&system))
		return;
	printf("vDSO of the running kernel (Linux %s): not marked SHSTK: a C library that looks at it switches shadow stacks on for no program\n",
	       system.release);
}

static void print_json(struct json *json, const struct objects *set)
{
	const struct object *block = objects_blocker(set);

	shstk_json_open(json, NULL, '{');
	shstk_json_string(json, "program", set->script ? set->script : set->v[0].path);
	shstk_json_string(json, "executable", set->v[0].path);
	shstk_json_string(json, "arch", machine_name(set->v[0].machine));
	shstk_json_int(json, "bits", set->v[0].bits);
	shstk_json_bool(json, "marked", !block && !set->missing_n);
	put_vdso(json, set);
	shstk_json_string(json, "blocker", block ? block->path : NULL);
	shstk_json_open(json, "objects", '[');
	for (size_t i = 0; i < set->n; i++)
		put_object(json, set, i);
	shstk_json_close(json);
	shstk_json_open(json, "missing", '[');
	for (size_t i = 0; i < set->missing_n; i++)
		shstk_json_string(json, NULL, set->missing[i]);
	shstk_json_close(json);
	shstk_json_close(json);
}

static void print_verdict(const struct objects *set)
{
	size_t unmarked = count_unmarked(set);
	const struct object *p = &set->v[0];

	if (p->bits != 64)
		printf("%u-bit program: no shadow stacks\n", p->bits);
	else if (!unmarked && !set->missing_n)
		printf("marked %s, with all %zu objects it loads\n", mark_word(p), set->n - 1);
	else if (!unmarked)
		printf("marked %s, but %zu libraries were not found\n", mark_word(p),
		       set->missing_n);
	else
		printf("blocked: %zu of %zu objects not marked %s\n", unmarked, set->n,
		       mark_word(p));
}

/* Prints the result as text. Names of files and packages may contain anything. */
static void print_text(const struct objects *set, bool all)
{
	print_printable(set->script ? set->script : set->v[0].path);
	fputs(": ", stdout);
	if (set->script) {
		fputs("script of ", stdout);
		print_printable(set->v[0].path);
		fputs(": ", stdout);
	}
	print_verdict(set);
	for (size_t i = 0; i < set->n; i++) {
		const struct object *o = &set->v[i];

		if (o->marked && !all)
			continue;
		printf("  %-3s  ", o->marked ? "yes" : "no");
		print_printable(o->path);
		printf("%*s ", (int)(strlen(o->path) < 52 ? 52 - strlen(o->path) : 0), "");
		print_printable(o->package ? o->package : "-");
		putchar('\n');
	}
	for (size_t i = 0; i < set->missing_n; i++) {
		fputs("  ?    not found: ", stdout);
		print_printable(set->missing[i]);
		putchar('\n');
	}
}

/*
 * Checks a program, or a process if @what is NULL. Returns EXIT_OK if it is marked, EXIT_FAILED if
 * it is not, or cannot be read.
 */
static int check(const struct options *o, const char *what, struct json *json)
{
	struct objects set;
	char *path = NULL;
	int err, ret;

	if (what && !o->root)
		err = find_program(what, &path);
	else
		err = what && !(path = strdup(what)) ? -ENOMEM : 0;
	if (!err)
		err = what ? objects_load(path, o->root, &set) : objects_load_pid(o->pid, &set);
	if (err) {
		if (what)
			complain("%s: %s", what,
				 !path ? find_program_error(what, err) :
					 objects_error(o->root ? NULL : path, err));
		else
			complain("process %d: %s", o->pid, strerror(-err));
		free(path);
		return EXIT_FAILED;
	}
	free(path);
	if (o->packages)
		objects_find_packages(&set);
	if (o->json)
		print_json(json, &set);
	else
		print_text(&set, o->all);
	ret = objects_blocker(&set) || set.missing_n || set.v[0].bits != 64;
	objects_deinit(&set);
	return ret ? EXIT_FAILED : EXIT_OK;
}

const struct argp check_argp = {
	.options = option_table,
	.parser = parse,
	.args_doc = "PROGRAM...\n-p PID\n--packages",
	.doc = "Tell whether programs and the libraries they load are marked for "
	       "shadow stacks, and what blocks them.\v"
	       "Exit status: 0 everything is marked, 1 something is not or could "
	       "not be read, 2 wrong options.",
};

/* Checks all programs of the system. */
static int check_all(const struct options *o)
{
	struct json json = { .out = stdout };
	const struct survey_opts opts = {
		.root = o->root,
		.packages = o->packages,
		.all = o->all,
		.json = o->json ? &json : NULL,
	};
	long blocked = survey(&opts);

	if (blocked == -ENOENT)
		complain("there are no programs below /usr, /opt, /bin and /sbin%s%s",
			 o->root ? " of " : "", o->root ? o->root : "");
	else if (blocked < 0)
		complain("not all programs can be checked: %s", strerror(-blocked));
	print_vdso(o);
	return end_output() || blocked ? EXIT_FAILED : EXIT_OK;
}

int cmd_check(int argc, char **argv)
{
	struct options o = { .packages = true };
	int next = command_parse(&check_argp, argc, argv, &o);
	struct json json = { .out = stdout };
	int ret = EXIT_OK;

	if (o.survey && (o.pid || next != argc)) {
		complain(
			"--packages checks all programs of the system: give no programs and no PID with it");
		return EXIT_USAGE;
	}
	if (!o.json)
		screen_lines_fit();
	if (o.survey)
		return check_all(&o);
	if ((next == argc) == !o.pid) {
		complain(o.pid ? "give either programs or a PID" : "no program given; see --help");
		return EXIT_USAGE;
	}
	if (o.json)
		shstk_json_open(&json, NULL, '[');
	if (o.pid)
		ret = check(&o, NULL, &json);
	for (int i = next; i < argc; i++)
		if (check(&o, argv[i], &json))
			ret = EXIT_FAILED;
	if (o.json)
		shstk_json_close(&json);
	print_vdso(&o);
	return end_output() ? EXIT_FAILED : ret;
}
