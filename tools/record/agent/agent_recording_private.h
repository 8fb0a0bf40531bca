/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agent_recording_private.h - what the files of a recording by agents share: its state, and
 * functions that they call of each other.
 */
#ifndef TOOLS_RECORD_AGENT_AGENT_RECORDING_PRIVATE_H
#define TOOLS_RECORD_AGENT_AGENT_RECORDING_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "tools/inject/agent/ring.h"
#include "tools/record/agent/agent_recording.h"
#include "tools/record/agent/shared_memory.h"
#include "tools/record/agent_functions.h"

#define AGENT_RECORDING_MEMORY "shstk-record"
#define AGENT_RECORDING_SLOTS 4096
#define AGENT_RECORDING_MAX_RECORD 131072

/**
 * struct maps_text - the mappings of a process, as its agent sent them
 * @next: another text, mostly older.
 * @instance: number of the process image.
 * @time: CLOCK_MONOTONIC in ns, when the agent read it.
 * @pass: the pass over the rings in which it was found.
 * @size: bytes in @bytes.
 * @bytes: lines of /proc/PID/maps.
 */
struct maps_text {
	struct maps_text *next;
	uint32_t instance;
	uint64_t time;
	unsigned int pass;
	size_t size;
	char bytes[];
};

/**
 * struct process_image - a process from a fork or exec on
 * @hh: makes it a member of the hash table, by @instance.
 * @instance: its number in the shared memory, which the agent drew and which slots name.
 * @pid: process ID.
 * @proc: its mappings in the symboliser.
 * @mapped_at: CLOCK_MONOTONIC in ns, the time whose mappings @proc has.
 * @last_read: CLOCK_MONOTONIC in ns, when /proc/PID/maps was last read.
 * @open_seen: CLOCK_MONOTONIC in ns, when @opens was seen to change.
 * @opens: number of calls of dlopen() that a sample reported last.
 * @comm: name of one of its threads.
 * @number: number of images that were added before it.
 * @python: number of the Python that it has; 0: none is known.
 * @gone: /proc/PID/maps cannot be read any more.
 * @dead: the process has ended.
 * @missing: consecutive looks that found more threads than slots.
 * @asked: how often the process was asked to look for threads without a slot.
 *
 * Images are found by @instance, not by @pid: records of a process that is gone, or of what it was
 * before an exec, may come late.
 */
struct process_image {
	UT_hash_handle hh;
	uint32_t instance;
	int pid;
	struct shstk_symproc *proc;
	uint64_t mapped_at;
	uint64_t last_read;
	uint64_t open_seen;
	uint32_t opens;
	char comm[REC_COMM];
	uint32_t number;
	int python;
	bool gone;
	bool dead;
	unsigned int missing;
	unsigned int asked;
};

/**
 * struct process_life - a process that has begun and was not seen to end
 * @hh: makes it a member of the hash table, by @pid.
 * @pid: process ID.
 * @began: CLOCK_MONOTONIC in ns, when it began.
 * @latest: CLOCK_MONOTONIC in ns, when the latest program in it began.
 * @left: CLOCK_MONOTONIC in ns, when its agent left it; 0: it did not.
 * @gone: CLOCK_MONOTONIC in ns, when the recorder saw that it was gone; 0: it is there.
 * @told: the profile knows that it began.
 * @first: its name when it began.
 * @comm: its latest name that is known.
 */
struct process_life {
	UT_hash_handle hh;
	int pid;
	uint64_t began;
	uint64_t latest;
	uint64_t left;
	uint64_t gone;
	bool told;
	char first[REC_COMM];
	char comm[REC_COMM];
};

/**
 * struct slot_progress - what the recorder knows of a slot; not in the shared memory
 * @epoch: epoch of the slot's thread to which all members belong.
 * @tail: position in the ring up to which records were taken.
 * @freed: position up to which the agent was told that the ring is free.
 * @ahead: position up to which the ring was searched for maps records.
 * @text: text of maps records that is not complete yet, or NULL.
 * @taken: samples at the last look, including lost ones.
 * @lost: samples lost because the ring was full, at the last look.
 * @lost_weight: weight of the lost samples in ns, at the last look.
 * @known: @epoch is valid.
 */
