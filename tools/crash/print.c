// SPDX-License-Identifier: GPL-2.0-or-later
/* print.c - the report of a crash, as text or as JSON; see crash.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libshstk/symbol/json.h"
#include "tools/crash/crash.h"
#include "tools/elf/image.h"
#include "tools/proc/about.h"
#include "tools/proc/tasks.h"
#include "tools/shstk.h"

#define SEGV_CPERR_ 10 /* newer than the C library's headers */

/* ---- The cause ---- */

/* What the kernel found, by signal and si_code; "%s" is the address. */
static const struct {
	int signo;
	int code;
	const char *text;
} causes[] = {
	{ SIGSEGV, SEGV_MAPERR, "address %s is not mapped" },
	{ SIGSEGV, SEGV_ACCERR, "address %s may not be used in this way" },
	{ SIGSEGV, SEGV_BNDERR, "address %s is out of bounds" },
	{ SIGSEGV, SEGV_PKUERR, "address %s is protected by a key" },
	{ SIGSEGV, SEGV_CPERR_, "a return address is not that of the shadow stack" },
	{ SIGSEGV, SI_KERNEL, "an address that no memory can have, or one that was not told" },
	{ SIGBUS, BUS_ADRALN, "address %s is not aligned" },
	{ SIGBUS, BUS_ADRERR, "address %s has no memory behind it, as past the end of a file" },
	{ SIGBUS, BUS_MCEERR_AR, "memory at address %s is damaged" },
	{ SIGILL, ILL_ILLOPC, "no instruction at address %s" },
	{ SIGILL, ILL_ILLOPN, "no instruction at address %s" },
	{ SIGFPE, FPE_INTDIV, "an integer was divided by zero" },
	{ SIGFPE, FPE_INTOVF, "an integer is too large" },
	{ SIGFPE, FPE_FLTDIV, "a floating-point number was divided by zero" },
	{ SIGTRAP, TRAP_BRKPT, "a breakpoint at address %s" },
};

/* Writes why the signal came, or "" if that is not known. */
static void cause_text(const struct core *core, char *buf, size_t size)
{
	const struct core_signal *s = &core->signal;
	char addr[24];

	snprintf(addr, sizeof(addr), "0x%llx", (unsigned long long)s->addr);
	*buf = '\0';
	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++) {
		const char *text = causes[i].text, *at;

		if (causes[i].signo != s->signo || causes[i].code != s->code)
			continue;
		at = strstr(text, "%s");
		if (at)
			snprintf(buf, size, "%.*s%s%s", (int)(at - text), text, addr, at + 2);
		else
			snprintf(buf, size, "%s", text);
		return;
	}
	if (s->signo && s->code <= 0 && s->sender == core->pid)
		snprintf(buf, size, "by itself");
	else if (s->signo && s->code <= 0)
		snprintf(buf, size, "sent by process %d", s->sender);
}

