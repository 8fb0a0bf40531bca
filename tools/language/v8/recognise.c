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
#include "tools/convert/context_variable.h"
#include "tools/elf/symbols.h"
#include "tools/language/v8/v8.h"

#define PREFIX "v8dbg_"
#define STATE_GC 1 /* the state of the virtual machine while it moves objects (StateTag) */
#define ENTERED (-64) /* c_entry_fp_ that JSEntry() has saved, from its frame pointer on */
#define THREAD_KEYS 0x318 /* offset from the thread pointer of the value of key 0, in glibc */
#define PAGE 4096
#define CURRENT "_ZN2v88internal18g_current_isolate_E" /* g_current_isolate_, of each thread */

/* Offsets that all versions have, for which there are no variables or not in all versions. */
#define SHARED_DATA 8
#define SCRIPT_LINE 24
#define SCRIPT_ID 64
#define SCOPE_LOCALS 24
#define DATA_STATES 0 /* indices in an array (DeoptimizationData) */
#define DATA_INLINED 1
#define SHARED_BEHIND 1 /* from the index of the number of machine code on */
#define CALLS_BEHIND 2
#define EXITS_BEHIND 3
#define CHECKS_BEHIND 4
#define PLACES_BEHIND 6
#define SCOPE_INLINE 75 /* kScopeInfoMaxInlinedLocalNamesSize */
#define SCOPE_MODULE 3 /* scopes and bits of their flags (ScopeFlags) */
#define SCOPE_SAVED 10
#define SCOPE_NAME 12
#define SCOPE_INFERRED 14
#define RESOURCE_DATA 24
#define MIDDLE_BEHIND 1 /* kinds of code, from that of the first compiler on */
#define OPTIMIZED_BEHIND 2
#define NO_KIND 16

/*
 * A variable that describes objects, and the member of struct native_target that it tells. Names that end in "__"
 * have the type behind that, which differs. Versions name some members differently; the last one of a name that is
 * there counts.
 */
struct variable {
	const char *name;
	size_t member;
};

#define OF(what) offsetof(struct native_target, what)

static const struct variable variables[] = {
	{ "class_Map__instance_type__", OF(at.map_type) },
	{ "class_JSFunction__shared__", OF(at.function_shared) },
	{ "class_SharedFunctionInfo__function_data__", OF(at.data) },
	{ "class_SharedFunctionInfo__name_or_scope_info__", OF(at.scope) },
	{ "class_SharedFunctionInfo__script_or_debug_info__", OF(at.script) },
	{ "class_SharedFunctionInfo__script__", OF(at.script) },
	{ "class_Script__source__", OF(at.script_source) },
	{ "class_Script__name__", OF(at.script_name) },
	{ "class_ThinString__actual__", OF(at.string_next) },
	{ "type_SharedFunctionInfo__", OF(types.shared) },
	{ "type_ScopeInfo__", OF(types.scope) },
	{ "type_Script__", OF(types.script) },
	{ "type_BytecodeArray__", OF(types.bytecode) },
	{ "type_ByteArray__", OF(types.states) },
	{ "type_ByteArray__", OF(types.bytes) },
	{ "type_TrustedByteArray__", OF(types.bytes) },
	{ "type_Code__", OF(types.code) },
	{ "type_InstructionStream__", OF(types.stream) },
	{ "CodeKindBaseline", OF(kind_baseline) },
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
};

#define NR_EXPECTED (sizeof(expected) / sizeof(*expected))

/**
 * struct found - the addresses of symbols; 0: there is none
 * @major: V8's major version.
 * @minor: its minor version.
 * @key: the key by which a thread has its virtual machine.
 * @has_current: there is a thread-local variable that has it.
 * @first: the index of the first variable in a scope.
 * @functions: functions that only return something.
 * @variables: see &struct variable.
 * @expected: see &struct expected.
 */
struct found {
	uint64_t major;
	uint64_t minor;
	uint64_t key;
	bool has_current;
	uint64_t first;
	struct v8_symbols functions;
	uint64_t variables[NR_VARIABLES];
	uint64_t expected[NR_EXPECTED];
};

bool v8_may_be(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strcmp(name, "node") || !strcmp(name, "nodejs") || !strncmp(name, "libnode.so", 10);
}

