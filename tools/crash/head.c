// SPDX-License-Identifier: GPL-2.0-or-later
/* head.c - reads a core file from a pipe up to the end of its notes; see crash.h. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/crash/crash.h"
#include "tools/whole_io.h"

#define HEAD_MAX (64ull << 20) /* bytes: notes of some 10,000 threads */
#define SMALL \
	(1ull << 20) /* bytes: a core file that has no more behind its notes is read as a whole */
#define MAX_SEGMENTS 65535 /* PN_XNUM: from here on the number is at the end of the file */

/* Reads up to @to bytes of the file. Returns 0, -ENODATA if it ends before, or another error. */
static int read_to(int in, struct crash_head *head, uint64_t to)
{
	char buf[65536];

	while (head->size < to) {
		size_t n = to - head->size < sizeof(buf) ? to - head->size : sizeof(buf);
		ssize_t got = read_whole(in, buf, n);
		int err;

		if (got <= 0)
			return got ? got : -ENODATA;
		err = write_whole(head->fd, buf, got);
		if (err)
			return err;
		head->size += got;
	}
	return 0;
}

/*
 * Finds where the notes end, from the program headers, which were read. @end receives where the
 * whole file does. Returns false if the file has no notes.
 */
static bool find_end(const struct crash_head *head, const Elf64_Ehdr *eh, uint64_t *notes,
		     uint64_t *end)
{
	*notes = *end = 0;
	for (unsigned int i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr ph;
		uint64_t behind;

		if (pread(head->fd, &ph, sizeof(ph), eh->e_phoff + i * sizeof(ph)) != sizeof(ph) ||
		    __builtin_add_overflow(ph.p_offset, ph.p_filesz, &behind))
			return false;
		if (ph.p_type == PT_NOTE && behind > *notes)
			*notes = behind;
		if (behind > *end)
			*end = behind;
	}
	return *notes;
}

static int check(const Elf64_Ehdr *eh, struct reason *why)
{
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_type != ET_CORE ||
	    eh->e_phentsize != sizeof(Elf64_Phdr) || eh->e_phoff > HEAD_MAX) {
		because(why, "standard input is not a core file of a 64-bit program");
		return -ENOEXEC;
	}
	if (!eh->e_phnum || eh->e_phnum >= MAX_SEGMENTS) {
		because(why, "the core file has %u or more mappings, which only a file tells",
			eh->e_phnum);
		return -E2BIG;
	}
	return 0;
}

int crash_read_head(int in, struct crash_head *head, struct reason *why)
{
	uint64_t notes, end;
	Elf64_Ehdr eh;
	int err;

	*head = (struct crash_head){ .fd = memfd_create("core", MFD_CLOEXEC) };
	because(why, "the core file cannot be read from standard input");
	if (head->fd < 0)
		return -errno;
	err = read_to(in, head, sizeof(eh));
	if (err)
		return err;
	if (pread(head->fd, &eh, sizeof(eh), 0) != sizeof(eh))
		return -EIO;
	err = check(&eh, why);
	if (err)
		return err;
	err = read_to(in, head, eh.e_phoff + eh.e_phnum * sizeof(Elf64_Phdr));
	if (err)
		return err;
	if (!find_end(head, &eh, &notes, &end) || notes > HEAD_MAX) {
		because(why, notes > HEAD_MAX ? "the core file's notes are larger than 64 MiB" :
						"the core file has no notes");
		return -ENOEXEC;
	}
	err = read_to(in, head, end - notes < SMALL ? end : notes);
	/* One that ends early has all that there is. */
	return err == -ENODATA && head->size >= notes ? 0 : err;
}
