/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* root.h - files as another process sees them. */
#ifndef SHSTK_SYMBOL_ROOT_H
#define SHSTK_SYMBOL_ROOT_H

#include <sys/types.h>

/**
 * struct shstk_root - root folder and mount namespace of some processes
 * @fd: descriptor of the folder, or -1: this process's own root.
 * @dev: device of the folder, to tell roots apart.
 * @ino: inode number of the folder, to tell roots apart.
 * @mnt_ns: inode number of the mount namespace, to tell roots apart.
 * @next: next root of the store.
 */
struct shstk_root {
	int fd;
	dev_t dev;
	ino_t ino;
	ino_t mnt_ns;
	struct shstk_root *next;
};

/*
 * Returns @pid, or the ID of another thread of that process if its first thread has ended: /proc
 * shows what a process has only by the IDs of threads that live.
 */
int shstk_living_thread(int pid);

/*
 * Returns the root of a living process, found in or added to @list. It is this process's own root
 * if both are the same, if the process cannot be looked at, or if @pid is 0. NULL when memory runs
 * out.
 */
struct shstk_root *shstk_root_get(struct shstk_root **list, int pid);
void shstk_root_put_all(struct shstk_root **list);
/*
 * Opens a regular file for reading below that root; absolute links are followed below it, too.
 * Never blocks on pipes. @flags are further flags of open(2). Returns a descriptor or a negative
 * errno.
 */
int shstk_root_open(const struct shstk_root *root, const char *path, int flags);

#endif
