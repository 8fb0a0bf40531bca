// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * interpreter_fuzz.c - any bytes as the memory of a process that may have an interpreter of a language, and
 * as code and tables in the interpreter's file. Finding out which one it is ends, gives back the memory that
 * it took, and says why if it refuses one; then the frames of a thread are read, and the tasks of a Python.
 *
 * Input: struct head, for each name of the kind that it says two bytes that are the value of a symbol, 0 if
 * there is none, and the memory. That is found again and again up to address 2^16, so lists of any shape
 * are there. The last kind has no names: what follows the head is a file, of which each address is an offset.
 *
 * With INTERPRETER_TELL in the environment it says on its output how far each input was read.
 */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libshstk/symbol/budget.h"
#include "selftests/fuzz/repeated.h"
#include "selftests/language/no_program.h"
#include "tools/language/languages.h"
#include "tools/language/php/php.h"
#include "tools/language/python/awaits.h"
#include "tools/language/python/python.h"
#include "tools/language/read.h"
#include "tools/language/ruby/ruby.h"
#include "tools/language/v8/v8.h"
#include "tools/repeats.h"

#define END 65536 /* of all addresses */
#define MOST_NAMES 64
#define NAME_BYTES 80 /* of a symbol's name, which ends with a zero byte */
#define MEMORY (64ull << 20) /* bytes that reading may take */
#define TIME 1000000000ull /* ns */
#define TID 1
#define ENTRIES 4 /* of a native stack */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/**
 * struct head - what an input begins with
 * @kind: which names follow; see kinds[].
 * @arm64: the file is one of that machine.
 * @header: where .eh_frame_hdr is, in the memory; @header_size: its bytes; the next ones likewise.
 * @frames: .eh_frame.
 * @tasks: .AsyncioDebug.
 * @relocations: relocations.
 * @size: size of each symbol.
 * @words: thread pointer, program counter, stack pointer and two more registers of the thread.
 * @back: entries of its stack.
 */
struct head {
	uint8_t kind;
	uint8_t arm64;
	uint16_t header, header_size;
	uint16_t frames, frames_size;
	uint16_t tasks, tasks_size;
	uint16_t relocations, relocations_size;
	uint16_t size;
	uint16_t words[5];
	uint16_t back[ENTRIES];
};

static const char *const php[] = {
	"executor_globals",
	"executor_globals_offset",
	"module_registry",
	"zend_vm_kind",
	"execute_ex",
	"zend_generator_resume",
	"zend_fiber_switch_context",
	"jump_fcontext",
	NULL,
};

static const char *const python[] = {
	"Py_Version",
	"_PyRuntime",
	"PyCode_Type",
	"PyCoro_Type",
	"PyUnicode_Type",
	"PyGen_Type",
	"PyAsyncGen_Type",
	"PySet_Type",
	"_PyEval_EvalFrameDefault",
	"PyGILState_GetThisThreadState",
	"pthread_self",
	NULL,
};

static const char *const ruby[] = {
	"ruby_version", "ruby_current_vm_ptr", "rb_vm_exec",
	"rb_id2str",	"ruby_current_ec",     "rb_errinfo",
	"rb_gc_count",	"rb_during_gc",	       "rb_thread_current",
	NULL,
};

