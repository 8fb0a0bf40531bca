// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * core_file.c - core files. libelf reads the program headers and finds the notes. The contents of
 * the notes have the kernel's layout for each machine (fs/binfmt_elf.c). See core_file.h.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshstk/symbol/elf_file.h"
#include "tools/elf/core_file.h"
#include "tools/shstk.h"

/* Note types from include/uapi/linux/elf.h that are newer than the C library's headers. */
#define NT_X86_SHSTK_ 0x204
#define NT_ARM_PAC_MASK_ 0x406
#define NT_ARM_GCS_ 0x410
#define NT_RISCV_USER_CFI_ 0x903

#define MAX_NOTES (256u << 20) /* bytes, all notes together */
#define MAX_SEGMENTS (1u << 20)

/*
 * Offsets in struct elf_prstatus and struct elf_prpsinfo of 64-bit machines. All these machines
 * have the same layout in front of the registers.
 */
enum {
	PRSTATUS_SIGNO = 12, /* short */
	PRSTATUS_TID = 32, /* int */
	PRSTATUS_REGS = 112,
	SIGINFO_SIGNO = 0, /* int */
	SIGINFO_CODE = 8, /* int */
	SIGINFO_FIELDS = 16, /* of a fault the address, of a sent signal the sender */
	PRPSINFO_PID = 24, /* int */
	PRPSINFO_COMM = 40, /* 16 bytes */
	X86_REGS = 27,
	ARM64_REGS = 34,
	RISCV_REGS = 32,
};

static int fail(struct reason *why, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct reason *why, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return err;
}

static uint64_t word(const uint8_t *p, size_t n)
{
	uint64_t v;

	memcpy(&v, p + 8 * n, sizeof(v));
	return v;
}

static int32_t int_at(const uint8_t *p, size_t offset)
{
	int32_t v;

	memcpy(&v, p + offset, sizeof(v));
	return v;
}

/* ---- Registers ---- */

/*
 * Takes a struct user_regs_struct: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi
 * orig_rax rip cs eflags rsp ss fs_base ...
 */
static void x86_regs(const uint8_t *p, struct shstk_regs *r)
{
	static const uint8_t at[] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0 };

	for (int i = 0; i < 16; i++)
		r->r[i] = word(p, at[i]);
	r->known = 0xffff;
	r->pc = word(p, 16);
	r->thread_pointer = word(p, 21);
}

static void arm64_regs(const uint8_t *p, struct shstk_regs *r)
{
	for (int i = 0; i < 32; i++)
		r->r[i] = word(p, i);
	r->known = 0xffffffff;
	r->pc = word(p, 32);
}

/* Takes the registers pc, x1 to x31. */
static void riscv_regs(const uint8_t *p, struct shstk_regs *r)
{
	for (int i = 1; i < 32; i++)
		r->r[i] = word(p, i);
	r->r[0] = 0;
	r->known = 0xffffffff;
	r->pc = word(p, 0);
}

static const struct {
	unsigned int words;
	unsigned int call; /* index of the word that holds the system call's number */
	void (*take)(const uint8_t *p, struct shstk_regs *r);
} registers[] = {
	[SHSTK_ARCH_X86] = { X86_REGS, 15, x86_regs },
	[SHSTK_ARCH_ARM64] = { ARM64_REGS, 8, arm64_regs },
	[SHSTK_ARCH_RISCV] = { RISCV_REGS, 17, riscv_regs },
};

static int take_prstatus(struct core *core, const uint8_t *p, size_t size)
{
	struct core_thread *t;
	short signo;

	if (size < PRSTATUS_REGS + 8 * registers[core->arch].words)
		return -EINVAL;
	if (core->nr_threads == CORE_MAX_THREADS)
		return -EINVAL;
	if (!(core->nr_threads & (core->nr_threads - 1))) {
		size_t room = core->nr_threads ? 2 * core->nr_threads : 1;

		t = reallocarray(core->threads, room, sizeof(*t));
		if (!t)
			return -ENOMEM;
		core->threads = t;
	}
	t = &core->threads[core->nr_threads++];
	/* The kernel writes the ID in the namespace of the process. */
	*t = (struct core_thread){ .tid = int_at(p, PRSTATUS_TID) };
	t->own_tid = t->tid;
	memcpy(&signo, p + PRSTATUS_SIGNO, sizeof(signo));
	t->signo = signo;
	t->regs.size = sizeof(t->regs);
	registers[core->arch].take(p + PRSTATUS_REGS, &t->regs);
	t->call = (int64_t)word(p + PRSTATUS_REGS, registers[core->arch].call);
	return 0;
}

