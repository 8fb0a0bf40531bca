// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * object_names.c - one ELF file: all that is known about its addresses.
 *
 * Each source of names is read when the first address needs it: the symbol tables of the file, of
 * its debug file and of the file packed in .gnu_debugdata; Go's table; debug information from
 * wherever it is; and .eh_frame_hdr, which tells where the functions of a stripped file start.
 */
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_id.h"
#include "budget.h"
#include "debugfile.h"
#include "demangle.h"
#include "dwarf.h"
#include "elf_file.h"
#include "gonames.h"
#include "hash.h"
#include "haskell.h"
#include "htlhash.h"
#include "known_names.h"
#include "object_names.h"
#include "plt.h"
#include "pool.h"
#include "readers.h"
#include "root.h"
#include "starts.h"
#include "symbol.h"
#include "symtab.h"

struct segment {
	uint64_t offset;
	uint64_t end;
	uint64_t addr;
};

struct named_address {
	UT_hash_handle hh;
	uint64_t addr;
	const struct shstk_resolved *names;
};

/*
 * The names of a symbol. They are kept, because they take long to find out, and many addresses lie
 * in one function.
 */
struct named_symbol {
	UT_hash_handle hh;
	const struct shstk_sym *sym;
	const char *function;
	const char *linkage;
};

/**
 * struct shstk_object - an ELF file or an image of one
 * @pool: memory of names and answers.
 * @opts: options of the store.
 * @account: memory and time that the file may take.
 * @place: where the debug files of the file are looked for.
 * @path: path of the file, or NULL for an image.
 * @name: name of the file in frames.
 * @fd: descriptor of the file, or -1 for an image.
 * @image: copy of the image, or NULL for a file.
 * @image_size: bytes in @image.
 * @elf: the opened file; NULL if it is no ELF file.
 * @opened: open_elf() was called.
 * @segments: executable segments.
 * @nr_segments: number of segments.
 * @build_id: GNU build id, or NULL.
 * @build_id_size: bytes in @build_id.
 * @hashed: @htlhash was computed, if it can be.
 * @has_htlhash: it could be.
 * @htlhash: OpenTelemetry's id of the file.
 * @loaded: load() was called.
 * @recognised: @has_known_file and @known_file were set.
 * @has_known_file: names of the file may be known from stores before this one.
 * @known_file: what tells it from other files.
 * @debug_fd: descriptor of the separate debug file, or -1.
 * @debug: the separate debug file, or NULL.
 * @lost: name of the separate debug file that was not found (shstk_debugfile_promised()), or NULL.
 * @recalled: stores before this one were asked for @lost.
 * @mini_image: unpacked .gnu_debugdata, or NULL.
 * @mini: the ELF file in @mini_image, or NULL.
 * @symtab: function symbols.
 * @starts: starts of functions without a symbol.
 * @dwarf: debug information, or NULL.
 * @go: table of a Go program, or NULL.
 * @plt: what is known of its PLT stubs.
 * @answers: addresses that were resolved.
 * @named: names of symbols.
 */
struct shstk_object {
	struct shstk_pool *pool;
	const struct shstk_symbols_opts *opts;
	struct shstk_account account;
	struct shstk_debugplace place;
	const char *path;
	const char *name;
	int fd;
	void *image;
	size_t image_size;
	Elf *elf;
	bool opened;
	struct segment *segments;
	size_t nr_segments;
	const uint8_t *build_id;
	size_t build_id_size;
	bool hashed;
	bool has_htlhash;
	uint8_t htlhash[SHSTK_HTLHASH];
	bool loaded;
	bool recognised;
	bool has_known_file;
	struct shstk_known_file known_file;
	int debug_fd;
	Elf *debug;
	const char *lost;
	bool recalled;
	void *mini_image;
	Elf *mini;
	struct shstk_symtab symtab;
	struct shstk_starts starts;
	struct shstk_dwarf *dwarf;
	struct shstk_gonames *go;
	struct shstk_plt plt;
	struct named_address *answers;
	struct named_symbol *named;
};

static struct shstk_object *create(struct shstk_pool *pool, const struct shstk_symbols_opts *opts,
				   struct shstk_budget *budget, const char *name)
{
	static const struct shstk_root ours = { .fd = -1 };
	struct shstk_object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	object->pool = pool;
	object->opts = opts;
	object->place.root = &ours;
	object->place.dirs = opts->debug_dirs;
	object->fd = -1;
	object->debug_fd = -1;
	object->name = shstk_pool_text(pool, name, strlen(name));
	if (!object->name) {
		free(object);
		return NULL;
	}
	shstk_account_open(&object->account, budget, object->name);
	return object;
}

