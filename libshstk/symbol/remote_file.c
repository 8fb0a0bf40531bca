// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * remote_file.c - makes a file of a mapping whose file cannot be opened: it was deleted, or built
 * anew, and this is an ordinary user, who may not use /proc/PID/map_files.
 *
 * The program itself can be opened as /proc/PID/exe. Of other files the mapped parts are read from
 * the process's memory: a file in memory is made that has these bytes at the same offsets as the
 * original, and headers for a symbol table. It has the code, its unwind information and the names
 * of what it exports; no debug information, no local names, and nothing that is writable.
 *
 * The bytes come from the process, which could lie. But no other process gets names from them: a
 * file in memory is never the same file as one that others have mapped.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "budget.h"
#include "remote_file.h"
#include "store.h"

#define SEGMENTS 16
#define DYNAMICS 128 /* most entries of a dynamic section that are read */
#define FILE_MAX_SIZE (1ull << 32)
#define COPY_SHARE 12 /* part of the budget's memory for the files of all processes */
#define CHUNK (1u << 20)

/* A symbol says in which section it is, so each segment with code becomes a section. */
enum { SECTION_NULL, SECTION_DYNSYM, SECTION_DYNSTR, SECTION_NAMES, SECTION_CODE };

enum { NAME_DYNSYM = 1, NAME_DYNSTR = 9, NAME_NAMES = 17, NAME_CODE = 27 };

static const char section_names[] = "\0.dynsym\0.dynstr\0.shstrtab\0.text";

/**
 * struct remote - a file that is being made
 * @memory: memory of the process.
 * @base: address at which the file's first byte is mapped.
 * @bias: number that is added to the file's virtual addresses to get addresses of the process.
 * @fd: descriptor of the file in memory.
 * @end: offset behind the last byte written so far.
 * @eh: ELF header of the file.
 * @ph: program headers of the file.
 */
struct remote {
	const struct shstk_remote_memory *memory;
	uint64_t base, bias;
	int fd;
	uint64_t end;
	Elf64_Ehdr eh;
	Elf64_Phdr ph[SEGMENTS];
};

static bool read_memory(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	return r->memory->read(r->memory->arg, addr, buf, size);
}

static bool write_all(const struct remote *r, uint64_t at, const void *buf, size_t size)
{
	return pwrite(r->fd, buf, size, (off_t)at) == (ssize_t)size;
}

/*
 * Returns whether @size more bytes may be copied, and counts them. The memory that the files take
 * belongs to this process, so it is bounded for all files together.
 */
static bool may_copy(const struct remote *r, uint64_t size)
{
	if (size > *r->memory->left) {
		shstk_account_exceed(r->memory->account, SHSTK_EXCESS_MEMORY);
		return false;
	}
	if (!shstk_account_take(r->memory->account, size))
		return false;
	*r->memory->left -= size;
	return true;
}

/*
 * Copies memory of the process to where the file has it. Pages that cannot be read stay empty.
 * Returns 0 or a negative errno.
 */
static int copy_part(struct remote *r, uint64_t vaddr, uint64_t offset, uint64_t size)
{
	uint8_t *buf;

	if (offset > FILE_MAX_SIZE || size > FILE_MAX_SIZE - offset || !may_copy(r, size))
		return -EFBIG;
	buf = malloc(CHUNK);
	if (!buf)
		return -ENOMEM;
	if (offset + size > r->end)
		r->end = offset + size;
	for (uint64_t at = 0; at < size; at += CHUNK) {
		size_t n = size - at < CHUNK ? size - at : CHUNK;

		if (!shstk_account_on(r->memory->account)) {
			free(buf);
			return -EFBIG;
		}
		if (read_memory(r, r->bias + vaddr + at, buf, n) &&
		    !write_all(r, offset + at, buf, n)) {
			free(buf);
			return -ENOSPC;
		}
	}
	free(buf);
	return 0;
}

static int read_headers(struct remote *r)
{
	const Elf64_Ehdr *eh = &r->eh;

	if (!r->base || !read_memory(r, r->base, &r->eh, sizeof(r->eh)) ||
	    memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh->e_phentsize != sizeof(Elf64_Phdr) || !eh->e_phnum || eh->e_phnum > SEGMENTS ||
	    eh->e_phoff > FILE_MAX_SIZE ||
	    !read_memory(r, r->base + eh->e_phoff, r->ph, eh->e_phnum * sizeof(r->ph[0])))
		return -ENOEXEC;
	for (unsigned int i = 0; i < eh->e_phnum; i++) {
		if (r->ph[i].p_type != PT_LOAD)
			continue;
		r->bias = r->base - (r->ph[i].p_vaddr - r->ph[i].p_offset);
		return 0;
	}
	return -ENOEXEC;
}

/*
 * Copies all segments that cannot have been changed since they were loaded. Returns 0 or a negative
 * errno.
 */
