/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rtld.h - the variables of glibc's dynamic loader, found without asking it.
 *
 * dlsym() would find them, too, but its failures end in a longjmp(), which takes nothing off a
 * hardware shadow stack where the C library does not know of these: a static program, in which
 * there is no dynamic loader, would end at its start.
 */
#ifndef SHSTK_RTLD_H
#define SHSTK_RTLD_H

#include "internal.h"

/**
 * struct rtld - what is known of the loader
 * @adds: objects that it has loaded so far; 0: it does not count them.
 * @global: its variables, _rtld_global; empty if there are none.
 */
struct rtld {
	uint64_t adds;
	struct range global;
};

/*
 * Takes the loader's lock, so that it is for constructors, not for captures. In a static program
 * and with another C library *@ret is empty.
 */
void rtld_find(struct rtld *ret);

#endif
