// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * adapt.c - changes how a recording samples while it goes on. See adapt.h. Each change has
 * functions that tell whether it is due, how the rings are to be opened then, and what else becomes
 * different.
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/language/languages.h"
#include "tools/record/perf/perf_recording_private.h"
#include "tools/shstk.h"

/* ---- Sizes of copies ---- */

/* When the present size is too small for some stacks, the next one is taken. */
static const unsigned int sizes[] = { PERF_FIRST_COPY, 32768, 65528 };

unsigned int perf_first_copy(const struct perf_opts *opts)
{
	size_t largest = opts->may_shrink ? perf_ring_size(opts->ring_size, SIZE_MAX) :
					    opts->ring_size;
	bool bounded = !opts->off && !opts->count;

	return bounded && opts->freq <= largest / sizes[1] ? sizes[1] : sizes[0];
}

/* ---- Replacing rings ---- */

/*
 * Opens other events for all that is recorded, as @opts says. If that is threads, @opts receives
 * those of now, and @list the memory in which they are, which the caller frees; otherwise @list
 * becomes NULL. For a moment both sets of rings record, so that no event of a process is missed;
 * seeing such an event twice does no harm. Returns false if the kernel refuses.
 */
static bool open_rings(struct perf_recording *d, struct perf_opts *opts, pid_t **list,
		       struct perf_rings **ret)
{
	struct reason why;
	int err = 0;

	*list = NULL;
	/* Until walks begin in the rings nobody writes callchains there, without which 32-bit code has no stacks. */
	opts->no_user = opts->no_user && !d->convert->counts.compat;
	/* Make room for as many stacks as before. */
	if (opts->may_shrink)
		opts->ring_size = perf_ring_size(
			opts->ring_size, opts->ring_size / perf_first_copy(opts) * opts->copy);
	if (opts->nr_pids)
		err = scope_targets_now(&d->convert->all, opts, list);
	if (!err)
		err = perf_rings_open(opts, ret, &why);
	return !err;
}

/* What a recording changes to, and what was known when that was opened. */
struct replacement {
	struct perf_rings *rings;
	struct perf_opts opts; /* with which the rings are opened, but for the targets */
	const pid_t *list; /* the targets, or NULL */
	size_t nr;
	uint64_t since; /* CLOCK_MONOTONIC in ns before the targets were listed */
};

/*
 * Takes what the old rings have until now, while they still record, and opens events of threads that
 * had begun before the targets were listed, but were reported only now: on a busy machine the recorder
 * may be seconds behind. Returns 0 or what ended the reading.
 */
static int catch_up(struct perf_recording *d, const struct replacement *r)
{
	int ret = perf_rings_meet(d->rings, r->rings);

	/* The first reading ends at the last one's time, the second one at that of the first. */
	if (!ret)
		ret = perf_recording_read(d, false);
	if (!ret)
		ret = perf_recording_read(d, false);
	if (!ret && r->list)
		ret = late_listed(d, r->rings, &r->opts, r->list, r->nr, r->since);
	/* Of events that were opened just now, too. */
	return ret ? ret : perf_rings_meet(d->rings, r->rings);
}

static void stay_copying(struct perf_recording *d);

/*
 * Has the programs that there are run in the new rings. If walking cannot begin there stacks are copied, and
 * the next rings have the kernel's callchains again.
 */
static void begin_programs(struct perf_recording *d, struct perf_rings *rings)
{
	if (d->walker && walker_begin(d->walker, rings))
		stay_copying(d);
	if (d->reading)
		languages_begin(d->languages, rings);
}

/*
 * Reads the old rings to their end and continues with those of @r. Returns 0 or what ended the
 * reading.
 */
static int replace_rings(struct perf_recording *d, const struct replacement *r)
{
	int ret;

	d->next = r->rings;
	ret = catch_up(d, r);
	perf_rings_stop(d->rings);
	/* At once, as what the new ones count while programs begin there is not counted by the old ones. */
	sums_take_over(&d->sums, d->rings, r->rings);
	begin_programs(d, r->rings);
	if (!ret)
		ret = perf_recording_read(d, true);
	sums_close(&d->sums, d->rings);
	perf_rings_close(d->rings);
	d->rings = r->rings;
	perf_recording_tell(d);
	d->opts = r->opts;
	d->opts.no_user = d->opts.no_user && d->walker;
	d->until = now_ns(CLOCK_MONOTONIC);
	d->next = NULL;
	return ret;
}

