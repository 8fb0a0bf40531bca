// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * allocations.c - makes the profile of allocations, and writes the lines about it, for the back
 * ends that count allocations. See allocations.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/language/languages.h"
#include "tools/record/caution.h"
#include "tools/record/heap/allocations.h"
#include "tools/record/heap/heap_values.h"
#include "tools/shstk.h"

struct heap_opts allocations_options(const struct record_opts *o)
{
	return (struct heap_opts){
		.sample = o->heap_sample,
		.with_mmap = o->heap_mmap,
		.with_python = o->heap_python,
		.per_thread = o->output.per_thread,
		.max_depth = o->depth,
		.fold = o->fold,
		.snapshots = o->every > 0,
		.follow = output_follows(&o->output),
		.labels = output_wants_labels(&o->output),
	};
}

int allocations_begin(struct recording *r)
{
	struct shstk_symbols_opts names = {
		.no_lines = !output_wants_lines(&r->opts->output),
		.full_names = r->opts->output.full_names,
	};
	struct heap_opts opts = allocations_options(r->opts);
	int err;

	read_limit_apply(&r->opts->read_limit, &names);
	err = shstk_symbols_create(&names, &r->symbols);

	if (!err)
		err = shstk_profile_create(r->symbols, &r->profile);
	if (!err)
		err = heap_add_types(r->profile, &opts);
	if (!err && opts.follow)
		shstk_profile_keep_times(r->profile, output_wants_times(&r->opts->output));
	return err;
}

/* Returns what the peak is of. */
static const char *peak_of(const struct heap_counts *c)
{
	if (c->processes <= 1)
		return "peak";
	return c->peak_pid ? "largest peak of a process" : "peak of all processes";
}

void allocations_describe(const struct recording *r, const struct heap_counts *c, char *buf,
			  size_t size)
{
	char live[32], peak[32], processes[48];

	shstk_format_value(live, sizeof(live), c->live, "bytes");
	shstk_format_value(peak, sizeof(peak), c->peak, "bytes");
	plural(processes, sizeof(processes), c->processes, "process", "processes");
	snprintf(buf, size, "%s in use, %s %s, %s, %.1f s", live, peak_of(c), peak, processes,
		 (now_ns(CLOCK_MONOTONIC) - r->began) / 1e9);
}

void allocations_report_functions(struct recording *r, const struct heap_counts *c)
{
	if (c->too_deep)
		caution(r, "%llu of %llu stacks of an interpreter " LANGUAGES_TOO_DEEP,
			(unsigned long long)c->too_deep, (unsigned long long)c->interpreted);
	if (c->placed < c->interpreted)
		remark(r,
		       "%llu of %llu stacks of an interpreter show the functions of their programs, the others only the interpreter's own",
		       (unsigned long long)c->placed, (unsigned long long)c->interpreted);
	if (c->refused)
		remark(r, "functions of programs in an interpreter are not shown: %s", c->refused);
}

void allocations_report(const struct recording *r, const struct heap_counts *c, bool ended)
{
	char bytes[32], left[32], peak[32], process[32] = "";
	char *files;

	shstk_format_value(bytes, sizeof(bytes), c->bytes, "bytes");
	shstk_format_value(left, sizeof(left), c->left_bytes, "bytes");
	shstk_format_value(peak, sizeof(peak), c->peak, "bytes");
	complain("%s%llu allocations of %s from %llu stacks in %u %s",
		 r->opts->heap_sample ? "about " : "", (unsigned long long)c->objects, bytes,
		 (unsigned long long)c->stacks, c->processes,
		 c->processes == 1 ? "process" : "processes");
	if (c->processes > 1 && c->peak_pid)
		snprintf(process, sizeof(process), ", in process %d", c->peak_pid);
	complain("%s %s after %.2f s%s", peak_of(c), peak, c->peak_time / 1e9, process);
	complain("%llu temporary, freed before the thread's next allocation (%.1f%%)",
		 (unsigned long long)c->temporary,
		 c->objects ? 100.0 * c->temporary / c->objects : 0);
	complain("%s in %llu blocks %s", left, (unsigned long long)c->left,
		 ended ? "not freed at the end" : "in use");
	files = output_names(&r->opts->output);
	complain("recorder: %lu MiB and %lu MiB shared at most%s%s", record_mib(r->memory),
		 record_mib(r->shared), files && *files ? ";" : "", files ? files : "");
	free(files);
}
