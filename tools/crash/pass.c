// SPDX-License-Identifier: GPL-2.0-or-later
/* pass.c - hands a core file on whose beginning was read from a pipe; see crash.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/crash/crash.h"
#include "tools/shstk.h"
#include "tools/whole_io.h"

#define CHUNK (1u << 20)

/* Writes the beginning. */
static int put_head(const struct crash_head *head, int out)
{
	char buf[65536];
	uint64_t at = 0;

	while (at < head->size) {
		ssize_t got = pread(head->fd, buf, sizeof(buf), at);
		int err = got > 0 ? write_whole(out, buf, got) : -EIO;

		if (err)
			return err;
		at += got;
	}
	return 0;
}

static bool is_zero(const char *buf, size_t n)
{
	return !*buf && !memcmp(buf, buf + 1, n - 1);
}

int crash_keep(const struct crash_head *head, int in, int out, uint64_t max)
{
	uint64_t at = head->size;
	char buf[65536];
	int err = at > max ? -EFBIG : put_head(head, out);

	while (!err) {
		ssize_t got = read_whole(in, buf, sizeof(buf));

		if (got <= 0)
			return got ? (int)got : ftruncate(out, at) ? -errno : 0;
		if (at + got > max)
			return -EFBIG;
		/* Pages that were never written become holes. */
		if (is_zero(buf, got))
			err = lseek(out, got, SEEK_CUR) < 0 ? -errno : 0;
		else
			err = write_whole(out, buf, got);
		at += got;
	}
	return err;
}

/* Writes the beginning and the rest to a program, as far as it reads them. */
static void feed(const struct crash_head *head, int in, int out)
{
	ssize_t n;

	if (put_head(head, out))
		return;
	do {
		n = splice(in, NULL, out, NULL, CHUNK, 0);
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0 && errno != EPIPE)
		complain("the core file is handed on in part: %s", strerror(errno));
}

static int start(int pipe_end, char **command)
{
	int pid = fork();

	if (pid)
		return pid;
	signal(SIGPIPE, SIG_DFL);
	if (dup2(pipe_end, 0) >= 0)
		execvp(*command, command);
	complain("%s cannot be started: %s", *command, strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOENT : EXIT_NOEXEC);
}

int crash_pass(const struct crash_head *head, int in, char **command)
{
	int ends[2], status, pid;

	if (pipe2(ends, O_CLOEXEC)) {
		complain("no pipe for %s: %s", *command, strerror(errno));
		return EXIT_OWN;
	}
	pid = start(ends[0], command);
	close(ends[0]);
	if (pid < 0) {
		complain("%s cannot be started: %s", *command, strerror(errno));
		close(ends[1]);
		return EXIT_OWN;
	}
	feed(head, in, ends[1]);
	close(ends[1]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_OWN;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
}
