// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crash.c - the command line of `shstk crash`, and the order of things: read registers and mappings,
 * write the report while the process stands, then hand the core file on. The report is made by a
 * child, so that nothing in a hostile process can keep the core file from who gets it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "tools/crash/crash.h"
#include "tools/proc/tasks.h"
#include "tools/screen_lines.h"
#include "tools/shstk.h"

#define CRASH_DIR "/var/lib/shstk-crash"

enum {
	OPT_DIR = 256,
	OPT_MAX,
	OPT_CORE_DIR,
	OPT_CORE_SIZE,
	OPT_TIMEOUT,
	OPT_FULL_NAMES,
	OPT_CAUGHT,
	OPT_MINIDUMP,
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0,
	  "the process, which waits until its core file is read from standard input (%P in core_pattern)",
	  0 },
	{ "caught", OPT_CAUGHT, NULL, 0,
	  "the process waits in a handler of libshstk-crash, which tells the signal on standard input",
	  0 },
	{ "output", 'o', "FILE", 0, "write the report to FILE (-: standard output)", 0 },
	{ "dir", OPT_DIR, "DIR", 0, "write it to a new file in DIR (" CRASH_DIR ")", 0 },
	{ "max", OPT_MAX, "N", 0, "keep the newest N reports there (100), and as many core files",
	  0 },
	{ "json", 'j', NULL, 0, "write JSON", 0 },
	{ "minidump", OPT_MINIDUMP, NULL, 0,
	  "write a minidump file, as lldb and crash servers read, instead of a report", 0 },
	{ "core-dir", OPT_CORE_DIR, "DIR", 0, "keep core files in DIR", 0 },
	{ "core-size", OPT_CORE_SIZE, "MIB", 0, "keep at most MIB mebibytes of each (2048)", 0 },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0, "give the report up after SECONDS (10)", 0 },
	{ "full-names", OPT_FULL_NAMES, NULL, 0,
	  "C++ names with the default arguments of the standard library's templates", 0 },
	READ_LIMIT_OPTION,
	{ 0 },
};

