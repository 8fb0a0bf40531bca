// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * forged.c - a program that looks like Python 3.11 to who reads its memory, and lies.
 *
 *	forged KIND
 *
 * It exports the symbols of the interpreter, has a thread state where the interpreter has it, and
 * runs for ever in a function that counts as the one that runs frames. KIND says what is wrong
 * with the frames, see kinds[].
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAMES 1500 /* more than are read */
#define PAGE 4096

/* Offsets of 3.11 (tools/language/python/versions.c, recognise.c). */
#define KEY 596
#define STATE_CFRAME 56
#define STATE_THREAD 152
#define STATE_TOP 304
#define CODE_SIZE 200
#define TASK_COROUTINE 136
#define TASK_NAME 144
#define CALLBACK 24
#define STEP_TASK 16

/* What the interpreter links on its stack. */
struct cframe {
	uint64_t tracing;
	uint64_t frame;
	uint64_t previous;
};

/* A frame; what is not named is not read. */
struct frame {
	uint64_t words[4];
	uint64_t code;
	uint64_t word;
	uint64_t previous;
	uint64_t instruction;
	uint32_t stack_top;
	uint8_t is_entry;
	uint8_t owner;
	uint16_t pad;
	uint64_t local;
};

unsigned long Py_Version = 0x030b02f0;
uint8_t _PyRuntime[4096] __attribute__((aligned(4096)));
uint8_t PyCode_Type[512], PyCoro_Type[512], PyUnicode_Type[512];

static struct frame frames[FRAMES];
static uint8_t codes[FRAMES][CODE_SIZE];
static struct {
	uint64_t words[6];
	char text[64];
} name = { { 1, 0, 6, 0, 0xe5, 0 }, "forged" };
static struct cframe other;
static uint8_t state[512];

uint64_t _PyThreadState_UncheckedGet(void)
{
	return (uintptr_t)state;
}

static void set(uint8_t *object, size_t offset, uint64_t value)
{
	memcpy(object + offset, &value, sizeof(value));
}

static void make_code(uint8_t *code, uint64_t number)
{
	set(code, 8, (uintptr_t)PyCode_Type);
	set(code, 16, number);
	set(code, 112, (uintptr_t)&name);
	set(code, 120, (uintptr_t)&name);
	set(code, 128, (uintptr_t)&name);
	set(code, 136, (uintptr_t)&name);
}

/* Frames in a row, of as many functions; the last one is the outermost. */
static void in_a_row(void)
{
	for (unsigned int i = 0; i < FRAMES; i++) {
		make_code(codes[i], i);
		frames[i].code = (uintptr_t)codes[i];
		frames[i].previous = i + 1 < FRAMES ? (uintptr_t)&frames[i + 1] : 0;
		frames[i].owner = 1;
	}
}

static void cycle(struct cframe *c)
{
	(void)c;
	frames[1].previous = (uintptr_t)&frames[0];
}

static void marks(struct cframe *c)
{
	frames[0].previous = 0;
	frames[0].is_entry = 1;
	c->previous = (uintptr_t)&other;
	other.previous = (uintptr_t)c;
}

static void deep(struct cframe *c)
{
	(void)c;
}

/* A text says that it is longer than memory. */
static void lengths(struct cframe *c)
{
	(void)c;
	frames[0].previous = 0;
	frames[0].is_entry = 1;
	name.words[2] = 1ull << 60;
}

/* A frame of which the second half lies where no memory is. */
static void edge(struct cframe *c)
{
	uint8_t *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || munmap(pages + PAGE, PAGE))
		exit(1);
	c->frame = (uintptr_t)pages + PAGE - 40;
}

static void kernel(struct cframe *c)
{
	c->frame = 0xffff888000000000;
}

/*
 * A task whose name says that it is longer than memory. A frame is as long as what is in front of the
 * one in a coroutine's object, so the first frame is the beginning of the object of the second one.
 */
static void task(struct cframe *c)
{
	static uint8_t handle[64], callback[64], it[256];

	(void)c;
	frames[0].words[1] = (uintptr_t)PyCoro_Type;
	frames[2].owner = 0;
	frames[2].is_entry = 1;
	frames[2].previous = 0;
	frames[2].local = (uintptr_t)handle;
	set(handle, CALLBACK, (uintptr_t)callback);
	set(callback, STEP_TASK, (uintptr_t)it);
	set(it, TASK_COROUTINE, (uintptr_t)&frames[0]);
	set(it, TASK_NAME, (uintptr_t)&name);
	name.words[1] = (uintptr_t)PyUnicode_Type;
	name.words[2] = 1ull << 60;
}

/* The interpreter's own variables are not there. */
static void unmapped(struct cframe *c)
{
	(void)c;
	mprotect(_PyRuntime, sizeof(_PyRuntime), PROT_NONE);
}

/* Functions whose memory is partly, or not at all, there. */
static void codes_nowhere(struct cframe *c)
{
	(void)c;
	for (unsigned int i = 0; i < FRAMES; i++)
		frames[i].code = (i % 3 ? 0x7ffffffff000ull : UINT64_MAX) - i;
}

_Static_assert(sizeof(struct frame) == 80,
	       "a frame is as long as the head of a coroutine's object");

static const struct kind {
	const char *name;
	void (*make)(struct cframe *c);
} kinds[] = {
	{ "cycle", cycle },	{ "marks", marks },	  { "deep", deep },
	{ "lengths", lengths }, { "edge", edge },	  { "kernel", kernel },
	{ "task", task },	{ "unmapped", unmapped }, { "codes", codes_nowhere },
};

/* Runs as the interpreter would: what it links lies in its native frame. */
__attribute__((noinline)) int _PyEval_EvalFrameDefault(const struct kind *kind)
{
	volatile struct cframe c = { 0, (uintptr_t)&frames[0], 0 };
	uint64_t sum = 0;

	kind->make((struct cframe *)&c);
	set(state, STATE_CFRAME, (uintptr_t)&c);
	for (unsigned int i = 0; !c.tracing; i++)
		sum += i;
	return (int)sum;
}

int main(int argc, char **argv)
{
	pthread_key_t key;

	if (argc < 2 || pthread_key_create(&key, NULL) || pthread_setspecific(key, state))
		return 1;
	in_a_row();
	memcpy(_PyRuntime + KEY, &key, sizeof(key));
	_PyRuntime[KEY - 4] = 1; /* there is a key */
	set(state, STATE_THREAD, (uintptr_t)pthread_self());
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, argv[1]))
			return _PyEval_EvalFrameDefault(&kinds[i]);
	return 1;
}
