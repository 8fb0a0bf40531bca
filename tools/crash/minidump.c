// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * minidump.c - the crash as a minidump file, which lldb, Breakpad's and Crashpad's tools and the
 * servers behind them read; see crash.h.
 *
 * Names and unwinding are the reader's: the file has registers, the used part of each stack, and the
 * modules with their build ids. Its layout is Microsoft's (minidumpapiset.h); what is said of Linux is
 * Breakpad's (src/google_breakpad/common/minidump_format.h, minidump_cpu_amd64.h,
 * minidump_cpu_arm64.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/crash/crash.h"
#include "tools/elf/image.h"
#include "tools/shstk.h"
#include "tools/whole_io.h"

#define MAX_STACK 65536u /* bytes of one stack */
#define MAX_STACKS (32u << 20) /* bytes of all stacks */
#define MIN_STACK (MAX_STACKS / CORE_MAX_THREADS)
#define RED_ZONE 128
#define PAGE 4096ull
#define GUARD 16 /* pages below a stack at most where the pointer of a full one is looked for */

enum stream_type {
	THREAD_LIST = 3,
	MODULE_LIST = 4,
	MEMORY_LIST = 5,
	EXCEPTION = 6,
	SYSTEM_INFO = 7,
	MISC_INFO = 15,
};
#define NR_STREAMS 6

enum cpu {
	CPU_AMD64 = 9,
	CPU_ARM64 = 0x8003, /* the contexts of which are those of Breakpad */
};
#define OS_LINUX 0x8201

struct location {
	uint32_t size;
	uint32_t at;
} __attribute__((packed));

struct header {
	uint32_t magic;
	uint32_t version;
	uint32_t streams;
	uint32_t directory;
	uint32_t checksum;
	uint32_t time;
	uint64_t flags;
} __attribute__((packed));

struct stream {
	uint32_t type;
	struct location where;
} __attribute__((packed));

struct memory_range {
	uint64_t start;
	struct location where;
} __attribute__((packed));

struct thread {
	uint32_t tid;
	uint32_t suspended;
	uint32_t class;
	uint32_t priority;
	uint64_t teb;
	struct memory_range stack;
	struct location context;
} __attribute__((packed));

struct module {
	uint64_t start;
	uint32_t size;
	uint32_t checksum;
	uint32_t time;
	uint32_t name;
	uint8_t version[52];
	struct location build_id;
	struct location misc;
	uint64_t reserved[2];
} __attribute__((packed));

struct exception {
	uint32_t tid;
	uint32_t align;
	uint32_t code;
	uint32_t flags;
	uint64_t next;
	uint64_t address;
	uint32_t parameters;
	uint32_t align2;
	uint64_t information[15];
	struct location context;
} __attribute__((packed));

struct system_info {
	uint16_t cpu;
	uint16_t level;
	uint16_t revision;
	uint8_t cpus;
	uint8_t product;
	uint32_t version[3];
	uint32_t os;
	uint32_t csd_version;
	uint16_t suite;
	uint16_t reserved;
	uint8_t features[24];
} __attribute__((packed));

struct misc_info {
	uint32_t size;
	uint32_t flags;
	uint32_t pid;
	uint32_t times[3];
} __attribute__((packed));

struct context_amd64 {
	uint64_t home[6];
	uint32_t flags;
	uint32_t mxcsr;
	uint16_t segments[6];
	uint32_t eflags;
	uint64_t debug[6];
	uint64_t r[16]; /* rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 and so on */
	uint64_t rip;
	uint8_t rest[976];
} __attribute__((packed));

struct context_arm64 {
	uint64_t flags;
	uint64_t x[32]; /* the last one is sp */
	uint64_t pc;
	uint32_t cpsr;
	uint32_t fpsr;
	uint32_t fpcr;
	uint8_t v[512];
} __attribute__((packed));

_Static_assert(sizeof(struct header) == 32 && sizeof(struct thread) == 48, "minidumpapiset.h");
_Static_assert(sizeof(struct module) == 108 && sizeof(struct exception) == 168, "minidumpapiset.h");
_Static_assert(sizeof(struct system_info) == 56 && sizeof(struct misc_info) == 24,
	       "minidumpapiset.h");
_Static_assert(sizeof(struct context_amd64) == 1232 && sizeof(struct context_arm64) == 796,
	       "minidump_cpu_amd64.h, minidump_cpu_arm64.h");

/**
 * struct dump - the file while it is made
 * @core: the process.
 * @data: the bytes.
 * @size: number of bytes.
 * @room: bytes allocated.
 * @failed: there was no memory for more.
 * @stack: bytes that a stack may have.
 * @streams: the directory.
 * @nr: number of @streams.
 */
struct dump {
	const struct core *core;
	uint8_t *data;
	size_t size;
	size_t room;
	bool failed;
	uint32_t stack;
	struct stream streams[NR_STREAMS];
	unsigned int nr;
};

