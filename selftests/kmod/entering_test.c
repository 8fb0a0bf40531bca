// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * entering_test.c - tests bpf_shstk_get_user_stack() in NMIs that come before the kernel has saved
 * the program's registers
 *
 *	entering_test entering.bpf.o
 *
 * The moment is only some instructions long. So shstk_nmi.ko imitates it: in an NMI that hit the
 * kernel anywhere, it sets the interrupted stack pointer to the program's own while the BPF program
 * runs. The program that is hit reads from /dev/zero forever, and has written down its shadow stack
 * first.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "entering.h"
#include "kselftest.h"
#include "need.h"

#define PARAMETERS "/sys/module/shstk_nmi/parameters/"
#define TICKS "1000" /* between two NMIs, in units of 0.84 us */
#define PATIENCE 300000 /* number of tries of a millisecond each, after which the test gives up */
#define DEPTH 20
#define STATE_BYTES ((sizeof(struct entering_state) + 4095) & ~4095ul)

#define noinline_ __attribute__((noinline, noclone))

static struct shared {
	volatile unsigned int nr;
	volatile int ready;
	volatile int stop; /* never set: the process is killed */
	uint64_t word[ENTERING_DEPTH];
} * shared;

static volatile struct entering_state *state;
static unsigned long top;
static int zero;
static char room[1 << 16];

/* ---- The program that is hit ---- */

static noinline_ long descend(int n)
{
	long r = 0;

	if (n) {
		r = descend(n - 1);
	} else {
		unsigned int nr = 0;

		for (unsigned long at = ss_pointer(); at < top && nr < ENTERING_DEPTH; at += 8)
			shared->word[nr++] = *(volatile uint64_t *)at;
		shared->nr = nr;
		shared->ready = 1;
		while (!shared->stop)
			ss_syscall(__NR_read, zero, (unsigned long)room, sizeof(room), 0, 0);
	}
	asm volatile("" : "+r"(r));
	return r;
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (pid) {
		for (int i = 0; i < PATIENCE && !shared->ready; i++)
			usleep(1000);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ss_enable(SS_ENABLE))
		_exit(1);
	top = ss_pointer();
	descend(DEPTH);
	for (;;)
		ss_syscall(__NR_exit_group, 0, 0, 0, 0, 0);
}

/* ---- The sampling side ---- */

static bool set(const char *name, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	f = fopen(path, "we");
	if (!f)
		return false;
	fputs(value, f);
	return !fclose(f);
}

static unsigned long handler(bool forged)
{
	FILE *f = fopen(forged ? PARAMETERS "forger" : PARAMETERS "hitter", "re");
	unsigned long ret = 0;

	if (f && fscanf(f, "%lu", &ret) != 1)
		ret = 0;
	if (f)
		fclose(f);
	return ret;
}

/* Returns whether the stack is the shadow stack's callers, behind @more entries. */
static bool is_right(const struct entering_stack *s, unsigned int more)
{
	const unsigned int nr = shared->nr;

	return s->bytes == (more + nr) * 8 && !memcmp(s->pc + more, shared->word, nr * 8);
}

/*
 * Takes stacks. Sets @without to how many of them are the callers alone, and @with to how many have one more entry
 * before these. Returns whether there are no others.
 */
static bool take(bool forged, unsigned int *without, unsigned int *with)
{
	*without = *with = 0;
	state->handler = handler(forged);
	state->taken = 0;
	for (int i = 0; i < PATIENCE && state->taken < ENTERING_STACKS; i++)
		usleep(1000);
	for (unsigned int i = 0; i < state->taken; i++) {
		const struct entering_stack *s = (const struct entering_stack *)&state->stack[i];

		*without += is_right(s, 0);
		*with += is_right(s, 1);
		if (!is_right(s, 0) && !is_right(s, 1))
			ksft_print_msg("%lld bytes, first %#llx; true %u callers, first %#llx\n",
				       s->bytes, s->pc[0], shared->nr,
				       (unsigned long long)shared->word[0]);
	}
	return *without + *with == ENTERING_STACKS;
}

static void open_program(const char *path)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_link *link = NULL;

	if (obj && !bpf_object__load(obj))
		link = bpf_program__attach(bpf_object__find_program_by_name(obj, "on_nmi"));
	if (!link)
		ksft_exit_fail_msg("cannot load and attach %s\n", path);
	state = mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_map__fd(bpf_object__find_map_by_name(obj, ".bss")), 0);
	if (state == MAP_FAILED)
		ksft_exit_fail_msg("no maps\n");
}

int main(int argc, char **argv)
{
	unsigned int without, with;
	bool right;
	pid_t pid;

	if (argc != 2) {
		fprintf(stderr, "usage: %s entering.bpf.o\n", argv[0]);
		return KSFT_FAIL;
	}
	need_shadow_stacks();
	ksft_print_header();
	if (!handler(true))
		ksft_exit_skip("shstk_nmi.ko is not loaded\n");
	ksft_set_plan(2);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	open_program(argv[1]);
	pid = start();
	state->taken = ENTERING_STACKS;
	state->process = (__u32)pid;
	if (!set("forge", "Y") || !set("ticks", TICKS))
		ksft_exit_fail_msg("no NMIs: %s\n", strerror(errno));

	right = take(true, &without, &with);
	ksft_test_result(
		right && !with,
		"before registers are saved there are callers and no program counter: %u\n",
		without);
	/* An NMI may really come at that moment, but most do not. */
	right = take(false, &without, &with);
	ksft_test_result(right && with > without, "else it is there: %u\n", with);

	set("ticks", "0");
	set("forge", "N");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ksft_finished();
}
