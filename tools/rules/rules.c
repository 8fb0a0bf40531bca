// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk rules - makes, loads, lists and drops tables of unwind rules. shstk_perf.ko uses them to
 * walk the stacks of programs that have no shadow stack.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/reason.h"
#include "tools/rules/cache.h"
#include "tools/rules/compile.h"
#include "tools/rules/device.h"
#include "tools/rules/packages.h"
#include "tools/rules/running_files.h"
#include "tools/rules/daemon.h"
#include "tools/rules/source.h"
#include "tools/rules/chain_status.h"
#include "tools/rules/trust.h"
#include "tools/report/screen_name.h"
#include "tools/screen_lines.h"
#include "tools/shstk.h"

#define NUMBERS 53 /* columns behind the names of a list */
#define LEAST_NAME 8 /* columns of a name at least */

/**
 * struct options - what the user asked for, and what was done
 * @all: the files of all running processes (load), or all tables (drop).
 * @vdso: the vdso.
 * @bpf: for BPF programs, not for the module (serve).
 * @quiet: do not report success.
 * @pid: only the files of this process; 0 if no process is named.
 * @packages: all programs and libraries (compile).
 * @output: file for the table (compile), or NULL.
 * @folder: directory of the cache; NULL if none is named.
 * @starter: descriptors of the program that started this one (serve --bpf).
 * @device: open device, or -1.
 * @cache: open directory of the cache, or -1.
 * @done: number of files that were done.
 * @cached: number of those files whose table was in the cache already.
 * @failed: something failed.
 */
struct options {
	bool all, vdso, quiet, packages, bpf;
	pid_t pid;
	const char *output, *folder;
	struct rules_starter starter;
	int device, cache;
	unsigned int done, cached;
	bool failed;
};

enum {
	OPT_PACKAGES = 256,
	OPT_CACHE,
	OPT_BPF,
	OPT_TELL,
	OPT_UNTIL,
};

static const struct argp_option option_table[] = {
	{ "all", 'a', NULL, 0, "load: the files of all running processes; drop: all tables", 0 },
	{ "all-packages", OPT_PACKAGES, NULL, 0,
	  "compile: fill the cache for all programs and libraries of this system", 0 },
	{ "bpf", OPT_BPF, NULL, 0,
	  "serve: BPF programs that are linked with shstk-stack.bpf.o, without the module", 0 },
	{ "cache", OPT_CACHE, "DIR", 0, "serve, compile: keep tables in DIR (" CACHE_FOLDER ")",
	  0 },
	{ "output", 'o', "FILE", 0, "compile: write the table of one file to FILE", 0 },
	{ "pid", 'p', "PID", 0, "load: the files of a running process", 0 },
	{ "quiet", 'q', NULL, 0, "print failures only", 0 },
	{ "tell", OPT_TELL, "FD", 0,
	  "serve --bpf: send READY=1, or a failure, to this socket, and end when its other end is closed",
	  0 },
	{ "until", OPT_UNTIL, "FD", 0,
	  "serve --bpf: end when this descriptor is readable, or its other end is closed", 0 },
	{ "vdso", 'v', NULL, 0,
	  "compile, drop: the vdso too; load: it alone, if there are no files", 0 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'a':
		o->all = true;
		return 0;
	case OPT_PACKAGES:
		o->packages = true;
		return 0;
	case OPT_BPF:
		o->bpf = true;
		return 0;
	case OPT_CACHE:
		o->folder = arg;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case 'p':
		o->pid = (pid_t)parse_number(state, "process", arg, 1, 0x7fffffff);
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case OPT_TELL:
		o->starter.tell = (int)parse_number(state, "descriptor", arg, 0, 0x7fffffff);
		return 0;
	case OPT_UNTIL:
		o->starter.until = (int)parse_number(state, "descriptor", arg, 0, 0x7fffffff);
		return 0;
	case 'v':
		o->vdso = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rules_argp = {
	.options = option_table,
	.parser = parse,
	.args_doc =
		"compile [-v] [-o FILE] FILE...\n"
		"compile --all-packages|--cache=DIR [FILE...]\nload [-av] [-p PID] [FILE...]\n"
		"serve [--cache=DIR]\nserve --bpf [--tell=FD] [--until=FD]\nlist\ndrop [-av] [FILE...]\nstatus",
	.doc = "Callchains of perf and BPF for programs without shadow stacks, by the unwind "
	       "rules of their files, in the kernel.\v"
	       "Exit status: 0 done, 1 something failed, 2 wrong options.",
};

/* ---- Compiling and loading ---- */

static void print_table(const char *path, const struct compiled_table *t)
{
	print_printable(path);
	printf(": %zu functions, %" PRIu64 " KiB of code, %.1f%% described", t->functions,
	       t->code >> 10, t->code ? 100.0 * (double)t->described / (double)t->code : 0);
	if (t->cut)
		printf(", %" PRIu64 " bytes of it by nothing the kernel knows", t->cut);
	printf("; table of %zu KiB, %u rules, %u rows\n", (t->size + 1023) >> 10,
	       t->header->nr_rules, t->header->nr_rows);
}

static int write_table(const char *path, const struct compiled_table *t)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(t->header, t->size, 1, f) != 1 || fflush(f)) {
		complain("%s: %s", path, strerror(errno));
		if (f)
			fclose(f);
		return -1;
	}
	if (fclose(f)) {
		complain("%s: %s", path, strerror(errno));
		return -1;
	}
	return 0;
}

