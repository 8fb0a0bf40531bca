// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stack.c - the stack of one thread, from its shadow stack, by unwinding, or from both; and
 * printing it. See trace.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/java/jit_code.h"
#include "tools/report/screen_name.h"
#include "tools/shstk.h"
#include "tools/trace/fold.h"
#include "tools/trace/group.h"
#include "tools/trace/mutex.h"
#include "tools/trace/trace.h"

static int prepare(const struct trace_opts *o, struct trace_stack *s)
{
	if (!s->pcs)
		s->pcs = malloc((o->depth + 1) * sizeof(*s->pcs));
	if (!s->marks)
		s->marks = malloc(o->depth + 1);
	if (!s->sps)
		s->sps = malloc((o->depth + 1) * sizeof(*s->sps));
	if (!s->pcs || !s->marks || !s->sps)
		return -ENOMEM;
	memset(s->marks, 0, o->depth + 1);
	s->taken = true;
	s->info = (struct shstk_info){ .size = sizeof(s->info) };
	return 0;
}

#define TRACE_TOO_DEEP \
	"the program runs too many functions in its interpreter: none of them is shown"

/* Replaces the room for entries by empty room for @depth entries. */
static int make_room(struct trace_stack *s, unsigned int depth)
{
	uint64_t *pcs = calloc(depth + 1, sizeof(*pcs));
	uint8_t *marks = calloc(depth + 1, 1);

	if (!pcs || !marks) {
		free(pcs);
		free(marks);
		return -ENOMEM;
	}
	free(s->pcs);
	free(s->marks);
	free(s->sps);
	s->sps = NULL;
	s->pcs = pcs;
	s->marks = marks;
	return 0;
}

static int unwind(const struct trace_opts *o, struct shstk_space *space, struct trace_thread *t,
		  shstk_read_fn read, void *arg)
{
	struct trace_stack *s = &t->unwound;
	struct shstk_opts opts = { .size = sizeof(opts), .marks = s->marks, .sps = s->sps };
	unsigned int depth = o->depth;

	s->nr_folds = 0;
	s->nr = shstk_unwind(space, &t->regs, read, arg, s->pcs, depth, &opts, &s->info);
	while (o->fold && !o->compare && !t->hardware.taken && s->nr == (int)depth &&
	       s->info.end == SHSTK_END_CAPACITY && depth < TRACE_MAX_DEPTH) {
		depth *= 8;
		if (make_room(s, depth))
			return -ENOMEM;
		opts.marks = s->marks;
		opts.sps = NULL;
		s->nr = shstk_unwind(space, &t->regs, read, arg, s->pcs, depth, &opts, &s->info);
	}
	return depth > o->depth && s->nr > 0 ? fold_stack(s, o->depth) : 0;
}

bool trace_has_gap(const struct trace_stack *s)
{
	for (int i = 0; i < s->nr; i++)
		if (s->marks[i] & SHSTK_MARK_GAP)
			return true;
	return false;
}

static void insert(struct trace_stack *s, int at, uint64_t pc, uint8_t mark, unsigned int max)
{
	int nr = s->nr < (int)max ? s->nr++ : s->nr - 1;

	if (s->nr == (int)max && nr == s->nr - 1 && s->info.end == SHSTK_END_COMPLETE)
		s->info.end = SHSTK_END_CAPACITY;
	memmove(s->pcs + at + 1, s->pcs + at, (nr - at) * sizeof(*s->pcs));
	memmove(s->marks + at + 1, s->marks + at, nr - at);
	s->pcs[at] = pc;
	s->marks[at] = mark;
}

/*
 * Fills the gap after the pc. On riscv, the function that the pc is in may not have pushed its
 * return address yet. The unwound trace has one frame more in this case.
 */