/* The variables' names begin with "v8dbg_". */
static const char *const v8[] = {
	"_ZN2v88internal7Version6major_E",
	"_ZN2v88internal7Version6minor_E",
	"_ZN2v88internal7Isolate12isolate_key_E",
	"_ZN2v88internal18g_current_isolate_E",
	"_ZN2v87Isolate10GetCurrentEv",
	"_ZN2v87Isolate13TryGetCurrentEv",
	"_ZNK2v88internal7Isolate18embedded_blob_codeEv",
	"_ZNK2v88internal7Isolate23embedded_blob_code_sizeEv",
	"_ZN2v87Isolate20GetEmbeddedCodeRangeEPPKvPm",
	"HeapObjectTag",
	"SmiValueShift",
	"SmiShiftSize",
	"TaggedSize",
	"FirstNonstringType",
	"StringRepresentationMask",
	"SeqStringTag",
	"ConsStringTag",
	"ExternalStringTag",
	"ThinStringTag",
	"OneByteStringTag",
	"CodeKindFieldMask",
	"CodeKindFieldShift",
	"class_FixedArrayBase__length__SMI",
	"class_FixedArray__data__uintptr_t",
	"class_SeqOneByteString__chars__char",
	"class_SeqTwoByteString__chars__char",
	"class_ConsString__first__String",
	"off_fp_context_or_frame_type",
	"off_fp_function",
	"off_fp_bytecode_array",
	"off_fp_bytecode_offset",
	"frametype_EntryFrame",
	"frametype_ConstructEntryFrame",
	"scopeinfo_idx_ncontextlocals",
	"scopeinfo_idx_first_vars",
	"class_Map__instance_type__uint16_t",
	"class_JSFunction__shared__SharedFunctionInfo",
	"class_SharedFunctionInfo__function_data__Object",
	"class_SharedFunctionInfo__name_or_scope_info__Object",
	"class_SharedFunctionInfo__script_or_debug_info__HeapObject",
	"class_Script__source__Object",
	"class_Script__name__Object",
	"class_ThinString__actual__String",
	"type_SharedFunctionInfo__A",
	"type_ScopeInfo__A",
	"type_Script__A",
	"type_BytecodeArray__A",
	"type_ByteArray__A",
	"type_Code__A",
	"type_InstructionStream__A",
	"CodeKindBaseline",
	NULL,
};

enum kind { PHP, PYTHON, RUBY, V8, FILE_AS_IT_IS, KINDS };

static const char *const *const kinds[KINDS] = {
	[PHP] = php,
	[PYTHON] = python,
	[RUBY] = ruby,
	[V8] = v8,
};

/**
 * struct input - an input, taken apart
 * @head: its head.
 * @values: values of the symbols.
 * @nr: number of @values.
 * @memory: memory of the process.
 * @size: its bytes.
 */
struct input {
	struct head head;
	uint16_t values[MOST_NAMES];
	size_t nr;
	const uint8_t *memory;
	size_t size;
};

/* Takes an input apart. Returns false if it is too short. */
static bool take_apart(const uint8_t *data, size_t size, struct input *ret)
{
	*ret = (struct input){ 0 };
	if (size <= sizeof(ret->head))
		return false;
	memcpy(&ret->head, data, sizeof(ret->head));
	ret->head.kind %= KINDS;
	data += sizeof(ret->head);
	size -= sizeof(ret->head);
	while (kinds[ret->head.kind] && kinds[ret->head.kind][ret->nr])
		ret->nr++;
	if (ret->nr > MOST_NAMES)
		abort();
	if (size <= ret->nr * sizeof(*ret->values))
		return false;
	memcpy(ret->values, data, ret->nr * sizeof(*ret->values));
	ret->memory = data + ret->nr * sizeof(*ret->values);
	ret->size = size - ret->nr * sizeof(*ret->values);
	if (ret->size > END)
		ret->size = END;
	return true;
}

/* ---- The file ---- */

enum { SEGMENT_CODE, SEGMENT_HEADER, SEGMENT_THREAD, SEGMENTS };
enum {
	SECTION_NONE,
	SECTION_FRAMES,
	SECTION_TASKS,
	SECTION_RELOCATIONS,
	SECTION_SYMBOLS,
	SECTION_STRINGS,
	SECTIONS
};

static const char section_names[SECTIONS][16] = {
	[SECTION_FRAMES] = ".eh_frame",	   [SECTION_TASKS] = ".AsyncioDebug",
	[SECTION_RELOCATIONS] = ".rela.a", [SECTION_SYMBOLS] = ".dynsym",
	[SECTION_STRINGS] = ".dynstr",
};

