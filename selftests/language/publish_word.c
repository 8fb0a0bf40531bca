// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * publish_word.c - publishes a word that a program keeps in a mapped file, as a thread's trace context.
 *
 * The agent of `shstk record` reads trace contexts in its handler (tools/inject/agent/context.c), and
 * so the word at the very moment of a sample. This is preloaded: it publishes the word of the file that
 * the environment names for the first thread. Other threads, and children, call publish_word().
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define VALID 1

/* The record of OTEP 4947. The file begins with it, so the word is the first half of the trace's id. */
struct record {
	uint64_t word;
	uint64_t more;
	uint64_t span_id;
	uint8_t valid;
};

#define PUBLIC __attribute__((visibility("default")))

PUBLIC __thread struct record *otel_thread_ctx_v1;

/* Publishes the record at @at for the calling thread. */
PUBLIC void publish_word(void *at)
{
	struct record *record = at;

	record->span_id = 1;
	record->valid = VALID;
	otel_thread_ctx_v1 = record;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("PUBLISHED_WORD");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0 || ftruncate(fd, PAGE))
		return;
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		publish_word(at);
}
