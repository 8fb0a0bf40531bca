/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stall.h - a page for which the kernel waits as long as a program likes
 *
 * The page is missing, and userfaultfd handles its faults. A process that touches it, or passes it
 * to a system call, sleeps until it gets the page.
 */
#ifndef KMOD_STALL_H
#define KMOD_STALL_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct stall {
	int fd;
	unsigned long page;
};

/* Makes the page. Returns whether that worked. */
static inline bool stall_open(struct stall *s)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	long size = getpagesize();
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	s->fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	s->page = (unsigned long)page;
	reg.range.start = s->page;
	reg.range.len = size;
	return s->fd >= 0 && page != MAP_FAILED && !ioctl(s->fd, UFFDIO_API, &api) &&
	       !ioctl(s->fd, UFFDIO_REGISTER, &reg);
}

/* Waits until somebody waits for the page. Returns whether somebody does. */
static inline bool stall_await(const struct stall *s, int ms)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	struct uffd_msg msg;

	return poll(&p, 1, ms) == 1 && read(s->fd, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_PAGEFAULT;
}

/* Lets the waiting process continue. Returns whether that worked. */
static inline bool stall_end(const struct stall *s)
{
	struct uffdio_zeropage zero = {
		.range = { .start = s->page, .len = getpagesize() },
	};

	return !ioctl(s->fd, UFFDIO_ZEROPAGE, &zero);
}

/* Lets the waiting process continue with these bytes at the beginning of the page. */
static inline bool stall_fill(const struct stall *s, const void *bytes, size_t size)
{
	static char page[65536] __attribute__((aligned(65536)));
	struct uffdio_copy copy = {
		.dst = s->page,
		.src = (unsigned long)page,
		.len = getpagesize(),
	};

	memset(page, 0, sizeof(page));
	memcpy(page, bytes, size);
	return !ioctl(s->fd, UFFDIO_COPY, &copy);
}

#endif
