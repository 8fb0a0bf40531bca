// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fake_device.c - a library to preload: provides /dev/shstk_rules without the module, and a world
 * that is worse and faster than this one.
 *
 * The calls of the device go to the socket FAKE_DEVICE, where the test answers them. A message
 * there has the number of the call and its argument, with the file that it names. The answer has an
 * errno and the argument. A process that opens the device sends 0, and then receives misses: an
 * errno, or 0 and the file.
 *
 * FAKE_STUCK: number of an inode. Its file is never read to the end, by a process that cannot be
 *	killed, as if the file's server were gone.
 * FAKE_LATER: a file with a number of 64 bits: by how many seconds clocks are ahead.
 * FAKE_HASTE: factor by which poll() waits less.
 * FAKE_MODULE: a folder in the place of /sys/module/shstk_perf.
 * FAKE_SUBUID: a file in the place of /etc/subuid.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/shstk_rules.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_ARG 256

struct message {
	uint32_t word; /* the number of a call, or an errno */
	uint8_t arg[MAX_ARG];
};

static volatile int stuck = -1; /* the file of FAKE_STUCK */
static const volatile int64_t *later; /* the number in the file of FAKE_LATER, if there is one */

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

/* It is mapped at the start, because processes that read files may open none. */
static __attribute__((constructor)) void map_later(void)
{
	const char *path = getenv("FAKE_LATER");
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd >= 0 ? mmap(NULL, sizeof(*later), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (at != MAP_FAILED)
		later = at;
	if (fd >= 0)
		close(fd);
}

static int dial(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strncpy(to.sun_path, getenv("FAKE_DEVICE"), sizeof(to.sun_path) - 1);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool tell(int to, struct message *m, size_t size, int fd)
{
	struct iovec v = { .iov_base = m, .iov_len = sizeof(m->word) + size };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&c.header), &fd, sizeof(fd));
		h.msg_control = &c;
		h.msg_controllen = sizeof(c);
	}
	return sendmsg(to, &h, MSG_NOSIGNAL) > 0;
}

/*
 * Receives a message. *@fd receives its file, or -1. Returns the number of bytes behind the word,
 * or -1.
 */
static ssize_t hear(int from, struct message *m, int *fd, int flags)
{
	struct iovec v = { .iov_base = m, .iov_len = sizeof(*m) };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} c;
	struct msghdr h = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	ssize_t n = recvmsg(from, &h, flags | MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (n < (ssize_t)sizeof(m->word))
		return -1;
	if (CMSG_FIRSTHDR(&h))
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(*fd));
	return n - (ssize_t)sizeof(m->word);
}

static int next_miss(int device, struct shstk_rules_miss *miss)
{
	struct message m;
	int fd;

	if (hear(device, &m, &fd, MSG_DONTWAIT) < 0)
		m.word = EAGAIN;
	*miss = (struct shstk_rules_miss){ .fd = fd };
	errno = (int)m.word;
	return m.word ? -1 : 0;
}

static int call(unsigned long cmd, void *arg)
{
	struct message m = { .word = _IOC_NR(cmd) };
	size_t size = _IOC_SIZE(cmd);
	int to = dial(), fd = -1, unused;

	if (cmd == SHSTK_RULES_LOAD)
		fd = ((struct shstk_rules_load *)arg)->fd;
	if (cmd == SHSTK_RULES_DROP)
		fd = ((struct shstk_rules_drop *)arg)->fd;
	memcpy(m.arg, arg, size);
	if (to < 0 || !tell(to, &m, size, fd) || hear(to, &m, &unused, 0) != (ssize_t)size)
		m.word = EIO;
	close(to);
	memcpy(arg, m.arg, size);
	errno = (int)m.word;
	return m.word ? -1 : 0;
}

static int open_device(void)
{
	struct message m = { 0 };
	int fd = dial();

	if (fd >= 0 && !tell(fd, &m, 0, -1)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- Functions that replace those of the C library ---- */

/* Returns the file that is in the place of @path. */
static const char *place_of(const char *path)
{
	const char *subuid = getenv("FAKE_SUBUID");

	return subuid && !strcmp(path, "/etc/subuid") ? subuid : path;
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (!strcmp(path, SHSTK_RULES_DEVICE))
		return open_device();
	return (int)syscall(SYS_openat, AT_FDCWD, place_of(path), flags, mode);
}

int stat(const char *path, struct stat *st)
{
	return fstatat(AT_FDCWD, place_of(path), st, 0);
}

FILE *fopen(const char *path, const char *mode)
{
	static FILE *(*next)(const char *, const char *);
	static const char module[] = "/sys/module/shstk_perf/";
	const char *folder = getenv("FAKE_MODULE");
	char other[PATH_MAX];

	if (!next)
		next = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
	if (folder && !strncmp(path, module, sizeof(module) - 1)) {
		snprintf(other, sizeof(other), "%s/%s", folder, path + sizeof(module) - 1);
		path = other;
	}
	return next(path, mode);
}

int ioctl(int fd, unsigned long cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (_IOC_TYPE(cmd) != SHSTK_RULES_IOC || _IOC_NR(cmd) < 0x40)
		return (int)syscall(SYS_ioctl, fd, cmd, arg);
	return cmd == SHSTK_RULES_MISS ? next_miss(fd, arg) : call(cmd, arg);
}

/*
 * The file is identified here, because this is called before a file is read, while it is still
 * allowed.
 */
int fstat(int fd, struct stat *st)
{
	int err = (int)syscall(SYS_fstat, fd, st);

	if (!err && (long)st->st_ino == number("FAKE_STUCK", 0))
		stuck = fd;
	else if (fd == stuck)
		stuck = -1; /* the number belongs to another file now */
	return err;
}

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	while (fd == stuck)
		;
	return syscall(SYS_pread64, fd, buf, size, offset);
}

int kill(pid_t pid, int sig)
{
	return getenv("FAKE_STUCK") ? 0 : (int)syscall(SYS_kill, pid, sig);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int err = (int)syscall(SYS_clock_gettime, clock, ret);

	if (later)
		ret->tv_sec += *later;
	return err;
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec t;

	if (ms > 0)
		ms = (int)(ms / number("FAKE_HASTE", 1));
	t = (struct timespec){ ms / 1000, ms % 1000 * 1000000l };
	return (int)syscall(SYS_ppoll, fds, n, ms < 0 ? NULL : &t, NULL, 0);
}
