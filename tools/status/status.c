// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk status - tells what this machine offers of shadow stacks, or the state of the shadow stack
 * of each thread in a process.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/symbol/json.h"
#include "tools/proc/detach.h"
#include "tools/proc/shadow.h"
#include "tools/proc/stop.h"
#include "tools/proc/tasks.h"
#include "tools/elf/objects.h"
#include "tools/rules/chain_status.h"
#include "tools/screen_lines.h"
#include "tools/status/support.h"
#include "tools/shstk.h"

#define NOTE_X86_SHSTK 0x204
#define NOTE_ARM_GCS 0x410
#define NOTE_RISCV_CFI 0x903
#define MAX_THREADS 65536
#define MS 1000000ull /* ns */

/* Bits of the generic prctl(); x86 has the first two in the same places. */
enum bit {
	BIT_ENABLE = 1,
	BIT_WRITE = 2,
	BIT_PUSH = 4,
};

struct thread_status {
	int tid;
	bool pointer_known;
	uint64_t pointer;
	uint64_t enabled;
	uint64_t locked;
	int error; /* why the pointer is not known */
};

static const struct shadow_stack *stack_of(const struct shadow_stacks *stacks, uint64_t addr)
{
	/* If a shadow stack is empty, its pointer is at the end. */
	for (size_t i = 0; i < stacks->n; i++)
		if (addr >= stacks->v[i].start && addr <= stacks->v[i].end)
			return &stacks->v[i];
	return NULL;
}

/* Returns the bits of a thread's field in /proc on x86, where every process can read them. */
static uint64_t feature_bits(pid_t pid, pid_t tid, const char *field)
{
	char names[256];

	task_field(pid, tid, field, names, sizeof(names));
	return (strstr(names, "shstk") ? BIT_ENABLE : 0) | (strstr(names, "wrss") ? BIT_WRITE : 0);
}

static int get_note(struct thread_status *t, unsigned int note, void *buf, size_t size)
{
	struct iovec iov = { buf, size };

	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)(uintptr_t)note, &iov))
		return errno == ENODEV ? 0 : -errno;
	return iov.iov_len == size ? 1 : 0;
}

static int read_pointer(struct thread_status *t)
{
	uint64_t words[3] = { 0, 0, 0 };
	int ret;

	switch (machine_own()) {
	case EM_X86_64:
		ret = get_note(t, NOTE_X86_SHSTK, words, 8);
		t->pointer = words[0];
		return ret;
	case EM_AARCH64:
		ret = get_note(t, NOTE_ARM_GCS, words, 24);
		t->enabled = words[0];
		t->locked = words[1];
		t->pointer = words[2];
		return ret < 0 ? ret : ret && words[0] & BIT_ENABLE;
	default:
		ret = get_note(t, NOTE_RISCV_CFI, words, 16);
		/* Bit 3: shadow stack enabled. Bit 4: locked. */
		t->enabled = words[0] >> 3 & 1 ? BIT_ENABLE : 0;
		t->locked = words[0] >> 4 & 1 ? BIT_ENABLE : 0;
		t->pointer = words[1];
		return ret < 0 ? ret : ret && t->enabled;
	}
}

/* Reads the status of a thread. It stops the thread for a moment to read its registers. */
static void read_thread(pid_t pid, struct thread_status *t)
{
	int status, ret;

	if (machine_own() == EM_X86_64) {
		t->enabled = feature_bits(pid, t->tid, "x86_Thread_features");
		t->locked = feature_bits(pid, t->tid, "x86_Thread_features_locked");
		if (!(t->enabled & BIT_ENABLE))
			return;
	}
	stop_prepare();
	if (ptrace(PTRACE_SEIZE, t->tid, 0, 0)) {
		t->error = errno;
		return;
	}
	if (ptrace(PTRACE_INTERRUPT, t->tid, 0, 0)) {
		t->error = errno;
	} else if (!stop_wait(t->tid, now_ns(CLOCK_MONOTONIC) + STOP_LATE_MS * MS, &status)) {
		t->error = EBUSY; /* it cannot stop; it continues when this command ends */
	} else if (WIFSTOPPED(status)) {
		ret = read_pointer(t);
		t->pointer_known = ret > 0;
		t->error = ret < 0 ? -ret : 0;
		/* If a signal stopped the thread, it is delivered. */
		detach(t->tid, status >> 16 ? 0 : WSTOPSIG(status));
		return;
	} else {
		t->error = ESRCH;
	}
	ptrace(PTRACE_DETACH, t->tid, 0, 0);
}

static const char *bits_text(uint64_t bits, char *buf)
{
	sprintf(buf, "%s%s%s", bits & BIT_ENABLE ? " on" : "", bits & BIT_WRITE ? " write" : "",
		bits & BIT_PUSH ? " push" : "");
	return *buf ? buf + 1 : "-";
}

