// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * known_names.c - names that outlive the store which found them. See known_names.h.
 *
 * The shared memory is a table of chains and entries that are only added. An entry is complete
 * before the memory counts it, and it is counted before a chain leads to it: a process that is
 * killed while it adds one leaves nothing half made. The chain leads from newer entries to older
 * ones, so it has an end whatever it holds.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "hash.h"
#include "known_names.h"
#include "object_names.h"
#include "pool.h"
#include "symbol.h"

#define ROOM (16u << 20) /* bytes of shared memory; what is not used is not there */
#define CHAINS 4096
#define AGE 3600 /* seconds after which names are forgotten */

/*
 * A function of an entry. Its texts lie behind the entry's frames, each with a zero byte behind it:
 * function, linkage name and file, as far as they are there.
 */
struct known_frame {
	uint32_t line;
	uint32_t start_line;
	uint8_t inlined;
	uint8_t has_linkage;
	uint8_t has_file;
	uint8_t unused[5];
};

/**
 * struct known_entry - the names of an address
 * @file: the file.
 * @addr: the address in it.
 * @start: start of the function, as &struct shstk_resolved has it.
 * @next: place of the next older entry of the chain, or 0.
 * @size: bytes of the entry, with what is behind it.
 * @nr: number of frames.
 * @resolved: as &struct shstk_resolved has it.
 * @frames: the frames; then texts.
 */
struct known_entry {
	struct shstk_known_file file;
	uint64_t addr;
	uint64_t start;
	uint32_t next;
	uint32_t size;
	uint32_t nr;
	uint32_t resolved;
	struct known_frame frames[];
};

/**
 * struct known_memory - the shared memory
 * @began: when the oldest entry may have been added, in seconds of CLOCK_MONOTONIC.
 * @used: bytes from the beginning of this to the end of the last entry.
 * @chains: place of the newest entry of each chain, or 0.
 */
struct known_memory {
	uint64_t began;
	uint32_t used;
	uint32_t chains[CHAINS];
};

/**
 * struct shstk_known_names - the same, and who may use it
 * @memory: the shared memory.
 * @usable: this process may use it.
 */
struct shstk_known_names {
	struct known_memory *memory;
	bool usable;
};