struct slot_progress {
	uint32_t epoch;
	uint64_t tail;
	uint64_t freed;
	uint64_t ahead;
	struct maps_text *text;
	uint64_t taken;
	uint64_t lost;
	uint64_t lost_weight;
	bool known;
};

/* A thread that lost samples, which had @slot during @epoch. */
struct loser {
	struct loser *next;
	uint32_t slot;
	uint32_t epoch;
	struct lossy_thread thread;
};

/**
 * struct agent_recording - a recording by agents
 * @memory: the memory shared with the agents.
 * @size: bytes of that memory.
 * @header: its header.
 * @slots: its slots (tools/inject/agent/ring.h).
 * @rings: its rings.
 * @nr_slots: number of slots. A copy that agents cannot change, as the next two.
 * @ring_size: bytes of a ring.
 * @max_depth: most entries of a stack.
 * @fold: deeper ones are shortened.
 * @symbols: finds names for addresses.
 * @profile: receives the samples.
 * @functions: functions of Python; NULL: no process has any.
 * @unread: samples whose frames of Python could not be read.
 * @images: hash table of the images by their numbers.
 * @nr_images: number of images.
 * @nr_execs: number of images that do not come from a fork.
 * @lives: hash table of the processes that have not ended, by their IDs.
 * @untold: the profile may have to be told of some of them.
 * @samples: samples in the profile.
 * @weight: time that the samples stand for, in ns.
 * @late: the part of @weight that the kernel's ticks noticed only after it passed.
 * @truncated: samples whose outermost frames are missing.
 * @folded: samples of deep stacks that were shortened.
 * @lost: samples that were lost because a ring was full.
 * @lost_weight: time that the lost samples stand for, in ns.
 * @period: ns between samples.
 * @labels: processes get labels that say what they are.
 * @most: most samples per second and thread that are possible, 0: no limit.
 * @ledger: compares samples with the CPU time that processes used; NULL for wall-clock time.
 * @lost_threads: threads that lost samples.
 * @left_out: records that were left out because there were too many processes.
 * @damaged: how often invalid content made the rest of a ring be skipped.
 * @nesting: how many slots are being emptied for the sake of another slot.
 * @losers: the threads that lost samples.
 * @texts: complete maps texts.
 * @nr_texts: number of complete maps texts.
 * @text_bytes: bytes in complete and incomplete maps texts.
 * @pass: number of passes over the rings so far.
 * @progress: what is known of each slot.
 * @started: CLOCK_MONOTONIC in ns, when the recording began.
 * @record: copy of the record that is being taken.
 * @ahead: copy of the record that is looked at ahead of time.
 */
struct agent_recording {
	struct shared_memory memory;
	uint64_t size;
	struct rec_header *header;
	struct rec_slot *slots;
	uint8_t *rings;
	uint32_t nr_slots;
	uint32_t ring_size;
	uint32_t max_depth;
	bool fold;
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;
	struct agent_functions *functions;
	uint64_t unread;
	struct process_image *images;
	uint32_t nr_images;
	uint32_t nr_execs;
	struct process_life *lives;
	bool untold;
	uint64_t samples, weight, late, truncated, folded, lost, lost_weight;
	uint64_t period;
	bool labels;
	unsigned int most;
	struct ledger *ledger;
	uint32_t lost_threads;
	uint64_t left_out;
	uint32_t damaged;
	unsigned int nesting;
	struct loser *losers;
	struct maps_text *texts;
	unsigned int nr_texts;
	size_t text_bytes;
	unsigned int pass;
	struct slot_progress progress[AGENT_RECORDING_SLOTS];
	uint64_t started;
	_Alignas(8) uint8_t record[AGENT_RECORDING_MAX_RECORD];
	_Alignas(8) uint8_t ahead[AGENT_RECORDING_MAX_RECORD];
};

