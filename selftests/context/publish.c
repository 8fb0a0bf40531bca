// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * publish.c - publishes trace contexts as OpenTelemetry's OTEP 4947 says, and changes them all the
 * time.
 *
 *	publish STYLE SWITCHES [LIBRARY [late]]
 *
 * Each of two threads takes a new context SWITCHES times. Context K belongs to the function
 * work_N(), N being K modulo 8: this function runs under it and nothing else does. So whoever
 * samples the program can tell whether the context that it read is the right one.
 *
 * In STYLE "pointer", "draft" and "other" there are two records, of which one is made while the other
 * one counts. In STYLE "valid" there is one, whose byte says whether it counts. "draft" names the
 * version as the first drafts of the document did, "other" says that contexts are elsewhere. "nap" is
 * "pointer", but each function sleeps, too. LIBRARY
 * is loaded for the variable, with "late" when contexts begin to change; without it, it is one of this
 * program. The ids are made of K, so each shows whether it is of one piece. The name of the second
 * attribute is published by the thread that has used half of its contexts first; the other one waits
 * for that.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "variable.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#define FUNCTIONS 8
#define THREADS 2
#define PAGE 4096
#define ROUNDS 150 /* of a function */

/* The record of OTEP 4947, with three attributes at most. */
struct record {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t valid;
	uint8_t flags;
	uint16_t size;
	uint8_t attributes[64];
} __attribute__((aligned(2)));

/* The header of OTEP 4719. */
struct header {
	char signature[8];
	uint32_t version;
	uint32_t size;
	uint64_t published;
	uint64_t payload;
};

static void (*set)(void *record) = context_set;
static const char *schema_version = "tls_v1";
static bool by_pointer;
static bool naps;
static unsigned long switches;

/* ---- The process context ---- */

/* A message of protobuf that is being made. Its parts are shorter than 128 bytes. */
struct message {
	uint8_t bytes[512];
	size_t size;
};

static void put(struct message *to, int field, const void *bytes, size_t size)
{
	to->bytes[to->size++] = field << 3 | 2;
	to->bytes[to->size++] = size;
	memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
}

static void put_attribute(struct message *to, const char *key, int field, const struct message *of)
{
	struct message value = { .size = 0 }, pair = { .size = 0 };

	put(&value, field, of->bytes, of->size);
	put(&pair, 1, key, strlen(key));
	put(&pair, 2, value.bytes, value.size);
	put(to, 2, pair.bytes, pair.size);
}

static struct message text(const char *of)
{
	struct message ret = { .size = strlen(of) };

	memcpy(ret.bytes, of, ret.size);
	return ret;
}

/* Makes the mapping of the process context, of a file in memory if the machine permits one. */
static void *make_mapping(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	void *ret;

	if (fd < 0)
		fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && ftruncate(fd, PAGE))
		exit(2);
	ret = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0),
		   fd, 0);
	if (ret == MAP_FAILED)
		exit(2);
	/* An emulator may not know this; nothing here is forked. */
	madvise(ret, PAGE, MADV_DONTFORK);
	close(fd);
	return ret;
}

/* Publishes the names of @nr attributes. */
static void publish(int nr)
{
	static const char *const names[] = { "http.route", "shard" };
	static struct message made[3];
	static struct header *head;
	struct message *to = &made[nr], schema = text(schema_version), keys = { .size = 0 };
	struct timespec now;

	for (int i = 0; i < nr; i++) {
		struct message value = { .size = 0 };

		put(&value, 1, names[i], strlen(names[i]));
		put(&keys, 1, value.bytes, value.size);
	}
	put_attribute(to, "threadlocal.schema_version", 1, &schema);
	put_attribute(to, "threadlocal.attribute_key_map", 5, &keys);
	if (!head)
		head = make_mapping();
	__atomic_store_n(&head->published, 0, __ATOMIC_SEQ_CST);
	memcpy(head->signature, "OTEL_CTX", 8);
	head->version = 2;
	head->size = to->size;
	head->payload = (uintptr_t)to->bytes;
	clock_gettime(CLOCK_BOOTTIME, &now);
	__atomic_store_n(&head->published, now.tv_sec * 1000000000ull + now.tv_nsec,
			 __ATOMIC_SEQ_CST);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, head, PAGE, "OTEL_CTX");
}

