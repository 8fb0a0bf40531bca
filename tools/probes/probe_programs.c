// SPDX-License-Identifier: GPL-2.0-or-later
/* probe_programs.c - load BPF programs. See probe_programs.h. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/probes/probe_programs.h"

#define MAX_INSTRUCTIONS 65536
#define MIN_RING (1u << 16)
#define LOG_SIZE (1u << 20)

static const char *const heap_names[PROBE_PROGRAMS] = {
	[PROBE_ENTER] = "probe/enter",	       [PROBE_LEAVE] = "probe/leave",
	[PROBE_RELEASE] = "probe/release",     [PROBE_BEGUN] = "probe/begun",
	[PROBE_TELLS_MAPPED] = "probe/mapped",
};

const struct program_file heap_programs = {
	.type = BPF_PROG_TYPE_KPROBE,
	.names = heap_names,
	.programs = PROBE_PROGRAMS,
	.maps = PROBE_MAPS,
	.ring = PROBE_MAP_RING,
};

static const char *const goroutine_names[] = { "perf_event" };

const struct program_file goroutine_programs = {
	.type = BPF_PROG_TYPE_PERF_EVENT,
	.names = goroutine_names,
	.programs = 1,
	.maps = 1,
};

/* A map as defined in the section "maps" of the object file. */
struct map_def {
	uint32_t type, key_size, value_size, max, flags;
};

/**
 * struct program_object - the object file while it is read
 * @file: the expected contents.
 * @elf: the file.
 * @maps: contents of the section "maps".
 * @symbols: the symbol table.
 * @programs: code of the programs, in the order of @file.
 * @relocations: relocations of each program; they tell where the code refers to maps.
 */
struct program_object {
	const struct program_file *file;
	Elf *elf;
	Elf_Data *maps;
	Elf_Data *symbols;
	Elf_Data *programs[PROBE_PROGRAMS];
	Elf_Data *relocations[PROBE_PROGRAMS];
};

/*
 * The number of bytes of union bpf_attr up to the end of a member. What a union has behind the
 * member that is initialised may be anything (gcc 15 and later leave it as it is), and bpf(2)
 * refuses all but zeros there; so it is told where the part ends that is in use.
 */
#define UP_TO(member) (offsetof(union bpf_attr, member) + sizeof(((union bpf_attr *)NULL)->member))

static int bpf(int cmd, union bpf_attr *attr, size_t size)
{
	int ret = syscall(SYS_bpf, cmd, attr, size);

	return ret < 0 ? -errno : ret;
}

static uint64_t address(const void *p)
{
	return (uintptr_t)p;
}

/* ---- Reading the file ---- */

static void take_section(struct program_object *o, Elf_Scn *section, const GElf_Shdr *header,
			 const char *name)
{
	Elf_Data *data = elf_getdata(section, NULL);

	if (header->sh_type == SHT_SYMTAB)
		o->symbols = data;
	else if (!strcmp(name, "maps"))
		o->maps = data;
	for (unsigned int i = 0; i < o->file->programs; i++) {
		const char *wanted = o->file->names[i];

		if (header->sh_type == SHT_REL && !strcmp(name + strlen(".rel"), wanted))
			o->relocations[i] = data;
		else if (!strcmp(name, wanted))
			o->programs[i] = data;
	}
}

static int read_object(struct program_object *o)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t strings;

	if (!o->elf || elf_getshdrstrndx(o->elf, &strings))
		return -EINVAL;
	while ((section = elf_nextscn(o->elf, section))) {
		const char *name = NULL;

		if (gelf_getshdr(section, &header))
			name = elf_strptr(o->elf, strings, header.sh_name);
		if (name && strlen(name) >= strlen(".rel"))
			take_section(o, section, &header, name);
	}
	if (!o->maps || !o->symbols || o->maps->d_size != o->file->maps * sizeof(struct map_def))
		return -EINVAL;
	for (unsigned int i = 0; i < o->file->programs; i++)
		if (!o->programs[i] || !o->relocations[i] ||
		    o->programs[i]->d_size > MAX_INSTRUCTIONS * sizeof(struct bpf_insn))
			return -EINVAL;
	return 0;
}

/* Puts the descriptors of the maps into the instructions that load the addresses of maps. */
static int name_maps(const struct program_object *o, unsigned int which, struct bpf_insn *code,
		     const struct programs *p)
{
	Elf_Data *list = o->relocations[which];
	size_t nr = o->programs[which]->d_size / sizeof(*code);
	GElf_Sym symbol;
	GElf_Rel rel;

	for (int i = 0; gelf_getrel(list, i, &rel); i++) {
		size_t at = rel.r_offset / sizeof(*code);

		if (at >= nr || !gelf_getsym(o->symbols, (int)GELF_R_SYM(rel.r_info), &symbol) ||
		    symbol.st_value / sizeof(struct map_def) >= o->file->maps)
			return -EINVAL;
		code[at].src_reg = BPF_PSEUDO_MAP_FD;
		code[at].imm = p->maps[symbol.st_value / sizeof(struct map_def)];
	}
	return 0;
}

/* ---- Loading into the kernel ---- */

static int create_map(const struct map_def *def)
{
	union bpf_attr attr = {
		.map_type = def->type,
		.key_size = def->key_size,
		.value_size = def->value_size,
		.max_entries = def->max,
		.map_flags = def->flags,
	};

	return bpf(BPF_MAP_CREATE, &attr, UP_TO(map_flags));
}

