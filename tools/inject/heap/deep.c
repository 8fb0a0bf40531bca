// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * deep.c - libraries that are loaded with RTLD_DEEPBIND.
 *
 * Such a library, and what is loaded with it, finds functions among its own dependencies first:
 * libc's malloc(), not the agent's. Without the flag it would find the program's functions where it
 * relies on its own, so the flag stays. Afterwards, what was bound to libc is bound to the agent.
 * This changes the tables that the loader's relocations fill in, in the new objects, and only for
 * those functions that the agent passes on to the same function of libc.
 *
 * Allocations of constructors of these libraries are not seen, as they run before that.
 *
 * As this needs to do something after the loader has returned, the loader sees the agent as its
 * caller. That makes no difference, unless it searches the folders that the caller's file names, or
 * the caller's folder.
 */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "../common/rawcall.h"
#include "heap.h"

#if defined(__x86_64__)
#define RELOC_TABLE R_X86_64_JUMP_SLOT
#define RELOC_POINTER R_X86_64_GLOB_DAT
#define RELOC_DATA R_X86_64_64
#elif defined(__aarch64__)
#define RELOC_TABLE R_AARCH64_JUMP_SLOT
#define RELOC_POINTER R_AARCH64_GLOB_DAT
#define RELOC_DATA R_AARCH64_ABS64
#else
#define RELOC_TABLE R_RISCV_JUMP_SLOT
#define RELOC_POINTER R_RISCV_64
#define RELOC_DATA R_RISCV_64
#endif

/* ---- The caller ---- */

/**
 * struct caller - what the loader would look at
 * @pc: address in the object that calls dlopen().
 * @plain: the file's name has no folder.
 * @first: the next object is the program itself.
 * @found: the caller is an object of the program's own namespace.
 * @differs: the loader would not do the same for the agent.
 */
struct caller {
	uintptr_t pc;
	bool plain;
	bool first;
	bool found;
	bool differs;
};

static const ElfW(Phdr) * find_header(const struct dl_phdr_info *info, uint32_t type)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == type)
			return &info->dlpi_phdr[i];
	return NULL;
}

static const ElfW(Dyn) * find_dynamic(const struct dl_phdr_info *info)
{
	const ElfW(Phdr) *h = find_header(info, PT_DYNAMIC);

	return h ? (const ElfW(Dyn) *)(info->dlpi_addr + h->p_vaddr) : NULL;
}

static bool has_address(const struct dl_phdr_info *info, uintptr_t at)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    at - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) <
			    info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

/*
 * Looks at an object. Its DT_RPATH applies to everything that is loaded for it. So DT_RPATH makes a
 * difference in any object but the program, whose DT_RPATH always applies.
 */
static int scan_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct caller *c = arg;
	const ElfW(Dyn) *d = find_dynamic(info);
	bool is_caller = has_address(info, c->pc);

	(void)size;
	c->found |= is_caller;
	for (; d && d->d_tag != DT_NULL; d++) {
		c->differs |= d->d_tag == DT_RPATH && !c->first;
		c->differs |= d->d_tag == DT_RUNPATH && is_caller && c->plain;
		c->differs |= d->d_tag == DT_FLAGS_1 && is_caller && d->d_un.d_val & DF_1_NODEFLIB;
	}
	c->first = false;
	return 0;
}

bool deep_is_same(const char *file, const void *caller)
{
	struct caller c = { .pc = (uintptr_t)caller, .first = true };

	if (!file || strchr(file, '$'))
		return false;
	c.plain = !strchr(file, '/');
	dl_iterate_phdr(scan_object, &c);
	return c.found && !c.differs;
}

/* ---- Functions that were bound past the agent ---- */

/**
 * struct bound - a function of the agent's
 * @name: its name.
 * @ours: the function.
 * @theirs: the function that the library found instead. NULL: it found the agent's, or one that is
 *	not the next function after the agent's.
 */
struct bound {
	const char *name;
	void *ours;
	void *theirs;
};

#define BOUND(fn)                     \
	{                             \
#fn, (void *)fn, NULL \
	}

static const struct bound all[] = {
	BOUND(malloc),	       BOUND(calloc),	      BOUND(realloc),  BOUND(free),
	BOUND(reallocarray),   BOUND(posix_memalign), BOUND(memalign), BOUND(aligned_alloc),
	BOUND(valloc),	       BOUND(pvalloc),	      BOUND(mmap),     BOUND(mmap64),
	BOUND(munmap),	       BOUND(mremap),	      BOUND(dlopen),   BOUND(dlclose),
	BOUND(pthread_create),
};

#define NR_BOUND (sizeof(all) / sizeof(*all))

/**
 * struct object_load - a library that is loaded
 * @bound: the functions.
 * @before: number of objects before that.
 * @subs: number of objects that were unloaded until then.
 * @at: number of the object that is looked at.
 * @missed: not all functions could be bound.
 */
struct object_load {
	struct bound bound[NR_BOUND];
	unsigned int before;
	unsigned long long subs;
	unsigned int at;
	bool missed;
};

static int count_objects(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object_load *load = arg;

	(void)size;
	load->before++;
	load->subs = info->dlpi_subs;
	return 0;
}

