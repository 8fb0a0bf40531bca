// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inlined.c - what HotSpot records about inlined methods, read from another process. See inlined.h.
 *
 * For each place at which compiled code calls there is an entry in a table, in the order of addresses.
 * It leads to the description of the innermost method there, and each one to that of its caller.
 */
#include <string.h>

#include "tools/java/inlined.h"
#include "tools/java/method.h"

#define WORD 8
#define MAX_PLACES (1u << 20)
#define SCOPE 15 /* bytes of the three numbers of a description, at most */

/* An entry of the table: a PcDesc. */
struct place {
	int32_t offset; /* of the address from the beginning of the code */
	int32_t scope; /* of the description */
	int32_t unused[2];
};

/* What belongs to a compiled method. */
struct tables {
	uint64_t scopes;
	uint64_t scopes_end;
	uint64_t places;
	uint32_t nr_places;
	uint64_t metadata;
	uint32_t nr_metadata;
};

/* Reads where the tables of a compiled method are. Returns false if it has none that are known. */
static bool find_tables(const struct vmstructs *vm, const struct codeblob *code, struct tables *ret)
{
	int32_t places, end, metadata;

	for (int m = VM_SCOPES; m < VM_NR; m++)
		if (!vm->places[m].known)
			return false;
	if (vm_read_member(vm, code->address, VM_SCOPES, &ret->scopes, WORD) ||
	    vm_read_member(vm, code->address, VM_PLACES, &places, sizeof(places)) ||
	    vm_read_member(vm, code->address, VM_PLACES_END, &end, sizeof(end)) ||
	    vm_read_member(vm, code->address, VM_METADATA, &metadata, sizeof(metadata)))
		return false;
	ret->places = code->address + places;
	ret->scopes_end = ret->places;
	ret->metadata = code->address + metadata;
	if (places <= 0 || end <= places || metadata <= 0 || ret->scopes < ret->metadata ||
	    ret->scopes > ret->scopes_end)
		return false;
	ret->nr_places = (end - places) / sizeof(struct place);
	ret->nr_metadata = (ret->scopes - ret->metadata) / WORD;
	return ret->nr_places < MAX_PLACES;
}

/* Finds the description that belongs to an offset of the code; 0: there is none. */
static uint32_t find_scope(const struct vmstructs *vm, const struct tables *t, int32_t offset)
{
	uint32_t lo = 0, hi = t->nr_places;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;
		struct place place;

		if (vm_read(vm, t->places + mid * sizeof(place), &place, sizeof(place)))
			return 0;
		if (place.offset == offset)
			return place.scope > 0 ? place.scope : 0;
		if (place.offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

/* Reads a description, and makes @scope that of the caller. Returns false if it cannot be one. */
static bool read_scope(const struct vmstructs *vm, const struct tables *t, uint32_t *scope,
		       struct java_scope *ret)
{
	const uint64_t left = t->scopes_end - t->scopes;
	uint8_t bytes[SCOPE];
	struct java_numbers numbers = { bytes, bytes + SCOPE, java_without_0(vm->version) };
	uint32_t outer, method, at;

	if (*scope >= left)
		return false;
	if (left - *scope < SCOPE)
		numbers.end = bytes + (left - *scope);
	if (vm_read(vm, t->scopes + *scope, bytes, numbers.end - bytes) ||
	    !java_number(&numbers, &outer) || !java_number(&numbers, &method) ||
	    !java_number(&numbers, &at) || !method || method > t->nr_metadata || !at)
		return false;
	*scope = outer;
	ret->at = at - 1;
	return !vm_read(vm, t->metadata + (uint64_t)(method - 1) * WORD, &ret->method, WORD);
}

unsigned int java_inlined(const struct vmstructs *vm, const struct codeblob *code, uint64_t pc,
			  struct java_scope *ret)
{
	struct tables tables;
	unsigned int nr = 0;
	uint32_t scope;

	if (!code->method || !find_tables(vm, code, &tables))
		return 0;
	scope = find_scope(vm, &tables, (int32_t)(pc - code->start));
	while (scope) {
		if (nr == INLINED_MAX || !read_scope(vm, &tables, &scope, &ret[nr]))
			return 0;
		nr++;
	}
	return nr && ret[nr - 1].method == code->method ? nr : 0;
}
