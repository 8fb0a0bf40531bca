// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * module.c - ELF images with their unwind tables; see module.h.
 *
 * A module reads its file through a mapping of its own, which stays valid when the program unmaps
 * the code.
 */
#include <sys/mman.h>

#include "go/gorule.h"
#include "module.h"
#include "sys.h"
#include "table_index.h"

static struct module *module_alloc(void)
{
	struct module *m =
		mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

void module_free(struct module *m)
{
	table_deinit(&m->eh);
	table_deinit(&m->df);
	table_deinit(&m->sf);
	shstk_gopclntab_deinit(&m->go);
	if (m->map)
		munmap(m->map, m->map_size);
	if (m->added)
		munmap(m->added, m->added_size);
	munmap(m, sizeof(*m));
}

/*
 * Finds the range and the tables of a module whose image is parsed. Fails if memory for a table is
 * missing: otherwise the module would lack this table for ever.
 */
static int module_finish(struct module *m)
{
	m->range.lo = m->bias + m->img.lo;
	m->range.hi = m->bias + m->img.hi;
	if (table_init_eh_frame(&m->eh, &m->img) == -ENOMEM ||
	    table_init_debug_frame(&m->df, &m->img) == -ENOMEM ||
	    table_init_sframe(&m->sf, &m->img) == -ENOMEM ||
	    shstk_gopclntab_init(&m->go, &m->img, m->img.in_memory ? m->bias : 0) == -ENOMEM)
		return -ENOMEM;
	return 0;
}

noinline_for_stack int module_file(int fd, uint64_t *inode, size_t *size)
{
	struct stat st;
	int err = sys_fstat(fd, &st);

	if (err)
		return err;
	*inode = st.st_ino;
	*size = S_ISREG(st.st_mode) && st.st_size > 0 ? st.st_size : 0;
	return 0;
}

int module_from_fd(struct module **ret, int fd, const struct range *at, uint64_t offset)
{
	struct module *m;
	uint64_t inode;
	size_t size;
	int err;

	err = module_file(fd, &inode, &size);
	if (err)
		return err;
	if (!size)
		return -ENOEXEC;
	m = module_alloc();
	if (!m)
		return -ENOMEM;
	m->map_size = size;
	m->map = mmap(NULL, m->map_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (m->map == MAP_FAILED) {
		m->map = NULL;
		err = -errno;
		goto free_module;
	}
	err = elf_image_parse(&m->img, m->map, m->map_size, false);
	if (err)
		goto free_module;
	if (!elf_image_bias(&m->img, at, offset, &m->bias)) {
		err = -ENOEXEC;
		goto free_module;
	}
	err = module_finish(m);
	if (err)
		goto free_module;
	*ret = m;
	return 0;

free_module:
	module_free(m);
	return err;
}

int module_from_memory(struct module **ret, const void *memory, size_t size, uint64_t addr)
{
	struct module *m = module_alloc();
	int err;

	if (!m)
		return -ENOMEM;
	err = elf_image_parse(&m->img, memory, size, true);
	m->bias = addr - m->img.lo;
	if (!err)
		err = module_finish(m);
	if (err) {
		module_free(m);
		return err;
	}
	*ret = m;
	return 0;
}

int module_from_range(struct module **ret, uint64_t lo, uint64_t hi)
{
	struct module *m = module_alloc();

	if (!m)
		return -ENOMEM;
	m->range.lo = lo;
	m->range.hi = hi;
	*ret = m;
	return 0;
}

/* Returns the range of code addresses that a section covers. */
static struct range covered(const struct cfi_section *sec)
{
	struct range r = { UINT64_MAX, 0 };
	size_t off = 0, next;
	struct fde fde;
	int kind;

	while ((kind = cfi_entry(sec, off, &fde, &next)) >= 0) {
		if (kind == 1 && fde.end > fde.start) {
			r.lo = min(r.lo, fde.start);
			r.hi = max(r.hi, fde.end);
		}
		off = next;
	}
	return r;
}

int module_from_frames(struct module **ret, const struct machine *machine, const void *eh_frame,
		       size_t size)
{
	struct cfi_section sec = { .s = { .size = size } };
	struct module *m = module_alloc();
	int err = -ENOMEM;

	if (!m)
		return err;
	m->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->map == MAP_FAILED) {
		m->map = NULL;
		goto free_module;
	}
	m->map_size = size;
	sec.s.data = memcpy(m->map, eh_frame, size);
	sec.s.vaddr = (uintptr_t)eh_frame;
	m->range = covered(&sec);
	err = -EINVAL;
	if (m->range.hi <= m->range.lo)
		goto free_module;
	m->img.m = machine;
	m->img.lo = m->range.lo;
	m->img.eh_frame = sec.s;
	err = table_init_eh_frame(&m->eh, &m->img);
	if (err)
		goto free_module;
	*ret = m;
	return 0;

free_module:
	module_free(m);
	return err;
}

int module_add(struct module *m, const struct section *eh_frame, const struct section *debug_frame)
{
	uint8_t *p;

	if (m->added || (!eh_frame->size && !debug_frame->size))
		return -ENOENT;
	m->added_size = eh_frame->size + debug_frame->size;
	p = mmap(NULL, m->added_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	m->added = p;
	if (eh_frame->size && !m->eh.nfde) {
		m->img.eh_frame = *eh_frame;
		m->img.eh_frame.data = memcpy(p, eh_frame->data, eh_frame->size);
		m->img.eh_frame_hdr.size = 0;
		table_init_eh_frame(&m->eh, &m->img);
	}
	p += eh_frame->size;
	if (debug_frame->size && !m->df.nfde) {
		m->img.debug_frame = *debug_frame;
		m->img.debug_frame.data = memcpy(p, debug_frame->data, debug_frame->size);
		table_init_debug_frame(&m->df, &m->img);
	}
	return 0;
}

/* Asks @m->more once. Returns true if it was asked, so that more may be known now. */
static bool ask_for_more(struct module *m)
{
	void (*more)(struct module * m) = m->more;

	if (!more)
		return false;
	m->more = NULL;
	more(m);
	return true;
}

static bool covers(const struct module *m, uint64_t pc, bool code)
{
	uint64_t vaddr = pc - m->bias;
	unsigned int i;

	if (!m->img.nload)
		return range_has(&m->range, pc);
	for (i = 0; i < m->img.nload; i++) {
		if ((!code || m->img.load[i].exec) &&
		    vaddr - m->img.load[i].vaddr < m->img.load[i].memsz)
			return true;
	}
	return false;
}

bool module_has(const struct module *m, uint64_t pc)
{
	return covers(m, pc, false);
}

bool module_between(const struct module *a, const struct module *b)
{
	unsigned int i;

	if (!b->img.nload || a->range.lo < b->range.lo || a->range.hi > b->range.hi)
		return false;
	for (i = 0; i < b->img.nload; i++) {
		const struct load *l = &b->img.load[i];
		uint64_t lo = l->vaddr + b->bias;

		/*
		 * An anonymous range over data of @b is the rest of a mapping of all of @b, whose
		 * middle became something else: on arm64 the vdso does this to ld.so.
		 */
		if (!a->img.nload && !l->exec)
			continue;
		if (a->range.lo < lo + l->memsz && lo < a->range.hi)
			return false;
	}
	return true;
}

bool module_is_code(const struct module *m, uint64_t pc)
{
	return covers(m, pc, true);
}

bool module_function(const struct module *m, uint64_t pc, struct range *ret)
{
	const struct table *t = m->eh.nfde ? &m->eh : &m->df;
	size_t i = t->nfde ? index_search(t, pc - m->bias) : 0;

	if (i >= t->nfde)
		return false;
	ret->lo = index_start(t, i) + m->bias;
	ret->hi = i + 1 < t->nfde ? index_start(t, i + 1) + m->bias : m->range.hi;
	return true;
}

const uint8_t *module_code(const struct module *m, uint64_t pc, size_t *before, size_t *after)
{
	uint64_t vaddr = pc - m->bias;
	const uint8_t *p;
	unsigned int i;

	if (!module_is_code(m, pc))
		return NULL;
	p = elf_image_at(&m->img, vaddr, after);
	for (i = 0; p && i < m->img.nload; i++) {
		const struct load *l = &m->img.load[i];

		/* As elf_image_at() does, take the first one: a file may have others that overlap it. */
		if (vaddr - l->vaddr < l->filesz) {
			*before = vaddr - l->vaddr;
			break;
		}
	}
	return p;
}

static bool is_sigtramp(const struct module *m, uint64_t pc)
{
	const struct machine *machine = m->img.m;
	size_t before, after, i;
	const uint8_t *code;

	if (!m->img.nload)
		return false;
	code = module_code(m, pc, &before, &after);
	if (!code || machine->is_sigtramp(code, after))
		return code;
	/* @pc may also be at the last instruction of the trampoline, the system call. */
	for (i = 0; i < ARRAY_SIZE(machine->sigtramp_call); i++) {
		size_t at = machine->sigtramp_call[i];

		if (at && at <= before && machine->is_sigtramp(code - at, after + at))
			return true;
	}
	return false;
}

/*
 * Returns true if @pc is behind the system call of a signal return trampoline. The program counter
 * is there while the kernel makes that call, and unwind information need not cover this address.
 */
static bool is_behind_sigtramp(const struct module *m, uint64_t pc)
{
	const struct machine *machine = m->img.m;

	/* Code without a file has no machine. */
	if (!m->img.nload)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(machine->sigtramp_call); i++) {
		size_t before, after, at = machine->sigtramp_call[i];
		const uint8_t *code;

		if (!at)
			continue;
		at += machine->syscall_len;
		code = module_code(m, pc - 1, &before, &after);
		if (code && at <= before + 1 && machine->is_sigtramp(code + 1 - at, after - 1 + at))
			return true;
	}
	return false;
}

/*
 * Returns true if @vaddr is the entry point, which nothing calls. In glibc's unwind information for
 * arm64 this is only said behind its first instruction.
 */
static bool is_entry(struct module *m, uint64_t vaddr)
{
	return m->img.entry && vaddr == m->img.entry &&
	       table_rule(&m->eh, vaddr + IMAGE_ENTRY_INSN) == RULE_END;
}

uint64_t module_rule(struct module *m, uint64_t pc, bool exact)
{
	uint64_t vaddr = pc - m->bias - !exact;
	uint64_t rule = RULE_NONE;

	if (is_sigtramp(m, pc))
		return RULE_SIGTRAMP;
	if (m->eh.nfde)
		rule = is_entry(m, vaddr) ? RULE_END : table_rule(&m->eh, vaddr);
	if (rule == RULE_NONE && m->go.nfunc)
		rule = gorule_at(&m->go, vaddr);
	if (rule == RULE_NONE && m->df.nfde)
		rule = table_rule(&m->df, vaddr);
	if (rule == RULE_NONE && m->sf.nfde)
		rule = table_rule(&m->sf, vaddr);
	if (rule == RULE_NONE && ask_for_more(m))
		return module_rule(m, pc, exact);
	if (rule == RULE_NONE && exact && is_behind_sigtramp(m, pc))
		return RULE_SIGTRAMP;
	return rule;
}

int module_row(struct module *m, uint64_t pc, bool exact, struct cfi_row *row,
	       const struct cfi_section **sec)
{
	uint64_t vaddr = pc - m->bias - !exact;
	int err = -SHSTK_END_NO_RULE;

	if (m->eh.nfde) {
		*sec = &m->eh.sec;
		err = table_row(&m->eh, vaddr, row);
	}
	if (err == -SHSTK_END_NO_RULE && m->go.nfunc)
		err = gorule_row(&m->go, vaddr, row);
	if (err == -SHSTK_END_NO_RULE && m->df.nfde) {
		*sec = &m->df.sec;
		err = table_row(&m->df, vaddr, row);
	}
	if (err == -SHSTK_END_NO_RULE && m->sf.nfde) {
		*sec = &m->sf.sec;
		err = table_row(&m->sf, vaddr, row);
	}
	return err;
}

size_t module_bytes(const struct module *m)
{
	return table_bytes(&m->eh) + table_bytes(&m->df) + table_bytes(&m->sf);
}

void module_count(const struct module *m, struct shstk_stats *stats)
{
	if (!m)
		return;
	stats->modules++;
	stats->module_bytes += module_bytes(m);
}
