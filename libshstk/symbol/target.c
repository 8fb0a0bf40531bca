// SPDX-License-Identifier: LGPL-2.1-or-later
/* target.c - opens files that profiles are written to, and gives them their names. See target.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target.h"

/* Sets @target->temp to "DIR/.shstk-PID-N.tmp" beside the file. Returns 0 or -ENOMEM. */
static int choose_temp(struct shstk_target *target, int n)
{
	const char *slash = strrchr(target->final, '/');
	int dir = slash ? slash - target->final + 1 : 0;

	free(target->temp);
	if (asprintf(&target->temp, "%.*s.shstk-%d-%d.tmp", dir, target->final, getpid(), n) >= 0)
		return 0;
	target->temp = NULL;
	return -ENOMEM;
}

/*
 * Opens a new file beside the file, with the access rights of the old file. Returns a descriptor or a
 * negative errno.
 */
static int open_temp(struct shstk_target *target, const struct stat *old)
{
	mode_t mode = old ? old->st_mode & 0777 : 0666;
	int fd = -1, n;

	for (n = 0; n < 100 && fd < 0; n++) {
		if (choose_temp(target, n))
			return -ENOMEM;
		fd = open(target->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0) {
		n = errno;
		free(target->temp);
		target->temp = NULL;
		return -n;
	}
	target->made = true;
	if (old)
		fchmod(fd, mode);
	return fd;
}

/*
 * Opens a device or a FIFO. A FIFO that nobody reads is an error: it is not waited for. Returns a
 * descriptor or a negative errno.
 */
static int open_special(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFL, 0);
	return fd;
}

/*
 * Returns the descriptor that a name such as /dev/stdout or /dev/fd/3 stands for; -1 for other
 * names.
 */
static int number_of(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	char *end;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		const char *digits = path + strlen(folders[i]);
		long n;

		if (strncmp(path, folders[i], strlen(folders[i])) || *digits < '0' || *digits > '9')
			continue;
		n = strtol(digits, &end, 10);
		return *end || n > INT_MAX ? -1 : n;
	}
	return -1;
}

/*
 * Duplicates a descriptor. So the file is written as it was opened, at its end if it was opened for
 * appending. Returns a descriptor or a negative errno.
 */
static int open_again(int number)
{
	int fd = fcntl(number, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Opens what @target is written to. Returns a descriptor or a negative errno. */
static int open_final(struct shstk_target *target)
{
	struct stat st;

	if (stat(target->final, &st)) {
		if (errno == ENOENT)
			return open_temp(target, NULL);
		return -errno;
	}
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISREG(st.st_mode)) {
		if (access(target->final, W_OK))
			return -errno;
		return open_temp(target, &st);
	}
	return open_special(target->final);
}

void shstk_target_discard(struct shstk_target *target)
{
	if (target->out && target->out != stdout)
		fclose(target->out);
	if (target->temp)
		unlink(target->temp);
	free(target->temp);
	free(target->final);
}

int shstk_target_open(struct shstk_target *target, const char *path)
{
	int fd;

	*target = (struct shstk_target){ .path = path };
	if (!strcmp(path, "-")) {
		target->out = stdout;
		return 0;
	}
	target->final = realpath(path, NULL);
	if (!target->final)
		target->final = strdup(path);
	if (!target->final)
		return -ENOMEM;
	fd = number_of(path) < 0 ? open_final(target) : open_again(number_of(path));
	if (fd < 0) {
		shstk_target_discard(target);
		return fd;
	}
	target->out = fdopen(fd, "w");
	if (!target->out) {
		close(fd);
		shstk_target_discard(target);
		return -ENOMEM;
	}
	return 0;
}

int shstk_target_name(struct shstk_target *target)
{
	if (target->temp && rename(target->temp, target->final))
		return -errno;
	free(target->temp);
	target->temp = NULL;
	return 0;
}

/* Renames a file, unless there is one of the name @to. Returns 0 or a negative errno. */
static int rename_new(const char *from, const char *to)
{
	int fd, err;

	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* NFS and others can only replace files. So the file that is replaced is made for that. */
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	if (!rename(from, to))
		return 0;
	err = -errno;
	unlink(to);
	return err;
}

/* Takes the name away from a file that has it. Returns 0 or a negative errno. */
static int hide(struct shstk_target *target)
{
	int err = -EEXIST;

	for (int n = 0; n < 100 && err == -EEXIST; n++) {
		if (choose_temp(target, n))
			return -ENOMEM;
		err = rename_new(target->final, target->temp);
	}
	if (!err)
		return 0;
	free(target->temp);
	target->temp = NULL;
	return err;
}

int shstk_target_rename(struct shstk_target *target, const char *path)
{
	char *final;
	int err = 0;

	if (!target->made)
		return 0;
	final = strdup(path);
	if (!final)
		return -ENOMEM;
	if (!target->temp)
		err = hide(target);
	if (err) {
		free(final);
		return err;
	}
	free(target->final);
	target->final = final;
	return 0;
}

void shstk_target_leave(struct shstk_target *target)
{
	free(target->temp);
	target->temp = NULL;
	shstk_target_discard(target);
}

int shstk_target_finish(struct shstk_target *target)
{
	FILE *out = target->out;
	int err = 0;

	target->out = NULL;
	if (out != stdout && fclose(out))
		err = -errno;
	if (!err)
		err = shstk_target_name(target);
	shstk_target_discard(target);
	return err;
}