static void fill_first(const struct trace_opts *o, struct trace_stack *s,
		       const struct trace_stack *from)
{
	if (s->nr < 2 || !(s->marks[1] & SHSTK_MARK_GAP) || from->nr < 2)
		return;
	if (from->pcs[1] == s->pcs[1]) {
		s->marks[1] &= ~SHSTK_MARK_GAP;
	} else if (from->nr > 2 && from->pcs[2] == s->pcs[1]) {
		s->marks[1] &= ~SHSTK_MARK_GAP;
		insert(s, 1, from->pcs[1], from->marks[1], o->depth);
	}
}

/*
 * Fills the gaps of a shadow stack. A shadow stack does not have the pc that a signal interrupted.
 * The pc is taken from the unwound trace where the next outer frame is the same in both.
 */
static void fill_gaps(const struct trace_opts *o, struct trace_thread *t)
{
	const struct trace_stack *from = &t->unwound;
	struct trace_stack *s = &t->hardware;
	int next = 1;

	fill_first(o, s, from);
	for (int i = 1; i < s->nr; i++) {
		int k = next;

		if (!(s->marks[i] & SHSTK_MARK_GAP))
			continue;
		while (k + 1 < from->nr &&
		       !(from->marks[k] & SHSTK_MARK_PC && from->pcs[k + 1] == s->pcs[i]))
			k++;
		if (k + 1 >= from->nr)
			continue;
		s->marks[i] &= ~SHSTK_MARK_GAP;
		insert(s, i, from->pcs[k], from->marks[k], o->depth);
		next = k + 1;
		i++;
	}
}

int trace_take(const struct trace_opts *o, struct shstk_space *space, struct trace_thread *t,
	       shstk_read_fn read, void *arg)
{
	struct trace_stack *s = &t->hardware;
	struct shstk_opts opts = { .size = sizeof(opts) };
	bool both = o->compare;

	if (o->source != TRACE_UNWIND && t->shadow_on) {
		if (prepare(o, s))
			return -ENOMEM;
		opts.marks = s->marks;
		s->nr = shstk_unwind_shadow(&t->shadow, read, arg, s->pcs, o->depth, &opts,
					    &s->info);
		/* Unwind, too, if there is a gap, or nothing but the pc. */
		both |= o->source == TRACE_AUTO &&
			(trace_has_gap(s) || (s->nr < 2 && s->info.end == SHSTK_END_READ));
	} else if (o->source != TRACE_HARDWARE) {
		both = true;
	}
	if (!both)
		return 0;
	if (prepare(o, &t->unwound))
		return -ENOMEM;
	if (unwind(o, space, t, read, arg))
		return -ENOMEM;
	if (s->taken && !o->compare)
		fill_gaps(o, t);
	return 0;
}

static int name_entries(struct jit *jit, struct shstk_symproc *proc, const struct trace_stack *s)
{
	return s->nr > 0 ? jit_name(jit, proc, s->pcs, s->nr) : 0;
}

int trace_name_made(struct jit *jit, struct shstk_symproc *proc, const struct trace_thread *t)
{
	int ret = name_entries(jit, proc, &t->hardware);

	return ret ? ret : name_entries(jit, proc, &t->unwound);
}

void trace_deinit(struct trace_thread *t)
{
	free(t->hardware.pcs);
	free(t->hardware.marks);
	free(t->hardware.sps);
	free(t->unwound.pcs);
	free(t->unwound.marks);
	free(t->unwound.sps);
	free(t->unwound.folds);
}

/* ---- Printing ---- */

static int how_to_name(uint8_t mark)
{
	return mark & (SHSTK_MARK_PC | SHSTK_MARK_SIGNAL) ? SHSTK_SYMADDR_PC : SHSTK_SYMADDR_RETURN;
}

/* Returns the address of an entry; 0 if it stands for a function that has no code. */
static uint64_t address_of(const struct shstk_symbol *sym, uint64_t pc)
{
	return sym->map && sym->map->kind == SHSTK_SYMMAP_LANGUAGE ? 0 : pc;
}

