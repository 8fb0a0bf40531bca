/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * made_records.h - makes records of perf events as the kernel would write them, with a stack of
 * this process, for tests that hand out records instead of rings (fake_rings.h).
 */
#ifndef RECORD_MADE_RECORDS_H
#define RECORD_MADE_RECORDS_H

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "tools/perf/regs.h"
#include "tools/perf/rings.h"
#include "tools/proc/maps.h"

#define STEP 1000000 /* ns from one sample to the next */

static uint64_t the_time, samples;

typedef int (*record_fn)(void *arg, const struct perf_record *record);

/*
 * Room for a record. Its body begins at @body. Before the body are the header and, in samples,
 * identifier, thread and time, which follow after the body in other records.
 */
static struct {
	uint64_t before[4];
	uint64_t body[2048];
	size_t words;
} r;

static void put(uint64_t word)
{
	r.body[r.words++] = word;
}

static void put_pair(uint32_t first, uint32_t second)
{
	put(first | (uint64_t)second << 32);
}

static void put_text(const char *text)
{
	size_t size = strlen(text) + 1;

	r.body[r.words + size / 8] = 0;
	memcpy(r.body + r.words, text, size);
	r.words += (size + 7) / 8;
}

/* Ends the record and hands it out. */
static int hand_out(int type, int misc, int pid, int tid, record_fn fn, void *arg)
{
	const bool sample = type == PERF_RECORD_SAMPLE;
	const uint64_t who = (uint32_t)pid | (uint64_t)tid << 32;
	struct perf_record record = {
		.type = type,
		.misc = misc,
		.which = PERF_MAIN,
		.pid = pid,
		.tid = tid,
		.time = the_time,
		.body = r.body,
		.size = r.words * 8,
		.raw = &r.before[sample ? 0 : 3],
	};
	struct perf_event_header head = { type, misc, (1 + 3 + r.words) * 8 };

	memcpy(&r.before[sample ? 0 : 3], &head, sizeof(head));
	if (sample) {
		r.before[1] = 0;
		r.before[2] = who;
		r.before[3] = the_time;
	} else {
		put(who);
		put(the_time);
		put(0);
	}
	r.words = 0;
	return fn(arg, &record);
}

/* ---- A stack of this process ---- */

static ucontext_t context;
static uint8_t stack[4096] __attribute__((aligned(8)));
static size_t stack_size;

static uint64_t stack_pointer(void)
{
#ifdef __aarch64__
	return context.uc_mcontext.sp;
#else
	return context.uc_mcontext.gregs[REG_RSP];
#endif
}

/* Another function that the innermost function calls, or NULL. */
static void (*there_too)(void);

__attribute__((noinline)) void innermost(void)
{
	struct iovec here = { stack, sizeof(stack) }, there = { NULL, sizeof(stack) };
	ssize_t n;

	getcontext(&context);
	there.iov_base = (void *)(uintptr_t)stack_pointer();
	n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
	stack_size = n > 0 ? n & ~7 : 0;
	if (there_too)
		there_too();
}

__attribute__((noinline)) int call(int depth)
{
	int ret = 0;

	if (depth)
		ret = call(depth - 1);
	else
		innermost();
	__asm__ volatile("" : "+r"(ret));
	return ret + 1;
}

/* Writes the registers; the program counter is moved by @by bytes. */
static void put_regs(uint64_t by)
{
	put(PERF_SAMPLE_REGS_ABI_64);
#ifdef __aarch64__
	for (int i = 0; i < 31; i++)
		put(context.uc_mcontext.regs[i]);
	put(context.uc_mcontext.sp);
	put(context.uc_mcontext.pc + by);
#else
	static const int order[] = { REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_RIP, REG_R8,	 REG_R9,  REG_R10,
				     REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		put(context.uc_mcontext.gregs[order[i]] + (order[i] == REG_RIP ? by : 0));
#endif
}

/* ---- What happens ---- */

/*
 * Writes the registers, with the program counter moved by @by bytes, and @used bytes of the stack,
 * of which @size bytes were asked for: a multiple of 8.
 */
static void put_copy(size_t size, size_t used, uint64_t by)
{
	put_regs(by);
	put(size);
	memcpy(r.body + r.words, stack, size);
	r.words += size / 8;
	put(used);
}

static int map(int pid, const struct mapping *m, record_fn fn, void *arg)
{
	struct stat st = { 0 };

	if (stat(m->path, &st))
		memset(&st, 0, sizeof(st));
	put_pair(pid, pid);
	put(m->start);
	put(m->end - m->start);
	put(m->offset);
	put_pair(major(st.st_dev), minor(st.st_dev));
	put(st.st_ino);
	put(0);
	put_pair(5, 2);
	put_text(m->path);
	return hand_out(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, pid, pid, fn, arg);
}

/* Lets the process execute this program. */
static int execute(int pid, record_fn fn, void *arg)
{
	struct mapping m;
	struct maps maps;
	int ret;

	put_pair(pid, pid);
	put_text(EXECUTED);
	ret = hand_out(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, pid, pid, fn, arg);
	if (maps_open(getpid(), "maps", &maps))
		return -1;
	while (!ret && maps_next(&maps, &m))
		if (m.exec && *m.path == '/')
			ret = map(pid, &m, fn, arg);
	maps_close(&maps);
	return ret;
}

static int begin_or_end(int type, int pid, int parent, record_fn fn, void *arg)
{
	put_pair(pid, parent);
	put_pair(pid, parent);
	put(the_time);
	return hand_out(type, 0, parent, parent, fn, arg);
}

#endif
