// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * refused_python.c - a program that says it is Python 3.14 without the interpreter's lock, which is not known; or
 * that it is another VERSION, in the form of Py_Version.
 */
#include <stdint.h>

#ifndef VERSION
#define VERSION 0x030e05f0
#endif

/* _Py_DebugOffsets begins the interpreter's state (tools/language/python/versions.h). */
struct debug_offsets {
	char cookie[8];
	uint64_t version;
	uint64_t free_threaded;
	uint64_t others[509];
};

unsigned long Py_Version = VERSION;
struct debug_offsets _PyRuntime = { { 'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y' }, VERSION, 1, { 0 } };
uint8_t PyCode_Type[512], PyCoro_Type[512], PyGen_Type[512], PyAsyncGen_Type[512], PySet_Type[512];

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
