/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * context_variable.h - finds a thread-local variable: that in which threads publish their trace contexts,
 * or another one.
 */
#ifndef TOOLS_CONVERT_CONTEXT_VARIABLE_H
#define TOOLS_CONVERT_CONTEXT_VARIABLE_H

#include "bpf/context.h"

/* The variable in which threads publish their trace contexts. */
#define CONTEXT_VARIABLE "otel_thread_ctx_v1"

struct language_module;

/**
 * context_variable_find() - find the variable in a file that a process has mapped
 * @module: the file, and the memory of the process.
 * @name: name of the variable's symbol.
 * @ret: receives where it is.
 *
 * Return: 0; -ENOENT: the file has no such variable, or none that can be found; -EAGAIN: the
 * process did not prepare it yet.
 */
int context_variable_find(const struct language_module *module, const char *name,
			  struct context_variable *ret);

#endif