/* Returns how many columns the lines of stacks have; 0: they are as long as they are. */
static unsigned int columns(const struct trace_opts *o)
{
	return o->full_names ? 0 : screen_limit();
}

/* Writes where a frame is: " at FILE:LINE", or " in MODULE". */
static void format_place(const struct shstk_symbol *sym, const struct shstk_symframe *f, char *buf,
			 size_t size)
{
	if (f->file && f->line)
		snprintf(buf, size, " at %s:%u", f->file, f->line);
	else if (f->file)
		snprintf(buf, size, " at %s", f->file);
	else
		snprintf(buf, size, " in %s", sym->map->name);
}

/* Shortens what format_place() wrote to @room bytes: the end of a path tells most. */
static void shorten_place(char *place, size_t room)
{
	const size_t head = strlen(" at ..");
	size_t size = strlen(place), from;

	if (size <= room || room <= head)
		return;
	from = size - (room - head);
	while ((place[from] & 0xc0) == 0x80)
		from++;
	place[head - 2] = place[head - 1] = '.';
	memmove(place + head, place + from, size - from + 1);
}

/*
 * Prints a function and its place. Where both do not fit into @room bytes, the place gets what the
 * name leaves, but half of them at least.
 */
static void print_names(const char *name, const char *offset, char *place, size_t room)
{
	char label[SHSTK_LABEL_MAX];
	size_t size = strlen(name) + strlen(offset);

	if (size + strlen(place) > room)
		shorten_place(place, size < room / 2 ? room - size : room / 2);
	size = strlen(place) + strlen(offset);
	printf("%s%s%s", shstk_short_name(name, room > size ? room - size : 0, label), offset,
	       place);
}

static const char *mark_text(const struct shstk_symframe *f, uint8_t mark)
{
	if (f->inlined)
		return " [inlined]";
	if (mark & SHSTK_MARK_SIGNAL)
		return " [signal]";
	return mark & SHSTK_MARK_GUESS ? " [guess]" : "";
}

/*
 * Prints function @i of an entry, and where it is. @used: columns of the line that are in use already, or
 * will be.
 */
static void print_one(const struct trace_opts *o, const struct shstk_symbol *sym, unsigned int i,
		      size_t used)
{
	const size_t room = o->full_names ? SIZE_MAX : SHSTK_LABEL_ROOM;
	const struct shstk_symframe *f = &sym->frames[i];
	char label[SHSTK_LABEL_MAX], place[SHSTK_LABEL_MAX + 32], offset[32] = "";

	if (!f->inlined && sym->start)
		snprintf(offset, sizeof(offset), "+0x%llx", (unsigned long long)sym->offset);
	format_place(sym, f, place, sizeof(place));
	if (columns(o))
		print_names(f->function, offset, place, columns(o) > used ? columns(o) - used : 0);
	else
		printf("%s%s%s", shstk_label(f->function, room, label, sizeof(label)), offset,
		       place);
}

static void print_frame(const struct trace_opts *o, struct shstk_symproc *proc, int *number,
			uint64_t pc, uint8_t mark)
{
	const struct shstk_symbol *sym = shstk_symproc_lookup(proc, pc, how_to_name(mark));

	for (unsigned int i = 0; i < sym->nr; i++) {
		const char *what = mark_text(&sym->frames[i], mark);
		size_t used = strlen(what);

		used += printf("  #%-3d ", (*number)++);
		if (o->addresses)
			used += printf("0x%016llx ", (unsigned long long)address_of(sym, pc));
		print_one(o, sym, i, used);
		puts(what);
	}
}

void trace_print_function(const struct trace_opts *o, struct shstk_symproc *proc, uint64_t pc,
			  size_t used)
{
	print_one(o, shstk_symproc_lookup(proc, pc, SHSTK_SYMADDR_PC), 0, used);
	putchar('\n');
}

/*
 * Prints what the entries from @f->at on stand for. @number is the number of the next frame; frames
 * that are left out are counted.
 */
