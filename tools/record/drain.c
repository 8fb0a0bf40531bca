// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * drain.c - the memory shared with the agents, seen from the recorder.
 *
 * All that is read from it may be wrong (tools/inject/agent/ring.h): a record is
 * copied first, then looked at, and a ring that makes no sense is skipped to
 * its end and counted.
 *
 * Each process image (struct image) has a view of its mappings in the
 * symboliser, filled from the agent's maps records, by a copy at fork, and
 * from /proc/PID/maps whenever a sample has an address that is not known yet.
 * Addresses are tied to their file at once, so it does not matter what the
 * process maps later.
 *
 * When the recorder comes to a sample the process may be long gone, or have
 * closed a library and opened another one in its place. The agent sends what is
 * mapped before that happens: it lies in some ring behind the sample, so rings
 * are looked through ahead of what is consumed, and the texts kept for as long
 * as an older sample may come (struct text).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libshstk/shstk.h"
#include "tools/inject/agent/ring.h"
#include "tools/proc/maps.h"
#include "tools/record/drain.h"
#include "tools/record/ledger.h"
#include "tools/record/memory.h"
#include "tools/shstk.h"

#define MEMORY_NAME "shstk-record"
#define NR_SLOTS 4096
#define MAX_RECORD 65536
#define MAX_LOSERS 65536
#define MAX_TEXTS 4096 /* maps texts at a time, */
#define MAX_TEXT_BYTES (64u << 20) /* and what is in them */
#define MAX_SHOWN 20000
#define BUCKETS 1024
#define MAX_EXIT 1000000000000ull /* ns that an exit may take */
#define READ_INTERVAL 20000000 /* ns between two looks into /proc */
#define LOADING 1000000000 /* ns that loading a library may take */

/**
 * struct text - what was mapped in a process, as its agent sent it
 * @next: older, mostly.
 * @instance: of the process image.
 * @time: when it was read.
 * @pass: pass over the rings in which it was found.
 * @size: of @bytes.
 * @bytes: lines of /proc/PID/maps.
 */
struct text {
	struct text *next;
	uint32_t instance;
	uint64_t time;
	unsigned int pass;
	size_t size;
	char bytes[];
};

/**
 * struct image - a process, from fork or exec on
 * @next: in the hash bucket.
 * @instance: its number in the shared memory.
 * @pid: process ID.
 * @proc: its mappings,
 * @mapped_at: as they were then.
 * @last_read: when /proc/PID/maps was read last.
 * @opens: calls of dlopen() that the last look took into account.
 * @open_seen: when they were seen to change.
 * @comm: name of a thread of it.
 * @gone: /proc/PID/maps cannot be read any more.
 * @dead: the process was seen to have ended.
 * @missing: consecutive looks that found threads without a slot.
 * @asked: number of scans asked for.
 *
 * Found by @instance, which the agent has drawn and records have: those of a process that is
 * gone, or of what it was before exec, may come late.
 */
struct image {
	struct image *next;
	uint32_t instance;
	int pid;
	struct shstk_symproc *proc;
	uint64_t mapped_at;
	uint64_t last_read;
	uint64_t open_seen;
	uint32_t opens;
	char comm[REC_COMM];
	bool gone;
	bool dead;
	unsigned int missing;
	unsigned int asked;
};

/**
 * struct local - what the recorder knows of a slot, not shared
 * @epoch: of the thread that the rest is about.
 * @tail: records up to here were taken,
 * @freed: and the agent was told so up to here.
 * @ahead: maps records up to here were looked for.
 * @text: of maps records that are not complete yet.
 * @taken: samples, lost ones included, when last looked at.
 * @lost: those that found the ring full.
 * @lost_weight: their weight.
 * @known: @epoch is valid.
 */
struct local {
	uint32_t epoch;
	uint64_t tail;
	uint64_t freed;
	uint64_t ahead;
	struct text *text;
	uint64_t taken;
	uint64_t lost;
	uint64_t lost_weight;
	bool known;
};

struct loser {
	struct loser *next;
	int pid;
	int tid;
	char comm[REC_COMM];
	uint32_t epoch;
	uint32_t slot;
	uint64_t lost;
	uint64_t taken;
};