struct shstk_object *shstk_object_create(struct shstk_pool *pool, int fd,
					 const struct shstk_root *root, const char *path,
					 const char *name, const struct shstk_symbols_opts *opts,
					 struct shstk_budget *budget)
{
	struct shstk_object *object = create(pool, opts, budget, name);
	char *copy = shstk_pool_alloc(pool, strlen(path) + 1);
	struct stat st;

	if (!object || !copy || fstat(fd, &st)) {
		free(object);
		close(fd);
		return NULL;
	}
	object->path = object->account.name = strcpy(copy, path);
	object->place.root = root;
	object->place.owner = st.st_uid;
	object->fd = fd;
	return object;
}

struct shstk_object *shstk_object_create_image(struct shstk_pool *pool, const void *image,
					       size_t size, const char *name,
					       const struct shstk_symbols_opts *opts,
					       struct shstk_budget *budget)
{
	struct shstk_object *object = create(pool, opts, budget, name);

	if (!object)
		return NULL;
	object->image = malloc(size);
	if (!object->image) {
		free(object);
		return NULL;
	}
	memcpy(object->image, image, size);
	object->image_size = size;
	return object;
}

void shstk_object_destroy(struct shstk_object *object)
{
	if (!object)
		return;
	HASH_CLEAR(hh, object->answers);
	HASH_CLEAR(hh, object->named);
	shstk_dwarf_destroy(object->dwarf);
	shstk_gonames_destroy(object->go);
	shstk_symtab_deinit(&object->symtab);
	elf_end(object->mini);
	free(object->mini_image);
	elf_end(object->debug);
	if (object->debug_fd >= 0)
		close(object->debug_fd);
	elf_end(object->elf);
	free(object->segments);
	free(object->image);
	if (object->fd >= 0)
		close(object->fd);
	shstk_account_close(&object->account);
	free(object);
}

static uint64_t page_down(uint64_t v)
{
	return v & ~4095ull;
}

/*
 * Reads the executable segments. The kernel maps whole pages, so a segment's first and last page
 * hold more of the file than the segment.
 */
static void read_segments(struct shstk_object *object)
{
	GElf_Phdr phdr;
	size_t nr, i;

	if (elf_getphdrnum(object->elf, &nr) || !nr)
		return;
	object->segments = calloc(nr, sizeof(*object->segments));
	for (i = 0; object->segments && i < nr; i++) {
		if (!gelf_getphdr(object->elf, i, &phdr) || phdr.p_type != PT_LOAD ||
		    !(phdr.p_flags & PF_X) || phdr.p_filesz > UINT64_MAX - 4096 - phdr.p_offset)
			continue;
		object->segments[object->nr_segments++] = (struct segment){
			.offset = page_down(phdr.p_offset),
			.end = page_down(phdr.p_offset + phdr.p_filesz + 4095),
			.addr = phdr.p_vaddr - (phdr.p_offset - page_down(phdr.p_offset)),
		};
	}
}

static void open_elf(struct shstk_object *object)
{
	const void *id;
	size_t size;

	object->opened = true;
	if (object->image) {
		object->elf = shstk_elf_memory(object->image, object->image_size);
	} else {
		object->elf = shstk_elf_begin(object->fd);
	}
	if (!object->elf)
		return;
	read_segments(object);
	size = shstk_build_id(object->elf, &id);
	if (size) {
		object->build_id = id;
		object->build_id_size = size;
	}
}

bool shstk_object_valid(struct shstk_object *object)
{
	if (!object->opened)
		open_elf(object);
	return object->elf;
}

size_t shstk_object_build_id(struct shstk_object *object, const uint8_t **ret)
{
	if (!shstk_object_valid(object))
		return 0;
	*ret = object->build_id;
	return object->build_id_size;
}

const uint8_t *shstk_object_htlhash(struct shstk_object *object)
{
	if (!object->hashed && shstk_object_valid(object))
		object->has_htlhash = shstk_htlhash(object->fd, object->htlhash);
	object->hashed = true;
	return object->has_htlhash ? object->htlhash : NULL;
}

bool shstk_object_address(struct shstk_object *object, uint64_t offset, uint64_t *ret)
{
	const struct segment *seg;
	size_t i;

	if (!shstk_object_valid(object))
		return false;
	for (i = 0; i < object->nr_segments; i++) {
		seg = object->segments + i;
		if (offset < seg->offset || offset >= seg->end)
			continue;
		*ret = seg->addr + (offset - seg->offset);
		return true;
	}
	return false;
}

