/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* private.h - declarations that the files of libshstk-symbol share among themselves. */
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
 * Returns the hash of a key, in place of uthash's own function. That one takes three instructions a
 * byte, and was a tenth of the time of adding samples and naming them; this one takes one
 * instruction a byte. The hash begins with an address of this program, which differs from run to
 * run, so that nobody can choose names that collide.
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

/*
 * uthash calls exit() when memory runs out unless told otherwise. With this macro it leaves the
 * element out, and sets the element's hh.tbl to NULL.
 */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, size, value) ((value) = shstk_hash(key, size))
#include <uthash.h>

/*
 * Number of elements in a chain that makes a table grow. It is less than uthash's own 10, because
 * each element is a cache line that has to be fetched.
 */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 6U

/* ---- pool.c: memory that is released all at once, and strings held once ---- */

/* Longest string that is kept, in bytes. Longer strings are cut and end in "...". */
#define SHSTK_TEXT_MAX 16384

struct shstk_pool_chunk;
struct shstk_pool_text;

/**
 * struct shstk_pool - memory that is released all at once
 * @chunks: all chunks, the newest first.
 * @next: next free byte of the newest chunk.
 * @left: number of free bytes in the newest chunk.
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
/* Returns zeroed memory, aligned for any type; NULL when memory runs out. */
void *shstk_pool_alloc(struct shstk_pool *pool, size_t size);
/*
 * Returns the one copy of a string, made valid UTF-8 without control characters: two equal strings
 * are the same pointer. NULL when memory runs out.
 */
const char *shstk_pool_text(struct shstk_pool *pool, const char *text, size_t len);

/* Returns whether shstk_pool_text() has the string already and would take no memory for it. */
bool shstk_pool_has(struct shstk_pool *pool, const char *text, size_t len);

/*
 * Makes room for one more element in a malloc'd array that has @nr elements and room for @*max.
 * Returns the array, perhaps moved, or NULL when memory runs out.
 */
void *shstk_grow(void *array, size_t nr, size_t *max, size_t size);

/* ---- demangle.c ---- */

/*
 * Returns the readable form of a linker symbol, or the symbol itself if it is not mangled. C++
 * names are shortened unless @full. NULL when memory runs out.
 */
const char *shstk_demangle(struct shstk_pool *pool, const char *linkage, bool full);
/* Returns whether a name begins like a mangled one of C++, Rust or D. */
bool shstk_is_mangled(const char *name);

/* Returns whether @name is the mangled name of a D function (dlang.c). */
bool shstk_is_dlang(const char *name);

/**
 * shstk_dlang() - write a mangled D name as its source has it
 * @name: the name as linkers see it.
 * @text: receives the readable name, not ended by a zero.
 * @max: bytes in @text.
 * @len: receives how many bytes were written.
 *
 * Time and memory are bounded for any name.
 *
 * Return: whether @name is a name of D.
 */
bool shstk_dlang(const char *name, char *text, size_t max, size_t *len);
/*
 * Returns what stands for a name where there is none: "[module+0x12]", "[vdso+0x12]" for a module
 * "[vdso]", "[0x12]" for no module. NULL when memory runs out.
 */
const char *shstk_place_name(struct shstk_pool *pool, const char *module, uint64_t addr);

/* ---- shorten.c ---- */

/*
 * Returns a readable C++ name without default arguments of the standard library's templates:
 * "std::vector<std::string>". NULL when memory runs out.
 */
const char *shstk_shorten(struct shstk_pool *pool, const char *name, size_t len);

/* ---- root.c: files as another process sees them ---- */

/**
 * struct shstk_root - root folder and mount namespace of some processes
 * @fd: descriptor of the folder, or -1: this process's own root.
 * @dev: device of the folder, to tell roots apart.
 * @ino: inode number of the folder, to tell roots apart.
 * @mnt_ns: inode number of the mount namespace, to tell roots apart.
 * @next: next root of the store.
 */
struct shstk_root {
	int fd;
	dev_t dev;
	ino_t ino;
	ino_t mnt_ns;
	struct shstk_root *next;
};

/*
 * Returns @pid, or the ID of another thread of that process if its first thread has ended: /proc
 * shows what a process has only by the IDs of threads that live.
 */
int shstk_living_thread(int pid);

/**
 * struct shstk_remote_memory - memory of a process from which files are made
 * @read: reads all @size bytes or nothing. Returns false if they cannot be read.
 * @arg: first argument of @read.
 * @copied: bytes that all files took so far.
 */
struct shstk_remote_memory {
	bool (*read)(void *arg, uint64_t addr, void *buf, size_t size);
	void *arg;
	_Atomic uint64_t *copied;
};