/* ---- CHANGE_PERIOD ---- */

#define WINDOW 50000000 /* ns over which samples are counted */

/*
 * The periods, in events, for events that are too frequent. They are primes, so that no loop is in
 * step with them.
 */
static const uint64_t coarser[] = { 11, 101, 1009, 10007, 100003, 1000003 };

/* Returns whether there are more samples than can be taken. Looks once in each window. */
static bool too_many(struct perf_recording *d, struct perf_opts *opts)
{
	struct adapt *a = &d->adapt;
	uint64_t now = now_ns(CLOCK_MONOTONIC), passed = now - a->came_since;
	uint64_t second;

	if (passed < WINDOW)
		return false;
	second = a->came * 1000000000 / passed;
	a->came = 0;
	a->came_since = now;
	if (second <= PERF_AFFORDED)
		return false;
	for (size_t i = 0; i < sizeof(coarser) / sizeof(*coarser); i++) {
		opts->count = coarser[i];
		if (second * d->opts.count / opts->count < PERF_AFFORDED / 4)
			break;
	}
	return opts->count > d->opts.count;
}

/* ---- CHANGE_COPIES ---- */

/*
 * The change is due if one process had no shadow stack during NO_SHADOW_OF_ONE ns of its samples,
 * or all such processes together during NO_SHADOW_OF_ALL ns of CPU time. A loader on a slow machine
 * takes some ms to switch the shadow stack on.
 */
#define NO_SHADOW_OF_ONE 50000000
#define NO_SHADOW_OF_ALL 200000000

static bool lacks_shadow(struct perf_recording *d, struct perf_opts *opts)
{
	const unsigned int copy = perf_first_copy(opts);
	const size_t second = d->opts.off ? SIZE_MAX : (size_t)d->opts.freq * copy;
	const struct convert_learnt *l = &d->convert->learnt;

	if (d->convert->stacks.source != STACK_SHADOW ||
	    (l->no_shadow_longest < NO_SHADOW_OF_ONE && l->no_shadow < NO_SHADOW_OF_ALL))
		return false;
	if (opts->may_shrink)
		opts->ring_size = perf_ring_size(opts->ring_size, second);
	opts->copy = copy;
	return true;
}

/* Counts copies anew, because copies have another size from now on. */
static void begin_sizes(struct perf_recording *d)
{
	d->convert->learnt.copies = d->convert->learnt.too_short = 0;
}

static void begin_copies(struct perf_recording *d)
{
	d->convert->stacks.source = d->chains ? STACK_SHADOW_OR_COPIES : STACK_COPIES;
	begin_sizes(d);
}

/* ---- CHANGE_SCOPE ---- */

#define UNSEEN 16 /* least number of threads with no or few samples that matters */
#define UNSEEN_PART 8 /* and there must be more than one such thread for this many samples */

/*
 * Returns whether many threads end sooner than a period. Events of processes begin anew in each
 * thread, and a switch between two of these threads moves to the next event, so that all their time
 * is lost. With events of the CPUs no time is lost; samples of other processes are passed over.
 */
static bool too_short_lived(struct perf_recording *d, struct perf_opts *opts)
{
	const struct convert_learnt *l = &d->convert->learnt;

	if (d->scope.kind != SCOPE_GIVEN || d->scope.threads || !opts->main || opts->count ||
	    l->short_lived < UNSEEN || l->short_lived <= d->convert->counts.samples / UNSEEN_PART)
		return false;
	opts->nr_pids = 0;
	return true;
}

static void widen(struct perf_recording *d)
{
	scope_widen(&d->scope, &d->convert->all);
}

/* ---- CHANGE_WALK ---- */

#define WALK_AFTER 1000000000 /* ns: for less it does not pay to load the program */

/*
 * Returns whether the walker is to be loaded now. It is loaded earlier, by another, if an
 * interpreter is met.
 */
static bool wants_walker(const struct perf_recording *d)
{
	return d->later && stacks_are_copied(&d->convert->stacks) &&
	       (walker_started(d->later) ||
		(d->convert->counts.samples && now_ns(CLOCK_MONOTONIC) > d->began + WALK_AFTER));
}

/*
 * Returns whether the walker waits to be used. If it cannot be loaded stacks are copied as before.
 */
static bool has_walker(struct perf_recording *d)
{
	struct reason unused;
	int ret;

	if (!wants_walker(d))
		return false;
	ret = walker_start(d->later, &unused);
	if (!ret)
		ret = walker_ready(d->later, false, &unused);
	if (ret < 0)
		d->later = NULL;
	return ret > 0;
}

