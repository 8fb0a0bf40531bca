// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * device.c - copies files, and uploads their tables to /dev/shstk_rules.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/rules/device.h"
#include "tools/shstk.h"

/* No vdso is larger than this. */
#define MAX_VDSO (1 << 16)

/* No program is larger than this. It limits the memory of the copy. */
#define MAX_FILE (1ll << 32)

/*
 * Copies as many bytes as the file had at rules_file_begin(). If there are fewer, the file was
 * truncated since. Returns 0 or a negative errno.
 */
int rules_file_fill(struct rules_file *file)
{
	size_t size = file->before.st_size, n = 0;
	char *data = malloc(size);

	if (!data)
		return -ENOMEM;
	while (n < size) {
		ssize_t got = pread(file->fd, data + n, size - n, (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			int err = got ? -errno : -ENOEXEC;

			free(data);
			return err;
		}
		n += got;
	}
	file->data = data;
	file->size = size;
	return 0;
}

int rules_file_begin(struct rules_file *file, int fd)
{
	int err = 0;

	*file = (struct rules_file){ .fd = fd };
	if (fstat(fd, &file->before))
		err = -errno;
	else if (S_ISDIR(file->before.st_mode))
		err = -EISDIR;
	else if (!S_ISREG(file->before.st_mode) || !file->before.st_size)
		err = -ENOEXEC;
	else if (file->before.st_size > MAX_FILE)
		err = -EFBIG;
	if (err)
		rules_file_close(file);
	return err;
}

int rules_file_from_fd(struct rules_file *file, int fd)
{
	int err = rules_file_begin(file, fd);

	if (err)
		return err;
	err = rules_file_fill(file);
	if (err)
		rules_file_close(file);
	return err;
}

int rules_file_open(struct rules_file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : rules_file_from_fd(file, fd);
}

int rules_file_vdso(struct rules_file *file)
{
	const Elf64_Ehdr *h = (const void *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Phdr *p;
	size_t size;

	*file = (struct rules_file){ .fd = -1 };
	if (!h)
		return -ENOENT;
	/* Nothing tells the size of the vdso, but its section headers are at its end. */
	size = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
	p = (const void *)((const char *)h + h->e_phoff);
	for (unsigned int i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset + p[i].p_filesz > size)
			size = p[i].p_offset + p[i].p_filesz;
	if (size > MAX_VDSO)
		return -ENOEXEC;
	file->data = h;
	file->size = size;
	return 0;
}

void rules_file_close(struct rules_file *file)
{
	if (file->fd < 0)
		return;
	free((void *)file->data);
	close(file->fd);
	file->fd = -1;
}

int rules_device(void)
{
	int fd = open(SHSTK_RULES_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENXIO)
		complain(SHSTK_RULES_DEVICE " is not there: load the module (modprobe shstk_perf)");
	else
		complain(SHSTK_RULES_DEVICE ": %s%s", strerror(errno),
			 errno == EACCES ? ": be root" : "");
	return -1;
}

const char *rules_upload_error(int err)
{
	switch (err) {
	case -EPERM:
		return "not permitted: be root, or have CAP_PERFMON and CAP_SYS_ADMIN";
	case -ENOSPC:
		return "no room for its table: raise /sys/module/shstk_perf/parameters/rules_limit";
	case -EXDEV:
		return "not for this machine";
	case -EDQUOT:
		return "no room for its table, as files of its owner have a fourth of it: raise /sys/module/shstk_perf/parameters/rules_limit";
	case -EINVAL: /* of a kind of rule that it does not know */
	case -E2BIG:
		return "the module that is loaded is older than this program: modprobe -r shstk_perf, then modprobe shstk_perf";
	case -ETXTBSY:
		return "a program has it open for writing";
	case -ESTALE:
		return "changed meanwhile";
	default:
		return strerror(-err);
	}
}

int rules_upload(int device, const struct rules_file *file, const char *path,
		 const struct compiled_table *table)
{
	struct shstk_rules_load arg = {
		.table = (uintptr_t)table->header,
		.size = table->size,
		.fd = file->fd,
	};
	const char *slash = strrchr(path, '/');

	/*
	 * The kernel notices whether the file was written to after the copy, and watches it from
	 * then on.
	 */
	if (file->fd >= 0) {
		arg.change_sec = (uint64_t)file->before.st_ctim.tv_sec;
		arg.change_nsec = (uint32_t)file->before.st_ctim.tv_nsec;
	}
	strncpy(arg.name, slash ? slash + 1 : path, sizeof(arg.name) - 1);
	return ioctl(device, SHSTK_RULES_LOAD, &arg) ? -errno : 0;
}

const char *rules_compile_error(int err)
{
	switch (err) {
	case -ENOEXEC:
		return "not an ELF file of a 64-bit machine that is known";
	case -ENOENT:
		return "has no unwind information";
	case -E2BIG:
		return "has more unwind information than a table holds";
	default:
		return strerror(-err);
	}
}