/* A file: one page of headers, then the memory, which begins at address 0. */
struct file {
	Elf64_Ehdr header;
	Elf64_Phdr segments[SEGMENTS];
	Elf64_Shdr sections[SECTIONS];
	Elf64_Sym symbols[1 + MOST_NAMES];
	struct {
		char section[SECTIONS][16];
		char symbol[MOST_NAMES][NAME_BYTES];
		char end;
	} strings;
	_Alignas(4096) uint8_t memory[END];
};

/* Sets a section whose bytes are in the memory, as far as they are. */
static void set_section(struct file *f, int which, Elf64_Word type, const struct input *in,
			uint16_t at, uint16_t bytes)
{
	const size_t left = at < in->size ? in->size - at : 0;

	f->sections[which] = (Elf64_Shdr){
		.sh_type = type,
		.sh_addr = at,
		.sh_offset = offsetof(struct file, memory) + at,
		.sh_size = bytes < left ? bytes : left,
		.sh_link = SECTION_SYMBOLS,
		.sh_entsize = type == SHT_RELA ? sizeof(Elf64_Rela) : 0,
	};
}

static void set_sections(struct file *f, const struct input *in)
{
	const struct head *h = &in->head;

	set_section(f, SECTION_FRAMES, SHT_PROGBITS, in, h->frames, h->frames_size);
	set_section(f, SECTION_TASKS, SHT_PROGBITS, in, h->tasks, h->tasks_size);
	set_section(f, SECTION_RELOCATIONS, SHT_RELA, in, h->relocations, h->relocations_size);
	f->sections[SECTION_SYMBOLS] = (Elf64_Shdr){
		.sh_type = SHT_DYNSYM,
		.sh_offset = offsetof(struct file, symbols),
		.sh_size = (1 + in->nr) * sizeof(*f->symbols),
		.sh_link = SECTION_STRINGS,
		.sh_entsize = sizeof(*f->symbols),
	};
	f->sections[SECTION_STRINGS] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct file, strings),
		.sh_size = sizeof(f->strings),
	};
	memcpy(f->strings.section, section_names, sizeof(section_names));
	for (size_t i = 0; i < SECTIONS; i++)
		f->sections[i].sh_name = i * sizeof(f->strings.section[0]);
}

static void set_segments(struct file *f, const struct input *in)
{
	f->segments[SEGMENT_CODE] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = offsetof(struct file, memory),
		.p_filesz = in->size,
		.p_memsz = in->size,
	};
	f->segments[SEGMENT_HEADER] = (Elf64_Phdr){
		.p_type = PT_GNU_EH_FRAME,
		.p_vaddr = in->head.header,
		.p_filesz = in->head.header_size,
		.p_memsz = in->head.header_size,
	};
	f->segments[SEGMENT_THREAD] = (Elf64_Phdr){
		.p_type = PT_TLS,
		.p_memsz = 64,
		.p_align = 8,
	};
}

static void set_symbol(struct file *f, const struct input *in, size_t i)
{
	const char *name = kinds[in->head.kind][i];
	const bool of_thread = strstr(name, "current_ec") || strstr(name, "current_isolate");

	f->symbols[1 + i] = (Elf64_Sym){
		.st_name = (Elf64_Word)(f->strings.symbol[i] - (char *)&f->strings),
		.st_info = ELF64_ST_INFO(STB_GLOBAL, of_thread ? STT_TLS : STT_OBJECT),
		.st_shndx = in->values[i] ? SHN_ABS : SHN_UNDEF,
		.st_value = in->values[i],
		.st_size = in->head.size,
	};
	if (snprintf(f->strings.symbol[i], NAME_BYTES, "%s%s",
		     in->head.kind == V8 && *name != '_' ? "v8dbg_" : "", name) >= NAME_BYTES)
		abort();
}

