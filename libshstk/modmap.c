// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * modmap.c - the map of this process's modules; see modmap.h.
 *
 * The map is an array of slots that readers scan without locks. An insertion claims a free slot; a
 * removal empties the slot and retires the module (modmap_retire.c).
 *
 * Modules can become stale: code goes away by dlclose(), and a later load may put other code in its
 * place. The loader counts loads, and dl_iterate_phdr() tells the count (dlpi_adds), but takes a
 * lock. So the constructor asks once, and looks for the words of the loader's data (_rtld_global)
 * that hold this number. When one of these words changes, the modules are compared with memory
 * again. musl never unmaps code. A JIT that replaces code says so by shstk_modules_changed().
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loads.h"
#include "modmap_jit.h"
#include "rtld.h"
#include "rulecache.h"
#include "modmap.h"
#include "scratch.h"
#include "seal.h"
#include "sys.h"
#include "thread.h"
#include "vma.h"

#define MODULES 8192
#define MAX_RUN 16 /* number of parts of a mapping that may differ in protection */

struct module_slot {
	uint64_t lo, hi;
	struct module *m;
};

static struct module_slot slots[MODULES];
static unsigned int nslots; /* number of slots that were ever used */
static bool has_go;
static struct range modmap_end;

static const uint64_t no_counter;

struct modmap_watch modmap_watch = {
	.counter = { &no_counter, &no_counter },
};

static struct module *lookup(uint64_t pc)
{
	unsigned int i, n = load_acquire(&nslots);

	for (i = 0; i < n; i++) {
		struct module *m;

		if (pc - load_relaxed(&slots[i].lo) >=
		    load_relaxed(&slots[i].hi) - load_relaxed(&slots[i].lo))
			continue;
		m = load_acquire(&slots[i].m);
		if (m && module_has(m, pc))
			return m;
	}
	return NULL;
}

bool modmap_has_go(void)
{
	return load_relaxed(&has_go);
}