static void use_walker(struct perf_recording *d)
{
	d->walker = d->later;
	d->later = NULL;
	if (d->languages)
		languages_walked(d->languages);
	perf_recording_leave(d);
}

/*
 * Has the programs that there are run one behind the other: the walker; behind it, at the samples of
 * processes that the walker leaves alone, the reader of frames on the native stack; and behind that the
 * program for Go. Without the walker, that of other interpreters begins. Returns 0 or a negative errno.
 */
static int link_programs(const struct perf_recording *d)
{
	const int moments = d->moments ? gomoments_program(d->moments) : -1;
	const int reader = d->reading ? languages_behind(d->languages) : -1;
	const bool read = d->reading && (reader >= 0 || languages_have_program(d->languages));
	int err = 0;

	if (read && moments >= 0)
		err = languages_then(d->languages, moments);
	if (!err && d->walker && (reader >= 0 || moments >= 0))
		err = walker_set_next(d->walker, reader >= 0 ? reader : moments);
	return err;
}

/* Goes back to copies, as stacks cannot be walked after all. */
static void stay_copying(struct perf_recording *d)
{
	d->walker = NULL;
	if (d->languages)
		languages_not_walked(d->languages);
	link_programs(d);
}

/* Returns whether the events have another BPF program than the walker already. */
static bool have_program(const struct perf_recording *d)
{
	return !d->walker && (d->moments || (d->reading && languages_have_program(d->languages)));
}

void begin_walking(struct perf_recording *d)
{
	if (have_program(d) || !has_walker(d))
		return;
	use_walker(d);
	if (walker_begin(d->walker, d->rings))
		stay_copying(d);
}

/*
 * Returns whether it pays to open the events anew for the walker: without the kernel's callchain of user space,
 * which takes as long as a walk. Where there is 32-bit code its samples come from that until the walker writes
 * callchains. Exact ones, from shadow stacks, are the kernel's as well.
 */
static bool spares_callchains(const struct perf_recording *d)
{
	return !(d->adapt.refused & 1u << CHANGE_WALK) && !d->opts.no_user && !d->chains &&
	       !d->convert->counts.compat && walker_can_write_callchains(d->opts.max_stack);
}

/*
 * Returns whether the walker is to begin in other events: an event keeps the program that it has, as that for Go,
 * or the one that reads frames on the native stack, which then runs behind the walker; and it keeps the callchain
 * that it was opened with.
 */
static bool can_walk(struct perf_recording *d, struct perf_opts *opts)
{
	const bool spares = spares_callchains(d);

	if (!(have_program(d) || spares) || !has_walker(d))
		return false;
	use_walker(d);
	if (link_programs(d)) {
		stay_copying(d);
		return false;
	}
	opts->no_user |= spares && !walker_write_callchains(d->walker, opts->max_stack);
	opts->program = 0;
	return true;
}

/* Has stacks be walked at the events that there are, as no others can be opened. These may have another program. */
static void walk_in_old_rings(struct perf_recording *d)
{
	struct walker *walker = d->walker;

	d->walker = NULL;
	if (have_program(d) || walker_write_callchains(walker, 0) || walker_begin(walker, d->rings))
		stay_copying(d);
	else
		d->walker = walker;
}

/* ---- CHANGE_MOMENTS ---- */

/*
 * Returns whether there is a Go program whose stacks are copied. The BPF program is not loaded
 * before, because loading takes time and so does each sample of other programs. If the program that
 * reads frames of interpreters runs already, this one runs behind it, in the same rings.
 */
static bool has_go(struct perf_recording *d, struct perf_opts *opts)
{
	if (!d->convert->learnt.go || d->moments || !stacks_are_copied(&d->convert->stacks))
		return false;
	d->moments = gomoments_create(opts->freq);
	if (!d->moments || link_programs(d)) {
		gomoments_destroy(d->moments);
		d->moments = NULL;
		d->adapt.refused |= 1u << CHANGE_MOMENTS;
		return false;
	}
	if (d->reading || d->walker)
		return false;
	opts->program = gomoments_program(d->moments);
	return true;
}

/* ---- CHANGE_READING ---- */

static bool wants_reading(const struct perf_recording *d)
{
	if (d->reading || !d->languages)
		return false;
	return (languages_wanted(d->languages) && stacks_are_copied(&d->convert->stacks)) ||
	       languages_contexts_wanted(d->languages);
}