static int put_table(struct options *o, const struct rules_file *file, const char *path,
		     const struct compiled_table *table)
{
	int err = 0;

	if (o->device >= 0) {
		err = rules_upload(o->device, file, path, table);
		if (err)
			complain("%s: %s", path, rules_upload_error(err));
	} else if (o->output) {
		err = write_table(o->output, table);
	}
	if (!err && !o->quiet)
		print_table(path, table);
	return err;
}

static void fail(struct options *o, const char *path, const char *why)
{
	complain("%s: %s", path, why);
	o->failed = true;
}

static const char *open_error(int err)
{
	return err == -ENOEXEC ? rules_compile_error(err) : strerror(-err);
}

/* Uses the table of a file. @err is the result of making the table. */
static void use_table(struct options *o, const struct rules_file *file, const char *path, int err,
		      struct compiled_table *table)
{
	if (err) {
		fail(o, path, rules_compile_error(err));
		return;
	}
	if (put_table(o, file, path, table))
		o->failed = true;
	else
		o->done++;
	free(table->header);
}

/*
 * Handles a file that the user named, or the vdso. It is read in this process, with its debug file.
 */
static void use_own(struct options *o, struct rules_file *file, int err, const char *path)
{
	struct compiled_table table;

	if (err) {
		fail(o, path, open_error(err));
		return;
	}
	err = rules_compile(file->data, file->size, file->fd < 0 ? NULL : path, &table);
	use_table(o, file, path, err, &table);
	rules_file_close(file);
}

static void use_file(struct options *o, const char *path)
{
	struct rules_file file;
	int err = rules_file_open(&file, path);

	use_own(o, &file, err, path);
}

static void use_vdso(struct options *o)
{
	struct rules_file file;
	int err = rules_file_vdso(&file);

	use_own(o, &file, err, "[vdso]");
}

/*
 * Loads the table of the vdso with those of files that the user named. Without it chains of these files end
 * where a signal handler of arm64 returns, which is in the vdso. A kernel may have no vdso.
 */
static void add_vdso(struct options *o)
{
	struct rules_file file;
	int err = rules_file_vdso(&file);

	if (err != -ENOENT)
		use_own(o, &file, err, "[vdso]");
}

/* Handles a file that somebody runs. Anybody may have written it, so a worker reads it. */
static void use_running(void *arg, int fd, const char *path)
{
	const struct source source = { .cache = -1, .stop = -1 };
	struct compiled_table table;
	struct options *o = arg;
	struct rules_file file;
	int err = rules_file_begin(&file, fd);

	if (err) {
		fail(o, path, open_error(err));
		return;
	}
	err = source_table(&source, fd, &table, NULL);
	use_table(o, &file, path, err, &table);
	rules_file_close(&file);
}

static void use_all_running(struct options *o)
{
	const struct running r = {
		.pid = o->all ? 0 : o->pid,
		.stop = -1,
		.use = use_running,
		.arg = o,
	};
	int err = running_files(&r);

	if (!err)
		return;
	complain("process %d: %s", o->pid,
		 err == -ETIMEDOUT ? "reading what it has mapped took too long" : strerror(-err));
	o->failed = true;
}

static int use_all(struct options *o, char **files)
{
	const bool vdso = o->vdso || o->all || o->pid;

	if (vdso)
		use_vdso(o);
	if (o->all || o->pid)
		use_all_running(o);
	for (; *files; files++)
		use_file(o, *files);
	if (o->device >= 0 && o->done && !vdso)
		add_vdso(o);
	return end_output() || o->failed ? EXIT_FAILED : EXIT_OK;
}

