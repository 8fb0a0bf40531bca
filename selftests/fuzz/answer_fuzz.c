// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * answer_fuzz.c - any bytes as what a server answers to questions about debug files: they are refused,
 * or what was found is text that can be shown.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/push/send/answer.h"

#define MEMBERS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct answer_member *m, int err)
{
	if (m->kind > ANSWER_OTHER || (err && m->kind != ANSWER_ABSENT))
		abort();
	if (m->kind != ANSWER_TEXT)
		return;
	if (!memchr(m->text, '\0', m->room))
		abort();
	for (const char *c = m->text; *c; c++)
		if (*c < ' ' || *c >= 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char id[8], strategy[64], url[256];
	struct answer_member members[MEMBERS] = {
		{ NULL, "shouldInitiateUpload", NULL, 0, 0 },
		{ "uploadInstructions", "uploadId", id, sizeof(id), 0 },
		{ "uploadInstructions", "uploadStrategy", strategy, sizeof(strategy), 0 },
		{ "uploadInstructions", "signedUrl", url, sizeof(url), 0 },
	};
	char *text = malloc(size);
	int err;

	if (size && !text)
		abort();
	if (size)
		memcpy(text, data, size);
	err = answer_read(text ? text : "", size, members, MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++)
		judge(members + i, err);
	free(text);
	return 0;
}
