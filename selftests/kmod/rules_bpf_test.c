// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rules_bpf_test.c - tests user stacks by unwind rules in BPF programs of each kind, by each call
 *
 *	rules_bpf_test rules.bpf.o SHSTK
 *
 * SHSTK is the command, which compiles this program's own rules. A child without frame pointers
 * descends, writes down its callers as the compiler's library unwinds them, and calls getppid()
 * forever. Each stack has to end in these callers, and to begin with the two functions that are
 * known.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "file_offset.h"
#include "kselftest.h"
#include "rules_bpf.h"
#include "sampler.h"

#define noinline_ __attribute__((noinline, noclone))
#define DEPTH 20
#define PATIENCE 30000 /* tries of 10 ms each */
#define LOADS 5
#define FUNCTION_BYTES 256 /* more than ask() and stay() have */
#define STATE_BYTES ((sizeof(struct rules_state) + 4095) & ~4095ul)

#ifdef __x86_64__
#define GETPPID "__x64_sys_getppid"
#else
#define GETPPID "__arm64_sys_getppid"
#endif

/*
 * This function is called while the program counter is behind the copy of a uprobe's instruction.
 */
#define STEPPED "arch_uprobe_post_xol"

static const char *const names[] = { "tracepoint", "kprobe", "uprobe", "stepping", "perf_event" };

/**
 * struct truth - what the child says
 * @nr: number of callers of stay().
 * @ip: callers of stay(), innermost first.
 * @ready: everything is written; from now on the child is in stay() or in ask().
 * @over: the child is to leave stay().
 */
static struct truth {
	volatile unsigned int nr, ready, over;
	volatile __u64 ip[RULES_DEPTH];
} * truth;

static volatile struct rules_state *state;
static __u64 by_id[RULES_KINDS][RULES_STACKS][RULES_DEPTH]; /* stacks of bpf_get_stackid() */

/* ---- The child ---- */

static _Unwind_Reason_Code add_caller(struct _Unwind_Context *context, void *arg)
{
	__u64 ip = _Unwind_GetIP(context);

	(void)arg;
	if (ip && truth->nr < RULES_DEPTH)
		truth->ip[truth->nr++] = ip;
	return _URC_NO_REASON;
}

noinline_ void ask(void);
noinline_ void ask(void)
{
#ifdef __x86_64__
	long ret = SYS_getppid;

	asm volatile("syscall" : "+a"(ret) : : "rcx", "r11", "memory");
#else
	register long x8 asm("x8") = SYS_getppid;
	register long x0 asm("x0");

	asm volatile("svc #0" : "=r"(x0) : "r"(x8) : "memory");
#endif
}

static noinline_ void stay(void)
{
	/* The first entry is this function, so it is removed. */
	_Unwind_Backtrace(add_caller, NULL);
	for (unsigned int i = 1; i < truth->nr; i++)
		truth->ip[i - 1] = truth->ip[i];
	truth->nr--;
	__atomic_store_n(&truth->ready, 1, __ATOMIC_RELEASE);
	while (!truth->over)
		ask();
}

static noinline_ void descend(int n)
{
	if (n)
		descend(n - 1);
	else
		stay();
	asm volatile("");
}

/* Starts the child, which waits until all programs are attached. */
static pid_t start(int *go)
{
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		ksft_exit_fail_msg("pipe: %s\n", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		char byte;

		if (read(fd[0], &byte, 1) == 1)
			descend(DEPTH);
		_exit(1);
	}
	close(fd[0]);
	*go = fd[1];
	return pid;
}

/* ---- The sampling side ---- */

static struct bpf_program *program(struct bpf_object *obj, const char *name)
{
	return bpf_object__find_program_by_name(obj, name);
}

static struct bpf_link *attach(struct bpf_object *obj, pid_t pid, unsigned int kind)
{
	switch (kind) {
	case RULES_TRACEPOINT:
		return bpf_program__attach(program(obj, "on_tracepoint"));
	case RULES_KPROBE:
		return bpf_program__attach_kprobe(program(obj, "on_kprobe"), false, GETPPID);
	case RULES_UPROBE:
		return bpf_program__attach_uprobe(program(obj, "on_uprobe"), false, pid,
						  "/proc/self/exe", offset_of(ask));
	case RULES_STEP:
		return bpf_program__attach_kprobe(program(obj, "on_step"), false, STEPPED);
	default:
		return bpf_program__attach_perf_event(program(obj, "on_clock"),
						      sampler_open_clock(pid));
	}
}

/*
 * Reads the stacks from the map and empties it, so that no stacks of another kind are in the way.
 */
static void read_ids(int map, unsigned int kind)
{
	for (unsigned int i = 0; i < state->taken[kind]; i++) {
		__u32 key = (__u32)state->stack[kind][i].id;

		if (state->stack[kind][i].id >= 0)
			bpf_map_lookup_elem(map, &key, by_id[kind][i]);
	}
	for (unsigned int i = 0; i < state->taken[kind]; i++) {
		__u32 key = (__u32)state->stack[kind][i].id;

		bpf_map_delete_elem(map, &key);
	}
}

