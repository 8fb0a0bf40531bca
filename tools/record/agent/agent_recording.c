// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * agent_recording.c - the recorder's view of the memory that it shares with the agents: takes the
 * records of all rings and adds their samples to the profile.
 *
 * Everything that is read from that memory may be wrong (tools/inject/agent/ring.h). A record is
 * therefore copied first and then checked, and a ring with invalid content is skipped to its end
 * and counted.
 *
 * Each process image (struct process_image) has its mappings in the symboliser. They are filled
 * from the agent's maps records, copied at fork, and read from /proc/PID/maps whenever a sample has
 * an address that is not known yet. Addresses are tied to their file at once, so it does not matter
 * what the process maps later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "libshstk/shstk.h"
#include "tools/proc/about.h"
#include "tools/proc/tasks.h"
#include "tools/record/agent/agent_recording_private.h"
#include "tools/record/agent/ledger.h"
#include "tools/shstk.h"

#define MAX_LOSERS 65536
#define MAX_EXIT 1000000000000ull /* ns that the exit of a process may take */

int agent_recording_create(const struct agent_recording_opts *opts, struct shstk_symbols *symbols,
			   struct shstk_profile *profile, struct agent_recording **ret)
{
	struct agent_recording *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->symbols = symbols;
	d->profile = profile;
	d->period = opts->period;
	d->labels = opts->labels;
	d->fold = opts->fold;
	d->started = now_ns(CLOCK_MONOTONIC);
	err = agent_recording_map_memory(d, opts);
	if (!err && opts->clock == REC_CLOCK_CPU) {
		d->ledger = ledger_create();
		err = d->ledger ? 0 : -ENOMEM;
	}
	if (err) {
		agent_recording_destroy(d);
		return err;
	}
	if (opts->keep_times)
		shstk_profile_keep_times(profile, opts->keep_times);
	*ret = d;
	return 0;
}

void agent_recording_destroy(struct agent_recording *d)
{
	struct process_image *image, *next;

	if (!d)
		return;
	HASH_ITER(hh, d->images, image, next)
	{
		HASH_DEL(d->images, image);
		free(image);
	}
	for (int i = 0; i < AGENT_RECORDING_SLOTS; i++)
		free(d->progress[i].text);
	while (d->texts) {
		struct maps_text *t = d->texts;

		d->texts = t->next;
		free(t);
	}
	while (d->losers) {
		struct loser *l = d->losers;

		d->losers = l->next;
		free(l);
	}
	agent_recording_forget_lives(d);
	ledger_destroy(d->ledger);
	agent_functions_destroy(d->functions);
	if (d->header)
		munmap(d->header, d->size);
	shared_memory_destroy(&d->memory);
	free(d);
}

unsigned int agent_recording_most(const struct agent_recording *d)
{
	return d->most;
}

uint64_t agent_recording_shared(const struct agent_recording *d)
{
	return shared_memory_filled(&d->memory);
}

const char *agent_recording_env(const struct agent_recording *d)
{
	return d->memory.env;
}

static struct process_image *find_image(struct agent_recording *d, uint32_t instance)
{
	struct process_image *image;

	HASH_FIND(hh, d->images, &instance, sizeof(instance), image);
	return image;
}

static struct process_image *add_image(struct agent_recording *d, uint32_t instance, int pid,
				       struct process_image *parent)
{
	struct process_image *image;
	char labels[ABOUT_MAX];
	int err;

	if (d->nr_images >= AGENT_RECORDING_MAX_PROCESSES || pid <= 0)
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	if (parent)
		err = shstk_symproc_fork(parent->proc, pid, &image->proc);
	else
		err = shstk_symproc_create(d->symbols, pid, &image->proc);
	if (!err && d->labels)
		err = shstk_symproc_set_labels(image->proc, labels, about_process(pid, labels));
	if (err) {
		free(image);
		return NULL;
	}
	image->instance = instance;
	image->pid = pid;
	image->number = d->nr_images;
	HASH_ADD(hh, d->images, instance, sizeof(instance), image);
	if (!image->hh.tbl) {
		free(image);
		return NULL;
	}
	d->nr_images++;
	if (!parent)
		d->nr_execs++;
	return image;
}

