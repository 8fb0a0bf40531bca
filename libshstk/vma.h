/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vma.h - ask the kernel what is mapped at an address of this process.
 *
 * By PROCMAP_QUERY (Linux 6.11, include/uapi/linux/fs.h) or by reading
 * /proc/self/maps. Async-signal-safe.
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
 * The mapping that has @addr. @path (may be NULL) receives the name, cut to
 * @size bytes, empty if it has none. 0, -ENOENT, -ECANCELED after shstk_seal(), or the errno of
 * open(2).
 */
int vma_query(uint64_t addr, struct vma *ret, char *path, size_t size);

/* Part of shstk_seal(). */
void vma_seal(void);
bool vma_sealed(void);

#endif
