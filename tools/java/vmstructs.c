// SPDX-License-Identifier: GPL-2.0-or-later
/* vmstructs.c - read HotSpot's tables of its data structures. See vmstructs.h. */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/elf/symbols.h"
#include "tools/java/vmstructs.h"

#define MAX_ENTRIES 8192 /* maximum of entries of a table; there are about 3500 */
#define CHUNK 64 /* entries that are read at once */
#define PAGE 4096
#define MAX_FLAGS 4096 /* options; there are about 1500 */
#define ORIGIN 15 /* the bits that say who has set an option */
#define BY_COMMAND 1 /* the command, */
#define BY_ENVIRONMENT 2 /* a variable of the environment, */
#define BY_FILE 3 /* or a file */
#define OWN_NUMBER_OF_8 25 /* HotSpot's version in Java 8 */

/* An entry of gHotSpotVMStructs. The layout is the same in all releases. */
struct vmstructs_entry {
	uint64_t type;
	uint64_t field;
	uint64_t kind; /* address of the name of the field's type */
	uint32_t is_static;
	uint32_t pad;
	uint64_t offset;
	uint64_t address;
};

/* The entries that are used. */
static const struct {
	const char *type;
	const char *field;
	enum vm_member member;
} names[] = {
	{ "CodeCache", "_heaps", VM_HEAPS },
	{ "CodeCache", "_heap", VM_ONLY_HEAP },
	{ "GrowableArrayBase", "_len", VM_ARRAY_LENGTH },
	{ "GenericGrowableArray", "_len", VM_ARRAY_LENGTH }, /* before Java 16 */
	{ "GrowableArray<int>", "_data", VM_ARRAY_DATA },
	{ "CodeHeap", "_memory", VM_HEAP_MEMORY },
	{ "CodeHeap", "_segmap", VM_HEAP_MAP },
	{ "CodeHeap", "_log2_segment_size", VM_HEAP_SHIFT },
	{ "VirtualSpace", "_low", VM_SPACE_LOW },
	{ "VirtualSpace", "_high", VM_SPACE_HIGH },
	{ "CodeBlob", "_name", VM_BLOB_NAME },
	{ "CodeBlob", "_size", VM_BLOB_SIZE },
	{ "CodeBlob", "_code_begin", VM_BLOB_BEGIN },
	{ "CodeBlob", "_code_offset", VM_BLOB_OFFSET },
	{ "CodeBlob", "_frame_size", VM_BLOB_FRAME },
	{ "CodeBlob", "_frame_complete_offset", VM_BLOB_READY },
	{ "nmethod", "_method", VM_COMPILED_METHOD },
	{ "CompiledMethod", "_method", VM_COMPILED_METHOD }, /* Java 10 to 22 */
	{ "Method", "_constMethod", VM_METHOD_CONST },
	{ "ConstMethod", "_constants", VM_CONST_POOL },
	{ "ConstMethod", "_name_index", VM_CONST_NAME },
	{ "ConstantPool", "_pool_holder", VM_POOL_HOLDER },
	{ "Klass", "_name", VM_CLASS_NAME },
	{ "Symbol", "_length", VM_SYMBOL_LENGTH },
	{ "Symbol", "_body[0]", VM_SYMBOL_TEXT },
	{ "Symbol", "_body", VM_SYMBOL_TEXT }, /* Java 8 */
	{ "Abstract_VM_Version", "_vm_major_version", VM_VERSION },
	{ "AbstractInterpreter", "_code", VM_INTERPRETER },
	{ "StubQueue", "_stub_buffer", VM_QUEUE_START },
	{ "StubQueue", "_buffer_limit", VM_QUEUE_SIZE },
	{ "ConstMethod", "_constMethod_size", VM_CONST_SIZE },
	{ "ConstMethod", "_flags", VM_CONST_FLAGS }, /* before Java 21 */
	{ "ConstMethod", "_flags._flags", VM_CONST_FLAGS },
	{ "ConstMethod", "_code_size", VM_CONST_CODE_SIZE },
	{ "ConstantPool", "_cache", VM_POOL_CACHE },
	{ "ConstantPool", "_length", VM_POOL_LENGTH },
	{ "ConstantPool", "_source_file_name_index", VM_POOL_SOURCE }, /* since Java 15 */
	{ "InstanceKlass", "_constants", VM_CLASS_POOL },
	{ "CompiledMethod", "_scopes_data_begin", VM_SCOPES }, /* Java 10 to 22, as the next two */
	{ "nmethod", "_dependencies_offset", VM_PLACES_END },
	{ "nmethod", "_metadata_offset", VM_METADATA },
	{ "nmethod", "_immutable_data", VM_FIXED }, /* since Java 23, as the next two */
	{ "nmethod", "_immutable_data_size", VM_FIXED_SIZE },
	{ "nmethod", "_scopes_data_offset", VM_SCOPES_AT },
	{ "CodeBlob", "_mutable_data", VM_VARIABLE }, /* since Java 25, as the next two */
	{ "CodeBlob", "_mutable_data_size", VM_VARIABLE_SIZE },
	{ "CodeBlob", "_relocation_size", VM_RELOCATION_SIZE },
	{ "nmethod", "_scopes_pcs_offset", VM_PLACES },
	{ "JVMFlag", "flags", VM_FLAGS },
	{ "JVMFlag", "numFlags", VM_NR_FLAGS },
	{ "JVMFlag", "_name", VM_FLAG_NAME },
	{ "JVMFlag", "_addr", VM_FLAG_VALUE },
	{ "JVMFlag", "_flags", VM_FLAG_ORIGIN },
};

