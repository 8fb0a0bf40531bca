// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * probed.c - a program with a kernel probe, as other tools set them.
 *
 * With "outer", the probe is on the return of outer(), which start() calls through a pointer. With
 * "middle", it is on that of middle(), which outer() calls. The kernel replaces the return address
 * on the stack by the address of its trampoline.
 *
 * With "stepped", the probe is on an instruction of multiply(), which the kernel executes in a page
 * of its own. The program calls it all the time, through a chain of calls. With "entry", the same for
 * the first instruction of times_three(); with "stub", for those of times_five() and times_seven() in
 * a library, of which one is called through the linker's stub; with "pointer", it is called through a
 * pointer.
 */
#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

#if defined(__x86_64__) || defined(__aarch64__)
#ifdef __x86_64__
#define SQUARE "imul %0, %0"
#define TIMES_THREE "imul $3, %edi, %eax"
#else
#define SQUARE "mul %w0, %w0, %w0"
#define TIMES_THREE "smull x0, w0, w0"
#endif

extern char stepped_here[];
int times_three(int n);
int times_five(int n); /* in probed_lib.c */
int times_seven(int n);

/* Instructions that the kernel does not execute itself, but steps. */
__asm__(".text\n.globl times_three\n.type times_three, %function\ntimes_three: .cfi_startproc\n" TIMES_THREE
	"\nret\n.cfi_endproc\n.size times_three, .-times_three");

static noinline void multiply(int n)
{
	volatile int room[10];

	room[0] = n;
	__asm__ volatile(".globl stepped_here\nstepped_here: " SQUARE : "+r"(n));
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

static noinline void call_times_three(volatile int *room)
{
	count += times_three(room[1]);
	room[1] = 0;
}

static noinline void call_times_five(volatile int *room)
{
	count += times_five(room[1]);
	room[1] = 0;
}

static noinline void call_pointer(volatile int *room, int (*call)(int n))
{
	count += call(room[1]);
	room[1] = 0;
}

static noinline void begin_times(char mode)
{
	volatile int room[40];

	room[1] = 1;
	if (mode == 'e')
		call_times_three(room);
	else if (mode == 's')
		call_times_five(room);
	else
		call_pointer(room, times_five);
	room[2] = 0;
}
#endif

struct place {
	uintptr_t address;
	uint64_t offset;
	char path[4096];
};

/* Finds the file of an address, and the offset in it. */
static int find_place(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *place = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t at = place->address - info->dlpi_addr - p->p_vaddr;

		if (p->p_type == PT_LOAD && at < p->p_filesz) {
			place->offset = p->p_offset + at;
			snprintf(place->path, sizeof(place->path), "%s",
				 *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
			return 1;
		}
	}
	return 0;
}

/* Probes the instruction at an address, or the return of the function that begins there. */
static int probe(uintptr_t address, int is_return)
{
	struct place place = { .address = address };
	static char path[4096];
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = is_return,
		.sample_period = is_return ? 1 : 1000000,
	};
	FILE *in = fopen("/sys/bus/event_source/devices/uprobe/type", "re");

	if (!in || fscanf(in, "%u", &attr.type) != 1 || !dl_iterate_phdr(find_place, &place) ||
	    !realpath(place.path, path))
		return -1;
	fclose(in);
	attr.config1 = (uintptr_t)path;
	attr.config2 = place.offset;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static noinline void start(void)
{
	call_outer();
	count = 0;
}

static noinline int step(const char *mode)
{
#if defined(__x86_64__) || defined(__aarch64__)
	const uintptr_t sites[] = {
		*mode == 'e'		 ? (uintptr_t)times_three :
		!strcmp(mode, "stepped") ? (uintptr_t)stepped_here :
					   (uintptr_t)times_five,
		(uintptr_t)times_seven,
	};
	const bool both = *mode == 'p' || !strcmp(mode, "stub");

	if (probe(sites[0], 0) < 0 || (both && probe(sites[1], 0) < 0)) {
		printf("no probes of instructions: %s\n", strerror(errno));
		return 0;
	}
	write(1, "ready\n", 6);
	for (;;) {
		if (!strcmp(mode, "stepped"))
			begin_multiply();
		else
			begin_times(*mode);
	}
#endif
	puts("only on x86-64 and arm64");
	return 0;
}

int main(int argc, char **argv)
{
	void (*which)(void) = argc == 2 && !strcmp(argv[1], "outer") ? outer :
								       (void (*)(void))middle;

	if (argc == 2 && strchr("sep", *argv[1]))
		return step(argv[1]);
	if (probe((uintptr_t)which, 1) < 0) {
		printf("no probes of returns: %s\n", strerror(errno));
		return 0;
	}
	start();
	return 0;
}