static int create_ring(const struct map_def *def, struct programs *p)
{
	struct map_def ring = *def;
	int fd;

	do {
		ring.max = p->ring_size;
		fd = create_map(&ring);
	} while (fd == -ENOMEM && (p->ring_size /= 2) >= MIN_RING);
	return fd;
}

static int create_maps(const struct program_object *o, struct programs *p)
{
	struct map_def defs[PROBE_MAPS];

	memcpy(defs, o->maps->d_buf, o->maps->d_size);
	for (unsigned int i = 0; i < o->file->maps; i++) {
		int fd = i == o->file->ring ? create_ring(&defs[i], p) : create_map(&defs[i]);

		if (fd < 0)
			return fd;
		p->maps[i] = fd;
	}
	return 0;
}

/* Sets @why to the last thing that the verifier said, which is the reason. */
static void explain(char *log, struct reason *why)
{
	char *end = log + strlen(log), *line;

	while (end > log && end[-1] == '\n')
		*--end = '\0';
	line = strrchr(log, '\n');
	/* The last line only counts what was verified. */
	if (line && !strncmp(line + 1, "processed ", 10)) {
		*line = '\0';
		line = strrchr(log, '\n');
	}
	because(why, "the kernel refuses the BPF program: %s", line ? line + 1 : log);
}

static int load_code(uint32_t type, const struct bpf_insn *code, size_t nr, char *log)
{
	union bpf_attr attr = {
		.prog_type = type,
		.insns = address(code),
		.insn_cnt = nr,
		.license = address("GPL"),
		.log_buf = address(log),
		.log_size = log ? LOG_SIZE : 0,
		.log_level = log ? 1 : 0,
	};

	return bpf(BPF_PROG_LOAD, &attr, UP_TO(log_buf));
}

static int load_program(const struct program_object *o, unsigned int which, struct programs *p,
			struct reason *why)
{
	size_t bytes = o->programs[which]->d_size;
	struct bpf_insn *code = malloc(bytes);
	char *log;
	int ret = -ENOMEM;

	if (!code)
		return ret;
	memcpy(code, o->programs[which]->d_buf, bytes);
	ret = name_maps(o, which, code, p);
	if (!ret)
		ret = load_code(o->file->type, code, bytes / sizeof(*code), NULL);
	log = ret == -EACCES || ret == -EINVAL ? calloc(1, LOG_SIZE) : NULL;
	if (log && load_code(o->file->type, code, bytes / sizeof(*code), log) < 0)
		explain(log, why);
	free(log);
	free(code);
	if (ret >= 0)
		p->programs[which] = ret;
	return ret < 0 ? ret : 0;
}

/* Raises the limit of locked memory: kernels before 5.11 count the memory of maps as locked. */
static void lock_more(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &limit);
}

int programs_load(const struct program_file *file, const char *path, size_t ring_size,
		  struct programs *ret, struct reason *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	struct program_object o = { .file = file };

	*ret = (struct programs){ .file = file, .ring_size = ring_size };
	if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE) {
		because(why, "%s: %s", path, strerror(errno));
		error = -ENOENT;
		goto out;
	}
	lock_more();
	o.elf = elf_begin(fd, ELF_C_READ, NULL);
	error = read_object(&o);
	because(why, "%s is not what belongs to this command", path);
	if (error)
		goto out;
	error = create_maps(&o, ret);
	because(why, "BPF maps: %s", strerror(-error));
	for (unsigned int i = 0; i < file->programs && !error; i++) {
		because(why, "BPF programs: %s", strerror(EINVAL));
		error = load_program(&o, i, ret, why);
		if (error == -EPERM || error == -ENOMEM)
			because(why, "BPF programs: %s", strerror(-error));
	}
out:
	elf_end(o.elf);
	if (fd >= 0)
		close(fd);
	return error;
}

static void close_all(int *fds, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (fds[i] > 0)
			close(fds[i]);
}

void programs_unload(struct programs *p)
{
	close_all(p->programs, PROBE_PROGRAMS);
	close_all(p->maps, PROBE_MAPS);
	*p = (struct programs){ .ring_size = 0 };
}

int programs_set(const struct programs *p, enum probe_map map, uint32_t i, const void *value)
{
	union bpf_attr attr = {
		.map_fd = p->maps[map],
		.key = address(&i),
		.value = address(value),
	};

	return bpf(BPF_MAP_UPDATE_ELEM, &attr, UP_TO(flags));
}

static int look_up(const struct programs *p, enum probe_map map, const void *key, void *value)
{
	union bpf_attr attr = {
		.map_fd = p->maps[map],
		.key = address(key),
		.value = address(value),
	};

	return bpf(BPF_MAP_LOOKUP_ELEM, &attr, UP_TO(flags));
}

int programs_get(const struct programs *p, enum probe_map map, void *value)
{
	uint32_t zero = 0;

	return look_up(p, map, &zero, value);
}

int programs_has_block(const struct programs *p, const struct probe_block *block)
{
	uint64_t value;

	return !look_up(p, PROBE_MAP_BLOCKS, block, &value);
}

int programs_attach(const struct programs *p, enum probe_program which, int fd, uint64_t cookie)
{
	union bpf_attr attr = {
		.link_create = {
			.prog_fd = p->programs[which],
			.target_fd = fd,
			.attach_type = BPF_PERF_EVENT,
			.perf_event.bpf_cookie = cookie,
		},
	};

	return bpf(BPF_LINK_CREATE, &attr, UP_TO(link_create.perf_event));
}
