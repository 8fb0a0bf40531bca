/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * never.h - a file whose pages never come: a FUSE server that answers everything except reads
 */
#ifndef KMOD_NEVER_H
#define KMOD_NEVER_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void never_answer(int fuse, const struct fuse_in_header *in, int error,
				const void *data, size_t size)
{
	struct {
		struct fuse_out_header out;
		char data[512];
	} reply = { .out = { .unique = in->unique, .error = error } };

	reply.out.len = (uint32_t)(sizeof(reply.out) + size);
	memcpy(reply.data, data, size);
	/* The request may have been taken back. */
	if (write(fuse, &reply, reply.out.len) < 0)
		return;
}

static inline void never_serve(int fuse, const struct fuse_in_header *in, uint64_t size)
{
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_write = 4096,
	};
	const struct fuse_attr_out attr = {
		.attr_valid = 1000,
		.attr = { .ino = FUSE_ROOT_ID, .size = size, .mode = S_IFREG | 0644, .nlink = 1 },
	};
	const struct fuse_open_out opening = { 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		return never_answer(fuse, in, 0, &init, sizeof(init));
	case FUSE_GETATTR:
		return never_answer(fuse, in, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
		return never_answer(fuse, in, 0, &opening, sizeof(opening));
	case FUSE_READ:
	case FUSE_FORGET:
	case FUSE_INTERRUPT:
		return;
	}
	never_answer(fuse, in, -ENOSYS, NULL, 0);
}

/**
 * never_start() - mount the file
 * @path: path of the file.
 * @size: size of the file in bytes.
 *
 * Return: the server; when it ends, everybody who waits for the file continues. -1 on failure, with
 * errno.
 */
static inline pid_t never_start(const char *path, uint64_t size)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	static struct {
		struct fuse_in_header in;
		char data[1 << 17];
	} request;
	char options[128];
	pid_t pid;

	close(open(path, O_CREAT | O_CLOEXEC, 0644));
	snprintf(options, sizeof(options), "fd=%d,rootmode=100644,user_id=0,group_id=0", fuse);
	if (fuse < 0 || mount("never", path, "fuse", MS_NOSUID | MS_NODEV, options))
		return -1;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(fuse, &request, sizeof(request)) > 0 || errno == EINTR)
			never_serve(fuse, &request.in, size);
		_exit(0);
	}
	close(fuse);
	return pid;
}

/* Ends the server and unmounts the file. */
static inline void never_end(const char *path, pid_t server)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	umount2(path, MNT_DETACH);
}

#endif