/*
 * Handles a record for which there is no image: if the number of images is at its limit, it is
 * counted and left out. Returns 0, -EINVAL or -ENOMEM.
 */
static int leave_out(struct agent_recording *d, const struct rec_slot *slot)
{
	if (REC_OWNER_PID(atomic_load(&slot->owner)) <= 0)
		return -EINVAL;
	if (d->nr_images < AGENT_RECORDING_MAX_PROCESSES)
		return -ENOMEM;
	d->left_out++;
	return 0;
}

static struct process_image *slot_image(struct agent_recording *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct process_image *image = find_image(d, slot->instance);

	if (image)
		return image;
	/* The start record was lost: use the mappings that /proc shows now. */
	image = add_image(d, slot->instance, REC_OWNER_PID(atomic_load(&slot->owner)),
			  find_image(d, slot->parent));
	if (image)
		process_image_read_maps(image);
	return image;
}

/*
 * Tells the ledger which programs are about to be executed. Must run before the agents' records are
 * read, because the ledger has to know of an exec before it hears from the new image.
 */
static void take_execs(struct agent_recording *d)
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

static void take_end(struct agent_recording *d, const struct process_image *image,
		     const struct rec_end *end)
{
	if (end->record.size < sizeof(*end))
		return;
	agent_recording_left(d, image->pid, end->time, image->comm);
	if (d->ledger)
		ledger_ended(d->ledger, image->pid, end->self, end->children);
}

static void take_reaped(struct agent_recording *d, const struct process_image *image,
			const struct rec_reaped *reaped)
{
	if (reaped->record.size >= sizeof(*reaped) && d->ledger)
		ledger_reaped(d->ledger, reaped->pid, reaped->cpu, image->comm);
}

static int take_start(struct agent_recording *d, const struct rec_slot *slot,
		      const struct rec_start *start)
{
	char name[REC_COMM];

	if (start->record.size < sizeof(*start) || find_image(d, slot->instance))
		return 0;
	take_execs(d);
	if (d->ledger)
		ledger_started(d->ledger, start->pid, start->parent_pid, slot->instance);
	if (!add_image(d, slot->instance, start->pid,
		       start->parent ? find_image(d, start->parent) : NULL))
		return 0;
	shared_memory_name(name, slot->comm);
	return agent_recording_began(d, start, name);
}

/*
 * Adds to the profile, without a stack, the @late ns of a sample's time that no known stack stands
 * for.
 */
static int add_late(struct agent_recording *d, const struct shstk_sample *of, uint64_t late)
{
	int64_t values[2] = { 0, late };
	struct shstk_sample sample = *of;

	sample.nr = 0;
	sample.end = SHSTK_END_COMPLETE;
	sample.note = SHSTK_NOTE_TICKS;
	sample.values = values;
	return shstk_profile_add(d->profile, &sample);
}

static int take_sample(struct agent_recording *d, const struct rec_slot *slot,
		       struct process_image *image, struct rec_sample *s)
{
	static const int notes[] = {
		[REC_PLACE_STACK] = SHSTK_NOTE_NONE,	[REC_PLACE_TICKS] = SHSTK_NOTE_TICKS,
		[REC_PLACE_LOADER] = SHSTK_NOTE_LOADER, [REC_PLACE_HELD] = SHSTK_NOTE_HELD,
		[REC_PLACE_KERNEL] = SHSTK_NOTE_KERNEL,
	};
	struct shstk_sample sample;
	struct agent_stack stack;
	int64_t values[2];
	char comm[REC_COMM];
	uint64_t late;
	int ret;