/*
 * Takes the stacks of one kind after the other, because while there is a uprobe its instruction is
 * stepped elsewhere.
 */
static void take(struct bpf_object *obj, int map, pid_t pid, unsigned int kind)
{
	struct bpf_link *link = attach(obj, pid, kind);
	struct bpf_link *uprobe = kind == RULES_STEP ? attach(obj, pid, RULES_UPROBE) : NULL;

	if (!link || (kind == RULES_STEP && !uprobe))
		ksft_exit_fail_msg("%s: cannot attach: %s\n", names[kind], strerror(errno));
	for (int i = 0; i < PATIENCE && state->taken[kind] < RULES_STACKS; i++)
		usleep(10000);
	bpf_link__destroy(link);
	bpf_link__destroy(uprobe);
	read_ids(map, kind);
}

static bool is_in(__u64 ip, const void *function)
{
	return ip - (uintptr_t)function < FUNCTION_BYTES;
}

/*
 * Returns whether a stack is right. A sample of the clock may be in stay() itself. While a uprobe's
 * instruction is stepped, the stack shows its own place, not that of its copy.
 */
static bool is_exact(const __u64 *pc, long nr, unsigned int kind)
{
	unsigned int n = truth->nr;
	long more = nr - n;

	if (more != 2 && !(kind == RULES_CLOCK && more == 1))
		return false;
	if ((more == 2 && !is_in(pc[0], ask)) || !is_in(pc[more - 1], stay))
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (pc[more + i] != truth->ip[i])
			return false;
	return true;
}

static void print_first(unsigned int kind, const struct rules_stack *s)
{
	ksft_print_msg("%s: %lld bytes, %lld by task, true %u callers\n", names[kind], s->bytes,
		       s->task_bytes, truth->nr);
	for (long i = 0; i < s->bytes / 8 || i < truth->nr; i++)
		ksft_print_msg("%#llx, true %#llx\n", i < s->bytes / 8 ? s->pc[i] : 0,
			       i < truth->nr ? truth->ip[i] : 0);
}

static void judge(unsigned int kind)
{
	unsigned int nr = 0, stacks = 0, tasks = 0, ids = 0;

	for (unsigned int i = 0; i < state->taken[kind]; i++) {
		const struct rules_stack *s = (const struct rules_stack *)&state->stack[kind][i];
		const __u64 *byid = by_id[kind][i];
		long n = 0;

		nr++;
		if (!is_exact(s->pc, s->bytes / 8, kind) && nr == stacks + 1)
			print_first(kind, s);
		stacks += is_exact(s->pc, s->bytes / 8, kind);
		tasks += is_exact(s->task_pc, s->task_bytes / 8, kind);
		while (n < RULES_DEPTH && byid[n])
			n++;
		ids += is_exact(byid, n, kind);
	}
	ksft_test_result(nr == RULES_STACKS && stacks == nr,
			 "%s: bpf_get_stack() is exact: %u of %u\n", names[kind], stacks, nr);
	ksft_test_result(nr == RULES_STACKS && tasks == nr, "%s: so is bpf_get_task_stack(): %u\n",
			 names[kind], tasks);
	ksft_test_result(nr == RULES_STACKS && ids == nr, "%s: and bpf_get_stackid(): %u\n",
			 names[kind], ids);
}

/* The command's search for files ends where the machine stands still for a second: then it is repeated. */
static void load_rules(const char *shstk)
{
	char command[512];

	snprintf(command, sizeof(command), "%s rules load -q -p %d", shstk, getpid());
	for (int i = 0; system(command); i++)
		if (i == LOADS)
			ksft_exit_fail_msg("%s: failed\n", command);
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	int map, go;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: %s rules.bpf.o SHSTK\n", argv[0]);
		return KSFT_FAIL;
	}
	ksft_print_header();
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		ksft_exit_skip("the kernel has no BTF\n");
	ksft_set_plan(3 * RULES_KINDS);
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	load_rules(argv[2]);
	obj = bpf_object__open_file(argv[1], NULL);
	if (!obj || bpf_object__load(obj))
		ksft_exit_fail_msg("cannot load %s\n", argv[1]);
	map = bpf_object__find_map_fd_by_name(obj, "ids");
	state = mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_map__fd(bpf_object__find_map_by_name(obj, ".bss")), 0);
	if (map < 0 || state == MAP_FAILED)
		ksft_exit_fail_msg("no maps\n");
	pid = start(&go);
	if (write(go, "", 1) != 1)
		ksft_exit_fail_msg("write: %s\n", strerror(errno));
	for (int i = 0; i < PATIENCE && !truth->ready; i++)
		usleep(10000);
	state->process = (__u32)pid;
	for (unsigned int i = 0; i < RULES_KINDS; i++)
		take(obj, map, pid, i);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (unsigned int i = 0; i < RULES_KINDS; i++)
		judge(i);
	bpf_object__close(obj);
	ksft_finished();
}
