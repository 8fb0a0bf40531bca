// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * env.c - follows programs that are executed with another environment.
 *
 * A program may clear the environment of what it starts (env -i, sudo and similar tools, subprocess
 * with env=...). The hooks of the exec and spawn calls put the recorder's two variables back. A
 * child of vfork() runs this code while its parent waits, a child of fork() in a threaded program
 * may not allocate memory, and the stack may be a small one. So a new environment is built in
 * memory that is mapped for it. This file is part of both agents, that of time and that of
 * allocations.
 *
 * What the program passes is read as the kernel would read it (peek.h). If it cannot be read, or
 * there is no memory, or the program forbids itself system calls, the call is made unchanged.
 *
 * A program may remove LD_PRELOAD on purpose and execute itself, again each time it finds the
 * variable: such a program is left alone. For all other ways to ask for a program without the
 * variables, they are put back at most MOST_PUT_BACK times on the way from one program to the next.
 *
 * If the object cannot be found any more, as in another root folder, the loader would complain.
 * Then the object is removed from LD_PRELOAD.
 *
 * system(), popen() and wordexp() execute a shell with the program's own environment, by functions of libc
 * that cannot be hooked. There an object that is missing is removed from the variable in place, and
 * nothing is put back.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <wordexp.h>

#include "../protocol.h"
#include "buffer.h"
#include "env.h"
#include "join.h"
#include "peek.h"

#define HOOK_API __attribute__((visibility("default")))

#define PRELOAD "LD_PRELOAD="
#define RECORD REC_ENV "="
#define NAME_MAX_BYTES 16 /* enough of a variable to recognize the two names */
#define TEXT_MAX 131072 /* most bytes of a variable that the kernel takes */
#define MOST_PUT_BACK 8

/* Path of this object. Empty: the environment is not changed. */
static char object[PATH_MAX];

/**
 * struct record - the value of the recorder's variable (tools/inject/protocol.h)
 * @where: the name of the variable, the memory and its cookie.
 * @filters: number of seccomp filters.
 * @put_back: how often the variables were put back on the way to this program.
 */
static struct {
	char where[128];
	unsigned int filters;
	unsigned int put_back;
} record;

static struct {
	int (*execve)(const char *, char *const[], char *const[]);
	int (*execvpe)(const char *, char *const[], char *const[]);
	int (*fexecve)(int, char *const[], char *const[]);
	int (*posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const[], char *const[]);
	int (*posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *,
			    const posix_spawnattr_t *, char *const[], char *const[]);
	int (*pidfd_spawn)(int *, const char *, const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const[], char *const[]);
	int (*pidfd_spawnp)(int *, const char *, const posix_spawn_file_actions_t *,
			    const posix_spawnattr_t *, char *const[], char *const[]);
	pid_t (*pidfd_getpid)(int);
	int (*system)(const char *);
	FILE *(*popen)(const char *, const char *);
	int (*wordexp)(const char *, wordexp_t *, int);
} next_exec;

/* Functions of glibc 2.34 and 2.39, which older headers do not declare. */
int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags);
int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);

#define RESOLVE(name) (*(void **)&next_exec.name = dlsym(RTLD_NEXT, #name))

void env_resolve(void)
{
	RESOLVE(execve);
	RESOLVE(execvpe);
	RESOLVE(fexecve);
	RESOLVE(posix_spawn);
	RESOLVE(posix_spawnp);
	RESOLVE(system);
	RESOLVE(popen);
	RESOLVE(wordexp);
}

#define NEXT(name) (next_exec.name ? next_exec.name : (env_resolve(), next_exec.name))

void env_remember(const char *value)
{
	struct buffer where = buffer_on(record.where, sizeof(record.where));
	const char *cookie = strchr(value, ' '), *filters, *put_back;
	Dl_info info;

	filters = cookie ? strchr(cookie + 1, ' ') : NULL;
	if (!filters || !dladdr(&next_exec, &info) || strlen(info.dli_fname) >= sizeof(object))
		return;
	put_back = strchr(filters + 1, ' ');
	buffer_add_text(&where, RECORD);
	buffer_add(&where, value, filters + 1 - value);
	if (!buffer_end_text(&where))
		return;
	record.filters = parse_digits(filters + 1, 10);
	record.put_back = put_back ? parse_digits(put_back + 1, 10) : 0;
	memcpy(object, info.dli_fname, strlen(info.dli_fname) + 1);
}

