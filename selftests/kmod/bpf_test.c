// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bpf_test.c - compares the user stacks that a BPF program takes of Debian's own programs with
 * their shadow stacks
 *
 *	bpf_test stack.bpf.o witness.so [FILE...]	the other files only have to be there
 *
 * A BPF program takes the stack of a sample by bpf_get_stack() and bpf_get_stackid(), and signals
 * the process before it continues. In the signal handler, libshstk reads the stack at the
 * interrupted instruction (witness.c). Both stacks are of the same moment, so all words must be
 * equal.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest.h"
#include "sampler.h"
#include "stack.h"
#include "witness.h"

#define WITNESS "/tmp/witness"
#define SAMPLES 60
#define LATER 3 /* most samples whose signal may come too late */
#define SECONDS 300 /* used up only by a hang */

static char script[] =
	"def f(n):\n"
	"    return sum(map(f, [n - 1])) if n else len(sorted(range(50), key=lambda x: -x))\n"
	"while True: f(6)\n";

static pid_t start(const char *witness)
{
	static char preload[4200];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", witness);
#ifdef __x86_64__
	/* Debian's C library for x86 does not enable shadow stacks. */
	execlp("env", "env", preload, "WITNESS=" WITNESS, "./shstk", "run", "-q", "python3", "-ISc",
	       script, NULL);
#else
	execlp("env", "env", preload, "WITNESS=" WITNESS, "GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=3",
	       "python3", "-ISc", script, NULL);
#endif
	_exit(127);
}

/*
 * Returns the python3 process, which may be a child of the started one, or 0 if it is not there
 * yet.
 */
static pid_t find_python(void)
{
	char link[64], path[64];
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	pid_t pid = 0;
	ssize_t n;

	while (dir && !pid && (entry = readdir(dir))) {
		snprintf(link, sizeof(link), "/proc/%.20s/exe", entry->d_name);
		n = readlink(link, path, sizeof(path) - 1);
		path[n < 0 ? 0 : n] = 0;
		if (strstr(path, "/python3"))
			pid = atoi(entry->d_name);
	}
	if (dir)
		closedir(dir);
	return pid;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static unsigned int pairs, same_pc, equal, equal_id, not_sent, later;

static void compare(const struct stack_state *s, int map, const struct testimony *t)
{
	__u64 byid[STACK_DEPTH] = { 0 };
	__u32 key = s->id;
	bool right;

	if (s->sent) {
		not_sent++;
		return;
	}
	right = s->bytes == (__s64)t->nr * 8 && !memcmp(s->pc + 1, t->pc + 1, s->bytes - 8);
	/*
	 * The signal comes by an interrupt that the CPU sends to itself. In an emulator it
	 * sometimes comes some instructions later, and then the function may have returned already.
	 */
	if (!right && s->bytes >= 8 && s->pc[0] != t->pc[0] && later < LATER) {
		later++;
		return;
	}
	pairs++;
	/* A system call that is restarted has another program counter. */
	same_pc += s->bytes >= 8 && s->pc[0] == t->pc[0];
	equal += right;
	if (!right && pairs - equal == 1)
		ksft_print_msg("first other stack: %lld entries, true %u\n", s->bytes / 8, t->nr);
	equal_id += s->id >= 0 && t->nr <= STACK_DEPTH && !bpf_map_lookup_elem(map, &key, byid) &&
		    !memcmp(byid + 1, t->pc + 1, (t->nr - 1) * 8) &&
		    (t->nr == STACK_DEPTH || !byid[t->nr]);
}

/* Returns whether SIGPROF is in a set of /proc/PID/status, such as "SigBlk". */
static bool in_set(pid_t pid, const char *set)
{
	unsigned long long bits = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, set, strlen(set))) {
			bits = strtoull(line + strlen(set) + 1, NULL, 16);
			break;
		}
	}
	fclose(f);
	return bits >> (SIGPROF - 1) & 1;
}