/* ---- Notes ---- */

static int take_prpsinfo(struct core *core, const uint8_t *p, size_t size)
{
	if (size < PRPSINFO_COMM + 16)
		return -EINVAL;
	core->pid = int_at(p, PRPSINFO_PID);
	memcpy(core->comm, p + PRPSINFO_COMM, 16);
	printable(core->comm);
	return 0;
}

static int take_siginfo(struct core *core, const uint8_t *p, size_t size)
{
	if (size < 24)
		return -EINVAL;
	/* gdb writes one for each thread; the first thread is the one that was ended. */
	if (core->signal.signo)
		return 0;
	core->signal = (struct core_signal){
		.signo = int_at(p, SIGINFO_SIGNO),
		.code = int_at(p, SIGINFO_CODE),
		.addr = word(p + SIGINFO_FIELDS, 0),
		.sender = int_at(p, SIGINFO_FIELDS),
	};
	return 0;
}

static int take_auxv(struct core *core, const uint8_t *p, size_t size)
{
	for (; size >= 16; p += 16, size -= 16) {
		switch (word(p, 0)) {
		case AT_NULL:
			return 0;
		case AT_ENTRY:
			core->entry = word(p, 1);
			break;
		case AT_SYSINFO_EHDR:
			core->vdso = word(p, 1);
			break;
		default:
			break;
		}
	}
	return 0;
}

/*
 * Takes NT_FILE: the number of files and the page size, then the start, the end and the offset (in
 * pages) of each file, then the paths.
 */
static int take_files(struct core *core, const uint8_t *p, size_t size)
{
	uint64_t count, page;
	const char *path, *end;

	if (core->maps || size < 16)
		return -EINVAL;
	count = word(p, 0);
	page = word(p, 1);
	if (count > CORE_MAX_MAPS || count > (size - 16) / 24 || page > 1 << 24)
		return -EINVAL;
	core->maps = calloc(count + 1, sizeof(*core->maps));
	core->strings = malloc(size - 16 - 24 * count + 1);
	if (!core->maps || !core->strings)
		return -ENOMEM;
	memcpy(core->strings, p + 16 + 24 * count, size - 16 - 24 * count);
	end = core->strings + (size - 16 - 24 * count);
	path = core->strings;
	core->strings[end - path] = '\0';
	for (uint64_t i = 0; i < count && path < end; i++) {
		struct core_map m = {
			.start = word(p + 16, 3 * i),
			.end = word(p + 16, 3 * i + 1),
			.path = path,
		};

		path += strlen(path) + 1;
		if (m.start >= m.end ||
		    __builtin_mul_overflow(word(p + 16, 3 * i + 2), page, &m.offset))
			return -EINVAL;
		if (core->nr_maps && m.start < core->maps[core->nr_maps - 1].end)
			return -EINVAL;
		core->maps[core->nr_maps++] = m;
	}
	return 0;
}

