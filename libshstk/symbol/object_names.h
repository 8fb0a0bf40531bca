/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* object_names.h - one ELF file, and the names of its addresses. */
#ifndef SHSTK_SYMBOL_OBJECT_NAMES_H
#define SHSTK_SYMBOL_OBJECT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shstk_budget;
struct shstk_pool;
struct shstk_root;
struct shstk_symframe;
struct shstk_symbols_opts;

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
/* Returns OpenTelemetry's id of the file, SHSTK_HTLHASH bytes (htlhash.h), or NULL. */
const uint8_t *shstk_object_htlhash(struct shstk_object *object);
/*
 * Translates an offset in the file to an address of the object. Returns false if no address is
 * mapped to that offset.
 */
bool shstk_object_address(struct shstk_object *object, uint64_t offset, uint64_t *ret);
/* Returns how many units lack their .dwo file, as shstk_dwarf_missing() does. */
size_t shstk_object_missing(const struct shstk_object *object, const char **first);
/*
 * Returns the name of the debug file that the object's .gnu_debuglink names and that was not found, or
 * NULL. Writes the object's own name to @name then.
 */
const char *shstk_object_lost(const struct shstk_object *object, const char **name);
/*
 * Reads the names for @nr different addresses by up to @threads threads, where that is worth it, so
 * that shstk_object_resolve() finds them at once.
 */
void shstk_object_prepare(struct shstk_object *object, const uint64_t *addrs, size_t nr,
			  unsigned int threads);
/* Returns the names for an address; NULL when memory runs out. */
const struct shstk_resolved *shstk_object_resolve(struct shstk_object *object, uint64_t addr);

#endif