	if (s->record.size < sizeof(*s) || s->record.flags > REC_PLACE_KERNEL ||
	    s->nr > d->max_depth || s->labels > REC_MAX_LABELS ||
	    rec_sample_size(s->nr, s->labels) != agent_recording_native_size(s) ||
	    s->weight > INT64_MAX / 2)
		return -EINVAL;
	agent_recording_set_maps(d, image, s);
	agent_recording_place(d, image, s, &stack);
	late = s->late * d->period < s->weight ? s->late * d->period : s->weight;
	shared_memory_name(comm, slot->comm);
	values[0] = 1;
	values[1] = s->weight - late;
	sample = (struct shstk_sample){
		.proc = image->proc,
		.tid = slot->tid,
		.comm = comm,
		.pcs = stack.pcs,
		.marks = stack.marks,
		.nr = stack.nr,
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
	d->folded += s->folded || stack.folded;
	ret = shstk_profile_add(d->profile, &sample);
	return ret || !late ? ret : add_late(d, &sample, late);
}

/* Takes a record of what Python runs. Returns 0, -EINVAL or -ENOMEM. */
static int take_python(struct agent_recording *d, uint32_t i, struct rec_record *record)
{
	struct process_image *image = slot_image(d, i);
	void *whole = record;

	if (!image)
		return leave_out(d, &d->slots[i]);
	return record->type == REC_PYTHON ? agent_recording_take_python(d, image, whole) :
					    agent_recording_take_code(d, image, whole);
}

static int take_record(struct agent_recording *d, uint32_t i, struct rec_record *record)
{
	const struct rec_slot *slot = &d->slots[i];
	void *whole = record;
	struct process_image *image;

	switch (record->type) {
	case REC_PAD:
		return 0;
	case REC_START:
		return take_start(d, slot, whole);
	case REC_MAPS:
		image = slot_image(d, i);
		if (image)
			agent_recording_take_maps(d, image, whole);
		return 0;
	case REC_SAMPLE:
		image = slot_image(d, i);
		if (!image)
			return leave_out(d, slot);
		return take_sample(d, slot, image, whole);
	case REC_PYTHON:
	case REC_CODE:
		return take_python(d, i, record);
	case REC_END:
	case REC_REAPED:
		image = slot_image(d, i);
		if (!image)
			return leave_out(d, slot);
		shared_memory_name(image->comm, slot->comm);
		if (record->type == REC_END)
			take_end(d, image, whole);
		else
			take_reaped(d, image, whole);
		return 0;
	default:
		return -EINVAL;
	}
}

static void note_lost(struct agent_recording *d, uint32_t i, uint64_t lost, uint64_t taken)
{
	struct rec_slot *slot = &d->slots[i];
	struct slot_progress *progress = &d->progress[i];
	struct loser *l = d->losers;

	while (l && (l->slot != i || l->epoch != progress->epoch))
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
		l->epoch = progress->epoch;
		l->thread.pid = REC_OWNER_PID(atomic_load(&slot->owner));
		l->thread.tid = slot->tid;
	}
	shared_memory_name(l->thread.comm, slot->comm);
	/* The name is for a terminal: bytes that are not ASCII may have any effect there. */
	for (char *c = l->thread.comm; *c; c++)
		if (*c & 0x80)
			*c = '?';
	l->thread.lost = lost;
	l->thread.taken = taken;
}

static void take_counts(struct agent_recording *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct slot_progress *progress = &d->progress[i];
	uint64_t lost = atomic_load(&slot->lost);
	uint64_t weight = atomic_load(&slot->lost_weight);

	if (lost == progress->lost)
		return;
	d->lost += lost - progress->lost;
	d->lost_weight += weight - progress->lost_weight;
	progress->lost = lost;
	progress->lost_weight = weight;
	note_lost(d, i, lost, atomic_load(&slot->taken));
}

static int take_slot(struct agent_recording *d, uint32_t i);

/*
 * Takes the records that introduce the process of slot @i and the process it was forked from,
 * before those of the slot itself. They may lie in slots that come later in the array.
 */
static void introduce(struct agent_recording *d, uint32_t i)
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
			take_slot(d, before[k].slot);
	d->nesting--;
}

/* Notes when the process of a slot began to end, if the slot says so. */
static void take_until(struct agent_recording *d, const struct rec_slot *slot)
{
	const uint64_t until = atomic_load(&slot->wait_until);
	const struct process_image *image = until ? find_image(d, slot->instance) : NULL;
	char name[REC_COMM];

	if (!image)
		return;
	shared_memory_name(name, slot->comm);
	agent_recording_left(d, image->pid, until, slot->tid == (uint32_t)image->pid ? name : NULL);
}

