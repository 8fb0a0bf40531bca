// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * refused_python.c - a program that says it is Python 3.14 without the interpreter's lock, which is not known; or
 * that it is another VERSION, in the form of Py_Version; or, with LOCKED, that it has the lock. The offsets are those of
 * 3.15, but the function that tells where a thread has its state is compiled in another way than its.
 */
#include <stdint.h>

#ifndef VERSION
#define VERSION 0x030e05f0
#endif

#ifdef LOCKED
#define FREE_THREADED 0
#else
#define FREE_THREADED 1
#endif

/* _Py_DebugOffsets begins the interpreter's state (tools/language/python/versions.c). */
uint64_t _PyRuntime[512] = {
	[0] = 0x7970677562656478, /* "xdebugpy" */
	[1] = VERSION,
	[2] = FREE_THREADED,
	[4] = 912,
	[26] = 72,
	[30] = 176,
	[39] = 88,
	[40] = 8,
	[41] = 0,
	[42] = 56,
	[44] = 74,
	[47] = 216,
	[48] = 112,
	[50] = 128,
	[51] = 136,
	[52] = 68,
	[56] = 208,
	[59] = 8,
	[87] = 16,
	[88] = 32,
	[90] = 32,
	[91] = 16,
	[92] = 40,
};

unsigned long Py_Version = VERSION;
uint8_t PyCode_Type[512], PyCoro_Type[512], PyGen_Type[512], PyAsyncGen_Type[512], PySet_Type[512];

static __thread void *state;

__attribute__((noinline)) void *PyGILState_GetThisThreadState(void)
{
	__asm__ volatile("nop");
	return state;
}

/* Works for ever. */
__attribute__((noinline)) int _PyEval_EvalFrameDefault(volatile unsigned long *count)
{
	while (++*count)
		;
	return 0;
}

int main(void)
{
	volatile unsigned long count = 0;

	return _PyEval_EvalFrameDefault(&count);
}