/* ---- Contexts ---- */

static void put_number(uint8_t *to, uint64_t n)
{
	for (int i = 0; i < 8; i++)
		to[i] = n >> (56 - 8 * i);
}

static void add(struct record *r, int key, const char *value)
{
	r->attributes[r->size] = key;
	r->attributes[r->size + 1] = strlen(value);
	memcpy(r->attributes + r->size + 2, value, strlen(value));
	r->size += 2 + strlen(value);
}

static void fill(struct record *r, uint64_t k)
{
	char value[8];

	put_number(r->trace_id, k);
	put_number(r->trace_id + 8, k * 0x9e3779b97f4a7c15ull);
	put_number(r->span_id, k * 0xc2b2ae3d27d4eb4full);
	r->flags = 1;
	r->size = 0;
	snprintf(value, sizeof(value), "/%d", (int)(k % FUNCTIONS));
	/* The last one of two counts. */
	add(r, 0, "no");
	add(r, 0, value);
	if (k > switches / 2)
		add(r, 1, value);
}

/* Makes the context @k that of this thread. The other record of two is the old one. */
static void attach(struct record *records, uint64_t k)
{
	struct record *r = by_pointer ? &records[k & 1] : records;

	if (!by_pointer) {
		*(volatile uint8_t *)&r->valid = 0;
		atomic_signal_fence(memory_order_seq_cst);
	}
	fill(r, k);
	atomic_signal_fence(memory_order_seq_cst);
	*(volatile uint8_t *)&r->valid = 1;
	atomic_signal_fence(memory_order_seq_cst);
	if (by_pointer)
		set(r);
}

/* ---- Functions ---- */

static void nap(void)
{
	const struct timespec time = { .tv_nsec = 100000 };

	nanosleep(&time, NULL);
}

#define WORK(n)                                                                   \
	static __attribute__((noinline, noclone, no_icf)) void work_##n(void)     \
	{                                                                         \
		for (volatile int i = 0; i < ROUNDS + (n); i++)                   \
			;                                                         \
		if (naps)                                                         \
			nap();                                                    \
		/* Without this the call may be a jump, which leaves no frame. */ \
		__asm__ volatile("" : : : "memory");                              \
	}
WORK(0)
WORK(1)
WORK(2)
WORK(3)
WORK(4)
WORK(5)
WORK(6)
WORK(7)

static void (*const work[FUNCTIONS])(void) = { work_0, work_1, work_2, work_3,
					       work_4, work_5, work_6, work_7 };

static void publish_both(void)
{
	publish(2);
}

static void *run(void *arg)
{
	static pthread_once_t published = PTHREAD_ONCE_INIT;
	static __thread struct record records[2];

	(void)arg;
	if (!by_pointer)
		set(records);
	for (uint64_t k = 1; k <= switches; k++) {
		if (k == switches / 2 + 1)
			pthread_once(&published, publish_both);
		attach(records, k);
		work[k % FUNCTIONS]();
	}
	set(NULL);
	return NULL;
}

/* Uses the variable of a library from now on. */
static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	set = library ? (void (*)(void *))dlsym(library, "context_set") : NULL;
	if (!set)
		exit(2);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc < 3)
		return 2;
	by_pointer = strcmp(argv[1], "valid");
	naps = !strcmp(argv[1], "nap");
	if (!strcmp(argv[1], "draft"))
		schema_version = "tlsdesc_v1_dev";
	else if (!strcmp(argv[1], "other"))
		schema_version = "go_pprof_labels_v1";
	switches = strtoul(argv[2], NULL, 0);
	if (argc == 4)
		load(argv[3]);
	publish(1);
	/* Whoever started this says when to begin. */
	if (write(1, "ready\n", 6) != 6 || getchar() < 0)
		return 2;
	if (argc > 4)
		load(argv[3]);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* What is published can be read until this ends. */
	return write(1, "done\n", 5) != 5 || getchar() < 0;
}
