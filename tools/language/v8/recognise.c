// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * recognise.c - finds out which V8 a program or library has, and where its frames are found.
 *
 * Builds of V8 for Node.js export variables, v8dbg_*, that describe its objects for debuggers. What
 * they leave out is in versions.c, or is read from the code of functions that only return it.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stddef.h>
#include <string.h>

#include "libshstk/symbol/budget.h"
#include "libshstk/symbol/elf_file.h"
#include "libshstk/unaligned.h"
#include "tools/convert/context_variable.h"
#include "tools/elf/symbols.h"
#include "tools/language/v8/v8.h"

#define PREFIX "v8dbg_"
#define STATE_GC 1 /* the state of the virtual machine while it moves objects (StateTag) */
#define OUTERMOST_BEHIND 0x20 /* ThreadLocalTop::js_entry_sp_, from c_entry_fp_ on */
#define STATE_BEHIND 0x30 /* current_vm_state_ */
#define PC_BEHIND 8 /* fast_c_call_caller_pc_, from fast_c_call_caller_fp_ on */
#define ENTERED (-64) /* c_entry_fp_ that JSEntry() has saved, from its frame pointer on */
#define THREAD_KEYS 0x318 /* offset from the thread pointer of the value of key 0, in glibc */
#define CODE_BYTES 8
#define PAGE 4096
#define CURRENT "_ZN2v88internal18g_current_isolate_E" /* g_current_isolate_, of each thread */

/* Offsets that all versions have, for which there are no variables or not in all versions. */
#define SCRIPT_LINE 24
#define SCRIPT_ID 64
#define BYTECODE_POSITIONS 32
#define BYTECODE_FRAME 40
#define CODE_DATA 16
#define CODE_POSITIONS 24
#define DATA_STATES 0 /* indices in an array (DeoptimizationData) */
#define DATA_INLINED 1
#define DATA_LITERALS 2
#define DATA_NUMBER 5
#define DATA_SHARED 6
#define DATA_CALLS 7
#define DATA_EXITS 8
#define DATA_CHECKS 9
#define DATA_PLACES 11
#define SCOPE_INLINE 75 /* kScopeInfoMaxInlinedLocalNamesSize */
#define SCOPE_MODULE 3 /* scopes and bits of their flags (ScopeFlags) */
#define SCOPE_SAVED 10
#define SCOPE_NAME 12
#define SCOPE_INFERRED 14
#define SCOPE_FIRST 32
#define RESOURCE_DATA 24
#define JS_CODE 48
#define CODE_ALIGN 32

/* A variable that describes objects, and the member of struct native_target that it tells. */
struct variable {
	const char *name;
	size_t member;
};

#define STREAM "type_InstructionStream__INSTRUCTION_STREAM_TYPE" /* not in all versions */
#define OF(what) offsetof(struct native_target, what)

static const struct variable variables[] = {
	{ "class_Map__instance_type__uint16_t", OF(at.map_type) },
	{ "class_JSFunction__shared__SharedFunctionInfo", OF(at.function_shared) },
	{ "class_SharedFunctionInfo__function_data__Object", OF(at.data) },
	{ "class_SharedFunctionInfo__name_or_scope_info__Object", OF(at.scope) },
	{ "class_SharedFunctionInfo__script_or_debug_info__HeapObject", OF(at.script) },
	{ "class_Script__source__Object", OF(at.script_source) },
	{ "class_Script__name__Object", OF(at.script_name) },
	{ "class_ThinString__actual__String", OF(at.string_next) },
	{ "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", OF(types.shared) },
	{ "type_ScopeInfo__SCOPE_INFO_TYPE", OF(types.scope) },
	{ "type_Script__SCRIPT_TYPE", OF(types.script) },
	{ "type_BytecodeArray__BYTECODE_ARRAY_TYPE", OF(types.bytecode) },
	{ "type_ByteArray__BYTE_ARRAY_TYPE", OF(types.bytes) },
	{ "type_Code__CODE_TYPE", OF(types.code) },
	{ STREAM, OF(types.stream) },
};

