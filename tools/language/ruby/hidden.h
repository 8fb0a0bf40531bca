/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hidden.h - finds what libruby does not export. */
#ifndef TOOLS_LANGUAGE_RUBY_HIDDEN_H
#define TOOLS_LANGUAGE_RUBY_HIDDEN_H

#include "tools/language/language.h"

/* Exported functions whose code is looked at. */
enum ruby_hidden_function {
	RUBY_ERRINFO,
	RUBY_THREAD_CURRENT,
	RUBY_GC_COUNT,
	RUBY_DURING_GC,
	RUBY_HIDDEN, /* how many there are */
};

/**
 * struct ruby_hidden - what is known of these functions
 * @values: their addresses; 0: there is none.
 * @errinfo: offset of the member of an execution context that rb_errinfo() reads.
 * @thread: offset of the one that rb_thread_current() reads first.
 */
struct ruby_hidden {
	uint64_t values[RUBY_HIDDEN];
	uint8_t errinfo;
	uint8_t thread;
};

/* Takes a symbol, if it is that of such a function. */
void ruby_hidden_take(struct ruby_hidden *h, const char *name, uint64_t value);

/**
 * ruby_hidden_find() - find the execution context of threads, and the virtual machine
 * @m: libruby.
 * @h: the functions, with their addresses in the process.
 * @context: receives the variable with the address of a thread's execution context.
 * @machine: receives the address of the variable with that of the virtual machine.
 *
 * Return: 0; -ENOENT: the code is not as it is expected; -EAGAIN: the process did not prepare it yet.
 */
int ruby_hidden_find(const struct language_module *m, const struct ruby_hidden *h,
		     struct context_variable *context, uint64_t *machine);

/**
 * ruby_hidden_run() - find the function that runs instructions
 * @m: libruby.
 * @bias: what is added to addresses in the file.
 * @addr: an instruction, which is an address in that function.
 * @start: receives its address.
 * @end: receives the first address behind it.
 *
 * Return: 0; -ENOENT: unwind information does not tell.
 */
int ruby_hidden_run(const struct language_module *m, uint64_t bias, uint64_t addr, uint64_t *start,
		    uint64_t *end);

#endif