static uint64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static uint32_t aligned(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

static void forget_all(struct known_memory *m)
{
	memset(m->chains, 0, sizeof(m->chains));
	__atomic_store_n(&m->used, aligned(sizeof(*m)), __ATOMIC_RELEASE);
	m->began = seconds();
}

struct shstk_known_names *shstk_known_names_create(void)
{
	struct shstk_known_names *known = calloc(1, sizeof(*known));
	void *memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (!known || memory == MAP_FAILED) {
		if (memory != MAP_FAILED)
			munmap(memory, ROOM);
		free(known);
		return NULL;
	}
	known->memory = memory;
	forget_all(known->memory);
	return known;
}

void shstk_known_names_destroy(struct shstk_known_names *known)
{
	if (known)
		munmap(known->memory, ROOM);
	free(known);
}

void shstk_known_names_use(struct shstk_known_names *known)
{
	if (!known)
		return;
	known->usable = true;
	if (seconds() - known->memory->began > AGE)
		forget_all(known->memory);
}

bool shstk_known_file(int fd, struct shstk_known_file *ret)
{
	struct stat st;

	/* What is made of a process's memory is a file without a name, another one each time. */
	if (fd < 0 || fstat(fd, &st) || !st.st_nlink)
		return false;
	*ret = (struct shstk_known_file){
		.dev = st.st_dev,
		.inode = st.st_ino,
		.size = st.st_size,
		.changed = (uint64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
	};
	return true;
}

static uint32_t *chain_of(struct known_memory *m, const struct shstk_known_file *file,
			  uint64_t addr)
{
	/* All processes that use the memory have the same seed: they are forks of each other. */
	const uint64_t key[] = { file->dev, file->inode, addr };

	return &m->chains[shstk_hash(key, sizeof(key)) % CHAINS];
}

/* ---- Reading ---- */

/* Takes the next text of an entry, whose texts end at @end; NULL: there is none. */
static const char *take_text(const char **at, const char *end, struct shstk_pool *pool)
{
	const char *text = *at;
	const size_t length = strnlen(text, end - text);

	if (text + length >= end)
		return NULL;
	*at = text + length + 1;
	return shstk_pool_text(pool, text, length);
}

static bool take_frame(const struct known_frame *from, const char **at, const char *end,
		       struct shstk_pool *pool, struct shstk_symframe *ret)
{
	ret->line = from->line;
	ret->start_line = from->start_line;
	ret->inlined = from->inlined;
	ret->function = take_text(at, end, pool);
	ret->linkage = from->has_linkage ? take_text(at, end, pool) : NULL;
	ret->file = from->has_file ? take_text(at, end, pool) : NULL;
	return ret->function && !ret->linkage == !from->has_linkage &&
	       !ret->file == !from->has_file;
}

static const struct shstk_resolved *copy_entry(const struct known_entry *e, struct shstk_pool *pool)
{
	struct shstk_resolved *ret = shstk_pool_alloc(pool, sizeof(*ret));
	const char *at = (const char *)(e->frames + e->nr), *end = (const char *)e + e->size;

	if (!ret)
		return NULL;
	*ret = (struct shstk_resolved){
		.resolved = e->resolved,
		.start = e->start,
		.nr = e->nr,
		.frames = shstk_pool_alloc(pool, e->nr * sizeof(*ret->frames)),
	};
	for (uint32_t i = 0; ret->frames && i < e->nr; i++)
		if (!take_frame(&e->frames[i], &at, end, pool, &ret->frames[i]))
			return NULL;
	return ret->frames ? ret : NULL;
}

static const struct known_entry *find_entry(const struct shstk_known_names *known,
					    const struct shstk_known_file *file, uint64_t addr)
{
	const struct known_entry *e;

	if (!known || !known->usable)
		return NULL;
	for (uint32_t at = *chain_of(known->memory, file, addr); at; at = e->next) {
		e = (const void *)((const char *)known->memory + at);
		if (e->addr == addr && !memcmp(&e->file, file, sizeof(*file)))
			return e;
	}
	return NULL;
}

const struct shstk_resolved *shstk_known_names_find(const struct shstk_known_names *known,
						    const struct shstk_known_file *file,
						    uint64_t addr, struct shstk_pool *pool)
{
	const struct known_entry *e = find_entry(known, file, addr);

	return e ? copy_entry(e, pool) : NULL;
}

bool shstk_known_names_has(const struct shstk_known_names *known,
			   const struct shstk_known_file *file, uint64_t addr)
{
	return find_entry(known, file, addr);
}

/* ---- Adding ---- */

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static bool all_named(const struct shstk_resolved *names)
{
	for (unsigned int i = 0; i < names->nr; i++)
		if (!names->frames[i].function)
			return false;
	return names->nr;
}

static size_t size_of(const struct shstk_resolved *names)
{
	size_t size = sizeof(struct known_entry) + names->nr * sizeof(struct known_frame);

	for (unsigned int i = 0; i < names->nr; i++) {
		const struct shstk_symframe *frame = &names->frames[i];

		size += text_size(frame->function) + text_size(frame->linkage) +
			text_size(frame->file);
	}
	return aligned(size);
}

static char *put_text(char *at, const char *text)
{
	return text ? stpcpy(at, text) + 1 : at;
}

static void fill(struct known_entry *e, const struct shstk_resolved *names)
{
	char *at = (char *)(e->frames + names->nr);

	for (unsigned int i = 0; i < names->nr; i++) {
		const struct shstk_symframe *frame = &names->frames[i];

		e->frames[i] = (struct known_frame){
			.line = frame->line,
			.start_line = frame->start_line,
			.inlined = frame->inlined,
			.has_linkage = frame->linkage != NULL,
			.has_file = frame->file != NULL,
		};
		at = put_text(at, frame->function);
		at = put_text(at, frame->linkage);
		at = put_text(at, frame->file);
	}
}

void shstk_known_names_add(struct shstk_known_names *known, const struct shstk_known_file *file,
			   uint64_t addr, const struct shstk_resolved *names)
{
	struct known_memory *m;
	struct known_entry *e;
	uint32_t *chain, at;
	size_t size;

	if (!known || !known->usable || !all_named(names))
		return;
	m = known->memory;
	size = size_of(names);
	if (size > ROOM - m->used)
		forget_all(m);
	if (size > ROOM - m->used)
		return;
	at = m->used;
	chain = chain_of(m, file, addr);
	e = (void *)((char *)m + at);
	*e = (struct known_entry){
		.file = *file,
		.addr = addr,
		.start = names->start,
		.next = *chain,
		.size = size,
		.nr = names->nr,
		.resolved = names->resolved,
	};
	fill(e, names);
	__atomic_store_n(&m->used, at + (uint32_t)size, __ATOMIC_RELEASE);
	__atomic_store_n(chain, at, __ATOMIC_RELEASE);
}
