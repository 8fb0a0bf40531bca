/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* builder.h - the memory of a message of protobuf-c that is built. */
#ifndef SHSTK_BUILDER_H
#define SHSTK_BUILDER_H

#include <stdint.h>

#include "pool.h"
#include "symbol.h"

/**
 * struct shstk_builder - memory of a message, to be zeroed
 * @pool: what the message consists of.
 * @failed: memory ran out.
 */
struct shstk_builder {
	struct shstk_pool pool;
	bool failed;
};

/**
 * struct shstk_message_items - pointers to the elements of a table of the message
 * @v: the pointers, to be freed.
 * @nr: number of elements.
 * @max: number of elements that @v has room for.
 */
struct shstk_message_items {
	void **v;
	size_t nr;
	size_t max;
};

/* Returns zeroed memory. When memory runs out, the value is NULL, and @builder->failed is set. */
void *shstk_builder_alloc(struct shstk_builder *builder, size_t size);
/* Returns @nr zeroed elements, likewise. */
void *shstk_builder_array(struct shstk_builder *builder, size_t nr, size_t size);
/* Adds an element, likewise. Returns whether it was added; a NULL is not. */
bool shstk_builder_push(struct shstk_builder *builder, struct shstk_message_items *items,
			void *item);
/* Returns a mapping's build id in hexadecimal digits; NULL, likewise. */
char *shstk_builder_build_id(struct shstk_builder *builder, const struct shstk_symmap *map);
/* Returns bytes in hexadecimal digits; NULL, likewise. */
char *shstk_builder_hex(struct shstk_builder *builder, const uint8_t *bytes, size_t size);

/* Allocates and initialises a message of a generated type. */
#define SHSTK_BUILDER_NEW(builder, type, init)                                    \
	({                                                                        \
		type *message_ = shstk_builder_alloc(builder, sizeof(*message_)); \
                                                                                  \
		if (message_)                                                     \
			init(message_);                                           \
		message_;                                                         \
	})

#endif /* SHSTK_BUILDER_H */