static int usage_error(const char *text)
{
	complain("%s; see --help", text);
	return EXIT_USAGE;
}

/* ---- The cache and the daemon ---- */

static int open_cache(struct options *o)
{
	const char *folder = o->folder ? o->folder : CACHE_FOLDER;
	struct reason why;

	o->cache = cache_open(folder);
	if (o->cache >= 0)
		return 0;
	because(&why, "%s: %s", folder,
		o->cache == -EPERM ? "others may write to it" : strerror(-o->cache));
	complain("%s", why.text);
	/* Without the folder of its choice, a program is not served. */
	if (o->folder)
		rules_starter_failed(&o->starter, o->cache, why.text);
	return -1;
}

/* Makes sure that the cache has the table of one file. Closes @fd. */
static void fill_one(void *arg, int fd, const char *path)
{
	struct options *o = arg;
	const struct source source = { .cache = o->cache, .stop = -1 };
	bool cached;
	int err = source_table(&source, fd, NULL, &cached);
	/*
	 * Every system has some files without unwind information; with --packages that is no
	 * failure.
	 */
	bool usual = o->packages && (err == -ENOENT || err == -ENOEXEC);

	if (err && !usual) {
		complain("%s: %s", path, rules_compile_error(err));
		o->failed = true;
	} else if (!err && !trust_file(fd)) {
		complain("%s: others may write to it, so no table is kept", path);
		o->failed = true;
	}
	o->done += !err;
	o->cached += !err && cached;
	close(fd);
}

