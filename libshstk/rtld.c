// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rtld.c - looks a symbol up like the dynamic loader, in the hash table of each loaded object;
 * see rtld.h.
 */
#include <elf.h>
#include <link.h>

#include "rtld.h"

/**
 * struct symbols - the symbols that an object exports
 * @hash: the hash table DT_GNU_HASH, or NULL: four numbers, a filter of as many 64-bit words as
 *	the third number says, the index of the first symbol of each chain, and the chains.
 * @symbol: the symbols, DT_SYMTAB.
 * @name: the strings of their names, DT_STRTAB.
 */
struct symbols {
	const uint32_t *hash;
	const Elf64_Sym *symbol;
	const char *name;
};

/*
 * Returns a pointer from a dynamic section as an address. Most loaders have already added the
 * object's base to it.
 */
static const void *dynamic_pointer(uint64_t base, uint64_t value)
{
	return (const void *)(uintptr_t)(value < base ? base + value : value);
}

static void read_dynamic(const Elf64_Dyn *d, uint64_t base, struct symbols *s)
{
	for (; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_GNU_HASH)
			s->hash = dynamic_pointer(base, d->d_un.d_ptr);
		else if (d->d_tag == DT_SYMTAB)
			s->symbol = dynamic_pointer(base, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			s->name = dynamic_pointer(base, d->d_un.d_ptr);
	}
}

static bool find_symbols(const struct dl_phdr_info *object, struct symbols *s)
{
	const ElfW(Phdr) *p = object->dlpi_phdr, *end = p + object->dlpi_phnum;

	*s = (struct symbols){ .hash = NULL };
	for (; p < end; p++) {
		if (p->p_type == PT_DYNAMIC)
			read_dynamic(dynamic_pointer(object->dlpi_addr,
						     object->dlpi_addr + p->p_vaddr),
				     object->dlpi_addr, s);
	}
	return s->hash && s->symbol && s->name;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	while (*name)
		h = h * 33 + (unsigned char)*name++;
	return h;
}

/* Returns the symbol @name that the object defines, or NULL. */
static const Elf64_Sym *find_symbol(const struct symbols *s, const char *name)
{
	uint32_t buckets = s->hash[0], first = s->hash[1], words = s->hash[2];
	const uint32_t *bucket = s->hash + 4 + 2 * (size_t)words, *chain = bucket + buckets;
	uint32_t hash = gnu_hash(name), i, h;

	i = buckets ? bucket[hash % buckets] : 0;
	if (i < first || !i)
		return NULL;
	do {
		h = chain[i - first];
		if ((h | 1) == (hash | 1) && s->symbol[i].st_shndx != SHN_UNDEF &&
		    !strcmp(s->name + s->symbol[i].st_name, name))
			return &s->symbol[i];
		i++;
	} while (!(h & 1)); /* the last symbol of a chain has this bit */
	return NULL;
}

/**
 * struct search - a symbol that is looked for in each loaded object
 * @name: its name.
 * @adds: number of objects that the loader has loaded so far; 0 if it does not count them.
 * @found: the first definition, or NULL.
 * @base: what is added to the addresses of the object that has it.
 * @tls: the object's thread-local variables of the calling thread, or NULL.
 */
struct search {
	const char *name;
	uint64_t adds;
	const Elf64_Sym *found;
	uint64_t base;
	const char *tls;
};

#define HAS(size, member) \
	((size) >=        \
	 offsetof(struct dl_phdr_info, member) + sizeof(((struct dl_phdr_info *)NULL)->member))

static int find_in_object(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct search *search = arg;
	struct symbols s;

	if (HAS(size, dlpi_adds))
		search->adds = object->dlpi_adds;
	if (!find_symbols(object, &s))
		return 0;
	search->found = find_symbol(&s, search->name);
	search->base = object->dlpi_addr;
	search->tls = HAS(size, dlpi_tls_data) ? object->dlpi_tls_data : NULL;
	return !!search->found;
}

void rtld_find(struct rtld *ret)
{
	struct search search = { .name = "_rtld_global" };

	dl_iterate_phdr(find_in_object, &search);
	*ret = (struct rtld){ .adds = search.adds };
	if (search.found) {
		ret->global.lo = search.base + search.found->st_value;
		ret->global.hi = ret->global.lo + search.found->st_size;
	}
}

void *rtld_thread_variable(const char *name)
{
	struct search search = { .name = name };

	dl_iterate_phdr(find_in_object, &search);
	if (!search.found || !search.tls || ELF64_ST_TYPE(search.found->st_info) != STT_TLS)
		return NULL;
	return (void *)(search.tls + search.found->st_value);
}

void *rtld_symbol(const char *name, uint64_t *size)
{
	struct search search = { .name = name };

	dl_iterate_phdr(find_in_object, &search);
	if (!search.found || ELF64_ST_TYPE(search.found->st_info) == STT_TLS)
		return NULL;
	*size = search.found->st_size;
	return (void *)(uintptr_t)(search.base + search.found->st_value);
}
