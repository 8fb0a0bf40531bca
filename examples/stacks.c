// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stacks.c - samples a running process by a BPF program (stacks.bpf.c), and prints each exact user
 * stack in a line, the outermost frame first, as FILE+OFFSET.
 *
 * Build it, after the BPF program:
 *
 *   cc -o stacks stacks.c -lbpf
 *
 * Run it as root, while "shstk rules serve --bpf" runs:
 *
 *   ./stacks stacks.bpf.o PID SECONDS
 */
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <shstk_stack.bpf.h>

#define FREQ 199 /* samples in a second of CPU time */

/* Prints the file that the process has mapped at @pc, and the offset in it. */
static void print_place(int pid, unsigned long long pc)
{
	unsigned long long start, end, offset;
	char path[64], line[4096], name[4000];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		*name = '\0';
		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %3999s", &start, &end, &offset, name) <
			    3 ||
		    pc < start || pc >= end)
			continue;
		printf("%s+0x%llx", strrchr(name, '/') ? strrchr(name, '/') + 1 : name,
		       pc - start + offset);
		fclose(maps);
		return;
	}
	if (maps)
		fclose(maps);
	printf("0x%llx", pc);
}

static int print_stack(void *arg, void *data, size_t size)
{
	const struct shstk_stack *s = data;

	(void)arg;
	if (size < sizeof(*s))
		return 0;
	printf("%s", s->whole ? "" : "[truncated];");
	for (__u32 i = s->nr; i--;) {
		/* A return address may be that of the next function: the call is in front of it. */
		print_place(s->pid, s->pc[i] - (i > 0));
		printf("%s", i ? ";" : "\n");
	}
	return 0;
}

/* Opens a clock of the process, and has the program run at its samples. */
static struct bpf_link *begin(struct bpf_object *object, int pid)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, "sample");
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.freq = 1,
		.sample_freq = FREQ,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		perror("perf_event_open");
		return NULL;
	}
	return program ? bpf_program__attach_perf_event(program, fd) : NULL;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct ring_buffer *ring;
	time_t end;

	if (argc != 4) {
		fprintf(stderr, "usage: %s stacks.bpf.o PID SECONDS\n", *argv);
		return 2;
	}
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object) || !begin(object, atoi(argv[2])))
		return 1;
	ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "stacks"), print_stack,
				NULL, NULL);
	end = time(NULL) + atoi(argv[3]);
	while (ring && time(NULL) < end)
		if (ring_buffer__poll(ring, 100) < 0)
			break;
	ring_buffer__free(ring);
	bpf_object__close(object);
	return !ring;
}
