// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * callchain.c - finds the part of the kernel's callchain that is behind the copy of a stack. See
 * callchain.h.
 *
 * A frame record is two words, on x86-64 and on arm64: the address of the next record further out,
 * and a return address. The kernel takes one entry from each record, after the program counter.
 */
#include <string.h>

#include "tools/convert/callchain.h"

#define RECORD 16 /* bytes of a frame record */
#define ADDRESS_BITS 48 /* bits of a return address; the others are for pointer authentication */

/* The place at which callchain and copy were found to be the same. */
struct link {
	uint64_t record; /* address of the outermost record in the copy */
	size_t entry; /* index of the callchain's entry from that record */
};

static bool read_record(const struct stack_copy *copy, uint64_t sp, uint64_t at, uint64_t *ret)
{
	if (at < sp || at % 8 || at - sp > copy->size || copy->size - (at - sp) < RECORD)
		return false;
	memcpy(ret, copy->bytes + (at - sp), RECORD);
	return true;
}

static bool is_same_address(uint64_t a, uint64_t b)
{
	return !((a ^ b) << (64 - ADDRESS_BITS));
}

/*
 * Follows the frame records in the copy. Returns false if the callchain has other entries, or
 * nothing behind the copy.
 */
static bool follow(const struct callchain *chain, const struct stack_copy *copy, uint64_t sp,
		   uint64_t at, struct link *ret)
{
	uint64_t record[2];

	*ret = (struct link){ 0 };
	while (ret->entry + 1 < chain->nr && read_record(copy, sp, at, record)) {
		if (!is_same_address(record[1], chain->ips[ret->entry + 1]) || record[0] <= at)
			return false;
		ret->record = at;
		ret->entry++;
		at = record[0];
	}
	/* The next record must exist and lie behind the copy. */
	return ret->entry && ret->entry + 1 < chain->nr && at % 8 == 0 &&
	       at - sp > copy->size - RECORD;
}

/* Returns whether the unwound stack has a frame whose caller is the one in this record. */
static bool agrees(const struct unwound *stack, const struct callchain *chain,
		   const struct link *link)
{
	for (unsigned int i = 1; i < stack->nr; i++)
		if (stack->sps[i - 1] <= link->record && link->record < stack->sps[i])
			return stack->pcs[i] == chain->ips[link->entry];
	return false;
}

size_t callchain_rest(const struct callchain *chain, const struct stack_copy *copy,
		      const struct unwound *stack, const struct mappings *mappings,
		      const uint64_t **ret)
{
	bool x86 = mappings_arch(mappings) == SHSTK_ARCH_X86;
	uint64_t sp = copy->regs->r[x86 ? 7 : 31], fp = copy->regs->r[x86 ? 6 : 29];
	struct link link;
	size_t n = 0;

	if (copy->size < RECORD || !follow(chain, copy, sp, fp, &link) ||
	    !agrees(stack, chain, &link))
		return 0;
	*ret = chain->ips + link.entry + 1;
	while (n < chain->nr - link.entry - 1 && mappings_has(mappings, (*ret)[n] - 1))
		n++;
	return n;
}
