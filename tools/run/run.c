// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk run - starts a program with shadow stacks.
 *
 * What the program and its C library are decides about the way:
 *
 *   tunables    A C library that handles shadow stacks itself (glibc 2.42 on
 *               arm64; x86 glibc built for CET) is told by GLIBC_TUNABLES, on
 *               arm64 also one that is linked into a marked program. An object
 *               is loaded that reports violations, and on x86 enables shadow
 *               stacks where the C library would not
 *               (tools/inject/preload/start_ready.c).
 *   preload     x86 programs whose C library knows nothing of shadow stacks get
 *               the start-up object (tools/inject/preload/start.h).
 *   supervise   Static x86 programs, with --permissive: a tracer enables shadow
 *               stacks and repairs violations (tools/run/supervise.h).
 *   refuse      Any other program is not started, or with --permissive started
 *               without a shadow stack; one line says so.
 *
 * The command stays as the parent: it passes signals on, names the places of violations that the
 * start-up object reports over a socket, and ends as the program ends.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/elf/objects.h"
#include "tools/proc/path.h"
#include "tools/status/support.h"
#include "tools/run/violations.h"
#include "tools/shstk.h"
#include "tools/run/supervise.h"
#include "tools/run/tunables.h"

#define START_OBJECT "libshstk-start.so"
#define START_CET "libshstk-start-cet.so"

struct options {
	const char *report;
	bool lock;
	bool permissive;
	bool strict;
	bool quiet;
};

enum option_key {
	OPT_LOCK = 'l',
	OPT_PERMISSIVE = 'p',
	OPT_STRICT = 's',
	OPT_QUIET = 'q',
	OPT_REPORT = 'o',
};

