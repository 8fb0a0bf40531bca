// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kfunc_test.c - tests bpf_shstk_get_user_stack(), which a BPF program calls
 *
 *	kfunc_test offcpu.bpf.o
 *
 * The program counts the stacks with which a process leaves the CPU. The process sleeps at a known
 * depth and writes its shadow stack down first. Then the same is done with return probes at the
 * functions in which the process is; return probes change what is on the shadow stack.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"
#include "file_offset.h"
#include "kselftest.h"
#include "need.h"
#include "number.h"
#include "offcpu.h"

#define PATIENCE 300000 /* number of tries of a millisecond each, after which the test gives up */
#define ENOUGH 20 /* number of stacks */

#define noinline_ __attribute__((noinline, noclone))

static struct shared {
	volatile unsigned int nr;
	volatile int ready; /* the stack is written down */
	volatile int stop; /* never set: the process is killed */
	uint64_t word[OFFCPU_DEPTH];
} * shared;

static unsigned long top;

static noinline_ long descend(int n)
{
	struct timespec ms = { 0, 1000000 };
	unsigned long at;
	long r = 0;

	if (n) {
		r = descend(n - 1);
	} else {
		unsigned int nr = 0;

		for (at = ss_pointer(); at < top && nr < OFFCPU_DEPTH; at += 8)
			shared->word[nr++] = *(volatile uint64_t *)at;
		shared->nr = nr;
		shared->ready = 1;
		while (!shared->stop)
			ss_syscall(__NR_nanosleep, (unsigned long)&ms, 0, 0, 0, 0);
	}
	asm volatile("" : "+r"(r));
	return r;
}

static pid_t start(bool on)
{
	pid_t pid;

	shared->ready = 0;
	pid = fork();
	if (pid) {
		for (int i = 0; i < PATIENCE && !shared->ready; i++)
			usleep(1000);
		return pid;
	}
	if (on && ss_enable(SS_ENABLE))
		_exit(1);
	top = ss_pointer();
	descend(on ? 20 : 0);
	for (;;)
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Counts the stacks that are equal to @shared, and all others. */
static void count(int map, __u64 *same, __u64 *other)
{
	struct offcpu_stack key, next, *at = NULL;
	__u64 n;

	*same = *other = 0;
	while (!bpf_map_get_next_key(map, at, &next)) {
		key = next;
		at = &key;
		if (bpf_map_lookup_elem(map, &key, &n))
			continue;
		if (!memcmp(key.pc + 1, shared->word, shared->nr * 8) && !key.pc[1 + shared->nr])
			*same += n;
		else
			*other += n;
	}
}

/* Waits until the stack was seen often enough. */
static void await_stacks(int map, __u64 *same, __u64 *other)
{
	*same = 0;
	for (int i = 0; i < PATIENCE && *same <= ENOUGH; i++) {
		usleep(1000);
		count(map, same, other);
	}
}

/* Returns whether there are only zeroes behind the program counter and @nr words. */
static bool zero_behind(const volatile __u64 *pc, unsigned int nr)
{
	__u64 rest = 0;

	for (unsigned int i = nr; i < OFFCPU_DEPTH; i++)
		rest |= pc[i];
	return !rest;
}

/* Waits until the program on the kprobe has an answer. */
static void await_sleeping(volatile struct offcpu_state *state)
{
	state->answer_sleeping = 0;
	for (int i = 0; i < PATIENCE && !state->answer_sleeping; i++)
		usleep(1000);
}

/* Opens a return probe in all processes of this program. */
static int open_return_probe(const void *function)
{
	struct perf_event_attr attr = {
		.type = (unsigned int)read_number("/sys/bus/event_source/devices/uprobe/type"),
		.size = sizeof(attr),
		.config = 1, /* at the return */
		.config1 = (uintptr_t) "/proc/self/exe",
		.config2 = offset_of(function),
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Returns whether the program on the kprobe got these callers. */
static bool slept_with(volatile struct offcpu_state *state, const uint64_t *word, unsigned int nr)
{
	await_sleeping(state);
	return state->answer_sleeping == (1 + nr) * 8 &&
	       !memcmp((const void *)(state->sleeping.pc + 1), word, nr * 8);
}

static void test_probed(volatile struct offcpu_state *state)
{
	uint64_t word[OFFCPU_DEPTH];
	int probe = open_return_probe(descend);
	bool hidden, right;
	pid_t pid;

	memcpy(word, shared->word, sizeof(word));
	pid = start(true);
	state->process = pid;
	hidden = memcmp(word, shared->word, shared->nr * 8);
	right = slept_with(state, word, shared->nr);
	stop(pid);
	close(probe);
	ksft_test_result(probe >= 0 && hidden, "return probes hide callers on the shadow stack\n");
	ksft_test_result(right, "the call finds them all the same\n");
}

static struct bpf_link *attach(struct bpf_object *obj, const char *name)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(obj, name);

	return prog ? bpf_program__attach(prog) : NULL;
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	struct bpf_map *bss_map;
	__u64 same, other;
	volatile struct offcpu_state *state;
	struct bpf_link *link = NULL, *probe = NULL;
	pid_t pid;
	int map;
	bool right;

	if (argc != 2) {
		fprintf(stderr, "usage: %s offcpu.bpf.o\n", argv[0]);
		return KSFT_FAIL;
	}
	need_shadow_stacks();
	ksft_print_header();
	ksft_set_plan(8);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);

	obj = bpf_object__open_file(argv[1], NULL);
	if (obj && !bpf_object__load(obj)) {
		link = attach(obj, "on_switch");
		probe = attach(obj, "on_sleep");
	}
	if (!link || !probe)
		ksft_exit_fail_msg("cannot load and attach %s\n", argv[1]);
	ksft_test_result_pass(
		"programs on a tracepoint and a kprobe that call the kfunc load and attach\n");

	map = bpf_object__find_map_fd_by_name(obj, "stacks");
	bss_map = bpf_object__find_map_by_name(obj, ".bss");
	state = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(bss_map),
		     0);
	if (map < 0 || state == MAP_FAILED)
		ksft_exit_fail_msg("no maps\n");

	pid = start(true);
	state->process = pid;
	await_stacks(map, &same, &other);
	right = slept_with(state, shared->word, shared->nr);
	stop(pid);
	ksft_test_result(same > ENOUGH && same > 10 * other,
			 "stacks at sched_switch are the shadow stack's: %llu, others %llu\n", same,
			 other);
	ksft_test_result(state->answer_flags == -EINVAL, "unknown flags: EINVAL: %lld\n",
			 state->answer_flags);

	ksft_test_result(right && zero_behind(state->sleeping.pc, 1 + shared->nr),
			 "at the kprobe likewise, with zeroes behind: %lld\n",
			 state->answer_sleeping);

	test_probed(state);

	pid = start(false);
	state->answer = 0;
	state->process = pid;
	for (int i = 0; i < PATIENCE && !state->answer; i++)
		usleep(1000);
	await_sleeping(state);
	stop(pid);
	ksft_test_result(state->answer == -ENODATA,
			 "a process without a shadow stack: ENODATA: %lld\n", state->answer);

	ksft_test_result(state->answer_sleeping == -ENODATA && zero_behind(state->sleeping.pc, 0),
			 "the buffer is zeroed then: %lld\n", state->answer_sleeping);

	/* The program holds the module until the kernel has freed the program. */
	bpf_link__destroy(link);
	bpf_link__destroy(probe);
	bpf_object__close(obj);
	for (int i = 0; i < PATIENCE && read_number("/sys/module/shstk/refcnt") > 0; i++)
		usleep(1000);
	ksft_finished();
}