/* Makes a file of the ELF image that lies at @base. Returns a descriptor or a negative errno. */
int shstk_remote_image(const struct shstk_remote_memory *memory, uint64_t base);
/*
 * Returns the root of a living process, found in or added to @list. It is this process's own root
 * if both are the same, if the process cannot be looked at, or if @pid is 0. NULL when memory runs
 * out.
 */
struct shstk_root *shstk_root_get(struct shstk_root **list, int pid);
void shstk_root_put_all(struct shstk_root **list);
/*
 * Opens a regular file for reading below that root; absolute links are followed below it, too.
 * Never blocks on pipes. @flags are further flags of open(2). Returns a descriptor or a negative
 * errno.
 */
int shstk_root_open(const struct shstk_root *root, const char *path, int flags);

/* ---- object.c: one ELF file ---- */

struct shstk_object;

/* Most frames of one address: a function and the calls that were inlined into each other. */
#define SHSTK_FRAMES_MAX 128

/**
 * struct shstk_resolved - what an object knows about one of its addresses
 * @resolved: a symbol or debug information named the address.
 * @start: where the function starts, in addresses of the object; or 0.
 * @nr: number of elements of @frames.
 * @frames: functions at the address, innermost first.
 */
struct shstk_resolved {
	bool resolved;
	uint64_t start;
	unsigned int nr;
	struct shstk_symframe *frames;
};

/*
 * Makes an object of an open file; reads nothing yet. It takes over @fd, also when it fails.
 * Returns NULL when memory runs out.
 */
struct shstk_object *shstk_object_create(struct shstk_pool *pool, int fd,
					 const struct shstk_root *root, const char *path,
					 const char *name, const struct shstk_symbols_opts *opts,
					 struct shstk_budget *budget);
/* Makes an object of an image in memory, which is copied. Returns NULL when memory runs out. */
struct shstk_object *shstk_object_create_image(struct shstk_pool *pool, const void *image,
					       size_t size, const char *name,
					       const struct shstk_symbols_opts *opts,
					       struct shstk_budget *budget);
void shstk_object_destroy(struct shstk_object *object);
/* Returns whether the object is an ELF file. */
bool shstk_object_valid(struct shstk_object *object);
/* Returns the size of the GNU build id in bytes, 0 if there is none. @ret receives its bytes. */
size_t shstk_object_build_id(struct shstk_object *object, const uint8_t **ret);
/*
 * Translates an offset in the file to an address of the object. Returns false if no address is
 * mapped to that offset.
 */
bool shstk_object_address(struct shstk_object *object, uint64_t offset, uint64_t *ret);
/* Returns how many units lack their .dwo file, as shstk_dwarf_missing() does. */
size_t shstk_object_missing(const struct shstk_object *object, const char **first);
/* Returns the names for an address; NULL when memory runs out. */
const struct shstk_resolved *shstk_object_resolve(struct shstk_object *object, uint64_t addr);

/* ---- elf.c: opening ELF files that may be hostile ---- */

struct Elf;
typedef struct Elf Elf;

/* Opens an ELF file; returns NULL if it is none. @fd stays the caller's and must stay open. */
Elf *shstk_elf_begin(int fd);
/*
 * Opens an ELF file in memory; returns NULL if it is none. @image stays the caller's and must stay.
 */
Elf *shstk_elf_memory(void *image, size_t size);
/*
 * Returns whether libelf copies the file's content to memory, instead of mapping it, which it does
 * for files that are not root's. @fd -1 means an image that is in memory already: false.
 */
bool shstk_elf_copied(int fd);
/*
 * Returns false for a large file that is not root's and consists almost only of holes: any user can
 * make such a file of any size.
 */
bool shstk_elf_dense(int fd);
/* Returns whether there is a section of that name (also as .zdebug_*) with content. */
bool shstk_elf_has(Elf *elf, const char *section);

/* The bytes of a section; both pointers are NULL if there is none. */
struct shstk_bytes {
	const uint8_t *p;
	const uint8_t *end;
};

/* Returns the bytes of the section of that name (also as .zdebug_*), unless it is compressed. */
struct shstk_bytes shstk_elf_bytes(Elf *elf, const char *section);
/*
 * Returns the ELF file packed in .gnu_debugdata, or NULL. It is unpacked into @ret (malloc'd),
 * whose memory is taken from @account, if that is not NULL.
 */
Elf *shstk_elf_minidebug(Elf *elf, void **ret, struct shstk_account *account);

/* ---- unpack.c: debug sections as libdw gets them ---- */

struct shstk_unpacked;

/*
 * Takes from @account the memory that debug sections will need once they are read, which is that of
 * compressed sections, and that of all sections if they are @copied. Returns false if it cannot be
 * had, or the file contradicts itself.
 */