void env_expect_filters(unsigned int filters)
{
	record.filters = filters;
}

/*
 * Without /proc, as in another root folder, the kernel is asked by prctl(). The loader of a program
 * that is executed makes the calls of read_status() too, so a filter permits them.
 */
__attribute__((noinline)) bool env_unfiltered(void)
{
	char status[STATUS_BYTES];

	read_status(status);
	if (*status)
		return filters_of(status) == record.filters;
	return !record.filters && !sys6(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0);
}

/* Adds the recorder's variable with the zero at its end. */
static void add_record(struct buffer *to, unsigned int put_back)
{
	buffer_add_text(to, record.where);
	buffer_add_number(to, record.filters);
	buffer_add_text(to, " ");
	buffer_add_number(to, put_back);
	buffer_end_text(to);
}

/**
 * struct env_scan - what was found in an environment of the program's
 * @nr: number of variables.
 * @preload: the variable LD_PRELOAD, or NULL.
 * @preload_size: bytes of @preload with the zero.
 * @record: the recorder's variable, or NULL.
 */
struct env_scan {
	size_t nr;
	const char *preload;
	size_t preload_size;
	const char *record;
};

/*
 * Returns the bytes of a string with its zero, or 0 if it cannot be read or the kernel would not
 * take it.
 */
static size_t text_size(const char *text)
{
	char piece[64];
	size_t size = 0;
	long n;

	do {
		n = peek_text(piece, text + size, sizeof(piece));
		if (n < 0 || size > TEXT_MAX)
			return 0;
		size += n;
	} while (piece[n - 1]);
	return size;
}

static bool scan_variable(struct env_scan *l, const char *variable)
{
	char name[NAME_MAX_BYTES];

	if (peek_text(name, variable, sizeof(name)) < 0)
		return false;
	if (!l->preload && !strncmp(name, PRELOAD, strlen(PRELOAD))) {
		l->preload = variable;
		l->preload_size = text_size(variable);
		return l->preload_size;
	}
	if (!l->record && !strncmp(name, RECORD, strlen(RECORD)))
		l->record = variable;
	return true;
}

static bool scan(struct env_scan *l, char *const envp[])
{
	const char *variable;

	*l = (struct env_scan){ 0 };
	for (; envp; l->nr++) {
		if (!peek(&variable, &envp[l->nr], sizeof(variable)))
			return false;
		if (!variable)
			break;
		if (!scan_variable(l, variable))
			return false;
	}
	return true;
}

/*
 * Memory for an environment, until the program is executed. In a child of vfork() the memory is the
 * parent's, but the parent does not learn about it: so it belongs to the thread, which uses it
 * again.
 */
static __thread struct {
	char *start;
	size_t size;
	int user; /* ID of the last thread that began one of the calls below */
} area;

void env_free(void)
{
	if (area.start)
		sys2(SYS_munmap, area.start, area.size);
	area.start = NULL;
	area.user = 0;
}

static bool area_map(size_t size)
{
	long p;

	int user = sys0(SYS_gettid);

	/* This is a handler that interrupted such a call and makes another one. */
	if (area.user == user)
		return false;
	area.user = user;
	if (area.start && area.size >= size)
		return true;
	if (area.start)
		sys2(SYS_munmap, area.start, area.size);
	area.start = NULL;
	p = sys6(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p < 0 && p > -4096) {
		area.user = 0;
		return false;
	}
	area.start = (char *)p;
	area.size = size;
	return true;
}

/**
 * struct built - a new environment, in the area
 * @vars: its variables.
 * @nr: number of variables in @vars.
 * @most: most variables that @vars has room for.
 * @texts: texts of the new variables among them.
 */
struct built {
	const char **vars;
	size_t nr;
	size_t most;
	struct buffer texts;
};

static bool build_begin(struct built *b, const struct env_scan *l)
{
	size_t most = l->nr + 2;
	size_t texts = sizeof(object) + sizeof(record) + 64 + 2 * l->preload_size;

	if (!area_map((most + 1) * sizeof(*b->vars) + texts))
		return false;
	*b = (struct built){ .vars = (const char **)area.start, .most = most };
	b->texts = buffer_on(area.start + (most + 1) * sizeof(*b->vars), texts);
	return true;
}

