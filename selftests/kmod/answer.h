/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer.h - which answers a call of /dev/shstk may give while its subject changes.
 */
#ifndef KMOD_ANSWER_H
#define KMOD_ANSWER_H

#include <errno.h>
#include <stdbool.h>

/* Returns whether the error is a true answer about a task that ends, runs or moves meanwhile. */
static inline bool may_be_refused(long ret)
{
	switch (ret) {
	case -ESRCH:
	case -EAGAIN:
	case -EFAULT:
	case -ENODATA:
	case -ENOENT:
	case -EBUSY:
		return true;
	}
	return false;
}

#endif