/* Makes room for @size bytes of zeros at the end. Returns where they are in the file. */
static uint32_t extend(struct dump *d, size_t size)
{
	size_t at = (d->size + 7) & ~7ull, room = d->room ? d->room : 65536;
	uint8_t *grown;

	while (room < at + size)
		room *= 2;
	if (room > UINT32_MAX)
		d->failed = true;
	else if (room != d->room) {
		grown = realloc(d->data, room);
		d->failed |= !grown;
		if (grown) {
			d->data = grown;
			d->room = room;
		}
	}
	if (d->failed)
		return 0;
	memset(d->data + d->size, 0, at + size - d->size);
	d->size = at + size;
	return at;
}

static struct location append(struct dump *d, const void *bytes, size_t size)
{
	uint32_t at = extend(d, size);

	if (d->failed)
		return (struct location){ 0, 0 };
	memcpy(d->data + at, bytes, size);
	return (struct location){ size, at };
}

/* Writes over bytes that extend() made. */
static void put(struct dump *d, uint32_t at, const void *bytes, size_t size)
{
	if (!d->failed)
		memcpy(d->data + at, bytes, size);
}

static void add_stream(struct dump *d, uint32_t type, struct location where)
{
	d->streams[d->nr++] = (struct stream){ type, where };
}

/* Begins a stream that is a list: its length, and room for the elements, right behind it. */
static struct location begin_list(struct dump *d, uint32_t length, size_t element)
{
	struct location where = { sizeof(length) + length * element, 0 };

	where.at = extend(d, where.size);
	put(d, where.at, &length, sizeof(length));
	return where;
}

/* Returns where element @i of a list lies. */
static uint32_t element(struct location list, uint32_t i, size_t size)
{
	return list.at + sizeof(uint32_t) + i * size;
}

/* ---- Threads ---- */

static struct location add_context(struct dump *d, const struct shstk_regs *r)
{
	/* The place of each register in the context, by its DWARF number. */
	static const uint8_t place[16] = { 0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15 };
	struct context_amd64 amd64 = { .flags = 0x100003, .rip = r->pc }; /* control, integer */
	struct context_arm64 arm64 = { .flags = 0x80000003, .pc = r->pc };

	if (d->core->arch == SHSTK_ARCH_ARM64) {
		memcpy(arm64.x, r->r, sizeof(arm64.x));
		return append(d, &arm64, sizeof(arm64));
	}
	for (unsigned int i = 0; i < 16; i++)
		amd64.r[place[i]] = r->r[i];
	return append(d, &amd64, sizeof(amd64));
}

/* Tells whether memory may be a stack and can be read. */
static bool is_stack(const struct core *core, uint64_t addr)
{
	const struct core_segment *s = core_segment(core, addr);
	uint8_t byte;

	return s && s->write && !core_read(core, addr, &byte, 1);
}

/*
 * Returns where the used part of a stack begins; 0 if there is none. The pointer of a full stack is
 * below it, in a guard.
 */
static uint64_t stack_begin(const struct core *core, const struct shstk_regs *r)
{
	const bool x86 = core->arch == SHSTK_ARCH_X86;
	const uint64_t sp = x86 ? r->r[7] : r->r[31], red = x86 ? sp - RED_ZONE : sp;
	uint64_t at = sp;

	if (is_stack(core, sp))
		return core_segment(core, red) == core_segment(core, sp) && is_stack(core, red) ?
			       red :
			       sp;
	for (unsigned int i = 0; i < GUARD && !is_stack(core, at); i++)
		at = (at & -PAGE) + PAGE;
	return is_stack(core, at) ? at : 0;
}

/*
 * Reads a stack page by page to where it cannot be read any more: since glibc 2.42 the stacks of two
 * threads may lie in one mapping, with a guard (MADV_GUARD_INSTALL) between them. Returns the number of
 * bytes.
 */
static uint32_t read_stack(const struct core *core, uint64_t start, uint8_t *bytes, uint32_t size)
{
	uint32_t got = 0;

	if (!core_read(core, start, bytes, size))
		return size;
	while (got < size) {
		const uint32_t left = PAGE - (start + got) % PAGE;
		const uint32_t n = left < size - got ? left : size - got;

		if (core_read(core, start + got, bytes + got, n))
			break;
		got += n;
	}
	return got;
}

/* Adds the used part of a stack. Its size is 0 if that cannot be read. */
static struct memory_range add_stack(struct dump *d, const struct shstk_regs *r)
{
	struct memory_range stack = { .start = stack_begin(d->core, r) };
	const struct core_segment *s = core_segment(d->core, stack.start);
	uint64_t size;

	if (!s || d->failed)
		return stack;
	size = s->end - stack.start < d->stack ? s->end - stack.start : d->stack;
	stack.where = (struct location){ size, extend(d, size) };
	if (d->failed)
		return stack;
	stack.where.size = read_stack(d->core, stack.start, d->data + stack.where.at, size);
	d->size = stack.where.at + stack.where.size;
	return stack;
}

