// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * worker.c - compiles a stranger's file in a process that can do nothing else.
 *
 * The process first sends the build id, because the table for it may exist already, and waits. When
 * it is told to, it makes the table and writes it to a file in memory. The caller copies that file
 * and checks the copy, so whatever the process writes afterwards changes nothing.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmod/rules_check.h"
#include "tools/elf/golang.h"
#include "tools/elf/object.h"
#include "tools/rules/device.h"
#include "tools/rules/confine.h"
#include "tools/rules/worker.h"
#include "tools/whole_io.h"

/* Several times what the largest programs need, which is a second and 1 GiB. */
static const struct sandbox_limits root_limits = {
	.memory = (size_t)3 << 30,
	.seconds = 60,
	.output = (size_t)1 << 29,
	.nicer = 5,
};
/* Anybody can make files that use up the limits, and files are read one after the other. */
static const struct sandbox_limits other_limits = {
	.memory = (size_t)1 << 29,
	.seconds = 10,
	.output = (size_t)1 << 28,
	.nicer = 10,
};

/* Real time in ms for each second of CPU time that a process may use. */
#define PATIENCE_MS 2000

/*
 * How long a killed process is waited for, in ms, and how many processes may be left that did not
 * end.
 */
#define END_MS 1000
#define MAX_STUCK 16
static pid_t stuck[MAX_STUCK];
static unsigned int nr_stuck;

/* The build id is looked for in this many bytes, because linkers put it at the beginning. */
#define HEAD_BYTES (1 << 16)

/**
 * struct worker_answer - a message of the process
 * @err: 0 or a negative errno.
 * @table: the sizes of the table, and what it describes.
 * @id: build id.
 */
struct worker_answer {
	int err;
	struct compiled_table table;
	struct build_id id;
};

/* ---- In the worker process ---- */

/* Makes the table of a file and writes it to @w->out. Returns 0 or a negative errno. */
static int make_table(const struct worker *w, struct rules_file *file, struct compiled_table *ret)
{
	int err = rules_file_fill(file);

	if (!err && w->leaves_go && golang_kind_of(file->data, file->size) != GOLANG_NONE)
		err = -EOPNOTSUPP;
	if (!err)
		err = rules_compile(file->data, file->size, "/", ret);
	if (err)
		return err;
	return write_whole(w->out, ret->header, ret->size) ? -EIO : 0;
}

/* Checks the file, which may have @most bytes. Returns 0 or a negative errno. */
static int check_file(struct rules_file *file, int fd, size_t most)
{
	int err = rules_file_begin(file, fd);

	if (!err && (uint64_t)file->before.st_size > most)
		err = -EFBIG;
	return err;
}

/*
 * Is the worker process: sends the build id, waits, makes the table, and sends what it describes.
 */
static void work(const struct worker *w, int fd)
{
	const int keep[] = { fd, w->pipe, w->out };
	static uint8_t head[HEAD_BYTES];
	struct worker_answer a = { 0 };
	struct rules_file file;
	ssize_t n = 0;
	char go;

	a.err = sandbox_limit(w->limits);
	if (!a.err)
		a.err = check_file(&file, fd, w->limits->memory);
	if (!a.err)
		a.err = sandbox_enter(keep, sizeof(keep) / sizeof(keep[0]));
	if (!a.err)
		n = pread(fd, head, sizeof(head), 0);
	if (n > 0)
		build_id_of(head, n, &a.id);
	if (write_whole(w->pipe, &a, sizeof(a)) || a.err || read(w->pipe, &go, 1) != 1)
		_exit(1);
	a.err = make_table(w, &file, &a.table);
	_exit(write_whole(w->pipe, &a, sizeof(a)) != 0);
}

/* ---- Outside of the worker process ---- */