/* Fills the cache with the tables of files. Returns an exit status. */
static int fill_cache(struct options *o, char **files)
{
	if (open_cache(o))
		return EXIT_FAILED;
	if (o->packages)
		package_files(fill_one, o);
	for (; *files; files++) {
		int fd = open(*files, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

		if (fd >= 0) {
			fill_one(o, fd, *files);
			continue;
		}
		complain("%s: %s", *files, strerror(errno));
		o->failed = true;
	}
	cache_trim(o->cache);
	if (!o->quiet)
		printf("%u files, %u of them were in the cache\n", o->done, o->cached);
	return end_output() || o->failed ? EXIT_FAILED : EXIT_OK;
}

static int action_serve(struct options *o, char **files)
{
	if (*files || o->output || o->pid || o->all || o->vdso || o->packages)
		return usage_error(
			"serve takes no files, and no option but --bpf, --cache, --tell and --until");
	if (!o->bpf && (o->starter.tell >= 0 || o->starter.until >= 0))
		return usage_error("--tell and --until go with --bpf");
	if (o->bpf)
		return open_cache(o) && o->folder ? EXIT_FAILED :
						    rules_serve_bpf(o->cache, &o->starter);
	o->device = rules_device();
	/* Tables are made without a cache, too. Only a directory that the user named must open. */
	return o->device < 0 || (open_cache(o) && o->folder) ? EXIT_FAILED :
							       rules_serve(o->device, o->cache, -1);
}

static int action_compile(struct options *o, char **files)
{
	if (o->packages || o->folder) {
		if (o->output || o->vdso || o->all || o->pid)
			return usage_error(
				"compile --cache and compile --all-packages take no other options");
		if (!o->packages && !*files)
			return usage_error("no file given");
		return fill_cache(o, files);
	}
	if (o->all || o->pid)
		return usage_error("compile takes files");
	if (!*files && !o->vdso)
		return usage_error("no file given");
	if (o->output && (o->vdso ? *files : files[1]))
		return usage_error("compile -o takes exactly one file");
	return use_all(o, files);
}

static int action_load(struct options *o, char **files)
{
	if (o->output)
		return usage_error("-o is an option of compile");
	if (!*files && !o->all && !o->pid && !o->vdso)
		return usage_error("no file given");
	o->device = rules_device();
	return o->device < 0 ? EXIT_FAILED : use_all(o, files);
}

/* ---- The kernel's tables ---- */

static int drop_fd(const struct options *o, int fd, unsigned int flags, const char *path)
{
	struct shstk_rules_drop arg = { .fd = fd, .flags = flags };

	if (!ioctl(o->device, SHSTK_RULES_DROP, &arg))
		return 0;
	complain("%s: %s", path, errno == ENOENT ? "has no table" : strerror(errno));
	return -1;
}

static int drop_file(const struct options *o, const char *path)
{
	struct rules_file file;
	int err = rules_file_open(&file, path);

	if (err) {
		complain("%s: %s", path, strerror(-err));
		return -1;
	}
	err = drop_fd(o, file.fd, 0, path);
	rules_file_close(&file);
	return err;
}

static int action_drop(struct options *o, char **files)
{
	int err = 0;

	if (o->output || o->pid)
		return usage_error("drop takes files or --all");
	if (!*files && !o->all && !o->vdso)
		return usage_error("no file given");
	o->device = rules_device();
	if (o->device < 0)
		return EXIT_FAILED;
	if (o->all)
		return drop_fd(o, -1, SHSTK_RULES_DROP_ALL, "all") ? EXIT_FAILED : EXIT_OK;
	if (o->vdso)
		err = drop_fd(o, -1, 0, "[vdso]");
	for (; *files; files++)
		err |= drop_file(o, *files);
	return err ? EXIT_FAILED : EXIT_OK;
}

/* Returns how many columns a list has for names: on a terminal what the numbers leave. */
static int name_room(void)
{
	const int width = (int)screen_limit();

	if (!width || width - NUMBERS > SHSTK_RULES_NAME_LEN)
		return SHSTK_RULES_NAME_LEN;
	return width - NUMBERS > LEAST_NAME ? width - NUMBERS : LEAST_NAME;
}

static void print_listed(const struct shstk_rules_list *t)
{
	char name[SHSTK_RULES_NAME_LEN + 1] = "", buf[SCREEN_NAME_MAX];

	memcpy(name, t->name, SHSTK_RULES_NAME_LEN);
	printable(name);
	printf("%-*s %10" PRIu64 " %8u %8u %6u:%-3u %12" PRIu64 "\n", name_room(),
	       screen_name(name, name_room(), buf), (uint64_t)t->bytes, t->nr_rules, t->nr_rows,
	       (unsigned int)(t->dev >> 20), (unsigned int)(t->dev & 0xfffff), (uint64_t)t->ino);
}

static int action_list(struct options *o, char **files)
{
	struct shstk_rules_list arg = { 0 };

	if (*files)
		return usage_error("list takes no files");
	o->device = rules_device();
	if (o->device < 0)
		return EXIT_FAILED;
	printf("%-*s %10s %8s %8s %10s %12s\n", name_room(), "NAME", "BYTES", "RULES", "ROWS",
	       "DEVICE", "INODE");
	while (!ioctl(o->device, SHSTK_RULES_LIST, &arg))
		print_listed(&arg);
	if (errno != ENOENT) {
		complain(SHSTK_RULES_DEVICE ": %s", strerror(errno));
		return EXIT_FAILED;
	}
	return end_output();
}

static int action_status(struct options *o, char **files)
{
	int err;

	if (*files)
		return usage_error("status takes no files");
	o->device = rules_device();
	if (o->device < 0)
		return EXIT_FAILED;
	err = rules_print_status(o->device);
	if (err) {
		complain(SHSTK_RULES_DEVICE ": %s", strerror(-err));
		return EXIT_FAILED;
	}
	return end_output();
}

static const struct {
	const char *name;
	int (*run)(struct options *o, char **files);
} actions[] = {
	{ "compile", action_compile }, { "load", action_load },	    { "list", action_list },
	{ "drop", action_drop },       { "status", action_status }, { "serve", action_serve },
};

/* Returns the option that was given and is one of serve alone, or NULL. */
static const char *option_of_serve(const struct options *o)
{
	return o->bpf		     ? "--bpf" :
	       o->starter.tell >= 0  ? "--tell" :
	       o->starter.until >= 0 ? "--until" :
				       NULL;
}

/* Says that an action has no such option. */
static int refuse_option(const char *action, const char *option)
{
	complain("%s is an option of serve, not of %s; see --help", option, action);
	return EXIT_USAGE;
}

int cmd_rules(int argc, char **argv)
{
	struct options o = { .device = -1, .cache = -1, .starter = { .tell = -1, .until = -1 } };
	int next = command_parse(&rules_argp, argc, argv, &o), ret;
	char **action = argv + next;

	if (next == argc)
		return usage_error("no action given");
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(*action, actions[i].name))
			continue;
		/* The options of the command follow its name, and its help names the command. */
		*action = argv[0];
		next = command_parse(&rules_argp, argc - next, action, &o);
		if (actions[i].run != action_serve && option_of_serve(&o))
			return refuse_option(actions[i].name, option_of_serve(&o));
		screen_lines_fit();
		ret = actions[i].run(&o, action + next);
		if (o.device >= 0)
			close(o.device);
		if (o.cache >= 0)
			close(o.cache);
		return ret;
	}
	complain("unknown action '%s'; see --help", *action);
	return EXIT_USAGE;
}