/*
 * Returns whether an interpreter was met when the program for Go runs already. The walker reads
 * frames itself.
 */
static bool has_both(struct perf_recording *d, struct perf_opts *opts)
{
	if (!d->moments || d->walker || !wants_reading(d))
		return false;
	if (languages_then(d->languages, gomoments_program(d->moments))) {
		d->adapt.refused |= 1u << CHANGE_READING;
		return false;
	}
	opts->program = 0;
	return true;
}

/* Has programs run that read the frames of interpreters, at the events of now. */
static void begin_reading(struct perf_recording *d)
{
	d->reading = true;
	d->adapt.behind = languages_behind(d->languages) >= 0;
	languages_begin(d->languages, d->rings);
	link_programs(d);
}

/*
 * Has the reader of frames on the native stack run behind the program that runs already, once there is
 * one.
 */
static void read_behind(struct perf_recording *d)
{
	if (!d->reading || d->adapt.behind || languages_behind(d->languages) < 0)
		return;
	d->adapt.behind = true;
	languages_begin_behind(d->languages, d->rings);
	link_programs(d);
}

/* ---- CHANGE_SIZE ---- */

/* Returns whether more than one stack of 200 is larger than what is copied. */
static bool too_small(struct perf_recording *d, struct perf_opts *opts)
{
	const struct convert_learnt *l = &d->convert->learnt;

	if (!stacks_are_copied(&d->convert->stacks) || l->too_short < 4 ||
	    l->too_short <= l->copies / 200)
		return false;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (sizes[i] <= d->opts.copy)
			continue;
		opts->copy = sizes[i];
		return true;
	}
	return false;
}

/* ---- All changes ---- */

/*
 * One kind of change. @due returns whether the change is due, and sets in @opts how the rings are
 * to be opened then. @made changes what else is different after that, and @refused undoes what @due
 * did if the rings cannot be opened; NULL if there is nothing.
 */
static const struct transition {
	bool (*due)(struct perf_recording *d, struct perf_opts *opts);
	void (*made)(struct perf_recording *d);
	void (*refused)(struct perf_recording *d);
} transitions[CHANGES] = {
	[CHANGE_PERIOD] = { too_many, NULL, NULL },
	[CHANGE_COPIES] = { lacks_shadow, begin_copies, NULL },
	[CHANGE_SCOPE] = { too_short_lived, widen, NULL },
	[CHANGE_WALK] = { can_walk, NULL, walk_in_old_rings },
	[CHANGE_MOMENTS] = { has_go, NULL, NULL },
	[CHANGE_READING] = { has_both, begin_reading, NULL },
	[CHANGE_SIZE] = { too_small, begin_sizes, NULL },
};

static int make_change(struct perf_recording *d, enum change change)
{
	const struct transition *t = &transitions[change];
	struct replacement r = { .opts = d->opts, .since = now_ns(CLOCK_MONOTONIC) };
	struct perf_opts now;
	pid_t *list;
	int ret = 0;

	if (d->adapt.refused & 1u << change || !t->due(d, &r.opts))
		return 0;
	/* Events of threads that run are not those of a process that does nothing. */
	r.opts.vary = false;
	now = r.opts;
	if (!open_rings(d, &now, &list, &r.rings)) {
		d->adapt.refused |= 1u << change;
		if (t->refused)
			t->refused(d);
	} else {
		d->convert->varied = 0;
		r.list = list;
		r.nr = list ? now.nr_pids : 0;
		ret = replace_rings(d, &r);
		if (!ret && list)
			ret = late_begin(d, list, r.nr);
		if (t->made)
			t->made(d);
	}
	free(list);
	return ret;
}

/* Has programs run that read frames, if there is an interpreter and its program has room at the events. */
static void read_wanted(struct perf_recording *d)
{
	if ((!d->moments || d->walker) && wants_reading(d))
		begin_reading(d);
	read_behind(d);
}

void read_languages(struct perf_recording *d)
{
	begin_walking(d);
	read_wanted(d);
}

int adapt(struct perf_recording *d)
{
	/* The walker reads for the languages. So it begins before their own program would. */
	int ret = make_change(d, CHANGE_WALK);

	if (!spares_callchains(d))
		begin_walking(d);
	read_wanted(d);
	for (int change = 0; change < CHANGES && !ret; change++)
		ret = make_change(d, change);
	return ret;
}
