// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stacks.c - samples a running process by a BPF program (stacks.bpf.c), and prints each exact user
 * stack in a line, the outermost function first.
 *
 * Build it, after the BPF program:
 *
 *   cc -o stacks stacks.c $(pkg-config --cflags --libs libshstk-bpf libshstk-symbolize libbpf)
 *
 * Run it as root. The last argument is the path of the command shstk, for one that is not installed:
 *
 *   ./stacks stacks.bpf.o PID SECONDS [SHSTK]
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

#include <shstk_bpf.h>
#include <shstk_stack.bpf.h>
#include <shstk_symbolize.h>

#define FREQ 199 /* samples in a second of CPU time */

/* Prints the function that was called at @pc, without what was inlined into it. */
static void print_function(struct shstk_symbolizer *names, __u64 pc, __u8 mark)
{
	struct shstk_name at[16];
	int n = shstk_symbolize(names, pc, mark, at, 16, sizeof(*at));

	printf("%s", n > 0 ? at[n < 16 ? n - 1 : 15].function : "?");
}

static int print_stack(void *arg, void *data, size_t size)
{
	const struct shstk_bpf_stack *s = data;

	if (size < sizeof(*s))
		return 0;
	printf("%s", s->whole ? "" : "[truncated];");
	for (__u32 i = s->nr; i--;) {
		/* Only the first address is not a return address, behind a call. */
		print_function(arg, s->pc[i], i ? 0 : SHSTK_MARK_PC);
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

/* Prints stacks for so many seconds. Returns 0, or 1 if it ends early. */
static int print_stacks(struct bpf_object *object, struct shstk_symbolizer *names, int seconds)
{
	int fd = bpf_object__find_map_fd_by_name(object, "stacks"), got = 0;
	struct ring_buffer *ring = ring_buffer__new(fd, print_stack, names, NULL);
	time_t end = time(NULL) + seconds;

	while (ring && got >= 0 && time(NULL) < end)
		got = ring_buffer__poll(ring, 100);
	ring_buffer__free(ring);
	return !ring || got < 0;
}

int main(int argc, char **argv)
{
	struct shstk_bpf_opts opts = { .size = sizeof(opts) };
	struct shstk_symbolizer *names;
	struct bpf_object *object;
	struct shstk_bpf *tables;
	char why[256];
	int status;

	if (argc < 4) {
		fprintf(stderr, "usage: %s stacks.bpf.o PID SECONDS [SHSTK]\n", *argv);
		return 2;
	}
	setlinebuf(stdout);
	opts.command = argv[4];
	if (shstk_bpf_open(&opts, &tables, why, sizeof(why))) {
		fprintf(stderr, "%s: %s\n", *argv, why);
		return 1;
	}
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object) || !begin(object, atoi(argv[2])) ||
	    shstk_symbolizer_create(atoi(argv[2]), &names))
		return 1;
	status = print_stacks(object, names, atoi(argv[3]));
	shstk_symbolizer_destroy(names);
	bpf_object__close(object);
	shstk_bpf_close(&tables);
	return status;
}