/* Makes the file, and returns its bytes. */
static size_t make_file(struct file *f, const struct input *in)
{
	memset(f, 0, offsetof(struct file, memory));
	f->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1 },
		.e_type = ET_EXEC,
		.e_machine = in->head.arm64 & 1 ? EM_AARCH64 : EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(f->header),
		.e_phoff = offsetof(struct file, segments),
		.e_phentsize = sizeof(*f->segments),
		.e_phnum = SEGMENTS,
		.e_shoff = offsetof(struct file, sections),
		.e_shentsize = sizeof(*f->sections),
		.e_shnum = SECTIONS,
		.e_shstrndx = SECTION_STRINGS,
	};
	set_segments(f, in);
	set_sections(f, in);
	for (size_t i = 0; i < in->nr; i++)
		set_symbol(f, in, i);
	memcpy(f->memory, in->memory, in->size);
	return offsetof(struct file, memory) + in->size;
}

static int open_file(const struct input *in)
{
	static struct file file;
	const int fd = memfd_create("interpreter", MFD_CLOEXEC);
	const void *bytes = in->memory;
	size_t size = in->size;

	if (in->head.kind != FILE_AS_IT_IS) {
		size = make_file(&file, in);
		bytes = &file;
	}
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	return fd;
}

/* ---- The process ---- */

static int read_input(void *arg, uint64_t addr, void *buf, size_t size)
{
	const struct input *in = arg;

	if (addr > END || size > END - addr)
		return -EFAULT;
	copy_repeated(in->memory, in->size, addr, buf, size);
	return 0;
}

/* Those entries that stand for functions have names. That of a file may be missing, but is not empty. */
static void judge_names(struct languages *all, const uint64_t *pcs, size_t nr)
{
	struct shstk_symframe frame;
	const char *module;

	for (size_t i = 0; i < nr; i++)
		if (languages_function(all, pcs[i], &frame, &module) &&
		    (!frame.function || (frame.file && !*frame.file) || !module))
			abort();
}

/* Reads the frames of the thread, and puts them into a native stack. */
static void read_thread(struct languages *all, int number, struct input *in,
			struct shstk_account *account)
{
	const uint16_t *words = in->head.words;
	const struct language_thread thread = {
		.read = read_input,
		.arg = in,
		.account = account,
		.tid = TID,
		.pointer = words[0],
		.pc = words[1],
		.sp = words[2],
		.live = { words[3], words[4] },
	};
	const struct language_sample sample = {
		.number = number,
		.tid = TID,
		.pc = thread.pc,
		.sp = thread.sp,
	};
	static uint64_t pcs[LANGUAGES_MOST], sps[ENTRIES + 1];
	static uint8_t marks[LANGUAGES_MOST];
	char label[LANGUAGES_LABEL];
	unsigned int nr;
	const struct native_stack native = {
		.pcs = pcs, .marks = marks, .sps = sps, .nr = ENTRIES + 1, .complete = true
	};

	pcs[0] = thread.pc;
	sps[0] = thread.sp;
	memset(marks, 0, sizeof(marks));
	for (int i = 0; i < ENTRIES; i++) {
		pcs[1 + i] = in->head.back[i];
		sps[1 + i] = sps[i] + 64;
	}
	if (language_read(all, number, &thread))
		abort();
	nr = languages_place(all, &sample, &native, pcs, marks, LANGUAGES_MOST);
	if (nr > LANGUAGES_MOST || languages_label(all, label) > sizeof(label))
		abort();
	judge_names(all, pcs, nr);
}

static int place(void *arg, uint64_t code, int at, uint64_t *ret)
{
	return language_reading_place(arg, code, at, ret);
}

/* What is refused has a reason. */
static void judge_reason(int err, const struct reason *why)
{
	if (err && err != -ENOENT && err != -EAGAIN && err != -EFAULT &&
	    (!*why->text || strlen(why->text) >= sizeof(why->text)))
		abort();
}

