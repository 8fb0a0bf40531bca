// SPDX-License-Identifier: GPL-2.0-or-later
/* versions.c - the offsets that V8 does not export, as its headers and its own code have them. */
#include <stddef.h>

#include "tools/language/v8/v8.h"

#define OTHER_FRAME(operands) ((operands) | V8_STATE_FRAME)
#define FUNCTION(operands) ((operands) | V8_STATE_FRAME | V8_STATE_FUNCTION)

/* The instructions of states, in their order (TranslationOpcode). */
static const uint8_t states_10_2[] = {
	OTHER_FRAME(2),
	1,
	0,
	3 | V8_STATE_BEGIN,
	1,
	1,
	OTHER_FRAME(3),
	1,
	OTHER_FRAME(3),
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	FUNCTION(5),
	OTHER_FRAME(3),
	OTHER_FRAME(3),
	OTHER_FRAME(4),
	1,
	1,
	1,
	1,
	1,
	2,
};

static const uint8_t states_11_3[] = {
	1,
	0,
	3 | V8_STATE_BEGIN,
	3 | V8_STATE_BEGIN,
	1,
	1,
	OTHER_FRAME(3),
	1,
	OTHER_FRAME(3),
	1,
	1,
	1,
	1,
	1,
	OTHER_FRAME(2),
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	FUNCTION(5),
	FUNCTION(3),
	OTHER_FRAME(3),
	OTHER_FRAME(3),
	OTHER_FRAME(4),
	0,
	1,
	1,
	1,
	1,
	1,
	2,
	1 | V8_STATE_TAKE,
};

/*
 * What bytecodes have (Bytecodes::kBytecodeSizes): the upper digit is the number of bytes that stay, with that of the
 * bytecode itself, the lower one of those that are twice or four times as many behind a prefix.
 */
static const uint8_t bytecodes_10_2[] = {
	010, 010, 010, 010, 010, 011, 012, 013, 014, 032, 033, 011, 010, 011, 010, 010, 010, 010,
	010, 011, 013, 013, 011, 011, 011, 012, 011, 011, 011, 010, 010, 010, 020, 012, 012, 012,
	013, 011, 011, 013, 013, 011, 013, 013, 021, 013, 013, 012, 012, 012, 013, 013, 013, 013,
	013, 023, 011, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012,
	012, 012, 012, 012, 012, 012, 012, 012, 012, 011, 011, 011, 011, 010, 010, 010, 011, 011,
	011, 014, 014, 013, 014, 015, 014, 012, 013, 014, 014, 032, 033, 022, 022, 014, 014, 012,
	012, 012, 012, 012, 012, 012, 012, 011, 011, 011, 011, 010, 022, 022, 010, 011, 022, 010,
	022, 012, 022, 011, 012, 012, 012, 012, 010, 010, 010, 012, 011, 011, 011, 011, 011, 011,
	011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 013, 011,
	012, 012, 014, 011, 010, 010, 010, 010, 011, 010, 010, 011, 013, 014, 013, 013, 010, 011,
	011, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010
};

static const uint8_t bytecodes_11_3[] = {
	010, 010, 010, 010, 010, 011, 012, 013, 014, 032, 033, 011, 010, 011, 010, 010, 010, 010,
	010, 011, 013, 013, 011, 011, 011, 012, 011, 011, 011, 010, 010, 010, 020, 012, 012, 012,
	013, 011, 011, 013, 013, 011, 013, 013, 021, 013, 013, 012, 012, 012, 013, 013, 013, 023,
	013, 023, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012, 012,
	012, 012, 012, 012, 012, 012, 012, 012, 011, 011, 011, 011, 010, 010, 010, 011, 011, 011,
	013, 014, 014, 013, 014, 015, 014, 012, 013, 014, 014, 032, 033, 022, 022, 014, 014, 012,
	012, 012, 012, 012, 012, 012, 012, 011, 011, 011, 011, 010, 032, 022, 010, 011, 022, 010,
	022, 012, 022, 011, 012, 012, 012, 012, 010, 010, 010, 013, 011, 011, 011, 011, 011, 011,
	011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 011, 013, 011,
	012, 012, 014, 011, 010, 010, 010, 010, 011, 010, 010, 011, 013, 014, 013, 013, 010, 011,
	011, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010, 010
};

static const struct v8_version versions[] = {
	/* Node.js 18 */
	{ 10, 2, 0x4538, 0x100, 128, 0, 40, 48, 56, states_10_2, sizeof(states_10_2), true,
	  bytecodes_10_2, sizeof(bytecodes_10_2) },
	/* Node.js 20 */
	{ 11, 3, 0x180, 0xe8, 16, 40, 56, 48, 54, states_11_3, sizeof(states_11_3), false,
	  bytecodes_11_3, sizeof(bytecodes_11_3) },
};

const struct v8_version *v8_version(int32_t major, int32_t minor)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (versions[i].major == major && versions[i].minor == minor)
			return &versions[i];
	return NULL;
}
