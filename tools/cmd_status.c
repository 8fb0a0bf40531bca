// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shstk status - what this machine offers of shadow stacks, or how it stands
 * with them in a process, thread by thread.
 */
#include <dirent.h>
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
#include <unistd.h>

#include "tools/areas.h"
#include "tools/detach.h"
#include "tools/needed.h"
#include "tools/offer.h"
#include "tools/shstk.h"

#define NOTE_X86_SHSTK		0x204
#define NOTE_ARM_GCS		0x410
#define NOTE_RISCV_CFI		0x903
#define MAX_THREADS		65536

/* Bits of the generic prctl; x86 has the first two in the same places. */
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
	int error;		/* why the pointer is not known */
};

static const struct area *area_of(const struct areas *areas, uint64_t addr)
{
	/* An empty shadow stack has its pointer at the end. */
	for (size_t i = 0; i < areas->n; i++)
		if (addr >= areas->v[i].start && addr <= areas->v[i].end)
			return &areas->v[i];
	return NULL;
}

/* x86: the kernel tells the features of every thread to everybody. */
static void read_features(pid_t pid, struct thread_status *t)
{
	char path[80], *line = NULL;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, t->tid);
	file = fopen(path, "re");
	while (file && getline(&line, &room, file) > 0) {
		uint64_t bits = (strstr(line, "shstk") ? BIT_ENABLE : 0) |
				(strstr(line, "wrss") ? BIT_WRITE : 0);

		if (!strncmp(line, "x86_Thread_features:", 20))
			t->enabled = bits;
		else if (!strncmp(line, "x86_Thread_features_locked:", 27))
			t->locked = bits;
	}
	free(line);
	if (file)
		fclose(file);
}

static int get_note(struct thread_status *t, unsigned int note, void *buf,
		    size_t size)
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
		/* Bits 3 and 4: shadow stack on, locked. */
		t->enabled = words[0] >> 3 & 1 ? BIT_ENABLE : 0;
		t->locked = words[0] >> 4 & 1 ? BIT_ENABLE : 0;
		t->pointer = words[1];
		return ret < 0 ? ret : ret && t->enabled;
	}
}

/* Stops the thread for a moment to read its registers. */
static void read_thread(pid_t pid, struct thread_status *t)
{
	int status, ret;

	if (machine_own() == EM_X86_64) {
		read_features(pid, t);
		if (!(t->enabled & BIT_ENABLE))
			return;
	}
	if (ptrace(PTRACE_SEIZE, t->tid, 0, 0)) {
		t->error = errno;
		return;
	}
	if (ptrace(PTRACE_INTERRUPT, t->tid, 0, 0) ||
	    waitpid(t->tid, &status, __WALL) < 0) {
		t->error = errno;
	} else if (WIFSTOPPED(status)) {
		ret = read_pointer(t);
		t->pointer_known = ret > 0;
		t->error = ret < 0 ? -ret : 0;
		/* A signal that came first is handed on. */
		detach(t->tid, status >> 16 ? 0 : WSTOPSIG(status));
		return;
	} else {
		t->error = ESRCH;
	}
	ptrace(PTRACE_DETACH, t->tid, 0, 0);
}

static const char *bits_text(uint64_t bits, char *buf)
{
	sprintf(buf, "%s%s%s", bits & BIT_ENABLE ? " on" : "",
		bits & BIT_WRITE ? " write" : "", bits & BIT_PUSH ? " push" : "");
	return *buf ? buf + 1 : "-";
}

static void print_thread(const struct thread_status *t,
			 const struct areas *areas)
{
	char on[32], locked[32];
	const struct area *a;

	printf("%8d  %-14s %-14s ", t->tid,
	       t->enabled ? bits_text(t->enabled, on) : "off",
	       bits_text(t->locked, locked));
	if (t->error) {
		printf("unknown: %s\n", strerror(t->error));
		return;
	}
	if (!t->pointer_known) {
		puts("-");
		return;
	}
	a = area_of(areas, t->pointer);
	printf("0x%012" PRIx64 "  ", t->pointer);
	if (a)
		printf("%7" PRIu64 " KiB  %" PRIu64 "\n",
		       (a->end - a->start) / 1024, (a->end - t->pointer) / 8);
	else
		puts("in no shadow stack mapping");
}

