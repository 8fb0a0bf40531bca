// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * agent_recording_check.c - shows, with --check-sources, stacks that hardware and software see
 * differently. See agent_recording_private.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "libshstk/shstk.h"
#include "tools/record/agent/agent_recording_private.h"

#define MAX_SHOWN 20000

/* Prints the names of a stack's functions in one line, outermost first. */
static void print_stack(FILE *out, const char *source, struct process_image *image,
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

void drain_show_difference(struct drain *d, struct process_image *image, const struct rec_sample *s)
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
	/* Print at once and as a whole, because the command may print too. */
	if (!fclose(out))
		fputs(text, stderr);
	free(text);
}