static bool build_add(struct built *b, const char *variable)
{
	if (b->nr == b->most)
		return false;
	b->vars[b->nr++] = variable;
	b->vars[b->nr] = NULL;
	return true;
}

/*
 * Adds all variables but the two. Returns false if that is not possible, as another thread may
 * change the environment meanwhile.
 */
static bool build_add_others(struct built *b, char *const envp[], const struct env_scan *l)
{
	const char *variable;

	for (size_t i = 0; i < l->nr; i++) {
		if (!peek(&variable, &envp[i], sizeof(variable)) || !variable)
			return false;
		if (variable != l->preload && variable != l->record && !build_add(b, variable))
			return false;
	}
	return true;
}

/*
 * Reads the program's LD_PRELOAD. Returns its value, "" if there is none, or NULL if it cannot be
 * read.
 */
static char *read_preload(struct built *b, const struct env_scan *l)
{
	char *to = b->texts.bytes;

	if (!l->preload) {
		buffer_end_text(&b->texts);
		return to;
	}
	if (l->preload_size > buffer_room(&b->texts) ||
	    peek_text(to, l->preload, l->preload_size) != (long)l->preload_size ||
	    to[l->preload_size - 1])
		return NULL;
	b->texts.used = l->preload_size;
	return to + strlen(PRELOAD);
}

/* Returns where this object is in a list of objects, which colons or blanks separate, or NULL. */
static char *find_object(char *list)
{
	size_t n = strlen(object);

	for (char *at = list; (at = strstr(at, object)); at++)
		if ((at == list || strchr(": ", at[-1])) && strchr(": ", at[n]))
			return at;
	return NULL;
}

/* Returns whether the object is there, for the loader to load. It is not in every root folder. */
static bool is_there(void)
{
	return !sys4(SYS_faccessat, AT_FDCWD, object, R_OK, 0);
}

/* Returns whether @path is the file that this process runs. */
static bool is_itself(const char *path)
{
	struct stat file, own;

	return !sys4(SYS_newfstatat, AT_FDCWD, path, &file, 0) &&
	       !sys4(SYS_newfstatat, AT_FDCWD, "/proc/self/exe", &own, 0) &&
	       file.st_dev == own.st_dev && file.st_ino == own.st_ino;
}

/* Adds LD_PRELOAD with this object in front of @others. Returns NULL if there is no room. */
static const char *add_preload(struct built *b, const char *others)
{
	char *text = b->texts.bytes + b->texts.used;

	buffer_add_text(&b->texts, PRELOAD);
	buffer_add_text(&b->texts, object);
	if (*others)
		buffer_add_text(&b->texts, ":");
	buffer_add_text(&b->texts, others);
	return buffer_end_text(&b->texts) && !b->texts.cut ? text : NULL;
}

/* Removes this object, which is at @at, from a list of objects. */
static void cut_out(char *at)
{
	char *behind = at + strlen(object);

	memmove(at, *behind ? behind + 1 : behind, strlen(*behind ? behind + 1 : behind) + 1);
}

/* Builds an environment whose LD_PRELOAD lacks this object, which is at @at in @list. */
static bool build_without(struct built *b, char *const envp[], const struct env_scan *l, char *list,
			  char *at)
{
	cut_out(at);
	if (*list && !build_add(b, b->texts.bytes))
		return false;
	return build_add_others(b, envp, l);
}

/* Builds an environment with both variables. @preloaded: LD_PRELOAD has this object already. */
static bool build_with(struct built *b, char *const envp[], const struct env_scan *l, char *list,
		       bool preloaded)
{
	const char *preload = preloaded ? l->preload : add_preload(b, list), *value;

	value = b->texts.bytes + b->texts.used;
	add_record(&b->texts, record.put_back + !preloaded);
	return preload && !b->texts.cut && build_add(b, preload) && build_add(b, value) &&
	       build_add_others(b, envp, l);
}

