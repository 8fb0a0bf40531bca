// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target.c - the command that is recorded: finds out whether the agent can enter it, and starts it.
 *
 * The agent enters by LD_PRELOAD. That needs a dynamic loader that reads LD_PRELOAD and is not in
 * its secure mode. What prevents it is reported before the command runs. Children that the agent
 * cannot enter run without it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/elf/golang.h"
#include "tools/elf/object.h"
#include "tools/inject/agent/ring.h"
#include "tools/proc/path.h"
#include "tools/proc/script.h"
#include "tools/record/targets/target.h"
#include "tools/shstk.h"

static bool runnable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Finds what execvp() would execute. Returns 0, EXIT_NOENT, EXIT_NOEXEC or EXIT_OWN. */
static int find_executable(const char *name, char path[PATH_MAX])
{
	char *found;
	int err = find_program(name, &found);

	if (!err) {
		bool fits = snprintf(path, PATH_MAX, "%s", found) < PATH_MAX;

		free(found);
		if (fits && runnable(path))
			return 0;
		err = fits && !access(path, F_OK) ? -EACCES : -ENOENT;
	}
	return err == -ENOENT ? EXIT_NOENT : err == -EACCES ? EXIT_NOEXEC : EXIT_OWN;
}

static bool becomes_other(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	return ((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
	       ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid());
}

static bool gains_capabilities(const char *path)
{
	return getuid() && getxattr(path, "security.capability", NULL, 0) > 0;
}

/*
 * Returns why the agent cannot enter the valid ELF program @o, as the rest of a sentence, or NULL.
 */
static const char *object_reason(const char *path, int fd, const struct object *o)
{
	if (o->bits != 64)
		return "is a 32-bit program: cannot be recorded";
	if (o->machine != machine_own())
		return "is a program for another CPU: cannot be recorded";
	/* The dynamic loader itself has no interpreter either. */
	if (!o->interp)
		return strncmp(path_name(path), "ld-linux", 8) ?
			       "is statically linked: the agent cannot be preloaded" :
			       NULL;
	if (strncmp(path_name(o->interp), "ld-linux", 8) &&
	    strncmp(path_name(o->interp), "ld-musl", 7))
		return "uses another C library than glibc or musl";
	/* Go's position-independent programs name a loader, but do not use a C library. */
	return golang_kind(fd) == GOLANG_ALONE ?
		       "is made by Go without C: the agent cannot sample its threads" :
		       NULL;
}

/* Returns why the agent cannot enter a program, as the rest of a sentence, or NULL if it can. */
static const char *elf_reason(const char *path, int fd, int *status)
{
	const char *reason = "is not a valid program";
	struct object o = { .path = NULL };
	char magic[SELFMAG];

	/* A file that is not ELF may be one that the kernel can execute in another way. */
	if (pread(fd, magic, SELFMAG, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG))
		return NULL;
	*status = EXIT_NOEXEC;
	if (!object_read(fd, "", &o)) {
		*status = EXIT_OWN;
		reason = object_reason(path, fd, &o);
	}
	object_deinit(&o);
	return reason;
}

static int find_target(const char *name, char path[PATH_MAX])
{
	int ret = find_executable(name, path);

	if (ret == EXIT_NOENT)
		complain("%s: command not found", name);
	else if (ret == EXIT_NOEXEC)
		complain("%s: not an executable file", name);
	else if (ret)
		complain("%s: out of memory", name);
	return ret;
}

int target_find(const char *name)
{
	char path[PATH_MAX];

	return find_target(name, path);
}

/*
 * Returns why the agent cannot enter the program at @path, or NULL. If it is a script, @path
 * becomes the path of its interpreter.
 */
static const char *path_reason(char path[PATH_MAX], int *status)
{
	char *interp, *word;
	const char *reason;
	int fd = -1;

	for (int level = 0; level <= SCRIPT_LEVELS; level++) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return NULL; /* it may be executed, but not read */
		interp = script_interpreter(fd, &word);
		if (!interp)
			break;
		close(fd);
		fd = -1;
		strcpy(path, interp);
		free(interp);
		free(word);
		*status = EXIT_NOEXEC;
		if (!runnable(path))
			return "is the interpreter of a script, and cannot be executed";
	}
	if (fd < 0)
		return NULL;
	reason = elf_reason(path, fd, status);
	close(fd);
	if (reason)
		return reason;
	*status = EXIT_OWN;
	if (becomes_other(path))
		return "is set-user-ID or set-group-ID: the agent cannot be preloaded";
	if (gains_capabilities(path))
		return "has file capabilities: the agent cannot be preloaded";
	return NULL;
}

const char *target_reason(const char *name)
{
	char path[PATH_MAX];
	int status;

	return find_executable(name, path) ? NULL : path_reason(path, &status);
}

bool target_gains(const char *name)
{
	char path[PATH_MAX];

	return !find_executable(name, path) && (becomes_other(path) || gains_capabilities(path));
}

int target_check(const char *name)
{
	char path[PATH_MAX];
	const char *reason;
	int ret = find_target(name, path);

	if (ret)
		return ret;
	reason = path_reason(path, &ret);
	if (!reason)
		return 0;
	complain("%s %s", path, reason);
	return ret;
}

