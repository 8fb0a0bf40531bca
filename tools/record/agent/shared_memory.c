// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * shared_memory.c - makes the memory that `shstk record` shares with the objects that it preloads.
 * See shared_memory.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/inject/common/join.h"
#include "tools/record/agent/shared_memory.h"
#include "tools/shstk.h"

int shared_memory_create(const char *name, uint64_t size, struct shared_memory *ret)
{
	ret->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ret->fd < 0 || ftruncate(ret->fd, size) ||
	    fcntl(ret->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	if (getrandom(&ret->cookie, sizeof(ret->cookie), 0) != sizeof(ret->cookie))
		return -EIO;
	snprintf(ret->env, sizeof(ret->env), "/proc/%d/fd/%d %llx %u", getpid(), ret->fd,
		 (unsigned long long)ret->cookie, seccomp_filters());
	return 0;
}

uint64_t shared_memory_filled(const struct shared_memory *memory)
{
	struct stat st;

	return fstat(memory->fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

void shared_memory_destroy(struct shared_memory *memory)
{
	if (memory->fd >= 0)
		close(memory->fd);
	memory->fd = -1;
}

void shared_memory_name(char name[REC_COMM], const char *from)
{
	memmove(name, from, REC_COMM - 1);
	name[REC_COMM - 1] = '\0';
	printable(name);
}