bool shstk_elf_afford(Elf *elf, bool copied, bool lines, struct shstk_account *account);
/*
 * Inflates into @list the compressed debug sections that are read here, and hides the others.
 * Without
 * @lines, .debug_line is hidden as well. @elf refers to the list until shstk_unpacked_free().
 */
void shstk_elf_unpack(Elf *elf, bool lines, struct shstk_unpacked **list);
void shstk_unpacked_free(struct shstk_unpacked *list);

/* ---- debugfile.c: finding separate debug files ---- */

/**
 * struct shstk_debugplace - where the separate debug files of a file are looked for
 * @root: the root folder of a process that has the file mapped.
 * @owner: user ID of the file's owner.
 * @dirs: the debug folders, separated by colons.
 */
struct shstk_debugplace {
	const struct shstk_root *root;
	uid_t owner;
	const char *dirs;
};

/*
 * Opens the file with that build id below the debug folders, this process's own ones first. Returns
 * a descriptor or a negative errno.
 */
int shstk_debugfile_by_id(const struct shstk_debugplace *place, const void *build_id, size_t size);
/*
 * Opens the debug file of @elf, which lies at @path, by build id or by .gnu_debuglink. Returns a
 * descriptor or a negative errno.
 */
int shstk_debugfile_open(const struct shstk_debugplace *place, const char *path, Elf *elf);
/* Opens a file that the debug information names. Returns a descriptor or a negative errno. */
int shstk_debugfile_named(const struct shstk_debugplace *place, const char *path);
/*
 * Asks the servers of DEBUGINFOD_URLS for the debug file of @elf, which may take as long as they
 * and DEBUGINFOD_TIMEOUT let it. Returns a descriptor or a negative errno; -ENOENT: there are no
 * servers, or they do not have the file.
 */
int shstk_debugfile_fetch(Elf *elf);

/* ---- debuginfod.c ---- */

/*
 * Fetches the debug file with that build id from the servers, unchecked. Returns a descriptor or a
 * negative errno.
 */
int shstk_debuginfod_open(const void *build_id, size_t size);

/* ---- symtab.c: sorted function symbols, and function starts ---- */

/**
 * struct shstk_sym - a function symbol
 * @addr: first address.
 * @size: bytes; estimated where the symbol table does not tell.
 * @name: name as in the table; lives as long as its Elf.
 * @sized: the symbol table told @size.
 * @rank: of several names for one address, the one with the highest rank is shown.
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

/*
 * Adds the function symbols of sections of one type (SHT_SYMTAB or SHT_DYNSYM). @copied is what
 * shstk_elf_copied() returns for the file.
 */
int shstk_symtab_add(struct shstk_symtab *tab, Elf *elf, bool copied, uint32_t type,
		     struct shstk_account *account);
/* Sorts the symbols; to be called once, after all were added. */
void shstk_symtab_finish(struct shstk_symtab *tab);
void shstk_symtab_deinit(struct shstk_symtab *tab);
/* Returns the symbol that covers an address, or NULL. */
const struct shstk_sym *shstk_symtab_find(const struct shstk_symtab *tab, uint64_t addr);

/* The search table of .eh_frame_hdr, which tells where functions without a name start. */
struct shstk_starts {
	const uint8_t *table;
	size_t nr;
	uint64_t hdr; /* address of .eh_frame_hdr */
	Elf *elf;
	int fd; /* descriptor of @elf, where its bytes are copied; otherwise -1 */
};

/* Reads the search table of @elf. @fd is its descriptor, or -1. */
void shstk_starts_init(struct shstk_starts *starts, Elf *elf, int fd,
		       struct shstk_account *account);
/* Returns the start of the function that covers an address, or 0. */
uint64_t shstk_starts_find(const struct shstk_starts *starts, uint64_t addr);

/* ---- plt.c ---- */

/*
 * Returns the name of the PLT stub that covers @addr, such as "puts@plt", and sets @start to the
 * stub's first address. NULL if the address is in no stub.
 */
const char *shstk_plt_name(struct shstk_pool *pool, Elf *elf, uint64_t addr, uint64_t *start);

/* ---- dwarf.c: functions, inlined calls and lines ---- */

struct shstk_dwarf;

/*
 * Makes the reader of debug information of @elf. @fd is its descriptor, or -1 if it is in memory;
 * @path is the path of the program, or NULL. It takes over nothing; names are kept in @pool.
 *	Returns NULL if there is no usable debug information.
 */
struct shstk_dwarf *shstk_dwarf_create(struct shstk_pool *pool, Elf *elf, int fd,
				       const struct shstk_debugplace *place, const char *path,
				       const struct shstk_symbols_opts *opts,
				       struct shstk_account *account);
void shstk_dwarf_destroy(struct shstk_dwarf *dwarf);
/*
 * Returns how many of the units that addresses were looked up in lack the .dwo file that describes
 * them. @first receives the path of the first such file, if it has one.
 */
