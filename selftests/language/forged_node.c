// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * forged_node.c - a program that looks like V8 to who reads its memory, and lies: as 10.2, or as MAJOR.MINOR.
 *
 *	forged_node [KIND]
 *
 * It exports the variables by which V8 describes its objects, has a virtual machine whose last call
 * into native code is a frame on the stack, and runs for ever. KIND says what is wrong with the frames
 * outside that one and with their objects, see kinds[]. Without it, each kind has its turn again and
 * again, for SLICE ns of CPU time.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLICE 10000000
#define FRAMES 1500 /* more than are read */
#define FRAME_WORDS 16
#define EXIT 6 /* the mark of a frame in which native code was called */
#define WORDS 64
#define HUGE_NUMBER (0x7fffffffull << 32)

#ifndef MAJOR
#define MAJOR 10
#define MINOR 2
#endif

/* Offsets of these versions (tools/language/v8/versions.c), in objects those of words. */
#if MAJOR == 13
#define ENTRY_FP 0x140
#define OUTERMOST 0x1d8
#define TABLE 0x2f58
#elif MAJOR == 12
#define ENTRY_FP 0x110
#define OUTERMOST 0x1a8
#else
#define ENTRY_FP 0x4538
#define OUTERMOST 0x4558
#endif
#if MAJOR == 12 || MAJOR == 13
#define FUNCTION_SHARED 4
#define FUNCTION_CODE 3
#define BYTECODE_HEAD 64
#define BYTECODE_POSITIONS 3
#define CODE_DATA 1
#define CODE_START 5
#define CODE_SIZE_BYTE (MAJOR == 12 ? 52 : 56)
#define CODE_BEHIND_BYTE (CODE_SIZE_BYTE + 4)
#define CODE_FLAGS_BYTE (MAJOR == 12 ? 48 : 52)
#else
#define FUNCTION_SHARED 3
#define FUNCTION_CODE 6
#define BYTECODE_HEAD 56
#define BYTECODE_POSITIONS 4
#define CODE_DATA 2
#define CODE_SIZE_BYTE 40
#define CODE_FLAGS_BYTE 48
#endif
#if MAJOR == 13
#define SCOPE_FLAGS (0x3002ull)
#define SCOPE_NAME 6
#define SCOPE_START 4
#define DATA_LITERALS 3
#define DATA_NUMBER 6
#else
#define SCOPE_FLAGS (0x3002ull << 32)
#define SCOPE_NAME 4
#define SCOPE_START 6
#define DATA_LITERALS 2
#define DATA_NUMBER 5
#endif
#define INSTRUCTIONS 16 /* of machine code, where they are part of it */
#define ELEMENTS 2 /* of an array */
#define KIND_OPTIMIZED 13
#define KIND_MIDDLE 12
#define BUILT_IN 0xea58
#define BUILT_IN_SIZE 0xea60
#define MACHINE_BYTES 0x10000

#define VARIABLE(name, value)          \
	extern const int v8dbg_##name; \
	const int v8dbg_##name = (value)

/* Numbers of types. */
enum type {
	SHARED = 257,
	SCOPE = 256,
	SCRIPT = 170,
	BYTECODE = 195,
	CODE = 240,
	BYTES = 194,
	STREAM = 241,
	STRING = 8,
};