static void open_debug(struct shstk_object *object)
{
	const char *lost;

	if (!object->path ||
	    (shstk_elf_has(object->elf, ".debug_info") && shstk_elf_has(object->elf, ".symtab")))
		return;
	object->debug_fd = shstk_debugfile_open(&object->place, object->path, object->elf);
	if (object->debug_fd < 0 && !object->opts->no_servers)
		object->debug_fd = shstk_debugfile_fetch(object->elf);
	if (object->debug_fd >= 0)
		object->debug = shstk_elf_begin(object->debug_fd);
	else if ((lost = shstk_debugfile_promised(object->elf)))
		object->lost = shstk_pool_text(object->pool, lost, strlen(lost));
}

static void load_symbols(struct shstk_object *object)
{
	struct shstk_account *account = &object->account;
	struct shstk_symtab *tab = &object->symtab;
	bool copied = shstk_elf_copied(object->fd);

	if (shstk_elf_has(object->elf, ".symtab")) {
		shstk_symtab_add(tab, object->elf, copied, SHT_SYMTAB, account);
	} else {
		shstk_symtab_add(tab, object->elf, copied, SHT_DYNSYM, account);
		object->mini = shstk_elf_minidebug(object->elf, &object->mini_image, account);
		if (object->mini)
			shstk_symtab_add(tab, object->mini, false, SHT_SYMTAB, account);
		if (object->debug)
			shstk_symtab_add(tab, object->debug, shstk_elf_copied(object->debug_fd),
					 SHT_SYMTAB, account);
	}
	shstk_symtab_finish(tab);
}

static void load_dwarf(struct shstk_object *object)
{
	bool own = shstk_elf_has(object->elf, ".debug_info");

	if (own || (object->debug && shstk_elf_has(object->debug, ".debug_info")))
		object->dwarf = shstk_dwarf_create(object->pool, own ? object->elf : object->debug,
						   own ? object->fd : object->debug_fd,
						   &object->place, object->path, object->opts,
						   &object->account);
}

static void load(struct shstk_object *object)
{
	struct shstk_account *account = &object->account;

	object->loaded = true;
	if (!shstk_object_valid(object))
		return;
	if (shstk_account_begin(account)) {
		object->go = shstk_gonames_create(object->pool, object->elf, object->fd,
						  object->opts, account);
		open_debug(object);
		load_symbols(object);
		load_dwarf(object);
		shstk_starts_init(&object->starts, object->elf, object->fd, account);
	}
	shstk_account_end(account);
}

static struct named_symbol *add_named(struct shstk_object *object, const struct shstk_sym *sym)
{
	struct named_symbol *named = shstk_pool_alloc(object->pool, sizeof(*named));

	if (!named)
		return NULL;
	named->sym = sym;
	if (object->symtab.haskell)
		named->function = shstk_haskell_name(object->pool, sym->name);
	if (!named->function)
		named->function = shstk_demangle(object->pool, sym->name, object->opts->full_names);
	named->linkage = shstk_pool_text(object->pool, sym->name, strlen(sym->name));
	if (!named->function || !named->linkage)
		return NULL;
	HASH_ADD_PTR(object->named, sym, named);
	return named->hh.tbl ? named : NULL;
}

static bool name_by_symbol(struct shstk_object *object, const struct shstk_sym *sym,
			   struct shstk_symframe *frame)
{
	struct named_symbol *named;

	HASH_FIND_PTR(object->named, &sym, named);
	if (!named)
		named = add_named(object, sym);
	if (!named)
		return false;
	frame->function = named->function;
	frame->linkage = named->linkage;
	return true;
}

/*
 * Names an address by the file and, if @start is not 0, by where its function starts. Returns the
 * number of frames: 0 if memory runs out.
 */
static unsigned int name_place(struct shstk_object *object, uint64_t addr, uint64_t start,
			       struct shstk_symframe *frame)
{
	frame->function = shstk_place_name(object->pool, object->name, start ? start : addr);
	frame->linkage = frame->function;
	return frame->function ? 1 : 0;
}

/*
 * Fills @ret, whose frames have room for SHSTK_FRAMES_MAX elements; the first one is zeroed.
 * Returns their number, 0 if memory runs out.
 */