size_t shstk_dwarf_missing(const struct shstk_dwarf *dwarf, const char **first);
/*
 * Fills @ret->frames, which has room for SHSTK_FRAMES_MAX frames of which the first is zeroed, and
 * @ret->start. @sym is the symbol that covers @addr, or NULL. Returns the number of frames; 0 if
 *	the address is not described, but then the first frame may have received file and line.
 */
unsigned int shstk_dwarf_find(struct shstk_dwarf *dwarf, uint64_t addr, const struct shstk_sym *sym,
			      struct shstk_resolved *ret);

/* ---- gonames.c: the table that Go programs carry ---- */

struct shstk_gonames;

/*
 * Opens the table of a Go program. @fd is the descriptor of @elf, or -1; @elf must stay; names are
 * kept in @pool. Returns NULL if it is no Go program, or memory runs out.
 */
struct shstk_gonames *shstk_gonames_create(struct shstk_pool *pool, Elf *elf, int fd,
					   const struct shstk_symbols_opts *opts,
					   struct shstk_account *account);
void shstk_gonames_destroy(struct shstk_gonames *go);
/* Fills @ret and returns the number of frames, as shstk_dwarf_find() does. */
unsigned int shstk_gonames_find(const struct shstk_gonames *go, uint64_t addr,
				const struct shstk_sym *sym, struct shstk_resolved *ret);

/* ---- perfmap.c: names of code made at run time ---- */

struct shstk_perfmap;

/* A name of generated code. It stays as long as its perf-map does. */
struct shstk_perfmap_entry {
	uint64_t start;
	uint64_t end;
	const char *name;
};

struct shstk_perfmap *shstk_perfmap_create(void);
void shstk_perfmap_destroy(struct shstk_perfmap *map);
/* Adds the lines of a file's text, which are newer than all before. Returns 0 or -ENOMEM. */
int shstk_perfmap_parse(struct shstk_perfmap *map, const char *text, size_t size);
/* Adds one name, which is newer than all before. Returns 0 or -ENOMEM. */
int shstk_perfmap_add(struct shstk_perfmap *map, uint64_t start, uint64_t end, const char *name);
/*
 * Does what shstk_perfmap_parse() does, with a file from byte *@from on, until the lines take about
 * @most more bytes of memory. *@from becomes the offset behind the last line that was taken.
 */
int shstk_perfmap_read(struct shstk_perfmap *map, int fd, size_t most, uint64_t *from);
/*
 * Sets whether the lines that come next may be known already. Known lines are not added again while
 * @anew is set.
 */
void shstk_perfmap_anew(struct shstk_perfmap *map, bool anew);
/* Returns about how many bytes of memory the lines of files take; 0 for NULL. */
size_t shstk_perfmap_cost(const struct shstk_perfmap *map);
/* Returns whether a file had more lines than it was allowed to take memory for. */
bool shstk_perfmap_cut(const struct shstk_perfmap *map);
/* Returns the number of entries. */
size_t shstk_perfmap_size(const struct shstk_perfmap *map);
/* Returns the newest entry at an address, or NULL. */
const struct shstk_perfmap_entry *shstk_perfmap_find(struct shstk_perfmap *map, uint64_t addr);

/*
 * Entries by time. shstk_perfmap_stamp() says that all that was added since the last stamp was
 * there at @time (ns of any clock) for sure; times ascend. shstk_perfmap_advance() moves to a time,
 * which ascends as well, and returns whether there are new entries then. shstk_perfmap_find_now()
 * finds the entry that was there at that time, or the first one that came after it.
 */
void shstk_perfmap_stamp(struct shstk_perfmap *map, uint64_t time);
bool shstk_perfmap_advance(struct shstk_perfmap *map, uint64_t time);
const struct shstk_perfmap_entry *shstk_perfmap_find_now(const struct shstk_perfmap *map,
							 uint64_t addr);

/* ---- maps.c: /proc/PID/maps ---- */

/*
 * Reads the next line of a maps text. Returns false at the end of the text. Lines that are no
 * mappings or not executable are passed over. @info->path points into @path, which has room for
 * PATH_MAX + 16 bytes.
 */
bool shstk_maps_next(const char **text, const char *end, struct shstk_symmap_info *info,
		     char *path);
/* Reads all of /proc/PID/maps into one malloc'd block. Returns its size or a negative errno. */
ssize_t shstk_maps_read(int pid, char **ret);

/* ---- symbol.c ---- */

/* Returns the store's pool, for strings that live as long as the store does. */
struct shstk_pool *shstk_symbols_pool(struct shstk_symbols *symbols);

#endif /* SHSTK_SYMBOL_PRIVATE_H */
