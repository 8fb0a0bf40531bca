// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stub.c - makes rules for the linker's stubs on arm64.
 */
#include <linux/shstk_rules.h>
#include <string.h>

#include "tools/rules/stub.h"

#define INSN 4
#define ENTRY_BYTES 16
#define NOP 0xd503201fu
#define BTI_C 0xd503245fu
#define PUSH 0xa9bf7bf0u /* stp x16, x30, [sp, #-16]! */

/* The state at the entry of a function, when the return address is in its register. */
#define AT_ENTRY ((uint64_t)SHSTK_RULE_SP)
/* The state behind PUSH. */
#define PUSHED (SHSTK_RULE_SP | 1ull << SHSTK_RULE_SAVED_SHIFT | 2ull << SHSTK_RULE_CFA_SHIFT)

static uint32_t insn(const struct stubs *s, size_t at)
{
	uint32_t v = 0;

	if (at < s->size && s->size - at >= INSN)
		memcpy(&v, s->code + at, INSN);
	return v;
}

/*
 * Returns whether there is an entry of the PLT at @at: it loads the address of the function from
 * the GOT, and leaves in x16 the place in the GOT.
 */
static bool is_entry(const struct stubs *s, size_t at)
{
	return (insn(s, at) & 0x9f00001f) == 0x90000010 && /* adrp x16, ... */
	       (insn(s, at + 4) & 0xffc003ff) == 0xf9400211 && /* ldr x17, [x16, ...] */
	       (insn(s, at + 8) & 0xff8003ff) == 0x91000210 && /* add x16, x16, ... */
	       insn(s, at + 12) == 0xd61f0220; /* br x17 */
}

/* Returns how many bytes at @at belong to a stub, 0 if none, and adds their rules. */
static size_t take(const struct stubs *s, size_t at, bool within)
{
	if (is_entry(s, at)) {
		s->add(s->arg, at, AT_ENTRY);
		return ENTRY_BYTES;
	}
	if (insn(s, at) == BTI_C && (is_entry(s, at + INSN) || insn(s, at + INSN) == PUSH)) {
		s->add(s->arg, at, AT_ENTRY);
		return INSN;
	}
	if (insn(s, at) == PUSH && is_entry(s, at + INSN)) {
		s->add(s->arg, at, AT_ENTRY);
		s->add(s->arg, at + INSN, PUSHED);
		return INSN + ENTRY_BYTES;
	}
	return within && insn(s, at) == NOP ? INSN : 0;
}

void stub_rules_arm64(const struct stubs *s)
{
	bool within = false;
	size_t at = 0;

	while (at < s->size) {
		size_t bytes = take(s, at, within);

		if (within && !bytes)
			s->add(s->arg, at, SHSTK_RULE_NONE);
		within = bytes;
		at += bytes ? bytes : INSN;
	}
	if (within)
		s->add(s->arg, s->size, SHSTK_RULE_NONE);
}