#define NR_VARIABLES (sizeof(variables) / sizeof(*variables))

/* What all versions have, which is compared with what this one says. */
struct expected {
	const char *name;
	int32_t value;
};

static const struct expected expected[] = {
	{ "HeapObjectTag", 1 },
	{ "SmiValueShift", 1 },
	{ "SmiShiftSize", 31 },
	{ "TaggedSize", 8 },
	{ "FirstNonstringType", 128 },
	{ "StringRepresentationMask", 7 },
	{ "SeqStringTag", 0 },
	{ "ConsStringTag", 1 },
	{ "ExternalStringTag", 2 },
	{ "ThinStringTag", 5 },
	{ "OneByteStringTag", 8 },
	{ "CodeKindFieldMask", 15 },
	{ "CodeKindFieldShift", 0 },
	{ "CodeKindBaseline", 11 },
	{ "class_FixedArrayBase__length__SMI", 8 },
	{ "class_FixedArray__data__uintptr_t", 16 },
	{ "class_SeqOneByteString__chars__char", 16 },
	{ "class_SeqTwoByteString__chars__char", 16 },
	{ "class_ConsString__first__String", 16 },
	{ "off_fp_context_or_frame_type", -8 },
	{ "off_fp_function", -16 },
	{ "off_fp_bytecode_array", -32 },
	{ "off_fp_bytecode_offset", -40 },
	{ "frametype_EntryFrame", 1 },
	{ "frametype_ConstructEntryFrame", 2 },
	{ "scopeinfo_idx_ncontextlocals", 2 },
	{ "scopeinfo_idx_first_vars", 3 },
};

#define NR_EXPECTED (sizeof(expected) / sizeof(*expected))

/**
 * struct found - the addresses of symbols; 0: there is none
 * @major: V8's major version.
 * @minor: its minor version.
 * @key: the key by which a thread has its virtual machine.
 * @has_current: there is a thread-local variable that has it.
 * @blob: the function that returns the address of code that was made beforehand.
 * @blob_size: the function that returns its size.
 * @variables: see &struct variable.
 * @expected: see &struct expected.
 */
struct found {
	uint64_t major;
	uint64_t minor;
	uint64_t key;
	bool has_current;
	uint64_t blob;
	uint64_t blob_size;
	uint64_t variables[NR_VARIABLES];
	uint64_t expected[NR_EXPECTED];
};

bool v8_may_be(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strcmp(name, "node") || !strcmp(name, "nodejs") || !strncmp(name, "libnode.so", 10);
}

static void take_variable(struct found *f, uint64_t value, const char *name)
{
	for (size_t i = 0; i < NR_VARIABLES; i++)
		if (!strcmp(name, variables[i].name))
			f->variables[i] = value;
	for (size_t i = 0; i < NR_EXPECTED; i++)
		if (!strcmp(name, expected[i].name))
			f->expected[i] = value;
}

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct found *f = arg;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF)
		return 0;
	if (!strncmp(name, PREFIX, sizeof(PREFIX) - 1)) {
		take_variable(f, sym->st_value, name + sizeof(PREFIX) - 1);
	} else if (!strcmp(name, "_ZN2v88internal7Version6major_E")) {
		f->major = sym->st_value;
	} else if (!strcmp(name, "_ZN2v88internal7Version6minor_E")) {
		f->minor = sym->st_value;
	} else if (!strcmp(name, "_ZN2v88internal7Isolate12isolate_key_E")) {
		f->key = sym->st_value;
	} else if (!strcmp(name, CURRENT)) {
		f->has_current = GELF_ST_TYPE(sym->st_info) == STT_TLS;
	} else if (!strcmp(name, "_ZNK2v88internal7Isolate18embedded_blob_codeEv")) {
		f->blob = sym->st_value;
	} else if (!strcmp(name, "_ZNK2v88internal7Isolate23embedded_blob_code_sizeEv")) {
		f->blob_size = sym->st_value;
	}
	return 0;
}