struct drain {
	struct memory memory;
	uint64_t size;
	struct rec_header *header;
	struct rec_slot *slots;
	uint8_t *rings;
	uint32_t nr_slots;
	uint32_t ring_size;
	uint32_t max_depth;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct image *images[BUCKETS];
	uint32_t nr_images;
	uint32_t nr_execs;
	uint64_t samples, weight, late, truncated, lost, lost_weight;
	uint64_t period;
	struct ledger *ledger; /* NULL: wall-clock time */
	uint32_t lost_threads;
	uint64_t beyond; /* records left out, of processes after the most */
	uint32_t damaged;
	unsigned int nesting;
	struct loser *losers;
	struct text *texts;
	unsigned int nr_texts;
	size_t text_bytes; /* in them and in incomplete ones */
	unsigned int pass;
	struct local local[NR_SLOTS];
	unsigned int shown;
	uint64_t started; /* CLOCK_MONOTONIC in ns */
	bool sampled; /* @before holds a sample */
	_Alignas(8) uint8_t record[MAX_RECORD];
	_Alignas(8) uint8_t before[MAX_RECORD];
	_Alignas(8) uint8_t ahead[MAX_RECORD];
};

/*
 * The kernel looks at CPU-time timers in its tick. So many periods run out, at most, of
 * a thread that runs all the time from one to the next.
 */
static uint32_t periods_in_time(const struct drain_opts *opts)
{
	struct timespec tick = { 0 };

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick))
		return UINT32_MAX;
	return 1 + ((uint64_t)tick.tv_sec * 1000000000 + tick.tv_nsec) / opts->period;
}