/* Reads the tasks of a Python whose frames are found as well. Returns how many there are. */
static size_t read_tasks(struct languages *all, int number, struct input *in,
			 const struct awaits_layout *layout, struct shstk_account *account)
{
	const struct language_thread thread = {
		.read = read_input, .arg = in, .account = account, .tid = TID
	};
	struct language_reading *reading = language_reading_create(all, number, &thread);
	const struct awaits_source from = {
		.read = read_input,
		.arg = in,
		.place = place,
		.place_arg = reading,
		.account = account,
	};
	struct awaits *tasks;
	size_t nr = 0;

	if (!reading)
		abort();
	if (!awaits_read(layout, &from, &tasks))
		for (; nr < tasks->nr; nr++)
			judge_names(all, tasks->tasks[nr]->pcs, tasks->tasks[nr]->nr_pcs);
	awaits_destroy(tasks);
	language_reading_destroy(reading);
	return nr;
}

/* Finds where a Python has its tasks, and its module for them, which here is the same file. */
static bool find_tasks(const struct language_module *module, struct awaits_layout *ret)
{
	struct reason why = { "" };
	int err = awaits_take_python(module, ret, &why);

	judge_reason(err, &why);
	if (!err) {
		err = awaits_take_asyncio(module, ret, &why);
		judge_reason(err, &why);
	}
	if (module->account->memory)
		abort();
	return !err;
}

static void judge_languages(const struct languages *all)
{
	const char *why = languages_refused(all);

	if (why && (!*why || strlen(why) >= sizeof(((struct reason *)0)->text)))
		abort();
}

/*
 * Says how far an input was read, if that is asked for. V8's frames are not read from processes that are
 * stopped, so V8 has no number.
 */
static void tell(const struct languages *all, const struct language_module *module, size_t tasks)
{
	static int (*const recognise[KINDS])(const struct language_module *,
					     struct language_found *, struct reason *) = {
		[PHP] = php_recognise,
		[PYTHON] = python_recognise,
		[RUBY] = ruby_recognise,
		[V8] = v8_recognise,
	};
	static const char *const names[KINDS] = { "php", "python", "ruby", "v8", "file" };
	const enum kind kind = ((const struct input *)module->arg)->head.kind;
	struct language_found found;
	struct reason why;

	if (!getenv("INTERPRETER_TELL"))
		return;
	memset(&found, 0, sizeof(found));
	printf("%s recognised: %d functions: %d tasks: %zu\n", names[kind],
	       recognise[kind] && !recognise[kind](module, &found, &why), languages_bytes(all) > 0,
	       tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t tasks = 0;
	struct language_module module = { .read = read_input };
	struct shstk_account account;
	struct shstk_budget budget;
	struct awaits_layout layout = { .minor = 0 };
	struct languages *all;
	struct input in;
	bool has_tasks;
	int number;

	if (!take_apart(data, size, &in))
		return 0;
	module.fd = open_file(&in);
	module.offset = in.head.kind == FILE_AS_IT_IS ? 0 : offsetof(struct file, memory);
	module.arg = &in;
	module.account = &account;
	shstk_budget_init(&budget, MEMORY, TIME);
	shstk_account_open(&account, &budget, "interpreter");
	all = languages_create(NULL);
	if (!all)
		abort();
	languages_stopped_only(all);
	number = languages_find(all, &module);
	judge_languages(all);
	if (account.memory)
		abort();
	has_tasks = find_tasks(&module, &layout);
	if (number > 0)
		read_thread(all, number, &in, &account);
	if (number > 0 && has_tasks)
		tasks = read_tasks(all, number, &in, &layout, &account);
	tell(all, &module, tasks);
	languages_destroy(all);
	shstk_account_close(&account);
	close(module.fd);
	return 0;
}
