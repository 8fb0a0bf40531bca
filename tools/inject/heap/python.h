/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python.h - the functions of Python that a thread is in when it allocates.
 *
 * They are read by the thread itself, in a function that the interpreter has called, while it has the
 * interpreter's lock (GIL): so the interpreter's lists are whole, and every object that a frame refers
 * to is alive. In a signal handler, and without the lock, that is not so, and nothing is read there.
 * What is read goes to the recorder, which puts it among the native entries of the stack
 * (tools/language/).
 */
#ifndef HEAP_PYTHON_H
#define HEAP_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/python.h"
#include "bpf/language.h"

/**
 * struct python_size - what python_write() will write
 * @marks: number of marks.
 * @frames: number of frames.
 * @left_out: number of frames of a deep stack that are not written (tools/language/middle.h).
 */
struct python_size {
	unsigned int marks;
	unsigned int frames;
	unsigned int left_out;
};

/*
 * Has Python call the agent for its objects, if that is wanted. To be called before Python allocates, and
 * after python_find().
 */
#ifdef PYTHON_IS_READ
void objects_begin(void);
#else
static inline void objects_begin(void)
{
}
#endif

#ifdef PYTHON_IS_READ
/* The process has a Python that is known. Set by python_find(). */
extern bool python_known __attribute__((visibility("hidden")));

/*
 * Looks for Python in the process. To be called before other threads begin, and when all constructors
 * have run: the C library may allocate for it.
 */
void python_find(void);

/* Tells the recorder which Python the process has, if there is one. */
void python_begin(void);

/*
 * Returns a number that tells the calling thread's functions and where these are from others; 0: it
 * is in none.
 */
uint64_t python_sum(void);

/* Returns how much there is to write of the calling thread. */
struct python_size python_measure(void);

/* Writes what was measured; @to has room for it. Functions that are new go to the recorder. */
void python_write(struct python_size size, struct language_moment *to);
#else
#define python_known false

static inline void python_find(void)
{
}

static inline void python_begin(void)
{
}

static inline uint64_t python_sum(void)
{
	return 0;
}

static inline struct python_size python_measure(void)
{
	return (struct python_size){ 0 };
}

static inline void python_write(struct python_size size, struct language_moment *to)
{
	(void)size;
	(void)to;
}
#endif

#endif
