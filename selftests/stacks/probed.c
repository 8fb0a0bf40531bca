// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * probed.c - a program with a kernel probe, as other tools set them.
 *
 * With "outer", the probe is on the return of outer(), which start() calls through a pointer. With
 * "middle", it is on that of middle(), which outer() calls. The kernel replaces the return address
 * on the stack by the address of its trampoline.
 *
 * With "stepped", the probe is on an instruction of multiply(), which the kernel executes in a page
 * of its own. The program calls it all the time, through a chain of calls.
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

#ifdef __x86_64__
extern char stepped_here[];

static noinline void multiply(int n)
{
	volatile int room[10];

	room[0] = n;
	__asm__ volatile(".globl stepped_here\nstepped_here: imul %0, %0" : "+r"(n));
	count += n + room[0];
}

static noinline void call_multiply(volatile int *room)
{
	multiply(room[1]);
	room[1] = 0;
}

static noinline void begin_multiply(void)
{
	volatile int room[40];

	room[1] = 1;
	call_multiply(room);
	room[2] = 0;
}
#endif

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

/* Probes the instruction at an address, or the return of the function that begins there. */
static int probe(uintptr_t address, int is_return)
{
	static char self[4096];
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = is_return,
		.sample_period = is_return ? 1 : 1000000,
	};
	FILE *in = fopen("/sys/bus/event_source/devices/uprobe/type", "re");

	if (!in || fscanf(in, "%u", &attr.type) != 1 || readlink("/proc/self/exe", self, 4095) < 0)
		return -1;
	fclose(in);
	dl_iterate_phdr(find_offset, &address);
	attr.config1 = (uintptr_t)self;
	attr.config2 = address;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static noinline void start(void)
{
	call_outer();
	count = 0;
}

static noinline int step(void)
{
#ifdef __x86_64__
	if (probe((uintptr_t)stepped_here, 0) < 0) {
		printf("no probes of instructions: %s\n", strerror(errno));
		return 0;
	}
	write(1, "ready\n", 6);
	for (;;)
		begin_multiply();
#endif
	puts("only on x86-64");
	return 0;
}

int main(int argc, char **argv)
{
	void (*which)(void) = argc == 2 && !strcmp(argv[1], "outer") ? outer :
								       (void (*)(void))middle;

	if (argc == 2 && !strcmp(argv[1], "stepped"))
		return step();
	if (probe((uintptr_t)which, 1) < 0) {
		printf("no probes of returns: %s\n", strerror(errno));
		return 0;
	}
	start();
	return 0;
}
