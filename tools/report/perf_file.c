// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf_file.c - reads files of perf record: a child process unwinds their stacks, as `shstk unwind`
 * does, into a file in memory that keeps all samples, and that is read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "tools/report/perf_file.h"
#include "tools/shstk.h"

/*
 * Returns whether perf record wrote a file. Only a regular file is looked into: a FIFO can be opened
 * once, as its writer takes the end of the first reader for the end of all.
 */
static bool is_perf_file(const char *path)
{
	int fd = regular_open(path);
	char magic[8];
	bool ret;

	if (fd < 0)
		return false;
	ret = pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	      !memcmp(magic, "PERFILE2", sizeof(magic));
	close(fd);
	return ret;
}

/*
 * Unwinds the stacks of a file in a child process, into @fd. Returns whether that was done. Else
 * @err says why, or is empty as the child has said it.
 */
static bool unwind(const char *path, int fd, char *err, size_t err_size)
{
	char out[32];
	char *argv[] = { "unwind", "-q", "--format=shstk", "-o", out, "--", (char *)path, NULL };
	int status = 0;
	pid_t pid;

	snprintf(out, sizeof(out), "/dev/fd/%d", fd);
	fflush(NULL);
	pid = fork();
	if (!pid)
		exit(cmd_unwind(sizeof(argv) / sizeof(*argv) - 1, argv));
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		snprintf(err, err_size, "cannot read '%s': %s", path, strerror(errno));
	else if (WIFSIGNALED(status))
		snprintf(err, err_size,
			 "cannot read '%s': what unwinds its stacks was killed by "
			 "signal %d",
			 path, WTERMSIG(status));
	return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

static int read_unwound(struct shstk_profile *profile, const char *path, int fd,
			const struct shstk_read_opts *opts, char *err, size_t err_size)
{
	struct stat st;
	void *data;
	int ret;

	if (fstat(fd, &st) || !st.st_size) {
		snprintf(err, err_size, "cannot read '%s': it has no samples of user space", path);
		return -ENODATA;
	}
	data = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED) {
		snprintf(err, err_size, "cannot read '%s': %s", path, strerror(errno));
		return -errno;
	}
	ret = shstk_profile_read_bytes(profile, path, data, st.st_size, opts, err, err_size);
	munmap(data, st.st_size);
	return ret;
}

int report_read(struct shstk_profile *profile, const char *path, const struct shstk_read_opts *opts)
{
	char err[512] = "";
	int fd, ret;

	if (!strcmp(path, "-") || !is_perf_file(path)) {
		ret = shstk_profile_read(profile, path, opts, err, sizeof(err));
	} else {
		fd = memfd_create("shstk-report", MFD_CLOEXEC);
		if (fd < 0)
			snprintf(err, sizeof(err), "cannot read '%s': %s", path, strerror(errno));
		ret = fd >= 0 && unwind(path, fd, err, sizeof(err)) ?
			      read_unwound(profile, path, fd, opts, err, sizeof(err)) :
			      -EINVAL;
		if (fd >= 0)
			close(fd);
	}
	if (ret && *err)
		complain("%s", err);
	return ret;
}