VARIABLE(HeapObjectTag, 1);
VARIABLE(SmiValueShift, 1);
VARIABLE(SmiShiftSize, 31);
VARIABLE(TaggedSize, 8);
VARIABLE(FirstNonstringType, 128);
VARIABLE(StringRepresentationMask, 7);
VARIABLE(SeqStringTag, 0);
VARIABLE(ConsStringTag, 1);
VARIABLE(ExternalStringTag, 2);
VARIABLE(ThinStringTag, 5);
VARIABLE(OneByteStringTag, 8);
VARIABLE(CodeKindFieldMask, 15);
VARIABLE(CodeKindFieldShift, 0);
VARIABLE(CodeKindBaseline, 11);
VARIABLE(class_FixedArrayBase__length__SMI, 8);
VARIABLE(class_FixedArray__data__uintptr_t, 16);
VARIABLE(class_SeqOneByteString__chars__char, 16);
VARIABLE(class_SeqTwoByteString__chars__char, 16);
VARIABLE(class_ConsString__first__String, 16);
VARIABLE(off_fp_context_or_frame_type, -8);
VARIABLE(off_fp_function, -16);
VARIABLE(off_fp_bytecode_array, -32);
VARIABLE(off_fp_bytecode_offset, -40);
VARIABLE(frametype_EntryFrame, 1);
VARIABLE(frametype_ConstructEntryFrame, 2);
VARIABLE(scopeinfo_idx_ncontextlocals, 2);
VARIABLE(scopeinfo_idx_first_vars, MAJOR == 13 ? 5 : 3);
VARIABLE(class_Map__instance_type__uint16_t, 12);
VARIABLE(class_JSFunction__shared__SharedFunctionInfo, 8 * FUNCTION_SHARED);
VARIABLE(class_SharedFunctionInfo__function_data__Object, 8);
VARIABLE(class_SharedFunctionInfo__name_or_scope_info__Object, 16);
VARIABLE(class_SharedFunctionInfo__script_or_debug_info__HeapObject, 32);
VARIABLE(class_Script__source__Object, 8);
VARIABLE(class_Script__name__Object, 16);
VARIABLE(class_ThinString__actual__String, 16);
VARIABLE(type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE, SHARED);
VARIABLE(type_ScopeInfo__SCOPE_INFO_TYPE, SCOPE);
VARIABLE(type_Script__SCRIPT_TYPE, SCRIPT);
VARIABLE(type_BytecodeArray__BYTECODE_ARRAY_TYPE, BYTECODE);
VARIABLE(type_ByteArray__BYTE_ARRAY_TYPE, BYTES);
VARIABLE(type_Code__CODE_TYPE, CODE);
#ifdef CODE_START
VARIABLE(type_InstructionStream__INSTRUCTION_STREAM_TYPE, STREAM);
#endif

int major_number __asm__("_ZN2v88internal7Version6major_E") = MAJOR;
int minor_number __asm__("_ZN2v88internal7Version6minor_E") = MINOR;
pthread_key_t key __asm__("_ZN2v88internal7Isolate12isolate_key_E");

/* The functions that return members of the virtual machine. */
__asm__(".text\n"
	".globl _ZNK2v88internal7Isolate18embedded_blob_codeEv\n"
	"_ZNK2v88internal7Isolate18embedded_blob_codeEv: mov 0xea58(%rdi),%rax; ret\n"
	".globl _ZNK2v88internal7Isolate23embedded_blob_code_sizeEv\n"
	"_ZNK2v88internal7Isolate23embedded_blob_code_sizeEv: mov 0xea60(%rdi),%eax; ret\n");

static uint64_t machine[MACHINE_BYTES / 8];
static uint64_t maps[512][4]; /* by type */
static uint64_t function[WORDS], shared[WORDS], scope[WORDS], script[WORDS], bytecode[WORDS];
static uint64_t name[WORDS], source[WORDS], positions[WORDS], code[WORDS];
static uint64_t data[WORDS], literals[WORDS + ELEMENTS], calls[WORDS], states[WORDS];
#ifdef TABLE
static uint64_t table[2], wrapper[WORDS];
#endif

static uint64_t tagged(const void *object)
{
	return (uintptr_t)object | 1;
}

static void begin(uint64_t *object, enum type type)
{
	maps[type][1] = (uint64_t)type << 32;
	object[0] = tagged(maps[type]);
}

