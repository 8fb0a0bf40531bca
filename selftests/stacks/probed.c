// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * probed.c - a program with a kernel probe on the return of a function, as other tools set them.
 * The kernel replaces the return address on the stack by the address of its trampoline.
 *
 * With "outer", the probe is on outer(), which start() calls through a pointer. With "middle", it
 * is on middle(), which outer() calls.
 */
#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define noinline __attribute__((noinline, noclone))

static volatile unsigned long count;

static noinline void inner(void)
{
	write(1, "ready\n", 6);
	for (;;)
		count++;
}

static noinline void middle(volatile int *room)
{
	inner();
	room[1] = 0;
}

static noinline void outer(void)
{
	volatile int room[40];

	room[0] = 0;
	middle(room);
	room[2] = 0;
}

/* Another caller of middle(), so that nobody can tell the caller by searching for it. */
static noinline __attribute__((used)) void other(void)
{
	volatile int room[40];

	middle(room);
	room[0] = 0;
}

static void (*volatile call_outer)(void) = outer;

static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t *addr = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && *addr - info->dlpi_addr - p->p_vaddr < p->p_filesz) {
			*addr += p->p_offset - info->dlpi_addr - p->p_vaddr;
			return 1;
		}
	}
	return 0;
}

static int probe_return(uintptr_t function)
{
	static char self[4096];
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = 1, /* probe the return */
		.sample_period = 1,
	};
	FILE *in = fopen("/sys/bus/event_source/devices/uprobe/type", "re");

	if (!in || fscanf(in, "%u", &attr.type) != 1 || readlink("/proc/self/exe", self, 4095) < 0)
		return -1;
	fclose(in);
	dl_iterate_phdr(find_offset, &function);
	attr.config1 = (uintptr_t)self;
	attr.config2 = function;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static noinline void start(void)
{
	call_outer();
	count = 0;
}

int main(int argc, char **argv)
{
	void (*which)(void) = argc == 2 && !strcmp(argv[1], "outer") ? outer :
								       (void (*)(void))middle;

	if (probe_return((uintptr_t)which) < 0) {
		printf("no probes of returns: %s\n", strerror(errno));
		return 0;
	}
	start();
	return 0;
}