static unsigned int resolve(struct shstk_object *object, uint64_t addr, struct shstk_resolved *ret)
{
	const struct shstk_sym *sym = shstk_symtab_find(&object->symtab, addr);
	struct shstk_symframe *frames = ret->frames;
	unsigned int nr = 0;

	if (object->go)
		nr = shstk_gonames_find(object->go, addr, sym, ret);
	if (!nr && object->dwarf)
		nr = shstk_dwarf_find(object->dwarf, addr, sym, ret);
	ret->resolved = nr || sym;
	if (nr)
		return nr;
	frames[0].inlined = false;
	if (sym) {
		ret->start = sym->addr;
		return name_by_symbol(object, sym, frames);
	}
	frames[0].function = object->elf ? shstk_plt_name(&object->plt, object->pool, object->elf,
							  object->fd, &object->account, addr,
							  &ret->start) :
					   NULL;
	if (frames[0].function) {
		frames[0].linkage = frames[0].function;
		ret->resolved = true;
		return 1;
	}
	ret->start = shstk_starts_find(&object->starts, addr);
	return name_place(object, addr, ret->start, frames);
}

size_t shstk_object_missing(const struct shstk_object *object, const char **first)
{
	return object->dwarf ? shstk_dwarf_missing(object->dwarf, first) : 0;
}

const char *shstk_object_lost(const struct shstk_object *object, const char **name)
{
	if (object->lost)
		*name = object->name;
	return object->lost;
}

/* Reads the object's names of an address. Returns NULL when memory runs out. */
static const struct shstk_resolved *read_names(struct shstk_object *object, uint64_t addr)
{
	struct shstk_resolved *ret = shstk_pool_alloc(object->pool, sizeof(*ret));
	struct shstk_symframe frames[SHSTK_FRAMES_MAX];

	if (!ret)
		return NULL;
	if (!object->loaded)
		load(object);
	frames[0] = (struct shstk_symframe){ 0 };
	ret->frames = frames;
	ret->nr = resolve(object, addr, ret);
	ret->frames = shstk_pool_alloc(object->pool, ret->nr * sizeof(*frames));
	if (!ret->nr || !ret->frames)
		return NULL;
	memcpy(ret->frames, frames, ret->nr * sizeof(*frames));
	return ret;
}

/* Among known names, what has the name of the debug file that was not found in the place of a function's. */
#define LOST_ADDR UINT64_MAX

/* Finds out whether a store before this one lacked the debug file: then its names lack what that has. */
static void recall_lost(struct shstk_object *object)
{
	const struct shstk_resolved *kept;

	if (object->lost || object->recalled)
		return;
	object->recalled = true;
	kept = shstk_known_names_find(object->opts->known, &object->known_file, LOST_ADDR,
				      object->pool);
	if (kept)
		object->lost = kept->frames[0].function;
}

/* Tells the stores after this one that the debug file was not found. */
static void keep_lost(const struct shstk_object *object)
{
	struct shstk_symframe frame = { .function = object->lost };
	const struct shstk_resolved lost = { .nr = 1, .frames = &frame };

	if (object->lost &&
	    !shstk_known_names_has(object->opts->known, &object->known_file, LOST_ADDR))
		shstk_known_names_add(object->opts->known, &object->known_file, LOST_ADDR, &lost);
}

/*
 * Returns what a store before this one found, or NULL. A name that has the file's is made anew, as
 * the same file may have had another name there.
 */
static const struct shstk_resolved *find_known(struct shstk_object *object, uint64_t addr)
{
	const struct shstk_resolved *ret = shstk_known_names_find(
		object->opts->known, &object->known_file, addr, object->pool);

	if (ret)
		recall_lost(object);
	if (ret && !ret->resolved && !name_place(object, addr, ret->start, ret->frames))
		return NULL;
	return ret;
}

/* Returns whether names of the file may be known from stores before this one. */
static bool recognise(struct shstk_object *object)
{
	if (object->opts->known && !object->recognised) {
		object->has_known_file = shstk_known_file(object->fd, &object->known_file);
		object->recognised = true;
	}
	return object->has_known_file;
}

/*
 * Keeps names for the stores after this one. What is found while the file may not be read as far as
 * it should be, or while .dwo files are missing, is not for them: they are to say so, too.
 */
static void add_known(struct shstk_object *object, uint64_t addr,
		      const struct shstk_resolved *names)
{
	const char *first;

	if (!names || object->account.excess || shstk_object_missing(object, &first) ||
	    !recognise(object))
		return;
	keep_lost(object);
	shstk_known_names_add(object->opts->known, &object->known_file, addr, names);
}