static void print_thread(const struct thread_status *t, const struct shadow_stacks *stacks)
{
	char on[32], locked[32];
	const struct shadow_stack *a;

	printf("%8d  %-14s %-14s ", t->tid, t->enabled ? bits_text(t->enabled, on) : "off",
	       bits_text(t->locked, locked));
	if (t->error) {
		printf("unknown: %s\n", strerror(t->error));
		return;
	}
	if (!t->pointer_known) {
		puts("-");
		return;
	}
	a = stack_of(stacks, t->pointer);
	printf("0x%012" PRIx64 "  ", t->pointer);
	if (a)
		printf("%7" PRIu64 " KiB  %" PRIu64 "\n", (a->end - a->start) / 1024,
		       (a->end - t->pointer) / 8);
	else
		puts("in no shadow stack");
}

static void put_bits(struct json *json, const char *name, uint64_t bits)
{
	shstk_json_open(json, name, '[');
	if (bits & BIT_ENABLE)
		shstk_json_string(json, NULL, "on");
	if (bits & BIT_WRITE)
		shstk_json_string(json, NULL, "write");
	if (bits & BIT_PUSH)
		shstk_json_string(json, NULL, "push");
	shstk_json_close(json);
}

static void put_thread(struct json *json, const struct thread_status *t,
		       const struct shadow_stacks *stacks)
{
	const struct shadow_stack *a = t->pointer_known ? stack_of(stacks, t->pointer) : NULL;

	shstk_json_open(json, NULL, '{');
	shstk_json_int(json, "tid", t->tid);
	put_bits(json, "enabled", t->enabled);
	put_bits(json, "locked", t->locked);
	shstk_json_string(json, "error", t->error ? strerror(t->error) : NULL);
	if (t->pointer_known)
		shstk_json_address(json, "pointer", t->pointer);
	else
		shstk_json_null(json, "pointer");
	if (a) {
		shstk_json_int(json, "size", a->end - a->start);
		shstk_json_int(json, "entries", (a->end - t->pointer) / 8);
	} else {
		shstk_json_null(json, "size");
		shstk_json_null(json, "entries");
	}
	shstk_json_close(json);
}

static void begin_threads(struct json *json, pid_t pid)
{
	if (json) {
		shstk_json_open(json, NULL, '{');
		shstk_json_int(json, "pid", pid);
		shstk_json_open(json, "threads", '[');
	} else {
		printf("%8s  %-14s %-14s %-14s  %7s     %s\n", "thread", "shadow stack", "locked",
		       "pointer", "size", "entries used");
	}
}

/* Prints the status of a process: a table if @json is NULL. */
static int status_of_process(pid_t pid, struct json *json)
{
	struct shadow_stacks stacks;
	DIR *dir = tasks_open(pid);
	pid_t tid;
	int err;

	if (!dir) {
		complain("process %d: %s", pid, strerror(errno));
		return EXIT_FAILED;
	}
	err = shadow_stacks_read(pid, &stacks);
	if (err == -ESRCH)
		complain("process %d: %s", pid, process_gone_why(pid));
	else if (err)
		complain("process %d: smaps: %s", pid, strerror(-err));
	if (err) {
		closedir(dir);
		return EXIT_FAILED;
	}
	begin_threads(json, pid);
	for (int n = 0; n < MAX_THREADS && (tid = tasks_next(dir)); n++) {
		struct thread_status t = { .tid = tid };

		read_thread(pid, &t);
		if (json)
			put_thread(json, &t, &stacks);
		else
			print_thread(&t, &stacks);
	}
	if (json) {
		shstk_json_close(json);
		shstk_json_close(json);
	}
	free(stacks.v);
	closedir(dir);
	return EXIT_OK;
}

/* ---- Machine ---- */

static const char *advice(const struct support *s)
{
	bool x86 = !strcmp(s->arch, "x86");

	if (s->call)
		return s->glibc_ready || x86 ?
			       "start programs with: shstk run PROGRAM" :
			       "a C library that knows shadow stacks (glibc 2.42) is needed for shstk run";
	if (s->config == CONFIG_OFF)
		return "boot a kernel with that option (Debian's 6.12 and newer on x86 and 7.x on arm64 have it)";
	if (!s->cpu && x86)
		return "processors from Intel Tiger Lake and AMD Zen 3 on have them; "
		       "a virtual machine must be given the feature. Traces are "
		       "taken from the software shadow stack meanwhile";
	if (!s->cpu)
		return "a processor with the feature is needed. Traces are taken "
		       "from the software shadow stack meanwhile";
	return "look for nousershstk or arm64.nogcs on the kernel's command line, "
	       "and for a seccomp filter around this process";
}

/*
 * Prints how many of the kernel's own callchains are complete, if shstk_perf takes them by unwind
 * rules.
 */