static int take_shadow(struct core *core, unsigned int type, const uint8_t *p, size_t size)
{
	struct core_thread *t;

	/* The note belongs to the thread of the last NT_PRSTATUS before it. */
	if (!core->nr_threads)
		return -EINVAL;
	t = &core->threads[core->nr_threads - 1];
	t->shadow = (struct shstk_shadow){
		.size = sizeof(t->shadow),
		.arch = core->arch,
		.pc = t->regs.pc,
	};
	if (type == NT_X86_SHSTK_ && core->arch == SHSTK_ARCH_X86 && size >= 8) {
		t->shadow.ssp = word(p, 0);
		t->shadow_on = true;
	} else if (type == NT_ARM_GCS_ && core->arch == SHSTK_ARCH_ARM64 && size >= 24) {
		/* features_enabled, features_locked, gcspr_el0 */
		t->shadow.ssp = word(p, 2);
		t->shadow_on = word(p, 0) & 1;
	} else if (type == NT_RISCV_USER_CFI_ && core->arch == SHSTK_ARCH_RISCV && size >= 16) {
		/* the state, whose bit 3 means "on", then the pointer */
		t->shadow.ssp = word(p, 1);
		t->shadow_on = word(p, 0) & 8;
	} else {
		return -EINVAL;
	}
	if (t->shadow.ssp & 7)
		t->shadow_on = false;
	return 0;
}

static int take_pac_mask(struct core *core, const uint8_t *p, size_t size)
{
	if (size < 16 || !core->nr_threads || core->arch != SHSTK_ARCH_ARM64)
		return -EINVAL;
	core->threads[core->nr_threads - 1].regs.pac_mask = word(p, 1);
	return 0;
}

static int take_tls(struct core *core, const uint8_t *p, size_t size)
{
	if (size < 8 || !core->nr_threads || core->arch != SHSTK_ARCH_ARM64)
		return -EINVAL;
	core->threads[core->nr_threads - 1].regs.thread_pointer = word(p, 0);
	return 0;
}

static int take_note(struct core *core, const GElf_Nhdr *n, const char *name, const uint8_t *desc)
{
	bool core_name = n->n_namesz == 5 && !memcmp(name, "CORE", 5);
	bool linux_name = n->n_namesz == 6 && !memcmp(name, "LINUX", 6);
	unsigned int type = n->n_type;
	size_t size = n->n_descsz;

	if (core_name && type == NT_PRSTATUS)
		return take_prstatus(core, desc, size);
	if (core_name && type == NT_PRPSINFO)
		return take_prpsinfo(core, desc, size);
	if (core_name && type == NT_SIGINFO)
		return take_siginfo(core, desc, size);
	if (core_name && type == NT_AUXV)
		return take_auxv(core, desc, size);
	if (core_name && type == NT_FILE)
		return take_files(core, desc, size);
	if (linux_name &&
	    (type == NT_X86_SHSTK_ || type == NT_ARM_GCS_ || type == NT_RISCV_USER_CFI_))
		return take_shadow(core, type, desc, size);
	if (linux_name && type == NT_ARM_PAC_MASK_)
		return take_pac_mask(core, desc, size);
	if (linux_name && type == NT_ARM_TLS)
		return take_tls(core, desc, size);
	return 0;
}

static int take_notes(struct core *core, Elf *elf, const GElf_Phdr *ph, uint64_t *budget)
{
	uint64_t size = ph->p_filesz;
	size_t at = 0, next, name, desc;
	Elf_Data *data;
	GElf_Nhdr n;

	if (ph->p_offset >= core->size)
		return 0;
	if (size > core->size - ph->p_offset)
		size = core->size - ph->p_offset;
	if (size > *budget)
		return -EINVAL;
	*budget -= size;
	data = elf_getdata_rawchunk(elf, ph->p_offset, size, ELF_T_NHDR);
	if (!data || !data->d_buf)
		return 0;
	while (at < data->d_size && (next = gelf_getnote(data, at, &n, &name, &desc)) > 0) {
		const char *buf = data->d_buf;
		int err = take_note(core, &n, buf + name, data->d_buf + desc);

		if (err == -ENOMEM)
			return err;
		core->damaged += !!err;
		at = next;
	}
	return 0;
}

/* ---- Segments ---- */