/* Returns the names of an address, which stores before this one may know already. */
static const struct shstk_resolved *known_names(struct shstk_object *object, uint64_t addr)
{
	const struct shstk_resolved *ret = recognise(object) ? find_known(object, addr) : NULL;

	if (ret)
		return ret;
	ret = read_names(object, addr);
	add_known(object, addr, ret);
	return ret;
}

static struct named_address *find_answer(const struct shstk_object *object, uint64_t addr)
{
	struct named_address *answer;

	HASH_FIND(hh, object->answers, &addr, sizeof(addr), answer);
	return answer;
}

/* Keeps the answer for an address. Returns the names; NULL when memory runs out. */
static const struct shstk_resolved *add_answer(struct shstk_object *object, uint64_t addr,
					       const struct shstk_resolved *names)
{
	struct named_address *answer = names ? shstk_pool_alloc(object->pool, sizeof(*answer)) :
					       NULL;

	if (!answer)
		return NULL;
	answer->addr = addr;
	answer->names = names;
	HASH_ADD(hh, object->answers, addr, sizeof(answer->addr), answer);
	return names;
}

const struct shstk_resolved *shstk_object_resolve(struct shstk_object *object, uint64_t addr)
{
	const struct named_address *answer = find_answer(object, addr);

	return answer ? answer->names : add_answer(object, addr, known_names(object, addr));
}

/* ---- Many addresses at once ---- */

/* Returns the object's copy of a text, or NULL. */
static const char *own_text(struct shstk_object *object, const char *text)
{
	return text ? shstk_pool_text(object->pool, text, strlen(text)) : NULL;
}

/* Copies a frame, whose texts are a reader's. Returns false when memory runs out. */
static bool own_frame(struct shstk_object *object, const struct shstk_symframe *from,
		      struct shstk_symframe *to)
{
	*to = *from;
	to->function = own_text(object, from->function);
	to->linkage = own_text(object, from->linkage);
	to->file = own_text(object, from->file);
	return to->function && to->linkage && (to->file || !from->file);
}

/* Makes what a reader found the object's answer. */
static void take_over(struct shstk_object *object, const struct shstk_wanted *wanted)
{
	const struct shstk_resolved *from = &wanted->names;
	struct shstk_resolved *names = shstk_pool_alloc(object->pool, sizeof(*names));
	struct shstk_symframe *frames = shstk_pool_alloc(object->pool, from->nr * sizeof(*frames));

	if (!names || !frames)
		return;
	for (unsigned int i = 0; i < from->nr; i++)
		if (!own_frame(object, &from->frames[i], &frames[i]))
			return;
	*names = *from;
	names->frames = frames;
	if (add_answer(object, wanted->addr, names))
		add_known(object, wanted->addr, names);
}

/* Lists those addresses that a reader can help with. Returns their number. */
static size_t list_wanted(struct shstk_object *object, const uint64_t *addrs, size_t nr,
			  struct shstk_wanted *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++) {
		struct shstk_wanted wanted = { .addr = addrs[i] };

		if (find_answer(object, addrs[i]) ||
		    (recognise(object) &&
		     add_answer(object, addrs[i], find_known(object, addrs[i]))))
			continue;
		if (!object->loaded)
			load(object);
		if (object->go || !object->dwarf ||
		    !shstk_dwarf_unit(object->dwarf, addrs[i], &wanted.unit))
			continue;
		wanted.sym = shstk_symtab_find(&object->symtab, addrs[i]);
		ret[n++] = wanted;
	}
	return n;
}

/* Below so many addresses for each thread, starting it takes longer than what it does. */
#define WORTH_A_THREAD 500

void shstk_object_prepare(struct shstk_object *object, const uint64_t *addrs, size_t nr,
			  unsigned int threads)
{
	struct shstk_wanted *wanted = calloc(nr, sizeof(*wanted));
	struct shstk_readers *readers = NULL;
	size_t n = wanted ? list_wanted(object, addrs, nr, wanted) : 0;

	if (n / WORTH_A_THREAD < threads)
		threads = n / WORTH_A_THREAD;
	if (threads > 1)
		readers = shstk_readers_run(object->dwarf, &object->account, wanted, n, threads);
	for (size_t i = 0; readers && i < n; i++)
		if (wanted[i].names.nr)
			take_over(object, &wanted[i]);
	shstk_readers_destroy(readers);
	free(wanted);
}