static const struct argp_option option_table[] = {
	{ "lock", OPT_LOCK, NULL, 0, "lock: the program cannot switch shadow stacks off", 0 },
	{ "permissive", OPT_PERMISSIVE, NULL, 0,
	  "report violations, repair them and go on; start programs that cannot have shadow stacks without them",
	  0 },
	{ "strict", OPT_STRICT, NULL, 0,
	  "start only what is known to work: everything is marked, or every fix of the start-up object is applied, also in programs that it starts",
	  0 },
	{ "report", OPT_REPORT, "FILE", 0, "append reports of violations to FILE instead of stderr",
	  0 },
	{ "quiet", OPT_QUIET, NULL, 0, "do not say what was done", 0 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_LOCK:
		o->lock = true;
		return 0;
	case OPT_PERMISSIVE:
		o->permissive = true;
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	case OPT_REPORT:
		o->report = arg;
		return 0;
	case ARGP_KEY_SUCCESS: /* ARGP_KEY_END does not come if a program is named */
		if (o->permissive && o->strict)
			argp_error(state, "--permissive and --strict exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

enum way {
	WAY_REFUSE,
	WAY_TUNABLES,
	WAY_PRELOAD,
	WAY_SUPERVISE,
};

struct plan {
	enum way way;
	char text[512]; /* what is done, or why not, or "" */
	char tunables[1024];
};

static void refuse(struct plan *p, const char *fmt, const char *arg)
{
	p->way = WAY_REFUSE;
	snprintf(p->text, sizeof(p->text), fmt, arg);
}

static const char *unavailable(int err)
{
	switch (-err) {
	case EOPNOTSUPP:
		return "this processor or kernel has no shadow stacks";
	case EINVAL:
		return "this kernel does not know shadow stacks";
	case ENOMEM:
		return "no memory for a shadow stack; a smaller stack limit "
		       "(ulimit -s) may help";
	case EPERM:
	case EBUSY:
		return "their status is locked or a seccomp filter forbids it";
	default:
		return strerror(-err);
	}
}

/*
 * Writes the tunables of glibc on x86. glibc enables shadow stacks if the program is marked; if it
 * is told "on", whatever its libraries are, otherwise only if they are marked too, and so is
 * everything that is loaded later. It locks them unless one of its two features is "permissive".
 */
static void tunables_x86(const struct options *o, struct plan *p)
{
	int len;
	const char *old = tunable_find("glibc.cpu.hwcaps", &len);

	snprintf(p->tunables, sizeof(p->tunables), "glibc.cpu.hwcaps=%.*s%sSHSTK%s%s", len, old,
		 len ? "," : "", o->strict ? "" : ":glibc.cpu.x86_shstk=on",
		 o->strict || o->lock ? "" : ":glibc.cpu.x86_ibt=permissive");
}

/*
 * Writes the tunable of glibc on arm64. 1: enabled and locked, and programs that are not marked
 * cannot be started. 2: enabled if all objects are marked. 3: enabled and locked whatever is
 * marked. The program's children inherit it: only --strict asks for 1.
 */
static void tunables_arm64(const struct options *o, bool marked, struct plan *p)
{
	snprintf(p->tunables, sizeof(p->tunables), "glibc.cpu.aarch64_gcs=%d",
		 o->strict	    ? 1 :
		 !marked || o->lock ? 3 :
				      2);
}

/* Plans for a C library that enables shadow stacks itself: which tunables it has to be told. */
static void plan_tunables(const struct options *o, const struct objects *set, struct plan *p)
{
	const struct object *block = objects_blocker(set);
	bool x86 = set->v[0].machine == EM_X86_64;

	if (block && o->strict) {
		refuse(p, "%s is not marked for shadow stacks", block->path);
		return;
	}
	p->way = WAY_TUNABLES;
	if (x86)
		tunables_x86(o, p);
	else
		tunables_arm64(o, !block, p);
	snprintf(p->text, sizeof(p->text), "shadow stack on, by the C library%s%s%s",
		 o->lock || o->strict || (block && !x86) ? ", locked" : "",
		 block ? "; not marked, but switched on all the same: " : "",
		 block ? block->path : "");
}

/* Maps all of a file, to search it. Returns NULL if that is not possible. */
static const unsigned char *map_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *bytes = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && st.st_size > 0) {
		*size = (size_t)st.st_size;
		bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	return bytes == MAP_FAILED ? NULL : bytes;
}

/*
 * Returns whether the unwinder pops the shadow stack when an exception is caught: then it contains
 * INCSSPQ.
 */
static bool pops_shadow_stack(const char *path)
{
	static const unsigned char incssp[] = { 0xf3, 0x48, 0x0f, 0xae };
	const unsigned char *bytes, *at, *end;
	bool found = false;
	size_t size;

	bytes = map_file(path, &size);
	if (!bytes)
		return false;
	for (at = bytes, end = bytes + size;
	     !found && end - at > 4 && (at = memmem(at, (size_t)(end - at) - 1, incssp, 4)); at++)
		found = (at[4] & 0xf8) == 0xe8;
	munmap((void *)bytes, size);
	return found;
}

/*
 * Returns whether a static program's C library knows the tunable, whose name it then contains. On
 * x86 that would tell nothing: the name is there whether glibc was built for CET or not.
 */
static bool knows_tunable(const char *path)
{
	static const char name[] = "glibc.cpu.aarch64_gcs";
	const unsigned char *bytes;
	bool found;
	size_t size;

	bytes = map_file(path, &size);
	if (!bytes)
		return false;
	found = memmem(bytes, size, name, sizeof(name));
	munmap((void *)bytes, size);
	return found;
}

static void plan_preload(const struct options *o, const struct objects *set, struct plan *p,
			 char *object, size_t size)
{
	const struct object *program = &set->v[0];
	const struct object *unwinder = objects_find(set, "libgcc_s.so.1");

	if (program->machine != EM_X86_64) {
		refuse(p,
		       "%s: its C library can't switch shadow stacks on "
		       "(glibc 2.42 can)",
		       program->path);
		return;
	}
	if (find_object(START_OBJECT, object, size)) {
		refuse(p, "%s was not found beside this command", START_OBJECT);
		return;
	}
	if (strpbrk(object, " :")) {
		refuse(p,
		       "LD_PRELOAD can't hold a path with blanks or colons: "
		       "%s",
		       object);
		return;
	}
	if (unwinder && !o->permissive && !pops_shadow_stack(unwinder->path)) {
		refuse(p,
		       "exceptions would end it: %s was built without "
		       "shadow stacks",
		       unwinder->path);
		return;
	}
	p->way = WAY_PRELOAD;
}

static void plan_static(const struct options *o, const struct object *program, struct plan *p)
{
	if (program->machine != EM_X86_64)
		refuse(p, "%s is statically linked: nothing can be loaded into it", program->path);
	else if (!o->permissive)
		refuse(p,
		       "%s is statically linked: only --permissive can "
		       "have shadow stacks on in it",
		       program->path);
	else
		p->way = WAY_SUPERVISE;
}

/*
 * Plans the object for a C library that handles shadow stacks: it reports violations, and enables
 * shadow stacks where that C library would not, in x86 programs that are not marked.
 */
static void plan_reports(const struct objects *set, struct plan *p, char *object, size_t size)
{
	const struct object *program = &set->v[0];
	bool x86 = program->machine == EM_X86_64;
	bool found = !find_object(x86 ? START_CET : START_OBJECT, object, size) &&
		     !strpbrk(object, " :");

	if (!found)
		*object = '\0';
	if (!x86 || program->marked)
		return;
	if (found)
		*p->text = '\0'; /* the object reports it */
	else
		refuse(p,
		       "%s is not marked, and this C library then leaves "
		       "shadow stacks off",
		       program->path);
}

/* Reads a small text file, at most @size - 1 bytes. Returns "" if there is none. */
static const char *first_bytes(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

/* Adds the preloaded objects, which have to be marked as those that the program needs. */
static int add_preloaded(struct objects *set)
{
	char list[4096];
	int err = objects_add_preloaded(set, getenv("LD_PRELOAD"));

	return err ? err :
		     objects_add_preloaded(set,
					   first_bytes("/etc/ld.so.preload", list, sizeof(list)));
}

static void make_plan(const struct options *o, const struct objects *set, struct plan *p,
		      char *object, size_t size)
{
	const struct object *program = &set->v[0];
	const struct object *libc = objects_find(set, "libc.so.6");
	const char *call;
	int err;

	p->tunables[0] = '\0';
	p->text[0] = '\0';
	*object = '\0';
	if (program->machine != machine_own()) {
		refuse(p, "%s is for another architecture", program->path);
		return;
	}
	if (program->bits != 64) {
		refuse(p, "%s is a 32-bit program", program->path);
		return;
	}
	/*
	 * Neither tunables nor LD_PRELOAD reach a program that gains privileges, and under a tracer
	 * the kernel does not give it its privileges.
	 */
	if (program->gains) {
		refuse(p,
		       "%s gains privileges: nothing can be told to its C "
		       "library or loaded into it",
		       program->path);
		return;
	}
	err = support_try_call(&call);
	if (err) {
		refuse(p, "%s", unavailable(err));
		return;
	}
	if (!program->interp) {
		if (program->marked && knows_tunable(program->path))
			plan_tunables(o, set, p);
		else
			plan_static(o, program, p);
		return;
	}
	if (libc && libc->marked) {
		plan_tunables(o, set, p);
		if (p->way == WAY_TUNABLES)
			plan_reports(set, p, object, size);
	} else {
		plan_preload(o, set, p, object, size);
	}
	if (p->way == WAY_REFUSE)
		*object = '\0';
}

/* Adds @value in front of or behind the value of a variable that is a list. */
static int env_add(const char *name, const char *value, char sep, bool front)
{
	const char *old = getenv(name);
	char *text;
	int ret;

	if (!old || !*old)
		return setenv(name, value, 1);
	if (asprintf(&text, "%s%c%s", front ? value : old, sep, front ? old : value) < 0)
		return -1;
	ret = setenv(name, text, 1);
	free(text);
	return ret;
}

/* Prepares and executes the program, in the child. */
static void become(const struct options *o, const struct plan *p, const char *object,
		   const char *socket, char **argv)
{
	char settings[200 + sizeof(p->text)];

	if (p->way == WAY_TUNABLES && env_add("GLIBC_TUNABLES", p->tunables, ':', false))
		_exit(EXIT_OWN);
	if (*object) {
		snprintf(settings, sizeof(settings), "first=%d%s%s%s%s,socket=%s%s%s", getpid(),
			 o->permissive ? ",permissive" : "", o->strict ? ",strict" : "",
			 o->lock ? ",lock" : "", o->quiet ? ",quiet" : "", socket,
			 *p->text ? ",say=" : "", p->text);
		if (setenv("SHSTK_START", settings, 1) || env_add("LD_PRELOAD", object, ':', true))
			_exit(EXIT_OWN);
	}
	execvp(argv[0], argv);
	complain("%s: %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOENT : EXIT_NOEXEC);
}

/* Opens a socket with a name that nobody can guess. Returns -1 on failure. */
static int open_socket(char *name, size_t size)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	unsigned long long random[2];
	int fd, n;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -1;
	n = snprintf(name, size, "shstk-run-%016llx%016llx", random[0], random[1]);
	memcpy(at.sun_path + 1, name, (size_t)n);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void drain(int socket, struct reporter *reporter)
{
	char text[4096];
	ssize_t n;

	while ((n = recv(socket, text, sizeof(text) - 1, 0)) >= 0) {
		text[n] = '\0';
		reporter_take(reporter, text);
	}
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Passes signals on until the program has ended. Returns its exit status. */
static int follow(pid_t pid, int signals, int socket, struct reporter *reporter)
{
	struct pollfd fds[2] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = socket, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	int status;

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return EXIT_OWN;
		if (socket >= 0)
			drain(socket, reporter);
		if (read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo == SIGCHLD) {
			if (waitpid(pid, &status, WNOHANG) != pid)
				continue;
			if (socket >= 0)
				drain(socket, reporter);
			return status_of(status);
		}
		/*
		 * The kernel's signals come from the terminal, which sends them to the program too.
		 */
		if (info.ssi_code == SI_KERNEL)
			continue;
		kill(pid, (int)info.ssi_signo);
	}
}

static int start(const struct options *o, const struct plan *p, const char *object, char **argv)
{
	static const int passed[] = { SIGCHLD, SIGHUP,	SIGINT,	 SIGQUIT,
				      SIGTERM, SIGUSR1, SIGUSR2, SIGALRM };
	struct reporter *reporter = NULL;
	char name[64] = "";
	int socket = -1, signals, ret;
	sigset_t set, old;
	pid_t pid;

	if (*object) {
		ret = reporter_create(o->report, &reporter);
		if (ret && o->report) {
			complain("%s: %s", o->report, strerror(-ret));
			return EXIT_OWN;
		}
		/* Without a socket the object writes to stderr itself. */
		socket = ret ? -1 : open_socket(name, sizeof(name));
	}
	if (p->way == WAY_TUNABLES && !*object && *p->text && !o->quiet)
		complain("%s (not confirmed)", p->text);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	pid = signals < 0 ? -1 : fork();
	if (pid < 0) {
		complain("%s: %s", argv[0], strerror(errno));
		return EXIT_OWN;
	}
	if (!pid) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		become(o, p, object, socket < 0 ? "" : name, argv);
	}
	ret = follow(pid, signals, socket, reporter);
	reporter_destroy(reporter);
	close(signals);
	if (socket >= 0)
		close(socket);
	return ret;
}

static bool announces;

static void report_supervised(int err)
{
	if (err)
		complain("no shadow stack: %s", strerror(err));
	else if (announces)
		complain("shadow stack on, supervised");
}

static int start_supervised(const struct options *o, char **argv)
{
	struct reporter *reporter;
	int ret = reporter_create(o->report, &reporter);

	if (ret) {
		complain("%s: %s", o->report ? o->report : "report", strerror(-ret));
		return EXIT_OWN;
	}
	announces = !o->quiet;
	ret = supervise(argv, o->lock, reporter, report_supervised);
	reporter_destroy(reporter);
	return ret;
}

/*
 * Returns why exec would fail, or 0. This is checked before it is said that shadow stacks are
 * enabled.
 */
static int cannot_execute(const char *name, const char *path, const struct objects *set)
{
	const char *interp = set->v[0].interp;

	if (access(path, X_OK)) {
		complain("%s: %s", name, strerror(errno));
		return EXIT_NOEXEC;
	}
	if (interp && access(interp, F_OK)) {
		complain("%s: its dynamic linker %s was not found", name, interp);
		return EXIT_NOENT;
	}
	return 0;
}

static int run_program(const struct options *o, const char *path, char **argv)
{
	char object[4096];
	struct objects set;
	struct plan plan;
	int err;

	err = objects_load(path, NULL, &set);
	if (!err) {
		err = add_preloaded(&set);
		if (err)
			objects_deinit(&set);
	}
	if (err) {
		complain("%s: %s", argv[0], objects_error(path, err));
		return err == -ENOENT ? EXIT_NOENT : EXIT_NOEXEC;
	}
	err = cannot_execute(argv[0], path, &set);
	if (err) {
		objects_deinit(&set);
		return err;
	}
	make_plan(o, &set, &plan, object, sizeof(object));
	objects_deinit(&set);
	if (plan.way == WAY_REFUSE) {
		complain("%s: %s", plan.text, o->permissive ? "started without" : "not started");
		if (!o->permissive)
			return EXIT_OWN;
	}
	if (plan.way == WAY_SUPERVISE)
		return start_supervised(o, argv);
	return start(o, &plan, object, argv);
}

const struct argp run_argp = {
	.options = option_table,
	.parser = parse,
	.args_doc = "[--] PROGRAM [ARGUMENT...]",
	.doc = "Start a program with shadow stacks on.\v"
	       "Ends with the program's status; 125 if shadow stacks could not be "
	       "switched on, 2 if options are wrong.",
};

int cmd_run(int argc, char **argv)
{
	struct options o = { 0 };
	int next = command_parse(&run_argp, argc, argv, &o);
	char *path;
	int err, ret;

	if (next == argc) {
		complain("no program given; see --help");
		return EXIT_USAGE;
	}
	err = find_program(argv[next], &path);
	if (err) {
		complain("%s: %s", argv[next], find_program_error(argv[next], err));
		return err == -EACCES ? EXIT_NOEXEC : EXIT_NOENT;
	}
	ret = run_program(&o, path, argv + next);
	free(path);
	return ret;
}