/* Receives a message of the process. Returns its error, or that of receiving it. */
static int hear(const struct worker *w, struct worker_answer *a)
{
	struct pollfd p[] = {
		{ .fd = w->pipe, .events = POLLIN },
		{ .fd = w->stop, .events = POLLIN },
	};
	int n = poll(p, 2, PATIENCE_MS * (int)w->limits->seconds);
	ssize_t got;

	if (n < 0)
		return -errno;
	if (!n)
		return -ETIMEDOUT;
	if (p[1].revents)
		return -ECANCELED;
	got = recv(w->pipe, a, sizeof(*a), MSG_DONTWAIT);
	if (got != sizeof(*a) || a->id.size > sizeof(a->id.data) || a->err > 0)
		return -EPROTO;
	return a->err;
}

/* Starts the process. Returns 0 or a negative errno. */
static int start(struct worker *w, int fd)
{
	int both[2];

	w->out = memfd_create("shstk-rules", MFD_CLOEXEC);
	if (w->out < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both)) {
		close(w->out);
		return -errno;
	}
	w->pid = fork();
	if (!w->pid) {
		w->pipe = both[1];
		close(both[0]);
		work(w, fd);
	}
	w->pipe = both[0];
	close(both[1]);
	if (w->pid > 0)
		return 0;
	close(w->pipe);
	close(w->out);
	return -EAGAIN;
}

/* Reaps the processes that were left and have ended meanwhile. */
static void reap_stuck(void)
{
	for (unsigned int i = 0; i < nr_stuck;)
		if (waitpid(stuck[i], NULL, WNOHANG))
			stuck[i] = stuck[--nr_stuck];
		else
			i++;
}

int worker_start(struct worker *w, int fd, const struct worker_terms *terms, struct build_id *id)
{
	struct worker_answer a;
	int err;

	reap_stuck();
	if (nr_stuck >= MAX_STUCK)
		return -EBUSY;
	w->stop = terms->stop;
	w->leaves_go = terms->leaves_go;
	w->limits = terms->trusted ? &root_limits : &other_limits;
	err = start(w, fd);
	if (err)
		return err;
	err = hear(w, &a);
	if (err) {
		worker_end(w);
		return err;
	}
	*id = a.id;
	return 0;
}

/*
 * Makes a copy of the table that nobody else has, and checks it. @told is what the process said:
 * its size, and what it describes. Returns 0 or a negative errno.
 */
static int read_table(const struct worker *w, const struct compiled_table *told,
		      struct compiled_table *ret)
{
	struct ushstk_rules_view view;
	size_t size = told->size;
	struct stat st;
	int err;

	if (fstat(w->out, &st) || (uint64_t)st.st_size != size || size < sizeof(*ret->header) ||
	    size > w->limits->output)
		return -EPROTO;
	*ret = *told;
	ret->header = malloc(size);
	if (!ret->header)
		return -ENOMEM;
	err = pread(w->out, ret->header, size, 0) == (ssize_t)size ? 0 : -EPROTO;
	if (!err)
		err = ushstk_rules_check(ret->header, size, machine_own(), &view);
	if (err)
		free(ret->header);
	return err;
}

int worker_compile(struct worker *w, struct compiled_table *ret)
{
	struct worker_answer a;
	int err;

	*ret = (struct compiled_table){ 0 };
	if (send(w->pipe, "", 1, MSG_NOSIGNAL) != 1)
		return -EPROTO;
	err = hear(w, &a);
	return err ? err : read_table(w, &a.table, ret);
}

/* Waits for a killed process, at most END_MS. Returns whether it has ended. */
static bool has_ended(pid_t pid)
{
	for (int i = 0; i < END_MS * 5; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			return true;
		usleep(200);
	}
	return false;
}

/*
 * Ends the process. It belongs to another user, so only CAP_KILL may kill it. Without CAP_KILL it
 * ends when its socket is closed, or when its CPU time is over.
 */
void worker_end(struct worker *w)
{
	close(w->pipe);
	close(w->out);
	kill(w->pid, SIGKILL);
	if (!has_ended(w->pid))
		stuck[nr_stuck++] = w->pid;
}
