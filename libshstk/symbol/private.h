/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * private.h - what the files of libshstk-symbol share among themselves.
 */
#ifndef SHSTK_SYMBOL_PRIVATE_H
#define SHSTK_SYMBOL_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "budget.h"
#include "symbol.h"

/*
 * uthash's own function takes three instructions a byte, and was a tenth of what adding samples
 * and naming them takes; this one takes one for each. It begins with an address of ours, which
 * differs from run to run, so that nobody can choose names that collide.
 */
static inline unsigned int shstk_hash(const void *key, size_t size)
{
	static const char seed;
	const uint64_t factor = 0x9e3779b97f4a7c15;
	uint64_t hash = (uintptr_t)&seed ^ size, word;
	const uint8_t *p = key;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = (hash ^ word) * factor;
		hash ^= hash >> 32;
	}
	for (word = 0; size; size--)
		word = word << 8 | *p++;
	hash = (hash ^ word) * factor;
	return hash >> 32;
}

/* uthash calls exit() when memory runs out unless told otherwise; with this it
 * leaves the element out: its hh.tbl is then NULL.
 */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, size, value) ((value) = shstk_hash(key, size))
#include <uthash.h>

/* Elements of a chain that make a table grow: each is a cache line that has to be fetched. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 6U

/* ---- pool.c: memory that goes all at once, and strings held once ---- */

/* Longest string kept, in bytes; what is longer ends in "...". */
#define SHSTK_TEXT_MAX 16384

struct shstk_pool_chunk;
struct shstk_pool_text;

/**
 * struct shstk_pool - memory that is released all at once
 * @chunks: all chunks, the newest first.
 * @next: next free byte of the newest chunk.
 * @left: free bytes there.
 * @texts: all strings, by their bytes as they were given.
 */
struct shstk_pool {
	struct shstk_pool_chunk *chunks;
	char *next;
	size_t left;
	struct shstk_pool_text *texts;
};

void shstk_pool_init(struct shstk_pool *pool);
void shstk_pool_deinit(struct shstk_pool *pool);
/* Zeroed, aligned for any type; NULL when memory runs out. */
void *shstk_pool_alloc(struct shstk_pool *pool, size_t size);
/* The one copy of a string, made valid UTF-8 without control characters: two
 * equal strings are the same pointer. NULL when memory runs out.
 */
const char *shstk_pool_text(struct shstk_pool *pool, const char *text, size_t len);

/* Whether shstk_pool_text() would take no memory for it. */
bool shstk_pool_has(struct shstk_pool *pool, const char *text, size_t len);

/* Room for one more element of a malloc'd array that has @nr of them and room for
 * @*max: the array, perhaps moved, or NULL when memory runs out.
 */
void *shstk_grow(void *array, size_t nr, size_t *max, size_t size);

/* ---- demangle.c ---- */

/* The readable form of a linker symbol; itself if it is not mangled. C++ names are
 * shortened unless @full. NULL when memory runs out.
 */
const char *shstk_demangle(struct shstk_pool *pool, const char *linkage, bool full);
bool shstk_is_mangled(const char *name);

/* dlang.c: is it the name of a function of D? */
bool shstk_is_dlang(const char *name);

/**
 * shstk_dlang() - a name of D as its source has it
 * @name: the name as linkers see it.
 * @text: receives it, not ended by a zero.
 * @max: room there, in bytes.
 * @len: receives how many were written.
 *
 * What it takes is bounded whatever the name is.
 *
 * Return: whether it is one.
 */
bool shstk_dlang(const char *name, char *text, size_t max, size_t *len);
/* What stands for a name where there is none: "[module+0x12]", "[vdso+0x12]" for
 * a module "[vdso]", "[0x12]" for none. NULL when memory runs out.
 */
const char *shstk_place_name(struct shstk_pool *pool, const char *module, uint64_t addr);

/* ---- shorten.c ---- */

/* A readable C++ name without default arguments of the standard library's templates:
 * "std::vector<std::string>". NULL when memory runs out.
 */
const char *shstk_shorten(struct shstk_pool *pool, const char *name, size_t len);

/* ---- root.c: files as another process sees them ---- */

/**
 * struct shstk_root - root folder and mount namespace of some processes
 * @fd: the folder, or -1: ours.
 * @dev: device and
 * @ino: inode number of the folder, and
 * @mnt_ns: of the mount namespace, to tell roots apart.
 * @next: next one of the store.
 */