static void print_fold(struct shstk_symproc *proc, const struct trace_stack *s,
		       const struct trace_fold *f, int *number)
{
	if (!f->period) {
		printf("  ...  %zu frames are left out (see --depth)\n", f->times);
		*number += (int)f->times;
		return;
	}
	printf("  ...  %zu times, innermost first:", f->times);
	for (unsigned int i = 0; i < f->period; i++) {
		const struct shstk_symbol *sym = shstk_symproc_lookup(
			proc, s->pcs[f->at + i], how_to_name(s->marks[f->at + i]));

		printf("%s %s", i ? " <" : "", sym->frames[sym->nr - 1].function);
	}
	putchar('\n');
}

void trace_print_stack(const struct trace_opts *o, struct shstk_symproc *proc,
		       const struct trace_stack *s)
{
	const struct trace_fold *skip = NULL;
	int number = 0;

	for (int i = 0; i < s->nr; i++) {
		const struct trace_fold *f = fold_at(s, i);

		if (f)
			print_fold(proc, s, f, &number);
		if (s->marks[i] & SHSTK_MARK_GAP)
			puts(i > 1 || s->marks[0] & SHSTK_MARK_SIGNAL ?
				     "  ...  a signal came here; where, is not on the shadow stack" :
				     "  ...  a frame may be missing that is not on the shadow stack yet");
		print_frame(o, proc, &number, s->pcs[i], s->marks[i]);
		if (f && f->period)
			skip = f;
		if (skip && i == skip->at + (int)skip->period - 1)
			number += (int)(skip->period * (skip->times - 1));
	}
	if (s->nr < 0)
		printf("  cannot be taken: %s\n", strerror(-s->nr));
	else if (s->info.end != SHSTK_END_COMPLETE)
		printf("  ends here: %s\n", shstk_end_name(s->info.end));
	if (s->too_deep)
		puts("  " TRACE_TOO_DEEP);
}

static void print_place(struct shstk_symproc *proc, const char *what, const struct trace_stack *s,
			int i)
{
	const struct shstk_symbol *sym;

	printf("    %-13s", what);
	if (i >= s->nr) {
		printf("ends: %s\n", shstk_end_name(s->info.end));
		return;
	}
	sym = shstk_symproc_lookup(proc, s->pcs[i],
				   s->marks[i] & SHSTK_MARK_PC ? SHSTK_SYMADDR_PC :
								 SHSTK_SYMADDR_RETURN);
	printf("0x%016llx %s\n", (unsigned long long)s->pcs[i], sym->frames[sym->nr - 1].function);
}

/*
 * The result of comparing both traces: @at entries of the shadow stack and @behind entries of the
 * unwound trace agree. @gaps entries of these are only in the unwound trace.
 */
struct comparison {
	bool agree;
	int at;
	int behind;
	int gaps;
};

/*
 * Compares both traces entry by entry. The pc that a signal interrupted is only in the unwound
 * trace, where the shadow stack has a gap. The outermost functions may be missing on the shadow
 * stack: they had been called before it was switched on.
 */
static struct comparison compare(const struct trace_thread *t)
{
	const struct trace_stack *h = &t->hardware, *u = &t->unwound;
	int i = 0, k = 0, gaps = 0;
	bool late;

	for (; i < h->nr && k < u->nr; i++, k++) {
		if (h->marks[i] & SHSTK_MARK_GAP && u->marks[k] & SHSTK_MARK_PC) {
			gaps++;
			k++;
		}
		if (k == u->nr || h->pcs[i] != u->pcs[k])
			break;
	}
	late = i == h->nr && h->info.end == SHSTK_END_COMPLETE && u->info.end == SHSTK_END_COMPLETE;
	return (struct comparison){
		.agree = late || (i == h->nr && k >= u->nr && h->info.end == u->info.end),
		.at = i,
		.behind = k,
		.gaps = gaps,
	};
}

