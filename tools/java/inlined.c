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

/* Returns whether all of some members are known. */
static bool are_known(const struct vmstructs *vm, enum vm_member first, enum vm_member last)
{
	for (enum vm_member m = first; m <= last; m++)
		if (!vm->places[m].known)
			return false;
	return vm->places[VM_PLACES].known;
}

/* Reads an offset or a size, which is an int. Returns false if it cannot be read, or is none. */
static bool read_offset(const struct vmstructs *vm, uint64_t object, enum vm_member member,
			uint32_t *ret)
{
	return !vm_read_member(vm, object, member, ret, sizeof(*ret)) && *ret <= INT32_MAX;
}

/* Says where the tables are, if each one ends behind its beginning. */
static bool set_tables(uint64_t places, uint64_t places_end, uint64_t metadata,
		       uint64_t metadata_end, struct tables *ret)
{
	if (places_end <= places || metadata_end < metadata || ret->scopes > ret->scopes_end ||
	    (places_end - places) / sizeof(struct place) >= MAX_PLACES ||
	    (metadata_end - metadata) / WORD > UINT32_MAX)
		return false;
	ret->places = places;
	ret->nr_places = (places_end - places) / sizeof(struct place);
	ret->metadata = metadata;
	ret->nr_metadata = (metadata_end - metadata) / WORD;
	return true;
}

/* In Java 10 to 22, all tables lie behind the code: metadata, descriptions, places. */
static bool find_behind(const struct vmstructs *vm, uint64_t blob, struct tables *ret)
{
	uint32_t places, end, metadata;

	if (vm_read_member(vm, blob, VM_SCOPES, &ret->scopes, WORD) ||
	    !read_offset(vm, blob, VM_PLACES, &places) ||
	    !read_offset(vm, blob, VM_PLACES_END, &end) ||
	    !read_offset(vm, blob, VM_METADATA, &metadata) || !places || !metadata)
		return false;
	ret->scopes_end = blob + places;
	return set_tables(blob + places, blob + end, blob + metadata, ret->scopes, ret);
}

/* Since Java 25, they are in two pieces of memory of their own. */
static bool find_apart(const struct vmstructs *vm, uint64_t blob, struct tables *ret)
{
	uint64_t fixed, variable;
	uint32_t places, scopes, fixed_size, relocations, variable_size;

	if (vm_read_member(vm, blob, VM_FIXED, &fixed, WORD) ||
	    vm_read_member(vm, blob, VM_VARIABLE, &variable, WORD) ||
	    !read_offset(vm, blob, VM_PLACES, &places) ||
	    !read_offset(vm, blob, VM_SCOPES_AT, &scopes) ||
	    !read_offset(vm, blob, VM_FIXED_SIZE, &fixed_size) ||
	    !read_offset(vm, blob, VM_RELOCATION_SIZE, &relocations) ||
	    !read_offset(vm, blob, VM_VARIABLE_SIZE, &variable_size))
		return false;
	ret->scopes = fixed + scopes;
	ret->scopes_end = fixed + fixed_size;
	relocations = (relocations + WORD - 1) / WORD * WORD;
	return set_tables(fixed + places, fixed + scopes, variable + relocations,
			  variable + variable_size, ret);
}

/* Reads where the tables of a compiled method are. Returns false if it has none that are known. */
static bool find_tables(const struct vmstructs *vm, uint64_t blob, struct tables *ret)
{
	if (are_known(vm, VM_FIXED, VM_RELOCATION_SIZE))
		return find_apart(vm, blob, ret);
	return are_known(vm, VM_SCOPES, VM_METADATA) && find_behind(vm, blob, ret);
}

static bool read_place(const struct vmstructs *vm, const struct tables *t, uint32_t i,
		       struct place *ret)
{
	return i < t->nr_places &&
	       !vm_read(vm, t->places + (uint64_t)i * sizeof(*ret), ret, sizeof(*ret));
}

/* Finds the first place that is not before an offset of the code. Returns false if there is none. */
static bool find_place(const struct vmstructs *vm, const struct tables *t, int32_t offset,
		       uint32_t *index, struct place *ret)
{
	uint32_t lo = 0, hi = t->nr_places;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;
		struct place place;

		if (!read_place(vm, t, mid, &place))
			return false;
		if (place.offset < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	*index = lo;
	return read_place(vm, t, lo, ret);
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
	ret->at = ret->or_at = at - 1;
	return !vm_read(vm, t->metadata + (uint64_t)(method - 1) * WORD, &ret->method, WORD);
}

/*
 * Reads the methods of a place, the innermost first. Returns how many they are; 0: they are not known, or
 * the outermost one is not @method.
 */
static unsigned int read_scopes(const struct vmstructs *vm, const struct tables *t,
				const struct place *place, uint64_t method, struct java_scope *ret)
{
	uint32_t scope = place->scope > 0 ? place->scope : 0;
	unsigned int nr = 0;

	while (scope) {
		if (nr == INLINED_MAX || !read_scope(vm, t, &scope, &ret[nr]))
			return 0;
		nr++;
	}
	return nr && ret[nr - 1].method == method ? nr : 0;
}

unsigned int java_inlined(const struct vmstructs *vm, const struct codeblob *code, uint64_t pc,
			  struct java_scope *ret)
{
	const int32_t offset = (int32_t)(pc - code->start);
	struct tables tables;
	struct place place;
	uint32_t index;

	if (!code->method || !find_tables(vm, code->address, &tables) ||
	    !find_place(vm, &tables, offset, &index, &place) || place.offset != offset)
		return 0;
	return read_scopes(vm, &tables, &place, code->method, ret);
}

/*
 * Keeps of the methods at one place those that are at another one, too, from the outermost one on. Where
 * both are at different bytecodes of a method, it is the last one. Returns how many they are.
 */
static unsigned int keep_common(struct java_scope *scopes, unsigned int nr,
				const struct java_scope *other, unsigned int nr_other)
{
	unsigned int kept = 0;
	bool same = true;

	for (; same && kept < nr && kept < nr_other; kept++) {
		struct java_scope *scope = &scopes[nr - 1 - kept];
		const struct java_scope *its = &other[nr_other - 1 - kept];

		if (scope->method != its->method)
			break;
		same = scope->at == its->at;
		scope->or_at = its->at;
	}
	memmove(scopes, scopes + nr - kept, kept * sizeof(*scopes));
	return kept;
}

unsigned int java_inlined_between(const struct vmstructs *vm, const struct codeblob *code,
				  uint64_t pc, struct java_scope *ret)
{
	const int32_t offset = (int32_t)(pc - code->start);
	struct java_scope scopes[INLINED_MAX];
	struct place place, other;
	struct tables tables;
	unsigned int nr, nr_other;
	uint32_t index;

	if (!code->method || !find_tables(vm, code->address, &tables) ||
	    !find_place(vm, &tables, offset, &index, &place))
		return 0;
	/* A place may be an instruction of the range before it, or, behind a call, of that after it. */
	if (!read_place(vm, &tables, place.offset == offset ? index + 1 : index - 1, &other))
		return 0;
	nr = read_scopes(vm, &tables, &place, code->method, ret);
	nr_other = read_scopes(vm, &tables, &other, code->method, scopes);
	return keep_common(ret, nr, scopes, nr_other);
}