static int copy_segments(struct remote *r)
{
	int err = 0;

	for (unsigned int i = 0; i < r->eh.e_phnum && !err; i++) {
		const Elf64_Phdr *p = &r->ph[i];

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			err = copy_part(r, p->p_vaddr, p->p_offset, p->p_filesz);
	}
	return err;
}

/*
 * Finds the offset in the file of what is mapped at @addr. The loader may have added the bias to
 * @addr or not; @vaddr receives the address without it. Returns false if no segment covers it.
 */
static bool file_offset(const struct remote *r, uint64_t addr, uint64_t *vaddr, uint64_t *ret)
{
	*vaddr = addr >= r->bias ? addr - r->bias : addr;
	for (unsigned int i = 0; i < r->eh.e_phnum; i++) {
		const Elf64_Phdr *p = &r->ph[i];

		if (p->p_type != PT_LOAD || *vaddr - p->p_vaddr >= p->p_filesz)
			continue;
		*ret = p->p_offset + (*vaddr - p->p_vaddr);
		return true;
	}
	return false;
}

struct symbols_at {
	uint64_t symtab, strtab, strsz;
};

static bool find_symbols(const struct remote *r, struct symbols_at *ret)
{
	Elf64_Dyn dyn;

	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < r->eh.e_phnum; i++) {
		const Elf64_Phdr *p = &r->ph[i];

		for (unsigned int k = 0; p->p_type == PT_DYNAMIC && k < DYNAMICS; k++) {
			if (!read_memory(r, r->bias + p->p_vaddr + k * sizeof(dyn), &dyn,
					 sizeof(dyn)) ||
			    dyn.d_tag == DT_NULL)
				break;
			if (dyn.d_tag == DT_SYMTAB)
				ret->symtab = dyn.d_un.d_ptr;
			else if (dyn.d_tag == DT_STRTAB)
				ret->strtab = dyn.d_un.d_ptr;
			else if (dyn.d_tag == DT_STRSZ)
				ret->strsz = dyn.d_un.d_val;
		}
	}
	/* Linkers put the strings behind the symbols; nothing says how many symbols there are. */
	return ret->symtab && ret->strtab > ret->symtab && ret->strsz;
}

/* Appends @size bytes to the file. Returns their offset, 0 if that failed. */
static uint64_t append(struct remote *r, const void *bytes, size_t size)
{
	uint64_t at = (r->end + 7) & ~7ull;

	r->end = at + size;
	return write_all(r, at, bytes, size) ? at : 0;
}

/*
 * Makes a section of each segment with code, from SECTION_CODE on. Returns the number of sections.
 */