struct shstk_root {
	int fd;
	dev_t dev;
	ino_t ino;
	ino_t mnt_ns;
	struct shstk_root *next;
};

/* The number of a process, or of another thread of it if the first one has ended: /proc shows what
 * a process has by the numbers of such threads only.
 */
int shstk_living_thread(int pid);

/**
 * struct shstk_remote_memory - memory from which files are made
 * @read: reads all of it or nothing. False: it cannot be read.
 * @arg: for @read.
 * @copied: bytes that files took so far.
 */
struct shstk_remote_memory {
	bool (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
	_Atomic uint64_t *copied;
};

/* Makes a file of the image that lies at @base. Returns a descriptor or a negative errno. */
int shstk_remote_image(const struct shstk_remote_memory *memory, uint64_t base);
/* The root of a living process, found in or added to @list; the one that is
 * ours if it is the same, cannot be looked at, or @pid is 0. NULL when memory
 * runs out.
 */
struct shstk_root *shstk_root_get(struct shstk_root **list, int pid);
void shstk_root_put_all(struct shstk_root **list);
/* Open a regular file for reading, below that root also through absolute links.
 * Never blocks on pipes. @flags: more flags of open(2). Returns a descriptor or
 * a negative errno.
 */
int shstk_root_open(const struct shstk_root *root, const char *path, int flags);

/* ---- object.c: one ELF file ---- */

struct shstk_object;

/* Most frames of one address: calls that were inlined into each other. */
#define SHSTK_FRAMES_MAX 128

/**
 * struct shstk_resolved - what an object knows about one of its addresses
 * @resolved: a symbol or debug information named it.
 * @start: where the function starts, in addresses of the object; or 0.
 * @nr: number of elements of @frames.
 * @frames: innermost first.
 */
struct shstk_resolved {
	bool resolved;
	uint64_t start;
	unsigned int nr;
	struct shstk_symframe *frames;
};

/* Takes over @fd, also when it fails (NULL: out of memory). Reads nothing yet. */
struct shstk_object *shstk_object_create(struct shstk_pool *pool, int fd,
					 const struct shstk_root *root, const char *path,
					 const char *name, const struct shstk_symbols_opts *opts,
					 struct shstk_budget *budget);
/* The same for an image in memory, which is copied. */
struct shstk_object *shstk_object_create_image(struct shstk_pool *pool, const void *image,
					       size_t size, const char *name,
					       const struct shstk_symbols_opts *opts,
					       struct shstk_budget *budget);
void shstk_object_destroy(struct shstk_object *object);
/* False if it is no ELF file. */
bool shstk_object_valid(struct shstk_object *object);
/* Bytes of the GNU build id, 0 if there is none. */
size_t shstk_object_build_id(struct shstk_object *object, const uint8_t **ret);
/* Address in the object of a byte of the file; false if none is mapped there. */
bool shstk_object_address(struct shstk_object *object, uint64_t offset, uint64_t *ret);
/* As shstk_dwarf_missing(). */
size_t shstk_object_missing(const struct shstk_object *object, const char **first);
/* Names for an address; NULL when memory runs out. */
const struct shstk_resolved *shstk_object_resolve(struct shstk_object *object, uint64_t addr);

/* ---- elf.c: opening ELF files that nobody vouches for ---- */

struct Elf;
typedef struct Elf Elf;

/* NULL if it is no ELF file. @fd stays the caller's and must stay open. */
Elf *shstk_elf_begin(int fd);
/* As that, of bytes that stay the caller's. */
Elf *shstk_elf_memory(void *image, size_t size);
/* Whether what is read of it is copied to memory, instead of mapped; -1: it is there already. */
bool shstk_elf_copied(int fd);
/* False: another user's file, as large as one likes, of hardly anything but holes. */
bool shstk_elf_dense(int fd);
/* Whether there is a section of that name (also as .zdebug_*) with content. */
bool shstk_elf_has(Elf *elf, const char *section);

/* Bytes of a section; none: both are NULL. */
struct shstk_bytes {
	const uint8_t *p;
	const uint8_t *end;
};

/* Those of a section of that name (also as .zdebug_*), unless they are packed. */
struct shstk_bytes shstk_elf_bytes(Elf *elf, const char *section);
/* The file packed in .gnu_debugdata, unpacked into @ret (malloc'd), or NULL. It is taken from
 * @account, if that is not NULL.
 */
Elf *shstk_elf_minidebug(Elf *elf, void **ret, struct shstk_account *account);

/* ---- unpack.c: debug sections as libdw gets them ---- */

struct shstk_unpacked;

/* Take from @account what debug sections are going to need once they are read: if they are
 * @copied, or compressed. False: it is not to be had, or the file says nonsense.
 */
bool shstk_elf_afford(Elf *elf, bool copied, bool lines, struct shstk_account *account);
/* Inflate the compressed debug sections that are read here into @list, and hide the others, as
 * that of lines is without @lines. @elf refers to the list until shstk_unpacked_free().
 */
void shstk_elf_unpack(Elf *elf, bool lines, struct shstk_unpacked **list);
void shstk_unpacked_free(struct shstk_unpacked *list);

/* ---- debugfile.c: finding separate debug files ---- */

/**
 * struct shstk_debugplace - where debug files of a file are looked for
 * @root: the root folder of a process that has it mapped.
 * @owner: whose the file is.
 * @dirs: the debug folders.
 */
struct shstk_debugplace {
	const struct shstk_root *root;
	uid_t owner;
	const char *dirs;
};

/* Open the file with that build id below the debug folders, ours first. */
int shstk_debugfile_by_id(const struct shstk_debugplace *place, const void *build_id, size_t size);
/* Open the debug file of @elf, which lies at @path: by build id or by .gnu_debuglink. */
int shstk_debugfile_open(const struct shstk_debugplace *place, const char *path, Elf *elf);
/* Open a file that the debug information names. All return a descriptor or a negative errno. */
int shstk_debugfile_named(const struct shstk_debugplace *place, const char *path);
/* Ask the servers of DEBUGINFOD_URLS for it: this may take as long as they and
 * DEBUGINFOD_TIMEOUT let it. -ENOENT: there are none, or they have none.
 */
int shstk_debugfile_fetch(Elf *elf);

/* ---- debuginfod.c ---- */

/* Open the debug file with that build id from these servers, unchecked. */
int shstk_debuginfod_open(const void *build_id, size_t size);

/* ---- symtab.c: sorted function symbols, and function starts ---- */

/**
 * struct shstk_sym - a function symbol
 * @addr: first address.
 * @size: bytes, also where the symbol table does not tell.
 * @name: as in the table; lives as long as its Elf.
 * @sized: the table told @size.
 * @rank: of names for one address the one with the highest is shown.
 */
struct shstk_sym {
	uint64_t addr;
	uint64_t size;
	const char *name;
	bool sized;
	uint8_t rank;
};

struct shstk_symtab {
	struct shstk_sym *syms;
	size_t nr;
	size_t max;
};

/* Add the function symbols of sections of one type (SHT_SYMTAB, SHT_DYNSYM). @copied: as
 * shstk_elf_copied() says of the file.
 */
int shstk_symtab_add(struct shstk_symtab *tab, Elf *elf, bool copied, uint32_t type,
		     struct shstk_account *account);
/* Sort; to be called once, after all were added. */
void shstk_symtab_finish(struct shstk_symtab *tab);
void shstk_symtab_deinit(struct shstk_symtab *tab);
const struct shstk_sym *shstk_symtab_find(const struct shstk_symtab *tab, uint64_t addr);

/* The search table of .eh_frame_hdr: where functions without a name start. */
struct shstk_starts {
	const uint8_t *table;
	size_t nr;
	uint64_t hdr; /* address of .eh_frame_hdr */
	Elf *elf;
	int fd; /* of @elf, where its bytes are copied; otherwise -1 */
};

/* @fd: of @elf, or -1. */
void shstk_starts_init(struct shstk_starts *starts, Elf *elf, int fd,
		       struct shstk_account *account);
/* Start of the function that covers an address, or 0. */
uint64_t shstk_starts_find(const struct shstk_starts *starts, uint64_t addr);

/* ---- plt.c ---- */

/* "puts@plt", of the stub that covers @addr, which begins at @start; NULL: it is in none. */
const char *shstk_plt_name(struct shstk_pool *pool, Elf *elf, uint64_t addr, uint64_t *start);

/* ---- dwarf.c: functions, inlined calls and lines ---- */

struct shstk_dwarf;

/* @fd: of @elf, or -1: it is in memory. @path: of the program, or NULL. NULL if there is no usable
 * debug information. Takes over nothing. Names are of @pool.
 */
struct shstk_dwarf *shstk_dwarf_create(struct shstk_pool *pool, Elf *elf, int fd,
				       const struct shstk_debugplace *place, const char *path,
				       const struct shstk_symbols_opts *opts,
				       struct shstk_account *account);
void shstk_dwarf_destroy(struct shstk_dwarf *dwarf);
/* How many units lack the .dwo file that describes them, of those that were asked for; the path
 * of the first one goes to @first, if it has one.
 */
size_t shstk_dwarf_missing(const struct shstk_dwarf *dwarf, const char **first);
/* Fill @ret->frames, which has room for SHSTK_FRAMES_MAX, the first zeroed, and @ret->start.
 * @sym is the symbol that covers @addr, or NULL. Returns the number of frames; 0: the address is
 * not described, but the first frame may have received file and line.
 */
unsigned int shstk_dwarf_find(struct shstk_dwarf *dwarf, uint64_t addr, const struct shstk_sym *sym,
			      struct shstk_resolved *ret);

/* ---- gonames.c: the table that Go programs carry ---- */

struct shstk_gonames;

/* @fd: of @elf, or -1. NULL if it is no Go program, or memory runs out. @elf must stay. Names are
 * of @pool.
 */
struct shstk_gonames *shstk_gonames_create(struct shstk_pool *pool, Elf *elf, int fd,
					   const struct shstk_symbols_opts *opts,
					   struct shstk_account *account);
void shstk_gonames_destroy(struct shstk_gonames *go);
/* As shstk_dwarf_find(). */
unsigned int shstk_gonames_find(const struct shstk_gonames *go, uint64_t addr,
				const struct shstk_sym *sym, struct shstk_resolved *ret);

/* ---- perfmap.c: names of code made at run time ---- */

struct shstk_perfmap;

/* Stays as long as its perf-map does. */
struct shstk_perfmap_entry {
	uint64_t start;
	uint64_t end;
	const char *name;
};

struct shstk_perfmap *shstk_perfmap_create(void);
void shstk_perfmap_destroy(struct shstk_perfmap *map);
/* Take the lines of a file's text, newer than all before. Returns 0 or -ENOMEM. */
int shstk_perfmap_parse(struct shstk_perfmap *map, const char *text, size_t size);
/* Take one name, newer than all before. Returns 0 or -ENOMEM. */
int shstk_perfmap_add(struct shstk_perfmap *map, uint64_t start, uint64_t end, const char *name);
/*
 * As shstk_perfmap_parse(), of a file from byte *@from on, which becomes the one behind the last
 * line that was taken, until they take @most bytes of memory more, about.
 */
int shstk_perfmap_read(struct shstk_perfmap *map, int fd, size_t most, uint64_t *from);
/* Lines that come next may be there already, and are not taken again; or that is over. */
void shstk_perfmap_anew(struct shstk_perfmap *map, bool anew);
/* How many bytes those of files take, about; 0 for NULL. */
size_t shstk_perfmap_cost(const struct shstk_perfmap *map);
/* Whether there was more than it may take. */
bool shstk_perfmap_cut(const struct shstk_perfmap *map);
size_t shstk_perfmap_size(const struct shstk_perfmap *map);
/* The newest one there. */
const struct shstk_perfmap_entry *shstk_perfmap_find(struct shstk_perfmap *map, uint64_t addr);

/*
 * By time, which ascends: all that was taken since the last stamp was there at @time (ns, of any
 * clock) for sure. After shstk_perfmap_advance() to a time, which says whether there is something
 * new then, shstk_perfmap_find_now() finds what was there, or what came first after that.
 */
void shstk_perfmap_stamp(struct shstk_perfmap *map, uint64_t time);
bool shstk_perfmap_advance(struct shstk_perfmap *map, uint64_t time);
const struct shstk_perfmap_entry *shstk_perfmap_find_now(const struct shstk_perfmap *map,
							 uint64_t addr);

/* ---- maps.c: /proc/PID/maps ---- */

/* Take the next line of a maps text. Returns false at its end. Lines that are
 * no mappings or not executable are passed over. @info->path lies in @path,
 * PATH_MAX + 16 bytes.
 */
bool shstk_maps_next(const char **text, const char *end, struct shstk_symmap_info *info,
		     char *path);
/* All of /proc/PID/maps in one malloc'd block; or a negative errno. */
ssize_t shstk_maps_read(int pid, char **ret);

/* ---- symbol.c ---- */

/* The store's pool, for strings that live as long as it does. */
struct shstk_pool *shstk_symbols_pool(struct shstk_symbols *symbols);

#endif /* SHSTK_SYMBOL_PRIVATE_H */
