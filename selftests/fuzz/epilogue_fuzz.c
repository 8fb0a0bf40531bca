// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * epilogue_fuzz.c - code that no unwind information describes: any bytes, as x86-64 and as arm64
 * instructions. The first byte chooses the machine and options, the second says where to begin.
 */
#include <stdlib.h>

#include "epilogue.h"
#include "machine.h"

#define BASE 0x10000

struct input {
	const uint8_t *data;
	size_t size;
	unsigned long asked;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *bytes(void *arg, uint64_t pc, size_t *len)
{
	struct input *in = arg;

	if (++in->asked > 1000)
		abort(); /* the reads are not bounded */
	if (pc - BASE >= in->size)
		return NULL;
	*len = in->size - (pc - BASE);
	return in->data + (pc - BASE);
}

static bool covered(void *arg, uint64_t pc)
{
	(void)arg;
	return !(pc % 61);
}

static bool found(void *arg, uint64_t rule, bool lost_fp)
{
	(void)lost_fp;
	if (RULE_KIND(rule) != RULE_SP && RULE_KIND(rule) != RULE_FP)
		abort();
	return *(bool *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct machine *m;
	struct code code = { bytes, covered, NULL };
	struct input in;
	bool stop;

	if (size < 3)
		return 0;
	m = data[0] & 1 ? &machine_arm64 : &machine_x86;
	in = (struct input){ data + 2, size - 2, 0 };
	code.arg = &in;
	stop = data[0] & 4;
	if (m->clone_code)
		m->clone_code(in.data + data[1] % in.size, data[1] % in.size,
			      in.size - data[1] % in.size);
	epilogue_rules(m, &code, BASE + data[1] % in.size, data[0] & 2, found, &stop);
	return 0;
}
