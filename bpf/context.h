/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * context.h - what the reader of threads' trace contexts, which runs in the kernel
 * (context_walk.h), and the command (tools/convert/contexts.h) share.
 *
 * OpenTelemetry's OTEP 4947 ("Thread Context", as merged into open-telemetry/
 * opentelemetry-specification) says how a program publishes them: the thread-local variable
 * otel_thread_ctx_v1 is the address of a record, or 0.
 */
#ifndef BPF_CONTEXT_H
#define BPF_CONTEXT_H

#include <linux/types.h>

#define CONTEXT_PROCESSES 4096 /* processes that can be known */
#define CONTEXT_VARIABLES \
	4 /* variables of that name that a process may have, in several libraries */
#define CONTEXT_ATTRIBUTES 1024 /* attributes have fewer bytes that are read, a power of two */
#define CONTEXT_VALID 1 /* other values of that byte mean that the record is being changed */

/* The first bytes of the process's context (OTEP 4719), read as one number, and its version. */
#define CONTEXT_SIGNATURE 0x5854435f4c45544full /* "OTEL_CTX" */
#define CONTEXT_VERSION 2

/**
 * struct context_variable - a thread-local variable
 * @module: number by which the C library knows the file that has the variable; 0: it lies at a place
 *	that is the same in all threads.
 * @offset: its offset from the thread pointer, or with @module from the thread's block of that file.
 * @generation: threads whose table of blocks is of an older generation than this have no block of
 *	that file yet.
 */
struct context_variable {
	__u64 module;
	__s64 offset;
	__u64 generation;
};

/**
 * struct context_process - a process that publishes contexts
 * @header: address of its process context. What was told of a program that is gone is not true for
 *	the next one of that process, which has no such header there.
 * @nr: number of @variables.
 * @reserved: 0.
 * @variables: where the threads' contexts are found. The first one that a thread has is taken.
 */
struct context_process {
	__u64 header;
	__u32 nr;
	__u32 reserved;
	struct context_variable variables[CONTEXT_VARIABLES];
};

/**
 * struct context_record - what a program publishes, as OTEP 4947 has it
 * @trace_id: identifies the trace; all 0: there is none.
 * @span_id: identifies the span.
 * @valid: CONTEXT_VALID, or the record does not count.
 * @flags: the trace's flags.
 * @size: bytes of attributes, which follow: each is the number of its name, its length, its text.
 */
struct context_record {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 valid;
	__u8 flags;
	__u16 size;
};

/**
 * struct context_moment - the context of a thread at a sample
 * @size: number of bytes that follow, as perf counts them.
 * @kind: LANGUAGE_CONTEXT.
 * @pc: program counter of the sample.
 * @record: the record. Its size is that of the attributes that were read.
 * @attributes: its attributes. Only the first half has any; the rest is for the verifier.
 */
struct context_moment {
	__u32 size;
	__u32 kind;
	__u64 pc;
	struct context_record record;
	__u8 attributes[2 * CONTEXT_ATTRIBUTES];
};

#endif /* BPF_CONTEXT_H */