static int status_of_process(pid_t pid)
{
	struct areas areas;
	struct dirent *e;
	char path[64];
	DIR *dir;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir) {
		complain("process %d: %s", pid,
			 strerror(errno == ENOENT ? ESRCH : errno));
		return EXIT_FAILED;
	}
	err = areas_read(pid, &areas);
	if (err) {
		complain("process %d: smaps: %s", pid, strerror(-err));
		closedir(dir);
		return EXIT_FAILED;
	}
	printf("%8s  %-14s %-14s %-14s  %7s     %s\n", "thread", "shadow stack",
	       "locked", "pointer", "size", "entries in use");
	for (int n = 0; n < MAX_THREADS && (e = readdir(dir)); ) {
		struct thread_status t = { .tid = atoi(e->d_name) };

		if (t.tid < 1)
			continue;
		read_thread(pid, &t);
		print_thread(&t, &areas);
		n++;
	}
	free(areas.v);
	closedir(dir);
	return EXIT_OK;
}

/* Machine --------------------------------------------------------------- */

static const char *advice(const struct offer *o)
{
	bool x86 = !strcmp(o->arch, "x86");

	if (o->call)
		return o->glibc_ready || x86 ?
			       "start programs with: shstk run PROGRAM" :
			       "a C library that knows them (glibc 2.42) is needed: "
			       "shstk run has nothing to switch on here";
	if (o->config == CONFIG_OFF)
		return "boot a kernel with that option (Debian's 6.12 and newer on "
		       "x86, 7.x on arm64 have it)";
	if (!o->cpu && x86)
		return "processors from Intel Tiger Lake and AMD Zen 3 on have them; "
		       "a virtual machine must be given the feature. Traces are "
		       "taken from the software shadow stack meanwhile";
	if (!o->cpu)
		return "a processor with the feature is needed. Traces are taken "
		       "from the software shadow stack meanwhile";
	return "look for nousershstk or arm64.nogcs on the kernel's command line, "
	       "and for a seccomp filter around this process";
}

static int status_of_machine(void)
{
	static const char *const config[] = { "not known, no config file found",
					      "off", "on" };
	struct utsname name;
	struct offer o;

	offer_read(&o);
	if (uname(&name))
		strcpy(name.release, "?");
	printf("processor      %s: %s\n", o.arch,
	       o.cpu ? o.cpu_flag : "no shadow stacks (or hidden from this system)");
	printf("kernel         %s, %s %s\n", name.release, o.config_name,
	       config[o.config]);
	if (o.call)
		printf("switching on   works, by %s()\n", o.call);
	else
		printf("switching on   fails: %s\n", strerror(o.call_error));
	printf("generic prctl  %s\n",
	       o.generic ? "yes" : !strcmp(o.arch, "x86") ?
	       "no (the module shstk_prctl adds it)" : "no");
	printf("module         shstk %s\n", o.module ? "loaded" : "not loaded");
	printf("C library      glibc %s, %s\n", o.glibc,
	       o.glibc_ready ? "switches shadow stacks on by itself if told to" :
	       !strcmp(o.arch, "x86") ?
	       "not built for them: shstk run uses its start-up object" :
	       "not built for them");
	printf("next           %s\n", advice(&o));
	return EXIT_OK;
}

int cmd_status(int argc, char **argv)
{
	static const struct argp argp = {
		NULL, NULL, "[PID...]",
		"Tell what this machine offers of shadow stacks and what to do next; "
		"or, for processes, which threads have one.", NULL, NULL, NULL
	};
	int next = command_parse(&argp, argc, argv, EXIT_USAGE, NULL), ret = 0;

	if (next == argc)
		ret = status_of_machine();
	for (int i = next; i < argc; i++) {
		char *end;
		long pid = strtol(argv[i], &end, 10);

		if (*end || end == argv[i] || pid < 1 || pid > 0x7fffffff) {
			complain("'%s' is no process ID", argv[i]);
			return EXIT_USAGE;
		}
		if (status_of_process((pid_t)pid))
			ret = EXIT_FAILED;
	}
	if (fflush(stdout) || ferror(stdout)) {
		complain("standard output: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return ret;
}