static void find_bound(struct object_load *load, void *handle)
{
	memcpy(load->bound, all, sizeof(all));
	for (size_t i = 0; i < NR_BOUND; i++) {
		struct bound *b = &load->bound[i];
		void *theirs = dlsym(handle, b->name);

		if (theirs != b->ours && theirs == dlsym(RTLD_NEXT, b->name))
			b->theirs = theirs;
	}
	dlerror(); /* clears the error, as the program asks about its own library */
}

static const struct bound *find_name(const struct object_load *load, const char *name)
{
	for (size_t i = 0; i < NR_BOUND; i++)
		if (load->bound[i].theirs && !strcmp(load->bound[i].name, name))
			return &load->bound[i];
	return NULL;
}

/**
 * struct bound_object - what is needed of an object
 * @info: its address and headers.
 * @symbols: its dynamic symbols.
 * @strings: names of @symbols.
 */
struct bound_object {
	const struct dl_phdr_info *info;
	const ElfW(Sym) * symbols;
	const char *strings;
};

/*
 * Returns the address that @d holds. Some C libraries store addresses in that section, others leave
 * offsets.
 */
static uintptr_t address_of(const struct dl_phdr_info *info, const ElfW(Dyn) * d)
{
	return d->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + d->d_un.d_ptr : d->d_un.d_ptr;
}

/*
 * Returns whether a table's entry is bound to @b's function, or not bound yet: then it leads to the
 * object's own code that binds it.
 */
static bool is_bound(const struct bound_object *o, const struct bound *b, uint32_t type,
		     uintptr_t value)
{
	return value == (uintptr_t)b->theirs ||
	       (type == RELOC_TABLE && has_address(o->info, value));
}

static void bind_table(const struct object_load *load, const struct bound_object *o, uintptr_t at,
		       size_t bytes)
{
	const ElfW(Rela) *r = (const ElfW(Rela) *)at;

	for (; bytes >= sizeof(*r); bytes -= sizeof(*r), r++) {
		const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(r->r_info)];
		uint32_t type = ELF64_R_TYPE(r->r_info);
		uintptr_t *slot = (uintptr_t *)(o->info->dlpi_addr + r->r_offset);
		const struct bound *b;

		if ((type != RELOC_TABLE && type != RELOC_POINTER && type != RELOC_DATA) ||
		    symbol->st_shndx != SHN_UNDEF)
			continue;
		b = find_name(load, o->strings + symbol->st_name);
		if (b && is_bound(o, b, type, *slot))
			__atomic_store_n(slot, (uintptr_t)b->ours, __ATOMIC_RELEASE);
	}
}

static void bind_object(const struct object_load *load, const struct dl_phdr_info *info,
			const ElfW(Dyn) * d)
{
	struct bound_object o = { .info = info };
	uintptr_t table = 0, lazy = 0;
	size_t bytes = 0, lazy_bytes = 0;

	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			o.symbols = (const ElfW(Sym) *)address_of(info, d);
			break;
		case DT_STRTAB:
			o.strings = (const char *)address_of(info, d);
			break;
		case DT_RELA:
			table = address_of(info, d);
			break;
		case DT_RELASZ:
			bytes = d->d_un.d_val;
			break;
		case DT_JMPREL:
			lazy = address_of(info, d);
			break;
		case DT_PLTRELSZ:
			lazy_bytes = d->d_un.d_val;
		}
	}
	if (!o.symbols || !o.strings)
		return;
	if (table)
		bind_table(load, &o, table, bytes);
	if (lazy)
		bind_table(load, &o, lazy, lazy_bytes);
}

/* Changes the protection of what the loader made read-only after its relocations. */
static long protect(const struct dl_phdr_info *info, const ElfW(Phdr) * relro, int prot)
{
	uintptr_t page = getauxval(AT_PAGESZ), start, end;

	if (!relro || !page)
		return 0;
	start = (info->dlpi_addr + relro->p_vaddr) & -page;
	end = (info->dlpi_addr + relro->p_vaddr + relro->p_memsz) & -page;
	return start < end ? sys3(SYS_mprotect, start, end - start, prot) : 0;
}

static int bind_new(struct dl_phdr_info *info, size_t size, void *arg)
{
	const ElfW(Phdr) *relro = find_header(info, PT_GNU_RELRO);
	const ElfW(Dyn) *dynamic = find_dynamic(info);
	struct object_load *load = arg;

	(void)size;
	/* Objects were unloaded meanwhile: then it is not known which ones are new. */
	load->missed |= info->dlpi_subs != load->subs;
	if (load->missed || load->at++ < load->before || !dynamic)
		return 0;
	if (protect(info, relro, PROT_READ | PROT_WRITE)) {
		load->missed = true;
		return 0;
	}
	bind_object(load, info, dynamic);
	protect(info, relro, PROT_READ);
	return 0;
}

void *deep_open(const char *file, int mode, void *(*open)(const char *, int))
{
	struct object_load load = { .before = 0 };
	void *handle;

	dl_iterate_phdr(count_objects, &load);
	handle = open(file, mode);
	if (!handle)
		return NULL;
	find_bound(&load, handle);
	dl_iterate_phdr(bind_new, &load);
	if (load.missed)
		atomic_store(&heap.image->deepbind, 1);
	return handle;
}
