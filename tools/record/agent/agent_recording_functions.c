// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * agent_recording_functions.c - functions of Python programs in samples. See
 * agent_recording_private.h.
 *
 * A function is told of once in a process, by the thread that met it first. So it may lie in a ring that
 * is emptied after the one whose sample has it: then the rings are searched ahead.
 */
#include <errno.h>

#include "libshstk/shstk.h"
#include "tools/language/python/python.h"
#include "tools/record/agent/agent_recording_private.h"

_Static_assert(REC_BEGINNING == PYTHON_BEGINNING, "the agent passes on what is looked at");
_Static_assert(AGENT_FUNCTIONS_OWNERS == AGENT_RECORDING_MAX_PROCESSES, "each image has a number");

int agent_recording_take_python(struct agent_recording *d, struct process_image *image,
				const struct rec_python *python)
{
	const struct agent_python it = {
		.minor = python->minor,
		.run = python->run,
		.run_size = python->run_size,
		.beginning = python->beginning,
	};

	if (python->record.size < sizeof(*python) || image->python)
		return 0;
	if (!d->functions) {
		d->functions = agent_functions_create(d->max_depth, d->fold);
		if (!d->functions)
			return -ENOMEM;
		agent_functions_name(d->functions, d->symbols);
	}
	image->python = agent_functions_python(d->functions, &it);
	return 0;
}

int agent_recording_take_code(struct agent_recording *d, const struct process_image *image,
			      struct rec_code *code)
{
	if (!image->python || code->record.size < offsetof(struct rec_code, code.table))
		return 0;
	return agent_functions_take(d->functions, image->python, image->number, &code->code,
				    code->record.size - offsetof(struct rec_code, code));
}

uint32_t agent_recording_native_size(const struct rec_sample *s)
{
	if (s->frames == REC_FRAMES_UNKNOWN)
		return s->record.size;
	if (s->frames % 8 || s->frames > s->record.size)
		return 0;
	return s->record.size - s->frames;
}

void agent_recording_place(struct agent_recording *d, const struct process_image *image,
			   struct rec_sample *s, struct agent_stack *ret)
{
	struct agent_frames frames = {
		.owner = image->number,
		.bytes = (uint8_t *)s + s->record.size - s->frames,
		.size = s->frames,
		.complete = s->end == SHSTK_END_COMPLETE,
	};

	*ret = (struct agent_stack){ s->pcs, (const uint8_t *)&s->pcs[s->nr], s->nr, false };
	d->unread += s->frames == REC_FRAMES_UNKNOWN;
	if (!s->frames || s->frames == REC_FRAMES_UNKNOWN)
		return;
	frames.python = image->python;
	if (!image->python || !agent_functions_known(d->functions, &frames, s->nr))
		agent_recording_look_ahead(d);
	frames.python = image->python;
	agent_functions_place(d->functions, &frames, ret);
}