/* Returns whether the recorder's variable has its current value. */
static bool is_current(struct built *b, const struct env_scan *l)
{
	char *is = b->texts.bytes + b->texts.used, *wanted;
	long n = l->record ? peek_text(is, l->record, sizeof(record)) : 0;

	if (n <= 0)
		return false;
	b->texts.used += n;
	wanted = b->texts.bytes + b->texts.used;
	add_record(&b->texts, record.put_back);
	return !b->texts.cut && !is[n - 1] && !strcmp(is, wanted);
}

/* Builds another environment than @envp if that is needed. Returns whether it did. */
static bool build(struct built *b, const struct env_scan *l, const char *path, char *const envp[])
{
	char *list = read_preload(b, l), *at;

	if (!list)
		return false;
	at = find_object(list);
	if (!is_there())
		return at && build_without(b, envp, l, list, at);
	if (at && is_current(b, l))
		return false;
	if (!at && (record.put_back >= MOST_PUT_BACK || (l->record && is_itself(path))))
		return false;
	return build_with(b, envp, l, list, at);
}

/*
 * Returns the environment of a program that is to be executed with @envp: @envp or one that was
 * built.
 */
static char *const *with_agent(const char *path, char *const envp[])
{
	struct built b;
	struct env_scan l;

	if (!*object || !env_may_call() || !scan(&l, envp) || !build_begin(&b, &l))
		return envp;
	if (build(&b, &l, path, envp))
		return (char *const *)b.vars;
	env_free();
	return envp;
}

/*
 * Makes a call that executes a program in place of this one. @call uses @env as its environment. If
 * the two variables make the environment too long for the kernel, the call is made without them.
 */
#define EXECUTE(path, envp, call)                          \
	({                                                 \
		char *const *env = with_agent(path, envp); \
		int done_ = env_before_exec(path);         \
		int ret_;                                  \
                                                           \
		ret_ = call;                               \
		if (env != (envp) && errno == E2BIG) {     \
			env = envp;                        \
			ret_ = call;                       \
		}                                          \
		env_call_returned(done_);                  \
		if (env != (envp))                         \
			env_free();                        \
		ret_;                                      \
	})

HOOK_API int execve(const char *path, char *const argv[], char *const envp[])
{
	return EXECUTE(path, envp, NEXT(execve)(path, argv, env));
}

/* The function of libc is the system call. */
static int call_execveat(int fd, const char *path, char *const argv[], char *const envp[],
			 int flags)
{
	long ret = sys6(SYS_execveat, fd, (long)path, (long)argv, (long)envp, flags, 0);

	errno = (int)-ret;
	return -1;
}

HOOK_API int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	return EXECUTE(path, envp, call_execveat(fd, path, argv, env, flags));
}

long env_execute(long path, long argv, long envp)
{
	return execve((const char *)path, (char *const *)argv, (char *const *)envp);
}

long env_execute_at(long fd, long path, long argv, long envp, long flags)
{
	return execveat((int)fd, (const char *)path, (char *const *)argv, (char *const *)envp,
			(int)flags);
}

HOOK_API int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

HOOK_API int execvpe(const char *file, char *const argv[], char *const envp[])
{
	return EXECUTE(file, envp, NEXT(execvpe)(file, argv, env));
}

HOOK_API int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

HOOK_API int fexecve(int fd, char *const argv[], char *const envp[])
{
	const char *name = NULL;

	if (!env_may_call() || !peek(&name, argv, sizeof(name)))
		name = NULL;
	return EXECUTE(name, envp, NEXT(fexecve)(fd, argv, env));
}

/*
 * Collects the arguments after @arg up to NULL; @ap is left behind the NULL. As in libc, they take
 * as much of the stack as the caller's own list of them.
 */
#define COLLECT(argv, arg, ap)                             \
	do {                                               \
		size_t nr_ = 1;                            \
		va_start(ap, arg);                         \
		while (va_arg(ap, char *))                 \
			nr_++;                             \
		va_end(ap);                                \
		argv = alloca((nr_ + 1) * sizeof(char *)); \
		argv[0] = (char *)arg;                     \
		va_start(ap, arg);                         \
		for (size_t i_ = 1; i_ <= nr_; i_++)       \
			argv[i_] = va_arg(ap, char *);     \
	} while (0)

HOOK_API int execl(const char *path, const char *arg, ...)
{
	char **argv;
	va_list ap;

	COLLECT(argv, arg, ap);
	va_end(ap);
	return execve(path, argv, environ);
}