static void print_comparison(struct shstk_symproc *proc, const struct trace_thread *t,
			     const struct comparison *c)
{
	if (!c->agree) {
		printf("  compared: shadow stack and unwinding differ after %d frames:\n", c->at);
		print_place(proc, "shadow stack", &t->hardware, c->at);
		print_place(proc, "unwinding", &t->unwound, c->behind);
		return;
	}
	printf("  compared: shadow stack and unwinding agree, %d frames", c->at);
	if (c->gaps)
		printf(", and %d that a signal interrupted, known by unwinding only", c->gaps);
	if (c->behind < t->unwound.nr)
		printf(", and %d that were there before shadow stacks were switched on",
		       t->unwound.nr - c->behind);
	putchar('\n');
}

static bool same_names(const struct trace_group *group)
{
	for (size_t i = 1; i < group->nr; i++)
		if (strcmp(group->threads[i]->comm, group->threads[0]->comm))
			return false;
	return true;
}

/* Prints the IDs and names of threads. A name that all have is printed once, after the IDs. */
static void print_who(const struct trace_group *group)
{
	const char *common = same_names(group) ? group->threads[0]->comm : NULL;

	if (group->nr > 1)
		printf("\n%zu threads", group->nr);
	else
		printf("\nthread");
	for (size_t i = 0; i < group->nr; i++) {
		const struct trace_thread *t = group->threads[i];

		printf("%s %d", i ? "," : "", t->tid);
		if (!common && *t->comm)
			printf(" (%s)", t->comm);
	}
	if (common && *common)
		printf(" (%s)", common);
}

static void print_group(const struct trace_opts *o, struct shstk_symproc *proc,
			const struct trace_group *group, const struct trace_stack *s,
			const struct comparison *c)
{
	const struct trace_thread *t = group->threads[0];

	print_who(group);
	if (t->note)
		printf(", %s", t->note);
	if (!t->sampled) {
		if (*t->held_up)
			printf(": did not stop: %s\n", t->held_up);
		else
			puts(": ended before it could be stopped");
		return;
	}
	if (!s->taken) {
		puts(": its shadow stack is not on");
		return;
	}
	printf(", %s:\n", s == &t->hardware ? "by its shadow stack" : "by unwinding");
	trace_print_stack(o, proc, s);
	if (c)
		print_comparison(proc, t, c);
	else if (o->compare)
		puts("  not compared: its shadow stack is not on");
	mutex_print(t->waiter);
	if (t->in_handler)
		puts("  it handles a signal; where that came is not on the shadow stack");
}

/* ---- JSON output ---- */

static void put_frame(struct json *json, const struct shstk_symbol *sym, unsigned int i,
		      uint64_t pc, uint8_t mark, size_t times)
{
	const struct shstk_symframe *f = &sym->frames[i];

	shstk_json_open(json, NULL, '{');
	shstk_json_address(json, "address", address_of(sym, pc));
	shstk_json_string(json, "function", f->function);
	if (!f->inlined && sym->start)
		shstk_json_int(json, "offset", sym->offset);
	else
		shstk_json_null(json, "offset");
	shstk_json_bool(json, "inlined", f->inlined);
	shstk_json_string(json, "module", sym->map->name);
	shstk_json_string(json, "file", f->file);
	if (f->file && f->line)
		shstk_json_int(json, "line", f->line);
	else
		shstk_json_null(json, "line");
	shstk_json_bool(json, "signal", mark & SHSTK_MARK_SIGNAL);
	shstk_json_bool(json, "guess", mark & SHSTK_MARK_GUESS);
	shstk_json_bool(json, "gap", !i && mark & SHSTK_MARK_GAP);
	shstk_json_int(json, "times", (int64_t)times);
	shstk_json_close(json);
}