static bool insert(struct module *m)
{
	unsigned int i;

	if (m->go.nfunc)
		store_relaxed(&has_go, true);
	for (i = 0; i < MODULES; i++) {
		struct module *none = NULL;
		unsigned int n;

		if (load_relaxed(&slots[i].m) ||
		    !__atomic_compare_exchange_n(&slots[i].m, &none, m, false, __ATOMIC_RELEASE,
						 __ATOMIC_RELAXED))
			continue;
		store_relaxed(&slots[i].lo, m->range.lo);
		store_relaxed(&slots[i].hi, m->range.hi);
		n = load_relaxed(&nslots);
		while (n <= i && !__atomic_compare_exchange_n(&nslots, &n, i + 1, true,
							      __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		return true;
	}
	return false;
}

static void remove_slot(struct module_slot *s, struct module *m)
{
	if (__atomic_compare_exchange_n(&s->m, &m, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		modmap_retire(m);
}

/*
 * Copies memory of this process that may be unmapped meanwhile. Returns false if it cannot be read.
 */
static bool copy_memory(void *to, uint64_t from, size_t len)
{
	struct iovec local = { to, len };
	struct iovec remote = { (void *)(uintptr_t)from, len };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

bool modmap_readable(uint64_t addr)
{
	int saved = errno;
	uint64_t word;
	bool ok;

	ok = copy_memory(&word, addr, sizeof(word));
	errno = saved;
	return ok;
}

/* The values of the words of modmap_watch.counter when shstk_seal() was called. */
static uint64_t at_seal[MODMAP_COUNTERS];

void shstk_seal(void)
{
	unsigned int i;

	if (vma_sealed())
		return;
	for (i = 0; i < modmap_watch.n; i++)
		at_seal[i] = load_relaxed(modmap_watch.counter[i]);
	if (modmap_loads_changed())
		modmap_revalidate();
	vma_seal();
}

/*
 * Returns true if it is certain that nothing was unloaded since shstk_seal(). glibc's loader has
 * two counters: how many objects were ever loaded, and how many are loaded now. If all counters
 * have grown by the same number, nothing was unloaded. With only one counter this is never certain.
 */
static bool none_went(void)
{
	uint64_t more = load_relaxed(modmap_watch.counter[0]) - at_seal[0];
	unsigned int i;

	for (i = 1; i < modmap_watch.n; i++) {
		if (load_relaxed(modmap_watch.counter[i]) - at_seal[i] != more)
			return false;
	}
	return modmap_watch.n > 1;
}

/*
 * Finds the address at which the file of @vma is mapped from its start. Returns false if there is
 * none.
 */
static bool find_base(const struct vma *vma, uint64_t *base)
{
	struct vma v = *vma;
	int i;

	for (i = 0; v.offset && i < IMAGE_LOADS; i++) {
		if (vma_query(v.range.lo - 1, &v, NULL, 0) || v.inode != vma->inode)
			return false;
	}
	*base = v.range.lo;
	return !v.offset;
}

struct headers {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[IMAGE_LOADS];
};

/* The mapping that a module is made from, and the module. */
struct from_args {
	const struct vma *vma;
	struct module *m;
};

/*
 * Makes a module from memory, because its file is gone or was replaced by another one. The unwind
 * information is copied, since the mapping may go away, too. Returns 0 or a negative errno.
 */
static int from_mapped_in(void *mem, void *args)
{
	struct headers *h = mem;
	struct from_args *a = args;
	const struct vma *vma = a->vma;
	uint64_t base, lo = UINT64_MAX, hi = 0;
	unsigned int i;
	uint8_t *copy;
	int err;

	if (!find_base(vma, &base) || !copy_memory(&h->eh, base, sizeof(h->eh)) ||
	    memcmp(h->eh.e_ident, ELFMAG, SELFMAG) || h->eh.e_phnum > IMAGE_LOADS ||
	    !copy_memory(h->ph, base + h->eh.e_phoff, h->eh.e_phnum * sizeof(h->ph[0])))
		return -ENOEXEC;
	for (i = 0; i < h->eh.e_phnum; i++) {
		if (h->ph[i].p_type != PT_LOAD)
			continue;
		lo = min(lo, h->ph[i].p_vaddr & ~4095ull);
		hi = max(hi, h->ph[i].p_vaddr + h->ph[i].p_memsz);
	}
	if (hi <= lo || hi - lo > 1ull << 32)
		return -ENOEXEC;
	copy = mmap(NULL, hi - lo, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy == MAP_FAILED)
		return -ENOMEM;
	for (i = 0; i < h->eh.e_phnum; i++) {
		if (h->ph[i].p_type == PT_LOAD && !(h->ph[i].p_flags & PF_W))
			copy_memory(copy + (h->ph[i].p_vaddr - lo), base + (h->ph[i].p_vaddr - lo),
				    h->ph[i].p_filesz);
	}
	err = module_from_memory(&a->m, copy, hi - lo, base);
	if (err) {
		munmap(copy, hi - lo);
		return err;
	}
	a->m->map = copy;
	a->m->map_size = hi - lo;
	return 0;
}

static int from_mapped(struct module **ret, const struct vma *vma)
{
	struct from_args a = { .vma = vma };
	int err = scratch_call(sizeof(struct headers), from_mapped_in, &a);

	*ret = a.m;
	return err;
}

static noinline_for_stack int from_file(struct module **ret, const struct vma *vma,
					const char *path)
{
	uint64_t inode;
	int fd, err;
	size_t size;

	fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return fd;
	err = module_file(fd, &inode, &size);
	if (!err && inode != vma->inode)
		err = -ESTALE;
	if (!err)
		err = module_from_fd(ret, fd, &vma->range, vma->offset);
	sys_close(fd);
	return err;
}

static int from_vma(struct module **ret, const struct vma *vma, const char *path)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	int err;

	if (vdso && range_has(&vma->range, vdso))
		return module_from_memory(ret, (void *)(uintptr_t)vdso, vma->range.hi - vdso, vdso);
	if (path[0] != '/' || !vma->inode)
		return module_from_range(ret, vma->range.lo, vma->range.hi);
	err = from_file(ret, vma, path);
	if (err && err != -ENOMEM)
		err = from_mapped(ret, vma);
	if (err && err != -ENOMEM) /* the file is no ELF file */
		err = module_from_range(ret, vma->range.lo, vma->range.hi);
	return err;
}

/* Returns true if the module's code cannot go away while the process lives. */
static bool permanent(const struct module *m)
{
	uint64_t addr[] = {
		getauxval(AT_PHDR), /* the program */
		getauxval(AT_BASE), /* the loader */
		getauxval(AT_SYSINFO_EHDR), /* the vdso */
		(uintptr_t)&raise, /* the C library */
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(addr); i++) {
		if (addr[i] && range_has(&m->range, addr[i]))
			return true;
	}
	return false;
}

/*
 * Extends @vma to the larger mapping that it was part of until a part's protection was changed.
 * Where the larger mapping begins tells which segment it is. Returns false if it was no part of
 * one.
 */
static bool find_run(struct vma *vma)
{
	struct vma before;
	bool found = false;
	int i;

	for (i = 0; i < MAX_RUN && vma->inode; i++) {
		if (vma_query(vma->range.lo - 1, &before, NULL, 0) || before.inode != vma->inode ||
		    before.range.hi != vma->range.lo ||
		    before.offset + (before.range.hi - before.range.lo) != vma->offset)
			break;
		vma->range.lo = before.range.lo;
		vma->offset = before.offset;
		found = true;
	}
	return found;
}

/*
 * Makes a module of the file's code at @addr, if the program has copied this code to anonymous
 * memory in its own place. Another mapping of the file lies in front of that memory. @path has room
 * for @size bytes and is overwritten. Returns 0 or a negative errno.
 */
static noinline_for_stack int from_beside(struct module **ret, const struct vma *vma, char *path,
					  size_t size, uint64_t addr)
{
	struct vma beside;
	int err;

	if (vma->inode || vma_query(vma->range.lo - 1, &beside, path, size) || !beside.inode ||
	    beside.range.hi != vma->range.lo || path[0] != '/')
		return -ENOENT;
	err = from_file(ret, &beside, path);
	if (err || (module_is_code(*ret, addr) && vma->range.hi <= (*ret)->range.hi))
		return err;
	module_free(*ret);
	return -ENOENT;
}

static int from_run(struct module **ret, struct vma *vma, const char *path, uint64_t addr)
{
	int err = from_vma(ret, vma, path);

	/*
	 * @addr can be executed, but is no code of the file by this mapping alone: look at the
	 * whole run.
	 */
	if (err || module_is_code(*ret, addr) || !find_run(vma))
		return err;
	module_free(*ret);
	return from_vma(ret, vma, path);
}

/*
 * Makes a module of what is mapped at @addr, which need not be code of the module. Returns NULL if
 * nothing executable is mapped there.
 */
static noinline_for_stack struct module *look_up(uint64_t addr)
{
	size_t size = 4096;
	struct module *m;
	struct vma vma;
	char *path;

	if (vma_sealed())
		return NULL;
	path = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (path == MAP_FAILED)
		return NULL;
	m = NULL;
	if (!vma_query(addr, &vma, path, size) && vma.prot & VMA_EXEC &&
	    (path[0] || from_beside(&m, &vma, path, size, addr)) && from_run(&m, &vma, path, addr))
		m = NULL;
	munmap(path, size);
	if (m)
		m->is_volatile = !permanent(m);
	return m;
}

static struct module *add(uint64_t pc)
{
	struct module *m = look_up(pc), *other;

	if (!m)
		return NULL;
	other = lookup(pc);
	if (other || !module_has(m, pc) || !insert(m)) {
		module_free(m);
		return other;
	}
	return m;
}

static uint64_t first_code(const struct module *m)
{
	unsigned int i;

	for (i = 0; i < m->img.nload; i++) {
		if (m->img.load[i].exec)
			return m->bias + m->img.load[i].vaddr;
	}
	return m->range.lo;
}

void shstk_meet(uint64_t addr)
{
	int saved = errno;
	struct module *m = look_up(addr);

	if (m && (lookup(first_code(m)) || !insert(m)))
		module_free(m);
	errno = saved;
}

struct module *modmap_find(uint64_t pc)
{
	struct module *m = modmap_jit_find(pc);
	int saved = errno;

	if (unlikely(m))
		return m;
	m = lookup(pc);
	if (likely(m))
		return m;
	m = add(pc);
	errno = saved;
	return m;
}

/* Returns true if the @len bytes at @addr still equal those of the image at @data. */
static bool same_bytes(const uint8_t *data, uint64_t addr, size_t len)
{
	uint8_t buf[256];
	size_t n;

	for (; len; len -= n, data += n, addr += n) {
		n = min(len, sizeof(buf));
		if (!copy_memory(buf, addr, n) || memcmp(buf, data, n))
			return false;
	}
	return true;
}

/*
 * Returns true if the module's image is still mapped where it was. The build id tells, and without
 * one the unwind information itself.
 */
static bool still_there(const struct module *m)
{
	const struct elf_image *img = &m->img;
	const struct section *eh = &m->eh.sec.s;
	unsigned int i;

	for (i = 0; img->build_id && i < img->nload; i++) {
		const struct load *l = &img->load[i];
		uint64_t at = img->build_id - img->data;

		if (img->in_memory)
			return same_bytes(img->build_id, m->bias + img->lo + at,
					  img->build_id_size);
		if (at - l->offset < l->filesz)
			return same_bytes(img->build_id, m->bias + l->vaddr + at - l->offset,
					  img->build_id_size);
	}
	return m->eh.nfde &&
	       same_bytes(eh->data, m->bias + eh->vaddr, min(eh->size, (size_t)16384));
}

/* What generations of rules add to modmap_state_seen() has no bit of the counter that falls. */
_Static_assert(RULECACHE_ROUND == 1ull << MODMAP_LOADS_SHIFT, "the sum of two that only grow");

void modmap_revalidate(void)
{
	unsigned int i, n = load_acquire(&nslots);
	bool sealed = vma_sealed(), stays = sealed && none_went();
	uint64_t now = modmap_loads();
	int saved = errno;

	for (i = 0; i < n; i++) {
		struct module *m = load_acquire(&slots[i].m);

		if (!m || !m->is_volatile || (sealed ? stays : still_there(m)))
			continue;
		/*
		 * Drop the rules first: a thread that finds the module gone must not find its
		 * rules. The rules cannot come back, because a thread that captures in the code
		 * that lies there now has been here since that code was loaded.
		 */
		rulecache_flush();
		remove_slot(&slots[i], m);
	}
	modmap_loads_saw(now);
	errno = saved;
}

void modmap_set_end(uint64_t lo, uint64_t hi)
{
	/* A reader that comes between these stores finds the old range or an empty one. */
	store_release(&modmap_end.hi, 0);
	store_release(&modmap_end.lo, lo);
	store_release(&modmap_end.hi, hi);
	modmap_flush();
}

bool modmap_is_end(uint64_t pc)
{
	uint64_t hi = load_acquire(&modmap_end.hi);

	return pc < hi && pc >= load_acquire(&modmap_end.lo);
}

uint64_t modmap_rule(uint64_t pc, bool exact)
{
	uint64_t gen = rulecache_gen();
	struct module *m = modmap_find(pc - !exact);
	uint64_t rule;

	if (!m || !module_is_code(m, pc - !exact))
		return RULE_NONE;
	rule = modmap_is_end(pc - !exact) ? RULE_END : module_rule(m, pc, exact);
	if (rule == RULE_NONE)
		rule = RULE_GUESS;
	if (!exact)
		rulecache_put(pc, gen, rule);
	return rule;
}

void modmap_flush(void)
{
	unsigned int i, n = load_acquire(&nslots);

	rulecache_flush();
	for (i = 0; i < n; i++) {
		struct module *m = load_acquire(&slots[i].m);

		if (m && m->is_volatile)
			remove_slot(&slots[i], m);
	}
	rulecache_flush();
}

void modmap_stats(struct shstk_stats *stats)
{
	unsigned int i, n = load_acquire(&nslots);

	for (i = 0; i < n; i++)
		module_count(load_acquire(&slots[i].m), stats);
	stats->cache_entries = load_relaxed(&rulecache.filled);
	stats->cache_bytes = (load_relaxed(&rulecache.mask) + 1 +
			      min(load_relaxed(&rulecache.copies), (uint64_t)RULECACHE_MAX)) *
			     sizeof(struct rulecache_entry);
}

#ifdef __GLIBC__
/* Finds the loader's words that hold the number of objects it has loaded. */
static void find_counters(void)
{
	static bool looked;
	const uint64_t *p, *end;
	struct rtld loader;

	if (looked)
		return;
	looked = true;
	rtld_find(&loader);
	if (!loader.adds)
		return;
	p = (const uint64_t *)(uintptr_t)loader.global.lo;
	end = p + (loader.global.hi - loader.global.lo) / sizeof(*p);
	for (; p < end && modmap_watch.n < MODMAP_COUNTERS; p++) {
		if (load_relaxed(p) == loader.adds)
			modmap_watch.counter[modmap_watch.n++] = p;
	}
	modmap_loads_saw(modmap_loads());
}
#else
/* Does nothing: musl's dlclose() leaves all code where it is. */
static void find_counters(void)
{
}
#endif

static __attribute__((constructor)) void modmap_init(void)
{
	find_counters();
}

/*
 * Looks for the counters first, because constructors of the program may run before modmap_init().
 */
bool shstk_loads(uint64_t *ret)
{
	find_counters();
	*ret = modmap_loads();
	return modmap_watch.n;
}
