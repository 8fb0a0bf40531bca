// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * agent_recording_maps.c - knows what was mapped in a process when a sample was taken. See
 * agent_recording_private.h.
 *
 * When the recorder comes to a sample, the process may be gone, or may have closed a library and
 * opened another one in its place. The agent sends what is mapped before that happens, but this
 * record lies in some ring behind the sample. So the rings are searched ahead of what is taken, and
 * the texts are kept for as long as an older sample may come (struct maps_text).
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/record/agent/agent_recording_private.h"
#include "tools/shstk.h"

#define MAX_TEXTS 4096 /* maps texts that are kept at a time, at most */
#define MAX_TEXT_BYTES (64u << 20) /* bytes of kept maps texts, at most */
#define READ_INTERVAL 20000000 /* ns between two reads of /proc/PID/maps */
#define LOADING 1000000000 /* ns that loading a library may take */

bool process_image_read_maps(struct process_image *image)
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

/*
 * Returns @t, which may be NULL, with the text of a record appended. Frees @t and returns NULL if
 * there is no room.
 */
static struct maps_text *extend_text(struct agent_recording *d, struct maps_text *t,
				     const struct rec_maps *m)
{
	size_t size = t ? t->size : 0;
	struct maps_text *longer = NULL;

	if (d->text_bytes + m->bytes <= MAX_TEXT_BYTES)
		longer = realloc(t, sizeof(*t) + size + m->bytes);
	if (!longer) {
		agent_recording_forget_text(d, t);
		return NULL;
	}
	memcpy(longer->bytes + size, m->text, m->bytes);
	longer->size = size + m->bytes;
	d->text_bytes += m->bytes;
	return longer;
}

static void add_text(struct agent_recording *d, struct slot_progress *progress, uint32_t instance,
		     const struct rec_maps *m)
{
	struct maps_text *t = progress->text;

	if (m->record.size < sizeof(*m) || m->bytes > m->record.size - sizeof(*m))
		return;
	if (m->record.flags & REC_MAPS_FIRST) {
		agent_recording_forget_text(d, t);
		t = extend_text(d, NULL, m);
	} else if (t) {
		t = extend_text(d, t, m);
	}
	progress->text = t;
	if (!t || !(m->record.flags & REC_MAPS_LAST) || d->nr_texts >= MAX_TEXTS)
		return;
	progress->text = NULL;
	t->instance = instance;
	t->time = m->time;
	t->pass = d->pass;
	t->next = d->texts;
	d->texts = t;
	d->nr_texts++;
}

/* Takes a record before its turn, if others may need it earlier. */
static void take_ahead(struct agent_recording *d, uint32_t i, struct rec_record *record)
{
	const uint32_t instance = d->slots[i].instance;
	struct process_image *image;

	if (record->type == REC_MAPS)
		add_text(d, &d->progress[i], instance, (const void *)record);
	if (record->type != REC_PYTHON && record->type != REC_CODE)
		return;
	HASH_FIND(hh, d->images, &instance, sizeof(instance), image);
	if (!image)
		return;
	/* Without memory, it is taken in its turn. */
	if (record->type == REC_PYTHON)
		agent_recording_take_python(d, image, (const void *)record);
	else
		agent_recording_take_code(d, image, (void *)record);
}

static void look_ahead_in(struct agent_recording *d, uint32_t i)
{
	struct rec_slot *slot = &d->slots[i];
	struct slot_progress *progress = agent_recording_slot(d, i);
	uint64_t head = atomic_load_explicit(&slot->head, memory_order_acquire);
	uint64_t at = progress->ahead > progress->freed ? progress->ahead : progress->freed;
	int size;

	if (atomic_load_explicit(&slot->epoch, memory_order_acquire) != progress->epoch ||
	    head - at > d->ring_size)
		return;
	for (; at != head; at += size) {
		size = agent_recording_copy_record(d, i, at, head, d->ahead);
		if (size < 0)
			break;
		take_ahead(d, i, (void *)d->ahead);
	}
	progress->ahead = at;
}

void agent_recording_look_ahead(struct agent_recording *d)
{
	uint32_t high = agent_recording_slots_used(d);

	for (uint32_t i = 0; i < high; i++) {
		int state = REC_OWNER_STATE(
			atomic_load_explicit(&d->slots[i].owner, memory_order_acquire));

		if (state == REC_ACTIVE || state == REC_DYING)
			look_ahead_in(d, i);
	}
}

void agent_recording_forget_old_texts(struct agent_recording *d)
{
	for (struct maps_text **at = &d->texts; *at;) {
		struct maps_text *t = *at;

		if (t->pass == d->pass) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		d->nr_texts--;
		agent_recording_forget_text(d, t);
	}
}

/* Returns the oldest text of @instance that was read at @time or later, or NULL. */
static const struct maps_text *text_since(const struct agent_recording *d, uint32_t instance,
					  uint64_t time)
{
	const struct maps_text *found = NULL;

	for (const struct maps_text *t = d->texts; t; t = t->next)
		if (t->instance == instance && t->time >= time && (!found || t->time < found->time))
			found = t;
	return found;
}

static const struct maps_text *newest_text(const struct agent_recording *d, uint32_t instance)
{
	const struct maps_text *found = NULL;

	for (const struct maps_text *t = d->texts; t; t = t->next)
		if (t->instance == instance && (!found || t->time > found->time))
			found = t;
	return found;
}

static void use_text(struct process_image *image, const struct maps_text *t)
{
	if (t->time == image->mapped_at)
		return;
	shstk_symproc_set_maps(image->proc, t->bytes, t->size);
	image->mapped_at = t->time;
}

void agent_recording_take_maps(struct agent_recording *d, struct process_image *image,
			       const struct rec_maps *m)
{
	const struct maps_text *t;

	agent_recording_look_ahead(d);
	if (m->record.size < sizeof(*m) || !(m->record.flags & REC_MAPS_LAST) ||
	    m->time <= image->mapped_at)
		return;
	t = text_since(d, image->instance, m->time);
	if (t && t->time == m->time)
		use_text(image, t);
}

/* Sets the mappings of @image to those at @time. */
static void set_maps_at(struct agent_recording *d, struct process_image *image, uint64_t time)
{
	const struct maps_text *t = text_since(d, image->instance, time);

	if (!t && process_image_read_maps(image)) {
		/* Something may have been unmapped between the sample and this read. */
		agent_recording_look_ahead(d);
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

static bool unknown_address(struct process_image *image, const struct rec_sample *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (shstk_symproc_find(image->proc, s->pcs[i] - !!i)->kind == SHSTK_SYMMAP_NONE)
			return true;
	return false;
}

/*
 * Returns whether a library may have been loaded at the address of another one. A sample tells only
 * that dlopen() was called, so the mappings are looked at for a while after that.
 */
static bool may_have_loaded(struct process_image *image, const struct rec_sample *s)
{
	if (s->opens != image->opens) {
		image->opens = s->opens;
		image->open_seen = now_ns(CLOCK_MONOTONIC);
		image->last_read = 0;
		return true;
	}
	return image->open_seen && now_ns(CLOCK_MONOTONIC) - image->open_seen < LOADING;
}

void agent_recording_set_maps(struct agent_recording *d, struct process_image *image,
			      const struct rec_sample *s)
{
	if (unknown_address(image, s) || may_have_loaded(image, s))
		set_maps_at(d, image, s->time);
}