/* May threads here have clocks of their own? Where there is a seccomp filter it is not tried. */
static bool events_permitted(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = 1000000000,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd;

	if (prctl(PR_GET_SECCOMP))
		return false;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int map_memory(struct drain *d, const struct drain_opts *opts)
{
	uint64_t slots = rec_round(sizeof(struct rec_header));
	uint64_t rings = rec_round(slots + NR_SLOTS * sizeof(struct rec_slot));
	struct rec_header *h;
	int err;

	d->size = rings + (uint64_t)NR_SLOTS * opts->ring_size;
	err = memory_create(MEMORY_NAME, d->size, &d->memory);
	if (err)
		return err;
	h = mmap(NULL, d->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, d->memory.fd,
		 0);
	if (h == MAP_FAILED)
		return -errno;
	d->header = h;
	d->slots = (void *)((uint8_t *)h + slots);
	d->rings = (uint8_t *)h + rings;
	d->nr_slots = NR_SLOTS;
	d->ring_size = opts->ring_size;
	d->max_depth = opts->max_depth;
	h->magic = REC_MAGIC;
	h->version = REC_VERSION;
	h->nr_slots = NR_SLOTS;
	h->ring_size = opts->ring_size;
	h->max_depth = opts->max_depth;
	h->clock = opts->clock;
	h->recorder = getpid();
	h->check = opts->check;
	h->labels = opts->labels;
	h->period = opts->period;
	h->in_time = periods_in_time(opts);
	h->events = opts->clock == REC_CLOCK_CPU && events_permitted();
	h->slots_offset = slots;
	h->rings_offset = rings;
	h->cookie = d->memory.cookie;
	return 0;
}

int drain_create(const struct drain_opts *opts, struct shstk_symbols *symbols,
		 struct shstk_profile *profile, struct drain **ret)
{
	struct drain *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->symbols = symbols;
	d->profile = profile;
	d->period = opts->period;
	d->started = now_ns(CLOCK_MONOTONIC);
	err = map_memory(d, opts);
	if (!err && opts->clock == REC_CLOCK_CPU) {
		d->ledger = ledger_create();
		err = d->ledger ? 0 : -ENOMEM;
	}
	if (err) {
		drain_destroy(d);
		return err;
	}
	if (opts->keep_times)
		shstk_profile_keep_times(profile);
	*ret = d;
	return 0;
}

void drain_destroy(struct drain *d)
{
	if (!d)
		return;
	for (int i = 0; i < BUCKETS; i++) {
		while (d->images[i]) {
			struct image *image = d->images[i];

			d->images[i] = image->next;
			free(image);
		}
	}
	for (int i = 0; i < NR_SLOTS; i++)
		free(d->local[i].text);
	while (d->texts) {
		struct text *t = d->texts;

		d->texts = t->next;
		free(t);
	}
	while (d->losers) {
		struct loser *l = d->losers;

		d->losers = l->next;
		free(l);
	}
	ledger_destroy(d->ledger);
	if (d->header)
		munmap(d->header, d->size);
	memory_destroy(&d->memory);
	free(d);
}

const char *drain_env(const struct drain *d)
{
	return d->memory.env;
}

static struct image *find_image(struct drain *d, uint32_t instance)
{
	struct image *image = d->images[instance % BUCKETS];

	while (image && image->instance != instance)
		image = image->next;
	return image;
}

static struct image *add_image(struct drain *d, uint32_t instance, int pid, struct image *parent)
{
	struct image *image;
	int err;

	if (d->nr_images >= DRAIN_MAX_PROCESSES || pid <= 0)
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	if (parent)
		err = shstk_symproc_fork(parent->proc, pid, &image->proc);
	else
		err = shstk_symproc_create(d->symbols, pid, &image->proc);
	if (err) {
		free(image);
		return NULL;
	}
	image->instance = instance;
	image->pid = pid;
	image->next = d->images[instance % BUCKETS];
	d->images[instance % BUCKETS] = image;
	d->nr_images++;
	if (!parent)
		d->nr_execs++;
	return image;
}

/* There is no image for a record: it is left out if there are as many as can be. */
static int leave_out(struct drain *d, const struct rec_slot *slot)
{
	if (REC_OWNER_PID(atomic_load(&slot->owner)) <= 0)
		return -EINVAL;
	if (d->nr_images < DRAIN_MAX_PROCESSES)
		return -ENOMEM;
	d->beyond++;
	return 0;
}

/* From the living process. Return: false if that was done a moment ago. */
static bool read_maps(struct image *image)
{
	uint64_t at = now_ns(CLOCK_MONOTONIC);

	if (image->last_read && at - image->last_read < READ_INTERVAL)
		return false;
	image->last_read = at;
	if (image->gone)
		return true;
	if (shstk_symproc_read_maps(image->proc) < 0)
		image->gone = true;
	else
		image->mapped_at = at;
	return true;
}

static struct image *slot_image(struct drain *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct image *image = find_image(d, slot->instance);

	if (image)
		return image;
	/* Its start record was lost: what /proc says must do. */
	image = add_image(d, slot->instance, REC_OWNER_PID(atomic_load(&slot->owner)),
			  find_image(d, slot->parent));
	if (image)
		read_maps(image);
	return image;
}

/*
 * Programs about to be executed. Must run before the agents' records are read: the ledger has to
 * know of the exec first.
 */
static void take_execs(struct drain *d)
{
	for (int i = 0; i < REC_EXECS; i++) {
		struct rec_exec *e = &d->header->execs[i];
		char path[REC_PATH];

		if (atomic_load_explicit(&e->state, memory_order_acquire) != REC_EXEC_READY)
			continue;
		memcpy(path, e->path, sizeof(path));
		path[sizeof(path) - 1] = '\0';
		if (d->ledger && *path)
			ledger_executes(d->ledger, e->pid, e->cpu, path, e->instance);
		atomic_store_explicit(&e->state, REC_EXEC_FREE, memory_order_release);
	}
}

static void take_end(struct drain *d, const struct image *image, const struct rec_end *end)
{
	if (end->record.size >= sizeof(*end) && d->ledger)
		ledger_ended(d->ledger, image->pid, end->self, end->children);
}

static void take_reaped(struct drain *d, const struct image *image, const struct rec_reaped *reaped)
{
	if (reaped->record.size >= sizeof(*reaped) && d->ledger)
		ledger_reaped(d->ledger, reaped->pid, reaped->cpu, image->comm);
}

static void take_start(struct drain *d, const struct rec_slot *slot, const struct rec_start *start)
{
	if (start->record.size < sizeof(*start) || find_image(d, slot->instance))
		return;
	take_execs(d);
	if (d->ledger)
		ledger_started(d->ledger, start->pid, start->parent_pid, slot->instance);
	add_image(d, slot->instance, start->pid,
		  start->parent ? find_image(d, start->parent) : NULL);
}

/* Copies the record at @tail to @to. Return: its size, or -EINVAL. */
static int copy_record(struct drain *d, uint32_t i, uint64_t tail, uint64_t head, uint8_t *to)
{
	uint32_t offset = tail & (d->ring_size - 1);
	const uint8_t *from = d->rings + (uint64_t)i * d->ring_size + offset;
	struct rec_record *record = (void *)to;
	struct rec_record first;

	if (head - tail < sizeof(first))
		return -EINVAL;
	memcpy(&first, from, sizeof(first));
	if (first.size < sizeof(first) || first.size % 8 || first.size > d->ring_size - offset ||
	    (first.size > head - tail))
		return -EINVAL;
	if (first.type == REC_PAD) {
		*record = first;
		return first.size;
	}
	if (first.size > MAX_RECORD)
		return -EINVAL;
	memcpy(to, from, first.size);
	*record = first;
	return first.size;
}

static void forget_text(struct drain *d, struct text *t)
{
	if (t)
		d->text_bytes -= t->size;
	free(t);
}

/* What is known of the thread that has the slot now. */
static struct local *know_slot(struct drain *d, uint32_t i)
{
	struct local *local = &d->local[i];
	uint32_t epoch = atomic_load_explicit(&d->slots[i].epoch, memory_order_acquire);

	if (!local->known || local->epoch != epoch) {
		forget_text(d, local->text);
		*local = (struct local){ .epoch = epoch, .known = true };
	}
	return local;
}

/* @t, which may be NULL, with the text of a record behind it; or NULL. */
static struct text *extend_text(struct drain *d, struct text *t, const struct rec_maps *m)
{
	size_t size = t ? t->size : 0;
	struct text *longer = NULL;

	if (d->text_bytes + m->bytes <= MAX_TEXT_BYTES)
		longer = realloc(t, sizeof(*t) + size + m->bytes);
	if (!longer) {
		forget_text(d, t);
		return NULL;
	}
	memcpy(longer->bytes + size, m->text, m->bytes);
	longer->size = size + m->bytes;
	d->text_bytes += m->bytes;
	return longer;
}

static void add_text(struct drain *d, struct local *local, uint32_t instance,
		     const struct rec_maps *m)
{
	struct text *t = local->text;

	if (m->record.size < sizeof(*m) || m->bytes > m->record.size - sizeof(*m))
		return;
	if (m->record.flags & REC_MAPS_FIRST) {
		forget_text(d, t);
		t = extend_text(d, NULL, m);
	} else if (t) {
		t = extend_text(d, t, m);
	}
	local->text = t;
	if (!t || !(m->record.flags & REC_MAPS_LAST) || d->nr_texts >= MAX_TEXTS)
		return;
	local->text = NULL;
	t->instance = instance;
	t->time = m->time;
	t->pass = d->pass;
	t->next = d->texts;
	d->texts = t;
	d->nr_texts++;
}

static void look_ahead_in(struct drain *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct local *local = know_slot(d, i);
	uint64_t head = atomic_load_explicit(&slot->head, memory_order_acquire);
	uint64_t at = local->ahead > local->freed ? local->ahead : local->freed;
	const struct rec_record *record = (const void *)d->ahead;
	int size;

	if (atomic_load_explicit(&slot->epoch, memory_order_acquire) != local->epoch ||
	    head - at > d->ring_size)
		return;
	for (; at != head; at += size) {
		size = copy_record(d, i, at, head, d->ahead);
		if (size < 0)
			break;
		if (record->type == REC_MAPS)
			add_text(d, local, slot->instance, (const void *)record);
	}
	local->ahead = at;
}

static uint32_t slots_used(struct drain *d)
{
	uint32_t high = atomic_load(&d->header->slot_high);

	return high < d->nr_slots ? high : d->nr_slots;
}

/* Finds the maps texts in all rings. */
static void look_ahead(struct drain *d)
{
	uint32_t high = slots_used(d);

	for (uint32_t i = 0; i < high; i++) {
		int state = REC_OWNER_STATE(
			atomic_load_explicit(&d->slots[i].owner, memory_order_acquire));

		if (state == REC_ACTIVE || state == REC_DYING)
			look_ahead_in(d, i);
	}
}

/* Frees texts of earlier passes: older records were all taken. */
static void forget_old_texts(struct drain *d)
{
	for (struct text **at = &d->texts; *at;) {
		struct text *t = *at;

		if (t->pass == d->pass) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		d->nr_texts--;
		forget_text(d, t);
	}
}

/* The first text of @time or later, or NULL. */
static const struct text *text_since(const struct drain *d, uint32_t instance, uint64_t time)
{
	const struct text *found = NULL;

	for (const struct text *t = d->texts; t; t = t->next)
		if (t->instance == instance && t->time >= time && (!found || t->time < found->time))
			found = t;
	return found;
}

static const struct text *newest_text(const struct drain *d, uint32_t instance)
{
	const struct text *found = NULL;

	for (const struct text *t = d->texts; t; t = t->next)
		if (t->instance == instance && (!found || t->time > found->time))
			found = t;
	return found;
}

static void use_text(struct image *image, const struct text *t)
{
	if (t->time == image->mapped_at)
		return;
	shstk_symproc_set_maps(image->proc, t->bytes, t->size);
	image->mapped_at = t->time;
}

/* Its text is what is mapped from now on, unless a newer one is in use. */
static void take_maps(struct drain *d, struct image *image, const struct rec_maps *m)
{
	const struct text *t;

	look_ahead(d);
	if (m->record.size < sizeof(*m) || !(m->record.flags & REC_MAPS_LAST) ||
	    m->time <= image->mapped_at)
		return;
	t = text_since(d, image->instance, m->time);
	if (t && t->time == m->time)
		use_text(image, t);
}

/* Makes the mappings of @image those at the time of a sample. */
static void know_maps(struct drain *d, struct image *image, uint64_t time)
{
	const struct text *t = text_since(d, image->instance, time);

	if (!t && read_maps(image)) {
		/* Was something unmapped since the sample, and before this? */
		look_ahead(d);
		t = text_since(d, image->instance, time);
	}
	if (!t) {
		t = newest_text(d, image->instance);
		if (t && t->time <= image->mapped_at)
			t = NULL;
	}
	if (t)
		use_text(image, t);
}

static bool unknown_address(struct image *image, const struct rec_sample *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (shstk_symproc_find(image->proc, s->pcs[i] - !!i)->kind == SHSTK_SYMMAP_NONE)
			return true;
	return false;
}

/*
 * A library may have been loaded to where another one was. A sample tells only
 * that dlopen() was called, so look for a while after that.
 */
static bool may_have_loaded(struct image *image, const struct rec_sample *s)
{
	if (s->opens != image->opens) {
		image->opens = s->opens;
		image->open_seen = now_ns(CLOCK_MONOTONIC);
		image->last_read = 0;
		return true;
	}
	return image->open_seen && now_ns(CLOCK_MONOTONIC) - image->open_seen < LOADING;
}

static void copy_name(char name[REC_COMM], const char *from)
{
	memcpy(name, from, REC_COMM - 1);
	name[REC_COMM - 1] = '\0';
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			*name = '?';
}

/* The part of a sample's time that is of no known stack. */
static int add_late(struct drain *d, const struct shstk_sample *of, uint64_t late)
{
	int64_t values[2] = { 0, late };
	struct shstk_sample sample = *of;

	sample.nr = 0;
	sample.end = SHSTK_END_COMPLETE;
	sample.note = SHSTK_NOTE_TICKS;
	sample.values = values;
	return shstk_profile_add(d->profile, &sample);
}

static int take_sample(struct drain *d, const struct rec_slot *slot, struct image *image,
		       const struct rec_sample *s)
{
	static const int notes[] = {
		[REC_PLACE_STACK] = SHSTK_NOTE_NONE,
		[REC_PLACE_TICKS] = SHSTK_NOTE_TICKS,
		[REC_PLACE_LOADER] = SHSTK_NOTE_LOADER,
	};
	struct shstk_sample sample;
	int64_t values[2];
	char comm[REC_COMM];
	uint64_t late;
	int ret;

	if (s->record.size < sizeof(*s) || s->record.flags > REC_PLACE_LOADER ||
	    s->nr > d->max_depth || s->labels > REC_MAX_LABELS ||
	    rec_sample_size(s->nr, s->labels) != s->record.size || s->weight > INT64_MAX / 2)
		return -EINVAL;
	if (unknown_address(image, s) || may_have_loaded(image, s))
		know_maps(d, image, s->time);
	late = s->late * d->period < s->weight ? s->late * d->period : s->weight;
	copy_name(comm, slot->comm);
	values[0] = 1;
	values[1] = s->weight - late;
	sample = (struct shstk_sample){
		.proc = image->proc,
		.tid = slot->tid,
		.comm = comm,
		.pcs = s->pcs,
		.marks = (const uint8_t *)&s->pcs[s->nr],
		.nr = s->nr,
		.end = s->end,
		.note = notes[s->record.flags],
		.labels = (const char *)&s->pcs[s->nr] + s->nr,
		.labels_size = s->labels,
		.time = s->time,
		.values = values,
	};
	d->samples++;
	d->weight += s->weight;
	d->late += s->record.flags == REC_PLACE_TICKS ? s->weight : late;
	d->truncated += s->end != SHSTK_END_COMPLETE;
	ret = shstk_profile_add(d->profile, &sample);
	return ret || !late ? ret : add_late(d, &sample, late);
}

/* Names of a stack in a line, outermost first. */
static void print_stack(FILE *out, const char *source, struct image *image,
			const struct rec_sample *s)
{
	const uint8_t *marks = (const uint8_t *)&s->pcs[s->nr];

	fprintf(out, "%s: ", source);
	for (unsigned int i = s->nr; i--;) {
		bool pc = marks[i] & (SHSTK_MARK_PC | SHSTK_MARK_SIGNAL);
		const struct shstk_symbol *symbol = shstk_symproc_lookup(
			image->proc, s->pcs[i], pc ? SHSTK_SYMADDR_PC : SHSTK_SYMADDR_RETURN);

		fprintf(out, "%s+0x%llx;", symbol->frames[symbol->nr - 1].function,
			(unsigned long long)symbol->offset);
	}
	fprintf(out, " %s\n", shstk_end_name(s->end));
}

/* Two stacks of one moment that are not the same: the sample before, and @s. */
static void show_difference(struct drain *d, struct image *image, const struct rec_sample *s)
{
	char *text = NULL;
	size_t size;
	FILE *out;

	if (s->record.size < sizeof(*s) || s->nr > d->max_depth ||
	    rec_sample_size(s->nr, 0) != s->record.size || !d->sampled || d->shown++ >= MAX_SHOWN)
		return;
	out = open_memstream(&text, &size);
	if (!out)
		return;
	print_stack(out, "hardware", image, (const void *)d->before);
	print_stack(out, "software", image, s);
	if (s->end != SHSTK_END_COMPLETE)
		fprintf(out, "software ended at 0x%llx\n", (unsigned long long)s->time);
	/* At once: the command may print too. */
	if (!fclose(out))
		fputs(text, stderr);
	free(text);
}

static int take_record(struct drain *d, uint32_t i, const struct rec_record *record)
{
	const struct rec_slot *slot = &d->slots[i];
	const void *whole = record;
	struct image *image;
	int ret;

	switch (record->type) {
	case REC_PAD:
		return 0;
	case REC_START:
		take_start(d, slot, whole);
		return 0;
	case REC_MAPS:
		image = slot_image(d, i);
		if (image)
			take_maps(d, image, whole);
		return 0;
	case REC_SAMPLE:
		image = slot_image(d, i);
		if (!image)
			return leave_out(d, slot);
		ret = take_sample(d, slot, image, whole);
		d->sampled = d->header->check && !ret;
		if (d->sampled)
			memcpy(d->before, whole, record->size);
		return ret;
	case REC_OTHER:
		image = slot_image(d, i);
		if (image)
			show_difference(d, image, whole);
		return 0;
	case REC_END:
	case REC_REAPED:
		image = slot_image(d, i);
		if (!image)
			return leave_out(d, slot);
		copy_name(image->comm, slot->comm);
		if (record->type == REC_END)
			take_end(d, image, whole);
		else
			take_reaped(d, image, whole);
		return 0;
	default:
		return -EINVAL;
	}
}

static void note_lost(struct drain *d, uint32_t i, uint64_t lost, uint64_t taken)
{
	struct rec_slot *slot = &d->slots[i];
	struct local *local = &d->local[i];
	struct loser *l = d->losers;

	while (l && (l->slot != i || l->epoch != local->epoch))
		l = l->next;
	if (!l) {
		if (d->lost_threads++ >= MAX_LOSERS)
			return;
		l = calloc(1, sizeof(*l));
		if (!l)
			return;
		l->next = d->losers;
		d->losers = l;
		l->slot = i;
		l->epoch = local->epoch;
		l->pid = REC_OWNER_PID(atomic_load(&slot->owner));
		l->tid = slot->tid;
	}
	copy_name(l->comm, slot->comm);
	/* For the terminal; what is no ASCII may be anything. */
	for (char *c = l->comm; *c; c++)
		if (*c & 0x80)
			*c = '?';
	l->lost = lost;
	l->taken = taken;
}

static void take_counts(struct drain *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct local *local = &d->local[i];
	uint64_t lost = atomic_load(&slot->lost);
	uint64_t weight = atomic_load(&slot->lost_weight);

	if (lost == local->lost)
		return;
	d->lost += lost - local->lost;
	d->lost_weight += weight - local->lost_weight;
	local->lost = lost;
	local->lost_weight = weight;
	note_lost(d, i, lost, atomic_load(&slot->taken));
}

static int drain_slot(struct drain *d, uint32_t i);

/*
 * Before the records of a slot: those that introduce its process, and the one
 * it was forked from. They may lie in slots that come later in the array.
 */
static void introduce(struct drain *d, uint32_t i)
{
	const struct rec_slot *slot = &d->slots[i];
	const struct {
		uint32_t instance, slot;
	} before[] = {
		{ slot->parent, slot->parent_slot },
		{ slot->instance, slot->start_slot },
	};

	if (d->nesting >= 16 || find_image(d, slot->instance))
		return;
	d->nesting++;
	for (int k = 0; k < 2; k++)
		if (before[k].instance && before[k].slot < d->nr_slots && before[k].slot != i &&
		    d->slots[before[k].slot].instance == before[k].instance &&
		    !find_image(d, before[k].instance))
			drain_slot(d, before[k].slot);
	d->nesting--;
}

static int drain_slot(struct drain *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct local *local = know_slot(d, i);
	uint32_t epoch = local->epoch;
	int ret = 0, size;
	uint64_t head;

	introduce(d, i);
	head = atomic_load_explicit(&slot->head, memory_order_acquire);
	/* Did another thread take the slot meanwhile? Next time. */
	if (atomic_load_explicit(&slot->epoch, memory_order_acquire) != epoch)
		return 0;
	while (head != local->tail) {
		size = head - local->tail > d->ring_size ?
			       -EINVAL :
			       copy_record(d, i, local->tail, head, d->record);
		if (size > 0) {
			local->tail += size;
			ret = take_record(d, i, (const void *)d->record);
		}
		if (size < 0 || ret == -EINVAL) {
			d->damaged++;
			local->tail = head;
			ret = 0;
		}
		atomic_store_explicit(&slot->tail, local->tail, memory_order_release);
		local->freed = local->tail;
		if (ret)
			return ret;
	}
	take_counts(d, i);
	return 0;
}

/*
 * The recording, or the process, ends while a thread waits: its sample lies behind the
 * records, and is as old as what it waits for. Nobody takes the slot meanwhile, but the
 * thread may wake up.
 */
static int take_wait(struct drain *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct rec_sample *s = (void *)d->record;
	uint64_t since = atomic_load_explicit(&slot->wait_since, memory_order_acquire);
	uint64_t head = atomic_load(&slot->head), until = atomic_load(&slot->wait_until);
	int size, ret;

	if (!since)
		return 0;
	size = copy_record(d, i, head, head + d->ring_size, d->record);
	if (atomic_load(&slot->wait_since) != since || atomic_load(&slot->head) != head)
		return 0;
	if (!until)
		until = now_ns(CLOCK_MONOTONIC);
	if (size < (int)sizeof(*s) || s->record.type != REC_SAMPLE || until < since ||
	    until - since > now_ns(CLOCK_MONOTONIC) - d->started) {
		d->damaged++;
		return 0;
	}
	s->weight = until - since;
	ret = take_record(d, i, &s->record);
	if (ret != -EINVAL)
		return ret;
	d->damaged++;
	return 0;
}

static void free_slot(struct drain *d, uint32_t i)
{
	d->local[i].known = false;
	/* Big bursts do not keep their memory. */
	if (d->local[i].tail > 65536)
		fallocate(d->memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  d->rings - (uint8_t *)d->header + (uint64_t)i * d->ring_size,
			  d->ring_size);
	atomic_store_explicit(&d->slots[i].owner, REC_FREE, memory_order_release);
}

/*
 * A process used @ns after its agent had left it. Whole periods are charged, one more by
 * chance for the rest, so that many short ones count rightly.
 */
static void take_exit(void *arg, uint32_t instance, uint64_t ns)
{
	struct drain *d = arg;
	struct image *image = find_image(d, instance);
	uint64_t periods = (ns + (uint64_t)random() % d->period) / d->period;
	int64_t values[2] = { 1, periods * d->period };
	struct shstk_sample sample = {
		.end = SHSTK_END_COMPLETE,
		.note = SHSTK_NOTE_EXIT,
		.time = now_ns(CLOCK_MONOTONIC),
		.values = values,
	};

	if (!image || !periods || ns > MAX_EXIT)
		return;
	sample.proc = image->proc;
	sample.tid = image->pid;
	sample.comm = image->comm;
	if (shstk_profile_add(d->profile, &sample))
		return;
	d->samples++;
	d->weight += values[1];
}

int drain_rings(struct drain *d)
{
	uint32_t high = slots_used(d);
	int ret;

	d->pass++;
	take_execs(d);
	for (uint32_t i = 0; i < high; i++) {
		int state = REC_OWNER_STATE(
			atomic_load_explicit(&d->slots[i].owner, memory_order_acquire));

		if (state != REC_ACTIVE && state != REC_DYING)
			continue;
		ret = drain_slot(d, i);
		if (ret)
			return ret;
		if (state == REC_DYING) {
			take_wait(d, i);
			free_slot(d, i);
		}
	}
	forget_old_texts(d);
	if (d->ledger)
		ledger_settle(d->ledger, take_exit, d);
	return 0;
}

static bool process_ended(int pid)
{
	return pid <= 0 || (kill(pid, 0) && errno == ESRCH);
}

static void free_dead(struct drain *d)
{
	uint32_t high = slots_used(d);

	for (uint32_t i = 0; i < high; i++) {
		uint64_t owner = atomic_load(&d->slots[i].owner);

		if (!owner || !process_ended(REC_OWNER_PID(owner)))
			continue;
		if (!drain_slot(d, i))
			take_wait(d, i);
		if (atomic_load(&d->slots[i].owner) == owner)
			free_slot(d, i);
	}
}

static unsigned int count_slots(struct drain *d, uint32_t instance, int *signo, int *tid)
{
	uint32_t high = slots_used(d);
	unsigned int nr = 0;

	for (uint32_t i = 0; i < high; i++) {
		struct rec_slot *slot = &d->slots[i];
		int state = REC_OWNER_STATE(atomic_load(&slot->owner));

		if (slot->instance != instance || (state != REC_TAKEN && state != REC_ACTIVE))
			continue;
		nr++;
		if (state == REC_ACTIVE) {
			*signo = slot->signo;
			/* The first thread, if it lives, is the least harmed. */
			if (!*tid || (int)slot->tid < *tid)
				*tid = slot->tid;
		}
	}
	return nr;
}

static unsigned int count_threads(int pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &st) || st.st_nlink < 3 ? 0 : st.st_nlink - 2;
}