#define NR_NAMES (sizeof(names) / sizeof(*names))

int vm_read(const struct vmstructs *vm, uint64_t addr, void *buf, size_t size)
{
	return vm->memory.read(vm->memory.arg, addr, buf, size);
}

int vm_read_member(const struct vmstructs *vm, uint64_t object, enum vm_member member, void *buf,
		   size_t size)
{
	return vm_read(vm, object + vm->places[member].at, buf, size);
}

/* Near the end of mapped memory, which is the end of a page, only the rest of the page is read. */
bool vm_read_text(const struct vmstructs *vm, uint64_t addr, char text[VM_TEXT])
{
	size_t left = PAGE - addr % PAGE;

	memset(text, 0, VM_TEXT);
	if (!addr)
		return false;
	if (!vm_read(vm, addr, text, VM_TEXT - 1))
		return true;
	memset(text, 0, VM_TEXT);
	return left < VM_TEXT - 1 && !vm_read(vm, addr, text, left);
}

/* ---- Members ---- */

static bool is_short_type(const char *type)
{
	return !strcmp(type, "u2") || !strcmp(type, "int16_t") || !strcmp(type, "uint16_t") ||
	       !strcmp(type, "short") || !strcmp(type, "unsigned short");
}

/* Takes a member of a type if it is one of those that are used. */
static void take_member(struct vmstructs *vm, const char *type, const struct vmstructs_entry *e)
{
	char field[VM_TEXT], kind[VM_TEXT];

	if (!vm_read_text(vm, e->field, field))
		return;
	for (size_t i = 0; i < NR_NAMES; i++) {
		struct vm_place *p = &vm->places[names[i].member];

		if (strcmp(type, names[i].type) || strcmp(field, names[i].field))
			continue;
		p->known = true;
		p->at = e->is_static ? e->address : e->offset;
		p->is_short = vm_read_text(vm, e->kind, kind) && is_short_type(kind);
	}
}

/* Returns true if some members of the type are used. */
static bool is_needed(const char *type)
{
	for (size_t i = 0; i < NR_NAMES; i++)
		if (!strcmp(type, names[i].type))
			return true;
	return false;
}

/*
 * The type of the last entry. The members of a type follow each other, so a type's name is read
 * only once.
 */
struct type_seen {
	uint64_t addr;
	bool needed;
	char name[VM_TEXT];
};

static void take_entry(struct vmstructs *vm, const struct vmstructs_entry *e,
		       struct type_seen *seen)
{
	if (e->type != seen->addr) {
		seen->addr = e->type;
		seen->needed = vm_read_text(vm, e->type, seen->name) && is_needed(seen->name);
	}
	if (seen->needed)
		take_member(vm, seen->name, e);
}

/*
 * Reads the table of members, which ends with an entry of zeros. It is read in chunks as long as
 * this is possible, then entry by entry.
 */
static int read_members(struct vmstructs *vm, uint64_t table)
{
	struct vmstructs_entry chunk[CHUNK];
	struct type_seen seen = { 0 };
	size_t nr = CHUNK;

	for (size_t i = 0; i < MAX_ENTRIES; i += nr) {
		uint64_t addr = table + i * sizeof(*chunk);
		int err = vm_read(vm, addr, chunk, nr * sizeof(*chunk));

		if (err && nr > 1) {
			nr = 1;
			err = vm_read(vm, addr, chunk, sizeof(*chunk));
		}
		if (err)
			return err;
		for (size_t k = 0; k < nr; k++) {
			if (!chunk[k].type)
				return 0;
			take_entry(vm, &chunk[k], &seen);
		}
	}
	return 0;
}

static bool is_complete(const struct vm_place *p)
{
	for (int m = VM_HEAP_MEMORY; m < VM_NR_NEEDED; m++)
		if (!p[m].known && m != VM_BLOB_BEGIN && m != VM_BLOB_OFFSET)
			return false;
	return (p[VM_BLOB_BEGIN].known || p[VM_BLOB_OFFSET].known) &&
	       (p[VM_ONLY_HEAP].known ||
		(p[VM_HEAPS].known && p[VM_ARRAY_LENGTH].known && p[VM_ARRAY_DATA].known));
}

