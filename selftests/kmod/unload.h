/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unload.h - loads a module, and tries to unload it
 */
#ifndef KMOD_UNLOAD_H
#define KMOD_UNLOAD_H

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNLOAD_PATIENCE 300000 /* milliseconds; used up only by a hang */

/* Loads a module. Returns 0 or a negative errno. */
static inline int module_load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

/*
 * Unloads a module in a separate process. Returns 0 or a negative errno, or 1 if it does not end.
 */
static inline int module_unload(const char *name)
{
	int status, ended = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0);
	for (int i = 0; i < UNLOAD_PATIENCE && !ended; i++) {
		ended = waitpid(pid, &status, WNOHANG);
		usleep(1000);
	}
	return ended && WIFEXITED(status) ? -WEXITSTATUS(status) : 1;
}

#endif /* KMOD_UNLOAD_H */