static void take_segment(struct core *core, const GElf_Phdr *ph)
{
	struct core_segment s = {
		.start = ph->p_vaddr,
		.end = ph->p_vaddr + ph->p_memsz,
		.held = ph->p_filesz < ph->p_memsz ? ph->p_filesz : ph->p_memsz,
		.offset = ph->p_offset,
		.exec = ph->p_flags & PF_X,
		.write = ph->p_flags & PF_W,
	};
	uint64_t behind;

	s.dumped = s.held;
	if (!ph->p_memsz || s.end < s.start || __builtin_add_overflow(s.offset, s.held, &behind)) {
		core->damaged += !!ph->p_memsz;
		return;
	}
	if (s.held && behind > core->wanted)
		core->wanted = behind;
	if (s.offset >= core->size)
		s.held = 0;
	else if (s.held > core->size - s.offset)
		s.held = core->size - s.offset;
	core->segments[core->nr_segments++] = s;
}

static int by_start(const void *a, const void *b)
{
	const struct core_segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void sort_segments(struct core *core)
{
	size_t n = 0;

	if (core->nr_segments)
		qsort(core->segments, core->nr_segments, sizeof(*core->segments), by_start);
	for (size_t i = 0; i < core->nr_segments; i++) {
		if (n && core->segments[i].start < core->segments[n - 1].end)
			core->damaged++;
		else
			core->segments[n++] = core->segments[i];
	}
	core->nr_segments = n;
}

static int read_headers(struct core *core, Elf *elf, struct reason *why)
{
	uint64_t budget = MAX_NOTES;
	size_t nr;
	int ret;

	if (elf_getphdrnum(elf, &nr) || !nr || nr > MAX_SEGMENTS)
		return fail(why, -ENOEXEC, "core file %s has no program headers", core->path);
	core->segments = calloc(nr, sizeof(*core->segments));
	if (!core->segments)
		return -ENOMEM;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < nr; i++) {
			GElf_Phdr ph;

			if (!gelf_getphdr(elf, i, &ph))
				return fail(why, -ENOEXEC,
					    "core file %s ends within its program headers",
					    core->path);
			if (!pass && ph.p_type == PT_LOAD) {
				take_segment(core, &ph);
			} else if (pass && ph.p_type == PT_NOTE) {
				ret = take_notes(core, elf, &ph, &budget);
				if (ret == -EINVAL)
					core->damaged++;
				else if (ret)
					return ret;
			}
		}
	}
	sort_segments(core);
	return 0;
}

static int check_header(struct core *core, Elf *elf, struct reason *why)
{
	GElf_Ehdr eh;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh))
		return fail(why, -ENOEXEC, "%s is not an ELF file", core->path);
	if (eh.e_type != ET_CORE)
		return fail(why, -ENOEXEC, "%s is not a core file but another ELF file",
			    core->path);
	if (eh.e_ident[EI_CLASS] == ELFCLASS64 && eh.e_ident[EI_DATA] == ELFDATA2LSB) {
		if (eh.e_machine == EM_X86_64)
			core->arch = SHSTK_ARCH_X86;
		else if (eh.e_machine == EM_AARCH64)
			core->arch = SHSTK_ARCH_ARM64;
		else if (eh.e_machine == EM_RISCV)
			core->arch = SHSTK_ARCH_RISCV;
	}
	if (!core->arch)
		return fail(
			why, -ENOEXEC,
			"core file %s is of a machine that is not supported: only x86-64, arm64 and riscv64 are",
			core->path);
	return 0;
}

/* Sets the end of each shadow stack to the end of the segment that has it. */
static void bound_shadows(struct core *core)
{
	for (size_t i = 0; i < core->nr_threads; i++) {
		struct shstk_shadow *s = &core->threads[i].shadow;
		const struct core_segment *seg;

		if (!core->threads[i].shadow_on)
			continue;
		seg = core_segment(core, s->ssp);
		if (seg)
			s->end = seg->end & ~7ull;
		else if (core_segment(core, s->ssp - 8))
			s->end = s->ssp; /* the shadow stack is empty */
		else
			core->threads[i].shadow_on = false;
	}
}

