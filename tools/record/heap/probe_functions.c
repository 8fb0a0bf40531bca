// SPDX-License-Identifier: GPL-2.0-or-later
/* probe_functions.c - the functions of programs in an interpreter, read at probes. See probe_functions.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/language.h"
#include "libshstk/shstk.h"
#include "tools/bpf/load_object.h"
#include "tools/elf/jit_library.h"
#include "tools/perf/regs.h"
#include "tools/proc/maps.h"
#include "tools/record/heap/probe_functions.h"
#include "tools/stack_pointer.h"

#define OBJECT "shstk-probed.bpf.o"
#define PROGRAM "language_probe"
#define WHAT "reading frames of interpreters at probes"

/* What processes may have, by the names of their files. */
struct met {
	bool interpreter;
	bool java;
};

/**
 * struct probe_functions - what reads functions and places them
 * @programs: the programs at the probes.
 * @met: what processes may have.
 * @reader: the BPF program.
 * @languages: the languages; NULL: nothing can be read.
 * @why: why not, if a process may have something.
 * @missed: calls whose functions could not be read or written.
 */
struct probe_functions {
	const struct programs *programs;
	struct met met;
	struct bpf_loaded reader;
	struct languages *languages;
	struct reason why;
	uint64_t missed;
};

/* Adds what a process may have. */
static void meet(pid_t pid, struct met *met)
{
	struct mapping m;
	struct maps maps;

	if (maps_open(pid, "maps", &maps))
		return;
	while (maps_next(&maps, &m)) {
		met->interpreter |= languages_may_be(m.path);
		met->java |= jit_is_known(m.path);
	}
	maps_close(&maps);
}

/* Has the programs at the probes call the reader, and the reader call the one that records. */
static int connect_programs(const struct probe_functions *f, const struct programs *programs)
{
	int err = languages_set_namespace(&f->reader);

	if (!err)
		err = bpf_loaded_set_next(&f->reader, programs->programs[PROBE_BEGUN]);
	if (!err)
		err = programs_set(programs, PROBE_MAP_TAILS, PROBE_TAIL_FRAMES,
				   &f->reader.program);
	return err;
}

/* Loads the reader. Returns 0, or a negative errno with the reason. */
static int load(struct probe_functions *f, const struct programs *programs)
{
	const struct bpf_loaded_shared shared[] = {
		{ "probe_ring", programs->maps[PROBE_MAP_RING] },
		{ "probe_calls", programs->maps[PROBE_MAP_CALLS] },
	};
	int err = bpf_loaded_open_sharing(WHAT, OBJECT, PROGRAM, shared, 2, &f->reader, &f->why);

	if (err)
		return err;
	err = connect_programs(f, programs);
	if (err)
		because(&f->why, "%s: %s", WHAT, strerror(-err));
	return err;
}

/* Has frames of interpreters be read. If that cannot be, @f has the reason. */
static void begin_reading(struct probe_functions *f)
{
	if (load(f, f->programs))
		return;
	f->languages = languages_create(&f->reader);
	if (!f->languages) {
		because(&f->why, "%s", strerror(ENOMEM));
		return;
	}
	languages_without_native(
		f->languages,
		"frames on the native stack, as JavaScript has, are not read at probes");
}

/* Says that methods of Java are not read. Of several reasons the first one stays. */
static void refuse_java(struct probe_functions *f)
{
	struct reason why;

	because(&why, "methods of Java are not read at probes");
	if (f->languages)
		languages_refuse(f->languages, &why);
	else if (!f->met.interpreter)
		f->why = why;
}

void probe_functions_look(struct probe_functions *f, pid_t pid)
{
	struct met met;

	if (!f || (f->met.interpreter && f->met.java))
		return;
	met = f->met;
	meet(pid, &met);
	if (met.interpreter && !f->met.interpreter)
		begin_reading(f);
	f->met.interpreter = met.interpreter;
	/* What was said before the reader was there is said once more. */
	if (met.java)
		refuse_java(f);
	f->met.java = met.java;
}

struct probe_functions *probe_functions_create(const struct programs *programs)
{
	struct probe_functions *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->programs = programs;
	f->reader.program = -1;
	return f;
}

void probe_functions_destroy(struct probe_functions *f)
{
	if (!f)
		return;
	languages_destroy(f->languages);
	bpf_loaded_close(&f->reader);
	free(f);
}

void probe_functions_meet(struct probe_functions *f, struct process *p)
{
	if (f && f->languages && p)
		process_language(p, f->languages);
}

void probe_functions_name(struct probe_functions *f, struct shstk_symbols *symbols)
{
	if (f && f->languages)
		shstk_symbols_set_functions(symbols, languages_function, f->languages);
}

int probe_functions_take(struct probe_functions *f, const void *record, size_t size)
{
	const struct language_moment *it = record;

	if (!f || !f->languages || size < sizeof(*it))
		return 0;
	/* Order alone tells which call has these frames. */
	return languages_take(f->languages, (int)it->tid, 0, record, size);
}

bool probe_functions_place(struct probe_functions *f, struct process *p,
			   const struct probe_call *call, const struct shstk_regs *regs,
			   const struct unwound *stack, struct unwound *ret, bool fold)
{
	const struct native_stack native = {
		.pcs = stack->pcs,
		.marks = stack->marks,
		.sps = stack->sps,
		.nr = stack->nr,
		.complete = stack->end == SHSTK_END_COMPLETE,
		.function = process_function,
		.arg = p,
	};
	struct language_sample of = {
		.tid = (int)call->event.tid,
		.pc = regs->pc,
		.sp = stack_pointer(perf_regs_arch(), regs),
		.fold = fold ? ret->max : 0,
	};
	unsigned int nr;

	if (!f || !f->languages)
		return false;
	f->missed += call->event.frames == PROBE_FRAMES_MISSED;
	of.number = process_language(p, f->languages);
	if (call->event.frames != PROBE_FRAMES_WRITTEN) {
		languages_forget(f->languages, of.tid);
		return false;
	}
	nr = languages_place(f->languages, &of, &native, ret->pcs, ret->marks, ret->max);
	if (!nr)
		return false;
	ret->nr = nr;
	ret->end = stack->end;
	ret->elsewhere = stack->elsewhere;
	return true;
}

bool probe_functions_folded(const struct probe_functions *f)
{
	return f->languages && languages_folded(f->languages);
}

void probe_functions_count(const struct probe_functions *f, struct heap_counts *ret)
{
	struct language_counts counts;

	if (!f)
		return;
	if (!f->languages) {
		ret->refused = f->met.interpreter || f->met.java ? f->why.text : NULL;
		return;
	}
	languages_count(f->languages, &counts);
	ret->interpreted = counts.samples + f->missed;
	ret->placed = counts.placed;
	ret->too_deep = counts.too_deep;
	ret->refused = languages_refused(f->languages);
}