static void set_environment(const char *agent, const char *env)
{
	const char *old = getenv("LD_PRELOAD");
	char *both;

	setenv(REC_ENV, env, 1);
	if (old && *old && asprintf(&both, "%s:%s", agent, old) >= 0)
		setenv("LD_PRELOAD", both, 1);
	else
		setenv("LD_PRELOAD", agent, 1);
}

/* What the recorder writes to the gate. */
enum {
	GO = 'g',
	GO_APART = 'a', /* another process is to become the command */
};

/* Sends this process the signals that wait for another one, as far as they are blocked. */
static void take_waiting(const sigset_t *waiting)
{
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (sigismember(waiting, signo) == 1)
			kill(getpid(), signo);
}

/*
 * Starts a process that goes on in place of this one, and has the same parent. This one tells the recorder
 * its number, and waits until the recorder ends. Signals that came meanwhile, as from the terminal, are
 * those of the command. If no more processes are permitted (RLIMIT_NPROC), this one goes on itself.
 */
static void go_apart(int gate, int report)
{
	sigset_t waiting, all;
	char byte;
	int child;

	sigpending(&waiting);
	child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	if (!child) {
		take_waiting(&waiting);
		return;
	}
	if (child < 0)
		return;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (write(report, &child, sizeof(child)) == sizeof(child)) {
		close(report);
		while (read(gate, &byte, 1) > 0)
			;
	}
	_exit(0);
}

static void become_target(char *const argv[], const char *agent, const char *env, int gate,
			  int report)
{
	sigset_t none;
	int error;
	char go;

	/*
	 * Wait until the recorder lets this process go. End of file means that the recorder has
	 * ended.
	 */
	if (read(gate, &go, 1) != 1)
		_exit(EXIT_OWN);
	if (go == GO_APART)
		go_apart(gate, report);
	if (agent)
		set_environment(agent, env);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], argv);
	error = -errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(EXIT_OWN);
	_exit(EXIT_NOEXEC);
}

/*
 * Replaces the terminal by /dev/null: the recorder draws on the terminal, so this process must not
 * use it.
 */
static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		if (isatty(fd))
			dup2(null, fd);
}

int target_hold(char *const argv[], const char *agent, const char *env, bool mute,
		struct target *ret)
{
	int report[2] = { -1, -1 }, gate[2] = { -1, -1 };

	if (pipe2(report, O_CLOEXEC) || pipe2(gate, O_CLOEXEC))
		goto fail;
	ret->pid = fork();
	if (ret->pid < 0)
		goto fail;
	if (!ret->pid) {
		close(report[0]);
		close(gate[1]);
		if (mute)
			leave_terminal();
		become_target(argv, agent, env, gate[0], report[1]);
	}
	close(report[1]);
	close(gate[0]);
	ret->report = report[0];
	ret->gate = gate[1];
	ret->apart = false;
	ret->starter = 0;
	return 0;

fail:
	complain("cannot start %s: %s", argv[0], strerror(errno));
	for (int i = 0; i < 2; i++) {
		if (report[i] >= 0)
			close(report[i]);
		if (gate[i] >= 0)
			close(gate[i]);
	}
	return EXIT_OWN;
}

static void open_gate(const struct target *target)
{
	const char go = target->apart ? GO_APART : GO;

	/* A write to a process that was killed meanwhile must not end this process. */
	signal(SIGPIPE, SIG_IGN);
	while (write(target->gate, &go, 1) < 0 && errno == EINTR)
		;
	signal(SIGPIPE, SIG_DFL);
}

/*
 * Reads what is reported until the command is executed, or cannot be: by the process that executes it a
 * negative errno, and before or after that by one that has started another its number. Returns 0 or an
 * errno.
 */
static int read_reports(struct target *target)
{
	int number, error = 0;
	ssize_t n;

	while ((n = read(target->report, &number, sizeof(number))) > 0 ||
	       (n < 0 && errno == EINTR)) {
		if (n != sizeof(number))
			continue;
		if (number < 0) {
			error = -number;
		} else {
			target->starter = target->pid;
			target->pid = number;
		}
	}
	return error;
}

/* Ends a process that does nothing but wait, even if somebody has stopped it. */
static void end_waiting(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int target_go(char *const argv[], struct target *target)
{
	int error;

	open_gate(target);
	error = read_reports(target);
	close(target->report);
	if (!target->starter)
		target_end(target);
	if (!error)
		return 0;
	waitpid(target->pid, NULL, 0);
	target_end(target);
	complain("cannot execute %s: %s", argv[0], strerror(error));
	return error == ENOENT ? EXIT_NOENT : EXIT_NOEXEC;
}

void target_end(struct target *target)
{
	if (target->gate >= 0)
		close(target->gate);
	target->gate = -1;
	if (target->starter)
		end_waiting(target->starter);
	target->starter = 0;
}

void target_drop(struct target *target)
{
	target_end(target);
	close(target->report);
	end_waiting(target->pid);
}