/* Returns whether a name is that of a variable, apart from the type behind it. */
static bool is_named(const char *name, const char *variable)
{
	const size_t size = strlen(variable);

	return !strncmp(name, variable, size) && (!name[size] || variable[size - 1] == '_');
}

static void take_variable(struct found *f, uint64_t value, const char *name)
{
	for (size_t i = 0; i < NR_VARIABLES; i++)
		if (is_named(name, variables[i].name))
			f->variables[i] = value;
	for (size_t i = 0; i < NR_EXPECTED; i++)
		if (!strcmp(name, expected[i].name))
			f->expected[i] = value;
	if (!strcmp(name, "scopeinfo_idx_first_vars"))
		f->first = value;
}

/* Other symbols of V8, and the member of struct found that has the address. */
static const struct {
	const char *name;
	size_t member;
} symbols[] = {
	{ "_ZN2v88internal7Version6major_E", offsetof(struct found, major) },
	{ "_ZN2v88internal7Version6minor_E", offsetof(struct found, minor) },
	{ "_ZN2v88internal7Isolate12isolate_key_E", offsetof(struct found, key) },
	{ "_ZN2v87Isolate10GetCurrentEv", offsetof(struct found, functions.current) },
	{ "_ZN2v87Isolate13TryGetCurrentEv", offsetof(struct found, functions.try_current) },
	{ "_ZNK2v88internal7Isolate18embedded_blob_codeEv",
	  offsetof(struct found, functions.blob) },
	{ "_ZNK2v88internal7Isolate23embedded_blob_code_sizeEv",
	  offsetof(struct found, functions.blob_size) },
	{ "_ZN2v87Isolate20GetEmbeddedCodeRangeEPPKvPm", offsetof(struct found, functions.range) },
};