/* Takes one sample and its testimony. Returns 0 if there is none any more. */
static int take_pair(volatile struct stack_state *state, int fd, int map)
{
	static unsigned int number;
	double end = now() + SECONDS;
	struct testimony t;
	bool got = false;

	/*
	 * A sample taken in the handler that answers the previous sample gets no answer of its own.
	 */
	while (in_set(state->process, "SigBlk") && now() < end)
		usleep(100);
	state->sent = -1;
	state->wanted = 1;
	while (now() < end && (state->wanted || (!state->sent && !got))) {
		usleep(500);
		if (!state->wanted && !state->sent)
			got = pread(fd, &t, sizeof(t), number * sizeof(t)) == sizeof(t);
	}
	if (state->wanted || (!state->sent && !got))
		return 0;
	if (!state->sent)
		number++;
	/* A testimony is empty until shadow stacks are on. */
	if (!got || t.nr)
		compare((const struct stack_state *)state, map, &t);
	return 1;
}

int main(int argc, char **argv)
{
	bool hooked = !access("/sys/module/shstk_perf", F_OK);
	struct bpf_program *prog;
	struct bpf_object *obj;
	struct bpf_link *link = NULL;
	struct stack_state *state;
	char witness[4096];
	pid_t pid, python = 0;
	int map, fd, event;
	double end;

	if (argc < 3) {
		fprintf(stderr, "usage: %s stack.bpf.o witness.so\n", argv[0]);
		return KSFT_FAIL;
	}
	if (!realpath(argv[2], witness) || access("/usr/bin/python3", X_OK))
		ksft_exit_skip("no %s or python3 here\n", argv[2]);
	setenv("PATH", "/usr/bin:/bin", 1);
	ksft_print_header();
	ksft_set_plan(2);
	ksft_print_msg("shstk_perf is %sloaded\n", hooked ? "" : "not ");

	obj = bpf_object__open_file(argv[1], NULL);
	prog = obj ? bpf_object__find_program_by_name(obj, "on_sample") : NULL;
	if (!prog || bpf_object__load(obj))
		ksft_exit_fail_msg("cannot load %s\n", argv[1]);
	map = bpf_object__find_map_fd_by_name(obj, "ids");
	state = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_map__fd(bpf_object__find_map_by_name(obj, ".bss")), 0);
	if (map < 0 || state == MAP_FAILED)
		ksft_exit_fail_msg("no maps\n");

	unlink(WITNESS);
	fd = open(WITNESS, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		ksft_exit_fail_msg("%s: %s\n", WITNESS, strerror(errno));
	fflush(NULL);
	pid = start(witness);
	for (end = now() + SECONDS; now() < end && !python; usleep(1000))
		python = find_python();
	/* SIGPROF ends a program that has no handler for it yet. */
	while (now() < end && !in_set(python, "SigCgt"))
		usleep(1000);
	event = python ? sampler_open_clock(python) : -1;
	if (event >= 0)
		link = bpf_program__attach_perf_event(prog, event);
	if (!link)
		ksft_exit_fail_msg("cannot attach to python3: %s\n", strerror(errno));

	state->process = python;
	for (end = now() + SECONDS; now() < end && pairs < SAMPLES;)
		if (!take_pair(state, fd, map))
			break;
	kill(python, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	bpf_link__destroy(link);
	bpf_object__close(obj);

	ksft_test_result(
		pairs >= SAMPLES / 2 && (hooked ? equal == pairs : equal < pairs),
		"bpf_get_stack: %u of %u equal to what libshstk reads in process, %u of the same pc\n",
		equal, pairs, same_pc);
	ksft_test_result(pairs >= SAMPLES / 2 && (hooked ? equal_id == pairs : equal_id < pairs),
			 "bpf_get_stackid: %u of %u\n", equal_id, pairs);
	if (not_sent)
		ksft_print_msg("%u signals were not sent\n", not_sent);
	if (later)
		ksft_print_msg("%u signals came later than their samples\n", later);
	ksft_finished();
}