static struct json json_output;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct crash_opts *o = state->input;

	switch (key) {
	case 'p':
		o->pid = parse_number(state, "process ID", arg, 1, INT_MAX);
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_DIR:
		o->dir = arg;
		return 0;
	case OPT_MAX:
		o->max = parse_number(state, "number of reports", arg, 1, 1000000);
		return 0;
	case 'j':
		o->trace.json = &json_output;
		return 0;
	case OPT_CORE_DIR:
		o->core_dir = arg;
		return 0;
	case OPT_CORE_SIZE:
		o->core_size = (uint64_t)parse_number(state, "size", arg, 1, 1 << 24) << 20;
		return 0;
	case OPT_TIMEOUT:
		o->timeout = parse_number(state, "time", arg, 1, 3600);
		return 0;
	case OPT_FULL_NAMES:
		o->trace.full_names = true;
		return 0;
	case OPT_MINIDUMP:
		o->minidump = true;
		return 0;
	case OPT_CAUGHT:
		o->caught = true;
		return 0;
	case READ_LIMIT_OPT:
		read_limit_parse(state, arg, &o->trace.read_limit);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp crash_argp = {
	.options = options,
	.parser = parse,
	.args_doc = "-p PID [-- COMMAND [ARG...]]\n--caught -p PID\nFILE",
	.doc = "Report why a process ended, with the stacks of all its threads: as the kernel's "
	       "handler of core files, or of a core file."
	       "\v"
	       "The first form is for kernel.core_pattern. Registers come from the core file on "
	       "standard input, and stacks from the memory of the process, which stands until its "
	       "core file is read; so the memory is not copied. Then COMMAND gets the whole core file "
	       "on its standard input, or it is kept or dropped. The second form is what "
	       "libshstk-crash calls.",
};

/* ---- The report ---- */

/* Returns how the names of reports end. */
static const char *suffix(const struct crash_opts *o)
{
	if (o->minidump)
		return ".dmp";
	return o->trace.json ? ".json" : ".txt";
}

/* Opens where the report goes. @path receives its name, "" for standard output. */
static int open_output(const struct crash_opts *o, const struct core *core, char *path, size_t size)
{
	int fd;

	*path = '\0';
	if (!o->output && o->pid)
		fd = crash_store(o->dir, core->comm, o->pid, suffix(o), path, size);
	else if (!o->output || !strcmp(o->output, "-"))
		return STDOUT_FILENO;
	else
		fd = open(o->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		complain("cannot write the report to %s: %s", o->output ? o->output : o->dir,
			 strerror(o->output ? errno : -fd));
	return fd;
}

/* Tells the system's log of a report, and removes the oldest ones. */
static void stored(const struct crash_opts *o, const struct core *core, const char *path)
{
	crash_prune(o->dir, suffix(o), o->max);
	openlog("shstk", 0, LOG_DAEMON);
	syslog(LOG_ERR, "process %d (%s) ended by signal %d: %s", o->pid, core->comm,
	       core->threads[0].signo, path);
	closelog();
}

static int write_minidump(const struct core *core)
{
	int err = crash_minidump(core, STDOUT_FILENO);

	if (!err)
		return EXIT_OK;
	complain("cannot write a minidump file: %s", strerror(-err));
	return EXIT_FAILED;
}

/* Prints the report to standard output. @kept says that it goes to a folder of reports, by @fd. */
static int print_report(const struct crash_opts *o, struct core *core, bool kept, int fd)
{
	int status;

	/* Of what could not be read, a handler of the kernel's can tell the report only. */
	if (kept && !o->trace.json) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		dup2(fd, STDERR_FILENO);
	} else if (fd == STDOUT_FILENO && !o->trace.json) {
		screen_lines_fit();
	}
	status = crash_print(o, core);
	return end_output() ? EXIT_FAILED : status;
}

static int write_report(const struct crash_opts *o, struct core *core)
{
	char path[PATH_MAX];
	int fd = open_output(o, core, path, sizeof(path)), status;

	if (fd < 0)
		return EXIT_FAILED;
	if (fd != STDOUT_FILENO && dup2(fd, STDOUT_FILENO) < 0)
		return EXIT_FAILED;
	status = o->minidump ? write_minidump(core) : print_report(o, core, *path != '\0', fd);
	if (*path)
		stored(o, core, path);
	return status;
}

/* Tells whether a thread sees other files than this process. */
static bool has_other_files(int tid)
{
	char path[64];
	struct stat theirs, ours;

	snprintf(path, sizeof(path), "/proc/%d/root", tid);
	if (stat(path, &theirs) || stat("/", &ours))
		return false;
	if (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", tid);
	return !stat(path, &theirs) && !stat("/proc/self/ns/mnt", &ours) &&
	       theirs.st_ino != ours.st_ino;
}

/*
 * Opens the memory of the process. This comes before its core file is read: until then it exists, and
 * another process that gets its number cannot be taken for it. A first thread that has ended leads to
 * no memory any more, but the others do. Returns a descriptor or -1.
 */
static int open_memory(int pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", tasks_living(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		complain("memory of process %d cannot be read: %s", pid, strerror(errno));
	return fd;
}

/* Reports a process whose registers are in @head and whose memory is @memory. */
static int report_living(struct crash_opts *o, const struct crash_head *head, int memory)
{
	int fd = fcntl(head->fd, F_DUPFD_CLOEXEC, 0), tid = tasks_living(o->pid), status;
	char root[64];
	struct reason why;
	struct core *core;

	if (fd < 0 || core_open_fd("standard input", fd, &core, &why)) {
		complain("%s", fd < 0 ? strerror(errno) : why.text);
		return EXIT_FAILED;
	}
	snprintf(root, sizeof(root), "/proc/%d/root", tid);
	core->memory = memory;
	core->living = o->pid;
	if (has_other_files(tid))
		o->trace.sysroot = root;
	status = write_report(o, core);
	core_close(core);
	return status;
}

/*
 * Reports a process whose own handler started this command. Its threads are held until this command
 * ends, so it ends in time even if it cannot write: who reads may be the process itself.
 */
static int report_caught(const struct crash_opts *o)
{
	struct core *core;
	struct reason why;
	sigset_t none;
	int status;

	sigemptyset(&none);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(o->timeout);
	if (crash_caught(o->pid, &core, &why)) {
		complain("%s", why.text);
		return EXIT_FAILED;
	}
	status = write_report(o, core);
	if (!status)
		crash_answer();
	core_close(core);
	return status;
}

static int report_file(const struct crash_opts *o)
{
	struct reason why;
	struct core *core;
	int status;

	if (core_open(o->file, &core, &why)) {
		complain("%s", why.text);
		return EXIT_FAILED;
	}
	status = write_report(o, core);
	core_close(core);
	return status;
}

/* Waits until a child ends, but not longer than @seconds. Returns its exit status. */
static int await(int pid, unsigned int seconds)
{
	int fd = syscall(SYS_pidfd_open, pid, 0), status, n;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = now_ns(CLOCK_MONOTONIC) + seconds * 1000000000ull;

	do {
		uint64_t now = now_ns(CLOCK_MONOTONIC);

		n = poll(&p, 1, now < end ? (int)((end - now) / 1000000) + 1 : 0);
	} while (n < 0 && errno == EINTR);
	if (!n) {
		complain("the report is given up after %u s", seconds);
		kill(pid, SIGKILL);
	}
	close(fd);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

/* Reports in a child. */
static int report_apart(struct crash_opts *o, const struct crash_head *head, int memory)
{
	int pid = fork();

	if (pid < 0) {
		complain("no process for the report: %s", strerror(errno));
		return EXIT_FAILED;
	}
	if (!pid) {
		/* The core file is not the child's: it must not hold the pipe either. */
		close(STDIN_FILENO);
		open("/dev/null", O_RDONLY);
		_exit(report_living(o, head, memory));
	}
	return await(pid, o->timeout);
}

/* ---- The core file ---- */

static int keep_core(const struct crash_opts *o, const struct crash_head *head)
{
	struct task_stat stat = { .name = "process" };
	char path[PATH_MAX] = "";
	int fd, err;

	task_stat(o->pid, o->pid, &stat);
	fd = crash_store(o->core_dir, stat.name, o->pid, ".core", path, sizeof(path));
	if (fd < 0) {
		complain("cannot keep the core file in %s: %s", o->core_dir, strerror(-fd));
		return EXIT_FAILED;
	}
	err = crash_keep(head, STDIN_FILENO, fd, o->core_size);
	if (close(fd) && !err)
		err = -errno;
	crash_prune(o->core_dir, ".core", o->max);
	if (err == -EFBIG)
		complain("core file %s is cut off at %llu MiB, see --core-size", path,
			 (unsigned long long)o->core_size >> 20);
	else if (err)
		complain("core file %s is not whole: %s", path, strerror(-err));
	return err ? EXIT_FAILED : EXIT_OK;
}

/* Does what is to be done with the core file. It is dropped by ending without reading it. */
static int hand_on(const struct crash_opts *o, const struct crash_head *head)
{
	if (head->fd < 0)
		return EXIT_FAILED;
	if (o->command)
		return crash_pass(head, STDIN_FILENO, o->command);
	return o->core_dir ? keep_core(o, head) : EXIT_OK;
}

/* Does the work of the kernel's handler. */
static int handle(struct crash_opts *o)
{
	int memory = open_memory(o->pid), status, after;
	struct crash_head head;
	struct reason why;

	signal(SIGPIPE, SIG_IGN);
	if (crash_read_head(STDIN_FILENO, &head, &why)) {
		complain("%s", why.text);
		status = EXIT_FAILED;
	} else {
		status = report_apart(o, &head, memory);
	}
	after = hand_on(o, &head);
	return status ? status : after;
}

/* The kernel starts its handler with nothing but standard input: no file may become the others. */
static void open_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_NOCTTY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static const char *contradiction(const struct crash_opts *o)
{
	if (o->caught && (!o->pid || o->command || o->core_dir))
		return "--caught reports the process named by -p PID, and there is no core file";
	if (!o->pid && !o->file)
		return "no core file given: name a FILE, or the process that is dumped with -p PID";
	if (o->minidump && o->trace.json)
		return "--minidump and --json are two formats: choose one";
	if (o->minidump && (!o->output || !strcmp(o->output, "-")) && (!o->pid || o->caught) &&
	    isatty(STDOUT_FILENO))
		return "a minidump file is not for a terminal: name a file with -o";
	if (!o->pid && (o->command || o->core_dir))
		return "a core file is kept or handed on only while it is written, with -p PID";
	if (o->command && o->core_dir)
		return "--core-dir keeps the core file, and a command gets it: choose one";
	if (o->pid && isatty(STDIN_FILENO))
		return "standard input is a terminal: with -p PID the kernel writes a core file there";
	return NULL;
}

int cmd_crash(int argc, char **argv)
{
	struct crash_opts o = {
		.max = 100,
		.core_size = 2ull << 30,
		.timeout = 10,
		.trace = { .depth = TRACE_DEPTH,
			   .fold = true,
			   .addresses = true,
			   .first_apart = true },
	};
	const char *wrong;
	int first;

	open_standard();
	first = command_parse(&crash_argp, argc, argv, &o);
	if (o.pid && first < argc)
		o.command = argv + first;
	else if (first + 1 == argc)
		o.file = argv[first];
	else if (first < argc)
		o.command = argv + first + 1;
	json_output.out = stdout;
	if (o.caught && !o.output && !o.dir)
		o.output = "-";
	if (!o.dir)
		o.dir = CRASH_DIR;
	wrong = contradiction(&o);
	if (wrong) {
		complain("%s", wrong);
		return EXIT_USAGE;
	}
	if (o.caught)
		return report_caught(&o);
	return o.pid ? handle(&o) : report_file(&o);
}