static void add_threads(struct dump *d, struct location *first_context)
{
	const struct core *core = d->core;
	struct location list = begin_list(d, core->nr_threads, sizeof(struct thread));
	struct location stacks = begin_list(d, core->nr_threads, sizeof(struct memory_range));
	uint32_t nr = 0;

	for (size_t i = 0; i < core->nr_threads; i++) {
		struct thread t = { .tid = core->threads[i].tid };

		t.stack = add_stack(d, &core->threads[i].regs);
		t.context = add_context(d, &core->threads[i].regs);
		if (!i)
			*first_context = t.context;
		put(d, element(list, i, sizeof(t)), &t, sizeof(t));
		/* Breakpad's readers refuse a list that has empty memory. */
		if (t.stack.where.size)
			put(d, element(stacks, nr++, sizeof(t.stack)), &t.stack, sizeof(t.stack));
	}
	put(d, stacks.at, &nr, sizeof(nr));
	stacks.size = sizeof(nr) + nr * sizeof(struct memory_range);
	add_stream(d, THREAD_LIST, list);
	add_stream(d, MEMORY_LIST, stacks);
}

/* ---- Modules ---- */

/* Adds a string: its length in bytes, and UTF-16. Bytes that are not ASCII become '?'. */
static uint32_t add_string(struct dump *d, const char *text)
{
	uint32_t length = 2 * strlen(text), at = extend(d, sizeof(length) + length + 2);

	put(d, at, &length, sizeof(length));
	for (uint32_t i = 0; text[i]; i++) {
		uint16_t unit = (unsigned char)text[i] < 0x80 ? text[i] : '?';

		put(d, at + sizeof(length) + 2 * i, &unit, sizeof(unit));
	}
	return at;
}

static struct location add_build_id(struct dump *d, const struct build_id *id)
{
	uint8_t record[4 + sizeof(id->data)] = { 'L', 'E', 'p', 'B' };

	if (!id->size)
		return (struct location){ 0, 0 };
	memcpy(record + 4, id->data, id->size);
	return append(d, record, 4 + id->size);
}

static void add_modules(struct dump *d)
{
	const struct core *core = d->core;
	struct location list;
	struct build_id id;
	uint32_t nr = 0, k = 0;

	for (size_t i = 0; i < core->nr_maps; i = crash_whole_file(core, i, &id))
		nr++;
	list = begin_list(d, nr, sizeof(struct module));
	for (size_t i = 0, next; i < core->nr_maps; i = next) {
		struct module m = { .start = core->maps[i].start };
		uint64_t size;

		next = crash_whole_file(core, i, &id);
		size = core->maps[next - 1].end - m.start;
		m.size = size < UINT32_MAX ? size : UINT32_MAX;
		m.name = add_string(d, core->maps[i].path);
		m.build_id = add_build_id(d, &id);
		put(d, element(list, k++, sizeof(m)), &m, sizeof(m));
	}
	add_stream(d, MODULE_LIST, list);
}

/* ---- All of it ---- */

static void add_exception(struct dump *d, struct location context)
{
	const struct core_thread *t = &d->core->threads[0];
	const struct core_signal *s = &d->core->signal;
	struct exception e = {
		.tid = t->tid,
		.code = s->signo ? s->signo : t->signo,
		.flags = s->code,
		.address = s->signo && s->code > 0 ? s->addr : t->regs.pc,
		.context = context,
	};

	if (e.code)
		add_stream(d, EXCEPTION, append(d, &e, sizeof(e)));
}

static void add_system(struct dump *d)
{
	struct system_info s = {
		.cpu = d->core->arch == SHSTK_ARCH_ARM64 ? CPU_ARM64 : CPU_AMD64,
		.cpus = sysconf(_SC_NPROCESSORS_ONLN),
		.os = OS_LINUX,
		.csd_version = add_string(d, ""),
	};
	struct misc_info m = { .size = sizeof(m), .flags = 1, .pid = d->core->pid };

	if (d->core->memory >= 0)
		m.pid = d->core->living;
	add_stream(d, SYSTEM_INFO, append(d, &s, sizeof(s)));
	add_stream(d, MISC_INFO, append(d, &m, sizeof(m)));
}

static void finish(struct dump *d)
{
	struct header h = {
		.magic = 0x504d444d, /* "MDMP" */
		.version = 0xa793,
		.streams = d->nr,
		.time = time(NULL),
	};

	h.directory = append(d, d->streams, d->nr * sizeof(d->streams[0])).at;
	put(d, 0, &h, sizeof(h));
}

int crash_minidump(const struct core *core, int fd)
{
	struct dump d = { .core = core, .stack = MAX_STACK };
	struct location context = { 0, 0 };
	int err;

	if (core->arch != SHSTK_ARCH_X86 && core->arch != SHSTK_ARCH_ARM64)
		return -EOPNOTSUPP;
	while (d.stack > MIN_STACK && d.stack * core->nr_threads > MAX_STACKS)
		d.stack /= 2;
	extend(&d, sizeof(struct header));
	add_system(&d);
	add_threads(&d, &context);
	add_modules(&d);
	add_exception(&d, context);
	finish(&d);
	err = d.failed ? -ENOMEM : write_whole(fd, d.data, d.size);
	free(d.data);
	return err;
}