int core_open_fd(const char *path, int fd, struct core **ret, struct reason *why)
{
	struct core *core = calloc(1, sizeof(*core));
	Elf *elf = NULL;
	struct stat st;
	int e;

	because(why, "%s: out of memory", path);
	if (!core) {
		close(fd);
		return -ENOMEM;
	}
	core->path = path;
	core->fd = fd;
	core->memory = -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		e = fail(why, -EINVAL, "%s is not a regular file", path);
		goto out;
	}
	core->size = st.st_size;
	core->wanted = core->size;
	elf_version(EV_CURRENT);
	elf = shstk_elf_bounded(fd) ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	e = check_header(core, elf, why);
	if (!e)
		e = read_headers(core, elf, why);
	if (!e && !core->nr_threads)
		e = fail(why, -ENODATA,
			 core->wanted > core->size ?
				 "core file %s is cut off before the registers of its threads" :
				 "core file %s holds no registers",
			 path);
	if (!e)
		bound_shadows(core);
out:
	elf_end(elf);
	if (e)
		core_close(core);
	else
		*ret = core;
	return e;
}

int core_open(const char *path, struct core **ret, struct reason *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return fail(why, -errno, "cannot open core file %s: %s", path, strerror(errno));
	return core_open_fd(path, fd, ret, why);
}

void core_close(struct core *core)
{
	if (!core)
		return;
	free(core->segments);
	free(core->maps);
	free(core->threads);
	free(core->strings);
	close(core->fd);
	free(core);
}

const char *core_machine(const struct core *core)
{
	static const char *const names[] = {
		[SHSTK_ARCH_X86] = "x86-64",
		[SHSTK_ARCH_ARM64] = "arm64",
		[SHSTK_ARCH_RISCV] = "riscv64",
	};

	return names[core->arch];
}

const char *core_signal_name(int signo, char buf[32])
{
	const char *name = sigabbrev_np(signo);

	if (signo <= 0)
		return NULL;
	if (name)
		snprintf(buf, 32, "SIG%s", name);
	else
		snprintf(buf, 32, "signal %d", signo);
	return buf;
}

/*
 * Returns the element that contains @addr, or NULL. The elements have @size bytes each, are sorted
 * and disjoint, and begin with a start and an end address (as struct core_segment and struct
 * core_map do).
 */
static const void *find(const void *ranges, size_t nr, size_t size, uint64_t addr)
{
	size_t lo = 0, hi = nr;
	uint64_t range[2];

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		memcpy(range, (const char *)ranges + mid * size, sizeof(range));
		if (addr < range[0])
			hi = mid;
		else if (addr >= range[1])
			lo = mid + 1;
		else
			return (const char *)ranges + mid * size;
	}
	return NULL;
}

const struct core_segment *core_segment(const struct core *core, uint64_t addr)
{
	return find(core->segments, core->nr_segments, sizeof(*core->segments), addr);
}

const struct core_map *core_map(const struct core *core, uint64_t addr)
{
	return find(core->maps, core->nr_maps, sizeof(*core->maps), addr);
}

/*
 * Reads at most @len bytes of a segment at @addr, from the file or from the process. Returns the
 * number of bytes; 0 or less if there are none.
 */
static ssize_t read_segment(const struct core *core, const struct core_segment *s, uint64_t addr,
			    void *buf, size_t len)
{
	uint64_t at = addr - s->start;

	if (at < s->held)
		return pread(core->fd, buf, s->held - at < len ? s->held - at : len,
			     s->offset + at);
	if (core->memory < 0)
		return 0;
	return pread(core->memory, buf, s->end - addr < len ? s->end - addr : len, addr);
}

int core_read(const struct core *core, uint64_t addr, void *buf, size_t len)
{
	uint8_t *to = buf;

	/* The range may lie across several segments. */
	while (len) {
		const struct core_segment *s = core_segment(core, addr);
		ssize_t got = 0;

		if (s)
			got = read_segment(core, s, addr, to, len);
		else if (core->memory >= 0) /* gdb leaves segments out */
			got = pread(core->memory, to, len, addr);
		if (got <= 0)
			return -EFAULT;
		to += got;
		addr += got;
		len -= got;
	}
	return 0;
}