static int take_symbol(void *arg, GElf_Word table, const GElf_Sym *sym, const char *name)
{
	struct found *f = arg;

	(void)table;
	if (sym->st_shndx == SHN_UNDEF)
		return 0;
	if (!strncmp(name, PREFIX, sizeof(PREFIX) - 1))
		take_variable(f, sym->st_value, name + sizeof(PREFIX) - 1);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		if (!strcmp(name, symbols[i].name))
			memcpy((char *)f + symbols[i].member, &sym->st_value, sizeof(uint64_t));
	if (!strcmp(name, CURRENT))
		f->has_current = GELF_ST_TYPE(sym->st_info) == STT_TLS;
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

#define UNDESCRIBED "its V8 does not describe its objects"
#define OTHERWISE "its V8 has other objects than those that are known"

static int refuse(struct reason *why, const char *what)
{
	because(why, "JavaScript: %s", what);
	return -EINVAL;
}

/*
 * Reads the variables that are in all versions, and compares them. Returns 0, -EAGAIN, or -EINVAL with the
 * reason.
 */
static int compare_variables(const struct language_module *m, const struct found *f, uint64_t bias,
			     const struct v8_version *v, struct reason *why)
{
	int32_t value;

	for (size_t i = 0; i < NR_EXPECTED; i++) {
		if (!f->expected[i])
			return refuse(why, UNDESCRIBED);
		if (m->read(m->arg, bias + f->expected[i], &value, sizeof(value)))
			return -EAGAIN;
		if (value != expected[i].value)
			return refuse(why, OTHERWISE);
	}
	if (!f->first)
		return refuse(why, UNDESCRIBED);
	if (m->read(m->arg, bias + f->first, &value, sizeof(value)))
		return -EAGAIN;
	return (uint32_t)value == v->scope.first / 8 - 1 ? 0 : refuse(why, OTHERWISE);
}

/* Reads the variables. Returns 0, -EAGAIN, or -EINVAL with the reason. */
static int read_variables(const struct language_module *m, const struct found *f, uint64_t bias,
			  struct native_target *t, struct reason *why)
{
	int32_t value;

	for (size_t i = 0; i < NR_VARIABLES; i++)
		if (f->variables[i] && m->read(m->arg, bias + f->variables[i],
					       (char *)t + variables[i].member, sizeof(value)))
			return -EAGAIN;
	for (size_t i = 0; i < NR_VARIABLES; i++) {
		memcpy(&value, (char *)t + variables[i].member, sizeof(value));
		if (!value && variables[i].member != OF(types.stream))
			return refuse(why, UNDESCRIBED);
	}
	return 0;
}

/* Sets what the variables do not tell, or not in all versions. */
static void set_target(const struct v8_version *v, struct native_target *t)
{
	t->slot = THREAD_KEYS;
	t->entry_fp_at = v->entry_fp;
	t->fast_fp_at = v->fast_fp;
	t->fast_pc_at = v->fast_pc;
	t->outermost_at = v->outermost;
	t->state_at = v->state;
	t->moving = STATE_GC;
	t->entered_at = ENTERED;
	t->bytecode_bias = v->bytecode_head - 1;
	t->bytecode_frame = v->bytecode_frame;
	t->stream_head = v->stream_head;
	t->code_start = v->code_start;
	t->code_size = v->code_size;
	t->code_behind = v->code_behind;
	t->code_flags = v->code_flags;
	t->code_align = v->code_align;
	t->registers_at = v->registers;
	t->table_at = v->table;
	t->at = (struct native_offsets){
		.function_code = v->function_code,
		.data = SHARED_DATA,
		.script_line = SCRIPT_LINE,
		.script_id = SCRIPT_ID,
		.scope_flags = v->scope.flags,
		.scope_locals = SCOPE_LOCALS,
		.scope_first = v->scope.first,
		.scope_place = v->scope.place,
		.scope_inline = SCOPE_INLINE,
		.scope_module = SCOPE_MODULE,
		.scope_saved = SCOPE_SAVED,
		.scope_name = SCOPE_NAME,
		.scope_inferred = SCOPE_INFERRED,
		.bytecode_positions = v->bytecode_positions,
		.baseline_data = v->code_data,
		.code_positions = v->code_data + 8,
		.code_data = v->code_data,
		.data_inlined = DATA_INLINED,
		.data_literals = v->data.literals,
		.data_number = v->data.number,
		.data_shared = v->data.number + SHARED_BEHIND,
		.data_wrapped = v->data.wrapped,
		.data_calls = v->data.number + CALLS_BEHIND,
		.data_exits = v->data.number + EXITS_BEHIND,
		.data_states = DATA_STATES,
		.data_checks = v->data.number + CHECKS_BEHIND,
		.data_places = v->data.number + PLACES_BEHIND,
		.string_resource = RESOURCE_DATA,
	};
}

/* Sets what follows from the variables. Returns 0, or -EINVAL with the reason. */
static int complete_target(const struct v8_version *v, struct native_target *t, struct reason *why)
{
	t->kind_middle = v->middle ? t->kind_baseline + MIDDLE_BEHIND : NO_KIND;
	t->kind_optimized = t->kind_baseline + OPTIMIZED_BEHIND;
	if (!t->types.stream != !v->code_start)
		return refuse(why, "its V8 has its instructions elsewhere");
	/* Instructions that have no object of their own are part of the code. */
	if (!t->types.stream)
		t->types.stream = t->types.code;
	return 0;
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
	int err = f->has_current ? context_variable_find(m, CURRENT, &t->machine) : -ENOENT;

	if (err == -ENOENT && f->key) {
		t->key_at = bias + f->key;
		return 0;
	}
	if (err == -ENOENT)
		err = v8_find_current(m, &f->functions, &t->machine);
	if (err && err != -EAGAIN)
		return refuse(why, "where threads have their virtual machine is not known");
	return err;
}

/* Adds the bias to the addresses of functions. */
static void add_bias(struct v8_symbols *s, uint64_t bias)
{
	s->current += s->current ? bias : 0;
	s->try_current += s->try_current ? bias : 0;
	s->blob += s->blob ? bias : 0;
	s->blob_size += s->blob_size ? bias : 0;
	s->range += s->range ? bias : 0;
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
	add_bias(&f.functions, bias);
	err = find_version(m, &f, bias, &v, why);
	if (!err)
		err = compare_variables(m, &f, bias, v, why);
	if (err)
		return err;
	set_target(v, t);
	err = read_variables(m, &f, bias, t, why);
	if (!err)
		err = find_machine(m, &f, bias, t, why);
	if (!err && !v8_find_built_in(m, &f.functions, t))
		err = refuse(why, "where its V8 has code that was made beforehand is not known");
	if (!err)
		err = complete_target(v, t, why);
	if (err)
		return err;
	ret->version = v;
	ret->target.native = 1;
	return 0;
}
