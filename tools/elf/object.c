// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * object.c - read one ELF file: its dynamic section and its property notes. The file is untrusted:
 * counts and lengths are bounded. See object.h.
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "libshstk/regular.h"
#include "libshstk/symbol/elf_file.h"
#include "tools/elf/object.h"

#ifndef EM_RISCV
#define EM_RISCV 243
#endif

#define PROPERTY_X86_FEATURE_1_AND 0xc0000002u
#define PROPERTY_X86_SHSTK (1u << 1)
#define PROPERTY_ARM64_FEATURE_1_AND 0xc0000000u
#define PROPERTY_ARM64_GCS (1u << 2)
#define PROPERTY_RISCV_FEATURE_1_AND 0xc0000000u
#define PROPERTY_RISCV_CFI_SS (1u << 1)

enum limit {
	MAX_NEEDED = 4096,
	MAX_NOTE = 1 << 20,
	MAX_DYNAMIC = 1 << 20,
	MAX_STRINGS = 64 << 20,
};

const char *machine_name(unsigned int machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86";
	case EM_AARCH64:
		return "arm64";
	case EM_RISCV:
		return "riscv";
	default:
		return "other";
	}
}

unsigned int machine_own(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#elif defined(__riscv)
	return EM_RISCV;
#else
	return EM_NONE;
#endif
}

int strings_add(char ***list, size_t *n, char *s)
{
	char **v;

	if (!s)
		return -ENOMEM;
	v = reallocarray(*list, *n + 2, sizeof(*v));
	if (!v) {
		free(s);
		return -ENOMEM;
	}
	v[(*n)++] = s;
	v[*n] = NULL;
	*list = v;
	return 0;
}

void strings_free(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}

void object_deinit(struct object *o)
{
	free(o->path);
	free(o->name);
	free(o->interp);
	free(o->soname);
	free(o->rpath);
	free(o->runpath);
	free(o->package);
	strings_free(o->needed);
}

int root_open(const char *root, const char *path)
{
	return *root ? regular_open_in(root, path) : regular_open(path);
}

/* Returns the path of an open file as seen in @root, or NULL. */
static char *path_of(int fd, const char *root)
{
	char link[64], buf[PATH_MAX], dir[PATH_MAX];
	size_t len;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, sizeof(buf) - 1);
	if (n <= 0)
		return NULL;
	buf[n] = '\0';
	if (*root && realpath(root, dir)) {
		len = strlen(dir);
		if (!strncmp(buf, dir, len) && buf[len] == '/')
			return strdup(buf + len);
	}
	return strdup(buf);
}

/* Returns a copy of the string at offset @off of a string table, or NULL. */
static char *string_at(const Elf_Data *strings, GElf_Xword off)
{
	size_t room;

	if (off >= strings->d_size)
		return NULL;
	room = strings->d_size - off;
	if (room > PATH_MAX)
		room = PATH_MAX;
	if (strnlen((const char *)strings->d_buf + off, room) == room)
		return NULL;
	return strdup((const char *)strings->d_buf + off);
}

static void set_string(char **to, char *s)
{
	free(*to);
	*to = s;
}

/*
 * Sets @ret to the file offset of @addr and @room to the bytes that the segment has from there on,
 * by the program headers. Returns 0 or -ENOEXEC.
 */
static int offset_of(Elf *elf, size_t phnum, GElf_Addr addr, GElf_Off *ret, GElf_Xword *room)
{
	GElf_Phdr ph;

	for (size_t i = 0; i < phnum; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (addr < ph.p_vaddr || addr - ph.p_vaddr >= ph.p_filesz)
			continue;
		*ret = ph.p_offset + (addr - ph.p_vaddr);
		*room = ph.p_filesz - (addr - ph.p_vaddr);
		return 0;
	}
	return -ENOEXEC;
}

static Elf_Data *strings_of(Elf *elf, size_t phnum, const Elf_Data *dyn, size_t count)
{
	GElf_Addr addr = 0;
	GElf_Xword size = 0, room;
	GElf_Off off;
	GElf_Dyn d;

	for (size_t i = 0; i < count; i++) {
		if (!gelf_getdyn((Elf_Data *)dyn, (int)i, &d) || d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_STRTAB)
			addr = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRSZ)
			size = d.d_un.d_val;
	}
	if (!addr || !size || offset_of(elf, phnum, addr, &off, &room))
		return NULL;
	if (size > room)
		size = room;
	if (size > MAX_STRINGS)
		size = MAX_STRINGS;
	return elf_getdata_rawchunk(elf, (int64_t)off, size, ELF_T_BYTE);
}

static int read_dynamic(Elf *elf, size_t phnum, const GElf_Phdr *ph, struct object *o)
{
	size_t size = ph->p_filesz < MAX_DYNAMIC ? ph->p_filesz : MAX_DYNAMIC;
	size_t entry = o->bits == 64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	size_t count = size / entry, needed = 0;
	Elf_Data *dyn, *strings;
	GElf_Dyn d;
	int err;

	dyn = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, count * entry, ELF_T_DYN);
	if (!dyn)
		return -ENOEXEC;
	strings = strings_of(elf, phnum, dyn, count);
	if (!strings)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getdyn(dyn, (int)i, &d) || d.d_tag == DT_NULL)
			break;
		switch (d.d_tag) {
		case DT_NEEDED:
			if (needed >= MAX_NEEDED)
				return -E2BIG;
			err = strings_add(&o->needed, &needed, string_at(strings, d.d_un.d_val));
			if (err)
				return -ENOEXEC;
			break;
		case DT_SONAME:
			set_string(&o->soname, string_at(strings, d.d_un.d_val));
			break;
		case DT_RPATH:
			set_string(&o->rpath, string_at(strings, d.d_un.d_val));
			break;
		case DT_RUNPATH:
			set_string(&o->runpath, string_at(strings, d.d_un.d_val));
			break;
		case DT_FLAGS_1:
			o->nodeflib = d.d_un.d_val & DF_1_NODEFLIB;
			o->pie = d.d_un.d_val & DF_1_PIE;
			break;
		}
	}
	return 0;
}