static unsigned int add_code(const struct remote *r, Elf64_Shdr *sh)
{
	unsigned int n = SECTION_CODE;

	for (unsigned int i = 0; i < r->eh.e_phnum; i++) {
		const Elf64_Phdr *p = &r->ph[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			sh[n++] = (Elf64_Shdr){
				.sh_name = NAME_CODE,
				.sh_type = SHT_PROGBITS,
				.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				.sh_addr = p->p_vaddr,
				.sh_offset = p->p_offset,
				.sh_size = p->p_filesz,
				.sh_addralign = 1,
			};
	}
	return n;
}

/* Returns the section of a symbol; SHN_UNDEF if it is not in code. */
static unsigned int section_of(const Elf64_Shdr *sh, unsigned int n, const Elf64_Sym *sym)
{
	for (unsigned int i = SECTION_CODE; i < n; i++)
		if (sym->st_shndx != SHN_UNDEF && sym->st_value - sh[i].sh_addr < sh[i].sh_size)
			return i;
	return SHN_UNDEF;
}

/* Adds a symbol table with the names of what is exported. Without it the file is still useful. */
static void add_symbols(struct remote *r, Elf64_Shdr *sh, unsigned int n)
{
	uint64_t sym, str, vaddr, strings;
	Elf64_Sym *table = NULL;
	struct symbols_at s;
	size_t nr;

	if (!find_symbols(r, &s) || !file_offset(r, s.symtab, &vaddr, &sym) ||
	    !file_offset(r, s.strtab, &strings, &str) || str <= sym || !may_copy(r, str - sym))
		return;
	nr = (str - sym) / sizeof(*table);
	table = calloc(nr, sizeof(*table));
	if (table && read_memory(r, r->bias + vaddr, table, nr * sizeof(*table))) {
		for (size_t i = 0; i < nr; i++)
			table[i].st_shndx = (Elf64_Section)section_of(sh, n, &table[i]);
		sh[SECTION_DYNSYM] = (Elf64_Shdr){
			.sh_name = NAME_DYNSYM,
			.sh_type = SHT_DYNSYM,
			.sh_offset = append(r, table, nr * sizeof(*table)),
			.sh_size = nr * sizeof(*table),
			.sh_link = SECTION_DYNSTR,
			.sh_info = 1,
			.sh_addralign = 8,
			.sh_entsize = sizeof(*table),
		};
		sh[SECTION_DYNSTR] = (Elf64_Shdr){
			.sh_name = NAME_DYNSTR,
			.sh_type = SHT_STRTAB,
			.sh_offset = str,
			.sh_size = s.strsz,
			.sh_addralign = 1,
		};
	}
	free(table);
}

/* Adds section headers, which readers of symbols need. Returns 0 or -ENOSPC. */
static int add_sections(struct remote *r)
{
	Elf64_Shdr sh[SECTION_CODE + SEGMENTS] = { { .sh_type = SHT_NULL } };
	unsigned int n = add_code(r, sh);

	add_symbols(r, sh, n);
	sh[SECTION_NAMES] = (Elf64_Shdr){
		.sh_name = NAME_NAMES,
		.sh_type = SHT_STRTAB,
		.sh_offset = append(r, section_names, sizeof(section_names)),
		.sh_size = sizeof(section_names),
		.sh_addralign = 1,
	};
	r->eh.e_shoff = append(r, sh, n * sizeof(sh[0]));
	r->eh.e_shentsize = sizeof(sh[0]);
	r->eh.e_shnum = n;
	r->eh.e_shstrndx = SECTION_NAMES;
	return r->eh.e_shoff && write_all(r, 0, &r->eh, sizeof(r->eh)) ? 0 : -ENOSPC;
}

int shstk_remote_image(const struct shstk_remote_memory *memory, uint64_t base)
{
	struct remote r = { .memory = memory, .base = base };
	int err = read_headers(&r);

	if (err)
		return err;
	r.fd = memfd_create("shstk", MFD_CLOEXEC);
	if (r.fd < 0)
		return -errno;
	err = copy_segments(&r);
	if (!err)
		err = add_sections(&r);
	if (!err)
		return r.fd;
	close(r.fd);
	return err;
}

/**
 * struct mapped - the file that is mapped at an address
 * @dev: device, as makedev(3) has it.
 * @inode: inode number.
 * @base: address at which the file's first byte is mapped; 0 if that is not known.
 */
struct mapped {
	uint64_t dev, inode;
	uint64_t base;
};

/* Finds the file that is mapped at @addr. Returns false if there is none. */
static bool find_file(pid_t pid, uint64_t addr, struct mapped *ret)
{
	uint64_t start, end, offset;
	char path[64], *line = NULL;
	struct mapped now, last = { 0 };
	unsigned int major, minor;
	bool found = false;
	size_t room = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	in = fopen(path, "re");
	while (in && !found && getline(&line, &room, in) > 0) {
		if (sscanf(line, "%lx-%lx %*s %lx %x:%x %lu", &start, &end, &offset, &major, &minor,
			   &now.inode) != 6 ||
		    !now.inode)
			continue;
		now.dev = makedev(major, minor);
		now.base = !offset					  ? start :
			   last.inode == now.inode && last.dev == now.dev ? last.base :
									    0;
		found = start <= addr && addr < end;
		last = now;
	}
	free(line);
	if (in)
		fclose(in);
	*ret = last;
	return found;
}

static int open_exe(pid_t pid, const struct mapped *file)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == file->inode &&
	    st.st_dev == file->dev)
		return fd;
	close(fd);
	return -ESTALE;
}

static bool read_process(void *arg, uint64_t addr, void *buf, size_t size)
{
	struct iovec here = { buf, size }, there = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(*(const pid_t *)arg, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/*
 * Makes the file. A process gets half of what is left for all, so that there is some for others. If
 * that fails, the memory is given back.
 */
static int make_file(struct shstk_symbols *symbols, struct shstk_account *account, pid_t pid,
		     uint64_t base)
{
	uint64_t most = symbols->budget.whole / COPY_SHARE, before = account->memory;
	uint64_t left = symbols->remote_bytes < most ? (most - symbols->remote_bytes) / 2 : 0;
	const struct shstk_remote_memory memory = { read_process, &pid, account, &left };
	int fd = shstk_remote_image(&memory, base);

	if (fd < 0)
		shstk_account_give(account, account->memory - before);
	else
		symbols->remote_bytes += account->memory - before;
	return fd;
}

int shstk_remote_open(struct shstk_symbols *symbols, int pid, uint64_t addr)
{
	pid_t number = pid > 0 ? shstk_living_thread(pid) : 0;
	struct shstk_account *account;
	struct mapped file;
	int fd = -EFBIG;
	bool found;

	if (!number)
		return -ENOENT;
	account = shstk_symbols_process_account(symbols, pid);
	if (!account)
		return -ENOMEM;
	if (shstk_account_begin(account)) {
		found = find_file(number, addr, &file);
		fd = found ? open_exe(number, &file) : -ENOENT;
		if (found && fd < 0)
			fd = make_file(symbols, account, number, file.base);
	}
	shstk_account_end(account);
	return fd;
}