static void print_chains(void)
{
	uint64_t all, whole;

	if (!rules_totals(&all, &whole))
		puts("callchains     of perf and BPF: the kernel's own (shstk_perf not loaded)");
	else if (!all)
		puts("callchains     none walked by unwind rules yet");
	else
		printf("callchains     %.1f%% of %" PRIu64
		       " by unwind rules whole (see shstk rules status)\n",
		       100.0 * (double)whole / (double)all, all);
}

static void put_chains(struct json *json)
{
	uint64_t all, whole;

	if (!rules_totals(&all, &whole)) {
		shstk_json_null(json, "chains");
		return;
	}
	shstk_json_open(json, "chains", '{');
	shstk_json_int(json, "by_rules", (int64_t)all);
	shstk_json_int(json, "whole", (int64_t)whole);
	shstk_json_close(json);
}

static void put_machine(struct json *json, const struct support *s, const char *release)
{
	shstk_json_open(json, NULL, '{');
	shstk_json_string(json, "arch", s->arch);
	shstk_json_string(json, "processor", s->cpu ? s->cpu_flag : NULL);
	shstk_json_string(json, "kernel", release);
	shstk_json_string(json, "option", s->config_name);
	if (s->config == CONFIG_OFF || s->config == CONFIG_ON)
		shstk_json_bool(json, "built_in", s->config == CONFIG_ON);
	else
		shstk_json_null(json, "built_in");
	shstk_json_string(json, "call", s->call);
	shstk_json_string(json, "error", s->call ? NULL : strerror(s->call_error));
	shstk_json_bool(json, "generic_prctl", s->generic);
	shstk_json_bool(json, "module", s->module);
	put_chains(json);
	shstk_json_string(json, "glibc", s->glibc);
	shstk_json_bool(json, "glibc_ready", s->glibc_ready);
	shstk_json_string(json, "next", advice(s));
	shstk_json_close(json);
}

/* Prints the status of the machine: lines if @json is NULL. */
static int status_of_machine(struct json *json)
{
	static const char *const config[] = { "is not known: no config file was found", "off",
					      "on" };
	struct utsname name;
	struct support s;

	support_read(&s);
	if (uname(&name))
		strcpy(name.release, "?");
	if (json) {
		put_machine(json, &s, name.release);
		return EXIT_OK;
	}
	printf("processor      %s: %s\n", s.arch,
	       s.cpu ? s.cpu_flag : "no shadow stacks (or hidden from this system)");
	printf("kernel         %s, %s %s\n", name.release, s.config_name, config[s.config]);
	if (s.call)
		printf("switching on   works, by %s()\n", s.call);
	else
		printf("switching on   fails: %s\n", strerror(s.call_error));
	printf("generic prctl  %s\n", s.generic ? "yes" :
				      !strcmp(s.arch, "x86") ?
						  "no (the module shstk_prctl adds it)" :
						  "no");
	printf("module         shstk %s\n", s.module ? "loaded" : "not loaded");
	print_chains();
	printf("C library      glibc %s, %s\n", s.glibc,
	       s.glibc_ready	      ? "switches shadow stacks on by itself if told to" :
	       !strcmp(s.arch, "x86") ? "not built for them: shstk run uses its start-up object" :
					"not built for them");
	printf("next           %s\n", advice(&s));
	return EXIT_OK;
}

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	bool *json = state->input;

	(void)arg;
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	*json = true;
	return 0;
}

/* Returns the process ID, or 0 after a message if it is none. */
static pid_t parse_pid(const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	if (!*end && end != text && pid > 0 && pid <= 0x7fffffff)
		return (pid_t)pid;
	complain("'%s' is not a process ID", text);
	return 0;
}

/* Prints the status of all @nr processes, or of none if one is not a process ID. */
static int status_of_processes(char **pids, int nr, struct json *json)
{
	int ret = EXIT_OK;

	for (int i = 0; i < nr; i++)
		if (!parse_pid(pids[i]))
			return EXIT_USAGE;
	if (json)
		shstk_json_open(json, NULL, '[');
	for (int i = 0; i < nr; i++)
		if (status_of_process(parse_pid(pids[i]), json))
			ret = EXIT_FAILED;
	if (json)
		shstk_json_close(json);
	return ret;
}

const struct argp status_argp = {
	.options = options,
	.parser = parse,
	.args_doc = "[PID...]",
	.doc = "Tell what this machine offers of shadow stacks and what to do next; "
	       "or, for processes, which threads have one.",
};

int cmd_status(int argc, char **argv)
{
	struct json json = { .out = stdout };
	bool wanted = false;
	int next = command_parse(&status_argp, argc, argv, &wanted), ret;

	if (!wanted)
		screen_lines_fit();
	if (next == argc)
		ret = status_of_machine(wanted ? &json : NULL);
	else
		ret = status_of_processes(argv + next, argc - next, wanted ? &json : NULL);
	return end_output() ? EXIT_FAILED : ret;
}