/*
 * Is this process one that the agent entered? The process ID is only what the
 * shared memory says, and this command may be allowed to signal more.
 */
static bool maps_our_memory(const struct drain *d, int pid)
{
	static const char memory[] = "/memfd:" MEMORY_NAME;
	struct mapping m;
	struct maps maps;
	bool found = false;
	struct stat st;

	if (fstat(d->memory.fd, &st) || maps_open(pid, "maps", &maps))
		return false;
	while (!found && maps_next(&maps, &m))
		found = m.inode == st.st_ino && !strncmp(m.path, memory, sizeof(memory) - 1);
	maps_close(&maps);
	return found;
}

/* Asks a thread of the process to look for threads that did not register. */
static void ask_scan(struct drain *d, struct image *image, int signo, int tid)
{
	siginfo_t si = { .si_signo = signo, .si_code = SI_QUEUE };

	si.si_pid = getpid();
	si.si_uid = getuid();
	si.si_value.sival_ptr = (void *)(uintptr_t)d->header->cookie;
	syscall(SYS_rt_tgsigqueueinfo, image->pid, tid, signo, &si);
	image->asked++;
	image->missing = 0;
}

static void watch_threads(struct drain *d, struct image *image)
{
	unsigned int threads = count_threads(image->pid);
	int signo = 0, tid = 0;

	/* Two looks must agree: threads come and go. Then ever less often. */
	if (!threads || threads <= count_slots(d, image->instance, &signo, &tid)) {
		image->missing = 0;
		return;
	}
	if (++image->missing < 2u << (image->asked < 8 ? image->asked : 8))
		return;
	if (signo >= SIGRTMIN && signo <= SIGRTMAX && tid > 0 && maps_our_memory(d, image->pid))
		ask_scan(d, image, signo, tid);
}