HOOK_API int execlp(const char *file, const char *arg, ...)
{
	char **argv;
	va_list ap;

	COLLECT(argv, arg, ap);
	va_end(ap);
	return execvpe(file, argv, environ);
}

HOOK_API int execle(const char *path, const char *arg, ...)
{
	char *const *envp;
	char **argv;
	va_list ap;

	COLLECT(argv, arg, ap);
	envp = va_arg(ap, char *const *);
	va_end(ap);
	return execve(path, argv, envp);
}

/*
 * Makes a call that executes a program in a child, and stores the child's process ID in @child.
 * Such calls return error numbers.
 */
#define SPAWN(path, envp, child, call)                     \
	({                                                 \
		char *const *env = with_agent(path, envp); \
		int done_ = env_before_spawn();            \
		int ret_;                                  \
                                                           \
		ret_ = call;                               \
		if (env != (envp) && ret_ == E2BIG) {      \
			env = envp;                        \
			ret_ = call;                       \
		}                                          \
		env_call_returned(done_);                  \
		if (env != (envp))                         \
			env_free();                        \
		if (!ret_)                                 \
			env_after_spawn(child, path);      \
		ret_;                                      \
	})

HOOK_API int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	pid_t child;

	pid = pid ? pid : &child;
	return SPAWN(path, envp, *pid, NEXT(posix_spawn)(pid, path, actions, attr, argv, env));
}

HOOK_API int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	pid_t child;

	pid = pid ? pid : &child;
	return SPAWN(file, envp, *pid, NEXT(posix_spawnp)(pid, file, actions, attr, argv, env));
}

/* Makes such a call that stores a descriptor of the child. Where libc lacks it, the kernel may, too. */
static int spawn_with_pidfd(__typeof__(&pidfd_spawn) call, int *pidfd, const char *path,
			    const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	if (!next_exec.pidfd_getpid)
		RESOLVE(pidfd_getpid);
	if (!call || !next_exec.pidfd_getpid)
		return ENOSYS;
	return SPAWN(path, envp, env_may_call() ? next_exec.pidfd_getpid(*pidfd) : 0,
		     call(pidfd, path, actions, attr, argv, env));
}

HOOK_API int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	if (!next_exec.pidfd_spawn)
		RESOLVE(pidfd_spawn);
	return spawn_with_pidfd(next_exec.pidfd_spawn, pidfd, path, actions, attr, argv, envp);
}

HOOK_API int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	if (!next_exec.pidfd_spawnp)
		RESOLVE(pidfd_spawnp);
	return spawn_with_pidfd(next_exec.pidfd_spawnp, pidfd, file, actions, attr, argv, envp);
}

/*
 * Removes this object from the program's LD_PRELOAD, in place, if the loader would not find it. A thread that
 * executes a program at that moment may hand a list on that is half moved: the text only becomes shorter, so at
 * worst the loader there complains of a name that is none, as it would have of this object. That another thread
 * changes the environment while one calls system() is an error of the program without us, too.
 */
static void remove_missing(void)
{
	struct built b;
	struct env_scan l;
	char *list, *at;

	if (!*object || !env_may_call() || is_there() || !scan(&l, environ) || !l.preload ||
	    !build_begin(&b, &l))
		return;
	list = read_preload(&b, &l);
	at = list ? find_object(list) : NULL;
	if (at) {
		cut_out(at);
		poke(l.preload, b.texts.bytes, strlen(b.texts.bytes) + 1);
	}
	env_free();
}

static int before_shell(void)
{
	remove_missing();
	return env_before_spawn();
}

HOOK_API int system(const char *command)
{
	int done = before_shell();
	int ret;

	ret = NEXT(system)(command);
	env_call_returned(done);
	return ret;
}

HOOK_API FILE *popen(const char *command, const char *mode)
{
	int done = before_shell();
	FILE *ret;

	ret = NEXT(popen)(command, mode);
	env_call_returned(done);
	return ret;
}

HOOK_API int wordexp(const char *words, wordexp_t *to, int flags)
{
	int done = before_shell();
	int ret;

	ret = NEXT(wordexp)(words, to, flags);
	env_call_returned(done);
	return ret;
}