/* Makes a function that the interpreter runs, whatever a kind has made of it. */
static void make_objects(void)
{
	memset(name, 0, sizeof(name));
	memset(source, 0, sizeof(source));
	memset(positions, 0, sizeof(positions));
	memset(scope, 0, sizeof(scope));
	memset(data, 0, sizeof(data));
	begin(shared, SHARED);
	begin(scope, SCOPE);
	begin(script, SCRIPT);
	begin(bytecode, BYTECODE);
	begin(name, STRING);
	begin(source, STRING);
	begin(positions, BYTES);
	begin(code, CODE);
	begin(calls, BYTES);
	begin(states, BYTES);
	function[FUNCTION_SHARED] = tagged(shared);
	shared[1] = tagged(bytecode);
	shared[2] = tagged(scope);
	shared[4] = tagged(script);
	scope[1] = SCOPE_FLAGS; /* a function that has a name */
	scope[SCOPE_NAME] = tagged(name);
	scope[SCOPE_START + 1] = 8ull << 32;
	script[1] = tagged(source);
	script[2] = tagged(name);
	bytecode[BYTECODE_POSITIONS] = tagged(positions);
	name[1] = 6ull << 32;
	memcpy(&name[2], "forged", 6);
	source[1] = 16ull << 32;
}

/* Makes frames of that function, each with the address of the next one. */
static void make_frames(uint64_t (*frames)[FRAME_WORDS])
{
	for (unsigned int i = 0; i < FRAMES; i++) {
		uint64_t *fp = &frames[i][FRAME_WORDS - 2];

		fp[0] = i + 1 < FRAMES ? (uintptr_t)&frames[i + 1][FRAME_WORDS - 2] : 0;
		fp[1] = (uintptr_t)machine;
		fp[-1] = tagged(function);
		fp[-2] = tagged(function);
		fp[-4] = tagged(bytecode);
		fp[-5] = (uint64_t)BYTECODE_HEAD << 32;
	}
}

static void deep(uint64_t *fp)
{
	(void)fp;
}

static void cycle(uint64_t *fp)
{
	fp[0] = (uintptr_t)fp;
}

static void lengths(uint64_t *fp)
{
	fp[0] = 0;
	name[1] = source[1] = positions[1] = bytecode[1] = HUGE_NUMBER;
	scope[3] = HUGE_NUMBER;
	scope[SCOPE_START] = scope[SCOPE_START + 1] = HUGE_NUMBER;
}

static void text(uint64_t *fp)
{
	fp[0] = 0;
	source[1] = HUGE_NUMBER;
	scope[SCOPE_START] = 200000ull << 32;
	scope[SCOPE_START + 1] = HUGE_NUMBER;
}

static void kernel(uint64_t *fp)
{
	fp[-2] = 0xffff888000000001;
	fp[0] = 0xffff888000000000;
}

/* Strings that stand for each other. */
static void strings(uint64_t *fp)
{
	begin(name, STRING | 5);
	begin(source, STRING | 1);
	name[2] = tagged(source);
	source[2] = tagged(name);
	fp[0] = 0;
}

/* No code has the place of the frame, so that its beginning is looked for. */
static void scan(uint64_t *fp)
{
	for (unsigned int i = 0; i + 1 < FRAMES; i++)
		fp[i * FRAME_WORDS + 1] = (uintptr_t)&machine[MACHINE_BYTES / 8 - 1];
	machine[BUILT_IN / 8] = 0;
}

static void put_half(uint64_t *object, unsigned int at, uint32_t value)
{
	memcpy((char *)object + at, &value, sizeof(value));
}

/* Returns the address of an instruction of machine code of the function, which is of that kind. */
static uint64_t make_code(uint32_t kind)
{
	uint64_t start = (uintptr_t)&code[INSTRUCTIONS];

	code[CODE_DATA] = tagged(data);
	code[CODE_DATA + 1] = tagged(positions);
#ifdef CODE_START
	start = (uintptr_t)states;
	code[CODE_START] = start;
	put_half(code, CODE_BEHIND_BYTE, 64);
#endif
	put_half(code, CODE_SIZE_BYTE, 128);
	put_half(code, CODE_FLAGS_BYTE, kind);
#ifdef TABLE
	table[1] = (uint64_t)(uintptr_t)code << 16;
	machine[TABLE / 8] = (uintptr_t)table;
	function[FUNCTION_CODE] = 0;
	wrapper[1] = tagged(shared);
	data[ELEMENTS + DATA_NUMBER + 1] = tagged(wrapper);
#else
	function[FUNCTION_CODE] = tagged(code);
	data[ELEMENTS + DATA_NUMBER + 1] = tagged(shared);
#endif
	data[ELEMENTS] = tagged(states);
	data[ELEMENTS + DATA_LITERALS] = tagged(literals);
	data[ELEMENTS + DATA_NUMBER + 2] = tagged(calls);
	for (unsigned int i = 0; i < WORDS; i++)
		literals[ELEMENTS + i] = tagged(shared);
	return start + 64;
}

