// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * forged_node.c - a program that looks like V8 10.2 to who reads its memory, and lies.
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
#define WORDS 32
#define HUGE_NUMBER (0x7fffffffull << 32)

/* Offsets of V8 10.2 (tools/language/v8/). */
#define ENTRY_FP 0x4538
#define OUTERMOST 0x4558
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
VARIABLE(scopeinfo_idx_first_vars, 3);
VARIABLE(class_Map__instance_type__uint16_t, 12);
VARIABLE(class_JSFunction__shared__SharedFunctionInfo, 24);
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

#ifndef MAJOR
#define MAJOR 10
#define MINOR 2
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
	begin(shared, SHARED);
	begin(scope, SCOPE);
	begin(script, SCRIPT);
	begin(bytecode, BYTECODE);
	begin(name, STRING);
	begin(source, STRING);
	begin(positions, BYTES);
	begin(code, CODE);
	function[3] = tagged(shared);
	shared[1] = tagged(bytecode);
	shared[2] = tagged(scope);
	shared[4] = tagged(script);
	scope[1] = (0x3002ull) << 32; /* a function that has a name */
	scope[4] = tagged(name);
	scope[7] = 8ull << 32;
	script[1] = tagged(source);
	script[2] = tagged(name);
	bytecode[4] = tagged(positions);
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
		fp[-5] = 56ull << 32;
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
	scope[6] = scope[7] = HUGE_NUMBER;
}

static void text(uint64_t *fp)
{
	fp[0] = 0;
	source[1] = HUGE_NUMBER;
	scope[6] = 200000ull << 32;
	scope[7] = HUGE_NUMBER;
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

static const struct kind {
	const char *name;
	void (*make)(uint64_t *fp);
} kinds[] = {
	{ "deep", deep },     { "cycle", cycle },     { "lengths", lengths }, { "text", text },
	{ "kernel", kernel }, { "strings", strings }, { "scan", scan },
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