/* ---- Types ---- */

/* An entry of gHotSpotVMTypes. The layout is the same in all releases. */
struct type {
	uint64_t name;
	uint64_t above;
	uint32_t is[4];
	uint64_t size;
};

/* Sets the sizes of the types that are used, if the table has them. */
static void find_sizes(struct vmstructs *vm, uint64_t table)
{
	struct type type;
	char name[VM_TEXT];

	for (size_t i = 0; i < MAX_ENTRIES &&
			   !(vm->pool_size && vm->block_size && vm->const_size && vm->flag_size);
	     i++) {
		if (vm_read(vm, table + i * sizeof(type), &type, sizeof(type)) || !type.name)
			return;
		if (!vm_read_text(vm, type.name, name))
			continue;
		if (!strcmp(name, "ConstantPool"))
			vm->pool_size = type.size;
		else if (!strcmp(name, "HeapBlock"))
			vm->block_size = type.size;
		else if (!strcmp(name, "ConstMethod"))
			vm->const_size = type.size;
		else if (!strcmp(name, "JVMFlag"))
			vm->flag_size = type.size;
	}
}

/* Sets the release of Java, if it is known. Before Java 9, HotSpot has numbers of its own. */
static void find_version(struct vmstructs *vm)
{
	const struct vm_place *p = &vm->places[VM_VERSION];
	uint32_t version;

	if (!p->known || vm_read(vm, p->at, &version, sizeof(version)))
		return;
	if (!vm->places[VM_HEAPS].known)
		version -= OWN_NUMBER_OF_8 - 8;
	vm->version = (int)version;
}

int vmstructs_read(const struct vm_memory *memory, const struct vm_tables *tables,
		   struct vmstructs *ret)
{
	uint64_t table;
	int err;

	*ret = (struct vmstructs){ .memory = *memory };
	err = vm_read(ret, tables->structs, &table, sizeof(table));
	if (!err)
		err = read_members(ret, table);
	if (!err)
		err = vm_read(ret, tables->types, &table, sizeof(table));
	if (err)
		return err;
	find_sizes(ret, table);
	find_version(ret);
	return is_complete(ret->places) && ret->block_size ? 0 : -ENODATA;
}

/* ---- Options ---- */

/* Returns whether the option at an address was given when HotSpot began, and is true. */
static bool is_given(const struct vmstructs *vm, uint64_t flag)
{
	uint64_t address;
	uint32_t origin;
	uint8_t value;

	if (vm_read_member(vm, flag, VM_FLAG_ORIGIN, &origin, sizeof(origin)) ||
	    vm_read_member(vm, flag, VM_FLAG_VALUE, &address, sizeof(address)) ||
	    vm_read(vm, address, &value, sizeof(value)))
		return false;
	origin &= ORIGIN;
	return value == 1 &&
	       (origin == BY_COMMAND || origin == BY_ENVIRONMENT || origin == BY_FILE);
}

bool vm_was_given(const struct vmstructs *vm, const char *option)
{
	uint64_t table, nr, name;
	char text[VM_TEXT];

	for (int m = VM_FLAGS; m < VM_NR; m++)
		if (!vm->places[m].known)
			return false;
	if (!vm->flag_size || vm_read(vm, vm->places[VM_FLAGS].at, &table, sizeof(table)) ||
	    vm_read(vm, vm->places[VM_NR_FLAGS].at, &nr, sizeof(nr)))
		return false;
	for (uint64_t i = 0; i < nr && i < MAX_FLAGS; i++) {
		const uint64_t flag = table + i * vm->flag_size;

		if (vm_read_member(vm, flag, VM_FLAG_NAME, &name, sizeof(name)))
			return false;
		if (vm_read_text(vm, name, text) && !strcmp(text, option))
			return is_given(vm, flag);
	}
	return false;
}

/* ---- The file ---- */

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct vm_tables *t = arg;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF)
		return 0;
	if (!strcmp(name, "gHotSpotVMStructs"))
		t->structs = sym->st_value;
	else if (!strcmp(name, "gHotSpotVMTypes"))
		t->types = sym->st_value;
	return t->structs && t->types;
}

bool vm_tables_find(int fd, uint64_t start, uint64_t offset, struct shstk_account *account,
		    struct vm_tables *ret)
{
	uint64_t bias = 0, bytes;
	Elf *elf;

	*ret = (struct vm_tables){ 0 };
	elf = shstk_elf_begin(fd);
	if (!elf)
		return false;
	bytes = symbols_bytes(elf);
	if (symbols_bias(elf, start, offset, &bias) && shstk_account_take(account, bytes)) {
		symbols_walk(elf, take_symbol, ret);
		shstk_account_give(account, bytes);
	}
	elf_end(elf);
	if (ret->structs)
		ret->structs += bias;
	if (ret->types)
		ret->types += bias;
	return ret->structs && ret->types;
}
