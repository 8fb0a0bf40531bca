/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rtld.h - finds the variables of glibc's dynamic loader, of threads, and symbols, without dlsym().
 *
 * When dlsym() fails it ends in a longjmp(), which does not unwind a hardware shadow stack where
 * the C library does not support shadow stacks. A static program has no dynamic loader, so there
 * dlsym() would fail and end the program at its start. It also allocates memory when it fails, which
 * an object that is loaded into foreign programs must not do before their constructors ran: malloc()
 * may be the program's own.
 */
#ifndef SHSTK_RTLD_H
#define SHSTK_RTLD_H

#include "internal.h"

/**
 * struct rtld - what is known about the dynamic loader
 * @adds: number of objects that it has loaded so far; 0 if it does not count them.
 * @global: the memory of its variables, _rtld_global; empty if there are none.
 */
struct rtld {
	uint64_t adds;
	struct range global;
};

/*
 * Fills *@ret. In a static program and with another C library, @ret->global becomes empty. It takes
 * the loader's lock, so constructors may call it, but captures may not.
 */
void rtld_find(struct rtld *ret);

/*
 * Returns the address of the calling thread's variable @name, of the first loaded object that
 * exports a symbol of this name, or NULL if that is no thread-local variable or does not exist for
 * this thread yet. It takes the loader's lock, as rtld_find() does.
 */
void *rtld_thread_variable(const char *name);

/*
 * Returns the address of the function or variable @name of the first loaded object that exports a symbol
 * of this name, and stores its bytes in *@size; NULL if there is none. It takes the loader's lock, as
 * rtld_find() does.
 */
void *rtld_symbol(const char *name, uint64_t *size);

#endif