static bool is_complete(const struct found *f)
{
	return f->major && f->minor && f->variables[0];
}

/* Finds the code of the file, from its first to its last part, without the bias. */
static void find_text(Elf *elf, struct native_target *t)
{
	uint64_t first = UINT64_MAX, last = 0;
	size_t nr = 0;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X))
			continue;
		if (p.p_vaddr < first)
			first = p.p_vaddr;
		if (p.p_vaddr + p.p_memsz > last)
			last = p.p_vaddr + p.p_memsz;
	}
	t->text = first;
	t->text_size = last > first ? last - first : 0;
}

/* Returns whether code that is mapped from an offset on begins a part of the file, and is no copy. */
static bool is_part(Elf *elf, uint64_t offset)
{
	size_t nr = 0;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_flags & PF_X &&
		    p.p_offset / PAGE == offset / PAGE)
			return true;
	return false;
}

/*
 * Finds the symbols, whose values are offsets from @bias on, and the code. Returns false if it is no
 * V8.
 */
static bool find_symbols(const struct language_module *m, struct found *f, uint64_t *bias,
			 struct native_target *t)
{
	uint64_t bytes;
	Elf *elf;

	*f = (struct found){ 0 };
	elf = shstk_elf_begin(m->fd);
	if (!elf)
		return false;
	bytes = symbols_bytes(elf);
	if (is_part(elf, m->offset) && symbols_bias(elf, m->start, m->offset, bias) &&
	    shstk_account_take(m->account, bytes)) {
		symbols_walk(elf, take_symbol, f);
		shstk_account_give(m->account, bytes);
	}
	find_text(elf, t);
	t->text += *bias;
	elf_end(elf);
	return is_complete(f);
}

static int refuse(struct reason *why, const char *what)
{
	because(why, "JavaScript: %s", what);
	return -EINVAL;
}

/* Reads the variables, and compares those that all versions have. */
static int read_variables(const struct language_module *m, const struct found *f, uint64_t bias,
			  struct native_target *t, struct reason *why)
{
	int32_t value;

	for (size_t i = 0; i < NR_EXPECTED; i++) {
		if (!f->expected[i])
			return refuse(why, "its V8 does not describe its objects");
		if (m->read(m->arg, bias + f->expected[i], &value, sizeof(value)))
			return -EAGAIN;
		if (value != expected[i].value)
			return refuse(why, "its V8 has other objects than those that are known");
	}
	for (size_t i = 0; i < NR_VARIABLES; i++) {
		if (!f->variables[i] && !strcmp(variables[i].name, STREAM))
			continue;
		if (!f->variables[i])
			return refuse(why, "its V8 does not describe its objects");
		if (m->read(m->arg, bias + f->variables[i], (char *)t + variables[i].member,
			    sizeof(value)))
			return -EAGAIN;
	}
	return 0;
}

/* Returns the offset that a function returns the member of its argument at; 0: it is another function. */
static uint32_t returned(const struct language_module *m, uint64_t addr, bool wide)
{
	static const uint8_t load[] = { 0x48, 0x8b, 0x87 }; /* mov OFFSET(%rdi),%rax */
	uint8_t code[CODE_BYTES];
	const size_t skip = wide ? 0 : 1;

	if (m->read(m->arg, addr, code, sizeof(code)) ||
	    memcmp(code, load + skip, sizeof(load) - skip) || code[7 - skip] != 0xc3)
		return 0;
	return get32(code + sizeof(load) - skip);
}