void trace_put_frames(struct json *json, struct shstk_symproc *proc, const struct trace_stack *s)
{
	const struct trace_fold *run = NULL;

	shstk_json_open(json, "frames", '[');
	for (int i = 0; i < s->nr; i++) {
		const struct trace_fold *f = fold_at(s, i);
		const struct shstk_symbol *sym =
			shstk_symproc_lookup(proc, s->pcs[i], how_to_name(s->marks[i]));
		uint8_t mark = s->marks[i];

		if (f && f->period)
			run = f;
		if (f && !f->period)
			mark |= SHSTK_MARK_GAP;
		for (unsigned int k = 0; k < sym->nr; k++)
			put_frame(json, sym, k, s->pcs[i], mark,
				  run && i < run->at + (int)run->period ? run->times : 1);
	}
	shstk_json_close(json);
}

/* Returns the reason why a thread has no stack, or NULL if it has one. */
static const char *error_of(const struct trace_thread *t, const struct trace_stack *s)
{
	if (!t->sampled)
		return *t->held_up ? "did not stop" : "ended before it could be stopped";
	if (!s->taken)
		return "its shadow stack is not on";
	return s->nr < 0 ? strerror(-s->nr) : NULL;
}

static void put_thread(const struct trace_opts *o, struct shstk_symproc *proc,
		       const struct trace_thread *t, const struct trace_stack *s,
		       const struct comparison *c)
{
	struct json *json = o->json;

	shstk_json_open(json, NULL, '{');
	shstk_json_int(json, "tid", t->tid);
	shstk_json_string(json, "name", *t->comm ? t->comm : NULL);
	shstk_json_string(json, "state", t->note);
	shstk_json_string(json, "source",
			  !s->taken	    ? NULL :
			  s == &t->hardware ? "shadow stack" :
					      "unwinding");
	shstk_json_string(json, "error", error_of(t, s));
	shstk_json_string(json, "held_up", *t->held_up ? t->held_up : NULL);
	shstk_json_bool(json, "complete",
			s->taken && s->nr >= 0 && s->info.end == SHSTK_END_COMPLETE);
	shstk_json_string(json, "end", s->taken && s->nr >= 0 ? shstk_end_name(s->info.end) : NULL);
	shstk_json_bool(json, "in_handler", t->in_handler);
	shstk_json_bool(json, "too_deep", s->too_deep);
	mutex_put(json, t->waiter);
	if (c)
		shstk_json_bool(json, "agree", c->agree);
	else
		shstk_json_null(json, "agree");
	trace_put_frames(json, proc, s);
	shstk_json_close(json);
}

const struct trace_stack *trace_shown(const struct trace_thread *t)
{
	bool hardware = t->hardware.taken &&
			(!t->unwound.taken || t->hardware.nr > 1 || t->unwound.nr < 2);

	return hardware ? &t->hardware : &t->unwound;
}

/*
 * Prints a group of threads. Returns false if there is no stack, or if both sources were compared
 * and differ.
 */
static bool show(const struct trace_opts *o, struct shstk_symproc *proc,
		 const struct trace_group *group)
{
	const struct trace_thread *t = group->threads[0];
	bool both = o->compare && t->hardware.taken;
	const struct trace_stack *s = both ? &t->hardware : trace_shown(t);
	struct comparison c;

	if (both)
		c = compare(t);
	if (o->json)
		put_thread(o, proc, t, s, both ? &c : NULL);
	else
		print_group(o, proc, group, s, both ? &c : NULL);
	if (!t->sampled)
		return !*t->held_up;
	if (!s->taken)
		return false;
	return both ? c.agree : s->nr >= 0;
}

bool trace_print(const struct trace_opts *o, struct shstk_symproc *proc, struct trace_thread **list,
		 size_t nr)
{
	struct trace_group *groups = calloc(nr + 1, sizeof(*groups));
	bool ok = true;
	size_t n;

	if (!groups) {
		complain("out of memory");
		return false;
	}
	n = group_threads(o, list, nr, groups);
	for (size_t i = 0; i < n; i++)
		ok &= show(o, proc, &groups[i]);
	free(groups);
	return ok;
}
