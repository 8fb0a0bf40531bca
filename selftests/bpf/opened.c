// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * opened.c - is preloaded into a recorder, and writes into the file $OPENED a line for each event at which a BPF
 * program begins to run: "with" if the kernel makes a callchain of user space at its samples, or "without"; and a line
 * for each call that puts several things into a BPF map: "placed" and how many.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS 4096

/* By the descriptor of an event: the kernel makes such callchains. */
static bool with[EVENTS];

static void note(const char *line)
{
	const char *path = getenv("OPENED");
	const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (file < 0 || write(file, line, strlen(line)) != (ssize_t)strlen(line))
		abort();
	close(file);
}

static void note_placed(const union bpf_attr *attr)
{
	char line[32];

	snprintf(line, sizeof(line), "placed %u\n", attr->batch.count);
	note(line);
}

long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	long arg[6], ret;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(list, long);
	va_end(list);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	ret = real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (number == SYS_perf_event_open && ret >= 0 && ret < EVENTS)
		with[ret] = !((struct perf_event_attr *)arg[0])->exclude_callchain_user;
	if (number == SYS_bpf && arg[0] == BPF_MAP_UPDATE_BATCH && !ret)
		note_placed((const union bpf_attr *)arg[1]);
	return ret;
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*real)(int fd, unsigned long request, ...);
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (request == PERF_EVENT_IOC_SET_BPF && fd >= 0 && fd < EVENTS)
		note(with[fd] ? "with\n" : "without\n");
	if (!real)
		real = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	return real(fd, request, arg);
}
