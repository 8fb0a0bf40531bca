// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * jit.c - makes code at run time whose frames are like those of HotSpot, the Java virtual machine,
 * and runs it: methods that call each other, and one that works. The methods are described as
 * HotSpot does it (jvm.h), and use the frame pointer for something else.
 *
 *   jit MILLISECONDS [crash]     of its own CPU time; with crash, leaves a core file then
 *
 * It prints a line when it begins.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "jvm.h"

#define HEAP 65536
#define ROOM 700 /* bytes for one method */

/* Code that is being written. */
struct writer {
	uint8_t *code;
	size_t at;
};

static void put(struct writer *w, const void *bytes, size_t size)
{
	memcpy(w->code + w->at, bytes, size);
	w->at += size;
}

static void put32(struct writer *w, uint32_t value)
{
	put(w, &value, sizeof(value));
}

/* Writes add or sub for the stack pointer, in the short form if possible. */
static void put_size(struct writer *w, uint8_t code, uint32_t size, int wide)
{
	const uint8_t bytes[] = { 0x48, wide || size > 127 ? 0x81 : 0x83, code, size };

	put(w, bytes, bytes[1] == 0x81 ? 3 : 4);
	if (bytes[1] == 0x81)
		put32(w, size);
}

/* Spoils the frame pointer: mov $...,%ebp. */
static void spoil(struct writer *w)
{
	put(w, "\xbd\x34\x12\x00\x00", 5);
}

static void put_end(struct writer *w, uint32_t size)
{
	if (size)
		put_size(w, 0xc4, size, 0);
	put(w, "\x5d\xc3", 2);
}

static struct writer begin(const char *name, const char *method)
{
	struct writer w = { jvm_add(name, method, ROOM), 0 };

	if (!w.code)
		abort();
	/* These bytes are never executed; they look like the beginning of another frame. */
	memset(w.code, 0x55, ROOM);
	return w;
}

/* Writes the method that works; it calls nothing. */
static uint8_t *write_leaf(const char *name, uint32_t size)
{
	struct writer w = begin("nmethod", name);

	put_size(&w, 0xec, size, 1);
	if (size == 8)
		put(&w, "\x48\x89\x2c\x24", 4);
	else
		put(&w, (uint8_t[]){ 0x48, 0x89, 0x6c, 0x24, size - 8 }, 5);
	jvm_describe(w.code, size / 8 + 1, w.at);
	spoil(&w);
	/* mov $...,%ecx; 1: dec %ecx; jnz 1b */
	put(&w, "\xb9", 1);
	put32(&w, 2000000);
	put(&w, "\xff\xc9\x75\xfc", 4);
	put_end(&w, size - 8);
	return w.code;
}

/* Writes a method that calls another one. @odd makes its frame as no release of HotSpot does. */
static uint8_t *write_caller(const char *name, uint32_t size, int odd, const uint8_t *callee)
{
	struct writer w = begin("nmethod", name);

	if (odd) {
		/* push %rbp; lea -size(%rsp),%rsp */
		put(&w, "\x55\x48\x8d\xa4\x24", 5);
		put32(&w, -size);
	} else {
		put(&w, "\x89\x84\x24\x00\xc0\xfe\xff\x55", 8);
		put_size(&w, 0xec, size, 0);
	}
	jvm_describe(w.code, size / 8 + 2, w.at);
	spoil(&w);
	put(&w, "\xe8", 1);
	put32(&w, callee - (w.code + w.at + 4));
	put_end(&w, size);
	return w.code;
}

/* Writes code that aligns sp to 16 bytes, so the distance between its frame and the call varies. */
static uint8_t *write_aligner(const uint8_t *callee)
{
	struct writer w = begin("ExceptionBlob", NULL);

	/* push %rbp; push %r12; sub $16,%rsp; mov %rsp,%r12; and $-16,%rsp */
	put(&w, "\x55\x41\x54\x48\x83\xec\x10\x49\x89\xe4\x48\x83\xe4\xf0", 14);
	jvm_describe(w.code, 5, 0);
	put(&w, "\xe8", 1);
	put32(&w, callee - (w.code + w.at + 4));
	/* mov %r12,%rsp; add $16,%rsp; pop %r12; pop %rbp; ret */
	put(&w, "\x4c\x89\xe4\x48\x83\xc4\x10\x41\x5c\x5d\xc3", 11);
	return w.code;
}

static __attribute__((noinline)) void run_code(void (*code)(void))
{
	code();
	__asm__ volatile("" ::: "memory");
}

static double used(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

/* Ends the process by a signal after @ms, which is hardly ever outside of the method that works. */
static void crash_after(double ms)
{
	const struct itimerspec at = { .it_value = { ms / 1e3, (long)(ms * 1e6) % 1000000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGABRT };
	timer_t timer;

	if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) ||
	    timer_settime(timer, 0, &at, NULL)) {
		perror("timer");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) : 1000;
	uint8_t *code, *entry[2];

	code = mmap(NULL, HEAP, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	jvm_open(code, HEAP);
	for (int i = 0; i < 2; i++) {
		entry[i] = write_leaf("leaf", i ? 8 : 40);
		entry[i] = write_caller("inner", 16, 0, entry[i]);
		entry[i] = write_caller("middle", 1000, i, entry[i]);
		entry[i] = write_caller("outer", 48, 0, entry[i]);
		entry[i] = write_aligner(entry[i]);
	}
	puts("ready");
	fflush(stdout);
	if (argc > 2)
		crash_after(end);
	while (argc > 2 || used() < end)
		for (int i = 0; i < 2; i++)
			run_code((void (*)(void))(uintptr_t)entry[i]);
	return 0;
}
