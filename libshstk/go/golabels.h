/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * golabels.h - reads the labels (runtime/pprof) of the goroutine that the calling thread runs.
 */
#ifndef SHSTK_GOLABELS_H
#define SHSTK_GOLABELS_H

#include <stddef.h>
#include <stdint.h>

/**
 * shstk_golabels() - read the labels of the goroutine that the calling thread runs or works for
 * @pcs: the captured trace of the thread, in which the function looks for Go code.
 * @n: number of entries in @pcs.
 * @buf: receives key, value, key, value and so on, each with a zero behind it.
 * @size: bytes in @buf; labels for which there is no room are left out.
 *
 * The function is for signal handlers that interrupt code of the program. It makes system
 * calls if there is Go code in the process.
 *
 * Return: bytes written to @buf; 0 if there is no goroutine, or it has no labels.
 */
size_t shstk_golabels(const uint64_t *pcs, unsigned int n, char *buf, size_t size);

#endif
