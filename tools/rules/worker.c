// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * worker.c - compiling a stranger's file in a process that can do nothing else.
 *
 * The process first says the build id, as somebody may have the table of that already,
 * and waits. Told to, it makes the table and writes it to a file in memory, which is
 * read, and checked, when the process has ended: nobody can change it any more.
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
#include "tools/elf/object.h"
#include "tools/rules/device.h"
#include "tools/rules/sandbox.h"
#include "tools/rules/worker.h"

/* The largest programs there are take a second and a GiB. */
static const struct sandbox_limits limits = {
	.memory = (size_t)3 << 30,
	.seconds = 60,
	.output = (size_t)1 << 29,
};
#define PATIENCE_MS 120000

/* Of the file: linkers put the build id in front. */
#define HEAD_BYTES (1 << 16)

/**
 * struct answer - what the process says
 * @err: 0 or a negative errno.
 * @size: bytes of the table.
 * @id: build id.
 */
struct answer {
	int err;
	uint64_t size;
	struct build_id id;
};

static bool write_all(int fd, const void *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n <= 0)
			return false;
		data = (const char *)data + n;
		size -= n;
	}
	return true;
}

/* --- in the process --- */

static int make_table(struct rules_file *file, int out, struct answer *a)
{
	struct rules_table table;
	int err = rules_file_fill(file);

	if (!err)
		err = rules_compile(file->data, file->size, "/", &table);
	if (err)
		return err;
	a->size = table.size;
	return write_all(out, table.header, table.size) ? 0 : -EIO;
}

static void work(const struct worker *w, int fd)
{
	static uint8_t head[HEAD_BYTES];
	struct answer a = { 0 };
	struct rules_file file;
	ssize_t n = 0;
	char go;

	a.err = sandbox_limit(&limits);
	if (!a.err)
		a.err = rules_file_begin(&file, fd);
	if (!a.err)
		a.err = sandbox_enter();
	if (!a.err)
		n = pread(fd, head, sizeof(head), 0);
	if (n > 0)
		build_id_of(head, n, &a.id);
	if (!write_all(w->pipe, &a, sizeof(a)) || a.err || read(w->pipe, &go, 1) != 1)
		_exit(1);
	a.err = make_table(&file, w->out, &a);
	_exit(!write_all(w->pipe, &a, sizeof(a)));
}

/* --- outside --- */

static int hear(const struct worker *w, struct answer *a)
{
	struct pollfd p = { .fd = w->pipe, .events = POLLIN };
	int n = poll(&p, 1, PATIENCE_MS);
	ssize_t got;

	if (n < 0)
		return -errno;
	if (!n)
		return -ETIMEDOUT;
	got = recv(w->pipe, a, sizeof(*a), MSG_DONTWAIT);
	if (got != sizeof(*a) || a->id.size > sizeof(a->id.data) || a->err > 0)
		return -EPROTO;
	return a->err;
}

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

int worker_start(struct worker *w, int fd, struct build_id *id)
{
	struct answer a;
	int err = start(w, fd);

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

/* A copy that nobody else has, checked. */
static int read_table(const struct worker *w, size_t size, struct rules_table *ret)
{
	struct ushstk_rules_view view;
	struct stat st;
	int err;

	if (fstat(w->out, &st) || (uint64_t)st.st_size != size || size < sizeof(*ret->header) ||
	    size > limits.output)
		return -EPROTO;
	ret->header = malloc(size);
	if (!ret->header)
		return -ENOMEM;
	ret->size = size;
	err = pread(w->out, ret->header, size, 0) == (ssize_t)size ? 0 : -EPROTO;
	if (!err)
		err = ushstk_rules_check(ret->header, size, machine_own(), &view);
	if (err)
		free(ret->header);
	return err;
}

int worker_compile(struct worker *w, struct rules_table *ret)
{
	struct answer a;
	int err;

	*ret = (struct rules_table){ 0 };
	if (send(w->pipe, "", 1, MSG_NOSIGNAL) != 1)
		return -EPROTO;
	err = hear(w, &a);
	if (err)
		return err;
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	w->pid = 0;
	return read_table(w, a.size, ret);
}

/*
 * The process is another user's, whom only CAP_KILL may kill. Without that it ends as its
 * pipe does, or as the time it may compute is over.
 */
void worker_end(struct worker *w)
{
	close(w->pipe);
	if (w->pid) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	close(w->out);
}
