// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * modules.c - loads framehop, and tells it what a process has mapped: the
 * sections of each file with executable code, and the vdso from memory.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "peer.h"

#define PAGE 4096ul

/**
 * framehop_load() - find libframehop-peer.so beside the running program's folder
 *
 * Return: its functions, or NULL: it has not been built.
 */
const struct framehop_api *framehop_load(void)
{
	static struct framehop_api api;
	void *lib = dlopen("libframehop-peer.so", RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return NULL;
	*(void **)&api.create = dlsym(lib, "framehop_create");
	*(void **)&api.destroy = dlsym(lib, "framehop_destroy");
	*(void **)&api.add = dlsym(lib, "framehop_add");
	*(void **)&api.miss = dlsym(lib, "framehop_miss");
	*(void **)&api.trace = dlsym(lib, "framehop_trace");
	return api.create && api.destroy && api.add && api.miss && api.trace ? &api : NULL;
}

/* Mappings of one file in a row. */
struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t code; /* start of the one with code */
	uint64_t offset; /* in the file, of that one */
	char path[4096];
};

static void take(struct framehop_section *to, Elf_Scn *scn, GElf_Shdr *shdr)
{
	Elf_Data *data;

	to->addr = shdr->sh_addr;
	to->size = shdr->sh_size;
	if (shdr->sh_type == SHT_NOBITS)
		return;
	if (shdr->sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0)
		return;
	data = elf_rawdata(scn, NULL);
	if (data) {
		to->data = data->d_buf;
		to->size = data->d_size;
	}
}

static void take_sections(struct framehop_module *m, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (!name)
			continue;
		if (!strcmp(name, ".eh_frame"))
			take(&m->eh_frame, scn, &shdr);
		else if (!strcmp(name, ".eh_frame_hdr"))
			take(&m->eh_frame_hdr, scn, &shdr);
		else if (!strcmp(name, ".debug_frame"))
			take(&m->debug_frame, scn, &shdr);
		else if (!strcmp(name, ".text"))
			take(&m->text, scn, &shdr);
		else if (!strcmp(name, ".got"))
			take(&m->got, scn, &shdr);
	}
}

/* Where the file's addresses are in the process. */
static bool find_bias(const struct mapping *map, Elf *elf, uint64_t *bias)
{
	GElf_Phdr phdr;
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, i, &phdr) || phdr.p_type != PT_LOAD ||
		    !(phdr.p_flags & PF_X))
			continue;
		if ((phdr.p_offset & ~(PAGE - 1)) == map->offset) {
			*bias = map->code - (phdr.p_vaddr & ~(PAGE - 1));
			return true;
		}
	}
	return false;
}

static void add_elf(const struct framehop_api *api, struct framehop *f, const struct mapping *map,
		    Elf *elf)
{
	struct framehop_module m = { .start = map->start, .end = map->end };

	if (!find_bias(map, elf, &m.bias))
		return;
	take_sections(&m, elf);
	api->add(f, &m);
}

static void add_file(const struct framehop_api *api, struct framehop *f, const struct mapping *map)
{
	int fd = open(map->path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	if (fd < 0)
		return;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		add_elf(api, f, map, elf);
	elf_end(elf);
	close(fd);
}

static void add_memory(const struct framehop_api *api, struct framehop *f,
		       const struct mapping *map, pid_t pid)
{
	size_t size = map->end - map->start;
	char *copy = malloc(size);
	struct iovec to = { copy, size };
	struct iovec from = { (void *)map->start, size };
	Elf *elf;

	if (copy && process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)size) {
		elf = elf_memory(copy, size);
		if (elf)
			add_elf(api, f, map, elf);
		elf_end(elf);
	}
	free(copy);
}

static void add(const struct framehop_api *api, struct framehop *f, const struct mapping *map,
		pid_t pid)
{
	if (!map->code)
		return;
	if (map->path[0] == '/')
		add_file(api, f, map);
	else if (!strcmp(map->path, "[vdso]"))
		add_memory(api, f, map, pid);
}

/**
 * framehop_add_process() - tell framehop of all modules of a process
 * @api: framehop.
 * @f: an unwinder that knows of none of them.
 * @pid: process, which does not run meanwhile.
 *
 * Return: 0 or a negative errno.
 */
int framehop_add_process(const struct framehop_api *api, struct framehop *f, pid_t pid)
{
	struct mapping now = { 0 }, next;
	char file[64], line[4400], perm[5];
	FILE *maps;

	elf_version(EV_CURRENT);
	snprintf(file, sizeof(file), "/proc/%d/maps", pid);
	maps = fopen(file, "re");
	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps)) {
		next = (struct mapping){ 0 };
		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %4095[^\n]", &next.start, &next.end, perm,
			   &next.offset, next.path) < 4)
			continue;
		if (strcmp(next.path, now.path)) {
			add(api, f, &now, pid);
			now = next;
		}
		now.end = next.end;
		if (perm[2] == 'x' && !now.code) {
			now.code = next.start;
			now.offset = next.offset;
		}
	}
	fclose(maps);
	add(api, f, &now, pid);
	return 0;
}