void drain_watch(struct drain *d)
{
	free_dead(d);
	if (d->ledger)
		ledger_watch(d->ledger);
	for (int i = 0; i < BUCKETS; i++) {
		for (struct image *image = d->images[i]; image; image = image->next) {
			if (image->dead)
				continue;
			if (process_ended(image->pid))
				image->dead = true;
			else
				watch_threads(d, image);
		}
	}
}

void drain_reaped(struct drain *d, int pid, uint64_t cpu)
{
	if (d->ledger)
		ledger_reaped(d->ledger, pid, cpu, "the command");
}

void drain_gaps(struct drain *d, void (*fn)(void *arg, const struct ledger_gap *gap), void *arg)
{
	if (d->ledger)
		ledger_gaps(d->ledger, atomic_load(&d->header->foreign), fn, arg);
}

int drain_stop(struct drain *d)
{
	int ret;

	atomic_store(&d->header->stop, 1);
	ret = drain_rings(d);
	for (uint32_t i = 0; !ret && i < slots_used(d); i++)
		if (atomic_load(&d->slots[i].owner))
			ret = drain_slot(d, i) ?: take_wait(d, i);
	/* Twice: the ledger settles what was waited for before the previous pass. */
	for (int k = 0; d->ledger && k < 2; k++)
		ledger_settle(d->ledger, take_exit, d);
	return ret;
}

