/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vma.h - asks the kernel what is mapped at an address of this process.
 *
 * It uses PROCMAP_QUERY (Linux 6.11, include/uapi/linux/fs.h), or reads
 * /proc/self/maps. All functions are async-signal-safe.
 */
#ifndef SHSTK_VMA_H
#define SHSTK_VMA_H

#include "internal.h"

#define VMA_READ 1u
#define VMA_WRITE 2u
#define VMA_EXEC 4u

struct vma {
	struct range range;
	unsigned int prot;
	uint64_t offset;
	uint64_t inode;
};

/*
 * Finds the mapping that contains @addr. @path, which may be NULL, receives the mapping's
 * name, cut to @size bytes; it is empty if the mapping has no name. Returns 0, -ENOENT if
 * nothing is mapped there, -ECANCELED after shstk_seal(), or the negative errno of open(2).
 */
int vma_query(uint64_t addr, struct vma *ret, char *path, size_t size);

/* Makes vma_query() fail from now on; it is a part of shstk_seal(). */
void vma_seal(void);
/* Tells whether vma_seal() was called. */
bool vma_sealed(void);

#endif
