/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* import_proto.h - what the readers of messages share that protobuf-c unpacks. */
#ifndef SHSTK_IMPORT_PROTO_H
#define SHSTK_IMPORT_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include "import.h"
#include "symbol.h"

/* Returns an allocator that takes memory from the file's account before it allocates. */
ProtobufCAllocator shstk_proto_allocator(struct shstk_import *in);
/* Returns @nr zeroed elements, whose memory is taken from the account, or NULL. */
void *shstk_proto_array(struct shstk_import *in, size_t nr, size_t size);
/* Says what is wrong with a message that refers to something that is not in it. Returns -EINVAL. */
int shstk_proto_broken(struct shstk_import *in, const char *what);
/* Returns string @i of a string table with @nr strings, or NULL if there is no such string. */
const char *shstk_proto_text(char *const *table, size_t nr, int64_t i);
/* Returns the number of a line; 0, not known, if it is none. */
int shstk_proto_line(int64_t n);
/*
 * Checks a frame whose names were found by shstk_proto_text(). One without a name gets its linkage
 * name. Returns 0, or -EINVAL and sets the reason.
 */
int shstk_proto_frame(struct shstk_import *in, struct shstk_symframe *frame);

#endif /* SHSTK_IMPORT_PROTO_H */