void drain_alive(struct drain *d, void (*fn)(void *arg, int pid), void *arg)
{
	for (uint32_t i = 0; i < slots_used(d); i++) {
		uint64_t owner = atomic_load(&d->slots[i].owner);

		if (REC_OWNER_STATE(owner) == REC_ACTIVE &&
		    d->slots[i].tid == (uint32_t)REC_OWNER_PID(owner) &&
		    !process_ended(REC_OWNER_PID(owner)))
			fn(arg, REC_OWNER_PID(owner));
	}
}

void drain_count(const struct drain *d, struct drain_counts *ret)
{
	const struct rec_header *h = d->header;

	*ret = (struct drain_counts){
		.samples = d->samples,
		.weight = d->weight,
		.late = d->late,
		.truncated = d->truncated,
		.lost = d->lost,
		.lost_weight = d->lost_weight,
		.lost_threads = d->lost_threads,
		.threads = atomic_load(&h->threads),
		.processes = atomic_load(&h->instances),
		.images = d->nr_execs,
		.no_slot = atomic_load(&h->no_slot),
		.beyond = d->beyond,
		.no_timer = atomic_load(&h->no_timer),
		.sandboxed = atomic_load(&h->sandboxed),
		.damaged = d->damaged,
		.stretch = atomic_load(&h->stretch),
		.same = atomic_load(&h->same),
		.later = atomic_load(&h->later),
		.differ = atomic_load(&h->differ),
		.unchecked = atomic_load(&h->unchecked),
	};
}

void drain_lost(const struct drain *d,
		void (*fn)(void *arg, int pid, int tid, const char *comm, uint64_t lost,
			   uint64_t taken),
		void *arg)
{
	for (const struct loser *l = d->losers; l; l = l->next)
		fn(arg, l->pid, l->tid, l->comm, l->lost, l->taken);
}