static inline void agent_recording_forget_text(struct agent_recording *d, struct maps_text *t)
{
	if (t)
		d->text_bytes -= t->size;
	free(t);
}

/* ---- agent_recording_memory.c ---- */

/* Makes the shared memory and fills in its header. Returns 0 or a negative errno. */
int agent_recording_map_memory(struct agent_recording *d, const struct agent_recording_opts *opts);

/* Returns a number below which all slots lie that any thread ever had. */
uint32_t agent_recording_slots_used(const struct agent_recording *d);

/*
 * Copies the record of slot @i that lies at @tail to @to. Returns its size, or -EINVAL if it is
 * invalid or goes beyond @head.
 */
int agent_recording_copy_record(const struct agent_recording *d, uint32_t i, uint64_t tail,
				uint64_t head, uint8_t *to);

/* Returns what is known of the thread that has slot @i now. */
struct slot_progress *agent_recording_slot(struct agent_recording *d, uint32_t i);

/* ---- agent_recording_maps.c ---- */

/* Reads the mappings from the living process. Returns false if that was done a moment ago. */
bool process_image_read_maps(struct process_image *image);

/*
 * Sets the mappings of @image to the text of which @m is the last part, unless a newer one is in
 * use.
 */
void agent_recording_take_maps(struct agent_recording *d, struct process_image *image,
			       const struct rec_maps *m);

/*
 * Sets the mappings of @image to those at the time of sample @s. Called before the sample is added
 * to the profile.
 */
void agent_recording_set_maps(struct agent_recording *d, struct process_image *image,
			      const struct rec_sample *s);

/*
 * Takes the records of maps, and of functions, that are in any ring, before their turn. Functions may be
 * taken twice.
 */
void agent_recording_look_ahead(struct agent_recording *d);

/* Frees the texts of earlier passes: all records older than them were taken. */
void agent_recording_forget_old_texts(struct agent_recording *d);

/* ---- agent_recording_functions.c ---- */

/* Takes which Python a process has. Returns 0 or -ENOMEM. */
int agent_recording_take_python(struct agent_recording *d, struct process_image *image,
				const struct rec_python *python);

/* Takes a function of Python, in a copy of its record. Returns 0 or -ENOMEM. */
int agent_recording_take_code(struct agent_recording *d, const struct process_image *image,
			      struct rec_code *code);

/*
 * Returns the bytes of a sample without what Python ran, or 0 if that or its size is not as it must be.
 */
uint32_t agent_recording_native_size(const struct rec_sample *s);

/* Finds the entries of a sample, with functions. @s is a copy, which is changed. */
void agent_recording_place(struct agent_recording *d, const struct process_image *image,
			   struct rec_sample *s, struct agent_stack *ret);

/* ---- agent_recording_lives.c ---- */

/*
 * Notes that a process began, or another program in it. @name is its name now. Returns 0 or
 * -ENOMEM.
 */
int agent_recording_began(struct agent_recording *d, const struct rec_start *start,
			  const char name[REC_COMM]);

/* Notes that the agent left a process. @name: NULL if its name is not known. */
void agent_recording_left(struct agent_recording *d, int pid, uint64_t time,
			  const char name[REC_COMM]);

/* Looks which processes are gone. All rings must be emptied before the profile is told. */
void agent_recording_see_gone(struct agent_recording *d);

/*
 * Tells the profile which processes began before a time, up to which all records were taken, and
 * which ended. UINT64_MAX: the recording ends, and a process that its agent left has ended.
 * Returns 0 or -ENOMEM.
 */
int agent_recording_tell_lives(struct agent_recording *d, uint64_t before);

void agent_recording_forget_lives(struct agent_recording *d);

/*
 * Takes what is left of threads whose process has ended, and frees their slots. In
 * agent_recording.c.
 */
void agent_recording_free_dead(struct agent_recording *d);

#endif