static void set_target(const struct v8_version *v, struct native_target *t)
{
	struct native_offsets *o = &t->at;

	t->slot = THREAD_KEYS;
	t->entry_fp_at = v->entry_fp;
	t->fast_fp_at = v->fast_fp;
	t->fast_pc_at = v->fast_fp + PC_BEHIND;
	t->outermost_at = v->entry_fp + OUTERMOST_BEHIND;
	t->state_at = v->entry_fp + STATE_BEHIND;
	t->moving = STATE_GC;
	t->entered_at = ENTERED;
	t->bytecode_bias = v->bytecode_head - 1;
	t->bytecode_frame = BYTECODE_FRAME;
	t->stream_head = v->stream_head;
	t->code_start = v->code_start;
	t->code_size = v->code_size;
	t->code_flags = v->code_flags;
	t->code_align = CODE_ALIGN;
	o->function_code = JS_CODE;
	o->script_line = SCRIPT_LINE;
	o->script_id = SCRIPT_ID;
	o->scope_flags = 8;
	o->scope_locals = 24;
	o->scope_first = SCOPE_FIRST;
	o->scope_inline = SCOPE_INLINE;
	o->scope_module = SCOPE_MODULE;
	o->scope_saved = SCOPE_SAVED;
	o->scope_name = SCOPE_NAME;
	o->scope_inferred = SCOPE_INFERRED;
	o->bytecode_positions = BYTECODE_POSITIONS;
	o->baseline_data = CODE_DATA;
	o->code_positions = CODE_POSITIONS;
	o->code_data = CODE_DATA;
	o->data_inlined = DATA_INLINED;
	o->data_literals = DATA_LITERALS;
	o->data_number = DATA_NUMBER;
	o->data_shared = DATA_SHARED;
	o->data_calls = DATA_CALLS;
	o->data_exits = DATA_EXITS;
	o->data_states = DATA_STATES;
	o->data_checks = DATA_CHECKS;
	o->data_places = DATA_PLACES;
	o->string_resource = RESOURCE_DATA;
}

/* Finds the version. Returns 0, -EAGAIN, or -EINVAL with the reason. */
static int find_version(const struct language_module *m, const struct found *f, uint64_t bias,
			const struct v8_version **ret, struct reason *why)
{
	int32_t major, minor;

	if (m->read(m->arg, bias + f->major, &major, sizeof(major)) ||
	    m->read(m->arg, bias + f->minor, &minor, sizeof(minor)))
		return -EAGAIN;
	*ret = v8_version(major, minor);
	if (*ret)
		return 0;
	because(why, "JavaScript: V8 %d.%d is not known", major, minor);
	return -EINVAL;
}

/* Finds out how a thread has its virtual machine. Returns 0, -EAGAIN, or -EINVAL with the reason. */
static int find_machine(const struct language_module *m, const struct found *f, uint64_t bias,
			struct native_target *t, struct reason *why)
{
	int err = f->has_current ? context_variable_find(m, CURRENT, &t->machine) : 0;

	if (err == -EAGAIN)
		return err;
	if (err || (!f->has_current && !f->key))
		return refuse(why, "where threads have their virtual machine is not known");
	t->key_at = f->has_current ? 0 : bias + f->key;
	return 0;
}

int v8_recognise(const struct language_module *m, struct language_found *ret, struct reason *why)
{
	struct native_target *t = &ret->native;
	const struct v8_version *v;
	uint64_t bias = 0;
	struct found f;
	int err;

	if (!find_symbols(m, &f, &bias, t))
		return -ENOENT;
	err = find_version(m, &f, bias, &v, why);
	if (!err)
		err = read_variables(m, &f, bias, t, why);
	if (err)
		return err;
	err = find_machine(m, &f, bias, t, why);
	if (err)
		return err;
	t->built_in_at = returned(m, bias + f.blob, true);
	t->built_in_size_at = returned(m, bias + f.blob_size, false);
	if (!t->built_in_at || !t->built_in_size_at)
		return refuse(why, "where its V8 has code that was made beforehand is not known");
	set_target(v, t);
	if (!t->types.stream != !v->code_start)
		return refuse(why, "its V8 has its instructions elsewhere");
	/* Instructions that have no object of their own are part of the code. */
	if (!t->types.stream)
		t->types.stream = t->types.code;
	ret->version = v;
	ret->target.native = 1;
	return 0;
}