static int take_slot(struct agent_recording *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct slot_progress *progress = agent_recording_slot(d, i);
	uint32_t epoch = progress->epoch;
	int ret = 0, size;
	uint64_t head;

	introduce(d, i);
	head = atomic_load_explicit(&slot->head, memory_order_acquire);
	/* If another thread took the slot meanwhile, its records are taken in the next pass. */
	if (atomic_load_explicit(&slot->epoch, memory_order_acquire) != epoch)
		return 0;
	while (head != progress->tail) {
		size = head - progress->tail > d->ring_size ?
			       -EINVAL :
			       agent_recording_copy_record(d, i, progress->tail, head, d->record);
		if (size > 0) {
			progress->tail += size;
			ret = take_record(d, i, (void *)d->record);
		}
		if (size < 0 || ret == -EINVAL) {
			d->damaged++;
			progress->tail = head;
			ret = 0;
		}
		atomic_store_explicit(&slot->tail, progress->tail, memory_order_release);
		progress->freed = progress->tail;
		if (ret)
			return ret;
	}
	take_counts(d, i);
	take_until(d, slot);
	return 0;
}

/*
 * Takes the sample of a thread that still waits while the recording, or its process, ends. The
 * sample lies behind the records and lasts since the wait began. Nobody takes the slot meanwhile,
 * but the thread may wake up.
 */
