// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * judge.c - judges the callchains that the kernel took, in a file of perf record -g.
 *
 *   judge FILE [N]    of all samples with a user stack, or of the first N
 *
 * It prints how many chains are whole and, where samples have copies of the stack, too, how many
 * are equal to what is unwound from these (chains.c). It is linked with all of the command but its
 * main().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshstk/symbol/profile.h"
#include "selftests/offline/chains.h"
#include "tools/convert/convert.h"
#include "tools/convert/file.h"
#include "tools/convert/recorded_files.h"
#include "tools/perf/data.h"

#define DEPTH 1024

/**
 * struct judge - the judgement of one file
 * @chains: the counts.
 * @most: number of samples that are judged; 0: all.
 * @event: the event whose samples are judged.
 * @past: where the files of processes are.
 * @convert: follows the processes.
 * @file: reads the records.
 * @pcs: room for a stack that is unwound.
 * @marks: room for its marks.
 */
struct judge {
	struct chains chains;
	unsigned long most;
	const struct perfdata_event *event;
	struct past past;
	struct converter *convert;
	struct convert_file file;
	uint64_t pcs[DEPTH];
	uint8_t marks[DEPTH];
};

/* Where addresses of the process @p lie. */
struct where {
	struct judge *judge;
	const struct process *p;
};

static struct chain_place find_place(void *arg, uint64_t addr)
{
	const struct where *w = arg;
	const struct mappings_map *m = mappings_find(w->p->mappings, addr);
	struct chain_place ret = { .mapped = m };

	if (m && mappings_is_file(m->path))
		ret.file = image_get(&w->judge->past.images, m->path, &m->id);
	if (m)
		ret.offset = addr - m->start + m->offset;
	return ret;
}

static int judge_sample(void *arg, const struct perf_sample *s)
{
	struct judge *j = arg;
	struct process *p = population_process(&j->convert->all, s->pid);
	struct stack_copy copy = { .regs = &s->regs, .bytes = s->stack, .size = s->stack_size };
	struct unwound stack = { .pcs = j->pcs, .marks = j->marks, .max = DEPTH };
	struct where where = { j, p };
	const struct callchain user = perf_sample_user(s);
	struct chain chain = { user.ips, user.nr, &stack, find_place, &where };

	if (!p)
		return -ENOMEM;
	if (j->most && j->chains.samples == j->most)
		return 0;
	j->chains.lost = j->file.lost;
	/* The registers belong to a program that is being replaced: its stack is gone. */
	if (j->event->has_stacks && s->abi == 2 && !s->stack_size) {
		j->chains.without++;
		return 0;
	}
	if (s->abi == 2 && s->stack_size) {
		int err = mappings_unwind(p->mappings, p->pid, &copy, &stack);

		if (err)
			return err;
	}
	return chains_add(&j->chains, &chain) ? 0 : -ENOMEM;
}

static const struct perfdata_event *first_with_chains(const struct perfdata *pd)
{
	for (unsigned int i = 0; i < pd->nr_events; i++)
		if (pd->events[i].has_chains)
			return &pd->events[i];
	return NULL;
}

/* Judges all samples. Returns 0 or a negative errno. */
static int judge_all(struct judge *j, struct perfdata *pd)
{
	const struct shstk_symbols_opts opts = { .no_lines = true };
	const struct convert_opts how = {
		.source = convert_file_source(j->event),
		.kernel = KERNEL_NEVER,
		.depth = DEPTH,
	};
	struct shstk_symbols *symbols;
	struct shstk_profile *profile;

	if (past_init(&j->past, pd, NULL) || shstk_symbols_create(&opts, &symbols) ||
	    shstk_profile_create(symbols, &profile))
		return -ENOMEM;
	j->convert = converter_create(&how, symbols, profile, &j->past.files);
	if (!j->convert)
		return -ENOMEM;
	j->file = (struct convert_file){
		.pd = pd,
		.event = j->event,
		.convert = j->convert,
		.sample = judge_sample,
		.arg = j,
	};
	return convert_file(&j->file);
}

int main(int argc, char **argv)
{
	static struct judge j;
	struct perfdata *pd;
	struct reason why;
	int err;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: judge FILE [N]\n");
		return 2;
	}
	if (argc > 2)
		j.most = strtoul(argv[2], NULL, 10);
	if (perfdata_open(argv[1], &pd, &why)) {
		fprintf(stderr, "judge: %s\n", why.text);
		return 1;
	}
	j.event = pd->arch ? first_with_chains(pd) : NULL;
	if (!j.event) {
		fprintf(stderr, "judge: %s has no callchains: record with perf record -g\n",
			argv[1]);
		return 1;
	}
	err = judge_all(&j, pd);
	if (err) {
		fprintf(stderr, "judge: %s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	chains_print(&j.chains);
	return fflush(stdout) ? 1 : 0;
}