/* Returns the value of a key among labels of @size bytes, or NULL. */
static const char *label(const char *labels, size_t size, const char *key)
{
	for (const char *at = labels; at < labels + size;) {
		const char *value = at + strlen(at) + 1;

		if (!strcmp(at, key))
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

/* ---- Head ---- */

/**
 * struct crash_about - what the head of a report says
 * @signal: name of the signal.
 * @cause: why it came, or "".
 * @when: the time, in UTC.
 * @labels: what /proc tells of the process, as about_process() writes it.
 * @size: bytes of @labels.
 */
struct crash_about {
	char signal[32];
	char cause[128];
	char when[32];
	char labels[ABOUT_MAX];
	size_t size;
};

static const char *const about_keys[] = { "command", "container", "cgroup" };

static void find_about(const struct core *core, struct crash_about *a)
{
	time_t now = time(NULL);
	struct tm tm;

	a->size = core->memory < 0 ? 0 : about_process(tasks_living(core->living), a->labels);
	if (!core_signal_name(core->signal.signo ? core->signal.signo : core->threads[0].signo,
			      a->signal))
		strcpy(a->signal, "no signal");
	cause_text(core, a->cause, sizeof(a->cause));
	if (!gmtime_r(&now, &tm) || !strftime(a->when, sizeof(a->when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		*a->when = '\0';
}

static int number(const struct core *core)
{
	return core->memory < 0 ? core->pid : core->living;
}

static void put_head(const struct core *core, struct json *json, const struct crash_about *a)
{
	shstk_json_open(json, NULL, '{');
	shstk_json_int(json, "pid", number(core));
	shstk_json_string(json, "name", core->comm);
	shstk_json_string(json, "signal", a->signal);
	shstk_json_string(json, "cause", *a->cause ? a->cause : NULL);
	if (core->signal.signo && core->signal.code > 0)
		shstk_json_address(json, "address", core->signal.addr);
	else
		shstk_json_null(json, "address");
	shstk_json_string(json, "reported", a->when);
	shstk_json_string(json, "arch", core_machine(core));
	for (size_t i = 0; i < sizeof(about_keys) / sizeof(*about_keys); i++)
		shstk_json_string(json, about_keys[i], label(a->labels, a->size, about_keys[i]));
}

static void print_head(const struct core *core, struct json *json)
{
	struct crash_about a;

	find_about(core, &a);
	if (json) {
		put_head(core, json, &a);
		return;
	}
	printf("process %d (%s) ended by %s%s%s\n", number(core), core->comm, a.signal,
	       *a.cause ? ": " : "", a.cause);
	for (size_t i = 0; i < sizeof(about_keys) / sizeof(*about_keys); i++) {
		const char *value = label(a.labels, a.size, about_keys[i]);

		if (!value)
			continue;
		printf("%-10s ", about_keys[i]);
		print_printable(value);
		putchar('\n');
	}
	printf("%-10s %s\n%-10s %s, %zu %s\n", "reported", a.when, "machine", core_machine(core),
	       core->nr_threads, core->nr_threads == 1 ? "thread" : "threads");
}

/* ---- Registers ---- */

static const char *const x86_names[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					 "r8",	"r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

static const char *register_name(int arch, int i, char buf[8])
{
	if (arch == SHSTK_ARCH_X86)
		return x86_names[i];
	if (arch == SHSTK_ARCH_ARM64 && i == 31)
		return "sp";
	snprintf(buf, 8, "x%d", i);
	return buf;
}

static void print_registers(const struct core *core)
{
	const struct shstk_regs *r = &core->threads[0].regs;
	int n = core->arch == SHSTK_ARCH_X86 ? 16 : 32, column = 0;
	char buf[8];

	printf("\nregisters of thread %d\n", core->threads[0].tid);
	printf("  %-3s 0x%016llx", "pc", (unsigned long long)r->pc);
	for (int i = 0; i < n; i++)
		printf("%s%-3s 0x%016llx", ++column % 3 ? "  " : "\n  ",
		       register_name(core->arch, i, buf), (unsigned long long)r->r[i]);
	putchar('\n');
}

static void put_registers(const struct core *core, struct json *json)
{
	const struct shstk_regs *r = &core->threads[0].regs;
	int n = core->arch == SHSTK_ARCH_X86 ? 16 : 32;
	char buf[8];

	shstk_json_open(json, "registers", '{');
	shstk_json_address(json, "pc", r->pc);
	for (int i = 0; i < n; i++)
		shstk_json_address(json, register_name(core->arch, i, buf), r->r[i]);
	shstk_json_close(json);
}

/* ---- Mapped files ---- */

static void print_file(const struct core_map *first, uint64_t end, const char *id)
{
	printf("  0x%012llx-0x%012llx ", (unsigned long long)first->start, (unsigned long long)end);
	print_printable(first->path);
	printf("%s%s\n", *id ? "\n    build id " : "", id);
}

static void put_file(struct json *json, const struct core_map *first, uint64_t end, const char *id)
{
	shstk_json_open(json, NULL, '{');
	shstk_json_address(json, "start", first->start);
	shstk_json_address(json, "end", end);
	shstk_json_string(json, "path", first->path);
	shstk_json_string(json, "build_id", *id ? id : NULL);
	shstk_json_close(json);
}

static void show_files(const struct core *core, struct json *json)
{
	struct build_id id;

	for (size_t i = 0, next; i < core->nr_maps; i = next) {
		char text[129] = "";

		next = crash_whole_file(core, i, &id);
		if (id.size)
			build_id_text(&id, text);
		if (json)
			put_file(json, &core->maps[i], core->maps[next - 1].end, text);
		else
			print_file(&core->maps[i], core->maps[next - 1].end, text);
	}
}

static void print_tail(const struct core *core, struct json *json)
{
	if (!json) {
		print_registers(core);
		puts("\nmapped files");
		show_files(core, NULL);
		return;
	}
	put_registers(core, json);
	shstk_json_open(json, "files", '[');
	show_files(core, json);
	shstk_json_close(json);
	shstk_json_close(json);
}

int crash_print(const struct crash_opts *o, struct core *core)
{
	static const struct core_output out = { print_head, print_tail };
	struct trace_opts opts = o->trace;

	for (size_t i = 0; i < core->nr_threads; i++)
		opts.compare |= core->threads[i].shadow_on;
	return trace_core_threads(&opts, core, &out);
}
