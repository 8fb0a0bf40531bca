// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * env.c - programs that are executed with another environment are followed too.
 *
 * A program may clear the environment of what it starts (env -i, sudo's like,
 * subprocess with env=...). The exec and spawn calls put the recorder's two
 * variables back. A child of vfork() comes here while its parent waits, and a
 * child of fork() in a threaded program may not allocate: everything is built
 * on the stack. Part of both agents, that of time and that of allocations.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "../protocol.h"
#include "env.h"

#define HOOK_API __attribute__((visibility("default")))

#define PRELOAD "LD_PRELOAD="

static char record_var[128];
static char preload_var[sizeof(PRELOAD) + PATH_MAX];
static const char *object = preload_var + sizeof(PRELOAD) - 1;

static struct {
	int (*execve)(const char *, char *const[], char *const[]);
	int (*execvpe)(const char *, char *const[], char *const[]);
	int (*fexecve)(int, char *const[], char *const[]);
	int (*posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const[], char *const[]);
	int (*posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *,
			    const posix_spawnattr_t *, char *const[], char *const[]);
} next_exec;

#define RESOLVE(name) (*(void **)&next_exec.name = dlsym(RTLD_NEXT, #name))

void env_resolve(void)
{
	RESOLVE(execve);
	RESOLVE(execvpe);
	RESOLVE(fexecve);
	RESOLVE(posix_spawn);
	RESOLVE(posix_spawnp);
}

#define NEXT(name) (next_exec.name ? next_exec.name : (env_resolve(), next_exec.name))

void env_remember(const char *record)
{
	Dl_info info;

	if (!dladdr(&next_exec, &info) || strlen(info.dli_fname) >= PATH_MAX ||
	    sizeof(REC_ENV) + strlen(record) >= sizeof(record_var))
		return;
	strcpy(preload_var, PRELOAD);
	strcat(preload_var, info.dli_fname);
	strcpy(record_var, REC_ENV "=");
	strcat(record_var, record);
}

void env_expect_filters(unsigned int filters)
{
	char *at = strchr(record_var, ' ');
	char digits[12];
	int n = sizeof(digits);

	if (!at)
		return;
	at++;
	at += strcspn(at, " ");
	digits[--n] = '\0';
	do
		digits[--n] = '0' + filters % 10;
	while (filters /= 10);
	digits[--n] = ' ';
	if ((size_t)(at - record_var) + sizeof(digits) < sizeof(record_var))
		strcpy(at, digits + n);
}

static const char *find(char *const envp[], const char *name, size_t n)
{
	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, n))
			return *envp;
	return NULL;
}

static size_t count(char *const envp[])
{
	size_t n = 0;

	while (envp && envp[n])
		n++;
	return n;
}

static bool complete(char *const envp[])
{
	const char *preload;

	if (!*record_var)
		return true;
	preload = find(envp, PRELOAD, strlen(PRELOAD));
	return preload && strstr(preload, object) && find(envp, record_var, strlen(record_var) + 1);
}

/* Length of "LD_PRELOAD=object:others". */
static size_t preload_size(char *const envp[])
{
	const char *old = find(envp, PRELOAD, strlen(PRELOAD));

	return strlen(preload_var) + 1 + (old ? strlen(old) : 0) + 1;
}

static char *const *fill(char **to, char *preload, char *const envp[])
{
	const char *old = find(envp, PRELOAD, strlen(PRELOAD));
	char **at = to;

	if (old && strstr(old, object)) {
		strcpy(preload, old);
	} else {
		strcpy(preload, preload_var);
		if (old && old[strlen(PRELOAD)]) {
			strcat(preload, ":");
			strcat(preload, old + strlen(PRELOAD));
		}
	}
	*at++ = preload;
	*at++ = record_var;
	for (; envp && *envp; envp++)
		if (strncmp(*envp, PRELOAD, strlen(PRELOAD)) &&
		    strncmp(*envp, REC_ENV "=", strlen(REC_ENV) + 1))
			*at++ = *envp;
	*at = NULL;
	return to;
}

/* @env becomes @envp with the agent in it. The memory must be the caller's. */
#define ADD_AGENT(env, envp)                                                       \
	do {                                                                       \
		env = envp;                                                        \
		if (!complete(envp)) {                                             \
			char **vars_ = alloca((count(envp) + 3) * sizeof(char *)); \
			char *preload_ = alloca(preload_size(envp));               \
                                                                                   \
			env = fill(vars_, preload_, envp);                         \
		}                                                                  \
	} while (0)

HOOK_API int execve(const char *path, char *const argv[], char *const envp[])
{
	char *const *env;

	ADD_AGENT(env, envp);
	env_before_exec(path);
	return NEXT(execve)(path, argv, env);
}

HOOK_API int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

HOOK_API int execvpe(const char *file, char *const argv[], char *const envp[])
{
	char *const *env;

	ADD_AGENT(env, envp);
	env_before_exec(file);
	return NEXT(execvpe)(file, argv, env);
}

HOOK_API int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

HOOK_API int fexecve(int fd, char *const argv[], char *const envp[])
{
	char *const *env;

	ADD_AGENT(env, envp);
	env_before_exec(*argv);
	return NEXT(fexecve)(fd, argv, env);
}

/* The arguments behind @arg up to NULL; @ap is left behind the NULL. */
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

HOOK_API int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	char *const *env;
	pid_t child;
	int ret;

	ADD_AGENT(env, envp);
	ret = NEXT(posix_spawn)(pid ? pid : &child, path, actions, attr, argv, env);
	if (!ret)
		env_after_spawn(pid ? *pid : child, path);
	return ret;
}

HOOK_API int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	char *const *env;
	pid_t child;
	int ret;

	ADD_AGENT(env, envp);
	ret = NEXT(posix_spawnp)(pid ? pid : &child, file, actions, attr, argv, env);
	if (!ret)
		env_after_spawn(pid ? *pid : child, file);
	return ret;
}
