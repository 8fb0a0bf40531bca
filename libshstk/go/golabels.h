/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * golabels.h - the labels (runtime/pprof) of the goroutine that the calling thread runs.
 */
#ifndef SHSTK_GOLABELS_H
#define SHSTK_GOLABELS_H

#include <stddef.h>
#include <stdint.h>

/**
 * shstk_golabels() - the labels of the goroutine that the calling thread runs or works for
 * @pcs: the thread's stack, as it was captured: it is looked at for code of Go.
 * @n: number of its entries.
 * @buf: receives keys and values, each with a zero behind it, key by key.
 * @size: bytes in @buf; labels that have no room are left out.
 *
 * For signal handlers that interrupt code of the program. Makes system calls if there is
 * code of Go in the process.
 *
 * Return: bytes in @buf; 0: no goroutine, or it has no labels.
 */
size_t shstk_golabels(const uint64_t *pcs, unsigned int n, char *buf, size_t size);

#endif