static uint32_t load32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool property_marks(const struct object *o, uint32_t type, uint32_t bits)
{
	switch (o->machine) {
	case EM_X86_64:
		return type == PROPERTY_X86_FEATURE_1_AND && bits & PROPERTY_X86_SHSTK;
	case EM_AARCH64:
		return type == PROPERTY_ARM64_FEATURE_1_AND && bits & PROPERTY_ARM64_GCS;
	case EM_RISCV:
		return type == PROPERTY_RISCV_FEATURE_1_AND && bits & PROPERTY_RISCV_CFI_SS;
	default:
		return false;
	}
}

/* Reads the descriptor of one NT_GNU_PROPERTY_TYPE_0 note. */
static void read_properties(const unsigned char *p, size_t size, struct object *o)
{
	size_t align = o->bits == 64 ? 8 : 4;

	while (size >= 8) {
		uint32_t type = load32(p), len = load32(p + 4);
		size_t step;

		if (len > size - 8)
			return;
		if (len == 4 && property_marks(o, type, load32(p + 8)))
			o->marked = true;
		step = 8 + ((len + align - 1) & ~(align - 1));
		if (step > size)
			return;
		p += step;
		size -= step;
	}
}

static void read_notes(Elf *elf, const GElf_Phdr *ph, struct object *o)
{
	size_t size = ph->p_filesz < MAX_NOTE ? ph->p_filesz : MAX_NOTE;
	size_t name, desc, next, off = 0;
	Elf_Data *data;
	GElf_Nhdr note;

	data = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, size,
				    ph->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	if (!data)
		return;
	while ((next = gelf_getnote(data, off, &note, &name, &desc)) > 0) {
		const char *base = data->d_buf;

		if (note.n_type == NT_GNU_PROPERTY_TYPE_0 && note.n_namesz == 4 &&
		    !memcmp(base + name, "GNU", 4))
			read_properties((const unsigned char *)base + desc, note.n_descsz, o);
		off = next;
	}
}

static char *read_interp(Elf *elf, const GElf_Phdr *ph)
{
	Elf_Data *data;

	if (ph->p_filesz < 2 || ph->p_filesz > PATH_MAX)
		return NULL;
	data = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_BYTE);
	return data ? string_at(data, 0) : NULL;
}

static int read_elf(Elf *elf, struct object *o)
{
	GElf_Ehdr eh;
	GElf_Phdr ph;
	size_t phnum;
	int err;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) ||
	    eh.e_ident[EI_DATA] != ELFDATA2LSB || elf_getphdrnum(elf, &phnum))
		return -ENOEXEC;
	o->machine = eh.e_machine;
	o->type = eh.e_type;
	o->bits = eh.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	/* The kernel and the dynamic linkers accept program headers of this size only. */
	if ((o->type != ET_EXEC && o->type != ET_DYN) ||
	    (phnum && eh.e_phentsize != gelf_fsize(elf, ELF_T_PHDR, 1, EV_CURRENT)))
		return -ENOEXEC;
	for (size_t i = 0; i < phnum; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			return -ENOEXEC;
		switch (ph.p_type) {
		case PT_DYNAMIC:
			err = read_dynamic(elf, phnum, &ph, o);
			if (err)
				return err;
			break;
		case PT_INTERP:
			set_string(&o->interp, read_interp(elf, &ph));
			break;
		case PT_NOTE:
			read_notes(elf, &ph, o);
			break;
		}
	}
	return 0;
}

/*
 * Returns true if the kernel would set AT_SECURE when this process executes the file. @capable says
 * that the file has capabilities.
 */
static bool gains_here(int fd, const struct stat *st, bool capable)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct statvfs fs;

	if (!prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) && !fstatvfs(fd, &fs) &&
	    !(fs.f_flag & ST_NOSUID)) {
		if (st->st_mode & S_ISUID)
			uid = st->st_uid;
		if (st->st_mode & S_ISGID && st->st_mode & S_IXGRP)
			gid = st->st_gid;
		if (getuid() && capable)
			return true;
	}
	return uid != getuid() || gid != getgid();
}

int object_read(int fd, const char *root, struct object *o)
{
	struct stat st;
	bool capable;
	Elf *elf;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOEXEC;
	capable = fgetxattr(fd, "security.capability", NULL, 0) > 0;
	o->privileged = st.st_mode & (S_ISUID | S_ISGID) || capable;
	o->gains = gains_here(fd, &st, capable);
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOSYS;
	elf = shstk_elf_bounded(fd) ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	if (!elf)
		return -ENOEXEC;
	err = read_elf(elf, o);
	elf_end(elf);
	if (err)
		return err;
	o->path = path_of(fd, root);
	return o->path ? 0 : -ENOMEM;
}