static int take_wait(struct agent_recording *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct rec_sample *s = (void *)d->record;
	uint64_t since = atomic_load_explicit(&slot->wait_since, memory_order_acquire);
	uint64_t head = atomic_load(&slot->head), until = atomic_load(&slot->wait_until);
	int size, ret;

	if (!since)
		return 0;
	size = agent_recording_copy_record(d, i, head, head + d->ring_size, d->record);
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

/* Adds @ns of the process, in no stack but what @note says of it. */
static int add_place(struct agent_recording *d, struct process_image *image, int note, uint64_t ns)
{
	int64_t values[2] = { 1, ns };
	struct shstk_sample sample = {
		.proc = image->proc,
		.tid = image->pid,
		.comm = image->comm,
		.end = SHSTK_END_COMPLETE,
		.note = note,
		.time = now_ns(CLOCK_MONOTONIC),
		.values = values,
	};
	int ret = shstk_profile_add(d->profile, &sample);

	if (ret)
		return ret;
	d->samples++;
	d->weight += ns;
	return 0;
}

/*
 * Takes what ended threads left to be shared, while the recording ends, or their process has ended
 * and shares nothing any more.
 */
static int take_rest(struct agent_recording *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	uint64_t kernel = atomic_exchange(&slot->kernel_rest, 0);
	uint64_t ticks = atomic_exchange(&slot->ticks_rest, 0);
	struct process_image *image = slot->start_slot == i ? find_image(d, slot->instance) : NULL;
	int ret = 0;

	if (!image || kernel > MAX_EXIT || ticks > MAX_EXIT)
		return 0;
	shared_memory_name(image->comm, slot->comm);
	if (kernel)
		ret = add_place(d, image, SHSTK_NOTE_KERNEL, kernel);
	if (ret || !ticks)
		return ret;
	d->late += ticks;
	return add_place(d, image, SHSTK_NOTE_TICKS, ticks);
}

/* Takes all of a slot whose process, or the recording, has ended. */
static int take_last(struct agent_recording *d, uint32_t i)
{
	return take_slot(d, i) ?: take_wait(d, i) ?: take_rest(d, i);
}

static void free_slot(struct agent_recording *d, uint32_t i)
{
	d->progress[i].known = false;
	/* Give the memory of a large burst back. */
	if (d->progress[i].tail > 65536)
		fallocate(d->memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  d->rings - (uint8_t *)d->header + (uint64_t)i * d->ring_size,
			  d->ring_size);
	atomic_store_explicit(&d->slots[i].owner, REC_FREE, memory_order_release);
}

/*
 * Adds the @ns of CPU time that a process used after its agent had left it. Whole periods are
 * charged, and the rest as one more period by chance, so that the sum over many short exits is
 * right.
 */
static void take_exit(void *arg, uint32_t instance, uint64_t ns)
{
	struct agent_recording *d = arg;
	struct process_image *image = find_image(d, instance);
	uint64_t periods = (ns + (uint64_t)random() % d->period) / d->period;

	if (image && periods && ns <= MAX_EXIT)
		add_place(d, image, SHSTK_NOTE_EXIT, periods * d->period);
}

int agent_recording_take(struct agent_recording *d)
{
	const uint64_t begin = now_ns(CLOCK_MONOTONIC);
	uint32_t high = agent_recording_slots_used(d);
	int ret;

	d->pass++;
	take_execs(d);
	for (uint32_t i = 0; i < high; i++) {
		int state = REC_OWNER_STATE(
			atomic_load_explicit(&d->slots[i].owner, memory_order_acquire));

		if (state != REC_ACTIVE && state != REC_DYING)
			continue;
		ret = take_slot(d, i);
		if (ret)
			return ret;
		if (state == REC_DYING) {
			take_wait(d, i);
			free_slot(d, i);
		}
	}
	agent_recording_forget_old_texts(d);
	if (d->ledger)
		ledger_settle(d->ledger, take_exit, d);
	return agent_recording_tell_lives(d, begin);
}

void agent_recording_free_dead(struct agent_recording *d)
{
	uint32_t high = agent_recording_slots_used(d);

	for (uint32_t i = 0; i < high; i++) {
		uint64_t owner = atomic_load(&d->slots[i].owner);

		if (!owner || !process_gone(REC_OWNER_PID(owner)))
			continue;
		take_last(d, i);
		if (atomic_load(&d->slots[i].owner) == owner)
			free_slot(d, i);
	}
}

void agent_recording_reaped(struct agent_recording *d, int pid, uint64_t cpu)
{
	if (d->ledger)
		ledger_reaped(d->ledger, pid, cpu, "the command");
}

void agent_recording_gaps(struct agent_recording *d,
			  void (*fn)(void *arg, const struct ledger_gap *gap), void *arg)
{
	if (d->ledger)
		ledger_gaps(d->ledger, atomic_load(&d->header->foreign), fn, arg);
}

int agent_recording_stop(struct agent_recording *d)
{
	int ret;

	atomic_store(&d->header->stop, 1);
	agent_recording_see_gone(d);
	ret = agent_recording_take(d);
	for (uint32_t i = 0; !ret && i < agent_recording_slots_used(d); i++)
		if (atomic_load(&d->slots[i].owner))
			ret = take_last(d, i);
	/* Twice, because the ledger settles only what was reaped before the previous pass. */
	for (int k = 0; d->ledger && k < 2; k++)
		ledger_settle(d->ledger, take_exit, d);
	return ret ? ret : agent_recording_tell_lives(d, UINT64_MAX);
}

void agent_recording_alive(struct agent_recording *d, void (*fn)(void *arg, int pid), void *arg)
{
	for (uint32_t i = 0; i < agent_recording_slots_used(d); i++) {
		uint64_t owner = atomic_load(&d->slots[i].owner);

		if (REC_OWNER_STATE(owner) == REC_ACTIVE &&
		    d->slots[i].tid == (uint32_t)REC_OWNER_PID(owner) &&
		    !process_gone(REC_OWNER_PID(owner)))
			fn(arg, REC_OWNER_PID(owner));
	}
}

void agent_recording_count(const struct agent_recording *d, struct sample_counts *ret)
{
	const struct rec_header *h = d->header;

	*ret = (struct sample_counts){
		.samples = d->samples,
		.weight = d->weight,
		.late = d->late,
		.truncated = d->truncated,
		.folded = d->folded,
		.lost = d->lost,
		.lost_weight = d->lost_weight,
		.lost_threads = d->lost_threads,
		.threads = atomic_load(&h->threads),
		.processes = atomic_load(&h->instances),
		.images = d->nr_execs,
		.no_slot = atomic_load(&h->no_slot),
		.left_out = d->left_out,
		.no_timer = atomic_load(&h->no_timer),
		.sandboxed = atomic_load(&h->sandboxed),
		.damaged = d->damaged,
		.stretch = atomic_load(&h->stretch),
		.refused = agent_functions_refused(d->functions),
	};
	agent_functions_count(d->functions, &ret->interpreted);
	ret->interpreted.samples += d->unread;
}

void agent_recording_lost(const struct agent_recording *d,
			  void (*fn)(void *arg, const struct lossy_thread *l), void *arg)
{
	for (const struct loser *l = d->losers; l; l = l->next)
		fn(arg, &l->thread);
}