/* Machine code that has inlined its own function 63 times, and has tables that are longer than memory. */
static void inlined(uint64_t *fp)
{
	const uint64_t at = make_code(KIND_OPTIMIZED);

	data[ELEMENTS + 1] = 63ull << 32;
	calls[1] = 1000ull << 32;
	for (unsigned int i = 3; i < 6; i++)
		data[ELEMENTS + DATA_NUMBER + i] = HUGE_NUMBER;
	positions[1] = states[1] = HUGE_NUMBER;
	for (unsigned int i = 0; i + 1 < FRAMES; i++)
		fp[i * FRAME_WORDS + 1] = at;
	fp[-(int)FRAME_WORDS + 1] = at;
}

/* Code of the compiler before the last one, of which the number of bytes that follow it is a lie, too. */
static void middle(uint64_t *fp)
{
	inlined(fp);
	make_code(KIND_MIDDLE);
	data[ELEMENTS + DATA_NUMBER + 4] = 1ull << 32;
	put_half(code, CODE_SIZE_BYTE, UINT32_MAX);
#ifdef CODE_BEHIND_BYTE
	put_half(code, CODE_BEHIND_BYTE, UINT32_MAX);
#endif
}

/* Machine code has more inlined than it may, and its objects are in the kernel, or itself. */
static void foreign(uint64_t *fp)
{
	inlined(fp);
	data[ELEMENTS + 1] = HUGE_NUMBER;
	data[ELEMENTS + DATA_LITERALS] = 0xffff888000000001;
	data[ELEMENTS + DATA_NUMBER + 2] = tagged(data);
	data[ELEMENTS] = tagged(code);
}

static const struct kind {
	const char *name;
	void (*make)(uint64_t *fp);
} kinds[] = {
	{ "deep", deep },	{ "cycle", cycle },	{ "lengths", lengths },
	{ "text", text },	{ "kernel", kernel },	{ "strings", strings },
	{ "scan", scan },	{ "inlined", inlined }, { "middle", middle },
	{ "foreign", foreign },
};

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * Has the frames on its own stack, above those of what it calls, until @end of its CPU time. While they
 * are made and changed, no frame is the outermost one, so nothing is to be shown.
 */
static void run(const struct kind *kind, uint64_t end)
{
	uint64_t frames[FRAMES][FRAME_WORDS] = { { 0 } };
	uint64_t *fp = &frames[0][FRAME_WORDS - 2];
	volatile uint64_t *outermost = &machine[OUTERMOST / 8];

	make_objects();
	make_frames(frames);
	fp[-1] = EXIT;
	machine[BUILT_IN / 8] = (uintptr_t)machine;
	machine[BUILT_IN_SIZE / 8] = 8;
	kind->make(fp + FRAME_WORDS);
	machine[ENTRY_FP / 8] = (uintptr_t)fp;
	*outermost = (uintptr_t)fp;
	while (cpu_time() < end)
		for (volatile int i = 0; i < 1000; i++)
			;
	*outermost = 0;
}

int main(int argc, char **argv)
{
	const size_t nr = sizeof(kinds) / sizeof(*kinds);

	if (pthread_key_create(&key, NULL) || pthread_setspecific(key, machine))
		return 1;
	for (size_t i = 0; argc > 1 && i < nr; i++)
		if (!strcmp(kinds[i].name, argv[1]))
			run(&kinds[i], UINT64_MAX);
	for (size_t i = 0; argc == 1; i = (i + 1) % nr)
		run(&kinds[i], cpu_time() + SLICE);
	fprintf(stderr, "forged_node: there is no kind %s\n", argv[1]);
	return 1;
}
